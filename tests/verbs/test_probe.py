"""A sound server passes a probe, and behind each proxy that spoils something the check for it finds it.

For: harness.cli.probe, harness.verbs.probe.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness as product
from harness.asking.options import ProbeOptions
from harness.cli.terminal import PROSE_COLUMNS
from harness.client.asker import Asker
from harness.client.spelling import Spelling
from harness.verbs.probe import exact, league, probe, sampling
from harness.verbs.probe.counterparts import SavedReference
from harness.verbs.probe.findings import ProbeReport
from harness.verbs.probe.subject import STORY, Draws
from server_launchers.keeping.supervisor import RunningServer
from tests.faults.server import FaultServer, Request, http
from tests.system.command import harness
from tests.verbs.toy_model import FAULTS, Fault, Head, SaysStop, Temperature, Toy, ToyAsker, answering, between


def examined(fault: Fault | None = None, **toy: object) -> ProbeReport:
    asker = ToyAsker(Toy(chance=random.Random(5), **toy), fault or Fault())  # type: ignore[arg-type]
    return probe.examine(asker, probe.select(), seed=11)


def found(report: ProbeReport) -> dict[str, str]:
    """Checks that are not sound, with their outcome."""
    return {one.check: one.outcome for one in report.findings if one.outcome in ("spoils", "warns")}


def test_a_sound_server_passes_every_check() -> None:
    report = examined()
    assert found(report) == {}
    untested = {one.check for one in report.findings if one.outcome == "untested"}
    # The toy's story is shorter than the largest limit of `ends`.
    assert untested <= {"reasoning", "thinking switch", "effort", "prompt", "ends"}
    assert report.sound


class OnOnePath(Fault):
    """A gateway that multiplies the temperature of the requests of one path, and hides log-probabilities of chats."""

    def __init__(self, chat: bool, factor: float = 1.0, hides: bool = False) -> None:
        self.chat, self.factor, self.hides = chat, factor, hides

    def request(self, body: dict[str, Any]) -> dict[str, Any]:
        if ("messages" in body) is self.chat:
            body = {**body, "temperature": self.factor * body.get("temperature", 1.0)}
        return {**body, "logprobs": False} if self.hides and "messages" in body else body


def test_a_temperature_is_sound_only_by_draws_on_the_path_of_a_run() -> None:
    for fault, api, outcome, says in (
        (OnOnePath(True, 1.6), "chat", "spoils", "hotter than asked"),
        (OnOnePath(False, 1.6), "chat", "sound", "p = "),
        (OnOnePath(True, 1.6, hides=True), "chat", "untested", "by raw text only: a run asks by chat"),
        (OnOnePath(True, 1.6), "completions", "sound", "p = "),
    ):
        spelling = Spelling(api=api)  # type: ignore[arg-type]
        asker = ToyAsker(Toy(chance=random.Random(5)), fault, Asker(model="toy", spelling=spelling))
        seen = probe.examine(asker, probe.select(["temperature 1", "whole distribution"]), seed=11).findings
        assert (seen[0].outcome, says in seen[0].came) == (outcome, True), seen[0].came
        by_raw = "by raw text only" in seen[0].came
        assert not by_raw or "by raw text only: a run asks by chat" in seen[1].sent, seen[1].sent


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_by_its_check(name: str) -> None:
    fault = FAULTS[name]()
    asker = ToyAsker(Toy(chance=random.Random(5)), fault)
    report = probe.examine(asker, probe.select([*fault.finds, "temperature 1"]), seed=11)
    assert set(fault.finds) <= found(report).keys()


def test_draws_at_another_temperature_are_named_by_the_one_that_they_resemble() -> None:
    def came(fault: Fault) -> str:
        asker = ToyAsker(Toy(chance=random.Random(5)), fault)
        (finding,) = probe.examine(asker, probe.select(["temperature 1"]), seed=11).findings
        return finding.came

    words = re.search(r"the draws are like those of temperature ([\d.]+), colder than asked", came(Temperature()))
    assert words is not None
    assert float(words[1]) == pytest.approx(Temperature.factor, abs=0.05)
    assert "are like those" not in came(Fault())
    assert came(Fault()).endswith(", a fault up to 0.001")


def test_every_finding_says_what_it_is_about() -> None:
    asker = ToyAsker(Toy(chance=random.Random(5)), Temperature())
    for one in probe.examine(asker, probe.select(quick=True), seed=11).findings:
        assert all((one.sent, one.came, one.why, one.mend)), one.check


# ---- the command, over HTTP


def test_the_command_passes_a_sound_server_and_stops_at_a_spoilt_one(tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Fault())) as sound, FaultServer(answering(Toy(), Head())) as spoilt:
        well = harness(
            tmp_path, "probe", sound.base_url, "--checks", "length,context", "--html", "page.html",
            "--save-reference", "kept.json",
        )  # fmt: skip
        ill = harness(tmp_path, "probe", spoilt.base_url, "--checks", "context,streaming", "--json", "--quiet")
        both = harness(tmp_path, "probe", "--matrix", sound.base_url, spoilt.base_url, "--checks", "context")
    assert well.code == 0, well.out
    assert "nothing spoils a score" in well.out
    assert [line for line in well.err.splitlines() if line.startswith("probe: ")] == [
        "probe: length …", "probe: context …", "probe: whole context …", "probe: too long a prompt …"
    ]  # fmt: skip
    assert SavedReference.read(tmp_path / "kept.json").model == "toy"
    page = (tmp_path / "page.html").read_text()
    assert "too long a prompt" in page
    assert "<script" not in page
    assert "unsafe-inline" not in page
    assert ill.code == 4
    assert "probe:" not in ill.err
    assert re.search(r"/v1: 4 checks, about [\d,]+ tokens; this may take minutes", ill.err)
    outcomes = {one["check"]: one["outcome"] for one in json.loads(ill.out)[0]["findings"]}
    assert outcomes == {
        "streaming": "sound",
        "context": "spoils",
        "whole context": "untested",
        "too long a prompt": "spoils",
    }
    assert both.code == 4
    (row,) = [line for line in both.out.splitlines() if line.strip().startswith("context")]
    assert row.split() == ["context", "sound", "SPOILS"]


def test_a_league_keeps_a_look_at_each_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(league, "DRAWS", 3)
    with FaultServer(answering(Toy(), Fault())) as one, FaultServer(answering(Toy(), Fault())) as two:
        words = ["probe", "--matrix", one.base_url, two.base_url, "--checks", "errors", "--history", "days.jsonl"]
        assert harness(tmp_path, *words).code == 0
        again = harness(tmp_path, *words, "--html", "page.html")
        alone = harness(tmp_path, "probe", one.base_url, "--history", "days.jsonl")
    assert again.code == 0
    assert again.err.count("looks: 2") == 2
    addresses = [json.loads(line)["address"] for line in (tmp_path / "days.jsonl").read_text("utf-8").splitlines()]
    assert addresses == [one.base_url, two.base_url] * 2
    assert "beside its earlier looks" in (tmp_path / "page.html").read_text("utf-8")
    assert alone.code == 2
    assert "--matrix" in alone.err


def test_a_budget_says_how_many_tokens_the_rest_would_take_and_a_log_has_short_lines(tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Fault())) as server:
        words = ["probe", server.base_url, "--checks", "length,temperature 1,top_k"]
        some = harness(tmp_path, *words, "--budget", "1000")
        none = harness(tmp_path, *words, "--budget", "300")
        rest = harness(tmp_path, *words)
    # A draw costs 19 tokens on this server; where the budget does not pay for asking, 45 are assumed.
    assert "--budget left out 1 check; about 4,750 more tokens make them" in some.out
    assert "--budget left out 2 checks; about 13,050 more tokens make them" in none.out
    assert "Left out by group: sampling 1 of 2\n" in some.out
    assert "Left out by group: sampling 2 of 2\n" in none.out
    assert "left out" not in rest.out
    # A check that was not begun has no row; one line names all of them.
    assert "not begun, each with about how many tokens it takes: temperature 1 (4,750)\n" in some.out
    assert not [line for line in some.out.splitlines() if line.strip().startswith("temperature 1")]
    assert [line for line in rest.out.splitlines() if line.strip().startswith("temperature 1")]
    assert "not begun" not in rest.out
    # Only a check that draws at a temperature above 0 can find that the server draws at another one.
    unseen = "no temperature above 0 was decided: a server that draws at another temperature than asked passes\n"
    assert [unseen in done.out for done in (some, none, rest)] == [True, True, False]
    table = some.out.split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= PROSE_COLUMNS


def test_several_servers_need_a_matrix(tmp_path: Path) -> None:
    alone = harness(tmp_path, "probe", "http://127.0.0.1:9", "http://127.0.0.1:10")
    assert alone.code == 2
    assert "--matrix" in alone.err


def test_what_a_server_says_is_inert_on_the_page_and_in_the_terminal(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>\x1b[31m"

    def answer(request: Request):  # type: ignore[no-untyped-def]
        if request.path.endswith("/models"):
            yield http(200, {"data": [{"id": "m"}]})
        else:
            yield http(400, {"error": {"message": hostile}})

    with FaultServer(answer) as server:
        result = harness(tmp_path, "probe", server.base_url, "--checks", "streaming,errors", "--html", "page.html")
    assert result.code == 0  # refused requests accuse nobody
    assert "\x1b" not in result.out + result.err
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "\x1b" not in page


def test_a_server_that_is_not_there_and_a_check_that_is_none(tmp_path: Path) -> None:
    nobody = harness(tmp_path, "probe", "http://127.0.0.1:9/v1")
    assert nobody.code == 2
    assert "127.0.0.1:9" in nobody.err
    with FaultServer(answering(Toy(), Fault())) as server:
        misspelt = harness(tmp_path, "probe", server.base_url, "--checks", "temprature 1")
    assert misspelt.code == 2
    assert "Did you mean temperature 1" in misspelt.err


@pytest.mark.server
def test_the_embedded_server_is_sound_and_a_proxy_before_it_is_found_out(embedded_server: RunningServer) -> None:
    root = embedded_server.base_urls[0].removesuffix("/v1")

    def outcomes(address: str) -> dict[str, str]:
        report = probe.probe(ProbeOptions(base_url=address, checks=["streaming", "usage", "length"]))
        return {one.check: one.outcome for one in report.findings}

    assert set(outcomes(root).values()) == {"sound"}
    with between(root, SaysStop()) as proxy:
        assert outcomes(proxy.base_url) == {"streaming": "sound", "usage": "sound", "length": "spoils"}


# ---- the statistics


def test_a_draw_at_the_temperature_is_rejected_as_seldom_as_stated() -> None:
    rng = random.Random(1)
    logprobs = {str(i): -0.4 * i for i in range(20)}
    weights = [2.718281828 ** (2 * value) for value in logprobs.values()]
    rejected = 0
    for i in range(60):
        counts = dict.fromkeys(logprobs, 0)
        for token in rng.choices(list(logprobs), weights, k=60):
            counts[token] += 1
        rejected += exact.temperature(counts, logprobs, 0.5, i) <= 0.05
    assert rejected <= 11  # of 60 at 5 %: more comes by chance 4 times in 100,000


def flat_model(rng: random.Random) -> list[float]:
    """A distribution over 3,000 tokens of which the 20 likeliest hold a quarter to three quarters, likeliest first."""
    slope = rng.uniform(0.7, 1.15)
    return sorted((rng.uniform(0.5, 1.5) * (rank + 1) ** -slope for rank in range(3000)), reverse=True)


def hot_p(weights: list[float], asked: float, drawn_at: float, rng: random.Random) -> float:
    """The p-value that 100 draws at one temperature are no hotter than asked for."""
    total = sum(weights)
    listed = {str(i): math.log(weight / total) for i, weight in enumerate(weights[:20])}
    drawn = rng.choices(range(len(weights)), [weight ** (1 / drawn_at) for weight in weights], k=100)
    return exact.hotter(sum(token >= 20 for token in drawn), 100, exact.unlisted(listed, asked))


def test_hot_draws_show_in_the_tokens_that_are_not_listed() -> None:
    rng = random.Random(2)
    for _ in range(20):
        weights = flat_model(rng)
        for asked in (1.0, 0.5):
            assert hot_p(weights, asked, 1.8, rng) < 1e-3


def test_draws_at_the_temperature_are_called_hotter_as_seldom_as_stated() -> None:
    rng = random.Random(3)
    for asked in (1.0, 0.5):
        assert sum(hot_p(flat_model(rng), asked, asked, rng) <= 0.05 for _ in range(100)) <= 14


@given(st.lists(st.floats(1e-6, 1), min_size=6, max_size=60), st.floats(0.2, 1))
def test_unlisted_tokens_never_have_more_than_their_bound(weights: list[float], temperature: float) -> None:
    ordered = sorted(weights, reverse=True)
    total = math.fsum(ordered)
    listed = {str(i): math.log(weight / total) for i, weight in enumerate(ordered[:5])}
    powers = [(weight / total) ** (1 / temperature) for weight in ordered]
    share = math.fsum(powers[5:]) / math.fsum(powers)
    assert share <= exact.unlisted(listed, temperature) + 1e-9


def test_a_cut_is_tested_by_the_exact_binomial() -> None:
    assert exact.cut(0, 10, 0.5) == pytest.approx(1 / 1024)
    assert exact.cut(5, 10, 0.5) == pytest.approx(638 / 1024)
    assert exact.cut(10, 10, 0.5) == 1.0


def test_draws_are_sound_only_where_they_could_show_another_temperature() -> None:
    """Servers of many distributions draw at a wrong temperature, through cuts of any strength: few pass as sound. Those
    that draw as asked are accused as seldom as stated, and pass where they cut nothing.
    """
    rng = np.random.default_rng(7)
    level = sampling.BOUND / sampling.PARTS
    counted = Counter[tuple[bool, str]]()
    for case in range(300):
        # Flat, usual and peaked distributions; some have one likely token.
        x = np.sort(rng.normal(0, rng.uniform(0.3, 3), 50))[::-1] + (rng.uniform(0, 6) if case % 3 == 0 else 0) * (
            np.arange(50) == 0
        )
        x -= math.log(np.exp(x).sum())
        asked, wrong, cut = rng.choice([1.0, 0.5]), case % 2 == 0, int(rng.integers(1, 51)) if case % 4 < 3 else 50
        q = np.exp(x / (asked * (rng.choice([1.5, 1 / 1.5]) if wrong else 1.0))) * (np.arange(50) < cut)
        n = rng.multinomial(int(rng.integers(50, 600)), q / q.sum())
        logprobs = {str(i): float(x[i]) for i in range(20)}
        draws = Draws(counts=Counter({str(i): int(k) for i, k in enumerate(n) if k}), n_unlisted=int(n[20:].sum()))
        accused = False
        for tokens in sampling._tokens_to_test(logprobs, draws):
            values = np.array([*tokens.values()])
            mean, deviation = exact._of_round(values[None], asked)
            ks = n[: len(tokens)]
            z = (ks @ values - ks.sum() * mean) / max(math.sqrt(ks.sum()) * deviation, 1e-9)
            accused |= abs(z) > NormalDist().inv_cdf(1 - level / 2)
        outcome = "accused" if accused else "untested" if sampling._why_blind(logprobs, draws, asked) else "sound"
        counted[wrong, outcome] += 1
        assert outcome != "accused" or wrong or cut < len(sampling.core(logprobs)), "a cut is no temperature"
    assert counted[True, "sound"] <= 0.05 * 150, counted
    assert counted[True, "accused"] >= 45, counted
    assert counted[False, "sound"] >= 20, counted
    assert _needs({"a": -0.01, "b": -5.0}, 0.0) == math.inf, "one token shows no temperature"


def _needs(logprobs: dict[str, float], least: float) -> float:
    likely = {name: value for name, value in logprobs.items() if value >= -0.1}
    return exact.rounds_needed([likely], 1.0, factor=1.5, level=0.001, power=0.8, least=[min(least, -0.1)])


def test_later_draws_give_the_cause_by_the_sign_of_what_they_found() -> None:
    for fault, first in (
        (OnOnePath(True, 1.6), "from a higher temperature than the request asks for"),
        (OnOnePath(True, 0.5), "Tokens that are likelier than stated come first of all from cuts"),
    ):
        asker = ToyAsker(Toy(chance=random.Random(5)), fault)
        for check in ("later draws", "later draws at 0.5"):
            (seen,) = probe.examine(asker, probe.select([check]), seed=11).findings
            assert (seen.outcome, first in seen.mend) == ("spoils", True), seen
            assert ("checks=['temperature 0', 'temperature 1'] says" in seen.mend) == (fault.factor > 1)


class BrokenBytes(Fault):
    """Each reply holds a broken character. sampled: and other words each time, as at a high temperature."""

    def __init__(self, *, sampled: bool) -> None:
        self.sampled, self.n = sampled, 0

    def whole(self, asked: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        self.n += self.sampled
        for choice in answer["choices"]:
            if "message" in choice:
                choice["message"]["content"] = f"reply {self.n} \ufffd and more"
        return answer


@pytest.mark.parametrize(("sampled", "outcome"), [(False, "spoils"), (True, "untested")])
def test_broken_characters_of_sampled_replies_are_not_called_lost(sampled: bool, outcome: str) -> None:
    asker = ToyAsker(Toy(), BrokenBytes(sampled=sampled))
    (finding,) = probe.examine(asker, probe.select(["characters"]), seed=11).findings
    assert finding.outcome == outcome
    assert ("were lost" in finding.came) == (not sampled)


class FirstChoiceCounted(Fault):
    """The usage of a whole reply counts the new tokens of its first choice alone, as llama.cpp's does."""

    def whole(self, asked: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        n = len(answer["choices"])
        return {**answer, "usage": {**answer["usage"], "completion_tokens": answer["usage"]["completion_tokens"] // n}}


@pytest.mark.parametrize(
    ("fault", "came"),
    [
        (Fault(), "two choices that differ"),
        (FirstChoiceCounted(), "two choices that differ; usage counts 24 of their 48 tokens"),
    ],
)
def test_both_of_two_choices_are_billed_though_usage_counts_one(fault: Fault, came: str) -> None:
    with FaultServer(answering(Toy(chance=random.Random(5)), fault)) as server:
        report = product.probe(server.base_url, checks="several choices", seed=3)
        bodies = [request.json for request in server.requests if request.method == "POST"]
    (finding,) = report.findings
    assert (finding.outcome, finding.came) == ("sound", came)
    n_prompt = len(STORY.split()) + 4 + Toy().bos
    assert report.tokens == sum(n_prompt + 24 * body.get("n", 1) for body in bodies)
