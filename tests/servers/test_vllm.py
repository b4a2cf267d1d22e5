"""A real vLLM on the CPU, started by its launcher: replies, refusals, deaths, and that nothing of it stays."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server_launchers import supervisor
from server_launchers.supervisor import RunningServer
from tests.servers.conftest import engine_processes
from tests.servers.running import (
    RUN,
    assert_complete,
    engine,
    harness,
    health,
    kill,
    known,
    launched,
    named,
    samples,
    wait_for_restart,
    wait_until,
)
from tests.servers.specs import ANSWER, THOUGHT, VLLM_BOTH_CORES, VLLM_ENVIRONMENT, vllm_spec
from tests.servers.streams import ask, begin
from tests.system.command import argv, environment

KEY = "key-of-the-test"


@pytest.fixture(scope="module")
def server(vllm: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One that thinks, wants a key, and comes back when it dies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_TEST_KEY", KEY)
        spec = vllm_spec(vllm, models, reasoning_parser="deepseek-r1", api_key_env="VLLM_TEST_KEY", name="vllm")
        with launched(spec) as server:
            yield server


@pytest.fixture(scope="module")
def mortal(vllm: Path, models: Path, private_state: Path) -> Iterator[RunningServer]:
    """One to kill: it is started again as often as the tests need."""
    with launched(vllm_spec(vllm, models, restarts=9, name="mortal")) as server:
        yield server


def test_thinking_arrives_in_reasoning_and_the_answer_in_content(server: RunningServer) -> None:
    reply = ask(server, key=KEY)
    assert (reply.text("reasoning"), reply.text("content")) == (THOUGHT, ANSWER)
    assert (reply.finish, reply.done, reply.broken) == (["stop"], True, None)
    assert reply.text("reasoning_content") == ""
    assert reply.events[-1]["choices"] == []
    assert [usage["completion_tokens"] for usage in reply.usage] == [15]


def test_a_reply_cut_inside_its_thinking_says_length_and_has_no_content(server: RunningServer) -> None:
    reply = ask(server, key=KEY, max_tokens=3)
    assert reply.finish == ["length"]
    assert THOUGHT.startswith(reply.text("reasoning"))
    assert reply.text("content") == ""


def test_a_prompt_that_is_too_long_is_refused_in_the_servers_words(server: RunningServer) -> None:
    reply = ask(server, "one two three " * 4000, key=KEY)
    assert reply.status == 400
    assert "maximum context length is 8192 tokens" in reply.body


def test_an_unknown_model_and_a_missing_key_are_refused(server: RunningServer) -> None:
    assert ask(server, key=KEY, model="other").status == 404
    assert ask(server).status == 401
    assert health(server) == 200


def test_the_key_stands_in_no_command_line_state_file_or_log(server: RunningServer) -> None:
    state = known(server)
    texts = [state.model_dump_json(), *(member.log.read_text() for member in state.members)]
    assert not [text for text in texts if KEY in text]
    assert not named(server, KEY)


def test_the_state_tells_the_version_and_the_processor(server: RunningServer) -> None:
    versions = known(server).versions
    assert versions["vllm"] == "0.32.0+cpu"
    assert versions["devices"]


def test_a_run_of_the_harness_gets_every_key_once_with_thinking_apart(server: RunningServer, tmp_path: Path) -> None:
    done = harness(tmp_path, *RUN, "--base-url", server.base_urls[0], "--api-key-env", "VLLM_TEST_KEY")
    assert done.code == 0, done.err
    assert_complete(tmp_path / "run", 20)
    assert harness(tmp_path, "score", "run").code == 0


def test_a_prompt_that_is_too_long_is_told_and_the_run_owes_it(server: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "long.jsonl").write_text('{"question": "%s", "answer": "1"}\n' % ("one two three " * 4000))
    words = ("--data", "long.jsonl", "--question-key", "question", "--answer-key", "answer", "--out", "run")
    more = ("--base-url", server.base_urls[0], "--api-key-env", "VLLM_TEST_KEY", "--samples", "1")
    done = harness(tmp_path, "run", *words, *more, "--max-tokens", "100")
    assert done.code not in (0, None)
    assert "Traceback" not in done.err
    assert "context" in done.err


def test_a_killed_worker_ends_streams_with_an_error_and_the_server_comes_back(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal)
    api = engine(mortal).pid
    kill(named(mortal, "VLLM::Worker")[0])
    wait_until(lambda: health(mortal) != 200, "the server to notice")
    reading.join()
    # A stream that fails ends as one that is complete does, but for the finish reason.
    assert (stream.status, stream.finish, stream.done, stream.broken) == (200, [], True, None)
    assert stream.errors[0]["code"] == 500
    # The API process answers for some seconds more, then ends by itself.
    wait_for_restart(mortal, restarts + 1)
    assert engine(mortal).pid != api
    assert ask(mortal).finish == ["stop"]


def test_a_killed_api_process_takes_its_engine_along_and_the_server_comes_back(mortal: RunningServer) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    stream, reading = begin(mortal)
    workers = [*named(mortal, "VLLM::Worker"), *named(mortal, "VLLM::EngineCore")]
    assert len(workers) == 2
    kill(engine(mortal).pid)
    reading.join()
    assert (stream.finish, stream.done, stream.broken) == ([], False, "RemoteProtocolError")
    wait_for_restart(mortal, restarts + 1)
    assert not set(workers) & set(engine_processes())


def test_a_run_outlives_the_death_of_its_server(mortal: RunningServer, tmp_path: Path) -> None:
    restarts = engine(mortal).restarts
    wait_until(lambda: health(mortal) == 200, "health")
    words = ("run", "demo:8", "--limit", "25", "--base-url", mortal.base_urls[0], "--out", "run", "--no-canary")
    folder = tmp_path / "run" / "demo"
    running = subprocess.Popen(
        argv(*words, "--concurrency", "4", "--idle-timeout", "60", "--attempts", "20"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: (folder / "samples.jsonl").exists() and len(samples(tmp_path / "run")) > 8, "first samples")
    kill(named(mortal, "VLLM::Worker")[0])
    wait_for_restart(mortal, restarts + 1)
    _, err = running.communicate()
    assert running.returncode == 0, err
    stored = samples(tmp_path / "run")
    assert len({(one["question_id"], one["sample_index"]) for one in stored}) == len(stored) == 200


def test_stopping_in_the_middle_of_a_stream_leaves_nothing(vllm: Path, models: Path, private_state: Path) -> None:
    before = set(engine_processes())
    with launched(vllm_spec(vllm, models)) as server:
        stream, reading = begin(server)
        server.stop()
        reading.join()
    # Which of the three comes is a race inside vLLM; none of them is a finished reply.
    assert set(stream.finish) <= {"abort"}
    assert stream.finish or stream.errors or stream.broken
    assert set(engine_processes()) <= before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_launcher_that_is_killed_leaves_nothing(
    vllm: Path, models: Path, private_state: Path, tmp_path: Path, number: int
) -> None:
    before = set(engine_processes())
    spec = vllm_spec(vllm, models)
    words = [spec.model, "--python", str(vllm), "--device", "cpu", "--eager", "--context", "2048", "--name", "doomed"]
    words += [word for name, value in VLLM_ENVIRONMENT.items() for word in ("--env", f"{name}={value}")]
    running = subprocess.Popen([sys.executable, "-m", "server_launchers.vllm", *words], stderr=subprocess.PIPE)
    state = supervisor.state.path_of("doomed")
    # In the middle of a start: the engine has made its own children.
    wait_until(lambda: state.exists() and len(set(engine_processes()) - before) >= 3, "a start to be under way")
    running.send_signal(number)
    running.communicate()
    wait_until(lambda: set(engine_processes()) <= before, "everything to end")


def test_harness_run_starts_asks_and_stops_it(vllm: Path, models: Path, tmp_path: Path) -> None:
    before = set(engine_processes())
    words = ["run", "demo:1", "--limit", "10", "--out", "run", "--serve", "vllm", "--model", str(models / "smollm2")]
    words += ["--served-name", "smol", "--python", str(vllm), "--device", "cpu", "--eager", "--max-model-len", "4096"]
    words += ["--dtype", "bfloat16", "--max-sequences", "8", "--max-tokens", "256"]
    words += [word for name, value in VLLM_ENVIRONMENT.items() for word in ("--env", f"{name}={value}")]
    done = harness(tmp_path, *words)
    assert done.code == 0, done.err
    stored = samples(tmp_path / "run")
    assert len({one["question_id"] for one in stored}) == len(stored) == 10
    assert {one["server_model"] for one in stored} == {"smol"}
    assert set(engine_processes()) <= before


def test_tensor_parallel_workers_answer_and_die_together(vllm: Path, models: Path, private_state: Path) -> None:
    spec = vllm_spec(vllm, models, tp=2, environment=VLLM_BOTH_CORES, reasoning_parser="deepseek_r1")
    with launched(spec) as server:
        workers = named(server, "VLLM::Worker_TP")
        assert len(workers) == 2
        reply = ask(server)
        assert (reply.text("reasoning"), reply.text("content"), reply.finish) == (THOUGHT, ANSWER, ["stop"])
        stream, reading = begin(server)
        kill(workers[1])
        reading.join()
        assert (stream.finish, stream.done) == ([], True)
        wait_until(lambda: known(server).status == "exited", "the server to end")
        assert engine(server).exit_code is not None


def test_data_parallel_engines_behind_one_address_share_the_work(
    vllm: Path, models: Path, private_state: Path, tmp_path: Path
) -> None:
    spec = vllm_spec(vllm, models, dp=2, dp_mode="engine", environment=VLLM_BOTH_CORES, reasoning_parser="deepseek_r1")
    with launched(spec) as server:
        assert len(named(server, "VLLM::EngineCore")) == 2
        done = harness(tmp_path, *RUN, "--base-url", server.base_urls[0])
        assert done.code == 0, done.err
        assert_complete(tmp_path / "run", 20)
        metrics = httpx.get(f"{server.base_urls[0]}/metrics", trust_env=False).text
        served = [
            line
            for line in metrics.splitlines()
            if line.startswith("vllm:request_success_total") and not line.endswith(" 0.0")
        ]
        assert all(any(f'engine="{number}"' in line for line in served) for number in (0, 1))


@pytest.mark.parametrize(("mode", "addresses"), [("client", 2), ("router", 1)])
def test_a_run_over_replicas_goes_on_when_one_dies(
    mode: str, addresses: int, vllm: Path, routers: Path, models: Path, private_state: Path, tmp_path: Path
) -> None:
    spec = vllm_spec(
        vllm, models, dp=2, dp_mode=mode, router_python=routers, restarts=1, reasoning_parser="deepseek_r1"
    )
    with launched(spec) as server:
        assert len(server.base_urls) == addresses
        streams = [begin(server) for _ in range(2)]
        kill(engine(server).pid)
        urls = [word for url in server.base_urls for word in ("--base-url", url)]
        done = harness(tmp_path, *RUN, *urls, "--attempts", "20")
        for _, reading in streams:
            reading.join()
        # `begin` asks the first address: both streams were the dead replica's, or the router gave it one of them.
        assert [bool(stream.finish) for stream, _ in streams].count(False) == (2 if mode == "client" else 1)
        assert done.code == 0, done.err
        assert_complete(tmp_path / "run", 20)
        assert [member.restarts for member in known(server).members][:2] == [1, 0]
