"""Throughput and latency of a run at full load: while nearly the maximum number of requests was in flight.

The time before and after is left out: at the start all prompts arrive at once, and at the end only a few long replies
remain. The tokens of a reply are assumed to arrive evenly between its first and last token; if a reply is not streamed
or hides its reasoning, they arrive evenly over the whole request. Intervals use batch means (Law and Kelton 2000,
Simulation Modeling and Analysis, 9.5.3): requests that share a server are not independent, so the time at full load is
divided into blocks, each at least twice as long as the mean request in flight. No I/O.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, compress, pairwise

import msgspec
import numpy as np

from harness.core.records import Sample
from harness.scoring.engine_metrics import PLATEAU
from harness.scoring.sample_columns import Rows
from harness.scoring.stats import Array, quantile, t_factor

BLOCKS = 4
"""Number of blocks that give an interval. With more, shorter blocks, the intervals cover less than 93% of simulated
rates if the server is slow for several requests' lengths at a time, even with 128 replies per concurrent request.
"""


class Rate(msgspec.Struct, frozen=True):
    """A rate, with a 95% confidence interval estimated from its variation over time."""

    value: float
    """The rate."""
    low: float | None = None
    """Lower endpoint of the interval; None if the run spent too little time at full load to estimate one."""
    high: float | None = None
    """Upper endpoint of the interval; None under the same condition."""


class Percentiles(msgspec.Struct, frozen=True):
    """Percentiles over requests."""

    p50: float
    """Median."""
    p90: float
    """90th percentile."""
    p99: float
    """99th percentile."""


class LoadPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A server's performance at one load level. Times are in seconds, for requests that started at full load."""

    concurrency: int
    """Maximum number of requests in flight: the allowed number or, in a run with a `rate`, the largest one."""
    seconds: float
    """Seconds at full load."""
    share: float
    """Time at full load, as a fraction of the time with at least one request in flight."""
    requests: int
    """Number of requests that started at full load."""
    prompt_tokens: float | None
    """Mean prompt tokens per request over the whole run, as counted by the server."""
    tokens: float
    """Mean completion tokens per request over the whole run, as counted by the server."""
    tokens_per_s: Rate
    """Output tokens per second across all requests."""
    user_tokens_per_s: Rate | None
    """Median tokens per second of a request after its first token, excluding hidden reasoning."""
    first_token: Percentiles | None
    """Time from the request to its first token."""
    time_per_token: Percentiles | None
    """A request's mean time per token after the first token."""
    total: Percentiles | None
    """Time from the request to the end of its reply."""
    largest_gap: Percentiles | None = None
    """A request's largest time between token events; None for runs outside a sweep over loads and of earlier versions.
    """
    gap_p99: float | None = None
    """99th percentile of all times between token events; None under the same condition."""
    n_retried: int = 0
    """Number of the requests that failed at first, without a `rate`: their times are those of the last attempts."""


