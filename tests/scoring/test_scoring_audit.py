"""The audited accuracy from audits: hand-worked values, the draw, what biases nothing, coverage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec
import pytest

from harness.core.records import Grade, Key, VerdictName
from harness.runs.overrides import Override
from harness.scoring.audit import Audited, AuditedPart, audited, estimate
from harness.scoring.audit_order import draw, why_no_estimate
from harness.scoring.by_hand import with_verdicts_by_hand
from harness.scoring.score import score_benchmark
from harness.scoring.stats import Estimate, Interval
from harness.scoring.tally import QuestionTally, tally
from harness.scoring.uncertainty import accuracy_of
from tests.scoring.graded import grade, graded, question


def by_hand(verdicts: Mapping[Key, bool], then: VerdictName | None = None) -> dict[Key, Override]:
    return {
        key: Override(
            benchmark="demo",
            question_id=key.question_id,
            sample_index=key.sample_index,
            verdict="correct" if right else "wrong",
            graded=then,
            who="me",
            when="2026-01-01T00:00:00+00:00",
            why="audit",
        )
        for key, right in verdicts.items()
    }


RAW = Estimate(value=0.5, sampling=Interval(0.4, 0.6), question=Interval(0.3, 0.7))


def estimated(items: Iterable[QuestionTally], verdicts: Mapping[Key, bool]) -> Audited | None:
    return audited(list(items), by_hand(verdicts), RAW, {})


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
        [AuditedPart(True, 0.6, 60, 10, 2, 0.8, 10.0), AuditedPart(False, 0.4, 40, 5, 1, 0.2, 5.0)], 0.0, RAW, 100.0
    )
    assert found.accuracy.value == pytest.approx(0.6 * 0.8 + 0.4 * 0.2)
    assert (found.n_population, found.n_audited, found.n_differing) == (100, 15, 3)
    which = "disagreed with 3 (the grader called 2 of them correct and 1 not): the audited accuracy"
    assert which in found.sentence
    interval = found.accuracy.sampling
    assert interval is not None
    assert interval.low < 0.4  # wider than the raw one, around another middle
    assert interval.high > 0.68


@pytest.mark.parametrize("called", [1.0, 0.0])
def test_a_judge_near_an_end_does_not_narrow_the_interval(called: float) -> None:
    """It calls all 198 answers the same; the person finds 60% right, of all or of all but 8."""
    letters = {f"q{i}": "c" if called else "w" for i in range(198)}
    items = items_of(letters)
    right = {key: i % 5 < 3 for i, key in enumerate(draw(items, 198))}
    by_person = accuracy_of(items_of({key.question_id: "c" if correct else "w" for key, correct in right.items()}))
    raw = accuracy_of(items)
    whole = audited(items, by_hand(right), raw, {})
    most = audited(items, by_hand(dict([*right.items()][:190])), raw, {})
    assert whole is not None
    assert most is not None
    assert whole.accuracy == by_person
    for interval in most.accuracy.sampling, most.accuracy.question:
        assert interval is not None
        assert 0.06 < interval.half_width < 0.15  # a binomial of 198 has 0.068


def test_a_grader_that_levels_questions_has_a_wider_question_interval_unless_each_has_one_sample() -> None:
    levelled = [AuditedPart(True, 0.5, 50, 50, 10, 0.8, 50.0), AuditedPart(False, 0.5, 50, 50, 10, 0.2, 50.0)]
    dull, coin = estimate(levelled, 0, RAW, 100.0), estimate(levelled, 0, RAW, 100.0, one_sample=True)
    assert dull.accuracy.question == pytest.approx((0.5 - 0.2 / 0.6, 0.5 + 0.2 / 0.6))
    assert coin.accuracy.question == pytest.approx((0.3, 0.7))
    # Three questions are worth 3 + 9 · ¼ / ½ = 7.5 tosses at most, wherever the estimate lies: Wilson's with t of 2.
    few = estimate(levelled, 0, RAW, 3.0, one_sample=True).accuracy.question
    ratio = 4.30265**2 / 7.5
    assert few is not None
    assert few.half_width == pytest.approx(math.sqrt(ratio / 4 + ratio**2 / 4) / (1 + ratio), abs=1e-5)
    for samples, wide in ((1, False), (2, True)):
        items = items_of({f"q{i}": "cw"[i % 2] * samples for i in range(200)})
        of_items = estimated(items, {key: n % 3 != 0 for n, key in enumerate(draw(items, 60))})
        assert of_items
        assert of_items.accuracy.question
        assert (of_items.accuracy.question.half_width > 0.3) == wide


@pytest.mark.parametrize(("with_points", "half_width", "finished"), [(True, 0.037, 0.069), (False, 0.107, 0.149)])
def test_shares_of_points_are_no_coins_in_any_accuracy(with_points: bool, half_width: float, finished: float) -> None:
    """Of 7 points the samples have 3 or 4 by the judge, 4 or 3 by the person; without points 0 or 1."""
    samples = [(f"q{n}", index) for n in range(20) for index in range(4)]

    def points(index: int) -> tuple[float, float] | msgspec.UnsetType:
        return (3 + index % 2, 7) if with_points else msgspec.UNSET

    grades = [grade(name, i, "wc"[i % 2], rule="judge", points=points(i), truncated=i > 1) for name, i in samples]
    score = score_benchmark([question(f"q{n}") for n in range(20)], grades, None)
    questions = tally([question(f"q{n}") for n in range(20)], grades, None).questions
    verdicts = by_hand({Key(name, index): not index % 2 for name, index in samples}).items()
    corrected = [msgspec.structs.replace(by, points=points(key.sample_index + 1)) for key, by in verdicts]
    score = with_verdicts_by_hand(score, questions, corrected)
    assert score.audited
    for each in (score.accuracy, score.budgets[256].accuracy, score.accuracy_overridden, score.audited.accuracy):
        assert each
        assert each.sampling
        assert each.value == pytest.approx(0.5)
        assert each.sampling.half_width == pytest.approx(half_width, rel=0.1)
    assert score.accuracy_finished
    assert score.accuracy_finished.sampling
    assert score.accuracy_finished.sampling.half_width == pytest.approx(finished, rel=0.1)


def test_only_what_a_judge_decided_is_audited() -> None:
    items = items_of({"q2": "cw"}, q1="cc")
    assert {key.question_id for key in draw(items, 100)} == {"q2"}
    estimate = estimated(items, {Key("q2", 0): False, Key("q2", 1): False})
    assert estimate is not None
    assert (estimate.n_population, estimate.accuracy.value) == (2, 0.5)  # q1 is right by the rules


def test_each_verdict_gets_its_part() -> None:
    """Of 180 correct and 20 wrong samples a quarter of the drawn are wrong ones."""
    items = items_of({}, **{f"q{i}": "c" * 9 + "w" for i in range(20)})
    verdicts = {g.key: g.verdict for item in items for g in item.grades}
    drawn = draw(items, 40)
    assert sum(verdicts[key] == "wrong" for key in drawn) == 10
    assert drawn == draw(items, 40)
    assert set(draw(items, 10)) < set(drawn)
    # A draw holds all samples whose verdicts count, and no other beside the first ones of each group.
    counted = by_hand({key: verdicts[key] == "correct" for key in drawn})
    assert draw(items, 10, counted) == drawn == draw(items, 40, counted)
    assert set(draw(items, 60, counted)) == set(draw(items, 60))
    last = next(key for key in reversed(draw(items, 200)) if key not in drawn)
    out_of_order = counted | by_hand({last: True})
    assert draw(items, 10, out_of_order) == drawn
    only_wrong = {key: of for key, of in counted.items() if verdicts[key] == "wrong"}
    assert set(draw(items, 2, only_wrong)) == {*draw(items, 2), *only_wrong}


def test_fewer_than_half_of_the_verdicts_at_the_beginning_of_the_order_give_no_estimate() -> None:
    """The judge was shown 90 of 120 samples, and 60 of them are audited; then its verdicts are gone. The first samples
    of all are such ones alone, but the order ends at the first that it was not shown.
    """
    names = [f"q{i}" for i in range(120)]
    shown = items_of(dict.fromkeys(names[:90], "w"), **dict.fromkeys(names[90:], "n"))
    verdicts = dict.fromkeys(draw(shown, 60), True)
    assert why_no_estimate(shown, by_hand(verdicts)) == ""
    gone = items_of({}, **dict.fromkeys(names[:90], "w"), **dict.fromkeys(names[90:], "n"))
    order = draw(gone, 120)
    first = next(i for i, key in enumerate(order) if key not in verdicts)
    assert 0 < first < 30
    assert estimated(gone, verdicts) is None
    why = why_no_estimate(gone, by_hand(verdicts))
    assert f"of 60 manual verdicts on samples that were not graded correct, {first} are among the first" in why
    missing = [key for key in order if key not in verdicts]
    needed = next(n for n in range(1, 60) if estimated(gone, {**verdicts, **dict.fromkeys(missing[:n], False)}))
    assert needed > 1
    missing = missing[:needed]
    assert estimated(gone, {**verdicts, **dict.fromkeys(missing[:-1], False)}) is None
    estimate = estimated(gone, {**verdicts, **dict.fromkeys(missing, False)})
    assert estimate is not None
    assert estimate.n_audited >= (60 + needed) / 2
    assert estimate.accuracy.value < 1


def test_an_audit_needs_a_verdict_of_each_kind() -> None:
    items = items_of({}, **{f"q{i}": "cw" for i in range(150)})
    order = draw(items, 300)
    assert why_no_estimate(items, {}).endswith("yet: none of the drawn samples has been judged by a person")
    first = next(key for key in order if key.sample_index == 0)
    why = why_no_estimate(items, by_hand(dict.fromkeys([key for key in order if key != first], True)))
    assert "yet: of 149 manual verdicts on samples that were graded correct, 0 are among the first" in why
    assert "not graded" not in why
    why = why_no_estimate(items, by_hand(dict.fromkeys([key for key in order if key.sample_index == 0], True)))
    assert "yet: of 0 manual verdicts on samples that were not graded correct, 0 are among" in why
