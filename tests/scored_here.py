"""Cells of a sweep are scored in the test's process: a process for each cell costs a second of imports and workers.

The task and the score still go through JSON, as between the processes. The tests of the scorer's own process, in
`OF_PROCESSES`, start it.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from harness.sweeps import scorer

OF_PROCESSES = ("tests/system/test_isolated_children.py", "tests/system/test_secrets.py")
"""Beginnings of the names of tests whose cells are scored in processes of their own, all by new interpreters."""


class _Scorer:
    """Stands in the place of `subprocess` in `harness.sweeps.scorer`. here: whether it scores in this process."""

    def __init__(self) -> None:
        self.here = False

    def run(self, words: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Score the cell that the input names."""
        if not self.here:
            return subprocess.run(words, **options)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            score = scorer._answer(options["input"])
        return subprocess.CompletedProcess(words, 0, score, b"")


_scorer = _Scorer()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say whether the cells of this test are scored here."""
    _scorer.here = not item.nodeid.startswith(OF_PROCESSES)


@pytest.fixture(scope="session", autouse=True)
def _cells_are_scored_here() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "subprocess", SimpleNamespace(run=_scorer.run))
        yield
