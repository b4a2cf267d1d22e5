"""Pins of `harness run` and `harness.run`: bodies, manifest, stored samples, `--json`, from both doors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.pins.server import solving
from tests.pins.stage import Scene, Stage, name_of, write_sums

KEY = ("question_id", "sample_index")


def both_doors(stage: Stage, words: list[str], keywords: dict[str, Any], engine: str = "plain") -> None:
    """The same run by the command and by Python: all recorded of the first, and the second held to it."""
    write_sums(stage.folder, 3)
    server = stage.server("server", solving(60, engine, kinds=True))
    common = ["--base-url", server.base_url, "--out", "run", "--no-progress", "--json", "--concurrency", "2"]
    printed = stage.command("run", *words, *common)
    assert printed.code == 0, printed.err
    posted = stage.requests(server)
    manifest = stage.file("run/manifest.json")
    stage.file(f"run/{benchmark(stage)}/questions.jsonl")
    stage.file(f"run/{benchmark(stage)}/samples.jsonl", ordered_by=KEY)
    (stage.folder / "run").rename(stage.folder / "by-command")
    since = len(server.requests)
    stage.python("run", base_url=server.base_url, out="run", concurrency=2, **keywords)
    stage.alike(posted, stage.requests(server, since, record=False))
    stage.alike(manifest, stage.content("run/manifest.json"))


def benchmark(stage: Stage) -> str:
    """The name of the run's one benchmark."""
    (folder,) = [path for path in (stage.folder / "run").iterdir() if path.is_dir()]
    return folder.name


def defaults(stage: Stage) -> None:
    """Nothing is said but the questions."""
    both_doors(stage, ["--data", "sums.jsonl", "--id-key", "id"], {"data": "sums.jsonl", "id_key": "id"})


def a_card(stage: Stage) -> None:
    """A shipped card with fewer questions and samples."""
    both_doors(stage, ["demo:2", "--limit", "2"], {"benchmarks": "demo:2", "limit": 2})


def every_sampling_value(stage: Stage) -> None:
    """Each value of sampling that a run sends, and fields of the caller's own."""
    words = ["--data", "sums.jsonl", "--id-key", "id", "--samples", "2", "--temperature", "0.7", "--top-p", "0.9"]
    words += ["--top-k", "20", "--min-p", "0.05", "--max-tokens", "512", "--repetition-penalty", "1.05"]
    words += ["--presence-penalty", "0.5", "--frequency-penalty", "0.25", "--stop", "END", "--stop", "STOP"]
    words += ["--seed", "7", "--system-prompt", "Answer briefly.", "--extra-body", '{"logit_bias": {"5": -1}}']
    words += ["--chat-template-kwargs", '{"enable_thinking": true}', "--filter", "level=1", "--drop", "top_k"]
    keywords = {
        "data": "sums.jsonl", "id_key": "id", "samples": 2, "temperature": 0.7, "top_p": 0.9, "top_k": 20,
        "min_p": 0.05, "max_tokens": 512, "repetition_penalty": 1.05, "presence_penalty": 0.5,
        "frequency_penalty": 0.25, "stop": ["END", "STOP"], "seed": 7, "system_prompt": "Answer briefly.",
        "extra_body": {"logit_bias": {"5": -1}}, "chat_template_kwargs": {"enable_thinking": True},
        "filter": ["level=1"], "drop": "top_k",
    }  # fmt: skip
    both_doors(stage, words, keywords)


def a_preset(stage: Stage) -> None:
    """A model's preset with its thinking switched, on vLLM: neutral values are sent for what it leaves out."""
    words = ["--data", "sums.jsonl", "--id-key", "id", "--preset", "qwen3", "--thinking", "off"]
    keywords = {"data": "sums.jsonl", "id_key": "id", "preset": "qwen3", "thinking": "off"}
    both_doors(stage, words, keywords, "vllm")


def sglang(stage: Stage) -> None:
    """SGLang, with a fingerprint."""
    both_doors(stage, ["--data", "sums.jsonl", "--id-key", "id"], {"data": "sums.jsonl", "id_key": "id"}, "sglang")


def llama_cpp(stage: Stage) -> None:
    """llama.cpp: slots decide the concurrency; no fingerprint is taken."""
    words = ["--data", "sums.jsonl", "--id-key", "id", "--no-fingerprint"]
    keywords = {"data": "sums.jsonl", "id_key": "id", "fingerprint": False}
    both_doors(stage, words, keywords, "llama.cpp")


def completions(stage: Stage) -> None:
    """The protocol of plain completions, with a prefill and whole replies."""
    words = ["demo", "--limit", "2", "--api", "completions", "--preset", "greedy", "--no-stream", "--seed", "none"]
    keywords = {
        "benchmarks": "demo", "limit": 2, "api": "completions", "preset": "greedy", "stream": False, "seed": None
    }  # fmt: skip
    both_doors(stage, words, keywords)


def resumed(stage: Stage) -> None:
    """More samples extend a run; another temperature is refused with what differs, by both doors."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(60))
    common = ["run", "--data", "sums.jsonl", "--id-key", "id", "--base-url", server.base_url, "--out", "run", "--json"]
    stage.command(*common, "--samples", "1")
    since = len(server.requests)
    stage.command(*common, "--samples", "2")
    stage.requests(server, since)
    stage.file("run/manifest.json")
    stage.command(*common, "--samples", "2", "--temperature", "1", show_errors=True)
    stage.python("run", data="sums.jsonl", id_key="id", base_url=server.base_url, out="run", samples=2, temperature=1.0)


def dry(stage: Stage) -> None:
    """`--dry-run` shows every setting and the first prompt, and sends nothing."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(60, "vllm"))
    words = ["run", "--data", "sums.jsonl", "--base-url", server.base_url, "--preset", "r1", "--dry-run", "--out", "r"]
    stage.command(*words)
    stage.requests(server)


def refusals(stage: Stage) -> None:
    """Wrong options are one sentence, in the words of each door."""
    write_sums(stage.folder, 2)
    for words, keywords in (
        (["--temperature", "-1"], {"temperature": -1.0}),
        (["--samples", "0"], {"samples": 0}),
        (["--thinking", "maybe"], {"thinking": "maybe"}),
        (["--preset", "qwq"], {"preset": "qwq"}),
        (["--base-url", "http://a", "--server", "b"], {"base_url": "http://a", "server": "b"}),
        (["--extra-body", "[1]"], {"extra_body": "[1]"}),
        (["--out", ""], {"out": ""}),
        (["--drop", "everything"], {"drop": "everything"}),
    ):
        stage.command("run", "--data", "sums.jsonl", *words)
        stage.python("run", data="sums.jsonl", **keywords)


SCENES: tuple[Scene, ...] = (
    defaults, a_card, every_sampling_value, a_preset, sglang, llama_cpp, completions, resumed, dry, refusals
)  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
