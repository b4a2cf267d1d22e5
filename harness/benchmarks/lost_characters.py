"""Finds what a spreadsheet changed in a table of questions: lost characters, and fractions that became dates.

A `?` may stand where a character was lost, as Excel writes x²-x in GBK as `x?-x`.

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
from collections.abc import Iterable, Iterator

from harness.answers.spreadsheets import EXAMPLES, may_be_changed
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


def words_on_replies(replies: Iterable[tuple[str, str]]) -> str:
    """A sentence on the replies in which a character may have been lost; empty if there are none.

    replies: the place and the text of each, of a table in an encoding without ² and ✓. A reply is a value, so its end
    counts as a mark behind it (30m?), and a reply of nothing but ? as a lost ✓.
    """
    n_replies = n_lost = 0
    first = ""
    for where, text in replies:
        n_replies += 1
        bare = text.strip()
        if lost_character(f"{bare}，") or (bare and not bare.strip("?")):
            n_lost += 1
            first = first or f"{visible(where, 80)}, “{visible(bare, 60)}”"
    if not n_lost:
        return ""
    of_all = count_noun(n_replies, "reply", "replies")
    return (
        f"in {n_lost} of {of_all} a ? may stand where a character such as ² or ✓ was lost, the first at {first}: they "
        "are graded so. Write the characters anew, and save the file in UTF-8"
    )


MAX_NAMED = 20
"""Largest number of questions that the sentence names."""


class _NamedQuestions:
    """Questions that a sentence names, while the rows are read one by one: their number, ids and the first place."""

    def __init__(self) -> None:
        self.n = 0
        self.first = ""
        self._ids: list[str] = []

    def add(self, name: str, where: str, text: str) -> None:
        """Add a question. name: the id that the data give; empty: none. text: what is to be seen there."""
        self.n += 1
        self.first = self.first or f"{where}, “{visible(text, 60)}”"
        if name and self.n <= MAX_NAMED:
            self._ids.append(visible(name, 40))

    def in_words(self, n_all: int) -> str:
        """The number of the questions and their ids, in words. n_all: the number of questions of the table."""
        more = ", …" if self.n > len(self._ids) else ""
        return f"{self.n} of {count_noun(n_all, 'question')}" + (
            f" ({', '.join(self._ids)}{more})" if self._ids else ""
        )


class Damage:
    """Collects the questions that a spreadsheet may have changed, while the rows are read one by one."""

    def __init__(self) -> None:
        self._lost = _NamedQuestions()
        self._dated = _NamedQuestions()
        self._has_numbers = False

    def look_at(self, name: str, where: str, texts: Iterable[str], answer: str) -> None:
        """Note a question if a character of its texts was lost, or if its answer may have been a fraction or a ratio.

        name: the id that the data give; empty: none.
        """
        if around := next(filter(None, map(lost_character, texts)), ""):
            self._lost.add(name, where, around)
        if may_be_changed(answer):
            self._dated.add(name, where, answer)
        elif re.search(r"\d", answer):
            self._has_numbers = True

    def sentences(self, n_all: int) -> Iterator[str]:
        """Yield what a person must know of the questions that were noted. n_all: the number of questions."""
        if self._lost.n:
            yield (
                f"in {self._lost.in_words(n_all)} a ? stands where a character such as ² was lost, "
                f"the first at {self._lost.first}: the model is asked so. Write the character anew, and save the file "
                "in UTF-8"
            )
        if self._dated.n and self._has_numbers:  # beside days and times only, a day is meant
            yield (
                f"the answer of {self._dated.in_words(n_all)} is a day or a time, the first at {self._dated.first}, "
                f"and others have numbers: {EXAMPLES}. If no day or time is meant, set the column's format to text, "
                "and write the answer anew"
            )
