"""What to serve and how, in one vocabulary for all engines; each engine's file translates it into its own flags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from harness.core.errors import UsageError
from harness.core.options import COMMAS, Kind, Option, Options, options_of

EngineName = Literal[
    "llama_cpp",
    "vllm",
    "vllm_ascend",
    "sglang",
    "transformers",
    "command",
]
"""Every engine; each has its file in `engines/`."""

ENGINES: tuple[EngineName, ...] = get_args(EngineName)
"""The engines, in the order that people are shown."""

# `\Z`, because `$` also accepts a line end behind the name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _variables(value: Any) -> Any:
    """The mapping `value`. Raises `ValueError` for anything but variables with texts."""
    # The message repeats neither name nor value: either may be a key.
    if not isinstance(value, Mapping) or not all(
        isinstance(text, str) and _VARIABLE.match(name) and "\0" not in text for name, text in value.items()
    ):
        raise ValueError("expected NAME=VALUE; a name is made of letters, digits and underscores")
    return dict(value)


VARIABLES = Kind("Mapping[str, str]", _variables, dict[str, str | int | float | bool])
"""Environment variables with their values."""


class ServerSpec(Options):
    """One server: an engine, a model, and how the model is spread and limited. None = the engine's own default.

    Raises `UsageError` for the first wrong field; `engines.table.check` refuses fields that the engine needs and the
    spec leaves empty, or that the engine does not support.

    Wide: it has a field for each option that engines share.
    """

    engine: Annotated[EngineName, Option("How the server is started.", argument=True)]
    model: Annotated[str, Option("Model name on the hub, a folder, or a GGUF file (llama_cpp).", argument=True)] = ""
    name: Annotated[
        str | None, Option("Name in `serve status` and `serve stop`. Default: from the model.", argument=True)
    ] = None
    extra_flags: Annotated[
        tuple[str, ...],
        Option("Passed to the engine unchanged; of a program, the whole command line.", argument=True),
    ] = ()

    served_name: Annotated[str | None, Option("Name that clients ask for. Default: the model as given.")] = None
    host: Annotated[str, Option("Address to listen on. Default: 127.0.0.1.")] = "127.0.0.1"
    port: Annotated[int, Option("Port; 0 (the default) picks a free one.", least=0, most=65535)] = 0
    """The port of replica 0; replica i listens on port + i."""
    api_key_env: Annotated[
        str | None, Option("Variable with the key that clients must send.", flag="server-key-env", metavar="VARIABLE")
    ] = None
    """Name of the environment variable with the key; the key itself reaches no argv and no file."""

    tp: Annotated[int, Option("Tensor parallel size.", least=1)] = 1
    pp: Annotated[int, Option("Pipeline parallel size.", least=1)] = 1
    dp: Annotated[int, Option("Replicas.", least=1)] = 1
    dp_mode: Annotated[
        Literal["client", "engine", "router"],
        Option("What spreads requests over replicas: this client over N servers, the engine, or a router."),
    ] = "client"
    devices: Annotated[
        tuple[str, ...] | None,
        Option("Accelerators to use, e.g. 0,1,2,3. Default: all.", metavar="LIST", kind=COMMAS),
    ] = None
    """Devices as the engine's visible-devices variable names them; None asks the system."""
    device: Annotated[Literal["cuda", "npu", "cpu"] | None, Option("Kind of device. Default: the engine chooses.")] = (
        None
    )
    nodes: Annotated[
        int, Option("Machines that share one model; each runs this command with its own --node-rank.", least=1)
    ] = 1
    node_rank: Annotated[int, Option("Number of this machine among the nodes, from 0.", least=0)] = 0
    head_address: Annotated[str | None, Option("Address of node 0 that the other nodes can reach.")] = None
    head_port: Annotated[int, Option("Port on node 0 for the nodes' own traffic.", least=1, most=65535)] = 29500
    node_address: Annotated[
        str | None, Option("This node's address, where it has several (HCCL_IF_IP, VLLM_HOST_IP, SGLANG_HOST_IP).")
    ] = None
    interface: Annotated[str | None, Option("Network interface between nodes, e.g. eth0.", metavar="NAME")] = None
    """The network interface between nodes; it becomes `*_SOCKET_IFNAME` of NCCL, GLOO and HCCL."""

    context: Annotated[
        int | None, Option("Tokens of one request, prompt and answer.", flag="max-model-len", least=1)
    ] = None
    memory_fraction: Annotated[float | None, Option("Share of the accelerator's memory to use.", above=0, most=1)] = (
        None
    )
    max_sequences: Annotated[int | None, Option("Requests worked on at once (llama_cpp: slots).", least=1)] = None
    max_batched_tokens: Annotated[int | None, Option("Tokens computed in one step (chunked prefill).", least=1)] = None
    attention_backend: Annotated[str | None, Option("Attention backend, by the engine's own name.")] = None
    dtype: Annotated[str | None, Option("Number format of the weights.")] = None
    quantization: Annotated[str | None, Option("Quantisation, by the engine's own name.")] = None
    reasoning_parser: Annotated[str | None, Option("Parser of the thinking, e.g. deepseek_r1, qwen3.")] = None
    """Name of the parser, with underscores or hyphens (deepseek_r1, deepseek-r1); the engine gets its own spelling."""
    sampling_defaults: Annotated[
        Literal["neutral", "model"],
        Option(
            "Source of sampling values that a request leaves out: the engine's neutral values, or the "
            "model's generation_config.json."
        ),
    ] = "neutral"
    deterministic: Annotated[bool, Option("The same text for a request regardless of other requests; slower.")] = False
    seed: Annotated[int | None, Option("The engine's own seed.", flag="server-seed")] = None
    eager: Annotated[bool, Option("No CUDA or NPU graphs.")] = False
    prefix_caching: Annotated[bool | None, Option("Reuse the computation for equal beginnings of prompts.")] = None
    chat_template: Annotated[Path | None, Option("Chat template in place of the model's own.")] = None
    trust_remote_code: Annotated[bool, Option("Let the engine run code that comes with the model.")] = False
    threads: Annotated[int | None, Option("CPU threads (llama_cpp).", least=1)] = None

    environment: Annotated[
        dict[str, str], Option("Variable set for the engine.", flag="env", metavar="NAME=VALUE", kind=VARIABLES)
    ] = {}  # noqa: RUF012 - the class is frozen
    """Variables for the engine; no file stores their values."""
    engine_version: Annotated[
        str | None, Option("Write flags for this version instead of asking the installed engine.")
    ] = None
    python: Annotated[Path | None, Option("The engine's Python interpreter.")] = None
    docker: Annotated[str | None, Option("Run the engine in this image.", metavar="IMAGE")] = None
    router_python: Annotated[
        Path | None, Option("The router's Python interpreter. Default: this one, or the engine's.")
    ] = None

    health_path: Annotated[str | None, Option("Page that answers 200 once a `command` server works.")] = None
    start_timeout: Annotated[
        float, Option("A start fails after this many seconds without progress in the log.", above=0)
    ] = 600.0
    stop_grace: Annotated[float, Option("Seconds from SIGTERM to SIGKILL when a server is stopped.", least=0)] = 20.0
    restarts: Annotated[int, Option("How often a process that dies is started again.", least=0)] = 0
    """Number of times that a process is restarted if it dies after the server was ready."""

    def _check(self) -> None:
        """Raise `UsageError` for fields that do not go together."""
        if self.name is not None and not _NAME.match(self.name):
            raise UsageError("a server's name is 1 to 80 letters, digits, dots, dashes and underscores", field="name")
        devices = self.devices or ()
        if twice := [name for name in dict.fromkeys(devices) if devices.count(name) > 1]:
            raise UsageError(f"{', '.join(twice)} is named more than once: name each device once", field="devices")
        if self.api_key_env is not None and not _VARIABLE.match(self.api_key_env):
            raise UsageError(
                "give the name of an environment variable that holds the key, not the key", field="api_key_env"
            )
        if self.chat_template is not None and not self.chat_template.expanduser().is_file():
            raise UsageError("there is no such file", field="chat_template", value=self.chat_template)
        if self.python is not None and self.docker is not None:
            raise UsageError("python and docker are two ways to find the engine: give one", field="docker")
        if self.node_rank >= self.nodes:
            raise UsageError(
                f"it is too large: nodes count from 0, so with nodes={self.nodes} at most {self.nodes - 1}",
                field="node_rank", value=self.node_rank,
            )  # fmt: skip
        if self.nodes > 1 and self.head_address is None:
            raise UsageError(
                "several nodes need the address of node 0 that the other nodes can reach", field="head_address"
            )
        if self.nodes == 1 and self.head_address is not None:
            raise UsageError(
                "a single node has no other nodes: give the number of nodes (`nodes`) or leave this address "
                "out", field="head_address",
            )  # fmt: skip


OPTIONS = {name: declared for name, declared in options_of(ServerSpec).items() if not declared.argument}
"""Field → its option, of the fields that have a flag, in the order in which a command's help lists them."""


def flag_of(field: str) -> str:
    """The flag of `harness serve` that sets a field."""
    return f"--{OPTIONS[field].flag or field.replace('_', '-')}"


def words_of(fields: Mapping[str, Any]) -> list[str]:
    """The words of `harness serve` that set these fields."""
    words = []
    for name, value in fields.items():
        flag = flag_of(name)
        if isinstance(value, bool):
            words.append(flag if value else f"--no-{flag[2:]}")
        else:
            pairs = [f"{key}={text}" for key, text in value.items()] if isinstance(value, Mapping) else [str(value)]
            words += [word for text in pairs for word in (flag, text)]
    return words
