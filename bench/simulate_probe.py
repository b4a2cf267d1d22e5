"""Tests how often a probe accuses a sound server and how often it finds each fault, on a small language model in
memory.

    python bench/simulate_probe.py --repeats 75 --log trials.jsonl
    python bench/simulate_probe.py --weights --repeats 200

Each repeat is another model (other weights, so other distributions), with real sampling. Half of the sound servers have
logits that change a little from request to request, as in a batch. A fault is found if all the checks for it are not
sound, and named if one of them says what it is. `--only WORD` plays the kinds whose name holds the word. The number of
a server is its seed, and the seed of its probe is 10,000 times that.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.scoring.intervals import wilson
from harness.verbs.probe import probe, reference
from harness.verbs.probe.subject import Subject
from tests.verbs import toy_faults
from tests.verbs.toy_model import FAULTS, Fault, NoSeeds, Rounded, Temperature, Toy, ToyAsker

NOISE = 0.003
ODD_NOISE = 0.02
"""Noise of the logits of sound servers with noise, in nats: as much as a busy batch in 16 bits makes."""

ALL_FAULTS = {**FAULTS, **toy_faults.FAULTS}
SOUND = "sound: "
KINDS = [*(SOUND + name for name in toy_faults.SOUND), *ALL_FAULTS]
RATE = 0.95
TESTED = ("temperature 1", "temperature 0.5", "whole distribution")
"""The checks with p-values: their results are corrected together, so they are always made together."""

FACTORS = (0.3, 0.6, 0.8, 0.9, 1.2, 1.5, 1.8)
SPREADS = (0.0, 0.05, 0.1, 0.2, 0.3)
ROUNDING = 0.04
"""Noise of logits that makes a divergence of some 0.0008 nats, as rounding to bfloat16 does in SmolLM2-135M."""
EXCESS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Divergences of wrong weights that are tried, as multiples of the divergence that rounding makes."""


def toy(n: int, *, noise: bool) -> Toy:
    """Toy model number n; each number gives another model."""
    return Toy(weights=str(n), spread=1.0, noise=NOISE if noise else 0.0, chance=random.Random(n))


class Trial(msgspec.Struct, frozen=True):
    """The result of one probe of one server. accused: checks that accuse a sound server. found, named: whether a fault
    was found, and named.
    """

    kind: str
    n: int
    accused: list[str] = []
    found: bool = False
    named: bool = False


def accused(name: str, n: int, checks: Sequence[str] = ()) -> Trial:
    """Probe sound server n of an odd kind by these checks; by all if none is named."""
    odd = Toy(weights=str(n), spread=1.0, noise=ODD_NOISE * (n % 2), chance=random.Random(n))
    report = probe.examine(ToyAsker(odd, toy_faults.SOUND[name]()), probe.select(checks), seed=10_000 * n)
    return Trial(SOUND + name, n, [finding.check for finding in report.findings if finding.outcome == "spoils"])


def caught(name: str, n: int) -> Trial:
    """Whether the fault before server n is found by all the checks for it, and named by one."""
    fault = ALL_FAULTS[name]()
    checks = (*fault.finds, *(TESTED if set(fault.finds) & set(TESTED) else ()))
    true = reference.against(reference.ServerReference(ToyAsker(toy(n, noise=n % 2 == 1)), "the reference"))
    selected = probe.select(checks, checks=(*probe.CHECKS, *true))
    report = probe.examine(ToyAsker(toy(n, noise=n % 2 == 1), fault), selected, seed=10_000 * n)
    odd = {finding.check: finding.came for finding in report.findings if finding.outcome in ("spoils", "warns")}
    detected = set(fault.finds) <= odd.keys()
    return Trial(name, n, found=detected, named=detected and any(fault.says in odd[check] for check in fault.finds))


def trial(kind: str, n: int, checks: Sequence[str] = ()) -> Trial:
    """One probe of server n of this kind. checks: of a sound server; a fault has its own."""
    return accused(kind.removeprefix(SOUND), n, checks) if kind.startswith(SOUND) else caught(kind, n)


