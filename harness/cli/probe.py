"""`harness probe`: checks a server for everything that would spoil a score from it."""

from __future__ import annotations

import atexit
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options import ProbeOptions, WhichServer
from harness.asking.options.probing import NO_FIELD, NO_SERVER, ProbeRules, for_each
from harness.asking.options.request import HowWritten
from harness.cli import terminal
from harness.cli.flags import takes
from harness.cli.help import SpelledCommand, spell
from harness.cli.json_output import json_option, say
from harness.core.errors import HarnessError, Interrupted, Sentence, StoppedByRule, UsageError, option
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.options import options_of

if TYPE_CHECKING:
    from harness.verbs.probe.findings import ProbeReport
    from harness.verbs.probe.league import ProviderLook, ProviderStanding

EXAMINED = {"sampling": "sampling", "template": "prompts", "context": "long prompts"}
"""Group of checks → what they examine; the verdict names those of which no check was made."""

SIGNS = {"sound": "sound", "spoils": "SPOILS", "warns": "warns", "untested": "–"}

SHOWN_CHARS = 400
"""Longest reply in the table, in characters; the page and the JSON hold it whole."""


def _prints() -> Any:
    """Return the type of what this command prints with `--json`; its JSON schema is made from it."""
    from harness.verbs.probe.findings import ProbeReport

    return list[ProbeReport]


@click.command("probe", cls=SpelledCommand, verb="probe")
@click.argument("base_url", metavar="[URL[,key=VARIABLE]]...", nargs=-1)
@takes(ProbeRules)
@click.option("--matrix", is_flag=True, help="Probe several servers of one model, one column each.")
@click.option(
    "--history",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --matrix: sample some replies of each provider (about 3,000 tokens), add them to FILE, and say which "
    "provider changed since the earlier replies in FILE and which differs from the others.",
    metavar="FILE",
)
@json_option(_prints, "a list, one report of each server,")
@click.option(
    "--html", "page", type=click.Path(path_type=Path, dir_okay=False), help="Write the report as a page, too."
)
@takes(WhichServer, without=("base_url", *NO_SERVER))
@takes(HowWritten, without=NO_FIELD)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def command(
    base_url: tuple[str, ...], matrix: bool, as_json: bool, page: Path | None, history: Path | None, **given: Any
) -> None:
    """Examine the server at URL: protocol, sampling, context, template, load; with --reference also its weights.
    Each check says what was sent, what came back, why it matters for a score and how to mend it.

    Exit code 0: nothing spoils a score. 4: something does. 2: the server (or the reference) cannot be asked, or stops
    answering, or no check could be made.

    \b
    harness probe http://127.0.0.1:8000
    harness probe http://127.0.0.1:8000 --checks sampling --json
    harness probe http://127.0.0.1:8000 --reference models/QwQ-32B
    harness probe http://127.0.0.1:8000 --save-reference qwq.json
    harness probe https://api.example.com/v1 --reference http://127.0.0.1:8000#MODEL
    harness probe --matrix http://a:8000 http://b:8000 --model org/model --quick
    harness probe --matrix http://127.0.0.1:8000 https://api.example.com/v1,key=THEIR_KEY --model org/model
    harness probe --matrix https://a.example/v1 https://b.example/v1 --history days.jsonl --html league.html
    """
    if history is not None and not matrix:
        raise UsageError("it compares several servers over days: add --matrix", field="history", value=history)
    if matrix and given["save_reference"] is not None:
        raise UsageError("it saves the replies of one server: leave out --matrix", field="save_reference")
    if len(base_url) > 1 and not matrix:
        raise UsageError("several servers need --matrix, which compares them in one table", field="matrix")
    options = {name: value for name, value in given.items() if name in options_of(ProbeOptions)}
    probes = for_each(base_url, options)
    earlier = [] if history is None else _earlier(history)
    reports, interrupted = _reports(probes)
    league = [] if history is None or interrupted else _league(history, earlier, probes, reports)
    if as_json:
        say(reports)
    elif matrix:
        _matrix(reports)
    else:
        _table(reports[0], given["reference"])
    if page is not None:
        from harness.verbs.probe.page import html

        _write(page, html(reports, earlier, league))
    if interrupted is not None:
        sys.stdout.flush()
        # A further signal while Python ends must not change the exit code.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        raise interrupted
    if len(reports) < len(probes) or not all(report.tested for report in reports):
        sys.exit(HarnessError.exit_code)
    if not all(report.sound for report in reports):
        sys.exit(StoppedByRule.exit_code)
    sys.exit(HarnessError.exit_code if any(report.unfinished for report in reports) else 0)


