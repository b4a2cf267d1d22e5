"""`harness run` against a server that behaves as a hosted provider does: what it is sent, what its refusal leads to."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from harness.testing import FakeServer, Reply, Request, Said, http, serving
from tests.system.command import Result, harness

Run = Callable[..., Result]

REFUSED = {
    "error": {
        "message": "Unsupported value: 'top_p' does not support 0.95 with this model.",
        "type": "invalid_request_error",
        "param": "top_p",
        "code": "unsupported_value",
    }
}


def strict_provider(request: Request) -> Reply:
    """Wants a key, and takes neither top_p nor stream_options."""
    if request.headers.get("authorization") != "Bearer sk-groq" and request.headers.get("api-key") != "sk-azure":
        return [http(401, {"error": {"message": "no key"}})]
    return [http(400, REFUSED)] if "top_p" in request.json else Said("\\boxed{2}", 5)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Calls `harness run` on three questions, with the keys of three providers."""
    rows = "".join(json.dumps({"problem": f"1+{n}?", "answer": "2"}) + "\n" for n in range(3))
    (tmp_path / "set.jsonl").write_text(rows)
    data = ("run", "--data", "set.jsonl", "--question-key", "problem", "--answer-key", "answer", "--no-canary")
    keys = {"GROQ_API_KEY": "sk-groq", "AZURE_OPENAI_API_KEY": "sk-azure", "ANTHROPIC_API_KEY": "sk-ant"}
    return partial(harness, tmp_path, *data, extra=keys)


GROQ = ("--provider", "groq", "--model", "qwen/qwen3-32b")


def test_what_a_provider_refuses_ends_the_run_in_its_words_with_the_way_out(run: Run) -> None:
    with FakeServer(serving(strict_provider, "qwen/qwen3-32b")) as server:
        done = run(*GROQ, "--base-url", server.base_url)
    assert done.code == 2
    assert "'top_p' does not support 0.95 with this model" in done.err
    assert "(omit with --drop top_p, or use a different value)" in done.err


def test_the_end_of_a_run_says_what_it_cost(run: Run) -> None:
    with FakeServer(serving(strict_provider, "qwen/qwen3-32b")) as server:
        words = ("--base-url", server.base_url, "--drop", "top_p", "--prices", "1,10")
        done = run(*GROQ, *words, "--rpm", "6000")
        assert done.code == 0, done.err
        assert "this session: 0.00018 USD for 27 tokens in, 15 out" in done.err
        done = run(*GROQ, *words)
    assert done.code == 0
    assert ("all sessions: 0.00018 USD for 27 tokens in, 15 out" in done.err, "this session" in done.err) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--base-url", "http://127.0.0.1:1", "--drop", "temprature"), "Did you mean temperature"),
        (("--provider", "deepseek", "--model", "m"), "set DEEPSEEK_API_KEY"),
        (("--base-url", "https://api.deepseek.com", "--model", "m"), "set DEEPSEEK_API_KEY"),
        (("--provider", "azure", "--model", "m"), "--base-url"),
        (("--provider", "deepsek", "--model", "m"), "Did you mean deepseek"),
        (("--base-url", "x", "--model", "m"), "expected an address"),
        (("--base-url", "https://api.deepseek.com", "--base-url", "https://api.groq.com"), "several providers"),
        ((*GROQ, "URL", "--rpm", "nan"), "--rpm nan: expected a finite number"),
        (
            (*GROQ, "URL", "--thinking", "off", "--extra-body", '{"reasoning_effort": "low"}'),
            "both set reasoning_effort",
        ),
        ((*GROQ, "URL", "--thinking", "off", "--api", "completions"), "api=chat"),
        ((*GROQ, "URL", "--prices", "1,-1"), "expected two prices, each 0 or more"),
        ((*GROQ, "URL", "--budget-usd", "1"), "it needs --prices"),
        ((*GROQ, "URL", "--prices", "nowhere.yaml"), "such as 0.5,2 (not a price file)"),
    ],
)
def test_mistakes_are_one_sentence(run: Run, words: tuple[str, ...], expected: str) -> None:
    with FakeServer(serving(strict_provider, "qwen/qwen3-32b")) as server:
        done = run(*(part for word in words for part in at(word, server.base_url)))
    assert (done.code, expected in done.err) == (2, True), done.err


def at(word: str, url: str) -> tuple[str, ...]:
    return ("--base-url", url) if word == "URL" else (word,)


def test_a_name_that_a_provider_does_not_list_is_a_warning(run: Run) -> None:
    with FakeServer(serving(strict_provider, "qwen/qwen3-32b")) as server:
        words = ("--provider", "groq", "--model", "qwen/qwen3", "--base-url", server.base_url, "--drop", "top_p")
        done = run(*words)
    assert done.code == 0
    assert "groq does not list qwen/qwen3" in done.err
