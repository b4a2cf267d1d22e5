"""A run from its settings to its samples on disk: lock → manifest → plan → network thread → outcome.

The same call again continues the run: it asks what is owed and nothing else. Nothing owed is a success and contacts
no server. The main thread shows progress and takes signals; one network thread asks; the journals write.
"""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.client.address.endpoint import Endpoint
from harness.client.facts.discovery import find_model
from harness.client.fast.event_loop import new_event_loop
from harness.client.interface import Transport
from harness.core.errors import Interrupted, ServerError, StoppedByRule, StoreError, UsageError
from harness.core.records import Sample
from harness.core.server_facts import ServerFacts
from harness.core.wording import Sentence, option
from harness.generation import fingerprint
from harness.generation.batching.board import BatchWorker
from harness.generation.batching.opening import board
from harness.generation.disk_room import DiskRoom
from harness.generation.dispatch.canary import Answered
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.retry import RetryPolicy
from harness.generation.eta import Expectation
from harness.generation.network.admission import Admission
from harness.generation.network.asking import Worker
from harness.generation.network.descriptors import affordable
from harness.generation.network.endpoints_file import EndpointsFile
from harness.generation.network.thread import Network
from harness.generation.outcome import Outcome
from harness.generation.progress import Progress
from harness.generation.session import Session
from harness.generation.settings import RunSettings
from harness.generation.signals import Signals
from harness.runs.layout import RunFolder
from harness.runs.lock import RunLock
from harness.runs.log import RunLog

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet

__all__ = ["Outcome", "generate", "stated_context"]

PROGRESS_S = 0.5
"""Seconds between two progress reports."""


def stated_context(endpoint: Endpoint, model: str) -> int | None:
    """Tokens that the server states as its context; None if it does not say. Raises `ServerError`."""
    found = find_model(endpoint, model)
    return None if found is None else found.context_tokens