def _reports(probes: Sequence[ProbeOptions]) -> tuple[list[ProbeReport], Interrupted | None]:
    """Probe each server; return the reports, and the signal that ended the last of these probes, if one did.

    With several servers, one that does not answer is only a warning.
    """
    from harness.cli.terminal import Terminal
    from harness.verbs.probe.findings import ProbeInterrupted
    from harness.verbs.probe.probe import probe

    reports = []
    for options in probes:
        try:
            with Terminal(progress=False) as watcher:
                reports.append(probe(options, watcher, shared_key=len(probes) == 1, shown=spell))
        except Interrupted as interrupted:
            if isinstance(interrupted, ProbeInterrupted):
                reports.append(interrupted.report)
            if not reports:
                raise
            return reports, interrupted
        except HarnessError as error:
            if len(probes) == 1 or isinstance(error, UsageError):
                raise
            terminal.warn(error.sentence)
    if not reports:
        raise HarnessError("none of the servers could be probed; the warnings above say why")
    return reports, None


def _earlier(history: Path) -> list[ProviderLook]:
    """The replies of earlier probes (looks) in the history file.

    They are read before the probe, so that a damaged file is reported before minutes are spent.
    """
    from harness.verbs.probe import league

    return league.read(history)


def _league(
    history: Path, earlier: Sequence[ProviderLook], probes: Sequence[ProbeOptions], reports: Sequence[ProbeReport]
) -> list[ProviderStanding]:
    """Sample replies of each provider (a look), print and return how the providers compare, and add the looks to the
    history. A provider that does not answer gets a warning.

    earlier: the looks that the history holds. reports: of this probe, one for each server that answered.
    """
    from harness.cli.terminal import Terminal
    from harness.verbs.probe import league
    from harness.verbs.probe.page import standing_table

    now = datetime.now(UTC).isoformat(timespec="seconds")
    looks = []
    for options in probes:
        try:
            with Terminal(progress=False) as watcher:
                looks.append(league.look_at_provider(options, reports, now, watcher, shared_key=len(probes) == 1))
        except HarnessError as error:
            terminal.warn(error.sentence)
    standings = league.standings(earlier, looks)
    table = standing_table(standings)
    terminal.note(table.title)
    for row in table.rows:
        terminal.note("  ".join(f"{name}: {visible(cell)}" for name, cell in zip(table.columns, row, strict=True)))
    if sentence := league.worn_out(standings):
        terminal.warn(sentence)
    league.append(history, looks)
    return standings


def _write(page: Path, content: str) -> None:
    """Write the HTML page, and print its path."""
    from harness.core.files import write_atomically

    write_atomically(page.absolute(), content.encode())
    terminal.note(f"page: {visible(str(page))}")


def _table(report: ProbeReport, reference: str | None) -> None:
    """Print the findings about one server: a table, then why the bad findings matter and how to mend their causes.

    reference: what the server was compared with, if anything.
    """
    from harness.verbs.probe.worth import unwarmed

    # Checks that were not begun have no row; a line for each reason names them.
    unbegun = [finding for finding in report.findings if not finding.begun]
    rows = [
        (finding.check, SIGNS[finding.outcome], finding.sent, finding.came[:SHOWN_CHARS])
        for finding in report.findings
        if finding not in unbegun
    ]
    terminal.table(("check", "result", "sent", "came"), rows, prose=True)
    for finding in report.findings:
        if finding.outcome in ("spoils", "warns"):
            click.echo(f"{finding.check}: {finding.why} {finding.mend}")
    engine = f" ({report.engine})" if report.engine else ""
    click.echo(f"{visible(report.model)} at {visible(report.address)}{engine}: {_verdict_line(report, reference)}")
    refused = f" ({report.refusals})" if report.refusals else ""
    click.echo(
        f"{count_noun(report.requests, 'request')}{refused}, {report.cost}, {report.seconds:g} s; seed {report.seed}"
    )
    for line in _rejections(report, reference):
        click.echo(line)
    if report.reference_cost:
        click.echo(f"on the reference: {report.reference_cost}")
    if report.left_out:
        click.echo(
            f"--budget left out {count_noun(len(report.left_out), 'check')}; about "
            f"{sum(report.left_out.values()):,} more tokens make them. Left out by group: {_groups_left_out(report)}"
        )
    if report.tested and unwarmed(report):
        click.echo("no temperature above 0 was decided: a server that draws at another temperature than asked passes")
    if unpaid := [finding.check for finding in unbegun if finding.check in report.left_out]:
        prices = (f"{check} ({report.left_out[check]:,})" for check in unpaid)
        click.echo(f"not begun, each with about how many tokens it takes: {', '.join(prices)}")
    for why, checks in report.not_begun.items() if not report.unfinished else ():
        click.echo(f"{count_noun(len(checks), 'check')} not begun, because {visible(why)}")
    if line := _remainder(report):
        click.echo(line)
    if reference is not None and (why := _why_not_compared(report, reference)):
        click.echo(f"NOT compared with {visible(reference)}: {why}")
    elif reference is not None and not Path(reference).exists():
        click.echo(
            f"{visible(reference)} is the reference: its sampling, cuts, prompts and context were not examined; to "
            "examine them, give it as URL"
        )
    if line := _unknown_caps(report):
        click.echo(line)


def _remainder(report: ProbeReport) -> str:
    """The line with the checks that were not made to their end; empty if none was cut short."""
    if not report.unfinished:
        return ""
    checks = spell(option("checks", report.unfinished))
    return f"{visible(report.address)}: {report.ended_by} is asked no more: {report.ended}; {checks} makes the rest"


