"""`compare` compares runs with a baseline; `verify` compares a run with published scores of its model.

Both read scored run folders, or scored outputs of other tools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from harness.commands.baselines import BenchmarkPair, Side, folders_to_compare, pair_benchmarks
from harness.commands.benchmark_identity import card_name
from harness.commands.comparison_warnings import comparison_warnings
from harness.commands.imported_runs import open_scored
from harness.core.errors import StoreError, UsageError, near_names
from harness.core.sanitize import visible
from harness.deciding.difference_stats import question_difference
from harness.deciding.paired_comparison import pairs
from harness.deciding.published import PublishedScore, load_published
from harness.deciding.published_comparison import PublishedComparison, PublishedVerdict
from harness.deciding.published_order import overall_verdict
from harness.deciding.verdicts import Decision, RunPair, decide
from harness.options.decisions import CompareOptions, VerifyOptions
from harness.reports.comparison_tables import (
    published_comparisons,
    published_of,
    question_mismatch,
    reported_by,
)
from harness.reports.inputs import ScoredBenchmark, ScoredRun, counted_questions, read_runs
from harness.reports.plots.pictures import Labeled, accuracy_plot
from harness.reports.report import run_pair
from harness.reports.report_plots import ticks_of
from harness.runs.layout import RunFolder
from harness.runs.manifest import UNKNOWN_MODEL, Difference
from harness.runs.recorded_settings import server_differences, setting_differences
from harness.scoring.call_measures import counts_of_calls
from harness.scoring.engine_metrics import Change, acceptance_change, engines_beside, paired_ratio
from harness.scoring.measures import n_cut
from harness.scoring.run_reader import OpenRun
from harness.scoring.stats import Array
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import accuracy_of


class SampleKinds(NamedTuple):
    """Counts of one run's samples on a benchmark: all (`n`) and those of a kind.

    truncated: samples cut off by max_tokens; None if a file does not say. mean_completion_tokens: mean length of all
    samples; None if no server stated it. calls: those with function calls and those with each kind of faulty call.
    """

    n: int
    undecided: int
    truncated: int | None
    no_answer: int
    mean_completion_tokens: float | None
    calls: Counter[str]


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """One comparison: the decision, the counts of samples, and the settings that differ.

    baseline_samples, samples: counts of the baseline's and the run's samples, for the questions that both have.
    settings: the settings that differ. engine: sentences about the metrics that both engines reported.
    """

    decision: Decision
    baseline_samples: SampleKinds
    samples: SampleKinds
    settings: Sequence[Difference]
    engine: Sequence[str] = ()


class Comparisons(list[RunComparison]):
    """The comparisons of the runs. uncompared: a sentence for each benchmark that could not be compared, because only
    one run has it or, with a named baseline, because the baseline does not.
    """

    def __init__(self, comparisons: Iterable[RunComparison], uncompared: Sequence[str] = ()) -> None:
        super().__init__(comparisons)
        self.uncompared = tuple(uncompared)


def compare(sources: Sequence[Path], options: CompareOptions) -> Comparisons:
    """Compare each run with the baseline of each of its benchmarks.

    For each benchmark, the baseline is the first run that has it or, if the user names a baseline, only that run.
    sources: scored run folders, or scored outputs of other tools. Raises `UsageError` if no two runs share a benchmark,
    `StoreError` if a run is damaged or not scored.
    """
    runs = read_runs(folders_to_compare(options.baseline, sources), named_by_sweep=True)
    paired, uncompared = pair_benchmarks(runs, only_first=options.baseline is not None)
    margin = None if options.margin is None else options.margin / 100
    decisions = decide([_run_pair(pair) for pair in paired], margin)
    comparisons = [_comparison(decision, *pair) for decision, pair in zip(decisions, paired, strict=True)]
    return Comparisons(comparisons, uncompared)


def _comparison(decision: Decision, ours: Side, baseline: Side) -> RunComparison:
    """The decision with the counts of samples of both sides, and the settings that differ."""
    shared = pairs(baseline.benchmark.questions, ours.benchmark.questions)
    servers = baseline.run.manifest.provenance, ours.run.manifest.provenance
    scores = baseline.benchmark.score, ours.benchmark.score
    items = [item for item, _ in shared], [item for _, item in shared]
    return RunComparison(
        decision=decision,
        baseline_samples=_kinds_of(items[0]),
        samples=_kinds_of(items[1]),
        settings=[*setting_differences(baseline.record, ours.record, servers), *server_differences(*servers)],
        engine=engines_beside(*((score.engine, score.speculation) for score in scores if score is not None)),
    )


def _changes(baseline: ScoredBenchmark, ours: ScoredBenchmark) -> dict[str, Change | None]:
    """What a comparison says about the replies, paired by question: the fields of `RunPair`."""
    both, scores = pairs(baseline.questions, ours.questions), [baseline.score, ours.score]
    items = [item for item, _ in both], [item for _, item in both]
    lengths = [[item.facts["tokens"] for item in side] for side in items]
    tokens, replies = (np.array([[*map(of, side)] for side in lengths], float) for of in (np.nansum, _n_stated))
    counted = (tokens > 0).all(axis=0)
    steps = [score.speculation if score else msgspec.UNSET for score in scores]
    return {
        "tokens": paired_ratio(*np.stack([tokens, replies], axis=1)[:, :, counted]),
        "cut": _change_of_cut(*items),
        "acceptance": acceptance_change(*steps),
    }


def _n_stated(tokens: Array) -> int:
    """The number of replies whose token counts are stated."""
    return int((~np.isnan(tokens)).sum())


def _change_of_cut(before: Sequence[QuestionTally], after: Sequence[QuestionTally]) -> Change | None:
    """The change in the share of cut replies, paired by question; None if a file does not say, or if none is cut."""
    cut = np.array([[item.n_cut for item in side] for side in (before, after)], float)  # NaN where unknown
    if len(before) < 2 or np.isnan(cut).any() or not cut.any():
        return None
    old, new = cut / [[item.n for item in side] for side in (before, after)]
    limits = question_difference(new - old).limits
    return Change(float((new - old).mean()), float(limits.low), float(limits.high))


def _run_pair(pair: BenchmarkPair) -> RunPair:
    """The comparison on one benchmark, with its warnings. Raises `StoreError` if a run has no samples of it."""
    for run, benchmark in pair:
        if not any(item.n for item in counted_questions(run, benchmark)):
            raise StoreError(
                f"{visible(benchmark.name, 80)} of {visible(run.label, 80)} has no samples: complete the run with "
                "the same `harness run` command, then score it."
            )
    ours, baseline = pair
    made = run_pair(*ours, *baseline, lambda *sides: comparison_warnings(ours, baseline, sides[-1]))
    names, changes = (made.run, made.baseline), _changes(baseline.benchmark, ours.benchmark)
    return replace(made, run=ours.run.label, baseline=baseline.run.label, sides=names, **changes)


def _kinds_of(questions: Sequence[QuestionTally]) -> SampleKinds:
    """Count the samples of these questions."""
    grades = [grade for item in questions for grade in item.grades]
    tokens = [grade.completion_tokens for grade in grades if grade.completion_tokens is not None]
    return SampleKinds(
        n=len(grades),
        undecided=sum(item.undecided for item in questions),
        truncated=n_cut(questions),
        no_answer=sum(grade.verdict == "no_answer" for grade in grades),
        mean_completion_tokens=fmean(tokens) if tokens else None,
        calls=counts_of_calls(questions),
    )


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A comparison of a run's score on one benchmark with its model's published scores."""

    benchmark: str
    """Name of the benchmark."""
    standing: PublishedVerdict
    """The verdict."""
    comparisons: Sequence[PublishedComparison]
    """Comparisons with published scores, ordered from most to least similar settings."""
    decided_by: Sequence[int] = ()
    """Indices into `comparisons` of the entries that decided the verdict; empty if none could decide it."""
    reason: str = ""
    """Why scores published under the benchmark's name were not compared; empty if they were."""
    judge: str | msgspec.UnsetType = msgspec.UNSET
    """A note saying that a judge gave some of the verdicts; absent if none."""


