"""The embedded server: a real llama.cpp answering through the OpenAI protocol.

For: server_launchers.embedded.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from server_launchers.embedded import openmp
from server_launchers.keeping import launch
from server_launchers.keeping.launch import RunningServer
from server_launchers.machine import processes
from tests.budget import rounds
from tests.embedded import CONTEXT, MODEL, THINKING_GRAMMAR, embedded_spec
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.server


def ask(server: RunningServer, content: str, **fields: object) -> dict[str, object]:
    body = {"model": server.model, "messages": [{"role": "user", "content": content}], "temperature": 0} | fields
    answer = httpx.post(f"{server.base_urls[0]}/v1/chat/completions", json=body, timeout=PATIENCE_SECONDS)
    assert answer.status_code == 200, answer.text
    choice: dict[str, object] = answer.json()["choices"][0]
    return choice


def test_an_embedded_server_lists_its_model_and_answers(embedded_server: RunningServer) -> None:
    listed = httpx.get(f"{embedded_server.base_urls[0]}/v1/models").json()["data"][0]
    choice = ask(embedded_server, "Write one sentence about the sea.", max_tokens=20)
    assert listed["id"] == MODEL == embedded_server.model
    assert listed["meta"]["n_ctx"] == CONTEXT
    assert choice["message"]["content"]  # type: ignore[index]


def test_every_slot_has_the_whole_context_and_refuses_a_longer_prompt_in_words(embedded_server: RunningServer) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "word " * (CONTEXT + 1)}]}
    answer = httpx.post(f"{embedded_server.base_urls[0]}/v1/chat/completions", json=body, timeout=PATIENCE_SECONDS)
    assert answer.status_code == 400
    assert answer.json()["error"]["n_ctx"] == CONTEXT


def test_a_thinking_server_keeps_reasoning_apart_from_the_answer(thinking_server: RunningServer) -> None:
    message = ask(thinking_server, "What is 2+2?", max_tokens=200, grammar=THINKING_GRAMMAR)["message"]
    assert message["reasoning_content"]  # type: ignore[index]
    assert message["content"]  # type: ignore[index]
    assert "</think>" not in message["content"]  # type: ignore[index]


def test_thinking_can_be_switched_off_by_request(thinking_server: RunningServer) -> None:
    switched_off = {"enable_thinking": False}
    message = ask(thinking_server, "What is 2+2?", max_tokens=8, chat_template_kwargs=switched_off)["message"]
    assert not message.get("reasoning_content")  # type: ignore[attr-defined]
    assert message["content"]  # type: ignore[index]


def test_the_api_key_is_asked_for_and_stands_in_no_file(
    smollm2: Path, private_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "not-for-any-file-8f3a"
    monkeypatch.setenv("TEST_SERVER_KEY", key)
    with launch.launch(embedded_spec(smollm2, api_key_env="TEST_SERVER_KEY")) as server:
        url = f"{server.base_urls[0]}/v1/models"
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"Authorization": f"Bearer {key}"}).status_code == 200
        written = [
            path for path in private_state.rglob("*") if path.is_file() and key in path.read_text(errors="replace")
        ]
        command_line = Path(f"/proc/{server.state.members[0].pid}/cmdline").read_bytes()  # type: ignore[union-attr]
    assert written == []
    assert key.encode() not in command_line


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
        assert started.wait(30)
        server.send_signal(number)
        assert server.wait(30) == 0
        client.join()


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes by /proc")
@pytest.mark.fuzz
@pytest.mark.parametrize("_round", range(rounds(3)))
def test_a_harness_killed_at_any_moment_leaves_no_llama_cpp(_round: int, smollm2: Path, tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from server_launchers import spec\n"
        "from server_launchers.keeping import launch\n"
        "print('go', flush=True)\n"
        "two = spec.ServerSpec(engine='llama_cpp', model=sys.argv[1], threads=1, dp=2)\n"
        "with launch.launch(two): time.sleep(600)"
    )
    mark = str(tmp_path)
    environment = {**os.environ, "HARNESS_STATE": mark}
    child = subprocess.Popen([sys.executable, "-c", code, str(smollm2)], stdout=subprocess.PIPE, env=environment)
    assert child.stdout is not None
    with child:
        assert child.stdout.readline() == b"go\n"
        time.sleep(random.uniform(0, 1.5))
        child.kill()

    def left() -> list[str]:
        carrying = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and processes.start_of(int(entry.name)):
                try:
                    environ = (entry / "environ").read_bytes()
                except OSError:
                    continue
                if f"HARNESS_STATE={mark}\0".encode() in environ:
                    carrying.append(processes.describe(int(entry.name)))
        return carrying

    end = time.monotonic() + PATIENCE_SECONDS
    while left():
        if time.monotonic() > end:
            pytest.fail(f"left running: {left()}")
        time.sleep(0.05)
