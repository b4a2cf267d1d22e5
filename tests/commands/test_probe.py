"""The command `harness probe`, its keys, and servers that limit, reject, leave or send nothing.

For: harness.cli.probe, harness.probes, harness.probes.prompts, harness.probes.sampling, harness.probes.calls.
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
from harness.client.request_builder import Asker
from harness.client.request_fields import Spelling
from harness.core import http_get
from harness.core.errors import ServerError, UsageError
from harness.core.literals import ApiName
from harness.options.probing import ProbeOptions
from harness.probes import likelihood, probe, sampling
from harness.probes.findings import Finding, ProbeReport
from harness.probes.prompts import Shift, shift_of
from harness.probes.tested_server import listed
from harness.testing import FakeServer, Pause, Request, Said, Step, http, serving
from server_launchers.lifecycle.launch import RunningServer
from tests.commands import toy_model
from tests.commands.calling_model import FAULTS as CALL_FAULTS
from tests.commands.calling_model import HEALTHY, MARKED, PROSE, Asked, CallingServer, Change, honest
from tests.commands.toy_faults import (
    FAULTS,
    MISLEADING,
    SOUND,
    deaf_to_the_tail,
    empties,
    empties_some,
    fault,
    rejects,
    silent,
    undercounts,
    unfinished,
    unlisted,
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
    assert ill.code == 1
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
        def unstreamed(self, fields: Mapping[str, Any], path: str = "") -> Any:
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
def test_an_unset_variable_is_refused_before_a_check(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
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
    assert (refused.code, "omit the field with --drop FIELD" in refused.out, "FAIL" in refused.out) == (2, True, False)
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
    assert (seen.outcome, seen.received) == ("pass", "no empty reply to a prompt that produced text in other requests")


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
def test_a_final_refusal_ends_a_probe(tmp_path: Path, n: int, status: int, words: str, headers: dict[str, str]) -> None:
    with FakeServer(sound_but(lambda i: refusal(status, words, **headers) if i > n else None)) as mine:
        done = harness(tmp_path, "probe", mine.base_url, "--quick", "--quiet", "--seed", "1", "--json")
    report = json.loads(done.out)
    assert (done.code, words in report["ended"]) == (2, True)
    assert {one["outcome"] for one in report["findings"]} <= {"pass", "untested"}


def test_a_server_that_disappears_is_named_and_not_flagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


# -- faults of sampling and prompts ------------------------------------------------------------------------------------


def findings(
    fault: Fault, checks: tuple[str, ...], noise: float = 0.003, weights: int = 3, seed: int = 11
) -> dict[str, Finding]:
    toy = Toy(weights=str(weights), spread=1.0, noise=noise, chance=random.Random(5))
    report = probe.examine(ToyAsker(toy=toy, fault=fault), probe.select(checks), seed=seed)
    return {finding.check: finding for finding in report.findings}


def plain(fault: Fault, check: str) -> Finding:
    """The finding of one check about the plain toy behind this fault."""
    (finding,) = probe.examine(ToyAsker(toy=Toy(), fault=fault), probe.select([check])[:1], seed=1).findings
    return finding


def assert_named(fault: Fault, report: dict[str, Finding]) -> None:
    odd = {check: finding.received for check, finding in report.items() if finding.outcome in ("fail", "warn")}
    assert set(fault.finds) <= odd.keys(), {check: report[check].received for check in fault.finds}
    assert any(fault.says in received for received in odd.values()), odd


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_named(name: str) -> None:
    fault = FAULTS[name]()
    assert_named(fault, findings(fault, fault.finds))


def test_a_sound_server_passes_every_check() -> None:
    report = findings(Fault(), ())
    assert {check for check, one in report.items() if one.outcome in ("fail", "warn")} == set()
    # The toy neither thinks nor shows its prompts.
    untested = {check for check, one in report.items() if one.outcome == "untested" and one.group != "calls"}
    assert untested <= {"reasoning", "prompt"}
    assert {one.outcome for one in report.values() if one.group == "calls"} == {"untested"}, "the toy takes no tools"
    assert all(one.sent and one.received and one.why and one.fix for one in report.values())


def test_the_checks_cost_what_they_are_said_to_cost() -> None:
    assert len(probe.CHECKS) == 25
    assert sum(check.tokens for check in probe.CHECKS if check.quick) <= 6_000
    assert sum(check.tokens for check in probe.CHECKS) <= 20_000


def test_a_word_whose_effect_drowns_in_noise_is_not_called_lost() -> None:
    seen = findings(Fault(), ("context",), noise=0.5)["context"]
    assert (seen.outcome, "repeated requests vary too much" in seen.received) == ("untested", True), seen.received
    assert findings(Fault(), ("context",))["context"].outcome == "pass"


def test_a_stream_is_not_compared_with_whole_replies_that_never_come_twice() -> None:
    noisy = findings(Fault(), ("streaming",), noise=0.5)["streaming"]
    assert (noisy.outcome, "all differ" in noisy.received) == ("untested", True), noisy.received
    still = findings(FAULTS["an event of the stream dropped"](), ("streaming",), noise=0.02)["streaming"]
    assert still.outcome == "fail", still.received


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("stop sequences ignored", 22),  # the greedy story is full stops alone
        ("an event of the stream dropped", 22),
        ("a decode kernel off by 0.3", 22),  # 0.014 nats per token
    ],
)
def test_a_fault_is_named_behind_a_model_that_nearly_hides_it(name: str, weights: int) -> None:
    fault = FAULTS[name]()
    report = findings(fault, fault.finds, noise=0.003 * (weights % 2), weights=weights, seed=10_000 * weights)
    assert_named(fault, report)
    honest = findings(Fault(), fault.finds, noise=0.003 * (weights % 2), weights=weights, seed=10_000 * weights)
    assert {check: finding.outcome for check, finding in honest.items()} == dict.fromkeys(fault.finds, "pass")


@pytest.mark.parametrize("name", SOUND)
def test_an_odd_but_sound_server_is_not_accused(name: str) -> None:
    checks = ("protocol", "messages", "added words", "later draws at 0.5", "writing and reading", "context")
    report = findings(SOUND[name](), checks, noise=0.02)
    assert {check: finding.received for check, finding in report.items() if finding.outcome == "fail"} == {}


MISLED = ("protocol", "temperature 0", "seeds")


@pytest.mark.parametrize("name", MISLEADING)
def test_a_fault_that_misleads_other_checks_is_named_and_no_other_is(name: str) -> None:
    fault = MISLEADING[name]()
    report = findings(fault, MISLED)
    assert_named(fault, report)
    accused = {check: item.received for check, item in report.items() if item.outcome in ("fail", "warn")}
    assert accused.keys() == set(fault.finds), accused


def test_no_check_reads_texts_that_did_not_come() -> None:
    report = findings(silent(), MISLED)
    assert {check for check, item in report.items() if item.outcome in ("fail", "warn")} == set()
    for check in ("temperature 0", "seeds", "streaming"):
        if check in report:
            assert (report[check].outcome, "had no text" in report[check].received) == ("untested", True), check
    assert report["reply text"].outcome == "untested"


def test_a_single_unfinished_stream_is_a_warning() -> None:
    of_checks = plain(unfinished(8), "finished streams")
    assert (of_checks.outcome, of_checks.received) == ("warn", "1 of 8 streams ended without a finish reason")
    assert plain(unfinished(4), "finished streams").outcome == "fail"


def test_a_setting_is_called_rejected_only_if_requests_work_without_it() -> None:
    hidden, cut = (plain(rejects(field), "later cuts") for field in ("logprobs", "top_k"))
    assert hidden.outcome == "untested", hidden.received
    assert "rejected even without these settings: HTTP 400: " in hidden.received, hidden.received
    assert "top_k" not in hidden.received
    assert "top_k is rejected (Unrecognized request argument supplied: top_k)" in cut.received
    assert "top_p is applied" in cut.received


def test_a_name_of_no_check_is_answered_by_near_names_or_by_all() -> None:
    with pytest.raises(UsageError, match=r"no such check\. Did you mean context\?"):
        probe.select(["contxet"])
    with pytest.raises(UsageError, match=r"The groups are protocol, .* The checks are reply text, "):
        probe.select(["xyzzy"])


def test_usage_is_untested_without_log_probabilities_if_replies_end_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy_model, "NATURAL", 10)
    for odd, outcome in (
        (fault(request=unlisted), "untested"),
        (Fault(), "pass"),
        (undercounts(0.5), "warn"),
        (undercounts(3, listed=False), "warn"),
        (undercounts(0.5, listed=False), "untested"),
    ):
        usage = plain(odd, "usage")
        assert usage.outcome == outcome, usage.received


def test_a_server_that_samples_at_temperature_0_is_not_accused() -> None:
    for hot in (FAULTS["temperature always 1"](), Fault()):
        seen = plain(hot, "writing and reading")
        assert (seen.outcome, "temperature 0 is not greedy" in seen.received) == (
            ("untested", True) if hot.finds else ("pass", False)
        ), seen.received


def noisy(top: dict[str, float], rng: random.Random, sd: float) -> dict[str, float]:
    return {token: value + rng.gauss(0, sd) for token, value in top.items()}


def test_an_effect_is_told_from_the_noise_of_repeats() -> None:
    rng = random.Random(2)
    top = {str(i): -0.3 * i - 1 for i in range(20)}
    moved = {token: value + rng.gauss(0, 0.3) for token, value in top.items()}
    assert shift_of([top, top], [top]).ratio == 0
    assert shift_of([top, top], [moved]).ratio == math.inf
    none = [shift_of([noisy(top, rng, 0.02) for _ in range(2)], [noisy(top, rng, 0.02)]).ratio for _ in range(200)]
    some = [shift_of([noisy(top, rng, 0.02) for _ in range(2)], [noisy(moved, rng, 0.02)]).ratio for _ in range(200)]
    assert max(none) < 8 < min(some)


def test_a_missing_effect_counts_only_where_a_usual_one_would_show() -> None:
    nothing, some = Shift(0.01, 0.01, 0.01), Shift(0.05, 0.01, 0.01)
    assert nothing.hides_none([Shift(1.0, 0.01, 0.01)])
    assert not nothing.hides_none([]), "nothing was seen elsewhere"
    assert not nothing.hides_none([Shift(0.02, 0.01, 0.01)]), "nothing was seen elsewhere, either"
    assert not nothing.hides_none([some]), "an effect somewhat smaller than elsewhere would not show"
    assert not Shift(0.02, 0.01, 0.01).hides_none([Shift(1.0, 0.01, 0.01)]), "an F ratio of 4 is undecided"
    assert Shift(0.0, 0.0, 0.0).hides_none([]), "without noise every effect would show"


def test_a_missing_tail_is_lost_at_low_noise_and_untested_at_high_noise() -> None:
    small = findings(deaf_to_the_tail(0.003), ("context",))["context"]
    assert (small.outcome, "its tail never reached" in small.received) == ("fail", True), small.received
    large = findings(deaf_to_the_tail(), ("context",))["context"]
    assert (large.outcome, "words at the tail" in large.received) == ("untested", True), large.received


def test_log_probabilities_at_a_floor_are_left_out() -> None:
    assert listed({"a": -0.5, "b": -2.0, "c": -5.0, "d": -5.0, "e": -5.0}) == {"a": -0.5, "b": -2.0}
    assert len(listed({"a": -0.5, "b": -2.0, "c": -2.0})) == 3
    assert listed({}) == {}


def test_the_first_token_shows_of_which_temperature_log_probabilities_are() -> None:
    warm = {str(i): -0.5 * i - 1 for i in range(6)}
    cold = {name: 2 * value for name, value in warm.items()}
    assert sampling.stated_temperature(warm, warm, 0.5) == 1.0
    assert [sampling.stated_temperature(dict([*cold.items()][:n]), warm, 0.5) for n in (1, 2, 6)] == [None, 0.5, 0.5]
    assert sampling.stated_temperature({name: 5 * value for name, value in warm.items()}, warm, 0.5) is None


# -- faults of calls ---------------------------------------------------------------------------------------------------


APIS: tuple[ApiName, ...] = ("chat", "responses", "messages")


def probed(change: Change, engine: str | None, api: ApiName = "chat", seed: int = 1) -> ProbeReport:
    server = CallingServer(change=change, engine=engine, chance=random.Random(seed), calls_api=api)
    return probe.examine(server, probe.select(["calls"]), seed=seed)


def flagged(report: ProbeReport) -> dict[str, str]:
    return {one.check: one.received for one in report.findings if one.outcome in ("fail", "warn")}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", CALL_FAULTS)
def test_each_fault_is_found_by_its_check_alone(name: str, api: ApiName) -> None:
    check, engine, change = CALL_FAULTS[name]
    report = probed(change, engine, api)
    assert [*flagged(report)] == [check]
    assert not (check == "parsed calls" and report.passed), "who asks about calls is answered about calls"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_server_is_not_flagged(name: str, api: ApiName) -> None:
    engine, change = HEALTHY[name]
    for seed in range(3):
        report = probed(change, engine, api, seed)
        assert flagged(report) == {}
    refuses = name.startswith("tools ")
    assert report.requests == 1 if refuses else report.requests > 1
    assert report.tested == (not refuses and not name.startswith(("never calls", "vLLM, whose")))


@pytest.mark.parametrize(
    ("engine", "flag"),
    [
        ("vllm", "--enable-auto-tool-choice --tool-call-parser"),
        ("sglang", "--tool-call-parser"),
        (None, "llama.cpp: a chat template"),
    ],
)
def test_the_flag_of_the_engine_is_named(engine: str | None, flag: str) -> None:
    received = flagged(probed(CALL_FAULTS["calls never parsed"][2], engine))["parsed calls"]
    assert flag in received
    assert ("--enable-auto" in received) == (engine != "sglang")
    assert ("llama.cpp" in received) == (engine is None)


def test_a_reply_that_states_a_call_and_has_none_is_a_lost_call() -> None:
    lost = probed(lambda asked, said: Said("", finish="tool_calls") if "tools" in asked.body else said, None)
    assert "no call, but 'tool_calls' in the reply" in flagged(lost)["parsed calls"]


@pytest.mark.parametrize("api", APIS)
def test_the_command_checks_calls_by_an_api(tmp_path: Path, api: ApiName) -> None:
    def reply(request: Request) -> Said:
        return honest(Asked(request.json, random.Random(1)))

    with FakeServer(serving(reply, "toy")) as server:
        words = ("--checks", "calls", "--api", api, "--json", "--quiet")
        done = harness(tmp_path, "probe", server.base_url, *words)
        posted = [request for request in server.requests if request.method == "POST"]
    assert {one["outcome"] for one in json.loads(done.out)["findings"]} == {"pass"}, done.out
    assert {request.api for request in posted} == {api}
    assert len(posted) <= 12


@pytest.mark.parametrize(("reply", "code"), [(MARKED, 1), (PROSE, 4), (None, 0)])
def test_a_probe_of_calls_exits_by_what_it_says_of_calls(tmp_path: Path, reply: str | None, code: int) -> None:
    def answer(request: Request) -> Said:
        said = honest(Asked(request.json, random.Random(1)))
        return said if reply is None or "tools" not in request.json else Said(reply)

    with FakeServer(serving(answer, "toy")) as server:
        done = harness(tmp_path, "probe", server.base_url, "--checks", "calls", "--quiet")
        both = harness(tmp_path, "probe", server.base_url, "--checks", "calls,model name", "--quiet")
    assert (done.code, both.code) == (code, code), done.out
    verdict = "cannot say anything about calls" if code == 4 else "found a problem that would invalidate a score"
    assert (verdict in both.out.splitlines()[0], both.out) == (True, both.out)
    # Beside all others, a call that is not parsed leaves the scores of text as they are.
    assert [check.decides for check in probe.select() if check.group == "calls"] == [False] * 7


def test_completions_offer_no_tools_and_a_refusing_server_is_asked_once(tmp_path: Path) -> None:
    refusal = [http(400, {"error": {"message": "this model does not support tools"}})]
    with FakeServer(serving(lambda _: refusal, "toy")) as server:
        done = {
            api: json.loads(
                harness(tmp_path, "probe", server.base_url, "--checks", "calls", "--api", api, "--json").out
            )
            for api in ("completions", "chat")
        }
        assert sum(request.method == "POST" for request in server.requests) == 1
    assert done["completions"]["findings"][0]["received"] == "api=completions does not support tools"
    assert "this model does not support tools" in done["chat"]["findings"][0]["received"]


@pytest.mark.parametrize(("status", "why"), [(401, "the request failed"), (400, "the server does not accept tools")])
def test_only_a_refused_request_shows_that_tools_are_refused(tmp_path: Path, status: int, why: str) -> None:
    with FakeServer(serving([http(status, {"error": {"message": "no"}})], "toy")) as server:
        done = harness(tmp_path, "probe", server.base_url, "--checks", "parsed calls", "--json", "--quiet")
    (found,) = json.loads(done.out)["findings"]
    assert (found["outcome"], found["received"].startswith(f"{why}: HTTP {status}")) == ("untested", True), found
