"""The reports of probes as HTML tables, on the same page layout as reports of runs."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reports.page import tables_page
from harness.reports.tables import Table
from harness.verbs.probe.findings import Finding, ProbeReport


def html(reports: Sequence[ProbeReport]) -> str:
    """A page with one table per server."""
    models = ", ".join(dict.fromkeys(report.model for report in reports))
    n = sum(report.count("spoils") for report in reports)
    summary = f"{n} {'checks' if n > 1 else 'check'} would spoil a score" if n else "nothing spoils a score"
    return tables_page(f"Probe of {models}", summary, [_table(report) for report in reports])


def _table(report: ProbeReport) -> Table:
    """The findings about one server, one row per check."""
    facts = (
        report.engine or "unknown engine",
        f"{report.requests} requests",
        f"{report.tokens:,} tokens",
        f"{report.seconds:g} s",
        f"seed {report.seed}",
        f"harness {report.version}",
    )
    return Table(
        title=f"{report.model} at {report.address}: {' · '.join(facts)}",
        columns=("check", "result", "sent", "came", "why it matters, and what to do"),
        rows=tuple((seen.check, seen.outcome, seen.sent, seen.came, _advice(seen)) for seen in report.findings),
    )


def _advice(finding: Finding) -> str:
    return f"{finding.why} {finding.mend}" if finding.outcome in ("spoils", "warns") else finding.why
