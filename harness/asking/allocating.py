"""Decides by the results of a former run how many samples each question gets (option `allocate`).

    source ──► (right, samples) of each question ──► `harness.scoring.allocation.allocate` ──► samples by question

The source is the folder of a graded run, or a table of items: a file (JSONL, JSON, CSV, Parquet) with the columns
`question_id`, `correct` and `samples`. Questions are found by their id. A question that the source does not have counts
as fully uncertain (chance ½), and gets the most samples. A resumed run keeps the numbers with which it began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.benchmarks.sources import tables
from harness.core.errors import StoreError, UsageError, option
from harness.core.inert import visible
from harness.core.limits import MAX_SAMPLES
from harness.runs import RunFolder, grades
from harness.runs.manifest import BenchmarkRecord, Manifest
from harness.scoring.allocation import MIN_ALLOCATED, allocate, saving

MAX_ITEM_SAMPLES = 10_000_000
"""Largest number of samples of one question in a table of items; a larger number is taken for a typing mistake."""


class Allocation(NamedTuple):
    """The samples of one benchmark's questions.

    source: the former run's folder, or the table. mean: number of samples of a question on average, as the option
    `samples` says. by_question: number of samples by question id. sentence: what to tell the user before the run
    starts. model, seed: of the former run; None if unknown.
    """

    source: str
    mean: int
    by_question: Mapping[str, int]
    sentence: str
    model: str | None = None
    seed: int | None = None

    def refuse_same_samples(self, model: str, seed: int | None) -> None:
        """Raise `UsageError` if the new run has the model and seed of the former run.

        A server that obeys seeds would then give the former run's samples again. The allocation would depend on the
        very samples that are counted, which biases the accuracy. model, seed: of the new run.
        """
        if seed is not None and (model, seed) == (self.model, self.seed):
            raise UsageError(
                f"that run has the same model and the same run seed ({seed}), so its samples may come again, and the "
                f"accuracy would be biased: give another {option('seed')}",
                field="allocate",
                value=self.source,
            )


class _FormerRun(NamedTuple):
    """The results of a former run. items: question id → (right samples, all samples). model, seed: None if unknown."""

    items: Mapping[str, tuple[int, int]]
    model: str | None = None
    seed: int | None = None


def allocation(
    source: Path, benchmark: str, question_ids: Sequence[str], mean: int, own: RunFolder | None
) -> Allocation:
    """Return the number of samples of each question, by the results of the former run or table at `source`.

    mean: number of samples of a question on average. own: the folder of the new run; None if not known yet. If the new
    run has begun with this allocation already, the stored numbers are returned: a resumed run keeps its plan even if
    the former run has changed or is gone. Raises `UsageError` and `StoreError`.
    """
    if mean < MIN_ALLOCATED:
        raise UsageError(
            f"{benchmark}: {option('samples')}, the mean over the questions, is {mean}; give at least {MIN_ALLOCATED}",
            field="allocate",
            value=source,
        )
    stored = None if own is None else _allocated_record(own, benchmark, str(source), mean, question_ids)
    if stored is not None:
        counts = [stored.plan.of(question_id) for question_id in question_ids]
        sentence = f"{benchmark}: {_in_words(counts)}, as this run began"
        return Allocation(str(source), mean, dict(zip(question_ids, counts, strict=True)), sentence)
    if own is not None and source.exists() and own.path.exists() and source.samefile(own.path):
        raise UsageError(
            "a run cannot allocate by its own samples, which would bias its accuracy: name another run",
            field="allocate",
            value=source,
        )
    former = _of_table(source) if source.is_file() else _of_run(source, benchmark)
    results = [former.items.get(question_id, (0, 0)) for question_id in question_ids]
    right, n = (np.array(column, dtype=float) for column in zip(*results, strict=True))
    if not n.any():
        raise UsageError(
            f"it has no graded sample of a question of {benchmark}; questions are matched by their id: give a run or a "
            f"table that has ids of {benchmark}",
            field="allocate",
            value=source,
        )
    counts = allocate(right, n, mean, MAX_SAMPLES).astype(int).tolist()
    worth = saving(right, n, np.array(counts, dtype=float))
    unknown = int((n == 0).sum())
    sentence = (
        f"{benchmark}: {_in_words(counts)} by {visible(str(source), 200)}; if the model is like the former one, the "
        f"sampling interval is as wide as with {worth.equal:.1f} samples of every question, at "
        f"{100 * worth.ratio:.0f} % of those samples"
        + (f"; {unknown} questions have no graded sample there" if unknown else "")
    )
    by_question = dict(zip(question_ids, counts, strict=True))
    return Allocation(str(source), mean, by_question, sentence, former.model, former.seed)


def _in_words(counts: Sequence[int]) -> str:
    """The numbers of samples in words, for a message: `4 to 32 samples a question, 640 in all`."""
    return f"{min(counts)} to {max(counts)} samples a question, {sum(counts):,} in all"


def _allocated_record(
    own: RunFolder, benchmark: str, source: str, mean: int, question_ids: Sequence[str]
) -> BenchmarkRecord | None:
    """The benchmark's record in the run folder `own`, if that run began with this allocation; else None.

    source, mean: the options `allocate` and `samples`. question_ids: of all questions that the benchmark has now.
    """
    try:
        manifest = Manifest.find(own)
    except StoreError:  # The manifest is damaged; the session refuses it later, with a reason.
        return None
    record = None if manifest is None else manifest.benchmarks.get(benchmark)
    if record is None or not own.benchmark(benchmark).has_samples():
        return None
    same = (record.settings.get("allocated_by"), record.settings.get("allocated_mean")) == (source, mean)
    numbers = record.plan.by_question
    return record if same and all(question_id in numbers for question_id in question_ids) else None


def _of_run(source: Path, benchmark: str) -> _FormerRun:
    """The results of the former run in a run folder, counted from its grades. Raises `StoreError` and `UsageError`."""
    folder = RunFolder.open(source)
    record = Manifest.load(folder).benchmarks.get(benchmark)
    if record is None:
        raise UsageError(
            f"that run has no samples of {benchmark}: name a run of {benchmark}", field="allocate", value=source
        )
    if not folder.benchmark(benchmark).grades.exists():
        raise UsageError(
            f"that run is not scored: score it with `harness score {visible(str(source), 200)}`",
            field="allocate",
            value=source,
        )
    right, n = Counter[str](), Counter[str]()
    for grade in grades.read(folder.benchmark(benchmark)):
        n[grade.question_id] += 1
        right[grade.question_id] += grade.verdict == "correct"
    items = {question_id: (right[question_id], count) for question_id, count in n.items()}
    model, seed = record.identity.get("model"), record.identity.get("seed")
    return _FormerRun(items, model if isinstance(model, str) else None, seed if isinstance(seed, int) else None)


def _of_table(source: Path) -> _FormerRun:
    """The results of a former run in a table of items. Raises `UsageError` that names the wrong row."""
    items: dict[str, tuple[int, int]] = {}
    for where, row in tables.read(source):
        question_id, right, n = (row.get(name) for name in ("question_id", "correct", "samples"))
        try:
            hits, count = int(str(right)), int(str(n))
        except ValueError:
            hits, count = -1, 0  # Refused below, with the other wrong values.
        if not isinstance(question_id, str | int) or not 0 <= hits <= count <= MAX_ITEM_SAMPLES or count == 0:
            raise UsageError(
                f"{where}: expected question_id, correct and samples (whole numbers, correct at most samples), "
                f"found {visible(str(question_id), 60)}, {visible(str(right), 20)} and {visible(str(n), 20)}",
                field="allocate",
                value=source,
            )
        if str(question_id) in items:
            raise UsageError(
                f"{where}: question {visible(str(question_id), 60)} has a second row; leave one of its rows out",
                field="allocate",
                value=source,
            )
        items[str(question_id)] = (hits, count)
    return _FormerRun(items)
