"""What a run will still take: before it begins (`forecast`), and while it goes on (`time_left`). Pure.

Both functions start from lengths in tokens of finished samples, by question.

Before a run only sums are needed, and a sum needs means and variances. With m_q samples of question q at hand (mean
length L_q, variance s²_q) and r_q still to come:

    tokens to come = Σ r_q L_q,    variance = Σ (r_q² s²_q / m_q + r_q s²_q)

While a run goes on, its end is the end of its longest stream: a maximum, which needs the tail. Lengths have long
tails, and the short ones finish first, so that a mean of what has finished says "soon" until the very end. Hence the
rest of the run is simulated some dozens of times (each simulation is a play):

1. log(length) = centre + residual. The centre of a question is the mean logarithm of its samples, drawn towards that of
   its benchmark by the variance within questions over the variance between them (empirical Bayes; Efron and Morris
   1973).
2. The residuals of the finished samples, each relative to the centre that the other samples of its question give, are
   the population. A sample in flight is a member whose residual is only known to be larger than it is now (Kaplan and
   Meier 1958). An exponential tail replaces the thirty largest, that is a Pareto tail of lengths (Hill 1975).
3. A play weighs the members anew (Bayesian bootstrap; Rubin 1981: few samples say little), draws how long the samples
   in flight become and how long those to come, and gives the next sample to the first stream that is free.
4. The range holds the middle 98 % of the plays' ends.

Not covered: servers that become faster or slower, pauses, outages. Streams are taken to go on as fast as of late.
What each part is for, measured: docs/decisions/forecast.md.
"""

from __future__ import annotations

import heapq
import math
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from harness.core.money import Prices
from harness.core.records import Sample
from harness.generation.lengths import completion_tokens

QuestionKey = tuple[str, str]
"""(benchmark, question_id)."""

UNASKED = ""
"""Question id that stands for all questions without a finished sample, if they are too many to list."""

MIN_FINISHED = 8
"""Smallest number of finished samples for which `time_left` gives a range."""

DEFAULT_VARIANCE = 0.25
"""Variance of the logarithms of one question's lengths, weighted as one degree of freedom."""

MAX_PLAYS = 48
MIN_PLAYS = 16
"""Largest and smallest number of simulations of the rest of a session; the longer the rest, the fewer (`MAX_DRAWS`)."""

MAX_DRAWS = 24_000
"""Largest number of lengths drawn for one range, over all simulations; this takes some 30 ms."""

POPULATION = 800
"""Largest number of finished samples in the population: the latest of each question."""

ONE_BY_ONE = 400
"""Largest number of samples at the end that are simulated one by one; those before them fill the streams evenly."""

TAIL_SAMPLES = 30
"""Number of the longest finished samples that the exponential tail replaces; half of the samples if that is fewer."""

MIN_TAIL_INDEX = 1.1
MAX_TAIL_INDEX = 10.0
"""Smallest and largest index of the Pareto tail; the smaller the index, the heavier the tail."""

MAX_LOG_LENGTH = 50.0
"""Largest logarithm of a length if the benchmark has no `max_tokens`."""

STRATA = 100
"""Number of quantiles of the residuals from which a mean length is computed."""

PACE_SPREAD = 0.04
"""Standard deviation of the streams' speed from play to play, as a fraction."""

MIDDLE = 0.98
"""Fraction of the simulated ends that lie within the range."""

LEISURE = 100.0
"""The pause before the next range is this many times the processor time of the last one."""


