"""The embedded server: a real llama.cpp answering through the OpenAI protocol.

For: server_launchers.embedded.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from server_launchers.embedded import openmp
from server_launchers.lifecycle.launch import RunningServer
from tests.embedded import CONTEXT, MODEL, THINKING_GRAMMAR
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.server


def post(server: RunningServer, **fields: object) -> httpx.Response:
    body = {"model": server.model, "temperature": 0} | fields
    return httpx.post(f"{server.base_urls[0]}/v1/chat/completions", json=body, timeout=PATIENCE_SECONDS)


def ask(server: RunningServer, content: str, **fields: object) -> dict[str, Any]:
    answer = post(server, messages=[{"role": "user", "content": content}], **fields)
    assert answer.status_code == 200, answer.text
    message: dict[str, Any] = answer.json()["choices"][0]["message"]
    return message


def test_an_embedded_server_lists_its_model_and_answers(embedded_server: RunningServer) -> None:
    listed = httpx.get(f"{embedded_server.base_urls[0]}/v1/models", timeout=PATIENCE_SECONDS).json()["data"][0]
    assert (listed["id"], embedded_server.model, listed["meta"]["n_ctx"]) == (MODEL, MODEL, CONTEXT)
    assert ask(embedded_server, "Write one sentence about the sea.", max_tokens=20)["content"]
    answer = post(embedded_server, messages=[{"role": "user", "content": "word " * (CONTEXT + 1)}])
    assert (answer.status_code, answer.json()["error"]["n_ctx"]) == (400, CONTEXT), "a slot has the whole context"


def test_a_thinking_server_keeps_reasoning_apart_from_the_answer(thinking_server: RunningServer) -> None:
    message = ask(thinking_server, "What is 2+2?", max_tokens=200, grammar=THINKING_GRAMMAR)
    assert message["reasoning_content"]
    assert message["content"]
    assert "</think>" not in message["content"]


def stream_forever(url: str, started: threading.Event) -> None:
    body = {"messages": [{"role": "user", "content": "Tell a long story."}], "stream": True, "ignore_eos": True}
    try:
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=PATIENCE_SECONDS) as answer:
            for line in answer.iter_lines():
                if line.startswith("data:"):
                    started.set()
    except httpx.HTTPError:
        started.set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_program_leaves_though_a_client_stays(smollm2: Path, number: signal.Signals) -> None:
    argv = [sys.executable, "-m", "server_launchers.embedded.llama_cpp_server", str(smollm2), "--threads", "1"]
    environment = {**os.environ, **openmp.environment()}
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        address = re.search(r"http://\S+", server.stdout.readline())
        assert address is not None
        started = threading.Event()
        client = threading.Thread(target=stream_forever, args=(address[0], started))
        client.start()
        assert started.wait(PATIENCE_SECONDS)
        server.send_signal(number)
        assert server.wait(PATIENCE_SECONDS) == 0
        client.join()


def test_threads_that_wait_for_each_other_sleep_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert openmp.environment()["OMP_WAIT_POLICY"] == "passive"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert openmp.environment()["OMP_WAIT_POLICY"] == "active"
