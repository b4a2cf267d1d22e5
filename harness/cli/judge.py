"""The printed report on a judge, in `harness score`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.cli import terminal
from harness.cli.agreement import SHOWN_DISAGREEMENTS, disagreement_lines, matrix_lines
from harness.cli.help import spell
from harness.core.inert import quoted, visible
from harness.core.nouns import are, count_noun

if TYPE_CHECKING:
    from harness.scoring.two_judges import JudgesAgreement
    from harness.verbs.judge import Judged, JudgeReport, JudgeSettings

SHOWN_CAUSES = 5

F = TypeVar("F", bound=Callable[..., Any])


def show(judged: Judged, judge: JudgeSettings, *, stderr: bool) -> None:
    """Print the judge's agreement with the rules, the disagreements that move the score most, and the judge's tokens.

    stderr: print on standard error, since standard output holds JSON.
    """
    for report in judged.reports:
        for line in _lines(report, judge):
            click.echo(line, err=stderr)
    if judged.mute:
        click.echo(f"harness: {judged.mute}", err=True)
    outcome = judged.outcome
    if outcome is None:
        if judged.n_stored:
            replies = count_noun(judged.n_stored, "stored reply", "stored replies")
            click.echo(f"  {replies} of the judge used; the judge was not asked", err=stderr)
        return
    for warning in outcome.warnings:
        terminal.warn(f"judge: {warning.marked}")
    for cause in outcome.causes[:SHOWN_CAUSES]:
        click.echo(f"harness: judge: {spell(str(cause))}", err=True)
    if not outcome.complete:
        click.echo(
            f"harness: {outcome.n_owed} of the judge's {count_noun(outcome.n_expected, 'reply', 'replies')} "
            f"{are(outcome.n_owed)} missing; these answers keep "
            "the verdict without the judge, and the same command given again asks again",
            err=True,
        )


def _lines(report: JudgeReport, judge: JudgeSettings) -> Iterator[str]:
    """The lines to print on the judge's verdicts for one benchmark."""
    name = visible(report.benchmark, 100)
    if not report.n_answers:
        yield f"{name}: the judge has nothing to rule on: no sample is in its scope (--judge-scope {judge.scope})"
        return
    yield f"{name}: judged by {visible(judge.model, 100)}, prompt {judge.prompt.name}"
    yield from matrix_lines(report.agreement, "judge", report.first_grader)
    parts = [count_noun(report.n_answers, "distinct answer")]
    if report.n_silent:
        parts.append(f"{report.n_silent} without a verdict")
    if report.n_owed:
        parts.append(f"{report.n_owed} not yet judged")
    if report.n_hidden:
        parts.append(f"{count_noun(report.n_hidden, 'sample')} without text, which the judge cannot see")
    yield f"  {', '.join(parts)}; {count_noun(report.n_decided, 'sample')} decided by the judge"
    yield f"  cost: {_cost(report)}"
    counts = (
        "the judge's verdict counts"
        if judge.override
        else f"where judge and {report.first_grader} differ, the {report.first_grader} "
        f"{'count' if report.first_grader == 'rules' else 'counts'} (see --judge-override)"
    )
    yield from disagreement_lines(report.agreement, "judge", counts, report.first_grader)
    for agreement in report.others:
        yield from _beside(agreement)


def _beside(agreement: JudgesAgreement) -> Iterator[str]:
    """The lines to print on the agreement with the judge of a former score."""
    share = f"{100 * agreement.n_equal / agreement.n_answers:.1f} %"
    if agreement.interval is not None:
        share += f", new questions {100 * agreement.interval.low:.1f}–{100 * agreement.interval.high:.1f}"
    kappa = "" if agreement.kappa is None else f"; Cohen's kappa {agreement.kappa:.2f}"
    name = visible(agreement.name.removeprefix("judge:"), 100)
    n_answers = count_noun(agreement.n_answers, "distinct answer")
    yield f"  agrees with the judge {name} on {agreement.n_equal:,} of {n_answers} ({share}){kappa}"
    for key, (correct, n) in islice(agreement.differing.items(), SHOWN_DISAGREEMENTS):
        ours, theirs = ("correct", "wrong") if correct else ("wrong", "correct")
        yield f"    {quoted(key.question_id)} sample {key.sample_index}: {ours}, by {name} {theirs} (×{n})"
    if (left := len(agreement.differing) - SHOWN_DISAGREEMENTS) > 0:
        yield f"    and {left:,} more"


def _cost(report: JudgeReport) -> str:
    """The judge's tokens, in words."""
    if report.prompt_tokens is None and report.completion_tokens is None:
        return "unknown, the server states no tokens"
    return f"{report.prompt_tokens or 0:,} prompt tokens, {report.completion_tokens or 0:,} completion tokens"
