"""Play whole runs from their seeds: `--seeds 20000 --first 0`; one of them, told step by step: `--seed 4711`."""

from __future__ import annotations

import argparse
import gc
import sys

from tests.simulation.session import broken, told

say = sys.stdout.write


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
    n_broken = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        if rule := broken(seed):
            say(f"{rule}\n    make simulate WHAT=runs SEED={seed}\n")
            n_broken += 1
    say(f"{n_broken} runs broken\n")
    return 1 if n_broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
