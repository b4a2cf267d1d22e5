"""vLLM on CUDA, ROCm or CPU: `vllm serve`.

vLLM 0.7 is started as a module, newer versions with their command. The key is passed in the variable that vLLM reads,
so that no argv contains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from server_launchers.command_line import ProcessCommand
from server_launchers.engines.engine import (
    GPU_SERVER,
    MODEL_FLAGS,
    VLLM_ROUTER,
    Engine,
    EngineProfile,
    Neutral,
    TokenPages,
    fact_fields,
)
from server_launchers.errors import LaunchError
from server_launchers.program import Program, at_least, flag_pairs, install_hint, local_model, of_version

if TYPE_CHECKING:
    from server_launchers.spec import ServerSpec

TESTED_VERSION = "0.33.0"
"""The newest version that was tried."""
INSTALL = install_hint(f"vllm=={TESTED_VERSION}", f"vllm/vllm-openai:v{TESTED_VERSION} as `docker`")
PROGRAM = Program("vllm", ("-m", "vllm.entrypoints.openai.api_server"), "vllm", INSTALL, subcommand=("serve",))
"""How vLLM is called."""
MODULE_PROGRAM = replace(PROGRAM, script=None, subcommand=())
"""How to call versions before `SERVES_SINCE`."""
SERVES_SINCE = CACHES_PREFIXES_SINCE = (0, 8)
"""The first version that is started with its command, and that enables prefix caching by default."""
DATA_PARALLEL_SINCE = (0, 8, 3)
"""The first version with --data-parallel-size."""
REASONS_SINCE = (0, 9)
"""The first version in which --reasoning-parser works without another option."""
ATTENTION_OPTION_SINCE = (0, 13)
"""The first version with --attention-backend, which deprecates the variable VLLM_ATTENTION_BACKEND."""
IMAGES_FLAG, JSON_LIMITS_SINCE = "--limit-mm-per-prompt", (0, 9)
"""The option that limits the images in a prompt, and the first version that accepts its value only as JSON."""
NODES_SINCE = (0, 15)
"""The first version with --nnodes."""
BATCH_INVARIANT_SINCE = (0, 11, 1)
"""The first version of vLLM that obeys VLLM_BATCH_INVARIANT; older ones ignore the variable."""
NEUTRAL_SINCE = (0, 8)
"""The first version of vLLM that reads the model's `generation_config.json` by default, and accepts the value `vllm`
for its own values; older versions interpret `vllm` as a folder name.
"""
NEUTRAL_WORDS = ("--generation-config", "vllm")
"""The option that makes vLLM use its own sampling values instead of the model's."""


# ---- how it is started


