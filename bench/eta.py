"""Tests the forecast of a run's end: how often the end lies in the printed range, and how wide the range is.

    python bench/eta.py [--seeds 20] [--questions 35 --samples 16 --in-flight 32] [--without tail]

Sessions are played in virtual time by the real dispatcher, with lengths of several long-tailed kinds; the range is read
at 25 moments from a fifth of the samples on. "width" is the median of (most - least) / what is really left. `--without`
leaves out one part of the method (docs/decisions/forecast.md).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.generation import forecast
from harness.showing.lines import printed_range
from tests.generation.virtual_session import LENGTHS, Moment, lengths, played

MOMENTS = 25

distribution = forecast._distribution


class EqualWeights(Random):
    """A variant of the forecast that gives all lengths of earlier samples the same weight."""

    def expovariate(self, lambd: float = 1.0) -> float:
        return lambd


def no_tail() -> None:
    forecast.TAIL_SAMPLES = 0
    forecast.MIN_TAIL_INDEX = forecast.MAX_TAIL_INDEX = 1e9


def no_censoring() -> None:
    forecast._distribution = lambda members, random: distribution([m for m in members if m[1]], random)


def no_weights() -> None:
    forecast._distribution = lambda members, random: distribution(members, EqualWeights(0))


def no_shrinkage() -> None:
    """A variant of the forecast without shrinkage: every question counts one imagined sample of the benchmark's mean
    length, whatever the variances are.
    """
    init = forecast._Centres.__init__

    def equal(self: forecast._Centres, outlook: forecast.Outlook) -> None:
        init(self, outlook)
        self._weight = 1.0

    forecast._Centres.__init__ = equal  # type: ignore[method-assign]


def no_pace() -> None:
    forecast.PACE_SPREAD = 0.0


PARTS: dict[str, Callable[[], None]] = {
    "tail": no_tail, "censoring": no_censoring, "weights": no_weights, "shrinkage": no_shrinkage, "pace": no_pace,
}  # fmt: skip


def judged(kind: str, seed: int, options: argparse.Namespace) -> Iterator[tuple[float, float, float]]:
    """Play one session: (shortest forecast, longest forecast, time really left), in seconds, at each moment."""
    sizes = lengths(kind, seed, options.questions, options.samples)
    *moments, end = played(sizes, options.in_flight, step=5.0)
    late: list[Moment] = [moment for moment in moments if moment.progress.done >= 0.2 * moment.progress.total]
    random = Random(seed)
    for moment in late[:: max(1, len(late) // MOMENTS)]:
        left = forecast.time_left(moment.outlook, random)
        if left is None:
            raise SystemExit(f"{kind}, seed {seed}: no estimate at {moment.now:.0f} s")
        yield *printed_range(left), end.now - moment.now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--questions", type=int, default=35)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--without", choices=PARTS)
    options = parser.parse_args()
    if options.without:
        PARTS[options.without]()
    for kind in LENGTHS:
        before = time.process_time()
        rows = [row for seed in range(options.seeds) for row in judged(kind, seed, options)]
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
