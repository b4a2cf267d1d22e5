"""`inflight.jsonl`: what is read is the beginning of what was written, whatever befell the file."""

from __future__ import annotations

import os
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records import Seam
from harness.runs import inflight
from harness.runs.inflight import Inflight, Partial, SampleKey
from harness.runs.layout import RunFolder

TEXTS = st.text(max_size=12)


def ignore(*_: Any, **__: Any) -> None:
    """No log."""


def at(text: str, reasoning: str | None = None, request: str = "r", seams: tuple[Seam, ...] = ()) -> Partial:
    ids = array("i", map(ord, (reasoning or "") + text))
    return Partial(request=request, engine="vllm", text=text, reasoning=reasoning, tokens=len(ids), ids=ids,
                   prompt_ids=[1, 2, 3], seams=seams, logprobs=tuple(-n / 100 for n in ids[-16:]))  # fmt: skip


def key(n: int) -> SampleKey:
    return SampleKey("b/../é\n", f"q{n}", n)


def write(folder: RunFolder, steps: list[tuple[int, str]]) -> dict[SampleKey, Partial]:
    """Each sample's text grows step by step; returns where it ended."""
    folder.path.mkdir(parents=True, exist_ok=True)
    file = Inflight(folder, ignore)
    grown: dict[SampleKey, Partial] = {}
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
