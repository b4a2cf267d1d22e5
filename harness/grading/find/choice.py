r"""Multiple choice in prose: the letter that a response marks as its choice."""

from __future__ import annotations

import re

from harness.answers.letters import letter_of, within

_MARKED = re.compile(
    r"""(?x)
    (?: (?i:answer|option|choice|correct|choose|select|pick) [^\n]{0,30}? (?i:\bis|:|=|\bare|\boption|\bchoice|\bwith)
      | (?i:\bchoose|\bselect|\bpick|\btherefore,?|\bthus,?|\bhence,?|\bso,?)
      | 故选 | 应选 | 选择 | 选 | 答案[是为：:]*)
    \s* (?:(?i:option|choice|answer|the|letter)\s+){0,3} [:：]? \s* [*_$({\[（"'\\]*
    (?:text(?:bf)?|mathrm|mathbf)? \{? \(?
    ([A-Z]) (?![A-Za-z0-9'’]|\s+[a-z]{2,}\b(?<!\sis)(?<!\sand)(?<!\sbecause)(?<!\ssince))
    """,
    re.ASCII,
)
_CALLED_RIGHT = re.compile(
    r"""(?x) (?:(?i:option|choice|answer)\s+)? [(]? \b([A-Z])\b [)]? \s+ (?i:is|must\s+be) \s+ (?i:the\s+)?
    (?i:correct|right|true|answer)""",
    re.ASCII,
)
_BOLD = re.compile(r"\*\*\s*\(?([A-Z])\)?[).:]?\s*(?:\*\*|[^*\n]{1,80}\*\*)", re.ASCII)
_BRACKETED = re.compile(r"[(（]([A-Z])[)）]", re.ASCII)


def letter_in_prose(text: str, last: str = "Z") -> tuple[str, int, int] | None:
    """(letter, start, end) of the last letter that a response marks as its choice; positions are in `text`."""
    for pattern in (_MARKED, _CALLED_RIGHT, _BOLD, _BRACKETED):
        found = None
        for match in pattern.finditer(text):
            if within(match[1], last):
                found = match
        if found is not None:
            return found[1], found.start(1), found.end(1)
    stripped = text.strip()
    letter = letter_of(stripped.splitlines()[-1], last) if stripped else None
    if letter:
        at = text.rfind(letter)
        return letter, at, at + 1
    return None
