"""docs/statistics.md quotes sentences on judged, undecided and missing samples as they are printed, save the numbers.

For: harness.scoring.score, harness.scoring.audit, harness.verbs.comparison_warnings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from harness.core.hidden_limit import EarlyCut, HiddenLimit
from harness.presets.grading import GradingOptions
from harness.scoring import stats
from harness.scoring.audit import Audited, JudgeErrors
from harness.scoring.pipeline import score_run
from harness.scoring.score import score_benchmark
from harness.scoring.stats import Estimate, Interval
from harness.testing import FakeServer
from tests.docs.pages import DOCS
from tests.scoring.graded import graded
from tests.system.command import harness
from tests.verbs.judged_runs import PROSE, judge_run, ruling_by, serve, write_run


def masked(text: str) -> str:
    """The text in one line, with # for each number and without Markdown's marks."""
    return re.sub(r"[+-]?\d+(?:[.,]\d+)*", "#", " ".join(text.replace("`", "").split()))


PAGE = masked((DOCS / "statistics.md").read_text("utf-8"))


def scored() -> Iterator[str]:
    """The warnings of scores with undecided, missing and single samples."""
    row = "cwcw" * 25
    questions, grades = graded(q1=row, q2=row[:-2] + "uu", q3=row[:-2] + "..")
    yield from score_benchmark(questions, grades, 100).sentences
    questions, grades = graded(q1=row, q2=row[:90] + "." * 10)
    yield from score_benchmark(questions, grades, 100).sentences
    questions, grades = graded(q1="cw", q2="c", q3="w", q4="c", q5="wc")
    yield from score_benchmark(questions, grades, None).sentences


def judged() -> Iterator[str]:
    """The sentences on the errors of a judge, with and without an audit."""
    accuracy = Estimate(value=0.6, sampling=Interval(0.5, 0.7), question=Interval(0.4, 0.8))
    for n_both in (60, 0):
        yield JudgeErrors(n_judged=120, n_samples=480, n_both=n_both, n_differing=n_both // 15).sentence
    yield Audited(
        accuracy=accuracy, n_population=1920, n_audited=100, n_differing=6, n_accepted=4, of_judge=True,
        n_undecided=3, accuracy_undecided_right=0.61,
    ).sentence  # fmt: skip


def test_the_page_quotes_the_warnings_of_a_score() -> None:
    kinds = ("of the samples are undecided", "partial:", "unfinished:", "questions with one sample")
    printed = [warning for warning in scored() if any(kind in warning for kind in kinds)]
    assert len(printed) == 4, printed
    assert [sentence for sentence in printed if masked(sentence) not in PAGE] == []


def test_the_page_quotes_the_sentences_on_a_judge_and_on_a_hidden_limit() -> None:
    first, second, audited = map(masked, judged())
    assert first in PAGE
    assert second.partition(": ")[2].partition(". ")[0] in PAGE
    assert audited in PAGE
    assert masked(HiddenLimit(tokens=40, n_at=19, n_samples=20).sentence) in PAGE
    assert masked(EarlyCut(tokens=100, max_tokens=2000, n_at=137, n_samples=240).sentence) in PAGE


def test_the_page_quotes_the_warnings_of_a_comparison(tmp_path: Path) -> None:
    texts = [r"\boxed{\text{plants making sugar}}", r"\boxed{\text{plants that rest}}"]
    run = write_run(tmp_path / "run", {"q1": (PROSE, texts), "q2": ("4", [r"\boxed{4}"] * 2)})
    score_run(write_run(tmp_path / "first", {"q1": (PROSE, texts), "q2": ("4", [r"\boxed{4}"] * 2)}), GradingOptions())
    with FakeServer(ruling_by({"making": True})) as server:
        judge_run(run, serve(server))
    done = harness(tmp_path, "compare", "first", "run")
    shown = masked(done.out + done.err)
    quoted = re.findall(r"undecided answers count as wrong: .*?let a judge decide", PAGE)
    quoted += re.findall(r"# of # verdicts of the run are .*?measures them", PAGE)
    assert len(quoted) == 2
    assert [sentence for sentence in quoted if sentence not in shown] == []


def test_the_page_prints_the_table_of_intervals() -> None:
    table = [row for row in (stats.__doc__ or "").splitlines() if row.startswith("|")]
    assert len(table) > 8
    assert "\n".join(table) in (DOCS / "method" / "statistics.md").read_text("utf-8")
