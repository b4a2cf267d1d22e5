"""vLLM on CUDA, ROCm or CPU: `vllm serve`.

vLLM 0.7 is started as a module, as its users do; newer ones by their command. A key goes in by the variable that
vLLM reads for it, so that it stands in no argv.
"""

from __future__ import annotations

from dataclasses import replace

from server_launchers.deployment import Command
from server_launchers.engines.launcher import NODES, PACKAGED, Launcher
from server_launchers.errors import LaunchError
from server_launchers.machine import accelerators, environments
from server_launchers.machine.environments import Program
from server_launchers.machine.known_flags import Flags, flag_pairs, version_key
from server_launchers.spec import ServerSpec

TESTED_VERSION = "0.33.0"
INSTALL = environments.install_hint(
    f"vllm=={TESTED_VERSION}", f"--uvx vllm=={TESTED_VERSION}", f"--docker vllm/vllm-openai:v{TESTED_VERSION}"
)
PROGRAM = Program("vllm", ("-m", "vllm.entrypoints.openai.api_server"), "vllm", INSTALL, subcommand=("serve",))
MODULE_PROGRAM = replace(PROGRAM, script=None, subcommand=())
FIRST_WITH_SERVE = (0, 8)
BATCH_INVARIANT_SINCE = (0, 11, 1)
"""Before, the variable has another name or none, and is ignored."""
TAKES = (
    PACKAGED
    | NODES
    | {"served_name", "api_key_env", "tp", "pp", "docker", "context", "memory_fraction", "max_sequences"}
    | {"max_batched_tokens", "attention_backend", "dtype", "quantization", "reasoning_parser", "sampling_defaults"}
    | {"deterministic", "seed", "eager", "prefix_caching", "chat_template", "trust_remote_code"}
)


def program(spec: ServerSpec) -> Program:
    """The command of this version."""
    old = spec.engine_version is not None and version_key(spec.engine_version) < FIRST_WITH_SERVE
    return MODULE_PROGRAM if old else PROGRAM


def command(spec: ServerSpec, flags: Flags, port: int, devices: str = "") -> Command:
    """The command for one replica (or one node) on `port`; raises LaunchError for what this version cannot do."""
    chosen = program(spec)
    kind = accelerators.kind_of(spec)
    if spec.engine == "vllm" and kind == "ascend":
        raise LaunchError("vLLM on NPUs is the engine vllm_ascend")
    model = environments.local_model(spec)
    environment = dict(spec.environment)
    words = [*chosen.subcommand, model] if chosen.subcommand else ["--model", model]
    words += flag_pairs(
        (
            ("--served-model-name", spec.served_name or (spec.model if model != spec.model else None)),
            ("--host", spec.host),
            ("--port", port),
            ("--tensor-parallel-size", spec.tp if spec.tp > 1 else None),
            ("--pipeline-parallel-size", spec.pp if spec.pp > 1 else None),
            ("--max-model-len", spec.context),
            ("--gpu-memory-utilization", spec.memory_fraction),
            ("--max-num-seqs", spec.max_sequences),
            ("--max-num-batched-tokens", spec.max_batched_tokens),
            ("--dtype", spec.dtype),
            ("--quantization", spec.quantization),
            ("--seed", spec.seed),
            ("--enforce-eager", spec.eager),
            ("--chat-template", spec.chat_template and spec.chat_template.expanduser().absolute()),
            ("--trust-remote-code", spec.trust_remote_code),
        )
    )
    if spec.prefix_caching is not None:
        words += _switch(flags, "--enable-prefix-caching", spec.prefix_caching)
    if spec.attention_backend is not None:
        if "--attention-backend" in flags:
            words += ["--attention-backend", spec.attention_backend]
        else:
            environment["VLLM_ATTENTION_BACKEND"] = spec.attention_backend
    if spec.reasoning_parser is not None:
        # Up to 0.8 the parser does nothing without this switch; later versions dropped the switch.
        words += ["--enable-reasoning"] if "--enable-reasoning" in flags else []
        words += ["--reasoning-parser", spec.reasoning_parser.replace("-", "_")]
    words += _sampling_defaults(spec, flags)
    if spec.deterministic:
        if spec.device == "cpu":
            # vLLM 0.32 starts, says that it is healthy, and ends over the first request.
            raise LaunchError("vLLM's deterministic kernels need a GPU: leave out --deterministic on a CPU")
        if version_key(flags.version) < BATCH_INVARIANT_SINCE:
            raise LaunchError(
                f"vLLM {flags.version} has no batch-invariant kernels, and would ignore the switch: use 0.11.1 or a "
                "newer one, or leave out --deterministic"
            )
        environment["VLLM_BATCH_INVARIANT"] = "1"
    words += _parallel(spec, flags)
    flags.check([*words, *spec.extra_flags])
    if spec.interface is not None and kind == "cuda":
        environment |= {"NCCL_SOCKET_IFNAME": spec.interface, "GLOO_SOCKET_IFNAME": spec.interface}
    if spec.node_address is not None:
        environment["VLLM_HOST_IP"] = spec.node_address
    secrets = {"VLLM_API_KEY": spec.api_key_env} if spec.api_key_env else {}
    words += spec.extra_flags
    if spec.docker is not None:
        entry = ("vllm",) if chosen.script else ("python3", *chosen.module)
        inside = Command(tuple(words), environment, secrets)
        return environments.contained(spec, spec.docker, entry, inside, port=port, kind=kind, devices=devices)
    return Command((*environments.prefix(spec, chosen), *words), environment, secrets)


