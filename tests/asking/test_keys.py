"""A key loses what copying leaves at its ends; what no header can carry in it is named, and the key is not.

For: harness.asking.servers.
"""

from __future__ import annotations

import pytest

from harness.asking import servers
from harness.core.errors import UsageError

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize("text", [KEY, f"\ufeff{KEY}\r\n", f" {KEY}\u200b"])
def test_the_ends_of_a_key_lose_invisible_characters(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MY_KEY", text)
    key = servers._from_environment("MY_KEY")
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
def test_what_no_header_can_carry_is_named(monkeypatch: pytest.MonkeyPatch, odd: str, named: str) -> None:
    monkeypatch.setenv("MY_KEY", f"sk-012345{odd}6789abcdef")
    with pytest.raises(UsageError, match=f"the environment variable MY_KEY holds {named}") as refused:
        servers._from_environment("MY_KEY")
    assert "012345" not in str(refused.value)
