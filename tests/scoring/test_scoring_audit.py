"""The accuracy by a person from audits: hand-worked values, the draw, what biases nothing, coverage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
import pytest

from harness.core.records import Grade, Key
from harness.runs.overrides import Override
from harness.scoring.audit import Audited, AuditedPart, audited, draw, estimate
from harness.scoring.intervals import Interval, sampling_limits
from harness.scoring.tally import QuestionTally, tally
from harness.scoring.uncertainty import Intervals
from tests.scoring.graded import grade, graded, question


def by_hand(verdicts: Mapping[Key, bool]) -> dict[Key, Override]:
    return {
        key: Override(
            benchmark="demo", question_id=key.question_id, sample_index=key.sample_index,
            verdict="correct" if right else "wrong", graded=None, who="me", when="2026-01-01T00:00:00+00:00",
            why="audit",
        )
        for key, right in verdicts.items()
    }  # fmt: skip


RAW = Intervals(sampling_interval=Interval(0.4, 0.6), question_interval=Interval(0.3, 0.7))


def estimated(items: Iterable[QuestionTally], verdicts: Mapping[Key, bool]) -> Audited | None:
    return audited(list(items), by_hand(verdicts), 0.5, RAW)


def items_of(judged: Mapping[str, str], **letters: str) -> tuple[QuestionTally, ...]:
    """Questions by letters as in `graded`; `judged` the same, decided by a judge."""
    questions, grades = graded(**letters)
    by_judge: list[Grade] = [
        grade(name, index, letter, rule="judge") for name, row in judged.items() for index, letter in enumerate(row)
    ]
    return tally([*questions, *map(question, judged)], [*grades, *by_judge], None).questions


def test_hand_worked_estimate() -> None:
    """60 of 100 samples were called correct, of which 8 of 10 audited are; 1 of 5 of the others is right."""
    found = estimate(
        [AuditedPart(True, 0.6, 60, 10, 0.8, 10.0), AuditedPart(False, 0.4, 40, 5, 0.2, 5.0)], 0.0, 0.6, RAW, 3
    )
    assert found.accuracy == pytest.approx(0.6 * 0.8 + 0.4 * 0.2)
    assert (found.n_population, found.n_audited, found.n_differing) == (100, 15, 3)
    interval = found.intervals.sampling_interval
    assert interval is not None
    assert interval.low < 0.4  # wider than the raw one, around another middle
    assert interval.high > 0.68


def test_all_audited_leaves_the_sampling_error_alone() -> None:
    found = estimate([AuditedPart(True, 1.0, 50, 50, 0.9, 50.0)], 0.0, 0.5, RAW)
    assert found.intervals.sampling_interval == pytest.approx((0.8, 1.0))
    assert found.n_to_halve is None
    assert "no number of audits" in found.sentence


def test_so_many_audits_halve_the_interval() -> None:
    """With the number that is named, the interval is half as wide, but for rounding."""

    def part(drawn: int) -> list[AuditedPart]:
        return [AuditedPart(True, 1.0, 100_000, drawn, 0.9, float(drawn))]

    raw = Intervals(sampling_interval=Interval(0.499, 0.501), question_interval=None)
    first = estimate(part(100), 0.0, 0.5, raw)
    assert first.n_to_halve is not None
    second = estimate(part(first.n_to_halve), 0.0, 0.5, raw)
    widths = [found.intervals.sampling_interval.half_width for found in (first, second)]  # type: ignore[union-attr]
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.05)


def test_a_grader_that_levels_questions_has_a_wider_question_interval() -> None:
    sharp = estimate(
        [AuditedPart(True, 0.5, 50, 50, 1.0, 50.0), AuditedPart(False, 0.5, 50, 50, 0.0, 50.0)], 0, 0.5, RAW
    )
    dull = estimate(
        [AuditedPart(True, 0.5, 50, 50, 0.8, 50.0), AuditedPart(False, 0.5, 50, 50, 0.2, 50.0)], 0, 0.5, RAW
    )
    assert sharp.intervals.question_interval == pytest.approx((0.3, 0.7))
    assert dull.intervals.question_interval == pytest.approx((0.5 - 0.2 / 0.6, 0.5 + 0.2 / 0.6))


def test_only_what_a_judge_decided_is_audited() -> None:
    items = items_of({"q2": "cw"}, q1="cc")
    assert {key.question_id for key in draw(items, 100)} == {"q2"}
    found = estimated(items, {Key("q2", 0): False, Key("q2", 1): False})
    assert found is not None
    assert (found.n_population, found.accuracy) == (2, 0.5)  # q1 is right by the rules


def test_without_a_judge_all_samples_are_audited() -> None:
    items = items_of({}, q1="cw", q2="cc")
    assert len(draw(items, 100)) == 4
    found = estimated(items, {Key("q1", 0): True, Key("q1", 1): True, Key("q2", 0): True, Key("q2", 1): False})
    assert found is not None
    assert (found.accuracy, found.n_differing) == (0.75, 2)


def test_each_verdict_gets_its_part() -> None:
    """Of 180 correct and 20 wrong samples a quarter of the drawn are wrong ones."""
    items = items_of({}, **{f"q{i}": "c" * 9 + "w" for i in range(20)})
    verdicts = {g.key: g.verdict for item in items for g in item.grades}
    drawn = draw(items, 40)
    assert sum(verdicts[key] == "wrong" for key in drawn) == pytest.approx(9, abs=1)
    assert drawn == draw(items, 40)
    assert set(draw(items, 10)) < set(drawn)


def test_the_order_does_not_tell_the_verdict() -> None:
    items = items_of({}, **{f"q{i}": "cw" for i in range(100)})
    verdicts = {g.key: g.verdict for item in items for g in item.grades}
    told = "".join(verdicts[key][0] for key in draw(items, 100))
    assert 30 < sum(a == b for a, b in pairwise(told)) < 70


def test_words_out_of_the_order_count_for_nothing() -> None:
    """A person who corrects what looks wrong says nothing of the others."""
    items = items_of({}, **{f"q{i}": "cw" for i in range(50)})
    order = draw(items, 100)
    correct = [key for key in order if key.sample_index == 0]
    wrong = [key for key in order if key.sample_index == 1]
    honest = {**dict.fromkeys(correct[:10], True), **dict.fromkeys(wrong[:10], False)}
    picked = dict.fromkeys(wrong[11:40], True)
    assert estimated(items, {**honest, **picked}) == estimated(items, honest)
    assert estimated(items, picked) is None


def test_the_interval_holds_where_the_raw_one_does_not() -> None:
    """All judged, 5 % of the verdicts wrong, 100 audits (docs/statistics.md has the table of `make simulate`)."""
    rng, chances = np.random.default_rng(0), np.linspace(0.5, 0.9, 100)
    held = {"raw": 0, "audited": 0}
    for _ in range(200):
        right = rng.random((100, 8)) < chances[:, None]
        called = right ^ (rng.random(right.shape) < 0.05)
        raw = Intervals(
            sampling_interval=sampling_limits(called.sum(axis=1).astype(float), np.full(100, 8.0)).interval(),
            question_interval=None,
        )
        parts = []
        for verdict in (True, False):
            group = right[called == verdict]
            drawn = rng.choice(group, 50, replace=False)
            parts.append(AuditedPart(verdict, group.size / 800, group.size, 50, float(drawn.mean()), 50.0))
        found = estimate(parts, 0.0, float(called.mean()), raw)
        for name, interval in (("raw", raw.sampling_interval), ("audited", found.intervals.sampling_interval)):
            assert interval is not None
            held[name] += interval.low <= chances.mean() <= interval.high
    assert held["audited"] >= 186
    assert held["raw"] < 160
