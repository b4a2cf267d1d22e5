"""`inflight.jsonl`: what is read is the beginning of what was written, whatever befell the file."""

from __future__ import annotations

import json
import os
import threading
from array import array
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records import SCHEMA_VERSION, Seam
from harness.runs import inflight, record
from harness.runs.inflight import Inflight, Partial
from harness.runs.layout import RunFolder
from harness.runs.line_file import LineFile
from harness.runs.record import Task

TEXTS = st.text(max_size=12)


def ignore(*_: Any, **__: Any) -> None:
    """No log."""


def at(text: str, reasoning: str | None = None, request: str = "r", seams: tuple[Seam, ...] = ()) -> Partial:
    ids = array("i", map(ord, (reasoning or "") + text))
    return Partial(request=request, engine="vllm", text=text, reasoning=reasoning, tokens=len(ids), ids=ids,
                   prompt_ids=[1, 2, 3], seams=seams, logprobs=tuple(-n / 100 for n in ids[-16:]))  # fmt: skip


def key(n: int) -> Task:
    return Task("b/../é\n", f"q{n}", n)


def write(folder: RunFolder, steps: list[tuple[int, str]]) -> dict[Task, Partial]:
    """Each sample's text grows step by step; returns where it ended."""
    folder.path.mkdir(parents=True, exist_ok=True)
    file = Inflight(folder, ignore)
    grown: dict[Task, Partial] = {}
    for n, more in steps:
        now = grown[key(n)] = at((grown[key(n)].text or "" if key(n) in grown else "") + more)
        file.keep(key(n), now)
    file.close()
    return grown


def same(stored: Partial, written: Partial) -> bool:
    as_lists = [list(partial.ids or ()) for partial in (stored, written)]
    fields = [
        (partial.request, partial.text or "", partial.reasoning, partial.tokens, partial.seams, partial.logprobs)
        for partial in (stored, written)
    ]
    return fields[0] == fields[1] and as_lists[0] == as_lists[1] and list(stored.prompt_ids or ()) == [1, 2, 3]


