"""Measures how well the scheduler keeps servers busy: the simulated time until the last sample, divided by a lower
bound. No server is needed.

    python bench/schedule.py [--repeats 5]

Lengths: lognormal, mean 8k tokens, cap 32k, question effect sigma 0.7, sample sigma 0.5. A server with k requests in
flight takes 12 ms + 40 us * k per token (the slow one 2.5 times as long). The lower bound is the larger of (all tokens
at full speed) and (the longest sample alone). "clairvoyant" is longest-first with the true lengths known.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.client.address.endpoint import Endpoint
from harness.core.literals import Order
from harness.core.records import Key
from harness.generation.dispatch.schedule import Scheduler
from harness.generation.dispatch.state import Lane, Work
from harness.generation.dispatch.too_many_requests import Pace
from harness.runs.missing import Task, missing_samples

CAP_TOKENS = 32_768
MEAN_TOKENS = 8_000
QUESTION_SIGMA = 0.7
SAMPLE_SIGMA = 0.5

ONE_SERVER = [(30, 64, 64), (30, 64, 256), (30, 64, 512), (198, 8, 128), (198, 8, 512), (500, 4, 256), (500, 4, 1024)]
TWO_SERVERS = [(30, 64, 128), (30, 64, 512), (198, 8, 256), (500, 4, 512)]

Lengths = list[list[int]]
"""Tokens of each sample, by question."""


@dataclass
class Server:
    """A simulated server. With k ≤ `slots` requests in flight, a token takes `base` + `per_request` * k seconds."""

    base: float
    per_request: float
    slots: int
    tokens: float = 0.0
    """Number of tokens that each stream would have received since the start of the simulation."""
    running: list[tuple[float, Task]] = field(default_factory=list)

    def step(self, k: int) -> float:
        """Seconds per token with k requests in flight."""
        return self.base + self.per_request * k


class Policy(NamedTuple):
    """A rule that chooses samples. pick(server number) returns the server's next sample; done(sample, tokens) reports
    that a sample has finished.
    """

    pick: Callable[[int], Task | None]
    done: Callable[[Task, int], None]


class Clock:
    """The time of a simulation, in seconds, which the simulation advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def draw_lengths(questions: int, samples: int, rng: random.Random) -> Lengths:
    """Draw the number of tokens of each sample; each question has its own mean."""
    mu = math.log(MEAN_TOKENS) - (QUESTION_SIGMA**2 + SAMPLE_SIGMA**2) / 2
    effects = [rng.gauss(0, QUESTION_SIGMA) for _ in range(questions)]
    return [
        [max(50, min(CAP_TOKENS, int(math.exp(mu + e + rng.gauss(0, SAMPLE_SIGMA))))) for _ in range(samples)]
        for e in effects
    ]


def length(lengths: Lengths, task: Task) -> int:
    """The number of tokens of a sample."""
    return lengths[int(task.question_id)][task.sample_index]


def makespan(
    lengths: Lengths, servers: Sequence[Server], policy: Policy, clock: Clock, n_missing: int | None = None
) -> float:
    """Simulate a run; return the seconds until the last sample has finished. Checks that each sample (or n_missing of
    them) was requested exactly once.
    """
    requested: set[Task] = set()

    def fill() -> None:
        """Give servers their next samples, the emptiest server first, until all are full or no sample is left for
        them.
        """
        refused: set[int] = set()
        while True:
            free = [i for i, s in enumerate(servers) if len(s.running) < s.slots and i not in refused]
            if not free:
                return
            index = min(free, key=lambda i: len(servers[i].running) / servers[i].slots)
            task = policy.pick(index)
            if task is None:
                refused.add(index)
                continue
            assert task not in requested
            requested.add(task)
            server = servers[index]
            heapq.heappush(server.running, (server.tokens + length(lengths, task), task))

    fill()
    while any(s.running for s in servers):
        pace = [s.step(len(s.running)) for s in servers]
        wait, index = min(((s.running[0][0] - s.tokens) * pace[i], i) for i, s in enumerate(servers) if s.running)
        for i, server in enumerate(servers):
            server.tokens += wait / pace[i]
        server = servers[index]
        server.tokens, task = heapq.heappop(server.running)
        clock.now += wait
        policy.done(task, length(lengths, task))
        fill()
    assert len(requested) == (sum(map(len, lengths)) if n_missing is None else n_missing), "samples were left out"
    return clock.now


def in_order(tasks: Sequence[Task]) -> Callable[[Clock], Policy]:
    """The policy that takes the samples in this order for any server."""

    def make(_: Clock) -> Policy:
        rest: Iterator[Task] = iter(tasks)
        return Policy(lambda _: next(rest, None), lambda _task, _tokens: None)

    return make


