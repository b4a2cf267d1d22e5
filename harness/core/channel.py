"""The channel of warnings: any room warns here; the command line prints the warnings, and Python's `logging` has them
otherwise, from the logger `harness`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Show = Callable[[str], None]


def _log(sentence: str) -> None:
    """Hand a warning to Python's logging."""
    import logging

    logging.getLogger("harness").warning("%s", sentence)


_shows: list[Show] = [_log]
"""The last one gets the warnings. A list, not a context variable: warnings of all threads go the same way."""


def warn(sentence: str) -> None:
    """Warn of a fact that the user should know: a setting that is seldom meant, a file that was left out."""
    _shows[-1](sentence)


@contextlib.contextmanager
def warnings_to(show: Show) -> Iterator[None]:
    """A `with` block in which `show` gets the warnings of all threads."""
    _shows.append(show)
    try:
        yield
    finally:
        _shows.remove(show)
