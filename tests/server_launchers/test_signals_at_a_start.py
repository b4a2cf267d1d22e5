"""A signal while a server starts is answered in words, by every command that starts one, and leaves nothing.

For: harness.asking.servers.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from server_launchers.keeping import servers
from server_launchers.machine import processes
from tests.budget import thinned
from tests.patience import PATIENCE_SECONDS
from tests.system.command import start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes by /proc")
LIMIT_SECONDS = PATIENCE_SECONDS
SLEEPS = (sys.executable, "-c", "import time; time.sleep(600)")
"""A server that never gets ready."""

SERVE = ("--health-path", "/health", "--served-name", "m")
OPTIONS = ("--serve-option", "health-path=/health", "--serve-option", "served-name=m")
FLAGS = tuple(word for part in SLEEPS for word in ("--serve-option", f"engine-flag={part}"))
COMMANDS = {
    "run": ("run", "demo:1", "--out", "r", "--serve", "command", "--model", "m", *OPTIONS, *FLAGS),
    "serve": ("serve", "command", "m", *SERVE, "--", *SLEEPS),
    "detached": ("serve", "command", "m", "--detach", *SERVE, "--", *SLEEPS),
}


SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# One function catches the signals for all three (`harness.asking.servers.launched`); `serve` has handlers besides.
CASES = [
    *((name, number) for name in ("run", "serve") for number in SIGNALS),
    ("detached", SIGNALS[1]),
]


@pytest.mark.parametrize(("name", "number"), thinned(CASES))
def test_a_signal_during_a_start_is_answered_in_words_and_leaves_nothing(
    name: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    child = start(tmp_path, list(COMMANDS[name]), cold=True)
    end = time.monotonic() + LIMIT_SECONDS
    while not (recorded := servers.status()) or recorded[0].members[0].pid is None:
        assert time.monotonic() < end, "the start did not begin"
        time.sleep(0.02)
    child.send_signal(number)
    out, err = child.communicate(timeout=LIMIT_SECONDS)
    assert child.returncode == 128 + number, err
    assert f"harness: stopped by {number.name} while the server of m was starting. Nothing is left" in err
    assert "Traceback" not in out + err
    assert not processes.find_marked(f"{recorded[0].mark}:0")
    assert servers.status() == []
