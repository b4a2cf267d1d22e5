"""Reference answers: the accepted answers in a value of the data, or as typed by a user, and their kind.

The functions raise `ValueError` with the end of a sentence; their caller says whose value it is.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal, NamedTuple

from reasoning_answers.bounds import LAST_LETTER
from reasoning_answers.calls import written_reference
from reasoning_answers.find.reference import stated_in
from reasoning_answers.kinds import kind_of
from reasoning_answers.records import AnswerKind
from reasoning_answers.text import quoted

AnswerForm = Literal["plain", "after_hashes", "last_box", "box_or_plain", "single_item"]
"""Where the answer value contains the reference. plain: the whole value · after_hashes: after the last "####" (GSM8K) ·
last_box: in the last \\boxed{} of the value, which is a solution · box_or_plain: in the last \\boxed{} if there is one,
otherwise the whole value · single_item: the value is a list of exactly one text (OlympiadBench)."""

AskedKind = AnswerKind | Literal["auto"]
"""A kind of answer, or auto: inferred from the form of the reference."""

_LETTER_AND_VALUE = re.compile(r"(?:([A-J])[.．、]|[（(]([A-J])[)）])\s*(\S.*)\Z", re.DOTALL)
"""A letter and the value of its choice, such as "C. 1-i" and "（A）3"; the groups are the letter and the value."""
_BETWEEN_LETTERS = r"(?:and|[和与及と와과및و]|[^\w+*/=^<>|\\$:-])*"
_ONLY_LETTERS = re.compile(rf"{_BETWEEN_LETTERS}(?:[A-J]{_BETWEEN_LETTERS})+")
"""The rest of a list of letters, such as "A、C" and "(A) C"; no half of it is an answer."""

_BESIDE_LETTER = " \t\n()（）[].．、"
"""Characters that may surround the letter of a choice."""


class AcceptedAnswers(NamedTuple):
    """The accepted answers to a question, as strings, and their kind."""

    accepted: tuple[str, ...]
    kind: AnswerKind


def read_reference(
    value: Any,
    kind: AskedKind = "auto",
    form: AnswerForm | Literal["solution"] = "plain",
    structured: bool = True,
) -> AcceptedAnswers:
    """The reference in a data cell, or as typed by a user.

    kind: the kind of answer; "auto": inferred from the reference's characters. form: where in the cell the reference
    is; "solution": the answer that the text states if it is a worked solution, otherwise the whole text. structured:
    whether the cell may be a list or mapping of answers. Raises `ValueError`.
    """
    if kind == "calls":
        return AcceptedAnswers((written_reference(value),), kind)
    accepted = _accepted_answers(value, kind, form, structured)
    if kind != "auto":
        return AcceptedAnswers(accepted, kind)
    if isinstance(value, list | dict) and form != "single_item":
        return AcceptedAnswers(accepted, "multiple")
    return AcceptedAnswers(accepted, kind_of(accepted[0]))


def _accepted_answers(value: Any, kind: AskedKind, form: str, structured: bool) -> tuple[str, ...]:
    """The accepted answers in a cell, as strings; the parameters are those of `read_reference`.

    A list or a mapping of answers becomes one text with commas between them. With the kind "integer" any other answer
    is rejected; with "auto" a value after its choice letter ("C. 1-i") yields three answers: the value, the letter, and
    both; only letters ("A、C") are one. Raises `ValueError`.
    """
    if form == "single_item":
        if not (isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)):
            raise ValueError(f"must be a list with exactly one string, found {quoted(repr(value))}")
        value = value[0]
    if isinstance(value, list | dict):
        if not structured:
            raise ValueError(
                f"must be a single answer, found {quoted(repr(value))}. Write it as a string, or list its column "
                "under `metadata` and use it in your own grader"
            )
        items = list(value.values()) if isinstance(value, dict) else value
        if not items:
            raise ValueError("contains no answer")
        return (", ".join(_answer_text(item, kind) for item in items),)
    text = _answer_text(value, kind)
    if form == "solution":
        text = stated_in(text) or text
    elif form == "after_hashes":
        if "####" not in text:
            raise ValueError('has no "####" before the answer')
        text = text.rpartition("####")[2].strip()
    elif form == "last_box" or (form == "box_or_plain" and "boxed" in text):
        from reasoning_answers.boxed import boxes_from_end

        box = next(boxes_from_end(text), None)
        if box is None:
            raise ValueError(r"has no closed \boxed{}")
        text = box.content
    text = text.strip()
    if not text:
        raise ValueError("is empty")
    if kind == "integer":
        return (_integer(text),)
    if kind == "auto" and (parts := _LETTER_AND_VALUE.match(text)) is not None:
        letters = dict.fromkeys(re.findall("[A-J]", text)) if _ONLY_LETTERS.fullmatch(parts[3]) else ()
        return (", ".join(letters),) if len(letters) > 1 else (parts[3], parts[1] or parts[2], text)
    return (_plain_letter(text) if kind in ("auto", "choice") else text,)


def _plain_letter(text: str) -> str:
    """The letter in a text such as "（B）" or "C．"; any other text unchanged."""
    letter = text.strip(_BESIDE_LETTER)
    return letter if len(letter) == 1 and "A" <= letter <= LAST_LETTER else text


def _answer_text(value: Any, kind: AskedKind) -> str:
    """The reference answer in a cell, as text. Raises `ValueError` if the cell contains none."""
    if value is None:
        raise ValueError("is null")
    # A bool is an int to `isinstance`: true would pass as the answer "True".
    if isinstance(value, bool):
        raise ValueError(f"must be an answer, found {str(value).lower()}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"must be a number, found {value}")
    # Tools store an integer column with missing values as floats: 3.0 means 3. Below 2**53 no digit is lost.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, float) and kind == "integer":
        raise ValueError(f"must be an integer, found {value}")
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("is empty")
        return value
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(f"must be a string or a number, found {quoted(repr(value))}")


def _integer(text: str) -> str:
    """The digits of an integer, which may have commas, blanks, a dollar or a degree sign. Raises `ValueError`."""
    plain = re.sub(r"[,\s$]|\\!|\^\\circ|\^\{\\circ\}", "", text)
    if not re.fullmatch(r"[+-]?\d{1,1000}(\.0*)?", plain):
        raise ValueError(f"must be an integer, found {quoted(text)}")
    return str(int(plain.partition(".")[0]))
