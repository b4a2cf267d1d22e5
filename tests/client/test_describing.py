"""What servers tell for nothing, read at once and within one deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.facts.discovery import Pages, describe, find_model
from harness.testing import STALL, FakeServer, Pause, Request, Step, http, models


class Counted:
    """Answers a page from a table; remembers which were asked."""

    def __init__(self, listed: bytes, pages: dict[str, Any]) -> None:
        self._listed, self._pages = listed, pages

    def __call__(self, request: Request) -> Iterator[Step]:
        path = request.path.partition("?")[0]
        if path == "/v1/models":
            yield self._listed
        elif isinstance(page := self._pages.get(path), dict):
            yield http(200, page)
        else:
            yield from page or [http(404, {})]


def looked_at(server: FakeServer, model: str = "m") -> tuple[Endpoint, Pages]:
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
    with FakeServer(Counted(listed, {})) as server:
        describe([looked_at(server)], "m")
    paths = [request.path for request in server.requests]
    assert sorted(paths) == sorted({"/v1/models", *pages})


def test_pages_that_never_end_cost_one_deadline_for_all_servers() -> None:
    slow = Counted(models("m", owned_by="vllm", root="r"), {"/version": [STALL], "/server_info": [Pause(60)]})
    with FakeServer(slow) as one, FakeServer(slow) as second:
        servers = [looked_at(one), looked_at(second)]
        begun = time.monotonic()
        told = describe(servers, "m", seconds=0.5)
        assert time.monotonic() - begun < 30  # one page after the other would take minutes
    assert [facts.model["root"] for facts in told] == ["r", "r"]
    assert all("version" not in facts.host for facts in told)


def test_somebody_elses_service_is_not_asked_for_pages_of_its_own() -> None:
    with FakeServer(Counted(models("m", canonical_slug="m-2026-01", context_length=9), {})) as server:
        (facts,) = describe([looked_at(server)], "m", own_pages=False)
    assert facts.model == {"canonical_slug": "m-2026-01"}
    assert [request.path for request in server.requests] == ["/v1/models"]


def test_the_template_of_llama_cpp_is_told_by_its_checksum() -> None:
    def facts(template: str) -> Any:
        props = {"chat_template": template, "model_path": "/m.gguf", "total_slots": 4}
        with FakeServer(Counted(models("m", meta={"n_params": 7}), {"/props": props})) as server:
            return describe([looked_at(server)], "m")[0].model

    assert facts("{{ a }}")["chat_template"].startswith("sha256:")
    assert facts("{{ a }}") == facts("{{ a }}") != facts("{{ b }}")