def heated(factor: float, n: int) -> bool:
    """Whether a temperature that is rewritten by this factor is found."""
    fault = Temperature()
    fault.factor = factor
    report = probe.examine(ToyAsker(toy(n, noise=False), fault), probe.select(TESTED), seed=10_000 * n)
    return not report.sound


def weighed(spread: float, n: int) -> tuple[str, float]:
    """Probe a server whose logits are off by `spread`: (outcome of the check of weights, divergence from the
    reference). n: number of the simulated server, which seeds it.
    """
    base = Toy(weights="a", spread=0.0, noise=NOISE, chance=random.Random(f"reference {n}"))
    server = ToyAsker(Toy(weights=str(n), spread=spread, noise=NOISE, chance=random.Random(n)))
    subject = Subject(server, 10_000 * n)
    beside = reference.ServerReference(ToyAsker(base), "the reference")
    mean, *_ = reference.interval(
        [(spot.passage, spot.divergence) for spot in reference.places(subject, beside).comparisons]
    )
    report = probe.examine(server, reference.against(beside), seed=10_000 * n)
    return next(finding.outcome for finding in report.findings if finding.check == "weights"), mean


def measured(excess: float, n: int) -> tuple[str, float]:
    """Probe a server that rounds as the reference's model does, and whose wrong weights add `excess` times as much
    divergence: (outcome of the check of weights, divergence as a multiple of rounding).
    """

    def rounding(name: str, spread: float, which: str) -> ToyAsker:
        chance = random.Random(f"{which} {n}")
        return ToyAsker(Toy(weights=name, spread=spread, noise=ROUNDING, chance=chance), NoSeeds())

    true = Rounded(ToyAsker(Toy()), "the reference", rounding("a", 0.0, "yardstick"))
    server = rounding(str(n), ROUNDING * math.sqrt(excess), "server")
    spots = reference.places(Subject(server, 1), true).comparisons
    times = reference.times_rounding(spots)
    assert times is not None
    return reference.weighed(spots, true.named)[0], times[0]


def share(k: int, n: int) -> str:
    """k of n with Wilson's 95 % interval."""
    ends = wilson(np.array(k / n), np.array(n))
    return f"{k}/{n} ({float(ends.low):.1%}–{float(ends.high):.1%})"


def table(trials: Sequence[Trial]) -> Iterator[str]:
    """The lines to print of these trials: a line for each kind of server, and one for all sound servers."""
    by: dict[str, list[Trial]] = {}
    for each in trials:
        by.setdefault(each.kind, []).append(each)
    for kind, rows in sorted(by.items(), key=lambda item: KINDS.index(item[0])):
        n = len(rows)
        if kind.startswith(SOUND):
            checks = Counter(check for row in rows for check in row.accused)
            yield f"{kind:<52} accused {share(sum(bool(row.accused) for row in rows), n)} {dict(checks) or ''}"
        else:
            detected, named = sum(row.found for row in rows), sum(row.named for row in rows)
            yield f"{kind:<52} found {share(detected, n)}  named {share(named, n)}"
    sound = [row for row in trials if row.kind.startswith(SOUND)]
    if sound:
        yield f"all sound servers: accused {share(sum(bool(row.accused) for row in sound), len(sound))}"
    faults = [rows for kind, rows in by.items() if not kind.startswith(SOUND)]
    enough = sum(float(wilson(np.array(sum(r.named for r in rows) / len(rows)), np.array(len(rows))).low) >= RATE
                 for rows in faults)  # fmt: skip
    yield f"kinds of faults whose rate of being named is above {RATE:.0%} by Wilson's bound: {enough} of {len(faults)}"


def covering(name: str, n: int) -> list[str]:
    """The checks that notice the fault of this name before server n and find nothing without the fault."""

    return sorted(noticed(name, n) - noticed("", n))


