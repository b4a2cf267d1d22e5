"""The version is one, and the shipped data are found."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import harness
from harness.core import about
from harness.core.files import shipped_folder
from server_launchers import folders

CHECKOUT = Path(harness.__file__).parent.parent


def test_the_front_door_and_the_build_read_the_same_version() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    read_from = CHECKOUT / project["tool"]["hatch"]["version"]["path"]
    assert read_from.samefile(about.__file__)
    assert harness.__version__ == about.__version__


def test_shipped_data_lie_in_the_checkout_or_in_the_package() -> None:
    assert list(shipped_folder("datasets", "datasets").glob("aime24.yaml"))
    assert list(shipped_folder("published", "results/published").glob("*.yaml"))


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"HARNESS_CACHE": "/own"},
        {"HARNESS_CACHE": "~/own", "XDG_CACHE_HOME": "/xdg"},
        {"XDG_CACHE_HOME": "/xdg"},
        {"XDG_CACHE_HOME": "relative"},
        {"HARNESS_CACHE": "", "XDG_CACHE_HOME": ""},
    ],
)
def test_the_cache_folder_is_the_one_that_the_launchers_use(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name in ("HARNESS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    expected = {"/own": "/own", "~/own": str(Path.home() / "own")}.get(environment.get("HARNESS_CACHE", ""))
    assert about.cache_folder() == folders.cache_folder()
    assert about.cache_folder().is_absolute()
    if expected:
        assert about.cache_folder() == Path(expected)
