"""The checkpoint store: a run's folder, manifest, journal of samples, questions, grades, lock and log.

Enter by the names below; `questions` and `grades` read and write their files. Nothing here knows a server or a rule.
A reader beside a writer sees the old state of a file or the new, or says in one sentence that a process writes.
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
