"""What an engine's file says: how the engine is started, what its log means, how its servers are known and spoken to.

A file of this room ends in one `ENGINE`. Whatever depends on the engine asks that value; no code compares names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from server_launchers.deployment import ProcessCommand, Readiness
from server_launchers.engines.dialect import Dialect
from server_launchers.engines.routers import SGLANG_ROUTER, Router

if TYPE_CHECKING:
    from server_launchers.machine.accelerators import Accelerator
    from server_launchers.machine.inspection import Facts
    from server_launchers.machine.known_flags import Flags
    from server_launchers.program import Program
    from server_launchers.spec import ServerSpec

WriteCommand = Callable[["ServerSpec", "Flags", int], ProcessCommand]
"""(spec, known options, port) → the command of one replica, or of one node: of an engine with a `program` that
program's own arguments, else the whole.

Raises LaunchError for what this version cannot do.
"""

STARTED = frozenset({"host", "port", "environment", "dp", "dp_mode", "start_timeout", "stop_grace", "restarts"})
"""Fields of the spec that every process that we start takes: they are ours, and no engine's."""
ROUTED = STARTED | {"router_python"}
PACKAGED = ROUTED | {"python", "uvx", "engine_version", "devices"}
"""Fields that every engine takes that is a Python package."""
NODES = frozenset({"nodes", "node_rank", "head_address", "head_port", "interface", "node_address"})


def model_name(spec: ServerSpec) -> str:
    """The model as the spec has it: what most servers call it."""
    return spec.model


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """How one engine is started."""

    takes: frozenset[str]
    """Fields of the spec that the engine takes; `table.check` refuses the others."""
    instead: str = ""
    """End of the sentence that refuses a field."""
    needs: Literal["model", "extra_flags"] = "model"
    """The field without which there is nothing to start."""
    command: WriteCommand | None = None
    """None: nothing is started, and `address` says where the server is."""
    address: Callable[[ServerSpec], str] | None = None
    program: Callable[[ServerSpec], Program] | None = None
    """The program of an engine that is a Python package: its environment is asked for its version and options."""
    unasked: str | None = None
    """The version whose recorded options count where no version can be had; None: the newest."""
    look: Callable[[ServerSpec, Facts], Facts] | None = None
    """A look at what the machine lacks for this engine, with the facts so far; raises LaunchError."""
    served_as: Callable[[ServerSpec], str] = model_name
    """The model name that a client asks for where the spec has no `served_name`; empty where only the running server
    can tell."""
    readiness: Callable[[ServerSpec], Readiness] | None = None
    """Function from the spec to the signs that a server can work; None: `/health`, and the model list where
    `lists_models`."""
    lists_models: bool = True
    """Whether the model list names what is served."""
    spreads: bool = False
    """Whether the engine itself can run several replicas (`dp_mode` engine)."""
    router: Router = SGLANG_ROUTER
    """The router that fits its workers."""
    always_routed: bool = False
    """Whether a router stands before the replicas whatever the spec says."""
    accelerator: Accelerator = "cuda"
    devices: Literal["sliced", "named", "none"] = "sliced"
    """Whether each replica gets accelerators of its own: always, where the spec names some, or never."""
    keeps_folder: bool = False
    """Whether it is started in the caller's folder (see `deployment.PlannedProcess`)."""
    fetches_weights: bool = False
    """Whether a name of `harness models` becomes a file first."""

    def client_name(self, spec: ServerSpec) -> str:
        """The model name that a client asks for; empty where only the running server can tell."""
        return spec.served_name or self.served_as(spec)

    def ready_by(self, spec: ServerSpec) -> Readiness:
        """What tells that a server of the spec can work."""
        return Readiness(lists_models=self.lists_models) if self.readiness is None else self.readiness(spec)

    def routed(self, spec: ServerSpec) -> bool:
        """Whether a router is to stand before the replicas."""
        return self.always_routed or (spec.dp_mode == "router" and spec.dp > 1)

    def runs_on(self, spec: ServerSpec) -> Accelerator:
        """The kind of accelerator that the engine computes on."""
        return "ascend" if spec.device == "npu" else self.accelerator

    def written(self, spec: ServerSpec, flags: Flags, port: int, devices: str) -> ProcessCommand:
        """The whole command of one replica, or of one node. devices: of this replica, joined by commas."""
        assert self.command is not None
        command = self.command(spec, flags, port)
        if self.program is None:
            return command
        from server_launchers.machine import environments

        kind = self.runs_on(spec)
        return environments.called(spec, self.program(spec), command, port=port, kind=kind, devices=devices)

    def recorded(self, spec: ServerSpec) -> Facts:
        """Facts without asking the machine: the recorded options, no devices."""
        from server_launchers.machine import inspection

        package = spec.engine if self.program is None else self.program(spec).package
        return inspection.recorded(spec, package, self.unasked)

    def inspect(self, spec: ServerSpec) -> Facts:
        """Facts of this machine; raises LaunchError where the engine is missing or its version does not fit."""
        from server_launchers.machine import inspection

        facts = self.recorded(spec)
        if self.program is not None:
            facts = inspection.of_package(spec, self.program(spec), self.runs_on(spec), facts)
        return facts if self.look is None else self.look(spec, facts)


class LogWords(msgspec.Struct, frozen=True):
    """What the lines of an engine's log mean, beside what all engines' logs have in common (`keeping.engine_log`).

    phases: pattern of a line → how far the start is, with `{}` for its groups. causes: pattern → why a start failed, in
    plain words; in the order of what tells most. settings: patterns of lines that list all settings, and tell no phase.
    """

    phases: tuple[tuple[str, str], ...] = ()
    causes: tuple[tuple[str, str], ...] = ()
    settings: tuple[str, ...] = ()


class WeightSwap(msgspec.Struct, frozen=True):
    """How a running server takes other weights: POST `page` with the model under `field`; `told_page` then names it
    under `told_field`."""

    page: str
    field: str
    told_page: str
    told_field: str


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """One engine."""

    summary: str
    """The sentence that a command's help shows."""
    launcher: Launcher
    log: LogWords = LogWords()
    dialect: Dialect | None = None
    """None: nothing is known of its servers beside the protocol."""
    parsers: str = ""
    """The key under which presets have its own names of reasoning parsers; empty: it has vLLM's names."""
    neutral_words: tuple[str, ...] = ()
    """The words of its command line by which it leaves out the model's own sampling."""
    model_flags: tuple[str, ...] = ()
    """Options of its command line that change the distribution of replies, without their dashes."""
    file_flags: tuple[str, ...] = ()
    """Those of them whose value may be a file or a folder: what is in it counts."""
    weight_swap: WeightSwap | None = None
    batch_words: Callable[[Path, Path], tuple[str, ...]] | None = None
    """The command that answers a file of requests, and writes the file of results."""
