"""The results of a sweep: every cell with its score, or the reason why it has none.

Each cell is compared with its base cell and with published scores of its model. The p-values of all differences in the
sweep are corrected together with Holm's method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from harness.commands.benchmark_identity import card_name
from harness.commands.compare import verify_benchmark
from harness.commands.comparison_warnings import effort_without_effect
from harness.commands.repeated_replies import repeat_warnings
from harness.core.errors import HarnessError, StoreError, UsageError
from harness.core.number_text import count_noun, is_are
from harness.core.sanitize import quoted
from harness.deciding import published_order
from harness.deciding.difference_stats import holm
from harness.deciding.paired_comparison import PairedComparison, compare_runs, mean_comparison, mean_score
from harness.deciding.published import load_published
from harness.deciding.published_comparison import PublishedComparison, PublishedVerdict
from harness.deciding.verdicts import LEVEL
from harness.probes.likelihood import Likelihood
from harness.reports.inputs import RunHistory, ScoredBenchmark, read_runs
from harness.reports.series import settings_apart
from harness.runs import RunFolder, read_samples
from harness.scoring.load import LoadPoint, load_point
from harness.scoring.score import Score
from harness.scoring.stats import Estimate
from harness.sweeps import record
from harness.sweeps.cell_state import reading_stamp, server_stamp
from harness.sweeps.plan import Cell, OtherEntries, Sweep, without

NOT_RUN = "not run"
"""The reason given for a cell without a record."""

OTHER_SERVER = "some or all samples come from the server as described in an earlier version of the sweep file"
"""The remark on a cell whose server entry in the file has changed since its samples were generated."""


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """The result of one cell.

    reason: why the cell has no score, or a score with missing samples; empty if nothing is wrong. against_base: the
    cell minus its base cell; None if they are not compared. p: p-value of the difference on the same questions,
    corrected with Holm's method. published: comparisons with published scores, nearest settings first, in the order of
    `deciding.published_order`. standing: the verdict over all of them; None if there are none. suite: address of
    the suite's own source; empty if there is none. other_questions: why scores published under the benchmark's name are
    not compared; empty if they are. remark: a remark that the model's files or the server's entry have changed since
    the samples were generated, that the step repeats the step before, or that more reasoning made no reply longer;
    often empty. apart: how the settings of a step differ from those of its curve, which excludes it from comparisons
    with other steps; otherwise empty. likelihood: the likelihoods that its server assigns to its base's replies.
    unread: why it cannot read them. history: what its run's log records. load: what the log records about its load, in
    a load curve.
    """

    cell: Cell
    benchmark: ScoredBenchmark | None = None
    reason: str = ""
    against_base: PairedComparison | None = None
    p: float | None = None
    published: Sequence[PublishedComparison] = ()
    standing: PublishedVerdict | None = None
    suite: str = ""
    other_questions: str = ""
    remark: str = ""
    apart: str = ""
    likelihood: Likelihood | None = None
    unread: str = ""
    history: RunHistory = field(default_factory=RunHistory)
    load: LoadPoint | None = None

    @property
    def score(self) -> Score | None:
        """The cell's score; None if there is none."""
        return None if self.benchmark is None else self.benchmark.score

    @property
    def notes(self) -> tuple[str, ...]:
        """The footnotes on its score: what is missing or has different settings, what is undecided, how likely the
        base's replies are on its server, and a remark; some are empty.
        """
        read, undecided = self.unread, ""
        if self.likelihood:
            read = f"compared with its base on the base's replies: {self.likelihood.sentence}"
        if self.score is not None and (n := self.score.n_undecided):
            samples = count_noun(self.score.n_samples, "sample")
            undecided = f"{n} of {samples} {is_are(n)} undecided and counted as wrong"
        whys = (self.apart or self.reason, undecided, read)
        return (*(f"{self.cell.name}: {why}" if why else "" for why in whys), self.remark)

    @property
    def samples(self) -> float | None:
        """Number of samples per question; None if there is no score."""
        return None if self.benchmark is None else self.benchmark.record.plan.samples

    @property
    def differs(self) -> bool:
        """Whether the cell differs significantly from its base."""
        return self.p is not None and self.p < LEVEL

    @property
    def nearest(self) -> PublishedComparison | None:
        """The comparison with the published pass@1 that is shown next to the cell; None if there is none."""
        return published_order.nearest(self.published, "pass@1", self.suite)


