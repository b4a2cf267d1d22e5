"""Calls of tools that a server's parser did not recognize, so that they remain in a reply as text.

They are never executed. A call is told from a sentence about calls by the names of the offered tools and by its place:
it is not quoted, and no words follow it on its line. The parser names are those in the tables of vLLM 0.33 and
SGLang 0.5.23.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from itertools import islice

TOOL_WORDS = frozenset({"tool_calls", "function_call", "tool_use"})
"""Words with which a server says that the reply ended with a call."""

_NAME = r"(?:(?:functions|tools?|(?:default_)?api)\.)?([\w./-]{1,100}?)(?::\d+)?(?:\.call(?=\())?(?![\w./-])"
_SPECIAL = r"<[|｜](?=[^<>\n]{0,80}?(?i:tool|call|func|invoke|action|plugin|exec))[^<>\n]{1,80}>"
_TAG = r"[<\[][/\w:.-]{0,40}?(?i:tool|func|function)s?[ _-]?(?i:call|use|code|request)s?[\w:.-]{0,40}[>\]]"
_KEY = r'"\w{0,20}(?:name|tool|function|action)"'
# A schema in place of the arguments defines a tool.
_NO_SCHEMA = r'(?!"parameters"\s*:\s*\{\s*"type"\s*:\s*"obj)'
_INPUT = rf'\s*,\s*{_NO_SCHEMA}"\w{{0,20}}(?:(?:arg|param|input|code)\w{{0,20}}"\s*:|\w{{0,20}}"\s*:\s*\{{)'
# Before an object or a list that is neither quoted nor the value of a key.
_OPEN = r'(?<![^\s>\]\w])(?<!":\s)'
_BRACKET = r"\(\s*(?:\w{1,40}\s*[=(]|[\"'{]|\)\W{0,3}(?m:$))"

_MARKED = (
    # Without a name, they also find a call of a tool that is not offered.
    rf"(?m:^[ \t]*)(?:{_SPECIAL}|{_TAG})(?=\s{{0,3}}(?:[\[{{<]|\w{{1,40}}(?:<|\s{{0,3}}[\n({{])))",
    r"(?m:^[ \t]*)(?:```|~~~)[ \t]*(?:tool|function)s?_?(?:code|call|use)s?\b|\bcommentary to=functions\.\w",
    rf"<(?:\w{{1,20}}:|[|｜]\w{{1,20}}[|｜])?(?:function|invoke|tool|call|action)(?:_call|_name)?"
    rf"(?:=|>|\s+name\s*=)\s*[\"']?{_NAME}",
    rf"(?m:^[ \t]*)<{_NAME}>(?=\s{{0,3}}[\n{{<])",
    r"<[|｜]([\w.-]{1,80})_tag[|｜](?=>)",
    rf"[>\]]\s{{0,3}}\[?{_NAME}(?=\(|\s{{0,3}}(?:```json\s{{0,3}})?\{{|\[ARGS\]|\s{{0,3}}<(?:[|｜]|\w*arg))",
    rf"\b(?:to=|functions\.|call:){_NAME}(?=\s{{0,3}}(?:code|json|[{{<]|{_BRACKET}))",
)
"""Calls in the form of a model's template; the group is the name of the tool."""

_WRITTEN = (
    # In a JSON object, short members or the keys of outer objects may precede the name.
    rf'{_OPEN}(?:\[\s{{0,3}})?\{{\s{{0,9}}(?:"\w{{1,30}}"\s*:\s*(?:"[^"\n]{{0,80}}"\s*,|\[?\s*\{{)\s*){{0,6}}'
    rf'{_KEY}\s*:\s*"{_NAME}"(?={_INPUT})',
    rf'\}}\s*,\s*{_KEY}\s*:\s*"{_NAME}"(?=\s*[,}}])',
    rf'{_OPEN}(?:\[\s{{0,3}})?\{{\s*"{_NAME}"(?=\s*:\s*\{{)',
    rf"(?:(?m:^[ \t`\[]*)(?:print\(|\w{{1,40}} = )?|{_OPEN}\[){_NAME}(?={_BRACKET})",
    # A label such as `Action:`.
    rf"(?m:^\W{{0,4}})(?i:action|(?:tool|function)?[ _]?call|tool|function)\W{{0,3}}:\W{{0,4}}{_NAME}"
    rf"(?=\W{{0,4}}(?:\Z|\n\W{{0,4}}(?i:action|input|arg|json))|\s{{0,3}}(?:[\[{{]|{_BRACKET}))",
    rf"(?m:^[ \t]*){_NAME}(?=\n?\{{|\[ARGS\]|\n<arg_key>)",
)
"""Calls in a form that an answer may have, too."""

_FORMS = re.compile("|".join((*_MARKED, *_WRITTEN)))
_THOUGHT = re.compile(rf"(?m:^[ \t]*)(?:{'|'.join(_MARKED)})")
_IN_WORDS = re.compile(r"[\])}`\t ]*[.,:!?\w]")
_FENCE_LINE = re.compile(r"```[ \t]*\w*\s*\Z")

_MAX_PLACES = 64
"""Largest number of mentions of a tool in a reply that are examined."""

_MARK_CHARS = 24
"""Number of characters of a lost call that are shown."""


def lost_call(
    text: str | None, reasoning: str | None, finish_reason: str, tools: Collection[str], *, asks_program: bool
) -> str:
    """The beginning of a call in the text of a reply, or the finish reason that claims one; else empty.

    tools: the names of the offered tools. asks_program: whether the answer is a program, so that a reply may end in a
    block in a tool's language. Of a reply with calls, only its text is given.
    """
    text, reasoning = text or "", reasoning or ""
    last_block = text.rstrip().removesuffix("```").rpartition("```")[2]
    if not asks_program and (tool := last_block.partition("\n")[0]) in tools and "\n" in last_block:
        return tool
    found = _call_start(text if text.strip() else reasoning, tools, _FORMS) or _call_start(reasoning, tools, _THOUGHT)
    return found or (finish_reason if finish_reason.lower() in TOOL_WORDS else "")


def _call_start(text: str, tools: Collection[str], forms: re.Pattern[str]) -> str:
    """The beginning of the first call in one of the forms; else empty."""
    named = (match for match in forms.finditer(text) if match.lastindex is None or match[match.lastindex] in tools)
    start = next((match.start() for match in islice(named, _MAX_PLACES) if _is_in_place(match)), len(text))
    return text[start : start + _MARK_CHARS].strip().split("\n")[0]


def _is_in_place(match: re.Match[str]) -> bool:
    """Whether a mention of a tool is a call, rather than part of a sentence or of an example."""
    text, start, end = match.string, match.start(), match.end()
    is_marked = (match.lastindex or 0) <= _THOUGHT.groups
    is_example = text.count("```", 0, start) % 2 and (
        is_marked or not _FENCE_LINE.search(text, max(0, start - 24), start)
    )
    if is_example or text.count("`", text.rfind("\n", 0, start) + 1, start) % 2:
        return False
    line_end = text.find("\n", end) % (len(text) + 1)
    try:
        _, end = json.JSONDecoder().raw_decode(text, text.index(match[0].lstrip()[0], start))
    except (ValueError, RecursionError):
        end = line_end if "{" in match[0] else text.rfind(")", end, line_end) + 1 or line_end
    return is_marked or _IN_WORDS.match(text, end) is None
