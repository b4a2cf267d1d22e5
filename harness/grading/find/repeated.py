"""The value of an answer, an option letter or numbers, as a text behind the answer may repeat it."""

from __future__ import annotations

import re

NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?(?:/\d+)?"
"""Pattern of a number in a text."""

_NUMBERS = re.compile(NUMBER)
_SPACED = re.compile(r"\\[!,;: ]\s?|[{}]")
_AROUND_LETTER = re.compile(r"\\(?:text|math)(?:bf|rm|it|sf|tt)?(?![A-Za-z])|[{}$()\[\]（）\s.]")
_GROUPS_DIGITS = re.compile(r"(?<=\d)(?:,|\{,\})(?=\d{3}(?!\d))")
_MAX_LETTER_CHARS = 20


def numbers_of(answer: str) -> list[str]:
    """Return the numbers of an answer, with their digits only: 1,234 and `1{,}234` are 1234."""
    return [digits_of(number) for number in _NUMBERS.findall(_SPACED.sub("", answer))]


def letter_in(answer: str) -> str | None:
    r"""Return the option letter that an answer is, such as `\text{(C)}`; None for any other answer."""
    plain = _AROUND_LETTER.sub("", answer) if len(answer) <= _MAX_LETTER_CHARS else ""
    return plain if is_letter(plain) else None


def is_letter(answer: str) -> bool:
    """Whether an answer is one Latin letter."""
    return len(answer) == 1 and answer.isascii() and answer.isalpha()


def plain(answer: str) -> str:
    r"""Return an answer without dollar signs and marks around it: `$3$`, `\(3\)` and `**3.**` have the same text."""
    return (
        _GROUPS_DIGITS.sub("", answer)
        .replace("\\dfrac", "\\frac")
        .strip("$*_ \t\n.。,:")
        .removeprefix("\\(")
        .removeprefix("\\[")
        .removesuffix("\\)")
        .removesuffix("\\]")
        .strip()
    )


def digits_of(number: str) -> str:
    """Return a number without the commas that group its digits, with a plain minus sign."""
    return number.replace(",", "").replace("−", "-")
