"""A sample that one endpoint breaks is asked at another one, while there is one that has not tried it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.faults.server import CLOSE, HEAD, Answer, FaultServer, Request, Step, chunk, completion, delta, http
from tests.generation.small_runs import question_set, run, run_settings, samples_of

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
        FaultServer(breaking("What is 4 + 1?", how)) as other,
    ):
        settings = run_settings(tmp_path / "run", broken.base_url, other.base_url, samples=4, canary=False)
        outcome = run(settings, question_set(tmp_path, 6))
    assert outcome.complete, outcome.causes
    served = {(s.question_id, s.endpoint) for s in samples_of(settings)}
    assert {e for q, e in served if q == "q3"} == {other.base_url}
    assert {e for q, e in served if q == "q4"} == {broken.base_url}
    for server, question in ((broken, "What is 3 + 1?"), (other, "What is 4 + 1?")):
        assert sum(question in r.body.decode() for r in server.requests) <= 4, "asked again where it was broken"


def test_what_all_endpoints_break_is_given_up_after_the_attempts_allowed(tmp_path: Path) -> None:
    answer = breaking("What is 3 + 1?", CUT)
    with FaultServer(answer) as one, FaultServer(answer) as other:
        settings = run_settings(tmp_path / "run", one.base_url, other.base_url, samples=1, canary=False)
        outcome = run(settings, question_set(tmp_path, 6))
        asked = [sum("What is 3 + 1?" in r.body.decode() for r in server.requests) for server in (one, other)]
    assert (outcome.n_owed, outcome.n_done) == (1, 5)
    assert sum(asked) >= 4
    assert min(asked) >= 1


def test_a_single_endpoint_is_asked_again(tmp_path: Path) -> None:
    failures = iter([CUT, CUT])

    def answer(request: Request) -> Iterable[Step]:
        return next(failures, [*completion("1")])

    with FaultServer(answer) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=1, canary=False)
        assert run(settings, question_set(tmp_path, 3)).complete
