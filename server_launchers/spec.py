"""What to serve and how, in one vocabulary for all engines; each engine's file translates it into its own flags.

A field that the command line may set carries its flag, its help and its bounds. `command_line` makes the commands'
options from these, and nothing else lists them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from server_launchers.errors import SpecError

EngineName = Literal[
    "llama_cpp",
    "vllm",
    "vllm_ascend",
    "sglang",
    "sglang_router",
    "transformers",
    "command",
]
"""Every engine; each has its file in `engines/`."""

ENGINES: tuple[EngineName, ...] = get_args(EngineName)
"""The engines, in the order that people are shown."""

# `\Z`, because `$` also accepts a line end behind the name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class Flag:
    """The flag of a field, and the values that the field accepts."""

    help: str
    _: KW_ONLY
    flag: str | None = None
    """The flag; None: the field's name with dashes."""
    minimum: int | None = None
    maximum: int | None = None
    above: int | None = None
    """The value must be greater than this."""
    metavar: str | None = None


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """One server: an engine, a model, and how the model is spread and limited. None = the engine's own default.

    Raises SpecError for the first wrong field; `engines.table.check` refuses fields that the engine needs and the spec
    leaves empty, or that the engine does not support. Paths may be given as text, sequences as lists.

    Wide: it has a field for each option that engines share.
    """

    engine: EngineName
    model: str = ""
    """Model name on the hub, a folder, or a GGUF file (llama_cpp)."""
    name: str | None = None
    """Name of this server in `status` and `stop`; None derives one from the model."""
    extra_flags: tuple[str, ...] = ()
    """Flags passed to the engine unchanged; for the engine `command`, the whole command line."""

    served_name: Annotated[str | None, Flag("Name that clients ask for. Default: the model as given.")] = None
    host: Annotated[str, Flag("Address to listen on. Default: 127.0.0.1.")] = "127.0.0.1"
    port: Annotated[int, Flag("Port; 0 (the default) picks a free one.", minimum=0, maximum=65535)] = 0
    """The port of replica 0; replica i listens on port + i."""
    api_key_env: Annotated[
        str | None, Flag("Variable with the key that clients must send.", flag="--server-key-env", metavar="VARIABLE")
    ] = None
    """Name of the environment variable with the key; the key itself reaches no argv and no file."""

    tp: Annotated[int, Flag("Tensor parallel size.", minimum=1)] = 1
    pp: Annotated[int, Flag("Pipeline parallel size.", minimum=1)] = 1
    dp: Annotated[int, Flag("Replicas.", minimum=1)] = 1
    dp_mode: Annotated[
        Literal["client", "engine", "router"],
        Flag("What spreads requests over replicas: this client over N servers (default), the engine, or a router."),
    ] = "client"
    devices: Annotated[
        tuple[str, ...] | None, Flag("Accelerators to use, e.g. 0,1,2,3. Default: all.", metavar="LIST")
    ] = None
    """Devices as the engine's visible-devices variable names them; None asks the system."""
    device: Annotated[Literal["cuda", "npu", "cpu"] | None, Flag("Kind of device. Default: the engine chooses.")] = None
    nodes: Annotated[
        int, Flag("Machines that share one model; each runs this command with its own --node-rank.", minimum=1)
    ] = 1
    node_rank: Annotated[int, Flag("Number of this machine among the nodes, from 0.", minimum=0)] = 0
    head_address: Annotated[str | None, Flag("Address of node 0 that the other nodes can reach.")] = None
    head_port: Annotated[int, Flag("Port on node 0 for the nodes' own traffic.", minimum=1, maximum=65535)] = 29500
    node_address: Annotated[
        str | None, Flag("This node's address, where it has several (HCCL_IF_IP, VLLM_HOST_IP, SGLANG_HOST_IP).")
    ] = None
    interface: Annotated[str | None, Flag("Network interface between nodes, e.g. eth0.", metavar="NAME")] = None
    """The network interface between nodes; it becomes `*_SOCKET_IFNAME` of NCCL, GLOO and HCCL."""

    context: Annotated[
        int | None, Flag("Tokens of one request, prompt and answer.", flag="--max-model-len", minimum=1)
    ] = None
    memory_fraction: Annotated[float | None, Flag("Share of the accelerator's memory to use.", above=0, maximum=1)] = (
        None
    )
    max_sequences: Annotated[int | None, Flag("Requests worked on at once (llama_cpp: slots).", minimum=1)] = None
    max_batched_tokens: Annotated[int | None, Flag("Tokens computed in one step (chunked prefill).", minimum=1)] = None
    attention_backend: Annotated[str | None, Flag("Attention backend, by the engine's own name.")] = None
    dtype: Annotated[str | None, Flag("Number format of the weights.")] = None
    quantization: Annotated[str | None, Flag("Quantisation, by the engine's own name.")] = None
    reasoning_parser: Annotated[str | None, Flag("Parser of the thinking, e.g. deepseek_r1, qwen3.")] = None
    """Name of the parser, with underscores or hyphens (deepseek_r1, deepseek-r1); the engine gets its own spelling."""
    sampling_defaults: Annotated[
        Literal["neutral", "model"],
        Flag(
            "Source of sampling values that a request leaves out: the engine's neutral values (default), or the "
            "model's generation_config.json."
        ),
    ] = "neutral"
    deterministic: Annotated[bool, Flag("The same text for a request regardless of other requests; slower.")] = False
    seed: Annotated[int | None, Flag("The engine's own seed.", flag="--server-seed")] = None
    eager: Annotated[bool, Flag("No CUDA or NPU graphs.")] = False
    prefix_caching: Annotated[bool | None, Flag("Reuse the computation for equal beginnings of prompts.")] = None
    chat_template: Annotated[Path | None, Flag("Chat template in place of the model's own.")] = None
    trust_remote_code: Annotated[bool, Flag("Let the engine run code that comes with the model.")] = False
    threads: Annotated[int | None, Flag("CPU threads (llama_cpp).", minimum=1)] = None

    environment: Annotated[
        Mapping[str, str], Flag("Variable set for the engine.", flag="--env", metavar="NAME=VALUE")
    ] = field(default_factory=dict)
    """Variables for the engine; no file stores their values."""
    engine_version: Annotated[
        str | None, Flag("Write flags for this version instead of asking the installed engine.")
    ] = None
    python: Annotated[Path | None, Flag("The engine's Python interpreter.")] = None
    uvx: Annotated[str | None, Flag("Let uv install and run the engine, e.g. vllm==0.32.0.", metavar="REQUIREMENT")] = (
        None
    )
    docker: Annotated[str | None, Flag("Run the engine in this image.", metavar="IMAGE")] = None
    router_python: Annotated[
        Path | None, Flag("The router's Python interpreter. Default: this one, or the engine's.")
    ] = None

    health_path: Annotated[str | None, Flag("Page that answers 200 once a `command` server works.")] = None
    start_timeout: Annotated[
        float, Flag("A start fails after this many seconds without progress in the log.", above=0)
    ] = 600.0
    stop_grace: Annotated[float, Flag("Seconds from SIGTERM to SIGKILL when a server is stopped.", minimum=0)] = 20.0
    restarts: Annotated[int, Flag("How often a process that dies is started again.", minimum=0)] = 0
    """Number of times that a process is restarted if it dies after the server was ready."""

    def __post_init__(self) -> None:
        """Bring values to their types; raise SpecError for what is out of bounds or does not go together."""
        for option in OPTIONS.values():
            object.__setattr__(self, option.field, option.checked(getattr(self, option.field)))
        object.__setattr__(self, "extra_flags", tuple(self.extra_flags))
        if self.engine not in ENGINES:
            raise SpecError("engine", f"there is no engine {self.engine!r}; the engines are {', '.join(ENGINES)}")
        if self.name is not None and not _NAME.match(self.name):
            raise SpecError("name", "a server's name is 1 to 80 letters, digits, dots, dashes and underscores")
        if twice := [name for name in dict.fromkeys(self.devices or ()) if (self.devices or ()).count(name) > 1]:
            raise SpecError("devices", f"{', '.join(twice)} is named more than once: name each device once")
        if self.api_key_env is not None and not _VARIABLE.match(self.api_key_env):
            raise SpecError("api_key_env", "give the name of an environment variable that holds the key, not the key")
        for variable, value in self.environment.items():
            if not _VARIABLE.match(variable) or "\0" in value:
                # The message repeats neither name nor value: either may be a key.
                raise SpecError("environment", "expected NAME=VALUE; a name is made of letters, digits and underscores")
        ways = [way for way in ("python", "uvx", "docker") if getattr(self, way) is not None]
        if len(ways) > 1:
            raise SpecError(ways[1], "python, uvx and docker are three ways to find the engine: give one")
        if self.node_rank >= self.nodes:
            last = self.nodes - 1
            raise SpecError(
                "node_rank",
                f"{self.node_rank} is too large: nodes count from 0, so with --nodes {self.nodes} at most {last}",
            )
        if self.nodes > 1 and self.head_address is None:
            raise SpecError("head_address", "several nodes need the address of node 0 that the other nodes can reach")
        if self.nodes == 1 and self.head_address is not None:
            raise SpecError(
                "head_address",
                "a single node has no other nodes: give the number of nodes (--nodes) or leave this address out",
            )


