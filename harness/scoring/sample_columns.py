"""The numbers of a journal's samples other than their grades, in columns, and a score's doubts about them. No I/O.

Times, tokens and flags are stored in columns, without the samples' texts. `Observed.observe` gives each sample the next
row number; columns are read with arrays of row numbers:

    row     first_token   completion_tokens   …   bits (kernel clock, reasoning hidden, salvaged …)
    0       0.31          1204                    0 1 0
    1       0.28          NaN (not reported)      0 1 1

A number takes eight bytes. A column without numbers takes no memory.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from harness.core.hidden_limit import Cuts, HiddenLimit, ReplyLengths, checksum_of, cut_tokens, min_compared_length
from harness.core.number_text import count_noun, is_are
from harness.core.records import Anomaly, Sample
from harness.core.reply_notes import Limit, limit_of
from harness.core.sanitize import visible
from harness.scoring.anomalies import signs_of
from reasoning_answers.host import lost_call

Rows = NDArray[np.int64]
"""Row numbers into `Observed`, in order of arrival."""

_SIGNS: tuple[Anomaly, ...] = get_args(Anomaly)

_SIGNS_OF_BITS = [tuple(sign for bit, sign in enumerate(_SIGNS) if bits >> bit & 1) for bits in range(1 << len(_SIGNS))]
"""The signs of a broken reply by bit mask: for each possible mask of a row, the signs whose bits are set."""

Flag = Literal["kernel_stamps", "hidden", "summary", "salvaged", "retokenised", "foreign", "stopped"]
"""kernel_stamps: the receive times are kernel timestamps. hidden: the reasoning was not sent. summary: the reasoning
was sent only in part. salvaged: the sample was continued after an interruption. retokenised: a continuation retokenized
its text, which may have changed the tokens. foreign: the sample was made by another tool. stopped: the finish reason is
`stop`.
"""

_FLAGS: tuple[Flag, ...] = get_args(Flag)

_OF_TIMING = ("started", "total", "first_token", "last_token", "gap_p50", "gap_p99", "lag")
_OF_USAGE = ("prompt_tokens", "completion_tokens", "reasoning_tokens")
_SELDOM = ("attempts", "spec_tokens", "spec_steps", "late", "cached_tokens")
"""The columns of a sample's times, tokens, and rare values: more than one attempt, decoding steps with a draft, how
late a planned request was sent, and tokens from a cache.
"""

_MAX_NUMBER = float(1 << 53)
"""Largest number that is stored; larger numbers are stored as this one.

No server sends such numbers on purpose, and above this value a float is not exact.
"""

MAX_NAME_CHARS = 120
"""Maximum length of a name in a warning, in characters."""

_MAX_ANSWERERS = 256
"""Largest number of counted values of a field that identifies who answered; later values are not counted."""

_MAX_NAMED = 5
"""Largest number of these values that a warning lists."""

_AT_ONCE = 8192
"""Number of values of a column that become Python numbers at once."""


class Column:
    """A number for each row, or NaN. Rows after the last one with a number take no memory."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = array("d")

    @property
    def has_numbers(self) -> bool:
        """Whether any row has a number."""
        return bool(self._numbers)

    def put(self, row: int, value: float | None) -> None:
        """Set the value of `row`; rows must be in ascending order. None leaves the row unset."""
        if value is not None:
            if gap := row - len(self._numbers):
                self._numbers.frombytes(np.full(gap, np.nan).tobytes())
            self._numbers.append(min(value, _MAX_NUMBER))

    def numbers(self, rows: Rows) -> NDArray[np.float64]:
        """The number of each row, (len(rows),); NaN if the row has none."""
        values = np.frombuffer(self._numbers)
        numbers = np.full(len(rows), np.nan)
        there = rows < len(values)
        numbers[there] = values[rows[there]]
        return numbers


def _bits(flags: Iterable[bool]) -> int:
    """Up to eight flags of a row as one number."""
    return sum(1 << position for position, flag in enumerate(flags) if flag)


def _are_set(values: bytearray, rows: Rows, bit: int) -> NDArray[np.bool_]:
    """Whether the bit is set, for each row: (len(rows),). values: results of `_bits`."""
    return (np.frombuffer(values, dtype=np.uint8)[rows] >> bit & 1).astype(bool)


_CUT_BY: tuple[Limit, ...] = ("rejected", "context", "steps", "tokens")
"""The limits that truncate samples; for the last one, the length is stored too."""

