"""The samples of a run graded by the nodes of a Ray cluster: each task a stretch of a journal, with the local grader.

What the tasks leave is what a scoring here would have left: it finds every grade, and counts them as ever.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.asking.watching import Watcher
from harness.core.errors import Sentence
from harness.core.records import Grade
from harness.extensions.clusters.ray.cluster import Cluster
from harness.presets.grading import GradingOptions
from harness.runs import BenchmarkFolder, RunFolder, grades
from harness.runs.manifest import Manifest
from harness.scoring.pipeline import grade_span

PART_BYTES = 64 * 1024 * 1024
"""Smallest stretch of a journal for a task, in bytes: less is graded in the time that a task needs to begin."""

PARTS_PER_CPU = 4
"""Largest number of tasks for each processor of the cluster. Several each, so that the slowest task ends soon after the
others.
"""


def grade_on(on: str, folder: RunFolder, grading: GradingOptions, watcher: Watcher) -> GradingOptions:
    """Grade every sample of the run on the cluster `on` and write the grades. Returns the options for the scoring on
    this machine that follows, by which nothing is graded twice.

    Grades that are still valid are kept, unless `grading` is fresh. Raises `StoreError`, and what a task raises.
    """
    with Cluster(on) as cluster:
        for name in Manifest.load(folder).benchmarks:
            files = folder.benchmark(name)
            spans = _spans(files, PARTS_PER_CPU * cluster.n_cpus)
            parts = [files.path / f"grades.part-{start}.jsonl" for start, _ in spans]
            # A scoring that was interrupted may have left parts, cut at other places.
            _remove(files)
            given = [
                (str(folder.path), name, span, str(part), grading.deadline_s, grading.fresh)
                for span, part in zip(spans, parts, strict=True)
            ]
            labels = [f"{name}, bytes {start} to {stop}" for start, stop in spans]
            done = cluster.each(grade_part, given, labels, _PartReport(name, watcher))
            watcher.standing(Sentence(f"{name}: {sum(done):,} samples graded in {len(parts)} parts"))
            grades.write(files, _together(parts))
            _remove(files)
    return grading.but(fresh=False)


def grade_part(run: str, benchmark: str, span: tuple[int, int], out: str, deadline_s: float, fresh: bool) -> int:
    """On a node: the grades of a stretch of the journal into the file `out`. Returns how many there are."""
    grading = GradingOptions(workers=1, deadline=deadline_s, fresh=fresh)
    return grade_span(RunFolder(run), benchmark, span, Path(out), grading)


def _spans(files: BenchmarkFolder, most: int) -> list[tuple[int, int]]:
    """Stretches of the journal, in bytes, that are its whole."""
    size = files.samples.stat().st_size if files.has_samples() else 0
    n = max(1, min(most, size // PART_BYTES))
    return list(pairwise([size * i // n for i in range(n + 1)]))


def _together(parts: Sequence[Path]) -> Iterator[Grade]:
    """The grades of all parts, the last part first: of a key that stands twice in a journal the first record counts,
    and of two grades of one key the last."""
    for part in reversed(parts):
        yield from grades.read_file(part)


def _remove(files: BenchmarkFolder) -> None:
    for part in files.path.glob("grades.part-*.jsonl"):
        with contextlib.suppress(FileNotFoundError):
            part.unlink()


class _PartReport:
    """Reports how many parts are graded, at each further tenth."""

    def __init__(self, name: str, watcher: Watcher) -> None:
        self._name, self._watcher, self._shown = name, watcher, 0

    def __call__(self, ended: Sequence[Any]) -> None:
        n = sum(part is not None for part in ended)
        if n - self._shown >= max(1, len(ended) // 10) and n < len(ended):
            self._shown = n
            self._watcher.standing(Sentence(f"{self._name}: {n} of {len(ended)} parts graded"))
