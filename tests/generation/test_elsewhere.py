"""A sample that one endpoint breaks is asked at another one, while there is one that has not tried it."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.client.address.endpoint import Endpoint
from harness.generation.dispatch.actions import Ask, Done, Wait
from harness.generation.settings import Patience
from harness.runs.record import Task
from tests.faults.server import CLOSE, HEAD, Answer, FaultServer, Request, Step, chunk, completion, delta, http
from tests.generation.small_runs import question_set, run, run_settings, samples_of
from tests.generation.test_dispatcher import Played

CUT = [HEAD, chunk(delta("so far")), CLOSE]
ERROR = [http(500, {"error": {"message": "boom"}})]


def breaking(question: str, how: list[Step]) -> Answer:
    """Serves all but `question`."""

    def answer(request: Request) -> Iterable[Step]:
        return how if question in request.body.decode() else completion("1")

    return answer


@pytest.mark.parametrize("how", [CUT, ERROR])
def test_what_one_endpoint_always_breaks_is_served_by_the_other(tmp_path: Path, how: list[Step]) -> None:
    with (
        FaultServer(breaking("What is 3 + 1?", how)) as broken,
        FaultServer(breaking("What is 4 + 1?", how)) as sound,
    ):
        settings = run_settings(tmp_path / "run", broken.base_url, sound.base_url, samples=4, canary=False)
        outcome = run(settings, question_set(tmp_path, 6))
    assert outcome.complete, outcome.causes
    served = {(s.question_id, s.endpoint) for s in samples_of(settings)}
    assert {e for q, e in served if q == "q3"} == {sound.base_url}
    assert {e for q, e in served if q == "q4"} == {broken.base_url}
    for server, question in ((broken, "What is 3 + 1?"), (sound, "What is 4 + 1?")):
        assert sum(question in r.body.decode() for r in server.requests) <= 4, "asked again where it was broken"


@pytest.mark.parametrize("seed", range(20))
def test_two_endpoints_that_fail_different_questions_serve_them_all_in_the_end(seed: int) -> None:
    """One breaks the even questions and is set aside for it again and again; the other one breaks some odd ones."""
    chance = random.Random(seed)
    first, second = Endpoint.parse("http://a/v1"), Endpoint.parse("http://b/v1")
    broken = {first: {f"q{n}" for n in range(0, 48, 2)}, second: {f"q{n}" for n in range(1, 48, 6)}}
    played = Played(questions=48, patience=Patience(), endpoints=(first, second), concurrency=8, canary=False)
    ends: list[tuple[float, Task, Ask]] = []
    while True:
        action = played.dispatcher.next()
        if isinstance(action, Ask):
            heapq.heappush(ends, (played.now + chance.uniform(0.05, 0.5), action.task, action))
        elif isinstance(action, Wait):
            until = played.now + (float("inf") if action.seconds is None else action.seconds)
            if not ends or ends[0][0] > until:
                played.now = until
                continue
            played.now, _, ask = heapq.heappop(ends)
            if ask.task.question_id in broken[ask.endpoint]:
                played.fail(ask.task, "server", 500, f"boom {chance.random()}")
            else:
                played.answer(ask.task)
        elif isinstance(action, Done):
            break
    assert (len(played.stored), played.dispatcher.causes.given_up()) == (48, {})
