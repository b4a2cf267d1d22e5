"""Pins of `harness grade` and `harness.grade`: verdicts with their steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of


def verdicts(stage: Stage) -> None:
    """One verdict of each kind, one of them from both doors."""
    for reference, response, words in (
        ("1/2", r"So the answer is \boxed{0.5}.", []),
        ("1/2", r"So \boxed{0.6}", ["--absolute-tolerance", "0.2"]),
        ("B", "I choose (B).", ["--choice", "stone", "--choice", "apple"]),
        ("x^2-1", r"\boxed{(x-1)(x+1)}", ["--kind", "expression"]),
    ):
        stage.command("grade", reference, response, *words)
    verdict = stage.python("grade", "3.14", r"\boxed{3.1415}", round_to_reference=True, kind="number", deadline=1.5)
    words = ["--round-to-reference", "--kind", "number", "--deadline", "1.5"]
    printed = stage.command("grade", "3.14", r"\boxed{3.1415}", *words)
    assert printed.out.splitlines()[-1] == verdict.steps[-1]


def near_misses_and_refusals(stage: Stage) -> None:
    """The near misses of a run, and what is refused."""
    stored.copy("first", stage.folder, scored=True)
    stage.command("grade", "--near-misses", "first")
    stage.command("grade", "1", "1", "--deadline", "0", show_errors=True)
    stage.python("grade", "1", "1", deadline=0.0)


SCENES: tuple[Scene, ...] = (verdicts, near_misses_and_refusals)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
