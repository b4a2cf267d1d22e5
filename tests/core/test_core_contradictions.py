"""What a server states of a reply is held against itself, the text and the request; sound replies show nothing.

For: harness.core.contradictions.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.contradictions import CHECKS, PROMPT_VARIES, Claims, contradictions, sentence

SOUND: dict[str, Any] = {
    "stated": 100, "finish_reason": "stop", "n_bytes": 400, "n_events": 100, "has_other": False, "is_open": False,
    "max_tokens": 256,
}  # fmt: skip


def kinds(**given: Any) -> set[int]:
    """The numbers of the checks that a sound reply shows that is changed so."""
    return {[*CHECKS].index(kind) for kind in contradictions(Claims(**{**SOUND, **given}))}


CUT = {"finish_reason": "length"}
CASES: list[tuple[int, dict[str, Any], list[dict[str, Any]]]] = [
    (0, {"stated": 256, "n_bytes": 999}, [{"stated": 256, **CUT}, {"stated": 255}]),
    (
        0,
        {"stated": 0, "n_events": 256, "n_bytes": 999},
        [{"stated": 8, "n_bytes": 9, "n_events": 8, "max_tokens": 8}],
    ),
    (1, CUT, [{**CUT, "stated": 128}, {**CUT, "n_bytes": 1201}]),
    (2, {"n_events": 126}, [{"n_events": 125}, {"n_events": 25, "stated": 10, "n_bytes": 90}]),
    (2, {"n_bytes": 3201, "n_events": 1}, [{"n_bytes": 3200, "n_events": 1}, {"stated": 0, "n_bytes": 9999}]),
    (3, {"finish_reason": "tool_calls"}, [{"finish_reason": "tool_calls", "has_other": True}]),
    (4, {"is_open": True}, [{"is_open": True, **CUT, "stated": 256, "n_bytes": 999}]),
]
"""The number of a check, a reply that shows it and nothing else, and sound replies beside it."""


@pytest.mark.parametrize(("check", "shows", "sound"), CASES)
def test_each_contradiction_is_seen_and_its_sound_twins_are_not(
    check: int, shows: dict[str, Any], sound: list[dict[str, Any]]
) -> None:
    assert {check} == kinds(**shows)
    assert [kinds(**twin) for twin in [{}, *sound]] == [set()] * (1 + len(sound))


def test_every_check_has_a_case() -> None:
    assert {check for check, *_ in CASES} == {*range(len(CHECKS))}


def test_few_replies_of_many_are_no_warning() -> None:
    kind = next(iter(CHECKS))
    assert sentence({kind: 1}, 1000) == ""
    assert f"2 {kind}" in sentence({kind: 2}, 1000)
    assert f"of 24 replies 3 {kind}; 4 {PROMPT_VARIES}" in sentence({kind: 3, PROMPT_VARIES: 4}, 24)
