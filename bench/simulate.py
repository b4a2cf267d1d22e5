"""Tests by simulation whether intervals and tests keep their promises: how often an interval contains the truth, and
how often a test finds a difference where there is none. No server is needed.

    python bench/simulate.py [--repeats 4000] [--table sampling] [--seed 1]

A model is a set of probabilities p_q of a correct sample, one for each question, drawn from a Beta distribution with
the given mean ("accuracy") and concentration: 0.5 makes most questions always right or always wrong, 4 makes most of
them uncertain. A run draws n samples of each question. A cell is one combination; a table row summarizes the cells with
the same number of questions and samples by their lowest and highest rate. Exit code 1 if a cell breaks its bound.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.core.hidden_limit import reply_checksum
from harness.deciding import difference_stats
from harness.deciding.difference_stats import MIN_ROUNDS, next_rounds, reached_error, variance_of_mean
from harness.scoring import stats
from harness.scoring.anomalies import copies_among
from harness.scoring.measures import mean_of_tokens
from harness.scoring.pass_at_k import VoteGroup, at_least_of_k, maj_at_k, maj_jackknife, without_one
from harness.scoring.stats import Z_95, t_factor

Array = NDArray[np.float64]

QUESTIONS = (30, 198, 500, 1319)
SAMPLES = (1, 2, 4, 8, 16, 64)
ACCURACIES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
CONCENTRATIONS = (0.5, 4.0)

MIN_COVERAGE = 0.93
MIN_TOKEN_COVERAGE = 0.92
ALL_TOKENS = stats.Interval(0.0, math.inf)
MAX_ALARMS = 0.07
MAX_FALSE_MARGIN = 0.035


class Rate(NamedTuple):
    """The result of one cell: the fraction of repetitions in which something was true (for example, an interval
    contained the truth), and their number. note: a second number of the cell, whose meaning the table gives.
    """

    rate: float
    repeats: int
    note: float = math.nan

    def error(self, bound: float, n_cells: int) -> float:
        """The tolerance in the comparison with a bound: three standard errors of a rate at the bound (clipped to 5–95%)
        in a row of up to 20 cells; in a longer row, as many standard errors as are equally improbable for any of its
        cells.
        """
        near = min(max(bound, 0.05), 0.95)
        factor = NormalDist().inv_cdf(1 - 0.00135 * 20 / max(20, n_cells))
        return factor * math.sqrt(near * (1 - near) / self.repeats)


class Row(NamedTuple):
    """A table row: what its cells have in common, and their rates."""

    name: str
    rates: list[Rate]

    def within(self, least: float, most: float) -> bool:
        """Return whether every rate is within the bounds, up to the simulation's own error."""
        n = len(self.rates)
        return all(least - one.error(least, n) <= one.rate <= most + one.error(most, n) for one in self.rates)


class Table(NamedTuple):
    """A table of rates. least, most: bounds for every rate, up to the simulation's own error. note: the meaning of the
    cells' second number.
    """

    title: str
    rows: list[Row]
    least: float = 0.0
    most: float = 1.0
    note: str = ""

    def broken(self) -> list[str]:
        """The rows that break a bound."""
        return [row.name for row in self.rows if not row.within(self.least, self.most)]


TABLES: dict[str, Callable[[np.random.Generator, int], Table]] = {}
"""Name of a table → the function that makes it from a generator and a number of repetitions; filled by `table`."""

RowsOf = Callable[[np.random.Generator, int], Iterable[Row]]


def table(
    name: str, title: str, *, least: float = 0.0, most: float = 1.0, note: str = ""
) -> Callable[[RowsOf], Callable[[np.random.Generator, int], Table]]:
    """Return a decorator for a function that makes a table's rows; it registers the table in `TABLES` under `name`.

    title, least, most, note: as in `Table`.
    """

    def register(rows_of: RowsOf) -> Callable[[np.random.Generator, int], Table]:
        """Add the table to `TABLES`."""

        @functools.wraps(rows_of)
        def simulated(rng: np.random.Generator, repeats: int) -> Table:
            return Table(title, list(rows_of(rng, repeats)), least, most, note)

        TABLES[name] = simulated
        return simulated

    return register


class Cell(NamedTuple):
    """A number of questions, and the Beta distribution of their probabilities of a correct sample."""

    n_questions: int
    accuracy: float
    concentration: float

    def chances(self, rng: np.random.Generator, repeats: int) -> Array:
        """Draw the questions' probabilities of a correct sample, (repeats, Q), with new questions in each
        repetition.
        """
        a, b = self.accuracy * self.concentration, (1 - self.accuracy) * self.concentration
        return rng.beta(a, b, size=(repeats, self.n_questions))


def cells(n_questions: int) -> Iterator[Cell]:
    """Yield all cells with this number of questions."""
    for concentration in CONCENTRATIONS:
        for accuracy in ACCURACIES:
            yield Cell(n_questions, accuracy, concentration)


def draw(rng: np.random.Generator, chances: Array, n: int) -> Array:
    """Draw how many of n samples of each question are correct."""
    return rng.binomial(n, chances).astype(float)


def covered(limits: stats.IntervalEnds, truth: Array | float, *, width: Array | None = None) -> Rate:
    """The rate at which the truth is inside the limits; the note is the median ratio of their width to `width`."""
    inside = (limits.low <= truth) & (truth <= limits.high)
    ratio = math.nan
    if width is not None and (width > 0).any():
        ratio = float(np.median((limits.high - limits.low)[width > 0] / width[width > 0]))
    return Rate(float(inside.mean()), inside.size, ratio)


def spread_of(chances: Array) -> difference_stats.SampleSpread:
    """The spread of a model's samples, from the probabilities of the questions."""
    return difference_stats.SampleSpread(len(chances), float(chances.mean()), float((chances * (1 - chances)).mean()))