def load_point(samples: Iterable[Sample], concurrency: int) -> LoadPoint | None:
    """The load measured from a run's samples; None if the load was never full, or if no reply reports its tokens.

    Samples that were continued or used a tool are left out, because their times are not those of a single request. A
    reply without a token count is given the mean of the others.
    """
    single = [sample for sample in samples if not sample.salvaged_at and not sample.steps]
    planned = any(sample.timing.late for sample in single)
    began, first, last, total, tokens, visible, prompts = np.array([*map(_row, single)], float).reshape(-1, 7).T
    ended = began + total
    load = at_full_load(began, ended, concurrency, planned=planned)
    if planned:
        ends_before = np.searchsorted(np.sort(ended), np.sort(began), "right")
        concurrency = int(np.max(np.arange(1, len(began) + 1) - ends_before))
    if load is None or np.isnan(tokens).all():
        return None
    streamed = (last > first) & (visible == tokens)  # False where a number is NaN.
    arriving = np.where(streamed, began + first, began), np.where(streamed, began + last, ended)
    mean_tokens = float(np.nanmean(tokens))
    arrived = _arrival_curve(*arriving, np.where(np.isnan(tokens), mean_tokens, tokens))
    in_blocks = np.array([np.diff(arrived(spans)).sum() for spans in load.blocks])
    at_full = load.block < load.n_blocks
    timed = at_full & (visible >= 2) & (last > first)
    speeds = np.where(timed, (visible - 1) / np.where(timed, last - first, 1.0), math.nan)
    medians = [
        float(np.median(of)) for block in range(load.n_blocks) if len(of := speeds[timed & (load.block == block)])
    ]
    middle = quantile(speeds[timed], 0.5)
    gaps = [of for sample, is_timed in zip(single, timed, strict=True) if is_timed and (of := sample.timing.gaps)]
    return LoadPoint(
        concurrency=concurrency,
        seconds=load.seconds,
        share=load.seconds / load.busy_seconds,
        requests=int(at_full.sum()),
        prompt_tokens=None if np.isnan(prompts).all() else float(np.nanmean(prompts)),
        tokens=mean_tokens,
        tokens_per_s=rate_of(float(in_blocks.sum()) / load.seconds, list(in_blocks / load.block_seconds)),
        user_tokens_per_s=None if middle is None else rate_of(middle, medians),
        first_token=_percentiles(first[at_full]),
        time_per_token=_percentiles(1 / speeds[timed]),
        total=_percentiles(total[at_full]),
        largest_gap=_percentiles(np.array([max(of) / 1000 for of in gaps])),
        gap_p99=_p99(gaps),
        n_retried=0 if planned else sum(sample.attempts > 1 for sample in compress(single, at_full)),
    )


def _p99(gaps: Iterable[Mapping[int, int]]) -> float | None:
    """The 99th percentile of all gaps, in seconds; None if there are none. gaps: milliseconds → number, by request."""
    counts = Counter[int]()
    for of in gaps:
        counts.update(of)
    passed = zip(sorted(counts), accumulate(counts[gap] for gap in sorted(counts)), strict=True)
    return next((gap / 1000 for gap, n in passed if n >= 0.99 * counts.total()), None)


@dataclass(frozen=True)
class FullLoad:
    """The time at full load. blocks: spans of time of each block, (spans, 2). block: the block in which each request
    started, (requests,); `n_blocks` for a request that did not start at full load. busy_seconds: seconds with at least
    one request in flight.
    """

    blocks: Sequence[Array]
    block: Rows
    busy_seconds: float

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.blocks)

    @cached_property
    def block_seconds(self) -> Array:
        """Seconds at full load in each block, (n_blocks,)."""
        return np.array([np.diff(spans).sum() for spans in self.blocks])

    @property
    def seconds(self) -> float:
        """Seconds at full load."""
        return float(self.block_seconds.sum())

    def shares(self, began: Array, ended: Array) -> Array:
        """The fraction of each request's time that is in each block, (requests, n_blocks).

        Requests that start at full load would not do: if many end together, the load is not full when the next start.
        """
        columns = []
        for spans in self.blocks:
            passed = np.concatenate([[0.0], np.diff(spans).cumsum()])
            edges, times = spans.ravel(), np.repeat(passed, 2)[1:-1]
            columns.append(np.interp(ended, edges, times) - np.interp(began, edges, times))
        return np.stack(columns, axis=1) / np.maximum(ended - began, 1e-9)[:, None]


def at_full_load(
    began: Array, ended: Array, concurrency: int | None = None, *, planned: bool = False
) -> FullLoad | None:
    """The time at full load of requests that began and ended at these times, in seconds; None if there is none.

    concurrency: the allowed number of requests in flight; None: the largest number that was in flight. planned: whether
    requests arrived at random times with a mean rate; the time at full load is then that from the first to the last.
    """
    full, busy = _full(began, ended, concurrency)
    if planned:
        full = _arrival_spans(np.sort(began))
    seconds = float((full[:, 1] - full[:, 0]).sum())
    if not seconds:
        return None
    total = ended - began
    # At a random moment, long requests are more likely to be in flight, so the mean weights each request by its length.
    edges = _edges(full, seconds, 2 * float((total @ total) / total.sum()))
    blocks = [_within(full, low, high) for low, high in pairwise(edges)]
    number = np.searchsorted(edges, began, "right") - 1
    at_full = (np.searchsorted(full.ravel(), began, "right") % 2 == 1) & (number >= 0)
    return FullLoad(blocks, np.where(at_full, np.minimum(number, len(blocks)), len(blocks)), busy)


