"""Play storms: `--seeds 200 --first 0`, or for so long: `--hours 4`; what broke is printed, and the counts at the end.

After a Ctrl-C the storms under way are played to their end, and no others.
"""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from tests.storms import storm


def main() -> int:
    """Exit code 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.storms", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many storms")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed")
    parser.add_argument("--hours", type=float, help="for so long, whatever the number")
    parser.add_argument("--jobs", type=int, default=4, help="storms at once")
    arguments = parser.parse_args()
    begun = time.monotonic()
    seeds = (
        itertools.count(arguments.first)
        if arguments.hours
        else iter(range(arguments.first, arguments.first + arguments.seeds))
    )
    counts, broken, n = Counter[str](), list[str](), 0
    stopped = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stopped.set())
    with ThreadPoolExecutor(arguments.jobs) as pool:
        running: set[Future[Counter[str]]] = set()
        while True:
            over = stopped.is_set() or (
                arguments.hours is not None and time.monotonic() - begun > arguments.hours * 3600
            )
            while not over and len(running) < arguments.jobs and (seed := next(seeds, None)) is not None:
                running.add(pool.submit(storm.play, seed))
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for result in done:
                n += 1
                if (error := result.exception()) is None:
                    counts += result.result()
                else:
                    broken.append(f"{type(error).__name__}: {error}")
                    sys.stdout.write(broken[-1] + "\n")
                    sys.stdout.flush()
    sys.stdout.write(f"{n} storms, {len(broken)} broken, {(time.monotonic() - begun) / 60:.0f} minutes\n")
    for name, count in sorted(counts.items()):
        sys.stdout.write(f"  {name:28} {count:6}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
