"""SGLang on CUDA, ROCm, CPU or (`--device npu`) Ascend NPUs: `python -m sglang.launch_server`.

SGLang accepts its key only on the command line, which every user of the machine can read. So with a key, SGLang is
started by a line of Python that adds the key from an environment variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from server_launchers.command_line import ProcessCommand
from server_launchers.engines.engine import (
    GPU_SERVER,
    MODEL_FLAGS,
    Engine,
    EngineProfile,
    Neutral,
    Reading,
    TokenPages,
    fact_fields,
)
from server_launchers.errors import LaunchError
from server_launchers.program import KEY_VARIABLE, Program, at_least, flag_pairs, install_hint, local_model, of_version

if TYPE_CHECKING:
    from server_launchers.spec import ServerSpec

TESTED_VERSION = "0.5.23"
"""The newest tested version."""
INSTALL = install_hint(f"sglang=={TESTED_VERSION}", f"lmsysorg/sglang:v{TESTED_VERSION} as `docker`")
NEUTRAL_SINCE = DETERMINISTIC_SINCE = (0, 5, 6)
"""The first version with --sampling-defaults, and with --enable-deterministic-inference."""
GRAPH_BACKENDS_SINCE = (0, 5, 23)
"""The first version known to have --cuda-graph-backend-decode, which deprecates --disable-cuda-graph."""
NEUTRAL_WORDS = ("--sampling-defaults", "openai")
"""The option that makes SGLang use its own sampling values instead of the model's."""
PROGRAM = Program(None, ("-m", "sglang.launch_server"), "sglang", INSTALL)


UNDERSCORED = frozenset(
    {
        "kimi_k2",
        "kimi_k3",
        "k2_horizon",
        "poolside_v1",
        "nemotron_3",
        "granite_thinking_parser",
        "iquest_q1",
        "cohere_command4",
        "response_template",
    }
)
"""Reasoning parsers that SGLang spells with underscores, according to its help in `TESTED_VERSION`; the others have
hyphens."""


# ---- how it is started


def _parser(name: str) -> str:
    """The parser's name in SGLang's spelling, from either spelling."""
    under = name.replace("-", "_")
    return under if under in UNDERSCORED else name.replace("_", "-")


def _shared_options(spec: ServerSpec, port: int, *, npu: bool) -> list[str]:
    """The model and the options that all versions share."""
    model = local_model(spec)
    return flag_pairs(
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
        # With these options, the client can see cache hits and queue lengths.
        ("--enable-metrics", True),
        ("--enable-cache-report", True),
    )


def _options_by_version(spec: ServerSpec, version: str) -> list[str]:
    """Options that differ between versions or are missing in some; and the options for several nodes."""
    words: list[str] = []
    if spec.eager:
        if at_least(version, GRAPH_BACKENDS_SINCE):
            words += ["--cuda-graph-backend-decode", "disabled", "--cuda-graph-backend-prefill", "disabled"]
        else:
            words += ["--disable-cuda-graph"]
    # Our neutral values must not override the user's own choice.
    is_users = any(word.partition("=")[0] == NEUTRAL_WORDS[0] for word in spec.extra_flags)
    if not is_users and spec.sampling_defaults == "neutral" and at_least(version, NEUTRAL_SINCE):
        words += NEUTRAL_WORDS
    if spec.deterministic:
        if not at_least(version, DETERMINISTIC_SINCE):
            raise LaunchError(f"SGLang {version} does not support deterministic inference: use 0.5.6 or newer")
        words += ["--enable-deterministic-inference"]
    if spec.nodes > 1:
        words += ["--nnodes", str(spec.nodes), "--node-rank", str(spec.node_rank)]
        words += ["--dist-init-addr", f"{spec.head_address}:{spec.head_port}"]
    return words


def _environment(spec: ServerSpec, *, npu: bool) -> dict[str, str]:
    """The variables of one replica, or of one node."""
    environment = dict(spec.environment)
    if spec.interface is not None:
        device_library = "HCCL" if npu else "NCCL"
        environment |= {f"{library}_SOCKET_IFNAME": spec.interface for library in (device_library, "GLOO")}
    if spec.node_address is not None:
        environment["SGLANG_HOST_IP"] = spec.node_address
        if npu:
            environment["HCCL_IF_IP"] = spec.node_address
    return environment


# ---- how to recognize and communicate with its servers


