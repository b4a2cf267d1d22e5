"""What a file of tests leaves behind in its process is seen (tests.left_behind)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from tests.left_behind import changes, state


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda patch: patch.setenv("HARNESS_LEFT", "1"), "variable HARNESS_LEFT: None before, '1' afterwards"),
        (lambda patch: patch.delenv("PATH"), "variable PATH"),
        (lambda patch: patch.chdir("/"), "current folder"),
        (lambda patch: patch.setattr(sys, "unraisablehook", print), "hooks"),
        (lambda patch: patch.setitem(sys.modules, "no_such_module", None), "module no_such_module is refused"),
        (lambda patch: patch.syspath_prepend("/left"), "sys.path"),
    ],
)
def test_a_change_is_named(change: Callable[[pytest.MonkeyPatch], None], named: str) -> None:
    before = state()
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        (line,) = changes(before, state())
    assert line.startswith(named)
    assert changes(before, state()) == []


def test_what_is_no_attribute_is_named_too() -> None:
    before, mask = state(), os.umask(0o027)
    assert [line.partition(":")[0] for line in changes(before, state())] == ["current folder, umask"]
    os.umask(mask)
