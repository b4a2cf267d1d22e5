"""What a server says of itself, read at once and within one deadline, and clear sentences when it says nothing.

For: harness.client.facts.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.client.address import providers
from harness.client.address.endpoint import Endpoint
from harness.client.facts.discovery import (
    ModelInfo,
    NoList,
    Pages,
    describe,
    find_model,
    list_models,
    stated_concurrency,
)
from harness.core.errors import ServerError, UsageError
from harness.testing import CLOSE, STALL, FakeServer, Pause, Request, Step, http, models

KEY = "sk-canary-0123456789"


@pytest.fixture
def serve() -> Iterator[Any]:
    started: list[FakeServer] = []

    def start(pages: dict[str, bytes]) -> Endpoint:
        server = FakeServer(lambda request: [pages.get(request.path, http(404, {"detail": "Not Found"}))])
        started.append(server.__enter__())
        return Endpoint.parse(server.base_url, KEY)

    yield start
    for server in started:
        server.stop()


def test_the_context_is_read_as_each_server_states_it(serve: Any) -> None:
    vllm = serve({"/v1/models": models("m", max_model_len=4096)})
    assert list_models(vllm, Pages()) == [ModelInfo("m", 4096)]
    slots = http(200, {"default_generation_settings": {"n_ctx": 2048}, "total_slots": 4})
    llama = serve({"/v1/models": models("m", meta={"n_ctx": 8192, "n_ctx_train": 8192}), "/props": slots})
    assert list_models(llama, Pages()) == [ModelInfo("m", 2048)]
    assert stated_concurrency(llama, Pages()) == 4
    info = http(200, {"context_length": 8192, "internal_states": [{"max_running_requests": 48}]})
    sglang = serve({"/v1/models": models("m"), "/get_server_info": info})
    assert list_models(sglang, Pages()) == [ModelInfo("m", 8192)]
    assert stated_concurrency(sglang, Pages()) == 48
    for odd in ("many", -5):
        silent = serve({"/v1/models": models("m", max_model_len=odd)})
        assert list_models(silent, Pages()) == [ModelInfo("m", None)], odd
    assert stated_concurrency(silent, Pages()) is None


def test_an_unknown_model_is_refused_with_what_there_is(serve: Any) -> None:
    endpoint = serve({"/v1/models": models("qwen3-8b", "llama")})
    assert find_model(endpoint, "llama") == ModelInfo("llama")
    with pytest.raises(ServerError, match=r"does not serve qwen3-8.*qwen3-8b, llama.*Did you mean qwen3-8b"):
        find_model(endpoint, "qwen3-8")
    with pytest.raises(ServerError, match="choose one with `model`"):
        find_model(endpoint, None)
    assert find_model(serve({"/v1/models": models("only")}), None) == ModelInfo("only")


FORMS: dict[str, bytes] = {
    "a list without its object": http(200, b'[{"id": "toy"}]'),
    "no list": http(200, {"object": "list", "data": None}),
    "null": http(200, b"null"),
    "a number": http(200, b"5"),
    "names alone": http(200, b'["m"]'),
    "names": http(200, {"models": [{"name": "toy"}]}),
    "HTML": http(200, b"<!doctype html><title>Gateway</title>"),
    "forbidden": http(403, b"<html>blocked</html>"),
    "missing": http(404, b"{}"),
    "not allowed": http(405, b"{}"),
    "a fault": http(500, b"{}"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_named_model_needs_no_list_and_an_unnamed_one_does(serve: Any, form: str) -> None:
    endpoint, pages = serve({"/v1/models": FORMS[form]}), Pages()
    assert find_model(endpoint, "toy", pages=pages) is None
    assert pages.no_list
    with pytest.raises(NoList):
        find_model(endpoint, None)
    assert find_model(serve({"/v1/models": models("unknown")}), "toy") is None, "a router that hides its models"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (http(401, {"error": "Unauthorized"}), "key was rejected"),
        (http(404, {"detail": "Not Found"}), "/v1"),
        (http(503, {"error": {"message": "Loading model"}}), "Loading model"),
        (http(200, b"<html><h1>It works!</h1></html>"), "It works!"),
        (http(200, {"data": 7}), "does not respond like an OpenAI-compatible server"),
        (http(302, location="https://elsewhere/v1"), "https://elsewhere/v1"),
        (http(500, {"error": f"the key {KEY} is odd"}), "is odd"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab", "HTTP"),
    ],
)
def test_what_is_no_model_list_is_one_clear_sentence(page: bytes, words: str) -> None:
    with FakeServer(lambda _: [page, CLOSE]) as server, pytest.raises(ServerError) as caught:
        list_models(Endpoint.parse(server.base_url, KEY), Pages())
    assert words in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_missing_key_names_its_variable_for_a_named_model_too() -> None:
    with FakeServer(lambda _: [http(401, {"error": "Unauthorized"})]) as server:
        for model in (None, "toy"):
            with pytest.raises(ServerError, match=r"no key was sent.*OPENAI_API_KEY"):
                find_model(Endpoint.parse(server.base_url), model)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1", r"no server answers at 127\.0\.0\.1:1 \(.*refused"),
        ("http://[::1]/v1", r"no server answers at \[::1\]:80 \(.*refused"),
        (
            "http://no-such-host.invalid",
            r"\Athe host of http://no-such-host\.invalid/v1 is unknown \(.*\); check the host in `base_url`\Z",
        ),
        ("http://my host:8000/v1", "expected http://HOST"),
        ("http://h\x7f/v1", "is invalid"),
    ],
)
def test_an_address_without_a_server_is_one_sentence(url: str, words: str) -> None:
    with pytest.raises((ServerError, UsageError), match=words):
        list_models(Endpoint.parse(url), Pages())


def test_a_key_that_no_header_can_carry_is_not_shown() -> None:
    with FakeServer(lambda _: [models("m")]) as server, pytest.raises(ServerError) as caught:
        list_models(Endpoint.parse(server.base_url, "sk-live-abcdef\nsecondhalf"), Pages())
    assert "Authorization" in str(caught.value)
    assert "secondhalf" not in str(caught.value)
    assert "abcdef" not in str(caught.value)


def test_a_unix_socket_works_and_one_without_a_listener_is_reported(tmp_path: Path) -> None:
    path = str(tmp_path / "s.sock")
    with FakeServer(lambda _: [models("m")], unix=path) as server:
        endpoint = Endpoint.parse(server.base_url)
        assert list_models(endpoint, Pages()) == [ModelInfo("m")]
    with warnings.catch_warnings(record=True) as leaks:
        warnings.simplefilter("always", ResourceWarning)
        with pytest.raises(ServerError, match=r"no server answers at .*s\.sock \(.*refused"):
            list_models(endpoint, Pages())
        with pytest.raises(ServerError, match=r"none\.sock \(.*No such file"):
            list_models(Endpoint.parse(f"unix:{tmp_path}/none.sock"), Pages())
        gc.collect()
    assert leaks == []


def endless(*again: Step) -> Any:
    def answer(_: Request) -> Iterable[Step]:
        while True:
            yield from again

    return answer


@pytest.mark.parametrize(
    "again",
    [
        (b"HTTP/1.1 103 Early Hints\r\n\r\n", Pause(0.02)),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 2000,),
        (b"HTTP/1.1 200 OK\r\n", Pause(0.05), b"X-A: 1\r\n", Pause(0.05), b"X-B: 1\r\n", Pause(30)),
        (b"HTTP/1.1 200 OK\r\n\r\n[", Pause(0.05)),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 65536,),
        (STALL,),
    ],
)
def test_a_look_at_a_server_ends_whatever_it_sends(again: tuple[Step, ...]) -> None:
    with FakeServer(endless(*again)) as server, pytest.raises(ServerError):
        list_models(Endpoint.parse(server.base_url), pages=Pages(due=time.monotonic() + 0.75))


@pytest.mark.slow
def test_a_list_of_very_many_models_is_read_and_a_wrong_name_told(serve: Any) -> None:
    endpoint = serve({"/v1/models": models(*(f"model-{n}" for n in range(100_000)), max_model_len=9)})
    assert find_model(endpoint, "model-99999") == ModelInfo("model-99999", 9)
    with pytest.raises(ServerError, match=r"modle-1; it serves .* and 99992 more\. Did you mean model-1"):
        find_model(endpoint, "modle-1")


@pytest.mark.parametrize("last", ["", "a&b", "toy"])
def test_a_list_is_read_to_its_last_page_by_the_head_of_its_api(last: str) -> None:
    def answer(request: Request) -> list[Step]:
        if "anthropic-version" not in request.headers:
            return [http(400, {"error": "anthropic-version: header is required"})]
        first = "after_id" not in request.path
        if not first and last == "toy":  # says that there is more, and has no other page
            return [http(404, {})]
        assert request.path.partition("after_id=")[2] in ("", "a%26b", "b", "toy")
        listed = [{"id": "a"}, {"id": last or "b"}, {"id": "a"}, None] if first else [{"id": "toy"}]
        return [http(200, {"data": listed, "has_more": first or not last, "last_id": last})]

    with FakeServer(answer) as server:
        endpoint = providers.load("generic").endpoint(server.base_url, None, api="messages")
        assert find_model(endpoint, "toy") == ModelInfo("toy")


def test_a_list_that_would_take_a_great_deal_of_memory_is_not_decoded(serve: Any) -> None:
    """16 MB of the smallest entries are 0.4 GB once they are objects."""
    endpoint = serve({"/v1/models": http(200, b'{"data": [' + b'{"id": "x"},' * 600_000 + b'{"id": "m"}]}')})
    with pytest.raises(ServerError, match="does not respond like an OpenAI-compatible server"):
        list_models(endpoint, Pages())


def counted(listed: bytes, pages: dict[str, list[Step] | bytes]) -> Callable[[Request], Iterable[Step]]:
    """Answers the list of models, and pages from a table."""

    def answer(request: Request) -> Iterable[Step]:
        page = {"/v1/models": listed, **pages}.get(request.path.partition("?")[0], http(404, {}))
        return page if isinstance(page, list) else [page]

    return answer


def discovered(server: FakeServer, model: str = "m") -> tuple[Endpoint, Pages]:
    endpoint, pages = Endpoint.parse(server.base_url), Pages()
    find_model(endpoint, model, pages=pages)
    return endpoint, pages


@pytest.mark.parametrize(
    ("owner", "pages"),
    [
        ("vllm", {"/version", "/server_info?config_format=json"}),
        ("sglang", {"/get_model_info", "/get_server_info"}),
        ("llamacpp", {"/props"}),
        ("router", {"/get_model_info", "/get_server_info"}),
        ("somebody", {"/version", "/server_info?config_format=json", "/get_model_info", "/get_server_info", "/props"}),
    ],
)
def test_each_page_of_the_engine_is_asked_once_and_no_other(owner: str, pages: set[str]) -> None:
    listed = models("unknown") if owner == "router" else models("m", owned_by=owner, max_model_len=9)
    with FakeServer(counted(listed, {})) as server:
        describe([discovered(server)], "m")
    paths = [request.path for request in server.requests]
    assert sorted(paths) == sorted({"/v1/models", *pages})


def test_pages_that_never_end_cost_one_deadline_for_all_servers() -> None:
    slow = counted(models("m", owned_by="vllm", root="r"), {"/version": [STALL], "/server_info": [Pause(60)]})
    with FakeServer(slow) as one, FakeServer(slow) as second:
        servers = [discovered(one), discovered(second)]
        begun = time.monotonic()
        told = describe(servers, "m", seconds=0.5)
        assert time.monotonic() - begun < 30  # one page after the other would take minutes
    assert [facts.model["root"] for facts in told] == ["r", "r"]
    assert all("version" not in facts.host for facts in told)


def test_somebody_elses_service_is_not_asked_for_pages_of_its_own() -> None:
    with FakeServer(counted(models("m", canonical_slug="m-2026-01", context_length=9), {})) as server:
        (facts,) = describe([discovered(server)], "m", own_pages=False)
    assert facts.model == {"canonical_slug": "m-2026-01"}
    assert [request.path for request in server.requests] == ["/v1/models"]


def test_the_template_of_llama_cpp_is_told_by_its_checksum() -> None:
    def facts(template: str) -> Any:
        props = {"chat_template": template, "model_path": "/m.gguf", "total_slots": 4}
        with FakeServer(counted(models("m", meta={"n_params": 7}), {"/props": http(200, props)})) as server:
            return describe([discovered(server)], "m")[0].model

    assert facts("{{ a }}")["chat_template"].startswith("sha256:")
    assert facts("{{ a }}") == facts("{{ a }}") != facts("{{ b }}")
