"""The world of a simulated run: servers with moods, questions with natures, a disk that may fail. All from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.failures import RequestFailed
from harness.client.request_builder import Asker
from harness.core.errors import StoreError
from harness.core.number_text import Prices
from harness.generation.run_progress import Account
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling
from harness.runs.missing import Missing, Task, n_planned
from harness.runs.record import RecordRefused

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

T = TypeVar("T")

Nature = Literal["too long", "unwanted", "blocked", "poison", "crash", "gateway", "cut", "busy", "runaway"]
"""What every server makes of a question: a refusal (too long, unwanted, blocked), a fault (poison to busy), or a reply
that never ends and is cut by us (runaway)."""

NATURES: dict[Nature, RequestFailed] = {
    "too long": RequestFailed("too_long", "the prompt is too long", status=400),
    "unwanted": RequestFailed("rejected", "no such field", status=400),
    "blocked": RequestFailed("refused", "the request was blocked", status=403),
    "poison": RequestFailed("server", "out of memory", status=500),
    "crash": RequestFailed("connect", "closed before replying"),
    "gateway": RequestFailed("server", "upstream", status=502),
    "cut": RequestFailed("cut", "the stream ended"),
    "busy": RequestFailed("rate_limited", "more tokens than a minute allows", status=429, retry_after=1.0),
    "runaway": RequestFailed("runaway", "twice the budget"),
}

MODEL, OTHER_MODEL = "model-a", "model-b"

ROUND_TRIP_S = 0.005
DEADLINE_S = 20.0
"""Seconds after which a server that says nothing is a request that failed."""


class Chance(random.Random):
    """Draws as `random.Random` does, with fewer calls."""

    def randint(self, a: int, b: int) -> int:
        n = b - a + 1
        n_bits, draw = n.bit_length(), self.getrandbits
        while (number := draw(n_bits)) >= n:
            pass
        return a + number

    def choice(self, seq: SupportsLenAndGetItem[T]) -> T:
        n = len(seq)
        n_bits, draw = n.bit_length(), self.getrandbits
        while (index := draw(n_bits)) >= n:
            pass
        return seq[index]


class Reply(msgspec.Struct, frozen=True):
    """A request that the server finishes. model: the name it answers under."""

    model: str = MODEL
    truncated: bool = False


End = Reply | RequestFailed | Exception
"""What a request comes to; an `Exception` that is no `RequestFailed` stands for a mistake of ours."""

Mood = Callable[["Server", random.Random], tuple[float, End]]
"""What a server does with a request: (seconds, end)."""


def _well(server: Server, chance: random.Random) -> tuple[float, End]:
    return chance.expovariate(1 / server.mean_s), Reply(server.model)


def _slow(server: Server, chance: random.Random) -> tuple[float, End]:
    return 20 * chance.expovariate(1 / server.mean_s), Reply(server.model)


def _few_slots(server: Server, chance: random.Random) -> tuple[float, End]:
    if server.working > server.slots:
        return ROUND_TRIP_S, RequestFailed("rate_limited", "slow down", status=429, retry_after=server.retry_after)
    return _well(server, chance)


def _moody(server: Server, chance: random.Random) -> tuple[float, End]:
    if chance.random() < 0.3:
        return ROUND_TRIP_S, RequestFailed("rate_limited", "slow down", status=429)
    return _well(server, chance)


def _absent_minded(server: Server, chance: random.Random) -> tuple[float, End]:
    if chance.random() < 0.4:
        when = chance.choice((None, server.retry_after))
        return ROUND_TRIP_S, RequestFailed("rate_limited", "slow down", status=429, retry_after=when)
    return _well(server, chance)


def _always_busy(server: Server, chance: random.Random) -> tuple[float, End]:
    return ROUND_TRIP_S, RequestFailed("rate_limited", "slow down", status=429, retry_after=server.retry_after)


def _broken(server: Server, chance: random.Random) -> tuple[float, End]:
    return ROUND_TRIP_S, RequestFailed("server", "out of memory", status=500)


def _gateway(server: Server, chance: random.Random) -> tuple[float, End]:
    return ROUND_TRIP_S, RequestFailed("rate_limited", "no worker", status=503, retry_after=server.retry_after)


def _flaky(server: Server, chance: random.Random) -> tuple[float, End]:
    seconds, end = _well(server, chance)
    match chance.randint(0, 7):
        case 0:
            return seconds / 2, RequestFailed("cut", f"cut after {seconds:.3f} s")
        case 1:
            return seconds / 2, RequestFailed("malformed", f"bad JSON after {seconds:.3f} s")
        case 2:
            return ROUND_TRIP_S, RequestFailed("server", f"fault {seconds:.3f}", status=500)
        case 3:
            return DEADLINE_S, RequestFailed("timeout", "no token came")
        case 4:
            return seconds / 2, _within_a_stream(RequestFailed("server", f"lost at {seconds:.3f} s", status=502))
    return seconds, end


def _garbled(server: Server, chance: random.Random) -> tuple[float, End]:
    seconds, _ = _well(server, chance)
    return seconds, RequestFailed("malformed", f"bad JSON after {seconds:.3f} s")


def _within_a_stream(failure: RequestFailed) -> RequestFailed:
    """As an error event that follows some tokens of a reply of status 200."""
    failure.n_events = 7
    return failure


def _dead(server: Server, chance: random.Random) -> tuple[float, End]:
    return ROUND_TRIP_S, RequestFailed("connect", "connection refused", sent=False)


def _hanging(server: Server, chance: random.Random) -> tuple[float, End]:
    return DEADLINE_S, RequestFailed("timeout", "no token came")


def _closed(server: Server, chance: random.Random) -> tuple[float, End]:
    return ROUND_TRIP_S, RequestFailed("refused", "no such model", status=404)


def _unloaded(server: Server, chance: random.Random) -> tuple[float, End]:
    return ROUND_TRIP_S, chance.choice(
        (
            RequestFailed("rejected", "no model is loaded", status=400),
            RequestFailed("refused", "no model is loaded", status=404),
            RequestFailed("refused", "forbidden", status=403),
        )
    )


def _lying(server: Server, chance: random.Random) -> tuple[float, End]:
    return chance.expovariate(1 / server.mean_s), Reply(OTHER_MODEL)


def _truncating(server: Server, chance: random.Random) -> tuple[float, End]:
    return chance.expovariate(1 / server.mean_s), Reply(server.model, truncated=True)


def _starving(server: Server, chance: random.Random) -> tuple[float, End]:
    if server.working > server.slots:
        return 0.0, RequestFailed("connect", "too many open files")
    return _well(server, chance)


def _unlucky(server: Server, chance: random.Random) -> tuple[float, End]:
    if chance.random() < 0.1:
        return ROUND_TRIP_S, ZeroDivisionError("a mistake of ours")
    return _well(server, chance)


MOODS: dict[str, Mood] = {
    "well": _well,
    "slow": _slow,
    "few slots": _few_slots,
    "moody": _moody,
    "absent-minded": _absent_minded,
    "always busy": _always_busy,
    "broken": _broken,
    "gateway": _gateway,
    "flaky": _flaky,
    "garbled": _garbled,
    "dead": _dead,
    "hanging": _hanging,
    "truncating": _truncating,
    "starving": _starving,
    "unlucky": _unlucky,
    "unloaded": _unloaded,
    "closed": _closed,
    "lying": _lying,
}
_USUAL = [*list(MOODS)[:-2], "well", "well", "few slots", "flaky", "dead", "always busy"]
_FATAL = ["closed", "lying"]


class Server(msgspec.Struct, eq=False):
    """moods: (second at which it ends, mood), the last one for good. working: requests that it has accepted."""

    endpoint: Endpoint
    mean_s: float
    slots: int
    retry_after: float | None
    moods: list[tuple[float, str]]
    model: str = MODEL
    working: int = 0

    def mood(self, now: float) -> str:
        while now >= self.moods[0][0]:
            del self.moods[0]
        return self.moods[0][1]

    def calm(self, model: str) -> None:
        """From now on it is well, and answers under this name."""
        self.moods = [(float("inf"), "well")]
        self.model = model


SAMPLINGS = [Sampling(temperature=0.6), Sampling(temperature=0.6, max_tokens=5000)]

ASKER = Asker(model="m")
NOWHERE = Path("nowhere")

ENDPOINTS = [Endpoint.parse(f"http://server{n}:80") for n in range(4)]

PRICES = Prices(prompt=1.0, completion=10.0)


def server(number: int, chance: random.Random) -> Server:
    """The server at `ENDPOINTS[number]`, with moods that change up to three times."""
    moods, at = [], 0.0
    for _ in range(chance.randint(0, 3)):
        at += chance.uniform(1.0, 120.0)
        moods.append((at, chance.choice(_FATAL if chance.random() < 0.03 else _USUAL)))
    last = chance.choice(_USUAL) if chance.random() < 0.2 else "well"
    return Server(
        ENDPOINTS[number],
        mean_s=chance.choice((0.5, 5.0, 30.0)),
        slots=chance.randint(1, 4),
        retry_after=chance.choice((None, None, 0.5, 20.0, 400.0)),
        moods=[*moods, (float("inf"), last)],
    )


PROMPTS = {False: (20, 30), True: (90, 400)}
"""Whether a question has a long prompt → its tokens, and the bytes of it in a request."""


BUDGETS: list[dict[str, Any]] = [
    *[{}] * 9,
    {"budget_tokens": 5000},
    {"budget_tokens": 20_000},
    {"budget_tokens": 60_000},
    {"budget_usd": 0.2},
]
"""Budgets of a session. The cost of a reply without usage, and of a prompt not seen yet, is bounded by them as well."""


class Disk(msgspec.Struct, eq=False):
    """What the journals hold. stored: samples by the model that made them.

    fails_after: a journal stops for good at this write of the session; refuses: this one record cannot be stored.
    """

    chance: random.Random
    stored: dict[Task, str] = msgspec.field(default_factory=dict)
    stopped: set[str] = msgspec.field(default_factory=set)
    fails_after: int | None = None
    refuses: int | None = None
    n_written: int = 0

    def open(self, *, faults: bool) -> None:
        """Begin a session."""
        chance = self.chance
        self.stopped.clear()
        self.n_written = 0
        self.fails_after = chance.randint(1, 12) if faults and chance.random() < 0.05 else None
        self.refuses = chance.randint(1, 12) if faults and chance.random() < 0.05 else None

    def append(self, task: Task, model: str) -> None:
        """Store a sample. Raises `StoreError` from when the journal stops; the sample may be on disk all the same."""
        if task.benchmark in self.stopped:
            raise StoreError("the journal has stopped")
        self.n_written += 1
        if self.n_written == self.refuses:
            raise RecordRefused("a lone surrogate")
        fails = self.n_written == self.fails_after
        if not fails or self.chance.random() < 0.3:
            self.stored[task] = model
        if fails:
            self.stopped.add(task.benchmark)
            raise StoreError("no space left on device")


class Bill(msgspec.Struct):
    """What the replies to one command have used: as its budget counts (used), and as the servers know (true).

    n_done: replies; n_first: samples begun, at most as many as make the mean known. sure: whether every reply
    stated its usage.
    """

    used_tokens: int = 0
    used_usd: float = 0.0
    true_tokens: int = 0
    true_usd: float = 0.0
    longest: int = 0
    n_done: int = 0
    n_first: int = 0
    sure: bool = True


class World:
    """All of it, over the sessions of one run, from `seed`. trace: takes a line for everything that happens."""

    def __init__(self, seed: int, trace: list[str] | None = None) -> None:
        chance = self.chance = Chance(seed)
        self.trace = trace
        self.now = 0.0
        self.n_requests = 0
        self.disk = Disk(chance)
        self.servers = {e.base_url: server(n, chance) for n, e in enumerate(ENDPOINTS)}
        self.model: str | None = None
        self.bill, self.account = Bill(), Account()
        # Drawn apart, so that the other seeds play what they have always played.
        self.commands = random.Random(f"commands of {seed}")
        self.longest_jitter = seed % 5 == 1
        n_questions, n_samples = chance.randint(2, 5), float(chance.randint(1, 3))
        budget = chance.choice(BUDGETS)
        if budget and chance.random() < 0.06:
            n_samples = 8  # so many that lengths become known
        n_samples += random.Random(f"samples of {seed}").choice((0, 0, 0.5))  # drawn apart, like the commands
        self.questions = [("even" if n % 2 else "odd", f"q{n}") for n in range(n_questions)]
        natures: list[Nature] = list(NATURES)
        self.natures = {key: chance.choice(natures) for key in self.questions[:2] if chance.random() < 0.2}
        self.keys = [Task(*key, index) for key in self.questions for index in range(n_planned(key[1], n_samples))]
        self.settings = RunSettings(
            asker=ASKER,
            endpoints=tuple(ENDPOINTS[: chance.randint(1, 3)]),
            benchmarks=dict.fromkeys(
                ("odd", "even"), BenchmarkSettings(samples=n_samples, sampling=chance.choice(SAMPLINGS))
            ),
            out=NOWHERE,
            concurrency=chance.choice((1, 2, 4, 16)),
            order=chance.choice(("longest", "rounds")),
            accept_missing=chance.random() < 0.2,
            prices=PRICES,
            **budget,
            requests_per_minute=chance.choice((None, None, None, 30.0)),
        )
        self.total = self.of_each(self.keys)
        # Drawn apart, so that the other seeds play what they have always played.
        prompts = random.Random(f"prompts of {seed}")
        self.prompts = {key: PROMPTS[prompts.random() < 0.3] for key in self.questions}
        self.lengths = random.Random(f"lengths of {seed}")
        """Draws the true lengths of replies that state none."""
        self.attempts = chance.randint(1, 5)
        self.settings = replace(self.settings, patience=replace(self.settings.patience, attempts=self.attempts))

    def jitter(self, low: float, high: float) -> float:
        """A random number between two bounds; the upper one in seeds in which every pause is as long as it may be."""
        return high if self.longest_jitter else self.chance.uniform(low, high)

    @staticmethod
    def of_each(tasks: Collection[Task]) -> dict[str, int]:
        """How many of the samples are of each benchmark."""
        n_odd = [task.benchmark for task in tasks].count("odd")
        return {"odd": n_odd, "even": len(tasks) - n_odd}

    def missing(self) -> list[Missing]:
        """What is not on the disk."""
        left: dict[tuple[str, str], list[int]] = {}
        stored = self.disk.stored
        for task in self.keys:
            if task not in stored:
                left.setdefault(task[:2], []).append(task.sample_index)
        return [Missing(*question, tuple(indices)) for question, indices in left.items()]
