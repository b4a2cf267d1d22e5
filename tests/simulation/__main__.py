"""Play whole runs from their seeds: `--seeds 20000 --first 0`; one of them, told step by step: `--seed 4711`."""

from __future__ import annotations

import argparse
import gc
import sys
import time

from tests.simulation.run import Size, broken, play, told

say = sys.stdout.write

ENOUGH = 10
"""Broken runs after which no more are played."""


def main() -> int:
    """Exit code 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000, help="how many runs")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed")
    parser.add_argument("--seed", type=int, help="this run only, with everything that happens")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        say(told(arguments.seed) + "\n")
        return 1 if broken(arguments.seed) else 0
    gc.set_threshold(100_000)  # a run leaves hardly any cycles
    sizes: list[Size] = []
    n_broken = 0
    started = time.process_time()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        try:
            sizes.append(play(seed))
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed is told
            say(f"{type(error).__name__}: {error}\n    make simulate WHAT=runs SEED={seed}\n")
            n_broken += 1
            if n_broken == ENOUGH:
                break
    seconds = time.process_time() - started
    n_runs = n_broken + len(sizes)
    say(f"{n_runs} runs, {n_broken} broken, {n_runs / seconds:.0f} a second of CPU\n")
    for name, values in zip(Size._fields, zip(*sizes, strict=True), strict=bool(sizes)):
        say(f"  {name:9} {sum(values) / len(values):8.1f} on average, {max(values):8.0f} at most\n")
    return 1 if n_broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
