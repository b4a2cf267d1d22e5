"""One life of a server for all engines: readiness, plain failures, and nothing left running. Real processes throughout.

For: server_launchers.lifecycle.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from server_launchers.errors import LaunchError
from server_launchers.lifecycle import launch, servers
from server_launchers.machine import ports, processes
from server_launchers.spec import ServerSpec
from tests.budget import rounds
from tests.patience import until

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(__file__).with_name("faulty_server.py"))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts processes by /proc")


def faulty(*habits: str, **fields: Any) -> ServerSpec:
    words = (sys.executable, PROGRAM, "{port}", *habits)
    base: dict[str, Any] = {"engine": "command", "model": "faulty", "extra_flags": words, "health_path": "/health"}
    return ServerSpec(**(base | {"stop_grace": 0.5} | fields))


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state"


@pytest.fixture(autouse=True)
def tag(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A variable that every process of this test inherits; none may be alive when the test ends."""
    tag = f"{os.getpid()}-{time.monotonic_ns()}"
    monkeypatch.setenv("TEST_TAG", tag)
    yield tag
    until(lambda: not tagged(tag), f"left running: {[processes.describe(pid) for pid in tagged(tag)]}")


def tagged(tag: str) -> list[int]:
    """Living processes but ourselves that carry the tag."""
    found = []
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        with contextlib.suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if f"TEST_TAG={tag}".encode() in variables and pid != os.getpid() and processes.start_of(pid):
                found.append(pid)
    return found


def answers(server: Any) -> bool:
    """Whether each of its processes answers."""
    try:
        return all(httpx.get(f"{url}/health", timeout=None).status_code == 200 for url in server.base_urls)
    except httpx.HTTPError:
        return False


def die(server: launch.RunningServer) -> None:
    """Have the server end by itself, and wait for its end to be known."""
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{server.base_urls[0]}/die", timeout=None)
    until(lambda: recorded(server).status == "exited", "the server ended")


def recorded(server: launch.RunningServer) -> servers.ServerState:
    """What its file says."""
    assert server.state is not None
    return server.state


def launched_by(code: str) -> subprocess.Popen[str]:
    """Another Python process that launches servers, once it has printed a line."""
    program = "from tests.server_launchers.test_launch import *\n" + textwrap.dedent(code)
    variables = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=variables)
    assert child.stdout is not None
    assert child.stdout.readline() == "now\n"
    return child


def test_a_server_is_ready_when_it_answers_and_gone_after_the_block(tag: str) -> None:
    with launch.launch(faulty(model="")) as server:
        assert answers(server)
        assert server.model == "faulty", "without a name asked for, the first that it lists"
        assert [(one.status, one.base_urls) for one in servers.status()] == [("ready", list(server.base_urls))]
    assert servers.status() == []
    assert not tagged(tag)


def test_machines_that_share_a_home_folder_leave_each_others_servers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with launch.launch(faulty()) as first:
        with monkeypatch.context() as other_machine:
            other_machine.setattr(socket, "gethostname", lambda: "other")
            assert servers.status() == []
            with launch.launch(faulty()) as second:
                assert [server.base_urls for server in servers.status()] == [list(second.base_urls)]
                assert servers.stop(all=True) == ([second.name], [])
        assert answers(first)
        assert [server.status for server in servers.status()] == ["ready"]


@pytest.mark.parametrize("habits", [("ignores-term",), ("forks",), ("ignores-term", "forks", "hides-child")])
def test_nothing_survives_a_stop_whatever_the_engine_does(habits: tuple[str, ...], tag: str) -> None:
    with launch.launch(faulty(*habits)):
        assert len(tagged(tag)) >= 2
    assert not tagged(tag)


@pytest.mark.parametrize("victim", ["engine", "guard"])
def test_nothing_survives_the_death_of_any_part(victim: str, tag: str) -> None:
    with launch.launch(faulty("forks", "hides-child")) as server:
        member = recorded(server).members[0]
        os.kill(member.pid if victim == "engine" else server.pid, signal.SIGKILL)  # type: ignore[arg-type]
        if victim == "guard":
            # Its engine dies with it; what the engine had started is found by its mark.
            servers.stop(server.name)
        until(lambda: not tagged(tag), f"left after the {victim} was killed")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_survives_the_end_of_the_harness(number: signal.Signals, tag: str) -> None:
    with launched_by("""
        with launch.launch(faulty("forks", "hides-child", "ignores-term")):
            print("now", flush=True)
            time.sleep(600)
    """) as child:
        child.send_signal(number)
    until(lambda: not tagged(tag), f"left after {number.name}")


@pytest.mark.fuzz
@pytest.mark.parametrize("_round", range(rounds(5)))
def test_a_harness_killed_at_any_moment_of_a_start_leaves_nothing(_round: int, tag: str) -> None:
    with launched_by("""
        print("now", flush=True)
        with launch.launch(faulty("forks", "hides-child", "ignores-term")):
            time.sleep(600)
    """) as child:
        time.sleep(int.from_bytes(os.urandom(2)) / 65535 * 0.8)
        child.kill()
    until(lambda: not tagged(tag), "left after a kill")


