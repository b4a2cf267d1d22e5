"""`harness compare --samples`: where two runs differ, question by question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import terminal
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.nouns import count_noun

if TYPE_CHECKING:
    from harness.viewer.differ import Compared


SHOWN_QUESTIONS = 20
"""Number of questions that are listed of those whose fraction correct moved."""


def show(first: Path, second: Path) -> None:
    """Print the questions whose fraction correct moved most from run A to run B, the verdicts that flipped, and the
    settings that differ.
    """
    from harness.runs import RunFolder
    from harness.scoring.opened import OpenRun
    from harness.viewer.differ import compare

    a, b = (OpenRun.of(RunFolder.open(path), path.name) for path in (first, second))
    shared = [name for name in a.benchmarks if name in b.benchmarks]
    if not shared:
        raise UsageError(f"{a.label} and {b.label} share no benchmark.")
    for name in shared:
        compared = compare(a, b, name)
        for problem in (*a.benchmarks[name].problems, *b.benchmarks[name].problems):
            terminal.warn(visible(problem))
        _print(compared)


def _print(compared: Compared) -> None:
    """Print how two runs differ on one benchmark."""
    from harness.viewer.rows import WORDS

    click.echo(visible(compared.benchmark))
    for line in (*compared.lines, *(f"warning: {warning}" for warning in compared.warnings)):
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
