"""How often the end of a run lies in the range that is printed, and how wide the range is.

    python bench/eta.py [--seeds 20]

Sessions of 560 samples (35 questions, 16 each, 32 in flight) are played in virtual time by the real dispatcher, with
lengths of several long-tailed kinds; the range is read at 25 moments from a fifth of the samples on. "width" is the
median of (most − least) / what is really left.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.generation.eta import time_left
from harness.showing.lines import printed_range
from tests.generation.virtual_session import LENGTHS, Moment, lengths, played

QUESTIONS, SAMPLES, IN_FLIGHT = 35, 16, 32
MOMENTS = 25


def judged(kind: str, seed: int) -> Iterator[tuple[float, float, float]]:
    """(least, most, truly left), in seconds, at each moment looked at."""
    *moments, end = played(lengths(kind, seed, QUESTIONS, SAMPLES), IN_FLIGHT, step=5.0)
    late: list[Moment] = [one for one in moments if one.progress.done >= 0.2 * one.progress.total]
    random = Random(seed)
    for one in late[:: max(1, len(late) // MOMENTS)]:
        found = time_left(one.outlook, random)
        if found is None:
            raise SystemExit(f"{kind}, seed {seed}: no estimate at {one.now:.0f} s")
        yield *printed_range(found), end.now - one.now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    for kind in LENGTHS:
        before = time.process_time()
        rows = [row for seed in range(seeds) for row in judged(kind, seed)]
        held = sum(least <= left <= most for least, most, left in rows) / len(rows)
        early = sum(left < least for least, _, left in rows) / len(rows)
        width = median((most - least) / left for least, most, left in rows)
        each = 1000 * (time.process_time() - before) / len(rows)
        print(
            f"{kind}: {held:.1%} of {len(rows)} moments held, {early:.1%} ended before the range; width {width:.2f}; "
            f"{each:.0f} ms a moment, the session included"
        )


if __name__ == "__main__":
    main()
