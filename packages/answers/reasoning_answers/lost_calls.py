"""Calls of tools that a server's parser did not recognize, so that they remain in a reply as text.

They are never executed. The parser names are those in the tables of vLLM 0.33 and SGLang 0.5.23.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

TOOL_WORDS = frozenset({"tool_calls", "function_call", "tool_use"})
"""Words with which a server says that the reply ended with a call."""

_MARKED = (
    r"<[|｜](?=[^<>\n]{0,80}?(?i:tool|call|func|invoke|action|plugin|exec|NAME))",  # a special token
    r"[<\[][/\w:.-]{0,40}?(?i:tool|func|function)s?[ _-]?(?i:call|use|code|request)s?[\w:.-]{0,40}[>\]]",  # a tag
    r"<(?:\w{1,20}:)?(?:function|invoke|tool|call|action)(?:=|\s+name\s*=)\s*[\"']?[\w.-]",
    r"<NAME>",
    r"[>\]]\s{0,3}\[?NAME(?:\(|\s{0,3}(?:```json\s{0,3})?\{)",  # the name behind any tag
    r"\bto=(?:functions\.\w|(?:\w{1,40}\.)?NAME\b)|\b(?:functions\.|call:)NAME\s{0,3}[:({<]",
    r'"\w{0,20}(?:name|tool|function|action)"\s*:\s*"[\w.:-]{1,80}"\s*,\s*"\w{0,20}(?:arg|param|input)\w{0,20}"\s*:',
    r'"\w{0,20}(?:name|tool|function|action)"\s*:\s*"(?:functions\.)?NAME"\s*,\s*"(?:\w{0,20}code|\w{1,40}"\s*:\s*\{)',
    r'\}\s*,\s*"(?:\w{1,20}_)?(?:name|tool|function)"\s*:\s*"(?:functions\.)?NAME"\s*[,}]|\{\s*"NAME"\s*:\s*\{',
    r"(?m:^[ \t]*(?:```|~~~)[ \t]*(?:tool|function)s?_?(?:code|call|use)s?\b)",  # a block
)
"""Forms of calls that never occur in an answer: the markers of models' templates, the tool addressed by name, a JSON
object with a name and arguments. NAME: the name of the tool.
"""

_WRITTEN = (
    r"(?m:^[ \t`\[]*(?:print\(|\w{1,40} = )?(?:\w{1,40}\.)?NAME\(\s*(?:\w{1,40}\s*[=(]|[\"'{]))",
    r"(?m:^\W{0,4}(?i:action|(?:tool|function)?[ _]?call|tool|function)\W{0,3}:\W{0,4}NAME(?:\W{0,4}$|\s{0,3}[({]))",
)
"""Forms of calls that may occur in reasoning without a call: a line that calls the tool as a function, or names it."""


@functools.cache
def _forms(tool: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Both kinds of forms for a tool of this name."""
    marked, written = ("|".join(forms).replace("NAME", re.escape(tool)) for forms in (_MARKED, _WRITTEN))
    return re.compile(marked), re.compile(f"{marked}|{written}")


def lost_call(
    text: str | None, reasoning: str | None, finish_reason: str, tools: Sequence[str], *, asks_program: bool
) -> str:
    """The beginning of a call in the text of a reply without calls, or the finish reason that claims one; else empty.

    tools: the names of the offered tools. asks_program: whether the answer is a program, so that a reply may end in a
    block in a tool's language.
    """
    text, reasoning = text or "", reasoning or ""
    last_block = text.rstrip().removesuffix("```").rpartition("```")[2]
    for tool in tools:
        marked, either = _forms(tool)
        if last_block.startswith(f"{tool}\n") and not asks_program:
            return tool
        if found := either.search(text if text.strip() else reasoning) or marked.search(reasoning):
            return found.string[found.start() : found.start() + _MARK_CHARS].split("\n")[0] or tool
    return finish_reason if finish_reason.lower() in TOOL_WORDS else ""


_MARK_CHARS = 24
"""Number of characters of a lost call that are shown."""
