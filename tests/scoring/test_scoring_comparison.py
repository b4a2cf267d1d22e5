"""Paired comparison of two runs, comparison with published scores, and the published files themselves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.errors import UsageError
from harness.scoring import PublishedScore, compare_published, compare_runs, load_published, score_benchmark, tally
from harness.scoring.published import Source, matching
from harness.scoring.tally import QuestionTally
from tests.scoring.graded import graded


def tallied(**letters: str) -> tuple[QuestionTally, ...]:
    return tally(*graded(**letters), None).questions


def test_a_paired_comparison_has_the_hand_worked_numbers() -> None:
    result = compare_runs(tallied(q1="cccc", q2="ccww", q3="wwww"), tallied(q1="ccww", q2="ccww", q3="wwww"))
    assert result.difference == pytest.approx(0.5 / 3)
    assert (result.better, result.worse, result.n_questions, result.unpaired) == (1, 0, 3, 0)
    # first: one question at ½ of 4 samples; second: two such questions
    assert result.sampling_error == pytest.approx(math.sqrt(0.25 / 3 + 2 * 0.25 / 3) / 3)
    assert result.question_error == pytest.approx(1 / 6)  # sd of (½, 0, 0) is 0.2887; over √3
    assert result.z_question == pytest.approx(1.0)


def test_pairing_sees_a_steady_difference_that_the_spread_of_questions_would_hide() -> None:
    first = tallied(q1="c" * 10, q2="c" * 6 + "w" * 4, q3="c" * 2 + "w" * 8)
    second = tallied(q1="c" * 9 + "w", q2="c" * 5 + "w" * 5, q3="c" + "w" * 9)
    result = compare_runs(first, second)
    assert result.difference == pytest.approx(0.1)
    assert result.question_error == pytest.approx(0.0, abs=1e-12)


def test_questions_of_one_run_only_or_with_another_text_are_not_paired() -> None:
    first, second = tallied(q1="cc", q2="cc", q3="cc"), list(tallied(q1="cw", q2="cw", q4="cc"))
    changed = msgspec.structs.replace(second[1].question, row_digest="another row")
    second[1] = QuestionTally(changed, second[1].grades, second[1].planned)
    result = compare_runs(first, second)
    assert (result.n_questions, result.unpaired) == (1, 3)
    with pytest.raises(UsageError, match="share no question"):
        compare_runs(tallied(a="c"), tallied(b="c"))


def published(percent: float, samples: int | None, **changes: Any) -> PublishedScore:
    fields: dict[str, Any] = {
        "model": "org/Model-7B",
        "benchmark": "demo",
        "metric": "pass@1",
        "value": percent / 100,
        "n_questions": 4,
        "samples": samples,
        "run_deviation": None,
        "settings": {"temperature": 0.6},
        "source": Source(title="A paper", url="https://example.org/paper", by="authors"),
    }
    return PublishedScore(**{**fields, **changes})


HALVES = {f"q{n}": "c" * 32 + "w" * 32 for n in range(4)}  # accuracy ½; variance of one sample 0.254 each


def compared(reference: PublishedScore, letters: dict[str, str] = HALVES, **settings: Any) -> Any:
    questions, grades = graded(**letters)
    score = score_benchmark(questions, grades, None)
    return compare_published(score, tally(questions, grades, None).questions, reference, settings)


def test_z_uses_our_error_and_the_published_ones_own_sample_count() -> None:
    result = compared(published(60, 16))
    ours = math.sqrt(4 * 0.25 / 63) / 4
    theirs = math.sqrt(0.25 * 64 / 63 / 16 / 4)
    assert result.error == pytest.approx(math.hypot(ours, theirs))
    assert result.z == pytest.approx(-0.1 / math.hypot(ours, theirs))
    assert result.verdict == "compatible"


@pytest.mark.parametrize(
    ("percent", "samples", "verdict"),
    [
        (52, 64, "compatible"),
        (65, 64, "not compatible"),
        (52, None, "compatible"),  # within our own error already
        (62, None, "cannot say"),  # 1 or 64 samples make the difference
        (100, None, "compatible"),
    ],
)
def test_an_unknown_sample_count_gives_a_verdict_only_where_both_ends_agree(
    percent: float, samples: int | None, verdict: str
) -> None:
    if percent == 100:
        steady = {f"q{n}": "c" * 63 + "w" for n in range(4)}
        assert compared(published(99, samples), steady).verdict == verdict
    else:
        result = compared(published(percent, samples))
        assert result.verdict == verdict
        assert bool(result.reason) == (verdict == "cannot say")


def test_a_run_of_single_samples_can_contradict_a_score_but_not_confirm_one() -> None:
    singles = {f"q{n}": "c" if n % 2 else "w" for n in range(4)}
    assert compared(published(60, 64), singles).verdict == "cannot say"
    many = {f"q{n}": "c" if n % 2 else "w" for n in range(400)}
    assert compared(published(90, 64, n_questions=400), many).verdict == "not compatible"


def test_a_stated_deviation_over_runs_is_preferred_to_our_estimate() -> None:
    result = compared(published(50, 4, run_deviation=0.02))
    assert result.error == pytest.approx(math.hypot(math.sqrt(4 * 0.25 / 63) / 4, 0.01))


def test_other_question_counts_unfinished_runs_and_other_metrics_cannot_be_judged() -> None:
    assert "4 questions, the published score 30" in compared(published(50, 64, n_questions=30)).reason
    assert "unfinished" in compared_unfinished().reason
    assert "maj@64 is not known" in compared(published(50, 64, metric="maj@64")).reason
    missing = compared(published(50, 128, metric="maj@128"))
    assert (missing.verdict, missing.difference) == ("cannot say", None)


def compared_unfinished() -> Any:
    questions, grades = graded(q1="cw", q2="c.", q3="cw", q4="cw")
    score = score_benchmark(questions, grades, 2)
    return compare_published(score, tally(questions, grades, 2).questions, published(50, 64), {})


def test_settings_that_differ_are_named_with_both_values() -> None:
    result = compared(published(50, 64, settings={"temperature": 0.6, "top_p": 0.95}), temperature=0.6, top_p=1.0)
    assert result.differing == {"top_p": (1.0, 0.95)}


def test_the_shipped_scores_load_and_each_names_its_source() -> None:
    scores = load_published()
    assert len(scores) > 50
    assert {score.benchmark for score in scores} == {"aime24", "aime25", "math500", "gpqa_diamond"}
    found = matching(scores, "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "aime24")
    assert [(s.metric, s.value) for s in found if "SGLang" in s.source.title] == [("pass@1", pytest.approx(0.332))]
    assert matching(scores, "deepseek-r1-distill-qwen-1.5b", "aime24") == found


GOOD = """
schema: 1
source: {title: T, url: "https://example.org", by: others}
questions: {demo: 4}
scores:
  - {model: a/b, benchmark: demo, metric: pass@1, percent: 50}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("percent: 50", "percent: 500"), "scores.0.percent"),
        (GOOD.replace("percent: 50", "percent: 50, sample: 4"), "scores.0.sample"),
        (GOOD.replace("https:", "javascript:"), "source.url"),
        (GOOD.replace("{demo: 4}", "{}"), "how many questions demo has"),
        (GOOD.replace("schema: 1", "schema: 2"), "schema"),
        ("scores: [", "no plain YAML"),
        ("!!python/object/apply:os.system [true]", "no plain YAML"),
        ("", "found nothing"),
    ],
)
def test_a_bad_published_file_is_refused_naming_file_and_field(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"bad\.yaml") as refused:
        load_published(tmp_path)
    assert message in str(refused.value)


def test_the_example_of_the_documentation_loads(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text("utf-8")
    (tmp_path / "example.yaml").write_text(page.split("```yaml")[1].split("```")[0], "utf-8")
    assert [(s.source.engine, s.samples) for s in load_published(tmp_path)] == [("vllm", 64)]


def test_a_good_published_file_loads(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    assert [(s.model, s.value, s.samples) for s in load_published(tmp_path)] == [("a/b", 0.5, None)]
