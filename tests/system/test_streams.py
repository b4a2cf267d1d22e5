"""What a shell does to a command's streams, and an early Ctrl-C: an exit code and a sentence, never a traceback.

For: harness.__main__, harness.cli.main.
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.budget import thinned
from tests.patience import PATIENCE_SECONDS
from tests.system.command import argv, environment, harness, process


def shell(folder: Path, redirection: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *argv(*words)],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("redirection", thinned(["<&- >&- 2>&-", ">&-", ">&- 2>&-", "<&-"]))
@pytest.mark.parametrize("words", [("benchmarks", "list"), ("grade", "4", "-")])
def test_closed_streams_change_no_exit_code(tmp_path: Path, redirection: str, words: tuple[str, ...]) -> None:
    done = shell(tmp_path, redirection, *words)
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_table_in_a_narrow_encoding_has_its_signs_escaped(tmp_path: Path) -> None:
    (tmp_path / "outputs.jsonl").write_text('{"gen": "so 5", "answer": 5}\n')
    done = process(tmp_path, "score", "outputs.jsonl", extra={"PYTHONIOENCODING": "ascii"})
    assert done.code == 0, done.err
    assert r"\u2013" in done.out  # the dash of a value that is not known


def test_control_characters_of_a_path_reach_no_terminal(tmp_path: Path) -> None:
    for words in (("score", "run\x1b[31m"), ("report", "run\x1b[31m"), ("run", "--out\x1b[31m"), ("score\x1b[31m",)):
        done = harness(tmp_path, *words)
        assert done.code in (2, 3)
        assert r"\x1b[31m" in done.err
        assert "\x1b" not in done.err


@pytest.mark.parametrize("seconds", [0.05, 0.1, 0.2])
def test_an_interrupt_while_the_command_starts_is_quiet(tmp_path: Path, seconds: float) -> None:
    # Code of the interpreter's own start runs before ours: the signal is sent after the marker.
    marker = "from harness.__main__ import main; print('started', flush=True); main()"
    with subprocess.Popen(
        [argv()[0], "-c", marker, "grade", "4", "-"],  # it waits for input that does not come
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert "Traceback" not in err, err
    assert process.returncode in (130, -signal.SIGINT)


@pytest.mark.parametrize("busy", [False, True])
def test_an_interrupt_that_falls_where_nothing_can_be_raised_is_quiet_and_not_lost(tmp_path: Path, busy: bool) -> None:
    program = f"""
import threading, time
from harness import __main__ as door

start = door._thread.start_new_thread

def start_and_wait(function, arguments):
    # The second interrupt comes while the first is still being handled, as it may on a busy machine.
    door._thread.start_new_thread = start
    ended = threading.Event()
    start(lambda: (function(*arguments), ended.set()), ())
    ended.wait(10)

if {busy}:
    door._thread.start_new_thread = start_and_wait
from harness.cli import main as line

class Late:
    def __del__(self):
        raise KeyboardInterrupt

def command():
    Late()
    for _ in range(600):
        time.sleep(0.1)
    print("went on")

line._command = command
door.main()
"""
    done = subprocess.run(
        [argv()[0], "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_what_else_cannot_be_raised_is_told(tmp_path: Path) -> None:
    program = """
from harness import __main__ as door
from harness.cli import main as line

class Late:
    def __del__(self):
        raise ValueError("told")

line._command = lambda: Late() and None
door.main()
"""
    done = subprocess.run(
        [argv()[0], "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert "ValueError: told" in done.stderr
