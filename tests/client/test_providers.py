"""Providers as data: what each file says, who is recognized, what is objected to, and the bytes of a request; and
`harness run` against a server that behaves as a hosted provider does: what it is sent, what its refusal leads to.

For: harness.client.address.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.address import providers
from harness.client.apis.api import API
from harness.client.apis.table import APIS
from harness.client.request_fields import RequestTemplate, Spelling
from harness.core.errors import UsageError
from harness.core.literals import ApiName, Thinking
from harness.core.records import Message
from harness.testing import FakeServer, Reply, Request, Said, http, serving
from tests.runs.recorded import question
from tests.system.command import Result, harness

SAID = (Message("system", "be brief"), Message("user", "17+25? ∑ \ud800"))
QUESTION = question(messages=SAID, prompt="17+25=")


@pytest.mark.parametrize("name", providers.names())
def test_each_file_is_valid_and_says_where_its_facts_are_from(name: str) -> None:
    provider = providers.load(name)
    assert provider.sources
    assert provider.address.key_variable.endswith("_API_KEY")
    for rule in provider.thinking:
        assert rule.levels
        for body in rule.levels.values():
            json.dumps(body)
    if provider.address.base_url is not None:
        assert str(provider.address.base_url).startswith("https://")
        assert providers.recognize(str(provider.address.base_url)).name == name


def test_no_two_providers_share_a_key_variable_but_openai_and_generic() -> None:
    seen: dict[str, list[str]] = {}
    for name in providers.names():
        seen.setdefault(providers.load(name).address.key_variable, []).append(name)
    assert {variable: names for variable, names in seen.items() if len(names) > 1} == {
        "OPENAI_API_KEY": ["generic", "openai"]
    }


def test_an_unknown_name_is_answered_with_the_near_ones() -> None:
    with pytest.raises(UsageError, match="Did you mean deepseek"):
        providers.load("deepsek")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.deepseek.com", "deepseek"),
        ("api.deepseek.com/v1", "deepseek"),
        ("https://my-resource.openai.azure.com/openai/v1", "azure"),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "dashscope"),
        ("https://ark.ap-southeast.volces.com/api/v3", "volcengine"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini"),
        ("https://API.OpenAI.com/v1", "openai"),
        ("https://api.openai.com.evil.example/v1", "generic"),
        ("https://example.com/api.deepseek.com/v1", "generic"),
        ("http://127.0.0.1:8000", "generic"),
        ("http://localhost:8000/v1", "generic"),
        ("", "generic"),
    ],
)
def test_an_address_is_recognized_by_its_host(url: str, name: str) -> None:
    assert providers.recognize(url).name == name


def test_an_address_without_a_path_gets_the_providers() -> None:
    assert providers.load("groq").endpoint("https://api.groq.com", "k").base_url == "https://api.groq.com/openai/v1"
    assert providers.load("groq").endpoint(None, "k").base_url == "https://api.groq.com/openai/v1"
    assert providers.load("groq").endpoint("http://localhost:8/v1", None).base_url == "http://localhost:8/v1"
    azure = providers.load("azure").endpoint("https://r.openai.azure.com/", "k")
    assert azure.base_url == "https://r.openai.azure.com/openai/v1"
    for name in providers.names():
        address = providers.load(name).address
        if address.base_url is not None:
            stated = str(address.base_url).rstrip("/").removesuffix(address.path) + address.path
            assert providers.load(name).endpoint(None, "k").base_url == stated


@pytest.mark.parametrize(
    ("name", "api", "url", "asked"),
    [
        ("deepseek", "messages", None, "https://api.deepseek.com/anthropic/v1"),
        ("zai", "messages", None, "https://api.z.ai/api/anthropic/v1"),
        ("zai", "chat", "https://api.z.ai", "https://api.z.ai/api/paas/v4"),
        ("moonshot", "messages", "https://api.moonshot.cn", "https://api.moonshot.cn/anthropic/v1"),
        ("minimax", "responses", None, "https://api.minimax.io/v1"),
        ("zai", "chat", "api.z.ai", "https://api.z.ai/api/paas/v4"),  # a key goes to a service by https alone
        ("zai", "chat", "127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("minimax", "messages", "https://proxy.example/v1", "https://proxy.example/v1"),
    ],
)
def test_an_address_may_lack_its_path_and_its_scheme(name: str, api: ApiName, url: str | None, asked: str) -> None:
    assert providers.load(name).endpoint(url, "k", api=api).base_url == asked


@pytest.mark.parametrize("asked", APIS)
@pytest.mark.parametrize("named", APIS)
def test_an_address_that_names_another_api_is_refused(asked: API, named: API) -> None:
    provider, url = providers.load("generic"), f"http://h/v1{named.path}"
    if asked is named:
        assert provider.endpoint(url, None, api=asked.name).base_url == "http://h/v1"
    else:
        with pytest.raises(UsageError, match=f"set `api={named.name}`, or shorten the path"):
            provider.endpoint(url, None, api=asked.name)
    provider.endpoint(f"unix:/tmp{named.path}", None, api=asked.name)


def test_a_provider_without_an_address_of_its_own_asks_for_one() -> None:
    with pytest.raises(UsageError, match="set `base_url`"):
        providers.load("azure").endpoint(None, "k")


def test_the_key_travels_where_the_provider_looks_for_it() -> None:
    bearer = providers.load("deepseek").endpoint(None, "secret-key", (("X-Team", "a"),))
    assert bearer.own_headers() == {"Authorization": "Bearer secret-key", "X-Team": "a"}
    own = providers.load("azure").endpoint("https://r.openai.azure.com", "secret-key", (("X-Team", "a"),))
    assert own.own_headers() == {"X-Team": "a", "api-key": "secret-key"}
    assert "secret-key" not in repr(own)


SHORT, LONG = ({"max_tokens": 99, "seed": 7}, {"max_completion_tokens": 99, "seed": 7})
ON, OFF = ({"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}})
GOLDEN: list[tuple[str, str, Thinking | None, dict[str, Any]]] = [
    ("openai", "gpt-5-mini", "high", LONG | {"reasoning_effort": "high"}),
    ("zai", "glm-5.2", "off", SHORT | OFF),
    ("moonshot", "kimi-k3", "max", SHORT | {"reasoning_effort": "max"}),
    ("openai", "gpt-4.1", None, LONG),
    ("openai", "gpt-5.2", "off", LONG | {"reasoning_effort": "none"}),
    ("openai", "gpt-5.2", "xhigh", LONG | {"reasoning_effort": "xhigh"}),
    ("openai", "gpt-5.1", "none", LONG | {"reasoning_effort": "none"}),
    ("openai", "gpt-5-mini", "minimal", LONG | {"reasoning_effort": "minimal"}),
    ("azure", "o3", "low", LONG | {"reasoning_effort": "low"}),
    ("deepseek", "deepseek-flash", "off", SHORT | OFF),
    ("deepseek", "deepseek-flash", "none", SHORT | OFF),
    ("deepseek", "deepseek-flash", "high", SHORT | ON | {"reasoning_effort": "high"}),
    ("deepseek", "deepseek-flash", "max", SHORT | ON | {"reasoning_effort": "max"}),
    ("openrouter", "qwen/qwen3-32b", "off", SHORT | {"reasoning": {"effort": "none"}}),
    ("openrouter", "a/b", "xhigh", SHORT | {"reasoning": {"effort": "xhigh"}}),
    ("together", "openai/gpt-oss-120b", "medium", SHORT | {"reasoning_effort": "medium"}),
    ("together", "zai-org/GLM-5", "off", SHORT | {"reasoning": {"enabled": False}}),
    ("groq", "qwen/qwen3-32b", "off", LONG | {"reasoning_effort": "none"}),
    ("gemini", "gemini-2.5-flash", "low", SHORT | {"reasoning_effort": "low"}),
    ("gemini", "gemini-2.5-pro", "on", SHORT),
    ("dashscope", "qwen3-32b", "off", SHORT | {"enable_thinking": False}),
    ("siliconflow", "Qwen/Qwen3-32B", "on", SHORT | {"enable_thinking": True}),
    ("volcengine", "doubao-seed-1-6-251015", "on", LONG | ON),
    ("generic", "Qwen/Qwen3-8B", "off", SHORT | {"chat_template_kwargs": {"enable_thinking": False}}),
    ("generic", "deepseek-ai/DeepSeek-V3.1", "on", SHORT | {"chat_template_kwargs": {"thinking": True}}),
    ("generic", "openai/gpt-oss-20b", "high", SHORT | {"reasoning_effort": "high"}),
    # Efforts that are not known for the model go in the form of those that are.
    ("deepseek", "deepseek-flash", "xhigh", SHORT | ON | {"reasoning_effort": "xhigh"}),
    ("openrouter", "a/b", "max", SHORT | {"reasoning": {"effort": "max"}}),
    ("openai", "gpt-9", "high", LONG | {"reasoning_effort": "high"}),
    ("openai", "o3", "none", LONG | {"reasoning_effort": "none"}),
    ("generic", "Qwen/Qwen3-8B", "high", SHORT | {"reasoning_effort": "high"}),
]


@pytest.mark.parametrize(("name", "model", "thinking", "expected"), GOLDEN)
def test_requests_are_spelled_as_the_provider_wants_them(
    name: str, model: str, thinking: Thinking | None, expected: dict[str, Any]
) -> None:
    spelling = providers.load(name).spelling(model, thinking=thinking)
    template = RequestTemplate(model=model, sampling={"temperature": 0.6}, max_tokens=99, spelling=spelling)
    shared = {"model": model, "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.6}
    sent = body(template, seed=7)
    assert sent.pop("messages")
    assert sent == {**shared, **expected}


def test_raw_completions_bound_their_tokens_by_the_old_name() -> None:
    assert (
        providers.load("openai").spelling("gpt-3.5-turbo-instruct", api="completions").max_tokens_field == "max_tokens"
    )
    with pytest.raises(UsageError, match="api=chat"):
        providers.load("generic").spelling("m", api="completions", thinking="on")


@pytest.mark.parametrize(
    ("name", "model", "thinking", "able"),
    [
        ("openai", "o3", "off", "high or low or medium or on"),
        ("openai", "gpt-4.1", "on", "no supported value"),
        ("gemini", "gemini-2.5-pro", "off", "high or low or medium or on"),
    ],
)
def test_a_thinking_switch_without_a_field_is_refused(name: str, model: str, thinking: Thinking, able: str) -> None:
    with pytest.raises(UsageError) as refused:
        providers.load(name).spelling(model, thinking=thinking)
    assert refused.value.sentence.startswith(f"thinking={thinking!r}: ")
    assert able in str(refused.value)


@given(st.sampled_from(providers.names()), st.text(max_size=30), st.sampled_from(get_args(Thinking)))
def test_any_model_is_either_spelled_or_refused_in_a_sentence(name: str, model: str, thinking: Thinking) -> None:
    with contextlib.suppress(UsageError):
        spelling = providers.load(name).spelling(model, thinking=thinking)
        json.dumps([spelling.extra_body, spelling.chat_template_kwargs])


@pytest.mark.parametrize(
    ("name", "model", "field", "thinking", "words"),
    [
        ("openai", "gpt-5", "temperature", None, ""),
        (
            "deepseek",
            "deepseek-flash",
            "temperature",
            None,
            "deepseek: deepseek-flash ignores temperature; to omit it, set `drop=temperature`",
        ),
        ("deepseek", "deepseek-flash", "temperature", "off", ""),
        ("anthropic", "claude-sonnet-4-5", "seed", None, "anthropic ignores seeds: "),
        ("openai", "gpt-5", "top_k", "high", ""),
        (
            "openai",
            "gpt-9",
            "top_k",
            "high",
            "openai: gpt-9 may reject or ignore thinking=high; sending it anyway (no known values)",
        ),
        ("groq", "qwen/qwen3-32b", "seed", None, ""),
    ],
)
def test_a_field_that_is_ignored_is_a_warning(
    name: str, model: str, field: str, thinking: Thinking | None, words: str
) -> None:
    warnings = providers.load(name).warnings(model, {field}, thinking)
    assert (len(warnings), "".join(warnings).startswith(words)) == (bool(words), True)


@pytest.mark.parametrize(
    ("provider", "engine", "model", "body"),
    [
        ("generic", "vllm", "m", {"thinking_token_budget": 2000}),
        ("generic", "sglang", "m", {"custom_params": {"thinking_budget": 2000}}),
        ("anthropic", None, "claude", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        (
            "gemini",
            None,
            "gemini-2.5-flash",
            {"extra_body": {"google": {"thinking_config": {"thinking_budget": 2000}}}},
        ),
        ("openrouter", None, "a/b", {"reasoning": {"max_tokens": 2000}}),
    ],
)
def test_a_thinking_budget_is_in_the_providers_field(provider: str, engine: str | None, model: str, body: Any) -> None:
    spelling = providers.load(provider).spelling(model, thinking_tokens=2000, engine=engine)
    assert spelling.extra_body == body


def test_a_budget_that_nothing_takes_is_refused_not_dropped() -> None:
    with pytest.raises(UsageError, match="field that limits thinking for m; if you know one"):
        providers.load("generic").spelling("m", thinking_tokens=2000, engine="llama.cpp")
    with pytest.raises(UsageError, match="at least 1024"):
        providers.load("anthropic").spelling("claude", thinking_tokens=1000)
    with pytest.raises(UsageError, match=r"groq has no .*field that limits thinking for m"):
        providers.load("groq").spelling("m", thinking_tokens=2000)
    both = providers.load("openrouter").spelling("a/b", thinking="on", thinking_tokens=2000)
    assert both.extra_body == {"reasoning": {"enabled": True, "max_tokens": 2000}}


def body(template: RequestTemplate, **options: Any) -> dict[str, Any]:
    return json.loads(template.body(QUESTION, **options))  # type: ignore[no-any-return]


@pytest.mark.parametrize("field", ["n", "messages", "prompt", "model", "stream", "seed"])
def test_fields_that_the_harness_sets_are_refused_in_the_extra_body(field: str) -> None:
    with pytest.raises(UsageError, match=field):
        Spelling(extra_body={field: 1})


def test_keys_in_the_body_are_sealed_at_once_and_appear_in_no_repr() -> None:
    spelling = Spelling(
        extra_body={"api_key": "k-123456", "word": "hunter"},
        chat_template_kwargs={"token": "t-123456", "hint": "hunter"},
    )
    assert {secret.reveal() for secret in spelling.secrets} == {"k-123456", "t-123456"}
    assert "hunter" not in repr(spelling)
    assert body(RequestTemplate(model="m", spelling=spelling))["api_key"] == "k-123456"


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


def test_a_providers_refusal_ends_the_run_in_its_words_with_a_way_out(run: Run) -> None:
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
    assert "all sessions: 0.00018 USD for 27 tokens in, 15 out" in done.err
    assert "this session" not in done.err


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
        ((*GROQ, "URL", "--thinking", "off", "--api", "completions"), "--api chat"),
        ((*GROQ, "URL", "--prices", "1,-1"), "expected two or three prices, each 0 or more"),
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
