"""How long a server asks to wait, in every form that servers use.

The first row that states a wait between now and `MAX_WAIT_S` decides:

| where | forms |
| --- | --- |
| headers `retry-after-ms`, `retry-after` | milliseconds; seconds, an HTTP date |
| `QuotaFailure` with `…PerDay…` (Gemini) | midnight Pacific time; the seconds stated with it are wrong |
| fields of the error (`FIELDS`) | `retryDelay: "36s"`, `resets_in_seconds: 900`, `resets_at: "2026-11-28T08:00:00Z"` |
| its text, if no 5xx | "try again in 6m0s", "please wait 20 s", "will reset after 27h41m36s", "resets at 2026-…" |
| headers `…limit…reset…`, `ratelimit` of a 429 | durations, seconds, times: of exhausted limits, or else the soonest |

A server's times are relative to its own clock, which the `Date` header of its reply states (`server_now`).

Sources. Headers: RFC 9110; the pages of OpenAI, Groq, Cerebras, Anthropic, OpenRouter and GitHub; the IETF's draft
ratelimit-headers. Fields: google.rpc.RetryInfo, inspect_ai#5526, lettertrace#34 (Gemini); OpenAI's Codex; Hugging Face
(`estimated_time`); openclaude#936, TranslateBooksWithLLMs#125, atlas#543 (OpenRouter repeats its headers in the body).
Texts: OpenAI's and Groq's pages, OmniRoute#858, vscode-copilot-release#3210, copilot-cli#2696, chutes-api#56.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

MAX_WAIT_S = 32 * 86400.0
"""Longest wait that is believed, in seconds: the longest quotas of services are monthly."""

FIELDS = {
    *("retrydelay", "quotaresetdelay", "retryafter", "retryafterseconds", "retryafterms"),
    *("resetsinseconds", "resetsat", "resetat", "quotaresettimestamp", "estimatedtime"),
}
"""Names, in lower case and without separators, of fields that state a wait or its end."""

_MAX_VALUES = 500
"""Largest number of an error's values that are searched."""

MAX_CHARS = 4000
"""Number of characters of an error that are searched for words."""

_UNIT = r"(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_PIECE = rf"\d{{1,12}}(?:\.\d{{1,12}})?[ ]?{_UNIT}"
_DURATION = rf"{_PIECE}(?:(?:,?[ ]and|,)?[ ]?{_PIECE})*"
_NUMBER_AND_UNIT = re.compile(r"([\d.]+) ?(ms|mil|[smhd])", re.IGNORECASE)
_UNITS = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = r"\d{4}-\d\d-\d\d[T ][\d:]{5,8}(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d|[ ]?UTC)"
_WORDS = re.compile(
    # An imperative, or what somebody is asked or allowed to do.
    rf"""(?:(?:\A|[^\w\s]\s*|\n|\b(?:please|can|may|must|should|(?<!failed\ )(?<!had\ )to|and|or|then|kindly)\ )
        (?:(?:re-?)?try(?:\ again|\ later|\ (?:it|(?:your|the|this)\ request)){{0,3}}
            [ _-]?(?:in|after|at|on)
          |wait(?:\ for)?)
      | \b(?:(?:be|becomes?|next|again)\ available(?:\ again)?|available\ again|be\ retried)\ (?:in|after|at|on)
      | \b(?:(?<!connection\ )(?<!stream\ )(?<!socket\ )resets
          |(?:will(?:\ be)?|limits?|quota|usage|window)\ reset)\ (?:in|after|at|on))
      \b[ :="]*(?:(?:about|around|approximately|another|at\ least|up\ to)\ |~)?({_TIME}|{_DURATION})""",
    re.IGNORECASE | re.VERBOSE,
)
"""A sentence that asks to wait or says when a limit ends: a duration in another one may be a timeout."""

_LIMIT = re.compile(r"\b(r|t|remaining|reset) ?= ?(\d{1,12})")
_PER_DAY = re.compile(r"per[ _-]?day", re.IGNORECASE)

_PACIFIC = timezone(timedelta(hours=-8))
"""Pacific Standard Time; in summer, midnight is an hour earlier."""


def server_now(headers: Mapping[str, str], ours: float | None = None) -> float:
    """The Unix time on the server's clock from its Date header, or else `ours`; `ours` None: the present."""
    stated = _moment(headers.get("date", ""))
    return stated if math.isfinite(stated) else time.time() if ours is None else ours


