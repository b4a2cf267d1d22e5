"""Measures the CPU time of starting `harness --help`, and `harness run` up to its first request.

    python bench/start.py [--runs 7] [--beside CHECKOUT]

Each command is a separate process; CHECKOUT is the folder of another version, which takes turns with this one, so that
the ratio is meaningful on a busy machine. The CPU time up to the first request is read from /proc when the server
receives the request, so this is Linux only.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.first_request import HERE, MODEL, Server, start


def helped(checkout: Path) -> float:
    """CPU seconds of `harness --help`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start(["--help"], checkout).wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def to_first_request(checkout: Path) -> float:
    """CPU seconds of `harness run` up to its first request."""
    with tempfile.TemporaryDirectory() as folder, Server() as server:
        words = ["run", "demo:1", "--limit", "1", "--drop=stream", "--base-url", server.base_url, "--model", MODEL]
        code = server.started([*words, "--no-canary", "--quiet", "--out", f"{folder}/run"], checkout).wait()
        if code != 0 or server.first_cpu is None:
            sys.exit(f"harness run of {checkout} ended with {code}")
        return server.first_cpu


def main() -> None:
    """Print the median and the range of each measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--beside", type=Path, help="checkout of another version")
    arguments = parser.parse_args()
    checkouts = [HERE] + ([arguments.beside.resolve()] if arguments.beside else [])
    for name, measure in (("harness --help", helped), ("harness run, to its first request", to_first_request)):
        times: dict[Path, list[float]] = {checkout: [] for checkout in checkouts}
        for _ in range(arguments.runs + 1):  # the first run fills the disk cache
            for checkout in checkouts:
                times[checkout].append(measure(checkout))
        here, *beside = (sorted(seconds[1:]) for seconds in times.values())
        line = f"{name}: {median(here):.3f} s ({here[0]:.3f} to {here[-1]:.3f})"
        if beside:
            line += f", beside it {median(beside[0]):.3f} s: {median(here) / median(beside[0]):.2f} times"
        print(line)


if __name__ == "__main__":
    main()
