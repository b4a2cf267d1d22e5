"""Why a sample has its verdict: no explanation ends in another verdict than the stored one, whichever rules made it.

For: harness.viewer.printed, harness.viewer.pages.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from harness.core.records import Grade, Key
from harness.grading.second.judge_messages import JudgeRuling, apply_ruling
from harness.presets.grading import GradingOptions
from harness.runs import grades
from harness.runs import questions as question_file
from harness.runs.line_file import write_lines
from harness.runs.manifest import Manifest
from harness.scoring.opened import OpenBenchmark
from harness.scoring.pipeline import score_run
from harness.viewer.printed import why
from tests.viewer.small_run import RunQuestion, RunReply, write_run

CARDS = {
    "plain": "{}",
    "yes": '{grader: "own_words:yes"}',
    "open": '{grader: "own_words:leaves"}',
}
"""Rules that a card may have; each gives the answer 41 to the reference 40 another verdict or another reason."""

KEY = Key("q1", 0)
LAST = {"correct": "correct", "wrong": "wrong", "undecided": "undecided", "no_answer": "no answer"}
"""Verdict → the last step of an explanation that ends in it."""

AGAIN = "score the run again"
FUNCTIONS = """
def yes(answer, question):
    return True


def leaves(answer, question):
    return None
"""


class Changing:
    """A run of one sample whose card changes under it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module = folder / "own_words.py"
        self.module.write_text(FUNCTIONS)
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.setenv("HARNESS_GRADERS", "own_words")
        self.card = folder / "numbers.yaml"
        (folder / "rows.jsonl").write_text('{"problem": "?", "answer": "40"}\n')
        asked = {"q1": RunQuestion("?", "40", [RunReply(r"\boxed{41}")])}
        self.run = write_run(folder / "a", {"numbers": asked}, scored=False)
        manifest = Manifest.load(self.run)
        record = msgspec.structs.replace(manifest.benchmarks["numbers"], settings={"card": str(self.card)})
        msgspec.structs.replace(manifest, benchmarks={"numbers": record}).save(self.run)

    def has_card(self, rules: str | None) -> None:
        """Write the card with these rules of `CARDS`; None: delete it."""
        self.card.unlink(missing_ok=True)
        if rules is not None:
            self.card.write_text(
                "title: Numbers\nsource: {kind: file, path: rows.jsonl}\ncolumns: {question: problem, answer: answer}\n"
                f"kind: integer\nsamples: 1\nrules: {CARDS[rules]}\n"
            )

    def began_with(self, rules: str) -> None:
        """Store the rules as those with which the run began."""
        from harness.benchmarks.catalog import apply_card_rules

        self.has_card(rules)
        place = self.run.benchmark("numbers")
        asked, _ = apply_card_rules("numbers", {"card": str(self.card)}, list(question_file.read(place)))
        write_lines(place.questions, list(asked))

    def scored(self) -> Grade:
        score_run(self.run, GradingOptions(workers=1))
        (grade,) = grades.read(self.run.benchmark("numbers"))
        return grade

    def why(self) -> Sequence[str]:
        """The steps to the verdict on the sample."""
        benchmark = OpenBenchmark(self.run.benchmark("numbers"), Manifest.load(self.run).benchmarks["numbers"])
        return why(benchmark, KEY)


@pytest.fixture
def changing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Changing:
    return Changing(tmp_path, monkeypatch)


def test_steps_end_in_the_stored_verdict_or_say_that_its_rules_are_not_known(changing: Changing) -> None:
    ends = set()
    for began, then in itertools.product(CARDS, CARDS):
        changing.began_with(began)
        changing.has_card(then)
        grade = changing.scored()
        for now in (*CARDS, None):
            changing.has_card(now)
            steps = changing.why()
            known = then in (began, now)
            assert (steps[-1] == LAST[grade.verdict]) == known, (began, then, now, steps)
            assert any(f"rule {grade.rule}" in step for step in steps) == known, (began, then, now, steps)
            if not known:
                assert len(steps) == 1, steps
                assert steps[0].endswith(AGAIN), steps
            ends.add((grade.verdict, known))
    assert ends == set(itertools.product(("correct", "wrong", "undecided"), (True, False)))


CHANGES: list[tuple[dict[str, object], str]] = [
    *(
        (fields, "after regrading with rules/")
        for fields in (
            {"verdict": "correct"},
            {"rule": "tolerance"},
            {"verdict": "undecided", "rule": "time"},
            {"grader": "rules/1"},
            {"grader": "own_words:yes@123456789abc"},
            {"reply_checksum": 1},
        )
    ),
    ({"basis": ""}, "the steps are unknown because this verdict follows neither the run's rules nor"),
    ({"reply_checksum": None}, ""),
    ({}, ""),
]
"""Fields of a stored grade in place of its own, and how the step begins that says why it is not explained."""


def test_only_a_grade_that_today_s_grader_makes_again_is_explained(changing: Changing) -> None:
    changing.began_with("plain")
    grade = changing.scored()
    for fields, sentence in CHANGES:
        write_lines(changing.run.benchmark("numbers").grades, [msgspec.structs.replace(grade, **fields)])
        steps = changing.why()
        assert (
            steps[-1] == "wrong" if not sentence else (steps[0].startswith(sentence), AGAIN in steps[0]) == (True,) * 2
        )
        assert not sentence or len(steps) == 1


def test_a_judge_s_verdict_is_not_explained_by_the_rules_against_which_it_stands(changing: Changing) -> None:
    for rules in ("open", "plain"):
        changing.began_with(rules)
        grade = changing.scored()
        for ruling in ("correct", "wrong"):
            judged = apply_ruling(grade, JudgeRuling(ruling), "judge:judge@verdict", override=True)
            write_lines(changing.run.benchmark("numbers").grades, [judged])
            in_place = changing.why() == ["according to the rules, the sample is wrong, but a judge made the decision"]
            assert in_place == ((rules, ruling) == ("plain", "correct"))


def test_a_function_that_is_gone_explains_nothing(changing: Changing) -> None:
    changing.began_with("plain")
    changing.has_card("yes")
    assert changing.scored().verdict == "correct"
    changing.module.unlink()
    sys.modules.pop("own_words", None)
    steps = changing.why()
    assert len(steps) == 1, steps
    assert "own_words" in steps[0]
