"""Measures the reward function `harness.rewards.accuracy_reward` on a batch, beside Math-Verify on the same texts.

    python bench/rewards.py [--batch 10000]

Processor time of the caller and of one worker, the worker's start left out, as it is paid once a training. Exit code 1
where the verdicts of the two differ in more than 1 % of the batch.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Callable

import psutil

from harness import rewards


def batch(n: int) -> tuple[list[str], list[str]]:
    """Make n completions and their references: eight for each question, half of them right."""
    draws = random.Random(1)
    texts, references = [], []
    while len(texts) < n:
        reference = draws.choice(
            (
                str(draws.randrange(1000)),
                rf"\frac{{{draws.randrange(1, 99)}}}{{{draws.randrange(2, 99)}}}",
                rf"{draws.randrange(2, 9)}\sqrt{{{draws.choice((2, 3, 5))}}}",
            )
        )
        for _ in range(8):
            given = reference if draws.random() < 0.5 else str(draws.randrange(1000))
            reasoning = "so we compute the next value and find that it holds. " * 20
            texts.append(f"<think>\n{reasoning}\n</think>\n\nThe answer is $\\boxed{{{given}}}$.")
            references.append(reference)
    return texts[:n], references[:n]


def processor() -> float:
    """CPU seconds of this process and of its running children."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = [child.cpu_times() for child in psutil.Process().children()]
    return own.ru_utime + own.ru_stime + sum(child.user + child.system for child in children)


def timed(work: Callable[[], list[float | None]]) -> tuple[list[float | None], float, float]:
    """Call `work`: (its result, its CPU seconds, its wall seconds)."""
    processor_before, before = processor(), time.perf_counter()
    result = work()
    return result, processor() - processor_before, time.perf_counter() - before


def main() -> int:
    """Print both rates. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=10_000)
    texts, references = batch(parser.parse_args().batch)
    rewards.configure(workers=1)
    rewards.accuracy_reward([r"$\boxed{\sqrt{7}}$"], [r"\frac{\sqrt{28}}{2}"])  # the worker starts
    ours, spent, wall = timed(lambda: rewards.accuracy_reward(texts, references))
    print(f"harness: {len(ours) / spent:,.0f} answers a second of processor time, {len(ours) / wall:,.0f} by the clock")
    try:
        from math_verify import parse, verify
    except ImportError:
        print("Math-Verify is not installed: no peer")
        return 0
    theirs, peer, _ = timed(
        lambda: [float(verify(parse(f"${r}$"), parse(t))) for t, r in zip(texts, references, strict=True)]
    )
    differing = sum(a != b for a, b in zip(ours, theirs, strict=True))
    print(f"Math-Verify: {len(theirs) / peer:,.0f} a second; ratio {peer / spent:.1f}; {differing} verdicts differ")
    return int(differing > len(ours) / 100)


if __name__ == "__main__":
    raise SystemExit(main())
