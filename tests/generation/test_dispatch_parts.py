"""The dispatcher's parts by themselves, beside slow sums: arrivals, causes, builds, shares, samples that came back.

For: harness.generation.dispatch.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.records import Timing, Usage
from harness.generation.dispatch.canary import FIRST_SAMPLES, MAX_BUILDS, Builds, Canary
from harness.generation.dispatch.lanes import Lanes
from harness.generation.dispatch.snapshot import NOW_S, PACE_S, Arrivals, Cause, Causes
from harness.generation.settings import Patience
from harness.runs.record import Task


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def base(looks: list[tuple[float, ...]], seconds: float) -> tuple[float, ...]:
    """The look from which a rate is measured: the latest that is so old, else the first; never the last one itself."""
    now = looks[-1][0]
    return next((look for look in reversed(looks[:-1]) if look[0] <= now - seconds), looks[0])


# -- arrivals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_arrivals_are_the_sums_of_what_came(seed: int) -> None:
    draw, clock = random.Random(seed), Clock()
    arrivals = Arrivals(clock, {"b": 99})
    assert (arrivals.tokens, arrivals.rate, arrivals.rate_now, arrivals.oldest) == (0, None, None, None)
    flights: dict[Task, list[float]] = {}  # lane, start, events, tokens
    tokens, lengths, looks = [0.0, 0.0], [0.0], [(100.0, 0.0)]
    finished, came = [0.0, 0.0], False
    for step in range(120):
        clock.now += draw.choice([0.0, 0.5, 3.0, 11.0])
        what = draw.choice(["begin", "begin", "look", "look", "end", "finish"])
        task = draw.choice([*flights]) if flights else None
        if what == "begin":
            lane, task = draw.randrange(2), Task("b", f"q{draw.randrange(3)}", step)
            arrivals.began(task, lane)
            flights[task] = [lane, clock.now, 0, 0.0]
        elif what == "look":
            seen = {task: draw.randint(0, 40) for task in flights if draw.random() < 0.7}
            arrivals.look(seen | {Task("b", "gone", 0): 5})
            each = finished[0] / finished[1] if finished[1] else 1.0
            for task, n in seen.items():
                flight = flights[task]
                if n > flight[2]:
                    came, flight[2] = True, n
                    tokens[int(flight[0])] += max(0.0, n * each - flight[3])
                    flight[3] = max(flight[3], n * each)
            looks.append((clock.now, sum(tokens)))
        elif task is not None and what == "end":
            arrivals.end(task)
            del flights[task]
        elif task is not None:
            n, events = draw.randint(1, 50), draw.choice([0, 1, 2, 9])
            arrivals.finished(task, n, events)
            lane, _, _, had = flights.pop(task)
            tokens[int(lane)] += n - had
            lengths.append(n)
            if events > 1:
                finished = [finished[0] + n, finished[1] + events]
        assert arrivals.tokens == pytest.approx(sum(tokens))
        assert arrivals.rate == (
            pytest.approx(sum(tokens) / (clock.now - 100)) if sum(tokens) and clock.now > 100 else None
        )
        before, now = base(looks, NOW_S), looks[-1]
        known = now[1] and now[0] > before[0]
        newly = max(0.0, now[1] - before[1])  # fewer than before are a correction of the count
        assert arrivals.rate_now == (pytest.approx(newly / (now[0] - before[0])) if known else None)
        assert (arrivals.n_finished, arrivals.longest) == (len(lengths) - 1, max(lengths))
        if came:
            assert [stream.tokens for stream in arrivals.streams] == pytest.approx([f[3] for f in flights.values()])
            assert {stream.most for stream in arrivals.streams} <= {99}
        if flights:
            assert arrivals.oldest is not None
            first, flight = next(iter(flights.items()))
            assert arrivals.oldest[:2] == (first, clock.now - flight[1])


def test_the_pace_of_an_endpoint_is_that_of_its_last_minute() -> None:
    clock = Clock()
    arrivals = Arrivals(clock, {})
    task = Task("b", "q", 0)
    arrivals.began(task, 0)
    total, counts = 0, [(clock.now, 0)]
    for second in range(1, 200):
        clock.now += 1
        total += 10 if second <= 100 else 2
        arrivals.look({task: total})
        counts.append((clock.now, total))
        start = base(list[tuple[float, ...]](counts), PACE_S)
        expected = (clock.now - start[0]) / (total - start[1])
        (running,) = arrivals.streams
        assert running.pace == pytest.approx(expected)
        assert running.tokens == total


def test_a_reply_in_one_piece_says_nothing_of_the_tokens_of_an_event() -> None:
    for events, each in ((0, 1.0), (1, 1.0), (2, 20.0), (40, 1.0)):
        clock = Clock()
        arrivals = Arrivals(clock, {})
        for task in (Task("b", "q", 0), Task("b", "q", 1)):
            arrivals.began(task, 0)
        clock.now += 1
        arrivals.finished(Task("b", "q", 0), 40, events)
        arrivals.look({Task("b", "q", 1): 3})
        assert arrivals.tokens == 40 + 3 * each


# -- causes and builds ---------------------------------------------------------------------------------------------


def test_causes_are_grouped_counted_and_forgotten() -> None:
    causes = Causes()
    tasks = [Task("b", f"q{n}", 0) for n in range(5)] + [Task("c", "q0", 0)]
    for task in tasks[:2]:
        causes.met(task, RequestFailed("timeout", "slow", status=None))
    causes.gave_up(tasks[2], "too_long", "more than 4096", 400)
    causes.gave_up(tasks[5], "too_long", "more than 8192", 400)
    causes.gave_up(tasks[3], "server", "broken", 500)
    assert causes.too_long() == {"b": {"q2": "more than 4096"}, "c": {"q0": "more than 8192"}}
    assert causes.given_up() == {tasks[2]: "too_long", tasks[5]: "too_long", tasks[3]: "server"}
    assert (causes.n_given_up, causes.n_given_up_of("b"), causes.n_given_up_of("c")) == (3, 2, 1)
    assert causes.last(tasks[3]) == ("server", 500, "broken")
    listed = causes.listed(9, "the budget")
    assert listed[:1] == [Cause("not asked", 4, "the budget")]
    assert sorted(map(str, listed[1:])) == [
        "1 × server: broken", "2 × timeout: slow", "2 × too_long: more than 4096",
    ]  # fmt: skip
    assert [cause.count for cause in listed] == sorted((cause.count for cause in listed), reverse=True)
    causes.arrived(tasks[0])
    causes.arrived(tasks[4])
    assert [cause for cause in causes.listed(4, "") if cause.kind == "timeout"] == [Cause("timeout", 1, "slow")]
    assert "not asked" not in {cause.kind for cause in causes.listed(4, "")}


def test_a_new_build_is_warned_of_once_and_at_most_sixteen_are_told_apart() -> None:
    builds = Builds(["old"])
    warnings = [builds.observe("http://a", name) for name in (None, "", "old", "new", "new", "old")]
    assert [warning is not None for warning in warnings] == [False, False, False, True, False, False]
    assert "'new'" in str(warnings[3])
    assert "'old'" in str(warnings[3])
    assert builds.observe("http://b", "new") is None
    assert builds.seen == {"http://a": ("old", "new"), "http://b": ("new",)}
    many = Builds()
    warned = [many.observe("http://a", f"build {n:02}") is not None for n in range(MAX_BUILDS + 3)]
    assert warned == [False] + [True] * (MAX_BUILDS - 1) + [False] * 3
    assert len(many.seen["http://a"]) == MAX_BUILDS


def said(text: str | None, finish: str = "stop", usage: Usage | None = None) -> Reply:
    timing = Timing(started=0, total=1)
    return Reply(text=text, reasoning=None, finish_reason=finish, usage=usage or Usage(), timing=timing)


@pytest.mark.parametrize(
    ("texts", "finish", "words"),
    [
        ([""], "stop", "are all empty"),
        ([" \n"], "stop", "are all empty"),
        (["", "a"], "stop", None),
        (["a", "b"], "length", "are all truncated at 64 tokens"),
        (["a"], "stop", "are all the same: 'a'"),
        (["a", "b"], "stop", None),
    ],
)
def test_a_run_whose_first_replies_are_all_wrong_stops_after_them(
    texts: list[str], finish: str, words: str | None
) -> None:
    canary = Canary()
    verdicts = [
        canary.observe(Task("b", f"q{n}", 0), said(texts[n % len(texts)], finish), 64) for n in range(FIRST_SAMPLES + 5)
    ]
    assert [n for n, verdict in enumerate(verdicts) if verdict] == ([FIRST_SAMPLES - 1] if words else [])
    assert words is None or words in str(verdicts[FIRST_SAMPLES - 1])
    silent = Canary(on=False)
    assert {silent.observe(Task("b", f"q{n}", 0), said(""), 64) for n in range(FIRST_SAMPLES)} == {None}


def test_a_run_whose_first_replies_a_limit_of_the_server_cuts_is_not_told_to_raise_max_tokens() -> None:
    canary = Canary()
    replies = [said(text, "length", Usage(completion_tokens=40)) for text in "abcdefghijklmnop"]
    verdicts = [canary.observe(Task("b", reply.text or "", 0), reply, 64) for reply in replies]
    assert "were cut by the server at 40 tokens, below the max_tokens of 64" in str(verdicts[-1])
    assert "Raise" not in str(verdicts[-1])


# -- lanes ---------------------------------------------------------------------------------------------------------


def lanes_of(clock: Clock, *weights: float, concurrency: int = 8, **patience: float) -> Lanes:
    endpoints = [replace(Endpoint.parse(f"http://server{n}:80"), weight=weight) for n, weight in enumerate(weights)]
    return Lanes(endpoints, concurrency, replace(Patience(), **patience), clock, lambda low, high: high)


def limits(lanes: Lanes) -> list[int]:
    return [progress.limit for progress in lanes.progress()]


def fail(lanes: Lanes, lane_number: int, times: int, clock: Clock) -> None:
    for _ in range(times):
        clock.now += 1
        lanes.failed(lanes.sent(lane_number), RequestFailed("connect", "refused"))


def test_the_concurrency_is_divided_by_weight_at_once() -> None:
    clock = Clock()
    assert limits(lanes_of(clock, 1.0)) == [8]
    assert limits(lanes_of(clock, 3.0, 1.0)) == [6, 2]
    assert limits(lanes_of(clock, 1.0, 1e-9)) == [8, 1]
    lanes = lanes_of(clock, 1.0, 1.0)
    assert limits(lanes) == [4, 4]
    lanes.set_concurrency(20)
    assert limits(lanes) == [10, 10]
    third = replace(Endpoint.parse("http://server9:80"), weight=2.0)
    assert lanes.replace([lanes[0].endpoint, third]) == (["http://server9:80/v1"], ["http://server1:80/v1"])
    assert [lane.limit for lane in (lanes[0], lanes[2])] == [7, 13]


@pytest.mark.parametrize(("weights", "most"), [((1.0, 1.0), 8), ((3.0, 1.0), 8), ((1.0, 3.0), 4), ((1.0, 1.0, 2.0), 4)])
def test_the_share_of_a_lane_that_is_down_goes_to_the_others_up_to_twice_theirs(
    weights: tuple[float, ...], most: int
) -> None:
    clock = Clock()
    lanes = lanes_of(clock, *weights)
    fail(lanes, len(weights) - 1, 20, clock)
    assert lanes[len(weights) - 1].set_aside
    for _ in range(400):
        clock.now += 1
        tickets = [lanes.sent(0) for _ in range(lanes[0].limit)]
        clock.now += 1
        lanes.advance()
        for ticket in tickets:
            lanes.answered_by(ticket)
        lanes.advance()
    assert lanes[0].limit == most
    lanes.answered_by(lanes.sent(len(weights) - 1))
    assert not lanes[len(weights) - 1].set_aside


def test_only_an_endpoint_that_joined_late_may_be_unwelcome() -> None:
    clock = Clock()
    lanes = lanes_of(clock, 1.0)
    refused, slow = RequestFailed("too_long", "no", status=400), RequestFailed("timeout", "slow")
    assert not lanes.is_unfit(0, refused)
    lanes.replace([lanes[0].endpoint, Endpoint.parse("http://late:80")])
    assert [lanes.is_unfit(n, refused) for n in range(2)] == [False, True]
    assert not lanes.is_unfit(1, slow)
    lanes.replace([Endpoint.parse("http://late:80")])
    assert not lanes.is_unfit(1, refused), "it is the only one"
