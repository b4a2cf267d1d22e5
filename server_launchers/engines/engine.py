"""The values in an engine's file: how the engine is started, what its log lines mean, how its servers are spoken to.

Each file in this package ends with one `ENGINE`. Code that depends on the engine asks that value; no code compares
names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from server_launchers.deployment import ProcessCommand, Readiness
from server_launchers.engines.dialect import Dialect
from server_launchers.engines.routers import SGLANG_ROUTER, Router

if TYPE_CHECKING:
    from server_launchers.machine.accelerators import Accelerator
    from server_launchers.machine.inspection import Facts
    from server_launchers.program import Program
    from server_launchers.spec import ServerSpec

WriteCommand = Callable[["ServerSpec", str, int], ProcessCommand]
"""Function (spec, version of the engine, port) → the command of one replica or node.

For an engine with a `program` these are only that program's arguments, else the whole command. Raises LaunchError for
what this version cannot do.
"""

STARTED = frozenset({"host", "port", "environment", "dp", "dp_mode", "start_timeout", "stop_grace", "restarts"})
"""Fields of the spec that apply to every process we start; the harness handles them itself, not the engine."""
ROUTED = STARTED | {"router_python"}
PACKAGED = ROUTED | {"python", "uvx", "engine_version", "devices"}
"""Fields of the spec that every engine accepts that is a Python package."""
NODES = frozenset({"nodes", "node_rank", "head_address", "head_port", "interface", "node_address"})


def model_name(spec: ServerSpec) -> str:
    """The model as given in the spec, which is the name that most servers use."""
    return spec.model


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """How one engine is started."""

    takes: frozenset[str]
    """Fields of the spec that the engine takes; `table.check` refuses the others."""
    needs: Literal["model", "extra_flags"] = "model"
    """The field that a start cannot do without."""
    command: WriteCommand
    """A function from the spec to the server's command."""
    program: Callable[[ServerSpec], Program] | None = None
    """A function from the spec to the program, for an engine that is a Python package; its environment is asked for the
    version.
    """
    assumed_version: str = ""
    """The version for which flags are written if the installed version is unknown."""
    look: Callable[[ServerSpec, Facts], Facts] | None = None
    """A function (spec, facts so far) → facts, which checks that the machine has what this engine needs; raises
    LaunchError.
    """
    served_as: Callable[[ServerSpec], str] = model_name
    """The model name for requests where the spec has no `served_name`; empty if only the running server knows it."""
    readiness: Callable[[ServerSpec], Readiness] | None = None
    """Function from the spec to the signs that a server can work; None: the health page, and the model list if
    `lists_models`.
    """
    lists_models: bool = True
    """Whether the model list names the served model."""
    spreads: bool = False
    """Whether the engine itself can run several replicas (`dp_mode` engine)."""
    router: Router = SGLANG_ROUTER
    """The router that fits this engine's workers."""
    always_routed: bool = False
    """Whether a router always stands before the replicas, whatever the spec says."""
    accelerator: Accelerator = "cuda"
    devices: Literal["sliced", "named", "none"] = "sliced"
    """When each replica gets accelerators of its own: "sliced" always, "named" if the spec names some, "none" never."""
    keeps_folder: bool = False
    """Whether the engine is started in the caller's folder (see `deployment.PlannedProcess`)."""
    fetches_weights: bool = False
    """Whether a name known to `harness serve --models` is first turned into a file."""

    def client_name(self, spec: ServerSpec) -> str:
        """The model name for requests; empty if only the running server knows it."""
        return spec.served_name or self.served_as(spec)

    def ready_by(self, spec: ServerSpec) -> Readiness:
        """The signs that a server of this spec can work."""
        return Readiness(lists_models=self.lists_models) if self.readiness is None else self.readiness(spec)

    def routed(self, spec: ServerSpec) -> bool:
        """Whether this spec gets a router before its replicas."""
        return self.always_routed or (spec.dp_mode == "router" and spec.dp > 1)

    def runs_on(self, spec: ServerSpec) -> Accelerator:
        """The kind of accelerator that the engine computes on."""
        return "ascend" if spec.device == "npu" else self.accelerator

    def full_command(self, spec: ServerSpec, version: str, port: int, devices: str) -> ProcessCommand:
        """The whole command of one replica or node. devices: the ids of its devices, joined by commas."""
        command = self.command(spec, version, port)
        if self.program is None:
            return command
        from server_launchers.machine import environments

        kind = self.runs_on(spec)
        return environments.whole_command(spec, self.program(spec), command, port=port, kind=kind, devices=devices)

    def assumed_facts(self, spec: ServerSpec) -> Facts:
        """Facts without asking the machine: the version that the spec names or that is assumed, and no devices."""
        from server_launchers.machine.inspection import Facts

        return Facts(spec.engine_version or self.assumed_version)

    def inspect(self, spec: ServerSpec) -> Facts:
        """Facts about this machine. Raises LaunchError where the engine is missing or its version does not fit."""
        from server_launchers.machine import inspection

        facts = self.assumed_facts(spec)
        if self.program is not None:
            facts = inspection.of_package(spec, self.program(spec), self.runs_on(spec), facts)
        return facts if self.look is None else self.look(spec, facts)


class LogWords(msgspec.Struct, frozen=True):
    """The meaning of the lines in an engine's log, beyond what all engines' logs share (`keeping.engine_log`).

    phases: pattern of a line → progress of the start, with `{}` for its groups. causes: pattern → why a start failed,
    in plain words; the most specific ones first. settings: patterns of lines that only list settings and show no
    progress.
    """

    phases: tuple[tuple[str, str], ...] = ()
    causes: tuple[tuple[str, str], ...] = ()
    settings: tuple[str, ...] = ()


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """One engine."""

    summary: str
    """The sentence in a command's help."""
    launcher: Launcher
    log: LogWords = LogWords()
    dialect: Dialect | None = None
    """How the engine's servers are recognised and spoken to; None if they are known to speak only the OpenAI protocol.
    """
    parsers: str = ""
    """The key under which presets list this engine's names of reasoning parsers; empty: the engine uses vLLM's names.
    """
    neutral_words: tuple[str, ...] = ()
    """Words for the command line that switch off the model's own sampling defaults."""
    model_flags: tuple[str, ...] = ()
    """Options of the command line that change the distribution of replies, without dashes."""
    file_flags: tuple[str, ...] = ()
    """The options among `model_flags` whose value may be a file or folder, whose content the run then records."""
    pasted: Mapping[str, str] = {}
    """Field of the spec (`!` before one that is switched off), `model` or `api_key` → the engine's own flags for it,
    without dashes, with blanks between; empty if its command line is not read (`pasted`).
    """
