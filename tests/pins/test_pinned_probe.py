"""Pins of `harness probe`: the bodies that it sends to each engine, and its report.

The issue of these pins changes bodies that lack the neutral sampling values which a run sends. Then, and only for that,
the golden files are written anew.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins.stage import Scene, Stage, name_of, write_sums
from tests.pins.word_model import word_model

SEED = ("--seed", "3", "--json")


def probed(stage: Stage, engine: str, *words: str) -> None:
    """One engine, whose model really samples."""
    server = stage.server("server", word_model(engine))
    stage.command("probe", server.base_url, *words, *SEED)
    stage.requests(server)


def vllm(stage: Stage) -> None:
    """Every check of vLLM."""
    probed(stage, "vllm")


def sglang(stage: Stage) -> None:
    """The quick checks of SGLang."""
    probed(stage, "sglang", "--quick")


def llama_cpp(stage: Stage) -> None:
    """The quick checks of llama.cpp."""
    probed(stage, "llama.cpp", "--quick")


def a_plain_server(stage: Stage) -> None:
    """The quick checks of a server that states nothing of itself."""
    probed(stage, "plain", "--quick")


def beside_a_reference(stage: Stage) -> None:
    """Other weights beside a server that has the true ones."""
    true, second = stage.server("true", word_model("vllm")), stage.server("other", word_model("vllm", "b"))
    stage.command("probe", second.base_url, "--reference", true.base_url, "--checks", "reference", *SEED)
    stage.requests(second)


def beside_a_file(stage: Stage) -> None:
    """A reference that was written to a file."""
    server = stage.server("server", word_model("vllm"))
    stage.command("probe", server.base_url, "--save-reference", "reference.json", "--quick", *SEED)
    stage.file("reference.json")
    since = len(server.requests)
    words = ["--reference", "reference.json", "--checks", "weights", "--seed", "3"]
    stage.command("probe", server.base_url, *words)
    stage.requests(server, since)
    stage.tree(".")


def without_usage(stage: Stage) -> None:
    """A server that counts no tokens: how much of a prompt it got is seen by its log-probabilities."""
    server = stage.server("server", word_model("vllm", usage=False))
    stage.command("probe", server.base_url, "--checks", "context,usage,length", *SEED)
    stage.requests(server)


def before_a_run(stage: Stage) -> None:
    """A run that is probed first."""
    write_sums(stage.folder, 1)
    server = stage.server("server", word_model("vllm"))
    words = ["run", "--data", "sums.jsonl", "--id-key", "id", "--base-url", server.base_url, "--max-tokens", "8"]
    stage.command(*words, "--out", "run", "--probe", "--json")


def refusals(stage: Stage) -> None:
    """What cannot be probed."""
    server = stage.server("server", word_model("vllm"))
    stage.command("probe", server.base_url, "--checks", "temprature 0")
    stage.command("probe", server.base_url, "--model", "nobody")
    stage.command("probe", server.base_url, "--reference", "nowhere")


SCENES: tuple[Scene, ...] = (
    vllm,
    sglang,
    llama_cpp,
    a_plain_server,
    beside_a_reference,
    beside_a_file,
    without_usage,
    before_a_run,
    refusals,
)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
