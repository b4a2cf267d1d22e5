"""Measures what the project's own containers save beside lists, numpy or sqlite3: memory and CPU for 200,000 questions
× 2.

    python bench/containers.py [--questions 200000]

Each variant is built and used in a process of its own. Memory is the peak of the process minus that of an empty process
with the same imports (MB). CPU is the time to build the container and to look everything up once (seconds). The figures
stand in docs/decisions.md.
"""

from __future__ import annotations

import argparse
import random
import resource
import sqlite3
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from harness.core import codec
from harness.core.packed import Packed
from harness.core.records import Key, Message, Question
from harness.runs.record import KeySet
from harness.scoring.observed import Column

SAMPLES = 2
TEXT = "A train leaves the station at {0} and meets another that left {1} minutes before it. When do they meet? " * 4


def question(number: int) -> Question:
    """A question of the size of a word problem, 400 characters."""
    return Question(
        benchmark="made-up",
        question_id=f"{number:032x}",
        messages=(Message(role="user", content=TEXT.format(number, number % 60)),),
        references=(str(number),),
        kind="number",
        row_digest=f"{number * 7919:032x}",
        prompt_digest=f"{number * 104729:032x}",
    )


def questions(n: int) -> Iterator[Question]:
    return map(question, range(n))


def questions_in_a_list(n: int) -> None:
    held = list(questions(n))
    assert sum(len(row.references) for row in held) == n


def questions_packed(n: int) -> None:
    held = Packed(Question, questions(n))
    assert sum(len(row.references) for row in held) == n


def packed_at_random(n: int) -> None:
    held = Packed(Question, questions(n))
    assert all(held[number].references for number in random.Random(0).sample(range(n), n // 20))


def questions_in_sqlite(n: int) -> None:
    base = sqlite3.connect("")  # in memory as far as the cache goes, then in a temporary file
    base.execute("create table kept (place integer primary key, record blob)")
    base.executemany(
        "insert into kept values (?, ?)", ((number, codec.encode(q)) for number, q in enumerate(questions(n)))
    )
    rows = base.execute("select record from kept order by place")
    assert sum(len(codec.decode(row[0], Question).references) for row in rows) == n


def sqlite_at_random(n: int) -> None:
    base = sqlite3.connect("")
    base.execute("create table kept (place integer primary key, record blob)")
    base.executemany(
        "insert into kept values (?, ?)", ((number, codec.encode(q)) for number, q in enumerate(questions(n)))
    )
    for number in random.Random(0).sample(range(n), n // 20):
        (record,) = base.execute("select record from kept where place = ?", (number,)).fetchone()
        assert codec.decode(record, Question).references


def keys(n: int) -> Iterator[Key]:
    return (Key(f"{number:032x}", index) for number in range(n) for index in range(SAMPLES))


def keys_in_a_set(n: int) -> None:
    held = set(keys(n))
    assert all(key in held for key in keys(n))


def keys_by_question(n: int) -> None:
    held = KeySet(keys(n))
    assert all(key in held for key in keys(n))


def keys_in_sqlite(n: int) -> None:
    base = sqlite3.connect("")
    base.execute("create table keys (question text, number int, primary key (question, number)) without rowid")
    base.executemany("insert into keys values (?, ?)", keys(n))
    for key in keys(n):
        assert base.execute("select 1 from keys where question = ? and number = ?", key).fetchone()


def numbers_in_lists(n: int) -> None:
    columns: list[list[float]] = [[] for _ in range(11)]
    for row in range(n * SAMPLES):
        for column in columns:
            column.append(row * 0.5)
    assert all(np.array(column).sum() > 0 for column in columns)


def numbers_in_arrays(n: int) -> None:
    columns = [array("d") for _ in range(11)]
    for row in range(n * SAMPLES):
        for column in columns:
            column.append(row * 0.5)
    assert all(np.frombuffer(column).sum() > 0 for column in columns)


def numbers_in_columns(n: int) -> None:
    columns = [Column() for _ in range(11)]
    for row in range(n * SAMPLES):
        for column in columns:
            column.put(row, row * 0.5)
    rows = np.arange(n * SAMPLES)
    assert all(column.of(rows).sum() > 0 for column in columns)


def nothing(n: int) -> None:
    del n


VARIANTS: dict[str, tuple[Callable[[int], None], ...]] = {
    "questions: list, Packed, sqlite3": (questions_in_a_list, questions_packed, questions_in_sqlite),
    "the same, and a twentieth looked up at random: Packed, sqlite3": (packed_at_random, sqlite_at_random),
    "keys: set, KeySet, sqlite3": (keys_in_a_set, keys_by_question, keys_in_sqlite),
    "11 numbers a sample: lists, array, Column": (numbers_in_lists, numbers_in_arrays, numbers_in_columns),
}


def measured(name: str, n: int) -> tuple[float, float]:
    """(MB, seconds of CPU) of a variant in a process of its own."""
    argv = [sys.executable, __file__, "--questions", str(n), "--alone", name]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    megabytes, seconds = map(float, done.stdout.split())
    return megabytes, seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=200_000)
    parser.add_argument("--alone")
    given = parser.parse_args()
    if given.alone is not None:
        began = time.process_time()
        globals()[given.alone](given.questions)
        seconds = time.process_time() - began
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, seconds)
        return
    empty, _ = measured("nothing", given.questions)
    for title, variants in VARIANTS.items():
        print(title)
        for variant in variants:
            megabytes, seconds = measured(variant.__name__, given.questions)
            print(f"  {variant.__name__:22} {megabytes - empty:7.1f} MB {seconds:6.2f} s")


if __name__ == "__main__":
    main()
