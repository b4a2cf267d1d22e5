"""Questions that the `reasoning-gym` package generates from a seed; answers are judged by the task's own verifier.

A question's metadata hold its task and the generated entry, so that a stored question can be graded by itself.
"""

from __future__ import annotations

import importlib.metadata
import json
from typing import Any

from harness.benchmarks.card import Card, GymSource, from_mapping
from harness.benchmarks.sources.tables import Row, Rows
from harness.core.about import install_line
from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted
from harness.core.records import Question

PREFIX = "gym:"
"""Beginning of a benchmark's name that stands for a task: `gym:TASK`."""

GRADER = "harness.benchmarks.sources.gym:verify"
"""The name of `verify` in `GradeRules.grader`."""

ANY_ANSWER = "(any that the verifier accepts)"
"""Stands for the reference answer if the task names none."""

RIGHT = 0.999
"""Smallest reward of the verifier for which an answer counts as right; partial credit does not."""


def card_of(task: str, *, size: int = 50, seed: int = 0, options: dict[str, Any] | None = None) -> Card:
    """The card of a task of reasoning-gym. size: number of questions. options: settings of the task."""
    address = f"{PREFIX}{task}"
    return from_mapping(
        {
            "name": f"gym_{task}",
            "title": f"reasoning-gym: {task}",
            "measures": "Questions generated from a seed, which no model can have been trained on.",
            "licence": "Apache-2.0 (reasoning-gym)",
            "citation": "Stojanovski et al., Reasoning Gym, arXiv:2505.24760",
            "source": {"kind": "reasoning_gym", "task": task, "size": size, "seed": seed, "options": options or {}},
            "columns": {"question": "question", "answer": "answer", "id": "id", "metadata": ["task", "entry"]},
            "id_rule": "column",
            "kind": "text",
            "rules": {"grader": GRADER},
            "samples": 4,
        },
        where=address,
        address=address,
    )


def read(source: GymSource) -> Rows:
    """The questions of a task, `source.size` of them, in columns id, question, answer, task, entry.

    Raises `UsageError`.
    """
    library = _library()
    if source.task not in library.factory.DATASETS:
        tasks = library.factory.DATASETS
        raise UsageError(f"reasoning-gym has no task {source.task!r}.{near_names(source.task, tasks)}")
    name = f"reasoning-gym {source.task}"
    try:
        dataset = library.create_dataset(source.task, size=source.size, seed=source.seed, **source.options)
        # Stored questions are JSON.
        entries = [json.loads(json.dumps(dataset[index], allow_nan=False)) for index in range(source.size)]
    except (TypeError, ValueError, AssertionError) as error:
        raise UsageError(f"{name} refuses its options: {quoted(str(error))}") from error
    rows = [
        Row(
            f"{name}[{index}]",
            {
                "id": f"{source.task}-{source.seed}-{index}",
                "question": plain["question"],
                # Some tasks accept many answers and name none of them; only the verifier can decide.
                "answer": ANY_ANSWER if plain["answer"] is None else str(plain["answer"]),
                "task": source.task,
                "entry": plain,
            },
        )
        for index, plain in enumerate(entries)
    ]
    version = importlib.metadata.version("reasoning-gym")
    note = f"made by reasoning-gym {version}; another version may make other questions from the same seed"
    return Rows(rows, f"{name} (seed {source.seed})", (note,))


def verify(answer: str, question: Question) -> bool:
    """Whether the task's own verifier accepts an extracted answer.

    It runs code of the package on a model's text, so call it in a grading process, with its deadline and memory limit.
    """
    score = _library().get_score_answer_fn(str(question.metadata["task"]))
    return float(score(answer, dict(question.metadata["entry"]))) >= RIGHT


def _library() -> Any:
    """The package reasoning-gym. Raises `UsageError` with the line that installs it."""
    try:
        import reasoning_gym
    except ImportError as error:
        raise UsageError(f"gym: needs the package reasoning-gym: {install_line('reasoning-gym')}") from error
    return reasoning_gym
