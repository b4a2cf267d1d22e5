"""`harness probe`: checks a server for everything that would spoil a score from it."""

from __future__ import annotations

import atexit
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options import ProbeOptions, WhichServer
from harness.asking.options.probing import NO_FIELD, NO_SERVER, ProbeRules
from harness.asking.options.request import HowWritten
from harness.cli import terminal
from harness.cli.flags import takes
from harness.cli.help import Helping
from harness.cli.json_output import json_option, say
from harness.core.errors import HarnessError, StoppedByRule
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.options import options_of

if TYPE_CHECKING:
    from harness.verbs.probe.findings import ProbeReport

EXAMINED = {"sampling": "sampling", "template": "prompts", "context": "long prompts"}
"""Group of checks → what they examine; the verdict names those of which no check was made."""

SIGNS = {"sound": "sound", "spoils": "SPOILS", "warns": "warns", "untested": "–"}

SHOWN_CHARS = 400
"""Longest reply in the table, in characters; the JSON holds it whole."""


@click.command("probe", cls=Helping, verb="probe")
@click.argument("base_url", metavar="[URL]", required=False)
@takes(ProbeRules)
@json_option("harness.verbs.probe.findings:ProbeReport", "one object")
@takes(WhichServer, without=("base_url", *NO_SERVER))
@takes(HowWritten, without=NO_FIELD)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def command(base_url: str | None, as_json: bool, **given: Any) -> None:
    """Examine the server at URL: protocol, sampling, context, template, load; with --reference also its weights.
    Each check says what was sent, what came back, why it matters for a score and how to mend it.

    Exit code 0: nothing spoils a score. 4: something does. 2: the server (or the reference) cannot be asked, or stops
    answering, or no check could be made.

    \b
    harness probe http://127.0.0.1:8000
    harness probe http://127.0.0.1:8000 --checks sampling --json
    harness probe http://127.0.0.1:8000 --save-reference qwq.json
    harness probe https://api.example.com/v1 --reference http://127.0.0.1:8000#MODEL
    """
    from harness.cli.terminal import Terminal
    from harness.verbs.probe.findings import ProbeInterrupted
    from harness.verbs.probe.probe import probe

    options = {name: value for name, value in given.items() if name in options_of(ProbeOptions)}
    interrupted = None
    try:
        with Terminal(progress=False) as watcher:
            report = probe(ProbeOptions.of(base_url=base_url, **options), watcher)
    except ProbeInterrupted as stop:
        interrupted, report = stop, stop.report
    if as_json:
        say(report)
    else:
        _table(report, given["reference"])
    if interrupted is not None:
        sys.stdout.flush()
        # A further signal while Python ends must not change the exit code.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        raise interrupted
    if not report.sound:
        sys.exit(StoppedByRule.exit_code)
    sys.exit(HarnessError.exit_code if report.ended or not report.tested else 0)


def _table(report: ProbeReport, reference: str | None) -> None:
    """Print the findings about one server: a table, then why the bad findings matter and how to mend their causes.

    reference: what the server was compared with, if anything.
    """
    from harness.client.address.providers import leaving_out

    rows = [
        (finding.check, SIGNS[finding.outcome], finding.sent, finding.came[:SHOWN_CHARS]) for finding in report.findings
    ]
    terminal.table(("check", "result", "sent", "came"), rows)
    for finding in report.findings:
        if finding.outcome in ("spoils", "warns"):
            click.echo(f"{finding.check}: {finding.why} {finding.mend}")
    engine = f" ({report.engine})" if report.engine else ""
    click.echo(f"{visible(report.model)} at {visible(report.address)}{engine}: {_verdict_line(report, reference)}")
    click.echo(
        f"{count_noun(report.requests, 'request')}, {count_noun(report.tokens, 'token')}, {report.seconds:g} s; "
        f"seed {report.seed}"
    )
    if report.rejected:
        click.echo(
            f"the server rejects {', '.join(report.rejected)}: the probe leaves this out, as a run does with "
            f"{leaving_out(report.rejected)}; the server's own default then acts"
        )
    if reference is not None and not any(
        finding.group == "reference" and finding.outcome != "untested" for finding in report.findings
    ):
        click.echo(f"NOT compared with {visible(reference)}; the table says why")
    elif reference is not None and not Path(reference).exists():
        click.echo(
            f"{visible(reference)} is the reference: its sampling, cuts, prompts and context were not examined; to "
            "examine them, give it as URL"
        )


def _verdict_line(report: ProbeReport, reference: str | None) -> str:
    """The verdict on a server, with the numbers of its findings by outcome. reference: as in `_table`."""
    if not report.tested:
        return f"no check could be made, so nothing is known ({count_noun(len(report.findings), 'check')} untested)"
    n = {outcome: report.count(outcome) for outcome in ("sound", "spoils", "warns", "untested")}
    if report.sound:
        verdict = "nothing spoils a score" if report.thorough else "nothing that was tested spoils a score"
    elif report.differs and reference is not None and not Path(reference).exists():
        verdict = f"the two servers differ ({', '.join(report.differs)}): their scores are of two set-ups"
    else:
        verdict = f"{n['spoils']} of its checks would spoil a score"
    if report.ended:
        verdict = f"NOT finished, {report.ended}; {verdict}"
    warned = ", ".join(finding.check for finding in report.findings if finding.outcome == "warns")
    warnings = f"{n['warns']} with a warning" + (f": {warned}" if warned else "")
    # The names of the checks have commas between them, so that the numbers then have semicolons.
    counts = ("; " if warned else ", ").join([f"{n['sound']} sound", warnings, f"{n['untested']} could not be tested"])
    examined = {finding.group for finding in report.findings if finding.outcome != "untested"}
    missing = [name for group, name in EXAMINED.items() if group not in examined]
    return f"{verdict} ({counts})" + (f"; not examined: {', '.join(missing)}" if report.sound and missing else "")