COUNTED = ("steps", "calls", "failed", "stopped", "repeated", "lost", "cut_by_steps")
"""The counts of a sample that used a tool, in the order of `counts_of`."""


def counts_of(sample: Sample, tool: str, *, asks_program: bool) -> tuple[int, ...]:
    """The counts of one sample, in the order of `COUNTED`; empty without a tool. tool: its name."""
    if not sample.steps or (sample.steps[0].turn and not tool):
        return ()
    calls = [call for step in sample.steps for call in step.calls if call.end != "not run"]
    ends = [call.end for call in calls]
    stopped, ran = ends.count("stopped"), ends.count("ran")
    codes = [(call.name, call.arguments) for call in calls]
    lost = not sample.steps[-1].calls and lost_call(
        sample.text, sample.reasoning, sample.finish_reason, [tool] if tool else [], asks_program=asks_program
    )
    repeated = sum(one == other for one, other in pairwise(codes))
    cut = limit_of(sample.finish_reason) == "steps"
    return len(sample.steps), len(calls), len(calls) - ran - stopped, stopped, repeated, int(bool(lost)), int(cut)


class Observed:
    """Facts about a benchmark's samples in columns, one row per sample. No sample may be added twice.

    asks_program: whether the benchmark's answers are programs. tool: the name of the offered tool; empty: none.
    """

    def __init__(self, *, asks_program: bool = False, tool: str = "") -> None:
        self.n = 0
        self.tool, self._asks_program = tool, asks_program
        self.endpoints: dict[str, int] = {}
        """Number of each endpoint by URL, in the order of their first samples."""
        self.columns = {name: Column() for name in (*_OF_TIMING, *_OF_USAGE, *_SELDOM, *COUNTED)}
        """By name; the columns of `COUNTED` have no values for samples without a tool."""
        self._cut_tokens = Column()
        """Length, from `cut_tokens`, of each sample truncated by max_tokens; -1 if unknown; -2 to -4: truncated by
        another limit, in the order of `_CUT_BY`; unset for other samples.
        """
        self._endpoint = array("I")
        self.answerers = {"provider": Counter[str](), "system_fingerprint": Counter[str]()}
        """For each field that identifies who answered, the number of samples with each value."""
        self._flags, self._signs = bytearray(), bytearray()
        self.checksums = array("q")
        """Checksum of each sample's text and reasoning."""

    def observe(self, sample: Sample) -> int:
        """Store the numbers of `sample` in the columns; return its row number, the next one."""
        row, timing, usage = self.n, sample.timing, sample.usage
        self.n += 1
        self._endpoint.append(self.endpoints.setdefault(sample.endpoint, len(self.endpoints)))
        for field, name in (("provider", sample.provider), ("system_fingerprint", sample.fingerprint)):
            counts = self.answerers[field]
            if name and (name in counts or len(counts) < _MAX_ANSWERERS):
                counts[name] += 1
        for name in _OF_TIMING:
            self.columns[name].put(row, getattr(timing, name))
        for name in _OF_USAGE:
            self.columns[name].put(row, getattr(usage, name))
        # Nearly all samples have one attempt, and a column without numbers takes no memory.
        attempts = sample.attempts if sample.attempts > 1 else None
        of_usage = usage.spec_tokens or None, usage.spec_steps or None
        seldom = (attempts, *of_usage, timing.late or None, usage.cached_tokens or None)
        counted = counts_of(sample, self.tool, asks_program=self._asks_program)
        for name, value in (*zip(_SELDOM, seldom, strict=True), *zip(COUNTED, counted, strict=False)):
            self.columns[name].put(row, value)
        # Few samples are truncated, so the column takes little memory.
        if (limit := limit_of(sample.finish_reason)) is not None:
            tokens = cut_tokens(usage.completion_tokens, timing.events)
            is_length = tokens is not None and limit == "tokens"
            self._cut_tokens.put(row, tokens if is_length else _CUT_BY.index(limit) - len(_CUT_BY))
        by_kernel = timing.clock == "kernel"
        stopped = sample.finish_reason == "stop"
        retokenised = any(not seam.exact for seam in sample.salvaged_at)
        hides, salvaged = sample.hides_reasoning, bool(sample.salvaged_at)
        hidden, summary = hides and not sample.reasoning, hides and bool(sample.reasoning)
        self._flags.append(_bits((by_kernel, hidden, summary, salvaged, retokenised, sample.foreign, stopped)))
        self.checksums.append(checksum_of(sample))
        shown = signs_of(sample)
        self._signs.append(_bits(sign in shown for sign in _SIGNS))
        return row

    def endpoint(self, rows: Rows) -> NDArray[np.uint32]:
        """The number of each row's endpoint, (len(rows),)."""
        return np.frombuffer(self._endpoint, dtype=np.uint32)[rows]

    def flagged(self, flag: Flag, rows: Rows) -> NDArray[np.bool_]:
        """Whether each row has the flag, (len(rows),)."""
        return _are_set(self._flags, rows, _FLAGS.index(flag))

    def cuts(self, rows: Rows, sent: Callable[[], int | None]) -> Cuts:
        """What truncated the samples among `rows`. sent: called for the max_tokens that was sent, if any sample was
        truncated.
        """
        cuts = Cuts()
        tokens = self._cut_tokens.numbers(rows)
        cut = tokens[~np.isnan(tokens)].tolist()
        max_tokens = sent() if cut else None
        for length in cut:
            cuts.observe(_CUT_BY[min(int(length), -1)], int(length) if length >= 0 else None, max_tokens)
        return cuts

    def sign_flags(self, rows: Rows) -> dict[Anomaly, NDArray[np.bool_]]:
        """Return, for each sign of a broken reply, whether each row shows it, (len(rows),)."""
        return {sign: _are_set(self._signs, rows, bit) for bit, sign in enumerate(_SIGNS)}

    def anomalies(self, row: int) -> tuple[Anomaly, ...]:
        """The signs that the sample of this row shows."""
        return _SIGNS_OF_BITS[self._signs[row]]


