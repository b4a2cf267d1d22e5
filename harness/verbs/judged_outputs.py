"""Has a judge rule on the grades of another tool's outputs, as on those of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import chain
from pathlib import Path

from harness.core.records import Key, Sample
from harness.generation.progress import Progress
from harness.scoring import Score
from harness.scoring.pipeline import GradedBenchmark, publish
from harness.verbs.judge import Judged, JudgeSettings, Serve, judge_grades, mark_unfinished
from harness.verbs.outputs import ScoredFile, write_grades


def judge_file(
    scored: ScoredFile,
    judge: JudgeSettings,
    serve: Serve,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    resume_command: str = "",
    out: Path | None = None,
) -> Judged:
    """Have a judge rule on a file's grades, as `score_with_judge` does for a run.

    The judge's replies are stored beside the file. out: a file that gets the grades after the judge; None: no file.
    """
    for benchmark in scored.graded:
        publish(mark_unfinished(benchmark, judge))
    after: list[GradedBenchmark] = []

    def published(graded: GradedBenchmark) -> Score:
        after.append(graded)
        return publish(graded)

    def samples_of(_: GradedBenchmark, keys: Collection[Key]) -> Iterator[Sample]:
        return (sample for _question, sample in scored.pairs if sample.key in keys)

    judged = judge_grades(
        scored.folder, scored.graded, judge, serve, publish=published, samples_of=samples_of,
        on_progress=on_progress, resume_command=resume_command,
    )  # fmt: skip
    write_grades(out, chain.from_iterable(graded.grades for graded in after))
    return judged
