"""Wrong starts of real engines, provoked one by one: each ends with one plain cause and leaves no process behind."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from server_launchers import replicas
from server_launchers.engines import table
from server_launchers.errors import LaunchError
from server_launchers.keeping import launch, servers
from server_launchers.machine import processes
from server_launchers.spec import ServerSpec
from tests.servers.conftest import engine_processes
from tests.servers.running import wait_until
from tests.servers.specs import CONTEXT, MODEL, VLLM_ENVIRONMENT, sglang_spec, vllm_spec

SPECS: dict[str, Callable[..., ServerSpec]] = {"vllm": vllm_spec, "sglang": sglang_spec}


@pytest.fixture(params=["vllm", "sglang"])
def engine(request: pytest.FixtureRequest, models: Path, private_state: Path) -> Iterator[Callable[..., ServerSpec]]:
    """Makes specs of one engine; afterwards nothing of it runs."""
    python = request.getfixturevalue(request.param)
    before = set(engine_processes())

    def spec(**changes: Any) -> ServerSpec:
        return SPECS[request.param](python, models, **changes)

    yield spec
    assert set(engine_processes()) <= before


def cause_of(spec: ServerSpec) -> str:
    """The first line of what a user is told."""
    with pytest.raises(LaunchError) as refused:
        launch.launch(spec).stop()
    return str(refused.value).splitlines()[0]


def unchecked(spec: ServerSpec, *words: str) -> ServerSpec:
    """The engine's command line with more words, past what the launcher looks at before a start."""
    command = replicas.deploy(spec, [8000], table.inspect(spec)).processes[0].command
    argv = [*("{port}" if word == "8000" else word for word in command.argv), *words]
    return ServerSpec(
        engine="command", served_name="m", extra_flags=tuple(argv), environment=dict(command.environment),
        health_path="/health",
    )  # fmt: skip


def changed_model(models: Path, folder: Path, **settings: Any) -> Path:
    """The scripted model with other settings."""
    copy = shutil.copytree(models / MODEL, folder / "model")
    config = copy / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | settings))
    return copy


def test_an_unknown_option_is_named_before_the_start_and_by_the_engine(engine: Callable[..., ServerSpec]) -> None:
    assert "has no option --nonsense" in cause_of(engine(extra_flags=("--nonsense", "4")))
    assert "does not know the option --nonsense" in cause_of(unchecked(engine(), "--nonsense", "4"))


def test_an_unknown_reasoning_parser_is_named(engine: Callable[..., ServerSpec]) -> None:
    assert "nonsense" in (cause := cause_of(engine(reasoning_parser="nonsense")))
    # One that the engine has; its list is clipped.
    assert "glm45" in cause


def test_a_model_that_is_nowhere_is_said_to_be_nowhere(engine: Callable[..., ServerSpec], tmp_path: Path) -> None:
    assert "not in the cache and the hub cannot be reached" in cause_of(engine(model="nobody/nothing"))
    assert "there is no model at" in cause_of(engine(model=str(tmp_path / "none")))
    assert "holds no model: no config.json" in cause_of(engine(model=str(tmp_path)))


def test_a_context_beyond_the_models_is_told_with_both_numbers(engine: Callable[..., ServerSpec]) -> None:
    cause = cause_of(engine(context=50000))
    assert "50000" in cause
    assert str(CONTEXT) in cause
    assert "--max-model-len" in cause


def test_workers_beyond_the_memory_nodes_are_counted_with_the_variable_that_binds_them(
    engine: Callable[..., ServerSpec],
) -> None:
    cause = cause_of(engine(tp=2))
    assert "2 workers are more than the processor's memory nodes" in cause
    assert "OMP_THREADS_BIND" in cause


def test_a_model_with_code_of_its_own_is_not_trusted(
    engine: Callable[..., ServerSpec], models: Path, tmp_path: Path
) -> None:
    model = changed_model(models, tmp_path, auto_map={"AutoConfig": "mine.Mine"}, model_type="mine")
    (model / "mine.py").write_text("raise SystemExit('this code must not run')\n")
    assert "--trust-remote-code" in cause_of(engine(model=str(model)))


def test_an_architecture_that_is_too_new_is_named(
    engine: Callable[..., ServerSpec], models: Path, tmp_path: Path
) -> None:
    model = changed_model(models, tmp_path, architectures=["NobodyForCausalLM"])
    assert "NobodyForCausalLM" in cause_of(engine(model=str(model)))


def test_damaged_weights_are_said_to_be_damaged(
    engine: Callable[..., ServerSpec], models: Path, tmp_path: Path
) -> None:
    model = changed_model(models, tmp_path)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100_000])
    assert "weights is damaged" in cause_of(engine(model=str(model)))


def test_a_wrong_number_format_is_refused_with_the_right_ones(engine: Callable[..., ServerSpec]) -> None:
    cause = cause_of(engine(dtype="nonsense"))
    assert "refuses an option: argument --dtype" in cause
    assert "bfloat16" in cause


def test_a_port_in_use_is_told_with_its_holder_or_by_the_engine(engine: Callable[..., ServerSpec]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        cause = cause_of(engine(port=port))
        assert f"port {port}: Address already in use, held by process" in cause
        assert "a port is in use" in cause_of(unchecked(engine(), "--port", str(port)))


def test_a_start_that_is_killed_says_so(engine: Callable[..., ServerSpec]) -> None:
    spec = engine(name="killed")
    file = servers.path_of("killed")

    def kill() -> None:
        wait_until(lambda: (known := servers.read(file)) is not None and known.members[0].pid is not None, "a start")
        known = servers.read(file)
        assert known is not None
        main = known.members[0]
        assert main.pid is not None
        wait_until(lambda: bool(processes.descendants(main.pid or 0)), "a child")
        processes.Process(main.pid, main.started or "").signal(signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    assert "killed by signal 9 (SIGKILL)" in cause_of(spec)
    killing.join()


def test_a_start_that_says_nothing_any_more_ends(engine: Callable[..., ServerSpec]) -> None:
    begun = time.monotonic()
    assert "its log did not advance for 2 s (--start-timeout)" in cause_of(engine(start_timeout=2.0))
    assert time.monotonic() - begun < 300


def test_vllm_counts_heads_that_cannot_be_spread(vllm: Path, models: Path, private_state: Path) -> None:
    cause = cause_of(vllm_spec(vllm, models, tp=3))
    assert "4 attention heads cannot be spread over --tp 3" in cause


def test_vllm_says_that_the_memory_does_not_hold_its_cache(vllm: Path, models: Path, private_state: Path) -> None:
    spec = vllm_spec(vllm, models, environment={**VLLM_ENVIRONMENT, "VLLM_CPU_KVCACHE_SPACE": "4000"})
    assert "4000.0 are needed: lower VLLM_CPU_KVCACHE_SPACE" in cause_of(spec)


def test_sglang_without_a_device_says_that_it_sees_none(sglang: Path, models: Path, private_state: Path) -> None:
    assert "sees no device" in cause_of(sglang_spec(sglang, models, device="cuda", attention_backend=None))