def hidden_limit(observed: Observed, rows: Rows) -> HiddenLimit | None:
    """The length limit that the samples in `rows` suggest; None if they suggest none or report no tokens."""
    stated = observed.columns["completion_tokens"].numbers(rows)
    has_tokens = ~np.isnan(stated)
    tokens, rows = stated[has_tokens].astype(np.int64), rows[has_tokens]
    lengths = ReplyLengths()
    is_kept = tokens >= min_compared_length(int(tokens.max(initial=0)))
    lengths.count(int((~is_kept).sum()))
    tokens, rows = tokens[is_kept], rows[is_kept]
    facts = (tokens, np.frombuffer(observed.checksums, dtype=np.int64)[rows], observed.flagged("stopped", rows))
    for begin in range(0, len(rows), _AT_ONCE):  # a list takes three times the memory of its array
        block = (column[begin : begin + _AT_ONCE].tolist() for column in facts)
        for length, checksum, stopped in zip(*block, strict=True):
            lengths.observe(length, checksum, stopped=stopped)
    return lengths.limit


def takeover_warning(observed: Observed, planned: Rows) -> str:
    """A warning if this run includes samples from another tool's files; otherwise empty. planned: rows of the planned
    samples.
    """
    n = int(observed.flagged("foreign", planned).sum())
    taken = f"{count_noun(n, 'sample')} {is_are(n)} from another tool's files, whose settings are unknown"
    return taken if n else ""


def answerer_warnings(observed: Observed) -> list[str]:
    """A warning for each field (provider or server build) with more than one value among the samples."""
    warnings = []
    for field, counts in observed.answerers.items():
        if len(counts) > 1:
            named = ", ".join(f"{visible(name, MAX_NAME_CHARS)} {n:,}" for name, n in counts.most_common(_MAX_NAMED))
            more = f" and {len(counts) - _MAX_NAMED} more" if len(counts) > _MAX_NAMED else ""
            what = "providers" if field == "provider" else "server builds"
            of = f"replies come from {len(counts)} {what} (`{field}`: {named}{more})"
            warnings.append(f"{of}, which may serve the model differently")
    return warnings


def retokenized_warning(observed: Observed, rows: Rows) -> str:
    """A warning if samples of an earlier version were continued after an interruption and retokenized, which may have
    changed their tokens; otherwise empty. rows: the planned samples.
    """
    if not (n_retokenized := int(observed.flagged("retokenised", rows).sum())):
        return ""
    n_continued = int(observed.flagged("salvaged", rows).sum())
    samples = f"{n_continued} of {count_noun(len(rows), 'sample')}"
    return f"{samples} were continued after an interruption, {n_retokenized} of them after retokenizing their text"
