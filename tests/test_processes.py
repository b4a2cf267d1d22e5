"""Tests in several processes are each reported once, whatever becomes of a process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import CHECKOUT

TESTS = r"""
import atexit, os, signal, time
from pathlib import Path
import pytest

pytestmark = pytest.mark.wide

HERE = Path(__file__).parent

@pytest.fixture(scope="module")
def kept():
    yield
    with (HERE / "torn_down").open("a") as file:
        file.write("once\n")

@pytest.mark.parametrize("number", range(9))
def test_number(kept, number, request):
    with (HERE / "ran").open("a") as file:
        file.write(f"{request.node.nodeid.rpartition('/')[2]} {os.getpid()}\n")
    if number == 3:
        print("words of a failing test")
        assert number == 4, "\n".join(100 * ["a line"])
    if number == 5:
        pytest.skip("no five")
    if number == 6 and "KILL" in __file__:
        os.kill(os.getpid(), signal.SIGKILL)

@pytest.mark.timeout(0.3 if "KILL" in __file__ else 60)
def test_late():
    atexit.register((HERE / f"ended-{os.getpid()}").touch)
    if "KILL" in __file__:
        time.sleep(60)
"""


def outcome(folder: Path, *words: str) -> tuple[int, str, list[str]]:
    """Exit code and output of the tests in the folder, and (test, process) of each that ran."""
    plugins = ("-p", "pytest_timeout", "-p", "tests.processes", "-p", "tests.messages")
    without = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--rootdir", folder, folder, *words],
        env=without | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # the others' imports take two seconds
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, (folder / "ran").read_text().splitlines()


def test_each_test_runs_once_and_that_of_a_dead_process_has_failed(tmp_path: Path) -> None:
    for name in ("test_a", "test_b", "inner/test_KILL"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(TESTS.replace("HERE = ", f"HERE = Path({str(tmp_path)!r})  # "))
    (tmp_path / "inner" / "conftest.py").touch()  # has pytest choose among its plugins
    code, output, ran = outcome(tmp_path, "--processes", "2", "-ra")
    assert code == 1, output
    assert "5 failed, 22 passed, 3 skipped" in output
    assert len({line.split()[0] for line in ran}) == len(ran) == 27
    assert "the process of this test ended with signal 9" in output
    assert "… 92 more lines (all: -v)" in output
    assert "Failed: Timeout" in output
    assert re.search(r"SKIPPED .*: no five", output)
    assert output.count("words of a failing test") == 2 * 3  # the line of the program, and what it prints
    for name in ("test_a", "test_b"):
        assert len({line.split()[1] for line in ran if line.startswith(name)}) == 1
    assert len({line.split()[1] for line in ran}) in (2, 3)
    assert 1 <= len([*tmp_path.glob("ended-*")]) <= 3
    # The process that died tore nothing down.
    assert (tmp_path / "torn_down").read_text() == "once\n" * 3


def test_a_process_that_fails_after_its_last_test_is_told(tmp_path: Path) -> None:
    """Else the run fails with every test passed, and nobody knows why."""
    (tmp_path / "conftest.py").write_text(
        "import pytest\n@pytest.hookimpl\ndef pytest_sessionfinish(session):\n"
        "    if hasattr(session.config, 'workerinput'): raise OSError('no room for the fixtures')\n"
    )
    (tmp_path / "test_a.py").write_text(TESTS.replace("number == 3", "number < 0"))
    code, output, ran = outcome(tmp_path, "--processes", "2")
    assert (code, len(ran)) == (1, 9)
    assert "9 passed, 1 skipped" in output
    assert re.search(r"(?s)after its last test, Traceback.*no room for the fixtures", output)
