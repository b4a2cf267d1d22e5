"""`harness score`: grade a run's samples, or any tool's outputs, and aggregate them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import terminal
from harness.core.errors import UsageError

if TYPE_CHECKING:
    from harness.scoring import Score
    from harness.scoring.pipeline import Grading

PROGRESS_SECONDS = 5.0


@click.command("score")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--response-key", help="Column of the response in FILE; a cell may hold a list of samples.")
@click.option("--answer-key", help="Column of the reference answer in FILE.")
@click.option("--question-key", help="Column of the question in FILE: equal questions are samples of one.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the grades of FILE here, one JSON line a sample.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON instead of a table.")
@click.option("--workers", type=click.IntRange(1, 256), help="Processes that grade. Default: the cores.")
@click.option("--deadline", type=float, help="Seconds for one answer, after which it is undecided. Default: 2.")
@click.option("--fresh", is_flag=True, help="Grade all samples again, also those graded by this version.")
def command(
    source: Path,
    response_key: str | None,
    answer_key: str | None,
    question_key: str | None,
    out: Path | None,
    as_json: bool,
    workers: int | None,
    deadline: float | None,
    fresh: bool,
) -> None:
    """Grade and score SOURCE: a run folder, or a file of another tool's outputs.

    \b
    harness score results/qwq-32b
    harness score outputs.jsonl --response-key gen --answer-key answer
    """
    from harness.scoring.pipeline import Grading

    if deadline is not None and not 0 < deadline < 3600:
        raise UsageError(f"--deadline {deadline}: expected seconds above 0")
    defaults = Grading()
    grading = Grading(workers=workers or os.cpu_count() or 1, deadline_s=deadline or defaults.deadline_s, fresh=fresh)
    if source.is_dir() or not (source.exists() or response_key):
        if response_key or answer_key or question_key or out:
            raise UsageError("--response-key, --answer-key, --question-key and --out go with a file, not a run folder")
        scores = _score_run(source, grading)
    else:
        scores = _score_file(source, response_key, answer_key, question_key, out, grading)
    if as_json:
        _print_json(scores)
    else:
        _print_tables(source.name, scores)


def _score_run(path: Path, grading: Grading) -> list[Score]:
    from harness.runs import RunFolder
    from harness.scoring import pipeline

    return pipeline.score_run(RunFolder.open(path), grading, _Heartbeat())


def _score_file(
    path: Path,
    response_key: str | None,
    answer_key: str | None,
    question_key: str | None,
    out: Path | None,
    grading: Grading,
) -> list[Score]:
    from harness.benchmarks import outputs
    from harness.core import codec
    from harness.core.files import write_atomically
    from harness.scoring import pipeline

    pairs = outputs.read(path, response_key=response_key, answer_key=answer_key, question_key=question_key)
    scores, grades = pipeline.score_outputs(pairs, grading, _Heartbeat())
    if out is not None:
        write_atomically(out, b"".join(codec.encode(grade) + b"\n" for grade in grades))
    return scores


def _print_json(scores: list[Score]) -> None:
    from harness.core import codec

    found = scores[0] if len(scores) == 1 else {score.benchmark: score for score in scores}
    click.echo(codec.pretty(found).decode(), nl=False)


def _print_tables(label: str, scores: list[Score]) -> None:
    from harness.reports import sample_table, score_table, to_terminal

    named = [(label, score) for score in scores]
    terminal.console().print(to_terminal([score_table(named), sample_table(named)]))


class _Heartbeat:
    """A line now and then while grading takes its time."""

    def __init__(self) -> None:
        self._due = time.monotonic() + PROGRESS_SECONDS

    def __call__(self, benchmark: str, graded: int) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + PROGRESS_SECONDS
            click.echo(f"{benchmark}: {graded} samples graded", err=True)
