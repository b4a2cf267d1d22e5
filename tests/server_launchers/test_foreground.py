"""`python -m server_launchers`: one engine in the foreground, ended by a signal or by itself.

For: server_launchers.terminal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_SECONDS

PROGRAM = str(Path(__file__).with_name("faulty_server.py"))
LIMIT_SECONDS = PATIENCE_SECONDS


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The state folder; when the test ends no server is remembered there."""
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert list((tmp_path / "servers").glob("[!.]*.json")) == []


def started(*habits: str) -> subprocess.Popen[str]:
    words = ["command", "--served-name", "faulty", "--health-path", "/health", "--stop-grace", "0.5"]
    argv = [sys.executable, "-m", "server_launchers", *words, "--", sys.executable, PROGRAM, "{port}", *habits]
    root = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root})


def address(server: subprocess.Popen[str]) -> str:
    """The URL in the line that says where the server answers."""
    assert server.stderr is not None
    for line in server.stderr:
        if "faulty serves faulty at " in line:
            return line.split()[-1]
    pytest.fail("it ended without a word of where it answers")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_server_and_the_command(number: signal.Signals, state: Path) -> None:
    with started() as server:
        url = address(server)
        assert httpx.get(f"{url}/health").status_code == 200
        server.send_signal(number)
        assert server.wait(LIMIT_SECONDS) == 130
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")


def test_a_server_that_ends_by_itself_is_told_with_its_log(state: Path) -> None:
    with started() as server:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{address(server)}/die")
        assert server.stderr is not None
        assert "error: the server ended; its log is " in server.stderr.read()
        assert server.wait(LIMIT_SECONDS) == 1


def test_a_start_that_fails_is_one_cause_and_status_2(state: Path) -> None:
    with started("dies") as server:
        assert server.stderr is not None
        text = server.stderr.read()
        assert server.wait(LIMIT_SECONDS) == 2
    assert "error: command did not start: the engine's environment lacks the Python module flash_attn" in text
    assert "Traceback" not in text.partition("last lines of")[0]
