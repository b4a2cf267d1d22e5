"""The version is one, and the shipped data are found."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import harness
from harness.core import about
from harness.core.files import shipped_folder

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
    ("own", "xdg", "folder"),
    [
        (None, None, "~/.cache/reasoning-harness"),
        ("", "", "~/.cache/reasoning-harness"),
        ("/own", None, "/own"),
        ("~/own", "/xdg", "~/own"),
        (None, "/xdg", "/xdg/reasoning-harness"),
        (None, "relative", "~/.cache/reasoning-harness"),
    ],
)
def test_the_folders_of_cache_and_state_are_our_own_else_those_of_xdg(
    monkeypatch: pytest.MonkeyPatch, own: str | None, xdg: str | None, folder: str
) -> None:
    for kind, function, home in (
        ("CACHE", about.cache_folder, ".cache"),
        ("STATE", about.state_folder, ".local/state"),
    ):
        for name, value in ((f"HARNESS_{kind}", own), (f"XDG_{kind}_HOME", xdg)):
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        assert function() == Path(folder.replace(".cache", home)).expanduser()
