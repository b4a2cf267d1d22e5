"""The Hugging Face hub's `.eval_results/*.yaml`, to be put into a model's repository: a file a benchmark of the hub.

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
from harness.core.errors import UsageError
from harness.core.files import write_atomically
from harness.core.inert import safe_name
from harness.exports import Chosen, Exporter, File
from harness.scoring import Score


def hub(chosen: Sequence[Chosen], out: Path) -> list[File]:
    """Raises `UsageError` where no benchmark of the run comes from the hub, or one has no accuracy."""
    files = []
    for one in chosen:
        card = catalogue.shipped(one.name, one.record.settings)
        if card is None or not isinstance(card.source, HubSource):
            continue
        if one.score.accuracy is None:
            raise UsageError(f"{one.name} has no accuracy: it holds no sample")
        path = out / ".eval_results" / f"{safe_name(one.name)}.yaml"
        entry = _entry(one, card, card.source, one.score.accuracy)
        write_atomically(path, yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=120).encode())
        files.append(File(path, 1))
    if not files:
        names = ", ".join(one.name for one in chosen)
        raise UsageError(f"none of the run's benchmarks ({names}) is a data set of the hub, which a result there names")
    return files


def _entry(chosen: Chosen, card: Card, source: HubSource, accuracy: float) -> dict[str, Any]:
    dataset = {"id": source.id, "task_id": source.config[0] if source.config else card.name}
    if source.revision is not None:
        dataset["revision"] = source.revision
    return {
        "dataset": dataset,
        "value": round(100 * accuracy, 2),
        "date": chosen.manifest.created[:10],
        "notes": _notes(chosen.score, chosen.record.identity.get("sampling") or {}),
    }


def _notes(score: Score, sampling: dict[str, Any]) -> str:
    said = [f"mean of {score.n_samples} samples of {score.n_questions} questions"]
    intervals = (("sampling", score.sampling_interval), ("question", score.question_interval))
    said += [f"95 % {name} interval {100 * i[0]:.1f} to {100 * i[1]:.1f} %" for name, i in intervals if i is not None]
    said += [f"{name} {value}" for name, value in sampling.items() if name in ("temperature", "top_p", "max_tokens")]
    return "; ".join([*said, "reasoning-harness"])


EXPORTER = Exporter(kind="results", about=".eval_results of a model on the hub", write=hub, withholds=False)
