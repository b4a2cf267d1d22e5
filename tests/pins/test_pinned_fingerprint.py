"""Pins of a run's fingerprint: eight greedy requests to each server, and what the manifest keeps of the replies.

The issue of these pins changes the bodies: they lack the neutral sampling values that a run sends. Then, and only for
that, the golden files are written anew.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins.server import solving
from tests.pins.stage import Scene, Stage, name_of, write_sums


def taken(stage: Stage, engine: str, *words: str) -> None:
    """Two sessions of one run: the second compares with what the first stored."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(60, engine))
    common = ["run", "--data", "sums.jsonl", "--id-key", "id", "--base-url", server.base_url, "--out", "run", "--json"]
    stage.command(*common, "--samples", "1", *words)
    stage.requests(server)
    since = len(server.requests)
    stage.command(*common, "--samples", "2", *words)
    stage.requests(server, since)
    stage.file("run/manifest.json")


def vllm(stage: Stage) -> None:
    """vLLM, by default."""
    taken(stage, "vllm")


def llama_cpp(stage: Stage) -> None:
    """llama.cpp, by default, with values of sampling of the run's own."""
    taken(stage, "llama.cpp", "--top-k", "20", "--extra-body", '{"top_a": 1}')


def a_plain_server(stage: Stage) -> None:
    """A server of no known engine, where it is asked for."""
    taken(stage, "plain", "--fingerprint")


SCENES: tuple[Scene, ...] = (vllm, llama_cpp, a_plain_server)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
