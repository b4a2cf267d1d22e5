"""Simulates how often a score suspects a hidden length limit (`harness.core.hidden_limit`), with one and without.

    python bench/simulate_hidden_limit.py [--repeats 2000] [--seed 1]

Each row draws the lengths of the replies of a run from one distribution, without a limit and with one that cuts some
fraction of them. A row `real replies` draws from stored outputs of other tools, if the folder `shared/data` is there
(see CONTRIBUTING.md), with the number of words and marks for tokens. Exit code 1 if a false alarm is more frequent than
`MAX_FALSE`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.core.hidden_limit import DIGEST_BITS, ReplyLengths

MAX_FALSE = 0.001
"""Largest rate of false alarms in any row without a limit."""

SIZES = (20, 200, 2000)
CUT_SHARES = (0.05, 0.3, 0.95)

Draw = Callable[[np.random.Generator, int], NDArray[np.int64]]


def _whole(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.maximum(1, np.rint(values)).astype(np.int64)


FREE: dict[str, Draw] = {
    **{f"geometric, mean {m}": (lambda rng, n, m=m: rng.geometric(1 / m, n)) for m in (2, 20, 300)},
    **{
        f"lognormal, median {m}, sigma {s}": (lambda rng, n, m=m, s=s: _whole(rng.lognormal(np.log(m), s, n)))
        for m in (20, 80, 600, 8000)
        for s in (0.1, 0.5, 1.0)
    },
    "normal, mean 40, sd 1": lambda rng, n: _whole(rng.normal(40, 1, n)),
    "uniform, 1 to 60": lambda rng, n: rng.integers(1, 61, n),
}
"""Free text: name → its lengths in tokens."""


def _stored() -> dict[str, Draw]:
    """The lengths of stored outputs of other tools, in words and marks; empty where there are none."""
    shared = Path(os.environ.get("HARNESS_SHARED") or Path(__file__).parents[1] / "shared")
    drawn: dict[str, Draw] = {}
    for path in sorted(shared.glob("data/outputs/*.jsonl")):
        lengths = np.array([len(re.findall(r"\w+|[^\w\s]", json.loads(line)["response"])) for line in path.open()])
        drawn[f"real replies, {path.stem}"] = lambda rng, n, lengths=lengths: rng.permutation(lengths)[:n]
    return drawn


def _replies(rng: np.random.Generator, tokens: NDArray[np.int64], spread: float) -> Iterator[tuple[int, int]]:
    """Replies of these lengths with different texts. spread: standard deviation of characters per token."""
    chars = np.maximum(1, np.rint(tokens * 4 + spread * np.sqrt(tokens) * rng.standard_normal(len(tokens))))
    for i, (length, n_chars) in enumerate(zip(tokens.tolist(), chars.astype(int).tolist(), strict=True)):
        yield length, n_chars << DIGEST_BITS | i


def _alarms(rng: np.random.Generator, draw: Draw, n: int, share: float, repeats: int, spread: float = 2.0) -> float:
    """The rate of alarms. share: fraction of replies that a limit cuts."""
    found = 0
    for _ in range(repeats):
        tokens = draw(rng, n)
        if share:
            tokens = np.minimum(tokens, int(np.quantile(tokens, 1 - share)))
        lengths = ReplyLengths()
        for length, checksum in _replies(rng, tokens, spread):
            lengths.observe(length, checksum, stopped=True)
        found += lengths.limit is not None
    return found / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    narrow = "narrow: free text of 19 to 21 tokens, sd 0.4"
    forced: dict[str, Draw] = {
        "one letter, 1 to 3 tokens": lambda rng, n: rng.integers(1, 4, n),
        "one form with a number, 40 to 42 tokens": lambda rng, n: rng.choice([40, 41, 42], n, p=[0.1, 0.2, 0.7]),
    }
    rows = {narrow: lambda rng, n: _whole(rng.normal(20, 0.4, n)), **FREE, **_stored(), **forced}
    worst = 0.0
    print("| lengths | " + " | ".join(f"{n} replies" for n in SIZES) + " | " +
          " | ".join(f"{share:.0%} of {SIZES[1]} cut" for share in CUT_SHARES) + " |")  # fmt: skip
    for name, draw in rows.items():
        spread = 0.0 if name in forced else 2.0
        false = [_alarms(rng, draw, n, 0, given.repeats, spread) for n in SIZES]
        found = [] if name in forced else [
            _alarms(rng, draw, SIZES[1], share, given.repeats // 10) for share in CUT_SHARES
        ]  # fmt: skip
        # No text is so narrow unless its form is fixed; the row shows where the rule ends.
        if name != narrow:
            worst = max(worst, *false)
        print(f"| {name} | " + " | ".join(f"{rate:.2%}" for rate in [*false, *found]) + " |", flush=True)
    print(f"most frequent false alarm: {worst:.2%}")
    sys.exit(worst > MAX_FALSE)


if __name__ == "__main__":
    main()