def generate(
    settings: RunSettings,
    question_sets: Sequence[QuestionSet],
    *,
    transport_factory: Callable[[], Transport] | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = new_event_loop,
    context_of: Callable[[Endpoint, str], int | None] = stated_context,
    on_progress: Callable[[Progress], None] | None = None,
    progress_interval: float = PROGRESS_S,
    answered: Answered | None = None,
    prior_lengths: Mapping[tuple[str, str], float] | None = None,
    may_start_round: Callable[[int], bool] | None = None,
    endpoints_file: EndpointsFile | None = None,
    describe: Callable[[Endpoint], ServerFacts] | None = None,
    lost_server: Callable[[], str | None] = lambda: None,
    environment: Mapping[str, Any] = MappingProxyType({}),
    servers: Mapping[str, ServerFacts] = MappingProxyType({}),
    on_surplus: Callable[[Sentence], None] | None = None,
    taken_over: Callable[[], Iterable[Sample]] = tuple,
    resume_command: str = "",
    break_lock: bool = False,
    on_standing: Callable[[Sentence], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Ask for every owed sample of `question_sets` and store it in `settings.out`.

    transport_factory: makes another transport than `settings.transport`, for tests. loop_factory: makes the network
    thread's loop, on which the transport is made. context_of: what the server states as its context; raises
    `ServerError` where it cannot be asked. on_progress: called on this thread. answered: whether a reply gives an
    answer, for the canary.
    prior_lengths: mean tokens by (benchmark, question_id) of a former run, for the order only.
    may_start_round: the run works in rounds (sample r of every question); asked, on the network thread, before each
    one but the first; False ends the session with whole rounds. endpoints_file: where `settings.endpoints` come from;
    it is followed while the run goes on. environment: facts about the server (engine, version,
    devices) that go into the manifest. servers: what each endpoint tells of itself, by base URL; another model than
    made the run's samples is refused. describe: the same of an endpoint that joins later; it blocks, and raises
    `ServerError` while the endpoint is down. lost_server: asked now and then; that the only server has ended for good,
    and why, which ends the session at once. on_surplus: told before the first request where stored samples are more
    than planned. taken_over: samples that another tool made, each time anew; those that are owed are stored before the
    first request. resume_command: shown when a signal ends the run. on_standing: told what is waited
    for: how batches stand, a slow fingerprint.
    A session that ends with samples owed is an `Outcome` that is not complete. Raises `UsageError`, `ServerError`
    (unreachable, refusing, context too small), `StoreError` (identity, lock, disk), `StoppedByRule` (canary, budget,
    another model answers), `Interrupted`.
    """
    _check(settings, question_sets)
    folder = RunFolder(settings.out)
    folder.refuse_foreign()
    resume = f" Resume with: {resume_command}" if resume_command else " The same command again resumes."

    def interrupted(signum: int) -> str:
        return f"stopped by {signal.Signals(signum).name}; what is stored in {folder.path} counts.{resume}"

    with Signals(interrupted) as signals, RunLock(folder, break_lock=break_lock) as lock, RunLog(folder) as log:
        session = Session(settings, question_sets, folder, log, clock, environment, servers, on_surplus, taken_over)
        if lock.warning:
            session.warn(lock.warning)
        with session:
            plan = session.plan(context_of)
            if not plan.owed:
                return session.nothing_owed(plan)
            room = DiskRoom(folder.path, settings.disk_reserve)
            room.check()
            if doubt := room.doubt(session.expected_bytes(plan)):
                session.warn(doubt)
            by_batch = settings.batching is not None
            opener = transport_factory or _opener(settings)
            if settings.fingerprint:
                given = fingerprint.ask(settings, settings.endpoints, opener, on_standing)
                session.check_fingerprints(given, [one for one in settings.endpoints if one.base_url in servers])
            session.sampling_begins()
            concurrency = settings.concurrency if by_batch else affordable(settings.concurrency)
            if concurrency < settings.concurrency:
                session.warn(f"the limit of open files (ulimit -n) lowers {option('concurrency')} to {concurrency}.")
            # Those that told what they are; the others join when they do.
            known = [one for one in settings.endpoints if describe is None or one.base_url in servers]
            dispatcher = Dispatcher(
                dataclasses.replace(settings, concurrency=concurrency, endpoints=tuple(known)),
                plan,
                clock=clock,
                policy=RetryPolicy(attempts=1) if by_batch else None,  # the board asks again, by the next batch
                answered=answered,
                prior_lengths=prior_lengths,
                may_start_round=may_start_round,
            )
            keeper = session.keeper(plan) if settings.salvage.mode != "off" else None
            admission = None
            if describe is not None and (endpoints_file is not None or len(known) < len(settings.endpoints)):
                check = partial(_admitted, session, settings, describe, opener)
                admission = Admission(check, settings.endpoints, known, log.write)
            worker = BatchWorker if by_batch else Worker
            stands: SimpleQueue[Sentence] = SimpleQueue()
            lost: list[str] = []

            def look_around() -> None:
                while not stands.empty():
                    on_standing(stands.get())
                if not lost and (why := lost_server()):
                    lost.append(why)
                    network.stop(why)

            network: Network
            network = Network(
                dispatcher,
                session.journals,
                folder,
                transport_factory=partial(board, lambda: network, settings, dispatcher, folder, log.write, stands.put)
                if by_batch
                else opener,
                loop_factory=loop_factory,
                make_worker=lambda transport: worker(
                    settings, session.questions, transport, session.fitted, clock, keeper=keeper, on_event=log.write
                ),
                on_event=log.write,
                endpoints_file=endpoints_file,
                keeper=keeper,
                admission=admission,
                clock=clock,
            )
            patience = settings.patience

            def on_signal(signum: int, nth: int) -> None:
                why = f"stopped by {signal.Signals(signum).name}"
                if nth == 1 and not by_batch:  # nobody waits for a batch
                    network.drain(patience.grace if signum == signal.SIGINT else patience.term_grace, why)
                else:
                    network.stop(why)

            signals.attach(on_signal)
            try:
                _watch(network, session, signals, room, on_progress, progress_interval, look_around)
            finally:
                if admission is not None:
                    admission.stop()
            outcome = session.finish(dispatcher, network.progress, network.lag)
            ending = dispatcher.ending
            if ending.error is not None:
                raise ending.error
            state = f"{outcome.n_done} of {outcome.n_expected} samples are stored"
            if signals.caught is not None and not outcome.complete:
                name = signal.Signals(signals.caught).name
                raise Interrupted(f"stopped by {name}: {state} in {folder.path}.{resume}", signals.caught)
            if room.reached and not outcome.complete:
                raise StoreError(f"stopped: {state}. {room.sentence}")
            if lost and not outcome.complete:
                raise ServerError(f"{lost[0]}. {state} in {folder.path}.{resume}")
            if ending.rule and not outcome.complete:
                raise StoppedByRule(
                    f"{ending.rule}: {outcome.tokens} tokens bought {outcome.n_session} samples"
                    f"{f' ({outcome.spent.sentence(settings.prices)})' if settings.prices else ''}, and "
                    f"{outcome.n_done} of {outcome.n_expected} are stored in {folder.path}."
                )
            return outcome


def _admitted(
    session: Session,
    settings: RunSettings,
    describe: Callable[[Endpoint], ServerFacts],
    opener: Callable[[], Transport],
    endpoint: Endpoint,
) -> str | None:
    """Why an endpoint may not join the session, which it tells apart as those of the start; None where it may."""
    facts = describe(endpoint)
    given = fingerprint.ask(settings, [endpoint], opener) if settings.fingerprint else {}
    return session.join(endpoint, facts, given)


def _opener(settings: RunSettings) -> Callable[[], Transport]:
    """What opens the transport that `settings` name."""

    def opened() -> Transport:
        from harness.client.chooser import open_transport  # not needed where nothing is owed

        return open_transport(settings.transport, ca_file=settings.ca_file, secrets=settings.spelling.secrets)

    return opened


def _watch(
    network: Network,
    session: Session,
    signals: Signals,
    room: DiskRoom,
    on_progress: Callable[[Progress], None] | None,
    interval: float,
    look_around: Callable[[], None],
) -> None:
    """Wait for the end of the network thread; it never outlives this call."""
    network.start()
    ended = False
    expectation = Expectation()
    try:
        while not ended:
            ended = network.join(interval)
            if not ended and not room.reached and room.reach():
                network.drain(None, "the disk is nearly full")
            if expectation.renew(network.outlook):
                network.expect(expectation.left)
            session.remember_model(network.server_model)
            session.remember_builds(network.builds)
            session.note_joined()
            try:
                look_around()
                if on_progress is not None:
                    on_progress(network.progress)
            except OSError:  # the terminal was closed, or who read our output has gone
                on_progress = None
                signals.take(signal.SIGPIPE)
    finally:
        if not ended:
            network.stop("the progress display failed")
            while not network.join(1.0):
                pass


def _check(settings: RunSettings, question_sets: Sequence[QuestionSet]) -> None:
    names = [s.name for s in question_sets]
    if len(set(names)) < len(names):
        raise UsageError(f"a benchmark is named twice: {', '.join(names)}.")
    for chosen in question_sets:
        if chosen.name not in settings.benchmarks:
            raise UsageError(f"no settings are given for the benchmark {chosen.name}.")
        if chosen.api != settings.spelling.api:
            raise UsageError(
                f"the questions of {chosen.name} were rendered for {chosen.api}.",
                field="api",
                value=settings.spelling.api,
            )
