"""A run that begins before its server is ready: drawn starts, each with what its pages answer until it is up."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

import harness
from harness.core.errors import ServerError
from harness.testing import CLOSE, FakeServer, Pause, Request, Said, Step, http, models, serving
from server_launchers.machine import ports
from tests.budget import SEED, examples
from tests.faults.able import sums
from tests.system.command import harness as command

APIS = ("chat", "completions", "responses", "messages")
LIST = ("ready", "refused", "silence", "closed", "503", "500", "words", "404", "empty", "another", "303")
REPLY = ("ready", "silence", "closed", "503", "500", "words", "404", "303")

LONGEST_S = float(os.environ.get("HARNESS_LONGEST_START", "2"))
"""Longest drawn start, in seconds."""


class Start(NamedTuple):
    """How a server starts. listed, replied: what its list of models and its replies are until it is up."""

    number: int
    api: str
    named: bool
    listed: str
    replied: str
    seconds: float

    @property
    def ends(self) -> str:
        """Words of the sentence with which the run may end at once; empty if it must wait."""
        if self.listed == "another" and self.named:
            return "does not serve toy"
        is_tried = self.listed in ("ready", "another", "silence", "404")  # the others are waited for
        return "404" if (self.replied == "404" and is_tried) or (self.listed == "404" and not self.named) else ""


def drawn(n: int) -> list[Start]:
    rng = random.Random(SEED)
    return [
        Start(
            number,
            rng.choice(APIS),
            rng.random() < 0.5,
            rng.choice(LIST),
            rng.choice(REPLY),
            round(rng.uniform(0, LONGEST_S), 2),
        )
        for number in range(n)
    ]


class Starting:
    """The answers of a server that is up `seconds` after it was made."""

    def __init__(self, start: Start) -> None:
        self.start, self.up_at = start, time.monotonic() + start.seconds
        self.up = serving(Said(r"So \boxed{1}"), "toy")

    def __call__(self, request: Request) -> Iterable[Step]:
        left = self.up_at - time.monotonic()
        if "ticket" in request.path:
            says = Said(r"So \boxed{1}").whole(request.path.partition("ticket=")[2])
            return [http(303, location=request.path)] if left > 0 else [http(200, says)]
        of_list = request.path.partition("?")[0].endswith("/models")
        if left <= 0 or (request.method == "GET" and not of_list):
            return self.up(request)
        return self.early(self.start.listed if of_list else self.start.replied, request, left)

    def early(self, how: str, request: Request, left: float) -> Iterable[Step]:
        """What the server answers while it starts."""
        match how:
            case "silence":
                return [Pause(left), *self.up(request)]
            case "closed":
                return [CLOSE]
            case "503" | "500" | "404":
                return [http(int(how), {"error": {"message": "Internal Server Error" if how == "500" else "wait"}})]
            case "words":
                return [http(200, {"error": {"message": "Loading model"}})]
            case "empty":
                return [models()]
            case "another":
                return [models("other")]
            case "303" if request.method == "POST":
                return [http(303, location=f"{request.path}?ticket={request.api}")]
            case "303":
                return [Pause(0.05), http(303, location=request.path)]
        return self.up(request)


def run_at(start: Start, folder: Path) -> str:
    """Run at a server that starts so: empty if every sample came, else why not."""
    (port,) = ports.free_ports("127.0.0.1", None, 1)
    answer, server = Starting(start), list[FakeServer]()

    def serve() -> None:
        server.append(FakeServer(answer, port=port).__enter__())

    timer = threading.Timer(start.seconds if start.listed == "refused" else 0, serve)
    timer.start()
    if start.listed != "refused":
        timer.join()
    try:
        done = harness.run(
            data=str(sums(folder, 2)),
            base_url=f"http://127.0.0.1:{port}",
            model="toy" if start.named else None,
            api=start.api,
            out=folder / "run",
            max_tokens=64,
            canary=False,
            wait=120,
        )
        return "" if done.complete else f"incomplete: {done}"
    except ServerError as error:
        return error.sentence
    finally:
        timer.join()
        server[0].stop()


@pytest.mark.parametrize("start", drawn(examples(64)), ids=str)
def test_a_run_begun_before_its_server_is_up_needs_no_second_command(start: Start, tmp_path: Path) -> None:
    why = run_at(start, tmp_path)
    assert not why or (start.ends and start.ends in why), (start, why)


@pytest.mark.parametrize(
    ("listed", "words"),
    [("503", "not ready"), ("500", "HTTP 500"), ("empty", "lists no models"), ("words", "Loading model")],
)
def test_a_server_that_never_comes_up_ends_the_run_with_the_cause(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, listed: str, words: str
) -> None:
    begun = time.monotonic()
    caplog.set_level("INFO", "harness")
    with FakeServer(Starting(Start(0, "chat", False, listed, "ready", 600))) as server:
        for wait in (0, 1.5):
            with pytest.raises(ServerError, match=words) as caught:
                harness.run(data=str(sums(tmp_path, 1)), base_url=server.base_url, out=tmp_path / "run", wait=wait)
            assert ("Gave up after" in caught.value.sentence) is (wait > 0)
            assert ("waiting for a server for up to 1.5 s (`wait`)" in caplog.text) is (wait > 0)
            assert "; specify" not in caplog.text, "the line says what to do before anything needs to be done"
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize("listed", ["500", "empty", "404"])
def test_a_named_model_is_used_without_a_list_once_the_patience_is_over(tmp_path: Path, listed: str) -> None:
    with FakeServer(Starting(Start(0, "chat", True, listed, "ready", 600))) as server:
        for wait in (0, 1.5):
            out = tmp_path / str(wait)
            done = harness.run(
                data=str(sums(tmp_path, 1)), base_url=server.base_url, model="toy", out=out, wait=wait, canary=False
            )
            assert done.complete
            assert any(". The model toy is used anyway." in said for said in done.warnings), done.warnings
            n = len([each for each in server.requests if each.path.endswith("/models")])
            assert (n > 2) is (wait > 0 and listed != "404"), n


def test_a_judge_that_loads_is_waited_for_as_its_own_option_says(tmp_path: Path) -> None:
    """`score` has no --wait: the line and the error name the judge's key."""
    with FakeServer(serving("I give up")) as server:
        harness.run(data=str(sums(tmp_path, 1)), base_url=server.base_url, out=tmp_path / "run", samples=1)
    with FakeServer(Starting(Start(0, "chat", False, "503", "ready", 600))) as server:
        judge = f"judge@{server.base_url},scope=all,wait=1"
        scored = command(tmp_path, "score", "run", "--workers", "1", "--judge", judge)
    assert scored.code == 2
    assert "waiting for a server for up to 1 s (`--judge MODEL@URL,wait=SECONDS`)" in scored.err
    assert "Gave up after 1 s (`--judge MODEL@URL,wait=SECONDS`)." in scored.err


