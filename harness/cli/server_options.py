"""The flags that describe a server, shared by `harness serve` and `harness run --serve`, and what they become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.core.errors import UsageError, near_names

if TYPE_CHECKING:
    from server_launchers.spec import ServerSpec

ENGINES = {
    "llama_cpp": "The embedded CPU server, for any GGUF file or a name of `harness models`.",
    "vllm": "vLLM.",
    "vllm_ascend": "vLLM on Ascend NPUs.",
    "sglang": "SGLang.",
    "sglang_router": "SGLang replicas behind its router.",
    "transformers": "The server of transformers.",
    "external": "A server that runs elsewhere, by its URL: checked, never started or stopped.",
    "command": "Any program that ends up speaking the protocol: -- ./my_server --port {port}",
}

F = TypeVar("F", bound=Callable[..., Any])


def _option(flag: str, field: str | None = None, **attributes: Any) -> tuple[str, str, dict[str, Any]]:
    """A flag that sets `field` of the spec. Its parameter is called `server_<field>`: `run` has a `seed` of its own."""
    name = field or flag.split("/")[0].removeprefix("--").replace("-", "_")
    return flag, f"server_{name}", attributes


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_OPTIONS = (
    _option("--served-name", help="Name that clients ask for. Default: the model as given."),
    _option("--host", help="Address to listen on. Default: 127.0.0.1."),
    _option("--port", type=click.IntRange(0, 65535), help="Port; 0 (the default) picks a free one."),
    _option(
        "--server-key-env", "api_key_env", metavar="VARIABLE", help="Variable with the key that clients must send."
    ),
    _option("--tp", type=click.IntRange(1), help="Tensor parallel size."),
    _option("--pp", type=click.IntRange(1), help="Pipeline parallel size."),
    _option("--dp", type=click.IntRange(1), help="Replicas."),
    _option(
        "--dp-mode",
        type=click.Choice(["client", "engine", "router"]),
        help="Who spreads requests over replicas: this client over N servers (default), the engine, or a router.",
    ),
    _option("--devices", metavar="LIST", help="Accelerators to use, e.g. 0,1,2,3. Default: all."),
    _option("--device", type=click.Choice(["cuda", "npu", "cpu"]), help="Kind of device. Default: the engine's own."),
    _option("--nodes", type=click.IntRange(1), help="Machines that share one model."),
    _option("--node-rank", type=click.IntRange(0), help="Which of them this one is, from 0."),
    _option("--head-address", help="Address of node 0 that the others can reach."),
    _option("--head-port", type=click.IntRange(1, 65535), help="Port on node 0 for the nodes' own traffic."),
    _option("--node-address", help="This node's address, where it has several (HCCL_IF_IP, VLLM_HOST_IP)."),
    _option("--interface", metavar="NAME", help="Network interface that nodes speak over, e.g. eth0."),
    _option("--max-model-len", "context", type=click.IntRange(1), help="Tokens of one request, prompt and answer."),
    _option("--memory-fraction", type=float, help="Share of the accelerator's memory to use."),
    _option("--max-sequences", type=click.IntRange(1), help="Requests worked on at once (llama_cpp: slots)."),
    _option("--max-batched-tokens", type=click.IntRange(1), help="Tokens of one step (chunked prefill)."),
    _option("--attention-backend", help="Attention backend, by the engine's own name."),
    _option("--dtype", help="Number format of the weights."),
    _option("--quantization", help="Quantisation, by the engine's own name."),
    _option("--reasoning-parser", help="Parser of the thinking, e.g. deepseek_r1, qwen3."),
    _option("--server-seed", "seed", type=int, help="The engine's own seed."),
    _option("--eager", is_flag=True, default=None, help="No CUDA or NPU graphs."),
    _option("--prefix-caching/--no-prefix-caching", default=None, help="Reuse of equal prompt beginnings."),
    _option("--chat-template", type=_FILE, help="Chat template in place of the model's own."),
    _option("--trust-remote-code", is_flag=True, default=None, help="Let the engine run code of the model's."),
    _option("--threads", type=click.IntRange(1), help="CPU threads (llama_cpp)."),
    _option("--env", "environment", multiple=True, metavar="NAME=VALUE", help="Variable set for the engine."),
    _option("--engine-version", help="Write flags for this version instead of asking the installed engine."),
    _option("--python", type=_FILE, help="The engine's Python interpreter."),
    _option("--uvx", metavar="REQUIREMENT", help="Let uv install and run the engine, e.g. vllm==0.32.0."),
    _option("--docker", metavar="IMAGE", help="Run the engine in this image."),
    _option("--router-python", type=_FILE, help="The router's Python interpreter. Default: this one, or the engine's."),
    _option("--health-path", help="Page that answers 200 once a `command` or `external` server works."),
    _option("--start-timeout", type=float, help="Seconds without progress in the log until a start has failed."),
    _option("--stop-grace", type=float, help="Seconds between TERM and KILL."),
    _option("--restarts", type=click.IntRange(0), help="How often a process that dies is started again."),
)


def server_options(*, hidden: bool = False) -> Callable[[F], F]:
    """Give a command the flags of a server; hidden ones work but are left out of its help."""

    def decorate(function: F) -> F:
        for flag, name, attributes in reversed(_OPTIONS):
            function = click.option(flag, name, hidden=hidden, **attributes)(function)
        return function

    return decorate


def refuse_server_flags(flags: dict[str, Any]) -> None:
    """Raises `UsageError` naming the first flag that describes a server, where none is to be started."""
    given = [flag.split("/")[0] for flag, name, _ in _OPTIONS if flags.get(name) not in (None, ())]
    if flags.get("engine_flags"):
        given.append("--engine-flag")
    if given:
        raise UsageError(f"{given[0]} describes a server to start: it goes with --serve ENGINE")


def spec_of(engine: str, model: str, flags: dict[str, Any], extra: tuple[str, ...], name: str | None) -> ServerSpec:
    """The spec that the flags describe. Raises `UsageError`; fetches the weights of a known small model."""
    from pydantic import ValidationError

    from server_launchers.spec import ServerSpec

    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}; there are {', '.join(ENGINES)}.{near_names(engine, ENGINES)}")
    given = {
        flag.removeprefix("server_"): value
        for flag, value in flags.items()
        if flag.startswith("server_") and value is not None
    }
    given["environment"] = dict(_variable(text) for text in given.get("environment", ()))
    if "devices" in given:
        given["devices"] = tuple(part.strip() for part in given["devices"].split(",") if part.strip())
    if engine == "llama_cpp":
        model, given["served_name"] = _weights(model, given.get("served_name"))
    try:
        return ServerSpec(engine=engine, model=model, name=name, extra_flags=extra, **given)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{f'--{place}: ' if place else ''}{message}".replace("_", "-")) from error


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--env {name!r}: expected NAME=VALUE")
    return name, value


def _weights(model: str, served_name: str | None) -> tuple[str, str | None]:
    """(file, served name): a known model's name becomes its file, and stays the name that clients use."""
    from harness.cli import terminal
    from server_launchers.embedded import weights

    if model not in weights.KNOWN:
        return model, served_name
    with terminal.byte_progress(f"fetching {model}") as progress:
        return str(weights.fetch(model, progress)), served_name or model
