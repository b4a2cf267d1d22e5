"""A multiple-choice file of one's own, asked by flags alone: options in one column or in several."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.core.records import Question
from harness.options.run import RunOptions
from harness.preparing.run_questions import questions_of
from harness.progress.watching import Watcher
from tests.budget import examples

Write = Callable[..., Path]


def asked(path: Path, *columns: str, **more: Any) -> list[Question]:
    options = RunOptions.of(data=str(path), choices_key=columns, **more)
    return list(questions_of(options).sets[0].questions)


COLORS = ["red", "green", "blue"]


def test_options_in_columns_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "quiz.csv"
    path.write_text("question,A,B,C,D,answer\nGrass?,red,green,blue,,B\nSky?,red,green,blue,grey,C\n")
    three, four = asked(path, "A", "B", "C", "D")
    assert three.choices == ("red", "green", "blue")
    assert four.choices == ("red", "green", "blue", "grey")
    assert (three.references, four.references) == (("B",), ("C",))


@pytest.mark.parametrize(
    ("row", "columns", "sentence"),
    [
        ({"options": ["one"], "answer": "A"}, "options", "expected 2 to 26 options, found 1$"),
        (
            {"A": "", "B": "", "answer": "7"},
            "A B",
            "found 0; move the questions without options to a separate file",
        ),
        ({"options": "red, green", "answer": "A"}, "options", "must be a list of 2 to 26 options"),
        ({"options": COLORS, "answer": "D"}, "options", "must identify one of the 3 options"),
        ({"options": COLORS, "answer": "A"}, "choices", "has no column 'choices' for the options"),
        ({"A": "red", "B": "green", "answer": "A"}, "A B C", "has no column 'C' for the options"),
        ({"A": "red", "B": ["x"], "answer": "A"}, "A B", "must contain an option's text"),
        ({"options": "[1, 2", "answer": "A"}, "options", "quiz.jsonl:1, the column 'options'"),
    ],
)
def test_what_is_no_choice_is_one_sentence(write_rows: Write, row: dict[str, Any], columns: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        asked(write_rows([{"question": "Grass?", **row}], "quiz.jsonl"), *columns.split())


NUMERALS = ["red", "green", "blue", "0", "1", "2", "3"]


def meant(index: int, options: list[str]) -> dict[str, int | None]:
    """The option that a number means, in each way to read it; None: it cannot be read so."""
    as_text = options.index(str(index)) if str(index) in options else None
    counted = {first: index - first if first <= index < len(options) + first else None for first in (0, 1)}
    return {"from 0": counted[0], "from 1": counted[1], "own text": as_text}


def test_numbered_answers_are_read_where_the_rows_leave_one_reading_and_never_guessed(write_rows: Write) -> None:
    n_refused = 0
    for number in range(examples(300)):
        chance = random.Random(seed := random.getrandbits(32))
        rows = [
            (chance.sample(NUMERALS, 4), chance.randrange(4) + chance.choice([0, 0, 1]))
            for _ in range(chance.randint(1, 4))
        ]
        path = write_rows(
            [{"question": f"{n}?", "options": o, "answer": i} for n, (o, i) in enumerate(rows)], f"{number}.jsonl"
        )
        read = [meant(index, options) for options, index in rows]
        fitting = [[row[way] for row in read] for way in read[0] if all(row[way] is not None for row in read)]
        from_0 = [row["from 0"] for row in read]
        if None not in from_0 and all(letters == from_0 for letters in fitting):
            assert [question.references[0] for question in asked(path, "options")] == ["ABCD"[at] for at in from_0], (
                seed
            )
        else:
            n_refused += 1
            with pytest.raises(UsageError, match=r"an index from 0 or|must identify one of the 4 options"):
                asked(path, "options")
    assert n_refused


def test_the_flag_goes_with_data_and_without_a_card(write_rows: Write) -> None:
    with pytest.raises(UsageError, match="choices_key: it only applies to a file of questions: use `data`"):
        RunOptions.of(benchmarks="demo", choices_key="options")
    path = write_rows([{"question": "Grass?", "options": COLORS, "answer": "A"}])
    with pytest.raises(UsageError, match="are only for data without a card"):
        asked(path, "options", benchmarks="demo")


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"A": "x", "B": "y", "option_c": "z"}, ["A, B, option_c"]),
        ({"choices": ["x", "y"]}, ["choices"]),
        ({"a": "x", "level": "3"}, []),  # one letter alone is no set of options
        ({"subject": "algebra", "year": 2024}, []),
    ],
)
def test_columns_that_look_like_options_are_named_where_they_are_left_out(
    write_rows: Write, columns: dict[str, object], named: list[str]
) -> None:
    warnings: list[str] = []
    heard = Watcher()
    heard.warn = lambda sentence: warnings.append(str(sentence))  # type: ignore[method-assign]
    path = write_rows([{"question": "q?", "answer": "A", **columns}])
    questions_of(RunOptions.of(data=str(path)), heard)
    assert [warning.partition("columns ")[2].partition(" are not shown")[0] for warning in warnings] == named
