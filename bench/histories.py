"""Histories of nights for which no rule was designed: random steps, creep, odd nights, temporary falls, seasons, new
hardware.

    python -m bench.simulate_nights --cells none --histories 20 [--seed 2026-11-29]

Each kind draws its parameters from the seed: the benchmark (questions, rounds, difficulty, floor or baseline, stated
and true deviation of runs) or the metric, and, for each repository, the nights and sizes of its changes. The decisions
are the product's (`simulation.play` for a benchmark, `metrics.line_outcome` for a line), and so is the memory,
`nightly_history.States`, for many repositories at once. A night is healthy if the model is not below the reference, and
lost if it is below by the loss or more; nights in between count as neither.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.deciding import gate, nightly_history, simulation
from harness.gates import metrics
from harness.scoring.stats import Array

NIGHTS, ALARM, POWER = 60, 0.01, 0.95
Rng = np.random.Generator


class Kind(NamedTuple):
    """A kind of history. falls: function that draws the falls, (R, nights), in multiples of the loss. law: distribution
    of the runs' deviations: normal, t, walk (steps of 0.3 deviations, on top of normal deviations), the share of a
    night's deviation that carries over, or the shares of kinds of nodes (`NODES`). times: ratio of the true to the
    stated deviation. undecided: largest share of undecided samples. renewed: whether one night makes a new baseline at
    its accuracy. answers: whether someone sets the baseline to the lowest right level when a line asks for it.
    """

    falls: Callable[[Rng, int], Array]
    law: str | float | tuple[float, ...] = "normal"
    times: float = 1.0
    copies: bool = False
    undecided: float = 0.0
    renewed: bool = False
    answers: bool = True


NODES = 4.0
"""Distance between the levels of two kinds of nodes, in deviations of a node's runs; for three kinds, of neighbors."""

NUMBERS = np.arange(NIGHTS)


def _step(rng: Rng, n: int, low: float = 1.0, high: float = 2.0) -> Array:
    """A permanent fall that starts on a night between 5 and 45."""
    at, depth = rng.integers(5, 45, (n, 1)), rng.uniform(low, high, (n, 1))
    return np.asarray(depth * (at <= NUMBERS))


def _creep(rng: Rng, n: int) -> Array:
    """A fall that grows from some night on, up to twice the loss."""
    at, slope = rng.integers(5, 30, (n, 1)), np.exp(rng.uniform(math.log(0.03), math.log(0.3), (n, 1)))
    return np.clip(slope * (NUMBERS - at), 0, 2)


def _odd(rng: Rng, n: int) -> Array:
    """Single nights that are worse, with a recovery the next day."""
    share, depth = rng.uniform(0.05, 0.3, (n, 1)), rng.uniform(1, 2, (n, 1))
    bad = rng.random((n, NIGHTS)) < share
    bad[:, 1:] &= ~bad[:, :-1]
    return np.asarray(depth * bad)


def _mended(rng: Rng, n: int) -> Array:
    """Repeated falls of one to seven nights."""
    every, lasts, first = (rng.integers(*ends, (n, 1)) for ends in ((9, 20), (1, 8), (2, 15)))
    return np.asarray(rng.uniform(1, 2, (n, 1)) * ((first <= NUMBERS) & ((NUMBERS - first) % every < lasts)))


def _alternating(rng: Rng, n: int) -> Array:
    """Every second night is worse."""
    return np.asarray(rng.uniform(1, 2, (n, 1)) * ((NUMBERS + rng.integers(0, 2, (n, 1))) % 2))


def _early(rng: Rng, n: int) -> Array:
    """A permanent fall that starts before a line has a verdict."""
    return np.asarray(rng.uniform(1, 2, (n, 1)) * (rng.integers(2, 5, (n, 1)) <= NUMBERS))


def _season(rng: Rng, n: int) -> Array:
    """A weekly wave of up to a third of the loss, and eventually a fall."""
    wave = rng.uniform(0.05, 0.33, (n, 1)) * np.sin(2 * np.pi * (NUMBERS + rng.integers(0, 7, (n, 1))) / 7)
    return np.asarray(wave + _step(rng, n, 1.35, 2.0))


def _hardware(rng: Rng, n: int) -> Array:
    """A permanent change by a fraction of the loss, up or down, and later a fall."""
    return np.asarray(_step(rng, n, -0.6, 0.4) + _step(rng, n, 1.4, 2.0))


def _better(rng: Rng, n: int) -> Array:
    """A rise that lasts some nights and disappears; never below the reference."""
    at, lasts = rng.integers(5, 30, (n, 1)), rng.integers(1, 25, (n, 1))
    return np.asarray(-rng.uniform(0.3, 1.5, (n, 1)) * ((at <= NUMBERS) & (at + lasts > NUMBERS)))


