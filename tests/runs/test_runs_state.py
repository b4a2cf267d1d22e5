"""The life of a journal as a state machine: appends, kills, cuts, damage, duplicates, more samples, in any order."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.core.records import Key
from harness.runs import BenchmarkFolder, Journal, JournalReport, read_samples
from tests.budget import examples
from tests.runs.recorded import BENCHMARK, intact_lines, intact_texts, sample

MEMORY = Path("/dev/shm")


class JournalLife(RuleBasedStateMachine):
    """`self.safe`: what was acknowledged and has since not been destroyed by us; the journal may not lose it."""

    def __init__(self) -> None:
        super().__init__()
        parent = tempfile.mkdtemp(prefix="harness-state-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        self.folder = BenchmarkFolder(BENCHMARK, Path(parent) / "b")
        self.safe: dict[Key, str | None] = {}
        self.samples_a_question = 1
        self.journal: Journal | None = None
        self.serial = 0

    def teardown(self) -> None:
        if self.journal is not None:
            self.journal.close()
        shutil.rmtree(self.folder.path.parent)

    @property
    def data(self) -> bytes:
        return self.folder.samples.read_bytes()

    def missing(self) -> list[Key]:
        assert self.journal is not None
        expected = [Key(f"q{q}", i) for q in range(4) for i in range(self.samples_a_question)]
        return [key for key in expected if key not in self.journal.keys]

    @initialize()
    def begin(self) -> None:
        self.resume()

    @precondition(lambda self: self.journal is None)
    @rule()
    def resume(self) -> None:
        before = self.data if self.folder.samples.exists() else b""
        self.journal = Journal.open(self.folder)
        assert self.journal.keys == set(intact_texts(before))
        whole, tail = before[: before.rfind(b"\n") + 1], before[before.rfind(b"\n") + 1 :]
        kept = tail + b"\n" if intact_lines(tail) else b""
        assert self.data == whole + kept, "only a torn tail is taken away"

    @precondition(lambda self: self.journal is not None)
    @rule(n=st.integers(1, 5), text=st.text(st.characters(exclude_categories=()), max_size=20))
    def append_what_is_missing(self, n: int, text: str) -> None:
        assert self.journal is not None
        for key in self.missing()[:n]:
            self.serial += 1
            record = sample(
                *key, text=f"{self.serial} {text}".encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            )
            self.journal.append(record)
            self.safe[key] = record.text

    @rule()
    def raise_n(self) -> None:
        self.samples_a_question += 1

    @precondition(lambda self: self.journal is not None)
    @rule()
    def close(self) -> None:
        assert self.journal is not None
        self.journal.close()
        self.journal = None

    @precondition(lambda self: self.journal is not None and self.missing())
    @rule(data=st.data())
    def lose_power_with_unsynced_records(self, data: st.DataObject) -> None:
        """Records that were not synced reach the disk in part."""
        assert self.journal is not None
        durable = len(self.data)
        for key in self.missing()[:3]:
            self.journal.append(sample(*key, text="not synced"))
        self.close()
        os.truncate(self.folder.samples, data.draw(st.integers(durable, len(self.data))))

    @precondition(lambda self: self.journal is None)
    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        """The end of the file is lost, acknowledged records with it."""
        os.truncate(self.folder.samples, data.draw(st.integers(0, len(self.data))))
        self.safe = {key: text for key, text in self.safe.items() if key in intact_texts(self.data)}

    @precondition(lambda self: self.journal is None and intact_lines(self.data))
    @rule(data=st.data())
    def duplicate_a_line(self, data: st.DataObject) -> None:
        line = data.draw(st.sampled_from(self.data.splitlines(keepends=True)))
        with self.folder.samples.open("ab") as file:
            file.write(line if self.data.endswith(b"\n") else b"\n" + line)

    @precondition(lambda self: self.journal is None and self.data)
    @rule(data=st.data())
    def damage_a_byte(self, data: st.DataObject) -> None:
        """What the disk did behind our back is found by reading everything, as `score` does; then it is missing."""
        content = bytearray(self.data)
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.sampled_from([1, 2, 4, 64, 128]))
        self.folder.samples.write_bytes(content)
        list(read_samples(self.folder))
        left = intact_texts(self.data)
        self.safe = {key: text for key, text in self.safe.items() if left.get(key) == text}

    @invariant()
    def everything_acknowledged_is_read_back_once(self) -> None:
        if not self.folder.samples.exists():
            return
        report = JournalReport()
        read = {record.key: record.text for record in read_samples(self.folder, report=report)}
        assert read == intact_texts(self.data)
        assert self.safe.items() <= read.items()
        assert report.n_records == len(intact_lines(self.data))
        assert report.n_duplicates == report.n_records - len(read)


JournalLife.TestCase.settings = settings(
    max_examples=examples(25),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
test_a_journal_keeps_its_promises_whatever_happens = pytest.mark.fuzz(JournalLife.TestCase)
