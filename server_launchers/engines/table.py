"""The engines by name. Each name in `spec.EngineName` is a module of this package, imported when first needed.

Code outside this package never names an engine: it uses the values here, or a role (`EMBEDDED`, `ANY_PROGRAM`).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.core.sanitize import visible
from server_launchers.engines.engine import Engine, EngineProfile
from server_launchers.spec import ENGINES, OPTIONS, OWN_FLAGS, EngineName, ServerSpec, flag_names, refusal_of

EMBEDDED: EngineName = "llama_cpp"
"""The engine included with the harness, which serves any GGUF file on any machine."""
ANY_PROGRAM: EngineName = "command"
"""The engine that starts a program from the user or a plug-in."""

UNKNOWN = EngineProfile(name="")
"""The profile of a server that does not reveal its engine."""


@cache
def by_name(name: EngineName) -> Engine:
    """The `ENGINE` with this name."""
    module = importlib.import_module(f"server_launchers.engines.{name}")
    assert isinstance(module.ENGINE, Engine)
    return module.ENGINE


def find(name: str | None) -> Engine | None:
    """The `ENGINE` with this name; None if there is none."""
    return next((by_name(engine) for engine in ENGINES if engine == name), None)


def engines_by_name() -> dict[EngineName, Engine]:
    """All engines by name, in display order."""
    return {name: by_name(name) for name in ENGINES}


@cache
def profiles() -> tuple[EngineProfile, ...]:
    """All known profiles, without duplicates."""
    spoken = (one for engine in engines_by_name().values() for one in (engine.profile, engine.router_profile))
    return tuple({one.name: one for one in spoken if one is not None}.values())


def common_field_names() -> dict[str, str]:
    """An engine's own name of a request field → the name that the harness and the other engines use."""
    return {theirs: ours for profile in profiles() for ours, theirs in profile.names.items()}


def profile(name: str | None) -> EngineProfile:
    """The profile with this name; `UNKNOWN` for any other name."""
    return next((candidate for candidate in profiles() if candidate.name == name), UNKNOWN)


def profile_of_entry(entry: Mapping[str, Any]) -> EngineProfile:
    """The profile of the server whose model list has this entry; `UNKNOWN` if the entry does not reveal the engine.

    Older servers do not report an owner and are recognized by a key that only their engine writes.
    """
    owners = [each for each in profiles() if each.owned_by and each.owned_by == entry.get("owned_by")]
    marked = [each for each in profiles() if each.marks and isinstance(entry.get(each.marks), Mapping)]
    return next(iter([*owners, *marked]), UNKNOWN)


@cache
def anonymous() -> EngineProfile:
    """The profile of routers that hide their workers' model names."""
    return next(candidate for candidate in profiles() if candidate.hides_behind)


def engine_of(spec: ServerSpec) -> Engine:
    """The spec's engine. Raises `UsageError` for the first field of the spec that does not fit the engine.

    A field does not fit if it is empty although the engine needs it, or set although the engine does not support it. So
    no setting is dropped silently.
    """
    engine = by_name(spec.engine)
    if not getattr(spec, engine.needs):
        what = "a model" if engine.needs == "model" else "the command line after `--`"
        raise UsageError(f"engine {spec.engine} needs {what}", field=engine.needs)
    named = flag_names(spec.extra_flags if engine.needs == "model" else ())
    # With attention in data parallel, SGLang's ranks are within the devices of `tp`: they are not replicas.
    shared = OWN_FLAGS["dp"].split() if "enable-dp-attention" in named.values() else []
    for flag, name in named.items():
        if name not in shared and (why := refusal_of(name)):
            raise UsageError(f"{flag} cannot follow ` -- `: {why}")
    # Checked here, because an engine would report it only after a minute.
    is_model = engine.needs != "model" or engine.fetches_weights or _MODEL.fullmatch(spec.model)
    if not (is_model or Path(spec.model).exists()):
        how = "expected a Hub name (OWNER/NAME; pass a revision after ` -- `), or a path (./FOLDER)"
        raise UsageError(how, field="model", value=visible(spec.model, 200))
    for name, option in OPTIONS.items():
        if name in engine.takes or getattr(spec, name) == option.default:
            continue
        able = [engine_name for engine_name, other in engines_by_name().items() if name in other.takes]
        others = f"; it is supported by {', '.join(able)}" if able else ""
        raise UsageError(f"{spec.engine} does not support it{others}", field=name)
    if spec.dp_mode == "engine" and not engine.spreads:
        raise UsageError(
            f"{spec.engine} cannot run several replicas in one process; choose client (the client distributes requests "
            "over one process per replica) or router (a router distributes them)",
            field="dp_mode",
        )
    if spec.router_python is not None and spec.dp_mode != "router":
        raise UsageError("no router will be started: set `dp_mode=router`, or omit this option", field="router_python")
    return engine


_PATH, _HUB_NAME = r"[/.~].*", r"[\w.-]{1,96}(?:/[\w.-]{1,96})?"
_MODEL = re.compile(rf"{_PATH}|{_HUB_NAME}|(?:s3|gs|az|redis|instance)://.+", re.ASCII | re.DOTALL)
"""A model in the form that vLLM and SGLang accept: a path, a hub name, or an object store's address."""


# ---- how to start an engine so that it parses a model's function calls


_PARSERS = """
gpt-oss openai gpt-oss, qwen3-coder qwen3_coder qwen3_coder, qwen hermes qwen25, deepseek-v4 deepseek_v4 deepseekv4,
deepseek-v3.2 deepseek_v32 deepseekv32, deepseek-v3.1 deepseek_v31 deepseekv31, deepseek deepseek_v3 deepseekv3,
stral mistral mistral, glm-4.5 glm45 glm45, glm-4.6 glm45 glm45, glm glm47 glm47, kimi-k3 kimi_k3 kimi_k3,
kimi kimi_k2 kimi_k2, minimax-m3 minimax_m3 minimax-m3, minimax minimax_m2 minimax-m2, mimo mimo mimo,
llama-4 llama4_pythonic pythonic, llama llama3_json llama3, step-3.5 step3p5 step3p5, step step3 step3
"""
"""A part of a model's name → the parser of its calls in vLLM and in SGLang; the first match is used."""


def calls_remedy(model: str, engine: str | None = None) -> str:
    """The options with which to start a model's server so that it parses the model's calls. engine: the engine, if
    known."""
    name = model.casefold().replace("_", "-")
    entries = (entry.split() for entry in _PARSERS.split(","))
    vllm, sglang = next((parsers for part, *parsers in entries if part in name), ("the model's", "the model's"))
    known = "; ".join(filter(None, (each.parser_flags for each in profiles())))
    flags = (profile(engine).parser_flags or known).format(vllm=vllm, sglang=sglang)
    return f"start the server with its tool-call parser ({flags})"
