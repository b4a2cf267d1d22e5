"""Pins of `harness run` and `harness.run`: bodies, manifest, stored samples, `--json`, from both doors."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from harness.presets.sampling import sampling_fields
from tests.faults.server import Request
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
    assert keywords.keys() >= sampling_fields().keys(), "each sampling option has a value here"
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


PROVIDERS = (
    "anthropic", "azure", "dashscope", "deepseek", "fireworks", "gemini", "generic", "groq", "mistral", "openai",
    "openrouter", "siliconflow", "together", "volcengine",
)  # fmt: skip


WITHOUT_SEEDS = ("anthropic",)


def providers(stage: Stage) -> None:
    """How each hosted provider is spoken to, with a key that is sent and stored nowhere."""
    write_sums(stage.folder, 1)
    os.environ["PINNED_KEY"] = "sk-pinned-0123456789"
    for provider in PROVIDERS:
        server = stage.server(provider, solving(60))
        words = ["run", "--data", "sums.jsonl", "--id-key", "id", "--provider", provider, "--model", "pinned"]
        words += ["--base-url", server.base_url, "--api-key-env", "PINNED_KEY", "--json"]
        if provider in WITHOUT_SEEDS:
            words += ["--seed", "none"]
        stage.command(*words, "--out", provider)
        stage.command(*words, "--out", f"{provider}-thinks", "--thinking", "on")
        stage.requests(server)
        manifest = (stage.folder / provider / "manifest.json").read_text("utf-8")
        assert "sk-pinned" not in manifest
        stage.note("spelt by", json.loads(manifest)["benchmarks"]["sums"]["settings"]["spelt_by"])
    stage.command("run", "demo", "--provider", "nobody")  # names all there are: a new one belongs in PROVIDERS


def transports(stage: Stage) -> None:
    """The body does not depend on how it travels."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(60, "vllm"))
    words = ["run", "--data", "sums.jsonl", "--id-key", "id", "--base-url", server.base_url, "--top-k", "20"]
    posted = []
    for transport in ("http", "openai"):
        since = len(server.requests)
        stage.command(*words, "--transport", transport, "--out", transport, "--json")
        posted.append(sorted(fields(request) for request in server.requests[since:] if request.method == "POST"))
    stage.alike(posted[0], posted[1])
    stage.alike(posted[0], posted[2])


def fields(request: Request) -> str:
    """The body's fields in an order of their own: the openai package has one of its own."""
    return json.dumps(request.json, sort_keys=True)


def from_the_environment(stage: Stage) -> None:
    """Defaults by environment names and by a file of them, and a sweep's file of one cell."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(60))
    os.environ |= {"HARNESS_RUN_TEMPERATURE": "0.3", "HARNESS_RUN_TOP_K": "7", "OPENAI_BASE_URL": server.base_url}
    (stage.folder / "mine.env").write_text("HARNESS_RUN_MAX_TOKENS=99\nHARNESS_RUN_LIMIT='1'\n", "utf-8")
    words = ["run", "--data", "sums.jsonl", "--id-key", "id", "--out", "run", "--json", "--env-file", "mine.env"]
    stage.command(*words)
    stage.requests(server)
    stage.file("run/manifest.json")
    for name in ("HARNESS_RUN_TEMPERATURE", "HARNESS_RUN_TOP_K", "HARNESS_RUN_MAX_TOKENS", "HARNESS_RUN_LIMIT"):
        os.environ.pop(name, None)
    cell = {
        "models": ["pinned"],
        "run": {"id_key": "id", "temperature": 0.4, "base_url": server.base_url},
        "benchmarks": [{"data": "sums.jsonl", "samples": 2}],
    }
    (stage.folder / "run.yaml").write_text(json.dumps(cell), "utf-8")
    since = len(server.requests)
    stage.command("run", "run.yaml", "--out", "cell", "--top-p", "0.8", "--json")
    stage.requests(server, since)
    stage.file("cell/pinned+sums/manifest.json")


def other_ways(stage: Stage) -> None:
    """A pilot, a coroutine, a shard, requests in a file, and replies of another tool that are taken over."""
    write_sums(stage.folder, 4)
    server = stage.server("server", solving(60))
    words = ["run", "--data", "sums.jsonl", "--id-key", "id", "--base-url", server.base_url, "--no-canary"]
    stage.command(*words, "--samples", "8", "--pilot", "--out", "pilot")
    stage.requests(server)
    keywords: dict[str, Any] = {"data": "sums.jsonl", "id_key": "id", "base_url": server.base_url, "canary": False}
    stage.python("pilot", samples=8, out="piloted", **keywords)
    since = len(server.requests)
    stage.command(*words, "--shard", "2/2", "--out", "shard", "--json")
    stage.requests(server, since)
    stage.file("shard/manifest.json")
    stage.python("run_async", out="async", shard="1/2", **keywords)
    rows = [{"question": "What is 0 + 2?", "answer": "2", "response": r"\boxed{2}"}]
    (stage.folder / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    since = len(server.requests)
    stage.command(*words, "--continue-from", "theirs.jsonl", "--out", "continued", "--json")
    stage.requests(server, since)


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
    providers,
    transports,
    from_the_environment,
    other_ways,
    defaults, a_card, every_sampling_value, a_preset, sglang, llama_cpp, completions, resumed, dry, refusals
)  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
