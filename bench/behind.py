"""Counts the verdicts on replies with text behind their box: right ones, twins that state another value, take-backs.

    python -m bench.behind [--shared FOLDER]

The replies are those of `behind_answers`, `behind_wordings` and `taken_back` in `tests/grading`. FOLDER, where it has
olympiadbench.jsonl, adds its answers in a box with all of a published solution behind the box. Exit code 1 if a reply
that takes its answer back or states another value is correct.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from harness.grading.processes.pool import Pool, outcomes, question_on
from tests.grading import behind_answers, behind_wordings, taken_back

say = sys.stdout.write


def counts(replies: Iterable[tuple[str, str]]) -> Counter[str]:
    """Count the outcomes of (reference, reply)."""
    asked = [(question_on(reference, name=str(number)), text) for number, (reference, text) in enumerate(replies)]
    with Pool(1, 10.0) as pool:
        return Counter(outcomes(pool, asked))


def taken_back_replies(language: str) -> Iterator[tuple[str, str]]:
    """Yield the replies that take their answer back by words, with the answer as the reference."""
    forms, values = product(taken_back.STATED[language], taken_back.GLUE[language]), taken_back.VALUES[language]
    for (form, between), back, (value, other) in product(forms, taken_back.BACK[language], values):
        if back not in taken_back.BY_MEANING and between != "，":
            yield value, form.format(v=value) + between + back.format(v=value, w=other)


def solutions(path: Path) -> Iterator[tuple[str, str]]:
    """Yield OlympiadBench's answers in a box, with the published solution behind the box."""
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["solution"] and row["final_answer"]:
            answer = row["final_answer"][0]
            yield answer, f"\\boxed{{{answer}}}\n\n{row['solution'][0]}"


def main() -> int:
    """Print a row of counts for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(__file__).parents[1] / "shared" / "data")
    olympiad = parser.parse_args().shared / "olympiadbench.jsonl"
    sets: dict[str, Iterable[tuple[str, str]]] = {}
    for language, (half, half_name) in product(("English", "Chinese"), enumerate(("even", "odd"))):
        named = f"{language}, {half_name} exercises"
        sets[f"right: {named}"] = [reply[:2] for reply in behind_answers.right(language, half)]
        sets[f"another value: {named}"] = [reply[:2] for reply in behind_answers.twins(language, half)]
    for language, kinds in behind_wordings.RIGHT.items():
        for kind, (half, half_name) in product(kinds, enumerate(("even", "odd"))):
            named = f"{language}, {kind}, {half_name} wordings"
            sets[f"right: {named}"] = [reply[:2] for reply in behind_wordings.right(language, kind, half)]
        sets[f"wordings that doubt: {language}"] = [reply[:2] for reply in behind_wordings.wrong(language)]
    sets |= {f"taken back: {language}": taken_back_replies(language) for language in taken_back.STATED}
    if olympiad.exists():
        sets["right: OlympiadBench's solutions"] = solutions(olympiad)
    n_accepted = 0
    say(f"{'replies with text behind the answer':48}{'n':>7}{'correct':>9}{'wrong':>9}{'undecided':>11}\n")
    for name, replies in sets.items():
        found = counts(replies)
        say(f"{name:48}{found.total():7,}{found['correct']:9,}{found['wrong']:9,}{found['undecided']:11,}\n")
        n_accepted += 0 if name.startswith("right") else found["correct"]
    return 1 if n_accepted else 0


if __name__ == "__main__":
    sys.exit(main())
