"""The runner of mutants: what no test sees survives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutants.__main__ import survivors

pytestmark = pytest.mark.wide


def test_what_no_test_sees_survives_and_nothing_else(tmp_path: Path) -> None:
    for folder in ("changed", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tests/__init__.py").touch()
    (tmp_path / "changed/thing.py").write_text("def is_more(n):\n    return n > 5\n\ndef unseen():\n    return 7\n")
    (tmp_path / "tests/test_thing.py").write_text(
        "from hypothesis import given, strategies\n\nfrom changed.thing import is_more, unseen\n\n"
        "@given(strategies.sampled_from([5, 6]))\ndef test_more(n):\n    assert is_more(n) == (n == 6)\n\n"
        "def test_unseen():\n    unseen()\n"
    )
    alive = survivors(tmp_path, "changed/thing.py", ["tests/test_thing.py"], n=100, seed=0, jobs=2)
    assert [name.partition(": ")[2] for name in alive] == [
        "return: return 7 → return",
        "constant: 7 → 8",
        "constant: 7 → 6",
    ]
