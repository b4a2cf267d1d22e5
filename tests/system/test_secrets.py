"""A canary key in every place where a key can stand is in nothing that a run prints or stores."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path

from tests.faults.server import STALL, FaultServer, Request, Step, completion, delta, event, event_stream, http
from tests.patience import PATIENCE_SECONDS
from tests.system.command import harness, start

KEY = "canary-0123456789-abcdef-5up3rs3cr3t"
HEADER_KEY = "header-canary-9876543210"
MODELS = {"data": [{"id": "m", "max_model_len": 1_000_000}]}


def ask(folder: Path, url: str) -> list[str]:
    (folder / "q.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n', encoding="utf-8")
    return [
        "run", "--data", "q.jsonl", "--base-url", url.replace("://", f"://user:{KEY}@"), "--samples", "2",
        "--header", f"X-Key: {HEADER_KEY}", "--extra-body", json.dumps({"api_key": KEY, "top_k": 5}),
        "--out", "run", "--no-canary", "--model", "m", "--attempts", "1",
    ]  # fmt: skip


BODY_KEY = "body-canary-qwertyuiop-42"
ALL_KEYS = (KEY, HEADER_KEY, BODY_KEY)


def leaks(folder: Path, *printed: str) -> list[str]:
    """Where a key stands, or its second half."""
    contents = {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    contents |= {f"output {n}": text.encode() for n, text in enumerate(printed)}
    spellings = [key[len(key) // 2 :] for key in ALL_KEYS]
    return [place for place, data in contents.items() if any(s.encode() in data for s in spellings)]


def test_a_run_that_is_stopped_says_how_to_resume_without_keys(tmp_path: Path) -> None:
    def answer(request: Request) -> Iterable[Step]:
        return [http(200, MODELS)] if request.method == "GET" else [STALL]

    with FaultServer(answer) as server:
        process = start(tmp_path, ask(tmp_path, server.base_url))
        assert server.wait_for(lambda: any(r.method == "POST" for r in server.requests))
        for _ in range(2):
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert "Resume with: harness run" in err
    assert "[hidden]" in err
    assert leaks(tmp_path, out, err) == []


def test_what_a_server_echoes_of_a_key_is_not_shown(tmp_path: Path) -> None:
    def answer(request: Request) -> Iterable[Step]:
        if request.method == "GET":
            return [http(200, MODELS)]
        return [http(500, {"error": {"message": f"{KEY} or …{KEY}! or {HEADER_KEY}"}})]

    with FaultServer(answer) as server:
        done = harness(tmp_path, *ask(tmp_path, server.base_url))
    assert done.code == 1
    assert "[hidden]" in done.err
    assert leaks(tmp_path, done.out, done.err) == []


def test_what_a_server_echoes_of_a_key_that_stands_in_the_body_only_is_not_shown(tmp_path: Path) -> None:
    def answer(request: Request) -> Iterable[Step]:
        if request.method == "GET":
            return [http(200, MODELS)]
        sent = request.json["provider"]["options"][0]["access_key"]
        words = f"{sent} or …{sent}!"
        if request.number % 2:
            return [http(500, {"error": {"message": words}})]
        return event_stream(delta("4"), event({"error": {"message": words}}))

    (tmp_path / "q.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n', encoding="utf-8")
    body = json.dumps({"provider": {"options": [{"access_key": BODY_KEY}]}})
    with FaultServer(answer) as server:
        for transport in ("http", "openai"):
            done = harness(
                tmp_path, "run", "--data", "q.jsonl", "--base-url", server.base_url, "--samples", "4",
                "--extra-body", body, "--out", transport, "--no-canary", "--model", "m", "--attempts", "1",
                "--transport", transport,
            )  # fmt: skip
            assert done.code == 1
            assert "[hidden]" in done.err
            assert leaks(tmp_path, done.out, done.err) == []


def test_the_manifest_hides_a_key_of_the_extra_body_and_the_request_carries_it(tmp_path: Path) -> None:
    with FaultServer(lambda r: [http(200, MODELS)] if r.method == "GET" else completion("2")) as server:
        assert harness(tmp_path, *ask(tmp_path, server.base_url)).code == 0
        assert harness(tmp_path, *ask(tmp_path, server.base_url)).code == 0
        sent = [r.json for r in server.requests if r.method == "POST"]
    assert {one["api_key"] for one in sent} == {KEY}
    assert leaks(tmp_path) == []
    (benchmark,) = json.loads((tmp_path / "run/manifest.json").read_bytes())["benchmarks"].values()
    assert benchmark["identity"]["extra_body"] == {"api_key": "[hidden]", "top_k": 5}


def test_a_refused_address_is_quoted_without_its_password(tmp_path: Path) -> None:
    for url in (f"ftp://user:{KEY}@host/v1", f"http://user:{KEY}@host:99999/v1"):
        done = harness(tmp_path, "run", "demo:1", "--base-url", url)
        assert (done.code, KEY in done.err, "host" in done.err) == (2, False, True), done.err
