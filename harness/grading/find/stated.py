r"""All values that a text states: in a box, behind "=", "is" or a colon, up to the end of the clause.

The list shows where a reply first had the right answer. It takes in every value, also "= 7" in the middle of a
calculation; the answer of the reply is found by `extract`. The time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from harness.answers.boxed import boxes_from_end
from harness.grading.bounds import MAX_STATED_CHARS, MAX_STATEMENTS, TAIL_CHARS
from harness.grading.find.extract import NUMBER

_OVERLAP_CHARS = 200
"""Choices are looked for in windows of the text that overlap by this many characters, so that no statement is cut."""

_VALUE = re.compile(
    rf"""(?x)
    (?: [=≈:：] | \b(?:is|are|be|equals|gives?|get) \b | \#{{4}} | 答案 | [是为] )
    (?: [ \t*_$:：是为] | \\[(\[] ){{0,8}}+
    (?P<value> [^=≈\n;$，。*]{{1,{MAX_STATED_CHARS}}}? )
    (?= [ \t]{{0,4}} (?: [=≈\n;$，。*] | \\[)\]] | [.,!?] (?: \s | \Z ) | \Z ) )
    """
)
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")


class StatedValue(NamedTuple):
    """A value, and where its statement ends, in characters of the text."""

    answer: str
    end: int


def statements(text: str, kind: str, last: str = "Z") -> list[StatedValue]:
    """Return the stated values in the order of the text, each where it is stated first; at most `MAX_STATEMENTS`.

    last: the last option letter of a choice.
    """
    stated = [StatedValue(box.content, box.outer_end) for box in boxes_from_end(text)]
    stated += _choices(text, last) if kind == "choice" else _values(text)
    first: dict[str, int] = {}
    # Sorted by the end of the statement: a reply has stated a value only when the statement is complete.
    for value in sorted(stated, key=lambda statement: statement.end):
        first.setdefault(value.answer, value.end)
    return [StatedValue(answer, end) for answer, end in first.items() if len(answer) <= MAX_STATED_CHARS][
        :MAX_STATEMENTS
    ]


def _values(text: str) -> Iterator[StatedValue]:
    """Yield the values behind "=", "is" and the like: a clause of at most two words, or the number that begins a longer
    clause.
    """
    for match in _VALUE.finditer(text):
        answer, end = match["value"], match.end("value")
        if len(_WORD.findall(answer)) > 2:  # a sentence; "is 204 because …" says 204 all the same
            number = NUMBER.match(answer)
            if number is None:
                continue
            answer, end = number.group(), match.start("value") + number.end()
        yield StatedValue(answer.strip(), end)


def _choices(text: str, last: str) -> Iterator[StatedValue]:
    """Yield the option letters that a text states in words ("the answer is B"). last: the last option's letter."""
    from harness.grading.find.choice import choices_stated  # its patterns take long to compile

    # In windows, for the patterns of choices are too slow for a whole reasoning trace at once.
    for lo in range(0, len(text), TAIL_CHARS - _OVERLAP_CHARS):
        for stated in choices_stated(text[lo : lo + TAIL_CHARS], last):
            yield StatedValue(stated.answer, lo + stated.end)
