"""What to serve and how, in a common vocabulary for all engines; each engine's file translates it into its own
flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from harness.core.errors import UsageError
from harness.core.option_kinds import COMMAS, Kind
from harness.core.options import Option, Options, options_of

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
"""The engines, in display order."""

# `\Z`, because `$` also accepts a newline after the name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _variables(value: Any) -> Any:
    """The mapping `value`. Raises `ValueError` for anything but variables with texts."""
    # The message contains neither name nor value, because either may be a key.
    if not isinstance(value, Mapping) or not all(
        isinstance(text, str) and _VARIABLE.match(name) and "\0" not in text for name, text in value.items()
    ):
        raise ValueError("expected NAME=VALUE; a name consists of letters, digits and underscores")
    return dict(value)


VARIABLES = Kind("Mapping[str, str]", _variables, dict[str, str | int | float | bool])
"""Environment variables with their values."""


class ServerSpec(Options):
    """One server: an engine, a model, and how the model is spread and limited. None = the engine's own default.

    Raises `UsageError` for the first invalid field; `engines.table.engine_of` rejects fields that the engine needs but
    the spec leaves empty, or that the engine does not support.

    Wide: it has a field for each option that engines share.
    """

    engine: Annotated[EngineName, Option(argument=True)]
    """Engine to start."""
    model: Annotated[str, Option(argument=True)] = ""
    """Model name on the Hub, a folder, or a GGUF file (llama_cpp)."""
    name: Annotated[str | None, Option(argument=True)] = None
    """Name for `serve status` and `serve stop`. Default: derived from the model."""
    extra_flags: Annotated[tuple[str, ...], Option(argument=True)] = ()
    """Flags passed to the engine unchanged; for `command`, the whole command line."""

    served_name: Annotated[str | None, Option()] = None
    """Model name that clients use. Default: the model as given."""
    host: Annotated[str, Option()] = "127.0.0.1"
    """Address to listen on. Default: 127.0.0.1."""
    port: Annotated[int, Option(least=0, most=65535)] = 0
    """Port to listen on. The default, 0, picks a free port.

    The port of replica 0; replica i listens on port + i.
    """
    api_key_env: Annotated[str | None, Option(flag="server-key-env", metavar="VARIABLE")] = None
    """Environment variable that holds the API key that clients must send.

    Name of the environment variable with the key; the key itself reaches no argv and no file.
    """

    tp: Annotated[int, Option(least=1)] = 1
    """Tensor parallel size."""
    pp: Annotated[int, Option(least=1)] = 1
    """Pipeline parallel size."""
    dp: Annotated[int, Option(least=1)] = 1
    """Number of replicas."""
    dp_mode: Annotated[Literal["client", "engine", "router"], Option()] = "client"
    """How requests are distributed across replicas: by this client (over N servers), by the engine, or by a router."""
    devices: Annotated[tuple[str, ...] | None, Option(metavar="LIST", kind=COMMAS)] = None
    """Indices of the accelerators to use, such as 0,1,2,3. Default: all.

    Devices as the engine's visible-devices variable names them; None asks the system.
    """
    device: Annotated[Literal["cuda", "npu", "cpu"] | None, Option()] = None
    """Type of device. Default: chosen by the engine."""
    nodes: Annotated[int, Option(least=1)] = 1
    """Number of machines that serve one model together. Run the command on each machine, with its own --node-rank."""
    node_rank: Annotated[int, Option(least=0)] = 0
    """This node's rank, starting at 0."""
    head_address: Annotated[str | None, Option()] = None
    """Address of node 0, reachable from the other nodes."""
    head_port: Annotated[int, Option(least=1, most=65535)] = 29500
    """Port on node 0 for traffic between nodes."""
    node_address: Annotated[str | None, Option()] = None
    """This node's address, if it has more than one (sets HCCL_IF_IP, VLLM_HOST_IP, SGLANG_HOST_IP)."""
    interface: Annotated[str | None, Option(metavar="NAME")] = None
    """Network interface between nodes, such as eth0.

    The network interface between nodes; it becomes `*_SOCKET_IFNAME` of NCCL, GLOO and HCCL.
    """

    context: Annotated[int | None, Option(flag="max-model-len", least=1)] = None
    """Maximum number of tokens per request, including prompt and completion."""
    memory_fraction: Annotated[float | None, Option(above=0, most=1)] = None
    """Fraction of the accelerator's memory to use."""
    max_sequences: Annotated[int | None, Option(least=1)] = None
    """Maximum number of requests processed at once (for llama_cpp: slots)."""
    max_batched_tokens: Annotated[int | None, Option(least=1)] = None
    """Maximum number of tokens per step (chunked prefill)."""
    images_per_prompt: Annotated[int | None, Option(least=1)] = None
    """Maximum number of images per prompt (vLLM). Default: the largest number of images in any of the run's questions.
    """
    attention_backend: Annotated[str | None, Option()] = None
    """Attention backend, as named by the engine."""
    dtype: Annotated[str | None, Option()] = None
    """Data type of the weights."""
    quantization: Annotated[str | None, Option()] = None
    """Quantization method, as named by the engine."""
    reasoning_parser: Annotated[str | None, Option()] = None
    """Parser for reasoning output, such as deepseek_r1 or qwen3.

    Name of the parser, with underscores or hyphens (deepseek_r1, deepseek-r1); the engine gets its own spelling.
    """
    sampling_defaults: Annotated[Literal["neutral", "model"], Option()] = "neutral"
    """Sampling defaults: the engine's neutral values, or the model's generation_config.json."""
    deterministic: Annotated[bool, Option()] = False
    """Make replies independent of other requests in the batch. Slower."""
    seed: Annotated[int | None, Option(flag="server-seed")] = None
    """Engine seed."""
    eager: Annotated[bool, Option()] = False
    """Disable CUDA or NPU graphs."""
    prefix_caching: Annotated[bool | None, Option()] = None
    """Reuse the KV cache for prompts with the same prefix."""
    chat_template: Annotated[Path | None, Option()] = None
    """Chat template to use instead of the model's."""
    trust_remote_code: Annotated[bool, Option()] = False
    """Allow the engine to run code from the model's repository."""
    threads: Annotated[int | None, Option(least=1)] = None
    """CPU threads (llama_cpp)."""

    environment: Annotated[dict[str, str], Option(flag="env", metavar="NAME=VALUE", kind=VARIABLES)] = {}  # noqa: RUF012 - frozen
    """Environment variable to set for the engine. Repeatable.

    Variables for the engine; no file stores their values.
    """
    engine_version: Annotated[str | None, Option()] = None
    """Use this engine version's flags instead of checking which version is installed."""
    python: Annotated[Path | None, Option()] = None
    """Python interpreter in which the engine is installed."""
    docker: Annotated[str | None, Option(metavar="IMAGE")] = None
    """Run the engine in this Docker image."""
    router_python: Annotated[Path | None, Option()] = None
    """Python interpreter in which the router is installed. Default: the current interpreter, or the engine's."""

    health_path: Annotated[str | None, Option()] = None
    """URL path that returns status 200 once a `command` server is ready."""
    start_timeout: Annotated[float, Option(above=0)] = 600.0
    """Maximum time without new log output during startup, in seconds. Default: 600."""
    stop_grace: Annotated[float, Option(least=0)] = 20.0
    """Seconds to wait between SIGTERM and SIGKILL when stopping. Default: 20."""
    restarts: Annotated[int, Option(least=0)] = 0
    """Number of times to restart a process that exits unexpectedly. Default: 0.

    Number of times that a process is restarted if it dies after the server was ready.
    """

    @property
    def routed(self) -> bool:
        """Whether a router runs in front of the replicas, even in front of a single one; with several nodes, on node
        0."""
        return self.dp_mode == "router" and self.node_rank == 0

    def _check(self) -> None:
        """Raise `UsageError` for incompatible fields."""
        if self.name is not None and not _NAME.match(self.name):
            raise UsageError("expected a name of 1 to 80 letters, digits, dots, dashes and underscores", field="name")
        devices = self.devices or ()
        if twice := [name for name in dict.fromkeys(devices) if devices.count(name) > 1]:
            raise UsageError(
                f"{', '.join(twice)} is listed more than once: list each device only once", field="devices"
            )
        if self.api_key_env is not None and not _VARIABLE.match(self.api_key_env):
            raise UsageError(
                "expected the name of an environment variable that contains the key, not the key", field="api_key_env"
            )
        if self.chat_template is not None and not self.chat_template.expanduser().is_file():
            raise UsageError("there is no such file", field="chat_template", value=self.chat_template)
        if self.python is not None and self.docker is not None:
            raise UsageError("`python` and `docker` cannot be combined: use one of them", field="docker")
        if self.node_rank >= self.nodes:
            raise UsageError(
                f"it is too large: nodes are numbered from 0, so the maximum is {self.nodes - 1} "
                f"with nodes={self.nodes}",
                field="node_rank",
                value=self.node_rank,
            )
        if self.nodes > 1 and self.head_address is None:
            raise UsageError(
                "with multiple nodes, set this to an address of node 0 that the other nodes can reach",
                field="head_address",
            )
        if self.nodes == 1 and self.head_address is not None:
            raise UsageError(
                "this address applies only to multiple nodes: set the number of nodes (`nodes`) or omit it",
                field="head_address",
            )


