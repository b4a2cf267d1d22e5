"""Which run each scored benchmark is compared with: the first run that has it, or only the named baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.commands.imported_runs import open_scored
from harness.core.errors import UsageError
from harness.core.files import real
from harness.core.number_text import is_are
from harness.core.sanitize import visible
from harness.reports.inputs import ScoredBenchmark, ScoredRun
from harness.runs.layout import BenchmarkFolder, RunFolder
from harness.runs.manifest import BenchmarkRecord
from harness.scoring.tally import QuestionTally


class Side(NamedTuple):
    """One side of a comparison: a benchmark of a run."""

    run: ScoredRun
    benchmark: ScoredBenchmark

    @property
    def folder(self) -> BenchmarkFolder:
        """The folder of the benchmark's questions and samples, whose name may differ from the comparison's."""
        return self.run.folder.benchmark(self.run.stored_name(self.benchmark))

    @property
    def record(self) -> BenchmarkRecord:
        """The benchmark's record in the manifest."""
        return self.benchmark.record

    def questions(self) -> dict[str, QuestionTally]:
        """The questions with samples, by id."""
        return {item.question.question_id: item for item in self.benchmark.questions if item.n}


class BenchmarkPair(NamedTuple):
    """A benchmark of a run, and the same benchmark of its baseline run."""

    ours: Side
    baseline: Side


def folders_to_compare(baseline: Path | None, sources: Sequence[Path]) -> list[RunFolder]:
    """The run folders, the named baseline first, each once. Raises `UsageError` if there are fewer than two."""
    named = [open_scored(source) for source in (baseline, *sources) if source is not None]
    folders: dict[Path, RunFolder] = {}
    for folder in named:
        folders.setdefault(real(folder.path), folder)
    if len(folders) > 1:
        return list(folders.values())
    if len(named) > 1:
        raise UsageError(f"{visible(str(named[0].source))} is listed twice: specify a different run to compare it with")
    raise UsageError("specify at least two runs: the others are compared with the first")


def _same_questions(side: Side, baselines: Mapping[str, Side]) -> str | None:
    """The name under which a baseline in another run has the same questions; None if there is no such baseline.

    A user may rename a file of questions. A sweep's benchmarks are not renamed, so none is mistaken for another.
    """
    digest = side.record.identity.get("dataset_digest")
    if side.run.sweep is not None or not digest:
        return None
    for name, baseline in baselines.items():
        is_other_run = baseline.run is not side.run and baseline.run.sweep is None
        if is_other_run and baseline.record.identity.get("dataset_digest") == digest:
            return name
    return None


def pair_benchmarks(runs: Sequence[ScoredRun], *, only_first: bool) -> tuple[list[BenchmarkPair], list[str]]:
    """Pair each run's benchmarks with those of their baselines, and write a sentence for each that is in no pair.

    only_first: the first run is the baseline of all benchmarks, because the user named it; otherwise the baseline of a
    benchmark is the first run that has the benchmark, or its questions under another name. Raises `UsageError` if no
    benchmark can be compared.
    """
    baselines: dict[str, Side] = {}
    holders: dict[str, list[str]] = {}
    for run in runs:
        for name in run.benchmarks:
            holders.setdefault(name, []).append(visible(run.label, 80))
    single = {name for name, labels in holders.items() if len(labels) == 1}
    paired = []
    for run in runs:
        for name, benchmark in run.benchmarks.items():
            side, baseline_name = Side(run, benchmark), name if name in baselines else None
            # No other run has this name, but one may have its questions under a name that no other run has.
            if name in single:
                unshared = {other: baseline for other, baseline in baselines.items() if other in single}
                baseline_name = _same_questions(side, unshared)
            if baseline_name is not None:
                paired.append(BenchmarkPair(side, baselines[baseline_name]))
            elif run is runs[0] or not only_first:
                baselines[name] = side
    if not paired:
        held = "; ".join(f"{visible(run.label)} contains {', '.join(map(visible, run.benchmarks))}" for run in runs)
        raise UsageError(
            f"{visible(runs[0].label)} has no benchmarks in common with the other runs: {held}. Runs are "
            "compared on benchmarks with the same name or the same questions. For another tool's outputs, specify the "
            "benchmark when you score them (`harness score FILE` with `benchmark`)"
        )
    compared = {side.benchmark.name for pair in paired for side in pair}
    alone = []
    for name, labels in holders.items():
        if name in compared:
            continue
        why = "no other run includes it"
        if name not in baselines:
            why = f"the baseline {visible(runs[0].label, 80)} does not include it"
        scores = "the score" if len(labels) == 1 else "the scores"
        alone.append(
            f"{scores} of {', '.join(labels)} in {visible(name, 80)} {is_are(len(labels))} not compared: {why}"
        )
    return paired, alone
