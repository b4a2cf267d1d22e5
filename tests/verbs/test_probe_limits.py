"""A probe of a server that limits requests waits as a run does, and no check takes such a refusal for an answer. A
probe never costs more than its budget.

For: harness.verbs.probe.pacing, harness.verbs.probe.probed_endpoint, harness.verbs.probe.ledger.
"""

from __future__ import annotations

import json
import random
import re
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import harness as product
from harness.client.facts import page
from harness.client.facts.page import NoAnswer
from harness.client.protocol.reply import RequestFailed
from harness.client.spelling import TEMPLATE_TOKENS
from harness.core import http_get
from harness.verbs.probe import ledger, pacing, probed_endpoint
from tests.faults.server import RESET, FaultServer, Request, Step, http
from tests.patience import PATIENCE_SECONDS
from tests.system.command import Result, harness, start
from tests.verbs.toy_model import Fault, Toy, answering

Answer = Callable[[Request], Iterable[Step]]


def sound() -> Answer:
    return answering(Toy(chance=random.Random(2)), Fault())


class Limited:
    """A sound server that takes `n` requests in each half second and refuses the others with status 429."""

    def __init__(self, n: int = 30) -> None:
        self.n, self.well = n, sound()
        self.n_refused, self.times = 0, list[float]()
        self.lock = threading.Lock()

    def __call__(self, request: Request) -> Iterable[Step]:
        if request.method == "POST":
            with self.lock:
                now = time.monotonic()
                self.times = [moment for moment in self.times if now - moment < 0.5]
                if len(self.times) >= self.n:
                    self.n_refused += 1
                    return [http(429, {"error": {"message": "60 requests per minute"}}, retry_after="0.5")]
                self.times.append(now)
        return self.well(request)


class Ends:
    """A sound server that answers `n` requests and then refuses all with this status and Retry-After."""

    def __init__(self, n: int, status: int, words: str, **headers: str) -> None:
        self.n, self.well, self.n_posted = n, sound(), 0
        self.refusal = http(status, {"error": {"message": words}}, **headers)

    def __call__(self, request: Request) -> Iterable[Step]:
        self.n_posted += request.method == "POST"
        return [self.refusal] if request.method == "POST" and self.n_posted > self.n else self.well(request)


def probed(tmp_path: Path, server: Answer, *words: str) -> tuple[Result, dict[str, Any]]:
    """The command's result, and its report as JSON from a second probe."""
    with FaultServer(server) as mine:
        done = harness(tmp_path, "probe", mine.base_url, *words, "--quiet", "--seed", "1", "--json")
    return done, json.loads(done.out)[0]


def test_a_probe_waits_where_requests_are_limited_and_loses_none(tmp_path: Path) -> None:
    limited = Limited()
    with FaultServer(sound()) as theirs, FaultServer(limited) as mine:
        words = ("--reference", theirs.base_url, "--checks", "weights,greedy replies,ends,model name", "--quiet")
        done = harness(tmp_path, "probe", mine.base_url, *words)
    assert done.code == 0, done.out
    assert "96 of 96 places" in done.out
    assert "8 of 8 replies begin" in done.out
    assert "3 sound, 0 with a warning, 1 could not be tested" in done.out  # `ends`: its reply stops early
    # A few refusals tell the pace; the other requests keep to it.
    assert 0 < limited.n_refused < 30
    assert f"({limited.n_refused} of them refused by a limit, HTTP 429, and sent again)" in done.out


def test_without_a_limit_nothing_is_said_of_one(tmp_path: Path) -> None:
    with FaultServer(sound()) as mine:
        done = harness(tmp_path, "probe", mine.base_url, "--checks", "ends,model name", "--quiet")
    assert "refused by a limit" not in done.out


