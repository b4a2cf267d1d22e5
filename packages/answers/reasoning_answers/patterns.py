"""Patterns that are compiled on first use: compiling hundreds of them at import takes a tenth of a second."""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "split", "pattern")


class LazyPattern:
    """Has the methods of `re.Pattern`; the first use of one of them compiles the pattern."""

    def __init__(self, text: str, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        # Called only until the instance has the methods itself.
        if name not in _METHODS:
            raise AttributeError(f"this pattern has no attribute {name!r}")
        compiled = re.compile(*self._source)
        self.__dict__ |= {method: getattr(compiled, method) for method in _METHODS}
        return getattr(compiled, name)


def regex(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of `text`, as `re.compile` does."""
    return cast("re.Pattern[str]", LazyPattern(text, flags))
