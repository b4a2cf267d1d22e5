"""`harness probe`: checks a server for everything that would invalidate a score from it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click
import msgspec

from harness.cli import terminal
from harness.cli.json_output import print_json
from harness.core.errors import Exit
from harness.core.number_text import count_noun
from harness.core.sanitize import quoted, visible
from harness.options.probing import ProbeCommand
from harness.probes.findings import ProbeReport
from harness.probes.likelihood import Likelihood
from harness.probes.probe import probe

EXAMINED = {"sampling": "sampling", "template": "prompts", "context": "long prompts"}
"""Group of checks → what they examine; the verdict lists the groups in which no check was made."""

SIGNS = {"pass": "pass", "fail": "FAIL", "warn": "warn", "untested": "–"}

SHOWN_CHARS = 400
"""Longest reply in the table, in characters; the JSON contains it in full."""

_REJECTED = re.compile(r"HTTP 4(00|22)\b")
"""Statuses of a request with a field that the server rejects."""


def carry_out(options: ProbeCommand) -> int:
    """Probe the server, and print the findings. Returns the exit code."""
    with terminal.Terminal(progress=False) as watcher:
        report = probe(options, watcher)
    if options.as_json:
        print_json(report)
    else:
        _table(report, options.checks)
    if not report.passed:
        return Exit.NO
    if report.ended:
        return Exit.INVALID
    return Exit.YES if report.tested and not report.unanswered(options.checks) else Exit.CANNOT_SAY


def _table(report: ProbeReport, names: Sequence[str]) -> None:
    """Print the verdict on one server, why the bad findings matter and how to fix their causes, and a table of all
    findings. names: the checks and groups that the user named.
    """
    engine = f" ({report.engine})" if report.engine else ""
    click.echo(f"{visible(report.model)} at {visible(report.address)}{engine}: {_verdict_line(report, names)}")
    for finding in report.findings:
        if finding.outcome in ("fail", "warn"):
            click.echo(f"{finding.check}: {finding.why} {finding.fix}")
    rows = [
        (finding.check, SIGNS[finding.outcome], finding.sent, finding.received[:SHOWN_CHARS])
        for finding in report.findings
    ]
    terminal.table(("check", "result", "sent", "received"), rows)
    for finding in report.findings:
        if finding.likelihood is not msgspec.UNSET:
            _likelihood(finding.likelihood)
    click.echo(
        f"{count_noun(report.requests, 'request')}, {count_noun(report.tokens, 'token')}, {report.seconds:g} s; "
        f"seed {report.seed}"
    )
    if any(finding.outcome == "untested" and _REJECTED.search(finding.received) for finding in report.findings):
        click.echo(
            "if the server rejects a field that the probe sends, omit the field with --drop FIELD, as in a run (where "
            "--seed none omits the seed)"
        )


def _likelihood(read: Likelihood) -> None:
    """Print the differences over all tokens and over subsets of them, then the tokens that changed most."""
    rows = [
        (
            difference.of,
            f"{difference.tokens:,}",
            f"{difference.questions:,}",
            f"{difference.mean:+z.4f}",
            "–" if difference.low is None else f"{difference.low:+z.4f} to {difference.high:+z.4f}",
            f"{difference.size:.4f}",
            "–" if difference.kl is None else f"{difference.kl:.4f}",
        )
        for difference in (read.difference, read.noise, read.opening, *read.positions, *read.benchmarks)
    ]
    terminal.table(("tokens", "number", "questions", "difference", "95% interval", "mean size", "KL"), rows)
    moved = [
        (
            f"{token.question_id} {token.sample_index}",
            str(token.position),
            f"{token.base:.2f} → {token.copy:.2f}",
            f"{quoted(token.before)}[{quoted(token.token)}]",
        )
        for token in read.moved
    ]
    if moved:  # empty for a server with the same log-probabilities as the base
        terminal.table(("reply", "position", "log-probability", "moved most"), moved)
    click.echo(f"base: {visible(read.base)}; the server: {read.sentence}")


def _verdict_line(report: ProbeReport, names: Sequence[str]) -> str:
    """The verdict on a server, with the number of findings for each outcome. names: as in `_table`."""
    if not report.tested:
        return f"no check could run, so there is no result ({count_noun(len(report.findings), 'check')} untested)"
    n = {outcome: report.count(outcome) for outcome in ("pass", "fail", "warn", "untested")}
    if report.passed:
        which = "no checks" if report.thorough else "none of the checks that ran"
        verdict = f"{which} found a problem that would invalidate a score"
    elif report.differing_checks:
        verdict = "the distribution of its replies differs from the base's, so their scores are not comparable"
    else:
        verdict = f"{n['fail']} of its checks found a problem that would invalidate a score"
    if report.ended:
        verdict = f"NOT finished, {report.ended}; {verdict}"
    warned = ", ".join(finding.check for finding in report.findings if finding.outcome == "warn")
    if warned:  # Commas separate the names of the checks, so semicolons separate the numbers.
        counts = f"{n['pass']} passed; {n['warn']} with a warning: {warned}; {n['untested']} could not be tested"
    else:
        counts = f"{n['pass']} passed, 0 with a warning, {n['untested']} could not be tested"
    if report.passed and (unanswered := report.unanswered(names)):
        return f"cannot say anything about {', '.join(unanswered)}; {verdict} ({counts})"
    examined = {finding.group for finding in report.findings if finding.outcome != "untested"}
    missing = [name for group, name in EXAMINED.items() if group not in examined and not names]
    return f"{verdict} ({counts})" + (f"; not examined: {', '.join(missing)}" if report.passed and missing else "")
