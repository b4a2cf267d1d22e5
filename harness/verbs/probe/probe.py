"""A probe of one server: which checks are made, in what order, and what their tests show together."""

from __future__ import annotations

import secrets
import signal
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec

from harness.asking.options import ProbeOptions
from harness.asking.watching import Watcher
from harness.client.facts.page import SlowAnswer
from harness.core import codec
from harness.core.about import __version__
from harness.core.errors import Sentence, ServerError, UsageError, near_names, option
from harness.core.files import write_atomically
from harness.core.inert import quoted
from harness.core.nouns import count_noun
from harness.generation.network.control import Signals
from harness.verbs.probe import (
    bare,
    context,
    counterparts,
    ends,
    later,
    load,
    mixture,
    opening,
    protocol,
    reference,
    refusals,
    sampling,
    template,
    thinking,
    tools,
    whole_replies,
    worth,
)
from harness.verbs.probe.asking import ProbedServer, Refused
from harness.verbs.probe.connecting import probed
from harness.verbs.probe.findings import (
    NOTHING,
    Check,
    Outcome,
    ProbeInterrupted,
    ProbeReport,
    Seen,
    Shown,
    by_keywords,
    findings_of,
    names_of,
    too_slow,
    unless_misled,
    untested,
    without_lost,
)
from harness.verbs.probe.ledger import OverBudget
from harness.verbs.probe.reference import ServerReference
from harness.verbs.probe.subject import Lost, Subject

CHECKS: tuple[Check, ...] = (
    *whole_replies.FIRST_CHECKS,
    *protocol.CHECKS,
    *ends.CHECKS,
    *thinking.CHECKS,
    *template.CHECKS,
    *bare.CHECKS,
    *refusals.CHECKS,
    *mixture.CHECKS,
    *opening.CHECKS,
    *sampling.CHECKS,
    *later.CHECKS,
    *context.CHECKS,
    *load.CHECKS,
    *tools.CHECKS,
    *whole_replies.LAST_CHECKS,
)

MAX_SEED = 2**30

OPENING_TOKENS = 400
"""Largest number of tokens, roughly, that `Subject.open` costs: four short prompts with their chat template."""

RAW_DRAW_TOKENS = 7
"""About how many tokens a draw after raw text costs; see `Check.priced`."""

AGAIN_SECONDS = 1.0
"""A second signal within this many seconds of the first does not end the report of the finished checks."""

UNSTATED_FACTOR = 4
"""A check's price is multiplied by this if replies state no usage: prompts then count by bytes, some 4 a token."""


def select(names: Sequence[str] = (), *, quick: bool = False, checks: Sequence[Check] = CHECKS) -> list[Check]:
    """The checks of these names or groups; all if no name is given. quick: only short checks. Raises `UsageError`."""
    words = {check.name for check in checks} | {check.group for check in checks}
    for name in names:
        if name in reference.NAMES and name not in words:
            raise UsageError(
                f"this check compares the server with a reference: give {option('reference')}, such as the address of "
                "another server of the model, or a file of its weights",
                field="checks", value=name,
            )  # fmt: skip
        if name not in words:
            near = near_names(name, words | {*reference.NAMES})
            raise UsageError(f"no such check.{near or names_of(checks)}", field="checks", value=name)
    return [
        check
        for check in checks
        if (not names or check.name in names or check.group in names) and (check.quick or not quick)
    ]


