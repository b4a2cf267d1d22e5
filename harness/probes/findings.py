"""The findings of a server's checks, and the report of all checks: plain values, as stored in JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from harness.client.protocol.failures import RequestFailed
from harness.core.number_text import count_noun
from harness.core.sanitize import quoted
from harness.probes.likelihood import Likelihood

if TYPE_CHECKING:
    from collections import Counter

    from harness.probes.requests import Kind
    from harness.probes.tested_server import Subject

Outcome = Literal["pass", "fail", "warn", "untested"]
"""fail: a score from this server would be wrong, or belong to another model or setting. For a check in the group
`reference`, it would apply to only one of the two servers, since their scores are not comparable.

warn: worth knowing, but scores remain valid. untested: the server does not provide what the check needs.
"""

Group = Literal["protocol", "sampling", "context", "template", "reference", "calls"]
"""The groups of checks; the option `checks` also accepts these names."""

MAX_LOST = 0.1
"""A check in which more than this fraction of the requests failed never passes: the other replies may not show the
fault.
"""

FALSE_ALARM = 0.001
"""Probability that a healthy server fails a test of distributions. The other checks together have the same probability.
"""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The observation of one check."""

    outcome: Outcome
    """"pass" (no problem found), "fail" (a score from this server would be wrong, or would describe a different
    model or setting), "warn" (a problem that does not invalidate scores) or "untested" (the server does not provide
    what the check needs).
    """
    sent: str
    """Description of what was sent to the server."""
    received: str
    """Description of the server's response."""
    p: float | None = None
    """Probability that a healthy server produces a result at least this unusual; None if the check is not a statistical
    test.
    """
    likelihood: Likelihood | msgspec.UnsetType = msgspec.UNSET
    """Result of the `--replies` check; absent for other checks."""


REPLY_TEXT, FINISHED, EMPTY = "reply text", "finished streams", "empty replies"
"""Names of the checks for faults that make other checks impossible."""

PARSED_CALLS = "parsed calls"
"""Name of the check whether a server makes calls at all."""


def observe(check: Check, subject: Subject, look: Callable[[Check, Subject], Observation]) -> Observation:
    """Make one check with `look` and return its observation. It is untested if it tests a seed that the server rejects,
    if a fault that another check reports explains its result, or if the server rejected its streams: only replies count
    against a server.
    """
    server, tally_before, n_empty_before = subject.server, subject.server.tally.copy(), subject.server.empty.total()
    seen = look(check, subject)
    if check.seeded and server.no_seed:
        return _inconclusive(seen, server.no_seed)
    tally: Counter[Kind] = server.tally - tally_before  # the replies to this check
    accused, n = seen.outcome in ("fail", "warn"), count_noun(tally["reply"], "reply", "replies")
    if tally["refused"] and accused:
        refused = count_noun(tally["refused"], "stream")
        return _inconclusive(seen, f"the server rejected {refused}: {quoted(server.refusal)}")
    if check.name in (REPLY_TEXT, FINISHED, EMPTY):
        return seen
    if check.by_text and 2 * tally["blank"] > tally["reply"]:
        return _inconclusive(seen, f"{tally['blank']} of {n} had no text; see `{REPLY_TEXT}`")
    if check.by_text and 2 * tally["echo"] > tally["reply"]:
        return _inconclusive(seen, f"{tally['echo']} of {n} repeated the prompt; see `{REPLY_TEXT}`")
    if tally["cut"] and accused:
        streams = count_noun(tally["stream"], "stream")
        cut = f"{tally['cut']} of {streams} ended without a finish reason; see `{FINISHED}`"
        return _inconclusive(seen, f"{cut} ({seen.received})")
    if accused and (n_empty := server.empty.total() - n_empty_before):
        received = f"{count_noun(n_empty, 'empty reply', 'empty replies')}, see `{EMPTY}`"
        return _inconclusive(seen, f"{received} ({seen.received})")
    return seen


def _inconclusive(seen: Observation, received: str) -> Observation:
    """The observation of a check that could not detect its fault. received: the reason."""
    return msgspec.structs.replace(seen, outcome="untested", received=received, p=None)


