"""What a server states of a reply is held against itself, the text and the request; sound replies show nothing.

For: harness.core.contradictions.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.contradictions import CHECKS, PROMPT_VARIES, UNSTATED, Claims, contradictions, sentence
from harness.core.records import Usage

SOUND: dict[str, Any] = {
    "prompt": 20,
    "completion": 100,
    "reasoning": None,
    "total": None,
    "finish": "stop",
    "n_bytes": 400,
    "has_reasoning": False,
    "n_events": 100,
    "has_other": False,
    "is_open": False,
    "max_tokens": 256,
}


def kinds(**given: Any) -> set[int]:
    """The numbers of the checks that a sound reply shows that is changed so."""
    of = {**SOUND, **given}
    usage = Usage(prompt_tokens=of["prompt"], completion_tokens=of["completion"], reasoning_tokens=of["reasoning"])
    rest = (of[name] for name in ("n_bytes", "has_reasoning", "n_events", "has_other", "is_open", "max_tokens"))
    shown = contradictions(Claims(usage, of["total"], of["finish"], *rest))
    return {[*CHECKS].index(kind) for kind in shown}


CASES: list[tuple[int, dict[str, Any], list[dict[str, Any]]]] = [
    (0, {"completion": 256, "n_bytes": 999}, [{"completion": 256, "finish": "length"}, {"completion": 255}]),
    (
        0,
        {"completion": None, "n_events": 256, "n_bytes": 999},
        [{"completion": 8, "n_bytes": 9, "n_events": 8, "max_tokens": 8}],
    ),
    (
        1,
        {"completion": 300, "n_bytes": 999, "finish": "length"},
        [{"completion": 300, "n_bytes": 999, "max_tokens": None}],
    ),
    (
        2,
        {"finish": "length"},
        [{"finish": "length", "completion": 128}, {"finish": "length", "n_bytes": 1201}],
    ),
    (3, {"n_bytes": 67}, [{"n_bytes": 68}, {"n_bytes": 9, "reasoning": 90}, {"n_bytes": 9, "has_other": True}]),
    (4, {"n_events": 126, "completion": 100}, [{"n_events": 125}, {"n_events": 25, "completion": 10, "n_bytes": 90}]),
    (4, {"n_bytes": 3201, "n_events": 1}, [{"n_bytes": 3200, "n_events": 1}, {"completion": None, "n_bytes": 9999}]),
    (5, {"completion": 0}, [{"completion": 0, "n_bytes": 0, "n_events": 0}]),
    (6, {"reasoning": 101}, [{"reasoning": 100}, {"reasoning": None, "total": 1020}]),
    (7, {"total": 119}, [{"total": 120}, {"total": 900}]),
    (8, {"finish": "tool_calls"}, [{"finish": "tool_calls", "has_other": True}]),
    (9, {"is_open": True}, [{"is_open": True, "finish": "length", "completion": 256, "n_bytes": 999}]),
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


def test_few_replies_of_many_are_no_warning_and_a_server_without_usage_is_none() -> None:
    kind = next(iter(CHECKS))
    assert sentence({kind: 1}, 1000) == ""
    assert f"2 {kind}" in sentence({kind: 2}, 1000)
    assert sentence({UNSTATED: 24, "no [DONE]": 24}, 24) == ""
    both = sentence({UNSTATED: 3, PROMPT_VARIES: 4}, 24)
    assert f"of 24 replies 4 {PROMPT_VARIES}; 3 {UNSTATED}" in both
