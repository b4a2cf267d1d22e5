"""The probe that a run makes of its servers before it starts: the quick checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.asking.watching import Watcher
from harness.core.errors import StoppedByRule
from harness.verbs.probe import probe
from harness.verbs.probe.probed_endpoint import ProbedEndpoint

if TYPE_CHECKING:
    from harness.asking.prepare import Prepared


def before_run(prepared: Prepared, watcher: Watcher | None = None) -> None:
    """Make the quick checks of every endpoint of a run.

    Raises `StoppedByRule` where an endpoint would spoil the score.
    """
    settings = prepared.settings
    for endpoint in settings.endpoints:
        facts = prepared.looks.facts.get(endpoint.base_url)
        if facts is None:
            continue  # The endpoint is down; the run tries it again while it goes on.
        server = ProbedEndpoint(
            endpoint=endpoint,
            asker=settings.asker,
            engine=facts.host.get("engine"),
            context=prepared.looks.context_of(endpoint, settings.model),
            ca_file=prepared.options.ca_file,
        )
        report = probe.examine(server, probe.select(quick=True), address=endpoint.base_url, watcher=watcher)
        spoilt = [f"{finding.check}: {finding.came}" for finding in report.findings if finding.outcome == "spoils"]
        if spoilt:
            raise StoppedByRule(
                f"{endpoint.base_url} would spoil the score, so the run was not started: {'; '.join(spoilt)}. "
                "See `harness probe`."
            )
