"""The printed report on a judge, in `harness score` and `harness audit --labels`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from harness.cli import terminal
from harness.cli.flags import judge_of
from harness.commands import score as scoring
from harness.commands.imported_runs import open_scored
from harness.core.errors import Exit, UsageError
from harness.core.number_text import Prices, count_noun, in_percent, in_points, is_are
from harness.core.sanitize import quoted, visible
from harness.generation.outcome import Outcome
from harness.grading.second.second_opinion import Agreement
from harness.judges.costs import ExpectedRequests, expected_judging
from harness.judges.judge import Judged, JudgeReport, JudgeSettings
from harness.judges.labels import MeasuredJudge, Measurement
from harness.options.finished_runs import AuditCommand
from harness.options.judge import JudgeOptions
from harness.options.score import JudgingCosts, ScoreOptions

SHOWN_CAUSES = 5
"""Largest number of causes of missing replies to print."""


def show(judged: Judged, *, stderr: bool) -> None:
    """Print the judge's agreement with the rules, the disagreements that change the score most, and the judge's tokens.

    stderr: print on standard error, since standard output holds JSON.
    """
    for report in judged.reports:
        for line in _lines(report):
            click.echo(line, err=stderr)
    if judged.mute:
        click.echo(f"harness: {judged.mute}", err=True)
    if not judged.outcomes:
        if judged.n_stored:
            replies = count_noun(judged.n_stored, "stored reply", "stored replies")
            click.echo(f"  used {replies} from the judge; no new replies were needed", err=stderr)
        return
    _show_sessions(judged.outcomes)


def _show_sessions(outcomes: Iterable[Outcome]) -> None:
    """Print the warnings of a judge's sessions, and why replies are missing."""
    for outcome in outcomes:
        for warning in outcome.warnings:
            terminal.warn(f"judge: {warning}")
        for cause in outcome.causes[:SHOWN_CAUSES]:
            click.echo(f"harness: judge: {cause}", err=True)
        if not outcome.complete:
            click.echo(
                f"harness: {outcome.n_missing} of the judge's {count_noun(outcome.n_expected, 'reply', 'replies')} "
                f"{is_are(outcome.n_missing)} missing; these answers keep "
                "the verdict they had without the judge. To request the missing replies, run the same command again",
                err=True,
            )


def show_expected(
    sources: Sequence[Path], options: ScoreOptions, judge: JudgeOptions | None, costs: JudgingCosts
) -> None:
    """Print the requests that the judge would receive for each source, and their maximum cost.

    Raises `UsageError` and the errors of grading.
    """
    if judge is None:
        raise UsageError(
            "--dry-run counts the requests that a judge would receive: specify the judge with --judge MODEL"
        )
    scoring.check(sources, options)
    prices = scoring.judge_prices(costs, judge, "--judge MODEL")
    for source in sources:
        with terminal.Terminal() as watcher:
            expected = expected_judging(open_scored(source), options, judge, watcher)
        for line in _lines_of_expected(source, *expected, prices):
            click.echo(line)


def _lines_of_expected(
    source: Path, expected: ExpectedRequests, of_each: Mapping[str, ExpectedRequests], prices: Prices | None
) -> Iterator[str]:
    """Yield the lines to print on the requests that the judge would receive for one source."""
    judge, name = expected.judge, visible(str(source), 100)
    if not expected.n_answers:
        yield f"{name}: {_nothing_to_judge(expected, judge)}"
        return
    scopes = dict.fromkeys(of.judge.scope for of in of_each.values())
    stored = f" − {count_noun(expected.n_stored, 'stored reply', 'stored replies')}" if expected.n_stored else ""
    jury = f" × {len(judge.members)} judges" if judge.jury else ""
    yield (
        f"{name}: {judge_names(judge)} would be asked {count_noun(expected.n_requests, 'time')} "
        f"({count_noun(expected.n_answers, 'distinct answer')}{jury}{stored}; scope={', '.join(scopes)})"
    )
    if len(of_each) > 1:
        for benchmark, of in of_each.items():
            times = count_noun(of.n_requests, "time")
            form = f", by the form {of.judge.prompt.name}" if of.judge.of_card else ""
            yield f"  {visible(benchmark, 100)}: {times}, about {count_noun(of.n_answers, 'distinct answer')}{form}"
        # A rubric is written for one kind of answer.
        if not all(of.judge.of_card for of in of_each.values()):
            yield f"  {'the others' if len(scopes) > 1 else 'all'} by the prompt {judge.prompt.name}"
    yield f"  {expected.describe_maximum(prices)}"
    yield "  nothing was sent, and no grades were stored"


