"""A process that holds a key leaves no dump of its memory, whatever kills it, nor does anything that it starts.

For: server_launchers.isolated, harness.cli.main.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.testing import STALL, FakeServer, models
from server_launchers.machine import processes
from tests.budget import thinned
from tests.patience import PATIENCE_SECONDS, until
from tests.server_launchers.test_deaths_during_runs import SLEEPS
from tests.system.command import argv, environment

KEY = "sk-canary-of-a-core-file-0123456789"
HARD = resource.getrlimit(resource.RLIMIT_CORE)[1]
PIPED = Path("/proc/sys/kernel/core_pattern")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes by /proc")


def start(folder: Path, words: list[str], extra: dict[str, str]) -> subprocess.Popen[bytes]:
    """The command in a shell where core files are allowed, as after `ulimit -c unlimited`."""
    return subprocess.Popen(
        words,
        cwd=folder,
        env=environment(folder, extra) | extra,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (HARD, HARD)),
    )


def limit_of(pid: int) -> str | None:
    """Largest core file, in bytes, as the system writes it; None if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next(line for line in lines if line.startswith("Max core file")).split()[4]


def words_of(pid: int) -> tuple[str, ...]:
    """The command line; empty if the process has ended. A child that runs no program yet has that of its parent."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return tuple(Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1])
    return ()


def cores(*folders: Path) -> list[Path]:
    """Dumps in these folders, however the system calls them."""
    return [path for folder in folders for path in folder.rglob("*") if path.is_file() and is_dump(path)]


def is_dump(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(18)[:4] == b"\x7fELF" and path.stat().st_size > 100_000


RUN = ["run", "--data", "q.jsonl", "--samples", "1", "--out", "r", "--no-canary", "--model", "m"]


def abort(folder: Path, child: subprocess.Popen[bytes], family: list[int]) -> None:
    """Kill each process as a crash does, the last that was started first, and see that no dump is left."""
    try:
        # A process that is just being started sets its limit before it does anything else.
        until(lambda: {*map(limit_of, family)} <= {None, "0", "1"}, "the limits")
        assert len([pid for pid in family if limit_of(pid)]) >= 2, "a guard and an engine"
        with_folders = {folder}
        for pid in family:
            with contextlib.suppress(FileNotFoundError):
                with_folders.add(Path(f"/proc/{pid}/cwd").readlink())
        for pid, number in zip(reversed(family), (signal.SIGABRT, signal.SIGSEGV) * len(family), strict=False):
            if processes.start_of(pid) is not None:
                os.kill(pid, number)
                time.sleep(0.3)
        assert cores(*with_folders) == []
    finally:
        child.kill()
        child.wait()
        processes.kill_all(filter(None, map(processes.process, family)), 5)


@pytest.mark.parametrize("number", thinned([signal.SIGSEGV, signal.SIGABRT]))
def test_a_run_that_crashes_leaves_no_core_file(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n')
    with FakeServer(lambda request: [models("m")] if request.method == "GET" else [STALL]) as server:
        words = [*RUN, "--base-url", server.base_url, "--header", f"X-Key: {KEY}"]
        child = start(tmp_path, argv(*words), {"OPENAI_API_KEY": KEY})
        try:
            assert server.wait_for(lambda: any(r.method == "POST" for r in server.requests))
            assert limit_of(child.pid) in ("0", "1")
            child.send_signal(number)
            assert child.wait(PATIENCE_SECONDS) == -number
        finally:
            child.kill()
            child.wait()
    assert cores(tmp_path) == []


KEYED = ["command", "m", "--server-key-env", "MY_KEY", "--", *SLEEPS]
STARTERS = {
    "harness serve": lambda: argv("serve", *KEYED),
    "launch.launch in somebody's process": lambda: [
        sys.executable,
        "-c",
        "from server_launchers.lifecycle.launch import launch\nfrom server_launchers.spec import ServerSpec\n"
        f"launch(ServerSpec(engine='command', model='m', api_key_env='MY_KEY', extra_flags={SLEEPS!r}))",
    ],
}


@pytest.mark.parametrize("starter", STARTERS)
def test_neither_a_guard_nor_an_engine_leaves_a_core_file(starter: str, tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    child = start(tmp_path, STARTERS[starter](), {"MY_KEY": KEY, "HARNESS_STATE": state})

    def family() -> list[int]:
        return [process.pid for process in processes.descendants(child.pid)]

    # A guard starts programs that soon end before it starts the engine.
    until(lambda: any(words_of(pid) == SLEEPS for pid in family()), "the engine")
    mine = [child.pid] if "somebody" not in starter else []
    abort(tmp_path, child, [*mine, *family()])


@pytest.mark.skipif(HARD == 0 or PIPED.read_text().startswith(("|", "/")), reason="no core file can be had here")
def test_a_core_file_would_be_found(tmp_path: Path) -> None:
    program = f"import os; key = {KEY!r}; os.abort()"
    child = start(tmp_path, [sys.executable, "-c", program], {})
    assert child.wait(PATIENCE_SECONDS) == -signal.SIGABRT
    (core,) = cores(tmp_path)
    assert KEY.encode() in core.read_bytes()
