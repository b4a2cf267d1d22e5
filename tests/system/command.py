"""The command `harness`, driven as a user drives it: words in, output and exit code out.

`harness` runs the command in the test's own process, which saves the second that a start of Python and its imports
takes. `start` runs it in a process of its own, for tests of what only a process has: its death, its signals, its
memory, or several commands at once. That process is a fork of one that has the imports (`tests.warm`); with `cold`, and
by `process`, it is a new interpreter, for tests of its start, its standard streams, or variables that Python reads.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from unittest import mock

from harness.cli.main import main
from harness.core.options import options_of
from harness.options.commands import all_options
from harness.options.run import RunOptions
from tests import warm
from tests.patience import PATIENCE_SECONDS
from tests.system.json_schemas import hold_to_schema

_READ_AT_START = ("PYTHON", "LC_", "LANG")
"""Beginnings of environment variables that only a new interpreter reads."""


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    code: int
    out: str
    err: str


def environment(folder: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The test's environment without settings of the person who runs it, and with a state folder of its own."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_") and k != "HARNESS_DATASETS"}
    return inherited | {"HARNESS_STATE": str(folder / "state"), "NO_COLOR": "1"} | dict(extra or {})


def argv(*words: str) -> list[str]:
    """The command line of `harness`, in this interpreter."""
    return [sys.executable, "-W", "error", "-m", "harness", *words]


def harness(folder: Path, *words: str, extra: Mapping[str, str] | None = None, stdout: IO[str] | None = None) -> Result:
    """Run `harness WORDS` in `folder` to its end, in this process. stdout: takes the output, in the result's place.

    What it prints with `--json` is held to the command's schema, and no advice names an option as Python does. It must
    leave the process as it found it: no thread that would keep a process from ending, and no signal handler.
    """
    assert not [name for name in extra or {} if name.startswith(_READ_AT_START)], "read when Python starts: `process`"
    threads, handlers = set(threading.enumerate()), _handlers()
    with (
        mock.patch.dict(os.environ, environment(folder, extra), clear=True),
        mock.patch.object(sys, "argv", ["harness", *words]),
        contextlib.chdir(folder),
        _streams(stdout) as written,
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        result = Result(code, *written())
    left = [thread.name for thread in threading.enumerate() if thread not in threads and not thread.daemon]
    assert left == [], f"`harness {' '.join(words)}` left threads that keep a process from ending: {left}"
    assert _handlers() == handlers, f"`harness {' '.join(words)}` left another signal handler"
    return _held(words, result)


def interrupted(run: subprocess.Popen[str]) -> str:
    """Press Ctrl-C until the process ends, and give its standard error.

    Two signals at once may arrive as one, which only drains the run.
    """
    for _ in range(PATIENCE_SECONDS):
        run.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return run.communicate(timeout=1)[1]
    raise AssertionError("it does not end by Ctrl-C")


def process(
    folder: Path, *words: str, extra: Mapping[str, str] | None = None, seconds: float = PATIENCE_SECONDS
) -> Result:
    """Run `harness WORDS` in `folder` to its end, in a process of its own that may take so many seconds."""
    done = program(folder, argv(*words), env=environment(folder, extra), timeout=seconds)
    assert "Traceback" not in done.err, done.err
    return _held(words, done)


def program(folder: Path, line: Sequence[str], **options: Any) -> Result:
    """Run any command line in `folder` to its end. options: others of `subprocess.run`."""
    usual: dict[str, Any] = {"env": environment(folder), "timeout": PATIENCE_SECONDS, "capture_output": True}
    done = subprocess.run(line, cwd=folder, text=True, check=False, **(usual | options))
    return Result(done.returncode, done.stdout, done.stderr)


def start(folder: Path, words: Sequence[str], *, cold: bool = False) -> subprocess.Popen[str]:
    """Start `harness WORDS` in `folder`, in a process and a session of its own."""
    begin = warm.started_cold if cold else warm.started
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return begin(["harness", *words], cwd=folder, env=environment(folder), start_new_session=True, **pipes)


_OPTIONS = {name for options in all_options().values() for name in options_of(options)} | {*options_of(RunOptions)}
_QUOTED = re.compile(r"""“[^”]*”|'[^']*'|"[^"]*"|`harness [^`]*`|\S+\.ya?ml:\d+: .*""")
_PYTHONIC = re.compile(
    r"\b(?:set|use|give|specify|pass|add|omit|raise|lower|with|or|as|to) `?(?P<name>[a-z]+(?:_[a-z]+)*)(?P<value>=\S)?"
)


def _pythonic(line: str) -> list[str]:
    """The options that a message advises as Python's callers write them, which no command takes."""
    advised = [match for match in _PYTHONIC.finditer(_QUOTED.sub("", line)) if match["name"] in _OPTIONS]
    return [match[0] for match in advised if match["value"] or "_" in match["name"]]


def _held(words: Sequence[str], result: Result) -> Result:
    if "--json" in words:
        hold_to_schema(words, result.out, result.code)
    assert [line for line in result.err.splitlines() if line.startswith("harness: ") and _pythonic(line)] == []
    return result


def _handlers() -> dict[int, object]:
    return {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}


@contextlib.contextmanager
def _streams(stdout: IO[str] | None) -> Iterator[Callable[[], tuple[str, str]]]:
    """Take what this process and those it starts write on standard output and standard error; say what it is so far."""
    with contextlib.ExitStack() as stack:
        nothing = stack.enter_context(Path(os.devnull).open(encoding="utf-8"))
        out, err = (stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(2))
        err.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[attr-defined]

        def written() -> tuple[str, str]:
            return "" if stdout else read(out), read(err)

        usual, copies = (sys.stdin, sys.stdout, sys.stderr), [os.dup(number) for number in (1, 2)]
        try:
            for number, stream in ((1, stdout or out), (2, err)):
                os.dup2(stream.fileno(), number)
            sys.stdin, sys.stdout, sys.stderr = nothing, stdout or out, err
            yield written
        finally:
            sys.stdin, sys.stdout, sys.stderr = usual
            for number, saved in zip((1, 2), copies, strict=True):
                os.dup2(saved, number)
                os.close(saved)


def read(stream: IO[str]) -> str:
    stream.flush()
    return os.pread(stream.fileno(), os.fstat(stream.fileno()).st_size, 0).decode("utf-8")
