r"""Answers to the numbered parts of a question: （1）\boxed{5} and （2）\boxed{x=3} on two lines; (1)8\quad(2)-3; 1. 8.

Beside a reference of several parts, the parts are its values if they are numbered 1, 2, 3 and so on, as many as values:

    a box for each part      each number begins a line, and one box stands between it and the next number
    values without words     the numbers begin a line, and all else up to the end of the text or of the box is values
"""

from __future__ import annotations

import re
from itertools import islice

from harness.answers.boxed import boxes_from_end, has_box
from harness.grading.find.asked import OWN_UNIT
from harness.grading.find.beside_box import beside_box
from harness.grading.find.box_clause import is_denied
from harness.grading.find.boxes_in_sentence import states_value
from harness.grading.find.extract import UNSTATED, Extraction
from harness.grading.find.filled_blanks import without_layout
from harness.grading.find.several import parts_of
from harness.grading.find.surroundings import is_supposed

_MAX_CHARS = 600
"""The end of a reply in which numbered values are looked for, in characters."""

_SIGNS = "①②③④⑤⑥⑦⑧⑨"
_NUMBER = r"(?:[（(]([1-9])[)）]|([①-⑨])|第([一二三四五六])(?:小题|[问题]|个?空)[:：]?)"
_LINE = rf"(?:\A|(?<=\n))[ \t]*(?:解[:：]\s*)?(?:[-*•#]+[ \t]+|\*\*)?(?:{_NUMBER}|([1-9])(?:[.．](?!\d)|、))"
_BEGINS_LINE = re.compile(_LINE)
_BEGINS_PART = re.compile(rf"{_LINE}|(?<![+\-*/^=×÷·({{（\[\\])(?:{_NUMBER}|(?<=[;；\n ])([1-9])(?:[.．](?!\d)|、))")
_RELATION = re.compile(r"[=<>≤≥≠]|\\(?:[lg]eq?|neq?|approx)")
_SPACE = re.compile(r"\\q?quad(?![A-Za-z])|\\[,;:! ]")
_LEAD = re.compile(r"(?:综上(?:所述)?|答案?|故|所以|因此)?[:：，,]?")
_VALUE = re.compile(
    r"[-−]?(?:[A-Za-z0-9√π]|\\(?:[dt]?frac|sqrt|pi)(?![A-Za-z]))[A-Za-z0-9√π.²³^{}_+\-−×·*/÷=<>≤≥≠()\\]{0,40}"
)
_LAST = re.compile(r"[A-Za-z0-9π.²³})]\Z")


def with_numbered_parts(extraction: Extraction, text: str, lo: int, hi: int, parts: int) -> Extraction:
    """Return the answer with the values of all numbered parts of text[lo:hi]; an unstated one if their words may limit
    the values; else the answer as it is.

    parts: values of the reference.
    """
    if not 1 < parts <= len(_SIGNS) or extraction.opened_by or extraction.behind:
        return extraction
    is_boxed = extraction.method in ("box", "boxes")
    if is_boxed and (joined := _of_boxes(extraction, text, lo, hi, parts)) is not None:
        return joined
    if is_boxed or not has_box(text, lo, hi):
        begin = 0 if is_boxed else max(lo, hi - _MAX_CHARS)
        values = _values(extraction.answer if is_boxed else text[begin:hi], parts, whole=is_boxed)
        if values is not None:
            row, start = values
            if not row or (not is_boxed and is_supposed(text, begin + start)):
                return extraction._replace(method=UNSTATED)
            span = (extraction.start, extraction.end) if is_boxed else (begin + start, hi)
            method = extraction.method if is_boxed else "line"
            return extraction._replace(answer=row, start=span[0], end=span[1], method=method, before=())
    return extraction


def _of_boxes(extraction: Extraction, text: str, lo: int, hi: int, parts: int) -> Extraction | None:
    """Return the answer of boxes of which each is the only one of its numbered part; None for other boxes."""
    boxes = list(islice(boxes_from_end(text, lo, hi), parts + 1))[::-1]
    if len(boxes) != parts or boxes[-1].end != extraction.end or any(parts_of(box.content) > 1 for box in boxes):
        return None
    values = []
    for number, (end, box) in enumerate(zip((lo, *(box.outer_end for box in boxes)), boxes, strict=False), 1):
        marks = list(_BEGINS_LINE.finditer(text[end : box.outer_start]))
        if [_number_of(mark) for mark in marks] != [number]:
            return None
        clause = end + marks[0].end()
        head = text[clause : box.outer_start]
        value = beside_box(text, box, lo, hi)
        clause += max((match.end() for match in re.finditer(r"[，,。；;！？\n]", head)), default=0)
        if value is None or not states_value(text, clause, box.outer_start, lo) or is_denied(text, box.outer_start, lo):
            return extraction._replace(start=boxes[0].start, method=UNSTATED)
        values.append(value)
    if _BEGINS_LINE.search(text[boxes[-1].outer_end : hi]):
        return None
    return extraction._replace(answer=_with_numbers(values), start=boxes[0].start, method="boxes", before=())


def _values(text: str, parts: int, *, whole: bool) -> tuple[str, int] | None:
    """Return the values of the last numbered parts of a text as a list, and where the first part begins; None if the
    parts are others, or have words.

    whole: nothing may stand before the first part.
    """
    text = _SPACE.sub(lambda space: " " * len(space.group()), text)
    marks = list(_BEGINS_PART.finditer(text))[-parts:]
    numbers = [_number_of(mark) for mark in marks]
    if sorted(numbers) != list(range(1, parts + 1)):
        return None
    line = text[: marks[0].start()] if whole else text[: marks[0].start()].rpartition("\n")[2]
    if _LEAD.fullmatch(without_layout(line)) is None:
        return None
    row = [""] * parts
    for number, mark, end in zip(numbers, marks, [*(mark.start() for mark in marks[1:]), len(text)], strict=True):
        value = without_layout(text[mark.end() : end].rstrip(" \n$*,，;；、。").lstrip(" :：*"))
        unit = next((match for match in OWN_UNIT.finditer(value) if match.end() == len(value)), None)
        plain = value if unit is None or unit.group().isascii() else value[: unit.start()]
        if _VALUE.fullmatch(plain) is None or _LAST.search(plain) is None:
            return None
        row[number - 1] = value
    # Numbers in another order may be those of the reference's parts, or of other ones.
    return _with_numbers(row) if numbers == sorted(numbers) else "", marks[0].start()


def _number_of(mark: re.Match[str]) -> int:
    """Return the number of a part."""
    sign = next(group for group in mark.groups() if group)
    return (
        int(sign)
        if sign.isdigit() and sign.isascii()
        else 1 + (_SIGNS.find(sign) if sign in _SIGNS else "一二三四五六".index(sign))
    )


def _with_numbers(values: list[str]) -> str:
    """Return values as a list, with their numbers, which state their order, unless one is an equation."""
    is_equation = any(_RELATION.search(value) for value in values)
    return "；".join(values if is_equation else (f"({number}) {value}" for number, value in enumerate(values, 1)))