def ours(lengths: Lengths, servers: int = 1, order: Order = "longest") -> Callable[[Clock], Policy]:
    """The policy of our scheduler. servers: the number of servers."""

    def make(clock: Clock) -> Policy:
        nothing: set[Key] = set()
        plan = missing_samples("sim", [str(q) for q in range(len(lengths))], len(lengths[0]), nothing)
        return by_scheduler(Scheduler(plan, order=order), clock, servers)

    return make


def by_scheduler(scheduler: Scheduler, clock: Clock, servers: int) -> Policy:
    """The product's order, with an endpoint for each server."""
    lanes = [Lane(endpoint=Endpoint.parse(f"http://s{n}"), pace=Pace(1, clock)) for n in range(servers)]
    sent: dict[Task, tuple[Work, Lane, float]] = {}

    def pick(server: int) -> Task | None:
        """The next sample for a server, which is then in flight; None if there is none."""
        lane = lanes[server]
        if (work := scheduler.next(lane, lanes)) is None:
            return None
        lane.pace.record_sent()
        sent[work.task] = work, lane, clock.now
        return work.task

    def done(task: Task, tokens: int) -> None:
        """Tell the scheduler that a sample has finished."""
        work, lane, started = sent.pop(task)
        lane.pace.ended(0)
        lane.finished(clock.now - started, tokens)
        scheduler.finish(work, tokens)

    return Policy(pick, done)


def lower_bound(lengths: Lengths, servers: Sequence[Server]) -> float:
    """Seconds that no policy can undercut: all tokens at full speed, or the longest sample alone."""
    rate = sum(s.slots / s.step(s.slots) for s in servers)
    return max(sum(map(sum, lengths)) / rate, max(map(max, lengths)) * min(s.step(1) for s in servers))


def simulate(shape: tuple[int, int, int], seed: int, two_servers: bool) -> dict[str, float]:
    """Policy → its time until the last sample, divided by the lower bound."""
    questions, samples, slots = shape
    rng = random.Random(seed)
    lengths = draw_lengths(questions, samples, rng)
    by_round = [Task("sim", str(q), i) for i in range(samples) for q in range(questions)]
    longest = sorted(by_round, key=lambda t: -length(lengths, t))

    def servers() -> list[Server]:
        """New servers for one simulation."""
        if two_servers:
            return [Server(0.012, 0.00004, slots // 2), Server(0.030, 0.0001, slots // 2)]
        return [Server(0.012, 0.00004, slots)]

    n = 1 + two_servers
    policies = {
        "least outstanding" if two_servers else "fifo": in_order(by_round),
        "rounds": ours(lengths, n, "rounds"),
        "ours": ours(lengths, n),
        "clairvoyant": in_order(longest),
    }
    bound = lower_bound(lengths, servers())
    spans = {}
    for name, make in policies.items():
        clock = Clock()
        spans[name] = makespan(lengths, servers(), make(clock), clock) / bound
    return spans


def table(
    title: str, shapes: list[tuple[int, int, int]], repeats: int, two_servers: bool, peer: str, limit: float
) -> bool:
    """Print one table; return whether our time is at most `limit` × the time of `peer` in every row."""
    print(f"\n{title}: makespan / lower bound, mean of {repeats}")
    holds = True
    for number, shape in enumerate(shapes):
        runs = [simulate(shape, seed, two_servers) for seed in range(repeats)]
        means = {name: statistics.mean(r[name] for r in runs) for name in runs[0]}
        if number == 0:
            print(
                "  "
                + f"{'questions x samples, in flight':32}"
                + "".join(f"{n:>19}" for n in means)
                + f"{'ours/' + peer:>24}"
            )
        ratio = means["ours"] / means[peer]
        holds &= ratio <= limit
        row = f"{shape[0]} x {shape[1]}, {shape[2]}"
        print("  " + f"{row:32}" + "".join(f"{v:19.3f}" for v in means.values()) + f"{ratio:24.3f}")
    print(f"  ours/{peer} <= {limit} in every row: {'yes' if holds else 'NO'}")
    return holds


def main() -> int:
    """Print all tables. Returns 1 if a limit is exceeded, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    one_server = table("One server", ONE_SERVER, repeats, False, "clairvoyant", 1.21)
    two_servers = table("Two servers, 71/29", TWO_SERVERS, repeats, True, "least outstanding", 0.88)
    return 0 if one_server and two_servers else 1


if __name__ == "__main__":
    raise SystemExit(main())
