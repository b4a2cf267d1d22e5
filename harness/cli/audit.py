"""`harness audit`: has a person judge samples drawn from a run, in the terminal or in a file."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import partial

import click

from harness.cli.judge import measure
from harness.commands.imported_runs import open_scored
from harness.core.errors import Exit, UsageError
from harness.core.number_text import count_noun, in_percent
from harness.core.options import options_of
from harness.core.records import VerdictName
from harness.core.sanitize import visible
from harness.judges.audit import Audit, audit, judge
from harness.options.finished_runs import AuditCommand, AuditOptions
from harness.scoring.run_reader import OpenRun
from harness.viewer.audit_samples import AuditItem
from harness.viewer.sample_text import lines

MAX_SHOWN_CHARS = 4000
"""Number of characters shown to the person, counted from the end of the response."""

VERDICTS: dict[str, VerdictName] = {"y": "correct", "n": "wrong", "u": "undecided"}
"""Key that the person types → verdict."""

BACK = "b"
"""Key that undoes the last verdict."""


def carry_out(options: AuditCommand) -> int:
    """Ask a person, or write or read a file of samples, and print the differing verdicts; or evaluate a judge."""
    run, labels = options.run, options.labels
    if (run is None) == (labels is None):
        raise UsageError(
            "specify either a scored RUN to grade by hand, or a file of labeled answers with --labels FILE"
        )
    others = ("judge", "dry_run", "prices") if labels is None else options_of(AuditOptions)
    if other := next((name for name in others if name in options.changed), ""):
        raise UsageError(f"it does not work with {'a RUN' if labels is None else '--labels'}", field=other)
    if labels is not None:
        return measure(labels, options)
    assert run is not None
    by_file = options.out is not None or options.verdicts is not None
    if not by_file and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "grading by hand requires a terminal. Without one, write the samples to a file with --out FILE, "
            "fill in the verdicts, and load them with --verdicts FILE"
        )
    opened = OpenRun.of(open_scored(run), run.name)
    audits = audit(opened, options)
    by_rubric = [each for each in audits if each.rubric and each.items]
    for rubric in dict.fromkeys(each.rubric for each in by_rubric):
        names = ", ".join(visible(each.benchmark, 80) for each in by_rubric if each.rubric == rubric)
        click.echo(f"The judge used this rubric for {names}:\n\n{lines(rubric)}\n")
    if not by_file and any(each.items for each in audits):
        _judge(opened, audits, options.who)
        audits = audit(opened, options)
    for each in audits:
        _print(each)
    if options.out is not None:
        click.echo(f"{count_noun(sum(len(each.items) for each in audits), 'sample')} to judge: {options.out}")
    return Exit.YES


def _judge(opened: OpenRun, audits: list[Audit], who: str | None) -> None:
    """Ask about each remaining sample until all are judged or the person stops; `b` undoes the last verdict.

    audits: the audits of the run's benchmarks. who: the person's name; None: the operating system's user name.
    """
    samples = [
        (opened.benchmark(each.benchmark), item, f"{number} of {each.n_drawn}")
        for each in audits
        for number, item in enumerate(each.items, each.n_drawn - len(each.items) + 1)
    ]
    index = 0
    while index < len(samples):
        _, item, number_of = samples[index]
        _show(item, number_of)
        back = f"{BACK} = undo the last verdict, " if index else ""
        keys = [*VERDICTS, *([BACK] if index else []), "q"]
        if most := item.points_of:
            word = click.prompt(
                f"How many points, 0 to {most:g}? u = undecidable, {back}q = quit",
                value_proc=partial(_points_or_key, most=most, keys=keys[2:]),
            )
        else:
            word = click.prompt(
                f"Is the answer correct? y = yes, n = no, u = undecidable, {back}q = quit",
                type=click.Choice(keys),
                show_choices=False,
            )
        if word == "q":
            return
        if word == BACK:
            index -= 1
        benchmark, item, _ = samples[index]
        points = word if isinstance(word, float) else None
        # None removes the stored verdict.
        judge(benchmark, item.key, VERDICTS.get(str(word)), who, undecided=item.undecided is True, points=points)
        if word != BACK:
            index += 1


def _points_or_key(typed: str, most: float, keys: Sequence[str]) -> str | float:
    """Return what the person typed: one of `keys`, or points up to `most`. Raises `click.UsageError`, which makes click
    ask again.
    """
    try:
        points = float(typed)
    except ValueError:
        points = math.nan
    if typed in keys or points <= most:
        return typed if typed in keys else points
    raise click.UsageError(f"expected a number up to {most:g}, or {', '.join(keys)}")


def _show(item: AuditItem, number: str) -> None:
    """Print a sample to judge, without its verdict: question, end of the response, extracted answer, and reference.

    number: the sample's number among those drawn, such as "3 of 40".
    """
    click.echo(f"\n{'─' * 60}\n{visible(item.benchmark, 80)} · {visible(item.question_id, 80)} · {number}\n")
    click.echo(lines(item.question))
    left_out = len(item.text) - MAX_SHOWN_CHARS
    click.echo(f"\n[response{f', first {left_out:,} characters omitted' if left_out > 0 else ''}]")
    click.echo(lines(item.text[-MAX_SHOWN_CHARS:]))
    click.echo(f"\nextracted answer: {'none' if item.answer is None else visible(item.answer, 400)}")
    click.echo(f"reference:    {' or '.join(visible(reference, 400) for reference in item.references)}\n")
    if isinstance(item.rubric, str):
        click.echo(f"rubric:\n{lines(item.rubric)}\n")


def _print(audit: Audit) -> None:
    """Print the progress of a benchmark's audit, and how the person's verdicts differ from the grader's."""
    name, n_judged = visible(audit.benchmark, 80), audit.n_drawn - len(audit.items)
    raw = "unknown" if audit.accuracy is None else f"{in_percent(audit.accuracy)}%"
    what = "undecided" if audit.undecided else "drawn"
    click.echo(
        f"{name}: {raw} by the grader; {n_judged:,} of {audit.n_drawn:,} {what} samples have been judged by hand"
    )
    click.echo(f"  {audit.by_hand}" if audit.by_hand else "  no manual verdicts yet")