# ---- before a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is still to come.

    n_samples: missing beyond the pilot. tokens: new tokens, with their standard error. prompt_tokens: None if no server
    stated any. least_s, most_s: seconds. usd: None without prices or usage.
    """

    n_samples: int
    tokens: float
    tokens_error: float
    prompt_tokens: float | None
    least_s: float
    most_s: float
    usd: float | None


@dataclass(slots=True)
class _Finished:
    """One question's finished samples: their lengths and the prompt tokens that were stated."""

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
    *,
    same_run: bool = True,
) -> Forecast:
    """The rest of a run, estimated from the samples of a pilot or an earlier run, of any benchmarks.

    planned: benchmark → (questions, samples of each) of the whole run. same_run: `samples` count as done. The time is a
    range, from "each stream keeps its speed, however many there are" to "all streams together are no faster than they
    were". A question with one sample gets the mean variance of the others; questions without samples are assumed to be
    like the others.
    """
    questions: dict[str, dict[str, _Finished]] = {name: {} for name in planned}
    spans: list[tuple[float, float]] = []
    busy, n_tokens = 0.0, 0
    for sample in samples:
        question = questions[sample.benchmark].setdefault(sample.question_id, _Finished())
        length = completion_tokens(sample)
        question.lengths.append(length)
        if sample.usage.prompt_tokens is not None:
            question.prompts.append(sample.usage.prompt_tokens)
        spans.append((sample.timing.started, sample.timing.started + sample.timing.total))
        busy += sample.timing.total
        n_tokens += length

    n_samples, tokens, variance, longest = 0, 0.0, 0.0, 0
    prompt_tokens: float | None = 0.0
    for name, (n_questions, per_question) in planned.items():
        spreads = [question.variance for question in questions[name].values()]
        stated = [spread for spread in spreads if spread is not None]
        typical = math.fsum(stated) / len(stated) if stated else 0.0
        for question, spread in zip(questions[name].values(), spreads, strict=True):
            n = len(question.lengths)
            # The pilot's questions stand for those that it did not ask.
            share = n_questions / len(spreads)
            left = max(0, per_question - n) if same_run else per_question
            spread = typical if spread is None else spread
            n_samples += round(left * share)
            tokens += share * left * sum(question.lengths) / n
            variance += share * (left**2 * spread / n + left * spread)
            longest = max(longest, *question.lengths)
            if question.prompts and prompt_tokens is not None:
                prompt_tokens += share * left * sum(question.prompts) / len(question.prompts)
            else:
                prompt_tokens = None
    least, most = 0.0, 0.0
    if n_tokens and n_samples:
        per_token = busy / n_tokens  # Seconds of one stream.
        least = max(tokens * per_token / min(concurrency, n_samples), longest * per_token)
        most = max(least, tokens * _busy_seconds(spans) / n_tokens)
    return Forecast(
        n_samples=n_samples,
        tokens=tokens,
        tokens_error=math.sqrt(variance),
        prompt_tokens=prompt_tokens,
        least_s=least,
        most_s=most,
        usd=prices.usd(prompt_tokens, tokens) if prices is not None and prompt_tokens is not None else None,
    )


def _busy_seconds(spans: list[tuple[float, float]], max_gap: float = 1.0) -> float:
    """Seconds in which the run was at work: with requests in flight, or for at most `max_gap` writing and sending.

    spans: (start, end) of each request, in seconds. A longer gap is a pause, such as that between two sessions.
    """
    total, until = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - (start if start - until > max_gap else until))
        until = max(until, end)
    return total


# ---- while a run goes on


class Streaming(NamedTuple):
    """A sample in flight. tokens: so far; pace: seconds per token of its endpoint."""

    question: QuestionKey
    tokens: float
    pace: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Known lengths, in tokens, and what is left to do.

    finished: lengths by question, in this session. waiting: samples to come, by question. prior: expected lengths from
    an earlier run. longest_first: the longest are asked first, else any. max_tokens: by benchmark.
    """

    finished: Mapping[QuestionKey, Sequence[float]]
    running: Sequence[Streaming]
    waiting: Mapping[QuestionKey, int]
    prior: Mapping[QuestionKey, float]
    max_tokens: Mapping[str, int]
    longest_first: bool = True


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds until the end: least, most likely (the median), most."""

    least_s: float
    likely_s: float
    most_s: float

    def after(self, seconds: float) -> TimeLeft:
        """The same end, seen this many seconds later."""
        return TimeLeft(*(max(0.0, value - seconds) for value in (self.least_s, self.likely_s, self.most_s)))


