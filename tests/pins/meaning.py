"""Comparison of two JSON values by meaning: what a reader of the values would call a difference, line by line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import takewhile, zip_longest
from typing import Any

MAX_SHOWN = 60
"""Characters of each side of a difference, from shortly before where they differ."""
TOLERANCE = 1e-9
ABSENT = object()
"""The value of a key or a place that one side does not have."""


def differences(pinned: Any, now: Any) -> list[str]:
    """One line a difference, `scores.accuracy.value: 57.1 → 58.0`; empty where both mean the same.

    Floats are equal to 1e-9, relative or absolute, whole numbers (seeds, counts) exactly; a dict's keys have no order,
    a list's items have one.
    """
    return [*_differences("", pinned, now)]


def _differences(path: str, pinned: Any, now: Any) -> Iterator[str]:
    if isinstance(pinned, Mapping) and isinstance(now, Mapping):
        for key in (*pinned, *(key for key in now if key not in pinned)):
            yield from _differences(_joined(path, key), pinned.get(key, ABSENT), now.get(key, ABSENT))
    elif isinstance(pinned, list | tuple) and isinstance(now, list | tuple):
        # Items put in or taken away move those behind them.
        same = takewhile(
            lambda pair: not any(_differences("", *pair)), zip(reversed(pinned), reversed(now), strict=False)
        )
        n_same = sum(1 for _ in same) if len(pinned) != len(now) else 0
        both = (items[: len(items) - n_same] for items in (pinned, now))
        for index, pair in enumerate(zip_longest(*both, fillvalue=ABSENT)):
            yield from _differences(f"{path}[{index}]", *pair)
    elif not _same(pinned, now):
        yield f"{path or 'value'}: {_shown(pinned, now)}"


def with_pinned(pinned: Any, now: Any) -> Any:
    """`now`, with the pinned value and order wherever both mean the same, so that a file shows changes alone."""
    if isinstance(pinned, Mapping) and isinstance(now, Mapping):
        order = (*(key for key in pinned if key in now), *(key for key in now if key not in pinned))
        return {key: with_pinned(pinned.get(key, ABSENT), now[key]) for key in order}
    if isinstance(pinned, list | tuple) and isinstance(now, list | tuple):
        return [with_pinned(*pair) for pair in zip_longest(pinned[: len(now)], now, fillvalue=ABSENT)]
    return pinned if _same(pinned, now) else now


def _same(pinned: Any, now: Any) -> bool:
    """Whether two values mean the same, neither both dicts nor both lists. True is no 1, and no number is its text."""
    if isinstance(pinned, bool) or isinstance(now, bool):
        return pinned is now
    if isinstance(pinned, int) and isinstance(now, int):
        return pinned == now
    if isinstance(pinned, int | float) and isinstance(now, int | float):
        both_nan = math.isnan(pinned) and math.isnan(now)
        return both_nan or math.isclose(pinned, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(pinned) is type(now) and bool(pinned == now)


def _joined(path: str, key: object) -> str:
    """The path of a key below `path`; a key that would read as several stands quoted."""
    name = str(key)
    if name and not set(name) & set(".[]: "):
        return f"{path}.{name}" if path else name
    return f"{path}[{json.dumps(name, ensure_ascii=False)}]"


def _shown(pinned: Any, now: Any) -> str:
    """Both values from shortly before their first difference, `MAX_SHOWN` characters of each."""
    texts = [
        "absent" if value is ABSENT else json.dumps(value, ensure_ascii=False, default=repr) for value in (pinned, now)
    ]
    n_equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))
    begin = max(0, n_equal - MAX_SHOWN // 3) if max(map(len, texts)) > MAX_SHOWN else 0
    ends = ["…" * (begin > 0) + text[begin:][:MAX_SHOWN] + "…" * (len(text) > begin + MAX_SHOWN) for text in texts]
    return " → ".join(ends)
