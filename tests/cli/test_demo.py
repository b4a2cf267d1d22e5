"""`harness demo` after a Ctrl-C: it says how to go on, and the same command does.

For: harness.cli.demo.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import demo
from tests.faults.server import STALL, FaultServer, Request, Step, completion, models
from tests.patience import PATIENCE_SECONDS
from tests.system.command import environment

PROGRAM = """
import contextlib, sys, types
from harness.asking import servers
from harness.cli import demo
running = types.SimpleNamespace(base_urls=(sys.argv.pop(),), model="m")
servers.spec = lambda *_, **__: None
servers.launched = lambda *_: contextlib.nullcontext(running)
demo.command(["--samples", "1"])
"""
"""The demo with a server that runs already in place of the embedded one."""


def test_a_ctrl_c_says_how_to_go_on_and_the_same_command_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_asked = 0

    def answer(request: Request) -> list[Step]:
        nonlocal n_asked
        if request.method == "GET":
            return [models("m")]
        if "seed" not in request.json:  # of the fingerprint
            return list(completion("4"))
        n_asked += 1
        return [STALL] if n_asked > 5 else list(completion("4"))

    with FaultServer(answer) as server:
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
    again = re.search(r"To go on: (?:\S+/)?harness demo --samples 1 --out (results/demo-\S+)$", stderr, re.MULTILINE)
    assert again, stderr
    # Each sentence names the demo: the address of its server is gone with it.
    assert re.search(
        rf"Resume with: (?:\S+/)?harness demo --samples 1 --out {re.escape(again[1])}$", stderr, re.MULTILINE
    )
    assert "--base-url" not in stderr
    monkeypatch.chdir(tmp_path)
    assert demo._unfinished(1) == Path(again[1])
    assert demo._unfinished(4) is None, "a run with other samples is another run"
