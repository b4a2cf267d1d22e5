"""Calls of a tool that a server's parser has not read: they stand in a reply as text, and are never executed."""

from __future__ import annotations

import re

from harness.core.finish_words import TOOL_WORDS

_MARKS = re.compile(
    r"<tool_call>|<\|tool_calls?_(?:section_)?begin\|>|\[TOOL_CALLS\]|<function=|<｜tool▁calls?▁begin｜>"
    r"|to=functions\.|<minimax:tool_call>|<\|python_tag\|>"
    r'|\{\s*"name":\s*"\w+",\s*"(?:arguments|parameters)":'
)
"""The marks that models' own templates write around a call, and a call without any."""


def loses_call(text: str | None, reasoning: str | None, finish_reason: str) -> bool:
    """Whether a reply without calls holds one all the same, or says that it ended with one."""
    if finish_reason.lower() in TOOL_WORDS:
        return True
    return any(part and _MARKS.search(part) for part in (text, reasoning))


REMEDY = (
    "start the server with its parser of this model's calls (vLLM: --enable-auto-tool-choice --tool-call-parser; "
    "SGLang: --tool-call-parser)"
)
"""The remedy: what to start a server with, so that it reads the calls of its model."""
