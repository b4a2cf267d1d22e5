r"""The option letter that a text names: `B`, `(B)`, `\textbf{(B)} 12`, `Option B`.

A letter counts when it is marked as one: alone, in brackets, before a dot or a bracket with the option's text behind
it, or after "option". The article "A" before a word is never a letter.
"""

from __future__ import annotations

import re
from functools import lru_cache

from harness.answers.grammar.characters import plain_latex

LAST_LETTER = "J"
"""Last option letter of a question whose options are not known."""

_WRAPPER = re.compile(
    r"\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it|sf|tt)|boldsymbol|mbox|bf|rm|operatorname|boxed|fbox)(?![A-Za-z])"
)
_NOISE = re.compile(r"[\s${}*]|\\(?:[,;:!() \[\]]|quad|qquad|left|right)")
_ALONE = re.compile(r"[(\[（]?([A-Z])[)\]）]?[.:、．。]?", re.ASCII)
_ALONE_IN_ANY_CASE = re.compile(r"[(\[（]?([A-Za-z])[)\]）]?[.:、．。]?", re.ASCII)
_WITH_TEXT = re.compile(r"(?:[(\[（]([A-Z])[)\]）]|([A-Z])(?:[).、．]\s*|[:：]\s+))\s*\S", re.ASCII)
_LOWER_WITH_TEXT = re.compile(r"(?:[(\[（]([a-z])[)\]）]|([a-z])(?:[)、．]\s*|[.:：]\s+))\s*\S", re.ASCII)
_NAMED = re.compile(
    r"(?i:the\s+)?(?i:(?:correct|right|final|best)\s+)?(?i:option|choice|answer|选项|选择|选)\s*(?i:is|为|是|[-–—])?\s*[:：]?\s*[(\[（]?([A-Z])[)\]）]?(?![A-Za-z0-9'])"
    r"(?!(?<=[AI])\s+(?!(?:is|because|since|and|or)\b)[a-z])",
    re.ASCII,
)
_ANOTHER = re.compile(
    r"\s*[)\]）]?\s*[.．]?\s*(?:[,，、;/&]|or\b|and\b|和|或|及)[\s,]*(?:or\b|and\b)?\s*"
    r"(?:[(\[（]\s*([A-Za-z])\s*[)\]）]|([A-Z])(?![A-Za-z0-9'’]))",
    re.ASCII,
)
_LABELLED = re.compile(r"(?<=[\s,;])([A-J])\)(?=\s)", re.ASCII)
_LISTED = re.compile(r"(?:[A-Z][.)]){2,}", re.ASCII)
_BETWEEN = r"(?:[\s,，、;/&()\[\]]|and\b|和|及)*"
_ONE_OF = re.compile(r"[(\[]?[A-J][)\]]?(?:\s*(?:,\s*)?(?:\bor\b|或)\s*[(\[]?[A-J][)\]]?)+", re.ASCII)
_SEVERAL = re.compile(rf"{_BETWEEN}[A-Z]{_BETWEEN}(?:[A-Z]{_BETWEEN})+", re.ASCII)


def letter_of(answer: str, last: str = "Z", *, any_case: bool = False) -> str | None:
    """The letter that an answer names, at most `last`, as a capital; None when it names none or several.

    any_case: small letters count as well, where the question is known to be a choice.
    """
    plain = _plain(answer)
    squeezed = plain.replace(" ", "")
    if _LISTED.fullmatch(squeezed):
        return None
    if match := (_ALONE_IN_ANY_CASE if any_case else _ALONE).fullmatch(squeezed):
        return within(match[1].upper(), last)
    match = _WITH_TEXT.match(plain) or _NAMED.match(plain)
    if match is None and any_case:
        match = _LOWER_WITH_TEXT.match(plain)
    if match is None:
        return None
    letter = match[match.lastindex or 1].upper()
    if any(other[1] != letter for other in _LABELLED.finditer(plain, match.end(match.lastindex or 1))):
        return None  # "A) true B) false" tells of each option
    another = _ANOTHER.match(plain, match.end(match.lastindex or 1))
    if another is not None and (another[1] or another[2]).upper() != letter:
        return None
    return within(letter, last)


def letters_of(answer: str, last: str = LAST_LETTER) -> frozenset[str] | None:
    """The two or more distinct letters that an answer consists of: `A, C`, `AC`, `(A) and (C)`; else None."""
    plain = _plain(answer)
    if _SEVERAL.fullmatch(plain) is None:
        return None
    found = re.findall(r"(?<![a-z])[A-Z](?![a-z])", plain)
    return frozenset(found) if 1 < len(found) == len(set(found)) and max(found) <= last else None


def is_one_of_letters(answer: str) -> bool:
    """`A or B`: options of which one is meant."""
    return _ONE_OF.fullmatch(_plain(answer)) is not None


@lru_cache(maxsize=256)
def _plain(answer: str) -> str:
    return _NOISE.sub(" ", _WRAPPER.sub(" ", plain_latex(answer[:2_000]))).strip()


def within(letter: str | None, last: str) -> str | None:
    """`letter` if it is one of the options A to `last`."""
    return letter if letter is not None and "A" <= letter <= last else None