def stated_wait(headers: Mapping[str, str], error: object, words: str, now: float, *, limited: bool) -> float | None:
    """The seconds that a refusal asks us to wait, above 0 and at most `MAX_WAIT_S`; None if it states none.

    headers: keyed by lower-case name. error: the decoded body or event. words: its explanation, "" if that is not to be
    believed. now: Unix time on the server's clock. limited: whether the refusal is a 429; the limits of other replies
    are not exhausted.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if wait := seconds_of(f"{milliseconds}ms", now) or seconds_of(headers.get("retry-after", ""), now):
        return wait
    stated = [*_fields(error)]
    if any(name in ("quotaid", "quota_limit") and _PER_DAY.search(str(value)) for name, value in stated):
        midnight = datetime.fromtimestamp(now, _PACIFIC).replace(hour=0, minute=0, second=0, microsecond=0)
        return (midnight + timedelta(days=1)).timestamp() - now
    for name, value in stated:
        plain = name.replace("_", "").replace("-", "")
        if plain in FIELDS and (wait := seconds_of(f"{value}ms" if plain.endswith("ms") else value, now)):
            return wait
    if (match := _WORDS.search(words[:MAX_CHARS])) and (wait := seconds_of(match[1], now)):
        return wait
    return _until_reset({**dict(stated), **headers}, now) if limited else None


def seconds_of(value: object, now: float) -> float | None:
    """The seconds from `now`, a Unix time, that a number, a duration, an HTTP date or an RFC 3339 time represents.

    A number of 10⁹ or more is a Unix time, in seconds, or in milliseconds and finer. None for nonsense: zero, negative,
    NaN, in the past, beyond `MAX_WAIT_S`, words.
    """
    if isinstance(value, dict):  # protobuf's Duration as an object
        value = value.get("seconds")
    text = str(value).strip()
    try:
        seconds = float(text)
        if 1e9 <= seconds < math.inf:
            # 10 digits mean seconds, 13 milliseconds, 16 microseconds, 19 nanoseconds.
            seconds = seconds / 1000 ** max(0, (len(f"{seconds:.0f}") - 10) // 3) - now
    except ValueError:
        if re.fullmatch(_DURATION, text[:100], re.IGNORECASE):
            pieces = _NUMBER_AND_UNIT.findall(text)
            seconds = sum(float(number) * _UNITS[unit.lower()] for number, unit in pieces)
        else:
            seconds = _moment(text) - now
    return seconds if 0 < seconds <= MAX_WAIT_S else None


def _moment(text: str) -> float:
    """The Unix time of an HTTP date or an RFC 3339 time; NaN for other texts."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            # "2026-11-28 10:00:00 UTC" in the text of an error.
            moment = read(text.replace(" UTC", "Z") if read is not parsedate_to_datetime else text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            # `parsedate_to_datetime` raises each of these for some malformed date.
            continue
    return math.nan


def _fields(error: object) -> Iterator[tuple[str, object]]:
    """(lower-case name, value) for each field in a decoded error, at any depth, up to `_MAX_VALUES` of them."""
    waiting, n = [error], 0
    while waiting and (n := n + 1) < _MAX_VALUES:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from ((str(name).lower(), each) for name, each in value.items())
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _until_reset(fields: Mapping[str, object], now: float) -> float | None:
    """Seconds until the last of the exhausted limits is reset; until the first reset if none is reported exhausted.

    A token limit rejects a request that is larger than what remains, so a remainder above 0 proves nothing.
    """
    exhausted, waits = [], []
    for rest, reset in _limits(fields):
        if wait := seconds_of(reset, now):
            waits.append(wait)
            if str(rest).strip() in ("0", "0.0"):
                exhausted.append(wait)
    return max(exhausted) if exhausted else min(waits, default=None)


def _limits(fields: Mapping[str, object]) -> Iterator[tuple[object, object]]:
    """(what is left, when it is reset) for each limit, as stated; the IETF's `RateLimit` puts them in one field."""
    for name, value in fields.items():
        if "limit" in name and "reset" in name:
            yield fields.get(name.replace("reset", "remaining")), value
        elif name == "ratelimit":
            text = str(value)[:MAX_CHARS]
            # Since 2025: `"day";r=0;t=9, "minute";r=3;t=1`; earlier: `limit=10, remaining=0, reset=9`.
            for limit in text.split(",") if ";" in text else [text]:
                stated = dict(_LIMIT.findall(limit))
                yield stated.get("r", stated.get("remaining")), stated.get("t", stated.get("reset"))