def test_only_what_may_pass_is_waited_for_by_default(tmp_path: Path) -> None:
    """401, another model, no such page: at once, whatever the patience."""
    pages = {"401": http(401, {"error": "no"}), "404": http(404, {}), "another": models("a", "b")}
    for name, page in pages.items():
        with FakeServer(lambda _, page=page: [page]) as server, pytest.raises(ServerError):
            harness.run(data=str(sums(tmp_path, 1)), base_url=server.base_url, out=tmp_path / name, wait=600)
        assert len(server.requests) < 4, name


@pytest.mark.parametrize("transport", ["http", "openai"])
def test_a_ticket_is_followed_until_the_first_token_is_overdue(tmp_path: Path, transport: str) -> None:
    """Its address may be relative or whole; one that never becomes a reply ends as a request without a token does."""
    if transport == "openai":
        pytest.importorskip("openai")
    waited = list[float]()

    def answer(request: Request) -> Iterable[Step]:
        if request.method == "GET" and "ticket" not in request.path:
            return [models("toy")]
        waited.append(time.monotonic())
        n, own = len(waited), "" if len(waited) % 2 else f"http://{request.headers['host']}"
        ends = str(request.path).endswith("ticket=1") and n > 2
        return [
            http(200, Said("1").whole()) if ends else http(303, location=f"{own}/v1/chat/completions?ticket={kind}")
        ]

    asked = {"max_tokens": 8, "canary": False, "transport": transport, "samples": 1, "limit": 1, "attempts": 1}
    for kind, whole in ((1, True), (0, False)):
        waited.clear()
        with FakeServer(answer) as server:
            url, out = server.base_url, tmp_path / str(kind)
            try:
                done = harness.run(
                    data=str(sums(tmp_path, 1)), base_url=url, out=out, timeout=60 if whole else 2.5, wait=0, **asked
                ).complete
            except ServerError as error:
                done, why = False, error.sentence
                assert "2.5 s" in why, why
        assert done is whole
        assert len(waited) > (2 if whole else 0)
        assert waited[-1] - waited[0] < 30


def test_a_ticket_of_another_host_gets_neither_key_nor_request(tmp_path: Path) -> None:
    with FakeServer(serving("42")) as other:
        where = f"http://127.0.0.1:{other.port}/v1/chat/completions?ticket=chat"

        def answer(request: Request) -> Iterable[Step]:
            return [models("toy")] if request.method == "GET" else [http(303, location=where)]

        with FakeServer(answer) as server, pytest.raises(ServerError, match="not on the same host"):
            harness.run(data=str(sums(tmp_path, 1)), base_url=server.base_url, out=tmp_path / "run")
        assert not other.requests