def _row(sample: Sample) -> tuple[float | None, ...]:
    """The start of its request, its times, its tokens, its streamed tokens (unknown if the reasoning was summarized),
    and its prompt tokens.
    """
    timing, usage, tokens = sample.timing, sample.usage, sample.usage.completion_tokens
    visible = tokens
    if sample.hides_reasoning:
        visible = None if sample.reasoning or tokens is None else tokens - (usage.reasoning_tokens or 0)
    return timing.started, timing.first_token, timing.last_token, timing.total, tokens, visible, usage.prompt_tokens


def _full(began: Array, ended: Array, concurrency: int | None) -> tuple[Array, float]:
    """The time spans with at least `PLATEAU` of the allowed requests in flight, (spans, 2), and the seconds with any
    request in flight.
    """
    times = np.concatenate([began, ended])
    order = np.argsort(times, kind="stable")
    times, in_flight = times[order], np.cumsum(np.repeat([1, -1], len(began))[order])
    lengths = np.diff(times)
    allowed = concurrency or in_flight.max(initial=0)
    is_full = (in_flight[:-1] >= PLATEAU * allowed) & (lengths > 0)
    spans = np.stack([times[:-1][is_full], times[1:][is_full]], axis=1)
    if len(spans):  # Join adjacent spans.
        starts = np.concatenate([[True], spans[1:, 0] > spans[:-1, 1]])
        spans = np.stack([spans[starts, 0], spans[np.concatenate([starts[1:], [True]]), 1]], axis=1)
    return spans, float(lengths[in_flight[:-1] > 0].sum())


MAX_MEDIANS = 30
"""A longer time without an arrival, in medians of these times, is a pause: its chance is below 1 in 10⁹."""


def _arrival_spans(began: Array) -> Array:
    """The time spans during which requests arrive, (spans, 2): without the time between sessions."""
    if len(began) < 2:
        return np.zeros((0, 2))
    gaps = np.diff(began)
    pauses = np.flatnonzero(gaps > MAX_MEDIANS * np.median(gaps))
    return np.stack([began[[0, *(pauses + 1)]], began[[*pauses, -1]]], axis=1)


def _edges(full: Array, seconds: float, least_s: float) -> Array:
    """The n + 1 edges of n blocks with equal time at full load, each at least `least_s` seconds long."""
    n = int(min(BLOCKS, max(1, seconds / max(least_s, 1e-9))))
    passed = np.concatenate([[0.0], np.cumsum(full[:, 1] - full[:, 0])])
    wanted = np.arange(1, n) * seconds / n
    span = np.searchsorted(passed, wanted, "right") - 1
    return np.concatenate([[full[0, 0]], full[span, 0] + wanted - passed[span], [full[-1, 1]]])


def _within(spans: Array, low: float, high: float) -> Array:
    """The parts of the spans between two times."""
    inside = spans[(spans[:, 1] > low) & (spans[:, 0] < high)]
    return np.clip(inside, low, high)


def _arrival_curve(first: Array, last: Array, tokens: Array) -> Callable[[Array], Array]:
    """The function from times to the number of tokens that had arrived by then."""
    last = np.maximum(last, first + 1e-6)
    rate = tokens / (last - first)
    times = np.concatenate([first, last])
    order = np.argsort(times, kind="stable")
    times, slopes = times[order], np.cumsum(np.concatenate([rate, -rate])[order])
    totals = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(times))])
    return lambda at: np.interp(at, times, totals)


def rate_of(value: float, blocks: Sequence[float]) -> Rate:
    """A rate with the interval estimated from its blocks."""
    n = len(blocks)
    if n < BLOCKS:
        return Rate(value)
    reach = t_factor(n - 1) * float(np.std(blocks, ddof=1)) / math.sqrt(n)
    return Rate(value, max(0.0, value - reach), value + reach)


def _percentiles(values: Array) -> Percentiles | None:
    """The percentiles of the values that are not NaN; None if there are none."""
    stated = values[~np.isnan(values)]
    p50, p90, p99 = (quantile(stated, q) for q in (0.5, 0.9, 0.99))
    return None if p50 is None or p90 is None or p99 is None else Percentiles(p50, p90, p99)
