r"""Answers that are compared as written, since they are not numbers: dates, times of day, chemical formulas,
sequences of brackets.
"""

from __future__ import annotations

import ast
import re

from reasoning_answers.words import without_layout, without_text_commands

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]*\.?"
_DATE = re.compile(
    r"(?i)\s*(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4}|\d{4}\s*年\s*\d{1,2}\s*月\s*\d{1,2}\s*日"
    rf"|(?:{_MONTH}\s*\d{{1,2}}|\d{{1,2}}(?:st|nd|rd|th)?(?:\s+of)?\s*{_MONTH})(?:st|nd|rd|th)?,?\s+\d{{4}})\s*"
)
"""A date: 2024-05-01, 01/05/2024, 2024年5月1日, May 1, 2024."""

_TIME = re.compile(
    r"(?i)(\d{1,2})(?=[:h]|[ap]|\.\d\d(?:h|uhr)|uhr)(?:(?:[:h]|(?<=1[3-9])\.|(?<=2[0-3])\.)(\d\d)(?::(\d\d))?)?"
    r"(?:([ap])\.?m\.?|h|uhr)?"
)
"""A time of day without blanks, 3:30p.m., 15:30 or 15.30h."""

_FORMULA = re.compile(r"(?:[A-Z][a-z]?\d*|\([A-Za-z\d]+\)\d*){1,20}(?:\^?\d*[+-])?")
"""A chemical formula without layout: CO2, Fe^3+."""

_COUNTED = re.compile(r"\d|[+-]\Z")
"""A number of atoms or a charge, which turns letters into a formula."""

_LAYOUT = re.compile(r"\\ce(?![A-Za-z])|[\s{}_]")
_ARROW = re.compile(r"\s*(?:→|->|⟶|\\(?:long)?rightarrow(?![a-z])|\\to(?![a-z]))\s*")
_ITEM = re.compile(r"\w{1,12}")
_MAX_LITERAL_CHARS = 2_000
_NO_LITERAL = re.compile(r"(?i)\\|\d(?:and|else|for|if|in|is|not|or)|\b[bru]{1,2}(?:''|\"\")")
"""Matches text that Python warns of as it reads a literal, and u'', which may be a derivative."""

_SIGNS = re.compile(r"[\s!-/:-@\[\]^_`{|}~]+")
"""A text of nothing but ASCII punctuation."""


def same_dates(reference: str, answer: str) -> bool | None:
    """Compare dates, which are not differences or quotients; None if a side is not a date, or could be another one, as
    05/06/2024 beside 2024-06-05.
    """
    dates = [_DATE.fullmatch(without_text_commands(text)) for text in (reference, answer)]
    first, second = (_days(date) if date is not None else [] for date in dates)
    if not first or not second or (first != second and {*first} & {*second} and len(first + second) > 2):
        return None
    return first == second


def _days(date: re.Match[str]) -> list[tuple[int, int, int]]:
    """Return the days, as (year, month, day), that a match of `_DATE` may mean."""
    numbers = [int(number) for number in re.findall(r"\d+", date.group())]
    if month := re.search("[a-z]{3}", re.sub(r"\d(?:st|nd|rd|th)", "", date.group().lower())):
        return [(numbers[1], _MONTHS.index(month.group()) + 1, numbers[0])]
    if numbers[0] > 31:
        return [(numbers[0], numbers[1], numbers[2])]
    either = [(numbers[2], numbers[0], numbers[1]), (numbers[2], numbers[1], numbers[0])]
    return [day for day in either if day[1] <= len(_MONTHS)]


def is_date(text: str) -> bool:
    """Whether a text is a date."""
    return _DATE.fullmatch(without_text_commands(text)) is not None


def are_times(reference: str, answer: str) -> bool:
    """Whether two answers are times of day: one is marked a.m., p.m. or h, or padded by 0, or one alone has seconds."""
    times = [_TIME.fullmatch(_bare(text)) for text in (reference, answer)]
    first, second = times
    if first is None or second is None or re.search(r"(?i)\.\d\dh", first.group()):  # 15.30 h may be a duration
        return False
    has_hour = re.search("[hH]", first.group() + second.group()) and (first[2] or second[2])
    is_padded = first[2] and second[2] and re.match(r"0\d", first[1])  # 00:05, which is no ratio
    return bool(first[4] or second[4] or has_hour or is_padded or bool(first[3]) != bool(second[3]))


def same_times(reference: str, answer: str) -> bool | None:
    """Compare times of day (`are_times`): 3:30 p.m. and 15:30 are equal. None if only a mark is missing: 3:30 and 3:30
    p.m.
    """
    first, second = (_TIME.fullmatch(_bare(text)) for text in (reference, answer))
    assert first is not None
    assert second is not None
    seconds = [_seconds(time) for time in (first, second)]
    unmarked = [int(time[1]) for time in (first, second) if not time[4]]
    if len(unmarked) == 1 and unmarked[0] in range(1, 13):  # may be before or after noon
        return None if (seconds[0] - seconds[1]) % 43_200 == 0 else False
    return seconds[0] == seconds[1]


def _seconds(time: re.Match[str]) -> int:
    """Return the seconds since midnight of a match of `_TIME`."""
    hour, minute, second = (int(part or 0) for part in time.group(1, 2, 3))
    if time[4]:
        hour = hour % 12 + (12 if time[4] in "pP" else 0)
    return hour * 3_600 + minute * 60 + second


def same_formulas(reference: str, answer: str) -> bool | None:
    r"""Compare chemical formulas: CO2, `\text{CO}_2` and `\ce{CO2}` are one. None if a side is not a formula, or if
    both have only letters.
    """
    formulas = [_bare(text) for text in (reference, answer)]
    if not all(map(_FORMULA.fullmatch, formulas)) or not any(map(_COUNTED.search, formulas)):
        return None
    return formulas[0].replace("^", "") == formulas[1].replace("^", "")


def same_literals(reference: str, answer: str) -> bool | None:
    """Compare texts, lists, tuples and mappings as Python writes them, with texts in any quotation marks; None if a
    side is none, or has no text.
    """
    for text in (reference, answer):
        if not set("'\"") & {*text} or len(text) > _MAX_LITERAL_CHARS or _NO_LITERAL.search(text):
            return None
    try:
        first, second = (ast.literal_eval(text.strip()) for text in (reference, answer))
        # Equal values that are written with other characters may differ: 1 and True.
        return first == second and (sorted(repr(first)) == sorted(repr(second)) or None)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def same_orders(reference: str, answer: str) -> bool | None:
    """Compare sequences, 2→4→1 and `2, 4, 1`; None if the reference has no arrows, or a side is no sequence."""
    first, second = (_ARROW.sub(" → ", without_text_commands(text)).strip(" $.") for text in (reference, answer))
    if "→" not in first:
        return None
    items, given = (
        first.split(" → "),
        (second.split(" → ") if "→" in second else re.split(r"\s*[,，、;]\s*|\s+", second)),
    )
    return items == given if len(items) > 2 < len(given) and all(map(_ITEM.fullmatch, (*items, *given))) else None


def are_signs(reference: str, answer: str) -> bool:
    """Whether both sides are nothing but punctuation, such as a sequence of brackets, which must match exactly."""
    return _SIGNS.fullmatch(reference) is not None and _SIGNS.fullmatch(answer) is not None


def _bare(text: str) -> str:
    """Return a text without layout, blanks and the braces and underscores of subscripts."""
    return _LAYOUT.sub("", without_layout(without_text_commands(text)))