def _shared_options(spec: ServerSpec, subcommand: tuple[str, ...], port: int) -> list[str]:
    """The model and the options that all versions share."""
    model = local_model(spec)
    pairs = (
        # Without this option a folder is served under its absolute path, which is not the name that clients request.
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
    served = [*subcommand, model] if subcommand else ["--model", model]
    return served + flag_pairs(*pairs)


def _options_by_version(spec: ServerSpec, version: str) -> list[str]:
    """Options that differ between versions or are missing in some."""
    words: list[str] = []
    if spec.images_per_prompt is not None and not _gives(spec, IMAGES_FLAG):
        limit = f'{{"image": {spec.images_per_prompt}}}'
        words += [IMAGES_FLAG, limit if at_least(version, JSON_LIMITS_SINCE) else f"image={spec.images_per_prompt}"]
    if spec.prefix_caching:
        words += ["--enable-prefix-caching"]
    elif spec.prefix_caching is False and at_least(version, CACHES_PREFIXES_SINCE):
        words += ["--no-enable-prefix-caching"]
    if spec.attention_backend is not None and at_least(version, ATTENTION_OPTION_SINCE):
        words += ["--attention-backend", spec.attention_backend]
    if spec.reasoning_parser is not None:
        # In earlier versions the parser does nothing without this switch; later versions dropped the switch.
        words += [] if at_least(version, REASONS_SINCE) else ["--enable-reasoning"]
        words += ["--reasoning-parser", spec.reasoning_parser.replace("-", "_")]
    return words


def _gives(spec: ServerSpec, flag: str) -> bool:
    """Whether the user passes this option to the engine, spelled with hyphens or underscores."""
    return any(word.partition("=")[0].replace("_", "-") == flag for word in spec.extra_flags)


def _sampling_defaults(spec: ServerSpec, version: str) -> list[str]:
    """The option that makes vLLM use its own sampling values, not the model's `generation_config.json`.

    Empty if the user chooses otherwise, or if this version uses these values by default.
    """
    flag = NEUTRAL_WORDS[0]
    # Our neutral values must not override the user's own choice.
    if _gives(spec, flag):
        return []
    if not at_least(version, NEUTRAL_SINCE):
        return [flag, "auto"] if spec.sampling_defaults == "model" else []
    return [] if spec.sampling_defaults == "model" else [*NEUTRAL_WORDS]


def _environment(spec: ServerSpec, version: str, port: int) -> dict[str, str]:
    """The variables of one replica. Raises LaunchError if this version cannot be deterministic as requested."""
    environment = dict(spec.environment)
    if spec.dp > 1 and spec.dp_mode != "engine":
        # vLLM searches for its inter-process ports from this one upward; servers that start at the same time would
        # search from the same port. Each gets 16 ports, below the system's ephemeral ports and separate from the
        # servers' own; two servers share them only if their ports differ by a multiple of 619, a prime.
        begin = 10_000 if port // 10_000 == 2 else 20_000
        environment.setdefault("VLLM_PORT", str(begin + port % 619 * 16))
    if spec.attention_backend is not None and not at_least(version, ATTENTION_OPTION_SINCE):
        # Versions without the option read a variable instead; an unknown option would make them exit.
        environment["VLLM_ATTENTION_BACKEND"] = spec.attention_backend
    if spec.deterministic:
        if spec.device == "cpu":
            # vLLM 0.32 starts, reports itself healthy, and dies at the first request.
            raise LaunchError("vLLM's deterministic kernels require a GPU: omit `deterministic` on a CPU")
        if not at_least(version, BATCH_INVARIANT_SINCE):
            raise LaunchError(
                f"vLLM {version} has no batch-invariant kernels and would ignore `deterministic`: use 0.11.1 or "
                "newer, or omit `deterministic`"
            )
        environment["VLLM_BATCH_INVARIANT"] = "1"
    if spec.node_address is not None:
        # On a machine with several networks vLLM picks an address itself, which the other nodes may not reach.
        environment["VLLM_HOST_IP"] = spec.node_address
    return environment


def _parallel(spec: ServerSpec, version: str) -> list[str]:
    """The options for data parallelism inside the engine, and for several nodes."""
    words: list[str] = []
    engine_dp = spec.dp > 1 and spec.dp_mode == "engine"
    if engine_dp:
        if not at_least(version, DATA_PARALLEL_SINCE):
            raise LaunchError(f"vLLM {version} does not support data parallelism: omit `dp_mode=engine`")
        words += ["--data-parallel-size", str(spec.dp)]
    if spec.nodes == 1:
        return words
    if engine_dp:
        # Each node runs an equal part of the replicas.
        if spec.dp % spec.nodes:
            raise LaunchError(f"`dp` {spec.dp} cannot be divided evenly across `nodes` {spec.nodes}")
        local = spec.dp // spec.nodes
        words += ["--data-parallel-size-local", str(local)]
        words += ["--data-parallel-address", str(spec.head_address), "--data-parallel-rpc-port", str(spec.head_port)]
        words += ["--data-parallel-start-rank", str(spec.node_rank * local)] if spec.node_rank else []
    else:
        # One replica spans all nodes.
        if not at_least(version, NODES_SINCE):
            raise LaunchError(
                f"vLLM {version} can spread one model over nodes only with Ray: start a Ray cluster, add "
                "`-- --distributed-executor-backend ray` and omit `nodes`. `nodes` requires vLLM 0.15"
            )
        if spec.tp * spec.pp % spec.nodes:
            raise LaunchError(
                f"tp {spec.tp} x pp {spec.pp} devices cannot be divided evenly across `nodes` {spec.nodes}"
            )
        words += ["--nnodes", str(spec.nodes), "--node-rank", str(spec.node_rank)]
        words += ["--master-addr", str(spec.head_address), "--master-port", str(spec.head_port)]
    # Only node 0 listens for requests.
    return [*words, "--headless"] if spec.node_rank else words


# ---- how to recognize and communicate with its servers

_CONFIG = "/server_info?config_format=json"
"""Page with the engine's settings."""


PROFILE = EngineProfile(
    name="vllm",
    parser_flags="vLLM: --enable-auto-tool-choice --tool-call-parser {vllm}",
    binds_calls=False,
    source="vllm/entrypoints/serve/instrumentator/server_info.py (the page is enabled by VLLM_SERVER_DEV_MODE=1)",
    owned_by="vllm",
    writes_by_schema=True,
    facts=(
        *fact_fields("/version", "host", version="version"),
        *fact_fields(
            _CONFIG, "model", ("vllm_config", "model_config"),
            model_path="model", tokenizer="tokenizer", revision="revision", dtype="dtype",
            quantization="quantization", generation_config="generation_config",
            sampling_defaults="override_generation_config", config_overrides="hf_overrides",
        ),
        *fact_fields(_CONFIG, "model", ("vllm_config", "cache_config"), kv_cache="cache_dtype"),
        *fact_fields(_CONFIG, "model", ("vllm_config",), reasoning_parser="structured_outputs_config/reasoning_parser"),
        *fact_fields(_CONFIG, "host", ("vllm_config", "parallel_config"),
                   tensor_parallel="tensor_parallel_size", data_parallel="data_parallel_size"),
        *fact_fields(_CONFIG, "host", ("vllm_env",), batch_invariant="VLLM_BATCH_INVARIANT"),
    ),
    neutral=Neutral(
        {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
        "vllm/config/model.py, get_diff_sampling_param; vllm/sampling_params.py",
    ),
    # https://docs.vllm.ai/en/stable/serving/openai_compatible_server/#tokenizer-api
    tokens=TokenPages(),
    reads_prompts="prompt_logprobs",
    obeys={"responses": {
        "top_k": (0, 14), "seed": (0, 17), "stop": (0, 17), "chat_template_kwargs": (0, 24), "min_p": (0, 33),
    }},
    too_long=(r"maximum context length", r"max_model_len"),
    # vllm/v1/engine/exceptions.py; before 0.9 engine/async_llm_engine.py and engine/multiprocessing/__init__.py
    dead=(r"EngineDeadError", r"EngineCore encountered an issue", r"(Engine|Background) loop (is not running|has err)"),
    # https://huggingface.co/poolside/Laguna-S-2.1-NVFP4/discussions/9
    thinking_budget=("thinking_token_budget",),
)  # fmt: skip
"""How to recognize and communicate with vLLM's servers."""


# ---- the engine


class Vllm(Engine):
    """vLLM on CUDA, ROCm or CPU."""

    summary = "Start vLLM (`vllm serve`)."
    takes = GPU_SERVER | {"device", "images_per_prompt"}
    assumed_version = TESTED_VERSION
    spreads = True
    router = VLLM_ROUTER
    profile = PROFILE
    model_flags = (
        *MODEL_FLAGS,
        "default-chat-template-kwargs",
        "generation-config",
        "override-generation-config",
        "hf-overrides",
        "rope-scaling",
        "rope-theta",
        "lora-modules",
    )
    file_flags = ("chat-template", "generation-config")
    # According to `vllm serve --help` of 0.11.0, 0.15.0, 0.18.0, 0.23.0 and 0.32.0.
    gone_since: ClassVar = {
        "0.11": "enable-reasoning num-scheduler-steps multi-step-stream-outputs use-v2-block-manager "
        "max-seq-len-to-capture disable-async-output-proc preemption-mode worker-use-ray engine-use-ray device "
        "scheduler-delay-factor enable-prompt-adapter tokenizer-pool-size speculative-model num-speculative-tokens",
        "0.15": "task cuda-graph-sizes disable-mm-preprocessor-cache enable-lora-bias guided-decoding-backend "
        "lora-extra-vocab-size num-lookahead-slots override-pooler-config rope-scaling rope-theta",
        "0.18": "disable-log-requests swap-space",
        "0.23": "disable-frontend-multiprocessing",
        "0.32": "calculate-kv-scales max-num-partial-prefills max-long-partial-prefills override-attention-dtype",
    }
    missing_until: ClassVar = {
        "0.11": "attention-config optimization-level",
        "0.15": "moe-backend performance-mode kernel-config",
        "0.18": "mamba-backend",
    }

    def program(self, spec: ServerSpec) -> Program:
        """How to call this version of vLLM."""
        program = PROGRAM if at_least(spec.engine_version or TESTED_VERSION, SERVES_SINCE) else MODULE_PROGRAM
        return of_version(program, TESTED_VERSION, spec.engine_version)

    def command(self, spec: ServerSpec, version: str, port: int) -> ProcessCommand:
        """The command for one replica (or one node) on `port`; raises LaunchError for features that this version does
        not support."""
        if spec.device == "npu":
            raise LaunchError("for vLLM on NPUs, use the engine vllm_ascend")
        return self.base_command(spec, version, port, ("NCCL", "GLOO"))

    def base_command(self, spec: ServerSpec, version: str, port: int, libraries: Sequence[str] = ()) -> ProcessCommand:
        """The command for one replica or node on `port`, for any kind of accelerator.

        libraries: communication libraries for which the network interface must be set. Raises LaunchError for features
        that this version does not support.
        """
        environment = _environment(spec, version, port)
        if spec.interface is not None:
            environment |= {f"{library}_SOCKET_IFNAME": spec.interface for library in libraries}
        words = [
            *_shared_options(spec, self.program(spec).subcommand, port),
            *_options_by_version(spec, version),
            *_sampling_defaults(spec, version),
            *_parallel(spec, version),
        ]
        secrets = {"VLLM_API_KEY": spec.api_key_env} if spec.api_key_env else {}
        return ProcessCommand((*words, *spec.extra_flags), environment, secrets)


ENGINE = Vllm()