def examine(
    server: ProbedServer,
    checks: Sequence[Check],
    *,
    address: str = "",
    seed: int | None = None,
    context: int | None = None,
    budget: int | None = None,
    beside: ProbedServer | None = None,
    watcher: Watcher | None = None,
    shown: Shown = by_keywords,
) -> ProbeReport:
    """Make the checks, one after the other.

    seed: of the probe; None: a new seed, so that draws are new. context: tokens of the longest prompt to try. budget:
    tokens that the probe may cost; a check beyond it is untested. beside: the server that is the reference, if a
    server is. shown: spells the options in the report's sentences. Raises `ProbeInterrupted`, which holds the report of
    the finished checks, if Ctrl-C or a signal of `Signals` ends the probe.
    """
    begun = time.monotonic()
    first_seed = secrets.randbelow(MAX_SEED) if seed is None else seed
    progress, subject = _Progress(), Subject(server, first_seed, context, beside=beside)

    def report() -> ProbeReport:
        by = "" if not progress.unfinished else "the server" if server.ended or beside is None else "the reference"
        return ProbeReport(
            ended_by=by,
            ended=quoted(server.ended or (beside.ended if beside else "")) if by else "",
            unfinished=progress.unfinished,
            address=address,
            model=server.asker.model,
            engine=server.engine,
            version=__version__,
            seed=first_seed,
            findings=[
                msgspec.structs.replace(finding, tokens=progress.costs.get(finding.check, 0))
                for finding in reference.beside_equal_weights(
                    findings_of(checks, [progress.seen[check.name] for check in checks], shown)
                )
            ],
            requests=server.n_requests,
            tokens=server.n_tokens,
            seconds=round(time.monotonic() - begun, 1),
            left_out=progress.left_out,
            bounded=server.n_bounded,
            refused=server.n_refused - sum(server.refused_for_good.values()),
            refused_for_good=dict(server.refused_for_good),
            reference_tokens=beside.n_tokens if beside else 0,
            reference_bounded=beside.n_bounded if beside else 0,
            unrepeated=subject.unrepeated,
            rejected=sorted(server.acceptance.rejected),
            reference_rejected=sorted(beside.acceptance.rejected) if beside else [],
        )

    try:
        _make(checks, subject, progress, budget, watcher)
    except KeyboardInterrupt as stop:
        finished = [*progress.seen]
        progress.stop(checks, server.n_tokens)
        signum = stop.signum if isinstance(stop, Signals.Caught) else signal.SIGINT
        raise ProbeInterrupted(report(), finished, signum) from None
    finally:
        if watcher is not None:
            watcher.checked()
    return report()


@dataclass
class _Progress:
    """The checks that an examination has made so far.

    seen: check → its observation. costs: check → its tokens. left_out: check that the budget does not pay for → about
    how many tokens it would cost. unfinished: checks that were not made to their end, since a server is asked no more.
    under_way: the check that is being made, if any; begun_at: the tokens of the probe
    when it began.
    """

    seen: dict[str, Seen] = field(default_factory=dict)
    costs: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    under_way: str | None = None
    begun_at: int = 0

    def stop(self, checks: Sequence[Check], n_tokens: int) -> None:
        """Call the check under way and all later ones untested. n_tokens: of the probe so far."""
        for check in checks:
            if check.name == self.under_way and check.name not in self.seen:
                self.seen[check.name] = untested("a part of the check", "the probe was stopped during this check")
                self.costs[check.name] = self.costs.get(check.name, 0) + n_tokens - self.begun_at
            elif check.name not in self.seen:
                self.seen[check.name] = untested(NOTHING, "the probe was stopped before this check")


def _make(
    checks: Sequence[Check], subject: Subject, progress: _Progress, budget: int | None, watcher: Watcher | None
) -> None:
    """Make the checks in rounds, and note each in `progress` once it is finished.

    Checks often cost less than estimated, and the tokens left over pay for the further checks of the next round.
    """
    server, seen = subject.server, progress.seen
    beside = [check.name for check in checks if check.group == "reference"]
    if budget is not None and beside:
        # The dearest checks come first, so their price on this server must be known before.
        _learn_usage(subject)
        progress.costs[beside[0]] = server.n_tokens
    while waiting := [check for check in checks if check.name not in seen]:
        allowed = _allowed(waiting, subject, budget, seen, progress.costs)
        state = _factor(subject), subject.unrepeated
        # With a budget the comparison with a reference is made first, so that no other check spends its tokens.
        for check in sorted(waiting, key=lambda check: budget is not None and check.group != "reference"):
            # Once a reply without usage has come, or greedy replies have differed, prices or the order are others, and
            # the next round begins.
            if check.name not in allowed or (budget is not None and (_factor(subject), subject.unrepeated) != state):
                continue
            before, n_unsent = server.n_tokens, subject.n_unsent
            room = allowed[check.name]
            # Earlier checks of this round may have cost more than estimated, for example if the model thinks. This
            # check then waits for the next round.
            if budget is not None and room is not None and before + room > budget:
                continue
            subject.room = None if room is None else room // _factor(subject)
            # Shown before the requests, since some checks take minutes.
            if watcher is not None:
                watcher.checking(check.name)
            progress.under_way, progress.begun_at = check.name, before
            try:
                seen[check.name] = _observation(check, subject)
            except OverBudget as error:
                # Its price was estimated too low, or the rest of the budget is too small for any request of this kind.
                seen[check.name] = untested("a part of the check", error.sentence.marked)
                progress.left_out[check.name] = _priced(check, subject, seen).tokens
            progress.costs[check.name] = progress.costs.get(check.name, 0) + server.n_tokens - before
            if server.ended or subject.n_unsent > n_unsent:
                progress.unfinished.append(check.name)
        # The budget pays for none of the waiting checks, so they are reported as untested.
        if not allowed:
            waiting = [_priced(check, subject, seen, draw_tokens=_draw_tokens(subject, seen)) for check in waiting]
            unfound = worth.unfound(waiting, seen)
            seen |= {check.name: _left_out(check, unfound[check.name]) for check in waiting}
            progress.left_out |= {check.name: check.tokens for check in waiting}


