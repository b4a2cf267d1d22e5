"""Tests how often the interval of a log-likelihood difference contains the true one, and how often `probe --replies`
accuses identical weights.

    python -m bench.simulate_likelihood --repeats 4000

Each repetition draws the gaps of the tokens of G questions, with a component that a question's tokens share, and the
base's second reading. Tails: of a normal distribution; of Student's t with 3 degrees of freedom; skew, where a few
tokens are much less likely (a centered lognormal). Unequal: the questions' numbers of tokens are lognormal, too. A
second table simulates the line from difference to points: how often its band contains the score difference that another
copy shows. Copies scatter around the line, all equally or in proportion to their gaps; half the variance of each
difference comes from the base, which all share. Near: the other copy's gap is at most a tenth of the largest.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from harness.probes.likelihood import LikelihoodDifference, mean_difference, verdict_of
from harness.probes.points import Pair, expected

TAILS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "t of 3": lambda rng, n: rng.standard_t(3, n) / 3**0.5,
    "skew": lambda rng, n: (rng.lognormal(0, 1, n) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e),
}
"""Name → function that draws n gaps with mean 0 and standard deviation 1."""

SIZE = 0.03
"""Standard deviation of a token's gap in nats; between the same weights in two precisions, it is about 0.02."""

SHARED = 0.1
"""Standard deviation of the component shared by a question's tokens, as a fraction of `SIZE`."""


def difference_of(
    rng: np.random.Generator, tail: str, questions: int, unequal: bool, true: float, size: float
) -> LikelihoodDifference:
    """The gap of one reading."""
    parts = []
    for question in range(questions):
        n = int(np.clip(rng.lognormal(4.4, 0.7), 8, 2000)) if unequal else 100
        shared = SHARED * TAILS[tail](rng, 1)
        parts.append((str(question), true + size * (shared + TAILS[tail](rng, n)), np.empty(0)))
    return mean_difference("all", parts)


def band_holds(rng: np.random.Generator, n_pairs: int, scatter: float, in_proportion: bool, near: bool) -> bool:
    """Return whether the band of a line through `n_pairs` pairs contains another copy. scatter: in errors of a
    difference.
    """
    slope, differences = rng.normal(0, 4), rng.uniform(0.1, 1, n_pairs + 1)
    differences[-1] = differences[:-1].max() * (rng.uniform(0.01, 0.1) if near else rng.uniform(0.05, 1))
    shown = slope * differences + scatter * (differences if in_proportion else 1) * rng.standard_normal(n_pairs + 1)
    shown += (rng.standard_normal() + rng.standard_normal(n_pairs + 1)) / np.sqrt(2)
    pairs = [
        Pair(copy=str(i), benchmark="b", difference=difference, points=d, error=1.0)
        for i, (difference, d) in enumerate(zip(differences[:-1], shown[:-1], strict=True))
    ]
    band = expected("b", pairs, differences[-1])
    return band is not None and band.low <= shown[-1] <= band.high


def main() -> None:
    """Print a line for each setting."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--repeats", type=int, default=4000)
    repeats = options.parse_args().repeats
    head = ("covered", 9), ("accused at 0", 14), ("at 0.0005", 11), ("found at 0.012", 16)
    print(f"{'tail':8}{'questions':>10}{'tokens':>10}" + "".join(f"{name:>{width}}" for name, width in head))
    for tail, questions, unequal in itertools.product(TAILS, (5, 20, 100), (False, True)):
        rng, covered, differs = np.random.default_rng(1), 0, np.zeros(3)
        for _ in range(repeats):
            differences = [difference_of(rng, tail, questions, unequal, true, SIZE) for true in (0.0, 0.0005, 0.012)]
            noise = difference_of(rng, tail, questions, unequal, 0.0, SIZE / 10)
            covered += abs(differences[2].mean - 0.012) <= differences[2].reach - abs(differences[2].mean)
            differs += [verdict_of(difference, noise, 0.01)[0] == "differs" for difference in differences]
        shares = "".join(f"{share:>{width}.2%}" for share, width in zip(differs / repeats, (14, 11, 16), strict=True))
        print(f"{tail:8}{questions:>10}{'unequal' if unequal else 'equal':>10}{covered / repeats:>9.1%}{shares}")
    for n_pairs, scatter, *kinds in itertools.product((3, 6, 12), (0.0, 1.0, 4.0), (False, True), (False, True)):
        rng = np.random.default_rng(2)
        held = sum(band_holds(rng, n_pairs, scatter, *kinds) for _ in range(repeats)) / repeats
        kind = ("in proportion" if kinds[0] else "alike") + (", near" if kinds[1] else "")
        print(f"{n_pairs:3} pairs, scatter {scatter:g} {kind:20}: the band holds {held:.1%}")


if __name__ == "__main__":
    main()