@dataclass(frozen=True)
class ServerOption:
    """A field of `ServerSpec` that a command line may set."""

    field: str
    flag: str
    form: Flag
    kind: type
    """The Python type of the value: int, float, bool, str, Path, tuple (of texts) or dict (of texts)."""
    default: Any
    choices: tuple[str, ...]
    """The allowed texts; empty: any text."""
    optional: bool
    """Whether None is allowed."""

    def checked(self, value: Any) -> Any:
        """Return the value as the option's kind.

        Raises SpecError that names what was found and what was expected.
        """
        if value is None and self.optional:
            return None
        if self.choices:
            fits = value in self.choices
        elif self.kind in (int, float):
            # Comparisons that NaN fails (`value >= minimum`, not `not value < minimum`), so that NaN is out of bounds.
            fits = (
                isinstance(value, int | self.kind)
                # A bool is an int to `isinstance`: true for a number of devices would count as 1.
                and not isinstance(value, bool)
                and (self.form.minimum is None or value >= self.form.minimum)
                and (self.form.maximum is None or value <= self.form.maximum)
                and (self.form.above is None or value > self.form.above)
            )
        elif self.kind is tuple:
            # A bare text is no list of texts: it would be taken apart into letters.
            fits = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
        elif self.kind is dict:
            fits = isinstance(value, Mapping) and all(isinstance(word, str) for pair in value.items() for word in pair)
        else:
            fits = isinstance(value, str | Path if self.kind is Path else self.kind)
        if not fits:
            shown = "the value" if self.kind is dict else repr(value)  # a variable's value may be a secret
            raise SpecError(self.field, f"{shown} does not fit; expected {self.expected}")
        return self.kind(value)

    @property
    def expected(self) -> str:
        """What fits, in words."""
        if self.choices:
            return " or ".join(self.choices)
        bounds = (("more than", self.form.above), ("at least", self.form.minimum), ("at most", self.form.maximum))
        return " ".join([_WORDS[self.kind], *(f"{word} {bound}" for word, bound in bounds if bound is not None)])


_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    Path: "a path",
    tuple: "a list of texts",
    dict: "names with their values, all of them texts",
}


def _options() -> dict[str, ServerOption]:
    """The options of a server, from the annotated fields of `ServerSpec`."""
    hints = get_type_hints(ServerSpec, include_extras=True)
    options = {}
    for declared in fields(ServerSpec):
        if get_origin(hints[declared.name]) is not Annotated:
            continue
        # `Annotated[int | None, Flag(…)]`: the type before the flag; of `X | None` X is the kind of the value.
        hint, form = get_args(hints[declared.name])
        alternatives = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        value_type = alternatives[0]
        origin = get_origin(value_type)
        choices = get_args(value_type) if origin is Literal else ()
        kind = str if choices else {tuple: tuple, Mapping: dict}.get(origin, value_type)
        flag = form.flag or "--" + declared.name.replace("_", "-")
        options[declared.name] = ServerOption(
            declared.name, flag, form, kind, declared.default, choices, NoneType in alternatives
        )
    return options


OPTIONS = _options()
"""Field → its option, in the order in which a command's help lists them."""