ENDS = {
    "an hour's wait": (429, "60 requests per day", {"retry_after": "3600"}),
    "an empty account": (402, "insufficient balance", {}),
    "a spent quota": (429, "You exceeded your current quota", {}),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("n", [0, 12])
def test_a_refusal_for_good_is_no_answer_to_any_check(tmp_path: Path, name: str, n: int) -> None:
    status, words, headers = ENDS[name]
    server = Ends(n, status, words, **headers)
    done, report = probed(tmp_path, server)
    untested = [finding for finding in report["findings"] if words in finding["came"]]
    # Each check is untested, those that wait for a refusal (a wrong name, a prompt too long) among them.
    assert {"model name", "too long a prompt", "refused parameters", "context", "tool calls"} <= {
        finding["check"] for finding in untested
    }
    assert {finding["outcome"] for finding in untested} == {"untested"}
    assert not [finding for finding in report["findings"] if finding["outcome"] in ("spoils", "warns")]
    # Nothing is asked after the refusal but what was under way.
    assert server.n_posted <= n + pacing.AT_ONCE
    if not n:
        assert done.code == 2


@pytest.mark.parametrize("budget", [(), ("--budget", "2000")])
def test_a_refusal_for_good_is_said_once_with_the_checks_that_it_leaves(
    tmp_path: Path, budget: tuple[str, ...]
) -> None:
    with FaultServer(Ends(6, 429, "You exceeded your current quota")) as mine:
        words = ("probe", mine.base_url, "--checks", "streaming,usage,length,stop texts,ends,long stream,top_k")
        done = harness(tmp_path, *words, "--quiet", *budget)
    assert done.code == 2
    table, rest = " ".join(done.out.split()).split(": the server is asked no more: ")
    assert rest == (
        "HTTP 429: You exceeded your current quota; --checks 'stop texts,ends,long stream,top_k' makes the rest"
    )
    assert "NOT finished, since the server answers no more; nothing that was tested spoils a score (3 sound" in table
    # The check that was under way has a row, the others have none.
    assert "server took no more requests" in table
    assert "top_k" not in table
    assert "budget left out" not in done.out


def test_a_check_that_is_cut_off_says_how_many_replies_it_has(tmp_path: Path) -> None:
    with FaultServer(sound()) as theirs:
        words = ("--reference", theirs.base_url, "--checks", "weights")
        _, report = probed(tmp_path, Ends(11, 429, "60 requests per day", retry_after="3600"), *words)
    (finding,) = report["findings"]
    assert finding["outcome"] == "untested"
    assert "after 11 replies the server took no more requests: HTTP 429: 60 requests per day" in finding["came"]


def test_a_server_that_goes_away_is_named_with_the_checks_left_and_accused_of_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probed_endpoint, "BACK_PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(http_get, "MAX_WAIT_SECONDS", 0.0)
    checks = ["added words", "streaming", "several choices", "greedy replies"]
    for who, n in (("the server", 3), ("the server", 8), ("the reference", 4)):
        leaving: list[FaultServer] = []

        def answer(request: Request, n: int = n, well: Answer = sound(), servers: list[FaultServer] = leaving) -> Any:  # noqa: B008
            if sum(one.method == "POST" for one in servers[0].requests) > n:
                servers[0].stop()
            return well(request)

        with FaultServer(answer) as one, FaultServer(sound()) as two:
            leaving.append(one)
            mine, theirs = (one, two) if who == "the server" else (two, one)
            words = ("--reference", theirs.base_url, "--checks", ",".join(checks), "--seed", "1", "--quiet")
            done = harness(tmp_path, "probe", mine.base_url, *words, *(("--json",) if n != 3 else ()))
        assert done.code == 2, done.out
        if n == 3:
            assert "NOT finished, since the server answers no more; nothing that was tested spoils" in done.out
            assert re.search(r"asked no more: no server answers at .* --checks '.*greedy.*' makes the rest\n", done.out)
            continue
        (report,) = json.loads(done.out)
        assert report["ended_by"] == who
        assert "no server answers" in report["ended"]
        assert {finding["outcome"] for finding in report["findings"]} <= {"sound", "untested", "warns"}
        # Every other check was made to its end.
        made = {finding["check"] for finding in report["findings"] if finding["outcome"] != "untested"}
        assert {*checks} <= made | {*report["unfinished"]}
        assert "greedy replies" in report["unfinished"]


def test_a_server_that_answers_elsewhere_or_again_is_not_called_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    n_posted, get = 0, page.get

    def get_but_once(*arguments: Any, **given: Any) -> Any:
        nonlocal n_posted
        n_posted += given.get("content") is not None
        if given.get("content") is not None and n_posted == 3:
            raise NoAnswer("no server answers")
        return get(*arguments, **given)

    well = sound()
    with FaultServer(lambda request: [RESET] if b'"stream":true' in request.body else well(request)) as server:
        resets = product.probe(server.base_url, checks=["streaming", "several choices"])
        monkeypatch.setattr(page, "get", get_but_once)
        once = product.probe(server.base_url, checks=["several choices", "errors", "later draws"], seed=1)
    assert {finding.check: finding.outcome for finding in resets.findings}["streaming"] == "spoils"
    outcomes = {finding.check: finding.outcome for finding in once.findings}
    # The draws come in any order, and may be odd by chance.
    assert outcomes.pop("later draws") in ("sound", "untested")
    assert set(outcomes.values()) == {"sound"}
    assert (resets.ended_by, once.ended_by, once.unfinished) == ("", "", [])


class Fails:
    """A sound server that fails every request of raw text whose number is one of these, from 0."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.numbers, self.well, self.n, self.lock = set(numbers), sound(), 0, threading.Lock()

    def __call__(self, request: Request) -> Iterable[Step]:
        if request.method == "POST" and request.path.endswith("/v1/completions"):
            with self.lock:
                self.n += 1
                if self.n - 1 in self.numbers:
                    return [http(500, {"error": {"message": "out of memory"}})]
        return self.well(request)


@pytest.mark.parametrize(("n_lost", "outcome"), [(0, "sound"), (9, "sound"), (10, "untested"), (50, "untested")])
def test_lost_places_are_named_and_more_than_a_tenth_are_too_many(tmp_path: Path, n_lost: int, outcome: str) -> None:
    with FaultServer(sound()) as theirs:
        words = ("--reference", theirs.base_url, "--checks", "weights,draws")
        _, report = probed(tmp_path, Fails(range(1, 1 + n_lost)), *words)
    for finding in report["findings"]:
        assert finding["outcome"] == outcome
        assert (f"{n_lost} of 96 requests brought nothing to judge" in finding["came"]) == bool(n_lost)
        assert ("out of memory" in finding["came"]) == bool(n_lost)


def test_other_weights_are_seen_although_many_places_are_lost(tmp_path: Path) -> None:
    other = answering(Toy(weights="other", spread=0.5, chance=random.Random(2)), Fault())
    with FaultServer(other) as theirs:
        words = ("--reference", theirs.base_url, "--checks", "weights")
        _, report = probed(tmp_path, Fails(range(1, 49)), *words)
    (finding,) = report["findings"]
    assert finding["outcome"] == "spoils"
    assert "48 of 96 requests brought nothing to judge" in finding["came"]


def test_the_pace_ends_the_probe_after_its_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.client.address.endpoint import Endpoint

    monkeypatch.setattr(pacing, "PATIENCE_S", 1.0)
    pacer = pacing.Pacer(Endpoint(base_url="http://127.0.0.1:9/v1"))
    refusal = RequestFailed("rate_limited", "HTTP 429: slow down", status=429)
    begun = time.monotonic()
    n = 0
    while (ticket := pacer.enter()) is not None:
        n += 1
        pacer.leave(ticket, refusal)
    assert pacer.ended.startswith("HTTP 429: slow down, and no request is answered for ")
    assert n == pacer.n_refused > 1
    assert time.monotonic() - begun < 10


def test_each_refusal_is_counted_by_its_status(tmp_path: Path) -> None:
    with FaultServer(Ends(12, 402, "insufficient balance")) as mine:
        done = harness(tmp_path, "probe", mine.base_url, "--quiet", "--seed", "1", "--html", "page.html")
    assert "(1 of them refused for good: HTTP 402, the account is empty)" in done.out
    assert "HTTP 429" not in done.out
    assert "1 of them refused for good: HTTP 402" in (tmp_path / "page.html").read_text("utf-8")


class Silent:
    """A sound server that answers no further request after `n` of them: `under_way` is set, and it waits."""

    def __init__(self, n: int) -> None:
        self.n, self.well, self.n_posted = n, sound(), 0
        self.under_way, self.ends, self.lock = threading.Event(), threading.Event(), threading.Lock()

    def __call__(self, request: Request) -> Iterable[Step]:
        with self.lock:
            self.n_posted += request.method == "POST"
        if self.n_posted > self.n:
            self.under_way.set()
            self.ends.wait(PATIENCE_SECONDS)
        return self.well(request)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("checks", "n_answered"),
    [("usage,length,ends", 0), ("usage,length,temperature 1", 0), ("usage,length,temperature 1", 20)],
    ids=["in a stream", "in a whole reply", "in many replies at once"],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_probe_that_is_stopped_reports_its_finished_checks(
    tmp_path: Path, signum: signal.Signals, checks: str, n_answered: int, as_json: bool
) -> None:
    names = checks.split(",")
    with FaultServer(sound()) as well:
        finished = json.loads(harness(tmp_path, "probe", well.base_url, "--checks", "usage,length", "--json").out)[0]
    silent = Silent(finished["requests"] + n_answered)
    with FaultServer(silent) as mine:
        words = ("--checks", checks, "--seed", "1", *(["--json"] if as_json else []))
        run = start(tmp_path, ["probe", mine.base_url, *words])
        assert silent.under_way.wait(PATIENCE_SECONDS)
        run.send_signal(signum)
        # The requests under way in threads of their own end before the process does.
        time.sleep(0.5)
        silent.ends.set()
        out, err = run.communicate(timeout=PATIENCE_SECONDS)
    assert run.returncode == 128 + signum
    assert f"stopped by {signum.name}: 2 of 3 checks were finished, the others are untested" in err
    assert f"the others are untested; --checks {shlex.quote(names[2])} makes these." in err
    if as_json:
        (report,) = json.loads(out)
        assert {finding["check"]: finding["outcome"] for finding in report["findings"]} == {
            "usage": "sound", "length": "sound", names[2]: "untested",
        }  # fmt: skip
        assert report["tokens"] >= finished["tokens"]
    else:
        assert "stopped during this check" in out.replace("\n", " ")
        assert "nothing spoils a score (2 sound, 0 with a warning, 1 could not be tested)" in out
        assert n_answered or f"{finished['tokens']:,} tokens" in out


def test_a_probe_that_is_stopped_counts_the_checks_that_it_did_not_begin_in_one_line(tmp_path: Path) -> None:
    silent = Silent(0)
    with FaultServer(silent) as mine:
        run = start(tmp_path, ["probe", mine.base_url, "--checks", "usage,length,ends", "--seed", "1"])
        assert silent.under_way.wait(PATIENCE_SECONDS)
        # As `timeout -s INT` does.
        for _ in range(3):
            run.send_signal(signal.SIGINT)
            time.sleep(0.02)
        silent.ends.set()
        out, err = run.communicate(timeout=PATIENCE_SECONDS)
    assert run.returncode == 130
    assert "2 checks not begun, because the probe was stopped before this check\n" in out
    assert out.count("stopped before this check") == 1
    assert "stopped during this check" in out.replace("\n", " ")
    assert "; --checks usage,length,ends makes these." in err


# ---- the budget


class Billed(Fault):
    """Counts the true tokens of all replies.

    says: whether the replies state them. template: text that the server adds to each chat.
    """

    def __init__(self, *, says: bool, template: str = "") -> None:
        self.says, self.template, self.n_tokens = says, template, 0
        self.lock = threading.Lock()

    def request(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self.template or "messages" not in body:
            return body
        return {**body, "messages": [{"role": "system", "content": self.template}, *body["messages"]]}

    def answer(self, asked: Mapping[str, Any], content: bytes) -> bytes:
        stated = re.findall(rb'"total_tokens": ?(\d+)', content)
        with self.lock:
            self.n_tokens += int(stated[-1]) if stated else 0
        return content if self.says else content.replace(b'"usage"', b'"unsaid"')


@pytest.mark.parametrize("budget", [300, 1500, 4000])
@pytest.mark.parametrize("beside", [False, True])
def test_a_server_without_usage_costs_no_more_than_the_budget(tmp_path: Path, budget: int, beside: bool) -> None:
    fault = Billed(says=False)
    with FaultServer(answering(Toy(), fault)) as server, FaultServer(sound()) as reference:
        words = ["probe", server.base_url, "--budget", str(budget), "--seed", "1", "--json"]
        done = harness(tmp_path, *words, *(["--reference", reference.base_url] if beside else []))
    (report,) = json.loads(done.out)
    assert 0 < fault.n_tokens <= report["tokens"] <= budget
    assert report["bounded"] > 0
    assert report["left_out"]
    # A dear check that could not be finished is not begun; a few tokens do not pay for the first check of all.
    assert budget == 300 or not any(finding["came"].startswith("its next request") for finding in report["findings"]), (
        report
    )


@pytest.mark.parametrize(("budget", "made"), [(5000, False), (13_281, False), (13_600, True)])
def test_the_comparison_with_a_server_without_usage_is_begun_only_if_the_budget_covers_it(
    tmp_path: Path, budget: int, made: bool
) -> None:
    fault = Billed(says=False)
    with FaultServer(answering(Toy(), fault)) as server, FaultServer(sound()) as reference:
        words = ["probe", server.base_url, "--reference", reference.base_url, "--checks", "weights,draws"]
        done = harness(tmp_path, *words, "--budget", str(budget), "--quiet")
    needs = "not begun, each with about how many tokens it takes: weights (13,281), draws (13,281)\n"
    assert (needs in done.out, "nothing spoils a score (2 sound" in done.out) == (not made, made), done.out
    assert ("about 26,562 more tokens" in done.out) == (not made)
    assert "a part of the check" not in done.out


@pytest.mark.parametrize(("checks", "price"), [("weights,top_k", 280), ("ends,top_k", 1_800)])
def test_draws_are_priced_as_after_raw_text_once_a_check_has_seen_that_the_server_takes_it(
    tmp_path: Path, checks: str, price: int
) -> None:
    with FaultServer(sound()) as server, FaultServer(sound()) as reference:
        words = ["probe", server.base_url, "--reference", reference.base_url, "--checks", checks, "--quiet"]
        done = harness(tmp_path, *words, "--budget", "1900" if "weights" in checks else "500")
    assert f"not begun, each with about how many tokens it takes: top_k ({price:,})\n" in done.out


@pytest.mark.parametrize("says", [True, False])
def test_the_tokens_of_a_reference_server_are_stated_and_no_part_of_the_budget(tmp_path: Path, says: bool) -> None:
    mine, theirs = Billed(says=True), Billed(says=says)
    with FaultServer(answering(Toy(), mine)) as server, FaultServer(answering(Toy(), theirs)) as reference:
        words = ["probe", server.base_url, "--checks", "weights,greedy replies", "--budget", "5000"]
        beside = [*words, "--reference", reference.base_url]
        (report,) = json.loads(harness(tmp_path, *beside, "--json").out)
        shown = harness(tmp_path, *beside).out
        alone = harness(tmp_path, "probe", server.base_url, "--checks", "length").out
    assert report["tokens"] * 2 == mine.n_tokens - int(re.findall(r"([\d,]+) tokens, ", alone)[0].replace(",", ""))
    assert (report["reference_tokens"] * 2 == theirs.n_tokens) == says
    assert report["reference_tokens"] * 2 >= theirs.n_tokens
    assert (report["reference_bounded"] > 0) == (not says)
    assert f"on the reference: {'' if says else 'at most '}{report['reference_tokens']:,} tokens" in shown
    assert "on the reference" not in alone


def test_a_probe_without_stated_usage_says_how_sure_its_cost_is(tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Billed(says=False))) as server, FaultServer(sound()) as plain:
        words = ["--checks", "usage,length"]
        unsaid, said = (harness(tmp_path, "probe", one.base_url, *words) for one in (server, plain))
    assert re.search(r"at most \d+ tokens \(\d+ replies state no usage and count with the most possible\)", unsaid.out)
    assert "at most" not in said.out


@pytest.mark.parametrize("budget", [1000, 2000, 3437])
def test_a_check_that_costs_more_than_it_usually_does_is_given_up(tmp_path: Path, budget: int) -> None:
    fault = Billed(says=True, template="word " * 100)
    with FaultServer(answering(Toy(), fault)) as server:
        words = ["--checks", "length,ends,later draws", "--budget", str(budget), "--seed", "1", "--json"]
        (report,) = json.loads(harness(tmp_path, "probe", server.base_url, *words).out)
    assert report["tokens"] == fault.n_tokens <= budget
    assert report["bounded"] == 0
    given_up = [finding for finding in report["findings"] if finding["came"].startswith("its next request")]
    assert given_up or budget != 2000, "a check whose last requests do not fit"
    assert all(finding["check"] in report["left_out"] for finding in given_up)


def test_requests_at_once_are_held_to_what_is_left_of_the_budget() -> None:
    books = ledger.Ledger()
    books.budget = 400
    body = {"messages": [{"role": "user", "content": "four"}], "max_tokens": 50}
    first, second = books.reserve([body, body], "/chat/completions")
    assert first.tokens == 34 + TEMPLATE_TOKENS + 50
    waited = threading.Thread(target=lambda: books.drop(books.reserve([body], "/chat/completions")[0]), daemon=True)
    waited.start()
    time.sleep(0.05)
    assert waited.is_alive() == (first.tokens * 3 > 400)
    books.settle(first, 20, 5)
    waited.join(PATIENCE_SECONDS)
    assert not waited.is_alive()
    assert books.n_tokens == 25
    books.settle(second, None, None)
    # The prompt is known by now, the reply is not.
    assert (books.n_tokens, books.n_bounded) == (25 + second.tokens, 1)
    with pytest.raises(ledger.OverBudget, match="its next 9 requests could cost 630 tokens, and 227 are left"):
        books.reserve([body] * 9, "/chat/completions")
    assert len(books.reserve([body] * 3, "/chat/completions")) == 3
