"""The order of the test files, so that several processes end at about the same time (`tests.processes`)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.processes import UNIT

TESTS = Path(__file__).resolve().parent

LONG_FILES = (
    "client/test_transports.py",
    "commands/test_sweep_runs.py",
    "scoring/test_scoring_simulation.py",
    "pins/test_verdicts.py",
    "system/test_isolated_children.py",
    "hostile/test_hostile.py",
    "storms/test_storms.py",
    "system/test_secrets.py",
    "system/test_plugins.py",
    "generation/test_interruption.py",
    "docs/test_howto.py",
)
"""Files below `tests` that begin first: one of them at the end would keep one process busy and the others idle."""

ONE_BY_ONE = ("pins/test_verdicts.py",)
"""Files below `tests` whose tests are units of their own: each takes as long as a long file."""

EMBEDDED = {"embedded_server", "thinking_server"}
"""Fixtures of one server for the whole session, which takes seconds to start: its tests are one unit."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order: tests of the embedded server, long files, then files of few tests, which start servers and processes."""
    ranks = {TESTS / name: number for number, name in enumerate(LONG_FILES)}
    one_by_one = {TESTS / name for name in ONE_BY_ONE}
    sizes = Counter(item.path for item in items)
    order = {path: number for number, path in enumerate(sizes)}
    for item in items:
        if EMBEDDED & {*getattr(item, "fixturenames", ())}:
            item.stash[UNIT] = "embedded"
        elif item.path in one_by_one:
            item.stash[UNIT] = item.nodeid

    def rank(item: pytest.Item) -> tuple[bool, int, int, int]:
        path = item.path
        return item.stash.get(UNIT, "") != "embedded", ranks.get(path, len(ranks)), sizes[path], order[path]

    items.sort(key=rank)
