"""Tests by simulation whether `harness gate` keeps its promise: false alarms, losses found, samples used.

    python bench/simulate_gate.py [--repeats 2000]

A cell is an accuracy, a number of questions, a deviation of runs beyond sampling (at most 2/5 of the way to 100 %), and
a number of critical benchmarks, which share 1 % of false alarms. Questions have Beta chances; the row names the
concentration. Each gate has its own history of eight runs. The loss is what the plan says can be found in 95 %.
"fixed": rounds of one test with the same errors by someone who knows every variance. Exit code 1 if a row breaks a
promise by more than the simulation's own error.
"""

from __future__ import annotations

import argparse
import math
from statistics import NormalDist

import numpy as np

from harness.scoring import gate

MOST = {30: 32, 198: 16, 1319: 8}
HISTORY = 8
FALSE_ALARM, POWER = 0.01, 0.95


def _of_histories(rng: np.random.Generator, accuracy: float, sd: float, sampling: float, n: int) -> gate.Deviations:
    """The deviation that each of n gates learns from a history of its own: variances (n, nodes)."""
    runs = accuracy + math.sqrt(sd**2 + sampling) * rng.standard_normal((n, HISTORY))
    learnt = [gate.learnt_deviation(row, [sampling] * HISTORY, 0.0) for row in runs.tolist()]
    return learnt[0]._replace(variances=np.array([each.variances for each in learnt]))


def main() -> int:
    """Exit code 1 when a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=2000)
    repeats = parser.parse_args().repeats
    holds, shares, powers = True, [], []
    heads = ("accuracy", "questions", "sd", "benchmarks", "concentration", "loss", "false alarms of the gate %")
    print(f"| {' | '.join(heads)} | loss found % | passes % | rounds | fixed |")
    print(f"| {' | '.join(['---:'] * 11)} |")
    for accuracy in (0.5, 0.8, 0.95, 0.99):
        for n_questions, most in MOST.items():
            for points in (0.0, 0.5, 1.0, 2.0):
                for n_benchmarks in (1, 3, 8):
                    concentration = 0.5 if n_benchmarks == 3 else 2.0
                    rng = np.random.default_rng([int(100 * accuracy), n_questions, int(10 * points), n_benchmarks])
                    n = max(200, min(repeats, 1_500_000 // n_questions))
                    sd = min(points / 100, accuracy / 2.5, (1 - accuracy) / 2.5)
                    single = accuracy * (1 - accuracy) * concentration / (concentration + 1)
                    learnt = _of_histories(rng, accuracy, sd, single / n_questions / most, n)
                    drawn = rng.beta(accuracy * concentration, (1 - accuracy) * concentration, (n, n_questions))
                    drawn = gate.moved(drawn, np.full(n, accuracy))
                    of = gate.rules(most, FALSE_ALARM / n_benchmarks, 1 - POWER)
                    reference = gate.Reference(accuracy)
                    share = concentration / (concentration + 1)
                    typical = gate.learnt_deviation(
                        (accuracy + math.sqrt(sd**2 + single / n_questions / most) * np.array(_EIGHT)).tolist(),
                        [single / n_questions / most] * HISTORY, 0.0,
                    )  # fmt: skip
                    loss = gate.forecast(
                        n_questions, of, reference, accuracy / 2, POWER, typical, share, repeats=300
                    ).findable
                    if loss is None:
                        continue
                    run = accuracy + sd * rng.standard_normal(n).clip(-2.5, 2.5)
                    well = gate.play(rng, gate.moved(drawn, run), of, reference, loss, learnt)
                    lost = gate.play(rng, gate.moved(drawn, run - loss), of, reference, loss, learnt)
                    factor = NormalDist().inv_cdf(1 - FALSE_ALARM / n_benchmarks) + NormalDist().inv_cdf(POWER)
                    room = (loss / factor) ** 2 - sd**2
                    fixed = single / n_questions / room if room > 0 else math.inf
                    alarms = 1 - (1 - float(well.failed.mean())) ** n_benchmarks
                    error = n_benchmarks * math.sqrt(FALSE_ALARM / n_benchmarks / n)
                    holds &= alarms <= FALSE_ALARM + 3 * error
                    shares.append(float(well.rounds.mean()) / max(1.0, fixed))
                    powers.append(float(lost.failed.mean()))
                    print(
                        f"| {100 * accuracy:g} | {n_questions} | {points:g} | {n_benchmarks} | {concentration:g} | "
                        f"{100 * loss:.1f} | {100 * alarms:.2f} | {100 * powers[-1]:.1f} | "
                        f"{100 * well.passed.mean():.1f} | {well.rounds.mean():.1f} | {fixed:.1f} |",
                        flush=True,
                    )
    print(f"\nfalse alarms at most 1 % in every cell, up to the simulation's error: {'yes' if holds else 'NO'}")
    print(f"loss found: lowest {100 * min(powers):.1f} %, mean {100 * np.mean(powers):.1f} %")
    print(f"rounds if all is well / fixed: median {np.median(shares):.2f}, highest {max(shares):.2f}")
    return 0 if holds else 1


_EIGHT = NormalDist().inv_cdf(0.5), *(sign * x for x in (0.27, 0.8, 1.75) for sign in (-1, 1)), 0.0

if __name__ == "__main__":
    raise SystemExit(main())
