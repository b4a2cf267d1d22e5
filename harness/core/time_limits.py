"""Limits on the times of a request, such as `first_token=2s,token_gap=50ms`, and the share of requests that must keep
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from harness.core.number_text import exact
from harness.core.sanitize import quoted

NAMES = ("first_token", "token_gap", "total")
"""The times that can be limited, as fields of `TimeLimits`."""

MAX_SHOWN = 12
"""Length of the longest wrong text that a message repeats."""

_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?|\d{1,9}\.\d{10,12}(?=s)) ?(ms|s)")
"""A time; one in seconds may have the three decimals more that one in milliseconds has in seconds."""
_SHARE = re.compile(r"(\d{1,2}(?:\.\d{1,6})?) ?%")


class TimeLimits(NamedTuple):
    """The longest times of a request that users accept, in seconds; None: not limited. A value is of one request, as in
    `vllm bench serve --goodput`, guidellm and aiperf.

    first_token: from the request to the first token. token_gap: mean time per token after the first one. total: from
    the request to the end of its reply. share: fraction of requests that must meet all limits.
    """

    first_token: float | None = None
    token_gap: float | None = None
    total: float | None = None
    share: float = 0.9

    def __str__(self) -> str:
        given = ((name, getattr(self, name)) for name in NAMES)
        times = [f"{name}={exact(value)}s" for name, value in given if value]
        return ",".join([*times, f"share={exact(self.share, 100)}%"])

    @property
    def text(self) -> str:
        """The limits as part of a sentence: `first token ≤ 2 s, token gap ≤ 50 ms`."""
        given = ((name.replace("_", " "), getattr(self, name)) for name in NAMES)
        return ", ".join(
            f"{name} ≤ {exact(s)} s" if s >= 1 else f"{name} ≤ {exact(s, 1000)} ms" for name, s in given if s
        )


def parse_limits(value: Any) -> Any:
    """Limits as text, also if given as a mapping; None is unchanged. Raises `ValueError` with what was expected."""
    return None if value is None else str(limits_in(value))


def limits_in(value: str | Mapping[str, Any]) -> TimeLimits:
    """The limits in a text such as `first_token=2s,token_gap=50ms,share=95%`, or in a mapping. Raises `ValueError`."""
    if isinstance(value, str):
        pairs = [part.partition("=")[::2] for part in value.split(",") if part]
        value = dict(pairs)
        if len(value) < len(pairs):
            raise ValueError("each limit may be given once")
    if not isinstance(value, Mapping):
        raise ValueError("expected limits such as first_token=2s,token_gap=50ms")
    fields: dict[str, float] = {}
    for key, text in value.items():
        name, given = str(key).strip(), str(text).strip()
        if name not in (*NAMES, "share"):
            raise ValueError(f"expected limits named {', '.join(NAMES)} or share{_repeated(name)}")
        if name == "share":
            if (share := _SHARE.fullmatch(given)) is None or not float(share[1]):
                raise ValueError(f"share: expected a percentage above 0 and below 100, such as 90%{_repeated(given)}")
            fields[name] = float(Decimal(share[1]) / 100)
        elif (time := _TIME.fullmatch(given)) is None or not float(time[1]):
            raise ValueError(f"{name}: expected a time above 0 with its unit, such as 2s or 50ms{_repeated(given)}")
        else:
            fields[name] = float(Decimal(time[1]) / (1000 if time[2] == "ms" else 1))
    if not fields.keys() - {"share"}:
        raise ValueError(f"expected at least one of {', '.join(NAMES)}, such as first_token=2s")
    return TimeLimits(**fields)


def _repeated(text: str) -> str:
    """The end of a sentence about a wrong text; empty if it is so long that it may be a key."""
    return f", found {quoted(text)}" if len(text) <= MAX_SHOWN else ""
