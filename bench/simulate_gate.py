"""Tests by simulation whether `harness gate` keeps its promise: false alarms, losses found, samples used.

    python bench/simulate_gate.py [--repeats 2000] [--seed 1]

A cell is an accuracy, a number of questions, a deviation of runs beyond sampling (at most 2/5 of the way to 100 %), and
a number of critical benchmarks, which share 1 % of false alarms. Questions have Beta chances; the row names the
concentration. A cell with three benchmarks is held against a baseline run, the others against a floor. A cell has four
histories of eight runs, one of each quarter of their spread; each has a plan of its own, as `--dry-run` makes it, and
its gates are judged by the loss that this plan says can be found in 95 %. "fixed": the fewest rounds at which one look
of the same test finds it in 95 %, or as often as the gate does. The second table replays fixed thresholds of public
threads. A cell that breaks the promise is simulated again with 64 histories. Exit code 1 if the false alarms of a cell,
or the losses found in a cell or in the mean of all, then break the promise by more than the simulation's own error.
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from typing import NamedTuple

import numpy as np

from harness.scoring import gate
from harness.scoring.stats import Array

MAX_ROUNDS = {30: 32, 198: 16, 1319: 8}
HISTORY, HISTORIES, MORE_HISTORIES = 8, 4, 64
FALSE_ALARM, POWER = 0.01, 0.95

_SCORES = np.array([0.0, 0.0, -0.27, 0.27, -0.8, 0.8, -1.75, 1.75])
"""Eight runs of a usual shape."""


def histories(
    rng: np.random.Generator, accuracy: float, sd: float, sampling: float, number: int
) -> list[gate.Deviations]:
    """What is learnt from histories whose spread is drawn from each of the equal parts of its distribution."""
    parts = (np.arange(number) + rng.random(number)) / number
    spread = np.sqrt((sd**2 + sampling) * np.quantile(rng.chisquare(HISTORY - 1, 20_000), parts) / (HISTORY - 1))
    unit = _SCORES / _SCORES.std(ddof=1)
    return [gate.learnt_deviation((accuracy + s * unit).tolist(), [sampling] * HISTORY, 0.0) for s in spread]


class Cell(NamedTuple):
    """What the gates of a cell came to: fractions, mean rounds, the plan's mean loss; `fixed`, rounds of one look."""

    loss: float
    alarms: float
    found: float
    passes: float
    rounds: float
    fixed: float
    n: int