@given(steps=st.lists(st.tuples(st.integers(0, 2), TEXTS), max_size=12))
def test_what_was_kept_comes_back_equal(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    written = write(folder, steps)
    stored = inflight.read(folder)
    assert stored.damaged == 0
    assert stored.partials.keys() == written.keys()
    assert all(same(stored.partials[key_of_sample], written[key_of_sample]) for key_of_sample in written)


STEPS = [(0, "Once "), (1, "2 + 2"), (0, "upon\u2028 a "), (1, " = 4"), (0, "time 😀"), (1, "\n\nDone.")]


def test_cut_at_any_byte_the_rest_is_a_beginning(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    written = write(folder, STEPS)
    data = folder.inflight.read_bytes()
    for n in range(len(data)):
        folder.inflight.write_bytes(data[:n])
        stored = inflight.read(folder)
        assert stored.damaged == (n > 0 and data[n - 1 : n] != b"\n")
        for sample_key, partial in stored.partials.items():
            assert (written[sample_key].text or "").startswith(partial.text or "")
            assert partial.tokens == len(partial.text or "") == len(partial.ids or ())


def test_any_damaged_byte_costs_what_follows_of_its_sample_and_no_other(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    written = write(folder, STEPS)
    data = folder.inflight.read_bytes()
    for n in range(0, len(data)):
        spoilt = bytearray(data)
        spoilt[n] ^= 0x21
        folder.inflight.write_bytes(spoilt)
        stored = inflight.read(folder)
        assert stored.damaged >= 1
        whole = [
            sample_key
            for sample_key in written
            if sample_key in stored.partials and same(stored.partials[sample_key], written[sample_key])
        ]
        assert len(whole) >= (0 if data[n : n + 1] == b"\n" else 1), "two samples paid for one byte"
        for sample_key, partial in stored.partials.items():
            assert (written[sample_key].text or "").startswith(partial.text or "")
            assert list(partial.ids or ()) == [ord(c) for c in partial.text or ""]


def test_lines_of_two_requests_are_never_glued(tmp_path: Path) -> None:
    """The first line of a second request is lost; its others fit the first one's by their numbers."""
    folder = RunFolder(tmp_path)
    file = Inflight(folder, ignore)
    file.keep(key(0), at("first "))
    file.keep(key(0), at("second", request="other"))
    file.keep(key(0), at("second one", request="other"))
    file.close()
    lines = folder.inflight.read_bytes().splitlines(keepends=True)
    folder.inflight.write_bytes(lines[0] + lines[1][:20] + b"\n" + lines[2])
    assert inflight.read(folder).partials[key(0)].text == "first "


def test_a_later_request_of_a_sample_replaces_the_earlier_one(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    file = Inflight(folder, ignore)
    file.keep(key(0), at("a long beginning"))
    seam = Seam(tokens=6, text=6, reasoning=0, exact=True)
    file.keep(key(0), at("a long story", seams=(seam,)))
    file.keep(key(1), at("x", reasoning="thought"))
    file.close()
    partials = inflight.read(folder).partials
    assert (partials[key(0)].text, partials[key(0)].seams) == ("a long story", (seam,))
    assert partials[key(1)].reasoning == "thought"


def test_what_is_forgotten_is_gone_and_an_empty_file_is_removed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    file = Inflight(folder, ignore)
    file.keep(key(0), at("one"))
    file.keep(key(1), at("two"))
    file.forget(key(0))
    file.close()
    assert inflight.read(folder).partials.keys() == {key(1)}
    assert inflight.read(folder, is_wanted=lambda sample: sample == key(0)).partials == {}
    file = Inflight(folder, ignore)
    file.rewrite(inflight.read(folder).partials)
    file.forget(key(1))
    file.close()
    assert not folder.inflight.exists()


def test_the_file_stays_within_a_multiple_of_what_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight, "GROWTH_BYTES", 20_000)
    folder = RunFolder(tmp_path)
    file = Inflight(folder, ignore)
    largest = 0
    for n in range(500):
        file.keep(key(n), at("word " * 50))
        file.forget(key(n - 1))
        if file.wants_rewriting:
            file.rewrite({key(n): at("word " * 50)})
        while file.busy:
            pass
        largest = max(largest, folder.inflight.stat().st_size if folder.inflight.exists() else 0)
    file.close()
    assert largest < 60_000
    assert inflight.read(folder).partials.keys() == {key(499)}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_costs_the_salvage_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    events: list[str] = []
    file = Inflight(RunFolder(tmp_path), lambda event, **_: events.append(event))
    file.keep(key(0), at("one"))
    file.close()
    assert events == ["inflight_given_up"]


def test_a_planted_link_is_not_written_through_and_said_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    elsewhere = tmp_path / "elsewhere"
    folder.inflight.symlink_to(elsewhere)
    events: list[str] = []
    file = Inflight(folder, lambda event, **_: events.append(event))
    file.keep(key(0), at("one"))
    file.keep(key(0), at("one two"))
    file.rewrite({key(0): at("one two")})
    file.close()
    assert events == ["inflight_given_up"]
    assert not elsewhere.exists()


def kept(folder: RunFolder, *partials: Partial) -> Partial:
    """What is read of one sample after these were kept, one after another."""
    file = Inflight(folder, ignore)
    for partial in partials:
        file.keep(key(0), partial)
    file.close()
    return inflight.read(folder).partials[key(0)]


@pytest.mark.parametrize("field", ["ids", "lengths"])
@pytest.mark.parametrize("stated_first", [True, False])
def test_numbers_that_come_or_go_under_way_begin_the_sample_anew(
    tmp_path: Path, field: str, stated_first: bool
) -> None:
    """Else what was stated for a part only would stand for all of it."""
    without = Partial(request="r", text="ab", tokens=2, ids=[1, 2], lengths=[1, 1])
    after = Partial(request="r", text="abc", tokens=3, ids=[1, 2, 3], lengths=[1, 1, 1])
    steps = [without, msgspec.structs.replace(after, **{field: None})]
    if not stated_first:
        steps = [msgspec.structs.replace(without, **{field: None}), after]
    assert kept(RunFolder(tmp_path), *steps) == steps[1]
    numbers = [json.loads(line)["number"] for line in RunFolder(tmp_path).inflight.read_bytes().splitlines()]
    assert numbers == [0, 0]


def test_what_grows_is_extended_field_by_field(tmp_path: Path) -> None:
    steps = [
        Partial(request="r", engine="e", server_model="m", reasoning="th", tokens=1, lengths=[2], prompt_ids=[7]),
        Partial(request="r", engine="e", reasoning="thought", tokens=2, lengths=[2, 5]),
        Partial(request="r", engine="e", reasoning="thought", text="so", tokens=3, lengths=[2, 5, 2], logprobs=(-0.5,)),
    ]
    folder = RunFolder(tmp_path)
    whole = msgspec.structs.replace(steps[2], server_model="m", prompt_ids=[7], ids=None)
    assert kept(folder, *steps, steps[2]) == whole
    lines = [json.loads(line) for line in folder.inflight.read_bytes().splitlines()]
    assert [line["number"] for line in lines] == [0, 1, 2], "what is there already is not written again"
    assert [line.get("reasoning") for line in lines] == ["th", "ought", None]
    assert [line.get("text") for line in lines] == [None, None, "so"]
    assert [line.get("prompt_ids") for line in lines] == [[7], None, None]
    assert [line["lengths"] for line in lines] == [[2], [5], [2]]
    assert len({line["nonce"] for line in lines}) == 1


def test_the_model_is_the_one_stated_last(tmp_path: Path) -> None:
    steps = [Partial(request="r", server_model=name, text="a" * n, tokens=n) for n, name in enumerate("xy", 1)]
    assert kept(RunFolder(tmp_path), *steps).server_model == "y"


@pytest.mark.parametrize("shorter", [{"text": "a"}, {"reasoning": "t"}, {"tokens": 1}])
def test_a_part_that_became_shorter_in_any_way_is_written_anew(tmp_path: Path, shorter: dict[str, Any]) -> None:
    before = Partial(request="r", text="ab", reasoning="th", tokens=2)
    after = msgspec.structs.replace(before, **shorter)
    assert kept(RunFolder(tmp_path), before, after) == after


def test_a_line_of_a_newer_schema_is_damage_and_the_first_damage_is_named(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write(folder, [(0, "a"), (1, "b"), (2, "c")])
    first, second, third = folder.inflight.read_bytes().splitlines(keepends=True)
    newer = json.loads(first) | {"schema": SCHEMA_VERSION + 1}
    del newer["crc"]
    folder.inflight.write_bytes(record.seal(json.dumps(newer).encode()).line + second[:9] + b"\n" + third)
    stored = inflight.read(folder)
    assert (stored.damaged, stored.partials.keys()) == (2, {key(2)})
    assert stored.notes == [f"line 1: schema {SCHEMA_VERSION + 1}"]


def test_a_file_that_cannot_be_read_is_a_note_and_a_missing_one_is_none(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert inflight.read(folder).notes == []
    folder.inflight.symlink_to(folder.inflight)
    stored = inflight.read(folder)
    assert (stored.partials, stored.damaged) == ({}, 0)
    (note,) = stored.notes
    assert note.startswith(f"cannot read {folder.inflight}: it is a symbolic link")


def test_a_link_planted_before_a_rewrite_stays_and_ends_the_keeping(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    events: list[str] = []
    file = Inflight(folder, lambda event, **_: events.append(event))
    file.keep(key(0), at("one"))
    file.sync()
    while file._waiting and not file._waiting[-1].done():
        pass
    folder.inflight.unlink()
    folder.inflight.symlink_to(tmp_path / "elsewhere")
    file.rewrite({key(0): at("one")})
    file.close()
    assert (events, folder.inflight.is_symlink()) == (["inflight_given_up"], True)


def test_token_ids_that_one_line_lacks_are_none(tmp_path: Path) -> None:
    """No line of ours lacks what another one of its request has; a file of others may."""
    folder = RunFolder(tmp_path)
    for ids in ([None, [2]], [[1], None]):
        written = [
            inflight._PartialLine(**key(0)._asdict(), request="r", number=n, text="a", ids=of_line)
            for n, of_line in enumerate(ids)
        ]
        folder.inflight.write_bytes(b"".join(map(inflight._encoded, written)))
        (stored,) = inflight.read(folder).partials.values()
        assert (stored.text, stored.ids) == ("aa", None)


def test_a_forgotten_sample_writes_one_line_and_an_unknown_one_none(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    file = Inflight(folder, ignore)
    file.keep(key(0), at("a"))
    file.keep(key(1), at("b"))
    file.forget(key(0))
    file.forget(key(0))
    file.forget(key(2))
    assert not file.wants_rewriting, "some hundred bytes are no growth"
    file.close()
    assert [json.loads(line)["number"] for line in folder.inflight.read_bytes().splitlines()] == [0, 0, -1]


def test_a_rewritten_file_holds_all_parts_and_may_grow_by_its_own_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflight, "GROWTH_BYTES", 3000)
    folder = RunFolder(tmp_path)
    file = Inflight(folder, ignore)
    file.keep(key(0), at("a"))
    file.rewrite({key(0): at("a"), key(1): at("word " * 100)})
    n_kept = 2
    while not file.wants_rewriting:
        file.keep(key(n_kept), at("b" * 20))
        n_kept += 1
    file.close()
    assert inflight.read(folder).partials.keys() == {key(n) for n in range(n_kept)}
    lengths = [len(line) for line in folder.inflight.read_bytes().splitlines(keepends=True)]
    beyond = sum(lengths[2:]) - sum(lengths[:2]) - 3000
    assert 0 <= beyond < lengths[-1]


def test_it_is_busy_while_more_than_its_bound_of_writes_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    class Slow(LineFile):
        def append(self, line: bytes) -> None:
            gate.wait()
            super().append(line)

    monkeypatch.setattr(inflight, "LineFile", Slow)
    folder = RunFolder(tmp_path)
    file, busy = Inflight(folder, ignore), []
    for n in range(inflight.MAX_WAITING + 1):
        busy.append(file.busy)
        file.keep(key(n), at("a"))
    busy_at_last = file.busy
    gate.set()
    assert (any(busy), busy_at_last) == (False, True)
    while file.busy:
        pass
    file.close()
    assert len(inflight.read(folder).partials) == inflight.MAX_WAITING + 1


def test_it_is_not_busy_once_enough_writes_have_ended_though_the_last_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = [threading.Event() for _ in range(3)]
    ended = threading.Event()

    class Slow(LineFile):
        def append(self, line: bytes) -> None:
            if (gate := gates[0]) is gates[-1]:
                ended.set()
            gate.wait()
            gates.pop(0)
            super().append(line)

    monkeypatch.setattr(inflight, "LineFile", Slow)
    monkeypatch.setattr(inflight, "MAX_WAITING", 1)
    file = Inflight(RunFolder(tmp_path), ignore)
    for n in range(3):
        file.keep(key(n), at("a"))
    assert file.busy
    gates[0].set()
    gates[1].set()
    ended.wait()  # the writer is at the third
    last = gates[-1]
    try:
        assert not file.busy
    finally:
        last.set()
        file.close()


def test_a_sync_and_the_end_wait_for_the_disk_and_a_line_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    file = Inflight(RunFolder(tmp_path), ignore)
    file.sync()
    file.keep(key(0), at("a"))
    file.sync()
    file.keep(key(0), at("ab"))
    file.close()
    assert len(synced) == 2


def test_nothing_kept_leaves_nothing(tmp_path: Path) -> None:
    Inflight(RunFolder(tmp_path), lambda event, **_: pytest.fail(event)).close()
    assert list(tmp_path.iterdir()) == []


def test_tokens_of_all_parts_are_counted() -> None:
    assert inflight.kept_tokens([at("ab"), at("cde"), Partial(request="r")]) == 5


def test_a_closed_file_holds_no_descriptor(tmp_path: Path) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    for n in range(3):
        write(RunFolder(tmp_path / str(n)), [(0, "a")])
    assert len([*Path("/proc/self/fd").iterdir()]) == before
