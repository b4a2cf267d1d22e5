"""What each test costs: the processor time of its process and of the children that it waited for.

Seconds on the clock say little on a busy machine; these say the same on each. A fixture counts for the test that first
asks for it. With several processes (`pytest --processes`) each measures its own tests, and the first of them prints the
tables. A child that nobody waits for, or that ends later than its test, counts for whoever waits for it, or for none.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

TESTS, FILES = 20, 10
"""Rows of the two tables: the costliest tests, and the costliest files."""

_began = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--processor-time`: print the tables (`make test` does)."""
    parser.addoption("--processor-time", action="store_true", help="print which tests took the most processor time")


def pytest_configure(config: pytest.Config) -> None:
    """Measure and print only where asked."""
    if config.getoption("processor_time"):
        config.pluginmanager.register(ProcessorTime(), "processor-time-measured")


def seconds() -> float:
    """Processor time so far of this process and of the children that it waited for."""
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


class ProcessorTime:
    """Collects what each test took, here or in a process of `tests.processes`."""

    def __init__(self) -> None:
        self.collecting = 0.0
        self.tests: Counter[str] = Counter()

    def pytest_collection_finish(self) -> None:
        """Imports and collection are behind us."""
        self.collecting = seconds()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Add what a setup, a call or a teardown took to its report, which carries it to the parent."""
        report = yield
        now = seconds()
        report.processor_seconds = now - item.stash[_began]
        item.stash[_began] = now
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """A test begins."""
        item.stash[_began] = seconds()
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test is over, in whichever process."""
        self.tests[report.nodeid] += getattr(report, "processor_seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The tables."""
        write = terminalreporter.write_line
        files: Counter[str] = Counter()
        for test, spent in self.tests.items():
            files[test.partition("::")[0]] += spent
        terminalreporter.write_sep("=", "processor time")
        write(f"{seconds():8.2f} s  in all; {self.collecting:.2f} s before the first test")
        for name, counter, rows in (("tests", self.tests, TESTS), ("files", files, FILES)):
            write(f"the {rows} {name} that took most:")
            for row, spent in counter.most_common(rows):
                write(f"{spent:8.2f} s  {row}")
