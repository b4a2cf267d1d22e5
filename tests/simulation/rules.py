"""Rules of a session, each watched from outside: from what is asked, what the servers do, and what the clock says.

A rule works the promise out anew and reads no state of the dispatcher, so a fault in its books cannot hide from it.
Where the promise leaves room (a random pause, an endpoint of which nobody outside knows whether it is open), a rule
speaks only where every permitted behavior is broken.

| rule | promise |
| --- | --- |
| retry-after | an endpoint that asked for seconds gets no request before they are over |
| backoff | a sample that failed by chance waits; in seeds whose jitter is always the longest, for all of its backoff |
| probes | an endpoint that failed often gets one request at a time, after pauses that grow |
| requests a minute | no window holds more than the limit |
| elsewhere | an open endpoint gets a sample before the one that just failed it; none, once its attempts are used up |
| turns | no sample that is ready waits while another is asked `MAX_TURNS` times |
| order | rounds in their order; one sample of each question first |
| idle | no slot stays free beside a sample that is ready and an endpoint that is surely open |
| budget | with max_tokens, no request is sent if the first round at its reserve exceeds the budget |
| budget | used + reserve × requests in flight ≤ budget, with every request; the end names what was used |
| budget | the end comes only if the next sample, or the next round as a whole, may exceed the budget |
| budget | with max_tokens the true bill never exceeds the budget, also of replies without usage or that break off |
| answered | an endpoint that answered is not set aside |
| patience | a session gives up after its patience, not before |
| accounts | tokens, money, failures and truncated replies add up to what the servers said |
"""

from __future__ import annotations

from collections import Counter

import msgspec

from harness.client.protocol.failures import RequestFailed
from harness.client.request_fields import TEMPLATE_TOKENS
from harness.core.records import Sample
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.retry import longest_backoff
from harness.generation.dispatch.state import Flight
from harness.generation.settings import RunSettings
from harness.runs.missing import Task, n_planned
from tests.simulation.careful import Careful, Verdict
from tests.simulation.world import PRICES, World

MAX_TURNS = 9
"""Times that a sample is asked while another one, ready, waits. The most in 100,000 seeds was below this."""

LONGEST_HOPE_S = 4000.0
"""Seconds: five refusals with the longest Retry-After, and then the patience, take less."""

LONGEST_PAUSE_S = 61.0
"""Seconds: no pause that the endpoint did not ask for is longer."""

KNOWN = 20
"""As in the budget's promise: the mean cost is known once the first 20 samples begun have ended."""

UNKNOWN_TOKENS = 4096.0
"""What a request is expected to take before the first has finished."""

NEVER = float("-inf")
"""A second before all others."""

FAULTS = ("connect", "timeout", "cut", "malformed", "server", "rate_limited")
"""Failures that do not lie with the request itself."""

EPS = 1e-6


class Broken(AssertionError):
    """A promise was not kept: `rule` says which one, the message how."""

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(f"{rule}: {sentence}")
        self.rule = rule


class Endpoint(msgspec.Struct, eq=False):
    """What an onlooker knows of an endpoint since it joined.

    in_row: failures since the last answer; n_faults: those that surely count against it. murky: since that answer there
    were failures (429) of which an onlooker cannot say how they count. unread: it never answered, and a reply could not
    be read, so that one failure sets it aside. last: failures of which one explains it best.
    down: it is surely set aside; down_at: as of the last failure that counted. retry_after_ends: nothing may be sent
    before, as the endpoint asked. probe_at: nothing may be sent before, if it is down.
    """

    in_flight: int = 0
    n_failed: int = 0
    n_refused: int = 0
    in_row: int = 0
    n_faults: int = 0
    n_holds: int = 0
    failed_at: float = float("-inf")
    murky: bool = False
    answered: bool = False
    unread: bool = False
    last: tuple[RequestFailed | None, ...] = (None,)
    down: bool = False
    down_at: float = float("-inf")
    retry_after_ends: float = float("-inf")
    probe_at: float = float("-inf")

    @property
    def may_be_down(self) -> bool:
        """Enough has failed in a row, if all of it counts."""
        return self.in_row >= (1 if self.unread else 5)

    def surely_open(self, now: float) -> bool:
        """Not set aside, and in no pause."""
        if now < self.retry_after_ends + 1.0:
            return False
        return not self.n_failed or (not self.in_row and now > self.failed_at + LONGEST_PAUSE_S)


