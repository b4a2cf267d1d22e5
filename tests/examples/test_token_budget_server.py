"""The server with a token budget: its class attends to so many tokens and no more, and the harness measures it."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from server_launchers.lifecycle import launch
from server_launchers.lifecycle.launch import RunningServer
from server_launchers.spec import ServerSpec
from tests.system.command import harness

EXAMPLE = Path(__file__).parents[2] / "examples" / "token_budget_server"
OFFLINE = {"HF_HUB_OFFLINE": "1"}
BUDGET = 4

ATTENTION = """
import sys; sys.path.insert(0, sys.argv[1])
import torch
from transformers import LlamaForCausalLM
from sparse_llama import SparseLlama
torch.manual_seed(0)
tokens = torch.randint(0, 256, (1, 40))
whole = LlamaForCausalLM.from_pretrained(sys.argv[2], attn_implementation="eager").eval()
with torch.no_grad():
    expected = whole(tokens).logits
    for budget in (None, 40, 1000):
        found = SparseLlama.from_pretrained(sys.argv[2], token_budget=budget).eval()(tokens).logits
        assert torch.allclose(found, expected, atol=1e-4), budget
    sparse = SparseLlama.from_pretrained(sys.argv[2], token_budget=4).eval()
    out = sparse(tokens, output_attentions=True)
    assert not torch.allclose(out.logits, expected, atol=1e-2)
    for layer in out.attentions:
        attended = (layer > 0).sum(-1)
        assert attended.max() == 4, attended.max()
        assert torch.equal(attended[0, 0, :3], torch.tensor([1, 2, 3])), attended[0, 0, :3]
        assert not layer.triu(1).any(), "a later token is seen"
        assert torch.allclose(layer.sum(-1), torch.ones(()), atol=1e-5)
    kept = sparse.generate(tokens, max_new_tokens=8, do_sample=False, eos_token_id=None)
    anew = tokens
    for _ in range(8):
        anew = torch.cat([anew, sparse(anew, use_cache=False).logits[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(kept, anew), "with a cache it says something else"
print("holds")
"""


def python(interpreter: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([interpreter, *words], capture_output=True, text=True, check=False, env=None)


@pytest.fixture(scope="module")
def tiny(transformers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny") / "tiny"
    done = python(transformers, str(EXAMPLE / "tiny_model.py"), str(folder))
    assert done.returncode == 0, done.stderr
    return folder


SPARSE = f"{EXAMPLE / 'sparse_llama.py'}:SparseLlama"


def launched(transformers: Path, tiny: Path, *budget: str, model_class: str = SPARSE, **environment: str) -> Any:
    words = [str(transformers), str(EXAMPLE / "server.py"), str(tiny), "--class", model_class, *budget]
    words += ["--served-model-name", "{served_name}", "--host", "{host}", "--port", "{port}", "--device", "cpu"]
    spec = ServerSpec(engine="command", served_name="tiny", health_path="/health", extra_flags=tuple(words))
    return launch.launch(spec.replace(environment={**OFFLINE, **environment}))


@pytest.fixture(scope="module")
def server(transformers: Path, tiny: Path, private_state: Path) -> Iterator[RunningServer]:
    with launched(transformers, tiny, "--token-budget", str(BUDGET)) as running:
        yield running


def ask(server: RunningServer, **changes: Any) -> httpx.Response:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "What is 1 + 1?"}], "max_tokens": 24, "seed": 7}
    return httpx.post(f"{server.base_urls[0]}/v1/chat/completions", json={**body, **changes}, timeout=120)


def said(reply: httpx.Response) -> str:
    assert reply.status_code == 200, reply.text
    text: str = reply.json()["choices"][0]["message"]["content"]
    return text


def test_the_class_attends_to_the_budget_and_no_more(transformers: Path, tiny: Path) -> None:
    done = python(transformers, "-c", ATTENTION, str(EXAMPLE), str(tiny))
    assert done.stdout.strip() == "holds", done.stderr


def test_it_tells_its_health_its_model_its_context_and_its_budget(server: RunningServer) -> None:
    url = server.base_urls[0]
    assert httpx.get(f"{url}/health").status_code == 200
    (model,) = httpx.get(f"{url}/v1/models").json()["data"]
    assert (model["id"], model["max_model_len"], model["token_budget"]) == ("tiny", 2048, BUDGET)


def test_a_stream_is_what_the_whole_reply_is_and_states_usage(server: RunningServer) -> None:
    whole = ask(server)
    stream = ask(server, stream=True, stream_options={"include_usage": True})
    lines = [line.removeprefix("data: ") for line in stream.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    events = [json.loads(line) for line in lines[:-1]]
    pieces = [event["choices"][0]["delta"].get("content", "") for event in events if event["choices"]]
    assert "".join(pieces) == said(whole)
    assert len([piece for piece in pieces if piece]) > 4, "it comes in pieces"
    (finish,) = [e["choices"][0]["finish_reason"] for e in events if e["choices"] and e["choices"][0]["finish_reason"]]
    assert finish == whole.json()["choices"][0]["finish_reason"]
    assert events[-1]["usage"] == whole.json()["usage"]
    assert not any("usage" in json.loads(line) for line in ask(server, stream=True).text.split("data: ")[1:-1])


def test_a_seed_repeats_a_reply_also_beside_other_requests(server: RunningServer) -> None:
    alone = said(ask(server))
    beside: list[str] = []
    threads = [threading.Thread(target=lambda n=n: beside.append(said(ask(server, seed=n)))) for n in (8, 9)]
    for thread in threads:
        thread.start()
    assert said(ask(server)) == alone
    for thread in threads:
        thread.join()
    assert alone not in beside


def test_it_says_what_its_class_says_without_a_budget_and_differs_with_one(
    server: RunningServer, transformers: Path, tiny: Path, private_state: Path
) -> None:
    with launched(transformers, tiny, model_class="transformers:LlamaForCausalLM") as plain:
        whole = said(ask(plain, temperature=0))
    with launched(transformers, tiny) as sparse:
        assert said(ask(sparse, temperature=0)) == whole != said(ask(server, temperature=0))
        assert httpx.get(f"{sparse.base_urls[0]}/v1/models").json()["data"][0]["token_budget"] is None


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("nosuch.py:A", "FILE.py:NAME"),
        ("no.such:A", "cannot be imported"),
        ("sparse_llama.py:Nobody", "--class sparse_llama.py:Nobody"),
    ],
)
def test_a_class_that_is_none_is_refused(transformers: Path, tiny: Path, where: str, words: str) -> None:
    done = python(transformers, str(EXAMPLE / "server.py"), str(tiny), "--class", where)
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"model": "other"}, 404, "not served here"),
        ({"max_tokens": 3000}, 400, "maximum context length is 2048"),
        ({"n": 2}, 400, "nothing like n"),
        ({"stop": ["x"]}, 400, "nothing like stop"),
        ({"messages": "hello"}, 400, "messages"),
    ],
)
def test_what_it_cannot_do_is_refused(server: RunningServer, changes: dict[str, Any], status: int, words: str) -> None:
    reply = ask(server, **changes)
    assert (reply.status_code, words in reply.json()["error"]["message"]) == (status, True), reply.text


def test_a_run_of_the_harness_is_complete_and_every_reply_has_usage(server: RunningServer, tmp_path: Path) -> None:
    given = ("run", "demo:2", "--limit", "3", "--max-tokens", "24", "--concurrency", "2", "--no-canary", "--out", "run")
    done = harness(tmp_path, *given, "--base-url", server.base_urls[0])
    assert done.code == 0, done.err
    samples = [json.loads(line) for line in (tmp_path / "run" / "demo" / "samples.jsonl").read_bytes().splitlines()]
    assert len(samples) == 6
    for sample in samples:
        tokens = sample["usage"]["completion_tokens"]
        assert tokens == 24 if sample["finish_reason"] == "length" else 0 < tokens <= 24


def test_a_budget_is_seen_by_reading_what_the_model_says_without_one(
    server: RunningServer, transformers: Path, tiny: Path, private_state: Path, tmp_path: Path
) -> None:
    given = ("run", "demo:2", "--limit", "4", "--max-tokens", "24", "--concurrency", "2", "--no-canary", "--out", "run")
    with launched(transformers, tiny, model_class="transformers:LlamaForCausalLM") as plain:
        url = plain.base_urls[0]
        assert harness(tmp_path, *given, "--base-url", url).code == 0
        itself = harness(tmp_path, "probe", url, "--replies", "run", "--reference", url)
    sparse = harness(tmp_path, "probe", server.base_urls[0], "--replies", "run")
    assert (itself.code, "the same to within 0.0000 nats per token" in itself.out) == (0, True), itself.out
    assert (sparse.code, "differs by" in sparse.out) == (1, True), sparse.out


SEER_ATTENTION = """
import json
import transformers

class SeerDecodingQwen2ForCausalLM(transformers.LlamaForCausalLM):
    @classmethod
    def from_pretrained(cls, path, load_gate=True, *words, torch_dtype, **given):
        settings = {name: given.pop(name) for name in list(given) if name.startswith("seerattn_")}
        del given["use_cache"], given["use_flash_rope"], given["fused_norm"]
        assert load_gate and settings["seerattn_implementation"] == "seer_sparse", settings
        base = json.load(open(f"{path}/base.json"))
        model = super().from_pretrained(base, dtype=torch_dtype, **given)
        model.config.base_model = base
        model.config.max_position_embeddings = settings["seerattn_token_budget"]
        return model
"""
"""A package with the arguments of SeerAttention's classes (aba03e3); its context tells the budget that it was given."""


def test_the_adapter_gets_seer_attentions_arguments_and_base_tokenizer(
    transformers: Path, tiny: Path, tmp_path: Path, private_state: Path
) -> None:
    (tmp_path / "seer_attn.py").write_text(SEER_ATTENTION)
    (tmp_path / "base.json").write_text(json.dumps(str(tiny)))
    seer = f"{EXAMPLE / 'seer_attention.py'}:Seer"
    budget = ("--token-budget", "512")
    with launched(transformers, tmp_path, *budget, model_class=seer, PYTHONPATH=str(tmp_path)) as running:
        (model,) = httpx.get(f"{running.base_urls[0]}/v1/models").json()["data"]
        assert (model["max_model_len"], model["token_budget"]) == (512, 512)
        assert said(ask(running, temperature=0))


def test_a_batch_says_what_each_request_says_alone(server: RunningServer, transformers: Path, tiny: Path) -> None:
    asked = [f"What is {n} + {10**n}?" for n in range(6)]
    body = [
        {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 9 + 5 * n}
        for n, text in enumerate(asked)
    ]
    alone = [ask(server, **one).json() for one in body]
    with launched(transformers, tiny, "--token-budget", str(BUDGET), "--max-batch", "4") as batched:
        with ThreadPoolExecutor(6) as pool:
            together = [reply.json() for reply in pool.map(lambda one: ask(batched, **one), body)]
        assert [(one["choices"], one["usage"]) for one in together] == [(one["choices"], one["usage"]) for one in alone]
