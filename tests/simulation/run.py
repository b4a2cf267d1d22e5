"""Whole runs: sessions over one disk, in which everything can go wrong, and a quiet one that ends what is owed."""

from __future__ import annotations

from tests.simulation.rules import Broken
from tests.simulation.session import Session
from tests.simulation.world import World


def play(seed: int, trace: list[str] | None = None) -> None:
    """Sessions with everything that can go wrong, then a quiet one. Raises `Broken`; trace: takes what happens."""
    world = World(seed, trace)
    for _ in range(world.chance.randint(1, 2)):
        _session(world, faults=True)
    for one in world.servers.values():
        one.calm(world.model or one.model)
    why = _session(world, faults=False)
    missing = {row[:2] for row in world.owed()}
    # In rounds, questions that no server answers may use up the patience before a later round begins.
    may_give_up = world.settings.order == "rounds" and "poison" in world.natures.values() and "has been answered" in why
    if not missing <= world.natures.keys() and not may_give_up:
        raise Broken(
            "all answered", f"{sorted(missing - world.natures.keys())} is owed after a session in which nothing failed"
        )
    if len(set(world.disk.stored.values())) > 1:
        raise Broken("one model", "samples of two models are on one disk")


def _session(world: World, *, faults: bool) -> str:
    """Why the session ended early; empty if it did not."""
    if rows := world.owed():
        world.disk.open(faults=faults)
        session = Session(world, rows, faults=faults)
        session.play()
        return session.ending.why
    return ""


def broken(seed: int, trace: list[str] | None = None) -> str:
    """The promise that the run of this seed breaks; empty if it keeps them all. A crash is a broken promise, too."""
    try:
        play(seed, trace)
    except Broken as error:
        return str(error)
    except Exception as error:  # noqa: BLE001
        return f"crash: {type(error).__name__}: {error}"
    return ""


def told(seed: int) -> str:
    """Everything that happens in the run of this seed, a line each."""
    trace: list[str] = []
    broken_rule = broken(seed, trace)
    return "\n".join([*trace, broken_rule or "every promise was kept"])
