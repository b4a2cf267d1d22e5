"""Tests in several processes that share one collection: `pytest --processes 4`.

To import and collect the suite takes some 14 seconds of the processor. Here this is done once; each process is a
fork of the one that did it.

    parent   collects and orders the tests → forks → hands out tests, and reports what comes back
    child    asks for tests → runs them → sends each report → asks for the next

Tests of a file stay together, in order, in one child: its fixtures are set up once. Tests that share a fixture beyond
their file may be one unit, too (`UNIT`). A child asks for the next unit before the last test of its own, since what
is torn down after a test depends on the test that follows.

Invariant: each test is reported, or the run fails. The test in which a child dies has failed; what else was handed to
the child goes to another, forked in its place.

pytest-xdist collects anew in each process, and hands out what it expects to fit before it knows who is free.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NoReturn

import pytest

UNIT = pytest.StashKey[str]()
"""Tests that follow each other with the same text here are handed out together; those without one by their files."""

END: list[int] = []
"""Handed to a child that asks where no test is left."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--processes`, and what is handed out at a time."""
    group = parser.getgroup("processes")
    group.addoption("--processes", type=int, default=1, metavar="N", help="run the tests in N processes (1: in this)")
    group.addoption("--single-tests", action="store_true", help="with --processes: hand out tests, not whole files")


def pytest_configure(config: pytest.Config) -> None:
    """Take the place of pytest's own loop where there are several processes."""
    if config.getoption("processes") > 1:
        config.pluginmanager.register(Processes(config), "processes-forked")


@dataclass(eq=False)
class Child:
    """A forked process. assigned: numbers of the tests that were handed to it and are not through."""

    pid: int
    channel: socket.socket
    assigned: deque[int] = field(default_factory=deque)
    unread: bytes = b""
    error: str = ""


class Processes:
    """Hands the tests out, and reports what comes back."""

    def __init__(self, config: pytest.Config) -> None:
        self.n_processes: int = config.getoption("processes")
        self.single: bool = config.getoption("single_tests")
        self.units: deque[list[int]] = deque()
        self.children: set[Child] = set()
        self.selector = selectors.DefaultSelector()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests; pytest's own loop says what is wrong with a collection."""
        if session.testsfailed or session.config.option.collectonly:
            return None
        numbered = enumerate(session.items)
        by_file = groupby(numbered, key=lambda pair: pair[0] if self.single else _unit_of(pair[1]))
        self.units.extend([number for number, _ in pairs] for _, pairs in by_file)
        try:
            for _ in range(min(self.n_processes, len(self.units))):
                self._fork(session)
            while self.children:
                for key, _ in self.selector.select():
                    self._read(session, key.data)
        finally:
            self._end()
        return True

    def _fork(self, session: pytest.Session) -> None:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            for child in self.children:
                child.channel.close()
            ours.close()
            _work(session, theirs)
        theirs.close()
        child = Child(pid, ours)
        self.children.add(child)
        self.selector.register(ours, selectors.EVENT_READ, child)

    def _read(self, session: pytest.Session, child: Child) -> None:
        """Take what a child has sent."""
        try:
            block = child.channel.recv(1 << 16)
        except ConnectionResetError:
            block = b""
        if not block:
            self._bury(session, child)
            return
        *lines, child.unread = (child.unread + block).split(b"\n")
        for line in lines:
            match json.loads(line):
                case {"report": data}:
                    _log(session, data)
                case {"through": _}:
                    child.assigned.popleft()
                case {"error": text}:
                    child.error = text
                case {"asks": _}:
                    unit = self.units.popleft() if self.units else END
                    child.assigned.extend(unit)
                    child.channel.sendall(json.dumps(unit).encode() + b"\n")

    def _bury(self, session: pytest.Session, child: Child) -> None:
        """A child has ended. Where it owed tests, the first of them has failed, and another child takes the rest."""
        self.selector.unregister(child.channel)
        child.channel.close()
        self.children.remove(child)
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        how = child.error or f"the process of this test ended with {'signal' if code < 0 else 'status'} {abs(code)}"
        if child.assigned:
            item = session.items[child.assigned.popleft()]
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", how, "call")
            item.ihook.pytest_runtest_logreport(report=report)
            _stop_if_asked(session)
            if child.assigned:
                self.units.appendleft([*child.assigned])
            self._fork(session)
        elif code:
            session.shouldfail = f"after its last test, {how}"  # what pytest prints at the end
            raise session.Failed(session.shouldfail)

    def _end(self) -> None:
        """End children that still run, as Ctrl-C does: they tear their fixtures down."""
        for child in self.children:
            os.kill(child.pid, signal.SIGINT)
            child.channel.close()
        for child in self.children:
            os.waitpid(child.pid, 0)
        self.selector.close()


def _unit_of(item: pytest.Item) -> object:
    return item.stash.get(UNIT, item.path)


def _log(session: pytest.Session, data: dict[str, Any]) -> None:
    if isinstance(data["longrepr"], list):  # where, and why, a test was skipped: JSON knows no tuples
        data["longrepr"] = tuple(data["longrepr"])
    hook = session.config.hook
    hook.pytest_runtest_logreport(report=hook.pytest_report_from_serializable(config=session.config, data=data))
    _stop_if_asked(session)


def _stop_if_asked(session: pytest.Session) -> None:
    """As pytest's own loop does after each test."""
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


# -- in a child ------------------------------------------------------------------------------------------------------


class _Reports:
    """Sends reports to the parent, in the place of what prints them (`printing`)."""

    def __init__(self, config: pytest.Config, channel: socket.socket, printing: Any) -> None:
        self.config = config
        self.channel = channel
        # Into this pytest-timeout writes where each thread stands.
        self._tw = type(printing)(config, sys.stderr)._tw

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.say(report=self.config.hook.pytest_report_to_serializable(config=self.config, report=report))

    def say(self, **message: Any) -> None:
        self.channel.sendall(json.dumps(message, default=str).encode() + b"\n")


def _work(session: pytest.Session, channel: socket.socket) -> NoReturn:
    """Run what the parent hands out, to the end of this process."""
    config, code = session.config, 3
    atexit._clear()  # what the parent does at its own end
    try:
        # What is captured goes into files; a fork shares their ends with its parent.
        capture = config.pluginmanager.getplugin("capturemanager")
        capture.read_global_capture()
        capture.stop_global_capturing()
        capture.start_global_capturing()
        printing = config.pluginmanager.unregister(name="terminalreporter")
        reports = _Reports(config, channel, printing)
        config.pluginmanager.register(reports, "terminalreporter")
        config.workerinput = {}  # type: ignore[attr-defined]  # What pytest's plugins know a part of a session by.
        try:
            items = _items(session, reports)
            item = next(items, None)
            while item is not None:
                following = next(items, None)
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                reports.say(through=True)
                item = following
        finally:
            config.hook.pytest_sessionfinish(session=session, exitstatus=0)
            atexit._run_exitfuncs()
        code = 0
    except KeyboardInterrupt:
        code = 2
    except BaseException:  # noqa: BLE001 - the parent tells it as the failure of the test
        channel.sendall(json.dumps({"error": traceback.format_exc()}).encode() + b"\n")
    finally:
        os._exit(code)


def _items(session: pytest.Session, reports: _Reports) -> Iterator[pytest.Item]:
    """The tests that the parent hands out."""
    with reports.channel.makefile("rb") as handed:
        reports.say(asks=True)
        for line in handed:
            unit = json.loads(line)
            if unit == END:
                return
            yield from (session.items[number] for number in unit)
            reports.say(asks=True)
