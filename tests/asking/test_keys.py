"""A key loses what copying leaves at its ends; what no header can carry in it is named, and the key is not.

For: harness.asking.servers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.asking import servers
from harness.core.errors import UsageError

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize("text", [KEY, f"\ufeff{KEY}\r\n", f" {KEY}\u200b"])
def test_the_ends_of_a_key_lose_invisible_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "key").write_text(text, "utf-8", newline="")
    monkeypatch.setenv("MY_KEY", text)
    for key in (servers._key("MY_KEY", None), servers._key("MY_KEY", tmp_path / "key")):
        assert key is not None
        assert key.reveal() == KEY


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        ("\u2014", r"U\+2014 \(EM DASH\)"),
        ("\u200b", r"U\+200B \(ZERO WIDTH SPACE\)"),
        ("\x07", r"U\+0007 \(a control character\)"),
    ],
)
def test_what_no_header_can_carry_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str, named: str
) -> None:
    (tmp_path / "key").write_text(f"sk-012345{odd}6789abcdef", "utf-8")
    monkeypatch.setenv("MY_KEY", f"sk-012345{odd}6789abcdef")
    for file, place in ((None, "the environment variable MY_KEY"), (tmp_path / "key", "the file of the key")):
        with pytest.raises(UsageError, match=f"{place} holds {named}") as refused:
            servers._key("MY_KEY", file)
        assert "012345" not in str(refused.value)
