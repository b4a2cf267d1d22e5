"""Finds a `?` that stands where a character of a question was lost, as Excel writes x²-x in GBK as `x?-x`.

A `?` is such a place only if it stands directly behind an operand (a digit, a closing bracket, or one or two letters
that are no word), and what follows it is one of four things with which no sentence begins:

    an operator and an operand      x?-x-6=0 · (x+1)? = 4          but not a bullet of the next line, and no HTML tag
    a small letter, alone           3x?y                           but not the label of an option: 5?a) 4
    a mark inside a sentence        30m?，宽5m · 10?、100           but not a bracket that closes: (is it 5?)
    的, 和 or 与                    25m?的教室

The sign U+FFFD, which programs write for bytes that they could not read, is always such a place. Any other `?` counts
as a question mark: at the end of a sentence, and as an unknown (3+?=7). So a lost character before a blank or at the
end of the text is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.core.inert import visible
from harness.core.nouns import count_noun

_OPERAND_BEFORE = r"(?:(?<![A-Za-z])(?:[A-Za-z]{1,2}|sin|cos|tan)|[0-9)\]}])"
_OPERATOR_AND_OPERAND = (
    r"[ \t]*(?!</?[A-Za-z][^<>]*>)[-+/^=<>≤≥≠≈×÷·±＋－＝−][ \t]*[-+]?"
    r"(?:[0-9(（√\\]|[A-Za-z](?![A-Za-z])(?![ \t]+[A-Za-z]))"
)
_LONE_LETTER = r"[a-z](?![A-Za-z])(?![.．、:：)）])"
_MARK = r"[ \t]*[，,。、；;]"
_CONTINUES = "[的和与]"

_LOST = re.compile(
    rf"{_OPERAND_BEFORE}(?P<sign>\?+)(?:{_OPERATOR_AND_OPERAND}|{_LONE_LETTER}|{_MARK}|{_CONTINUES})|(?P<bytes>\ufffd)"
)

CONTEXT_CHARS = 15
"""Characters before and behind the lost one that `lost_character` returns."""


def lost_character(text: str) -> str:
    """The text around the first place where a character was lost; empty if there is none."""
    if "?" not in text and "\ufffd" not in text:
        return ""
    if (match := _LOST.search(text)) is None:
        return ""
    start, end = match.span(match.lastgroup or 0)
    return text[max(0, start - CONTEXT_CHARS) : end + CONTEXT_CHARS].strip()


MAX_NAMED = 20
"""Largest number of questions that the sentence names."""


class LostCharacters:
    """Collects the questions in which a character was lost, while the rows are read one by one."""

    def __init__(self) -> None:
        self._n = 0
        self._names: list[str] = []
        self._first = ""

    def look_at(self, name: str, where: str, texts: Iterable[str]) -> None:
        """Note a question if a character of its texts was lost. name: the id that the data give; empty: none."""
        if around := next(filter(None, map(lost_character, texts)), ""):
            self._n += 1
            self._first = self._first or f"{where}, “{visible(around, 60)}”"
            if name and self._n <= MAX_NAMED:
                self._names.append(visible(name, 40))

    def sentence(self, n_all: int) -> str:
        """What a person must know of the questions that were noted; empty if there are none. n_all: of the table."""
        if not self._n:
            return ""
        more = ", …" if self._n > len(self._names) else ""
        names = f" ({', '.join(self._names)}{more})" if self._names else ""
        return (
            f"in {self._n} of {count_noun(n_all, 'question')}{names} a ? stands where a character such as ² was lost, "
            f"the first at {self._first}: the model is asked so. Write the character anew, and save the file in UTF-8"
        )
