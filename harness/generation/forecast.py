"""Forecasts what a run will take, from the samples of an earlier run. Pure.

Only sums are needed, and a sum needs means and variances. With m_q samples of question q at hand (mean
length L_q, variance s²_q) and r_q still to come:

    tokens to come = Σ r_q L_q,    variance = Σ (r_q² s²_q / m_q + r_q s²_q)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.core.number_text import Prices
from harness.core.records import Sample
from harness.generation.run_progress import completion_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A forecast of the tokens, duration and cost of a run."""

    n_samples: int
    """Number of samples in the run."""
    tokens: float
    """Expected number of generated tokens."""
    tokens_error: float
    """Standard error of `tokens`."""
    prompt_tokens: float | None
    """Expected number of prompt tokens; None if no server reported any."""
    least_s: float
    """Lower bound on the duration, in seconds."""
    most_s: float
    """Upper bound on the duration, in seconds."""
    usd: float | None
    """Expected cost in US dollars; None if no prices were specified or no token counts were reported."""


@dataclass(slots=True)
class _Finished:
    """One question's finished samples: their lengths and the reported prompt tokens."""

    lengths: list[int] = field(default_factory=list)
    prompts: list[int] = field(default_factory=list)

    @property
    def variance(self) -> float | None:
        """Variance of the lengths; None for fewer than two samples."""
        n = len(self.lengths)
        mean = sum(self.lengths) / n
        return math.fsum((length - mean) ** 2 for length in self.lengths) / (n - 1) if n > 1 else None


def forecast(
    samples: Iterable[Sample],
    planned: Mapping[str, tuple[int, int]],
    concurrency: int,
    prices: Prices | None,
) -> Forecast:
    """What a run will take, estimated from the samples of an earlier run of any benchmarks.

    planned: benchmark → (number of questions, samples per question) of the whole run. The time is a range, from "each
    stream keeps its speed, however many there are" to "all streams together are no faster than they were". A question
    with one sample gets the mean variance of the others; questions without samples are assumed to be like the others.
    """
    questions: dict[str, dict[str, _Finished]] = {name: {} for name in planned}
    spans: list[tuple[float, float]] = []
    busy, n_tokens, read, cached = 0.0, 0, 0, 0
    for sample in samples:
        question = questions[sample.benchmark].setdefault(sample.question_id, _Finished())
        length = completion_tokens(sample)
        question.lengths.append(length)
        if sample.usage.prompt_tokens is not None:
            question.prompts.append(sample.usage.prompt_tokens)
            read, cached = read + sample.usage.prompt_tokens, cached + (sample.usage.cached_tokens or 0)
        spans.append((sample.timing.started, sample.timing.started + sample.timing.total))
        busy += sample.timing.total
        n_tokens += length

    n_samples, tokens, variance, longest = 0.0, 0.0, 0.0, 0
    prompt_tokens: float | None = 0.0
    for name, (n_questions, per_question) in planned.items():
        spreads = [question.variance for question in questions[name].values()]
        stated = [spread for spread in spreads if spread is not None]
        typical = math.fsum(stated) / len(stated) if stated else 0.0
        for question, spread in zip(questions[name].values(), spreads, strict=True):
            n = len(question.lengths)
            # The questions of the earlier run represent those that it did not include.
            share = n_questions / len(spreads)
            spread = typical if spread is None else spread
            n_samples += per_question * share
            tokens += share * per_question * sum(question.lengths) / n
            variance += share * (per_question**2 * spread / n + per_question * spread)
            longest = max(longest, *question.lengths)
            if question.prompts and prompt_tokens is not None:
                prompt_tokens += share * per_question * sum(question.prompts) / len(question.prompts)
            else:
                prompt_tokens = None
    least, most = 0.0, 0.0
    if n_tokens and n_samples:
        per_token = busy / n_tokens  # Seconds of one stream.
        least = max(tokens * per_token / min(concurrency, n_samples), longest * per_token)
        most = max(least, tokens * _busy_seconds(spans) / n_tokens)
    return Forecast(
        n_samples=round(n_samples),
        tokens=tokens,
        tokens_error=math.sqrt(variance),
        prompt_tokens=prompt_tokens,
        least_s=least,
        most_s=most,
        usd=prices.usd(prompt_tokens, tokens, prompt_tokens * cached / max(1, read))
        if prices is not None and prompt_tokens is not None
        else None,
    )


def _busy_seconds(spans: list[tuple[float, float]], max_gap: float = 1.0) -> float:
    """Seconds during which the run was active: with requests in flight, or writing and sending for at most `max_gap`.

    spans: (start, end) of each request, in seconds. A longer gap is a pause, such as that between two sessions.
    """
    total, until = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - (start if start - until > max_gap else until))
        until = max(until, end)
    return total
