"""`harness compare --samples`: where two runs differ, question by question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import terminal
from harness.core.errors import StoreError, UsageError
from harness.core.inert import visible
from harness.core.nouns import count_noun, in_percent, in_points

if TYPE_CHECKING:
    from harness.viewer.differ import Compared


SHOWN_QUESTIONS = 20
"""Number of questions that are listed of those whose fraction correct moved."""


def show(first: Path, second: Path) -> None:
    """Print the questions whose fraction correct moved most from run A to run B, the verdicts that flipped, and the
    settings that differ.
    """
    from harness.runs import RunFolder
    from harness.viewer.differ import compare
    from harness.viewer.library import OpenRun

    runs = [OpenRun(path.name, RunFolder.open(path)) for path in (first, second)]
    for run in runs:
        run.refresh()
        if run.problem:
            raise StoreError(run.problem)
    a, b = runs
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
    from harness.viewer.printed import WORDS

    click.echo(visible(compared.benchmark))
    if compared.paired is None:
        click.echo(f"  {visible(compared.reason)}")
    else:
        paired = compared.paired
        by_hand = " with the verdicts by hand" if any(compared.n_overridden) else ""
        click.echo(
            f"  A {in_percent(paired.first_accuracy)} %, B {in_percent(paired.second_accuracy)} %{by_hand} over "
            f"{count_noun(paired.n_questions, 'question')}; B better on {paired.worse}, worse on {paired.better}"
        )
        click.echo(
            f"  B − A = {in_points(-paired.difference.value)} points; {compared.same_replies or compared.intervals}"
        )
    for reason in compared.narrower:
        click.echo(f"  {reason}")
    if any(compared.n_overridden):
        click.echo(f"  {_by_hand(compared)}")
    for warning in filter(None, (compared.undecided, compared.mixture)):
        click.echo(f"  warning: {warning}")
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
                f"{100 * question.first:.0f} % of {question.n_first}",
                f"{100 * question.second:.0f} % of {question.n_second}",
                f"{100 * question.change:+.0f}",
            )
            for question in moved[:SHOWN_QUESTIONS]
        ]
        terminal.table(("question", "A", "B", "points"), rows)
        if len(moved) > SHOWN_QUESTIONS:
            click.echo(f"  and {len(moved) - SHOWN_QUESTIONS} more questions")
    for flip in compared.flips:
        click.echo(f"  {flip.n} sample{'' if flip.n == 1 else 's'} from {WORDS[flip.first]} to {WORDS[flip.second]}")
    click.echo(f"  {count_noun(compared.n_same, 'sample')} with the same verdict in both")


def _by_hand(compared: Compared) -> str:
    """A sentence on how many verdicts by hand count in each run, and on the accuracies without them."""
    n_first, n_second = compared.n_overridden
    sentence = f"verdicts by hand count: {n_first} in A, {n_second} in B"
    if compared.as_graded is None:
        return sentence
    graded = compared.as_graded
    return (
        f"{sentence}; as graded A {in_percent(graded.first_accuracy)} %, B {in_percent(graded.second_accuracy)} %, "
        f"B − A = {in_points(-graded.difference.value)} points"
    )
