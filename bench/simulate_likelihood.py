"""Tests how often the interval of a log-likelihood difference contains the true one, and how often `probe --replies`
accuses identical weights.

    python -m bench.simulate_likelihood --repeats 4000

Each repetition draws the gaps of the tokens of G questions, with a component that a question's tokens share, and the
base's second reading. Tails: of a normal distribution; of Student's t with 3 degrees of freedom; skew, where a few
tokens are much less likely (a centered lognormal). Unequal: the questions' numbers of tokens are lognormal, too.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from harness.probes.likelihood import LikelihoodDifference, mean_difference, verdict_of

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


if __name__ == "__main__":
    main()
