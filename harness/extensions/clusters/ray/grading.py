"""Grade a run's samples on the nodes of a Ray cluster: each task grades one section of a journal.

    journal ── byte ranges ──► one task each ──► grading-parts/START.jsonl ──► joined into the file of grades

That file is the same one that scoring on this machine writes, so the scoring that follows finds every sample graded.
"""

from __future__ import annotations

import shutil
from itertools import chain, pairwise
from pathlib import Path

from harness.extensions.clusters.ray.cluster import Cluster
from harness.presets.grading import GradingOptions
from harness.progress.events import Watcher
from harness.runs import BenchmarkFolder, RunFolder, grades
from harness.runs.manifest import Manifest
from harness.scoring.pipeline import grade_span

PARTS = "grading-parts"
"""The folder next to a benchmark's journal with the grades from individual tasks."""

PART_BYTES = 64 * 1024 * 1024
"""Minimum size of a task's journal section, in bytes; a smaller one is graded faster than a task starts."""

PARTS_PER_CPU = 4
"""Maximum number of tasks per processor of the cluster; short tasks end at about the same time on all processors."""


def grade_on(on: str, folder: RunFolder, grading: GradingOptions, watcher: Watcher) -> GradingOptions:
    """Grade every sample of the run on the cluster `on` and write the grades. Raises `StoreError` and a task's error.

    Grades that are still valid are kept, unless `grading.fresh`. Returns the options for the subsequent scoring on this
    machine: `grading` without `fresh`, so that the scoring keeps these grades.
    """
    with Cluster(on) as cluster:
        for name in Manifest.load(folder).benchmarks:
            files = folder.benchmark(name)
            spans = _spans(files, PARTS_PER_CPU * cluster.n_cpus)
            folder_of_parts = files.path / PARTS
            # An interrupted scoring may have left parts with different boundaries.
            shutil.rmtree(folder_of_parts, ignore_errors=True)
            folder_of_parts.mkdir()
            parts = [folder_of_parts / f"{start}.jsonl" for start, _ in spans]
            arguments = [
                (str(folder.path), name, span, str(part), grading.deadline, grading.fresh)
                for span, part in zip(spans, parts, strict=True)
            ]
            labels = [f"{name}, bytes {start} to {stop}" for start, stop in spans]
            counts = cluster.each(grade_part, arguments, labels, watcher)
            watcher.standing(f"{name}: {sum(counts):,} samples graded in {len(parts)} parts")
            # If a journal has two records of one sample, the first one counts; in a file of grades, the last one. So
            # the order of the parts is reversed: the grade of the first record comes last.
            grades.write(files, chain.from_iterable(map(grades.read_file, reversed(parts))))
            shutil.rmtree(folder_of_parts)
    return grading.replace(fresh=False)


def grade_part(run: str, benchmark: str, span: tuple[int, int], out: str, deadline_s: float, fresh: bool) -> int:
    """Runs on a node: write the grades of a journal section to the file `out`. Returns their number."""
    grading = GradingOptions(workers=1, deadline=deadline_s, fresh=fresh)
    return grade_span(RunFolder(run), benchmark, span, Path(out), grading)


def _spans(files: BenchmarkFolder, most: int) -> list[tuple[int, int]]:
    """Divide the journal into at most `most` sections: (first byte, byte after the last) of each."""
    size = files.samples.stat().st_size if files.has_samples() else 0
    n = max(1, min(most, size // PART_BYTES))
    return list(pairwise([size * i // n for i in range(n + 1)]))
