"""The demo after a Ctrl-C: it says how to go on, and the same command does.

For: harness.cli.demo.
"""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest

from harness.cli import demo
from tests.system.command import harness


def test_a_ctrl_c_while_the_server_starts_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_RESUMED_BY", "")
    monkeypatch.setattr("harness.asking.servers.spec", lambda *_, **__: None)
    monkeypatch.setattr("harness.asking.servers.launched", interrupted)
    assert demo.play() == demo.STOPPED
    assert re.search(r"To go on: (?:\S+/)?harness doctor --demo$", capsys.readouterr().err, re.MULTILINE)


def test_a_run_folder_that_cannot_be_made_is_refused_before_a_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[object] = []
    monkeypatch.setattr("harness.asking.servers.spec", lambda *_, **__: types.SimpleNamespace(context=None))
    monkeypatch.setattr("harness.asking.servers.launched", lambda *given: starts.append(given))
    done = harness(tmp_path, "run", "demo", "--serve", "vllm", "--model", "org/m", "--out", "/proc/nowhere/run")
    assert (done.code, starts) == (3, [])
    assert "cannot make the folder /proc/nowhere/run: No such file or directory. Name one" in done.err
