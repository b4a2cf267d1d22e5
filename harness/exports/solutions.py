"""Exports a benchmark's own solutions as training data: each question of its card with the text of one column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.core.about import __version__
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.records import FROM_FILE, Question, Sample, Timing
from harness.exports.choice import ExportedBenchmark, SampleChoice, SampleRow
from harness.exports.exporting import Written, find_exporter, refuse_test_data
from harness.runs import Manifest, RunFolder
from harness.runs.manifest import UNKNOWN_MODEL, BenchmarkRecord
from harness.runs.record import Plan


@dataclass(frozen=True)
class SolvedBenchmark(ExportedBenchmark):
    """A benchmark whose one sample of each question is the solution that its data hold; it has no run folder.

    solved: the questions, each with its solution in its metadata under `column`.
    """

    solved: tuple[Question, ...] = field(default=())
    column: str = ""

    def _passing(self) -> Iterator[SampleRow]:
        """A sample for each question that has a solution, with the solution as its text."""
        self.left_out.clear()
        for question in self.solved:
            solution = question.metadata.get(self.column)
            if not isinstance(solution, str) or not solution.strip():
                self.left_out["without a solution"] += 1
            else:
                sample = Sample(
                    benchmark=self.name,
                    question_id=question.question_id,
                    sample_index=0,
                    text=solution,
                    reasoning=None,
                    finish_reason="stop",
                    timing=Timing(started=0.0, total=0.0),
                    endpoint=f"{FROM_FILE}{self.column}",
                )
                yield SampleRow(question, sample, None)


def export_solutions(
    name: str,
    solved: Sequence[Question],
    column: str,
    to: str,
    out: Path | None = None,
    *,
    publish: bool = True,
    i_know: bool = False,
) -> Written:
    """Write a benchmark's solutions in a training format.

    name: of the benchmark. solved: its questions; the metadata of a question have the solution under `column`. to: name
    of the format. out: the folder for the files; None: `exports/FORMAT`. publish: whether the questions may be shown in
    public. i_know: write the files even if `publish` is false or the benchmark is a test set.

    Raises `UsageError`, also for a format that holds no training data, and if no question has a solution.
    """
    exporter = find_exporter(to)
    if exporter.kind != "training":
        raise UsageError(
            f"a benchmark's solutions can only be written as training data, but the format {to} holds {exporter.kind}",
            field="to",
        )
    record = BenchmarkRecord(identity={}, plan=Plan(samples=1), settings={"publish_questions": publish})
    manifest = Manifest(harness_version=__version__, created="", model=UNKNOWN_MODEL, benchmarks={name: record})
    target = (out or Path("exports") / to).absolute()
    source = SolvedBenchmark(RunFolder(target), manifest, name, SampleChoice(), tuple(solved), column)
    if next(source.rows(), None) is None:
        raise UsageError(
            f"no question of {visible(name, 80)} has a text in the column {visible(column, 80)!r}: name the "
            f"column of its data that holds the solutions (solution_key)"
        )
    if not i_know:
        refuse_test_data([source], to, exporter, chosen_to_learn=True)
    return Written(target, tuple(exporter.write([source], target)), {name: source.left_out} if source.left_out else {})
