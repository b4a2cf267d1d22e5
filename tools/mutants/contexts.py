"""A plugin of pytest that tells coverage which test function runs: `FILE::NAME`, with its fixtures and threads.

Coverage's own `dynamic_context = test_function` sees no test of Hypothesis, and no thread that a test starts.
"""

from __future__ import annotations

import pytest
from coverage import Coverage


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Name the lines that run from here on after the test."""
    if measuring := Coverage.current():
        measuring.switch_context(item.nodeid.partition("[")[0])
