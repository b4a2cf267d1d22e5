"""What the checks of a server found, and the report of all checks: plain values, as JSON stores them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import msgspec

from harness.client.protocol.reply import RequestFailed
from harness.core.errors import Interrupted, Sentence, option
from harness.core.inert import quoted
from harness.core.nouns import count_noun
from harness.scoring.differences import holm

if TYPE_CHECKING:
    from collections import Counter

    from harness.verbs.probe.subject import Kind, Lost, Subject

Outcome = Literal["sound", "spoils", "warns", "untested"]
"""spoils: a score from this server would be wrong, or belong to another model or setting. Of a check that compares the
server with a reference server: of one of the two, since their scores are of two set-ups.

warns: worth knowing, but a score stands. untested: the server does not show what the check needs.
"""

Group = Literal["protocol", "sampling", "context", "template", "reference", "load", "tools"]

MAX_LOST = 0.1
"""A check that lost more than this fraction of its requests finds nothing sound: what is left may hide the fault."""

FALSE_ALARM = 0.001
"""Chance that a sound server fails any test of distributions in one probe, after Holm (1979).

The other checks together get the same chance.
"""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The observation of one check.

    sent: what was sent, in words. came: what came back. p: the chance that a sound server shows something at least as
    odd; None without a statistical test. With a p, `outcome` counts only if Holm's method, over all tests of the probe,
    rejects chance as the cause; else the check is sound. hidden: why the test could not have seen the fault that it is
    for, so that the check is then untested; empty if it could. beside: what was compared with a reference; empty if
    nothing was. mend: what to do about this fault; empty: as the check says.
    """

    outcome: Outcome
    sent: str
    came: str
    p: float | None = None
    hidden: str = ""
    beside: str = ""
    mend: str = ""


def without_lost(seen: Seen, lost: Lost) -> Seen:
    """The observation with the lost requests named; untested if they are more than `MAX_LOST` of all.

    A fault that a check sees without a test of chance (no p) stands: the lost requests would not take it back.
    """
    if not lost.n:
        return seen
    came = f"{seen.came}; {lost.n} of {lost.of} requests brought nothing to judge ({quoted(lost.why)})"
    shows_fault = seen.outcome in ("spoils", "warns") and seen.p is None
    if lost.n <= MAX_LOST * lost.of or shows_fault:
        return msgspec.structs.replace(seen, came=came)
    return untested(seen.sent, f"too few requests are left to judge by: {came}")


REPLY_TEXT, FINISHED, EMPTY = "reply text", "finished streams", "empty replies"
"""Names of the checks that name the faults behind which other checks cannot be made."""


def beside_the_fault(check: Check, seen: Seen, tally: Counter[Kind], n_empty: int, refusal: str) -> Seen:
    """The observation of a check; untested if a fault that another check names explains it, or if the server refused
    its streams: only replies that came accuse a server.

    tally: of the replies of the check. n_empty: its empty replies. refusal: the server's words for refusing a stream.
    """
    if tally["refused"] and seen.outcome in ("spoils", "warns"):
        return untested(seen.sent, f"the server refused {count_noun(tally['refused'], 'stream')}: {quoted(refusal)}")
    if check.name in (REPLY_TEXT, FINISHED, EMPTY):
        return seen
    n = count_noun(tally["reply"], "reply", "replies")
    if check.by_text and 2 * tally["blank"] > tally["reply"]:
        return untested(seen.sent, f"no text came in {tally['blank']} of {n}; see `{REPLY_TEXT}`")
    if check.by_text and 2 * tally["echo"] > tally["reply"]:
        return untested(seen.sent, f"the prompt itself came in {tally['echo']} of {n}; see `{REPLY_TEXT}`")
    if tally["cut"] and seen.outcome in ("spoils", "warns"):
        streams = count_noun(tally["stream"], "stream")
        cut = f"{tally['cut']} of {streams} ended without a finish reason; see `{FINISHED}`"
        return untested(seen.sent, f"{cut} ({seen.came})")
    if n_empty and seen.outcome in ("spoils", "warns"):
        came = f"{count_noun(n_empty, 'empty reply', 'empty replies')}, see `{EMPTY}`"
        return untested(seen.sent, f"{came} ({seen.came})")
    return seen


def unless_misled(check: Check, subject: Subject, look: Callable[[Check, Subject], Seen]) -> Seen:
    """Make one check by `look` and return its observation; untested if it tests a seed that the server rejects, or if
    `beside_the_fault` says so.
    """
    accepted = subject.server.acceptance
    tallied, n_empty = subject.tally.copy(), accepted.n_empty
    seen = look(check, subject)
    if check.seeded and accepted.no_seed:
        return untested(seen.sent, accepted.no_seed)
    return beside_the_fault(check, seen, subject.tally - tallied, accepted.n_empty - n_empty, subject.refusal)


