"""Each scene does what `data/` says: requests on the wire, files by meaning, numbers, exit codes, keys of notes."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

from tests.pins import data
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
