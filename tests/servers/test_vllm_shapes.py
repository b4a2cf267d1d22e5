"""A real vLLM on the CPU within a run, with several workers, with several engines, and as replicas."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from tests.servers.running import RUN, assert_complete, engine, harness, kill, known, launched, named, wait_until
from tests.servers.specs import ANSWER, MODEL, THOUGHT, VLLM_BOTH_CORES, vllm_spec
from tests.servers.streams import ask, begin


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


def test_engines_behind_one_address_share_work(vllm: Path, models: Path, private_state: Path, tmp_path: Path) -> None:
    spec = vllm_spec(vllm, models, dp=2, dp_mode="engine", environment=VLLM_BOTH_CORES, reasoning_parser="deepseek_r1")
    with launched(spec) as server:
        assert len(named(server, "VLLM::EngineCore")) == 2
        done = harness(tmp_path, *RUN, "--base-url", server.base_urls[0])
        assert done.code == 0, done.err
        assert_complete(tmp_path / "run", 20)
        metrics = httpx.get(f"{server.base_urls[0]}/metrics", trust_env=False).text
        served = re.findall(r'^vllm:request_success_total.*engine="(\d)".* (?!0\.0$)\S+$', metrics, re.MULTILINE)
        assert {*served} >= {"0", "1"}


def test_a_run_goes_on_when_one_replica_dies(vllm: Path, models: Path, private_state: Path, tmp_path: Path) -> None:
    with launched(vllm_spec(vllm, models, dp=2, restarts=1, reasoning_parser="deepseek_r1")) as server:
        assert len(server.base_urls) == 2
        stream, reading = begin(server)
        kill(engine(server).pid)
        urls = [word for url in server.base_urls for word in ("--base-url", url)]
        done = harness(tmp_path, *RUN, *urls, "--model", MODEL, "--attempts", "20")
        reading.join()
        assert stream.finish == []
        assert done.code == 0, done.err
        assert_complete(tmp_path / "run", 20)
        assert [member.restarts for member in known(server).members][:2] == [1, 0]