def _left_out(counted: ExpectedRequests | JudgeReport, judge: JudgeSettings) -> str:
    """The samples that the judge does not see, in words; empty if it sees all."""
    parts = (
        (counted.n_outside, f"decided by the rules (scope={judge.scope})"),
        (counted.n_silent, "without text that it could see"),
    )
    return " and ".join(f"{count_noun(n, 'sample')} {why}" for n, why in parts if n)


def _nothing_to_judge(counted: ExpectedRequests | JudgeReport, judge: JudgeSettings) -> str:
    """The sentence about a judge that sees no sample."""
    way_on = " To ask about these as well, add scope=all to --judge" if counted.n_outside else ""
    return f"there is nothing to judge: {_left_out(counted, judge)}.{way_on}"


def judge_names(judge: JudgeSettings) -> str:
    """The model of a judge, or of each judge in a jury."""
    return ", ".join(visible(each.model, 100) for each in judge.members)


def _lines(report: JudgeReport) -> Iterator[str]:
    """Yield the lines to print on the judge's verdicts for one benchmark."""
    judge, name = report.judge, visible(report.benchmark, 100)
    if not report.n_answers:
        yield f"{name}: {_nothing_to_judge(report, judge)}"
        return
    yield f"{name}: judged by {judge_names(judge)}, prompt {judge.prompt.name}"
    if report.by_juror:
        means = ", ".join(f"{visible(each, 100)} {in_percent(mean)}" for each, mean in report.by_juror.items())
        takes = (
            f"the {judge.prompt.take} of their points is used" if judge.prompt.gives_points else "the majority counts"
        )
        yield f"  spread of the judges (not an interval): {means}%; {takes}"
    yield from matrix_lines(report.agreement, "judge", report.first_grader)
    parts = [count_noun(report.n_answers, "distinct answer")]
    if report.n_missing:
        parts.append(f"{report.n_missing} not yet judged")
    yield f"  {', '.join(parts)}; {count_noun(report.n_decided, 'sample')} decided by the judge"
    if rest := _left_out(report, judge):
        yield f"  not shown to the judge: {rest}"
    yield f"  cost in all sessions: {report.cost.text}"
    if judge.override:
        precedence = "the judge's verdict takes precedence"
    else:
        first = report.first_grader
        verb = "take" if first == "rules" else "takes"
        precedence = (
            f"where they differ, the {first} {verb} precedence (with override=true, the judge's verdict takes "
            "precedence)"
        )
    yield from disagreement_lines(report.agreement, "judge", precedence, report.first_grader)


def measure(labels: Path, options: AuditCommand) -> int:
    """Measure the judge on labeled pairs, print its cost first and then its verdicts, and return the exit code."""
    judge = judge_of(options.judge)
    if judge is None:
        raise UsageError("specify the judge to measure with --judge MODEL", field="labels")
    with terminal.Terminal() as watcher:
        prices = scoring.judge_prices(options.narrow(JudgingCosts), judge, "--judge MODEL")
        measurement = Measurement(labels, judge, watcher, prices)
        click.echo(measurement.cost)
        if options.dry_run:
            return Exit.YES
        measured = measurement.ask()
    for line in _lines_of_measured(measurement, measured):
        click.echo(line)
    _show_sessions(measurement.requests.outcomes)
    is_mute = measured.n_unruled == len(measurement.pairs)
    return Exit.CANNOT_SAY if measured.missing or is_mute else Exit.YES


