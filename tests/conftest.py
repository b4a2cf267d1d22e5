"""Fixtures that every test package shares."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import budget
from tests.budget import examples

# No example is timed: a busy machine is no failure.
settings.register_profile(
    "harness", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100)
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

pytest_plugins = [
    *("tests.warm", "tests.embedded", "tests.kept_graders", "tests.left_behind"),
    *("tests.processes", "tests.order", "tests.messages"),
]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """One seed for all: of `tests.budget`, of Hypothesis, and of the tests' order and `random` (pytest-randomly)."""
    for option, unset in (("hypothesis_seed", None), ("randomly_seed", "default")):
        if getattr(config.option, option, ...) == unset:
            setattr(config.option, option, budget.SEED)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Tables are 80 columns wide where no terminal is; in tests their rows stay whole, to be looked for.

    Around the whole test: a width that a fixture sets holds in the test's body.
    """
    with pytest.MonkeyPatch.context() as patch:
        if "COLUMNS" not in os.environ:
            patch.setenv("COLUMNS", "1000")
        return (yield)


TESTS = Path(__file__).resolve().parent
CHECKOUT = TESTS.parent

LEFT_OUT = {
    TESTS / "browser": 600,
    TESTS / "servers": 1800,
    TESTS / "routers": 600,
    TESTS / "packaging": 900,
    TESTS / "examples": 1800,
    TESTS / "trainers": 1800,
    TESTS / "interop": 1800,
    TESTS / "on_ray": 1800,
    TESTS / "on_slurm": 600,
}
"""Folders that run only when named, for what they install and start → seconds that a test in one may take."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--wide`: what `make test-wide` runs."""
    parser.addoption("--wide", action="store_true", help="only tests of which HARNESS_TEST_EXAMPLES=all has more cases")


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


SHARED_DATA = Path(os.environ.get("HARNESS_SHARED", CHECKOUT.parent / "shared")) / "data"
"""Real benchmark files, labeled pairs and recordings of others, which this repository may not hold."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give tests of a slow folder its own limit; leave out, and count, those whose data or leave are not at hand."""
    here, whole = SHARED_DATA.is_dir(), bool(os.environ.get("HARNESS_TEST_DOCS"))
    wide, named = config.getoption("wide"), any(".py" in argument for argument in config.args)
    left_out = {
        item
        for item in items
        if (not here and "shared_data" in getattr(item, "fixturenames", ()))
        or (not whole and item.get_closest_marker("whole_pages"))
        or (wide and not _has_more_cases(item))
        or (not (wide or budget.ALL or named) and item.get_closest_marker("wide"))
    }
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        seconds = seconds_of(item.path)
        if seconds is not None:
            item.add_marker(pytest.mark.timeout(seconds))


def _has_more_cases(item: pytest.Item) -> bool:
    """Whether the ordinary suite tries less of a test: cases of `tests.budget` or of Hypothesis, or the mark `wide`."""
    here = vars(getattr(item, "module", budget))
    budgeted = any(here.get(name) is getattr(budget, name) for name in ("examples", "share_of", "rounds"))
    drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return bool(budgeted or drawn or item.get_closest_marker("wide"))


@cache
def seconds_of(path: Path) -> int | None:
    """Seconds that a test of the file may take, where its folder has a limit of its own."""
    return next((seconds for folder, seconds in LEFT_OUT.items() if folder in path.parents), None)


def pytest_collection_finish() -> None:
    """Leave what stands until the end out of every later look for garbage, which would take half a second each time.

    Caches and records of tests grow the heap all the same, so such looks are made more seldom, too.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 40)


@pytest.fixture(scope="session", autouse=True)
def _no_server_is_waited_for() -> Iterator[None]:
    """Tests of servers that are down have an answer at once; those of a server that comes up late set `wait`."""
    from harness.generation.settings import Patience
    from harness.preparing import servers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(servers, "PATIENCE", Patience(start_up=0, outage=0))
        yield


@pytest.fixture(scope="session", autouse=True)
def _python3_is_no_script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A version manager's `python3` is a script that starts forty processes: have the interpreter behind it."""
    found = shutil.which("python3")
    with pytest.MonkeyPatch.context() as patch:
        if found and Path(found).read_bytes()[:2] == b"#!":
            program = tmp_path_factory.mktemp("path") / "python3"
            program.symlink_to(Path(sys.executable).resolve())
            patch.setenv("PATH", str(program.parent), prepend=os.pathsep)
        yield


@pytest.hookimpl(trylast=True)  # the first lines
def pytest_report_header() -> list[str]:
    """How to repeat this run; what it leaves out, each with the one command that adds it."""
    lines = [f"to repeat the generated cases and the order of this run: HARNESS_FUZZ_SEED={budget.SEED}"]
    if SHARED_DATA.is_dir():
        lines.append(f"shared data: {SHARED_DATA}")
    else:
        lines.append(
            f"left out: tests on files of others: put them into {SHARED_DATA}, or name their folder: HARNESS_SHARED=DIR"
        )
    if shutil.which("bwrap") is None:
        lines.append("left out: the sandbox of programs as answers: sudo apt install bubblewrap")
    if not budget.ALL:
        lines.append("left out: seven eighths of the generated cases: make test-wide")
    lines.append(f"left out unless named: {', '.join(sorted(folder.name for folder in LEFT_OUT))}: make help")
    return lines


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """`SHARED_DATA`: beside the checkout, or in the folder that HARNESS_SHARED names. Its tests run where it is."""
    return SHARED_DATA


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows as JSON Lines and gives the path."""

    def write(rows: list[dict[str, Any]], name: str = "set.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
        return path

    return write
