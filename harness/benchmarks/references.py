"""From the cell of a source row to the reference answers and the kind of question that they make.

Pure: values in, values out. Raises `ValueError` with a sentence that `questions` completes with the place.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from harness.answers.boxed import bare, boxes_from_end
from harness.answers.letters import LAST_LETTER, letter_of
from harness.answers.words import is_words
from harness.core.inert import quoted
from harness.core.records import AnswerKind

if TYPE_CHECKING:
    from harness.benchmarks.card import AnswerForm, CardKind

_LETTER_AND_VALUE = re.compile(r"(?:([A-J])[.．、]|[（(]([A-J])[)）])\s*(\S.*)\Z", re.DOTALL)
_BESIDE_LETTER = " \t\n()（）[].．、"
_WORDS = re.compile(r"[^\W\d_][^\d\\$^_{}=+*/<>]*\Z")


_PLAIN = re.compile(
    r"(?P<integer>\s*[-+]?\d+\s*)|(?P<choice>[A-J])|(?P<number>[0-9]{1,9}\.[0-9]{1,9})"
    r"|(?P<expression>-?[0-9]{1,9}/[1-9][0-9]{0,8})"
)
"""References whose kind needs no grammar, which takes longer to import than a file of them takes to read."""
_MAX_CHOICE_CHARS = 12
"""A reference of this length or more is words, also when it begins like an option: "A) true B) false"."""


class Reference(NamedTuple):
    """What counts as right, each as text, and the kind of answer that it is."""

    accepted: tuple[str, ...]
    kind: AnswerKind


def read_reference(
    value: Any, kind: CardKind = "auto", form: AnswerForm = "plain", structured: bool = True
) -> Reference:
    """The reference in a cell, or as somebody types it, and its kind: `kind`, or what the reference itself tells."""
    accepted = references(value, form, kind, structured)
    if kind != "auto":
        return Reference(accepted, kind)
    if isinstance(value, list | dict) and form != "single_item":
        return Reference(accepted, "multiple")
    return Reference(accepted, kind_of(accepted[0]))


def kind_of(reference: str) -> AnswerKind:
    """The kind as which `reference` is compared, by its form: integer, choice, text, multiple, number or expression."""
    reference = bare(reference)
    if plain := _PLAIN.fullmatch(reference):
        return cast("AnswerKind", plain.lastgroup)
    from harness.answers.grammar.literals import Unreadable
    from harness.answers.grammar.parse import parse

    if len(reference) < _MAX_CHOICE_CHARS and letter_of(reference, LAST_LETTER) is not None:
        return "choice"
    try:
        node = parse(reference)
    except (Unreadable, RecursionError):
        return "text" if is_words(reference) else "expression"
    if node.op == "text" and is_words(reference):
        return "text"
    return "multiple" if node.op == "list" else "number" if node.op == "num" else "expression"


def references(value: Any, form: AnswerForm, kind: CardKind, structured: bool) -> tuple[str, ...]:
    """The reference answers in a cell, as text. Several answers of one question are one reference, by commas.

    With `kind` "auto", a value under its choice letter ("C. 1-i") is right as the value and as the letter.

    `kind` "integer" refuses what is no integer; `structured` admits lists and mappings of answers.
    """
    if form == "single_item":
        if not (isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)):
            raise ValueError(f"must be a list of exactly one text, found {quoted(repr(value))}")
        value = value[0]
    if isinstance(value, list | dict):
        if not structured:
            what = "a list" if isinstance(value, list) else "an object"
            raise ValueError(f"must be one answer, found {what}: {quoted(repr(value))}")
        items = list(value.values()) if isinstance(value, dict) else value
        if not items:
            raise ValueError("holds no answer")
        return (", ".join(_text(item, kind) for item in items),)
    text = _text(value, kind)
    if form == "after_hashes":
        if "####" not in text:
            raise ValueError('has no "####" before its answer')
        text = text.rpartition("####")[2].strip()
    elif form == "last_box" or (form == "box_or_plain" and "boxed" in text):
        box = next(boxes_from_end(text), None)
        if box is None:
            raise ValueError(r"has no closed \boxed{}")
        text = box.content
    text = text.strip()
    if not text:
        raise ValueError("is empty")
    if kind == "integer":
        return (_integer(text),)
    if kind == "auto" and (named := _LETTER_AND_VALUE.match(text)) is not None:
        return named[3], named[1] or named[2], text
    return (_plain_letter(text) if kind in ("auto", "choice") else text,)


def form_of(value: Any, reference: str) -> AnswerKind:
    """The form of a reference whose kind no card states, as a set's identity counts it.

    It is frozen: what a reference is graded as (`read_reference`) may improve with the grader, and a run that was begun
    before must still be resumed.
    """
    if isinstance(value, list | dict):
        return "multiple"
    if _plain_letter(reference) in tuple("ABCDEFGHIJ"):
        return "choice"
    if len(reference) > 1 and _WORDS.match(reference):
        return "text"
    return "expression"


def _plain_letter(text: str) -> str:
    """The letter that a text is, out of its bracket or before its dot: "（B）", "C．"; any other text as it is."""
    letter = text.strip(_BESIDE_LETTER)
    return letter if len(letter) == 1 and "A" <= letter <= LAST_LETTER else text


def _text(value: Any, kind: CardKind) -> str:
    if value is None:
        raise ValueError("is null")
    if isinstance(value, bool):
        raise ValueError(f"must be an answer, found {str(value).lower()}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"must be a number, found {value}")
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
    raise ValueError(f"must be text or a number, found {quoted(repr(value))}")


def _integer(text: str) -> str:
    plain = re.sub(r"[,\s$]|\\!|\^\\circ|\^\{\\circ\}", "", text)
    if not re.fullmatch(r"[+-]?\d{1,1000}(\.0*)?", plain):
        raise ValueError(f"must be an integer, found {quoted(text)}")
    return str(int(plain.partition(".")[0]))
