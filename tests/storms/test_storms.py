"""Storms end as a quiet campaign does. A few are played here, `make storms` plays many, or plays for hours."""

from __future__ import annotations

import random

import pytest

from harness.options.commands import COMMANDS
from tests import warm
from tests.budget import thinned
from tests.storms import storm
from tests.storms.storm import CAMPAIGNS, OFTEN, commands_of, name_of

KEPT = ("run", "run by responses", "run by messages", "gateway", "score file", "export trl", "grade")
"""Campaigns that are always played, by the first seed that draws them."""

WIDE = [pytest.param(name, marks=pytest.mark.wide) for name in ("score", "run with a tool")]
AT_BIRTH = ["judge", "run served", *WIDE]
"""Campaigns whose children are killed at birth."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", thinned(KEPT))
def test_a_disturbed_command_ends_as_a_quiet_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm, "launch", warm.started)
    seed = next(seed for seed in range(10_000) if name_of(random.Random(seed)) == name)
    assert storm.play(seed)[f"campaign: {name}"] == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", AT_BIRTH)
def test_children_killed_at_birth_change_no_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm, "TROUBLES", (storm.killed_at_birth,))  # by cold starts: a warm child has other parents
    seed = next(seed for seed in range(10_000) if name_of(random.Random(seed)) == name)
    assert storm.play(seed)["killed processes"]


def test_storms_play_every_command() -> None:
    played = set().union(*map(commands_of, CAMPAIGNS.values()))
    assert played == set(COMMANDS) - {"gate", "view"}, "a gate runs and scores as they do, a view stores no sample"
    assert set(OFTEN) <= set(CAMPAIGNS)
