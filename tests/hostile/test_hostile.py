"""Before any hostile server the command ends in time and in bounds, believes nothing false, and prints nothing raw.

`make test-hostile` plays all of them over all transports; the ordinary suite plays a few.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.hostile.attacked import Attacked, attacked
from tests.hostile.corpus import CORPUS, FALSE, TRUE, Hostile

RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\udc80-\udcff]")
"""What may not reach a terminal or a log."""

MAX_MIB = 270
"""Two hostile replies at once: of one that failed nothing is kept."""

A_FEW = (
    "header lines without end",
    "compressed bomb of gzip",
    "tokens without end",
    "500 of raw escapes",
    "models: a million",
)
DEADLINES_SECONDS = (3, 60, 60)
"""Of a first token: again, and longer, only where a busy machine was late with a sound reply."""

LATE = re.compile("timeout|does not answer within")

ALL = bool(os.environ.get("HARNESS_HOSTILE"))
TRANSPORTS = os.environ.get("HARNESS_HOSTILE", "http").split()


def wrong(outcome: Attacked, hostile: Hostile) -> list[str]:
    """What the command did that it may not."""
    faults = []
    if outcome.code is None:
        faults.append("it did not end")
    elif outcome.code not in ((130,) if outcome.waited else (0, 1, 2, 4)):
        faults.append(f"exit code {outcome.code}")
    if "Traceback" in outcome.printed:
        faults.append("a traceback")
    if raw := RAW.search(outcome.printed):
        faults.append(f"raw {raw.group()!r} in what was printed")
    if raw := RAW.search(outcome.log):
        faults.append(f"raw {raw.group()!r} in the log")
    for question, text in outcome.texts:
        sound = question.startswith("sound") or hostile.reply is None
        if text not in ({TRUE} if sound else hostile.says):
            faults.append(f"{question} has the false sample {text[:80]!r}")
    if outcome.peak_mib > MAX_MIB:
        faults.append(f"{outcome.peak_mib:.0f} MiB of memory")
    if outcome.leaking:
        faults.append(f"the key in {outcome.leaking}")
    return faults


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", list(CORPUS) if ALL else A_FEW)
def test_before_a_hostile_server_the_command_ends_bounded_and_believes_nothing_false(
    tmp_path: Path, name: str, transport: str
) -> None:
    hostile = CORPUS[name]
    answered = hostile.reply is not None and not hostile.refuses
    for number, seconds in enumerate(DEADLINES_SECONDS):
        outcome = attacked(tmp_path / str(number), hostile, transport, deadline_seconds=seconds)
        if not answered or n_sound(outcome) == 4 or not LATE.search(outcome.printed):
            break
    assert wrong(outcome, hostile) == [], outcome.printed[-3000:]
    if answered:
        assert n_sound(outcome) == 4, f"a hostile reply cost a sound one: {outcome.printed[-3000:]}"


def n_sound(outcome: Attacked) -> int:
    """How many samples of the sound questions there are."""
    return sum(question.startswith("sound") for question, _ in outcome.texts)


def test_the_corpus_has_250_servers_and_the_few_are_among_them() -> None:
    assert len(CORPUS) >= 250
    assert set(A_FEW) <= set(CORPUS)


def test_a_command_that_did_each_forbidden_thing_would_be_found() -> None:
    sound = Attacked(1, "fine\n", '{"event": "x"}\n', [("sound 1", TRUE)], 60.0)
    server = CORPUS["no head"]
    assert wrong(sound, server) == []
    for change in (
        {"code": None},
        {"code": 139},
        {"code": 130},
        {"waited": True},
        {"printed": "Traceback (most recent call last)"},
        {"printed": "\x1b[2J"},
        {"log": "\u202e"},
        {"texts": [("hostile 1", FALSE)]},
        {"texts": [("sound 1", FALSE)]},
        {"peak_mib": 1000.0},
        {"leaking": ("log.jsonl",)},
    ):
        assert len(wrong(Attacked(**{**sound.__dict__, **change}), server)) == 1, change
