"""Makes a report from run folders, in all formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from rich.console import Group, RenderableType
from rich.text import Text

from harness.core.errors import StoreError, UsageError
from harness.core.files import remove
from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.deciding.paired_comparison import PairedComparison, compare_runs
from harness.deciding.published import PublishedScore
from harness.deciding.published_comparison import PublishedComparison
from harness.deciding.verdicts import Decision, RunPair, decide
from harness.reports import formats, score_tables
from harness.reports.comparison_tables import (
    look_warnings,
    n_missing_samples,
    paired_table,
    published_comparisons,
    published_of,
    published_table,
    question_mismatch,
)
from harness.reports.inputs import KnownAs, Remarks, ScoredBenchmark, ScoredRun, read_runs
from harness.reports.plots.plot import Plot
from harness.reports.report_plots import every_plot
from harness.reports.series import training_tables
from harness.reports.settings import differing_table
from harness.reports.table import Table, short
from harness.runs.layout import RunFolder
from harness.runs.manifest import Manifest
from harness.scoring.score import Score
from harness.scoring.table_cells import accuracy_cell

Repeat: TypeAlias = Callable[[Manifest, str, Sequence[Score]], Sequence[str]]
"""(a run's manifest, its name, its scores) → the commands that repeat the run and its grading, line by line."""

Cautions: TypeAlias = Callable[
    [ScoredRun, ScoredBenchmark, ScoredRun, ScoredBenchmark, PairedComparison], Sequence[str]
]
"""(a run, its benchmark, the baseline, its benchmark, their comparison) → the warnings of the comparison."""

BREAKDOWNS = "report_breakdowns.csv"
"""The file in a report's folder with the breakdowns as CSV; `report.csv` has one line per score."""


@dataclass(frozen=True, repr=False)
class Report:
    """A report on scored runs. In the table of paired comparisons, each benchmark's baseline is the first run that
    includes it.

    For the fields `repeat`, `title` and `cautions`, see `harness.reports.report.report`.
    """

    runs: tuple[ScoredRun, ...]
    published: tuple[PublishedScore, ...] = ()
    repeat: Repeat | None = None
    title: str = ""
    cautions: Cautions = lambda *_: ()

    @cached_property
    def scores(self) -> list[tuple[ScoredRun, ScoredBenchmark, Score]]:
        """All scores, run by run."""
        return [(run, b, b.score) for run in self.runs for b in run.benchmarks.values() if b.score is not None]

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """All tables, in the order of the report.

        They are: summary; scores; over k; samples; measures; tokens; budgets; speed; goodput; engine;
        breakdowns by columns of the questions; training steps; paired differences; published scores;
        settings that differ. A table without data is left out.
        """
        names = dict.fromkeys(name for run in self.runs for name in run.benchmarks)
        return (
            score_tables.summary_table(self.runs),
            *self._numbers,
            *self.breakdowns,
            *self._comparisons,
            # The HTML page shows all settings.
            *filter(None, (differing_table(self.runs, name) for name in names)),
        )

    @cached_property
    def breakdowns(self) -> tuple[Table, ...]:
        """A table for each question column by which a score is broken down, such as a level."""
        return tuple(
            score_tables.breakdown_table(run.label, score, by)
            for run, _, score in self.scores
            for by in score.breakdowns
        )

    @cached_property
    def _numbers(self) -> tuple[Table, ...]:
        """The tables of numbers; a table that no score has data for is left out."""
        if not self.scores:
            return ()
        labeled = [(run.label, score) for run, _, score in self.scores]
        where_any = (
            score_tables.measure_table,
            score_tables.turn_table,
            score_tables.token_table,
            score_tables.budget_table,
            score_tables.speed_table,
            score_tables.goodput_table,
            score_tables.engine_table,
        )
        return (
            score_tables.score_table(labeled, with_notes=False),
            score_tables.over_k_table(labeled),
            score_tables.sample_table(labeled),
            *filter(None, (table_of(labeled) for table_of in where_any)),
        )

    @cached_property
    def _comparisons(self) -> tuple[Table, ...]:
        """The tables of training runs, paired differences and published scores, if there are any."""
        return (*training_tables(self.runs), *filter(None, [self._paired[1]]), *self._published_tables())

    @property
    def answer(self) -> str:
        """The result in one sentence: the comparison with the smallest p, or the scores of a run."""
        decisions = self._paired[0]
        if not decisions:
            scored = (
                f"{accuracy_cell(score, '%')} on {short(benchmark.name)}"
                + f" (unfinished: {count_noun(score.n_missing, 'sample')} missing)" * bool(score.n_missing)
                for _, benchmark, score in self.scores
            )
            return f"{short(self.runs[0].label)}: {', '.join(scored)}" if len(self.runs) == 1 and self.scores else ""
        counts = Counter(decision.verdict for decision in decisions)
        clearest = min(decisions, key=lambda decision: decision.p_sampling).sentence
        counted = ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())
        several = f" (the clearest of {len(decisions)} comparisons: {counted})"
        return clearest + several * (len(decisions) > 1)

    def terminal(self) -> RenderableType:
        """Return the answer, the summary and the comparisons for a rich console. The other formats also contain the
        details.
        """
        tables = formats.to_terminal((score_tables.summary_table(self.runs), *self._comparisons))
        return Group(Text(f"{self.answer}\n"), tables) if self.answer else tables

    def markdown(self) -> str:
        """Return the report as Markdown for an issue, a README or a model card, including the commands that reproduce
        the runs.
        """
        return (
            f"{formats.in_markdown(self.answer)}\n\n" * bool(self.answer)
            + formats.to_markdown(self.tables)
            + formats.commands_in_markdown(self._commands)
        )

    def latex(self) -> str:
        """Return the first table as LaTeX, for a paper."""
        return formats.to_latex([score_tables.summary_table(self.runs)])

    def csv(self) -> str:
        """Return all numbers as CSV, with one line per run and benchmark."""
        return formats.to_csv(self._with_models)

    @property
    def _commands(self) -> list[tuple[str, str]]:
        """(run label, line) for each line of the commands that repeat the runs."""
        repeat, runs = self.repeat, self.runs
        return [(run.label, line) for run in runs if repeat for line in repeat(run.manifest, run.label, run.scores)]

    @property
    def _with_models(self) -> list[tuple[str, str, Score]]:
        """(run label, model, score) for every score."""
        return [(run.label, run.manifest.model, score) for run, _, score in self.scores]

    def html(self) -> str:
        """Return the report as a self-contained HTML page without scripts or external requests. All external text is
        escaped and truncated.
        """
        from harness.reports.page import page  # Imported late: it needs Jinja, and no other format does.

        return page(
            self.runs,
            score_tables.summary_table(self.runs),
            self._comparisons,
            self._numbers,
            self._published_comparisons,
            self.answer,
            self._paired[0],
            commands=self._commands,
            title=self.title,
        )

    def plots(self) -> Iterator[Plot]:
        """Yield all plots, each with a unique name. `plots.plot.write_plots` writes them to files."""
        yield from every_plot(self.runs, self._published_comparisons, self._paired[0])

    def write(self, folder: Path) -> Path:
        """Write report.html, .md, .csv and .tex to `folder`, and also `BREAKDOWNS` if there are breakdowns. Returns the
        path of the HTML page. Raises `StoreError`.
        """
        texts = {"report.csv": self.csv(), "report.md": self.markdown(), "report.tex": self.latex()}
        if self.breakdowns:
            texts[BREAKDOWNS] = formats.to_breakdown_csv(self._with_models)
        else:
            remove(folder / BREAKDOWNS)  # of an earlier report
        return formats.write_files(folder, {**texts, "report.html": self.html()})[-1]

    def __repr__(self) -> str:
        """Only the names of the runs, because their grades would fill pages."""
        return f"<Report of {', '.join(visible(run.label, 80) for run in self.runs)}>"

    def _repr_markdown_(self) -> str:
        return self.markdown()

    @cached_property
    def _paired(self) -> tuple[list[Decision], Table | None]:
        """Each run's comparison with its baseline, and their table: the base recorded by its sweep, if it is in the
        report, otherwise the first run with the same benchmark. No table if no benchmark is in two runs.
        """
        first_with: dict[str, tuple[ScoredRun, ScoredBenchmark]] = {}
        cells: dict[tuple[Path | None, str], tuple[ScoredRun, ScoredBenchmark]] = {
            (run.folder.path, item.name): (run, item) for run, item, _ in self.scores
        }
        bases = {run.folder.path.with_name(run.suite.base) for run in self.runs if run.suite.base}
        comparisons: list[RunPair] = []
        uncompared: list[tuple[str, str, str]] = []
        for run, benchmark, _ in self.scores:
            sibling = run.folder.path.with_name(run.suite.base) if run.suite.base else None
            base = cells.get((sibling, benchmark.name))
            first = first_with.setdefault(benchmark.name, base or (run, benchmark))
            baseline, of_baseline = base or first
            if run is baseline or run.folder.path in bases:
                continue
            try:
                comparisons.append(run_pair(run, benchmark, baseline, of_baseline, self.cautions))
            except UsageError:
                why = f"not compared because it has no question in common with {short(baseline.label)}"
                uncompared.append((run.label, benchmark.name, why))
        n_runs = Counter(benchmark.name for _, benchmark, _ in self.scores)
        baselines = {name: run.row(name) for name, (run, _) in first_with.items() if n_runs[name] > 1}
        if not baselines:
            return [], None
        alone = [(run.label, name) for name, (run, _) in first_with.items() if name not in baselines]
        uncompared += [(label, name, "not compared because no other run has this benchmark") for label, name in alone]
        decisions = decide(comparisons)
        return decisions, paired_table(baselines, decisions, uncompared)

    @cached_property
    def _published_comparisons(self) -> dict[tuple[str, str], list[PublishedComparison]]:
        """(run label, benchmark) → its comparisons with published scores."""
        return {
            (run.label, benchmark.name): published_comparisons(
                run, benchmark, published_of(run, benchmark, self.published)
            )
            for run, benchmark, _ in self.scores
        }

    def _published_tables(self) -> list[Table]:
        """The table that compares the runs with published scores; empty if nothing is published."""
        rows = [
            (label, comparison)
            for (label, _), compared in self._published_comparisons.items()
            for comparison in compared
        ]
        whys = (question_mismatch(item, published_of(run, item, self.published)) for run, item, _ in self.scores)
        reasons = dict.fromkeys(filter(None, whys))
        return [published_table(rows, reasons)] if rows or reasons else []


