"""The version is one, and the shipped data are found."""

from __future__ import annotations

import tomllib
from pathlib import Path

import harness
from harness.core import about

CHECKOUT = Path(harness.__file__).parent.parent


def test_the_front_door_and_the_build_read_the_same_version() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    read_from = CHECKOUT / project["tool"]["hatch"]["version"]["path"]
    assert read_from.samefile(about.__file__)
    assert harness.__version__ == about.__version__


def test_shipped_data_lie_in_the_checkout_or_in_the_package() -> None:
    assert list(about.shipped_folder("datasets", "datasets").glob("aime24.yaml"))
    assert list(about.shipped_folder("published", "results/published").glob("*.yaml"))
