"""What stands between a client and an engine: two routers and LiteLLM's proxy, before real llama.cpp servers."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from server_launchers.errors import LaunchError
from server_launchers.keeping import launch
from server_launchers.keeping.launch import RunningServer
from server_launchers.replicas import dry_run
from server_launchers.spec import ServerSpec
from tests.embedded import MODEL, embedded_spec
from tests.servers.running import engine, harness, kill, launched, samples, wait_for_restart
from tests.servers.streams import ask, begin_several

WORDS = ("run", "demo:1", "--limit", "6", "--max-tokens", "32", "--out", "run", "--no-canary", "--model", MODEL)


@pytest.fixture(scope="module")
def replicas(smollm2: Path, private_state: Path) -> Iterator[RunningServer]:
    """Two llama.cpp servers that come back when they die."""
    with launched(embedded_spec(smollm2, dp=2, restarts=9, name="replicas")) as server:
        yield server


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def vllm_router(replicas: RunningServer, routers: Path) -> Iterator[RunningServer]:
    """vLLM's router, by the launcher for any program."""
    words = (str(routers), "-m", "vllm_router.launch_router", "--host", "127.0.0.1", "--port", "{port}")
    more = ("--worker-urls", *replicas.base_urls, "--policy", "round_robin", "--prometheus-port", str(free_port()))
    spec = ServerSpec(
        engine="command", served_name=MODEL, extra_flags=(*words, *more), health_path="/readiness", name="vllm-router"
    )
    with launched(spec) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(replicas: RunningServer, litellm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """LiteLLM's proxy, by the launcher for any program."""
    config = tmp_path_factory.mktemp("litellm") / "config.yaml"
    config.write_text(
        "model_list:\n"
        f"  - model_name: {MODEL}\n"
        f"    litellm_params: {{model: openai/{MODEL}, api_base: {replicas.base_urls[0]}/v1, api_key: none}}\n"
    )
    spec = ServerSpec(
        engine="command",
        served_name=MODEL,
        extra_flags=(
            str(litellm.parent / "litellm"),
            "--config",
            str(config),
            "--host",
            "127.0.0.1",
            "--port",
            "{port}",
        ),
        environment={
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "NO_PROXY": "127.0.0.1",
        },
        health_path="/health/liveliness",
        name="litellm",
    )
    with launched(spec) as server:
        yield server


def test_vllms_router_passes_streams_and_models_through(vllm_router: RunningServer, replicas: RunningServer) -> None:
    through, direct = ask(vllm_router, seed=1, temperature=0), ask(replicas, seed=1, temperature=0)
    assert through.text() == direct.text()
    assert (through.finish, through.done) == (direct.finish, True)
    listed = httpx.get(f"{vllm_router.base_urls[0]}/v1/models", trust_env=False).json()
    assert [entry["id"] for entry in listed["data"]] == [MODEL]


def test_a_replica_that_dies_behind_vllms_router_cuts_its_streams_and_is_taken_back(
    vllm_router: RunningServer, replicas: RunningServer, tmp_path: Path
) -> None:
    restarts = engine(replicas).restarts
    streams = begin_several(vllm_router, 2, tokens=400)
    kill(engine(replicas).pid)
    for _, reading in streams:
        reading.join()
    cut = [stream for stream, _ in streams if not stream.finish]
    assert len(cut) == 1
    assert (cut[0].status, cut[0].broken) == (200, "RemoteProtocolError")
    done = harness(tmp_path, *WORDS, "--base-url", vllm_router.base_urls[0])
    assert done.code == 0, done.err
    assert len(samples(tmp_path / "run")) == 6
    wait_for_restart(replicas, restarts + 1)


def test_the_launcher_puts_vllms_router_before_replicas_only_where_it_is_installed(
    vllm: Path, models: Path, routers: Path
) -> None:
    spec = ServerSpec(
        engine="vllm", model=str(models / "scripted"), python=vllm, device="cpu", dp=2, dp_mode="router",
        router_python=routers,
    )  # fmt: skip
    *engines, router = dry_run(spec)
    assert len(engines) == 2
    assert router.startswith(f"{routers} -m vllm_router.launch_router")
    with pytest.raises(LaunchError, match="has no vllm_router"):
        launch.launch(spec.but(router_python=Path(sys.executable)))


def test_litellms_proxy_gives_a_complete_run(proxy: RunningServer, tmp_path: Path) -> None:
    reply = ask(proxy, max_tokens=8)
    assert (reply.finish, reply.done) == (["length"], True)
    assert [usage["completion_tokens"] for usage in reply.usage] == [8]
    done = harness(tmp_path, *WORDS, "--base-url", proxy.base_urls[0])
    assert done.code == 0, done.err
    stored = samples(tmp_path / "run")
    assert len({one["question_id"] for one in stored}) == len(stored) == 6
    assert all(one["usage"]["completion_tokens"] > 0 for one in stored)


def test_litellms_proxy_tells_of_a_prompt_that_is_too_long(proxy: RunningServer) -> None:
    reply = ask(proxy, "one two three " * 4000)
    assert reply.status == 400
    assert "ContextWindowExceededError" in reply.body