def verify(source: Path, options: VerifyOptions) -> list[Verified]:
    """Compare a scored run, or another tool's scored outputs, with published scores of its model, by benchmark.

    Raises `UsageError` if no score of the model is published, `StoreError` if the run is damaged or not scored.
    """
    (run,) = read_runs([open_scored(source)], known_as=card_name)
    name = options.model or run.manifest.model
    if name == UNKNOWN_MODEL:
        raise UsageError(f"the model that wrote {visible(run.label, 200)} is unknown: specify its name", field="model")
    scores = load_published(options.published, models=[name])
    verified = [verify_benchmark(run, benchmark, scores, name) for benchmark in run.benchmarks.values()]
    if not any(verified):
        raise UsageError(_nothing_published(run, name, options.published))
    return [each for each in verified if each is not None]


def verify_benchmark(
    run: ScoredRun, benchmark: ScoredBenchmark, scores: Sequence[PublishedScore], model: str
) -> Verified | None:
    """Compare one benchmark of a run with its published scores among `scores`; None if there are none.

    model: the model's name in `scores`. Raises `StoreError` if the benchmark is not scored.
    """
    counted_questions(run, benchmark)
    references = published_of(run, benchmark, scores, model)
    if reason := question_mismatch(benchmark, references):
        return Verified(benchmark=benchmark.name, standing="cannot say", comparisons=(), reason=reason)
    comparisons = published_comparisons(run, benchmark, references)
    if not comparisons:
        return None
    standing, by = overall_verdict(comparisons, run.suite.source)
    decided_by = [number for number, entry in enumerate(comparisons) if entry in by]
    judge: str | msgspec.UnsetType = msgspec.UNSET
    if (score := benchmark.score) is not None and (errors := score.judge_errors) is not None:
        judge = f"{errors.n_judged:,} of {errors.n_samples:,} verdicts come from a judge"
        judge += ", and the comparison ignores its errors"
    return Verified(
        benchmark=benchmark.name, standing=standing, comparisons=comparisons, decided_by=decided_by, judge=judge
    )


