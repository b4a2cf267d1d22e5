"""Wrong starts of real engines: each ends with one plain cause and leaves no process behind.

The ends of their logs are recorded (`tests/server_launchers/logs`); here the engine of today writes them.
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
from tests.servers.conftest import engine_processes
from tests.servers.specs import CONTEXT, MODEL, VLLM_ENVIRONMENT, sglang_spec, vllm_spec

SPECS: dict[str, Callable[..., ServerSpec]] = {"vllm": vllm_spec, "sglang": sglang_spec}
BOTH = tuple(SPECS)


@pytest.mark.parametrize(
    ("engines", "changes", "config", "causes"),
    [
        (BOTH, {"extra_flags": ("--nonsense", "4")}, {}, ["does not know the option --nonsense"]),
        (BOTH, {"reasoning_parser": "nonsense"}, {}, ["nonsense", "glm45"]),
        (BOTH, {"model": "nobody/nothing"}, {}, ["not in the cache and the hub cannot be reached"]),
        (BOTH, {"context": 50_000}, {}, ["50000", str(CONTEXT), "--max-model-len"]),
        (BOTH, {"tp": 2}, {}, ["2 workers are more than the processor's memory nodes", "OMP_THREADS_BIND"]),
        (BOTH, {}, {"auto_map": {"AutoConfig": "mine.Mine"}, "model_type": "mine"}, ["--trust-remote-code"]),
        (BOTH, {}, {"architectures": ["NobodyForCausalLM"]}, ["NobodyForCausalLM"]),
        (BOTH, {}, {"damaged": True}, ["weights is damaged"]),
        (BOTH, {"dtype": "nonsense"}, {}, ["refuses an option: argument --dtype", "bfloat16"]),
        (BOTH, {"start_timeout": 2.0}, {}, ["its log has not grown for 2 s (--start-timeout)"]),
        (("vllm",), {"tp": 3}, {}, ["4 attention heads cannot be spread over --tp 3"]),
        (
            ("vllm",),
            {"environment": {**VLLM_ENVIRONMENT, "VLLM_CPU_KVCACHE_SPACE": "4000"}},
            {},
            ["4000.0 are needed: lower VLLM_CPU_KVCACHE_SPACE"],
        ),
        (("sglang",), {"device": "cuda", "attention_backend": None}, {}, ["sees no device"]),
    ],
)
@pytest.mark.parametrize("engine", BOTH)
def test_a_wrong_start_is_told_by_its_cause(
    engine: str,
    engines: tuple[str, ...],
    changes: dict[str, Any],
    config: dict[str, Any],
    causes: list[str],
    models: Path,
    private_state: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """config: settings of the model that differ; damaged: its weights are cut."""
    if engine not in engines:
        pytest.skip("of another engine")
    python, before = request.getfixturevalue(engine), set(engine_processes())
    if config:
        model = shutil.copytree(models / MODEL, tmp_path / "model")
        (model / "mine.py").write_text("raise SystemExit('this code must not run')\n")
        (model / "config.json").write_text(json.dumps(json.loads((model / "config.json").read_text()) | config))
        if "damaged" in config:
            weights = model / "model.safetensors"
            weights.write_bytes(weights.read_bytes()[:100_000])
        changes = {**changes, "model": str(model)}
    with pytest.raises(LaunchError) as refused:
        launch.launch(SPECS[engine](python, models, **changes)).stop()
    said = str(refused.value).splitlines()[0]
    assert [cause for cause in causes if cause not in said] == [], said
    assert set(engine_processes()) <= before


def test_a_port_in_use_is_told_with_its_holder(vllm: Path, models: Path, private_state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LaunchError, match=f"port {port}: Address already in use, held by process"):
            launch.launch(vllm_spec(vllm, models, port=port))
