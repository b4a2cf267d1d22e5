"""`harness compare --samples`: where two runs differ, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli import terminal
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.preparing.outputs import open_scored
from harness.reports.scored import read_runs
from harness.runs import RunFolder
from harness.scoring.opened import OpenRun
from harness.viewer.differ import Compared, compare
from harness.viewer.rows import WORDS

SHOWN_QUESTIONS = 20
"""Number of questions that are listed of those whose fraction correct moved."""


def show(first: Path, second: Path) -> None:
    """Print the questions whose fraction correct moved most from run A to run B, the verdicts that flipped, and the
    settings that differ.
    """

    folders = [open_scored(path) for path in (first, second)]
    a, b = (OpenRun.of(folder, path.name) for folder, path in zip(folders, (first, second), strict=True))
    shared = {name: name for name in a.benchmarks if name in b.benchmarks} or _named_otherwise(folders)
    if not shared:
        raise UsageError(f"{a.label} and {b.label} share no benchmark.")
    for name, other in shared.items():
        compared = compare(a, b, name, other)
        for problem in (*a.benchmarks[name].problems, *b.benchmarks[other].problems):
            terminal.warn(visible(problem))
        _print(compared)


def _named_otherwise(folders: Sequence[RunFolder]) -> dict[str, str]:
    """The name in the second run of each benchmark of the first that it has under another name, as another tool's
    outputs have the name of their file.
    """

    first, second = read_runs(folders)
    return {
        name: second.stored_name(benchmark) for name, benchmark in second.benchmarks.items() if name in first.benchmarks
    }


def _print(compared: Compared) -> None:
    """Print how two runs differ on one benchmark."""

    click.echo(visible(compared.benchmark))
    for line in compared.lines:
        click.echo(f"  {visible(line)}")
    for name, old, new in compared.settings:
        click.echo(f"  {visible(name)}: {old} → {new}")
    if not compared.settings:
        click.echo("  no setting differs")
    moved = sorted(
        (question for question in compared.moved if question.change),
        key=lambda question: (-abs(question.change), question.id),
    )
    if moved:
        rows = [
            (
                visible(" ".join(question.title.split()) or question.id, 60),
                question.first,
                question.second,
                f"{question.change:+.0f}",
            )
            for question in moved[:SHOWN_QUESTIONS]
        ]
        terminal.table(("question", "A", "B", "points"), rows)
        if len(moved) > SHOWN_QUESTIONS:
            click.echo(f"  and {len(moved) - SHOWN_QUESTIONS} more questions")
    for flip in compared.flips:
        click.echo(f"  {count_noun(flip.n, 'sample')} from {WORDS[flip.first]} to {WORDS[flip.second]}")
    click.echo(f"  {count_noun(compared.n_same, 'sample')} with the same verdict in both")
