"""Samples by the batch: each is stored once, whatever the provider sends, and none is handed in twice.

For: harness.preparing.run_settings, harness.client.batch_service, harness.generation.batching.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import harness
from harness.client.address.endpoint import Endpoint
from harness.client.batch_service import BatchService
from harness.client.protocol.failures import RequestFailed
from harness.generation.batching import loop
from harness.progress.events import Watcher
from harness.results import Run
from harness.runs import RunFolder, read_samples
from harness.testing import CLOSE, FakeServer, Request, Said, Step, http
from tests import warm
from tests.faults.snapshots import State, put, state_of
from tests.patience import PATIENCE_SECONDS

Line = dict[str, Any]


def answered(line: Line, text: str | None = None, **choice: Any) -> bytes:
    """The result of a request that was answered."""
    body = line["body"]
    reply_text = f"seed {body.get('seed')}" if text is None else text
    reply = Said(reply_text, 7, model=body["model"]).whole() | {"id": f"chatcmpl-{line['custom_id']}"}
    reply["choices"][0] |= choice
    response = {"status_code": 200, "request_id": "r", "body": reply}
    return encoded({"id": "b", "custom_id": line["custom_id"], "response": response, "error": None})


def refused(line: Line, status: int, message: str) -> bytes:
    """The result of a request that met an HTTP error."""
    response = {"status_code": status, "request_id": "r", "body": {"error": {"message": message}}}
    return encoded({"id": "b", "custom_id": line["custom_id"], "response": response, "error": None})


def expired(line: Line) -> bytes:
    """The result of a request for which the window was too short."""
    error = {"code": "batch_expired", "message": "This request could not be executed before the window expired."}
    return encoded({"id": "b", "custom_id": line["custom_id"], "response": None, "error": error})


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@dataclass
class Outcome:
    """How a batch ends: its status, the lines of its two files, what is wrong with it as a whole."""

    status: str = "completed"
    output: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    words: str = ""


def all_answered(lines: list[Line], _number: int) -> Outcome:
    return Outcome(output=[answered(line) for line in lines])


class BatchProvider:
    """See the module. outcome: of a batch, from its requests and its number, from 1. looks: at a batch before it has
    ended. pending: looks at a file before it is ready. touched: told of each request before and after it took effect;
    true before it = it never does.
    """

    def __init__(
        self,
        outcome: Callable[[list[Line], int], Outcome] = all_answered,
        *,
        looks: int = 1,
        pending: int = 0,
        touched: Callable[[Request, bool], bool] = lambda request, after: False,
        instead: Callable[[BatchProvider, Request], bytes | None] = lambda provider, request: None,
    ) -> None:
        self.outcome = outcome
        self.looks = looks
        self.pending = pending
        self.touched = touched
        self.instead = instead
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.looked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Iterator[Step]:
        if (fault := self.instead(self, request)) is not None:
            yield fault
            yield CLOSE
            return
        if self.touched(request, False):
            yield CLOSE
            return
        with self._lock:
            reply = self.reply(request)
        self.touched(request, True)
        yield reply

    def asked(self) -> list[Line]:
        """Every request of every batch that was begun."""
        return [line for batch in self.batches.values() for line in self._lines(batch["input_file_id"])]

    def _lines(self, file_id: str) -> list[Line]:
        return [json.loads(line) for line in self.files[file_id].splitlines()]

    def reply(self, request: Request) -> bytes:
        parts = urlsplit(request.path)
        where = parts.path.removeprefix("/openai").removeprefix("/v1").strip("/").split("/")
        match request.method, where:
            case "GET", ["models"]:
                return http(200, {"object": "list", "data": [{"id": name} for name in ("m", "other")]})
            case "POST", ["files"]:
                return http(200, self._file(self._upload(request)))
            case "GET", ["files", file_id]:
                return http(200, self._file(file_id))
            case "POST", ["batches"]:
                return http(200, self._begin(request.json))
            case "GET", ["batches"]:
                return http(200, self._list(parse_qs(parts.query)))
            case "GET", ["batches", batch_id] if batch_id in self.batches:
                return http(200, self._look(batch_id))
            case "GET", ["files", file_id, "content"] if file_id in self.files:
                return http(200, self.files[file_id])
        return http(404, {"error": {"message": f"no such thing: {request.path}"}})

    def _upload(self, request: Request) -> str:
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        parts = request.body.split(b"--" + boundary)
        head, _, content = next(part for part in parts if b'name="file"' in part).partition(b"\r\n\r\n")
        assert any(b'name="purpose"\r\n\r\nbatch\r\n' in part for part in parts), head
        file_id = f"file-{len(self.files)}"
        self.files[file_id] = content.removesuffix(b"\r\n")
        return file_id

    def _file(self, file_id: str) -> dict[str, Any]:
        self.looked[file_id] += 1
        return {"id": file_id, "status": "pending" if self.looked[file_id] <= self.pending else "processed"}

    def _begin(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["completion_window"] == "24h"
        batch_id = f"batch_{len(self.batches)}"
        lines = self._lines(body["input_file_id"])
        assert len({line["custom_id"] for line in lines}) == len(lines), "ids within a batch are unique"
        assert all(line["url"] == body["endpoint"] and line["method"] == "POST" for line in lines)
        counts = {"total": len(lines), "completed": 0, "failed": 0}
        batch = {**body, "id": batch_id, "object": "batch", "status": "validating", "created_at": 1_700_000_000}
        self.batches[batch_id] = {**batch, "request_counts": counts, "output_file_id": None, "error_file_id": None}
        return self.batches[batch_id]

    def _list(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """Two a page, the latest first."""
        newest = [*reversed(self.batches.values())]
        after = query.get("after", [""])[0]
        begin = 1 + next((index for index, batch in enumerate(newest) if batch["id"] == after), -1)
        return {"object": "list", "data": newest[begin : begin + 2], "has_more": begin + 2 < len(newest)}

    def _look(self, batch_id: str) -> dict[str, Any]:
        batch = self.batches[batch_id]
        self.looked[batch_id] += 1
        if self.looked[batch_id] <= self.looks or batch["status"] == "done":
            return {**batch, "status": "in_progress"}
        if "completed_at" not in batch:
            number = 1 + [*self.batches].index(batch_id)
            ended = self.outcome(self._lines(batch["input_file_id"]), number)
            batch |= {"status": ended.status, "completed_at": 1_700_000_060}
            for name, lines in (("output_file_id", ended.output), ("error_file_id", ended.errors)):
                if lines:
                    batch[name] = f"file-{len(self.files)}"
                    self.files[batch[name]] = b"\n".join(lines) + b"\n"
            if ended.words:
                batch["errors"] = {"data": [{"code": "invalid", "message": ended.words}]}
        return batch


N, M = 3, 2
KEYS = {(f"q{q}", i) for q in range(N) for i in range(M)}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Keywords of the run that all tests ask for."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(loop, "FIRST_LOOK_S", 0.02)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(N)))
    return {
        "data": path,
        "question_key": "problem",
        "answer_key": "answer",
        "id_key": "id",
        "samples": M,
        "model": "m",
        "batch": True,
        "canary": False,
        "out": tmp_path / "run",
    }


def texts(out: Path) -> dict[tuple[str, int], str | None]:
    """What is stored; a key that stands there twice is a failure."""
    files = RunFolder(out).benchmark("sums")
    fewest = len(files.samples.read_bytes().splitlines()) if files.samples.exists() else 0
    samples = list(read_samples(files))
    # A run may write meanwhile.
    assert fewest <= len(samples) <= len(files.samples.read_bytes().splitlines())
    return {(one.question_id, one.sample_index): one.text for one in samples}


def run_on(provider: BatchProvider, asked: dict[str, Any], **more: Any) -> Run:
    """A run by batches of this provider."""
    with FakeServer(provider.answer) as server:
        return harness.run(base_url=server.base_url, **asked, **more)


def times(provider: BatchProvider) -> Counter[str]:
    """How often each request was handed in."""
    return Counter(line["custom_id"] for line in provider.asked())


def test_samples_come_from_a_batch_and_are_as_those_of_streams(asked: dict[str, Any]) -> None:
    provider = BatchProvider(pending=1)
    with FakeServer(provider.answer) as server:
        run = harness.run(base_url=server.base_url, **asked)
        again = harness.run(base_url=server.base_url, **asked)
    assert run.complete
    assert set(times(provider).values()) == {1}
    assert len(provider.batches) == 1, "all in one batch, and nothing more when nothing is missing"
    assert (again.complete, again.outcome.tally.finished) == (True, 0)
    stored = list(run.samples())
    assert {one.key for one in stored} == KEYS
    assert all(one.text == f"seed {one.seed}" for one in stored), "each result belongs to its request"
    assert {(one.usage.completion_tokens, one.finish_reason, one.endpoint) for one in stored} == {
        (7, "stop", server.base_url)
    }
    assert {(one.timing.started, one.timing.total, one.timing.first_token) for one in stored} == {
        (1_700_000_000.0, 60.0, None)
    }
    (batch,) = provider.batches.values()
    assert batch["endpoint"] == "/v1/chat/completions"
    assert all(line["body"]["stream"] is False for line in provider.asked())


def test_a_batch_of_responses_is_written_and_read_as_such(asked: dict[str, Any]) -> None:
    def outcome(lines: list[Line], _number: int) -> Outcome:
        ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        return Outcome(
            output=[
                encoded({"custom_id": line["custom_id"], "response": {"status_code": 200, "body": reply | ended}})
                for line in lines
                for reply in [Said(line["body"]["input"][0]["content"].split("\n")[0], model="m").whole("responses")]
            ]
        )

    provider = BatchProvider(outcome)
    run = run_on(provider, asked, api="responses")
    assert run.complete
    stored = list(run.samples())
    assert {one.key for one in stored} == KEYS
    assert all(one.text == f"1+{one.question_id[1:]}?" for one in stored), "each result belongs to its request"
    assert {(one.finish_reason, one.usage.completion_tokens, one.truncated, one.seed) for one in stored} == {
        ("max_output_tokens", 3, True, None)
    }
    assert {batch["endpoint"] for batch in provider.batches.values()} == {"/v1/responses"}
    assert all((line["body"]["store"], line["body"]["stream"]) == (False, False) for line in provider.asked())


def test_what_failed_or_expired_is_asked_again_and_what_is_refused_is_not(asked: dict[str, Any]) -> None:
    def outcome(lines: list[Line], number: int) -> Outcome:
        if number > 1:
            return all_answered(lines, number)
        first, second, third, fourth, *_ = lines
        return Outcome(
            "expired",
            output=[answered(first), refused(second, 500, "overloaded")],
            errors=[expired(third), refused(fourth, 400, "no such thing")],
        )

    provider = BatchProvider(outcome)
    run = run_on(provider, asked)
    assert not run.complete
    assert run.outcome.n_missing == 1
    assert [(one.kind, one.count) for one in run.outcome.causes] == [("rejected", 1)]
    assert "no such thing" in run.outcome.causes[0].example
    assert len(texts(run.path)) == 5
    assert sorted(times(provider).values()) == [1, 1, 2, 2, 2, 2]
    log = [json.loads(line) for line in (run.path / "log.jsonl").read_text().splitlines()]
    assert sum(one["event"] == "batch_ended" for one in log) == 2
    assert [one["without_result"] for one in log if one["event"] == "batch_left_open"] == [2]


def test_what_always_fails_is_given_up_after_so_many_attempts(asked: dict[str, Any]) -> None:
    provider = BatchProvider(lambda lines, _: Outcome(errors=[expired(line) for line in lines]))
    run = run_on(provider, asked, attempts=2)
    assert run.outcome.n_missing == N * M
    assert set(times(provider).values()) == {2}
    assert "batch_expired" in run.outcome.causes[0].example


def test_hostile_results_change_nothing(asked: dict[str, Any]) -> None:
    def outcome(lines: list[Line], _number: int) -> Outcome:
        first = lines[0]
        junk = [
            b"",
            b"{",
            b"[]",
            b"null",
            b'"x"',
            b"\xff\xfe\x00",
            b"[" * 50_000,
            encoded({"custom_id": 7}),
            encoded({"custom_id": "not-ours", "response": {"status_code": 200, "body": {}}}),
            answered({**first, "custom_id": "../../etc/passwd"}),
            answered({**first, "custom_id": first["custom_id"] + "0"}),
        ]
        twice = [answered(first, "one"), answered(first, "another"), refused(first, 500, "late")]
        return Outcome(output=[*junk, *twice, *[answered(line) for line in lines[1:]]])

    provider = BatchProvider(outcome)
    run = run_on(provider, asked)
    assert run.complete
    stored = texts(run.path)
    assert sum(text == "one" for text in stored.values()) == 1, "the first result of a request counts"
    assert "another" not in stored.values()
    assert set(times(provider).values()) == {1}


def one_too_long(lines: list[Line], number: int) -> Outcome:
    long = [answered(line, "x" * 200_000) for line in lines[:1] if number == 1]
    return Outcome(output=[*long, *[answered(line) for line in lines[len(long) :]]])


def four_are_no_replies(lines: list[Line], number: int) -> Outcome:
    if number > 1:
        return all_answered(lines, number)
    whole = [json.loads(answered(line)) for line in lines]
    whole[0]["response"]["body"]["choices"][0]["finish_reason"] = None
    whole[1]["response"]["body"] = []
    whole[2]["response"]["body"] = {"error": {"message": "server is busy"}}
    whole[3]["response"]["body"]["choices"] = "x"
    return Outcome(output=[encoded(one) for one in whole])


def begun_without_an_answer(provider: BatchProvider, request: Request) -> bytes | None:
    if (request.method, request.path) != ("POST", "/v1/batches") or provider.batches:
        return None
    provider.reply(request)
    return http(502, b"bad gateway")


def results_cut_once(provider: BatchProvider, request: Request) -> bytes | None:
    provider.looked[request.path] += request.path.endswith("/content")
    return provider.reply(request)[:-300] if provider.looked[request.path] == 1 else None


@pytest.mark.parametrize(
    ("trouble", "n_asked"),
    [
        ({"outcome": one_too_long}, [1, 1, 1, 1, 1, 2]),
        ({"outcome": four_are_no_replies}, [1, 1, 2, 2, 2, 2]),
        ({"instead": begun_without_an_answer}, [1] * 6),
        ({"instead": results_cut_once}, [1] * 6),
    ],
)
def test_what_has_no_reply_is_asked_once_more_and_nothing_else_is(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, trouble: dict[str, Any], n_asked: list[int]
) -> None:
    monkeypatch.setattr("harness.client.batch_service.MAX_RECORD_BYTES", 5_000)
    provider = BatchProvider(**trouble)
    run = run_on(provider, asked)
    assert run.complete
    assert set(texts(run.path)) == KEYS
    assert sorted(times(provider).values()) == n_asked
    assert len(provider.batches) == max(n_asked)


def test_a_unix_socket_has_no_batches() -> None:
    with pytest.raises(RequestFailed, match="unix sockets; use the HTTP URL of a batch API"):
        BatchService(Endpoint.parse("unix:/run/none.sock")).get("b")


@pytest.mark.parametrize(
    ("name", "variable", "header", "path"),
    [
        ("azure", "AZURE_OPENAI_API_KEY", ("api-key", "k"), "/chat/completions"),
        ("groq", "GROQ_API_KEY", ("authorization", "Bearer k"), "/v1/chat/completions"),
    ],
)
def test_batches_of_a_known_provider_are_spelled_as_it_wants_them(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, name: str, variable: str, header: tuple[str, str], path: str
) -> None:
    monkeypatch.setenv(variable, "k")
    provider = BatchProvider(pending=1)
    with FakeServer(provider.answer) as server:
        address = server.base_url.removesuffix("/v1")
        assert harness.run(base_url=address, provider=name, **asked).complete
    handed = [request for request in server.requests if request.method == "POST"]
    assert [request.path for request in handed] == ["/openai/v1/files", "/openai/v1/batches"]
    assert {request.headers[header[0]] for request in handed} == {header[1]}
    assert {line["url"] for line in provider.asked()} == {handed[1].json["endpoint"]} == {path}


def test_a_batch_refused_as_a_whole_stops_the_run_in_the_providers_words(asked: dict[str, Any]) -> None:
    ways = iter([Outcome("failed", words="Enqueued token limit reached")])
    provider = BatchProvider(lambda lines, number: next(ways, None) or all_answered(lines, number))
    with FakeServer(provider.answer) as server:
        with pytest.raises(harness.ServerError, match=r"Enqueued token limit reached.*concurrency"):
            harness.run(base_url=server.base_url, **asked)
        assert harness.run(base_url=server.base_url, **asked).complete, "the same command asks anew"


def test_a_step_that_fails_is_a_line_with_the_next_try(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(Watcher, "standing", lambda _, sentence: lines.append(sentence))
    faults = iter([http(503, b"no room"), http(529, b"no room")])

    def instead(_: BatchProvider, request: Request) -> bytes | None:
        return next(faults, None) if request.method == "POST" else None

    assert run_on(BatchProvider(instead=instead), asked).complete
    sizes, *failed = lines
    assert sizes.startswith(f"uploading {N * M} requests, ")
    expected = [("503", 1), ("529", 2)]
    assert failed[:2] == [f"the upload failed (HTTP {status}: no room); retrying in {s} s" for status, s in expected]


@pytest.mark.parametrize(("status", "message"), [(401, "no key"), (404, "no such route")])
def test_a_provider_without_batches_stops_the_run(asked: dict[str, Any], status: int, message: str) -> None:
    def instead(_: BatchProvider, request: Request) -> bytes | None:
        return http(status, {"error": {"message": message}}) if request.method == "POST" else None

    with (
        FakeServer(BatchProvider(instead=instead).answer) as server,
        pytest.raises(harness.ServerError, match=f"cannot create a batch: HTTP {status}: {message}"),
    ):
        harness.run(base_url=server.base_url, **asked)
    with FakeServer(BatchProvider().answer) as server:
        assert harness.run(base_url=server.base_url, **asked).complete, "nothing had been handed in"


def test_excess_requests_are_found_in_the_batch_that_sends_them(asked: dict[str, Any]) -> None:
    provider = BatchProvider(looks=0)
    with FakeServer(provider.answer) as server:
        harness.run(base_url=server.base_url, **asked)
        (asked["out"] / "sums" / "samples.jsonl").unlink()
        run = harness.run(base_url=server.base_url, concurrency=2, **asked)
    assert run.complete
    assert len(provider.batches) == 1, "all are answered by the batch that asked them first"


def test_a_batch_that_the_provider_has_forgotten_is_named_with_the_way_out(asked: dict[str, Any]) -> None:
    provider = BatchProvider(looks=0)
    with FakeServer(provider.answer) as server:
        harness.run(base_url=server.base_url, **asked)
        (asked["out"] / "sums" / "samples.jsonl").unlink()
        provider.batches.clear()
        with pytest.raises(harness.ServerError, match=r"no longer has the batch batch_0.*delete .*batches\.jsonl"):
            harness.run(base_url=server.base_url, **asked)
        (asked["out"] / "batches.jsonl").unlink()
        assert harness.run(base_url=server.base_url, **asked).complete


def test_a_key_reaches_no_message_and_no_file(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-0123456789abcdefghij"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    provider = BatchProvider(lambda lines, _: Outcome(output=[refused(line, 400, f"bad key {key}") for line in lines]))
    with FakeServer(provider.answer) as server, pytest.raises(harness.ServerError) as failed:
        harness.run(base_url=server.base_url, **asked)
    assert "bad key" in str(failed.value)
    assert key not in str(failed.value)
    assert all(key.encode() not in path.read_bytes() for path in asked["out"].rglob("*") if path.is_file())


def test_batches_of_another_address_are_not_asked_for_elsewhere(asked: dict[str, Any]) -> None:
    provider = BatchProvider(lambda lines, _: Outcome(output=[answered(line) for line in lines[:-1]]))
    with FakeServer(provider.answer) as server:
        harness.run(base_url=server.base_url, attempts=1, **asked)
    with (
        FakeServer(BatchProvider().answer) as other,
        pytest.raises(harness.ServerError, match=f"submitted batches to {server.base_url}"),
    ):
        harness.run(base_url=other.base_url, **asked)


def test_what_means_nothing_by_the_batch_is_refused(asked: dict[str, Any], tmp_path: Path) -> None:
    for more, message in (
        ({"target_error": 10}, "target_error.*does not work with `batch`"),
        ({"budget_tokens": 5}, "budget_tokens"),
        ({"base_url": ["http://a", "http://b"]}, "`batch` works with only one address"),
    ):
        with pytest.raises((harness.UsageError, harness.ServerError), match=message):
            harness.run(**{"base_url": "http://127.0.0.1:1", **asked, **more})
    with (
        FakeServer(BatchProvider().answer) as server,
        pytest.raises(harness.UsageError, match="batches are not supported with deepseek"),
    ):
        harness.run(base_url=server.base_url, provider="deepseek", **asked)


# ---- left, killed, taken up


@pytest.mark.parametrize("page", ["/v1/batches/", "/v1/files/"])
def test_left_by_a_signal_it_is_taken_up_by_the_same_command(asked: dict[str, Any], tmp_path: Path, page: str) -> None:
    """It is left while the provider works on the batch, and while it checks the file of a batch."""
    child: list[subprocess.Popen[str]] = []

    def touched(request: Request, after: bool) -> bool:
        if after and request.path.startswith(page) and child:
            child.pop().send_signal(signal.SIGINT)
        return False

    provider = BatchProvider(looks=10**9, pending=10**9 if "files" in page else 0, touched=touched)
    with FakeServer(provider.answer) as server:
        words = ["--data", str(asked["data"]), "--question-key", "problem", "--answer-key", "answer", "--id-key", "id"]
        words += ["--samples", str(M), "--model", "m", "--base-url", server.base_url, "--out", "run", "--no-canary"]
        process = warm.started(["harness", "run", *words, "--batch"], cwd=tmp_path, stderr=subprocess.PIPE)
        child.append(process)
        stderr = process.communicate(timeout=PATIENCE_SECONDS)[1]
        assert process.returncode == 130, stderr
        assert ("submitted: 6 requests" in stderr) is ("batches" in page)
        assert "0 of 6 samples are stored" in stderr
        provider.looks = provider.pending = 0
        assert harness.run(base_url=server.base_url, **asked).complete
    assert len(provider.batches) == 1
    assert len(texts(asked["out"])) == N * M


def half_first(lines: list[Line], _number: int) -> Outcome:
    """The first batch of a run leaves two requests to a second one."""
    if len(lines) < N * M:
        return Outcome(output=[answered(line) for line in lines])
    return Outcome("expired", [answered(line) for line in lines[2:]], [expired(line) for line in lines[:2]])


@pytest.mark.wide
def test_death_at_every_request_loses_nothing_and_hands_nothing_in_twice(asked: dict[str, Any]) -> None:
    """A run goes on from what stood on the disk and at the provider before each of its requests and after it."""
    moments: list[tuple[State, dict[str, bytes], dict[str, Any]]] = []

    def touched(request: Request, _after: bool) -> bool:
        if "/batches" in request.path or "/files" in request.path:
            moments.append((state_of(asked["out"]), dict(provider.files), deepcopy(provider.batches)))
        return False

    provider = BatchProvider(half_first, touched=touched)
    with FakeServer(provider.answer) as server:
        assert harness.run(base_url=server.base_url, **asked).complete
        provider.touched = lambda *_: False
        assert len(moments) >= 2 * 8, "a run of two batches makes that many requests at least"
        for number, (state, files, batches) in enumerate(moments):
            put(state, asked["out"])
            provider.files, provider.batches = files, batches
            assert harness.run(base_url=server.base_url, **asked).complete, number
            assert set(texts(asked["out"])) == KEYS, number
            assert sorted(times(provider).values()) == [1] * (N * M - 2) + [2] * 2, number
