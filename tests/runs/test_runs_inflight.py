"""`inflight.jsonl`: what is read is what was written, whatever befell the file."""

from __future__ import annotations

import os
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Arriving
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import SoFar
from harness.core.errors import StoreError
from harness.core.records import SCHEMA_VERSION, Seam
from harness.generation.dispatch.flight import Flight, Lane, Work
from harness.generation.dispatch.too_many_requests import Pace
from harness.generation.network import written_parts
from harness.generation.network.written_parts import Partial, PartWriter
from harness.runs import record
from harness.runs.layout import RunFolder
from harness.runs.missing import Missing, Task


def at(text: str, reasoning: str | None = None) -> Partial:
    ids = array("i", map(ord, (reasoning or "") + text))
    seams = (Seam(tokens=3, text=3, reasoning=0, exact=True),)
    return Partial(
        request="r",
        engine="vllm",
        text=text,
        reasoning=reasoning,
        tokens=len(ids),
        ids=ids,
        prompt_ids=[1, 2, 3],
        seams=seams,
    )


def key(n: int) -> Task:
    return Task("b/../é\n", f"q{n}", n)


def plain(partial: Partial) -> Partial:
    return msgspec.structs.replace(partial, ids=[*partial.ids])


TEXTS = st.tuples(st.text(max_size=12), st.none() | st.text(max_size=12))
PARTS = {key(0): at("Once upon\u2028 a time 😀"), key(1): at("2 + 2 = 4\n\nDone.", "hm"), key(2): at("\ud800")}


