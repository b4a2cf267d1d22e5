"""The work of the servers for a benchmark's samples: time, tokens and requests; and the speed of a single stream.

The work is given in total and in each of `N_SLICES` equal slices of the time. No I/O. Time is busy time: seconds in
which at least one request was in flight. A run that was interrupted on Monday and resumed on Thursday has no gap of
three days, so its speed is that of the servers.

    requests      ▬▬▬▬▬▬▬          ▬▬▬▬
                    ▬▬▬▬▬             ▬▬▬▬▬▬
    busy time     0 ─────── 10     10 ──────── 21      the pause between the spells does not count

The speed of single streams comes from the times at which the client received tokens. Lag is how long a received token
waited until the client read it. Gaps between tokens that are short compared with the lag measure the client, not the
server, and are left out (`MAX_LAG_SHARE`).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.scoring.estimators import quantile
from harness.scoring.observed import Observed, Rows

N_SLICES = 48
"""Number of equal slices of the busy time for which speed and latency are computed."""

CHUNK = 1 << 20
"""Samples whose shares in the slices are computed together, to bound memory: each takes a dozen columns."""

_Array = NDArray[np.float64]


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """One slice of the busy time. start: busy seconds before it; finished: samples whose reply ended in it.

    tokens_per_s: completion tokens generated a second, each reply's spread evenly over its time after the first token.
    in_flight: mean number of requests. latency_p50, latency_p95: seconds from request to end of reply, of the finished;
    first_token_p50: to the first token. None where nothing finished, or the server stated no tokens.
    """

    start: float
    finished: int
    tokens_per_s: float | None
    in_flight: float
    latency_p50: float | None
    latency_p95: float | None
    first_token_p50: float | None


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the n_samples covered.

    started, ended: Unix time of the first request and of the last reply's end. busy_s: seconds with a request in
    flight. slice_s: seconds of each of the `slices`. requests: made for these samples, repeated ones included.
    prompt_tokens, completion_tokens: over the n_stated samples whose server states both; reasoning_tokens: the part of
    the completions that is thinking, where stated.
    """

    n_samples: int
    started: float
    ended: float
    busy_s: float
    requests: int
    n_stated: int
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    slice_s: float
    slices: tuple[Slice, ...]


def workload(observed: Observed, rows: Rows) -> Workload | None:
    """The work for the samples `rows`; None without any. Samples of other tools, without known times, are left out."""
    foreign = observed.foreign(rows)
    if foreign.any():
        rows = rows[~foreign]
    if not len(rows):
        return None
    begun, latency = observed.started.of(rows), observed.total.of(rows)
    np.maximum(0.0, latency, out=latency)
    ended = begun + latency
    busy, last = _BusyTime(begun, ended), float(ended.max())
    del ended
    counts = _Counts.of(observed, rows)
    return Workload(
        n_samples=len(rows),
        started=float(begun.min()),
        ended=last,
        busy_s=busy.total,
        requests=counts.requests,
        n_stated=counts.n_stated,
        prompt_tokens=counts.prompt,
        completion_tokens=counts.completion,
        reasoning_tokens=counts.reasoning,
        slice_s=busy.total / N_SLICES,
        slices=_slices(begun, latency, observed, rows, busy) if busy.total > 0 else (),
    )


class _Counts(NamedTuple):
    """Sums over samples: requests; samples whose server stated tokens; these tokens."""

    requests: int
    n_stated: int
    prompt: int
    completion: int
    reasoning: int

    @classmethod
    def of(cls, observed: Observed, rows: Rows) -> _Counts:
        """Requests and tokens of these samples, added up."""
        prompt, completion = observed.prompt_tokens.of(rows), observed.completion_tokens.of(rows)
        stated = ~np.isnan(prompt) & ~np.isnan(completion)
        sums = int(prompt[stated].sum()), int(completion[stated].sum())
        del prompt, completion
        thought, attempts = observed.reasoning_tokens, observed.attempts
        reasoning = int(np.nan_to_num(thought.of(rows))[stated].sum()) if thought.stated else 0
        requests = int(np.nan_to_num(attempts.of(rows), nan=1.0).sum()) if attempts.stated else len(rows)
        return cls(requests, int(stated.sum()), *sums, reasoning)


class _BusyTime:
    """Converts Unix time to busy seconds. It holds only the spells of work between pauses, not the requests."""

    def __init__(self, begun: _Array, ended: _Array) -> None:
        order = np.argsort(begun, kind="stable")
        begun, reached = begun[order], ended[order]
        del order
        np.maximum.accumulate(reached, out=reached)
        idle = begun[1:] - reached[:-1]
        # A pause follows each of these requests, and the next request begins a spell of work.
        after = np.flatnonzero(idle > 0)
        self._spells = begun[np.concatenate(([0], after + 1))]
        self._idle_before = np.concatenate(([0.0], np.cumsum(idle[after])))
        self.total = float(reached[-1] - begun[0] - self._idle_before[-1])

    def of(self, moments: _Array) -> _Array:
        """Busy seconds before each moment; every moment must lie within a request."""
        spell = np.searchsorted(self._spells, moments, side="right") - 1
        return np.asarray(moments - self._spells[0] - self._idle_before[spell])


