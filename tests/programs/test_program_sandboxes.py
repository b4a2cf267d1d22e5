"""Which sandbox a word names, and what is left of one that does not start: with makers of ours, without a sandbox.

For: harness.extensions.answers.program.cells.
"""

from __future__ import annotations

import socket
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from harness.core.errors import HelperFailed, UsageError
from harness.extensions.answers.program import cells
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.containers import ContainerEngine


class Cell:
    """Stands in for `SandboxCell`."""

    version = "3.12"
    error: Exception | None = None
    n_closed = 0

    def __init__(self, *_: object) -> None:
        pass

    def start(self, *_: object) -> None:
        if self.error is not None:
            raise self.error

    def close(self) -> str:
        type(self).n_closed += 1
        return ""


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> type[Cell]:
    fresh = type("FreshCell", (Cell,), {})
    monkeypatch.setattr(cells, "SandboxCell", fresh)
    return fresh


def test_a_sandbox_that_does_not_come_up_is_refused_with_its_complaint_and_ended() -> None:
    ended: list[object] = []
    complains = ["/bin/sh", "-c", "echo no room here >&2"]

    def start(channel: int, _memory: int, _packages: tuple[str, ...]) -> subprocess.Popen[bytes]:
        # As a sandbox does, it holds the channel until it has complained.
        return subprocess.Popen(complains, stderr=subprocess.PIPE, start_new_session=True, pass_fds=(channel,))

    with pytest.raises(UsageError, match="no sandbox could be started: no room here; nothing was executed"):
        cells.tried(SimpleNamespace(start=start, end=ended.append))
    assert len(ended) == 2, "it is tried twice"


def test_a_maker_that_refuses_leaves_no_socket_open(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[tuple[socket.socket, socket.socket]] = []
    pair = socket.socketpair
    monkeypatch.setattr(socket, "socketpair", lambda: pairs.append(pair()) or pairs[-1])
    with pytest.raises(HelperFailed, match="not installed"):
        SandboxCell(ContainerEngine("no-such-engine", "image")).start(0)
    assert [end.fileno() for end in pairs[0]] == [-1, -1]


def test_a_word_names_the_kind_of_a_sandbox(monkeypatch: pytest.MonkeyPatch, cell: type[Cell]) -> None:
    calls: list[tuple[Any, ...]] = []

    def noted(*words: str) -> SimpleNamespace:
        calls.append(words)
        return SimpleNamespace(engine=words[0])

    monkeypatch.setattr(cells, "ContainerEngine", noted)
    words = (None, "bwrap", "podman:localhost/python")
    names = [cells.name_of(*cells.maker_of(word)) for word in words]
    assert names == ["bwrap python3.12", "bwrap python3.12", "podman python3.12"]
    assert calls == [("podman", "localhost/python")]
    with pytest.raises(UsageError, match=r"there are bwrap and docker, podman \(docker:IMAGE\)"):
        cells.maker_of("bwrap:image")
    assert cell.n_closed == 3, "each was asked for its version"


def test_the_condition_of_programs_is_said_with_their_sandbox_or_why_none_runs(cell: type[Cell]) -> None:
    assert cells.condition() == "programs run in bwrap python3.12"
    cell.error = HelperFailed("bwrap is not installed")
    assert cells.condition() == "programs: bwrap is not installed; nothing was executed"
    assert cell.n_closed == 2