class Aggregate(NamedTuple):
    """The mean accuracy over a suite's benchmarks at one point; each benchmark counts once.

    point: axis → name of the entry, for all axes except the benchmarks. difference, p: the mean minus the base's mean,
    and its p-value, corrected with Holm's method; None if there is no base or the two cannot be compared. missing:
    benchmarks without a complete score over the samples that the sweep requests. mean is None if one of them has no
    score; the intervals are None if a run has missing samples, since these may have any result. reported: the published
    mean over the same settings of one benchmark; None if there is none.
    """

    point: Mapping[str, str]
    mean: Estimate | None
    missing: Sequence[str]
    difference: Estimate | None = None
    p: float | None = None
    reported: PublishedComparison | None = None


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of a sweep. results: every cell, in order.

    aggregates: the means over a suite's benchmarks; empty if the sweep is not a suite. written: the table files, once
    they have been written.
    """

    sweep: Sweep
    results: Sequence[CellResult]
    aggregates: Sequence[Aggregate]
    written: Sequence[Path] = ()

    @property
    def lost(self) -> list[CellResult]:
        """The cells that failed, have missing samples or cannot be read."""
        return [result for result in self.results if result.reason]

    @property
    def disagreeing(self) -> list[CellResult]:
        """The cells whose score does not agree with published scores of their model."""
        return [result for result in self.results if result.standing == "not compatible"]


def results(sweep: Sweep) -> Results:
    """Read the results of a sweep from disk and compare each cell with its base; correct all p-values with Holm's
    method.

    No server is contacted. A cell whose files are damaged has no score, and its reason names the file.
    """
    by_name = {each.cell.name: each for each in _with_apart([_read(sweep, cell) for cell in sweep.cells])}
    bases = sweep.base_cells
    compared = [
        _with_difference(each, by_name[bases[name]]) if name in bases else each for name, each in by_name.items()
    ]
    means = _aggregates(sweep, compared) if sweep.suite is not None else []
    of_cells = [result.against_base.p_sampling for result in compared if result.against_base is not None]
    adjusted = iter(holm([*of_cells, *(result.p for result in means if result.p is not None)]))
    return Results(
        sweep=sweep,
        results=[result if result.against_base is None else replace(result, p=next(adjusted)) for result in compared],
        aggregates=[result._replace(p=next(adjusted)) if result.p is not None else result for result in means],
    )


def _read(sweep: Sweep, cell: Cell) -> CellResult:
    """The cell's result. If its files are damaged, only its own score is lost: the other cells may have taken days."""
    stored = record.read(sweep.out, cell.name)
    reason = NOT_RUN if stored is None else stored.reason
    try:
        result = _read_run(sweep, cell, reason)
    except StoreError as error:
        return CellResult(cell=cell, reason=reason or quoted(error.sentence))
    if stored is None:
        return result
    if stored.read in ("", reading_stamp(sweep, cell)):
        result = replace(result, likelihood=stored.likelihood, unread=stored.unread)
    if stored.server in ("", server_stamp(cell)):
        return result
    return replace(result, remark="; ".join(filter(None, (result.remark, OTHER_SERVER))))


