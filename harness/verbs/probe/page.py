"""The reports of probes as HTML tables, on the same page layout as reports of runs."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.nouns import count_noun
from harness.reports.page import tables_page
from harness.reports.tables import Table
from harness.verbs.probe.findings import Finding, ProbeReport
from harness.verbs.probe.league import ALPHA, ProviderLook, ProviderStanding


def html(
    reports: Sequence[ProbeReport], history: Sequence[ProviderLook] = (), league: Sequence[ProviderStanding] = ()
) -> str:
    """A page with one table per server, and before them the ranking of the providers.

    history: the earlier looks (sets of sampled replies) at each provider. league: how this probe's look at each
    provider compares with the earlier looks and the other providers; empty: no ranking and no history are shown.
    """
    models = ", ".join(dict.fromkeys(report.model for report in reports))
    n = sum(report.count("spoils") for report in reports)
    if n:
        summary = f"{count_noun(n, 'check')} would spoil a score"
    elif any(report.tested for report in reports):
        thorough = all(report.thorough for report in reports)
        summary = "nothing spoils a score" if thorough else "nothing that was tested spoils a score"
    else:
        summary = "no check could be made"
    tables = [standing_table(league), _history_table(history)] if league else []
    return tables_page(f"Probe of {models}", summary, [*tables, *(_table(report) for report in reports)])


def standing_table(league: Sequence[ProviderStanding]) -> Table:
    """One row a provider: what spoils a score, whether it changed, whether it differs from the others."""
    rows = tuple(
        (
            standing.look.address,
            ", ".join(standing.look.spoils) or "nothing",
            _word(standing.p_changed, standing.changed, "CHANGED", "the same"),
            _word(standing.p_differs, standing.differs, "DIFFERS", "the same"),
            str(standing.n_looks),
        )
        for standing in league
    )
    return Table(
        title=f"Providers: any false verdict in this table, over all looks, has a chance of at most {ALPHA:.0%}",
        columns=("provider", "spoils a score", "beside its earlier looks", "beside the others", "looks"),
        rows=rows,
    )


def _word(p: float | None, rejected: bool | None, odd: str, plain: str) -> str:
    """The result of a comparison and its p-value, for a cell of a table; a dash without a p-value.

    rejected: whether the two compared looks differ; None: not judged. odd, plain: the words for "they differ" and "they
    do not".
    """
    if p is None:
        return "–"
    if rejected is None:
        return f"not judged, begin a new history (p = {p:.2g})"
    return f"{odd if rejected else plain} (p = {p:.2g})"


def _history_table(history: Sequence[ProviderLook]) -> Table:
    """The earlier looks, the latest first."""
    rows = tuple((look.time, look.address, look.model, ", ".join(look.spoils) or "nothing") for look in history[::-1])
    return Table(title="Earlier looks", columns=("time", "provider", "model", "spoils a score"), rows=rows)


def _table(report: ProbeReport) -> Table:
    """The findings about one server, one row per check."""
    facts = (
        report.engine or "unknown engine",
        f"{report.requests} requests" + (f" ({report.refusals})" if report.refusals else ""),
        f"{report.tokens:,} tokens"
        + (f" ({report.reference_tokens:,} on the reference)" if report.reference_cost else ""),
        f"{report.seconds:g} s",
        f"seed {report.seed}",
        *([f"rejects {', '.join(report.rejected)}"] if report.rejected else []),
        f"harness {report.version}",
    )
    return Table(
        title=f"{report.model} at {report.address}: {' · '.join(facts)}",
        columns=("check", "result", "sent", "came", "why it matters, and what to do"),
        rows=tuple((seen.check, seen.outcome, seen.sent, seen.came, _advice(seen)) for seen in report.findings),
    )


def _advice(finding: Finding) -> str:
    """Why the check matters and, if it failed, what to do."""
    return f"{finding.why} {finding.mend}" if finding.outcome in ("spoils", "warns") else finding.why
