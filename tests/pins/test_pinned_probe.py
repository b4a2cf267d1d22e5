"""Pins of `harness probe`: the bodies that it sends to each engine, and its report.

The issue of these pins changes bodies that lack the neutral sampling values which a run sends. Then, and only for that,
the golden files are written anew.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.token_server import Model, TokenServer
from tests.pins.server import solving
from tests.pins.stage import Scene, Stage, name_of

SEED = ("--seed", "3", "--json")


def probed(stage: Stage, engine: str, *words: str) -> None:
    """One engine, whose model is a function of the tokens before."""
    server = stage.server("server", TokenServer(Model(), engine))
    stage.command("probe", server.base_url, *words, *SEED)
    stage.requests(server)


def vllm(stage: Stage) -> None:
    """The quick checks of vLLM."""
    probed(stage, "vllm", "--quick")


def sglang(stage: Stage) -> None:
    """The quick checks of SGLang."""
    probed(stage, "sglang", "--quick")


def llama_cpp(stage: Stage) -> None:
    """The quick checks of llama.cpp."""
    probed(stage, "llama.cpp", "--quick")


def sampling(stage: Stage) -> None:
    """The checks of sampling."""
    probed(stage, "vllm", "--checks", "sampling")


def beside_a_reference(stage: Stage) -> None:
    """Weights beside a reference that was written to a file."""
    server = stage.server("server", TokenServer(Model(), "vllm"))
    stage.command("probe", server.base_url, "--save-reference", "reference.json", "--quick", *SEED)
    since = len(server.requests)
    stage.command("probe", server.base_url, "--reference", "reference.json", "--checks", "weights", *SEED)
    stage.requests(server, since)


def a_plain_server(stage: Stage) -> None:
    """A server that states nothing of itself."""
    server = stage.server("server", solving(60))
    stage.command("probe", server.base_url, "--checks", "protocol", *SEED)
    stage.requests(server)


SCENES: tuple[Scene, ...] = (vllm, sglang, llama_cpp, sampling, beside_a_reference, a_plain_server)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
