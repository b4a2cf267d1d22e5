"""Storms end as a quiet campaign does. A few are played here, `make storms` plays many, or plays for hours."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.asking.verbs import VERBS
from harness.runs import record
from tests import warm
from tests.budget import thinned
from tests.runs.recorded import sample
from tests.storms import storm
from tests.storms.campaigns import CAMPAIGNS, OFTEN, commands_of
from tests.storms.storm import KEY, Broken, Outcome, Play, Quiet, disturb_and_compare, name_of

KEPT = ("run", "gateway", "score file", "export trl", "grade")
"""Campaigns that are always played, by the first seed that draws them."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", thinned(KEPT))
def test_a_disturbed_command_ends_as_a_quiet_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm, "launch", warm.started)
    seed = next(seed for seed in range(10_000) if name_of(random.Random(seed)) == name)
    assert storm.play(seed)[f"campaign: {name}"] == 1


def test_storms_play_every_command() -> None:
    played = set().union(*map(commands_of, CAMPAIGNS.values()))
    assert played == set(VERBS) - {"gate", "view"}, "a gate runs and scores as they do, a view stores no sample"
    assert set(OFTEN) <= set(CAMPAIGNS)


QUIET = Outcome([0], ["1 sample"], {"report.md": b"a"}, {"run/sums/samples.jsonl:q0:0": ("said", "", "stop", 5)})


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome([1], QUIET.printed, QUIET.files, QUIET.samples), r"exit codes \[1\]"),
        (Outcome([0], ["2 samples"], QUIET.files, QUIET.samples), "line 0 printed '2 samples'"),
        (Outcome([0], QUIET.printed, {"report.md": b"b"}, QUIET.samples), r"files differ: \['report.md'\]"),
        (Outcome([0], QUIET.printed, {}, QUIET.samples), r"files differ: \['report.md'\]"),
        (Outcome([0], QUIET.printed, {**QUIET.files, "other": b""}, QUIET.samples), r"files differ: \['other'\]"),
        (Outcome([0], QUIET.printed, QUIET.files, {}), "samples differ"),
    ],
)
def test_an_end_that_differs_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, words: str
) -> None:
    monkeypatch.setattr(storm, "undisturbed", lambda play: outcome)
    monkeypatch.setattr(storm, "TROUBLES", (lambda *_: None,))
    monkeypatch.setattr(storm.Play, "lines", lambda play: [["report"]])
    with pytest.raises(Broken, match=words):
        disturb_and_compare(_play(tmp_path), Quiet(QUIET, frozenset(), 0.0))


def _play(folder: Path) -> Play:
    return Play("report", folder, random.Random(1))


def _store(folder: Path, *texts: str) -> None:
    path = folder / "run" / "sums" / "samples.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(record.encode(sample("q0", 0, text, reasoning="", seed=5)) for text in texts))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: _store(folder, "never said"), "is gone or another"),
        (lambda folder: _store(folder, "said", "said"), "stands in the journal twice"),
        (lambda folder: _store(folder), "is gone or another"),
        (lambda folder: (folder / ".x.tmp").touch(), "temporary files are left"),
        (lambda folder: (folder / "log.jsonl").write_text(KEY), "the key is stored in"),
    ],
)
def test_a_command_that_broke_a_promise_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None], words: str
) -> None:
    monkeypatch.setattr(storm, "undisturbed", lambda play: QUIET)
    monkeypatch.setattr(storm, "TROUBLES", (lambda play, *_: damage(play.folder),))
    monkeypatch.setattr(storm.Play, "lines", lambda play: [["report"]])
    _store(tmp_path, "said")
    with pytest.raises(Broken, match=words):
        disturb_and_compare(_play(tmp_path), Quiet(QUIET, frozenset(), 0.0))
