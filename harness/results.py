"""The values that `harness.run`, `score` and `sweep` return. They print well; `harness.frame` makes tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import msgspec

from harness.core.number_text import count_noun, in_percent
from harness.core.records import Sample
from harness.reports.formats import to_markdown
from harness.reports.score_tables import sample_table, score_table
from harness.runs import Manifest, RunFolder, read_samples
from harness.scoring.call_measures import SCHEMA_ACCURACY
from harness.scoring.score import Score
from harness.scoring.table_cells import lead_estimate, numbers
from harness.sweeps import table

if TYPE_CHECKING:
    from harness.generation.outcome import Outcome
    from harness.grading.second.second_opinion import Agreement
    from harness.judges.judge import JudgeReport
    from harness.sweeps.results import Results


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of `harness.run`: the run, and how its last session ended. It can be passed wherever the path of a run
    is accepted.

    outcome: metrics of the session (finished and missing samples, causes of failures, tokens, seconds) and, if there is
    a target error, whether it was reached. warnings: warnings to show with the run's scores.
    """

    outcome: Outcome = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.outcome.folder

    @property
    def model(self) -> str:
        """Model name used in requests."""
        return self.outcome.model

    @property
    def reached(self) -> str:
        """A message saying that the target error was reached; empty if it was not."""
        return self.outcome.reached

    @property
    def missed(self) -> str:
        """A message saying that the target error was not reached; empty if it was reached or is not set."""
        return self.outcome.missed

    def __fspath__(self) -> str:
        """The run folder's path."""
        return str(self.path)

    @property
    def complete(self) -> bool:
        """Whether all planned samples are stored and the target error, if any, has been reached."""
        return self.outcome.complete and not self.missed

    def samples(self) -> Iterator[Sample]:
        """Yield all stored samples, benchmark by benchmark. Only one sample is in memory at a time."""
        folder = RunFolder(self.path)
        for name in Manifest.load(folder).benchmarks:
            yield from read_samples(folder.benchmark(name))

    def __repr__(self) -> str:
        done, expected = self.outcome.n_done, self.outcome.n_expected
        state = (
            self.reached
            or self.missed
            or ("complete" if self.complete else f"{self.outcome.n_missing} missing; run again to request them")
        )
        return f"<Run {self.path}: {self.model}, {done} of {count_noun(expected, 'sample')}, {state}>"


@dataclass(frozen=True, repr=False)
class Scores(Sequence[Score]):
    """The scores of a run or an output file, one per benchmark.

    `scores["aime24"]` is the score of one benchmark.

    judge: one report per benchmark on the judge's verdicts; empty without a judge. missing: reasons why some of the
    judge's replies are missing; repeat the call to request them. agreements: how often each second grader agrees, by
    grader and benchmark, as in `scores.agreements["sympy"]["aime24"]`.
    """

    label: str
    scores: tuple[Score, ...]
    judge: tuple[JudgeReport, ...] = ()
    missing: tuple[str, ...] = ()
    agreements: Mapping[str, Mapping[str, Agreement]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.scores)

    @overload
    def __getitem__(self, which: int | str) -> Score: ...

    @overload
    def __getitem__(self, which: slice) -> tuple[Score, ...]: ...

    def __getitem__(self, which: int | str | slice) -> Score | tuple[Score, ...]:
        """Return a score by its index, or by the benchmark's name."""
        if not isinstance(which, str):
            return self.scores[which]
        for score in self.scores:
            if score.benchmark == which:
                return score
        raise KeyError(which)

    def records(self) -> list[dict[str, Any]]:
        """Return one flat dictionary per benchmark with all numbers of its score. Accuracies are fractions; unknown
        numbers are None.
        """
        return [{"run": self.label, "benchmark": score.benchmark, **numbers(score)} for score in self.scores]

    def __repr__(self) -> str:
        return "\n".join(map(_score_line, self.scores))

    def _repr_markdown_(self) -> str:
        named = [(self.label, score) for score in self.scores]
        return to_markdown([score_table(named), sample_table(named)])


def _score_line(score: Score) -> str:
    """Return a score in one line: accuracy, both intervals, number of questions and samples."""
    if (estimate := lead_estimate(score)) is None:
        return f"{score.benchmark}: no sample"
    of = "" if score.accuracy else f" {SCHEMA_ACCURACY}"
    same = _interval_text(estimate.sampling, "same questions")
    new = _interval_text(estimate.question, "new questions")
    size = f"{count_noun(score.n_questions, 'question')}, {count_noun(score.n_samples, 'sample')}"
    missing = f", {score.n_missing} missing" if score.n_missing else ""
    return f"{score.benchmark}: {in_percent(estimate.value)}%{of}{same}{new}, {size}{missing}"


def _interval_text(interval: tuple[float, float] | None, of: str) -> str:
    """An interval in percent as the next part of a sentence; empty if it is None. of: what it applies to."""
    return "" if interval is None else f", {in_percent(interval[0])} to {in_percent(interval[1])} ({of})"


@dataclass(frozen=True, kw_only=True)
class Swept:
    """The result of `harness.sweep`.

    folder: the sweep's folder, with its cells and tables. ended: the result of each cell. warnings: warnings to show
    with the tables.
    """

    folder: Path
    ended: Results = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def lost(self) -> dict[str, str]:
        """The cells that failed or are incomplete, with the reason for each."""
        return {result.cell.name: result.reason for result in self.ended.lost}

    @property
    def disagreeing(self) -> list[str]:
        """Names of the cells whose scores disagree with their model's published scores."""
        return [cell_result.cell.name for cell_result in self.ended.disagreeing]

    @property
    def complete(self) -> bool:
        """Whether all cells are complete, without failures."""
        return not self.ended.lost

    def run(self, cell: str) -> Path:
        """Return the run folder of a cell, which `harness.report` and other functions accept."""
        return self.folder / cell

    def records(self) -> list[dict[str, Any]]:
        """Return one flat dictionary per cell: its position on each axis, its numbers (accuracies are fractions), and,
        if it failed, the reason.
        """
        return [msgspec.to_builtins(row) for row in table.records(self.ended)]

    def means(self) -> list[dict[str, Any]]:
        """Return one flat dictionary for each mean over a suite's benchmarks, in the same format as `records`."""
        return [msgspec.to_builtins(row) for row in table.mean_records(self.ended)]

    def markdown(self) -> str:
        """Return the tables as Markdown."""
        return table.markdown(self.ended)

    def _repr_markdown_(self) -> str:
        return self.markdown()