def _allowed(
    waiting: Sequence[Check], subject: Subject, budget: int | None, seen: Mapping[str, Seen], costs: dict[str, int]
) -> Mapping[str, int | None]:
    """Check of the next round → how many tokens it may cost (None: any number). Empty if the budget pays for none.

    costs: the tokens that each check has cost so far. If this function has to ask the server after which prompt tokens
    can be drawn, and so what a draw costs, it adds the tokens of these requests.
    """
    # A server that is asked no more costs nothing: each check then gives the refusal as its reason, not the budget.
    if budget is None or subject.server.ended:
        return {check.name: None for check in waiting}
    left = budget - subject.server.n_tokens
    allotted = _allotment(waiting, subject, left, seen)
    drawing = [check for check in waiting if check.draws]
    # Draws are not left out as too dear before their price on this server is known.
    if not allotted and drawing and subject.draw_tokens is None and left >= OPENING_TOKENS:
        cannot_draw = _cannot_draw(subject)
        costs[drawing[0].name] = costs.get(drawing[0].name, 0) + left - (budget - subject.server.n_tokens)
        left = budget - subject.server.n_tokens
        allotted = _allotment(waiting, subject, left, seen)
        # If the server gives no prompt to draw tokens after, the checks that draw are allowed: they say so at no cost.
        # Otherwise the report would name the budget as the reason.
        if cannot_draw:
            allotted |= {check.name: 0 for check in drawing}
    return {**allotted}


def _allotment(waiting: Sequence[Check], subject: Subject, left: int, seen: Mapping[str, Seen]) -> dict[str, int]:
    """`worth.allotted` of the checks at their prices on this server. left: tokens of the budget."""
    priced = [_priced(check, subject, seen) for check in waiting]
    return worth.allotted(priced, left, seen, unrepeated=subject.unrepeated)


def _cannot_draw(subject: Subject) -> bool:
    """Whether the server is known to offer no prompt after which tokens can be drawn; False if asking it fails."""
    try:
        return subject.open is None
    except (ServerError, OverBudget):
        return False


def _learn_usage(subject: Subject) -> None:
    """Ask for a reply that many checks need, since the price of all checks depends on whether usage is stated."""
    with suppress(ServerError, OverBudget):
        subject.greedy  # noqa: B018 - the reply is kept


def _factor(subject: Subject) -> int:
    """How many times its usual price a check may cost on this server."""
    return UNSTATED_FACTOR if subject.server.n_bounded else 1


def _priced(check: Check, subject: Subject, seen: Collection[str], *, draw_tokens: int | None = None) -> Check:
    """The check with its price on this server. seen: the checks that were made before. draw_tokens: about how many
    tokens a draw costs; None: as far as the subject knows.
    """
    if check.rereads in seen:
        return replace(check, tokens=0)
    return check.priced(draw_tokens or subject.draw_tokens, _factor(subject))


def _draw_tokens(subject: Subject, seen: Mapping[str, Seen]) -> int | None:
    """About how many tokens a draw costs on this server; None if nothing is known.

    The comparison of weights reads replies to raw text, so if it was made, the server takes raw text.
    """
    if subject.draw_tokens is not None:
        return subject.draw_tokens
    weights = seen.get(reference.WEIGHTS)
    raw = weights is not None and weights.outcome != "untested" and not subject.server.n_bounded
    return RAW_DRAW_TOKENS if raw else None


