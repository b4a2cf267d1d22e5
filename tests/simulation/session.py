"""One session of a simulated run: the real dispatcher and network thread, on an event loop whose time jumps.

What is checked, at every step or at the session's end, each as one sentence in `Broken`:
- a request goes to an endpoint of the list, for a sample that is missing, not in flight, not given up, not stored;
- in flight ≤ concurrency;
- attempts at one sample ≤ their bound;
- each missing sample is in exactly one place: waiting, in flight, on the disk, or given up;
- an endpoint set aside is probed again, whoever waits has something to wait for, and nobody wakes late;
- the session ends; then the books agree with the disk, and who was given up was given up for what befell it;
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from selectors import SelectSelector
from typing import Any
from unittest.mock import patch

import msgspec

from harness.client.protocol import reply as protocol
from harness.client.protocol.failures import RequestFailed
from harness.core.errors import HarnessError
from harness.core.records import Sample, Timing, Usage
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.state import Flight, SessionPlan
from harness.generation.network import thread
from harness.generation.network.admission import Admission
from harness.generation.network.thread import Network
from harness.generation.run_progress import Account, Progress
from harness.runs.missing import Missing, Task
from harness.runs.record import RecordRefused
from tests.runs import recorded
from tests.simulation.rules import EPS, Broken, Rules, name
from tests.simulation.world import ENDPOINTS, MOODS, NATURES, ROUND_TRIP_S, Bill, End, Reply, Server, World

MOST_STEPS = 20_000
"""Looks of the network thread in one session; more is a session that does not end."""

MOST_SECONDS = 6 * 3600.0
"""Virtual seconds of one session."""

LONGEST_WAIT_S = 60.0
"""Seconds after which an endpoint set aside must have been probed, beyond what it asked for itself."""

LATE_S = 0.01
"""Seconds by which the session may wake late."""

LAST_WORDS = (
    "once the server responds",
    "once the server accepts requests",
    "perhaps with a longer timeout",
    "longer timeout, or",
    "every request fails",
    "command again to request them",
    "so a retry would fail too",
    "smaller `max_tokens`",
)
"""What the last line of a run may say."""

NEVER = float("inf")

POLL_S = 30.0
"""Seconds between two looks of the network thread; each costs as much as a request."""


class Over(SystemExit):
    """The process is killed, or a promise is broken: it ends the loop from wherever it is raised."""


class _Jump(SelectSelector):
    """Waits by moving the world's clock."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None
        # A sleeper wakes late.
        self._world.now += timeout and timeout + self._world.chance.choice((0.0, 0.0, 0.003))
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, world: World) -> None:
        super().__init__(_Jump(world))
        self._world = world

    def time(self) -> float:
        return self._world.now


class _Watched(Dispatcher):
    """The dispatcher, with a session that looks on."""

    session: Session

    def begin(self) -> Iterator[Flight]:
        for flight in super().begin():
            self.session.asked(flight)
            yield flight
        self.session.looked()

    def handle_end(self, flight: Flight, end: Any) -> None:
        if not self.session.killed:
            self.session.landed(flight, end, super().handle_end)


_TIMING = Timing(started=0.0, total=1.0)
_USAGES = [*(Usage(prompt_tokens=1, completion_tokens=n) for n in (5, 50, 500, 5000)), Usage(), Usage(prompt_tokens=1)]
"""What replies state: the prompt's tokens or not, and their own."""


class _Request(msgspec.Struct, eq=False):
    """A request in the simulated network, which ends after so many seconds.

    cancelled_at: the second at which it was cancelled.
    """

    flight: Flight
    server: Server
    seconds: float
    end: End
    cancelled_at: float | None = None


