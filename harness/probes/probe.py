"""A probe of one server: which checks are made, in what order, and what they show together."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.client.protocol.failures import RequestFailed
from harness.core.errors import ServerError, UsageError, near_names
from harness.core.installation import __version__
from harness.core.number_text import count_noun
from harness.core.options import options_of
from harness.core.sanitize import quoted
from harness.generation.network.control import Signals
from harness.options.probing import DROPPABLE, ProbeOptions
from harness.preparing.prepare import Prepared
from harness.probes import calls, likelihood_readings, prompts, protocol, sampling
from harness.probes.findings import (
    PARSED_CALLS,
    Check,
    Finding,
    Observation,
    Outcome,
    ProbeReport,
    finding_of,
    observe,
    too_slow,
    untested,
)
from harness.probes.probed_endpoint import probed
from harness.probes.requests import ProbedServer, Refused
from harness.probes.tested_server import Subject
from harness.progress.events import Watcher

CHECKS: tuple[Check, ...] = (
    *protocol.FIRST_CHECKS,
    *protocol.CHECKS,
    *prompts.CHECKS,
    *sampling.CHECKS,
    *prompts.CONTEXT_CHECKS,
    *calls.CHECKS,
    *protocol.LAST_CHECKS,
)

MAX_SEED = 2**30
"""If no seed is given, a probe draws its first seed below this limit."""

NOT_MADE = "nothing"
"""The `sent` field of a check that was not started."""


def select(names: Sequence[str] = (), *, quick: bool = False, checks: Sequence[Check] = CHECKS) -> list[Check]:
    """The checks with these names or in these groups; all if no names are given. quick: select only short checks.
    Raises `UsageError`.
    """
    words = {check.name for check in checks} | {check.group for check in checks}
    for name in names:
        if name == likelihood_readings.NAME and name not in words:
            why = "this check requires the option `replies` (a run of the base model)"
            raise UsageError(why, field="checks", value=name)
        if name not in words:
            groups = ", ".join(dict.fromkeys(check.group for check in checks))
            every = ", ".join(check.name for check in checks)
            listed = near_names(name, words) or f" The groups are {groups}. The checks are {every}."
            raise UsageError(f"no such check.{listed}", field="checks", value=name)
    # Text scores do not need calls, but a user who names these checks asks about calls.
    named = [
        replace(check, decides=check.name == PARSED_CALLS) if names else check
        for check in checks
        if not names or {check.name, check.group} & {*names}
    ]
    return [check for check in named if check.quick or not quick]


def examine(
    server: ProbedServer,
    checks: Sequence[Check],
    *,
    address: str = "",
    seed: int | None = None,
    context: int | None = None,
    watcher: Watcher | None = None,
) -> ProbeReport:
    """Make the checks, one after the other.

    seed: seed of the probe; None means a new seed, so that new samples are drawn. context: number of tokens of the
    longest prompt to try. watcher: receives each finding as soon as it is made.
    """
    begun, first_seed = time.monotonic(), secrets.randbelow(MAX_SEED) if seed is None else seed
    watcher = watcher or Watcher()
    subject, findings = Subject(server, first_seed, context), list[Finding]()

    def report(why: str = "") -> ProbeReport:
        """The report with the findings so far. why: why the probe ended early; the remaining checks are untested."""
        left = [finding_of(check, untested(NOT_MADE, why), 0) for check in checks[len(findings) :]]
        return ProbeReport(
            address=address,
            model=server.asker.model,
            engine=server.engine,
            version=__version__,
            seed=first_seed,
            findings=[*findings, *left],
            requests=server.n_requests,
            tokens=server.n_tokens,
            seconds=round(time.monotonic() - begun, 1),
            ended=why,
        )

    try:
        for check in checks:
            # Shown before the requests are sent, since some checks take minutes.
            watcher.checking(check.name)
            before = server.n_tokens
            seen = observe(check, subject, _make_check)
            findings.append(finding := finding_of(check, seen, server.n_tokens - before))
            received = f": {finding.received}" if finding.outcome in ("fail", "warn") else ""
            watcher.checked(f"{check.name}: {finding.outcome}{received}")
    except _ServerGone as ended:
        return report(f"the probe stopped: {quoted(str(ended))}")
    finally:
        watcher.checked()
    refusals = (
        finding.received for finding in findings if finding.outcome == "untested" and "HTTP 4" in finding.received
    )
    refusal = "" if server.answered else next(refusals, "")
    return report(f"no request succeeded: {refusal}" if refusal else "")


class _ServerGone(Exception):
    """The server no longer answers: nothing is running at its address, it exceeded the timeout before its first answer
    or for a second time, or its account is out of credit.
    """


def _make_check(check: Check, subject: Subject) -> Observation:
    """Make one check and return its observation. Raises `_ServerGone` if the server should not be queried again."""
    try:
        return check.look(subject)
    except Refused as refused:
        if refused.status in (402, 429):
            raise _ServerGone(refused.sentence) from refused
        if refused.status in (0, *range(500, 600)) and check.quick:
            return Observation(outcome="fail", sent="a chat request", received=quoted(refused.sentence))
        return untested("a chat request", f"rejected: {quoted(refused.sentence)}")
    except RequestFailed as failed:
        return untested("a stream", f"the stream failed: {quoted(failed.message)}")
    except ServerError as error:
        if error.hope in ("starting", "elsewhere"):
            raise _ServerGone(error.sentence) from error
        if error.hope == "slow":
            if subject.is_slow or not subject.server.answered:
                raise _ServerGone(f"{error.sentence}; a busy server may need a longer timeout") from error
            subject.is_slow = True
            return too_slow("a request", error.sentence)
        outcome: Outcome = "fail" if check.quick else "untested"
        return Observation(outcome=outcome, sent="a request", received=f"no response: {quoted(error.sentence)}")


def probe_of_run(prepared: Prepared, watcher: Watcher | None, **asked: Any) -> ProbeReport:
    """Probe the server of a run that is ready to start, with the run's options. asked: further options. Raises the same
    errors as `probe`.
    """
    given = {name: value for name, value in prepared.options.explicit.items() if name in options_of(ProbeOptions)}
    dropped = [name for name in prepared.options.drop if name in DROPPABLE]
    server = prepared.settings.endpoints[0].base_url
    return probe(ProbeOptions(**given | {"base_url": (server,), "drop": dropped} | asked), watcher)


def probe(options: ProbeOptions, watcher: Watcher | None = None) -> ProbeReport:
    """Examine the one server that the options name.

    Raises `UsageError`; `ServerError` if no request can be sent to the server; `StoreError` if a run is damaged;
    `Interrupted` on a signal.
    """

    def interrupted(signum: int) -> str:
        left = "run the same command to continue" if options.replies else "use `checks` to run the remaining checks"
        return f"stopped by {signal.Signals(signum).name}; {left}."

    watcher = watcher or Watcher()
    with Signals(interrupted):
        servers = probed(options, watcher, options)
        if len(servers) > 1:
            raise UsageError(f"a probe tests a single server, but `base_url` lists {len(servers)}", field="base_url")
        (server,) = servers
        checks, names = CHECKS, options.checks
        if options.replies is not None:
            checks, names = (
                (*CHECKS, likelihood_readings.check(options, server, watcher)),
                options.checks or (likelihood_readings.NAME,),
            )
        selected = select(names, quick=options.quick, checks=checks)
        n = sum(check.tokens for check in selected)
        address = server.endpoint.base_url
        about = f", about {n:,} tokens" if n else ""  # 0: they read the replies of other checks
        watcher.probing(f"{address}: {count_noun(len(selected), 'check')}{about}; this may take minutes")
        return examine(server, selected, address=address, seed=options.seed, context=options.context, watcher=watcher)
