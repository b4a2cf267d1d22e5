"""Calls of a tool that a server's parser has not read, so that they stand in a reply as text. They are never executed.

The parsers' names are those in the tables of vLLM 0.33 and SGLang 0.5.23.
"""

from __future__ import annotations

import re

from harness.core.finish_words import TOOL_WORDS

_MARKS = re.compile(
    r"<tool_call>|<\|tool_calls?_(?:section_)?begin\|>|\[TOOL_CALLS\]|<function=|<｜tool▁calls?▁begin｜>"
    r"|to=functions\.|<minimax:tool_call>|<\|python_tag\|>"
    r'|\{\s*"name":\s*"\w+",\s*"(?:arguments|parameters)":'
)
"""The marks that models' own templates write around a call, and a call without any."""

_PARSERS = """
gpt-oss openai gpt-oss, qwen3-coder qwen3_coder qwen3_coder, qwen hermes qwen25, deepseek-v4 deepseek_v4 deepseekv4,
deepseek-v3.2 deepseek_v32 deepseekv32, deepseek-v3.1 deepseek_v31 deepseekv31, deepseek deepseek_v3 deepseekv3,
stral mistral mistral, glm-4.5 glm45 glm45, glm-4.6 glm45 glm45, glm glm47 glm47, kimi-k3 kimi_k3 kimi_k3,
kimi kimi_k2 kimi_k2, minimax-m3 minimax_m3 minimax-m3, minimax minimax_m2 minimax-m2, mimo mimo mimo,
llama-4 llama4_pythonic pythonic, llama llama3_json llama3, step-3.5 step3p5 step3p5, step step3 step3
"""
"""A part of a model's name → the parser of its calls in vLLM and in SGLang; the first that fits counts."""


def loses_call(text: str | None, reasoning: str | None, finish_reason: str) -> bool:
    """Whether a reply without calls holds one all the same, or says that it ended with one."""
    if finish_reason.lower() in TOOL_WORDS:
        return True
    return any(part and _MARKS.search(part) for part in (text, reasoning))


def remedy(model: str) -> str:
    """What to start the server of a model with, so that it reads the model's calls."""
    name = model.casefold().replace("_", "-")
    entries = (entry.split() for entry in _PARSERS.split(","))
    vllm, sglang = next((parsers for part, *parsers in entries if part in name), ("the model's", "the model's"))
    return (
        f"start the server with its parser of calls (vLLM: --enable-auto-tool-choice --tool-call-parser {vllm}; "
        f"SGLang: --tool-call-parser {sglang})"
    )