def _repeats(repeats: int, n_questions: int) -> int:
    """Number of repetitions of a cell: fewer for large sets, so that all cells take about the same time."""
    return max(repeats // 4, min(repeats, repeats * 200 // n_questions))


# Intervals of an accuracy


@table(
    "sampling",
    "Sampling interval holds the accuracy of endless reruns (n = 1: at most)",
    least=MIN_COVERAGE,
    note="width / (2 · 1.96 · error)",
)
def sampling(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often the sampling interval contains the mean probability; the note is its width relative to the normal
    interval.
    """
    for n_questions, n in itertools.product(QUESTIONS, SAMPLES):
        rates = []
        for cell in cells(n_questions):
            chances = cell.chances(rng, _repeats(repeats, n_questions))
            correct, counts = draw(rng, chances, n), np.full(n_questions, float(n))
            normal = 2 * Z_95 * np.sqrt(np.nan_to_num(stats.sampling_variance_of_mean(correct, counts)))
            limits = stats.sampling_limits(correct, counts)
            rates.append(covered(limits, chances.mean(axis=-1), width=normal))
        yield Row(f"{n_questions} × {n}", rates)


@table(
    "question",
    "Question interval holds the accuracy over all questions of the kind",
    least=MIN_COVERAGE,
    note="width / (2 · t · error)",
)
def question(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often the question interval contains the distribution's mean; the note is its width relative to the normal
    interval.
    """
    for n_questions, n in itertools.product(QUESTIONS, SAMPLES):
        rates = []
        for cell in cells(n_questions):
            values = draw(rng, cell.chances(rng, _repeats(repeats, n_questions)), n) / n
            normal = 2 * t_factor(n_questions - 1) * np.sqrt(values.var(axis=-1, ddof=1) / n_questions)
            rates.append(covered(stats.question_limits(values), cell.accuracy, width=normal))
        yield Row(f"{n_questions} × {n}", rates)


@table("fixed", "Sampling interval, sets in which 1, 2, 5 or half of the questions vary", least=MIN_COVERAGE)
def fixed_sets(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """The sampling interval on deliberately hard sets, in which a few questions have all of the variance."""
    for n_questions, n in itertools.product((30, 198), (2, 4, 16, 64)):
        rates = []
        for odd in (1, 2, 5, n_questions // 2):
            for p in (0.005, 0.02, 0.1, 0.5):
                for rest in (0.0, 1.0):
                    chances = np.full(n_questions, rest)
                    chances[:odd] = p if rest == 0 else 1 - p
                    correct = draw(rng, np.broadcast_to(chances, (repeats, n_questions)), n)
                    limits = stats.sampling_limits(correct, np.full(n_questions, float(n)))
                    rates.append(covered(limits, float(chances.mean())))
        yield Row(f"{n_questions} × {n}", rates)


@table("half_rounds", "Sampling interval, while a second or third round is under way", least=MIN_COVERAGE)
def half_rounds(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """The sampling interval of a run that is scored during its second or third round; also with identical questions."""
    for n_questions, done in itertools.product((30, 198), (1, 2)):
        rates = []
        for further in (1, 2, n_questions // 10, n_questions // 3, 2 * n_questions // 3, n_questions - 1):
            counts = np.full(n_questions, done)
            counts[:further] += 1
            for cell in cells(n_questions):
                alike = np.full((_repeats(repeats, n_questions), n_questions), cell.accuracy)
                for chances in (cell.chances(rng, len(alike)), alike):
                    correct = rng.binomial(counts, chances).astype(float)
                    limits = stats.sampling_limits(correct, np.broadcast_to(counts.astype(float), correct.shape))
                    rates.append(covered(limits, chances.mean(axis=-1)))
        yield Row(f"{n_questions} × {done} to {done + 1}", rates)


@table("clusters", "Question interval by clusters", least=MIN_COVERAGE, note="% covered without clusters")
def clusters(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """The question interval where questions come from templates: 4 questions per template (a cluster), whose
    probabilities have a correlation of about 0.8.
    """
    for n_clusters in (30, 100):
        labels = np.repeat(np.arange(n_clusters), 4)
        for n in (1, 4, 16):
            rates, plain = [], []
            for cell in cells(n_clusters):
                template = cell.chances(rng, _repeats(repeats, 4 * n_clusters))
                spread = 4.0
                shared = np.repeat(template, 4, axis=-1)
                own = rng.beta(shared * spread + 1e-9, (1 - shared) * spread + 1e-9)
                values = draw(rng, own, n) / n
                rates.append(covered(stats.question_limits(values, labels), cell.accuracy))
                plain.append(covered(stats.question_limits(values), cell.accuracy).rate)
            rates = [rate._replace(note=100 * share) for rate, share in zip(rates, plain, strict=True)]
            yield Row(f"{n_clusters} clusters of 4 × {n}", rates)


CLUSTER_SIZES = {
    "200: 20 of 10": (10,) * 20,
    "200: 20, sizes as 1/rank": tuple(max(1, round(55.6 / rank)) for rank in range(1, 21)),
    "200: one of 20%, 160 singles": (40, *(1,) * 160),
    "200: one of 40%, 120 singles": (80, *(1,) * 120),
    "200: three of 20%, 80 singles": (40, 40, 40, *(1,) * 80),
    "30: two of 10, ten singles": (10, 10, *(1,) * 10),
}

CLUSTER_MODELS = ((0.3, 0.5), (0.7, 2.0), (0.9, 2.0))
"""(accuracy, concentration) of the clusters' probabilities."""


@table(
    "clusters-unequal", "Question interval by clusters of unequal size", least=MIN_COVERAGE, note="points wide, mean"
)
def unequal_clusters(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """The question interval with clusters of unequal size, whose questions all have the same probability; 4 samples per
    question.
    """
    for name, sizes in CLUSTER_SIZES.items():
        labels, rates = np.repeat(np.arange(len(sizes)), sizes), []
        for accuracy, concentration in CLUSTER_MODELS:
            chances = Cell(len(sizes), accuracy, concentration).chances(rng, _repeats(repeats, len(labels)))
            limits = stats.question_limits(draw(rng, chances[:, labels], 4) / 4, labels)
            rates.append(covered(limits, accuracy)._replace(note=100 * float((limits.high - limits.low).mean())))
        yield Row(name, rates)


@table(
    "clusters-unequal-compared", "Two equally good models found to differ, clusters of unequal size", most=MAX_ALARMS
)
def unequal_clusters_compared(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often two equally good models are found to differ on other questions, with clusters of unequal size."""
    for name, sizes in CLUSTER_SIZES.items():
        labels, rates = np.repeat(np.arange(len(sizes)), sizes), []
        for accuracy, concentration in CLUSTER_MODELS:
            chances = Cell(len(sizes), accuracy, concentration).chances(rng, _repeats(repeats, len(labels)))
            a, b = accuracy * concentration, (1 - accuracy) * concentration
            others = rng.beta(a + 10 * chances, b + 10 * (1 - chances))
            gaps = (draw(rng, chances[:, labels], 4) - draw(rng, others[:, labels], 4)) / 4
            limits = difference_stats.question_difference(gaps, labels).limits
            rates.append(Rate(float(((limits.low > 0) | (limits.high < 0)).mean()), len(gaps)))
        yield Row(name, rates)


COPY_SHARES = (0.1, 0.25, 0.5, 1.0)
"""Fractions of a question's samples with the same text."""


@table("copies", "Sampling interval where samples are copies", least=MIN_COVERAGE, note="% covered, copies counted")
def copied(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """The sampling interval where some samples of every question have the same long text; such copies count as
    one sample.
    """
    for n_questions, n in itertools.product((30, 198), (8, 64)):
        for share in COPY_SHARES:
            rates = []
            k = max(2, round(share * n))
            texts = [
                reply_checksum(f"{number if number % n >= k else number // n} " * 1000)
                for number in range(n_questions * n)
            ]
            question = np.repeat(np.arange(n_questions, dtype=np.uint32), n)
            equal = copies_among(question, np.array(texts), n_questions)
            assert equal is not None
            counts = equal[1]
            for cell in cells(n_questions):
                chances = cell.chances(rng, max(200, _repeats(repeats, n_questions) // 4))
                right = draw(rng, chances, n - k) + k * draw(rng, chances, 1)
                plain = covered(stats.sampling_limits(right, np.full(n_questions, float(n))), chances.mean(axis=-1))
                limits = stats.sampling_limits(right * counts / n, counts)
                rates.append(covered(limits, chances.mean(axis=-1))._replace(note=100 * plain.rate))
            yield Row(f"{n_questions} × {n}, {100 * share:g}%", rates)


# pass@k, pass^k, maj@k

GRID = 200
"""Number of parts to which probabilities are rounded, so that estimates are computed once for each."""

WRONG_ANSWERS = (0.6, 0.3, 0.1)
"""Shares of a question's wrong answers."""


def of_draws(n: int, k: int, least: int) -> Array:
    """By the number of correct samples out of n: the probability of at least `least` correct ones out of k, and its
    variance (NaN for k = n).
    """

    def value(n: int, c: int) -> float:
        return at_least_of_k(n, c, k, least)

    return np.array([[value(n, c), without_one(n, c, value) if k < n else math.nan] for c in range(n + 1)])


@table("over-k", 'Sampling interval of pass@k and pass^k (beyond half of the samples: "at most")', least=MIN_COVERAGE)
def over_k(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """The sampling interval of pass@k and pass^k, for k up to half of the samples, and beyond ("at most")."""
    for n_questions, (n, k) in itertools.product(
        (30, 198), ((4, 2), (8, 2), (8, 4), (16, 8), (64, 8), (64, 32), (4, 4), (8, 6), (16, 16), (64, 48))
    ):
        rates, half = [], 2 * k <= n
        tables = [of_draws(n, k, least) for least in (1, k)]
        for cell in cells(n_questions):
            chances = cell.chances(rng, _repeats(repeats, n_questions))
            right = draw(rng, chances, n).astype(int)
            for table, truth in zip(tables, (1 - (1 - chances) ** k, chances**k), strict=True):
                drawn = table[right]
                mean, variance = drawn[..., 0].mean(axis=-1), drawn[..., 1].sum(axis=-1) / n_questions**2
                if half:
                    limits = stats.draw_limits(mean, variance, n_questions, n_questions * n / k)
                else:
                    limits = stats.draw_limits(mean, np.full_like(mean, np.nan), n_questions, n_questions)
                rates.append(covered(limits, truth.mean(axis=-1)))
        yield Row(f"{n_questions} × {n}, k = {k}", rates)


@table("over-k-questions", "Question interval of pass@k and pass^k (between 1.5 and 98.5%)", least=MIN_COVERAGE)
def over_k_questions(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """The question interval of pass@k and pass^k, at every k."""
    for n_questions, (n, k) in itertools.product((30, 198), ((4, 2), (4, 4), (16, 8), (16, 16), (64, 8), (64, 64))):
        rates = []
        tables = [of_draws(n, k, least)[:, 0] for least in (1, k)]
        for cell in cells(n_questions):
            truth = cell.chances(rng, 200_000 // n_questions)
            right = draw(rng, cell.chances(rng, _repeats(repeats, n_questions)), n).astype(int)
            for table, mean in zip(tables, ((1 - (1 - truth) ** k).mean(), (truth**k).mean()), strict=True):
                if 0.015 < mean < 0.985:
                    rates.append(covered(stats.question_limits(table[right]), float(mean)))
        yield Row(f"{n_questions} × {n}, k = {k}", rates)


TOKEN_RUNS = ((30, 1), (30, 2), (30, 4), (30, 64), (198, 1), (198, 8), (12, 4))
"""(questions, samples of each)."""

TOKEN_MODELS = ((0.3, 4.0), (0.7, 4.0), (0.7, 0.5), (0.9, 4.0))
"""(accuracy, concentration)."""


@table("mean-tokens", "Intervals of mean tokens", least=MIN_TOKEN_COVERAGE)
def tokens(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """Both intervals of the mean tokens of all samples and of the correct ones. Lengths are long-tailed, and wrong
    replies are longer.
    """
    level_mean = math.exp(8 + 0.7**2 / 2)
    for n_questions, n in TOKEN_RUNS:
        of = np.repeat(np.arange(n_questions), n)
        rates: dict[str, list[Rate]] = {"": [], ", new questions": []}
        for accuracy, concentration in TOKEN_MODELS:
            size, held, new_questions = max(20, repeats // 20), np.zeros(2), np.zeros(2)
            for _ in range(size):
                chance = Cell(n_questions, accuracy, concentration).chances(rng, 1)[0]
                level = rng.lognormal(8, 0.7, n_questions)
                right = rng.random(len(of)) < chance[of]
                drawn = level[of] * rng.lognormal(-0.125, 0.5, len(of)) * np.where(right, 1.0, 1.5)
                of_right = np.where(right, drawn, np.nan)
                rightly = (level * chance).sum() / chance.sum()
                truths = ((level * (1.5 - 0.5 * chance)).mean(), rightly)
                kinds = (level_mean * (1.5 - 0.5 * accuracy), level_mean)
                for which, values in enumerate((drawn, of_right)):
                    same, new = _token_limits(values, of, n_questions)
                    held[which] += same.low <= truths[which] <= same.high
                    new_questions[which] += new.low <= kinds[which] <= new.high
            rates[""] += [Rate(float(times) / size, size) for times in held]
            rates[", new questions"] += [Rate(float(times) / size, size) for times in new_questions]
        yield from [Row(f"{n_questions} × {n}{what}", cells_) for what, cells_ in rates.items()]


def _token_limits(values: Array, of: NDArray[np.intp], n_questions: int) -> tuple[stats.Interval, ...]:
    """Both intervals of a mean of tokens. An interval that the score withholds counts as containing the truth."""
    if np.isnan(values).all():
        return (ALL_TOKENS, ALL_TOKENS)
    both = mean_of_tokens(values, of, np.arange(n_questions))
    return (both.sampling or ALL_TOKENS, both.question or ALL_TOKENS)


@table("majority", "Sampling interval of maj@k", least=MIN_COVERAGE)
def majority(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """The sampling interval of maj@k, for k up to half of the samples; four answers to each question."""
    repeats = max(repeats // 10, 50)
    n_questions = 30
    for n, k in ((4, 2), (8, 4), (16, 8), (32, 16)):
        truths = _majority_truths(k)
        rates = []
        for cell in cells(n_questions):
            places = np.rint(cell.chances(rng, repeats) * GRID).astype(int)
            votes, which = np.unique(
                rng.multinomial(n, _answer_chances(places / GRID)).reshape(-1, 1 + len(WRONG_ANSWERS)),
                axis=0,
                return_inverse=True,
            )
            estimates = np.array([_majority(tuple(row), k) for row in votes.tolist()])
            values, variances = np.moveaxis(estimates[which.reshape(places.shape)], -1, 0)
            limits = stats.draw_limits(
                values.mean(axis=-1), variances.sum(axis=-1) / n_questions**2, n_questions, n_questions * n / k
            )
            rates.append(covered(limits, truths[places].mean(axis=-1)))
        yield Row(f"{n_questions} × {n}, k = {k}", rates)


def _answer_chances(p: Array) -> Array:
    """The probabilities of the correct answer and of each wrong one: (…, answers), where p is (…)."""
    return np.stack([p, *((1 - p) * share for share in WRONG_ANSWERS)], axis=-1)


@functools.lru_cache(maxsize=200_000)
def _majority(votes: tuple[int, ...], k: int) -> tuple[float, float]:
    """maj@k and its variance by the jackknife. votes: number of votes for each answer, the correct one first."""
    groups = [VoteGroup(size, size if rank == 0 else 0) for rank, size in enumerate(votes) if size]
    return maj_at_k(groups, 0, k), maj_jackknife(groups, 0, k)


def _majority_truths(k: int) -> Array:
    """maj@k of k new samples, for each probability on the grid: the sum over all distributions of k votes."""
    answers = 1 + len(WRONG_ANSWERS)
    votes = np.array([vote for vote in itertools.product(range(k + 1), repeat=answers) if sum(vote) == k])
    ways = np.array([math.factorial(k) / math.prod(map(math.factorial, vote)) for vote in votes.tolist()])
    winners = votes == votes.max(axis=1, keepdims=True)
    shares = ways * winners[:, 0] / winners.sum(axis=1)
    chances = _answer_chances(np.arange(GRID + 1) / GRID)
    return np.asarray(np.prod(chances[:, None, :] ** votes, axis=-1) @ shares)


# Differences


@table(
    "published",
    "Published score of the same model called not compatible",
    most=MAX_ALARMS,
    note="% found, all questions 3 points easier",
)
def published(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often a run is called incompatible with a score of the same model that was published rounded to one decimal.
    n, m: samples per question of the run and of the published score. The note of a cell: how often a run of a model
    that is 3 points better is called incompatible.
    """
    for n_questions, (n, m) in itertools.product(
        (30, 198, 500), ((1, 1), (4, 1), (4, 4), (16, 4), (16, 64), (64, 1), (64, 64))
    ):
        rates = []
        for cell in cells(n_questions):
            chances = cell.chances(rng, _repeats(repeats, n_questions))
            rates.append(_published_alarms(rng, chances, chances, n, m))
            better = np.clip(chances + 0.03, 0, 1)
            rates[-1] = rates[-1]._replace(note=100 * _published_alarms(rng, better, chances, n, m).rate)
        yield Row(f"{n_questions} × {n} v {m}", rates)


def _published_alarms(rng: np.random.Generator, ours: Array, theirs: Array, n: int, m: int) -> Rate:
    """How often a run is called incompatible with a published score.

    ours, theirs: probabilities of the two models, (repeats, Q). n, m: samples per question of the run and of the score.
    """
    n_questions = ours.shape[-1]
    counts = np.full(n_questions, float(n))
    correct = draw(rng, ours, n)
    mean = correct.mean(axis=-1) / n
    printed = np.round(draw(rng, theirs, m).mean(axis=-1) / m, 3)
    variance = difference_stats.published_variance(
        mean,
        stats.sampling_variance_of_mean(correct, counts),
        stats.effective_samples(counts),
        printed,
        np.asarray(float(n_questions * m)),
        0.001,
    )
    alarms = np.abs(mean - printed) > Z_95 * np.sqrt(variance)
    return Rate(float(alarms.mean()), alarms.size)


@table("published-pass", "Published pass@k of the same model called not compatible", most=MAX_ALARMS)
def published_pass(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often a run is called incompatible with a published pass@k of the same model."""
    for n_questions, (n, m, k) in itertools.product((30, 198), ((16, 8, 8), (64, 8, 8), (64, 64, 8), (8, 8, 8))):
        table, spread = of_draws(n, k, 1).T
        theirs = of_draws(m, k, 1)[:, 0]
        rates = []
        for cell in cells(n_questions):
            chances = cell.chances(rng, _repeats(repeats, n_questions))
            right = draw(rng, chances, n).astype(int)
            printed = np.round(theirs[draw(rng, chances, m).astype(int)].mean(axis=-1), 3)
            measurable = 2 * k <= n
            values, spreads = table[right], spread[right]
            single = (values * (1 - values) + spreads).mean(axis=-1)
            variance = difference_stats.published_variance(
                values.mean(axis=-1),
                spreads.sum(axis=-1) / n_questions**2 if measurable else np.full(len(right), math.nan),
                np.asarray(n_questions * (n / k if measurable else 1.0)),
                printed,
                np.asarray(n_questions * m / k),
                0.001,
                single if measurable else np.full(len(right), math.nan),
            )
            alarms = np.abs(values.mean(axis=-1) - printed) > Z_95 * np.sqrt(variance)
            rates.append(Rate(float(alarms.mean()), alarms.size))
        yield Row(f"{n_questions} × {n} v {m}, k = {k}", rates)


@table(
    "two-runs", "Two runs of one model found to differ (sampling line)", most=MAX_ALARMS, note="% covered, two models"
)
def two_runs(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often two runs of one model are found to differ on the same questions; the note is how often the interval
    contains the difference from another model.
    """
    for n_questions, (n, m) in itertools.product((30, 198, 500), ((1, 1), (2, 2), (4, 4), (64, 64), (64, 4), (64, 1))):
        rates = []
        for cell in cells(n_questions):
            size = _repeats(repeats, n_questions)
            chances, others = cell.chances(rng, size), cell.chances(rng, size)
            counts, other_counts = np.full(n_questions, float(n)), np.full(n_questions, float(m))
            ours, same = draw(rng, chances, n), draw(rng, chances, m)
            variance = difference_stats.score_variance(ours, counts, same, other_counts)
            z = (ours / n - same / m).mean(axis=-1) / np.sqrt(np.where(variance > 0, variance, 1.0))
            theirs = draw(rng, others, m)
            limits = difference_stats.scaled_difference(ours, counts, theirs, other_counts)(1.0)
            cover = covered(limits, (chances - others).mean(axis=-1)).rate
            rates.append(Rate(float((np.abs(z) > Z_95).mean()), size, 100 * cover))
        yield Row(f"{n_questions} × {n} v {m}", rates)


FEW_SAMPLES = (
    (5, 8, 0.9, 0.3),
    (30, 1, 0.98, 2.0),
    (30, 8, 0.99, 0.5),
    (198, 1, 0.99, 2.0),
    (500, 1, 0.99, 0.5),
    (500, 1, 0.01, 0.5),
    (30, 16, 0.5, 4.0),
    (198, 4, 0.6, 2.0),
)
"""(questions, samples of each, accuracy, concentration); most are near 0 or 100%, where few samples vary."""


@table("smallest", "The smallest difference that is printed is found", least=0.77, note="points, median")
def smallest(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often a model is found to be worse if it is worse by the smallest detectable difference printed for two runs
    of one model.
    """
    for n_questions, n, accuracy, concentration in FEW_SAMPLES:
        chances = Cell(n_questions, accuracy, concentration).chances(rng, _repeats(repeats, n_questions))
        counts = np.full(n_questions, float(n))
        low = accuracy < 0.5  # where a model can only be better
        room = chances if not low else 1 - chances
        printed = difference_stats.smallest_difference(
            *difference_stats.difference_variance(draw(rng, chances, n), counts, draw(rng, chances, n), counts)
        )
        able = printed < room.mean(axis=-1)  # a model cannot be worse by more than its accuracy
        changed = room * (1 - np.where(able, printed, 0.0) / room.mean(axis=-1))[:, None]
        base, theirs = draw(rng, chances, n), draw(rng, 1 - changed if low else changed, n)
        variance = difference_stats.score_variance(base, counts, theirs, counts)
        z = np.abs((base - theirs).mean(axis=-1) / n) / np.sqrt(np.where(variance > 0, variance, 1.0))
        rate = Rate(float((z > Z_95)[able].mean()), int(able.sum()), 100 * float(np.median(printed)))
        yield Row(f"{n_questions} × {n}, {100 * accuracy:g}%", [rate])


@table("two-models", "Two equally good models found to differ (question line)", most=MAX_ALARMS)
def two_models(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often two models that are equally good on the whole kind of question are found to differ on other
    questions.
    """
    for n_questions, n in itertools.product((30, 198, 500), (1, 4, 64)):
        rates = []
        for cell in cells(n_questions):
            chances = cell.chances(rng, _repeats(repeats, n_questions))
            prior_a, prior_b = cell.accuracy * cell.concentration, (1 - cell.accuracy) * cell.concentration
            others = rng.beta(prior_a + 10 * chances, prior_b + 10 * (1 - chances))
            gaps = draw(rng, chances, n) / n - draw(rng, others, n) / n
            limits = difference_stats.question_difference(gaps).limits
            outside = (limits.low > 0) | (limits.high < 0)
            rates.append(Rate(float(outside.mean()), outside.size))
        yield Row(f"{n_questions} × {n}", rates)


@table("recovery", "The recovery of a model of 95% is covered", least=0.94, note="% covered, other questions")
def recovery(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often the interval of the ratio of two accuracies contains the true ratio, for the same questions and (the
    note) for other questions, for which the printed interval is never inside the interval for the same questions.
    """
    for n_questions, (n, m) in itertools.product((30, 198), ((1, 1), (4, 4), (16, 4))):
        counts, other_counts, rates = np.full(n_questions, float(n)), np.full(n_questions, float(m)), []
        for cell in cells(n_questions):
            size = max(1, _repeats(repeats, n_questions) // 4)
            chances, prior = cell.chances(rng, size), cell.concentration
            tuned = rng.beta(cell.accuracy * prior + 10 * chances, (1 - cell.accuracy) * prior + 10 * (1 - chances))
            ours, theirs = draw(rng, 0.95 * tuned, n), draw(rng, chances, m)
            same, new = ratio_limits_of(ours, counts, theirs, other_counts)
            wider = stats.IntervalEnds(np.minimum(same.low, new.low), np.maximum(same.high, new.high))
            rates.append(
                covered(same, 0.95 * tuned.mean(axis=-1) / chances.mean(axis=-1))._replace(
                    note=100 * covered(wider, 0.95).rate
                )
            )
        yield Row(f"{n_questions} × {n} v {m}", rates)


def ratio_limits_of(ours: Array, counts: Array, theirs: Array, other_counts: Array) -> tuple[stats.IntervalEnds, ...]:
    """The intervals of the ratio of two accuracies, for the same and for other questions, in each repetition."""

    same = difference_stats.scaled_difference(ours, counts, theirs, other_counts)

    def new(ratio: Array) -> stats.IntervalEnds:
        return difference_stats.question_difference(ours / counts - ratio[:, None] * theirs / other_counts).limits

    return tuple(difference_stats.ratio_limits(limits, ours.shape[:-1]) for limits in (same, new))


@table("many", "Any of the comparisons called different, by Holm", most=0.055, note="% without")
def many_tests(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often at least one difference is found among several runs of one model that are each compared with a baseline
    on four benchmarks.
    """
    for n_runs in (1, 3, 5, 10):
        plain = adjusted = 0
        for _ in range(repeats):
            base = rng.standard_normal(4)
            z = (rng.standard_normal((n_runs, 4)) - base).ravel() / math.sqrt(2)
            p_values = [math.erfc(abs(value) / math.sqrt(2)) for value in z]
            plain += min(p_values) < 0.05
            adjusted += min(difference_stats.holm(p_values)) < 0.05
        yield Row(f"{n_runs} runs", [Rate(adjusted / repeats, repeats, 100 * plain / repeats)])


# The mean of a suite

SUITES = (
    ((30, 64), (30, 64), (500, 4)),
    ((30, 4), (40, 4), (198, 2), (200, 1), (80, 1)),
    ((30, 16), (30, 4)),
    ((20, 2),) * 10,
    ((30, 4),) * 6,
)
"""The suites: (questions, samples per question) of their benchmarks."""

PLANNED_ACCURACIES = (0.01, 0.05, 0.2, 0.32, 0.5, 0.8, 0.95, 0.99)

DRAWS_PER_QUESTION = 1000
"""Number of draws whose mean is one question's probability in a set of quantiles (`question_sets`)."""


def question_sets(rng: np.random.Generator, n_questions: int, accuracy: float) -> Iterator[Array]:
    """Yield sets of probabilities with about this accuracy, spread over the questions in different ways.

    The sets are: the quantiles of four Beta distributions, from mostly certain to mostly uncertain questions; equal
    questions; a tenth of the questions uncertain and the others always right or wrong; and two kinds of questions,
    close and far apart.
    """
    for concentration in (0.2, 0.5, 2.0, 8.0):
        drawn = rng.beta(
            accuracy * concentration, (1 - accuracy) * concentration, size=n_questions * DRAWS_PER_QUESTION
        )
        yield np.sort(drawn).reshape(n_questions, -1).mean(axis=-1)
    yield np.full(n_questions, accuracy)
    uncertain = n_questions // 10
    right = round(min(max(n_questions * accuracy - uncertain / 2, 0), n_questions - uncertain))
    rest = (n_questions * accuracy - right) / uncertain
    if 0 <= rest <= 1:
        yield np.repeat([rest, 1.0, 0.0], [uncertain, right, n_questions - uncertain - right])
    for apart in (0.3, 0.8):
        step = apart * min(accuracy, 1 - accuracy)
        yield np.repeat([accuracy - step, accuracy + step], n_questions // 2)


def changed_models(chances: Array, difference: float) -> Iterator[Array]:
    """Yield the probabilities of models whose accuracy differs by `difference`: worse and better models, each in two
    ways.

    Every question's probability of a correct (or of a wrong) sample falls by the same factor, or all are shifted by the
    same step on the logit scale. A model that would need an accuracy below 1% of the available range is omitted.
    """
    for sign, room in ((-1, chances), (1, 1 - chances)):
        if difference >= 0.98 * room.mean():
            continue
        less = room * (1 - difference / room.mean())
        yield less if sign < 0 else 1 - less
        inner = np.clip(room, 1e-12, 1 - 1e-12)
        low, high = 0.0, 60.0
        for _ in range(60):
            step = (low + high) / 2
            moved = inner / (inner + (1 - inner) * math.exp(step))
            low, high = (step, high) if room.mean() - moved.mean() < difference else (low, step)
        if abs(room.mean() - moved.mean() - difference) < 1e-3 * difference:
            yield moved if sign < 0 else 1 - moved


@table("smallest-planned", "A planned difference is found", least=0.77, note="points")
def planned(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often `harness compare` detects, on the line for the same questions, a true difference that `harness plan`
    gives for a number of samples; the note is the planned difference.
    """
    for n_questions, n in itertools.product((30, 500), (1, 4, 16, 64)):
        rates = []
        for accuracy in PLANNED_ACCURACIES:
            for chances in question_sets(rng, n_questions, accuracy):
                spread = spread_of(chances)
                named = float(difference_stats.smallest_difference(*difference_stats.planned_variance(spread, n), 2))
                for other in changed_models(chances, named):
                    found = _found_by_holm(rng, chances, other, n, repeats // 2)
                    rates.append(Rate(found, repeats // 2, 100 * named))
        yield Row(f"{n_questions} × {n}", rates)


MARGIN_SIZES = ((198, 1), (500, 1), (30, 4), (30, 16), (30, 64), (500, 2), (500, 4), (500, 16), (500, 64))
"""(questions, samples of each) for which margins are planned."""


@table("margin-planned", "A planned margin is shown by an equally good model", least=0.77, note="points")
def margin_planned(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often `harness compare --margin` calls an equally good model not worse, with the margin that `harness plan
    --margin` gives for a number of samples; the note is this margin.
    """
    return _margins(rng, repeats, lambda chances, _: iter([chances]))


@table("margin-false", "A model that is worse by the margin is called not worse", most=MAX_FALSE_MARGIN, note="points")
def margin_false(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often `harness compare --margin` calls a model that is worse by exactly the margin not worse; the note is the
    margin, as in `margin_planned`.
    """

    def worse(chances: Array, margin: float) -> Iterator[Array]:
        return (other for other in changed_models(chances, margin) if other.mean() < chances.mean())

    return _margins(rng, repeats, worse)


def _margins(rng: np.random.Generator, repeats: int, others: Callable[[Array, float], Iterator[Array]]) -> list[Row]:
    """A row for each number of questions and samples: how often the models of `others` are called not worse.

    others: returns the probabilities of the new models for those of the baseline and the margin.
    """
    rows = []
    for n_questions, n in MARGIN_SIZES:
        rates, size = [], max(20, repeats // 2)
        for accuracy in PLANNED_ACCURACIES:
            for chances in question_sets(rng, n_questions, accuracy):
                spread = spread_of(chances)
                margin = difference_stats.margin_reach(spread, n).smallest()
                for other in others(chances, margin):
                    counts = np.full(n_questions, float(n))
                    ours, theirs = (draw(rng, np.broadcast_to(p, (size, n_questions)), n) for p in (other, chances))
                    low = difference_stats.scaled_difference(ours, counts, theirs, counts)(1.0).low
                    rates.append(Rate(float((low > -margin).mean()), size, 100 * margin))
        rows.append(Row(f"{n_questions} × {n}", rates))
    return rows


UNEQUAL_SIZES = ((64, 1), (64, 4), (64, 16), (256, 64), (1024, 64), (16, 64), (4, 64))
"""Samples per question of a new run, and of the existing run or published score."""


@table("planned-beside-run", "A difference planned beside a run is found", least=0.77, note="points")
def planned_beside_run(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often `harness compare` detects, on the line for the same questions, a true difference that
    `planned_variance` gives for a new run of n samples compared with a run of m. The spread is that of either model;
    the note is the planned difference.
    """

    def found(chances: Array, other: Array, n: int, m: int, size: int) -> list[float]:
        return [_found_by_holm(rng, chances, other, m, size, n), _found_by_holm(rng, other, chances, m, size, n)]

    return _planned_beside(rng, repeats, 2, 0.0, found)


@table("planned-beside-score", "A difference planned beside a published score is found", least=0.77, note="points")
def planned_beside_score(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often `harness verify` detects a true difference that `planned_variance` gives for a run of n samples
    compared with a published score of m; the note is the planned difference.
    """

    def found(chances: Array, other: Array, n: int, m: int, size: int) -> list[float]:
        wide = (size, len(chances))
        return [_published_alarms(rng, np.broadcast_to(chances, wide), np.broadcast_to(other, wide), n, m).rate]

    return _planned_beside(rng, repeats, 1, 0.001, found)


def _planned_beside(
    rng: np.random.Generator,
    repeats: int,
    n_tests: int,
    unit: float,
    found: Callable[[Array, Array, int, int, int], list[float]],
) -> list[Row]:
    """A row for each number of questions and each of `UNEQUAL_SIZES`.

    unit: the unit of the last digit that the other side prints. found: returns the rates for the probabilities of the
    planned and of the other model, the samples of both sides, and the number of repetitions.
    """
    rows, size = [], max(20, repeats // 4)
    for n_questions, (n, m) in itertools.product((30, 500), UNEQUAL_SIZES):
        rates = []
        for accuracy in PLANNED_ACCURACIES:
            for chances in question_sets(rng, n_questions, accuracy):
                spread = spread_of(chances)
                named = float(
                    difference_stats.smallest_difference(
                        *difference_stats.planned_variance(spread, n, m, unit), n_tests
                    )
                )
                for other in changed_models(chances, named):
                    rates += [Rate(rate, size, 100 * named) for rate in found(chances, other, n, m, size)]
        rows.append(Row(f"{n_questions} × {n} v {m}", rates))
    return rows


def _found_by_holm(
    rng: np.random.Generator, chances: Array, other: Array, n: int, size: int, n_other: int | None = None
) -> float:
    """How often p of the line for the same questions is below 5% after Holm's correction of both lines.

    n, n_other: samples per question of the model with these probabilities and of the other model; None: the same
    number.
    """
    m = n if n_other is None else n_other
    counts, other_counts = np.full(len(chances), float(n)), np.full(len(chances), float(m))
    wide = (size, len(chances))
    ours, theirs = draw(rng, np.broadcast_to(other, wide), m), draw(rng, np.broadcast_to(chances, wide), n)
    gaps = ours / m - theirs / n
    variance = difference_stats.score_variance(ours, other_counts, theirs, counts)
    z = gaps.mean(axis=-1) / np.sqrt(np.where(variance > 0, variance, 1.0))
    t = gaps.mean(axis=-1) / np.sqrt(difference_stats.question_difference(gaps).variance)
    p_sampling = np.array([stats.normal_two_sided(value) for value in z])
    # The other line matters only where p of this line is between 2.5% and 5%.
    p_question = np.array(
        [
            stats.t_two_sided(value, len(chances) - 1) if 0.025 <= p < 0.05 else 1.0
            for value, p in zip(t, p_sampling, strict=True)
        ]
    )
    return float(((p_sampling < 0.025) | ((p_sampling < 0.05) & (p_question < 0.025))).mean())


STRIDES = (0, 1, 3)
"""Steps through `ACCURACIES` between the benchmarks of a suite, which makes them equally hard, slightly different, or
very different.
"""


@table("suite", "Interval of the mean of a suite's benchmarks", least=MIN_COVERAGE)
def suite(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """Both intervals of a suite's mean, in which each benchmark counts once."""
    return _of_suites(rng, repeats, _suite_rates)


@table(
    "suite-runs",
    "Two runs of one model found to differ in the mean of a suite",
    most=MAX_ALARMS,
    note="% covered, two models",
)
def suite_runs(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often the means of two runs of one model over a suite are found to differ; the note is how often the interval
    contains the difference from another model.
    """
    return _of_suites(rng, repeats, _suite_alarms)


def _of_suites(
    rng: np.random.Generator,
    repeats: int,
    rates: Callable[[np.random.Generator, int, list[Cell], list[int]], list[Rate]],
) -> list[Row]:
    """A row for each suite, with the rates of its cells.

    rates: returns the rates for the benchmarks' cells and samples per question.
    """
    rows = []
    for shape in SUITES:
        suite_rates = []
        for concentration in CONCENTRATIONS:
            for first in range(len(ACCURACIES)):
                for stride in STRIDES:
                    accuracies = [ACCURACIES[(first + stride * index) % len(ACCURACIES)] for index in range(len(shape))]
                    parts = [
                        Cell(q, accuracy, concentration) for (q, _), accuracy in zip(shape, accuracies, strict=True)
                    ]
                    suite_rates += rates(rng, repeats // 2, parts, [n for _, n in shape])
        name = ", ".join(f"{q} × {n}" for q, n in shape)
        rows.append(
            Row(name if len(set(shape)) > 1 else f"{shape[0][0]} × {shape[0][1]}, {len(shape)} times", suite_rates)
        )
    return rows


def _suite_rates(rng: np.random.Generator, repeats: int, parts: list[Cell], samples: list[int]) -> list[Rate]:
    """How often the two intervals of the suite's mean contain the truth: the same questions, then other questions."""
    values, truths, of_samples, of_questions = [], [], [], []
    for cell, n in zip(parts, samples, strict=True):
        chances = cell.chances(rng, repeats)
        correct = draw(rng, chances, n)
        values.append(correct.mean(axis=-1) / n)
        truths.append(chances.mean(axis=-1))
        of_samples.append(stats.sampling_limits(correct, np.full(cell.n_questions, float(n))))
        of_questions.append(stats.question_limits(correct / n))
    means, kind = np.stack(values, axis=-1), sum(cell.accuracy for cell in parts) / len(parts)
    return [
        covered(
            stats.mean_limits(
                means, stats.IntervalEnds(*(np.stack(ends, axis=-1) for ends in zip(*ends_of, strict=True)))
            ),
            truth,
        )
        for ends_of, truth in ((of_samples, np.mean(truths, axis=0)), (of_questions, kind))
    ]


def _suite_alarms(rng: np.random.Generator, repeats: int, parts: list[Cell], samples: list[int]) -> list[Rate]:
    """How often the means of two runs of one model are found to differ; the note is how often the interval contains the
    difference from another model.
    """
    difference, variance, truth = np.zeros(repeats), np.zeros(repeats), np.zeros(repeats)
    values, ends = [], []
    for cell, n in zip(parts, samples, strict=True):
        chances, others = cell.chances(rng, repeats), cell.chances(rng, repeats)
        counts = np.full(cell.n_questions, float(n))
        ours, same, theirs = draw(rng, chances, n), draw(rng, chances, n), draw(rng, others, n)
        difference += (ours - same).mean(axis=-1) / n
        variance += difference_stats.score_variance(ours, counts, same, counts)
        truth += (chances - others).mean(axis=-1) / len(parts)
        values.append((ours - theirs).mean(axis=-1) / n)
        ends.append(difference_stats.scaled_difference(ours, counts, theirs, counts)(1.0))
    alarms = np.abs(difference) > Z_95 * np.sqrt(variance)
    limits = stats.IntervalEnds(*(np.stack(side, axis=-1) for side in zip(*ends, strict=True)))
    cover = covered(difference_stats.mean_difference_limits(np.stack(values, axis=-1), limits), truth).rate
    return [Rate(float(alarms.mean()), repeats, 100 * cover)]


@table("suite-planned", "A difference that is planned for the mean of a suite is found", least=0.77, note="points")
def suite_planned(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often two runs whose benchmarks all differ by the smallest difference planned for their mean are found to
    differ in the mean, with one test; the note is this difference.
    """
    return _of_suites(rng, repeats, _suite_power)


def _suite_power(rng: np.random.Generator, repeats: int, parts: list[Cell], samples: list[int]) -> list[Rate]:
    """How often two runs that differ by the smallest planned difference are found to differ; the note is this
    difference.

    Return a rate for a worse and one for a better model where such a model is possible.
    """
    sets = [cell.chances(rng, 1)[0] for cell in parts]
    spreads = [spread_of(chances) for chances in sets]
    planned_parts = [difference_stats.planned_variance(spread, n) for spread, n in zip(spreads, samples, strict=True)]
    named = float(difference_stats.smallest_difference(*variance_of_mean(planned_parts)))
    rates = []
    for worse in (True, False):
        rooms = [chances if worse else 1 - chances for chances in sets]
        if any(named >= 0.98 * room.mean() for room in rooms):
            continue
        difference, variance = np.zeros(repeats), np.zeros(repeats)
        for room, n in zip(rooms, samples, strict=True):
            counts, wide = np.full(len(room), float(n)), (repeats, len(room))
            less = room * (1 - named / room.mean())
            ours, theirs = (draw(rng, np.broadcast_to(chances, wide), n) for chances in (room, less))
            difference += (ours - theirs).mean(axis=-1) / n
            variance += difference_stats.score_variance(ours, counts, theirs, counts)
        found = np.abs(difference) > Z_95 * np.sqrt(np.where(variance > 0, variance, 1.0))
        rates.append(Rate(float(found.mean()), repeats, 100 * named))
    return rates


# The stop rule


MAX_ROUNDS = 400


@table("stopping", "Interval where the target error stops the run", least=MIN_COVERAGE, note="absolute bias / target")
def stopping(rng: np.random.Generator, repeats: int) -> Iterable[Row]:
    """How often the interval contains the truth when `--target-error` stops a run, which it does in stages; the note is
    the bias as a fraction of the target.
    """
    for n_questions, target in ((30, 0.02), (30, 0.01), (198, 0.01), (500, 0.01)):
        rates = []
        size = max(repeats // 8, 100)
        for cell in cells(n_questions):
            inside, bias = 0, 0.0
            for chances in cell.chances(rng, size):
                correct, rounds = draw(rng, chances, MIN_ROUNDS), MIN_ROUNDS
                while (error := reached_error(correct, rounds)) > target and rounds < MAX_ROUNDS:
                    more = min(MAX_ROUNDS, next_rounds(error, rounds, target)) - rounds
                    correct, rounds = correct + draw(rng, chances, more), rounds + more
                low, high = stats.sampling_limits(correct, np.full(n_questions, float(rounds)))
                inside += bool(low <= chances.mean() <= high)
                bias += (correct.mean() / rounds - chances.mean()) / size
            rates.append(Rate(inside / size, size, abs(bias) / target))
        yield Row(f"{n_questions}, target {100 * target:g}", rates)


def lines(table: Table) -> list[str]:
    """Return the table in Markdown, line by line."""
    heads = ["questions × samples", "lowest %", "highest %", *([table.note] if table.note else [])]
    lines = [f"**{table.title}**", "", f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for row in table.rows:
        rates = [100 * rate.rate for rate in row.rates]
        notes = [rate.note for rate in row.rates if not math.isnan(rate.note)]
        cells_ = [row.name, f"{min(rates):.1f}", f"{max(rates):.1f}"]
        if table.note:
            cells_.append(f"{min(notes):.3g} to {max(notes):.3g}" if notes else "–")
        lines.append(f"| {' | '.join(cells_)} |")
    return lines


def main() -> int:
    """Print the tables. Returns 1 if a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", choices=sorted(TABLES), action="append")
    given = parser.parse_args()
    all_hold = True
    for name in given.table or TABLES:
        table = TABLES[name](np.random.default_rng(given.seed), given.repeats)
        print("\n".join(lines(table)))
        broken = table.broken()
        bounds = " and ".join(
            text
            for bound, text in (
                (table.least > 0, f"at least {100 * table.least:g}%"),
                (table.most < 1, f"at most {100 * table.most:g}%"),
            )
            if bound
        )
        answer = "NO: " + ", ".join(broken) if broken else "yes"
        print(f"\n{bounds} in every cell, up to the simulation's own error: {answer}\n" if bounds else "")
        all_hold &= not broken
    return 0 if all_hold else 1


if __name__ == "__main__":
    raise SystemExit(main())
