"""Scores of small hand-graded benchmarks, complete and unfinished.

For: harness.scoring, harness.scoring.sample_columns, harness.scoring.journal_grades, harness.scoring.uncertainty,
harness.scoring.measures.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.codec import decode, encode
from harness.core.errors import StoreError, UsageError
from harness.core.number_text import count_noun
from harness.reports.formats import to_markdown
from harness.reports.score_tables import measure_table
from harness.runs.layout import RunFolder
from harness.runs.overrides import Override
from harness.scoring.benchmark_score import score_benchmark, with_verdicts_by_hand
from harness.scoring.measures import measures, uneven_parts
from harness.scoring.score import Score
from harness.scoring.tally import tally
from tests.scoring.graded import grade, graded, question


def test_a_complete_run_has_the_hand_worked_numbers() -> None:
    score = score_benchmark(*graded(q1="cccw", q2="cwwv", q3="wwnn"), 4)
    assert score.accuracy.value == pytest.approx((0.75 + 0.25 + 0) / 3)
    assert score.sampling_error == pytest.approx(math.sqrt(2 * 0.75 * 0.25 / 3) / 3)
    deviation = math.sqrt(((0.75 - 1 / 3) ** 2 + (0.25 - 1 / 3) ** 2 + (1 / 3) ** 2) / 2)
    assert score.question_error == pytest.approx(deviation / math.sqrt(3))
    assert (score.n_questions, score.n_samples, score.n_missing, score.n_correct, score.n_no_answer) == (3, 12, 0, 4, 2)
    assert [score.pass_at[k].value for k in (1, 2, 4)] == pytest.approx([1 / 3, (1 + 0.5 + 0) / 3, 2 / 3])
    assert [score.maj_at[k].value for k in (1, 2, 4)] == pytest.approx([1 / 3, (0.75 + 0.25) / 3, 1 / 3])
    assert (score.bounds.low, score.bounds.high) == (score.accuracy.value, score.accuracy.value)
    assert not score.partial
    assert score.sentences == []


@pytest.mark.parametrize(
    ("letters", "planned", "accuracy", "bounds", "said", "facts"),
    [
        ({"q1": "cccc", "q2": "w"}, None, 0.5, (0.5, 0.5), "one sample", {"n_imputed": 1}),  # of questions, not of rows
        ({"q1": "c", "q2": "w", "q3": "w", "q4": "w"}, 1, 0.25, (0.25, 0.25), "one sample", {
            "sampling_error": None, "sampling_error_bound": pytest.approx(math.sqrt(0.25 * 0.75 / 4)),
            "question_error": pytest.approx(0.25),
        }),
        # Rounds that every question has; none; a handful lost; undecided; no sample; not given by another tool.
        ({"q1": "cc..", "q2": "wcc.", "q3": ".w.."}, 4, 2 / 3, (2 / 3, 2 / 3), "missing + one sample", {
            "rounds": 1, "n_samples": 3, "n_missing": 6, "partial": False
        }),
        ({"q1": "c...", "q2": ".wcc", "q3": "...."}, 4, 5 / 6, (1 / 4, 11 / 12), "missing + one sample", {
            "partial": True, "pass_at": {}, "n_missing": 8
        }),
        ({"q1": "c" * 150, "q2": "w" * 149 + "."}, 150, 0.5, (0.5, 0.5 + 1 / 300), "missing", {
            "partial": True, "n_samples": 299
        }),
        ({"q1": "cu", "q2": "cc"}, 2, 0.75, (0.75, 1.0), "undecided", {"n_undecided": 1}),
        ({"q1": ".", "q2": "."}, 1, None, (0.0, 1.0), "missing", {
            "n_missing": 2, "sampling_error": None, "mean_completion_tokens": None
        }),
        ({"q1": "cc", "q2": ""}, None, 1.0, (0.5, 1.0), "missing", {"pass_at": {}}),
        ({"q1": "c"}, 1, 1.0, (1.0, 1.0), "one sample", {"question_error": None}),
    ],
)  # fmt: skip
def test_which_samples_a_score_covers_and_between_which_bounds_it_lies(
    letters: dict[str, str],
    planned: int | None,
    accuracy: float | None,
    bounds: object,
    said: str,
    facts: dict[str, object],
) -> None:
    score = score_benchmark(*graded(**letters), planned)
    assert (score.accuracy and score.accuracy.value) == (accuracy if accuracy is None else pytest.approx(accuracy))
    assert (score.bounds.low, score.bounds.high) == pytest.approx(bounds)
    assert {name: getattr(score, name) for name in facts} == facts
    assert " + ".join(sorted({one.kind for one in score.warnings})) == said


def test_a_score_of_complete_rounds_gives_bounds_over_all_samples() -> None:
    sentence = score_benchmark(*graded(q1="cc..", q2="wcc.", q3=".w.."), 4).sentences[0]
    assert "1 of 4 rounds" in sentence
    assert sentence.endswith("the 6 stored samples show that the complete score is between 33.3 and 83.3%")


def test_grades_that_are_none_of_the_plan_or_come_again_are_left_out() -> None:
    questions, grades = graded(q1="cc", q2="ww")
    score = score_benchmark(questions, [*grades, grade("q2", 1, "c"), grade("q2", 0, "c")], 2)
    assert (score.accuracy.value, score.sentences) == (0.5, [])
    questions, grades = graded(q1="wwc", q2="wwc")
    score = score_benchmark(questions, [*grades, grade("q1", 3, "c")], 3)
    assert (score.accuracy.value, score.sentences) == (pytest.approx(1 / 3), ["1 unplanned grade not counted"])
    score = score_benchmark(questions, [*grades, grade("q1", -1, "c")], None)
    assert (score.accuracy.value, len(score.sentences)) == (pytest.approx(1 / 3), 1)


def test_scores_are_broken_down_by_level_in_natural_order() -> None:
    ordered = ["7", "10", "Level 2", "Level 10", "²", "七年级"]
    questions = [question(f"q{n}", level=level, id=n) for n, level in enumerate([*reversed(ordered), "七年级"])]
    score = score_benchmark(questions, [grade(one.question_id, n, "wc"[n]) for one in questions for n in range(2)], 2)
    assert {field: [*groups] for field, groups in score.breakdowns.items()} == {"level": ordered}
    assert score.breakdowns["level"]["七年级"].n_questions == 2
    assert score.breakdowns["level"]["7"].accuracy.value == 0.5
    assert score.breakdowns["level"]["7"].accuracy.question is None
    low, high = score.breakdowns["level"]["七年级"].accuracy.question
    assert low < 0.5 < high


def test_more_than_one_percent_truncated_is_a_warning() -> None:
    questions, grades = graded(q1="c" * 99, q2="c" * 100)
    grades.append(grade("q1", 99, "n", truncated=True))
    grades[2] = grade("q1", 2, "c", truncated=True)
    assert score_benchmark(questions, grades, 100).sentences == []  # exactly 1%
    grades[0] = grade("q1", 0, "c", truncated=True)
    grades[1] = grade("q1", 1, "c", truncated=True)
    score = score_benchmark(questions, grades, 100)
    assert score.n_truncated == 4
    assert score.sentences == ["4 of 200 samples (2.0%) were truncated by max_tokens"]


def test_a_field_of_too_many_or_varying_values_has_no_breakdown() -> None:
    questions = [
        question(f"q{n}", url=n, unit=n % 21, level=n % 20, language="zh", same_as=f"q{n % 21}", choice_order=f"{n}")
        for n in range(42)
    ]
    grades = [grade(one.question_id, n, "c") for one in questions for n in range(2)]
    assert list(score_benchmark(questions, grades, 2).breakdowns) == ["level"]
    few = [question(f"q{n}", id=n, level=n % 3) for n in range(6)]
    assert list(score_benchmark(few, [grade(one.question_id, 0, "c") for one in few], 1).breakdowns) == ["level"]


def test_a_score_counts_near_misses() -> None:
    questions, (grade, *others) = graded(q1="wccc")
    near = msgspec.structs.replace(grade, near_miss="rounded")
    score = score_benchmark(questions, [near, *others], 4)
    assert score.near_misses == {"rounded": 1}
    assert "1 wrong answer is a near miss: the exact value of a rounded reference" in score.sentences


def test_no_questions_are_refused() -> None:
    with pytest.raises(UsageError, match="no questions"):
        score_benchmark([], [], 4)


LETTERS = st.lists(st.text("cwvnu.", min_size=1, max_size=6), min_size=1, max_size=5)


@given(LETTERS, st.randoms(use_true_random=False))
def test_what_holds_of_any_score(rows: list[str], chance: random.Random) -> None:
    questions, grades = graded(**{f"q{place}": row for place, row in enumerate(rows)})
    score = score_benchmark(questions, grades, 6)
    assert decode(encode(score), Score) == score
    low, high = score.bounds.low - 1e-12, score.bounds.high + 1e-12
    assert score.accuracy is None or -1e-12 <= low <= score.accuracy.value <= high <= 1 + 2e-12
    # Whatever is still missing, the final accuracy lies in a partial score's bounds.
    filled = [
        "".join(chance.choice("cw") if letter in ".u" else letter for letter in row.ljust(6, ".")) for row in rows
    ]
    final = score_benchmark(*graded(**{f"q{place}": row for place, row in enumerate(filled)}), 6)
    assert not (score.partial or not score.n_missing) or low <= final.accuracy.value <= high
    # The order of grades and questions does not matter; pass@k never falls, and all at one agree with the accuracy.
    chance.shuffle(questions)
    chance.shuffle(grades)
    assert score_benchmark(questions, grades, 6) == score
    whole = score_benchmark(questions, grades, None)
    values = [whole.pass_at[k].value for k in sorted(whole.pass_at)]
    assert values == pytest.approx(sorted(values))
    if whole.pass_at:
        assert whole.pass_at[1].value == whole.maj_at[1].value == whole.accuracy.value
        assert all(whole.maj_at[k].value <= whole.pass_at[k].value + 1e-9 for k in whole.maj_at)


def test_a_score_of_another_form_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path).benchmark("demo")
    score = score_benchmark(*graded(q1="cccc", q2="cccw"), 4)
    score.save(folder)
    stored = decode(folder.scores.read_bytes())
    low, high = stored["accuracy"]["sampling"]
    assert 0 < low < stored["accuracy"]["value"] < high <= 1
    assert stored["pass_at"]["4"]["at_most"] is True
    assert Score.load(folder) == score
    for other in (stored | {"schema": 3}, {"benchmark": "demo", "accuracy": 0.5}):
        folder.scores.write_bytes(encode(other))
        with pytest.raises(StoreError, match="Run `harness score` again"):
            Score.load(folder)


def test_very_unequal_groups_widen_the_question_interval_with_a_warning() -> None:
    def score(cluster_of: Callable[[int], str]) -> Score:
        questions = [question(f"q{n}", cluster=cluster_of(n)) for n in range(24)]
        grades = [grade(f"q{n}", i, "c" if (n + i) % 3 else "w") for n in range(24) for i in range(4)]
        return score_benchmark(questions, grades, 4)

    one_large, equal = score(lambda n: "large" if n < 12 else f"q{n}"), score(lambda n: f"pair {n // 2}")
    (sentence,) = [text for text in one_large.sentences if "group" in text]
    # (12 + 12)² / (12² + 12) = 3.7 of 13
    assert sentence.startswith("12 of 24 questions are in one group (large). The question interval is wide because ")
    assert "only as much information as 3.7 groups of equal size" in sentence
    assert not any("group" in text for text in equal.sentences)
    assert one_large.accuracy.question is not None
    assert equal.accuracy.question is not None
    assert one_large.accuracy.question.half_width > 2 * equal.accuracy.question.half_width


@pytest.mark.parametrize(
    ("questions", "mean", "by_parts", "at_most"),
    [
        # Each question weighs the same, or by its parts; a sample without an answer has no right part.
        ([("wc", [(1, 2), (2, 2)]), ("wn", [(3, 6), None])], (0.75 + 0.25) / 2, (2 * 0.75 + 6 * 0.25) / 8, False),
        # An undecided question has no right part, and an unknown weight.
        ([("w", [(1, 2)]), ("c", [(2, 2)]), ("u", [None])], 0.5, 0.75, True),
        # An answer that is only called right or wrong is one part.
        ([("w", [(1, 2)]), ("c", [None])], (0.5 + 1) / 2, (2 * 0.5 + 1) / 3, True),
        ([("w", [(1, 2)]), ("w", [None])], 0.5 / 2, 2 * 0.5 / 3, True),
        # A verdict that contradicts the parts counts in their place.
        ([("cww", [(1, 2), (2, 2), (1, 2)])], (1 + 0 + 0.5) / 3, (1 + 0 + 0.5) / 3, False),
    ],
)
def test_a_share_of_parts(
    questions: list[tuple[str, list[tuple[int, int] | None]]], mean: float, by_parts: float, at_most: bool
) -> None:
    grades = [
        grade(f"q{n}", i, x, **({"parts": parts[i]} if parts[i] else {}))
        for n, (letters, parts) in enumerate(questions)
        for i, x in enumerate(letters)
    ]
    score = score_benchmark([question(f"q{n}") for n in range(len(questions))], grades, None)
    by_name = score.measures
    values = {"share of parts": mean, "share of all parts": by_parts}
    assert {name: one.value for name, one in by_name.items()} == pytest.approx(values)
    plain = msgspec.structs.replace(score, measures={})
    table = measure_table([("run", score), ("run", plain)])
    assert table is not None
    assert "| share of parts | " in to_markdown([table])
    for measure in by_name.values():
        low, high = measure.sampling or (1, 0)
        assert low < measure.value < high
        assert measure.at_most == at_most


def test_g_pass_is_the_share_of_draws_with_enough_right_samples() -> None:
    """By enumeration (Liu et al. 2024, arXiv:2412.13147): at least ⌈t k⌉ of k. Only for the k that the user names."""
    letters = ("ccwcww", "cccccw", "wwwwwc")
    grades = [grade(f"q{n}", i, x) for n, row in enumerate(letters) for i, x in enumerate(row)]
    by_name = score_benchmark([question(f"q{n}") for n in range(3)], grades, 6, ks=(3,)).measures
    draws = [[draw.count("c") for draw in combinations(row, 3)] for row in letters]
    for share, least in ((0.5, 2), (0.75, 3)):
        expected = np.mean([np.mean([right >= least for right in row]) for row in draws])
        estimate = by_name.pop(f"G-Pass@3 at {share:g}")
        assert (estimate.value, estimate.at_most) == (pytest.approx(expected), False)
    assert by_name == score_benchmark([question(f"q{n}") for n in range(3)], grades, 6).measures == {}


def test_a_score_warns_of_uneven_totals_and_has_no_share_of_them() -> None:
    grades = [grade("q0", i, "w", parts=(1, total)) for i, total in enumerate((2, 3))]
    score = score_benchmark([question("q0")], grades, None)
    assert (score.measures, any("in 1 question (such as q0" in text for text in score.sentences)) == ({}, True)


def answers_with(totals: Iterable[int]) -> st.SearchStrategy[list[tuple[str, int | None, int]]]:
    """(verdict, total or None, right parts) of some answers to one question. totals: those that the grader states."""
    each = st.tuples(st.sampled_from("cwnu"), st.none() | st.sampled_from([*totals]), st.integers(0, 6))
    return st.lists(each, min_size=1)


EVEN = st.integers(1, 6).flatmap(lambda total: answers_with([total]))


@given(st.lists(EVEN, min_size=1, max_size=6) | st.lists(EVEN | answers_with(range(1, 7)), min_size=1, max_size=6))
def test_part_scores_are_fractions_and_their_mean_is_at_least_the_accuracy(
    samples: list[list[tuple[str, int | None, int]]],
) -> None:
    items, uneven = [], 0
    for number, row in enumerate(samples):
        parts = [{} if total is None else {"parts": (min(right, total), total)} for _, total, right in row]
        grades = [grade(f"q{number}", i, row[i][0], **parts[i]) for i in range(len(row))]
        items += tally([question(f"q{number}")], grades, len(grades)).questions
        uneven += len({total for _, total, _ in row} - {None}) > 1
    by_name = measures(items)
    # Answers to one question with different totals have no common share; a question beside them may have any total.
    assert bool(by_name) == (not uneven and any(total is not None for row in samples for _, total, _ in row))
    assert bool(uneven_parts(items)) == bool(uneven)
    assert not uneven or f"in {count_noun(uneven, 'question')} (such as q" in uneven_parts(items)
    if by_name:
        accuracy = sum(item.right / (item.n or 1) for item in items) / len(items)
        assert accuracy - 1e-9 <= by_name["share of parts"].value <= 1 + 1e-9
        assert -1e-9 <= by_name["share of all parts"].value <= 1 + 1e-9


def test_the_variants_that_runs_of_earlier_versions_name_stay_one_cluster() -> None:
    variants, grades = graded(q1="cc", q2="cw", q3="ww")
    older = [msgspec.structs.replace(each, metadata={"twin_of": "b", "original": "7"}) for each in variants[:2]]
    score = score_benchmark([*older, question("q3", original="7")], grades, 2)
    assert (score.n_clusters, score.breakdowns) == (2, {})


# -- manual verdicts ---------------------------------------------------------------------------------------------------


def by_person(
    question_id: str, index: int, points: tuple[float, float] | msgspec.UnsetType, *, right: bool
) -> Override:
    return Override(
        benchmark="demo",
        question_id=question_id,
        sample_index=index,
        verdict="correct" if right else "wrong",
        graded=None,
        who="me",
        when="2026-01-01T00:00:00+00:00",
        why="audit",
        points=points,
    )


@pytest.mark.parametrize(("with_points", "half_width", "finished"), [(True, 0.037, 0.069), (False, 0.107, 0.149)])
def test_shares_of_points_are_no_coins_in_any_accuracy(with_points: bool, half_width: float, finished: float) -> None:
    """Of 7 points the samples have 3 or 4 by the judge, 4 or 3 by the person; without points 0 or 1."""
    samples = [(f"q{n}", index) for n in range(20) for index in range(4)]

    def points(index: int) -> tuple[float, float] | msgspec.UnsetType:
        return (3 + index % 2, 7) if with_points else msgspec.UNSET

    grades = [grade(name, i, "wc"[i % 2], rule="judge", points=points(i), truncated=i > 1) for name, i in samples]
    score = score_benchmark([question(f"q{n}") for n in range(20)], grades, None)
    questions = tally([question(f"q{n}") for n in range(20)], grades, None).questions
    corrected = [by_person(name, i, points(i + 1), right=not i % 2) for name, i in samples]
    score = with_verdicts_by_hand(score, questions, corrected)
    for each in (score.accuracy, score.budgets[256].accuracy, score.accuracy_overridden):
        assert each
        assert each.sampling
        assert each.value == pytest.approx(0.5)
        assert each.sampling.half_width == pytest.approx(half_width, rel=0.1)
    assert score.accuracy_finished
    assert score.accuracy_finished.sampling
    assert score.accuracy_finished.sampling.half_width == pytest.approx(finished, rel=0.1)


def test_other_points_with_the_same_verdict_differ_and_equal_ones_do_not() -> None:
    grades = [grade("q1", i, "w", rule="judge", points=(3, 7)) for i in range(4)]
    score = score_benchmark([question("q1")], grades, None)
    items = tally([question("q1")], grades, None).questions
    for points, n_differing in ((5.0, 4), (3.0, 0)):
        judged = with_verdicts_by_hand(score, items, [by_person("q1", i, (points, 7), right=False) for i in range(4)])
        assert judged.n_overridden == n_differing
        assert (judged.accuracy_overridden is not None) == bool(n_differing)
        assert not n_differing or judged.accuracy_overridden.value == pytest.approx(points / 7)
