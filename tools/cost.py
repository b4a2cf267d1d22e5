"""Prints the CPU seconds of the tests and the processes that they start: by test, by fixture, by test file and in all.

    make test-cost                                                           # `make test`, then the figures
    .venv/bin/python tools/cost.py .venv/bin/python -m pytest tests/client   # any command that runs pytest

CPU seconds are of user and system, with those of all children. A fixture of module or session scope is charged apart
from the test that first asks for it; its teardown is charged to the last test. "(rest)" is what no test saw: pytest's
own process (its collection above all), and processes whose parent ended before them.

Processes are forks, with or without a new program, of all descendants, however short; threads are not counted. The
kernel reports them to root alone: for another user this prints CPU seconds and no processes. Root can count an ordinary
user's run: `.venv/bin/python tools/cost.py tools/elsewhere.sh make test`, which counts the installation there, too.

Each test process starts its own warm processes here (`tests/warm.py`), to tell whose their forks are: with N test
processes, some 2 N CPU seconds and 2 N processes more than without this tool.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

OUTPUT = "HARNESS_TEST_COST"
"""The variable that names the file to which test processes write: pid, moment (ns), CPU seconds so far, what begins."""

REST = "(rest)"
MIN_SECONDS, MIN_PROCESSES = 1, 10
"""What costs less of both is summed up in one line of a table."""

PR_SET_CHILD_SUBREAPER = 36
SO_RCVBUFFORCE, BUFFER_BYTES = 33, 1 << 26
NETLINK_CONNECTOR, PROC_EVENTS, LISTEN, FORK = 11, 1, 1, 1

# -- in the tests' processes ------------------------------------------------------------------------------------------

_output, _current = Path(), ""


def pytest_configure(config: pytest.Config) -> None:
    """Let each test process start its own warm processes, and no pytest that a test starts load this plugin."""
    global _output
    config.pluginmanager.unregister(name="tests.warm")
    _output = Path(os.environ.pop(OUTPUT))
    del os.environ["PYTEST_PLUGINS"]


def _cpu_seconds() -> float:
    """CPU seconds of this process, its children that ended, and its descendants that run."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks, pids = 0, [os.getpid()]
    while pids:
        threads = list[Path]()
        with contextlib.suppress(OSError):  # the process has ended
            threads += Path(f"/proc/{pids.pop()}/task").glob("*/children")
        for children in threads:
            with contextlib.suppress(OSError):
                for child in children.read_text().split():
                    ticks += sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:15]))
                    pids.append(int(child))
    return time.process_time() + ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def _begin(what: str) -> None:
    """Charge what follows to a test or a fixture."""
    global _current
    _current = what
    with _output.open("a", encoding="utf-8") as file:
        file.write(json.dumps([os.getpid(), time.monotonic_ns(), _cpu_seconds(), what]) + "\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Charge a test; those of a table are one."""
    _begin(nodeid.partition("[")[0])


def pytest_sessionfinish() -> None:
    """Charge the last test."""
    _begin(REST)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, object, object]:
    """Charge a fixture that several tests share."""
    test = _current
    if fixturedef.scope == "function":
        return (yield)
    _begin(f"{fixturedef.argname} ({test.partition('::')[0]})")
    try:
        return (yield)
    finally:
        _begin(test)


# -- in the process that prints ---------------------------------------------------------------------------------------


def _births() -> list[tuple[int, int, int]]:
    """A list that grows with each new process of the machine: moment (ns), its parent's pid, its own.

    It stays empty where the kernel tells nothing: its process connector is for root, and not in a container.
    """
    births: list[tuple[int, int, int]] = []
    connector = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR)
    try:
        connector.bind((0, PROC_EVENTS))
        connector.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        connector.send(struct.pack("=IHHIIIIIIHHI", 40, 3, 0, 0, 0, PROC_EVENTS, 1, 0, 0, 4, 0, LISTEN))
    except OSError:
        return births

    def read() -> None:
        with contextlib.suppress(OSError):
            while True:
                kind, moment, parent, thread, pid = struct.unpack_from("=I4xQ4xI2I", connector.recv(4096).ljust(80), 36)
                if kind == FORK and thread == pid:
                    births.append((moment, parent, pid))
        births.clear()  # some were lost

    threading.Thread(target=read, daemon=True).start()
    return births


def _costs(records: Iterable[list[Any]], births: list[tuple[int, int, int]], seconds: float) -> dict[str, list[float]]:
    """CPU seconds and processes of each test and fixture. records: lines of `OUTPUT`; seconds: CPU seconds in all."""
    begun: dict[int, list[tuple[int, float, str]]] = defaultdict(list)
    for pid, moment, cpu, what in records:
        begun[pid].append((moment, cpu, what))
    costs: dict[str, list[float]] = defaultdict(lambda: [0, 0])
    for begins in begun.values():
        for (_, before, what), (_, after, _) in pairwise(begins):
            costs[what][0] += after - before
            seconds -= after - before
    costs[REST][0] += seconds
    testers = {os.getpid(): 0}  # each descendant of this process → the test process above it
    for moment, parent, pid in births:
        testers.pop(pid, None)
        if parent in testers:
            testers[pid] = pid if pid in begun else testers[parent]
            begins = begun[testers[parent]]
            number = bisect(begins, moment, key=lambda begin: begin[0])
            costs[begins[number - 1][2] if number else REST][1] += 1
    return costs


def _table(title: str, costs: dict[str, list[float]]) -> Iterator[str]:
    yield f"\n   CPU s  processes  {title}\n"
    rest = [0.0, 0.0]
    for what, (seconds, processes) in sorted(costs.items(), key=lambda cost: -cost[1][0]):
        if seconds >= MIN_SECONDS or processes >= MIN_PROCESSES:
            yield f"{seconds:8.1f}  {processes:9.0f}  {what}\n"
        else:
            rest = [rest[0] + seconds, rest[1] + processes]
    yield f"{rest[0]:8.1f}  {rest[1]:9.0f}  (others)\n"


def main() -> None:
    """Run the command and print its figures; end with its exit code."""
    births = _births()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output:
        Path(output.name).chmod(0o666)  # another user's processes may write to it
        variables = {**os.environ, "PYTEST_PLUGINS": "tools.cost", OUTPUT: output.name}
        command = subprocess.Popen(sys.argv[1:], env=variables)
        while (ended := os.wait())[0] != command.pid:
            pass
        command.returncode = os.waitstatus_to_exitcode(ended[1])
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = used.ru_utime + used.ru_stime
        costs = _costs([json.loads(line) for line in output], births, seconds)
    files: dict[str, list[float]] = defaultdict(lambda: [0, 0])
    for what, cost in costs.items():
        files[what.partition("::")[0]] = [a + b for a, b in zip(files[what.partition("::")[0]], cost, strict=True)]
    sys.stdout.writelines(_table("test", {what: cost for what, cost in costs.items() if "::" in what}))
    sys.stdout.writelines(_table("test file without its fixtures; fixture (the file that first asked for it)", files))
    processes = sum(cost[1] for cost in costs.values())
    sys.stdout.write(f"{seconds:8.1f}  {processes or '?':>9}  in all\n")
    sys.exit(command.returncode)


if __name__ == "__main__":
    main()
