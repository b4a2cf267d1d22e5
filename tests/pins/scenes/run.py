"""`harness run` and `harness.run`: requests, stored samples, settings; each engine, provider, preset and transport."""

from __future__ import annotations

import json
import os
from typing import Any, get_args

from harness.core.literals import ApiName
from tests.pins import reading
from tests.pins.server import solving
from tests.pins.stage import Scene, Stage, write_sums
from tests.presets.every_field import every_field

SUMS = ["--data", "sums.jsonl", "--id-key", "id"]
OF_SUMS: dict[str, Any] = {"data": "sums.jsonl", "id_key": "id"}


def both_doors(stage: Stage, *benchmarks: str, engine: str = "plain", **keywords: Any) -> None:
    """The same run by the command and by Python, each with its requests, samples and settings."""
    write_sums(stage.folder, 3)
    server = stage.server("server", solving(60, engine, kinds=True))

    def kept(out: str) -> None:
        files(stage, out)
        stage.requests(server, pages=True)

    of_data = {} if benchmarks else OF_SUMS
    own = {"base_url": server.base_url, "out": "run", "concurrency": 2}
    stage.both("run", *benchmarks, **of_data, **keywords, **own, read=reading.ran, then=kept)


def files(stage: Stage, run: str) -> None:
    """Pin a run's files."""
    folder = stage.folder / run
    stage.keep(**reading.questions(folder), **reading.samples(folder), **reading.settings(folder))


def defaults(stage: Stage) -> None:
    """Nothing is said but the questions."""
    both_doors(stage)


def a_card(stage: Stage) -> None:
    """A shipped card with fewer questions and samples."""
    both_doors(stage, "demo:2", limit=2)


def every_sampling_value(stage: Stage) -> None:
    """Each value of sampling that a run sends, and fields of the caller's own."""
    values: dict[str, Any] = {
        "samples": 2,
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 20,
        "min_p": 0.05,
        "max_tokens": 512,
        "repetition_penalty": 1.05,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.25,
        "seed": 7,
        "system_prompt": "Answer briefly.",
        "drop": "top_k",
        "stop": ["END", "STOP"],
        "filter": ["level=1"],
        "extra_body": {"logit_bias": {"5": -1}, "chat_template_kwargs": {"enable_thinking": True}},
    }
    both_doors(stage, **(values | every_field() | values))


def sglang(stage: Stage) -> None:
    """SGLang, whose model states values of its own."""
    both_doors(stage, engine="sglang")


def llama_cpp(stage: Stage) -> None:
    """llama.cpp: slots decide the concurrency."""
    both_doors(stage, engine="llama.cpp")


def a_preset(stage: Stage) -> None:
    """A model's preset with its thinking switched, on vLLM: neutral values are sent for what it leaves out."""
    both_doors(stage, engine="vllm", preset="qwen3", thinking="off")


def completions(stage: Stage) -> None:
    """The protocol of plain completions, with whole replies."""
    both_doors(stage, "demo", limit=2, api="completions", preset="greedy", drop=["stream"], seed=None)


def other_apis(stage: Stage) -> None:
    """Responses and Messages: what each sends on an engine, with values of its own, and where a value is refused."""
    write_sums(stage.folder, 2)
    values = {"responses": ["--top-k", "20"], "messages": ["--top-k", "20", "--stop", "END"]}
    for api in sorted({*get_args(ApiName)} - {"chat", "completions"}, reverse=True):
        own = values.get(api, [])
        server = stage.server("server", solving(60, "vllm"))
        words = ["run", *SUMS, "--base-url", server.base_url, "--api", api, "--system-prompt", "Be brief.", "--json"]
        for n, more in enumerate(([], own, ["--min-p", "2", "--frequency-penalty", "1"])):
            stage.command(*words, *more, "--out", f"{api}{n}", read=reading.ran)
            stage.requests(server)
        files(stage, f"{api}0")


def presets(stage: Stage) -> None:
    """The body of every preset."""
    each(stage, "--preset", [])


def providers(stage: Stage) -> None:
    """How each hosted provider is spoken to, with a key that is sent and stored nowhere."""
    os.environ["PINNED_KEY"] = "sk-pinned-0123456789"
    each(stage, "--provider", ["--model", "pinned", "--api-key-env", "PINNED_KEY"])
    stored = [path for path in stage.folder.rglob("*") if path.is_file() and b"sk-pinned" in path.read_bytes()]
    assert not stored, "a key is stored nowhere"


