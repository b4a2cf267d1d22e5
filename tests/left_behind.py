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


def state() -> dict[str, Any]:
    """What all tests of a process share, by name; not SIGALRM, which pytest-timeout sets for each test."""
    mask = os.umask(0o077)
    os.umask(mask)
    return {
        **{f"variable {name}": value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        **{f"handler of {n!r}": signal.getsignal(n) for n in signal.valid_signals() - {signal.SIGALRM}},
        **{f"module {name} is refused": True for name, module in [*sys.modules.items()] if module is None},
        "signals held back": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "limits": [resource.getrlimit(limit) for limit in LIMITS],
        "current folder, umask": (Path.cwd(), mask),
        "sys.path, sys.argv": ([*sys.path], [*sys.argv]),
        "hooks": (sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook),
        "garbage collector": (gc.isenabled(), gc.get_threshold(), gc.get_debug()),
        "interpreter": (sys.getrecursionlimit(), sys.get_int_max_str_digits(), tracemalloc.is_tracing()),
        # Without the flags, which every inexact sum raises.
        "decimal, locale": (str(decimal.getcontext()).partition(", flags=")[0], locale.setlocale(locale.LC_ALL)),
        "sockets, event loops": (socket.getdefaulttimeout(), type(asyncio.get_event_loop_policy())),
        "logging": (logging.root.level, logging.root.manager.disable),
    }


LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_CORE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_STACK)
"""Not RLIMIT_NOFILE: a run raises it for good where it needs more."""


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A line for each name whose value differs or is gone."""
    return [
        f"{name}: {before.get(name)!r:.300} before, {after.get(name)!r:.300} afterwards"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


@pytest.fixture(scope="module", autouse=True)
def _the_process_is_left_as_it_was(request: pytest.FixtureRequest, private_state: Path) -> Iterator[None]:
    """Fail at the end of a file that changed the process, once its own fixtures are gone.

    Folders that run only when named have fixtures that last for the whole session, and set variables.
    """
    isolated.leave_no_core()  # as every command does, for good
    before = state()
    yield
    if seconds_of(request.path) is None:
        assert changes(before, state()) == []
