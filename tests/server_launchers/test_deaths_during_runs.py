"""Runs of the harness while a server dies, a server while its harness dies, and signals while a server starts.

Real processes throughout.

For: harness.preparing.server_start.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from server_launchers.lifecycle import servers
from server_launchers.machine import processes
from tests.budget import thinned
from tests.patience import PATIENCE_SECONDS, until
from tests.system.command import harness, start

pytestmark = pytest.mark.timeout(600)
ROOT = Path(__file__).parents[2]


def samples(folder: Path) -> list[dict[str, Any]]:
    """The records that the run has written so far."""
    journal = folder / "run" / "demo" / "samples.jsonl"
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]


@pytest.mark.server
def test_a_killed_run_takes_its_server_along(smollm2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    words = ["run", "demo:8", "--out", "run", "--serve", "llama_cpp", "--model", str(smollm2)]
    of_server = ("served-name=m", "threads=1", "max-sequences=2", "max-model-len=2048")
    more = [*(word for one in of_server for word in ("--serve-option", one)), "--max-tokens", "64"]
    running = start(tmp_path, [*words, *more])
    until(lambda: len(samples(tmp_path)) > 3, "the first samples")
    (recorded,) = servers.status()
    everyone = [recorded.guard, *processes.descendants(recorded.guard_pid)]
    assert len(everyone) >= 2
    running.kill()
    running.communicate()
    until(lambda: not any(member.alive() for member in everyone), "the server and its guard to end")
    assert not processes.find_marked(f"{recorded.mark}:0")


@pytest.mark.parametrize("victim", ["server", "guard"])
def test_a_run_says_that_its_server_was_killed(victim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    program = [sys.executable, "-m", "tests.storms.server", "--port", "{port}"]
    options = ["health-path=/health", "served-name=storm", f"env=PYTHONPATH={ROOT}"]
    options += [f"engine-flag={word}" for word in program]
    serve = ["--serve", "command", *(part for option in options for part in ("--serve-option", option))]
    words = ["--model", "storm", "--out", "run", "--no-canary", "--concurrency", "2", *serve]
    running = start(tmp_path, ["run", "demo:500", *words])
    until(lambda: len(samples(tmp_path)) > 3 or running.poll() is not None, "the first samples")
    (recorded,) = servers.status()
    member = recorded.members[0]
    assert member.pid is not None
    os.kill(member.pid if victim == "server" else recorded.guard_pid, signal.SIGKILL)
    _, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 2, err
    cause = (
        "ended with signal 9 (Killed)" if victim == "server" else "its guard (the process that watches it) was killed"
    )
    stored = len(samples(tmp_path))
    last = err.splitlines()[-1]
    assert "the server storm, which was started here, has ended: " in last
    assert cause in last
    assert f" {stored} of " in last
    assert "Run the same command to resume." in last
    assert harness(tmp_path, "run", "demo:1", *words).code == 0


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
# One function catches the signals for all three (`launched`); `serve` has handlers besides.
CASES = [*((name, number) for name in ("run", "serve") for number in SIGNALS), ("detached", SIGNALS[1])]


@pytest.mark.parametrize(("name", "number"), thinned(CASES))
def test_a_signal_during_a_start_is_answered_in_words_and_leaves_nothing(
    name: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    child = start(tmp_path, list(COMMANDS[name]), cold=True)
    until(lambda: bool(recorded := servers.status()) and recorded[0].members[0].pid is not None, "the start to begin")
    (recorded,) = servers.status()
    child.send_signal(number)
    out, err = child.communicate(timeout=PATIENCE_SECONDS)
    assert child.returncode == 128 + number, err
    assert f"harness: stopped by {number.name} while the server for m was starting. The server was removed" in err
    assert "Traceback" not in out + err
    assert not processes.find_marked(f"{recorded.mark}:0")
    assert servers.status() == []
