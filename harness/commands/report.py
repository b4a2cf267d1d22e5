"""Makes the report on scored runs, with published scores of their models for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.commands.again import lines_again
from harness.commands.baselines import Side
from harness.commands.comparison_warnings import comparison_warnings
from harness.commands.imported_runs import open_scored
from harness.commands.known_questions import known_as
from harness.commands.same_replies import remarks
from harness.core import channel
from harness.core.errors import StoreError
from harness.core.inert import visible
from harness.deciding.comparison import PairedComparison
from harness.deciding.published import load_published
from harness.reports.report import Report
from harness.reports.report import report as report_of
from harness.reports.scored import ScoredBenchmark, ScoredRun, read_without_grades
from harness.reports.settings import checksum_table, failure_table, given_table, run_table
from harness.runs import Manifest, sweep_cell
from harness.runs.layout import SHARDS, RunFolder, readable, runs_in
from harness.runs.merging import unjoined_in_words


def report(sources: Sequence[Path]) -> Report:
    """The report on these run folders, or scored outputs of other tools; the first is the baseline. Writes nothing.

    A folder of runs, such as a sweep's, means the runs in it; if it is the only source, it names the report. Raises
    `UsageError`, `StoreError`.
    """
    for source in sources:
        for shards in sorted(source.glob(f"*/{SHARDS}")) if runs_in(source) else ():
            if not RunFolder(shards.parent).manifest.is_file() and runs_in(shards):
                path = visible(str(shards.parent), 200)
                channel.warn(f"{path} is omitted because its shards have not been joined: run `harness score {path}`")
    named = [folder for source in sources for folder in sorted(runs_in(source), key=_place) or [open_scored(source)]]
    manifests = dict(readable(named, Manifest.load))
    folders = list(manifests)
    published = load_published(models=[manifest.model for manifest in manifests.values()])
    of_one_folder = len(sources) == 1 and bool(runs_in(sources[0]))
    return report_of(
        folders,
        published,
        repeat=lines_again,
        known_as=known_as,
        remarks=remarks,
        cautions=_cautions,
        title=visible(sources[0].resolve().name, 200) if of_one_folder else "",
    )


def _cautions(
    run: ScoredRun, ours: ScoredBenchmark, base: ScoredRun, theirs: ScoredBenchmark, paired: PairedComparison
) -> Sequence[str]:
    """The warnings that `compare` would give; a sentence instead if a file that they need cannot be read."""
    try:
        return comparison_warnings(Side(run, ours), Side(base, theirs), paired)
    except StoreError as error:
        return [f"some warnings could not be computed: {error}"]


def _place(folder: RunFolder) -> int:
    """The run's position in its sweep; 0 if no sweep has recorded it or the record is damaged."""
    try:
        return sweep_cell.read_note(folder).place
    except StoreError:
        return 0


def run_facts(folder: RunFolder) -> dict[str, Any]:
    """What the viewer's page for a run shows: tables of its times and failures, `folded` tables of settings and
    checksums, its warnings, and the commands that repeat it. Raises `StoreError`.
    """
    run = read_without_grades(folder)
    return {
        "tables": [*filter(None, (run_table([run]), failure_table([run])))],
        "folded": [
            *(given_table(run, benchmark) for benchmark in run.benchmarks),
            *(table for benchmark in run.benchmarks if (table := checksum_table([run], benchmark)).rows),
        ],
        "warnings": [*run.history.warnings, *unjoined_in_words(folder)],
        "commands": lines_again(run.manifest, run.label, run.scores),
    }


def default_folder(sources: Sequence[Path]) -> Path:
    """The default folder of a report: the folder of the only run; for several runs, the folder that contains the first;
    for a folder of runs, that folder.
    """
    if runs_in(sources[0]):
        return sources[0]
    first = open_scored(sources[0]).path
    return first if len(sources) == 1 else first.parent