def _healthy(_rng: Rng, n: int) -> Array:
    """No change."""
    return np.zeros((n, NIGHTS))


KINDS = {
    "healthy": Kind(_healthy),
    "step": Kind(_step),
    "creep": Kind(_creep),
    "odd nights": Kind(_odd),
    "mended falls": Kind(_mended),
    "season": Kind(_season),
    "new hardware": Kind(_hardware),
    "better": Kind(_better),
    "new baseline": Kind(_hardware, renewed=True),
    "copies": Kind(_step, copies=True),
    "undecided": Kind(_step, undecided=0.04),
    "t noise": Kind(_step, law="t"),
    "lasting noise": Kind(_step, law=0.7),
    "noise twice as stated": Kind(_step, times=2.0),
    "two nodes": Kind(_step, law=(0.5, 0.5)),
    "one node in five": Kind(_step, law=(0.8, 0.2)),
    "three nodes": Kind(_step, law=(0.5, 0.3, 0.2)),
    "walk": Kind(_healthy, law="walk", answers=False),
    "persistent noise": Kind(_healthy, law=0.9, answers=False),
    "alternating nights": Kind(_alternating),
    "early fall": Kind(_early),
}
"""The kinds of histories by name."""


@dataclass
class Told:
    """The results of nights, (R, nights). verdict: 1 passed, 0 failed, NaN open. falls: in multiples of the loss."""

    falls: Array
    verdict: Array = field(default_factory=lambda: np.zeros(0))
    rounds: Array = field(default_factory=lambda: np.zeros(0))

    def row(self) -> list[float]:
        """Return the shares of failed and of open healthy nights, those of failed lost nights (the first, the next
        four, 1–20, and 41–60), and the mean rounds of healthy nights.
        """
        healthy, lost = self.falls <= 1e-9, self.falls >= 1 - 1e-9
        failed = self.verdict == 0
        first = lost & ~np.hstack([lost[:, :1] & False, lost[:, :-1]])
        after = np.array([lost & np.roll(first, k, axis=1) & (k <= NUMBERS) for k in range(1, 5)]).any(axis=0)
        parts = [(failed, healthy), (np.isnan(self.verdict), healthy)]
        parts += [(failed, lost & of) for of in (first, after, NUMBERS < 20, NUMBERS >= 40)]
        shares = [float(what[of].mean()) if of.any() else math.nan for what, of in parts]
        return [*(100 * each for each in shares), float(self.rounds[healthy].mean()) if healthy.any() else math.nan]


def noise(rng: Rng, kind: Kind, n: int) -> tuple[Array, float]:
    """Deviations of runs, (R, nights), and their lowest level. Their variance is 1, or, in a walk, that of a step's
    normal part.
    """
    values = rng.standard_normal((n, NIGHTS))
    if kind.law == "t":
        return np.asarray(rng.standard_t(3, (n, NIGHTS)) / math.sqrt(3)), 0.0
    if kind.law == "walk":
        return values + 0.3 * rng.standard_normal((n, NIGHTS)).cumsum(axis=1), 0.0
    if isinstance(kind.law, tuple):
        levels = -NODES * np.arange(len(kind.law))
        levels = levels - levels @ kind.law
        scale = math.sqrt(1 + levels**2 @ kind.law)
        return (values + rng.choice(levels, (n, NIGHTS), p=kind.law)) / scale, levels[-1] / scale
    if isinstance(kind.law, float):
        for night in range(1, NIGHTS):
            values[:, night] = kind.law * values[:, night - 1] + math.sqrt(1 - kind.law**2) * values[:, night]
    return values, 0.0


