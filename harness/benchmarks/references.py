"""From the cell of a source row to the reference answers and the kind of question that they make.

Pure: values in, values out. Raises `ValueError` with a sentence that `questions` completes with the place.
"""

from __future__ import annotations

import math
import re
from typing import Any

from harness.benchmarks.card import AnswerForm
from harness.core.inert import quoted
from harness.core.records import AnswerKind

_LETTER = re.compile(r"\s*[（(\[]?\s*([A-J])\s*[)）\].．、]?\s*\Z")
_LETTER_AND_VALUE = re.compile(r"(?:([A-J])[.．、]|[（(]([A-J])[)）])\s*(\S.*)\Z", re.DOTALL)
_WORDS = re.compile(r"[^\W\d_][^\d\\$^_{}=+*/<>]*\Z")


def references(value: Any, form: AnswerForm, kind: AnswerKind | str, structured: bool) -> tuple[str, ...]:
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
        text = last_box(text)
    text = text.strip()
    if not text:
        raise ValueError("is empty")
    if kind == "integer":
        return (_integer(text),)
    named = _LETTER_AND_VALUE.match(text) if kind == "auto" else None
    return (named[3], named[1] or named[2], text) if named else (text,)


def kind_of(value: Any, reference: str) -> AnswerKind:
    """The kind that a reference makes by itself, for sets that mix kinds."""
    if isinstance(value, list | dict):
        return "multiple"
    if letter(reference):
        return "choice"
    if len(reference) > 1 and _WORDS.match(reference):
        return "text"
    return "expression"


def letter(text: str) -> str | None:
    """The choice letter that a text is, whatever bracket or dot it wears: "（B）", "C．", "A"."""
    found = _LETTER.match(text)
    return found[1] if found else None


def last_box(text: str) -> str:
    """The content of the last closed `\\boxed{}` (or `\\fbox{}`), by a linear scan. Raises `ValueError` without one."""
    for opener in reversed(list(re.finditer(r"\\f?boxed?\s*\{|\\fbox\s*\{", text))[-64:]):
        depth = 1
        place = opener.end()
        while place < len(text):
            char = text[place]
            if char == "\\":
                place += 1
            elif char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
                if depth == 0:
                    return text[opener.end() : place].strip()
            place += 1
    raise ValueError(r"has no closed \boxed{}")


def _text(value: Any, kind: AnswerKind | str) -> str:
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
