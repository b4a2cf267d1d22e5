"""What `make test` prints of the cost of each test (tests.processor_time)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import CHECKOUT

TESTS = r"""
import subprocess, sys, time
import pytest

pytestmark = pytest.mark.wide

@pytest.fixture
def worked():
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass

def test_idle():
    time.sleep(0.3)

def test_fixture(worked):
    pass

def test_child():
    subprocess.run([sys.executable, "-S", "-c", "import time\nwhile time.process_time() < 0.4: pass"], check=True)
"""


def test_fixtures_and_children_count_and_waiting_does_not(tmp_path: Path) -> None:
    """By two processes, which must hand their figures over."""
    (tmp_path / "test_costs.py").write_text(TESTS)
    plugins = ("-p", "tests.processes", "-p", "tests.processor_time")
    without = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}  # a seed, for one
    words = ("-q", *plugins, "--processes", "2", "--single-tests", "--processor-time")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--rootdir", str(tmp_path), str(tmp_path)],
        env=without | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = re.findall(r"^ *([\d.]+) s  (.*)$", done.stdout, re.MULTILINE)
    costs = {what.rpartition("::")[2]: float(seconds) for seconds, what in rows}
    assert [what for what in costs if what.startswith("test_")][:3] == ["test_child", "test_fixture", "test_idle"]
    assert costs["test_child"] > 0.38 > costs["test_fixture"] > 0.18 > 0.15 > costs["test_idle"]
    ((whole, _),) = [row for row in rows if row[1].startswith("in all")]
    assert float(whole) > costs["test_costs.py"] >= 0.55