PROFILE = EngineProfile(
    name="sglang",
    parser_flags="SGLang: --tool-call-parser {sglang}",
    binds_calls=True,
    source="sglang/srt/entrypoints/http_server.py, server_args.py; seen on 0.5.23",
    owned_by="sglang",
    writes_by_schema=True,
    facts=(
        *fact_fields("/get_model_info", "model", model_path="model_path", tokenizer="tokenizer_path",
                   weight_version="weight_version", sampling_defaults="preferred_sampling_params"),
        *fact_fields(
            "/get_server_info", "model",
            revision="revision", dtype="dtype", quantization="quantization", kv_cache="kv_cache_dtype",
            chat_template="chat_template", reasoning_parser="reasoning_parser",
            generation_config="sampling_defaults", config_overrides="json_model_override_args", lora="lora_paths",
        ),
        *fact_fields("/get_server_info", "host", version="version", context="context_length", tensor_parallel="tp_size",
                   data_parallel="dp_size", attention_backend="attention_backend",
                   deterministic="enable_deterministic_inference", speculative="speculative_algorithm"),
    ),
    context=Reading("/get_server_info", ("context_length",)),
    # Some versions report the limit on running requests only per worker.
    at_once=tuple(
        Reading(page, (*within, "max_running_requests"))
        for page in ("/get_server_info", "/server_info")
        for within in ((), ("internal_states",))
    ),
    neutral=Neutral(
        {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
        "sglang/srt/configs/model_config.py, get_default_sampling_params; sampling_params.py",
    ),
    # sglang/srt/entrypoints/openai/protocol.py (`TokenizeRequest`)
    tokens=TokenPages(),
    reads_prompts="input_token_logprobs",
    obeys={"responses": {
        "top_k": (0,), "min_p": (0,), "stop": (0,), "repetition_penalty": (0,), "presence_penalty": (0,),
        "frequency_penalty": (0,), "chat_template_kwargs": (0, 5, 20),
    }},
    too_long=(r"longer than the model's context length", r"requested token count exceeds"),
    # Obeyed if the server was started with --enable-strict-thinking.
    # https://docs.sglang.io/docs/advanced_features/thinking_budget
    thinking_budget=("custom_params", "thinking_budget"),
)  # fmt: skip
"""How to recognize and communicate with SGLang's servers."""

# ---- the engine


class SGLang(Engine):
    """SGLang on any accelerator."""

    summary = "Start SGLang (`python3 -m sglang.launch_server`)."
    takes = GPU_SERVER | {"device"}
    assumed_version = TESTED_VERSION
    spreads = True
    profile = PROFILE
    router_profile = EngineProfile(
        name="router",
        source="sglang_router 0.3.2 and vllm-router 0.1.17: both expose SGLang's endpoints",
        hides_behind="unknown",  # unless its workers are SGLang servers
        facts=PROFILE.facts,
        context=PROFILE.context,
    )
    parsers = "sglang"
    model_flags = (
        *MODEL_FLAGS,
        "sampling-defaults",
        "preferred-sampling-params",
        "json-model-override-args",
        "lora-paths",
    )
    file_flags = ("chat-template",)
    # According to the options of 0.4.9, 0.5.1, 0.5.6, 0.5.12 and 0.5.23.
    gone_since: ClassVar = {
        "0.4.9": "enable-mla disable-mla disable-flashinfer disable-flashinfer-sampling enable-flashinfer-mla "
        "disable-disk-cache schedule-heuristic",
        "0.5.1": "enable-flashinfer-moe disable-overlap-cg-plan",
        "0.5.6": "enable-ep-moe enable-deepep-moe enable-triton-kernel-moe enable-flashinfer-cutlass-moe "
        "enable-flashinfer-trtllm-moe max-micro-batch-size",
        "0.5.12": "enable-double-sparsity ds-channel-config-path ds-heavy-channel-num ds-heavy-token-num",
    }
    missing_until: ClassVar = {
        "0.4.9": "moe-a2a-backend moe-runner-backend",
        "0.5.1": "nsa-prefill-backend",
        "0.5.12": "dsa-prefill-backend dsa-decode-backend",
    }

    def program(self, spec: ServerSpec) -> Program:
        """How to call it: as a module."""
        return of_version(PROGRAM, TESTED_VERSION, spec.engine_version)

    def command(self, spec: ServerSpec, version: str, port: int) -> ProcessCommand:
        """The command for one replica (or one node) on `port`; raises LaunchError for features that this version does
        not support."""
        npu = self.runs_on(spec) == "ascend"
        words = [*_shared_options(spec, port, npu=npu), *_options_by_version(spec, version)]
        secrets = {KEY_VARIABLE: spec.api_key_env} if spec.api_key_env else {}
        return ProcessCommand((*words, *spec.extra_flags), _environment(spec, npu=npu), secrets)


ENGINE = SGLang()
