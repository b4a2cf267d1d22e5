"""Fixtures that every test package shares."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No example is timed: a busy machine is no failure. The same examples each time where a failure would stop others.
settings.register_profile(
    "harness",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("harness")

# A shell that starts the suite in the background, and nohup, have signals ignored, which every child would inherit.
for _signal, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _handler)

pytest_plugins = ["tests.embedded"]

TESTS = Path(__file__).resolve().parent
CHECKOUT = TESTS.parent

LEFT_OUT = {
    TESTS / "servers": 1800,
    TESTS / "examples": 1800,
    TESTS / "trainers": 1800,
    TESTS / "interop": 1800,
    TESTS / "on_ray": 1800,
    TESTS / "on_slurm": 600,
    TESTS / "fault_tools": 1200,
}
"""Folders that run only when named, for what they install and start → seconds that a test in one may take."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave a folder of `LEFT_OUT` out unless it, or something in it, is named."""
    folder = next((folder for folder in LEFT_OUT if folder in (collection_path, *collection_path.parents)), None)
    if folder is None:
        return None
    named = [(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args]
    return None if any(folder in (path, *path.parents) for path in named) else True


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a test after the argument, not the contents, where a value is bytes.

    A compressed file holds the second in which it was made: two processes that share the tests and collect them on
    both sides of a second would not agree on the names.
    """
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A slow folder's own limit in place of the short one of the fast tests."""
    for item in items:
        for folder, seconds in LEFT_OUT.items():
            if folder in item.path.parents:
                item.add_marker(pytest.mark.timeout(seconds))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real benchmark files and recorded streams: beside the checkout, or where HARNESS_SHARED says."""
    shared = Path(os.environ.get("HARNESS_SHARED", CHECKOUT.parent / "shared"))
    data = shared / "data"
    if not data.is_dir():
        pytest.skip(f"no real benchmark data at {data}; set HARNESS_SHARED to the folder that holds data/")
    return data


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows as JSON Lines and gives the path."""

    def write(rows: list[dict[str, Any]], name: str = "set.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
        return path

    return write