def _sampling_defaults(spec: ServerSpec, flags: Flags) -> list[str]:
    """vLLM's own values in place of the model's `generation_config.json`, unless the user says otherwise."""
    given = any(word.partition("=")[0].replace("_", "-") == "--generation-config" for word in spec.extra_flags)
    if given or spec.sampling_defaults == "model" or "--generation-config" not in flags:
        return []
    return ["--generation-config", "vllm"]


def _parallel(spec: ServerSpec, flags: Flags) -> list[str]:
    """Data parallelism inside the engine, and several nodes."""
    words: list[str] = []
    engine_dp = spec.dp > 1 and spec.dp_mode == "engine"
    if engine_dp:
        if "--data-parallel-size" not in flags:
            raise LaunchError(f"vLLM {flags.version} has no data parallelism of its own: leave out --dp-mode engine")
        words += ["--data-parallel-size", str(spec.dp)]
    if spec.nodes == 1:
        return words
    if engine_dp:
        if spec.dp % spec.nodes:
            raise LaunchError(f"--dp {spec.dp} cannot be spread evenly over --nodes {spec.nodes}")
        local = spec.dp // spec.nodes
        words += ["--data-parallel-size-local", str(local)]
        words += ["--data-parallel-address", str(spec.head_address), "--data-parallel-rpc-port", str(spec.head_port)]
        words += ["--data-parallel-start-rank", str(spec.node_rank * local)] if spec.node_rank else []
    else:
        if "--nnodes" not in flags:
            raise LaunchError(
                f"vLLM {flags.version} spreads one model over nodes only through Ray: start a Ray cluster, give "
                "`-- --distributed-executor-backend ray` and leave out --nodes; from vLLM 0.15 on --nodes works"
            )
        if spec.tp * spec.pp % spec.nodes:
            raise LaunchError(f"tp {spec.tp} x pp {spec.pp} devices cannot be spread evenly over --nodes {spec.nodes}")
        words += ["--nnodes", str(spec.nodes), "--node-rank", str(spec.node_rank)]
        words += ["--master-addr", str(spec.head_address), "--master-port", str(spec.head_port)]
    return [*words, "--headless"] if spec.node_rank else words


def _switch(flags: Flags, flag: str, on: bool) -> list[str]:
    if on:
        return [flag]
    negative = f"--no-{flag[2:]}"
    return [negative] if negative in flags else []


LAUNCHER = Launcher.of_package(program, command, TAKES | {"device"}, spreads=True)
