"""Takes samples out of a journal, so that they are asked for again, and keeps them in `dropped.jsonl` beside it.

Only for samples that are not a run's own, such as a judge's replies. What a kill leaves:

    a kill after                                  the sample stands in
    it is appended to `dropped.jsonl`             both files
    it is taken out of the journal (`drop`)       `dropped.jsonl`
    it is written to the journal (`put_back`)     both files

Invariant: at every byte a sample stands in a file, and no line of `dropped.jsonl` is ever removed. Two lines that hold
the same are one sample (its time is among what it holds), so `all_samples` has each sample once, whatever was killed.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.core.files import write_atomically
from harness.core.records import Key, Sample
from harness.runs import record
from harness.runs.journal import Journal, read_samples
from harness.runs.layout import BenchmarkFolder, RunLog
from harness.runs.line_file import append_line, read_appended

_REMEDY = "Remove the file; what its samples took is then in no account."


def drop(folder: BenchmarkFolder, drops: Callable[[Sample], bool]) -> None:
    """Take the samples for which `drops` is true out of the journal. The caller holds the run's lock.

    Raises `StoreError` when the disk refuses; the journal is then as it was.
    """
    samples = {sample for sample in read_samples(folder) if drops(sample)}
    if new := samples.difference(_read(folder)):
        append_line(folder.dropped_samples, b"".join(record.encode(sample) for sample in new))
    others = (record.encode(sample) for sample in read_samples(folder) if sample not in samples)
    write_atomically(folder.samples, others)


def to_put_back(folder: BenchmarkFolder) -> list[Sample]:
    """The dropped samples in whose place the journal has no other. Raises `StoreError`."""
    last = {sample.key: sample for sample in _read(folder)}
    for sample in read_samples(folder) if last else ():
        last.pop(sample.key, None)
    return [*last.values()]


def put_back(folder: BenchmarkFolder, log: RunLog) -> set[Key]:
    """Write the samples of `to_put_back` to the journal; return their keys. The caller holds the run's lock.

    Raises `StoreError`.
    """
    samples = to_put_back(folder)
    if samples:
        with Journal.open(folder, log=log) as journal:
            for sample in samples:
                journal.append(sample)
    return {sample.key for sample in samples}


def all_samples(folder: BenchmarkFolder) -> set[Sample]:
    """The samples of the journal and the dropped ones, each once. Raises `StoreError`."""
    return {*read_samples(folder), *_read(folder)}


def _read(folder: BenchmarkFolder) -> list[Sample]:
    return read_appended(folder.dropped_samples, Sample, _REMEDY)
