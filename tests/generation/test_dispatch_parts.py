"""The dispatcher's parts by themselves, beside slow sums: arrivals, causes, shares, samples that came back.

For: harness.generation.dispatch.
"""

from __future__ import annotations

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.records import Timing, Usage
from harness.generation.dispatch.arrivals import Arrivals
from harness.generation.dispatch.canary import Canary
from harness.generation.dispatch.causes import Cause, Causes
from harness.generation.dispatch.flight import Work
from harness.generation.dispatch.lanes import Lanes
from harness.generation.settings import Patience
from harness.runs.record import Task


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


# -- arrivals ------------------------------------------------------------------------------------------------------


def test_a_reply_in_one_piece_says_nothing_of_the_tokens_of_an_event() -> None:
    for events, each in ((0, 1.0), (1, 1.0), (2, 20.0), (40, 1.0)):
        clock = Clock()
        lanes = Lanes([Endpoint.parse("http://a")], 2, Patience(), clock)
        first, second = (lanes.sent(next(iter(lanes)), Work(Task("b", "q", n))) for n in range(2))
        second.arriving.count = lambda: 3
        arrivals = Arrivals(clock, {second.task: second})
        clock.now += 1
        arrivals.finished(first, 40, events)
        arrivals.look()
        assert arrivals.tokens == 40 + 3 * each


# -- causes ---------------------------------------------------------------------------------------------


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


def said(text: str | None, finish: str = "stop", usage: Usage | None = None) -> Reply:
    timing = Timing(started=0, total=1)
    return Reply(text=text, reasoning=None, finish_reason=finish, usage=usage or Usage(), timing=timing)


def test_a_run_whose_first_replies_a_limit_of_the_server_cuts_is_not_told_to_raise_max_tokens() -> None:
    canary = Canary()
    replies = [said(text, "length", Usage(completion_tokens=40)) for text in "abcdefghijklmnop"]
    verdicts = [canary.observe(Task("b", reply.text or "", 0), reply, 64) for reply in replies]
    assert "were cut by the server at 40 tokens, below the max_tokens of 64" in str(verdicts[-1])
    assert "Raise" not in str(verdicts[-1])
