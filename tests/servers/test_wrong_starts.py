"""Wrong starts of real engines: each ends with one plain cause and leaves no process behind.

The ends of their logs are recorded (`tests/server_launchers/recorded_logs.py`); here the engines write them anew.
"""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server_launchers.errors import LaunchError
from server_launchers.lifecycle import launch
from server_launchers.spec import ServerSpec
from tests.server_launchers.recorded_logs import CAUSES
from tests.servers import environments
from tests.servers.conftest import engine_processes
from tests.servers.specs import MODEL, VLLM_ENVIRONMENT, sglang_spec, vllm_spec

SPECS: dict[str, Callable[..., ServerSpec]] = {"vllm": vllm_spec, "sglang": sglang_spec}
VERSIONS = {"vllm": environments.VLLM_VERSION, "sglang": environments.SGLANG_VERSION}
# How a start is wrong → what differs from a start that works, in the spec and in the model's configuration.
WRONG: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "bad-parser": ({"reasoning_parser": "nonsense"}, {}),
    "not-found-offline": ({"model": "nobody/nothing"}, {}),
    "context": ({"context": 50_000}, {}),
    "tp2-one-core": ({"tp": 2}, {}),
    "heads": ({"tp": 3}, {}),
    "custom": ({}, {"auto_map": {"AutoConfig": "mine.Mine"}, "model_type": "mine"}),
    "arch": ({}, {"architectures": ["NobodyForCausalLM"]}),
    "cut": ({}, {"cut": True}),
    "dtype": ({"dtype": "nonsense"}, {}),
    "kvcache": ({"environment": {**VLLM_ENVIRONMENT, "VLLM_CPU_KVCACHE_SPACE": "4000"}}, {}),
    "no-device": ({"device": "cuda", "attention_backend": None}, {}),
}
STARTS = [(engine, name) for engine in SPECS for name in WRONG if f"{engine}-{VERSIONS[engine]}-{name}" in CAUSES]


@pytest.mark.parametrize(("engine", "name"), STARTS)
def test_a_wrong_start_writes_the_log_that_is_recorded(
    engine: str, name: str, models: Path, private_state: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    python, before = request.getfixturevalue(engine), set(engine_processes())
    changes, config = WRONG[name]
    if config:
        model = shutil.copytree(models / MODEL, tmp_path / "model")
        (model / "mine.py").write_text("raise SystemExit('this code must not run')\n")
        (model / "config.json").write_text(json.dumps(json.loads((model / "config.json").read_text()) | config))
        if "cut" in config:
            weights = model / "model.safetensors"
            weights.write_bytes(weights.read_bytes()[:100_000])
        changes = {**changes, "model": str(model)}
    with pytest.raises(LaunchError) as refused:
        launch.launch(SPECS[engine](python, models, **changes)).stop()
    assert CAUSES[f"{engine}-{VERSIONS[engine]}-{name}"] in str(refused.value).splitlines()[0]
    assert set(engine_processes()) <= before


@pytest.mark.parametrize("engine", SPECS)
def test_a_start_whose_log_does_not_grow_is_ended(
    engine: str, models: Path, private_state: Path, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(LaunchError, match=r"log has not grown for 2 s"):
        launch.launch(SPECS[engine](request.getfixturevalue(engine), models, start_timeout=2.0)).stop()


def test_a_port_in_use_is_told_with_its_holder(vllm: Path, models: Path, private_state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LaunchError, match=f"port {port}: Address already in use, held by process"):
            launch.launch(vllm_spec(vllm, models, port=port))