def _slices(started: _Array, latency: _Array, observed: Observed, rows: Rows, busy: _BusyTime) -> tuple[Slice, ...]:
    """Divide the busy time into `N_SLICES` slices; return the work in each slice.

    started, latency: (len(rows),), of the samples `rows`. The value of a slice is a sum up to its end minus the sum up
    to its beginning: `flown` sums the seconds in flight of all requests up to each edge of a slice, `generated` the
    tokens up to each edge.
    """
    edges = np.linspace(0.0, busy.total, N_SLICES + 1)
    width = busy.total / N_SLICES
    flown, generated = np.zeros(len(edges)), np.zeros(len(edges))
    slice_of = np.empty(len(rows), dtype=np.uint8)
    all_stated = True
    for first in range(0, len(rows), CHUNK):
        # A part of the samples: their requests from `begun` to `ended`, in busy seconds.
        here = slice(first, first + CHUNK)
        begun, ended = busy.of(started[here]), busy.of(started[here] + latency[here])
        tokens = observed.completion_tokens.of(rows[here])
        all_stated = all_stated and not np.isnan(tokens).any()
        tokens = np.nan_to_num(tokens)
        first_token_at = np.clip(begun + np.nan_to_num(observed.first_token.of(rows[here])), begun, ended)
        spans = np.maximum(ended - first_token_at, 1e-9)
        flown += [np.clip(edge, begun, ended).sum() for edge in edges]
        generated += [(tokens * np.clip((edge - first_token_at) / spans, 0.0, 1.0)).sum() for edge in edges]
        slice_of[here] = np.minimum(np.searchsorted(edges, ended, side="left") - 1, N_SLICES - 1).clip(0)
    # The sums up to each edge become means over each slice.
    in_flight, generated = np.diff(flown) / width, np.diff(generated) / width
    first_token = observed.first_token.of(rows) if observed.first_token.stated else np.zeros(0)
    slices = []
    for number in range(N_SLICES):
        finished = np.flatnonzero(slice_of == number)
        streamed = first_token[finished] if len(first_token) else first_token
        slices.append(
            Slice(
                start=float(edges[number]),
                finished=len(finished),
                tokens_per_s=float(generated[number]) if all_stated else None,
                in_flight=float(in_flight[number]),
                latency_p50=quantile(latency[finished], 0.5),
                latency_p95=quantile(latency[finished], 0.95),
                first_token_p50=quantile(streamed[~np.isnan(streamed)], 0.5),
            )
        )
    return tuple(slices)


# ---- one stream

MAX_LAG_SHARE = 0.25
"""Gaps are left out if the lag exceeds this fraction of the median gap."""


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, over the n_samples whose replies were streamed.

    first_token_p50, first_token_p99: from the request to the first token. gap_p50, gap_p99: time between token events:
    of each sample the median (the 99th percentile), and of these the median over samples; None = too short compared
    with the client's lag, or the lag is unknown. tokens_per_s: of the median stream, after its first token; None if no
    server stated tokens. Reasoning that was not sent does not count. lag: how long a received token waited until the
    client read it: of each sample the 99th percentile, and of these the median; None = unknown. kernel_stamps: fraction
    of the samples with times from the kernel.
    """

    n_samples: int
    first_token_p50: float
    first_token_p99: float
    gap_p50: float | None
    gap_p99: float | None
    tokens_per_s: float | None
    lag: float | None
    kernel_stamps: float


def speed(observed: Observed, rows: Rows) -> Speed | None:
    """The speed over the samples `rows`; None if no reply was streamed.

    Interrupted samples are left out, because only their last request has times.
    """
    if not observed.first_token.stated:
        return None
    rows = rows[~np.isnan(observed.first_token.of(rows)) & ~observed.salvaged(rows)]
    if not len(rows):
        return None
    first = observed.first_token.of(rows)
    lag = quantile(_stated_values(observed.lag.of(rows)), 0.5)
    gap_p50 = quantile(_stated_values(observed.gap_p50.of(rows)), 0.5)
    gap_p99 = quantile(_stated_values(observed.gap_p99.of(rows)), 0.5)
    if gap_p50 is not None and (lag is None or lag > MAX_LAG_SHARE * gap_p50):
        gap_p50 = gap_p99 = None
    return Speed(
        n_samples=len(rows),
        first_token_p50=quantile(first, 0.5) or 0.0,
        first_token_p99=quantile(first, 0.99) or 0.0,
        gap_p50=gap_p50,
        gap_p99=gap_p99,
        tokens_per_s=quantile(_rates(observed, rows, first), 0.5),
        lag=lag,
        kernel_stamps=int(observed.stamped_by_kernel(rows).sum()) / len(rows),
    )


def _stated_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values that are not NaN."""
    return values[~np.isnan(values)]


def _rates(observed: Observed, rows: Rows, first: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tokens per second after the first token, of each sample with such a rate; a reply in one piece has none.

    first: when each sample's first token came.
    """
    tokens = observed.completion_tokens.of(rows)
    thought = np.nan_to_num(observed.reasoning_tokens.of(rows))
    shown = observed.reasoned(rows)
    tokens -= np.where(shown, 0.0, thought)  # Reasoning that was not streamed was over before the first token.
    seconds = observed.last_token.of(rows) - first
    timed = (tokens >= 2) & (seconds > 0)  # False where either number is NaN.
    return (tokens[timed] - 1) / seconds[timed]
