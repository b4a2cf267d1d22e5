"""No file of tests leaves this process otherwise than it found it.

Which files ran in a process before a test is chance. What they leave behind would make the test pass or fail by chance;
or it would hide a fault, as a hook that swallows what no `except` can catch.
"""

from __future__ import annotations

import asyncio
import decimal
import gc
import locale
import logging
import os
import resource
import signal
import socket
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server_launchers import isolated
from tests.conftest import seconds_of

LIMITS = {name: getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
del LIMITS["RLIMIT_NOFILE"]  # a run raises it for good where it needs more


def state() -> dict[str, Any]:
    """What all tests of a process share, by name; not SIGALRM, which pytest-timeout sets for each test."""
    mask = os.umask(0o077)
    os.umask(mask)
    return {
        **{f"variable {name}": value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        **{f"handler of {n!r}": signal.getsignal(n) for n in signal.valid_signals() - {signal.SIGALRM}},
        **{name: resource.getrlimit(limit) for name, limit in LIMITS.items()},
        **{f"module {name} is refused": True for name, module in [*sys.modules.items()] if module is None},
        "signals held back": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "current folder": Path.cwd(),
        "umask": mask,
        "sys.path": [*sys.path],
        "sys.argv": [*sys.argv],
        "hooks": (sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook),
        "garbage collector": (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
        "tracemalloc": tracemalloc.is_tracing(),
        "interpreter": (sys.getrecursionlimit(), sys.get_int_max_str_digits(), sys.getswitchinterval()),
        "decimal": str(decimal.getcontext()),
        "locale": locale.setlocale(locale.LC_ALL),
        "deadline of sockets": socket.getdefaulttimeout(),
        "event loops": type(asyncio.get_event_loop_policy()),
        "logging": (logging.root.level, logging.root.manager.disable),
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A line for each name whose value differs or is gone."""
    return [
        f"{name}: {before.get(name)!r:.300} before, {after.get(name)!r:.300} afterwards"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


@pytest.fixture(scope="session", autouse=True)
def _memory_dumps_are_forbidden() -> None:
    """As every command forbids them, in a test's process too, for good."""
    isolated.leave_no_core()


@pytest.fixture(scope="module", autouse=True)
def _the_process_is_left_as_it_was(
    request: pytest.FixtureRequest, private_state: Path, _memory_dumps_are_forbidden: None
) -> Iterator[None]:
    """Fail at the end of a file that changed the process, once its own fixtures are gone.

    Folders that run only when named have fixtures that last for the whole session, and set variables.
    """
    before = state()
    yield
    if seconds_of(request.path) is None:
        assert changes(before, state()) == []