def test_a_detached_server_outlives_its_launcher_until_it_is_stopped(tag: str) -> None:
    with launched_by("launch.launch(faulty('hides-child', name='mine'), detach=True); print('now')") as child:
        assert child.wait() == 0
    (listed,) = servers.status()
    assert (listed.name, listed.status, listed.model) == ("mine", "ready", "faulty")
    assert answers(listed)
    assert servers.stop("mine") == (["mine"], [])
    assert servers.status() == []
    assert not tagged(tag)


def test_commands_are_told_without_the_values_of_keys() -> None:
    words = ["HF_TOKEN=h", "--api-key", "sk-a b", "k2", "--hf-token=hf_x", "--tokenizer", "t", "-hft", "-x"]
    words += ["--max-tokens", "3", "--extra", '{"aws_secret": "abc", "n": 1}', "--url", "http://u:p@host/x"]
    with launch.launch(faulty(*words, "--api-key=a'b c")) as server:
        (line,) = recorded(server).commands
    assert line.endswith(
        "HF_TOKEN=HIDDEN --api-key HIDDEN HIDDEN --hf-token=HIDDEN --tokenizer t -hft HIDDEN "
        """--max-tokens 3 --extra '{"aws_secret": "HIDDEN", "n": 1}' --url http://host/x --api-key=HIDDEN"""
    )


def test_stop_never_signals_a_stranger_with_a_recorded_number() -> None:
    with launch.launch(faulty(name="mine")) as server:
        state = recorded(server)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0) as stranger:
        recycled = msgspec.structs.replace(state.members[0], pid=stranger.pid)
        forged = msgspec.structs.replace(state, guard_pid=stranger.pid, members=[recycled], mark="x")
        servers.write(servers.path_of("mine"), forged)
        assert [state.status for state in servers.status()] == ["exited"]
        assert servers.stop("mine") == (["mine"], [])
        alive = stranger.poll() is None
        stranger.kill()
    assert alive


def test_a_duplicate_server_name_is_refused_and_unnamed_ones_are_numbered() -> None:
    with launch.launch(faulty()) as first, launch.launch(faulty()) as second:
        assert (first.name, second.name) == ("faulty", "faulty-2")
        with pytest.raises(LaunchError, match="a server named faulty is already running"):
            launch.launch(faulty(name="faulty"))


def test_a_taken_port_is_refused_with_the_program_that_holds_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LaunchError, match=rf"port {port}: Address already in use, held by process {os.getpid()}"):
            launch.launch(faulty(port=port))


