"""Reading a table with a row for each pupil and a column for each question, as spreadsheets of a class have it.

The benchmark's questions say which columns hold replies. All other columns are labels, such as the pupil's name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.benchmarks import usual_columns
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError, option
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.records import CHECKSUM_ID_CHARS, Question

_HEADINGS = ("{}", "第{}题", "题{}", "题目{}", "Q{}", "q{}")
"""The forms of a question's heading, in the order in which they are tried: its name, or words around its number. Words
that say more, such as 第1题得分, are none: such a column may hold points.
"""

MAX_EMPTY_ROWS = 5
"""Largest number of rows without any reply that a warning names."""


def question_columns(row: Row, questions: Sequence[Question], by: str | None) -> dict[str, str]:
    """Column → id of its question, in the order of the table; empty if no column is named as a question.

    A column is a question's if its name is exactly the question's id. In a benchmark without ids of its own it is the
    question's number from 1 on, and all questions must have a column, or nothing shows that the numbers are these.
    Numbers may stand in words (`_HEADINGS`), the same in all columns. Every other column is a label if its name differs
    from these names, in any words, in more than its digits: beside 1 … 50, a column 51 is no label, and no 第3题.

    by: the column that splits the file. Raises `UsageError` for a column that may be a question's or a label.
    """
    id_of = _names(questions, row)
    columns = {name: id_of[name] for name in row.value if name in id_of}
    if not columns:
        return {}
    its_questions = f"{count_noun(len(questions), 'question')} of {visible(questions[0].benchmark, 80)}"
    if by in columns:
        raise UsageError(
            f"{row.where} has the column {visible(by, 60)!r} for one of the {its_questions}, so it is no label to "
            "split the file by: rename the column, or the question",
            field="by",
        )
    shapes = {_shape(name) for names in _spellings(questions) for name in names}
    for name in row.value:
        if name not in columns and any(sign.isdigit() for sign in name) and _shape(name) in shapes:
            first, last = next(iter(id_of)), next(reversed(id_of))
            raise UsageError(
                f"{row.where} has the column {visible(name, 60)!r}, which is named as none of the {its_questions} "
                f"({visible(first, 60)} to {visible(last, 60)}): correct its name, or remove the column"
            )
    if len(columns) < len(questions) and not _have_ids(questions):
        missing = next(name for name in id_of if name not in columns)
        raise UsageError(
            f"{row.where} has columns for {len(columns)} of the {its_questions}, and none named {missing}: a table of "
            "questions without ids needs a column for each of them, numbered in their order. Add the columns, or a "
            "column of ids to the table of questions"
        )
    return columns


def cells(rows: Iterable[Row], columns: Mapping[str, str]) -> Iterator[tuple[str, str, Row, str]]:
    """(column, id of its question, row with this column alone, name of the row) for each reply, row by row.

    The name is empty unless this is the first cell of a row without any reply. Raises `UsageError`.
    """
    for row in rows:
        has_reply = any(str(row.value.get(column) or "").strip() for column in columns)
        empty_row = "" if has_reply else _row_name(row, columns)
        for column, question_id in columns.items():
            if column not in row.value:
                raise UsageError(f"{row.where} has no column {visible(column, 60)!r}, which earlier rows have")
            where = f"{row.where}, column {visible(column, 60)}"
            yield column, question_id, Row(where, {column: row.value[column]}), empty_row
            empty_row = ""


def _row_name(row: Row, columns: Mapping[str, str]) -> str:
    """The place of a row, and its first label, such as the pupil's name."""
    label = next((visible(str(value), 40) for name, value in row.value.items() if name not in columns and value), "")
    return f"{row.where} ({label})" if label else row.where


def words_on_empty_rows(names: Sequence[str]) -> str:
    """The warning of rows without any reply, by their names; empty if there are none."""
    if not names:
        return ""
    more = f" and {len(names) - MAX_EMPTY_ROWS} more" if len(names) > MAX_EMPTY_ROWS else ""
    return (
        f"{count_noun(len(names), 'row')} without any reply: {', '.join(names[:MAX_EMPTY_ROWS])}{more}. All questions "
        "count as wrong there: remove the row of a pupil who was absent, or of a mean"
    )


def refuse(row: Row, questions: Sequence[Question]) -> None:
    """Raise `UsageError` with advice for a row that seems to be of a class, in a form that cannot be read."""
    id_of = _names(questions, row)
    named = [visible(name, 60) for name in row.value if name in id_of or _has_number_of(questions, name)]
    if len(named) > 1:
        if not questions:
            advice = f"name the table of these questions with {option('benchmark')}"
        elif id_of.keys().isdisjoint(row.value):
            first_id = visible(next(iter(id_of)), 60)
            advice = f"if they hold replies, name these columns by the ids of the questions, such as {first_id!r}"
        else:
            advice = "leave out the names of other columns, as each of these holds replies"
        raise UsageError(
            f"{row.where} has no column of the response, but columns that are named as questions ({named[0]}, "
            f"{named[1]} …): {advice}"
        )
    id_column = usual_columns.find(usual_columns.ID_COLUMNS, row.value) or next(iter(row.value), "")
    if len(row.value) > 2 and str(row.value[id_column]) in id_of:
        others = [visible(name, 60) for name in row.value if name != id_column]
        raise UsageError(
            f"{row.where} has no column of the response. If {others[0]}, {others[1]} … are pupils, turn the table: a "
            "row for each pupil and a column for each question (in Excel: copy, then Paste Special > Transpose). If a "
            f"column holds the replies, name it with {option('response_key')}"
        )


def _names(questions: Sequence[Question], row: Row) -> dict[str, str]:
    """Heading → id of its question, in the first form of which the row has a column; without such a column, names."""
    spellings = _spellings(questions)
    return next((names for names in spellings if not names.keys().isdisjoint(row.value)), spellings[0])


def _spellings(questions: Sequence[Question]) -> list[dict[str, str]]:
    """Heading → id of its question, for each of `_HEADINGS`; only the first one unless all names are numbers.

    A question's name is its id, or its number from 1 on if the questions have no ids.
    """
    named = _have_ids(questions)
    id_of = {q.question_id if named else str(number): q.question_id for number, q in enumerate(questions, 1)}
    headings = _HEADINGS if all(map(str.isdecimal, id_of)) else _HEADINGS[:1]
    return [{heading.format(name): id_ for name, id_ in id_of.items()} for heading in headings]


def _have_ids(questions: Sequence[Question]) -> bool:
    """Whether the ids come from the data; otherwise each is a checksum of its row."""
    return not all(question.row_digest.startswith(question.question_id[:CHECKSUM_ID_CHARS]) for question in questions)


def _shape(name: str) -> str:
    """The name without its digits, and without the differences of spelling that a person overlooks."""
    return re.sub(r"[\d\s]", "", unicodedata.normalize("NFKC", name)).casefold()


def _has_number_of(questions: Sequence[Question], name: str) -> bool:
    """Whether the name has one number, and that is a question's name, or stands in the words of a heading."""
    numbers = re.findall(r"\d+", name)
    is_heading = _shape(name) in {_shape(heading.format("")) for heading in _HEADINGS}
    return len(numbers) == 1 and (is_heading or numbers[0] in _spellings(questions)[0])
