"""The Hugging Face hub's `.eval_results/*.yaml`, to be put into a model's repository: a file for each benchmark.

Fields as the hub's documentation has them (huggingface.co/docs/hub/eval-results). The value is a percentage, as in its
example; errors and intervals stand in the notes, the only place for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from harness.benchmarks import catalogue
from harness.benchmarks.card import Card, HubSource
from harness.core.about import __version__
from harness.core.errors import UsageError
from harness.core.files import write_atomically
from harness.core.inert import safe_name
from harness.core.nouns import in_percent
from harness.exports import ExportedBenchmark, Exporter, File
from harness.scoring import Score
from harness.scoring.score import with_verdicts_by_hand


def hub(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write a file for each benchmark that is a data set of the hub.

    Raises `UsageError` if no benchmark is, or if one has no accuracy or was run on chosen questions only.
    """
    files = []
    for benchmark in benchmarks:
        card = catalogue.shipped_card_of(benchmark.name, benchmark.record.settings)
        if card is None or not isinstance(card.source, HubSource):
            continue
        if benchmark.score.accuracy is None:
            raise UsageError(f"{benchmark.name} has no accuracy: it holds no sample")
        if benchmark.record.plan.question_ids is not None:
            raise UsageError(
                f"the score of {benchmark.name} is of {benchmark.score.n_questions} chosen questions: the hub's file "
                "holds results of whole benchmarks, so run it without a limit, ids, a filter or a shard"
            )
        path = out / ".eval_results" / f"{safe_name(benchmark.name)}.yaml"
        entry = _entry(benchmark, card, card.source, benchmark.score.accuracy)
        write_atomically(path, yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=120).encode())
        files.append(File(path, 1))
    if not files:
        names = ", ".join(benchmark.name for benchmark in benchmarks)
        raise UsageError(
            f"a result on the hub belongs to a data set of the hub, and none of the run's benchmarks ({names}) is "
            "read from one"
        )
    return files


def _entry(benchmark: ExportedBenchmark, card: Card, source: HubSource, accuracy: float) -> dict[str, Any]:
    """The entry of one benchmark in the hub's file of results."""
    # If the benchmark joins several configurations, none of them names it: the card's name stands for it.
    dataset = {"id": source.id, "task_id": source.config[0] if len(source.config) == 1 else card.name}
    if source.revision is not None:
        dataset["revision"] = source.revision
    return {
        "dataset": dataset,
        "value": round(100 * accuracy, 2),
        "date": benchmark.manifest.created[:10],
        "notes": _notes(benchmark.score, benchmark.record.identity.get("sampling") or {}),
    }


def _notes(score: Score, sampling: dict[str, Any]) -> str:
    """Counts, intervals, sampling settings, graders and version, in one line of text; first, if verdicts by hand differ
    from the grader's, of which the value is made, the accuracy with them.
    """
    by_hand = with_verdicts_by_hand(score)
    notes = [] if by_hand is None else [f"as graded; with verdicts by hand {in_percent(by_hand.accuracy)} %"]
    notes += [f"mean of {score.n_samples} samples of {score.n_questions} questions"]
    intervals = (("sampling", score.sampling_interval), ("question", score.question_interval))
    notes += [
        f"95 % {name} interval {in_percent(i[0])} to {in_percent(i[1])} %" for name, i in intervals if i is not None
    ]
    notes += [f"{name} {value}" for name, value in sampling.items() if name in ("temperature", "top_p", "max_tokens")]
    return "; ".join([*notes, f"graded by {', '.join(score.graders)}", f"reasoning-harness {__version__}"])


EXPORTER = Exporter(kind="results", about=".eval_results of a model on the hub", write=hub, withholds=False)
