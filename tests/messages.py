"""A failure shows its message, the difference of two values above all, in ten lines; `-v` shows all of them."""

from __future__ import annotations

from collections.abc import Generator

import pytest

MAX_LINES, MAX_LAST_LINES = 10, 2
"""Lines of a message that are shown, and how many of them are its last."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shorten the message in the traceback and in the summary at the end of the run."""
    report = yield
    if item.config.get_verbosity() <= 0:
        for traceback, crash, _ in getattr(report.longrepr, "chain", ()):
            for entry in traceback.reprentries:
                entry.lines = shortened(entry.lines, "" if entry.style == "value" else "E  ")
            if crash is not None:
                crash.message = "\n".join(shortened(crash.message.split("\n")))
    return report


def shortened(lines: list[str], beginning: str = "") -> list[str]:
    """The lines without the middle ones, beyond ten, of those that begin so."""
    message = [number for number, line in enumerate(lines) if line.startswith(beginning)]
    left_out = message[MAX_LINES - MAX_LAST_LINES - 1 : -MAX_LAST_LINES] if len(message) > MAX_LINES else []
    note = f"{beginning} … {len(left_out)} more lines (all: -v)".lstrip()
    shown = {number: line for number, line in enumerate(lines) if number not in left_out}
    return [line for _, line in sorted((shown | dict.fromkeys(left_out[:1], note)).items())]