def each(stage: Stage, option: str, common: list[str]) -> None:
    """A run with each value of an option: those that the refusal of a wrong one names, so that a new one is told."""
    write_sums(stage.folder, 1)
    server = stage.server("server", solving(60))
    words = ["run", *SUMS, *common, "--base-url", server.base_url, "--no-canary", "--json"]
    stage.command(*words, option, "nobody")
    for value in stage.listed():
        for more in [[], ["--thinking", "on"]] if option == "--provider" else [[]]:
            more += ["--seed", "none"] if value == "anthropic" else []
            stage.command(*words, option, value, *more, "--out", f"{value}{len(more)}", read=reading.ran)
            stage.requests(server)


def transports(stage: Stage) -> None:
    """The body does not depend on how it travels."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(60, "vllm"))
    for transport in ("http", "openai"):
        words = ["run", *SUMS, "--base-url", server.base_url, "--top-k", "20", "--transport", transport, "--json"]
        stage.command(*words, "--out", transport, read=reading.ran)
        stage.keep(**reading.samples(stage.folder / transport))
        stage.requests(server)


def from_the_environment(stage: Stage) -> None:
    """An address from a variable, and the file of a sweep, which `run` refuses."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(60))
    os.environ["OPENAI_BASE_URL"] = server.base_url
    stage.command("run", *SUMS, "--out", "run", "--json", read=reading.ran)
    stage.requests(server)
    os.environ.pop("OPENAI_BASE_URL", None)
    cell = {
        "models": ["pinned"],
        "run": {"id_key": "id", "temperature": 0.4, "base_url": server.base_url},
        "benchmarks": [{"data": "sums.jsonl", "samples": 2}],
    }
    (stage.folder / "run.yaml").write_text(json.dumps(cell), "utf-8")
    stage.command("run", "run.yaml", "--out", "cell")
    stage.command("sweep", "run.yaml", "--out", "cell", "--top-p", "0.8", "--json", read=reading.swept)
    stage.requests(server)


def other_ways(stage: Stage) -> None:
    """Shards, by both doors."""
    write_sums(stage.folder, 4)
    server = stage.server("server", solving(60))
    words = ["run", *SUMS, "--base-url", server.base_url, "--no-canary"]
    keywords = OF_SUMS | {"base_url": server.base_url, "canary": False}
    for door, name, more in (
        (stage.command, "shard", ["--shard", "2/2", "--out", "shard"]),
        (stage.python, "run", {"out": "other", "shard": "1/2"}),
    ):
        if isinstance(more, list):
            door(*words, *more)
        else:
            door(name, **keywords, **more)
        stage.requests(server)


def resumed(stage: Stage) -> None:
    """More samples extend a run; another temperature is refused, by both doors."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(60))
    words = ["run", *SUMS, "--base-url", server.base_url, "--out", "run", "--json"]
    for more in (["--samples", "1"], ["--samples", "2"], ["--samples", "2", "--temperature", "1"]):
        stage.command(*words, *more, read=reading.ran)
        files(stage, "run")
        stage.requests(server)
    stage.python("run", **OF_SUMS, base_url=server.base_url, out="run", samples=2, temperature=1.0)


def dry(stage: Stage) -> None:
    """`--dry-run` sends nothing and writes nothing."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(60, "vllm"))
    stage.command("run", *SUMS, "--base-url", server.base_url, "--preset", "r1", "--dry-run", "--out", "r")
    stage.requests(server)
    assert not (stage.folder / "r").exists()


def refusals(stage: Stage) -> None:
    """Wrong options, by both doors."""
    write_sums(stage.folder, 2)
    wrong: tuple[dict[str, Any], ...] = (
        {"temperature": -1.0},
        {"samples": 0},
        {"thinking": "maybe"},
        {"preset": "qwq"},
        {"extra_body": "[1]"},
        {"base_url": "http://a", "serve": "vllm"},
        {"out": ""},
        {"drop": "everything"},
    )
    for keywords in wrong:
        stage.both("run", data="sums.jsonl", **keywords)


SCENES: tuple[Scene, ...] = (
    defaults, a_card, every_sampling_value, sglang, llama_cpp, a_preset, completions, other_apis, presets, providers,
    transports, from_the_environment, other_ways, resumed, dry, refusals,
)  # fmt: skip
