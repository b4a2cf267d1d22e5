"""The work of the servers for a benchmark's samples: time, tokens, requests, speed of a stream; and by endpoint.

No I/O. Time is busy time: seconds in which at least one request was in flight. A run that was interrupted on Monday and
resumed on Thursday has no gap of three days, so its speed is that of the servers.

    requests      ▬▬▬▬▬▬▬          ▬▬▬▬
                    ▬▬▬▬▬             ▬▬▬▬▬▬
    busy time     0 ─────── 10     10 ──────── 21      the pause between the spells does not count

The speed of single streams comes from the times at which the client received tokens. Lag is how long a received token
waited until the client read it. Gaps between tokens that are short compared with the lag measure the client, not the
server, and are left out (`MAX_LAG_SHARE`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from harness.core.records import Grade
from harness.scoring.observed import Observed, Rows
from harness.scoring.stats import Array, Estimate, quantile, sampling_limits


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over the n_samples covered.

    started, ended: Unix time of the first request and of the last reply's end. busy_s: seconds with a request in
    flight. requests: made for these samples, repeated ones included.
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


def workload(observed: Observed, rows: Rows) -> Workload | None:
    """The work for the samples `rows`; None without any. Samples of other tools, without known times, are left out."""
    foreign = observed.flagged("foreign", rows)
    if foreign.any():
        rows = rows[~foreign]
    if not len(rows):
        return None
    begun, latency = observed.columns["started"].of(rows), observed.columns["total"].of(rows)
    np.maximum(0.0, latency, out=latency)
    ended = begun + latency
    prompt, completion = observed.columns["prompt_tokens"].of(rows), observed.columns["completion_tokens"].of(rows)
    stated = ~np.isnan(prompt) & ~np.isnan(completion)
    return Workload(
        n_samples=len(rows),
        started=float(begun.min()),
        ended=float(ended.max()),
        busy_s=_busy_seconds(begun, ended),
        requests=int(np.nan_to_num(observed.columns["attempts"].of(rows), nan=1.0).sum()),
        n_stated=int(stated.sum()),
        prompt_tokens=int(prompt[stated].sum()),
        completion_tokens=int(completion[stated].sum()),
        reasoning_tokens=int(np.nan_to_num(observed.columns["reasoning_tokens"].of(rows))[stated].sum()),
    )


# ---- one stream

MAX_LAG_SHARE = 0.25
"""Gaps are left out if the lag exceeds this fraction of the median gap."""


def _busy_seconds(begun: Array, ended: Array) -> float:
    """Seconds from the first request to the last reply's end, without the pauses in which no request was in flight."""
    order = np.argsort(begun, kind="stable")
    begun, reached = begun[order], np.maximum.accumulate(ended[order])
    idle = begun[1:] - reached[:-1]
    return float(reached[-1] - begun[0] - idle[idle > 0].sum())


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, over the n_samples whose replies were streamed.

    first_token_p50, first_token_p99: from the request to the first token. gap_p50, gap_p99: time between token events:
    of each sample the median (the 99th percentile), and of these the median over samples; None = too short compared
    with the client's lag, or the lag is unknown. tokens_per_s: of the median stream, after its first token; None if no
    server stated tokens. hidden: fraction of the samples whose reasoning was not sent, or only as a summary: their
    times and counts are those of visible tokens only; None = of none. lag: how long a received token waited until the
    client read it: of each sample the 99th percentile, and of these the median; None = unknown. kernel_stamps: fraction
    of the samples with times from the kernel.
    """

    n_samples: int
    first_token_p50: float
    first_token_p99: float
    gap_p50: float | None
    gap_p99: float | None
    tokens_per_s: float | None
    hidden: float | None = None
    lag: float | None
    kernel_stamps: float


def speed(observed: Observed, rows: Rows) -> Speed | None:
    """The speed over the samples `rows`; None if no reply was streamed.

    Interrupted samples are left out, because only their last request has times.
    """
    if not observed.columns["first_token"].stated:
        return None
    rows = rows[~np.isnan(observed.columns["first_token"].of(rows)) & ~observed.flagged("salvaged", rows)]
    if not len(rows):
        return None
    first = observed.columns["first_token"].of(rows)
    n_hidden = int((observed.flagged("hidden", rows) | observed.flagged("summary", rows)).sum())
    columns = (observed.columns[name].of(rows) for name in ("lag", "gap_p50", "gap_p99"))
    lag, gap_p50, gap_p99 = (quantile(values[~np.isnan(values)], 0.5) for values in columns)
    if gap_p50 is not None and (lag is None or lag > MAX_LAG_SHARE * gap_p50):
        gap_p50 = gap_p99 = None
    return Speed(
        n_samples=len(rows),
        first_token_p50=quantile(first, 0.5) or 0.0,
        first_token_p99=quantile(first, 0.99) or 0.0,
        gap_p50=gap_p50,
        gap_p99=gap_p99,
        tokens_per_s=quantile(_rates(observed, rows, first), 0.5),
        hidden=n_hidden / len(rows) if n_hidden else None,
        lag=lag,
        kernel_stamps=int(observed.flagged("kernel_stamps", rows).sum()) / len(rows),
    )


def _rates(observed: Observed, rows: Rows, first: Array) -> Array:
    """Tokens per second after the first token, of each sample with such a rate; a reply in one piece has none, nor has
    one with a summary, between whose pieces the model thinks.

    first: when each sample's first token came.
    """
    tokens = observed.columns["completion_tokens"].of(rows)
    thought = np.nan_to_num(observed.columns["reasoning_tokens"].of(rows))
    # Reasoning that was not streamed was over before the first token.
    tokens -= np.where(observed.flagged("hidden", rows), thought, 0.0)
    seconds = observed.columns["last_token"].of(rows) - first
    timed = (tokens >= 2) & (seconds > 0) & ~observed.flagged("summary", rows)  # False where a number is NaN.
    return (tokens[timed] - 1) / seconds[timed]


class EndpointScore(msgspec.Struct, frozen=True, kw_only=True):
    """The samples of one endpoint in a benchmark. Shares are fractions of its n_samples.

    expected_accuracy: the share if the endpoint did on each question as all endpoints together do.
    The interval of the accuracy is that of the same questions, each asked as often. Endpoints get different questions,
    so their intervals do not compare them. tokens_per_s: of one stream, over samples with stated tokens.
    """

    n_samples: int
    accuracy: Estimate
    expected_accuracy: float
    truncated: float
    no_answer: float
    tokens_per_s: float | None


def endpoint_scores(observed: Observed, rows: Rows, grades: Sequence[Grade]) -> dict[str, EndpointScore]:
    """By URL, sorted, the score of each endpoint; empty when all samples come from one endpoint.

    rows: the samples of the `grades`.
    """
    if len(observed.endpoints) < 2:
        return {}
    numbers: dict[str, int] = {}
    question = np.array([numbers.setdefault(grade.question_id, len(numbers)) for grade in grades], dtype=np.int64)
    verdicts = np.array([grade.verdict for grade in grades])
    right = np.array([grade.counted for grade in grades])
    truncated = np.array([bool(grade.truncated) for grade in grades])
    endpoint, of_all = observed.endpoint(rows), np.bincount(question)
    rate = np.bincount(question, right, len(of_all)) / of_all
    scored = {}
    for name in sorted(observed.endpoints):
        mine = endpoint == observed.endpoints[name]
        if not (n := int(mine.sum())):
            continue
        correct = np.bincount(question[mine], right[mine], len(of_all)).astype(float)
        counts = np.bincount(question[mine], minlength=len(of_all)).astype(float)
        correct, counts = correct[counts > 0], counts[counts > 0]
        scored[name] = EndpointScore(
            n_samples=n,
            accuracy=Estimate(
                value=float(right[mine].sum()) / n,
                sampling=sampling_limits(correct, counts, counts / n).interval(),
                at_most=bool((counts == 1).all()),
            ),
            expected_accuracy=math.fsum(rate[question[mine]]) / n,
            truncated=int(truncated[mine].sum()) / n,
            no_answer=int((verdicts[mine] == "no_answer").sum()) / n,
            tokens_per_s=_tokens_per_s(observed, rows[mine]),
        )
    return scored


def _tokens_per_s(observed: Observed, rows: Rows) -> float | None:
    """The speed of one stream over the samples with stated tokens and a time; None without any."""
    tokens, seconds = np.nan_to_num(observed.columns["completion_tokens"].of(rows)), observed.columns["total"].of(rows)
    timed = (tokens != 0) & (seconds > 0)
    in_all = math.fsum(seconds[timed])
    return int(tokens[timed].sum()) / in_all if in_all else None
