"""A key that came in by any way is in no text of any object that a run, a judge or a probe holds, and in no pickle."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle  # noqa: TID251 - what is tried is that it refuses
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.apis.chat import CHAT
from harness.client.batch_service import BatchService
from harness.client.facts.tokens import Tokenizer
from harness.client.interface import Deadlines, Post
from harness.client.protocol.failures import RequestFailed
from harness.client.transport import open_transport
from harness.core.errors import ServerError
from harness.judges.judge import judge_of
from harness.options.judge import JudgeOptions
from harness.options.probing import ProbeOptions
from harness.options.run import RunOptions
from harness.options.whom import WhichServer
from harness.preparing import servers
from harness.preparing.prepare import prepare
from harness.probes.probed_endpoint import probed
from harness.progress.watching import Watcher
from harness.testing import FakeServer, Reply, Request, http, serving
from tests.faults.able import sums

KEY = "sk-objects-canary-0123456789"


def said_to(request: Request) -> Reply:
    """Lists a model; refuses each completion in the words that it was sent."""
    if request.path.partition("?")[0].endswith("/completions"):
        return [http(400, {"error": {"message": f"refused: {request.headers} {request.body.decode()}"}})]
    return "4"


saying = serving(said_to, "m")


WAYS_IN: dict[str, dict[str, Any]] = {
    "environment": {"api_key_env": "MY_KEY"},
    "provider": {"api_key_env": "MY_KEY", "provider": "azure"},  # into a header of the provider's own
    "header": {"header": (f"X-Key: {KEY}",)},
    "mapping": {"header": {"X-Key": f"Bearer {KEY}"}},
    "user info": {"base_url": f"http://user:{KEY}@"},
    "query": {"base_url": f"?key={KEY}"},
    "body": {"extra_body": {"api_key": KEY, "nested": [{"access_token": KEY}]}},
}
IN_THE_BODY = ("user info", "query", "body")
"""Ways of which the options hold the text as it was typed: these are not pickled here, but by `for_worker`."""


def texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    yield f"repr of {name}", repr(value)
    yield f"str of {name}", str(value)
    yield f"format of {name}", f"{value}"
    record = logging.LogRecord("x", logging.INFO, "f", 1, "held: %r", (value,), None)
    yield f"log of {name}", logging.Formatter().format(record)
    yield f"JSON of {name}", json.dumps({"value": value}, default=repr)


def failure_of(endpoint: Endpoint, transport: Any, body: bytes) -> str:
    """The traceback of a completion that the server refuses in the words that it was sent."""

    async def once() -> None:
        try:
            await transport.complete(Post(endpoint, CHAT, body, Deadlines(), 1 << 20))
        finally:
            await transport.close()

    with pytest.raises(RequestFailed) as failed:
        asyncio.run(once())
    return "".join(traceback.format_exception(failed.value)) + repr(failed.value) + repr(failed.value.__dict__)


def objects(who: Mapping[str, Any], folder: Path, stack: ExitStack) -> dict[str, Any]:
    """What a run, a judge and a probe hold."""
    sent = {name: value for name, value in who.items() if name != "extra_body"}
    data = {"data": str(sums(folder, 1)), "question_key": "problem", "answer_key": "answer", "out": folder / "run"}
    options = RunOptions.of(**data, **who)
    prepared = stack.enter_context(prepare(options, Watcher()))
    judge = JudgeOptions.of(**sent)
    server = judge_of(judge).serve()
    (subject,) = probed(WhichServer.of(**sent), Watcher(), ProbeOptions())
    reached = servers.find(options)
    return {
        "options": options,
        "prepared": prepared,
        "settings": prepared.settings,
        "asker": prepared.settings.asker,
        "template": prepared.settings.template("sums"),
        "endpoint": prepared.settings.endpoints[0],
        "found": reached,
        "looks": prepared.server_info,
        "judge": judge,
        "the judge's server": server,
        "probed": subject,
        "tokenizer": Tokenizer(reached.endpoints[0], "vllm", "m"),
        "batches": BatchService(reached.endpoints[0]),
        "record": prepared.settings.settings_record(),
        "identity": prepared.settings.identity(prepared.sets[0]),
    }


@pytest.mark.parametrize("way", WAYS_IN)
def test_no_object_shows_a_key(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeServer(saying) as server, ExitStack() as stack:
        who: dict[str, Any] = {"base_url": server.base_url, "model": "m", **WAYS_IN[way]}
        if way == "user info":
            who["base_url"] += server.base_url.partition("://")[2]
        elif way == "query":
            who["base_url"] = server.base_url + who["base_url"]
        held = objects(who, tmp_path, stack)
        shown = dict(text for name, value in held.items() for text in texts(name, value))
        settings = held["settings"]
        body = settings.template("sums").body_of_text("1+1?")
        for name in ("http", "openai"):
            transport = open_transport(name, secrets=settings.spelling.secrets)  # type: ignore[arg-type]
            shown |= dict(texts(name, transport))
            shown[f"failure by {name}"] = failure_of(settings.endpoints[0], transport, body)
        try:
            held["tokenizer"].text_of([1])
        except ServerError as error:
            shown["a page's failure"] = "".join(traceback.format_exception(error))
        traveled = any(KEY in repr(request) for request in server.requests)
    assert traveled, "the key is sent"
    assert [name for name, text in shown.items() if KEY in text] == []
    for name, value in held.items():
        assert not (name == "endpoint" or way not in IN_THE_BODY) or KEY not in pickled(value), name


def pickled(value: Any) -> str:
    """The pickle of a value; empty where it is refused."""
    try:
        return pickle.dumps(value).decode("latin-1")
    except Exception:  # noqa: BLE001 - a refusal of whatever kind
        return ""


def test_a_key_goes_to_a_worker_by_a_method_of_that_name_alone() -> None:
    options = RunOptions.of(model="m", base_url="http://h", header=(f"X-Key: {KEY}",), out=Path("x"))
    with pytest.raises(TypeError, match="for_worker"):
        pickle.dumps(options)
    carried = pickle.loads(pickle.dumps(options.for_worker()))
    assert carried["header"] == (("X-Key", KEY),)
    assert RunOptions(**carried) == options
