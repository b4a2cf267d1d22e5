"""What a judge's reply says: its verdict or points, read from the content alone.

A statement is a whole line, or a JSON object that begins on a line of its own: never words somewhere in a sentence
("INCORRECT" contains "CORRECT"), never the reasoning. The last statement counts; if it is incomplete, or outside its
limits, an earlier one does not stand in for it. Of letters, points and objects, two that differ are no ruling; of
labelled verdicts the last is taken, as it has always been.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.answers.reasoning import final_part
from harness.benchmarks.judge_forms import JudgeForm, Reading, criteria_of

MAX_REPLY_CHARS = 20_000
"""The ruling is looked for in this many characters at the end of a judge's reply."""

MAX_OBJECTS = 100
"""Largest number of lines of a reply that are tried as the beginning of a JSON object, from the end."""

MAX_NUMBER = 1e9
"""A larger number in a JSON object is none."""

_DECORATION = str.maketrans("", "", "*_`#>")
"""Markdown's emphasis, code, headings and quotations."""

_OF = re.compile(r"([-+]?\d{1,9}(?:\.\d{1,9})?)\s*(?:out of|/|of)\s*(\d{1,9}(?:\.\d{1,9})?)")
"""Points of a maximum: `6 out of 7`, `6.5/10`."""

_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)

_BACKSLASH = re.compile(r'\\(?:[\\"/]|u[0-9a-fA-F]{4}|[bfnrt](?![A-Za-z]))|\\')
"""An escape of JSON, or a stray backslash: `\\frac` and `\\beta` are LaTeX, no control character and a word."""

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%?")
"""A confidence that is written as text."""

_NONE = ("", "none", "null", "n/a")
"""The words of a judge for an answer that was not given."""


class JudgeRuling(NamedTuple):
    """A judge's ruling on one answer. points: (given, maximum), given below 0 where a rubric takes points off; then
    `verdict` says whether all are given. answer: the final answer as the judge extracted it. confidence: as the judged
    reply states it, a fraction.
    """

    verdict: Reading
    points: tuple[float, float] | None = None
    answer: str | None = None
    confidence: float | None = None

    @property
    def share(self) -> float:
        """The points given, of all; without points 1 if correct, else 0."""
        return float(self.verdict == "correct") if self.points is None else self.points[0] / self.points[1]


def ruling_of(form: JudgeForm, reply: str | None, rubric: str = "") -> JudgeRuling | None:
    """The ruling of a judge's reply; None without a complete one. rubric: the row's own."""
    part = final_part(reply) if reply else None
    if part is None or reply is None:
        return None
    start = max(part[0], part[1] - MAX_REPLY_CHARS)
    text = reply[start : part[1]]
    if start > part[0]:
        text = text.partition("\n")[2]  # the beginning of its first line is cut off
    match form.reply:
        case "line":
            return _of_line(form, text.split("\n"))
        case "letter":
            return _agreed(_of_letters(form, text))
        case "points":
            return _agreed(_of_points(form, text))
        case _:
            return _agreed(_of_objects(form, text, rubric))


def _agreed(statements: Iterator[JudgeRuling | None]) -> JudgeRuling | None:
    """The last of the statements, which come in reverse order; None if it is none or another one differs."""
    last = next(statements, None)
    return None if last is None or any(each is not None and each != last for each in statements) else last


def _word(text: str) -> str:
    return text.translate(_DECORATION).strip().removesuffix(".").casefold()


def _of_line(form: JudgeForm, lines: list[str]) -> JudgeRuling | None:
    """The verdict of the last line with the form's label. Behind a heading the verdict is all that follows."""
    for index, line in reversed([*enumerate(lines)]):
        # Chinese models write the full-width colon.
        label, colon, value = line.translate(_DECORATION).replace("：", ":", 1).partition(":")
        if label.strip().casefold() != form.label.casefold():
            continue
        if line.lstrip().startswith("#") and not value.strip():
            colon, value = ":", "\n".join(lines[index + 1 :])
        verdict = {_word(word): verdict for word, verdict in form.reads.items()}.get(_word(value))
        return JudgeRuling(verdict) if colon and verdict else None
    return None


def _of_letters(form: JudgeForm, text: str) -> Iterator[JudgeRuling | None]:
    """The lines that are a letter (or its word, or both: `A: CORRECT`) alone. The last line must be one."""
    reads = {_word(word): verdict for word, verdict in form.reads.items()}
    for number, line in enumerate(reversed(text.strip().split("\n"))):
        verdicts = {reads.get(_word(part)) for part in line.strip(" ()[]").replace("：", ":").split(":")}
        verdict = verdicts.pop() if len(verdicts) == 1 else None
        if verdict is not None or number == 0:
            yield None if verdict is None else JudgeRuling(verdict)


