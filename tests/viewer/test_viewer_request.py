"""The request shown is the request that was sent, and it acts on no terminal."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.client.spelling import Spelling
from harness.core.inert import visible
from harness.core.records import Key
from harness.generation.settings import BenchmarkSettings
from harness.presets.sampling import Sampling
from harness.runs import RunFolder
from harness.runs.manifest import BenchmarkRecord, Plan
from harness.scoring.opened import OpenRun
from harness.testing import FakeServer
from harness.viewer.printed import curl
from tests.generation.small_runs import question_set, run, run_settings, well
from tests.reports.payloads import PAYLOADS
from tests.viewer.small_run import IDENTITY, RunQuestion, RunReply, question, sample


def body_of(command: str) -> Any:
    words = shlex.split(command.replace("\\\n", " "))
    return json.loads(words[words.index("--data-raw") + 1])


@pytest.mark.parametrize(
    "spelling",
    [
        Spelling(),
        Spelling(api_name="completions", stream=False),
        Spelling(
            max_tokens_field="max_completion_tokens",
            chat_template_kwargs={"enable_thinking": True},
            extra_body={"top_k": 20, "note": 'it\'s "quoted"'},
        ),
    ],
)
def test_the_body_is_the_one_that_the_server_got(tmp_path: Path, spelling: Spelling) -> None:
    built = question_set(tmp_path, 2, templated=spelling.api.templated)
    sampling = Sampling(temperature=0.6, top_p=0.9, max_tokens=99)
    benchmarks = {
        "sums": BenchmarkSettings(samples=2, sampling=sampling, neutral={"min_p": 0.0, "repeat_penalty": 1.0})
    }
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, benchmarks=benchmarks, spelling=spelling)
        run(settings, built)
        sent = {json.dumps(request.json, sort_keys=True) for request in server.requests if request.method == "POST"}
    opened = OpenRun("run", RunFolder(tmp_path / "run")).benchmark("sums")
    shown = set()
    for question_id, stored in opened.questions.items():
        for index in range(2):
            command = curl(opened.record, stored, opened.offsets.read(Key(question_id, index)))
            assert command.startswith(f"curl {server.base_url}{spelling.api.path}")
            shown.add(json.dumps(body_of(command), sort_keys=True))
    assert shown == sent
    assert len(sent) == 4


def test_a_shell_sends_it_as_it_stands(tmp_path: Path) -> None:
    """With a `curl` that prints what it was given, in a real shell."""
    fake = tmp_path / "curl"
    fake.write_text('#!/bin/sh\nfor word; do printf "%s\\0" "$word"; done\n')
    fake.chmod(0o755)
    text = "\n".join(PAYLOADS) + "$(touch hacked) `touch hacked` '; touch hacked; '"
    asked_question = question("demo", "q", RunQuestion(text, "1", []))
    command = curl(record(), asked_question, sample("demo", "q", 0, RunReply("")))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "API_KEY": "k"}
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, check=True)
    words = done.stdout.decode().split("\0")
    assert json.loads(words[words.index("--data-raw") + 1])["messages"] == [{"role": "user", "content": text}]
    assert "Authorization: Bearer k" in words
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_it_can_be_read_and_cannot_act_on_a_terminal(payload: str) -> None:
    text = payload + "因式分解 x²-9 é 🙂\x7f\x1b\u202e\ue000\U000e0041\ud800"
    asked_question = question("demo", "q", RunQuestion(text, "1", []))
    command = curl(record(), asked_question, sample("demo", "q", 0, RunReply("")))
    assert "\n".join(map(visible, command.split("\n"))) == command
    assert r"因式分解 x²-9 é 🙂\u007f\u001b\u202e\ue000\udb40\udc41\ud800" in command
    assert body_of(command)["messages"][0]["content"] == text


def record() -> BenchmarkRecord:
    return BenchmarkRecord(identity=IDENTITY, plan=Plan(samples=1))
