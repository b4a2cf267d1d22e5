r"""The option letter that a text names: `B`, `(B)`, `\textbf{(B)} 12`, `Option B`.

A letter counts when it is marked as one: alone, in brackets, before a dot or a bracket with the option's text behind
it, or after "option". The article "A" before a word is never a letter.
"""

from __future__ import annotations

import re

from harness.answers.grammar.characters import plain_latex

LAST_LETTER = "J"
"""Last option letter of a question whose options are not known."""

_WRAPPER = re.compile(
    r"\\(?:text(?:bf|rm|it|sf|tt)?|math(?:rm|bf|it|sf|tt)|boldsymbol|mbox|bf|rm|operatorname|boxed|fbox)(?![A-Za-z])"
)
_NOISE = re.compile(r"[\s${}*]|\\(?:[,;:!() \[\]]|quad|qquad|left|right)")
_ALONE = re.compile(r"[(\[（]?([A-Z])[)\]）]?[.:、．。]?", re.ASCII)
_WITH_TEXT = re.compile(r"(?:[(\[（]([A-Z])[)\]）]|([A-Z])(?:[).、．]\s*|[:：]\s+))\s*\S", re.ASCII)
_NAMED = re.compile(
    r"(?i:option|choice|answer|选项|选择|选)\s*(?i:is|为|是)?\s*[:：]?\s*[(\[（]?([A-Z])(?![A-Za-z0-9'])", re.ASCII
)


def letter_of(answer: str, last: str = "Z") -> str | None:
    """The letter that an extracted answer names, at most `last`; None when it names none or several."""
    plain = _NOISE.sub(" ", _WRAPPER.sub(" ", plain_latex(answer[:2_000]))).strip()
    squeezed = plain.replace(" ", "")
    if match := _ALONE.fullmatch(squeezed):
        return within(match[1], last)
    if match := _WITH_TEXT.match(plain):
        return within(match[1] or match[2], last)
    if match := _NAMED.match(plain):
        return within(match[1], last)
    return None


def within(letter: str | None, last: str) -> str | None:
    """`letter` if it is one of the options A to `last`."""
    return letter if letter is not None and "A" <= letter <= last else None