@dataclass(frozen=True)
class Benchmark:
    """A gate's benchmark, in points. baseline: samples per question; 0 for a floor. deviation: the true deviation."""

    questions: int
    rounds: int
    accuracy: float
    concentration: float
    baseline: int
    stated: float
    deviation: float
    loss: float

    @classmethod
    def drawn(cls, rng: Rng, kind: Kind) -> Benchmark:
        """A benchmark with a loss that its rounds can detect."""
        questions, rounds = ((30, 32), (100, 16), (198, 16), (500, 8))[rng.integers(4)]
        accuracy, concentration = rng.uniform(0.4, 0.95), math.exp(rng.uniform(math.log(0.5), math.log(4)))
        baseline, stated = int(rng.choice([0, 0, 4, 8])), math.exp(rng.uniform(math.log(0.2), math.log(1.2)))
        coin = 1e4 * accuracy * (1 - accuracy) * concentration / (1 + concentration) / questions
        most = 1 if kind.copies else rounds
        error = math.sqrt(
            coin * (1 / most + (1 / baseline if baseline else 0)) + 2.2 * stated**2 * (1 + (baseline > 0))
        )
        loss = min(rng.uniform(1, 1.5) * 4.2 * error, 50 * accuracy)
        true = stated * kind.times * math.exp(rng.normal(0, 0.25))
        return cls(questions, rounds, 100 * accuracy, concentration, baseline, stated, true, loss)

    def play(self, rng: Rng, kind: Kind, n: int) -> Told:
        """The nights of `n` repositories of a kind."""
        told, accuracy, loss = Told(kind.falls(rng, n)), self.accuracy / 100, self.loss / 100
        shape = self.concentration * accuracy, self.concentration * (1 - accuracy)
        chances = simulation.moved(rng.beta(*shape, (n, self.questions)), np.full(n, accuracy))
        deviations, renewed = self.deviation / 100 * noise(rng, kind, n)[0], rng.integers(15, 45)
        prior = nightly_history.Prior(self.stated / 100)
        states, before = nightly_history.States(prior, (n,)), np.zeros(n)
        reference = self.reference(rng, chances, np.full(n, accuracy) + deviations[:, -1])
        verdicts, rounds = [], []
        for night in range(NIGHTS):
            if kind.renewed and night == renewed:
                before = told.falls[:, night].copy()
                states = nightly_history.States(prior, (n,))
                now = accuracy - loss * before
                reference = self.reference(rng, chances, now + deviations[:, -1 - night], now)
            falls = told.falls[:, night]
            at = simulation.moved(chances, accuracy - loss * falls + deviations[:, night])
            played = self.night(rng, kind, at, reference, states.combine())
            verdict = np.where(played.failed, 0.0, np.where(played.passed, 1.0, math.nan))
            states.take(played.accuracy, played.variance, np.where(np.isnan(verdict), nightly_history.OPEN, verdict))
            verdicts.append(verdict)
            rounds.append(played.rounds)
        if kind.renewed:
            told.falls[:, renewed:] -= before[:, None]
        told.verdict, told.rounds = np.array(verdicts).T, np.array(rounds).T
        return told

    def reference(self, rng: Rng, chances: Array, accuracy: Array, floor: Array | float = math.nan) -> gate.Reference:
        """The reference of the gates: a baseline sampled at this accuracy, or the floor."""
        if not self.baseline:
            return gate.Reference(np.where(np.isnan(floor), self.accuracy / 100, floor) + np.zeros(len(chances)))
        counts = np.full(chances.shape, float(self.baseline))
        correct = rng.binomial(self.baseline, simulation.moved(chances, accuracy)).astype(float)
        held = gate.Reference(0.0, runs=1.0, correct=correct, counts=counts).part(self.questions)
        return held._replace(samples=np.full(len(chances), held.samples))

    def night(
        self, rng: Rng, kind: Kind, at: Array, reference: gate.Reference, known: nightly_history.Learned
    ) -> simulation.Played:
        """One night of each repository."""
        looks, loss, sd = gate.look_sizes(self.questions, self.rounds), self.loss / 100, self.stated / 100
        whole = gate.correct_reference(reference, gate.share_planned(reference), loss, known)
        error = gate.Planned.of(self.questions, self.rounds, whole, loss, sd)
        drifts = np.broadcast(error.common, error.drift, error.lost)
        errors = [gate.Planned(common, drift, error.part, lost) for common, drift, lost in drifts]
        each = {of: gate.rules(looks, of, ALARM, 1 - POWER) for of in {*errors}}
        levels = (np.array([getattr(each[of], name) for of in errors]).T for name in ("fail", "passes"))
        plan = gate.Rules(looks, *levels)
        return simulation.play(
            rng, at, plan, reference, loss, sd, whole=whole, copies=kind.copies, undecided=kind.undecided
        )