class Session:
    """One session: what the network thread, the user and the system do in virtual time."""

    def __init__(self, world: World, rows: list[Missing], *, faults: bool) -> None:
        chance = world.chance
        self.world = world
        self.quiet = not faults
        self.missing = {Task(r.benchmark, r.question_id, i) for r in rows for i in r.indices}
        self.flights: dict[Task, _Request] = {}
        self.events: list[tuple[float, Callable[[], None]]] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.n_looks, self.began = 0, world.now
        self.due = world.now
        """The network thread must look at the dispatcher by this second."""
        self.broken: Exception | None = None
        self.killed = self.doubled = self.gave_up = False
        self.logged: list[tuple[str, dict[str, Any]]] = []
        self.present = {e.base_url for e in world.settings.endpoints}
        self.quiet_since = dict.fromkeys(world.servers, world.now)
        self.idle_since: dict[str, float] = {}
        self.probe_check = world.now + LONGEST_WAIT_S
        self.befell: defaultdict[Task, set[str]] = defaultdict(set)
        self.attempts: dict[Task, int] = {}
        self.n_chances: dict[Task, int] = {}
        self.grace_ends: float | None = None
        self.stops = False
        """Somebody or something has ended the requests in flight."""
        done = {name: world.total[name] - n for name, n in world.of_each(self.missing).items()}
        settings = world.settings
        if self.quiet and (settings.budget_tokens or settings.budget_usd):
            settings = replace(settings, budget_tokens=None, budget_usd=None)
        self.concurrency = settings.concurrency
        self.dispatcher = _Watched(
            settings,
            SessionPlan(
                missing=rows,
                done=done,
                total=world.total,
                server_model=world.model,
                prompt_bytes={row[:2]: world.prompts[row[:2]][1] for row in rows},
            ),
            store=self._store,
            log=lambda event, **facts: self.logged.append((event, facts)),
            clock=lambda: world.now,
            jitter=world.jitter,
            account=world.account,
        )
        self.dispatcher.session = self
        self.ending = self.dispatcher.ending
        self.network = Network(
            self.dispatcher,
            sampler=self,  # type: ignore[arg-type]
            loop_factory=self.new_loop,
            admission=Admission(None, settings.endpoints, settings.endpoints, lambda *_, **__: None),
            clock=lambda: world.now,
        )
        self.rules = Rules(world, settings, self.missing, self.present, self.dispatcher)
        if faults:
            for _ in range(chance.choice((0, 0, 1, 2, 4))):
                self._later(chance.uniform(0.0, 60.0), self._command)
            if chance.random() < 0.3:
                self._later(chance.expovariate(1 / 20.0), self._kill)
        self._say(f"session: {len(self.missing)} missing, concurrency {self.concurrency}, {sorted(self.present)}")

    def play(self) -> None:
        world = self.world
        with patch.object(thread, "POLL_S", POLL_S):
            self.network._run()  # in this thread
        if self.broken is not None:
            raise self.broken
        error = self.ending.error
        if error is not None and not isinstance(error, (HarnessError, Over)):
            raise error
        if self.killed or self.ending.why or world.commands.random() < 0.5:
            world.bill, world.account = Bill(), Account()  # The next session is of another command.
        if not self.killed:
            self._ended()
        world.model = self.dispatcher.model_name.name
        for one in world.servers.values():
            one.working = 0

    def _watch(self, look: Callable[..., Any], *of: Any) -> Any:
        """Call `look`; what it raises ends the loop and the session."""
        try:
            return look(*of)
        except Exception as error:  # whatever it is, `play` raises it
            self.broken = self.broken or error
            raise Over from error

    # ---- the network: the sampler of the real thread

    def new_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the thread, on which everything is to happen that was planned before."""
        self.loop = _Loop(self.world)
        for seconds, happens in self.events:
            self._later(seconds, happens)
        return self.loop

    async def sample(self, flight: Flight) -> Any:
        """The request takes its time; how it ends is told by `handle_end`."""
        request = self.flights[flight.task]
        flight.cancel = partial(self._cancel, request, flight.cancel)
        try:
            await asyncio.sleep(request.seconds)
        except asyncio.CancelledError:
            if self.world.chance.random() >= 0.1:  # else its end had come in the same moment
                raise
        return request

    async def close(self) -> None:
        """As the thread closes its sampler."""

    def asked(self, flight: Flight) -> None:
        """Before the dispatcher's request is sent."""
        self._tell_log()
        self._watch(self._ask, flight)

    def landed(self, flight: Flight, end: Any, landed: Callable[..., None]) -> None:
        """When a request has ended; `handle_end` is the dispatcher's own. end: None if it was cancelled."""
        request = self.flights.pop(flight.task)
        self.due = min(self.due, self.world.now)
        self._free(request.server)
        self._watch(self._tell, flight.task, request, end is None, partial(landed, flight))
        self._tell_log()

    def _ask(self, asked: Flight) -> None:
        world, task, url = self.world, asked.task, asked.endpoint.base_url
        flights, disk = self.flights, world.disk
        self._say(f"ask {name(task)} of {url}, attempt {asked.attempt}")
        if task in flights:
            raise Broken("one request a sample", f"{name(task)} is asked twice at a time")
        if task not in self.missing or task in disk.stored:
            raise Broken("missing", f"{name(task)} is asked, and not missing")
        if url not in self.present:
            raise Broken("list of endpoints", f"{url} is asked, and has left")
        if self.ending.phase != "asking":
            raise Broken("ending", "a request goes out, and the session is ending")
        attempt = self.attempts[task] = self.attempts.get(task, 0) + 1
        if asked.attempt != attempt:
            raise Broken("attempts", f"attempt {asked.attempt} at {name(task)} is its {attempt}.")
        self.rules.asked(asked)
        one = world.servers[url]
        one.working += 1
        world.n_requests += 1
        seconds, end = MOODS[one.mood(world.now)](one, world.chance)
        if world.natures and isinstance(end, Reply) and (nature := world.natures.get(task[:2])) is not None:
            end = NATURES[nature]
            seconds = ROUND_TRIP_S if end.free else seconds
        flights[task] = _Request(asked, one, seconds, end)
        if len(flights) > self.concurrency:
            raise Broken("concurrency", f"{len(flights)} in flight at {self.concurrency}")

    def _tell(self, task: Task, flight: _Request, cancelled: bool, landed: Callable[[Any], None]) -> None:
        now, latest = self.world.now, self.grace_ends
        if flight.cancelled_at is not None and now > flight.cancelled_at + LATE_S:
            raise Broken("one end", f"{name(task)} ends {now - flight.cancelled_at:.3f} s after it was cancelled")
        if flight.cancelled_at is not None and not self.stops and (latest or NEVER) > flight.cancelled_at + EPS:
            raise Broken("grace", f"{name(task)} was cancelled, and might still have ended by itself")
        if latest is not None and now > latest + LATE_S and flight.cancelled_at is None:
            raise Broken("grace", f"{name(task)} is in flight {now - latest:.3f} s beyond it")
        if cancelled:
            self.rules.cancelled(task)
            landed(None)
            return
        end = flight.end
        self._say(f"end {name(task)}: {end!r}")
        if isinstance(end, Reply):
            self._answer(task, flight, end, landed)
        elif isinstance(end, RequestFailed):
            self.befell[task].add(end.kind)
            broken = end.status == 500 and self.rules.endpoints[flight.flight.endpoint.base_url].answered
            if end.kind in ("cut", "malformed") or broken:
                n = self.n_chances[task] = self.n_chances.get(task, 0) + 1
                if n > self.world.attempts:
                    raise Broken("attempts", f"{name(task)} failed {n} times, and was asked again")
            self.rules.failed(task, end)
            landed(end)
        else:
            self.befell[task].add("internal")
            self.rules.broke(task)
            landed(end if self.world.lengths.random() < 0.5 else None)  # None: nobody knows why it was cancelled

    def _answer(self, task: Task, flight: _Request, end: Reply, landed: Callable[[Any], None]) -> None:
        text = f"{self.world.n_requests}"
        finish, usage = "length" if end.truncated else "stop", self.world.chance.choice(_USAGES)
        prompt, _ = self.world.prompts[task[:2]]
        if usage.prompt_tokens is not None:
            usage = msgspec.structs.replace(usage, prompt_tokens=prompt)
        reply = protocol.Reply(
            text=text, reasoning=None, finish_reason=finish, usage=usage, timing=_TIMING, server_model=end.model
        )
        sample = recorded.sample(
            task.question_id,
            task.sample_index,
            text,
            benchmark=task.benchmark,
            finish_reason=finish,
            usage=usage,
            timing=_TIMING,
            endpoint=flight.server.endpoint.base_url,
            server_model=end.model,
        )
        landed((sample, reply))
        if self.doubled:
            raise Broken("stored once", f"{name(task)} is stored twice")
        length = self.world.lengths.randint(16, 5000) if usage.completion_tokens is None else 0
        self.rules.answered(task, sample, length)

    def _cancel(self, flight: _Request, cancel: Callable[[], object]) -> None:
        task = flight.flight.task
        self._say(f"cancel {name(task)}")
        if flight.cancelled_at is not None:
            self.broken = self.broken or Broken("one end", f"{name(task)} is cancelled twice")
        flight.cancelled_at = self.world.now
        cancel()

    def _free(self, one: Server) -> None:
        one.working -= 1
        self._heard_of(one.endpoint.base_url)

    def _heard_of(self, url: str) -> None:
        self.quiet_since[url] = self.world.now
        self.idle_since.pop(url, None)

    def _store(self, sample: Sample) -> None:
        task = Task(sample.benchmark, sample.question_id, sample.sample_index)
        self.doubled |= task in self.world.disk.stored
        try:
            self.world.disk.append(task, sample.server_model or "")
        except RecordRefused:
            self.befell[task].add("malformed")
            raise
        self._say(f"written {name(task)}")

    def _tell_log(self) -> None:
        for event, facts in self.logged:
            self._log(event, facts)
        self.logged.clear()

    def _log(self, event: str, facts: dict[str, Any]) -> None:
        self._say(f"log {event} {facts}")
        if event == "stopped":
            self.stops = True
            self.gave_up |= facts["reason"].startswith("no request has been answered")
            self.rules.stopped(facts["reason"])

    # ---- time

    def _later(self, seconds: float, happens: Callable[[], None]) -> None:
        if self.loop is None:
            self.events.append((seconds, happens))
        else:
            self.loop.call_later(seconds, self._happen, happens)

    def _happen(self, happens: Callable[[], None]) -> None:
        self._watch(happens)
        self.due = min(self.due, self.world.now)
        self.network._run_on_loop(lambda: None)

    def looked(self) -> None:
        """After the network thread has asked for requests to send."""
        self._tell_log()
        self._watch(self._look)

    def _look(self) -> None:
        world, chance, dispatcher = self.world, self.world.chance, self.dispatcher
        self.n_looks += 1
        if world.now > self.due + LATE_S:
            raise Broken("wake-up", f"the network thread looks {world.now - self.due:.3f} s too late")
        if self.n_looks > MOST_STEPS or world.now > self.began + MOST_SECONDS:
            raise Broken("end", f"the session does not end ({self.n_looks} looks, {world.now - self.began:.0f} s)")
        if dispatcher.ended:
            return
        self.due = world.now + dispatcher.pause()
        if self.due == NEVER and not self.flights:
            raise Broken("wake-up", "nothing is under way, and nothing is waited for")
        if chance.random() < 0.02:
            self._check_places(dispatcher.progress())
            eta = dispatcher.progress().eta
            if eta is not None and not 0 <= eta < NEVER:
                raise Broken("outlook", f"{eta} is no time")
        if self.ending.phase == "asking":
            self.rules.waits()
        if world.now > self.probe_check:
            self._check_probes(world.now)

    def _kill(self) -> None:
        self._say("killed")
        self.killed = True
        raise Over

    # ---- the user

    def _command(self) -> None:
        chance, dispatcher = self.world.chance, self.dispatcher
        verb = chance.choice(("reload", "reload", "drain", "stop"))
        self._say(f"command {verb}")
        if not dispatcher.ending.may_send and verb not in ("drain", "stop"):
            return
        match verb:
            case "reload":
                endpoints = chance.sample(ENDPOINTS, chance.randint(1, len(ENDPOINTS)))
                joined = {e.base_url for e in endpoints} - self.present
                self.present = {e.base_url for e in endpoints}
                for url in joined:
                    self._heard_of(url)
                self._say(f"endpoints {sorted(self.present)}")
                dispatcher.replace_endpoints(endpoints)
                self.rules.endpoints_are({e.base_url for e in endpoints})
            case "drain":
                self.grace_ends = self.world.now + 5.0
                self.network.drain(5.0, "drained")
            case "stop":
                self.stops = True
                self.network.stop("stopped")

    # ---- checks

    def _check_places(self, facts: Progress) -> None:
        """Each sample is in one place, and the books of the endpoints agree with what is in flight."""
        if facts.in_flight != len(self.flights) or sum(e.in_flight for e in facts.endpoints) != len(self.flights):
            by_endpoint = [e.in_flight for e in facts.endpoints]
            raise Broken(
                "places", f"{len(self.flights)} in flight; the books say {facts.in_flight}, by endpoint {by_endpoint}"
            )
        flying = len(self.flights)
        known = facts.done + facts.given_up + facts.waiting + flying
        if self.dispatcher.ending.phase != "stopping" and known != facts.total:
            raise Broken(
                "places",
                f"{known} of {facts.total} samples are accounted for: {facts.done} stored, "
                f"{facts.given_up} given up, {facts.waiting} waiting, {flying} in flight",
            )

    def _check_probes(self, until: float) -> None:
        """Nobody who is set aside is forgotten while there is work for him: looked at where it has been quiet long."""
        self.probe_check = until + LONGEST_WAIT_S
        facts: Progress | None = None
        for url in self.present:
            longest = LONGEST_WAIT_S + 1.1 * (self.world.servers[url].retry_after or 0.0) + 1.0
            if until - self.quiet_since[url] <= longest:
                continue
            facts = facts or self.dispatcher.progress()
            (lane,) = (e for e in facts.endpoints if e.base_url == url and e.state != "left")
            room = len(self.flights) < self.concurrency
            free = room and not lane.in_flight and self.dispatcher.ending.may_send
            if not free or lane.state == "open" or not self.rules.work_for(url):
                self.quiet_since[url] = until
                self.idle_since.pop(url, None)
            elif until - self.idle_since.setdefault(url, self.world.now) > longest:
                raise Broken("probes", f"{url} is {lane.state}, there is work, and it is not asked for {longest:.0f} s")

    def _ended(self) -> None:
        dispatcher, world = self.dispatcher, self.world
        why = dispatcher.ending.why
        self._say(f"ended: {why or 'of itself'}; given up: {len(dispatcher.causes.lost_tasks())}")
        if self.flights:
            raise Broken("end", f"the session ended with {len(self.flights)} in flight")
        facts = dispatcher.progress()
        self._check_places(facts)
        self.rules.ended()
        given_up = dispatcher.causes.lost_tasks()
        for task, kind in given_up.items():
            kinds = self.befell[task]
            if why_not := self.rules.careful.may_give_up(task, kind):
                raise Broken("given up", f"{name(task)} was given up as {kind}: {why_not}")
            question = world.natures.get(task[:2])
            if kind not in kinds and not (kind == "too_long" and question == "too long"):
                raise Broken("causes", f"{name(task)} was given up as {kind}, and what befell it is {sorted(kinds)}")
        stored = world.of_each(world.disk.stored)
        if dispatcher.done != stored and dispatcher.ending.error is None:
            raise Broken("places", f"the books say that {dispatcher.done} are stored, the disk holds {stored}")
        forgotten = [t for t in self.missing if t not in world.disk.stored and t not in given_up]
        if forgotten and not why:
            raise Broken("causes", f"{name(forgotten[0])} is neither stored nor among the causes, and nothing says why")
        n_missing = facts.total - facts.done
        causes = dispatcher.causes.listed(n_missing, why)
        if sum(cause.count for cause in causes) != n_missing:
            raise Broken("causes", f"{n_missing} are missing, the causes are {causes}")
        endpoints = [*self.rules.endpoints.values()]
        downs: set[Sequence[RequestFailed | None] | None] = {*product(*(each.last for each in endpoints))}
        if world.disk.stored and not self.gave_up:
            downs = {None, *downs} if all(each.in_row for each in endpoints) else {None}
        kinds = {cause.kind for cause in causes}
        last = dispatcher.advice(causes)
        right = [self.rules.careful.last_words(kinds, down) for down in downs]
        if dispatcher.ending.error is None and {words for words in LAST_WORDS if words in last} not in right:
            raise Broken("last line", f"it says {last!r} and should say one of {right}")

    def _say(self, what: str) -> None:
        if self.world.trace is not None:
            self.world.trace.append(f"{self.world.now:10.3f}  {what}")