def _left_out(check: Check, n: int) -> Seen:
    """The observation of a check that is skipped because it would exceed the budget. n: number of kinds of faults that
    only this check finds.
    """
    reason = f"it costs about {check.tokens:,} tokens, more than is left of the budget"
    if n:
        reason += f"; it alone finds {'one kind of fault' if n == 1 else f'{n} kinds of faults'}"
    return untested(NOTHING, reason)


def _observation(check: Check, subject: Subject) -> Seen:
    """Make one check and return its observation, by one rule for all checks that lost requests.

    A check is untested if the server was asked no more before its end, because of a limit on requests or an empty
    account: such a refusal is no answer to what the check asks, whatever the check made of it. The requests that it
    lost otherwise are named (`without_lost`). What another fault explains is untested (`unless_misled`).
    """
    server = subject.server
    if server.ended:
        return untested(NOTHING, f"the server is asked no more: {quoted(server.ended)}")
    before = server.n_requests - server.n_refused
    subject.lost = Lost()
    seen = unless_misled(check, subject, _look)
    if ended := subject.server.ended:
        n = server.n_requests - server.n_refused - before
        return untested(
            seen.sent, f"after {count_noun(n, 'reply', 'replies')} the server took no more requests: {quoted(ended)}"
        )
    return without_lost(seen, subject.lost)


def _look(check: Check, subject: Subject) -> Seen:
    """Make one check and return its observation; a server that cannot be asked is an observation, too."""
    try:
        return check.look(subject)
    except Refused as refused:
        if refused.status in (0, *range(500, 600)) and check.quick:
            return Seen(outcome="spoils", sent="a chat request", came=quoted(refused.sentence))
        return untested("a chat request", f"refused: {quoted(refused.sentence)}")
    except SlowAnswer as error:
        return too_slow("a request", error.sentence)
    except ServerError as error:
        outcome: Outcome = "spoils" if check.quick else "untested"
        return Seen(outcome=outcome, sent="a request", came=f"no answer: {quoted(error.sentence)}")


def probe(
    options: ProbeOptions,
    watcher: Watcher | None = None,
    *,
    shared_key: bool = True,
    shown: Shown = by_keywords,
) -> ProbeReport:
    """Examine the one server that the options name. If the options ask for it, save a reference first.

    shared_key: whether a server of no known provider gets the key in OPENAI_API_KEY if the options name no key; False
    if several servers are probed in turn. shown: as in `examine`. Raises `UsageError`; `ServerError` if the server
    cannot be asked at all; `Interrupted` for a signal, which is a `ProbeInterrupted` with the report of the finished
    checks once the checks have begun.
    """

    def interrupted(signum: int) -> str:
        return f"stopped by {signal.Signals(signum).name} before the first check."

    watcher = watcher or Watcher()
    with Signals(interrupted, AGAIN_SECONDS):
        servers = probed(options, watcher, options, shared_key=shared_key)
        if len(servers) > 1:
            raise UsageError(
                f"a probe examines one server; {option('base_url')} names {len(servers)}", field="base_url"
            )
        server = servers[0]
        address = server.endpoint.base_url
        server.ledger.budget = options.budget
        with counterparts.counterpart(options, watcher) as counterpart:
            if counterpart.is_same_model(server):
                watcher.warn(Sentence(f"{option('reference')} {options.reference}: {counterparts.ITSELF}."))
                counterpart = counterpart.of_itself()
            selected = select(options.checks, quick=options.quick, checks=(*CHECKS, *counterpart.checks))
            # Saved first: a reference that cannot be saved is an error before minutes are spent.
            if options.save_reference is not None:
                saved = counterparts.SavedReference.of(counterpart.true or ServerReference(server, address))
                write_atomically(options.save_reference.absolute(), codec.pretty(saved))
            n = min(sum(check.tokens for check in selected), options.budget or sys.maxsize)
            n_checks = count_noun(len(selected), "check")
            watcher.probing(f"{address}: {n_checks}, about {n:,} tokens; this may take minutes")
            return examine(
                server,
                selected,
                address=address,
                seed=options.seed,
                context=options.context,
                budget=options.budget,
                beside=counterpart.server,
                watcher=watcher,
                shown=shown,
            )
