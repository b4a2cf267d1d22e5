"""What a score reports about its samples as the client saw them: tool use, server workload, stream speed, endpoints.

Time means busy time: seconds in which at least one request was in flight. A run that was interrupted on Monday and
resumed on Thursday has no gap of three days, so its speed is the speed of the servers.

    requests      ▬▬▬▬▬▬▬          ▬▬▬▬
                    ▬▬▬▬▬             ▬▬▬▬▬▬
    busy time     0 ─────── 10     10 ──────── 21      the pause in between does not count

The speed of single streams is based on the times at which the client received tokens. The lag is how long a received
token waited until the client read it. Gaps between tokens that are short compared with the lag reflect the client, not
the server, and are left out (`MAX_LAG_SHARE`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from harness.core.number_text import count_noun
from harness.core.records import Grade
from harness.scoring.sample_columns import COUNTED, Observed, Rows
from harness.scoring.stats import Array, Estimate, quantile, sampling_limits
from server_launchers.engines.table import calls_remedy

MAX_LOST_SHARE = 0.02
"""A score warns if more than this fraction of the samples lost a call."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the samples used the available tool."""

    n_samples: int
    """Number of samples covered by the score."""
    with_call: int
    """Number of samples that made at least one call."""
    lost: int
    """Number of samples whose reply contains a call that the server failed to parse."""
    cut_by_steps: int
    """Number of samples that reached the step limit."""
    steps: int
    """Total number of steps across all samples."""
    calls: int
    """Total number of calls across all samples."""
    failed: int
    """Number of calls that raised an exception or could not be parsed."""
    stopped: int
    """Number of calls that exceeded a limit."""
    repeated: int
    """Number of calls identical to the previous call."""
    prompt_tokens: int
    """Prompt tokens across all steps, where reported."""
    new_tokens: int
    """Completion tokens across all steps, where reported."""
    name: str = ""
    """The tool's name; empty in scores from before it was recorded."""

    @property
    def sentence(self) -> str:
        """The counts in a sentence."""
        return (
            f"{self.name or 'tool'}: {self.with_call:,} of {count_noun(self.n_samples, 'sample')} called it, "
            f"{self.steps / self.n_samples:.1f} steps and {self.calls / self.n_samples:.1f} calls per sample; "
            f"{self.failed:,} calls failed, {self.stopped:,} were stopped, {self.repeated:,} repeated the previous "
            f"call; {count_noun(self.lost, 'sample')} lost a call, {self.cut_by_steps:,} ran out of steps; "
            f"{self.prompt_tokens:,} prompt tokens and {self.new_tokens:,} new tokens"
        )

    def warning(self, model: str) -> str:
        """The warning about lost calls; empty if there are few. model: the model's name."""
        if self.lost <= MAX_LOST_SHARE * self.n_samples:
            return ""
        share = f"{self.lost:,} of {count_noun(self.n_samples, 'sample')} ({self.lost / self.n_samples:.1%})"
        return f"{share} contain a call that the server did not parse, so it was not run: {calls_remedy(model)}"


def tool_use(observed: Observed, rows: Rows) -> ToolUse | None:
    """The tool use of these samples; None without a tool."""
    rows = rows[~np.isnan(observed.columns["steps"].numbers(rows))]
    if not len(rows):
        return None
    sums = {name: int(observed.columns[name].numbers(rows).sum()) for name in COUNTED}
    tokens = (observed.columns[name].numbers(rows) for name in ("prompt_tokens", "completion_tokens"))
    prompt, new = (int(np.nan_to_num(column).sum()) for column in tokens)
    with_call = int((observed.columns["calls"].numbers(rows) > 0).sum())
    tokens_used = {"prompt_tokens": prompt, "new_tokens": new}
    return ToolUse(n_samples=len(rows), with_call=with_call, name=observed.tool, **tokens_used, **sums)