NOTHING = "nothing"
"""A check that was not begun sent this."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check.

    why: why it matters for a score; mend: what to do if the check fails. tokens: what the check cost, as the server
    counts. beside: what was compared with a reference; empty if nothing was.
    """

    check: str
    group: Group
    outcome: Outcome
    sent: str
    came: str
    why: str
    mend: str
    p: float | None = None
    tokens: int = 0
    beside: str = ""

    @property
    def begun(self) -> bool:
        """Whether the check sent any request."""
        return self.sent != NOTHING


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """All findings about one server.

    version: of the harness. requests: number that the probe sent; refused: those of them that the server refused
    because of its limits (429), and that were sent again; refused_for_good: status of a refusal, in words → number of
    requests that it refused and that were not sent again (402: the account is empty). tokens: number that the probe
    cost, as the server counts; bounded: replies without stated usage, which count with the most tokens possible.
    reference_tokens, reference_bounded: the same of the server that is the reference; 0 without one. seed:
    the number that all seeds of the probe's requests come from. seconds: how long the probe took. left_out: name of a
    check that the budget did not pay for → about how many tokens it would have cost. unrepeated: whether greedy replies
    did not repeat. ended_by: "the server" or "the reference", if it was asked no more before the end of the probe;
    ended: why; both are empty if none was. unfinished: the checks that were not made to their end because of that.
    rejected: fields that the server rejects, so that the probe left them out; reference_rejected: the same of the
    server that is the reference.
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
    left_out: dict[str, int] = {}
    bounded: int = 0
    refused: int = 0
    refused_for_good: dict[str, int] = {}
    reference_tokens: int = 0
    reference_bounded: int = 0
    unrepeated: bool = False
    ended_by: str = ""
    ended: str = ""
    unfinished: list[str] = []
    rejected: list[str] = []
    reference_rejected: list[str] = []

    def count(self, outcome: Outcome) -> int:
        """Number of findings with that outcome."""
        return sum(finding.outcome == outcome for finding in self.findings)

    @property
    def not_begun(self) -> dict[str, list[str]]:
        """Why checks were not begun (a stop, a refusal) → these checks; those that the budget left out are not among
        them.
        """
        checks: dict[str, list[str]] = {}
        for finding in self.findings:
            if not finding.begun and finding.check not in self.left_out:
                checks.setdefault(finding.came, []).append(finding.check)
        return checks

    @property
    def tested(self) -> bool:
        """Whether any check was made; a report without one says nothing about the server."""
        return self.count("untested") < len(self.findings)

    @property
    def sound(self) -> bool:
        """Whether no finding spoils a score."""
        return self.count("spoils") == 0

    @property
    def thorough(self) -> bool:
        """Whether at least half of the checks were made, and each check to the end that the servers allowed."""
        return not self.unfinished and 2 * self.count("untested") <= len(self.findings)

    @property
    def differs(self) -> list[str]:
        """What differs from the reference, if nothing else spoils a score; empty if something else does."""
        beside = [finding.beside for finding in self.findings if finding.outcome == "spoils"]
        return beside if all(beside) else []

    @property
    def cost(self) -> str:
        """The tokens that the probe cost, in words."""
        return _tokens(self.tokens, self.bounded)

    @property
    def reference_cost(self) -> str:
        """The tokens that the probe cost on the server that is the reference, in words; empty if it asked none."""
        return _tokens(self.reference_tokens, self.reference_bounded) if self.reference_tokens else ""

    @property
    def refusals(self) -> str:
        """The refusals because of the server's limits, each with its status; empty without any."""
        again = [f"{self.refused:,} of them refused by a limit, HTTP 429, and sent again"] if self.refused else []
        return "; ".join(
            [*again, *(f"{n:,} of them refused for good: {why}" for why, n in self.refused_for_good.items())]
        )


def _tokens(n: int, n_bounded: int) -> str:
    """A number of tokens in words. n_bounded: replies without stated usage among those that cost them."""
    if not n_bounded:
        return count_noun(n, "token")
    replies = "1 reply states" if n_bounded == 1 else f"{n_bounded:,} replies state"
    return f"at most {count_noun(n, 'token')} ({replies} no usage and count with the most possible)"