def _nothing_published(run: ScoredRun, model: str, published: Path | None) -> str:
    """Why the run has no published scores, and what to do. published: the location of the user's scores, if any."""
    names = ", ".join(visible(benchmark, 40) for benchmark in run.benchmarks)
    where = "the table of published scores" if published is None else visible(str(published), 200)
    near = near_names(model, {score.model for score in load_published(published) if score.benchmark in run.benchmarks})
    return (
        f"{where} has no score for {visible(model, 100)} on {names}: if the model was published under another "
        f"name, set `model`; otherwise, set `published` to your own scores, keyed by benchmark name.{near}"
    ).removesuffix(".")


def published_beside(folder: RunFolder, benchmark: str) -> str:
    """What others report about the run's model on this benchmark, each source with its number, and whether the run
    agrees with them; empty if nothing is published, or if the run is damaged or not scored."""
    run, verified = _verified(folder, benchmark)
    if run is None or verified is None or verified.reason:
        return "" if verified is None else verified.reason
    words = reported_by(verified.comparisons, run.suite.source, run.benchmarks[benchmark].record.plan.samples)
    return ": ".join(filter(None, (words, verified.standing)))


def picture(runs: Sequence[OpenRun], benchmark: str) -> str:
    """An SVG of runs' accuracies, including verdicts by hand, and published scores; empty if there are no accuracies.

    Raises `UsageError` and `StoreError`.
    """
    rows = []
    for letter, opened in zip("AB", runs, strict=True):
        run, verified = _verified(opened.folder, benchmark)
        ticks = [] if run is None or verified is None else ticks_of(verified.comparisons, run.suite.source)
        accuracy = accuracy_of(opened.benchmark(benchmark).tallies(overridden=True))
        rows.append(Labeled(f"{letter}: {opened.label}", accuracy, ticks))
    plot = accuracy_plot(rows, title="")
    return "" if plot is None else plot.svg(alone=True)


def _verified(folder: RunFolder, benchmark: str) -> tuple[ScoredRun | None, Verified | None]:
    """A run, and one of its benchmarks compared with its model's published scores; None for what cannot be read."""
    try:
        (run,) = read_runs([folder], known_as=card_name)
        model = run.manifest.model
        return run, verify_benchmark(run, run.benchmarks[benchmark], load_published(models=[model]), model)
    except (StoreError, UsageError):
        return None, None
