"""Measures the local index of public scores: N made-up records are read in, read again unchanged, and looked up."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from harness.asking.options import PublishedUpdateOptions
from harness.scoring.published import index
from harness.verbs.published import update
from tests.verbs.test_public_scores import record, write

LOOK_UPS = 1_000


def main() -> None:
    """Print seconds, records a second, bytes, and milliseconds a look-up."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--records", type=int, default=100_000)
    arguments = parser.parse_args()
    chance = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="published-") as name:
        store = Path(name) / "store"
        os.environ["HARNESS_CACHE"] = str(Path(name) / "cache")
        for number in range(arguments.records):
            row = (f"org{number % 97}/model{number % 2003}-7b", f"bench{number % 41}", round(chance.uniform(0, 100), 2))
            write(store, record(*row, source=f"board {number % 13}"), chance)
        for which in ("first update", "unchanged"):
            begun, cpu = time.monotonic(), time.process_time()
            (entry,) = update(PublishedUpdateOptions(source=str(store)))
            used = time.process_time() - cpu
            print(
                f"{which}: {time.monotonic() - begun:.1f} s, {used:.1f} s of processor; {entry.updated.scores:,} scores"
            )
        print(f"index: {index.index_path().stat().st_size:,} bytes")
        cpu = time.process_time()
        hits = sum(len(index.look_up(f"model{number % 2003}-7b")) for number in range(LOOK_UPS))
        used = time.process_time() - cpu
        print(f"look-up: {1000 * used / LOOK_UPS:.2f} ms of processor each, {hits / LOOK_UPS:.1f} scores each")


if __name__ == "__main__":
    sys.exit(main())