@dataclass(frozen=True)
class Line:
    """A line on a metric. sd: standard deviation of the metric's logarithm between runs. usual: the default spread;
    None if there is none. loss: loss of the logarithm. history: whether the reference is the accepted level of earlier
    nights.
    """

    sd: float
    usual: float | None
    loss: float
    history: bool

    @classmethod
    def drawn(cls, rng: Rng, kind: Kind) -> Line:
        """A line with a detectable loss."""
        sd = math.exp(rng.uniform(math.log(0.005), math.log(0.04)))
        usual = None if rng.random() < 0.5 else sd * math.exp(rng.normal(0, 0.3)) / kind.times
        return cls(sd, usual, rng.uniform(1.1, 1.7) * 4.4 * sd, bool(rng.random() < 0.7))

    def play(self, rng: Rng, kind: Kind, n: int) -> Told:
        """The nights of `n` repositories of a kind."""
        told, (runs, lowest) = Told(kind.falls(rng, n), rounds=np.ones((n, NIGHTS))), noise(rng, kind, n)
        limit = 0.0 if self.history else self.sd * lowest  # a floor that a healthy model reaches on each node
        values, verdicts = self.sd * runs - limit - self.loss * told.falls, []
        stated, free = memories = [
            nightly_history.States(nightly_history.Prior(of, nightly_history.LAWS, 0.0, metrics.SPAN), (n,))
            for of in (self.usual, None)
        ]
        n_accepted, level = np.zeros(n), np.full(n, math.nan)
        for night in range(NIGHTS):
            of_night, asks = self.verdict(stated.combine(), values[:, night], night)
            known, enough = free.combine(), n_accepted >= metrics.MIN_RUNS
            own = self.verdict(known, values[:, night], night)
            of_night, asks = (np.where(enough, *each) for each in zip(own, (of_night, asks), strict=True))
            laws = known.weights, known.variances * (1 + metrics.LEVEL_ERROR)
            says = metrics.line_outcome(level - values[:, night], self.loss, laws, (ALARM, POWER))
            of_night = np.where(np.isnan(level), of_night, np.select(says, (0.0, 1.0), math.nan))
            # The answer is one of the levels that the question names.
            named, right = np.array([known.level, known.other.level]), self.sd * lowest - limit
            answer = np.where(abs(named[1] - right) < abs(named[0] - right), *named[::-1])
            level = np.where(np.isnan(level) & asks & kind.answers, answer, level)
            for states in memories:
                states.take(values[:, night], 0.0, (of_night != 0) * 1.0)
            n_accepted += of_night != 0
            verdicts.append(of_night)
        told.verdict = np.array(verdicts).T
        if self.history or self.usual is None:
            told.falls[:, : metrics.MIN_RUNS] = 0.5  # A line has no verdict during its first nights.
        return told

    def verdict(self, known: nightly_history.Learned, values: Array, night: int) -> tuple[Array, NDArray[np.bool_]]:
        """The verdict of one night of each repository, and whether it asks which level is right."""
        asks = np.zeros(len(values), bool)
        if self.history:
            failed, passed, *questions = metrics.compare_night(known, values, self.loss, (ALARM, POWER))
            asks = questions[0] | questions[1]
        else:
            failed, passed = metrics.line_outcome(-values, None, (known.weights, known.variances), (ALARM, POWER))
        unknown = (night < metrics.MIN_RUNS) & (self.history or self.usual is None)
        verdict = np.where(unknown, math.nan, np.where(failed, 0.0, np.where(passed, 1.0, math.nan)))
        return verdict, asks & ~unknown


HEADS = ("history", "false alarms %", "open %", "first night %", "next four", "nights 1–20", "41–60", "rounds")


def rows(seed: int, n_settings: int, n: int, kinds: Sequence[str] = tuple(KINDS)) -> Iterator[tuple[str, list[float]]]:
    """Yield the name and row of each kind, for benchmarks and for lines, with means over settings of `n` repositories
    each.
    """
    for name in kinds:
        kind = KINDS[name]
        for of in (Benchmark, Line):
            if of is Benchmark and name in ("walk", "early fall"):
                continue  # A walk of accuracies is a fall; early nights are like later ones.
            if of is Line and (kind.copies or kind.undecided or kind.renewed or name in ("better", "new hardware")):
                continue  # These kinds concern samples, or change a line's reference.
            told = []
            for number in range(n_settings):
                rng = np.random.default_rng([seed, number, [*KINDS].index(name), of is Line])
                told.append(of.drawn(rng, kind).play(rng, kind, n).row())
            values = np.ma.masked_invalid(told)
            yield f"{name}, {of.__name__.lower()}", np.ma.filled(values.mean(axis=0), math.nan).tolist()


def report(seed: str, n_settings: int, n: int, kinds: Sequence[str] = tuple(KINDS)) -> None:
    """Print the rows for a seed."""
    print(f"seed {seed}\n| {' | '.join(HEADS)} |\n|{' ---: |' * len(HEADS)}", flush=True)
    for name, row in rows(zlib.crc32(seed.encode()), n_settings, n, kinds):
        cells = ["–" if math.isnan(value) else f"{value:.{1 + (place == 0)}f}" for place, value in enumerate(row)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