# ---- the work of the servers


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The load on the servers, summed over the samples covered by the score."""

    n_samples: int
    """Number of samples covered by the score."""
    started: float
    """Unix time of the first request."""
    ended: float
    """Unix time at which the last reply ended."""
    busy_s: float
    """Seconds with at least one request in flight."""
    requests: int
    """Number of requests made for these samples, including retries."""
    n_stated: int
    """Number of samples for which the server reported both prompt and completion tokens."""
    prompt_tokens: int
    """Total prompt tokens of the `n_stated` samples."""
    completion_tokens: int
    """Total completion tokens of the `n_stated` samples."""
    reasoning_tokens: int
    """Number of those completion tokens that are reasoning, where reported."""
    cached_tokens: int | msgspec.UnsetType = msgspec.UNSET
    """Number of those prompt tokens that came from a cache; absent if none is reported."""


def workload(observed: Observed, rows: Rows) -> Workload | None:
    """The server workload for the samples in `rows`; None if there are none. Samples from other tools are left out
    because their times are unknown.
    """
    foreign = observed.flagged("foreign", rows)
    if foreign.any():
        rows = rows[~foreign]
    if not len(rows):
        return None
    begun, latency = observed.columns["started"].numbers(rows), observed.columns["total"].numbers(rows)
    ended = begun + np.maximum(0.0, latency)
    prompt, completion = (observed.columns[name].numbers(rows) for name in ("prompt_tokens", "completion_tokens"))
    stated = ~np.isnan(prompt) & ~np.isnan(completion)
    return Workload(
        n_samples=len(rows),
        started=float(begun.min()),
        ended=float(ended.max()),
        busy_s=_busy_seconds(begun, ended),
        requests=int(np.nan_to_num(observed.columns["attempts"].numbers(rows), nan=1.0).sum()),
        n_stated=int(stated.sum()),
        prompt_tokens=int(prompt[stated].sum()),
        completion_tokens=int(completion[stated].sum()),
        reasoning_tokens=int(np.nan_to_num(observed.columns["reasoning_tokens"].numbers(rows))[stated].sum()),
        cached_tokens=int(np.nan_to_num(observed.columns["cached_tokens"].numbers(rows))[stated].sum())
        or msgspec.UNSET,
    )


# ---- one stream

MAX_LAG_SHARE = 0.25
"""Gaps are left out if the lag exceeds this fraction of the median gap."""


def _busy_seconds(begun: Array, ended: Array) -> float:
    """Seconds from the first request to the end of the last reply, without pauses in which no request was in flight."""
    order = np.argsort(begun, kind="stable")
    begun, reached = begun[order], np.maximum.accumulate(ended[order])
    idle = begun[1:] - reached[:-1]
    return float(reached[-1] - begun[0] - idle[idle > 0].sum())


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """Latency and throughput of the streamed replies."""

    n_samples: int
    """Number of samples whose replies were streamed."""
    first_token_p50: float
    """Median time from the request to the first token, in seconds."""
    first_token_p99: float
    """99th percentile of the time from the request to the first token, in seconds."""
    gap_p50: float | None
    """Median time between token events, in seconds (the median across samples of each sample's median); None if it
    is too short to measure given the client's lag, or if the lag is unknown.
    """
    gap_p99: float | None
    """99th percentile of the time between token events, in seconds (the median across samples of each sample's 99th
    percentile); None under the same conditions as `gap_p50`.
    """
    tokens_per_s: float | None
    """Median of the streams' tokens per second after the first token; None if no server reported token counts."""
    hidden: float | None = None
    """Fraction of samples whose reasoning was hidden or only summarized, so that times and counts cover only visible
    tokens; None if there are no such samples.
    """
    lag: float | None
    """How long a received token waited before the client read it, in seconds (the median across samples of each
    sample's 99th percentile); None if unknown.
    """
    kernel_stamps: float
    """Fraction of samples whose times are based on kernel timestamps."""


def speed(observed: Observed, rows: Rows) -> Speed | None:
    """The speed over the samples in `rows`; None if no reply was streamed.

    Continued samples are left out, because only their last request has times.
    """
    if not observed.columns["first_token"].has_numbers:
        return None
    rows = rows[~np.isnan(observed.columns["first_token"].numbers(rows)) & ~observed.flagged("salvaged", rows)]
    if not len(rows):
        return None
    first = observed.columns["first_token"].numbers(rows)
    n_hidden = int((observed.flagged("hidden", rows) | observed.flagged("summary", rows)).sum())
    columns = (observed.columns[name].numbers(rows) for name in ("lag", "gap_p50", "gap_p99"))
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
    """Tokens per second after the first token, for each sample that has such a rate. Replies that were not streamed
    have none, nor do replies with a reasoning summary, because the model thinks between its pieces.

    first: time of each sample's first token.
    """
    tokens = streamed_tokens(observed, rows)
    seconds = observed.columns["last_token"].numbers(rows) - first
    timed = (tokens >= 2) & (seconds > 0) & ~observed.flagged("summary", rows)  # False where a number is NaN.
    return (tokens[timed] - 1) / seconds[timed]


def streamed_tokens(observed: Observed, rows: Rows) -> Array:
    """The tokens of each reply from the first one that was received, (rows,); NaN if the server reports none."""
    tokens = observed.columns["completion_tokens"].numbers(rows)
    thought = np.nan_to_num(observed.columns["reasoning_tokens"].numbers(rows))
    # Reasoning that was not streamed ended before the first token.
    return np.asarray(tokens - np.where(observed.flagged("hidden", rows), thought, 0.0))


# ---- endpoints


class EndpointScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one endpoint's samples. Endpoints receive different questions, so do not use these intervals to
    compare endpoints.
    """

    n_samples: int
    """Number of samples from this endpoint."""
    accuracy: Estimate
    """Fraction correct, with an interval for sampling the same questions again, each the same number of times."""
    expected_accuracy: float
    """Expected fraction correct if this endpoint matched the average of all endpoints on each question."""
    truncated: float
    """Fraction of samples truncated by max_tokens."""
    no_answer: float
    """Fraction of samples without an answer."""
    tokens_per_s: float | None
    """Tokens per second of a single stream, over samples with reported token counts; None if there are no such samples.
    """


def endpoint_scores(observed: Observed, rows: Rows, grades: Sequence[Grade]) -> dict[str, EndpointScore]:
    """URL → score of each endpoint, sorted by URL; empty if all samples are from one endpoint.

    rows: rows of the samples of `grades`.
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
    """The speed of a single stream over the samples with reported tokens and times; None if there are none."""
    tokens = np.nan_to_num(observed.columns["completion_tokens"].numbers(rows))
    seconds = observed.columns["total"].numbers(rows)
    timed = (tokens != 0) & (seconds > 0)
    in_all = math.fsum(seconds[timed])
    return int(tokens[timed].sum()) / in_all if in_all else None
