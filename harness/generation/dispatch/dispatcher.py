"""Decides what a session does next: which sample is requested where, what follows from a failure, when it ends. No I/O.

The owner (the network thread, or a simulator) works in a loop: it sends the requests of `begin`, waits for `pause`
seconds or until a request ends, and reports each end once to `handle_end`, until the session has `ended`. A signal may
come at any time. Clock, randomness and the journals are parameters, so that whole sessions can be replayed from a seed
(`tests/simulation`).

Guarantees, if every request is sent and its end reported:
- at most `concurrency` requests are in flight, never two for one sample;
- each missing sample is stored once, or is listed with the cause of its failure, or was not requested because the
  session ended first (`Ending.why`);
- retries stay within their budget, and `pause` never extends past the next event that depends on time alone.

Long: the dispatcher is one state machine, and its guarantees apply to all of it. Independent parts are in other modules
of this package.
"""

from __future__ import annotations

import math
import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.client.address.fields import leaving_out, refused_fields
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.core.contradictions import PROMPT_VARIES, SLACK_TOKENS, UNSTATED, contradictions, echoes, of_settings
from harness.core.errors import HarnessError, ServerError, StoppedByRule, StoreError
from harness.core.hidden_limit import Cuts, cut_tokens
from harness.core.records import Sample, Usage
from harness.core.reply_notes import CONTEXT, limit_of
from harness.core.sanitize import quoted
from harness.generation.dispatch.budget import Billing, Budget, Ending, OutOfBudget
from harness.generation.dispatch.canary import Answered, Canary, ModelName
from harness.generation.dispatch.lanes import Lanes
from harness.generation.dispatch.rate import PoissonArrivals, RateLimit
from harness.generation.dispatch.retry import Cause, Causes, advice, fault_of, seconds_to_retry
from harness.generation.dispatch.schedule import Scheduler
from harness.generation.dispatch.state import HOPELESS_QUESTIONS, Arrivals, Flight, Lane, SessionPlan, Work, no_request
from harness.generation.run_progress import (
    Account,
    BenchmarkProgress,
    FailureProgress,
    Progress,
    Spent,
    Tally,
    ToolProgress,
    completion_tokens,
)
from harness.generation.settings import RunSettings
from harness.runs.missing import Task, n_planned
from harness.runs.record import RecordRefused

MIN_FINISHED = 8
"""Minimum number of finished samples before the end of a session is forecast."""

SHORTEST_WAIT_S = 0.001
"""Shortest pause in seconds. It exceeds rounding errors in sums of times, so that what was almost due is due after it.
"""


