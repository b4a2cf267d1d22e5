"""Compares a gate that has a history with floors set from box plots of past runs.

    python -m bench.simulate_floors FILE [--nights 40] [--repositories 100] [--samples 1]

FILE is a table of models: model, runs, q1, iqr, low_fence, floor (shares of 1,319 questions, one sample each). A floor
is the lower fence minus two points. Nights are drawn with the median, and with the spread that the quartiles imply for
normal runs. At most half of a coin's variance, and at most 0.8 of the variance between runs, is sampling; the rest is a
deviation of the run, which the policy specifies. For the floor and for a gate with the same number of samples, prints
the healthy nights that fail, and the fall that one night detects with 80% probability.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path
from statistics import NormalDist

import numpy as np

from bench import histories
from harness.scoring.stats import Array

QUESTIONS, POWER = 1319, 0.8
FALLS = np.array([0.0, 2.0, 3.0, 4.0, 5.0, 7.0])
"""Simulated falls, in standard deviations of runs."""


def failed(mean: float, sd: float, samples: int, nights: int, n: int) -> tuple[Array, float]:
    """Return the shares of failed nights at each of `FALLS`, after healthy nights, and the share of false alarms in the
    healthy nights. Arguments are in points.
    """
    coin = mean * (100 - mean)
    share = min(0.5, 0.8 * sd * sd * QUESTIONS / coin)
    deviation = math.sqrt(sd * sd - share * coin / QUESTIONS)
    histories.NIGHTS, histories.NUMBERS = nights, np.arange(nights)
    found, alarms = [], []
    for number, fall in enumerate(FALLS):
        kind = histories.Kind(
            lambda _, n, fall=fall: np.full((n, nights), fall * sd) * (np.arange(nights) == nights - 1)
        )
        own = histories.Benchmark(QUESTIONS, samples, mean, share / (1 - share), 0, deviation, deviation, 1.0)
        told = own.play(np.random.default_rng([number, 1]), kind, n)
        found.append(float((told.verdict[:, -1] == 0).mean()))
        alarms.append(float((told.verdict[:, :-1] == 0).mean()))
    return np.array(found), float(np.mean(alarms))


def main() -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    parser.add_argument("--nights", type=int, default=40)
    parser.add_argument("--repositories", type=int, default=100)
    parser.add_argument("--samples", type=int, default=1)
    given = parser.parse_args()
    print("| model | median | sd | floor | its false alarms % | its fall | false alarms % of a gate | its fall |")
    for row in csv.DictReader(given.file.read_text("utf-8").splitlines()):
        q1, iqr, floor = (100 * float(row[name]) for name in ("q1", "iqr", "floor"))
        mean, sd = q1 + iqr / 2, iqr / (2 * NormalDist().inv_cdf(0.75))
        theirs = NormalDist(mean, sd).cdf(floor), mean - floor + NormalDist().inv_cdf(POWER) * sd
        found, alarms = failed(mean, sd, given.samples, given.nights, given.repositories)
        ours = float(np.interp(POWER, np.maximum.accumulate(found), sd * FALLS))
        cells = [f"{mean:.2f}", f"{sd:.2f}", f"{floor:.0f}", f"{100 * theirs[0]:.2g}", f"{theirs[1]:.1f}"]
        print(f"| {row['model']} | {' | '.join(cells)} | {100 * alarms:.2f} | {ours:.1f} |", flush=True)


if __name__ == "__main__":
    main()