@given(texts=st.dictionaries(st.integers(0, 3), TEXTS))
def test_what_was_written_comes_back_equal(
    tmp_path_factory: pytest.TempPathFactory, texts: dict[int, tuple[str, str | None]]
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    parts = {key(n): at(*both) for n, both in texts.items()}
    for _ in range(2):
        written_parts.write_parts(folder, parts)
        stored = written_parts.read_parts(folder)
        assert stored == ({task: plain(part) for task, part in parts.items()}, "")
    assert folder.inflight.exists() == bool(parts)


def test_cut_at_any_byte_whole_parts_come_back_and_of_a_damaged_file_none(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    written_parts.write_parts(folder, PARTS)
    data = folder.inflight.read_bytes()
    written = {task: plain(part) for task, part in PARTS.items()}
    for n in range(len(data)):
        folder.inflight.write_bytes(data[:n])
        stored = written_parts.read_parts(folder)
        assert stored.partials.items() <= written.items()
        assert (len(stored.partials) >= data[:n].count(b"\n"), stored.damage) == (True, "")
        folder.inflight.write_bytes(data[:n] + bytes([data[n] ^ 1]) + data[n + 1 :])
        stored = written_parts.read_parts(folder)
        assert (stored.damage and not stored.partials) or stored.partials.items() < written.items(), n


def test_what_is_no_file_of_ours_is_told_and_a_missing_one_is_none(tmp_path: Path) -> None:
    assert written_parts.read_parts(RunFolder(tmp_path)) == ({}, "")
    for content, words in (
        (b'{"key":["b","q",0],"part":{"request":"r"},"schema":%d}' % (SCHEMA_VERSION + 1), "line 1 has schema 2"),
        (b'{"request":"r","text":"a","tokens":1,"benchmark":"b","question_id":"q","number":0}', "line 1 is damaged"),
    ):
        RunFolder(tmp_path).inflight.write_bytes(record.seal(content))
        assert words in written_parts.read_parts(RunFolder(tmp_path)).damage
    RunFolder(tmp_path).inflight.unlink()
    RunFolder(tmp_path).inflight.mkdir()
    assert "cannot read" in written_parts.read_parts(RunFolder(tmp_path)).damage


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.write_text("precious")
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.inflight.symlink_to(target)
    with pytest.raises(StoreError):
        written_parts.write_parts(folder, PARTS)
    assert target.read_text() == "precious"


class Streams:
    """A keeper's log, its clock, and the text of a reply under way."""

    def __init__(self, folder: Path) -> None:

        self.now, self.events = 0.0, list[str]()
        self.folder = RunFolder(folder)
        self.folder.path.mkdir(exist_ok=True)
        missing = [Missing("b", "q", (0, 1))]
        self.writer = PartWriter(self.folder, missing, self.log, lambda: self.now)

    def log(self, event: str, **_: Any) -> None:
        self.events.append(event)

    def begin(self, index: int, text: str) -> None:

        arriving = Arriving()
        so_far = SoFar(text=text, reasoning=None, ids=None, prompt_ids=None, n_events=len(text), server_model=None)
        arriving.so_far = lambda: so_far
        view = lambda so_far: Partial(request="r", text=so_far.text, tokens=so_far.n_events)  # noqa: E731
        self.writer.begin(Task("b", "q", index), arriving, view)

    def stored(self) -> dict[int, str | None]:
        parts = written_parts.read_parts(self.folder).partials
        return {task.sample_index: part.text for task, part in parts.items()}


def test_parts_are_written_every_half_minute_and_at_the_end(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.begin(0, "So")
    streams.begin(1, "")
    streams.now = 29.0
    streams.writer.look()
    assert not streams.folder.inflight.exists()
    streams.now = 31.0
    streams.writer.look()
    streams.writer.close()
    assert streams.stored() == {0: "So"}
    assert Streams(tmp_path).writer.partials.keys() == {Task("b", "q", 0)}


def test_once_all_samples_are_stored_the_file_is_removed(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.begin(0, "So")
    streams.writer.keep_all()
    streams.writer.ended(Task("b", "q", 0))
    streams.writer.forget(Task("b", "q", 0))
    streams.writer.close()
    assert not streams.folder.inflight.exists()


ONWARD = [
    # F: a continuation fails; A: a whole request is answered; T: a continuation brings tokens; U: no connection;
    # |: another session. The last column: whether the next request continues the part.
    ("", True), ("F", True), ("FF", True), ("FAF", True), ("AFAF", False), ("FAFAF", False), ("AF|AF", False),
    ("F|F", True), ("FFFF|FFFF", False), ("FFF", False), ("FFFA", True), ("FFFAF", True), ("AFTAF", True),
    ("UUUUUUUUUU", True), ("AUAUAUAU", True), ("FF|FF|FF|FF", False),
]  # fmt: skip


@pytest.mark.parametrize(("events", "may"), ONWARD)
def test_an_endpoint_that_answers_whole_requests_and_fails_a_continuation_is_asked_whole_in_any_session(
    tmp_path: Path, events: str, may: bool
) -> None:
    lane = Lane(endpoint=Endpoint.parse("http://server:80"), pace=Pace(1, lambda: 0.0))
    streams = Streams(tmp_path)

    def flight(index: int, *, continues: bool) -> Flight:
        streams.now += 1
        return Flight(Work(Task("b", "q", index)), lane, streams.now, 1, 0, 1, Arriving(), continues=continues)

    streams.begin(0, "So")
    streams.writer.keep(Task("b", "q", 0))
    for event in events:
        if event == "|":
            streams.writer.close()
            streams = Streams(tmp_path)
            continue
        request = flight(event == "A", continues=event != "A")
        failure = RequestFailed("connect", "no", sent=event != "U")
        failure.n_events = int(event == "T")
        if event == "A":
            streams.writer.answered(request)
        else:
            streams.writer.to_continue(request)
            streams.begin(0, "So it goes" if event == "T" else "")
            streams.writer.failed(request, failure)
    assert (streams.writer.to_continue(flight(0, continues=True)) is not None) is may
    assert streams.writer.partials, "a part is kept until a whole reply has begun"
    streams.writer.answered(flight(0, continues=False))
    assert not streams.writer.partials
    assert len(streams.writer.anew) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_costs_the_salvage_only(tmp_path: Path) -> None:
    streams = Streams(tmp_path / "run")
    streams.folder.path.chmod(0o500)
    streams.begin(0, "So")
    streams.writer.close()
    assert streams.events == ["inflight_given_up"]