def time_left(outlook: Outlook, random: Random) -> TimeLeft | None:
    """The range of the time until everything has ended; None while too little is known, or nothing is in flight."""
    n_finished = sum(map(len, outlook.finished.values()))
    if n_finished < MIN_FINISHED or not outlook.running:
        return None
    game = _Game(outlook, random)
    n_drawn = len(outlook.running) + len(game.last)
    n_plays = max(MIN_PLAYS, min(MAX_PLAYS, MAX_DRAWS // n_drawn))
    ends = sorted(game.play() for _ in range(n_plays))
    return TimeLeft(_quantile(ends, (1 - MIDDLE) / 2), _quantile(ends, 0.5), _quantile(ends, (1 + MIDDLE) / 2))


class _Centres:
    """The centre of each question: the logarithm of the length that its finished samples suggest for another one."""

    def __init__(self, outlook: Outlook) -> None:
        logs = {question: [_log(length) for length in lengths] for question, lengths in outlook.finished.items()}
        means = {question: _mean(values) for question, values in logs.items()}
        self._sums = {question: (math.fsum(values), len(values)) for question, values in logs.items()}
        squares = math.fsum((value - means[question]) ** 2 for question, values in logs.items() for value in values)
        freedom = sum(n - 1 for _, n in self._sums.values())
        within = (DEFAULT_VARIANCE + squares) / (1 + freedom)

        self._of_all = _mean(means.values())
        by_benchmark: dict[str, list[float]] = {}
        for (benchmark, _), mean in means.items():
            by_benchmark.setdefault(benchmark, []).append(mean)
        self._of_benchmark = {name: _mean(values) for name, values in by_benchmark.items() if len(values) >= 3}
        noise = within * _mean([1.0 / n for _, n in self._sums.values()])
        between = _mean([(mean - self._usual(question)) ** 2 for question, mean in means.items()]) - noise
        # The estimate of the variance between questions may be 0 or negative by chance.
        self._weight = within / max(between, 0.1 * within)

        for question, tokens in outlook.prior.items():  # A length from an earlier run counts as two samples.
            total, n = self._sums.get(question, (0.0, 0))
            self._sums[question] = (total + 2 * _log(tokens), n + 2)

    def of(self, question: QuestionKey, without: float | None = None) -> float:
        """The centre of a question. without: the length of one of its finished samples to leave out."""
        total, n = self._sums.get(question, (0.0, 0))
        if without is not None:
            total, n = total - _log(without), n - 1
        return (self._weight * self._usual(question) + total) / (self._weight + n)

    def _usual(self, question: QuestionKey) -> float:
        return self._of_benchmark.get(question[0], self._of_all)


class _Distribution(NamedTuple):
    """A distribution of residuals: logarithms of lengths, relative to the centre of their question.

    ended: the fraction of samples that has ended by each residual in `steps`; both lists rise. Beyond the last step the
    distribution is exponential with rate `tail_index`.
    """

    steps: list[float]
    ended: list[float]
    tail_index: float

    def residual_at(self, share: float) -> float:
        """The residual by which the fraction `share` of all samples has ended."""
        last = self.ended[-1]
        if share < last:
            return self.steps[bisect_right(self.ended, share)]
        # The bounds keep both ends of the distribution away from the logarithm of 0.
        return self.steps[-1] + math.log(max(1.0 - last, 1e-12) / max(1.0 - share, 1e-12)) / self.tail_index

    def beyond(self, reached: float, random: Random) -> float:
        """Draw a residual that is larger than `reached`."""
        # Above 0: random() may return 0, which has no logarithm.
        left = 1.0 - random.random()
        if reached >= self.steps[-1]:
            return reached - math.log(left) / self.tail_index
        before = bisect_right(self.steps, reached)
        gone = self.ended[before - 1] if before else 0.0
        return max(reached, self.residual_at(1.0 - (1.0 - gone) * left))

    def mean(self) -> float:
        """The residual of the mean length."""
        return math.log(_mean([math.exp(self.residual_at((stratum + 0.5) / STRATA)) for stratum in range(STRATA)]))


def _distribution(members: Sequence[tuple[float, bool]], random: Random) -> _Distribution:
    """Return the distribution of the population with random weights.

    members: (residual, whether finished), by rising residual. `alive` is the Kaplan-Meier estimate of the fraction with
    a larger residual. Where `alive` has fallen to the fraction `tail`, the exponential tail begins.
    """
    weights = [random.expovariate(1.0) for _ in members]
    at_risk = math.fsum(weights)
    tail = min(0.5, TAIL_SAMPLES / sum(finished for _, finished in members))
    alive, events, excess = 1.0, 0.0, 0.0
    steps: list[float] = []
    ended: list[float] = []
    for (residual, finished), weight in zip(members, weights, strict=True):
        if alive > tail:
            if finished:
                alive *= max(0.0, 1.0 - weight / at_risk)
                steps.append(residual)
                ended.append(1.0 - alive)
        else:  # Hill's estimate of the tail: a sample in flight adds to the excess, but not to the events (ends).
            events += weight * finished
            excess += weight * (residual - steps[-1])
        at_risk -= weight
    index = events / excess if excess else math.inf
    return _Distribution(steps, ended, min(max(index, MIN_TAIL_INDEX), MAX_TAIL_INDEX))


class _Game:
    """Simulates the rest of a session. last: questions of the samples at the end, which are simulated one by one."""

    def __init__(self, outlook: Outlook, random: Random) -> None:
        self._random = random
        self._running = outlook.running
        self._max_logs = {benchmark: _log(tokens) for benchmark, tokens in outlook.max_tokens.items()}
        centres = _Centres(outlook)
        self._centres = {q: centres.of(q) for q in {*outlook.waiting, *(r.question for r in outlook.running)}}
        n_of_each = max(2, POPULATION // len(outlook.finished))
        finished = [
            (_log(length) - centres.of(question, without=length), True)
            for question, lengths in outlook.finished.items()
            for length in lengths[-n_of_each:]
        ]
        self._reached = [_log(r.tokens) - self._centres[r.question] for r in outlook.running]
        self._members = sorted(finished + [(residual, False) for residual in self._reached])

        questions = sorted(outlook.waiting, key=self._centres.__getitem__, reverse=True)
        order = [question for question in questions for _ in range(outlook.waiting[question])]
        n_last = min(ONE_BY_ONE, len(order))
        self.last = order[len(order) - n_last :] if outlook.longest_first else random.sample(order, n_last)
        self._first = Counter(order) - Counter(self.last)

    def play(self) -> float:
        """Simulate once; return the seconds until the end."""
        random = self._random
        residuals = _distribution(self._members, random)
        speed = max(0.5, random.gauss(1.0, PACE_SPREAD))
        streams: list[tuple[float, float]] = []  # (seconds until free, seconds per token) of each stream.
        for running, reached in zip(self._running, self._reached, strict=True):
            tokens = self._tokens(running.question, residuals.beyond(reached, random)) - running.tokens
            streams.append((max(0.0, tokens) * running.pace * speed, running.pace * speed))
        if self._first:
            mean = residuals.mean()
            streams = _fill(streams, math.fsum(n * self._tokens(q, mean) for q, n in self._first.items()))
        heapq.heapify(streams)
        for question in self.last:
            free_in, pace = streams[0]
            tokens = self._tokens(question, residuals.residual_at(random.random()))
            heapq.heapreplace(streams, (free_in + tokens * pace, pace))
        return max(free_in for free_in, _ in streams)

    def _tokens(self, question: QuestionKey, residual: float) -> float:
        return math.exp(min(self._centres[question] + residual, self._max_logs.get(question[0], MAX_LOG_LENGTH)))


def _fill(streams: list[tuple[float, float]], tokens: float) -> list[tuple[float, float]]:
    """The streams after `tokens` more went to those that are free first, so that these end at the same moment."""
    streams = sorted(streams)
    rate, work, level = 0.0, 0.0, 0.0  # tokens/s of the streams that are free by `level`; their tokens until then
    for free_in, pace in streams:
        if rate and work + rate * (free_in - level) >= tokens:
            break
        work += rate * (free_in - level)
        level = free_in
        rate += 1.0 / max(pace, 1e-9)
    level += (tokens - work) / rate
    return [(max(free_in, level), pace) for free_in, pace in streams]


def _mean(values: Collection[float]) -> float:
    return math.fsum(values) / len(values)


def _log(tokens: float) -> float:
    return math.log(max(tokens, 1.0))


def _quantile(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


class Expectation:
    """Keeps the forecast `left` up to date, with at most a hundredth of the processor's time."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._random = Random(0)  # noqa: S311 - plays, not secrets
        self._seen: Outlook | None = None
        self._due = 0.0
        self.left: TimeLeft | None = None

    def renew(self, outlook: Outlook | None, now: float | None = None) -> bool:
        """Compute `left` from a new outlook, if the next computation is due. Return whether it was computed.

        now: monotonic seconds; None: the present moment.
        """
        now = time.monotonic() if now is None else now
        if outlook is None or outlook is self._seen or now < self._due:
            return False
        self._seen = outlook
        # Processor time of this thread: a wait for the processor must not make the next pause longer.
        before = self._clock()
        self.left = time_left(outlook, self._random)
        self._due = now + LEISURE * (self._clock() - before)
        return True