class Request(msgspec.Struct, eq=False):
    """One in flight."""

    url: str
    endpoint: Endpoint
    sent_at: float


class Asked(msgspec.Struct, eq=False):
    """What an onlooker knows of one sample in this session.

    n_chances: failures by chance. murky: of one nobody outside
    knows whether it was by chance. ready_at: from then on it is surely ready to be asked. not_before: it surely is not
    before. turns: when it was asked, the last `MAX_TURNS` + 1 times.
    """

    n_chances: int = 0
    ready_at: float = float("-inf")
    not_before: float = float("-inf")
    murky: bool = False
    failed_by: frozenset[str] = frozenset()
    turns: tuple[float, ...] = ()

    def used_up(self, attempts: int) -> bool:
        """Its attempts are."""
        return self.n_chances >= attempts


class Level(msgspec.Struct, eq=False):
    """A store that fills evenly: what a limit per minute allows. `take` may leave it below 0."""

    capacity: float
    per_second: float
    level: float
    at: float

    @classmethod
    def of(cls, per_minute: float, now: float) -> Level:
        capacity = max(1.0, per_minute / 60.0)
        return cls(capacity, (per_minute - capacity if capacity > 1 else per_minute) / 60.0, capacity, now)

    def look(self, now: float) -> float:
        if now > self.at:
            self.level = min(self.capacity, self.level + (now - self.at) * self.per_second)
            self.at = now
        return self.level

    def take(self, amount: float) -> None:
        self.level = min(self.capacity, self.level - amount)


class Sums(msgspec.Struct):
    """What the replies of a session add up to. prompt, completion: as billed, else the most that they can be.

    beside: requests that ended without a sample and are billed; prompt_beside, completion_beside: the most for them.
    """

    finished: int = 0
    truncated: int = 0
    tokens: int = 0
    prompt: int = 0
    completion: int = 0
    unstated: int = 0
    beside: int = 0
    prompt_beside: int = 0
    completion_beside: int = 0
    failures: int = 0


