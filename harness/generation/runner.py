"""Runs one session: from settings to samples on disk. `generate` goes through these steps:

    open     signals, lock, log, session   a second writer of the folder is rejected here
    plan     which samples are missing     if none, the session is complete and contacts no server
    ask      network thread                the main thread shows progress and handles signals; the journals write
    finish   the outcome                   or, as an exception, why the session ended with samples missing
    close    in the reverse order          even after an exception

The same call again continues the run: it requests only the samples that are missing.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Transport
from harness.client.loop import new_event_loop
from harness.core.errors import Interrupted, ServerError, StoppedByRule
from harness.core.number_text import count_noun, is_are
from harness.core.records import Sample, ServerFacts
from harness.core.reply_notes import UNREAD
from harness.generation.dispatch.budget import Ending
from harness.generation.dispatch.canary import Answered
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.engine_watch import watched
from harness.generation.network.admission import Admission, EndpointsFile
from harness.generation.network.control import Desk, Signals
from harness.generation.network.requests import OneByOne, Requests
from harness.generation.network.steps import StepByStep
from harness.generation.network.thread import Network
from harness.generation.outcome import Outcome
from harness.generation.run_progress import Account, Progress, Spent, completion_tokens
from harness.generation.session import SamplingSession
from harness.generation.settings import RunSettings, limit_concurrency
from harness.runs.journal import read_samples
from harness.runs.layout import RunFolder, RunLog
from harness.runs.lock import hold
from harness.runs.log_events import spent_so_far

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.generation.batching.loop import BatchLoop

__all__ = ["Listener", "Outcome", "ServerSide", "generate"]

PROGRESS_S = 0.5
"""Seconds between two progress reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSide:
    """What a session knows about its servers, and how it learns more about them.

    facts: what each endpoint reports about itself, by base URL; the session rejects any model other than the one that
    generated the run's samples. environment: engine, version, devices …, for the manifest. contexts: context lengths
    that endpoints report, in tokens. down: why each endpoint that did not answer could not be used. describe: returns
    the facts of an endpoint that joins later; blocks, and raises `ServerError` while the endpoint is down; None: every
    endpoint takes part from the start. endpoints_file: the file from which `settings.endpoints` were read; its changes
    are followed during the run. lost: called occasionally with the failure for which each endpoint is set aside (empty
    for any other); returns why the only server has ended for good, which ends the session at once, or None. listing:
    called with the same failures, by base URL; returns the endpoints that have listed the model since the last call.
    watched: the endpoints whose metrics pages are read during the session.
    """

    facts: Mapping[str, ServerFacts] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    contexts: Iterable[int] = ()
    down: Sequence[ServerError] = ()
    describe: Callable[[Endpoint], ServerFacts] | None = None
    endpoints_file: EndpointsFile | None = None
    lost: Callable[[Sequence[str]], str | None] = lambda _: None
    listing: Callable[[Mapping[str, str]], Iterable[str]] = lambda _: ()
    watched: Sequence[Endpoint] = ()

    def ready(self, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """Return the endpoints that take part from the start; the others join once `describe` returns their facts."""
        # Without `describe` nobody could admit an endpoint later, so all of them take part.
        return [endpoint for endpoint in endpoints if self.describe is None or endpoint.base_url in self.facts]


RESUME = " Run the same command to resume."
"""The sentence, to be appended to a message, on how to resume a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """The callbacks by which a session reports to its caller, on the thread that called `generate`.

    on_progress: called every `interval` seconds. on_surplus: called before the first request if more samples are stored
    than planned. on_status: receives a sentence on what the session is waiting for, such as a batch.
    on_warning: receives each warning of a session that ends with an exception and so returns no `Outcome`.
    """

    on_progress: Callable[[Progress], None] | None = None
    interval: float = PROGRESS_S
    on_surplus: Callable[[str], None] | None = None
    on_status: Callable[[str], None] = lambda _: None
    on_warning: Callable[[str], None] = lambda _: None


def generate(
    settings: RunSettings,
    question_sets: Sequence[QuestionSet],
    *,
    servers: ServerSide = ServerSide(),
    listener: Listener = Listener(),
    answered: Answered | None = None,
    taken_over: Iterable[Sample] = (),
    transport_factory: Callable[[], Transport] | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = new_event_loop,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Request every missing sample of `question_sets` and store it in the run folder `settings.out`.

    answered: returns whether a reply gives an answer, for the canary (the check of the first replies).
    transport_factory: makes a transport to replace `settings.transport`, for tests. loop_factory: makes the network
    thread's loop. taken_over: samples from another tool, which
    can be iterated repeatedly; missing ones are stored before the first request. clock: seconds; tests replace it. A
    session that
    ends with samples missing is an `Outcome` that is not complete. Raises `UsageError`, `ServerError` (unreachable,
    rejecting, context too small), `StoreError` (identity, lock, disk), `StoppedByRule` (canary, budget, a different
    model answers), `Interrupted`.
    """
    folder = RunFolder(settings.out)

    def interrupted(signum: int) -> str:
        return f"stopped by {signal.Signals(signum).name}; samples stored in {folder.path} are kept.{RESUME}"

    # Signals first, so that from here on Ctrl-C ends the run properly, even during the checks before the first request.
    with Signals(interrupted) as signals, hold(folder) as run:
        log, desk = run.log, Desk(folder)
        stated = servers.environment, servers.facts, listener.on_surplus, taken_over
        session = SamplingSession(settings, question_sets, folder, log, *stated)
        if run.warning:
            session.warn(run.warning)
        with session:
            plan = session.plan(servers.contexts, servers.down)
            if not plan.missing:
                return session.outcome(plan.total, plan.done)
            opener = transport_factory or _opener(settings)
            settings = session.settings_sent
            has_budget = settings.budget_tokens is not None or settings.budget_usd is not None
            account = _account(folder, settings.benchmarks) if has_budget else Account()
            runner = Runner(settings, servers, listener, folder, log, session, account, opener)
            dispatcher = Dispatcher(
                runner.dispatched(),
                plan,
                store=lambda sample: session.journals[sample.benchmark].append(sample),
                log=log.write,
                clock=clock,
                answered=answered,
                account=account,
            )
            network = runner.network(dispatcher, loop_factory, clock)
            # A batch can take hours: there the first signal ends the session at once.
            runner.ask(network, signals, desk, waits=settings.batching is None)
            outcome = session.finish(dispatcher, network.progress)
            # After `finish`: what the session learned is recorded even if it ends with an error.
            if (error := runner.error(outcome, dispatcher.ending, signals.caught)) is not None:
                for warning in outcome.warnings:
                    listener.on_warning(warning)
                raise error
            return replace(outcome, caught=signals.caught)


@dataclass
class Runner:
    """Runs a planned session: `dispatched`, `network` and `ask`, called in this order."""

    settings: RunSettings
    servers: ServerSide
    listener: Listener
    folder: RunFolder
    log: RunLog
    session: SamplingSession
    account: Account
    opener: Callable[[], Transport]
    _status_sentences: SimpleQueue[str] = field(init=False, default_factory=SimpleQueue)
    _lost: str | None = field(init=False, default=None)
    _told: set[str] = field(init=False, default_factory=set)

    # ---- before the first sample

    def dispatched(self) -> RunSettings:
        """The settings used to dispatch requests: the servers that answer, and how many requests they take."""
        settings = self.settings
        # A failed request of a batch is repeated in the next batch.
        attempts = settings.patience.attempts if settings.batching is None else 1
        return replace(
            settings,
            concurrency=self.concurrency(),
            endpoints=tuple(self.servers.ready(settings.endpoints)),
            patience=replace(settings.patience, attempts=attempts),
        )

    def concurrency(self) -> int:
        """Maximum number of requests in flight: as in the settings or, if they need too many open files, fewer (with a
        warning).

        Raises `UsageError` if the limit on open files is too low for any run.
        """
        n = self.settings.concurrency
        if self.settings.batching is None and (n := limit_concurrency(n)) < self.settings.concurrency:
            self.session.warn(f"the open-file limit (ulimit -n) reduces `concurrency` to {n}.")
        return n

    def network(
        self,
        dispatcher: Dispatcher,
        loop_factory: Callable[[], asyncio.AbstractEventLoop],
        clock: Callable[[], float],
    ) -> Network | BatchLoop:
        """Return the thread (not yet started) that requests the samples, with one request each or in batches.

        loop_factory, clock: the event loop and the time, which tests replace.
        """
        settings, session, on_event = self.settings, self.session, self.log.write
        requests = Requests(settings, session.questions, self.folder, clock)
        if settings.batching is not None:
            from harness.generation.batching.loop import BatchLoop  # few runs need it

            return BatchLoop(
                settings,
                self.folder,
                dispatcher,
                requests,
                on_event=on_event,
                on_status=self._status_sentences.put,
            )
        plain = OneByOne(settings=settings, requests=requests, transport=self.opener())
        sampler: OneByOne | StepByStep = plain
        if any(benchmark.has_steps for benchmark in settings.benchmarks.values()):
            sampler = by_step = StepByStep(plain, settings, dispatcher.step, session.context)
            dispatcher.on_given_up = by_step.forget
            dispatcher.tool_progress = by_step.turns.progress
        servers, endpoints = self.servers, self.settings.endpoints
        check = None if servers.describe is None else partial(self._refusal, servers.describe)
        return Network(
            dispatcher,
            sampler=sampler,
            loop_factory=loop_factory,
            admission=Admission(check, endpoints, servers.ready(endpoints), self.log.write, servers.endpoints_file),
            clock=clock,
        )

    def _refusal(self, describe: Callable[[Endpoint], ServerFacts], endpoint: Endpoint) -> str | None:
        """Return why an endpoint may not join the session; None if it may. The checks are the same as at the start."""
        return self.session.join(endpoint, describe(endpoint))

    # ---- while samples are asked

    def ask(self, network: Network | BatchLoop, signals: Signals, desk: Desk, *, waits: bool) -> None:
        """Start the network thread, show progress, and return when the thread has ended.

        desk: shows the progress to other processes. waits: at the first Ctrl-C, requests in flight may finish.
        """
        signals.attach(partial(self._on_signal, network, waits))
        pages, hurries = self.servers.watched, lambda: signals.caught is not None
        with watched(pages, self.folder.engine, lambda: network.progress, hurries):
            network.start()
            ended = False
            on_progress = self.listener.on_progress
            try:
                while not ended:
                    desk.show(network.progress)
                    ended = network.join(self.listener.interval)
                    self.session.remember_model(network.server_model)
                    self.session.note_joined()
                    try:
                        self._poll(network, goes_on=not ended)
                        if on_progress is not None:
                            on_progress(network.progress)
                    except OSError:  # the terminal was closed, or the program that read our output has ended
                        # Nobody can see the progress any more, but the replies in flight are worth storing.
                        on_progress = None
                        signals.take(signal.SIGPIPE)
            finally:
                desk.clear()
                # Regardless of any error here, the thread must have ended before its journals are closed.
                if not ended:
                    network.stop("the progress display failed")
                    while not network.join(1.0):
                        pass

    def _poll(self, network: Network | BatchLoop, *, goes_on: bool) -> None:
        """Pass pending sentences to `on_status`; end the session if the only server has ended for good.

        goes_on: whether the network thread is running; afterwards, the session's warnings name what was not read.
        """
        for note in {note for note in network.progress.notes if UNREAD in note and goes_on} - self._told:
            self._told.add(note)
            self.listener.on_status(f"a reply has {note}")
        while not self._status_sentences.empty():
            self.listener.on_status(self._status_sentences.get())
        present = [each for each in network.progress.endpoints if each.state != "left"]
        failures = {each.base_url: each.why if each.state == "set aside" else "" for each in present}
        for url in self.servers.listing(failures):
            network.listed(url)
        if self._lost is None and (why := self.servers.lost([*failures.values()])):
            self._lost = why
            network.stop(why)

    def _on_signal(self, network: Network | BatchLoop, waits: bool, signum: int, nth: int) -> None:
        """Drain at the first signal if requests in flight may finish; end all requests immediately at the second.

        waits: whether requests in flight may finish. signum: the signal's number. nth: 1 for the session's first
        signal.
        """
        why = f"stopped by {signal.Signals(signum).name}"
        patience = self.settings.patience
        if nth == 1 and waits and isinstance(network, Network):
            network.drain(patience.grace if signum == signal.SIGINT else patience.term_grace, why)
        else:
            network.stop(why)

    # ---- afterwards

    def error(self, outcome: Outcome, ending: Ending, caught: int | None) -> BaseException | None:
        """Return the exception with which the session must end; None if it ends normally. caught: the first signal."""
        everything = outcome.spent.add(outcome.spent_before)
        in_all = f" All sessions of this run: {self._cost(everything)}." if self._cost(outcome.spent_before) else ""
        # No summary follows.
        spent = (f" This session: {cost}." if (cost := self._cost(outcome.spent)) else "") + in_all
        state = f"{outcome.n_done} of {count_noun(outcome.n_expected, 'sample')} {is_are(outcome.n_done)} stored"
        where, resume = self.folder.path, "" if ending.repeats else RESUME
        # The session's own error first, since it may have led to a signal or a full disk.
        if isinstance(ending.error, ServerError) and (outcome.n_done or spent) and not outcome.complete:
            return ServerError(f"{ending.error.sentence.rstrip('.')}. {state} in {where}.{spent}{resume}")
        if isinstance(ending.error, StoppedByRule) and spent:
            return StoppedByRule(f"{ending.error.sentence.rstrip('.')}.{spent}")
        if ending.error is not None or outcome.complete:
            return ending.error
        if caught is not None:
            return Interrupted(f"stopped by {signal.Signals(caught).name}: {state} in {where}.{spent}{resume}", caught)
        if self._lost is not None:
            return ServerError(f"{self._lost}. {state} in {where}.{spent}{resume}")
        if ending.rule:
            why = f"{ending.rule} ({cost})" if (cost := self._cost(self.account.spent)) else ending.rule
            more = " The budget covers all sessions of this run; to continue, raise it." if self.account.n_begun else ""
            return StoppedByRule(f"{why}. {state} in {where}.{more}")
        return None

    def _cost(self, spent: Spent) -> str:
        """The cost of `spent`, in words; empty without prices or if nothing was spent."""
        prices = self.settings.prices
        return spent.sentence(prices) if prices and spent != Spent() else ""


def _account(folder: RunFolder, benchmarks: Iterable[str]) -> Account:
    """What the run's earlier sessions have used: what they logged, and at least what the stored replies report, because
    a killed session has logged nothing.
    """
    account = Account(spent=Spent.of_all(spent_so_far(folder)))
    prompts = completions = cached = 0
    for sample in (sample for name in benchmarks for sample in read_samples(folder.benchmark(name))):
        if not sample.foreign:
            tokens = completion_tokens(sample)
            prompts, completions = prompts + (sample.usage.prompt_tokens or 0), completions + tokens
            cached += sample.usage.cached_tokens or 0
            account.n_finished, account.longest = account.n_finished + 1, max(account.longest, tokens)
    account.n_begun, logged = account.n_finished, account.spent
    at_least = max(prompts, logged.prompt_tokens), max(completions, logged.completion_tokens)
    account.spent = Spent(*at_least, logged.n_unstated, max(cached, logged.cached_tokens))
    return account


def _opener(settings: RunSettings) -> Callable[[], Transport]:
    """Return a function that opens the transport that `settings` name."""

    def opened() -> Transport:
        from harness.client.transport import open_transport  # not needed if nothing is missing

        return open_transport(settings.transport, secrets=settings.spelling.secrets)

    return opened
