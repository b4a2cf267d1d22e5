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
    seeds = itertools.islice(itertools.count(arguments.first), None if arguments.hours else arguments.seeds)
    counts, lock, stopped = Counter[str](), threading.Lock(), threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stopped.set())

    def one_after_another() -> None:
        while not stopped.is_set() and (not arguments.hours or time.monotonic() - begun < arguments.hours * 3600):
            with lock:
                seed = next(seeds, None)
            if seed is None:
                return
            try:
                ended = storm.play(seed)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                ended = Counter({"broken": 1})
                sys.stdout.write(f"{type(error).__name__}: {error}\n")
                sys.stdout.flush()
            with lock:
                counts.update(ended)
                counts["storms"] += 1

    threads = [threading.Thread(target=one_after_another) for _ in range(arguments.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(f"{(time.monotonic() - begun) / 60:.0f} minutes\n")
    for name, count in sorted(counts.items()):
        sys.stdout.write(f"  {name:28} {count:6}\n")
    return 1 if counts["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
