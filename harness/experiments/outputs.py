"""A file of another tool's outputs, graded and scored as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from harness.benchmarks import catalogue, questions
from harness.core import codec
from harness.core.files import write_atomically
from harness.experiments.watching import Watcher
from harness.foreign import outputs
from harness.scoring import Score
from harness.scoring.pipeline import Grading, score_outputs


def score_file(
    path: Path,
    grading: Grading,
    watcher: Watcher,
    *,
    response_key: str | None = None,
    answer_key: str | None = None,
    question_key: str | None = None,
    id_key: str | None = None,
    tool: outputs.Format | None = None,
    benchmark: str | None = None,
    repeats: Literal["auto", "samples", "questions"] = "auto",
    out: Path | None = None,
) -> list[Score]:
    """The scores of the outputs in `path`, by benchmark. Raises `UsageError` with file, line and column.

    response_key, answer_key, question_key, id_key: columns; tool: who wrote the file, for those with a form of their
    own. benchmark: the card with the questions, where the file holds no reference answers. repeats: what equal rows
    are. out: where the grades go, one JSON line a sample.
    """
    card = catalogue.load(benchmark) if benchmark else None
    pairs = outputs.read(
        path,
        response_key=response_key,
        answer_key=answer_key,
        question_key=question_key,
        id_key=id_key,
        format=tool,
        questions=questions.build(card).questions if card else (),
        repeats=repeats,
    )
    scores, grades = score_outputs(pairs, grading, watcher.graded)
    if out is not None:
        write_atomically(out, b"".join(codec.encode(grade) + b"\n" for grade in grades))
    return scores
