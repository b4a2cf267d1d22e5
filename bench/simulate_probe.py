"""How often a probe accuses a sound server, and how often it finds each fault: a small language model in memory.

    python bench/simulate_probe.py --repeats 200

Each repeat is another model (other weights, so other distributions), with real sampling. Half of the sound ones have
logits that change a little from request to request, as a batch makes them.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.verbs.probe import probe, reference
from harness.verbs.probe.subject import Subject
from tests.verbs.toy_model import FAULTS, NoSeeds, Rounded, Temperature, Toy, ToyAsker

NOISE = 0.003
TESTED = ("temperature 1", "temperature 0.5", "whole distribution")
"""Checks with p-values: judged together, so made together."""

FACTORS = (0.3, 0.6, 0.8, 0.9, 1.2)
SPREADS = (0.0, 0.05, 0.1, 0.2, 0.3)
ROUNDING = 0.04
"""Noise of logits: a divergence of some 0.0008 nats, as bfloat16 makes it of SmolLM2-135M."""
EXCESS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Divergences that are played, as shares of what rounding makes, on top of it."""


def toy(n: int, *, noise: bool) -> Toy:
    """Model number n: another one each time."""
    return Toy(weights=str(n), spread=1.0, noise=NOISE if noise else 0.0, chance=random.Random(n))


def sound(n: int) -> list[str]:
    """Checks that accuse sound server n."""
    report = probe.examine(ToyAsker(toy(n, noise=n % 2 == 1)), probe.select(), seed=10_000 * n)
    return [finding.check for finding in report.findings if finding.outcome == "spoils"]


def catches(name: str, n: int) -> bool:
    """Whether the fault before server n is found by all the checks for it."""
    fault = FAULTS[name]()
    checks = (*fault.finds, *(TESTED if set(fault.finds) & set(TESTED) else ()))
    report = probe.examine(ToyAsker(toy(n, noise=False), fault), probe.select(checks), seed=10_000 * n)
    odd = {finding.check for finding in report.findings if finding.outcome in ("spoils", "warns")}
    return set(fault.finds) <= odd


def heated(factor: float, n: int) -> bool:
    """Whether a temperature that is rewritten by this factor is found."""
    fault = Temperature()
    fault.factor = factor
    report = probe.examine(ToyAsker(toy(n, noise=False), fault), probe.select(TESTED), seed=10_000 * n)
    return not report.sound


def weighed(spread: float, n: int) -> tuple[str, float]:
    """What is said of a server whose logits are off by so much, and its divergence from the reference."""
    base = Toy(weights="a", spread=0.0, noise=NOISE, chance=random.Random(f"reference {n}"))
    server = ToyAsker(Toy(weights=str(n), spread=spread, noise=NOISE, chance=random.Random(n)))
    subject = Subject(server, 10_000 * n)
    beside = reference.ServerReference(ToyAsker(base), "the reference")
    mean, *_ = reference.interval([(spot.passage, spot.divergence) for spot in reference.places(subject, beside)])
    report = probe.examine(server, reference.against(beside), seed=10_000 * n)
    return next(finding.outcome for finding in report.findings if finding.check == "weights"), mean


def measured(excess: float, n: int) -> tuple[str, float]:
    """What is said beside a reference with its yardstick of a server that rounds as much, and whose weights add so many
    times as much; and how many times rounding it diverges by."""

    def rounding(name: str, spread: float, which: str) -> ToyAsker:
        chance = random.Random(f"{which} {n}")
        return ToyAsker(Toy(weights=name, spread=spread, noise=ROUNDING, chance=chance), NoSeeds())

    true = Rounded(ToyAsker(Toy()), "the reference", rounding("a", 0.0, "yardstick"))
    server = rounding(str(n), ROUNDING * math.sqrt(excess), "server")
    spots = reference.places(Subject(server, 1), true)
    times = reference.times_rounding(spots)
    assert times is not None
    return reference.weighed(spots, true.named)[0], times[0]


def share(k: int, n: int) -> str:
    """k of n with Wilson's 95 % interval."""
    z = 1.96
    centre = (k + z * z / 2) / (n + z * z)
    half = z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return f"{k}/{n} ({max(0.0, centre - half):.1%}–{min(1.0, centre + half):.1%})"


def main() -> None:
    """Print both rates."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--repeats", type=int, default=200)
    n = options.parse_args().repeats
    with ProcessPoolExecutor(2) as pool:

        def times(check: Callable[[int], bool]) -> int:
            return sum(pool.map(check, range(n), chunksize=10))

        accused = list(pool.map(sound, range(n), chunksize=10))
        print(f"sound servers accused of anything   {share(sum(map(bool, accused)), n)}", flush=True)
        for name in sorted({name for names in accused for name in names}):
            print(f"    by {name}: {sum(name in names for names in accused)}")
        for name in FAULTS:
            print(f"{name:<34}  {share(times(partial(catches, name)), n)}", flush=True)
        for factor in FACTORS:
            print(f"temperature × {factor:<20g}  {share(times(partial(heated, factor)), n)}", flush=True)
        for spread in SPREADS:
            results = list(pool.map(partial(weighed, spread), range(n), chunksize=10))
            counts = {kind: sum(outcome == kind for outcome, _ in results) for kind in ("sound", "warns", "spoils")}
            mean = sum(value for _, value in results) / n
            print(f"weights off by {mean:.4f} nats a token  {counts}", flush=True)
        for excess in EXCESS:
            results = list(pool.map(partial(measured, excess), range(n), chunksize=10))
            counts = {kind: sum(outcome == kind for outcome, _ in results) for kind in ("sound", "warns", "spoils")}
            centre = math.exp(sum(math.log(value) for _, value in results) / n)
            print(f"weights off by {centre:.2f} times rounding  {counts}", flush=True)


if __name__ == "__main__":
    main()
