"""Storms end as a quiet run does. `make storms` plays many, `make soak` goes on for hours; a few are played here."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.runs import record
from tests import warm
from tests.runs.recorded import sample
from tests.storms import storm
from tests.storms.storm import SHAPES, Broken, Storm, play
from tests.system.command import harness

KEPT = (1, 3, 1049)
"""Seeds that are always played: kills of client and scorer, a restarted server, a failing gateway, a clock that jumps.

One that failed is added here.
"""


def finish_here(played: Storm, *words: str) -> None:
    done = harness(played.folder, *words, extra={"OPENAI_API_KEY": storm.KEY})
    assert done.code == 0, done.err
    assert storm.KEY not in done.out + done.err


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", KEPT)
def test_a_storm_ends_with_the_keys_texts_and_scores_of_a_quiet_run(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody disturbs runs in this process; what is disturbed skips its imports."""
    monkeypatch.setattr(storm, "finish", finish_here)
    monkeypatch.setattr(storm, "launch", warm.started)
    assert play(seed)["samples"] == SHAPES[seed % len(SHAPES)].questions * SHAPES[seed % len(SHAPES)].samples


def store(played: Storm, *texts: str, index: int = 0) -> None:
    played.journal.parent.mkdir(parents=True, exist_ok=True)
    with played.journal.open("ab") as file:
        for text in texts:
            file.write(record.encode(sample("q0", index, text, reasoning="", seed=5)))


EXPECTED = {("q0", index): ("said", "", "stop", 3, 5) for index in range(2)}


def lose(played: Storm) -> None:
    if played.journal.exists():
        played.journal.write_bytes(b"")
    else:
        store(played, "said")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda played: store(played, "never said"), "was never said by the model"),
        (lambda played: store(played, "said", index=7), "was never said by the model"),
        (lambda played: store(played, "said", "said"), "stands in the journal twice"),
        (lose, "is gone or another"),
    ],
)
def test_a_run_that_broke_a_promise_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Storm], None], words: str
) -> None:
    monkeypatch.setattr(storm, "quiet", lambda shape: (EXPECTED, {"accuracy": 1.0}))
    monkeypatch.setattr(storm, "TROUBLES", (damage,))
    with pytest.raises(Broken, match=words):
        storm.disturb_and_compare(Storm(1, tmp_path, SHAPES[1], random.Random(1)))


@pytest.mark.parametrize(
    ("records", "score", "words"),
    [
        ({("q0", 0): EXPECTED["q0", 0]}, {"accuracy": 1.0}, "not those of the quiet run"),
        (EXPECTED, {"accuracy": 0.5}, r"the score is not that of the quiet run in \['accuracy'\]"),
    ],
)
def test_an_end_that_differs_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: object, score: object, words: str
) -> None:
    monkeypatch.setattr(storm, "quiet", lambda shape: (EXPECTED, {"accuracy": 1.0}))
    monkeypatch.setattr(storm, "outcome", lambda _played: (records, score))

    def nothing(_played: Storm) -> None: ...

    monkeypatch.setattr(storm, "TROUBLES", (nothing,))
    with pytest.raises(Broken, match=words):
        storm.disturb_and_compare(Storm(1, tmp_path, SHAPES[1], random.Random(1)))


def test_a_key_that_is_stored_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm, "quiet", lambda shape: ({}, {}))
    monkeypatch.setattr(storm, "outcome", lambda _played: ({}, {}))

    def store_it(played: Storm) -> None:
        (played.folder / "log.jsonl").write_text(storm.KEY)

    monkeypatch.setattr(storm, "TROUBLES", (store_it,))
    with pytest.raises(Broken, match="the key is stored in"):
        storm.disturb_and_compare(Storm(1, tmp_path, SHAPES[1], random.Random(1)))


def test_samples_without_a_manifest_would_be_found(tmp_path: Path) -> None:
    played = Storm(1, tmp_path, SHAPES[1], random.Random(1))
    storm.killed_scorer(played)  # nothing there yet: nothing to score
    store(played, "said")
    with pytest.raises(Broken, match="a run that has no manifest"):
        storm.killed_scorer(played)


TRACEBACK = """Traceback (most recent call last):
  File "<frozen runpy>", line 15, in <module>
  File "…/_distutils_hack/__init__.py", line 95, in find_spec
    method_name = 'spec_for_{fullname}'.format(**locals())
                                                 ^^^^^^^^
"""
FOUND = """Traceback (most recent call last):
  File "<frozen runpy>", line 189, in _run_module_as_main
  File "<frozen runpy>", line 148, in _get_module_details
  File "…/harness/__init__.py", line 13, in <module>
    from typing import TYPE_CHECKING
"""
BEGINS = """Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "<frozen runpy>", line 88, in _run_code
  File "…/harness/__main__.py", line 9, in <module>
    import threading
  File "<frozen importlib._bootstrap>", line 1176, in _find_and_load
"""
BEGUN = BEGINS.replace("    import threading", "    main()")
RUNS = FOUND.replace("148, in _get_module_details", "88, in _run_code")


@pytest.mark.parametrize(
    ("early", "ours"),
    [
        ("Could not import runpy module\n" + TRACEBACK, TRACEBACK),  # seed 337
        ("Fatal Python error: init_import_site: Failed to import\nstate: core\n" + TRACEBACK, TRACEBACK),
        ("'import warnings' failed; traceback:\n" + TRACEBACK, TRACEBACK),  # seed 50100
        (FOUND, RUNS),  # seed 377
        (BEGINS, BEGUN),  # seed 41045
    ],
)
def test_a_ctrl_c_before_the_command_begins_breaks_no_promise_and_any_other_traceback_does(
    early: str, ours: str
) -> None:
    ctrl_c = "KeyboardInterrupt\n"
    assert storm.NOT_OURS.sub("", early + ctrl_c) == ""
    for broken in (ours + ctrl_c, early + "ValueError: x\n", early + ctrl_c + ours + ctrl_c):
        assert "Traceback" in storm.NOT_OURS.sub("", broken)
