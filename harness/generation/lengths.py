"""Lengths of a former run's samples, by which a new one orders its questions."""

from __future__ import annotations

from harness.generation.network.asking import completion_tokens
from harness.runs.journal import read_samples
from harness.runs.layout import RunFolder
from harness.runs.manifest import Manifest


def mean_lengths(folder: RunFolder) -> dict[tuple[str, str], float]:
    """Mean completion tokens by (benchmark, question_id) over all samples of the run. Reads every record once."""
    sums: dict[tuple[str, str], list[int]] = {}
    for name in Manifest.load(folder).benchmarks:
        for sample in read_samples(folder.benchmark(name)):
            total = sums.setdefault((name, sample.question_id), [0, 0])
            total[0] += completion_tokens(sample)
            total[1] += 1
    return {question: tokens / n for question, (tokens, n) in sums.items()}