def simulate(
    rng: np.random.Generator, repeats: int, accuracy: float, n_questions: int, sd: float, concentration: float,
    false_alarm: float, most: int, *, baseline: bool, n_histories: int = HISTORIES,
) -> Cell | None:  # fmt: skip
    """Gates on one benchmark; None if a plan finds no loss."""
    n = max(100, min(repeats, 1_500_000 // n_questions) // HISTORIES)
    share = concentration / (concentration + 1)
    single = accuracy * (1 - accuracy) * share
    reference = gate.Reference(accuracy, n_questions * most, runs=1.0) if baseline else gate.Reference(accuracy)
    # A baseline's error is drawn as a deviation of the truth from it.
    shared = math.sqrt(sd**2 * (1 + reference.runs) + single / reference.samples)
    of = gate.rules(gate.planned(n_questions, most), false_alarm, 1 - POWER)
    parts = []
    for learnt in histories(rng, accuracy, sd, single / n_questions / most, n_histories):
        loss = gate.forecast(
            n_questions, of, reference, accuracy / 2, POWER, learnt, share, repeats=200, seed=int(rng.integers(2**31))
        ).findable
        if loss is None:
            continue
        drawn = rng.beta(accuracy * concentration, (1 - accuracy) * concentration, (n, n_questions))
        drawn = gate.moved(drawn, np.full(n, accuracy))
        room = min(accuracy, 1 - accuracy) / 2.5
        run = accuracy + min(shared, room) * rng.standard_normal(n).clip(-2.5, 2.5)
        lost = gate.moved(drawn, run - loss)
        well = gate.play(rng, gate.moved(drawn, run), of, reference, loss, learnt)
        found = float(gate.play(rng, lost, of, reference, loss, learnt).failed.mean())

        def one_look(
            rounds: float, lost: Array = lost, loss: float = loss, learnt: gate.Deviations = learnt
        ) -> float:  # fmt: skip
            """How often one look after so many rounds finds the loss."""
            single_look = gate.Rules((rounds,), (false_alarm,), (0.0,))
            return float(gate.play(rng, lost, single_look, reference, loss, learnt).failed.mean())

        fixed = next((rounds for rounds in of.looks if one_look(rounds) >= min(found, POWER)), most)
        parts.append((loss, well.failed.mean(), found, well.passed.mean(), well.rounds.mean(), fixed))
    if not parts:
        return None
    loss, alarms, found, passes, rounds, fixed = (float(mean) for mean in np.mean(parts, axis=0))
    return Cell(loss, alarms, found, passes, rounds, fixed, n * len(parts))


def _holds(cell: Cell, level: float, n_benchmarks: int) -> bool:
    """Whether the promise holds in the cell, up to the error of its gates. level: of false alarms of one benchmark."""
    alarms = 1 - (1 - cell.alarms) ** n_benchmarks
    few = alarms <= FALSE_ALARM + 3 * n_benchmarks * math.sqrt(level / cell.n)
    return few and cell.found >= POWER - 3 * math.sqrt(POWER * (1 - POWER) / cell.n)


def cells(repeats: int, seed: int) -> bool:
    """Print the table of cells; whether the promise holds in each."""
    holds, rows = True, []
    heads = ("accuracy", "questions", "sd", "benchmarks", "concentration", "loss", "false alarms of the gate %")
    print(f"| {' | '.join(heads)} | loss found % | passes % | rounds | fixed |")
    print(f"| {' | '.join(['---:'] * 11)} |")
    grid = [(a, q, s, b) for a in (0.5, 0.8, 0.95, 0.99) for q in MAX_ROUNDS for s in (0, 0.5, 1, 2) for b in (1, 3, 8)]
    for accuracy, n_questions, points, n_benchmarks in grid:
        concentration, level = (0.5 if n_benchmarks == 3 else 2.0), FALSE_ALARM / n_benchmarks
        rng = np.random.default_rng([seed, int(100 * accuracy), n_questions, int(10 * points), n_benchmarks])
        sd = min(points / 100, accuracy / 2.5, (1 - accuracy) / 2.5)
        of_cell = partial(
            simulate, rng, repeats, accuracy, n_questions, sd, concentration, level, MAX_ROUNDS[n_questions],
            baseline=n_benchmarks == 3,
        )  # fmt: skip
        cell = of_cell()
        if cell is not None and not _holds(cell, level, n_benchmarks):
            # Four histories scatter more than their gates: more of them tell whether it was chance.
            cell = of_cell(n_histories=MORE_HISTORIES)
        if cell is None:
            continue
        rows.append(cell)
        alarms = 1 - (1 - cell.alarms) ** n_benchmarks
        holds &= _holds(cell, level, n_benchmarks)
        print(
            f"| {100 * accuracy:g} | {n_questions} | {points:g} | {n_benchmarks} | {concentration:g} | "
            f"{100 * cell.loss:.1f} | {100 * alarms:.2f} | {100 * cell.found:.1f} | {100 * cell.passes:.1f} | "
            f"{cell.rounds:.2f} | {cell.fixed:.2f} |",
            flush=True,
        )
    found, shares = [cell.found for cell in rows], [cell.rounds / cell.fixed for cell in rows]
    print(f"\n{len(rows)} of {len(grid)} cells have a loss that can be found")
    print(f"loss found: lowest {100 * min(found):.1f} %, mean {100 * np.mean(found):.1f} %")
    print(f"rounds if all is well / fixed: median {np.median(shares):.2f}, highest {max(shares):.2f}")
    return holds and float(np.mean(found)) >= POWER


THREADS = (
    # Repository and pull request, questions, threshold, mean and sd of its runs in points, false failures there.
    ("sgl-project/sglang 20304", 200, 93.5, 94.43, 0.52, "17 of 120, four values each"),
    ("sgl-project/sglang 31702", 200, 65.0, 67.55, 0.96, "now and then"),
    ("sgl-project/sglang 35477", 500, 92.0, 91.60, 0.70, "9 of 10"),
    ("sgl-project/sglang-jax 1333", 200, 85.0, 86.0, 0.9, "12 of 61"),
    ("lightseekorg/tokenspeed 278", 198, 70.0, 74.0, 3.0, "about 11 %"),
    ("vllm-project/vllm 56644", 30, 85.0, 87.3, 5.5, "3 of 5"),
)
"""The sd of the first follows from its failures; mean and sd of the last from five scores that it names."""


def threads(repeats: int, seed: int) -> None:
    """Print the table of thresholds of public threads, beside a gate of at most 8 rounds with the mean as its floor."""
    print("\n| thread | questions | threshold | runs: mean ± sd | failed there | threshold % | gate % | loss |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for number, (name, n_questions, threshold, mean, sd, failed) in enumerate(THREADS):
        rng, accuracy = np.random.default_rng([seed, number]), mean / 100
        share = min(0.9, (sd / 100) ** 2 * n_questions / (accuracy * (1 - accuracy)))
        concentration = share / (1 - share)
        drawn = rng.beta(accuracy * concentration, (1 - accuracy) * concentration, (repeats, n_questions))
        once = rng.binomial(1, gate.moved(drawn, np.full(repeats, accuracy))).mean(axis=-1)
        false = float((once <= threshold / 100 - 1e-9).mean())
        cell = simulate(rng, repeats, accuracy, n_questions, 0.0, concentration, FALSE_ALARM, 8, baseline=False)
        ours, loss = ("–", "–") if cell is None else (f"{100 * cell.alarms:.1f}", f"{100 * cell.loss:.1f}")
        print(
            f"| {name} | {n_questions} | {threshold:g} | {mean:g} ± {sd:g} | {failed} | {100 * false:.0f} | {ours} | "
            f"{loss} |",
            flush=True,
        )


def main() -> int:
    """Exit code 1 when a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    holds = cells(arguments.repeats, arguments.seed)
    threads(arguments.repeats, arguments.seed)
    print(f"\nthe promise holds in every cell, up to the simulation's error: {'yes' if holds else 'NO'}")
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
