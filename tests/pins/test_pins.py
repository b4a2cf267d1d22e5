"""Each scene does what `data/` says: requests on the wire, files by meaning, numbers, exit codes, keys of notes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pins import data, reading
from tests.pins.meaning import differences, with_pinned
from tests.pins.scenes.streams import recorded
from tests.pins.stage import UNKNOWN, Scene, play

MODULES = sorted(path.stem for path in Path(__file__).with_name("scenes").glob("[a-z]*.py"))
SCENES: dict[str, Scene] = {
    f"{module}.{scene.__name__}": scene
    for module in MODULES
    for scene in importlib.import_module(f"tests.pins.scenes.{module}").SCENES
}
TO_WRITE = os.environ.get("HARNESS_WRITE_PINS")


def hold(name: str, scene: Scene, folder: Path) -> None:
    """Play the scene and compare its steps with its file, or write the file where they mean something else."""
    if TO_WRITE not in (None, "all") and not name.startswith(tuple(str(TO_WRITE).split(","))):
        return
    steps, pinned = play(scene, folder), data.load(name)
    different = differences(pinned, steps)
    if TO_WRITE is None and different:
        pytest.fail(f"{name} differs from what is pinned:\n" + "\n".join(different), pytrace=False)
    if TO_WRITE is None or not different:
        return
    unnamed = [note for step in steps.values() for note in step.get("notes", ()) if note.startswith(UNKNOWN)]
    if unnamed:
        pytest.fail("\n".join(unnamed), pytrace=False)
    data.path(name).write_text(data.text_of(with_pinned(pinned, steps)), "utf-8")


@pytest.mark.parametrize("name", SCENES)
def test_pinned(name: str, tmp_path: Path) -> None:
    hold(name, SCENES[name], tmp_path)


def test_streams_of_real_servers(shared_data: Path, tmp_path: Path) -> None:
    hold("streams.recorded", lambda stage: recorded(stage, shared_data / "sse"), tmp_path)


# -- comparing pins by meaning -----------------------------------------------------------------------------------------


NAN = float("nan")


@pytest.mark.parametrize(
    ("pinned", "now", "lines"),
    [
        ({"a": {"value": 57.1}}, {"a": {"value": 58.0}}, ["a.value: 57.1 → 58.0"]),
        ({"a": 1.0}, {"a": 1.0 + 3e-9}, ["a: 1.0 → 1.000000003"]),
        ({"seed": 2147483646}, {"seed": 2147483647}, ["seed: 2147483646 → 2147483647"]),
        ({"a": 1}, {"a": True}, ["a: 1 → true"]),
        ({"a": None}, {}, ["a: null → absent"]),
        ([1, 2], [2, 1], ["[0]: 1 → 2", "[1]: 2 → 1"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a[1]: 2 → absent"]),
        ({"a": {}}, {"a": []}, ["a: {} → []"]),
        ({"a": {"b": 1}}, {"a": None}, ['a: {"b": 1} → null']),
        ({"a b": "x"}, {"a b": "y"}, ['["a b"]: "x" → "y"']),
        ({"a": 0.5}, {"a": NAN}, ["a: 0.5 → NaN"]),
        ("x", "y", ['value: "x" → "y"']),
        ({"a": [1, 2, 3]}, {"a": [1, 7, 2, 3]}, ["a[1]: absent → 7"]),
        ("so " * 99 + "4", "so " * 99 + "5", ['value: …o so so so so so so 4" → …o so so so so so so 5"']),
    ],
)
def test_a_difference_is_told_by_its_path_and_both_values(pinned: Any, now: Any, lines: list[str]) -> None:
    assert differences(pinned, now) == lines


@pytest.mark.parametrize(
    ("pinned", "now"),
    [
        ({"a": 1, "b": [1, {"c": None}]}, {"b": [1.0, {"c": None}], "a": 1 + 1e-10}),
        ({"a": NAN, "b": float("inf")}, {"b": float("inf"), "a": NAN}),
        ((1, 2), [1, 2]),
    ],
)
def test_equal_meaning_gives_no_line(pinned: Any, now: Any) -> None:
    assert differences(pinned, now) == []


def test_what_is_written_anew_keeps_each_value_that_means_the_same() -> None:
    pinned = {"a": [0.1, 0.5], "b": {"c": 0.1 + 0.2}, "gone": 1, "d": {"e": 1}}
    now = {"a": [0.1 + 1e-12, 0.6, 7], "b": {"c": 0.3}, "new": [], "d": None}
    assert with_pinned(pinned, now) == {"a": [0.1, 0.6, 7], "b": {"c": 0.1 + 0.2}, "new": [], "d": None}


def test_a_clean_tree_has_nothing_to_write() -> None:
    """A file is written only where a scene means something else, and then in the order and layout that it has."""
    for path in data.FOLDER.glob("*.json"):
        pinned = data.load(path.stem)
        turned = {key: dict(reversed(step.items())) for key, step in reversed(pinned.items())}
        assert data.text_of(with_pinned(pinned, turned)) == path.read_text("utf-8"), path.name


@pytest.mark.parametrize("new", [5, None, {}])
@pytest.mark.parametrize("read", [reading.scores, reading.needed, reading.cards, reading.checks])
def test_a_field_that_nobody_knows_fails_a_pin(read: Callable[[Any], Any], new: Any) -> None:
    row = {"benchmark": "sums", "accuracy": {"value": 0.5}, "rounds": 3}
    assert differences(read([row]), read([row | {"a_new_field": new}])) != []
    assert differences(read([row]), read([row])) == []