def run_pair(
    run: ScoredRun, benchmark: ScoredBenchmark, baseline: ScoredRun, of_baseline: ScoredBenchmark, cautions: Cautions
) -> RunPair:
    """The comparison of a run with its baseline on a benchmark for which both have a score.

    Raises `UsageError` if they share no question.
    """
    paired = compare_runs(benchmark.questions, of_baseline.questions)
    return RunPair(
        run=run.row(benchmark.name),
        baseline=baseline.row(of_baseline.name),
        paired=paired,
        warnings=(
            *cautions(run, benchmark, baseline, of_baseline, paired),
            *look_warnings(run, benchmark, baseline, of_baseline),
        ),
        imported=benchmark.record.imported or of_baseline.record.imported,
        n_missing=n_missing_samples(benchmark) + n_missing_samples(of_baseline),
    )


def report(
    run_folders: Sequence[RunFolder],
    published: Sequence[PublishedScore] = (),
    *,
    repeat: Repeat | None = None,
    known_as: KnownAs | None = None,
    remarks: Remarks | None = None,
    title: str = "",
    cautions: Cautions = Report.cautions,
) -> Report:
    """The report on these runs, compared with the `published` scores of their models (`scoring.load_published()`).

    repeat: returns the command that repeats a run. cautions: returns the warnings of a comparison.
    known_as, remarks: as in `read_runs`. title: the heading of the page; empty: the names of the models. Raises
    `StoreError` if a folder is not a run or a file is damaged.
    """
    runs = read_runs(run_folders, known_as=known_as, remarks=remarks, named_by_sweep=True)
    if not runs:
        raise StoreError("none of the runs can be read")
    return Report(tuple(runs), tuple(published), repeat, title, cautions)
