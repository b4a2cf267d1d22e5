r"""A sentence with a box for each part of the answer: 商是\boxed{7}，余数是\boxed{1}; \boxed{3}小时\boxed{20}分.

Beside a reference of several parts the last box alone is no answer if its sentence has other boxes. The sentence is an
answer only if each box holds one value and nothing but these forms stands in it, from the clause of the first box on:

    the reference joins its parts: 3小时20分, 7余1, 3:2   its signs, and units     \boxed{3}小时\boxed{20}分
    the reference names its parts: 鸡5只，兔3只           the names of a row       鸡有\boxed{5}只，兔有\boxed{3}只
    a list or a point                                     a unit, a comma, a name  长\boxed{12}厘米，宽\boxed{24}厘米
                                                          signs of a formula       3:4=\boxed{9}:12=15:\boxed{20}

A list needs as many boxes as parts. Behind names its order counts, and another order stays open, since the names may
have another order, too. Lines before that hold a name and a box belong to the sentence. Every other
sentence with several boxes states no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice, pairwise, permutations

from harness.answers.boxed import Box, boxes_from_end
from harness.answers.words import without_text_commands
from harness.grading.find.beside_box import NUMBER, beside_box
from harness.grading.find.box_clause import is_denied
from harness.grading.find.chinese import LEAD, limits
from harness.grading.find.extract import UNSTATED, Extraction
from harness.grading.find.several import parts_of

_MAX_CHARS = 400
"""Longest sentence whose boxes are joined, in characters."""

_MAX_ORDERED = 3
"""Largest number of values with names, all orders of which are tried."""

_STOPS = ("。", "！", "？", "\n", ". ")
_VALUE = re.compile(rf"(?:{NUMBER.pattern})(?:\\?%|\\?°|[\u3400-\u9fff]{{1,6}})?")
_LAYOUT = re.compile(r"[$~\s]|\\[()\[\],;:! ]|\\q?quad(?![A-Za-z])")
_MARK = re.compile(r"[，,。；;！？\n]")
_LEAD = re.compile(rf"(?:.*[：:])?(?:{LEAD})*", re.DOTALL)
_ROUGH = re.compile(r"[≈~～<>≤≥≠＜＞]|\\(?:approx|sim|leq?|geq?|neq?|lt|gt)(?![a-z])")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_FORMULA = re.compile(r"[\d:：∶=＝.+−×÷-]*[:：∶=＝][\d:：∶=＝.+−×÷-]*")
_LINE = re.compile(r"[^\n。！？\\]{0,30}\\boxed\{[^{}\n]{1,30}\}[$\u3400-\u9fffA-Za-z°%℃²³\s]{0,8}[,，;；。]?")
_LINE_ENDS = re.compile(r"[,，;；。]?\s*\n\s*")
_COMMAS = ",，;；、和"
_NAMED = re.compile(
    r"(?P<unit>[\u3400-\u9fffA-Za-z°%℃²³]{0,6})(?P<sign>[,，;；、和]|余|…+|\\[cl]?dots(?:\\[cl]?dots)?)"
    r"(?P<name>[\u3400-\u9fffA-Za-z0-9_₀-₉①-⑳∠△（）()]{0,12}[=＝:：]?)"
)
"""A unit, a comma and the name of the next value, which may stand between two boxes of a list."""


def with_boxes_of_sentence(
    extraction: Extraction, text: str, lo: int, hi: int, parts: int, is_row: Callable[[str], bool], *, alone: bool
) -> Extraction:
    """Return the answer that the boxes of the last sentence are; an unstated one if that sentence has another form.

    parts: values of the reference if it is a list, else 1. is_row: whether a text joins or names its values as the
    reference may do. alone: whether the last box may be the answer, and the others those of steps. An answer of one
    box, or of boxes with other than single values, stays as it is.
    """
    if extraction.method not in ("box", "boxes") or extraction.opened_by:
        return extraction
    begin = max(lo, *(1 + text.rfind(stop, lo, extraction.start) for stop in _STOPS))
    begin = begin if extraction.end - begin <= _MAX_CHARS else extraction.start
    boxes = [box for box in islice(boxes_from_end(text, begin, hi), _MAX_CHARS) if box.end <= extraction.end]
    if 0 < len(boxes) < parts:
        begin = _with_lines_before(text, begin, max(lo, extraction.end - _MAX_CHARS), parts - len(boxes))
        boxes += islice(boxes_from_end(text, begin, boxes[-1].outer_start), _MAX_CHARS)
    boxes.reverse()
    if len(boxes) < 2 or boxes[0].start == extraction.start or 1 < parts <= parts_of(boxes[-1].content):
        return extraction
    if any(_VALUE.fullmatch(without_text_commands(box.content).strip()) is None for box in boxes):
        return extraction
    whole = extraction._replace(start=boxes[0].start)
    clause = boxes[0].outer_start - len(_MARK.split(text[begin : boxes[0].outer_start])[-1])
    head = text[clause : boxes[0].outer_start]
    name = _LEAD.sub("", head, count=1)
    stands = states_value(text, clause, boxes[0].outer_start, lo)
    values = [beside_box(text, box, lo, hi) for box in boxes]
    answers = _as_list(text, boxes, values) if len(boxes) == parts else ()
    if not answers:
        opened = "".join(
            f"{text[left.outer_end : right.outer_start]}{right.content}" for left, right in pairwise(boxes)
        )
        rows = (f"{name}{boxes[0].content}{opened}", f"{boxes[0].content}{opened}")
        unit = (values[-1] or "").removeprefix(boxes[-1].content)
        plain = (without_text_commands(_LAYOUT.sub("", f"{row}{unit}")) for row in rows)
        answers = tuple(islice(filter(is_row, plain), 1))
    if alone and not answers:
        return extraction
    if not (stands and answers):
        return whole._replace(method=UNSTATED)
    return whole._replace(answer=answers[0], method="boxes", before=answers[1:])


def states_value(text: str, clause: int, end: int, lo: int) -> bool:
    """Whether no word of text[clause:end], the clause before a value, limits or denies this value."""
    head = text[clause:end]
    return not (_ROUGH.search(head) or limits("".join(_HAN.findall(head))) or is_denied(text, clause, lo))


def _with_lines_before(text: str, begin: int, lo: int, count: int) -> int:
    """Return where at most `count` lines before text[begin] begin that name a value each: `商：\\boxed{7}`."""
    for _ in range(count):
        line_end = len(text[lo:begin].rstrip()) + lo
        line = max(lo, 1 + text.rfind("\n", lo, line_end))
        if _LINE.fullmatch(text, line, line_end) is None:
            break
        begin = line
    return begin


def _as_list(text: str, boxes: Sequence[Box], values: Sequence[str | None]) -> tuple[str, ...]:
    """Return the values of boxes as a list, and then in all other orders if names stand before them; nothing if other
    words stand between the boxes.
    """
    between = (text[a.outer_end : b.outer_start] for a, b in pairwise(boxes))
    gaps = [_LAYOUT.sub("", without_text_commands(_LINE_ENDS.sub("，", gap))) for gap in between]
    items = [_LAYOUT.sub("", without_text_commands(value)) for value in values if value is not None]
    if len(items) < len(boxes):
        return ()
    in_formula = all(_FORMULA.fullmatch(gap) for gap in gaps)
    named = [] if in_formula else [_NAMED.fullmatch(gap) for gap in gaps]
    if len(items) > _MAX_ORDERED or any(gap is None or limits(gap["name"]) for gap in named):
        return ()
    if named and all(gap is not None and not gap["name"] and gap["sign"] in _COMMAS for gap in named):
        return ("；".join(items),)
    # Numbers before the values, as in (1) 12；(2) 24, make their order count.
    orders = [items] if in_formula else permutations(items)
    return tuple("；".join(f"({n}) {item}" for n, item in enumerate(row, 1)) for row in orders)
