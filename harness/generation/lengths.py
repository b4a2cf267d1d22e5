"""Lengths of samples in tokens: of one sample, and means of an earlier run, by which a new run orders its questions."""

from __future__ import annotations

from harness.core.records import Sample
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


def completion_tokens(sample: Sample) -> int:
    """Length of a sample for planning: as stated, else the number of events, else estimated from characters."""
    stated = sample.usage.completion_tokens
    return stated or sample.timing.events or (len(sample.text or "") + len(sample.reasoning or "")) // 4 + 1


def tokens_before(sample: Sample) -> int:
    """Completion tokens that were written before the sample's last request."""
    return sample.salvaged_at[-1].tokens if sample.salvaged_at else 0
