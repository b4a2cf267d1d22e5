"""Play storms: `--seeds 200 --first 0`; what broke is printed, and the counts at the end."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.storms import storm


def played(seed: int) -> Counter[str]:
    """What happened in the storm of this seed; what broke is printed."""
    try:
        return storm.play(seed) + Counter({"storms": 1})
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        sys.stdout.write(f"{type(error).__name__}: {error}\n")
        sys.stdout.flush()
        return Counter({"broken": 1})


def main() -> int:
    """Exit code 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.storms", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many storms")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed")
    parser.add_argument("--jobs", type=int, default=4, help="storms at once")
    arguments = parser.parse_args()
    with ThreadPoolExecutor(arguments.jobs) as threads:
        counts = sum(threads.map(played, range(arguments.first, arguments.first + arguments.seeds)), Counter[str]())
    for name, count in sorted(counts.items()):
        sys.stdout.write(f"  {name:28} {count:6}\n")
    return 1 if counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
