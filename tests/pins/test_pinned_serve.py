"""Pins of `harness serve ENGINE --dry-run`: each engine's command line and environment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server_launchers.machine.known_flags import recorded_versions
from server_launchers.spec import ENGINES
from tests.pins.stage import Scene, Stage, name_of

VERSIONS = {
    "vllm": "0.33.0",
    "sglang": "0.5.23",
    "vllm_ascend": "0.18.0",
    "tensorrt_llm": "1.2.0",
    "transformers": "5.23.0",
    "llama_cpp": "",
    "sglang_router": "0.3.2",
}
VERSIONS |= {name: versions[-1] for name in ENGINES if name not in VERSIONS and (versions := recorded_versions(name))}
"""Engine → the version that it is started as: what happens to be installed changes no pin, and takes no look.

A new engine is started as the newest whose options are recorded.
"""

OPTIONS = (
    (),
    ("--tp", "2"),
    ("--dp", "2", "--dp-mode", "engine"),
    ("--max-model-len", "8192", "--memory-fraction", "0.8", "--max-sequences", "16", "--max-batched-tokens", "4096"),
    ("--dtype", "bfloat16", "--quantization", "fp8", "--reasoning-parser", "deepseek_r1", "--attention-backend", "x"),
    ("--sampling-defaults", "model", "--server-seed", "5", "--eager", "--no-prefix-caching", "--trust-remote-code"),
    ("--deterministic", "--env", "A=b", "--served-name", "mine", "--", "--own-flag", "1"),
    ("--tp", "8", "--nodes", "2", "--node-rank", "1", "--head-address", "10.0.0.1", "--head-port", "5000"),
)


def every_engine(stage: Stage) -> None:
    """Each group of options to each engine: a command line, or the sentence of a refusal."""
    for engine, version in VERSIONS.items():
        stated = ("--engine-version", version) if version else ()
        for words in OPTIONS:
            stage.command("serve", engine, "org/model", "--dry-run", *stated, *words, show_errors=True)
    stage.command("serve", "vllm", "org/model", "--dry-run", "--engine-version", "0.7.3", "--deterministic")
    stage.command("serve", "sglang", "org/model", "--dry-run", "--engine-version", "0.4.9", "--deterministic")


def others(stage: Stage) -> None:
    """A program of one's own, a server elsewhere, and what is refused by Python."""
    stage.command("serve", "command", "--dry-run", "--", "my-server", "--port", "{port}", show_errors=True)
    stage.command("serve", "external", "http://127.0.0.1:9", "--dry-run", show_errors=True)
    stage.command("serve", "vlm", "org/model", show_errors=True)
    stage.python("serve", "vlm", "org/model")
    stage.python("serve", "vllm", "org/model", tp=0)
    stage.python("serve", "vllm", "org/model", tpp=1)


SCENES: tuple[Scene, ...] = (every_engine, others)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