class Finding(Observation, frozen=True, kw_only=True):
    """The result of one check, with a description of the check."""

    check: str
    """Name of the check."""
    group: Group
    """Subject of the check."""
    why: str
    """Why the check matters for a score."""
    fix: str
    """How to fix the problem if the check fails."""
    tokens: int = 0
    """Number of tokens used by the check, as reported by the server."""


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of all checks run against one server."""

    address: str
    """Server address."""
    model: str
    """Name of the model."""
    engine: str | None
    """The server's engine; None if unknown."""
    version: str
    """Harness version."""
    seed: int
    """Seed from which the seeds of all probe requests are derived."""
    findings: list[Finding]
    """Results of the checks."""
    requests: int
    """Number of requests that the probe sent."""
    tokens: int
    """Number of tokens used by the probe, as reported in the replies."""
    seconds: float
    """Duration of the probe, in seconds."""
    ended: str = ""
    """Why the probe ended early (for example, because the server did not respond); otherwise empty."""

    def count(self, outcome: Outcome) -> int:
        """Number of findings with this outcome."""
        return sum(finding.outcome == outcome for finding in self.findings)

    @property
    def tested(self) -> bool:
        """Whether at least one check has a result; otherwise, the report says nothing about the server."""
        return self.count("untested") < len(self.findings)

    def unanswered(self, names: Sequence[str]) -> list[str]:
        """Which of these checks and groups were not tested. A group of which a part was tested is answered, except for
        calls if it remains unknown whether the server parses them.
        """
        tested = {each for one in self.findings if one.outcome != "untested" for each in (one.check, one.group)}
        if any(one.check == PARSED_CALLS and one.outcome == "untested" for one in self.findings):
            tested.discard("calls")
        return [name for name in names if name not in tested]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return self.count("fail") == 0

    @property
    def thorough(self) -> bool:
        """Whether at least half of the checks were made, and the probe did not end early. Checks of function calls do
        not count, since many servers offer no tools.
        """
        made = [finding.outcome != "untested" for finding in self.findings if finding.group != "calls"]
        return not self.ended and 2 * sum(made) >= len(made)

    @property
    def differing_checks(self) -> list[str]:
        """The checks that find a difference from the reference, if no other check failed; otherwise empty."""
        failed = [finding for finding in self.findings if finding.outcome == "fail"]
        return [finding.check for finding in failed] if all(one.group == "reference" for one in failed) else []


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of a server.

    look: function that makes the check. quick: whether it needs only a few short requests, so that it can precede each
    run. tokens: about how many tokens it costs. by_text: whether it judges by the texts of replies. seeded: whether it
    tests the seed, so that it cannot be made on a server that rejects seeds. decides: whether a warning is a failure,
    because the fault invalidates what the user asks about.
    """

    name: str
    group: Group
    why: str
    fix: str
    look: Callable[[Subject], Observation]
    quick: bool = True
    tokens: int = 140
    by_text: bool = False
    seeded: bool = False
    decides: bool = False


def finding_of(check: Check, seen: Observation, tokens: int) -> Finding:
    """Turn a check's observation into a finding."""
    observed = msgspec.structs.asdict(seen)
    if check.decides and seen.outcome == "warn":
        observed["outcome"] = "fail"
    return Finding(check=check.name, group=check.group, why=check.why, fix=check.fix, tokens=tokens, **observed)


def passes(sent: str, received: str) -> Observation:
    """An observation of the expected behavior."""
    return Observation(outcome="pass", sent=sent, received=received)


def fails(sent: str, received: str) -> Observation:
    """An observation that invalidates scores."""
    return Observation(outcome="fail", sent=sent, received=received)


def warns(sent: str, received: str) -> Observation:
    """An observation worth knowing; scores remain valid."""
    return Observation(outcome="warn", sent=sent, received=received)


def untested(sent: str, received: str) -> Observation:
    """An inconclusive observation, since the server does not provide what the check needs."""
    return Observation(outcome="untested", sent=sent, received=received)


def too_slow(sent: str, words: str) -> Observation:
    """The observation if a time limit of the probe ended the check: untested, since a slow server may be healthy."""
    return untested(sent, f"the server is too slow for this check: {quoted(words)}")


def broken_stream(sent: str, failure: RequestFailed) -> Observation:
    """The observation of a stream that failed: the check fails, unless the server was only too slow for the probe."""
    if failure.kind == "timeout":
        return too_slow(sent, failure.message)
    return fails(sent, f"the stream failed: {quoted(failure.message)}")