class ProbeInterrupted(Interrupted):
    """A signal ended the probe. report: the finished checks; the check under way and the later ones are untested.

    finished: the names of the finished checks.
    """

    def __init__(self, report: ProbeReport, finished: Collection[str], signum: int) -> None:
        n, left = len(report.findings), [item.check for item in report.findings if item.check not in finished]
        rest = f"; {option('checks', left)} makes these" if left else ""
        super().__init__(
            f"stopped by {signal.Signals(signum).name}: {len(finished)} of {count_noun(n, 'check')} "
            f"{'was' if len(finished) == 1 else 'were'} finished, the others are untested{rest}.",
            signum,
        )
        self.report = report


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of a server.

    look: makes the check. quick: whether it takes a few short requests only, so that it can precede each run. tokens:
    about how many it costs; a budget is spent by this estimate, and the true cost is in the `Finding`. shortest: about
    how many tokens it costs with its shortest prompt, if the length of its prompt can be chosen; else None. draws:
    number of tokens that it draws after the prompt that `Subject.open` finds; without such a prompt the check cannot be
    made. 0: it draws none. unstated: about how many tokens it costs if replies state no usage; None: a multiple of
    `tokens`. rereads: name of a check whose replies it reads again, so that it costs nothing after that check.
    by_text: whether it judges by the texts of replies. seeded: whether it tests the seed, so that it cannot be made on
    a server that rejects seeds.
    """

    name: str
    group: Group
    why: str
    mend: str
    look: Callable[[Subject], Seen]
    quick: bool = True
    tokens: int = 140
    shortest: int | None = None
    draws: int = 0
    unstated: int | None = None
    rereads: str = ""
    by_text: bool = False
    seeded: bool = False

    @property
    def least_tokens(self) -> int:
        """About how many tokens the check costs at least."""
        return self.tokens if self.shortest is None else self.shortest

    def priced(self, draw_tokens: int | None, factor: int = 1) -> Check:
        """The check with its price on this server: by what one draw costs, if that is known and the check draws; else
        `factor` times its usual price, which is above 1 if replies state no usage.

        A draw after raw text costs some 7 tokens, one in a chat as many as the chat template adds.
        """
        if draw_tokens is not None and self.draws:
            return replace(self, tokens=self.draws * draw_tokens)
        if self.unstated is not None and factor > 1:
            return replace(self, tokens=self.unstated)
        shortest = None if self.shortest is None else factor * self.shortest
        return replace(self, tokens=factor * self.tokens, shortest=shortest)


Shown = Callable[[str], str]
"""Spells the options in a sentence that marks them (`harness.core.errors.option`)."""


def by_keywords(marked: str) -> str:
    """The sentence with its options as Python's callers write them."""
    return str(Sentence(marked))


def findings_of(checks: Sequence[Check], seen: Sequence[Seen], shown: Shown = by_keywords) -> list[Finding]:
    """Make a finding of what each check observed. All its sentences are finished here, by `shown`.

    Observations with a p-value are judged together: an observation has its stated outcome if by Holm's method chance
    does not explain it; else it is sound, or untested if its test could not have seen the fault. checks: all checks.
    seen: what each of them observed, in the same order.
    """
    tested = [i for i, result in enumerate(seen) if result.p is not None]
    adjusted = dict(zip(tested, holm([seen[i].p or 0.0 for i in tested]), strict=True))
    findings = []
    for i, (check, result) in enumerate(zip(checks, seen, strict=True)):
        outcome, came = result.outcome, result.came
        if result.p is not None:
            corrected = f" ({adjusted[i]:.2g} for {len(tested)} tests)" if len(tested) > 1 else ""
            came += f"; p = {result.p:.2g}{corrected}, a fault up to {FALSE_ALARM:g}"
            if adjusted[i] > FALSE_ALARM:
                outcome = "untested" if result.hidden else "sound"
                came = f"{result.hidden}; {came}" if result.hidden else came
        findings.append(
            Finding(
                check=check.name, group=check.group, outcome=outcome, sent=shown(result.sent), came=shown(came),
                why=shown(check.why), mend=shown(result.mend or check.mend), p=result.p,
                beside=result.beside or (check.name if check.group == "reference" else ""),
            )
        )  # fmt: skip
    return findings


def names_of(checks: Sequence[Check]) -> str:
    """The end of a message that lists the names of the groups and of the checks."""
    groups = ", ".join(dict.fromkeys(check.group for check in checks))
    return f" The groups are {groups}; the checks are {', '.join(check.name for check in checks)}."


def sound(sent: str, came: str) -> Seen:
    """An observation as expected: the check passes."""
    return Seen(outcome="sound", sent=sent, came=came)


def spoils(sent: str, came: str) -> Seen:
    """An observation that makes a score wrong."""
    return Seen(outcome="spoils", sent=sent, came=came)


def warns(sent: str, came: str) -> Seen:
    """An observation worth knowing; a score stands."""
    return Seen(outcome="warns", sent=sent, came=came)


def untested(sent: str, came: str) -> Seen:
    """An observation that shows nothing, since the server lacks what the check needs."""
    return Seen(outcome="untested", sent=sent, came=came)


def no_evidence(miscount: str) -> str:
    """The end of a sentence of a check that counts of tokens would decide, if these counts are false.

    miscount: see `Subject.miscount`.
    """
    return f"the server's counts of tokens are no evidence of a cut (`usage`: {miscount})"


def too_slow(sent: str, words: str) -> Seen:
    """The observation if a time limit of the probe ended the check: untested, since a slow server may be sound."""
    return untested(sent, f"too slow for this check: {quoted(words)}")


def broken_stream(sent: str, failure: RequestFailed) -> Seen:
    """The observation of a stream that failed: it spoils a score, unless the server was only too slow for the probe."""
    if failure.kind == "timeout":
        return too_slow(sent, failure.message)
    return spoils(sent, f"the stream failed: {quoted(failure.message)}")