class Rules:
    """See the module. Every method is told what has just happened, before or after the dispatcher is, as it says."""

    # CPython shares the keys of instances up to 30 attributes; beyond that, each has a large dict of its own.
    __slots__ = (
        "any_probe", "anybody_answered", "bill", "careful", "concurrency", "dispatcher",
        "endpoints", "ever_one", "first", "hope_at", "in_flight", "in_rounds", "limited",
        "longest_stated", "max_tokens", "model", "n_done", "questions",
        "requests", "reshared", "round", "samples", "settings", "sign_at",
        "sums", "touched", "unasked", "waiting", "world",
    )  # fmt: skip

    def __init__(
        self, world: World, settings: RunSettings, missing: set[Task], present: set[str], dispatcher: Dispatcher
    ):
        now = world.now
        self.world, self.settings, self.dispatcher = world, settings, dispatcher
        self.concurrency = settings.concurrency
        self.samples = {task: Asked() for task in missing}
        self.waiting = dict(self.samples)
        self.unasked = set(missing)
        self.touched: set[tuple[str, str]] = set()
        self.in_flight: dict[Task, Request] = {}
        self.endpoints = {e.base_url: Endpoint() for e in settings.endpoints}
        assert self.endpoints.keys() == present
        self.ever_one = len(present) == 1
        self.reshared = False
        self.sums = Sums()
        self.hope_at = self.sign_at = now
        self.anybody_answered = False
        samples = {name: benchmark.samples for name, benchmark in world.settings.benchmarks.items()}
        planned = {task[:2]: n_planned(task.question_id, samples[task.benchmark]) for task in missing}
        n_missing = Counter(task[:2] for task in missing)
        self.careful = Careful(world.attempts, {question for question, n in planned.items() if n_missing[question] < n})
        self.model = world.model
        self.requests = settings.requests_per_minute and Level.of(settings.requests_per_minute, now)
        self.bill = world.bill
        self.n_done = 0
        self.longest_stated = 0
        self.questions = {task[:2] for task in missing}
        self.round = -1
        self.any_probe = False
        self.first: set[Task] = set()
        bounds = [b.sampling.max_tokens for b in settings.benchmarks.values()]
        self.max_tokens = None if None in bounds else max(b for b in bounds if b)
        self.limited = settings.budget_tokens is not None or settings.budget_usd is not None
        self.in_rounds = self.limited or settings.order == "rounds"

    # ---- what happens

    def asked(self, flight: Flight) -> None:
        """Before the request is in flight."""
        task, url, now = flight.task, flight.endpoint.base_url, self.world.now
        sample, endpoint, in_flight = self.samples[task], self.endpoints[url], self.in_flight
        self._look_at_endpoint(url, endpoint, now)
        if sample.failed_by or now < sample.not_before:
            self._look_at_sample(task, sample, url, endpoint, now)
        sample.turns = (*sample.turns[-MAX_TURNS:], now)
        if len(sample.turns) > MAX_TURNS and not endpoint.may_be_down and not self.limited:
            self._look_at_turns(task, sample.turns[0])
        if task in self.unasked:
            self._look_at_order(task, endpoint)
            self.unasked.discard(task)
        if self.limited:
            self._look_at_budget(task, flight.attempt)
        self._charge(now)
        self.waiting.pop(task, None)
        endpoint.in_flight += 1
        in_flight[task] = Request(url, endpoint, now)

    def answered(self, task: Task, sample: Sample, length: int) -> None:
        """After the dispatcher was told. length: the reply's true tokens if the server states none."""
        request = self._over(task)
        self.careful.answered(request.url, task, request.sent_at, self.world.now)
        self.hope_at = self.sign_at = self.world.now
        self.anybody_answered = True
        prompt, stated = sample.usage.prompt_tokens, sample.usage.completion_tokens
        tokens = stated or len(sample.text or "") // 4 + 1
        self.n_done += 1
        self.bill.n_done += 1
        self.first.discard(task)
        billed, new = self._most_prompt(task[:2]) if prompt is None else prompt, tokens
        if prompt is not None:
            self.longest_stated = max(self.longest_stated, prompt)
        if not stated and self.max_tokens is not None:
            new = self.max_tokens
        self.bill.longest = max(self.bill.longest, new)
        self.bill.used_tokens += new
        self.bill.used_usd += PRICES.usd(billed, new)
        self.bill.sure = self.bill.sure and prompt is not None and bool(stated)
        true = stated or length
        self.bill.true_tokens += true
        self.bill.true_usd += PRICES.usd(self.world.prompts[task[:2]][0], true)
        self._look_at_budget_is_kept()
        self.model = self.model or sample.server_model
        if sample.server_model == self.model:
            sums = self.sums
            sums.finished += 1
            sums.truncated += sample.truncated
            sums.tokens += tokens
            sums.unstated += prompt is None or stated is None
            sums.prompt += billed
            sums.completion += new
        if self.endpoints.get(request.url) is request.endpoint:
            self._answers(request.url, request.endpoint)

    def failed(self, task: Task, failure: RequestFailed) -> None:
        """Before the dispatcher is told."""
        request, now = self._over(task), self.world.now
        self.sums.failures += 1
        # A server bills whatever it has generated; it has generated nothing where nobody reached it, and where it
        # refused with its first word.
        if failure.kind != "connect" and (failure.n_events or not self._is_refusal(failure)):
            self._unstated(task, failure.n_events)
        if failure.kind not in FAULTS or now - request.sent_at > 60:
            self.sign_at = now
        elif now - self.sign_at > LONGEST_HOPE_S and all(now - one.sent_at < 60 for one in self.in_flight.values()):
            raise Broken("patience", f"nothing was answered for {now - self.sign_at:.0f} s, and the session goes on")
        endpoint = self.endpoints.get(request.url)
        if endpoint is request.endpoint and failure.retry_after is not None:
            endpoint.retry_after_ends = max(endpoint.retry_after_ends, now + failure.retry_after)
        verdict = self.careful.failed(request.url, task, request.sent_at, now, failure)
        if endpoint is request.endpoint:
            self._endpoint_failed(endpoint, request, failure, verdict)
        self.waiting[task] = self.samples[task]
        self._sample_failed(self.samples[task], request, failure, verdict)

    @staticmethod
    def _is_refusal(failure: RequestFailed) -> bool:
        return failure.status is not None or failure.kind in ("too_long", "rejected", "refused", "rate_limited")

    def _unstated(self, task: Task, n_events: int) -> None:
        """A request that the server has begun ended without a sample: it is billed, and states nothing."""
        prompt, new = self._most_prompt(task[:2]), self.max_tokens if self.max_tokens is not None else n_events
        self.bill.used_tokens += new
        self.bill.used_usd += PRICES.usd(prompt, new)
        self.bill.sure = False
        true = self.world.lengths.randint(0, 5000)
        self.bill.true_tokens += true
        self.bill.true_usd += PRICES.usd(self.world.prompts[task[:2]][0], true)
        self._look_at_budget_is_kept()
        self.sums.beside += 1
        self.sums.prompt_beside += prompt
        self.sums.completion_beside += new

    def broke(self, task: Task) -> None:
        """A request met a mistake of ours: its sample is given up."""
        self._over(task)
        self._unstated(task, 0)

    def cancelled(self, task: Task) -> None:
        """A request was ended by us: its tokens stay charged."""
        self._over(task)
        self._unstated(task, 0)

    def endpoints_are(self, urls: set[str]) -> None:
        """The list of endpoints was changed."""
        self.ever_one = False
        self.reshared = True
        for url in self.endpoints.keys() - urls:
            self.left(url)
        for url in urls - self.endpoints.keys():
            self.endpoints[url] = Endpoint()
            self.hope_at = self.sign_at = self.world.now

    def left(self, url: str) -> None:
        """Nothing more may be sent there."""
        self.reshared = True
        self.endpoints.pop(url, None)
        for sample in self.samples.values():
            sample.failed_by -= {url}

    def _over(self, task: Task) -> Request:
        request = self.in_flight.pop(task)
        if (endpoint := self.endpoints.get(request.url)) is not None:
            endpoint.in_flight -= request.endpoint is endpoint  # not of one that left and came back
        return request

    def _answers(self, url: str, endpoint: Endpoint) -> None:
        """An endpoint is up, then."""
        was_down = endpoint.may_be_down
        endpoint.in_row = endpoint.n_faults = endpoint.n_holds = 0
        endpoint.murky = endpoint.down = endpoint.unread = False
        endpoint.answered = True
        if was_down and self.dispatcher.ending.may_send:
            states = {e.base_url: e.state for e in self.dispatcher.progress().endpoints if e.state != "left"}
            if states.get(url) == "set aside":
                raise Broken("answered", f"{url} answered, and is set aside")

    def _endpoint_failed(self, endpoint: Endpoint, request: Request, failure: RequestFailed, verdict: Verdict) -> None:
        now = self.world.now
        endpoint.n_failed += 1
        endpoint.in_row += 1
        endpoint.failed_at = now
        endpoint.unread |= failure.kind in ("malformed", "cut") and not endpoint.answered
        if now >= endpoint.retry_after_ends or failure.retry_after is not None:
            is_own = failure.kind not in FAULTS  # perhaps of the request alone
            endpoint.last = (*endpoint.last, failure) if is_own else (failure,)
        if failure.kind == "rate_limited":
            endpoint.n_refused += 1
        if failure.kind == "rate_limited" or verdict != "endpoint":
            endpoint.murky = True
        if failure.kind in ("rejected", "refused") and verdict != "question":
            endpoint.murky = True
        elif failure.kind not in FAULTS:
            if failure.kind == "too_long":  # an answer, or the failure of one that never answered
                endpoint.murky = True
            elif failure.kind == "runaway":  # it answered
                endpoint.in_row = endpoint.n_faults = endpoint.n_holds = 0
                endpoint.murky = endpoint.down = False
            return
        if endpoint.murky:
            return
        endpoint.n_faults += 1
        enough = 1 if failure.kind in ("malformed", "cut") and not endpoint.answered else max(5, self._share() // 4)
        if endpoint.n_faults >= enough and request.sent_at >= endpoint.down_at:
            pause = min(60.0, 2.0**endpoint.n_holds)
            endpoint.n_holds += 1
            endpoint.down, endpoint.down_at = True, now
            endpoint.probe_at = now + (pause if self.world.longest_jitter else pause / 2)

    def _sample_failed(self, sample: Asked, request: Request, failure: RequestFailed, verdict: Verdict) -> None:
        now, attempts = self.world.now, self.world.attempts
        sample.ready_at = now + 0.01
        sample.not_before = float("-inf")
        if failure.kind in ("rejected", "refused") or failure.status == 500 or verdict != "endpoint":
            # It may wait for a moment, or for a backoff, since it may count as the question's own failure.
            sample.murky = True
            sample.ready_at = now + longest_backoff(self.world.settings.patience, self.world.attempts) + 0.01
        if failure.kind == "rate_limited" and verdict != "endpoint":
            sample.failed_by = frozenset()
        if failure.kind in {*FAULTS, "rejected", "refused", "too_long"} - {"rate_limited"}:
            has_left = self.endpoints.get(request.url) is not request.endpoint
            sample.failed_by = frozenset() if has_left else frozenset({request.url})
            if failure.kind == "timeout":
                sample.murky = True  # by chance or, of a probe, the endpoint's fault
            # Before its first answer, an endpoint that reports an error may still be starting.
            broken = failure.status == 500 and request.endpoint.answered
            chance = failure.kind in ("cut", "malformed", "timeout") or broken
            if not chance:
                return
            sample.n_chances += 1
            backoff = longest_backoff(self.world.settings.patience, sample.n_chances)
            sample.ready_at = max(sample.ready_at, now + backoff + 0.01)
            if not sample.murky and not sample.used_up(attempts):
                sample.not_before = now + (backoff - EPS if self.world.longest_jitter else 1e-9)

    # ---- the rules at a request

    def _look_at_endpoint(self, url: str, endpoint: Endpoint, now: float) -> None:
        if now < endpoint.retry_after_ends - EPS:
            raise Broken(
                "retry-after", f"{url} is asked {endpoint.retry_after_ends - now:.3f} s before the time it named"
            )
        self.any_probe |= endpoint.may_be_down
        if endpoint.down and not endpoint.murky:
            if endpoint.in_flight:
                raise Broken("probes", f"{url} is down, and gets a second request at a time")
            if now < endpoint.probe_at - EPS:
                raise Broken("probes", f"{url} is down, and is asked {endpoint.probe_at - now:.3f} s too soon")

    def _look_at_sample(self, task: Task, sample: Asked, url: str, endpoint: Endpoint, now: float) -> None:
        if now < sample.not_before:
            raise Broken("backoff", f"{name(task)} is asked {sample.not_before - now:.3f} s before its backoff is over")
        if not sample.murky and sample.used_up(self.world.attempts):
            raise Broken("elsewhere", f"{name(task)} has used up its attempts, and {url} gets it")
        open_ones = (other for other, one in self.endpoints.items() if one.surely_open(now))
        if (
            url in sample.failed_by
            and not endpoint.may_be_down
            and any(other not in sample.failed_by for other in open_ones)
        ):
            raise Broken("elsewhere", f"{name(task)} goes to {url}, which failed it, and another is open")

    def _look_at_turns(self, task: Task, since: float) -> None:
        """Of a sample that has been asked often since then."""
        late = [t for t, s in self.waiting.items() if s.ready_at < since and (self.ever_one or not s.failed_by)]
        late = [t for t in late if t != task]
        if late and (late := self._not_given_up(late)):
            raise Broken("turns", f"{name(task)} is asked {MAX_TURNS} times while {name(late[0])} waits")

    def _look_at_order(self, task: Task, endpoint: Endpoint) -> None:
        """Of a sample that is asked for the first time."""
        question = task[:2]
        is_touched = question in self.touched
        self.touched.add(question)
        if endpoint.may_be_down:  # a probe takes what has failed least, of any round
            return
        if self.in_rounds:
            earlier = [t for t in self.unasked if t.sample_index < task.sample_index]
            if earlier and (earlier := self._not_given_up(earlier)):
                raise Broken("order", f"{name(task)} is asked, and {name(min(earlier))} of an earlier round was not")
            if task.sample_index > self.round:
                is_first = self.round < 0
                is_judged = self.max_tokens is not None if is_first else self.ever_one and not self.any_probe
                if self.limited and is_judged:
                    self._look_at_round(task.sample_index)
                self.round = task.sample_index
            return
        if not is_touched:
            return
        untouched = {t[:2] for t in self.unasked} - self.touched
        unknown = [t for t in self.unasked if t[:2] in untouched]
        if unknown and (unknown := self._not_given_up(unknown)):
            raise Broken("order", f"{name(task)} is asked, and of {unknown[0].question_id} nothing is known yet")

    def _look_at_budget(self, task: Task, attempt: int) -> None:
        n = len(self.in_flight) + 1
        for total, unit, used, each in self._budgets():
            if used + n * each > total * (1 + 1e-6):
                may_take = f"{n} requests may take {each:.6g} each"
                raise Broken("budget", f"{used:.6g} of {total:g} {unit} are used, and {may_take}")
        if attempt == 1 and self.bill.n_first < KNOWN:
            self.bill.n_first += 1
            self.first.add(task)

    def _look_at_budget_is_kept(self) -> None:
        """After a reply: with max_tokens, the true bill never exceeds the budget, whether it is stated or not."""
        true = {"tokens": float(self.bill.true_tokens), "USD": self.bill.true_usd}
        for total, unit, _, _ in self._budgets():
            if self.max_tokens is not None and true[unit] > total * (1 + EPS):
                raise Broken("budget", f"{true[unit]:.6g} of {total:g} {unit} are billed")

    def _look_at_round(self, number: int) -> None:
        """A round begins."""
        n = len(self.in_flight) + sum(task.sample_index == number for task in self.samples)
        known = self._is_known()
        for total, unit, used, each in self._budgets():
            mean = used / self.bill.n_done if known else each
            if used + (n - 1) * mean + each > total * (1 + 1e-6):
                cost = f"{n - 1} × {mean:.6g} and {each:.6g}"
                raise Broken("budget", f"{used:.6g} of {total:g} {unit} are used, and a round of {cost} begins")

    def _is_known(self) -> bool:
        return self.bill.n_done >= KNOWN and not (self.first - self.dispatcher.causes.lost_tasks().keys())

    def _budgets(self) -> list[tuple[float, str, float, float]]:
        """(budget, unit, used, most that one more request may take) of each."""
        settings = self.settings
        longest = self.bill.longest if self.bill.n_done else UNKNOWN_TOKENS
        most = longest if self.max_tokens is None else self.max_tokens
        found = []
        if settings.budget_tokens is not None:
            found.append((float(settings.budget_tokens), "tokens", float(self.bill.used_tokens), most))
        if settings.budget_usd is not None and settings.prices is not None:
            prompt = max(self.longest_stated, *(self._most_prompt(question) for question in self.questions))
            each = max(PRICES.usd(prompt, most), PRICES.usd(prompt + most, 0))
            found.append((settings.budget_usd, "USD", self.bill.used_usd, each))
        if self.max_tokens is None and not self.bill.n_done:
            return [(total, unit, used, min(total, each)) for total, unit, used, each in found]
        return found

    def _most_prompt(self, question: tuple[str, str]) -> int:
        """As in the budget's promise: the bytes and a template's share."""
        return self.world.prompts[question][1] + TEMPLATE_TOKENS

    def _charge(self, now: float) -> None:
        """Count one more request at the limit per minute."""
        if self.requests:
            if self.requests.look(now) < 1.0 - EPS:
                raise Broken("requests a minute", f"a request goes out {1 - self.requests.level:.3f} of one too early")
            self.requests.take(1.0)

    # ---- the rules at a wait and at the end

    def waits(self) -> None:
        """The session has nothing to do now, and is not ending."""
        now = self.world.now
        if len(self.in_flight) >= self.concurrency or self.limited:
            return
        if self.requests and self.requests.look(now) < 1.0 + EPS:
            return
        if self.reshared:
            return  # a share that has grown is taken up step by step
        ready = [task for task, sample in self.waiting.items() if sample.ready_at < now]
        if not ready:
            return
        for url, endpoint in self.endpoints.items():
            if endpoint.n_refused or not endpoint.surely_open(now) or endpoint.in_flight >= self._share():
                continue
            if self.n_done and any(one.in_flight for other, one in self.endpoints.items() if other != url):
                continue  # a slow endpoint may leave the last samples to a faster one
            mine = [task for task in ready if url not in self.samples[task].failed_by]
            if mine and (mine := self._not_given_up(mine)):
                raise Broken("idle", f"{name(mine[0])} is ready, {url} is open, and a slot is free")

    def stopped(self, reason: str) -> None:
        """The session ends before its time."""
        waited = self.world.now - self.hope_at
        is_there = self.anybody_answered or any(
            each.last[-1] and each.last[-1].hope == "starting" for each in self.endpoints.values()
        )
        patience = self.settings.patience.outage if is_there else self.settings.patience.start_up
        if not reason.startswith("no request has been answered"):
            return
        if waited < patience - EPS:
            raise Broken("patience", f"given up {waited:.1f} s after the last hope, of {patience:.0f}")
        if any(self.endpoints.get(request.url) is request.endpoint for request in self.in_flight.values()):
            raise Broken("patience", "given up, and a request is under way that may be answered")

    def ended(self) -> None:
        """The session has ended by itself."""
        ending, counts, sums = self.dispatcher.ending, self.dispatcher.tally, self.sums
        if ending.rule:
            self._look_at_end_by_budget(ending.rule)
        spent, beside = counts.spent, counts.overhead
        theirs = Sums(
            counts.finished,
            counts.truncated,
            counts.tokens,
            spent.prompt_tokens,
            spent.completion_tokens,
            spent.n_unstated,
            beside.n_unstated,
            beside.prompt_tokens,
            beside.completion_tokens,
            counts.failures,
        )
        if theirs != sums:
            raise Broken("accounts", f"the servers said {sums}, the books say {theirs}")

    def _look_at_end_by_budget(self, rule: str) -> None:
        hedge = "" if self.bill.sure else "at most "
        reasons = [
            f"{hedge}{used:.4g} of {total:.4g} USD used"
            if unit == "USD"
            else f"{hedge}{used:.0f} of {total:.0f} tokens used"
            for total, unit, used, _ in self._budgets()
        ]
        if not any(f"stopped by the budget: {one}" in rule for one in reasons):
            raise Broken("budget", f"the end says {rule!r}, and {' and '.join(reasons)}")
        # A budget that still allows the next sample, and the next round as a whole, ends nothing.
        missing = self._not_given_up(list(self.waiting))
        if missing and not self._exceeds(1, known=False):
            number = min(task.sample_index for task in missing)
            if not self._exceeds(sum(task.sample_index == number for task in self.samples), known=self._is_known()):
                raise Broken("budget", f"the end says {rule!r}, and round {number} fits")

    def _exceeds(self, n: int, *, known: bool) -> bool:
        """Whether so many more requests may exceed a budget. known: all but one cost the mean, else the most."""
        return any(
            used + (n - 1) * (used / self.bill.n_done if known else each) + each > total * (1 - 1e-6)
            for total, _, used, each in self._budgets()
        )

    # ---- facts

    def work_for(self, url: str) -> bool:
        """Whether a sample waits that this endpoint may be asked for, and nothing else holds it back."""
        attempts = self.world.attempts
        mine = [t for t, s in self.waiting.items() if not (s.failed_by and (s.murky or s.used_up(attempts)))]
        return not self.limited and not self.requests and bool(mine and self._not_given_up(mine))

    def _share(self) -> int:
        """Requests in flight that are an endpoint's when all are well."""
        return max(1, round(self.concurrency / len(self.endpoints)))

    def _not_given_up(self, tasks: list[Task]) -> list[Task]:
        """Those that may still be asked: the causes are what the user reads in the end."""
        gone = self.dispatcher.causes.lost_tasks()
        return [task for task in tasks if task not in gone]


def name(task: Task) -> str:
    """A sample, for people."""
    return f"{task.question_id}:{task.sample_index}"
