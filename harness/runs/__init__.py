"""The checkpoint store: a run's folder, manifest, journal of samples, questions, grades, lock and log.

Callers use the names below; `questions` and `grades` read and write their files. This package depends on no server and
no grading rule. While another process is writing, a reader sees the old or the new state of a file or reports the
writer.
"""

from harness.runs.journal import Journal, JournalReport, read_samples
from harness.runs.layout import BenchmarkFolder, RunFolder, RunLog
from harness.runs.lock import locked
from harness.runs.manifest import BenchmarkRecord, Difference, Manifest
from harness.runs.missing import Plan

__all__ = [
    "BenchmarkFolder",
    "BenchmarkRecord",
    "Difference",
    "Journal",
    "JournalReport",
    "Manifest",
    "Plan",
    "RunFolder",
    "RunLog",
    "locked",
    "read_samples",
]
