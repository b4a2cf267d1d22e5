"""The file `labels.jsonl`: words that a person put on samples, each with name and time. Only appended to.

A label changes no verdict and no score. It groups samples that fail alike, to count them and read them together.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from harness.core.errors import UsageError
from harness.core.records import SCHEMA_VERSION, Key, SampleRecord
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import append_line, line, read_appended
from harness.runs.overrides import MAX_WHO_CHARS, REMEDY, refuse_false_times

MAX_LABEL_CHARS = 60
"""Largest number of characters of a label."""


class SampleLabel(SampleRecord, frozen=True, kw_only=True):
    """A label that a person put on a sample, or took off; the last line of a key and label counts.

    put: False takes the label off. when: UTC, ISO 8601.
    """

    label: str
    put: bool
    who: str
    when: str
    schema: int = SCHEMA_VERSION


def set_label(folder: BenchmarkFolder, key: Key, label: str, *, put: bool, who: str) -> None:
    """Put a label on the sample `key`, or take it off, as of now; on disk when this returns.

    Raises `UsageError` if `label` or `who` is empty or too long, `StoreError` when the disk refuses.
    """
    word = " ".join(label.split())
    if not word or len(word) > MAX_LABEL_CHARS:
        raise UsageError(f"a label has 1 to {MAX_LABEL_CHARS} characters, this one has {len(word)}.")
    if not who.strip() or len(who) > MAX_WHO_CHARS:
        raise UsageError(f"a label needs the name of who gives it, of 1 to {MAX_WHO_CHARS} characters.")
    record = SampleLabel(
        benchmark=folder.name,
        question_id=key.question_id,
        sample_index=key.sample_index,
        label=word,
        put=put,
        who=who.strip(),
        when=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    append_line(folder.labels, line(record))


def read(folder: BenchmarkFolder) -> list[SampleLabel]:
    """All labels ever put or taken off, in order; empty without a file. Raises `StoreError` for a damaged file."""
    records = read_appended(folder.labels, SampleLabel, REMEDY)
    refuse_false_times(folder.labels, "label", [record.when for record in records])
    return records


def in_force(labels: Iterable[SampleLabel]) -> dict[Key, tuple[str, ...]]:
    """The labels that a sample has now, in the alphabet's order; samples without a label are left out."""
    last = {(record.key, record.label): record.put for record in labels}
    by_key: dict[Key, tuple[str, ...]] = {}
    for key, label in sorted(pair for pair, put in last.items() if put):
        by_key[key] = (*by_key.get(key, ()), label)
    return by_key
