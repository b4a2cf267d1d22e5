r"""Values with the names of the blanks of a Chinese question: 宽是\boxed{5}，长是\boxed{8} for 长（　），宽（　）.

The label of a blank is the words before it, up to a mark or to another blank. A name states a blank if it is the label
of this blank and of no other: the label without its verb (是, 有), its beginning before 的 or a verb, or its end behind
的. The clauses with the values end the reply, or are the box, or hold one box each:

    each name states a blank, and each blank has one    the values in the order of the blanks: (1) 45米；(2) 15米
    no name, and each value has the unit of its blank   the values without their units: 2时，30分 for （　）时（　）分
    a row of numbers with the blanks filled             the values of the blanks: 2，4，6 for 2，（　），6
    some names belong to blanks, and not all in order   undecided: the values may be those of other blanks
    all else                                            read as beside a question without blanks

A name belongs to a blank if it has a character that the label of this blank has, and no other label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from harness.answers.boxed import has_box
from harness.answers.grammar.units import unit_of
from harness.answers.words import without_text_commands
from harness.grading.compare.named_quantities import OF_FIGURE
from harness.grading.find.asked import BOX, OWN_UNIT
from harness.grading.find.box_clause import is_denied
from harness.grading.find.chinese import CLASSIFIER, LEAD, limits
from harness.grading.find.extract import UNSTATED, Extraction, Method
from harness.grading.find.surroundings import is_left_standing, is_supposed

_MAX_CHARS = 400
"""Longest text whose clauses are read, in characters."""

_MAX_QUESTION_CHARS = 2_000
"""Longest question whose blanks are read, in characters."""

_BLANK = re.compile(
    r"[(（【]\s*[)）】](?!\s*[里内中])|_{2,}|(?:\\_\s?){2,}|\\underline\{(?:\\q?quad|[\s~]|\\hspace\{[^{}]{1,9}\})*\}"
)
_MARK = re.compile(r"[，,、；;：:。？?！!…\n]")
_JOINT = re.compile(r"[，,；;。！？\n]|[、和与]")
_LAYOUT = re.compile(r"[$~\s]|\*\*|\\[()\[\],;:! ]|\\q?quad(?![A-Za-z])")
_SPACE = re.compile(r"(?<![\d}])\s+|\s+(?![\d\\−-])")
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.．])\s+")
_NUMBER = r"[-−]?(?:(?:\d{1,9}又?)?(?:\\[dt]?frac(?:\{\d{1,9}\}|\d){2}|\d{1,9}/\d{1,9})|\d{1,12}(?:\.\d{1,12})?)"
_ITEM = re.compile(
    rf"(?P<name>(?:[\u3400-\u9fffA-Za-z0-9（()）、]{{0,40}}[\u3400-\u9fffA-Za-z）)])??[:：=＝]?)(?P<value>{_NUMBER})"
    r"(?P<unit>[\u3400-\u9fffA-Za-z°%℃²³/]{0,8}(?:\^\{?[23]\}?)?)[.]?"
)
_BEFORE_NAME = re.compile(rf"(?:答案?[:：])?(?:{LEAD})*(?:[（(]\d{{1,2}}[)）]|\d{{1,2}}[.、](?!\d)|[①-⑨])?")
_VERB = re.compile(r"(?:等于|[是为有了共=＝:：])+\Z")
_BEHIND_NAME = re.compile(r"的|[是为有占做用得]|[分行]得")
_COUNTED = re.compile(CLASSIFIER)
_HAN = re.compile(r"[\u3400-\u9fff]")
_STOP = re.compile(r"[。！？\n]")
_NAMES = re.compile(r"和|与|及|、")
_ROW = re.compile(rf"(?:(?:{_NUMBER}|{_BLANK.pattern})[,，、]){{2,40}}(?:{_NUMBER}|{_BLANK.pattern})")
_OF_ROW = re.compile(rf"{_NUMBER}|{_BLANK.pattern}")


class _Blanks(NamedTuple):
    """The blanks of a question: the label of each, the words behind each, and the row of numbers that holds all."""

    labels: tuple[str, ...]
    behind: tuple[str, ...]
    row: tuple[str, ...]


class _Filling(NamedTuple):
    """A value of a clause, with the name before it and the unit behind it; each may be empty."""

    name: str
    value: str
    unit: str


def with_blanks_filled(
    extraction: Extraction, question: str, text: str, lo: int, hi: int, parts: int, *, bare: bool
) -> Extraction:
    """Return the answer with its values in the order of the question's blanks; an unstated one if the names before the
    values leave open which value is whose; else the answer as it is.

    parts: values of the reference. bare: the reference has no units.
    """
    if extraction.opened_by or extraction.behind or len(question) > _MAX_QUESTION_CHARS:
        return extraction
    blanks = _blanks_of(question)
    if len(blanks.labels) != parts or parts < 2:
        return extraction
    if blanks.row and (values := _values_of_row(blanks.row, extraction.answer)):
        return extraction._replace(answer=_with_numbers(values), before=())
    spans = _clauses(extraction, text, lo, hi, parts)
    items = [_item(clause, question) for clause in spans.texts]
    if None in items or len(items) != parts:
        return extraction
    answer = _in_order([item for item in items if item is not None], blanks, bare=bare)
    if answer is None:
        return extraction
    if not answer or not spans.stand:
        return extraction._replace(method=UNSTATED)
    # No sentence stated the answer, and the clauses do.
    method: Method = "line" if extraction.method == UNSTATED else extraction.method
    return extraction._replace(answer=answer, start=min(spans.start, extraction.start), method=method, before=())


def without_layout(text: str) -> str:
    """Return a text without the signs of formulas and without spaces but those between two numbers."""
    return _SPACE.sub("", _LAYOUT.sub(" ", without_text_commands(text))).strip()


@lru_cache(maxsize=1_024)
def _blanks_of(question: str) -> _Blanks:
    """Return the blanks of a question."""
    blanks = list(_BLANK.finditer(question))
    labels, behind = [], []
    for index, blank in enumerate(blanks):
        before = question[blanks[index - 1].end() if index else 0 : blank.start()]
        words = "".join(_MARK.split(before)[-1].split())
        # In （　）时（　）分 a unit belongs to the blank before it, and is no label.
        if index and _MARK.search(before) is None:
            words = OWN_UNIT.sub("", words, count=1) if OWN_UNIT.match(words) else words
        labels.append(_core(words))
        following = question[blank.end() : blanks[index + 1].start() if index + 1 < len(blanks) else None]
        behind.append("".join(_MARK.split(following)[0].split()))
    rows = [row.group() for row in _ROW.finditer("".join(_BLANK.sub("()", question).split()))]
    row = next((row for row in rows if row.count("()") == len(blanks)), "")
    return _Blanks(tuple(labels), tuple(behind), tuple(_OF_ROW.findall(row)))


def _values_of_row(row: Sequence[str], answer: str) -> list[str]:
    """Return the values of the blanks of a row of numbers in an answer that is the whole row; else nothing."""
    cells = re.split("[,，、]", without_layout(answer).rstrip("。."))
    if len(cells) != len(row):
        return []
    if any(
        re.fullmatch(_NUMBER, cell) is None or mark not in ("()", cell) for mark, cell in zip(row, cells, strict=True)
    ):
        return []
    return [cell for mark, cell in zip(row, cells, strict=True) if mark == "()"]


class _Clauses(NamedTuple):
    """Clauses with a value each, and where they begin. stand: no word before them limits them."""

    texts: tuple[str, ...]
    start: int
    stand: bool


def _clauses(extraction: Extraction, text: str, lo: int, hi: int, count: int) -> _Clauses:
    """Return the last `count` clauses of an answer: of the one box, of the boxes, or at the end of text[lo:hi]."""
    none = _Clauses((), 0, stand=False)
    is_stated = extraction.method in ("box", "phrase")
    if is_stated and len(spans := _spans(extraction.answer, 0, len(extraction.answer))) == count:
        texts = tuple(extraction.answer[slice(*span)] for span in spans)
        before = _spans(text, max(lo, extraction.start - _MAX_CHARS), extraction.start)
        if before and "分别" in (head := text[slice(*before[-1])]):
            # The names of the values in one box stand before it: 长和宽分别是\boxed{8，5}.
            texts = (f"{head.rpartition('分别')[0]}分别是{texts[0]}", *texts[1:])
        return _Clauses(texts, extraction.start, stand=True)
    boxed = extraction.method in ("box", "boxes")
    if extraction.method == "formula" or (has_box(text, lo, hi) and not (boxed or is_stated)):
        return none
    # The text behind a box or a phrase is read already. Other values end the text: words behind may take them back.
    mark = _JOINT.search(text, extraction.end, hi) if boxed or is_stated else None
    end = hi if mark is None else mark.start()
    spans = _spans(text, max(lo, end - _MAX_CHARS), end)[-count:]
    if len(spans) < count:
        return none
    texts = tuple(text[slice(*span)] for span in spans)
    if any(has_box(clause, 0, len(clause)) != boxed for clause in texts):
        return none
    begin = spans[0][0]
    stand = not is_supposed(text, begin) and not is_denied(text, begin, lo)
    if not boxed and _HAN.search(_STOP.split(text[lo:begin])[-1]):
        stand = stand and is_left_standing(text, begin, "")
    return _Clauses(texts, begin, stand)


def _spans(text: str, lo: int, hi: int) -> list[tuple[int, int]]:
    """Return the clauses of text[lo:hi]; 和 and 、 end one only behind a number: 宽和长分别是1、2."""
    spans: list[tuple[int, int]] = []
    begin = lo
    for joint in (*_JOINT.finditer(text, lo, hi), None):
        end = hi if joint is None else joint.start()
        if joint is not None and joint.group() in "、和与" and not any(map(str.isdigit, text[begin:end])):
            continue
        if without_layout(text[begin:end]).strip("*-•."):
            spans.append((begin, end))
        begin = end if joint is None else joint.end()
    return spans


def _item(clause: str, question: str) -> _Filling | None:
    """Return the name, the value and the unit of a clause; None if it has anything else."""
    plain = without_layout(BOX.sub(r" \1 ", _BULLET.sub("", clause, count=1)))
    begin = _BEFORE_NAME.match(plain)
    item = _ITEM.fullmatch(plain, 0 if begin is None else begin.end()) or _ITEM.fullmatch(plain)
    if item is None:
        return None
    unit = item["unit"]
    if unit and (limits(unit) or not (OWN_UNIT.fullmatch(unit) or unit_of(unit) or _counts(unit, question))):
        return None
    # What is counted is the name of a value without another one: 24名男生.
    counted = unit[1:] if OWN_UNIT.fullmatch(unit) is None and _counts(unit, question) else ""
    return _Filling(_core(item["name"]) or counted, item["value"], unit)


def _counts(unit: str, question: str) -> bool:
    """Whether a unit is a classifier, and behind it a word of the question: 个零件."""
    return _COUNTED.match(unit) is not None and unit[1:] in question


def _core(words: str) -> str:
    """Return a name without the words that lead to it and without its verb."""
    begin = _BEFORE_NAME.match(words)
    return _VERB.sub("", words[begin.end() :] if begin is not None else words)


def _in_order(items: Sequence[_Filling], blanks: _Blanks, *, bare: bool) -> str | None:
    """Return the values in the order of the blanks; empty if names leave it open; None if none states a blank."""
    names = [item.name for item in items]
    if "分别" in names[0] and not any(names[1:]):
        names = [_core(name) for name in _NAMES.split(names[0].partition("分别")[0])]
        if len(names) != len(items):
            return ""
    fits = [_blank_of(name, blanks.labels) if name else None for name in names]
    if not any(names) or set(fits) == set(range(len(items))):
        row = [items[fits.index(index)] if any(names) else item for index, item in enumerate(items)]
        if any(_differ(item.unit, behind) for item, behind in zip(row, blanks.behind, strict=True)):
            return ""
        is_bare = bare and all(item.unit in ("", behind) for item, behind in zip(row, blanks.behind, strict=True))
        is_filled = any(names) or (is_bare and all(item.unit for item in row))
        return _with_numbers([item.value + ("" if is_bare else item.unit) for item in row]) if is_filled else None
    # Equal values are right in any order.
    if len({item.value for item in items}) == 1:
        return None
    belong = [
        {fit} if fit is not None else _belongs_to(name, blanks.labels)
        for name, fit in zip(names, fits, strict=True)
        if name
    ]
    if not any(belong):
        return None
    in_order = len(belong) == len(items) and all(blank == {index} for index, blank in enumerate(belong))
    return None if in_order else ""


def _blank_of(name: str, labels: Sequence[str]) -> int | None:
    """Return the blank whose label a name is; None if there is none, or more than one."""
    plain = OF_FIGURE.sub("", name)
    # A whole label comes first: 除数 is one, and the end of 被除数.
    for fits in (
        [index for index, label in enumerate(labels) if label == name],
        [
            index
            for index, label in enumerate(labels)
            if label.endswith(f"的{name}")
            or label == plain
            or (label.startswith(name) and _BEHIND_NAME.match(label, len(name)) is not None)
        ],
    ):
        if fits:
            return fits[0] if len(fits) == 1 else None
    return None


def _belongs_to(name: str, labels: Sequence[str]) -> set[int]:
    """Return the blanks of whose labels a name has a character that no other label has."""
    rest = ("".join((*labels[:index], *labels[index + 1 :])) for index in range(len(labels)))
    own = [set(label) - set(words) for label, words in zip(labels, rest, strict=True)]
    return {index for index, signs in enumerate(own) if signs & set(name)}


def _differ(unit: str, behind: str) -> bool:
    """Whether the unit of a value is another one than that behind its blank: 厘米 for （　）米."""
    measures = unit_of(unit), unit_of(behind)
    return None not in measures and measures[0] != measures[1]


def _with_numbers(values: Sequence[str]) -> str:
    return "；".join(f"({number}) {value}" for number, value in enumerate(values, 1))
