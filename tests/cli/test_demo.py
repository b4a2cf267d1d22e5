"""The demo after a Ctrl-C: it says how to go on, and the same command does.

For: harness.cli.demo.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from harness.cli import demo
from harness.testing import STALL, FakeServer, Request, Step, completion, models
from tests.patience import PATIENCE_SECONDS
from tests.system.command import environment, harness

PROGRAM = """
import contextlib, sys, types
from harness.asking import servers
from harness.cli import demo
running = types.SimpleNamespace(base_urls=(sys.argv.pop(),), model="m")
servers.spec = lambda *_, **__: None
servers.launched = lambda *_: contextlib.nullcontext(running)
sys.exit(demo.play())
"""
"""The demo with a server that runs already in place of the embedded one."""


def test_a_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    n_asked = 0

    def answer(request: Request) -> list[Step]:
        nonlocal n_asked
        if request.method == "GET":
            return [models("m")]
        if "seed" not in request.json:  # of the fingerprint
            return list(completion("4"))
        n_asked += 1
        return [STALL] if n_asked > 5 else list(completion("4"))

    with FakeServer(answer) as server:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, server.base_url],
            cwd=tmp_path,
            env=environment(tmp_path) | {"PYTHONPATH": str(Path.cwd())},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert server.wait_for(lambda: n_asked > 5, PATIENCE_SECONDS)
        # A terminal sends the signal to the demo and to its step.
        os.killpg(child.pid, signal.SIGINT)
        assert child.stderr is not None
        stderr = ""
        while "Ctrl-C again" not in stderr:
            line = child.stderr.readline()
            assert line, stderr
            stderr += line
        os.killpg(child.pid, signal.SIGINT)
        stderr += child.communicate(timeout=PATIENCE_SECONDS)[1]
    assert child.returncode == demo.STOPPED, stderr
    # The sentence names the demo: the address of its server is gone with it.
    assert re.search(r"Resume with: (?:\S+/)?harness doctor --demo$", stderr, re.MULTILINE), stderr
    assert "--base-url" not in stderr
    assert stderr.count("harness doctor --demo") == 1, "it is said once"
    assert stderr.rstrip().endswith("Stopped, and the server with it.")


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