def _lines_of_measured(measurement: Measurement, measured: MeasuredJudge) -> Iterator[str]:
    """Yield the lines to print on a judge's verdicts on labeled pairs."""
    form, n = measurement.judge.prompt, len(measurement.pairs)
    unruled = f", {measured.n_unruled:,} without a ruling" if measured.n_unruled else ""
    yield f"{judge_names(measurement.judge)}, form {form.name}: {count_noun(n, 'labeled pair')}{unruled}"
    for does, (hits, of, ends) in measured.shares.items():
        within = "" if ends is None else f" [{in_percent(ends.low)}, {in_percent(ends.high)}]"
        yield f"  {does:<39}" + (f"{in_percent(hits / of)}%{within}, {hits:,} of {of:,}" if of else "no pairs")
    points = " (quadratic weights)" if form.gives_points else ""
    kappa = f"Cohen's κ{points}"
    yield f"  {kappa:<39}" + ("unknown" if measured.kappa is None else f"{measured.kappa:.2f}")
    if measured.error is not None:
        mean, ends = measured.error
        within = "" if ends is None else f" [{in_points(ends.low)}, {in_points(ends.high)}]"
        yield f"  {'mean error (ruling − label)':<39}{in_points(mean)}{within}% of all points"
    for answer in measured.persuasive[:SHOWN_CAUSES]:
        yield f"  fooled by {visible(answer, 80)!r}"
    yield f"  cost in all sessions: {measured.cost.text}"


SHOWN_DISAGREEMENTS = 10
SHOWN_ANSWER_CHARS = 60
# The matrix: the rules' verdicts in rows, the other grader's opinions in columns.
_RULES = ("correct", "wrong", "no_answer", "undecided")
_OTHER = ("correct", "wrong", "no opinion")


def matrix_lines(agreement: Agreement, grader: str, first: str = "rules") -> Iterator[str]:
    """Yield the lines of the matrix: a row for each verdict of the rules, a column for each opinion of the other
    grader.

    Each number counts samples; rows without samples are omitted. grader: the other grader's name. first: the name of
    the first grader.
    """
    corner = f"{first} | {grader}"
    yield f"  {corner}" + "".join(f"{word:>12}" for word in _OTHER)
    for rules in _RULES:
        counts = [agreement.matrix.get((rules, opinion), 0) for opinion in _OTHER]
        if any(counts):
            yield f"  {rules:<{len(corner)}}" + "".join(f"{count:>12}" for count in counts)


def disagreement_lines(agreement: Agreement, grader: str, note: str, first: str = "rules") -> Iterator[str]:
    """Yield the lines on answers that the graders judge differently, with the largest effects on the score first.

    note: text at the end of the first line, such as which verdict counts. grader, first: as in `matrix_lines`.
    """
    cases = agreement.disagreements
    if not cases:
        return
    yield f"    the graders disagree on {count_noun(sum(case.n_samples for case in cases), 'sample')}; {note}:"
    for case in cases[:SHOWN_DISAGREEMENTS]:
        answer = "no answer" if case.extracted is None else repr(visible(case.extracted, SHOWN_ANSWER_CHARS))
        opinion = "correct" if case.theirs else "wrong"
        effect = f"{100 * case.effect:.2f} points"
        where = f"{quoted(case.question_id)}: {answer}"
        yield f"    {where}: {first} {case.ours}, {grader} {opinion} (×{case.n_samples}, {effect})"
    if len(cases) > SHOWN_DISAGREEMENTS:
        yield f"    and {len(cases) - SHOWN_DISAGREEMENTS} more"
