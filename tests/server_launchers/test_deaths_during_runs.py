"""Runs of the harness while a server dies, a server while its harness dies, and signals while a server starts.

First with real processes, then with the state files of servers.

For: harness.preparing.server_start, harness.commands.run, harness.preparing.launched_servers,
server_launchers.lifecycle.servers.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harness.client.address.endpoint import Endpoint
from harness.commands.run import EXIT_S, ServedHere, WaitedFor
from harness.core.errors import ServerError
from harness.options.run import RunOptions
from harness.preparing import servers
from harness.preparing.launched_servers import servers_at
from harness.preparing.servers import discover
from harness.progress.events import Watcher
from harness.testing import FakeServer, models
from server_launchers.lifecycle import servers as kept
from server_launchers.lifecycle.servers import MemberState, ServerState
from server_launchers.machine import processes
from tests.budget import thinned
from tests.patience import PATIENCE_SECONDS, until
from tests.system.command import harness, start

pytestmark = pytest.mark.timeout(600)
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))


def samples(folder: Path) -> list[dict[str, Any]]:
    """The records that the run has written so far."""
    journal = folder / "run" / "demo" / "samples.jsonl"
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_bytes().split(b"\n")[:-1]]


@pytest.mark.server
def test_a_killed_run_takes_its_server_along(smollm2: Path, tmp_path: Path) -> None:
    words = ["run", "demo:8", "--out", "run", "--serve", "llama_cpp", "--model", str(smollm2)]
    of_server = ("served-name=m", "threads=1", "max-sequences=2", "max-model-len=2048")
    more = [*(word for one in of_server for word in ("--serve-option", one)), "--max-tokens", "64"]
    running = start(tmp_path, [*words, *more])
    until(lambda: len(samples(tmp_path)) > 3, "the first samples")
    (recorded,) = kept.status()
    everyone = [recorded.guard, *processes.descendants(recorded.guard_pid)]
    assert len(everyone) >= 2
    running.kill()
    running.communicate()
    until(lambda: not any(member.alive() for member in everyone), "the server and its guard to end")
    assert not processes.find_marked(f"{recorded.mark}:0")


@pytest.mark.parametrize("victim", ["server", "guard"])
def test_a_run_says_that_its_server_was_killed(victim: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.storms.server", "--port", "{port}"]
    options = ["health-path=/health", "served-name=storm", f"env=PYTHONPATH={ROOT}"]
    options += [f"engine-flag={word}" for word in program]
    serve = ["--serve", "command", *(part for option in options for part in ("--serve-option", option))]
    words = ["--model", "storm", "--out", "run", "--no-canary", "--concurrency", "2", *serve]
    running = start(tmp_path, ["run", "demo:500", *words])
    until(lambda: len(samples(tmp_path)) > 3 or running.poll() is not None, "the first samples")
    (recorded,) = kept.status()
    member = recorded.members[0]
    assert member.pid is not None
    os.kill(member.pid if victim == "server" else recorded.guard_pid, signal.SIGKILL)
    _, err = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 2, err
    cause = (
        "ended with signal 9 (Killed)" if victim == "server" else "its guard (the process that watches it) was killed"
    )
    stored = len(samples(tmp_path))
    last = err.splitlines()[-1]
    assert "the server storm, which was started here, has ended: " in last
    assert cause in last
    assert f" {stored} of " in last
    assert "Run the same command to resume." in last
    assert harness(tmp_path, "run", "demo:1", *words).code == 0


SLEEPS = (sys.executable, "-c", "import time; time.sleep(600)")
"""A server that never gets ready."""

SERVE = ("--health-path", "/health", "--served-name", "m")
OPTIONS = ("--serve-option", "health-path=/health", "--serve-option", "served-name=m")
FLAGS = tuple(word for part in SLEEPS for word in ("--serve-option", f"engine-flag={part}"))
COMMANDS = {
    "run": ("run", "demo:1", "--out", "r", "--serve", "command", "--model", "m", *OPTIONS, *FLAGS),
    "serve": ("serve", "command", "m", *SERVE, "--", *SLEEPS),
    "detached": ("serve", "command", "m", "--detach", *SERVE, "--", *SLEEPS),
}


SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# One function catches the signals for all three (`launch_server`); `serve` has handlers besides.
CASES = [*((name, number) for name in ("run", "serve") for number in SIGNALS), ("detached", SIGNALS[1])]


@pytest.mark.parametrize(("name", "number"), thinned(CASES))
def test_a_signal_during_a_start_is_answered_in_words_and_leaves_nothing(
    name: str, number: signal.Signals, tmp_path: Path
) -> None:
    child = start(tmp_path, list(COMMANDS[name]), cold=True)
    until(lambda: bool(recorded := kept.status()) and recorded[0].members[0].pid is not None, "the start to begin")
    (recorded,) = kept.status()
    child.send_signal(number)
    out, err = child.communicate(timeout=PATIENCE_SECONDS)
    assert child.returncode == 128 + number, err
    assert f"harness: stopped by {number.name} while the server for m was starting. The server was removed" in err
    assert "Traceback" not in out + err
    assert not processes.find_marked(f"{recorded.mark}:0")
    assert kept.status() == []


# -- what a run knows of its servers -----------------------------------------------------------------------------------


def serve(name: str = "mine", port: int = 8001, **more: Any) -> None:
    """Write the state file of a server whose guard is this process."""
    fields: dict[str, Any] = {
        **{"name": name, "engine": "command", "model": "m", "source": "m", "api_key_env": None, "mark": "m"},
        **{"base_urls": [f"http://127.0.0.1:{port}"], "created": datetime.now(UTC), "grace": 1.0, "status": "ready"},
        **{"guard_pid": os.getpid(), "guard_started": processes.start_of(os.getpid())},
        "members": [MemberState(role="engine", argv=["engine"], port=port)],
    }
    state = ServerState(**{**fields, **more})
    kept.write(kept.path_of(state.name), state)


ENDED: dict[str, Any] = {"status": "exited", "members": [MemberState("engine", ["engine"], 8001, exit_code=-9)]}


def state(name: str = "mine", **more: Any) -> dict[str, Any]:
    return {"name": name, "port": 8001 if name == "mine" else 8002, **more}


BOTH = [state(), state("other")]


@pytest.mark.parametrize(
    ("before", "asked", "after", "words"),
    [
        ([state()], "localhost:8001", [], None),
        ([state()], "localhost:8001", [state(**ENDED)], "mine, which was started here, has ended: .*signal 9"),
        ([state()], "localhost:8001", [state(guard_started="gone")], "its guard .* was killed"),
        (BOTH, "localhost:8001 localhost:8002", [state(**ENDED)], None),
        (BOTH, "localhost:8001 localhost:8002", [state(**ENDED), state("other", **ENDED)], "has ended"),
        ([state()], "localhost:8001 localhost:9000", [state(**ENDED)], None),  # somebody else's may still answer
        ([state()], "10.0.0.7:8001", [state(**ENDED)], None),  # another machine
        ([state(**ENDED)], "localhost:8001", [], None),  # an old state file, whose port another server has by now
        ([state()], "localhost:8001", [state(guard_pid=1, **ENDED)], None),  # it was started again
    ],
)
def test_a_run_knows_that_its_servers_have_ended(
    before: list[dict[str, Any]], asked: str, after: list[dict[str, Any]], words: str | None
) -> None:
    for fields in before:
        serve(**fields)
    endpoints = [Endpoint(base_url=f"http://{address}/v1") for address in asked.split()]
    served = ServedHere({server.name: server.guard_pid for server in servers_at(endpoints)})
    assert served.end_reason([""]) is None
    for fields in after:
        serve(**fields)
    why = served.end_reason([""])
    assert (why is None) == (words is None)
    assert why is None or re.search(words or "", why)
    kept.path_of("mine").unlink()
    assert words or served.end_reason([""]) is None, "a file that is gone says nothing"


def test_a_server_without_its_engine_is_lost_unless_it_ends_by_itself() -> None:
    now = 0.0
    serve()
    served = ServedHere({"mine": os.getpid()}, lambda: now)
    dead, ill = "HTTP 500: EngineDeadError: see above", "HTTP 500: out of memory"
    for now, failures, is_lost in (
        (1.0, [dead], False),
        (EXIT_S, [dead], False),
        (EXIT_S + 2, [dead], True),
        (EXIT_S + 3, [dead, ""], False),
        (EXIT_S + 4, [dead], False),
        (99.0, [ill], False),
        (199.0, [dead, ill], False),
    ):
        assert bool(served.end_reason(failures)) == is_lost, now


@pytest.mark.parametrize("listed", ["mine", "other"])
def test_each_change_of_a_failure_is_looked_into_and_named_once(listed: str) -> None:
    told: list[str] = []
    found: list[str] = []

    def n_looks() -> int:
        return sum(request.path == "/v1/models" for request in server.requests)

    with FakeServer(lambda _: [models(listed)]) as server:
        waited_for = WaitedFor([Endpoint.parse(server.base_url)], "mine", told.append)
        for n_waits, n_told, why, other in (
            (0, 0, "", "404"), (1, 1, "down", ""), (1, 1, "down", "404"), (2, 1, "404", ""), (2, 1, "404", "404"),
            (2, 1, "", ""), (3, 2, "404", "404"),
        ):  # fmt: skip
            failures, due = {server.base_url: why, "http://another": other}, time.monotonic() + 10
            n = n_told if listed == "other" else n_waits
            while True:
                found += waited_for.new_servers(failures)
                if (n_looks(), len(told) + len(found)) == (n_waits, n):
                    break
                assert time.monotonic() < due
                time.sleep(0.01)
    assert all(
        "does not serve mine; it serves other. Until then, it is sent only one request at a time" in each
        for each in told
    )
    assert (len(told), found) == ((2, []) if listed == "other" else (0, [server.base_url] * 3))


@pytest.mark.parametrize("address", [(), ("mine",), ("http://localhost:8001/v1",), ("http://localhost:8003",)])
def test_a_server_that_has_ended_before_the_run_is_named(address: tuple[str, ...]) -> None:
    serve(**ENDED)
    options = RunOptions(base_url=address, data=Path("x"), model="m")
    with pytest.raises(ServerError) as error:
        discover(servers.find(options), options, Watcher())
    is_ours = address != ("http://localhost:8003",)
    named = re.search("the server mine, which was started here, has ended: .*signal 9.*its log is", str(error.value))
    assert (named is not None) == is_ours


@pytest.mark.parametrize(("engine", "model"), [("transformers", "served"), ("vllm", "m")])
def test_a_server_started_here_is_called_by_its_name_despite_its_list(engine: str, model: str) -> None:
    with FakeServer(lambda _: [models("m")]) as server:  # as transformers lists what the hub's cache holds
        serve(engine=engine, model="served", base_urls=[server.base_url.removesuffix("/v1")])
        unnamed = RunOptions(base_url=(server.base_url,))
        assert discover(servers.find(unnamed), unnamed, Watcher()).model == model


def test_a_server_named_by_address_is_recorded_like_a_named_one() -> None:
    argv = ["engine", "--api-key", "sk-secret", "--context", "9"]
    serve(members=[MemberState(role="engine", argv=argv, port=8001)], versions={"engine_version": "7"})

    def about(*addresses: str) -> dict[str, Any]:
        return dict(servers.find(RunOptions(base_url=addresses, data=Path("x"))).about)

    named = dict(servers.find(RunOptions(base_url=("mine",), data=Path("x"))).about)
    assert named["commands"] == ["engine --api-key HIDDEN --context 9"]
    for host in ("http://127.0.0.1:8001", "http://localhost:8001/v1", "127.0.0.1:8001"):
        assert about(host) == named
    serve("other", 8002)
    assert about("http://127.0.0.1:8001", "http://127.0.0.1:8002") == {"commands": [*named["commands"], "engine"]}
    # The wrong twins: another port, another machine, a server of somebody else beside ours, one that has ended.
    for addresses in (
        ("http://127.0.0.1:8003",),
        ("http://10.0.0.7:8001",),
        ("http://[::1]:8003",),
        ("http://127.0.0.1:8001", "http://127.0.0.1:9000"),
    ):
        assert about(*addresses) == {}, addresses
    serve(**ENDED)
    assert about("http://127.0.0.1:8001") == {}
