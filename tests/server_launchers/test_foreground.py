"""`harness serve` in the foreground: ended by a signal, by `serve stop` elsewhere, or by itself."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.patience import PATIENCE_SECONDS
from tests.system.command import harness, start

PROGRAM = str(Path(__file__).with_name("faulty_server.py"))


def started(folder: Path, *habits: str) -> subprocess.Popen[str]:
    words = ["serve", "command", "--served-name", "faulty", "--health-path", "/health", "--stop-grace", "0.5"]
    return start(folder, [*words, "--", sys.executable, PROGRAM, "{port}", *habits])


def until_said(server: subprocess.Popen[str], words: str) -> str:
    """What stands behind the words in the first line that has them."""
    assert server.stderr is not None
    line = next((line for line in server.stderr if words in line), None)
    assert line is not None, f"it ended without a word of {words!r}"
    return line.partition(words)[2]


def address(server: subprocess.Popen[str]) -> str:
    """The URL in the line that says where the server answers."""
    return until_said(server, " answers at ").split()[0]


def end(server: subprocess.Popen[str]) -> tuple[str, int]:
    """What else it says, and its exit status."""
    assert server.stderr is not None
    return server.stderr.read(), server.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_server_and_the_command(number: signal.Signals, tmp_path: Path) -> None:
    with started(tmp_path) as server:
        url = address(server)
        assert httpx.get(f"{url}/health", timeout=None).status_code == 200
        assert until_said(server, "Ctrl-C stops it.") == "\n"
        server.send_signal(number)
        assert server.wait(PATIENCE_SECONDS) == 128 + number
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health", timeout=None)
    assert list(tmp_path.rglob("*.json")) == []


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_stop_in_another_terminal_ends_the_command(goes_on: bool, tmp_path: Path) -> None:
    """goes_on: another server takes the name at once."""
    with started(tmp_path) as server:
        address(server)
        assert harness(tmp_path, "serve", "stop", "faulty").out == "stopped faulty\n"
        if goes_on:
            with started(tmp_path) as second:
                address(second)
                assert server.wait(PATIENCE_SECONDS) == 0
                harness(tmp_path, "serve", "stop")
        text, status = end(server)
        assert ("harness: the server faulty was stopped." in text, status) == (True, 0)


def test_a_server_that_ends_by_itself_is_told_with_its_log(tmp_path: Path) -> None:
    with started(tmp_path) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{address(server)}/die", timeout=None)
        text, status = end(server)
    assert "harness: the server faulty exited unexpectedly: it ended with exit status 7; its log is " in text
    assert status == 2


def test_a_start_that_fails_is_one_cause_and_status_2(tmp_path: Path) -> None:
    with started(tmp_path, "dies") as server:
        text, status = end(server)
    assert "command did not start: it ended with exit status 1; its log says: No module named 'flash_attn'" in text
    assert ("Traceback" in text.partition("last lines of")[0], status) == (False, 2)