OWN_FLAGS: Mapping[str, str] = {
    "model": "model model-path",
    "served_name": "served-model-name served-name",
    "host": "host",
    "port": "port",
    "api_key_env": "api-key",
    "tp": "tensor-parallel-size tp-size tp",
    "pp": "pipeline-parallel-size pp-size pp",
    "dp": "data-parallel-size dp-size dp",
    "nodes": "nnodes n",
    "node_rank": "node-rank r",
    "head_address": "master-addr dist-init-addr nccl-init-addr data-parallel-address",
    "": "uds ssl-keyfile ssl-certfile root-path headless",
}
"""Field → the engines' flags, without dashes, that determine how a start is planned, so that they are not allowed after
` -- `. Under "": flags with which a server cannot be reached at `http://HOST:PORT/v1`.
"""


def flag_names(words: Iterable[str]) -> dict[str, str]:
    """The flags among an engine's words, as typed → their names: `--hf_overrides.x=1` → `hf-overrides`."""
    flags = [word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)]
    return {flag: flag.lstrip("-").partition(".")[0].replace("_", "-") for flag in flags}


def refusal_of(name: str) -> str:
    """Why an engine flag is not allowed after ` -- `; empty if it is allowed. name: the flag without dashes."""
    for field, names in OWN_FLAGS.items():
        if name in names.split():
            return (
                f"the harness sets this flag: use `{field}`"
                if field
                else "servers must be reachable over HTTP on their port"
            )
    return ""


OPTIONS = {name: declared for name, declared in options_of(ServerSpec).items() if not declared.argument}
"""Field → its option, for the fields that have a flag, in the order in which a command's help lists them."""


def flag_of(field: str) -> str:
    """The flag of `harness serve` that sets a field."""
    return f"--{OPTIONS[field].flag or field.replace('_', '-')}"
