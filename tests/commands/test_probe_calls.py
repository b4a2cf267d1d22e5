"""Each fault of a server's calls is found by its check on each API, and healthy servers are not flagged.

For: harness.probes.calls.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from harness.core.choices import ApiName
from harness.probes import probe
from harness.probes.findings import ProbeReport
from harness.testing import FakeServer, Request, Said, http, serving
from tests.commands.calling_model import FAULTS, HEALTHY, Asked, CallingServer, Change, honest
from tests.system.command import harness

APIS: tuple[ApiName, ...] = ("chat", "responses", "messages")


def probed(change: Change, engine: str | None, api: ApiName = "chat", seed: int = 1) -> ProbeReport:
    server = CallingServer(change=change, engine=engine, chance=random.Random(seed), calls_api=api)
    return probe.examine(server, probe.select(["calls"]), seed=seed)


def flagged(report: ProbeReport) -> dict[str, str]:
    return {one.check: one.received for one in report.findings if one.outcome in ("fail", "warn")}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_by_its_check_alone(name: str, api: ApiName) -> None:
    check, engine, change = FAULTS[name]
    assert [*flagged(probed(change, engine, api))] == [check]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_server_is_not_flagged(name: str, api: ApiName) -> None:
    engine, change = HEALTHY[name]
    for seed in range(3):
        report = probed(change, engine, api, seed)
        assert flagged(report) == {}
    refuses = name.startswith("tools ")
    assert report.requests == 1 if refuses else report.requests > 1
    assert report.tested == (not refuses and not name.startswith("never calls"))


@pytest.mark.parametrize(
    ("engine", "flag"),
    [("vllm", "--enable-auto-tool-choice --tool-call-parser"), ("sglang", "--tool-call-parser"), (None, "--jinja")],
)
def test_the_flag_of_the_engine_is_named(engine: str | None, flag: str) -> None:
    received = flagged(probed(FAULTS["calls never parsed"][2], engine))["parsed calls"]
    assert flag in received
    assert ("--enable-auto" in received) == (engine != "sglang")
    assert ("--jinja" in received) == (engine is None)


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
