"""From a few samples of each question to what all of them will take: tokens, hours, money. Pure.

The questions are the run's own, so what is unknown is only how the samples to come spread around their question's mean.
With m_q samples of question q at hand (mean length L_q, variance s²_q), and r_q still to come:

    tokens to come = Σ r_q L_q,    variance = Σ (r_q² s²_q / m_q + r_q s²_q)

A question with one sample takes the mean variance of the others. Hours are a range: from "a stream is as fast as in the
pilot, however many there are" to "all streams together are no faster than the pilot's were".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.core.records import Sample
from harness.generation.lengths import completion_tokens
from harness.generation.spending import Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is still to come. n_samples: owed beyond the pilot. tokens: new ones, with their standard error.

    prompt_tokens: None where no server stated any. least_s, most_s: seconds. usd: None without prices, or usage.
    """

    n_samples: int
    tokens: float
    tokens_error: float
    prompt_tokens: float | None
    least_s: float
    most_s: float
    usd: float | None


@dataclass(slots=True)
class _Question:
    lengths: list[int]
    prompts: list[int]


def forecast(
    samples: Iterable[Sample], planned: Mapping[str, tuple[int, int]], concurrency: int, prices: Prices | None
) -> Forecast:
    """samples: of the pilot, any benchmark. planned: benchmark → (questions, samples of each) of the whole run."""
    questions: dict[str, dict[str, _Question]] = {name: {} for name in planned}
    spans: list[tuple[float, float]] = []
    busy, pilot_tokens = 0.0, 0
    for sample in samples:
        found = questions[sample.benchmark].setdefault(sample.question_id, _Question([], []))
        length = completion_tokens(sample)
        found.lengths.append(length)
        if sample.usage.prompt_tokens is not None:
            found.prompts.append(sample.usage.prompt_tokens)
        spans.append((sample.timing.started, sample.timing.started + sample.timing.total))
        busy += sample.timing.total
        pilot_tokens += length

    n_samples, tokens, variance, longest = 0, 0.0, 0.0, 0
    prompt_tokens: float | None = 0.0
    for name, (n_questions, per_question) in planned.items():
        asked = list(questions[name].values())
        if not asked:
            continue
        spreads = [_variance(one.lengths) for one in asked if len(one.lengths) > 1]
        typical = math.fsum(spreads) / len(spreads) if spreads else 0.0
        # Questions that the pilot did not reach are taken to be like the others.
        share = n_questions / len(asked)
        for one in asked:
            left = max(0, per_question - len(one.lengths))
            spread = _variance(one.lengths) if len(one.lengths) > 1 else typical
            n_samples += round(left * share)
            tokens += share * left * sum(one.lengths) / len(one.lengths)
            variance += share * (left**2 * spread / len(one.lengths) + left * spread)
            longest = max(longest, *one.lengths)
            if one.prompts and prompt_tokens is not None:
                prompt_tokens += share * left * sum(one.prompts) / len(one.prompts)
            else:
                prompt_tokens = None
    least, most = 0.0, 0.0
    if pilot_tokens and n_samples:
        per_token = busy / pilot_tokens  # seconds of one stream
        span = _covered(spans)
        least = max(tokens * per_token / min(concurrency, n_samples), longest * per_token)
        most = max(least, tokens * span / pilot_tokens)
    usd = prices.usd(prompt_tokens, tokens) if prices is not None and prompt_tokens is not None else None
    return Forecast(
        n_samples=n_samples,
        tokens=tokens,
        tokens_error=math.sqrt(variance),
        prompt_tokens=prompt_tokens,
        least_s=least,
        most_s=most,
        usd=usd,
    )


def _covered(spans: list[tuple[float, float]]) -> float:
    """Seconds in which at least one request was under way: pauses between sessions do not count."""
    total, until = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def _variance(values: list[int]) -> float:
    mean = sum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