class Dispatcher:
    """Decides what a session does next: which request it sends, to which endpoint, and what follows when one fails.

    store: writes a sample to its journal; raises `RecordRefused` for this one sample, and any other error if nothing
    can be stored. log: writes an event to the run's log. answered: returns whether a reply gives an answer, for the
    canary (the check of the first samples). jitter: returns a random number between two bounds. account: how much of
    its budget the command has used; None: nothing.

    Wide: it combines the parts, with one attribute for each; a part's decisions are made in its own module.
    """

    def __init__(
        self,
        settings: RunSettings,
        plan: SessionPlan,
        *,
        store: Callable[[Sample], None],
        log: Callable[..., None] = lambda *_, **__: None,
        clock: Callable[[], float],
        jitter: Callable[[float, float], float] = random.uniform,
        answered: Answered | None = None,
        account: Account | None = None,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._jitter = jitter
        self._concurrency = settings.concurrency
        self._flights: dict[Task, Flight] = {}
        self._store, self._log = store, log
        self._refused_questions: set[tuple[str, str]] = set()
        self._rate = RateLimit(settings.requests_per_minute, clock)
        if settings.requests_per_second is not None:
            # A later session plans other times.
            self._rate = PoissonArrivals(
                settings.requests_per_second, clock, f"{settings.seed} {sum(plan.done.values())}"
            )
        self._lanes = Lanes(
            settings.endpoints,
            settings.concurrency,
            settings.patience,
            clock,
            jitter,
            batches=settings.batching is not None,
            n_questions=len(plan.missing),
        )
        self.listed = self._lanes.listed
        # Questions with an answered sample, from this session or an earlier one.
        samples = {name: benchmark.samples for name, benchmark in settings.benchmarks.items()}
        self._proven = {o[:2] for o in plan.missing if len(o.indices) < n_planned(o.question_id, samples[o.benchmark])}
        self._canary = Canary(answered, on=settings.canary)
        self.done, self.total = dict(plan.done), plan.total
        """Samples by benchmark: expected, and on disk (including earlier sessions)."""
        self.tally = Tally()
        # By kind: number of failed requests, the latest cause, and its time.
        self._failed: dict[str, tuple[int, str, float]] = {}
        self.causes = Causes()
        self.cuts = Cuts()
        self.prompt_tokens: dict[tuple[str, str | msgspec.UnsetType, str, str], int] = {}
        """Endpoint, provider, benchmark and question → the stated length of the prompt in the first reply."""
        self.model_name = ModelName(plan.server_model)
        self.ending = Ending()
        self._billing = Billing(settings, plan)
        self._budget = Budget(settings, plan.missing, self._billing, account or Account(), self._flights)
        if any(benchmark.has_steps for benchmark in settings.benchmarks.values()):
            # The sum covers all requests in flight.
            flights = self._flights.values()
            self._budget.billed_for_steps = lambda: sum(each.work.billed.completion_tokens for each in flights)
        self.on_given_up: Callable[[Task], object] = lambda _: None
        """Called with each sample that will not be requested again."""
        self.tool_progress: Callable[[], ToolProgress | None] = lambda: None
        """The state of the tool calls."""
        self._arrivals = Arrivals(clock, self._flights)
        self._scheduler = Scheduler(
            plan.missing,
            order="rounds" if self._budget else settings.order,
            may_start_round=self._budget.may_start if self._budget else None,
        )

    # ---- what to do

    def begin(self) -> Iterator[Flight]:
        """Do what is due by now, and yield each request that is to be sent now."""
        self._do_due()
        if not self.ending.may_send or not self._has_room or not self._scheduler.n_waiting:
            return
        at_work = self._lanes.working()
        while self._has_room and not self._rate.wait():
            flight = self._next_flight(at_work) if self._budget.fits() else None
            if flight is None:
                self._end_by_budget()
                return
            yield flight

    def _end_by_budget(self) -> None:
        """End the session if the budget allows neither the next request nor the next round, now or later."""
        # The next round did not fit, but retries of samples in this round come before it.
        is_held = self._budget.holds_round and not self._scheduler.retrying
        # Requests in flight may use less than their reserve and so leave room for the next.
        if not self._flights and (is_held or not self._budget.fits()):
            self.ending.by_rule(self._budget.sentence())

    @property
    def _has_room(self) -> bool:
        return len(self._flights) < self._concurrency

    def _do_due(self) -> None:
        """Do what is due by now.

        End a grace period that is over, and a session in which no endpoint answers any more. Requeue failed samples and
        retry endpoints when their waits are over.
        """
        now, ending = self._clock(), self.ending
        if ending.phase != "stopping":
            if ending.grace_ends is not None and now >= ending.grace_ends:
                self.stop(ending.why)
            elif (away := self._lanes.pause_to_end()) is not None:
                self.fail(ServerError(away))
            elif (hopeless := self._lanes.failure_to_end()) is not None:
                if self._lanes.unreachable:
                    self.fail(ServerError(f"{hopeless}. Is the server running, and is `base_url` correct?"))
                else:
                    self._log("stopped", reason=hopeless)
                    self.stop(hopeless)
        self._scheduler.advance(now)
        self._lanes.advance()

    def _next_flight(self, at_work: Sequence[Lane]) -> Flight | None:
        """The next request, to the first endpoint that has room and a sample to send; None if there is none."""
        for lane in self._lanes.available():
            work = self._scheduler.next(lane, at_work)
            if work is not None:
                assert work.task not in self._flights, "two requests are in flight for one sample"
                planned_at = self._rate.record_sent()
                work.planned_at = planned_at if work.planned_at is None else work.planned_at
                flight = self._lanes.record_sent(lane, work)
                # Until it is sent, because a caller that fails to send it would never report its end.
                flight.cancel = partial(self.handle_end, flight, end=None)
                self._budget.record_sent(work.task, flight.attempt)
                self._arrivals.advance()
                self._flights[work.task] = flight
                return flight
        return None

    @property
    def ended(self) -> bool:
        """Whether no request is in flight, and none will be sent."""
        return not self._flights and not (self.ending.may_send and self._scheduler.n_waiting)

    def pause(self) -> float:
        """Seconds until time alone makes a request possible, or ends the session; infinite if only an event can."""
        now = self._clock()
        times = [self._scheduler.next_due, self.ending.grace_ends if self.ending.phase == "draining" else None]
        pauses = [at - now for at in times if at is not None]
        if (change := self._lanes.next_change()) is not None:
            pauses.append(change)
        if self._has_room and (wait := self._rate.wait()):
            pauses.append(wait)
        return max(SHORTEST_WAIT_S, min(pauses, default=math.inf))

    # ---- how a request ended

    def handle_end(self, flight: Flight, end: tuple[Sample, Reply] | BaseException | None) -> None:
        """Handle the end of a request.

        end: the sample with the reply that it was made from; or the failure, which may be an error in our own code; or
        None if the request was cancelled.
        """
        self._arrivals.advance()
        del self._flights[flight.task]
        # This breaks a reference cycle: flight → cancel → request → error → its frames → flight.
        flight.cancel = no_request
        try:
            if isinstance(end, tuple):
                self._answered(flight, *end)
                return
            self._bill_without_sample(flight, end)
            if isinstance(end, RequestFailed):
                self._failed_request(flight, end)
            else:
                self._lanes.cancelled(flight)
                if isinstance(end, OutOfBudget):
                    self._budget.forget(flight.task)
                elif isinstance(end, HarnessError):  # no sandbox of the tool can be started any more
                    self.fail(end)
                elif end is not None:
                    self._log("internal_error", task=list(flight.task), trace="".join(traceback.format_exception(end)))
                    self._give_up(flight.work, "internal", f"{type(end).__name__}: {quoted(str(end))}")
                elif self.ending.phase != "stopping":
                    why = "the request was canceled, but not by the dispatcher"
                    self._give_up(flight.work, "internal", why)
        except Exception as error:  # noqa: BLE001 - the books may be wrong now; the session ends, and its owner raises it
            self.fail(error)

    def _answered(self, flight: Flight, sample: Sample, reply: Reply) -> None:
        """Handle a request that resulted in `sample`."""
        task = flight.task
        tokens = completion_tokens(sample)
        max_tokens = self.settings.benchmarks[task.benchmark].sampling.max_tokens
        # First, what holds regardless of the sample's fate: its tokens arrived and are billed, and its endpoint
        # answers.
        self._arrivals.finished(flight, tokens, sample.timing.events or 0)
        if sample.steps and (
            sample.steps[-1].text is not msgspec.UNSET or (sample.steps[-1].calls and sample.finish_reason == CONTEXT)
        ):
            billed = Spent()  # a rejected step used nothing, and the last step with a reply is already billed
        elif sample.steps:
            billed = self._billing.step(flight.work, sample.steps[-1].usage)
        else:
            billed = self._billing.last_bill(sample)
        self._budget.finished(task, billed, flight.work.billed.completion_tokens)
        self._lanes.answered_by(flight)
        self._proven.add(task[:2])
        if (changed := self.model_name.observe(sample.endpoint, sample.server_model)) is not None:
            # Not stored, since samples of two models are never mixed. The rest is not needed because the session ends.
            self.fail(StoppedByRule(changed))
            return
        flight.lane.finished(self._clock() - flight.sent_at, tokens)
        self._scheduler.finish(flight.work, tokens)
        self.causes.arrived(task)
        self._count(sample, reply, tokens, billed, max_tokens)
        self._write(task, sample)
        # Only now, so that answers are kept no matter what they show about the setup.
        if (stop := self._canary.observe(task, reply, max_tokens)) is not None:
            self.fail(StoppedByRule(stop))

    def step(self, flight: Flight, usage: Usage, next_bytes: int) -> bool:
        """Bill a step of a sample that continues. Returns whether its next step fits into the budget; if not, the
        session ends.

        next_bytes: size of the next request.
        """
        work = flight.work
        billed = self._billing.step(work, usage)
        work.billed, work.prompt_bytes = work.billed.add(billed), next_bytes
        work.failures = work.refusals = 0  # attempts are counted per step
        self._proven.add(work.task[:2])
        self.tally.spent = self.tally.spent.add(billed)
        self._lanes.note_answer(flight.lane)
        self._billing.next_step(next_bytes)
        if self._budget.step(billed):
            return True
        self.ending.by_rule(self._budget.sentence())
        return False

    def _count(self, sample: Sample, reply: Reply, tokens: int, billed: Spent, max_tokens: int | None) -> None:
        """Count a finished sample, its reply, its tokens and what they were billed for.

        max_tokens: the request's limit, with which the length of a truncated sample is compared.
        """
        tally = self.tally
        tally.finished += 1
        tally.truncated += sample.truncated
        tally.tokens += tokens
        tally.spent = tally.spent.add(billed)
        for note in reply.notes:
            tally.note(note)
        if not sample.steps:  # their usage covers only one of several requests
            for kind in self._contradictions(sample, reply, max_tokens):
                tally.note(kind)
        stated, events = sample.usage.completion_tokens, sample.timing.events
        # A server's own limit truncates all replies at one length, below the max_tokens that was sent.
        if (limit := limit_of(sample.finish_reason)) is not None:
            self.cuts.observe(limit, cut_tokens(stated, events), max_tokens)

    def _contradictions(self, sample: Sample, reply: Reply, max_tokens: int | None) -> Iterator[str]:
        """The kinds of contradictions in a reply: within itself, with earlier replies, with the settings sent."""
        yield from contradictions(reply.claims(max_tokens))
        if reply.echo:
            yield from of_settings(echoes(self.settings.spelling.extra_body), reply.echo)
        if (prompt := reply.stated.prompt_tokens) is not None:
            key = sample.endpoint, sample.provider, sample.benchmark, sample.question_id
            if abs(self.prompt_tokens.setdefault(key, prompt) - prompt) > SLACK_TOKENS:
                yield PROMPT_VARIES
        if reply.stated.completion_tokens is None:
            yield UNSTATED

    def _write(self, task: Task, sample: Sample) -> None:
        """Store the sample of `task`."""
        try:
            self._store(sample)
        except RecordRefused as refused:
            self.causes.record_loss(task, "malformed", str(refused))
        except Exception as error:  # noqa: BLE001 - a journal that has stopped ends the session
            self.fail(error if isinstance(error, HarnessError) else StoreError(str(error)))
        else:
            self.done[task.benchmark] += 1

    def _bill_without_sample(self, flight: Flight, end: BaseException | None) -> None:
        """Count what a request that ended without a sample may have cost."""
        failure = end if isinstance(end, RequestFailed) else None
        billed = None
        # The server may have begun a reply, which it bills although it never reports the tokens.
        if not isinstance(end, OutOfBudget) and (failure is None or not failure.free):
            billed = self._billing.most(flight.work, flight.events if failure is None else failure.n_events)
            self.tally.overhead = self.tally.overhead.add(billed)
        self._budget.failed(billed)

    def _failed_request(self, flight: Flight, failure: RequestFailed) -> None:
        """Handle a failed request, by the first table of `retry`."""
        task, lane, work = flight.task, flight.lane, flight.work
        self.tally.failures += 1
        n_failed, *_ = self._failed.get(failure.kind, (0,))
        self._failed[failure.kind] = (n_failed + 1, failure.message, self._clock())
        endpoint = lane.endpoint.base_url
        self._log(
            "request_failed",
            task=list(task),
            endpoint=endpoint,
            kind=failure.kind,
            status=failure.status,
            message=failure.message,
            attempt=flight.attempt,
        )
        is_proven = task[:2] in self._proven
        sign, past = self._lanes.sign_and_past(flight, failure, proven=is_proven)
        if sign in ("rejected", "too long") and not is_proven:
            self._refused_questions.add(task[:2])
        if failure.kind == "rejected":
            names = self.settings.template(task.benchmark).names(seed=self.settings.seed is not None) - {"model"}
            if refused := refused_fields(failure.message, sorted(names)):
                failure.message += f" (omit with {leaving_out(refused)}, or use a different value)"
        match fault := fault_of(sign, past):
            case "run":
                self._lanes.answered_by(flight, is_reply=False)
                self.causes.record_retry(task, failure)
                self._refused_all(failure, endpoint)
            case "payload":
                self._lanes.answered_by(flight, is_reply=False)
                self._refused(flight, failure)
            case "pace":
                self._lanes.failed(flight, failure)
                self._retry(work, failure)
            case "endpoint" | "chance" | "question":
                self._lanes.failed(flight, failure, counts=fault != "question")
                work.failed_at = lane
                is_refused = fault == "endpoint" and sign in ("faulty", "rejected", "refused", "no account")
                after = seconds_to_retry(work, fault, self.settings.patience, self._jitter, is_refused=is_refused)
                if after is None:
                    self._give_up(work, failure.kind, failure.message, failure.status)
                else:
                    self._retry(work, failure, after)

    # ---- what a failure leads to

    def _refused_all(self, failure: RequestFailed, endpoint: str) -> None:
        """End the session, since no request can succeed, and say what to do. endpoint: base URL that rejects them."""
        variable = self.settings.key_variable or "OPENAI_API_KEY or the provider's variable"
        cure = f"; put the correct key, without quotes, into {variable}" if failure.status == 401 else ""
        if failure.status in (404, 405) and "model" not in failure.message.lower():
            cure = "; check the address (`base_url` or OPENAI_BASE_URL), whose path usually ends in /v1"
        # An empty account can be topped up; anything else needs a different command.
        repeats = failure.status not in (402, 429)
        does = "refuses" if failure.kind == "refused" else "fails every request alike"
        if failure.kind != "refused" and "api=" not in failure.message:  # another API's reply states that API's name
            stream = "`drop=stream`, which requests non-streamed replies, " if self.settings.spelling.stream else ""
            cure = f"; check the server's log, or try {stream}a different API (option `api`) or server version"
        self.fail(ServerError(f"{endpoint} {does}: {failure.message}{cure}"), repeats=repeats)

    def _retry(self, work: Work, failure: RequestFailed, after: float = 0.0) -> None:
        """Request a sample again, `after` seconds from now."""
        self.causes.record_retry(work.task, failure)
        self.tally.retries += 1
        self._scheduler.give_back(work, self._clock() + after)

    def _give_up(self, work: Work, kind: str, message: str, status: int | None = None) -> None:
        """Do not request a sample whose request has ended again in this session, and record why."""
        self._budget.forget(work.task)
        self.on_given_up(work.task)
        self.causes.record_loss(work.task, kind, message, status, work.requests)

    def _refused(self, flight: Flight, failure: RequestFailed) -> None:
        """Give up a sample whose request the server will never accept or never finish."""
        task, endpoint = flight.task, flight.endpoint.base_url
        self._give_up(flight.work, failure.kind, failure.message, failure.status)
        if failure.kind == "too_long":
            # All samples of a question have the same prompt.
            for waiting in self._scheduler.drop_question(task.benchmark, task.question_id):
                self.causes.record_loss(waiting, failure.kind, failure.message, failure.status)
            if self.settings.accept_missing:
                return
        elif failure.kind != "rejected":
            # A runaway was accepted and answered, so there is nothing wrong with the request itself.
            return
        may_succeed = any(other.sent_at <= flight.sent_at for other in self._flights.values())
        if not (self.tally.finished or may_succeed) and len(self._refused_questions) >= HOPELESS_QUESTIONS:
            self.fail(ServerError(f"{endpoint} rejects every request: {failure.message}"), repeats=True)

    # ---- how the session ends, and other servers

    def drain(self, why: str, grace: float) -> None:
        """Send no more requests; those in flight may finish within `grace` seconds."""
        self.ending.drain(why, self._clock() + grace)

    def stop(self, why: str) -> None:
        """End every request now."""
        self.ending.stop(why)
        self._cancel_all()

    def fail(self, error: BaseException, *, repeats: bool = False) -> None:
        """End every request now; `error` is the reason. Only the first error counts. repeats: as in `Ending`."""
        is_first = self.ending.fail(error, repeats=repeats)
        self._cancel_all()
        if is_first:
            self._log("stopped", reason=str(error), error=type(error).__name__)

    def _cancel_all(self) -> None:
        """Cancel each request in flight once, even if cancelling another one raises an exception."""
        for flight in [*self._flights.values()]:
            cancel, flight.cancel = flight.cancel, no_request
            try:
                cancel()
            except Exception as error:  # noqa: BLE001 - the owner raises it
                self.ending.fail(error)

    def replace_endpoints(self, endpoints: Sequence[Endpoint]) -> None:
        """Use these endpoints (at least one) from now on."""
        joined, left = self._lanes.replace(endpoints)
        self._log("endpoints_changed", joined=joined, left=left)

    # ---- facts

    def advice(self, causes: Sequence[Cause]) -> str:
        """What to do about the samples that are missing for these causes."""
        return advice(causes, self._lanes.last_failures if self._lanes.down or not any(self.done.values()) else None)

    @property
    def n_cut(self) -> int:
        """Streams that broke off."""
        number, *_ = self._failed.get("cut", (0,))
        return number

    def progress(self) -> Progress:
        """The current state of the session."""
        now, arrivals, ending = self._clock(), self._arrivals, self.ending
        arrivals.count_arrived()
        flying = Counter([task.benchmark for task in self._flights])
        again = Counter([task.benchmark for task in self._scheduler.retrying])
        given_up = Counter([task.benchmark for task in self.causes.lost_tasks()])
        # Notes are copied, because another thread reads the value.
        return Progress(
            **{**msgspec.structs.asdict(self.tally), "notes": dict(self.tally.notes)},
            elapsed_s=now - arrivals.started,
            done=sum(self.done.values()),
            total=sum(self.total.values()),
            in_flight=len(self._flights),
            waiting=self._scheduler.n_waiting,
            given_up=given_up.total(),
            arrived=round(arrivals.tokens),
            tokens_per_s=arrivals.rate,
            tokens_per_s_now=arrivals.rate_now,
            benchmarks=tuple(
                BenchmarkProgress(
                    name=name,
                    done=self.done[name],
                    total=n_total,
                    in_flight=flying[name],
                    retrying=again[name],
                    given_up=given_up[name],
                )
                for name, n_total in self.total.items()
            ),
            endpoints=self._lanes.progress(),
            failed=tuple(
                FailureProgress(kind=kind, count=n, latest=message, ago_s=now - failed_at)
                for kind, (n, message, failed_at) in sorted(self._failed.items(), key=lambda item: -item[1][2])
            ),
            oldest=arrivals.oldest,
            eta=self._time_left(),
            concurrency=self._concurrency,
            stopping=not ending.may_send,
            why=ending.why,
            grace_s=None if ending.grace_ends is None or ending.may_send else max(0.0, ending.grace_ends - now),
            patience_s=self._lanes.patience_left,
            tool=self.tool_progress(),
        )

    def _time_left(self) -> float | None:
        """Seconds until the missing tokens have arrived at the current rate; None while too little is known."""
        scheduler, rate = self._scheduler, self._arrivals.rate_now
        if not rate or self.tally.finished < MIN_FINISHED:
            return None
        mean = scheduler.mean_length
        waiting = scheduler.tokens_left + len(scheduler.retrying) * mean if self.ending.may_send else 0.0
        return (waiting + self._arrivals.missing(mean)) / rate
