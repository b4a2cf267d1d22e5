"""The values in an engine's file: how the engine is started, what its log lines mean, how its servers are spoken to.

Each file in this package ends with one `ENGINE`. Code that depends on the engine asks that value; no code compares
names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from server_launchers.deployment import ProcessCommand, Readiness
from server_launchers.engines.dialect import Dialect
from server_launchers.engines.routers import SGLANG_ROUTER, Router

if TYPE_CHECKING:
    from server_launchers.machine.accelerators import Accelerator
    from server_launchers.machine.inspection import Facts
    from server_launchers.program import Program
    from server_launchers.spec import ServerSpec

STARTED = frozenset({"host", "port", "environment", "dp", "dp_mode", "start_timeout", "stop_grace", "restarts"})
"""Fields of the spec that apply to every process we start; the harness handles them itself, not the engine."""
ROUTED = STARTED | {"router_python"}
"""Fields that every engine accepts that can stand behind a router."""
PACKAGED = ROUTED | {"python", "engine_version", "devices"}
"""Fields of the spec that every engine accepts that is a Python package."""
GPU_SERVER = PACKAGED | {
    "nodes", "node_rank", "head_address", "head_port", "interface", "node_address", "served_name", "api_key_env", "tp",
    "pp", "docker", "context", "memory_fraction", "max_sequences", "max_batched_tokens", "attention_backend", "dtype",
    "quantization", "reasoning_parser", "sampling_defaults", "deterministic", "seed", "eager", "prefix_caching",
    "chat_template", "trust_remote_code",
}  # fmt: skip
"""Fields of the spec that vLLM and SGLang accept, on Ascend all but `deterministic`."""
MODEL_FLAGS = (
    "quantization", "dtype", "kv-cache-dtype", "load-format", "revision", "tokenizer", "tokenizer-mode",
    "chat-template", "reasoning-parser", "tool-call-parser",
)  # fmt: skip
"""Options of both their command lines that change the distribution of replies."""


class Engine:
    """One engine. Each file makes one value of its own subclass, `ENGINE`; an attribute here is the usual value.

    `command`, `check`, `readiness` and `served_as` are what engines differ in.
    """

    summary: str
    """The program that is started, in a sentence: the one in `harness serve --help` and in the reference."""
    takes: frozenset[str]
    """Fields of the spec that the engine takes; `table.check` refuses the others."""
    needs: Literal["model", "extra_flags"] = "model"
    """The field that a start cannot do without."""
    assumed_version = ""
    """The version for which flags are written if the installed version is unknown."""
    lists_models = True
    """Whether the model list names the served model."""
    spreads = False
    """Whether the engine itself can run several replicas (`dp_mode` engine)."""
    router: Router = SGLANG_ROUTER
    """The router that fits this engine's workers."""
    router_dialect: Dialect | None = None
    """The dialect of this engine's router where that hides what its workers are."""
    accelerator: Accelerator = "cuda"
    devices: Literal["sliced", "named", "none"] = "sliced"
    """When each replica gets accelerators of its own: "sliced" always, "named" if the spec names some, or for
    several replicas if the spec names their kind or the machine has any, "none" never.
    """
    keeps_folder = False
    """Whether the engine is started in the caller's folder (see `deployment.PlannedProcess`)."""
    fetches_weights = False
    """Whether a name known to `harness serve --models` is first turned into a file."""
    dialect: Dialect | None = None
    """How the engine's servers are recognised and spoken to; None if they are known to speak only the OpenAI protocol.
    """
    parsers = ""
    """The key under which presets list this engine's names of reasoning parsers; empty: the engine uses vLLM's names.
    """
    model_flags: tuple[str, ...] = ()
    """Options of the command line that change the distribution of replies, without dashes."""
    file_flags: tuple[str, ...] = ()
    """The options among `model_flags` whose value may be a file or folder, whose content the run then records."""
    gone_since: ClassVar[Mapping[str, str]] = {}
    """Version → the flags, without dashes, that it is the first known to lack; `table.check_flags` refuses them."""
    missing_until: ClassVar[Mapping[str, str]] = {}
    """Version → the flags, without dashes, that it is the last known to lack."""

    def program(self, _spec: ServerSpec) -> Program | None:
        """How the engine is called, if it is a Python package, whose environment then is asked for the version. None:
        it is a program of its own, such as a binary.
        """
        return None

    def command(self, spec: ServerSpec, version: str, port: int) -> ProcessCommand:
        """The command of one replica or node; of an engine with a `program` only that program's arguments.

        Raises LaunchError for what this version cannot do.
        """
        raise NotImplementedError

    def check(self, _spec: ServerSpec, facts: Facts) -> Facts:
        """The facts so far, with what this engine adds. Raises LaunchError where the machine lacks what it needs."""
        return facts

    def served_as(self, spec: ServerSpec) -> str:
        """The model name for requests if the spec has no `served_name`; empty if only the running server knows it."""
        return spec.model

    def readiness(self, _spec: ServerSpec) -> Readiness:
        """The signs that a server of this spec can work."""
        return Readiness(lists_models=self.lists_models)

    def client_name(self, spec: ServerSpec) -> str:
        """The model name for requests; empty if only the running server knows it."""
        return spec.served_name or self.served_as(spec)

    def routed(self, spec: ServerSpec) -> bool:
        """Whether this spec gets a router before its replicas, also before a single one; of several nodes, node 0."""
        return spec.dp_mode == "router" and spec.node_rank == 0

    def runs_on(self, spec: ServerSpec) -> Accelerator:
        """The kind of accelerator that the engine computes on."""
        return "ascend" if spec.device == "npu" else self.accelerator

    def full_command(self, spec: ServerSpec, version: str, port: int, devices: str) -> ProcessCommand:
        """The whole command of one replica or node. devices: the ids of its devices, joined by commas.

        For a Python package (`program`), the arguments from `command` behind the script or interpreter, perhaps in a
        container; any other engine's `command` is whole already.
        """
        command, program = self.command(spec, version, port), self.program(spec)
        if program is None:
            return command
        from server_launchers.machine import environments  # Imported late: every client loads the engines.

        kind = self.runs_on(spec)
        return environments.whole_command(spec, program, command, port=port, kind=kind, devices=devices)

    def assumed_facts(self, spec: ServerSpec) -> Facts:
        """Facts without asking the machine: the version that the spec names or that is assumed, and no devices."""
        from server_launchers.machine.inspection import Facts

        return Facts(spec.engine_version or self.assumed_version, router_python=self.router.interpreter(spec))

    def inspect(self, spec: ServerSpec) -> Facts:
        """Facts about this machine. Raises LaunchError where the engine is missing or its version does not fit."""
        from server_launchers.machine import inspection

        facts, program = self.assumed_facts(spec), self.program(spec)
        if program is not None:
            facts = inspection.of_package(spec, program, self.runs_on(spec), facts)
        return self.check(spec, facts)
