"""How to start an engine so that it parses a model's function calls."""

from __future__ import annotations

from server_launchers.engines.table import profile, profiles

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