def play(seed: int, trace: list[str] | None = None) -> None:
    """Sessions with everything that can go wrong, then a quiet one. Raises `Broken`; trace: takes what happens."""
    world = World(seed, trace)
    for _ in range(world.chance.randint(1, 2)):
        _session(world, faults=True)
    for one in world.servers.values():
        one.calm(world.model or one.model)
    _session(world, faults=False)
    missing = {row[:2] for row in world.missing()}
    if not missing <= world.natures.keys():
        raise Broken(
            "all answered", f"{sorted(missing - world.natures.keys())} missing after a session in which nothing failed"
        )
    if len(set(world.disk.stored.values())) > 1:
        raise Broken("one model", "samples of two models are on one disk")


def _session(world: World, *, faults: bool) -> str:
    """Why the session ended early; empty if it did not."""
    if rows := world.missing():
        world.disk.open(faults=faults)
        session = Session(world, rows, faults=faults)
        session.play()
        return session.ending.why
    return ""


def broken(seed: int, trace: list[str] | None = None) -> str:
    """The promise that the run of this seed breaks; empty if it keeps them all. A crash is a broken promise, too."""
    try:
        play(seed, trace)
    except Broken as error:
        return str(error)
    except Exception as error:  # noqa: BLE001
        return f"crash: {type(error).__name__}: {error}"
    return ""


def told(seed: int) -> str:
    """Everything that happens in the run of this seed, a line each."""
    trace: list[str] = []
    broken_rule = broken(seed, trace)
    return "\n".join([*trace, broken_rule or "every promise was kept"])
