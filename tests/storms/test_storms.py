"""Storms end as a quiet campaign does. A few are played here, `make storms` plays many."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from tests import warm
from tests.budget import thinned
from tests.storms import storm
from tests.storms.storm import CAMPAIGNS, name_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", thinned(CAMPAIGNS))
def test_a_disturbed_command_ends_as_a_quiet_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm, "launch", warm.started)
    seed = next(seed for seed in range(10_000) if name_of(random.Random(seed)) == name)
    assert storm.play(seed)[f"campaign: {name}"] == 1


@pytest.mark.wide
@pytest.mark.parametrize("name", ["judge", "run served"])
def test_children_killed_at_birth_change_no_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storm, "TROUBLES", (storm.killed_at_birth,))  # by cold starts: a warm child has other parents
    seeds = (seed for seed in range(10_000) if name_of(random.Random(seed)) == name)
    # A storm may disturb only commands that start no process, as sampling from a running server does.
    assert any(storm.play(seed)["killed processes"] for seed in islice(seeds, 5))
