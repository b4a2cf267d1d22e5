"""SGLang on CUDA, ROCm, CPU or (`--device npu`) Ascend NPUs: `python -m sglang.launch_server`.

SGLang takes a key on its command line only, where every user of the machine could read it: it is then started
through a line of Python that adds the key from an environment variable.
"""

from __future__ import annotations

from dataclasses import replace

from server_launchers.deployment import Command
from server_launchers.engines.launcher import NODES, PACKAGED, Launcher
from server_launchers.errors import LaunchError
from server_launchers.machine import accelerators, environments
from server_launchers.machine.environments import Program
from server_launchers.machine.known_flags import Flags, flag_pairs
from server_launchers.spec import ServerSpec

TESTED_VERSION = "0.5.23"
INSTALL = environments.install_hint(f"sglang=={TESTED_VERSION}", f"--docker lmsysorg/sglang:v{TESTED_VERSION}")
KEY_VARIABLE = "HARNESS_SERVER_KEY"
TAKES = (
    PACKAGED
    | NODES
    | {"served_name", "api_key_env", "tp", "pp", "docker", "device", "context", "memory_fraction", "max_sequences"}
    | {"max_batched_tokens", "attention_backend", "dtype", "quantization", "reasoning_parser", "sampling_defaults"}
    | {"deterministic", "seed", "eager", "prefix_caching", "chat_template", "trust_remote_code"}
)
PROGRAM = Program(None, ("-m", "sglang.launch_server"), "sglang", INSTALL)


UNDERSCORED = frozenset({
    "kimi_k2", "kimi_k3", "k2_horizon", "poolside_v1", "nemotron_3", "granite_thinking_parser", "iquest_q1",
    "cohere_command4", "response_template",
})  # fmt: skip
"""Parsers of thinking that SGLang spells so, as its help of `TESTED_VERSION` has them; the others have hyphens."""


def _parser(name: str) -> str:
    """The parser's name as SGLang spells it, from either spelling."""
    under = name.replace("-", "_")
    return under if under in UNDERSCORED else name.replace("_", "-")


def keyed(module: str) -> tuple[str, ...]:
    """Interpreter arguments that run `module` with `--api-key` taken from `KEY_VARIABLE`."""
    return (
        "-c",
        f"import os, runpy, sys; sys.argv[1:1] = ['--api-key', os.environ.pop('{KEY_VARIABLE}')]; "
        f"runpy.run_module('{module}', run_name='__main__', alter_sys=True)",
    )


def command(spec: ServerSpec, flags: Flags, port: int, devices: str = "") -> Command:
    """The command for one replica (or one node) on `port`; raises LaunchError for what this version cannot do."""
    kind = accelerators.kind_of(spec)
    npu = kind == "ascend"
    model = environments.local_model(spec)
    environment = dict(spec.environment)
    words = flag_pairs(
        (
            ("--model-path", model),
            ("--served-model-name", spec.served_name or (spec.model if model != spec.model else None)),
            ("--host", spec.host),
            ("--port", port),
            ("--tp-size", spec.tp if spec.tp > 1 else None),
            ("--pp-size", spec.pp if spec.pp > 1 else None),
            ("--dp-size", spec.dp if spec.dp > 1 and spec.dp_mode == "engine" else None),
            ("--device", spec.device),
            ("--context-length", spec.context),
            ("--mem-fraction-static", spec.memory_fraction),
            ("--max-running-requests", spec.max_sequences),
            ("--chunked-prefill-size", spec.max_batched_tokens),
            ("--attention-backend", spec.attention_backend or ("ascend" if npu else None)),
            ("--dtype", spec.dtype),
            ("--quantization", spec.quantization),
            ("--reasoning-parser", spec.reasoning_parser and _parser(spec.reasoning_parser)),
            ("--random-seed", spec.seed),
            ("--disable-radix-cache", spec.prefix_caching is False),
            ("--chat-template", spec.chat_template and spec.chat_template.expanduser().absolute()),
            ("--trust-remote-code", spec.trust_remote_code),
            # The client learns cache hits and queue lengths from these.
            ("--enable-metrics", True),
            ("--enable-cache-report", True),
        )
    )
    if spec.eager:
        if "--cuda-graph-backend-decode" in flags:
            words += ["--cuda-graph-backend-decode", "disabled", "--cuda-graph-backend-prefill", "disabled"]
        else:
            words += ["--disable-cuda-graph"]
    given = any(word.partition("=")[0] == "--sampling-defaults" for word in spec.extra_flags)
    if not given and spec.sampling_defaults == "neutral" and "--sampling-defaults" in flags:
        words += ["--sampling-defaults", "openai"]
    if spec.deterministic:
        if "--enable-deterministic-inference" not in flags:
            raise LaunchError(f"SGLang {flags.version} has no deterministic inference: use 0.5.6 or a newer one")
        words += ["--enable-deterministic-inference"]
    if spec.nodes > 1:
        words += ["--nnodes", str(spec.nodes), "--node-rank", str(spec.node_rank)]
        words += ["--dist-init-addr", f"{spec.head_address}:{spec.head_port}"]
    flags.check([*words, *spec.extra_flags])
    if spec.interface is not None:
        environment |= {f"{part}_SOCKET_IFNAME": spec.interface for part in (("HCCL" if npu else "NCCL"), "GLOO")}
    if spec.node_address is not None:
        environment |= {"SGLANG_HOST_IP": spec.node_address} | ({"HCCL_IF_IP": spec.node_address} if npu else {})
    words += spec.extra_flags
    secrets = {KEY_VARIABLE: spec.api_key_env} if spec.api_key_env else {}
    module = keyed("sglang.launch_server") if spec.api_key_env else PROGRAM.module
    chosen = replace(PROGRAM, module=module)
    if spec.docker is not None:
        inside = Command(tuple(words), environment, secrets)
        entry = ("python3", *module)
        return environments.contained(spec, spec.docker, entry, inside, port=port, kind=kind, devices=devices)
    return Command((*environments.prefix(spec, chosen), *words), environment, secrets)


LAUNCHER = Launcher.of_package(lambda _spec: PROGRAM, command, TAKES, spreads=True)
BEHIND_ROUTER = replace(LAUNCHER, takes=TAKES - {"dp_mode"}, spreads=False)
