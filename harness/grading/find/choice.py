r"""Multiple choice: the letter that an answer names.

A letter counts when it is marked as one: alone, in brackets, bold, before a dot or a bracket with the option's
text behind it, or after "option". The article "A" before a word is never a letter.
"""

from __future__ import annotations

import re

from harness.answers.grammar.characters import plain_latex

_WRAPPER = re.compile(
    r"\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it|sf|tt)|boldsymbol|mbox|bf|rm|operatorname|boxed|fbox)(?![A-Za-z])"
)
_NOISE = re.compile(r"[\s${}*]|\\(?:[,;:!() \[\]]|quad|qquad|left|right)")
_ALONE = re.compile(r"[(\[（]?([A-Z])[)\]）]?[.:、．。]?", re.ASCII)
_WITH_TEXT = re.compile(r"(?:[(\[（]([A-Z])[)\]）]|([A-Z])(?:[).、．]\s*|[:：]\s+))\s*\S", re.ASCII)
_NAMED = re.compile(
    r"(?i:option|choice|answer|选项|选择|选)\s*(?i:is|为|是)?\s*[:：]?\s*[(\[（]?([A-Z])(?![A-Za-z0-9'])", re.ASCII
)
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


def letter_of(answer: str, last: str = "Z") -> str | None:
    """The letter that an extracted answer names, at most `last`; None when it names none or several."""
    plain = _NOISE.sub(" ", _WRAPPER.sub(" ", plain_latex(answer[:2_000]))).strip()
    squeezed = plain.replace(" ", "")
    if match := _ALONE.fullmatch(squeezed):
        return _within(match[1], last)
    if match := _WITH_TEXT.match(plain):
        return _within(match[1] or match[2], last)
    if match := _NAMED.match(plain):
        return _within(match[1], last)
    return None


def letter_in_prose(text: str, last: str = "Z") -> tuple[str, int, int] | None:
    """(letter, start, end) of the last letter that a response marks as its choice; positions are in `text`."""
    for pattern in (_MARKED, _CALLED_RIGHT, _BOLD, _BRACKETED):
        found = None
        for match in pattern.finditer(text):
            if _within(match[1], last):
                found = match
        if found is not None:
            return found[1], found.start(1), found.end(1)
    stripped = text.strip()
    letter = letter_of(stripped.splitlines()[-1], last) if stripped else None
    if letter:
        at = text.rfind(letter)
        return letter, at, at + 1
    return None


def _within(letter: str | None, last: str) -> str | None:
    return letter if letter is not None and "A" <= letter <= last else None