def _rejections(report: ProbeReport, reference: str | None) -> list[str]:
    """A line for each server that rejects fields: what the probe left out, and what a run of that server needs."""
    from harness.client.address.providers import leaving_out

    rejected = {report.address: report.rejected, f"the reference {reference}": report.reference_rejected}
    return [
        f"{visible(whose)} rejects {', '.join(names)}: the probe leaves this out, as a run does with "
        f"{spell(Sentence(leaving_out(names)).of('run'))}; the server's own default then acts"
        for whose, names in rejected.items()
        if names
    ]


def _unknown_caps(report: ProbeReport) -> str:
    """The line that says up to which length a hidden limit of the replies was looked for; empty if one was found, or if
    no check looked for them.
    """
    from harness.verbs.probe.ends import LONG_REPLY

    looked = [finding for finding in report.findings if finding.check == "long stream"]
    if not looked or not looked[0].begun or looked[0].outcome == "spoils":
        return ""
    if looked[0].outcome == "untested":
        return (
            "hidden limits of a reply's length are unknown (`long stream` is untested); long replies of a run show them"
        )
    reach = f"beyond the reply of `long stream` (at most {LONG_REPLY:,} tokens)"
    return f"hidden limits of a reply's length {reach} were not looked for; long replies of a run show them"


def _why_not_compared(report: ProbeReport, reference: str) -> str:
    """What was not compared with the reference, and why; empty if all was, or if a file or folder is the reference and
    no comparison was asked for.
    """
    beside = [finding for finding in report.findings if finding.group == "reference"]
    missing = [finding.check for finding in beside if finding.outcome == "untested"]
    names = ", ".join(missing)
    compared = ", ".join(item.check for item in report.findings if item.beside and item.outcome != "untested")
    by = f"; compared by {compared}" if compared else ""
    if len(missing) < len(beside):
        return f"{names} (the table, or a line above, says why){by}" if missing else ""
    if not beside:
        return "" if Path(reference).exists() else f"weights, draws and greedy replies are not among the checks{by}"
    if all(finding.check in report.left_out for finding in beside):
        return f"the budget left out {names}"
    return f"{names} could not be made (the table, or a line above, says why)"


def _groups_left_out(report: ProbeReport) -> str:
    """The groups of which the budget left out checks, with the numbers of their checks left out and in all."""
    n_all = Counter(finding.group for finding in report.findings)
    n_out = Counter(finding.group for finding in report.findings if finding.check in report.left_out)
    return ", ".join(f"{group} {n} of {n_all[group]}" for group, n in n_out.items())


def _verdict_line(report: ProbeReport, reference: str | None) -> str:
    """The verdict on a server, with the numbers of its findings by outcome. reference: as in `_table`."""
    from harness.verbs.probe.worth import GREEDY, unexplained

    if not report.tested:
        return f"no check could be made, so nothing is known ({count_noun(len(report.findings), 'check')} untested)"
    n = {outcome: report.count(outcome) for outcome in ("sound", "spoils", "warns", "untested")}
    if report.sound:
        verdict = "nothing spoils a score" if report.thorough else "nothing that was tested spoils a score"
        if unexplained(report):
            verdict += f"; greedy replies do not repeat: not explained; {spell(option('checks', GREEDY))} finds out why"
    elif report.differs and reference is not None and not Path(reference).exists():
        verdict = f"the two servers differ ({', '.join(report.differs)}): their scores are of two set-ups"
    else:
        verdict = f"{n['spoils']} of its checks would spoil a score"
    if report.ended_by:
        verdict = f"NOT finished, since {report.ended_by} answers no more; {verdict}"
    warned = ", ".join(finding.check for finding in report.findings if finding.outcome == "warns")
    warnings = f"{n['warns']} with a warning" + (f": {warned}" if warned else "")
    # The names of the checks have commas between them, so that the numbers then have semicolons.
    counts = ("; " if warned else ", ").join([f"{n['sound']} sound", warnings, f"{n['untested']} could not be tested"])
    examined = {finding.group for finding in report.findings if finding.outcome != "untested"}
    missing = [name for group, name in EXAMINED.items() if group not in examined]
    return f"{verdict} ({counts})" + (f"; not examined: {', '.join(missing)}" if report.sound and missing else "")


def _matrix(reports: list[ProbeReport]) -> None:
    """Print one table of several servers, a column for each, then the findings that spoil a score."""

    def sign(report: ProbeReport, check: str) -> str:
        """The table's cell for one check of one server."""
        return SIGNS[next(finding.outcome for finding in report.findings if finding.check == check)]

    checks = [finding.check for finding in reports[0].findings]
    rows = [(check, *(sign(report, check) for report in reports)) for check in checks]
    terminal.table(("check", *(report.address for report in reports)), rows)
    for report in reports:
        for line in filter(None, (*_rejections(report, None), _remainder(report))):
            click.echo(line)
        for finding in report.findings:
            if finding.outcome == "spoils":
                click.echo(f"{visible(report.address)}: {finding.check}: {visible(finding.came)}")