def _read_run(sweep: Sweep, cell: Cell, reason: str) -> CellResult:
    """The cell's result from its run folder and the published scores of its model. Raises `StoreError`.

    reason: why the cell has no score, or one with missing samples, according to its record; empty if nothing is wrong.
    """
    folder = RunFolder(sweep.folder(cell))
    if not folder.manifest.is_file():
        return CellResult(cell=cell, reason=reason or "its run folder is missing")
    (run,) = read_runs([folder], known_as=card_name, remarks=repeat_warnings)
    benchmark = next(iter(run.benchmarks.values()), None)
    if benchmark is None or benchmark.score is None or not benchmark.questions:
        return CellResult(cell=cell, reason=reason or "not scored")
    model = run.manifest.model
    try:
        verified = verify_benchmark(run, benchmark, load_published(models=[model]), model)
    except UsageError:  # a file of published scores is damaged, which does not affect the cells' own scores
        verified = None
    return CellResult(
        cell=cell,
        benchmark=benchmark,
        reason=reason,
        published=() if verified is None else verified.comparisons,
        standing=None if verified is None else verified.standing,
        suite=run.suite.source,
        other_questions="" if verified is None else verified.reason,
        remark="; ".join(run.remarks),
        history=run.history,
        load=load_point(read_samples(folder.benchmark(benchmark.name)), cell.options.concurrency or 1)
        if sweep.is_load_curve and not cell.options.batch
        else None,
    )


def _with_apart(cells: Sequence[CellResult]) -> list[CellResult]:
    """The results, with a note for each step on how its settings differ from those of its curve."""
    apart = settings_apart(
        (f"{cell.benchmark} {cell.curve}", cell.checkpoint.step, cell.name, result.benchmark.record)
        for result in cells
        if (cell := result.cell).checkpoint is not None and result.benchmark is not None
    )
    return [replace(result, apart=apart.get(result.cell.name, "")) for result in cells]


def _with_difference(result: CellResult, reference: CellResult) -> CellResult:
    """The cell with its difference from the reference on their common questions, and a remark if more reasoning made no
    reply longer. Unchanged if there are no scores or common questions, and for a step with settings that differ from
    its curve's.
    """
    if result.benchmark is None or reference.benchmark is None or result.apart or reference.apart:
        return result
    try:
        pair = compare_runs(result.benchmark.questions, reference.benchmark.questions)
    except HarnessError:  # The two cells have no common questions.
        return result
    warnings = effort_without_effect(result.benchmark, reference.benchmark)
    return replace(result, against_base=pair, remark="; ".join(filter(None, (result.remark, *warnings))))


def _aggregates(sweep: Sweep, cell_results: Sequence[CellResult]) -> list[Aggregate]:
    """The mean over the benchmarks for each combination of entries of the other axes, compared with its base's mean."""
    by_point: dict[OtherEntries, list[CellResult]] = {}
    names = [entry.name for entry in sweep.averaged]
    for result in (one for one in cell_results if one.cell.point["benchmarks"] in names):
        by_point.setdefault(without("benchmarks", result.cell.point), []).append(result)
    # A point for which the file excludes benchmarks has no mean.
    return [_aggregate(dict(point), listed) for point, listed in by_point.items() if len(listed) == len(names)]


def _aggregate(point: Mapping[str, str], listed: Sequence[CellResult]) -> Aggregate:
    """The mean over the benchmarks at one point, with its intervals, and its difference from the base's mean.

    point: axis → name of the entry, without the benchmark. listed: the results of all benchmarks at this point.
    """
    lacking = [each for each in listed if each.reason or each.score is None or each.score.accuracy is None]
    missing = [each.cell.benchmark for each in lacking]
    mean = mean_score([result.score for result in listed])
    pairs = [result.against_base for result in listed if result.against_base is not None]
    compared = mean_comparison(pairs) if len(pairs) == len(listed) else None
    reported = published_order.mean_over([result.published for result in listed], "pass@1")
    difference, p = (None, None) if compared is None else (compared.difference, compared.p_sampling)
    return Aggregate(point, mean, missing, difference, p, reported)
