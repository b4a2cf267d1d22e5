"""Computes, for a run with original questions and their twins (copies with other numbers or names), how much lower the
accuracy is on the twins; see `harness.scoring.twins`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.core.errors import UsageError
from harness.deciding.comparison import compare_runs
from harness.reports.scored import ScoredBenchmark, read_runs
from harness.runs import RunFolder, questions
from harness.scoring.score import Score
from harness.scoring.twins import TwinDrop, as_one, by_original, original_benchmark


def add_drops(folder: RunFolder, scores: Sequence[Score]) -> list[Score]:
    """The scores; each score of twins also has the drop in accuracy from their originals.

    The scores with a drop are also written to `scores.json`. Raises `StoreError`.
    """
    originals = {score.benchmark: _original_benchmark_of(folder, score.benchmark) for score in scores}
    # The grades are read again only if the run has twins and their originals.
    if not any(name in originals for name in originals.values()):
        return list(scores)
    (run,) = read_runs([folder])
    return [_with_drop(folder, run.benchmarks, score, originals[score.benchmark]) for score in scores]


def _original_benchmark_of(folder: RunFolder, benchmark: str) -> str | None:
    """The benchmark of the originals if the questions of this benchmark are twins, otherwise None."""
    # Either all questions of a card are twins or none are, so checking the first is enough.
    first = next(questions.iterate(folder.benchmark(benchmark)), None)
    return None if first is None else original_benchmark(first)


def _with_drop(folder: RunFolder, benchmarks: dict[str, ScoredBenchmark], score: Score, original: str | None) -> Score:
    """Add the drop in accuracy from the originals to a score of twins, and write the score to its file.

    original: the benchmark of the originals; None if the score is not of twins. The score is unchanged if the run has
    no originals, or no pair of an original and a twin.
    """
    if original is None or original not in benchmarks:
        return score
    drop = _drop(folder, benchmarks[original], benchmarks[score.benchmark])
    if drop is None:
        return score
    with_drop = msgspec.structs.replace(score, twins=drop)
    with_drop.save(folder.benchmark(score.benchmark))
    return with_drop


def _drop(folder: RunFolder, originals: ScoredBenchmark, twins: ScoredBenchmark) -> TwinDrop | None:
    """How much lower the accuracy is on the twins than on their originals; None if no original with samples has a twin
    with samples.
    """
    pairs = by_original(questions.iterate(folder.benchmark(originals.name)), twins.questions)
    paired = [item for item in originals.questions if item.question.question_id in pairs]
    # `compare_runs` raises if there is no pair, which is not an error in a run that has only just begun.
    try:
        compared = compare_runs(paired, [as_one(item, pairs[item.question.question_id]) for item in paired])
    except UsageError:
        return None
    n_twins = sum(map(len, pairs.values()))
    return TwinDrop(
        original=originals.name,
        n_originals=compared.n_questions,
        n_twins=n_twins,
        n_unpaired=len(twins.questions) - n_twins + len(originals.questions) - compared.n_questions,
        n_missing=compared.n_missing,
        original_accuracy=compared.first_accuracy,
        twin_accuracy=compared.second_accuracy,
        drop=compared.difference,
        p_sampling=compared.p_sampling,
        p_question=compared.p_question,
        detectable=compared.detectable,
    )
