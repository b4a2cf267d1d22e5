"""What a check of a server found, and the report of all of them: values, as JSON has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from harness.verbs.probe.subject import Subject

Outcome = Literal["sound", "spoils", "warns", "untested"]
"""spoils: a score from this server would be wrong, or of another model or setting. warns: worth knowing, a score
stands. untested: the server does not show what the check needs."""

Group = Literal["protocol", "sampling", "context", "template", "reference", "load"]

FALSE_ALARM = 0.005
"""Chance that a sound server fails any of the tests of distributions of one probe, after Holm (1979). As much again is
left to the other checks."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one check saw. p: chance of something as odd from a sound server; the outcome is then what it is if Holm
    rejects."""

    outcome: Outcome
    sent: str
    came: str
    p: float | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check's result. why: why it matters for a score; mend: what to do where it is not sound."""

    check: str
    group: Group
    outcome: Outcome
    sent: str
    came: str
    why: str
    mend: str
    p: float | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All findings about one server. requests, tokens: what the probe asked for and was billed, as the server counts.

    seed: from which the probe's own seeds come. seconds: how long it took.
    """

    address: str
    model: str
    engine: str | None
    version: str
    seed: int
    findings: list[Finding]
    requests: int
    tokens: int
    seconds: float

    def count(self, outcome: Outcome) -> int:
        """Findings of that outcome."""
        return sum(finding.outcome == outcome for finding in self.findings)

    @property
    def sound(self) -> bool:
        """Nothing spoils a score."""
        return self.count("spoils") == 0


@dataclass(frozen=True, kw_only=True)
class Check:
    """One question to a server. quick: few and short requests, fit to be asked before each run."""

    name: str
    group: Group
    why: str
    mend: str
    look: Callable[[Subject], Seen]
    quick: bool = True


def sound(sent: str, came: str) -> Seen:
    """As it should be."""
    return Seen(outcome="sound", sent=sent, came=came)


def spoils(sent: str, came: str) -> Seen:
    """A score would be wrong."""
    return Seen(outcome="spoils", sent=sent, came=came)


def warns(sent: str, came: str) -> Seen:
    """Worth knowing."""
    return Seen(outcome="warns", sent=sent, came=came)


def untested(sent: str, came: str) -> Seen:
    """The server does not show it."""
    return Seen(outcome="untested", sent=sent, came=came)
