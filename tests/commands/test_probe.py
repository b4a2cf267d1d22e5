"""The command `harness probe`, its keys, and servers that limit, reject, leave or send nothing.

For: harness.cli.probe, harness.probes.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness as product
from harness.client.asker import Asker
from harness.client.spelling import Spelling
from harness.core import http_get
from harness.core.errors import ServerError
from harness.options.probing import ProbeOptions
from harness.probes import likelihood, probe, sampling
from harness.probes.findings import Finding
from harness.testing import FakeServer, Pause, Request, Step, http
from server_launchers.lifecycle.launch import RunningServer
from tests.commands.toy_faults import (
    FAULTS,
    empties,
    empties_some,
    fault,
    rejects,
)
from tests.commands.toy_model import Body, Fault, Toy, ToyAsker, answering
from tests.patience import PATIENCE_SECONDS
from tests.system.command import harness, start

Answer = Callable[[Request], Iterable[Step]]


RAW = "/v1/completions"
"""The page for raw text."""


def sound() -> Answer:
    return answering(Toy(chance=random.Random(2)), Fault())


def sound_but(odd: Callable[[int], list[Step] | None], path: str = "") -> Answer:
    """A sound server, but for what `odd` gives for the n-th request (from 1) that is posted to this page."""
    well = sound()
    numbers, lock = itertools.count(1), threading.Lock()

    def answer(request: Request) -> Iterable[Step]:
        with lock:
            n = next(numbers) if request.method == "POST" and request.path.endswith(path) else 0
        return (odd(n) if n else None) or well(request)

    return answer


def refusal(status: int, words: str, **headers: str) -> list[Step]:
    return [http(status, {"error": {"message": words}}, **headers)]


# ---- the command


def test_the_command_passes_a_sound_server_and_stops_at_a_spoilt_one(tmp_path: Path) -> None:
    with (
        FakeServer(answering(Toy(), Fault())) as well,
        FakeServer(answering(Toy(), FAULTS["head of the prompt dropped"]())) as spoilt,
    ):
        passed = harness(tmp_path, "probe", well.base_url, "--checks", "usage,context")
        ill = harness(tmp_path, "probe", spoilt.base_url, "--checks", "context,streaming", "--json", "--quiet")
    assert passed.code == 0, passed.out
    assert "no checks found a problem that would invalidate a score" in passed.out
    assert [line for line in passed.err.splitlines() if line.startswith("probe: ")] == [
        "probe: usage …",
        "probe: usage: pass",
        "probe: context …",
        "probe: context: pass",
    ]
    assert ill.code == 4
    assert "probe:" not in ill.err
    assert re.search(r"/v1: 2 checks, about [\d,]+ tokens; this may take minutes", ill.err)
    outcomes = {one["check"]: one["outcome"] for one in json.loads(ill.out)["findings"]}
    assert outcomes == {"streaming": "pass", "context": "fail"}


def test_what_a_server_says_is_inert_in_the_terminal(tmp_path: Path) -> None:
    with FakeServer(sound_but(lambda _n: refusal(400, "\x1b[31m"))) as server:
        result = harness(tmp_path, "probe", server.base_url, "--checks", "streaming,usage")
    assert result.code == 2  # refused requests accuse nobody, and no check could be made
    assert "\x1b" not in result.out + result.err


def test_a_server_that_is_not_there_and_a_check_that_is_none(tmp_path: Path) -> None:
    nobody = harness(tmp_path, "probe", "http://127.0.0.1:9/v1")
    assert (nobody.code, "127.0.0.1:9" in nobody.err) == (2, True)
    with FakeServer(sound()) as server:
        misspelled = harness(tmp_path, "probe", server.base_url, "--checks", "temprature 0")
    assert (misspelled.code, "Did you mean temperature 0" in misspelled.err) == (2, True)


@pytest.mark.server
def test_the_embedded_server_is_sound(embedded_server: RunningServer) -> None:
    report = probe.probe(ProbeOptions(base_url=embedded_server.base_urls[0], checks=["streaming", "usage"]))
    assert {one.outcome for one in report.findings} == {"pass"}


def test_a_wrong_path_of_an_address_is_named_by_the_argument(tmp_path: Path) -> None:
    with FakeServer(lambda _request: iter([http(404)])) as server:
        done = harness(tmp_path, "probe", server.base_url.replace("/v1", "/v2"), "--quick")
    assert "(HTTP 404); URL usually ends in /v1" in done.err


@given(st.lists(st.floats(0.001, 1), min_size=12, max_size=12), st.lists(st.floats(0.001, 1), min_size=12, max_size=12))
def test_a_divergence_of_lists_is_never_above_the_true_one(a: list[float], b: list[float]) -> None:
    p, q = ([weight**3 / sum(one**3 for one in weights) for weight in weights] for weights in (a, b))
    true = sum(x * math.log(x / y) for x, y in zip(p, q, strict=True))
    for n in (2, 3, 5, 8):
        lists = [
            dict(sorted(((str(i), math.log(x)) for i, x in enumerate(full)), key=lambda item: -item[1])[:n])
            for full in (p, q)
        ]
        assert likelihood.divergence(*lists) <= true + 1e-4


def test_a_server_that_fails_while_it_is_examined_does_not_end_the_probe() -> None:
    class Gone(ToyAsker):
        def whole(self, fields: Mapping[str, Any], path: str = "") -> Any:
            raise ServerError("connection refused")

    report = probe.examine(Gone(toy=Toy()), probe.select(["protocol"]), seed=3)
    seen = {finding.check: finding for finding in report.findings}
    assert len(seen) == len(probe.select(["protocol"]))
    assert (seen["stop sequences"].outcome, "connection refused" in seen["stop sequences"].received) == ("fail", True)


@pytest.mark.parametrize("fields", [{"top_k": 7, "chat_template_kwargs": {"enable_thinking": False}}, {}])
def test_further_fields_are_in_all_requests(fields: dict[str, Any]) -> None:
    with FakeServer(answering(Toy(), Fault())) as server:
        checks = ("copied text", "writing and reading", "later cuts")
        product.probe(server.base_url, checks=checks, seed=1, extra_body=fields)
        sent = [request for request in server.requests if request.method == "POST"]
    assert {request.json.get("top_k") for request in sent} == ({7, 2} if fields else {None, 2})
    chats = [request.json for request in sent if request.path.endswith("/chat/completions")]
    switches = {body.get("chat_template_kwargs", {}).get("enable_thinking") for body in chats}
    assert switches == ({False} if fields else {None})


def thinking(_asked: Body, content: bytes) -> bytes:
    """All text of a chat comes in a field that no client reads."""
    return content.replace(b'{"content": "', b'{"thinking": "').replace(b', "content": "', b', "thinking": "')


def test_a_field_that_is_not_read_is_named_and_no_check_accuses_by_texts(tmp_path: Path) -> None:
    checks = "reply text,streaming,reasoning,seeds"
    with FakeServer(answering(Toy(), fault(answer=thinking))) as odd, FakeServer(answering(Toy(), Fault())) as plain:
        words = ("--checks", checks, "--quiet", "--json")
        reports = [json.loads(harness(tmp_path, "probe", server.base_url, *words).out) for server in (odd, plain)]
    ill, well = ({one["check"]: one for one in report["findings"]} for report in reports)
    assert ill["reply text"]["outcome"] == "warn"
    assert "a field of the message that is not read: thinking" in ill["reply text"]["received"]
    assert {name for name, one in ill.items() if one["outcome"] != "untested"} == {"reply text"}
    assert "thinking" in ill["reasoning"]["received"]
    assert {one["outcome"] for name, one in well.items() if name != "reasoning"} == {"pass"}


# ---- keys


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--api-key-env", "UNSET"), "--api-key-env: the environment variable UNSET is missing or empty"),
        (("--api-key-env", "key-typed"), "--api-key-env: the environment variable of that name is missing or empty"),
    ],
)
def test_a_named_variable_that_is_not_set_is_refused_before_a_check(
    tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    with FakeServer(answering(Toy(), Fault())) as server:
        done = harness(tmp_path, "probe", server.base_url, *words, extra={"OPENAI_API_KEY": "key-shared"})
        assert not [request for request in server.requests if request.method == "POST"]
    assert done.code == 2
    assert sentence in done.err
    assert "key-typed" not in done.err


# ---- fields that a server rejects


def asker(fault: Fault, **extra_body: Any) -> ToyAsker:
    toy = Toy(weights="3", spread=1.0, chance=random.Random(5))
    return ToyAsker(toy=toy, fault=fault, asker=Asker(model="toy", spelling=Spelling(extra_body=extra_body)))


def found(server: ToyAsker, *checks: str) -> dict[str, Finding]:
    return {finding.check: finding for finding in probe.examine(server, probe.select(checks), seed=11).findings}


def test_refused_streams_accuse_nobody_and_broken_ones_do() -> None:
    seen = found(asker(rejects("stream_options")), "streaming", "finished streams")
    assert {finding.outcome for finding in seen.values()} == {"untested"}, seen
    assert "the server rejected" in seen["streaming"].received


def test_a_server_that_rejects_a_field_is_probed_without_it_by_drop(tmp_path: Path) -> None:
    toy, checks = Toy("3", 1.0, chance=random.Random(5)), "seeds,later draws at 0.5"
    with FakeServer(answering(toy, rejects("seed"))) as server:
        words = f"probe {server.base_url} --seed 11 --quiet --checks".split()
        refused = harness(tmp_path, *words, checks)
        done = harness(tmp_path, *words, checks, "--drop", "seed", "--json")
    assert (refused.code, "omit the field with --drop FIELD" in refused.out, "FAIL" in refused.out) == (
        2,
        True,
        False,
    )
    with FakeServer(answering(Toy(), rejects("model"))) as server:  # no name of a model is refused by that
        unanswered = harness(tmp_path, "probe", server.base_url, "--quick", "--json")
    report = json.loads(unanswered.out)
    assert unanswered.code != 0
    assert "no request succeeded: rejected: HTTP 400" in report["ended"]
    assert "pass" not in {finding["outcome"] for finding in report["findings"]}
    seen = {finding["check"]: finding for finding in json.loads(done.out)["findings"]}
    outcomes = {"later draws at 0.5": "pass", "seeds": "untested"}
    assert {check: finding["outcome"] for check, finding in seen.items()} == outcomes, seen
    assert "`drop` removes the field seed from all requests" in seen["seeds"]["received"]


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_empty_replies_are_counted_by_one_check_and_mislead_no_other(share: float) -> None:
    seen = found(asker(empties_some(share)), "protocol", "sampling")
    accused = {check: finding.received for check, finding in seen.items() if finding.outcome == "fail"}
    assert accused.keys() == {"empty replies"}, accused
    assert "were empty with finish_reason `stop`" in accused["empty replies"]


def test_a_prompt_that_only_empty_replies_answer_is_the_models_own_silence() -> None:
    seen = found(asker(empties(lambda body: "virus" in str(body["messages"]))), "empty replies")["empty replies"]
    assert (seen.outcome, seen.received) == (
        "pass",
        "no empty reply to a prompt that produced text in other requests",
    )


# ---- servers that limit, fail or leave


def test_a_probe_waits_where_requests_are_limited_and_loses_none(tmp_path: Path) -> None:
    limited = sound_but(lambda n: refusal(429, "60 a minute", retry_after="0.2") if n % 5 == 0 else None)
    with FakeServer(limited) as mine:
        done = harness(
            tmp_path, "probe", mine.base_url, "--checks", "writing and reading,copied text,model name", "--quiet"
        )
    assert done.code == 0, done.out
    for said in ("median of 10 tokens", "3 passed, 0 with a warning, 0 could not be tested"):
        assert said in done.out


@pytest.mark.parametrize(
    ("status", "words", "headers"),
    [(429, "60 requests per day", {"retry_after": "3600"}), (402, "insufficient balance", {})],
)
@pytest.mark.parametrize("n", [0, 5])
def test_a_refusal_for_good_ends_the_probe_and_is_no_answer_to_any_check(
    tmp_path: Path, n: int, status: int, words: str, headers: dict[str, str]
) -> None:
    with FakeServer(sound_but(lambda i: refusal(status, words, **headers) if i > n else None)) as mine:
        done = harness(tmp_path, "probe", mine.base_url, "--quick", "--quiet", "--seed", "1", "--json")
    report = json.loads(done.out)
    assert (done.code, words in report["ended"]) == (2, True)
    assert {one["outcome"] for one in report["findings"]} <= {"pass", "untested"}


def test_a_server_that_goes_away_is_named_and_accused_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_get, "MAX_WAIT_SECONDS", 0.0)
    with FakeServer(sound_but(lambda n: server.stop() if n > 6 else None)) as server:
        words = ("--checks", "added words,usage,stop sequences,messages,temperature 0", "--seed", "1", "--quiet")
        done = harness(tmp_path, "probe", server.base_url, *words)
    assert done.code == 2, done.out
    assert "NOT finished, the probe stopped" in done.out
    assert "FAIL" not in done.out


@pytest.mark.parametrize(("n_lost", "outcome"), [(0, "pass"), (1, "pass"), (5, "untested"), (10, "untested")])
def test_lost_places_are_named_and_more_than_a_tenth_are_too_many(tmp_path: Path, n_lost: int, outcome: str) -> None:
    first = 1 + len(sampling.RAW_TEXTS)  # of the texts that are read
    odd = sound_but(lambda n: refusal(500, "out of memory") if first <= n < first + n_lost else None, RAW)
    with FakeServer(odd) as mine:
        words = ("--checks", "writing and reading", "--quiet", "--json")
        (finding,) = json.loads(harness(tmp_path, "probe", mine.base_url, *words).out)["findings"]
    assert finding["outcome"] == outcome, finding["received"]
    assert bool(re.search(rf"{n_lost} of \d+ requests returned no result", finding["received"])) == bool(n_lost)
    assert ("out of memory" in finding["received"]) == bool(n_lost)


@pytest.mark.parametrize("check", ["copied text", "later cuts"], ids=["in a stream", "in many replies at once"])
def test_a_probe_that_is_stopped_has_told_its_findings(tmp_path: Path, check: str) -> None:
    under_way, ends = threading.Event(), threading.Event()

    def stall(n: int) -> None:
        if n > 2:  # behind the two requests of the first check
            under_way.set()
            ends.wait(PATIENCE_SECONDS)

    with FakeServer(sound_but(stall)) as mine:
        run = start(tmp_path, ["probe", mine.base_url, "--checks", f"model name,{check}", "--seed", "1"])
        assert under_way.wait(PATIENCE_SECONDS)
        run.send_signal(signal.SIGINT)
        time.sleep(0.5)  # the requests under way in threads of their own end before the process does
        ends.set()
        _, err = run.communicate(timeout=PATIENCE_SECONDS)
    assert (run.returncode, "probe: model name: " in err) == (130, True), err
    assert "stopped by SIGINT; use --checks to run the remaining checks" in err


@pytest.mark.parametrize(("seconds", "outcome"), [("0.2", "untested"), ("60", "pass")])
def test_a_probe_waits_for_a_busy_server_as_long_as_asked(tmp_path: Path, seconds: str, outcome: str) -> None:
    def busy(request: Request) -> Iterable[Step]:
        pause = [Pause(0.6)] if request.method == "POST" else []
        return [*pause, *answering(Toy(), Fault())(request)]

    with FakeServer(busy) as server:
        words = ("--checks", "reply text", "--timeout", seconds, "--json", "--quiet")
        done = harness(tmp_path, "probe", server.base_url, *words)
    assert [one["outcome"] for one in json.loads(done.out)["findings"]] == [outcome], done
