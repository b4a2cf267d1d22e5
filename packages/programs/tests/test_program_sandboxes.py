"""Which sandbox a word names, and what is left of one that does not start: with makers of ours, without a sandbox.

For: reasoning_programs.cells.
"""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from reasoning_programs import UnavailableError, cells


def test_a_sandbox_that_does_not_come_up_is_refused_with_its_complaint_and_ended() -> None:
    ended: list[object] = []
    complains = ["/bin/sh", "-c", "echo no room here >&2"]

    def start(channel: int, _memory: int, _packages: tuple[str, ...]) -> subprocess.Popen[bytes]:
        # As a sandbox does, it holds the channel until it has complained.
        return subprocess.Popen(complains, stderr=subprocess.PIPE, start_new_session=True, pass_fds=(channel,))

    with pytest.raises(UnavailableError, match="could not start a sandbox: no room here; nothing was executed"):
        cells.tried(SimpleNamespace(start=start, end=ended.append))
    assert len(ended) == 2, "it is tried twice"
