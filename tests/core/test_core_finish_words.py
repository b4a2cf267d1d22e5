"""The table of finish reasons: what each word says, and that the page has every word.

For: harness.core.finish_words.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.finish_words import _ENDINGS, ending


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("stop", "end"), ("STOP", "end"), ("eos", "end"), ("end_turn", "end"), ("length", "cut"), ("MAX_TOKENS", "cut"),
        ("model_length", "cut"), ("max_output_tokens", "cut"), ("abort", "break"), ("network_error", "break"),
        ("insufficient_system_resource", "break"), ("content_filter", "filter"), ("SAFETY", "filter"),
        ("sensitive", "filter"), ("repetition", "unknown"), ("", "unknown"), ("lengthy", "unknown"),
    ],
)  # fmt: skip
def test_a_finish_reason_says_how_the_reply_ended_in_letters_of_either_case(word: str, says: str) -> None:
    assert ending(word) == says


def test_the_page_names_each_word() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text("utf-8")
    assert [word for word in _ENDINGS if f"`{word}`" not in page] == []