def test_a_foreign_server_that_answers_on_the_port_is_not_taken_for_ours() -> None:
    with launch.launch(faulty()) as foreign:
        port = foreign.base_urls[0].rpartition(":")[2]
        # The program listens elsewhere, and the address that it is said to have is the foreign one's.
        ours = faulty().replace(extra_flags=(sys.executable, PROGRAM, "0", "silent"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ports, "free_ports", lambda *_: [int(port)])
            with pytest.raises(LaunchError, match=r"another server already responds at .*faulty_server\.py"):
                launch.launch(ours)


@pytest.mark.parametrize(("part", "name"), [(servers, "write"), (launch, "GuardOrders"), (launch, "_until_recorded")])
def test_an_interrupted_guard_leaves_nothing(part: Any, name: str, tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal may come before there is anything to wait for."""
    guards: list[subprocess.Popen[bytes]] = []

    def noted(*given: Any, **more: Any) -> subprocess.Popen[bytes]:
        guards.append(real(*given, **more))
        return guards[-1]

    def interrupted(*_given: object, **_fields: object) -> None:
        raise KeyboardInterrupt

    real = subprocess.Popen
    monkeypatch.setattr(launch.subprocess, "Popen", noted)
    monkeypatch.setattr(part, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch.launch(faulty(), detach=True)
    assert guards[0].returncode is not None, "the guard was waited for"
    assert tagged(tag) == []


NO_COMPLETION = r"has not returned a completion for 5 s \(`start_timeout`\): "


@pytest.mark.parametrize(
    ("habit", "fields", "message"),
    [
        ("other-model", {}, r"the new server responds at \S+, but it serves other, not faulty: change its"),
        ("silent", {"start_timeout": 1.0}, r"its log has not grown for 1 s \(`start_timeout`\)"),
        ("never-ready", {"start_timeout": 5.0}, "/health answers 503"),
        # Long enough for a Python to start and listen on a busy machine: until then, the same limit holds its log.
        ("fails", {"start_timeout": 5.0}, NO_COMPLETION + "the first request returned 500: .*CUDA out of memory"),
        (
            *("streams", {"start_timeout": 5.0}),
            NO_COMPLETION
            + r".*POST /v1/chat/completions without `stream`.* text/event-stream instead of a JSON completion",
        ),
        ("dies", {}, r"(?s)its log says: “No module named .flash_attn.*last lines of .*No module named"),
        ("crashes", {}, r"signal 11 "),
        ("", {"extra_flags": ("/nonexistent/server",)}, "/nonexistent/server is not installed; correct the name"),
        ("", {"extra_flags": ("--api-key=s3cret-key",)}, "^--api-key=HIDDEN is not installed"),  # its program forgotten
        ("", {"engine": "llama_cpp", "api_key_env": "NOT_SET"}, r"NOT_SET \(`api_key_env`\) is unset or empty"),
        ("", {"engine": "vllm", "api_key_env": "EMPTY"}, r"variable EMPTY \(`api_key_env`\) is unset or empty"),
    ],
)
def test_a_start_that_fails_says_why_and_is_forgotten(
    habit: str, fields: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY", "")
    with pytest.raises(LaunchError, match=message):
        launch.launch(faulty(habit, **fields))
    assert servers.status() == []


def test_a_flood_of_hostile_output_is_drained_bounded_and_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "s3cret-key")
    given = {"HF_TOKEN": "hidden-too", "LEVEL": "level-is-plain"}
    with launch.launch(faulty("chatty", api_key_env="SOME_KEY", environment=given)) as server:
        assert server.log is not None
        text = b"".join(path.read_bytes() for path in server.log.parent.glob(f"{server.log.name}*"))
        assert len(text) < 40 << 20
        assert not set(text) & (set(range(32)) - {10})
        assert not [word for word in ("\x9b", "\u202e", "s3cret-key") if word.encode() in text]
        assert b"key=*** *** level-is-plain" in text


def test_a_start_waits_for_each_replica_and_restarts_dead_ones_as_allowed() -> None:
    with launch.launch(faulty("second-late", dp=2, restarts=1)) as server:
        assert answers(server)
        for member in recorded(server).members:
            assert member.pid is not None
            os.kill(member.pid, signal.SIGKILL)
        until(lambda: [m.restarts for m in recorded(server).members] == [1, 1], "both replicas were restarted")
        until(lambda: answers(server), "both replicas answer again")


def test_a_server_that_ended_is_remembered_with_its_exit_status_and_log() -> None:
    with launch.launch(faulty(name="mine")) as server:
        die(server)
        (listed,) = servers.status()
        assert listed.members[0].exit_code == 7
        assert "exit status 7" in servers.logs("mine")[0].read_text()


def test_stop_and_logs_list_the_servers_and_stop_needs_no_name_for_one() -> None:
    with launch.launch(faulty(name="one")), launch.launch(faulty(name="two")) as two:
        for ask, names, message in (
            (servers.stop, ["three"], "there is no server named three; known servers: one, two"),
            (servers.stop, [], "specify the server to stop, or --all; known servers: one, two"),
            (servers.logs, [], "specify the server whose log you want to see; known servers: one, two"),
        ):
            with pytest.raises(LaunchError, match=message):
                ask(*names)
        die(two)
        assert servers.stop() == (["one"], [])
    with pytest.raises(LaunchError, match=r"or --all; known servers: none \(no server is running here"):
        servers.stop()
    with launch.launch(faulty(name="one")), launch.launch(faulty(name="two")):
        assert servers.stop(all=True) == (["one", "two"], [])
        assert servers.status() == []


def installed_engine(folder: Path, version: str, plugin: str | None = None) -> Path:
    """The interpreter of an environment with a `vllm` command, which is the faulty server."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name, number in (("vllm", version), ("vllm_ascend", plugin)):
        if number is not None:
            info = packages / f"{name}-{number}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
    script = folder / "bin" / "vllm"
    script.write_text(
        f"#!{folder}/bin/python\nimport os, sys\n"
        f"port = sys.argv[sys.argv.index('--port') + 1]\n"
        f"print(os.environ.get('ASCEND_RT_VISIBLE_DEVICES'), os.getcwd(), flush=True)\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, {PROGRAM!r}, port])\n"
    )
    script.chmod(0o755)
    return folder / "bin" / "python"


def test_an_engine_in_another_environment_gives_its_version_and_starts(
    tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    python = installed_engine(tmp_path / "env", "0.32.0")
    with launch.launch(ServerSpec(engine="vllm", model="faulty", python=python, stop_grace=0.5)) as server:
        assert recorded(server).versions["vllm"] == "0.32.0"
        assert recorded(server).log.read_text().splitlines()[0].endswith(str(own_state / "empty"))


def test_an_ascend_environment_is_checked_and_gets_its_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4,5")
    python = installed_engine(tmp_path / "env", "0.23.0+empty", plugin="0.23.0.post1")
    base = {"engine": "vllm_ascend", "model": "faulty", "python": python, "dp": 2, "stop_grace": 0.5}
    with launch.launch(ServerSpec(**base)) as server:
        assert [log.read_text()[0] for log in servers.logs(server.name)] == ["4", "5"]
    with pytest.raises(
        LaunchError,
        match=r"1 x 4 = 4 devices are needed \(replicas x devices per replica\), but only 2 are available \(4, 5\)",
    ):
        launch.launch(ServerSpec(**(base | {"dp": 1, "tp": 4})))
    mismatched = installed_engine(tmp_path / "other", "0.32.0", plugin="0.23.0")
    with pytest.raises(LaunchError, match=r"vllm-ascend 0\.23\.0 does not work with vLLM 0\.32\.0"):
        launch.launch(ServerSpec(**(base | {"python": mismatched})))