@cache
def noticed(name: str, n: int) -> set[str]:
    """The checks that find something when server n is asked through the fault of this name; without a fault if the name
    is empty.
    """
    fault = ALL_FAULTS[name]() if name else Fault()
    report = probe.examine(ToyAsker(toy(n, noise=False), fault), probe.select(), seed=10_000 * n)
    return {finding.check for finding in report.findings if finding.outcome in ("spoils", "warns")}


def coverage(n: int, processes: int) -> None:
    """Print each check with the kinds of faults that it notices on all of n servers."""
    by: dict[str, list[str]] = {check.name: [] for check in probe.CHECKS}
    with ProcessPoolExecutor(processes) as pool:
        for name in ALL_FAULTS:
            each = list(pool.map(partial(covering, name), range(n)))
            for check in set.intersection(*map(set, each)):
                by[check].append(name)
    print(json.dumps(by, ensure_ascii=False, indent=1))


def kept(log: Path) -> list[Trial]:
    """Read the trials of a log, without an incomplete last line."""
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    return [msgspec.json.decode(line, type=Trial) for line in lines if line.endswith(b"\n")]


def play(
    kinds: Sequence[str], repeats: int, log: Path | None, processes: int, checks: Sequence[str] = ()
) -> list[Trial]:
    """Make the trials that the log lacks, server by server, and write each to the log at once."""
    trials = kept(log) if log else []
    done = {(each.kind, each.n) for each in trials}
    owed = [(kind, n) for n in range(repeats) for kind in kinds if (kind, n) not in done]
    with ProcessPoolExecutor(processes) as pool:
        for each in pool.map(partial(trial, checks=checks), *zip(*owed, strict=True)) if owed else ():
            trials.append(each)
            if log:
                with log.open("ab") as file:
                    file.write(msgspec.json.encode(each) + b"\n")
    return [each for each in trials if each.kind in kinds]


def main() -> None:
    """Print the rates."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--repeats", type=int, default=75, help="servers of each kind")
    options.add_argument("--only", default="", help="the kinds whose name holds the word")
    options.add_argument("--checks", nargs="+", default=(), help="checks of the sound servers; all by default")
    options.add_argument("--log", type=Path, help="a file that keeps each trial; what it has is not played again")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--weights", action="store_true", help="temperatures and weights by how far they are off")
    options.add_argument("--coverage", action="store_true", help="which kinds each check notices")
    given = options.parse_args()
    if given.coverage:
        coverage(given.repeats, given.processes)
    elif given.weights:
        by_size(given.repeats, given.processes)
    else:
        kinds = [kind for kind in KINDS if given.only in kind]
        print("\n".join(table(play(kinds, given.repeats, given.log, given.processes, given.checks))))


def by_size(n: int, processes: int) -> None:
    """Print how often temperatures and weights are found, by how far they are off."""
    with ProcessPoolExecutor(processes) as pool:

        def times(check: Callable[[int], bool]) -> int:
            return sum(pool.map(check, range(n), chunksize=10))

        for factor in FACTORS:
            print(f"temperature × {factor:<20g}  {share(times(partial(heated, factor)), n)}", flush=True)
        for spread in SPREADS:
            weights = list(pool.map(partial(weighed, spread), range(n), chunksize=10))
            counts = {kind: sum(outcome == kind for outcome, _ in weights) for kind in ("sound", "warns", "spoils")}
            mean = sum(value for _, value in weights) / n
            print(f"weights off by {mean:.4f} nats a token  {counts}", flush=True)
        for excess in EXCESS:
            rounded = list(pool.map(partial(measured, excess), range(n), chunksize=10))
            counts = {kind: sum(outcome == kind for outcome, _ in rounded) for kind in ("sound", "warns", "spoils")}
            centre = math.exp(sum(math.log(value) for _, value in rounded) / n)
            print(f"weights off by {centre:.2f} times rounding  {counts}", flush=True)


if __name__ == "__main__":
    main()
