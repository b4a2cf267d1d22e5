"""Tests how often a probe accuses a healthy server and how often it finds each fault, on a small language model in
memory and, for the checks of calls, on a model that calls a tool.

    python bench/simulate_probe.py --repeats 75 --log trials.jsonl

Each repetition uses another model (other weights, so other distributions), with real sampling. Half of the healthy
servers have logits that change slightly between requests, as in a batch. A fault is found if all checks for it warn or
fail, and named if one of them says what it is. `--only WORD` runs the kinds whose name contains the word. A server's
number is its seed, and the seed of its probe is 10,000 times the number.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from harness.probes import probe
from harness.scoring.stats import wilson
from tests.commands.calling_model import FAULTS as CALL_FAULTS
from tests.commands.calling_model import HEALTHY, CallingServer
from tests.commands.toy_faults import FAULTS
from tests.commands.toy_faults import SOUND as ODD
from tests.commands.toy_model import Toy, ToyAsker

NOISE = 0.003
ODD_NOISE = 0.02
"""Logit noise of healthy servers with noise, in nats: as much as a busy batch in 16 bits causes."""

SOUND, CALLS = "sound: ", "calls: "
KINDS = [
    *(SOUND + name for name in ODD),
    *(SOUND + CALLS + name for name in HEALTHY),
    *FAULTS,
    *(CALLS + name for name in CALL_FAULTS),
]
RATE = 0.95


def toy(n: int, *, noise: bool) -> Toy:
    """Toy model number n; each number gives a different model."""
    return Toy(weights=str(n), spread=1.0, noise=NOISE if noise else 0.0, chance=random.Random(n))


class Trial(msgspec.Struct, frozen=True):
    """The result of one probe of one server. accused: checks that accuse a healthy server. found, named: whether a
    fault was found and named.
    """

    kind: str
    n: int
    accused: list[str] = []
    found: bool = False
    named: bool = False


def accused(name: str, n: int, checks: Sequence[str] = ()) -> Trial:
    """Probe healthy server n of an unusual kind with these checks, or with all checks if none are named."""
    odd = Toy(weights=str(n), spread=1.0, noise=ODD_NOISE * (n % 2), chance=random.Random(n))
    report = probe.examine(ToyAsker(toy=odd, fault=ODD[name]()), probe.select(checks), seed=10_000 * n)
    return Trial(SOUND + name, n, [finding.check for finding in report.findings if finding.outcome == "fail"])


def caught(name: str, n: int) -> Trial:
    """Probe server n behind a fault; report whether all checks for the fault find it and one of them names it."""
    fault = FAULTS[name]()
    server = ToyAsker(toy=toy(n, noise=n % 2 == 1), fault=fault)
    report = probe.examine(server, probe.select(fault.finds), seed=10_000 * n)
    odd = {finding.check: finding.received for finding in report.findings if finding.outcome in ("fail", "warn")}
    detected = set(fault.finds) <= odd.keys()
    return Trial(name, n, found=detected, named=detected and any(fault.says in odd[check] for check in fault.finds))


def trial(kind: str, n: int, checks: Sequence[str] = ()) -> Trial:
    """One probe of server n of this kind. checks: the checks of a healthy server; a fault has its own."""
    if CALLS in kind:
        return of_calls(kind, n)
    return accused(kind.removeprefix(SOUND), n, checks) if kind.startswith(SOUND) else caught(kind, n)


def of_calls(kind: str, n: int) -> Trial:
    """One probe of only the calls of server n of this kind. For a healthy server, a warning is an accusation, too."""
    name = kind.removeprefix(SOUND).removeprefix(CALLS)
    check, engine, change = ("", *HEALTHY[name]) if kind.startswith(SOUND) else CALL_FAULTS[name]
    server = CallingServer(change=change, engine=engine, chance=random.Random(n))
    report = probe.examine(server, probe.select(["calls"]), seed=10_000 * n)
    odd = [finding.check for finding in report.findings if finding.outcome in ("fail", "warn")]
    return Trial(kind, n, odd, found=check in odd, named=odd == [check])


def share(k: int, n: int) -> str:
    """k of n with Wilson's 95% interval."""
    ends = wilson(np.array(k / n), np.array(n))
    return f"{k}/{n} ({float(ends.low):.1%}–{float(ends.high):.1%})"


def table(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield the lines to print on these trials: one for each kind of server, and one for all healthy servers."""
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
    enough = sum(
        float(wilson(np.array(sum(r.named for r in rows) / len(rows)), np.array(len(rows))).low) >= RATE
        for rows in faults
    )
    yield f"kinds of faults whose rate of being named is above {RATE:.0%} by Wilson's bound: {enough} of {len(faults)}"


def kept(log: Path) -> list[Trial]:
    """Read the trials of a log, without an incomplete last line."""
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    return [msgspec.json.decode(line, type=Trial) for line in lines if line.endswith(b"\n")]


def play(
    kinds: Sequence[str], repeats: int, log: Path | None, processes: int, checks: Sequence[str] = ()
) -> list[Trial]:
    """Run the trials that are not in the log, server by server, and write each to the log immediately."""
    trials = kept(log) if log else []
    done = {(each.kind, each.n) for each in trials}
    missing = [(kind, n) for n in range(repeats) for kind in kinds if (kind, n) not in done]
    with ProcessPoolExecutor(processes) as pool:
        for each in pool.map(partial(trial, checks=checks), *zip(*missing, strict=True)) if missing else ():
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
    given = options.parse_args()
    kinds = [kind for kind in KINDS if given.only in kind]
    print("\n".join(table(play(kinds, given.repeats, given.log, given.processes, given.checks))))


if __name__ == "__main__":
    main()