def _of_points(form: JudgeForm, text: str) -> Iterator[JudgeRuling | None]:
    """The lines that state points, in reverse order."""
    tag = re.compile(rf"[\s*`]*<{re.escape(form.label)}>(.*?)</{re.escape(form.label)}>[\s*`]*\Z", re.IGNORECASE)
    for line in reversed(text.split("\n")):
        label, colon, value = line.translate(_DECORATION).replace("：", ":", 1).partition(":")
        if tagged := tag.match(line):
            value = tagged[1]
        elif not colon or label.strip().casefold() != form.label.casefold():
            continue
        stated = _OF.fullmatch(value.strip().removesuffix("."))
        is_whole = stated is not None and float(stated[2]) == form.points
        yield _with_points(form, float(stated[1])) if stated is not None and is_whole else None


def _with_points(form: JudgeForm, given: float) -> JudgeRuling | None:
    """The ruling with these points; None if the form does not allow them."""
    assert form.points is not None
    if not 0 <= given <= form.points or (form.allowed and given not in form.allowed):
        return None
    return JudgeRuling("correct" if given == form.points else "wrong", (given, form.points))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises `ValueError` for a key that stands there twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands there twice")
    return dict(pairs)


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=lambda _: None, strict=False)


def _of_objects(form: JudgeForm, text: str, rubric: str) -> Iterator[JudgeRuling | None]:
    """The JSON objects of a reply, in reverse order."""
    # As it stands, and for an object that is no JSON, with its stray backslashes doubled; lines begin alike in both.
    texts = text, _BACKSLASH.sub(lambda match: match[0] if len(match[0]) > 1 else r"\\", text)
    objects, which, end = [], 0, 0
    for begins in [*zip(*map(_OBJECT.finditer, texts), strict=True)][-MAX_OBJECTS:]:
        if begins[which].start() < end:
            continue  # inside the object before
        for number, begin in enumerate(begins):
            try:
                value, end = _DECODER.raw_decode(texts[number], begin.end() - 1)
                which = number
                objects.append(_of_object(form, value, rubric))
                break
            except (ValueError, RecursionError):
                continue
        else:
            objects.append(None)
    return reversed(objects)


def _of_object(form: JudgeForm, value: dict[str, Any], rubric: str) -> JudgeRuling | None:
    """The ruling of a JSON object; None if a field is missing or holds another thing than the form says."""
    if form.reply == "criteria":
        return _of_criteria(value.get("met"), rubric)
    ruling, answer, confidence = None, None, None
    for name, holds in form.fields.items():
        if name not in value:
            return None
        cell = value[name]
        is_number = isinstance(cell, int | float) and not isinstance(cell, bool)
        number = float(cell) if is_number and abs(cell) < MAX_NUMBER else math.nan
        is_none = cell is None or (isinstance(cell, str) and _word(cell) in _NONE)
        if holds in ("answer", "confidence") and is_none:
            continue
        if holds == "verdict" and isinstance(cell, str) and (verdict := form.reads.get(cell.strip().casefold())):
            ruling = JudgeRuling(verdict)
        elif holds == "points" and not math.isnan(number):
            ruling = _with_points(form, number)
        elif holds == "answer" and (is_number or isinstance(cell, str)):
            answer = str(cell).strip()
        elif holds == "confidence":
            stated = _PERCENT.fullmatch(cell.strip()) if isinstance(cell, str) else None
            number = float(stated[1]) if stated else number
            if not 0 <= number <= 100:
                return None
            confidence = number / 100
        elif holds == "answer":
            return None
    if "answer" in form.fields.values() and answer is None:
        confidence = None  # such as the 100 that a judge states where nothing was extracted
    return None if ruling is None else ruling._replace(answer=answer, confidence=confidence)


def _of_criteria(met: Any, rubric: str) -> JudgeRuling | None:
    """The points of the criteria that are met, of all positive ones: below 0 if faults outweigh them."""
    criteria = criteria_of(rubric)
    if not isinstance(met, list) or len(met) != len(criteria) or not all(isinstance(each, bool) for each in met):
        return None
    given = math.fsum(each.points for each, is_met in zip(criteria, met, strict=True) if is_met)
    most = math.fsum(max(0.0, each.points) for each in criteria)
    return JudgeRuling("correct" if given >= most else "wrong", (given, most))
