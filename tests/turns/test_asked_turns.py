"""Conversations, turn by turn: what is sent, what no kill loses, and how the turns of each file form are read.

A stand-in answers with the checksum of the whole history that it was sent, so a stored text proves its history.

For: harness.generation.network.steps, harness.runs.turns, harness.benchmarks.conversations, harness.core.turn_settings.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks import card, questions
from harness.benchmarks.questions import QuestionSet
from harness.client.request_fields import Spelling
from harness.core.errors import UsageError
from harness.core.records import Question, Sample
from harness.core.turn_settings import turns_in
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling
from harness.runs.layout import RunFolder
from harness.testing import FakeServer, Reply, Request, Said, http, serving
from tests import warm
from tests.budget import examples
from tests.generation.small_runs import run, run_settings, samples_of
from tests.patience import PATIENCE_SECONDS
from tests.system.command import harness as command

APIS = ("chat", "responses", "messages")


def history_of(body: Any) -> list[tuple[str, str]]:
    """(role, text) of each message of a request, whichever API it is in."""
    system = [("system", text) for name in ("instructions", "system") if (text := body.get(name))]
    said = []
    for turn in body.get("input") or body["messages"]:
        content = turn.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        if turn.get("role"):
            said.append((turn["role"], "".join(part.get("text", "") for part in parts)))
    return [*system, *said]


def checksum(history: list[tuple[str, str]]) -> str:
    return hashlib.sha256(json.dumps(history).encode()).hexdigest()


def seen(request: Request) -> Said:
    """The checksum of the whole history that was sent."""
    return Said(checksum(history_of(request.json)), 5, reasoning="hm")


def conversations(folder: Path, n: int, seed: int = 1) -> Path:
    """A file of `n` conversations of 1 to 6 turns, some with a reference."""
    draw, path = random.Random(seed), folder / "talks.jsonl"
    rows = [
        {"id": f"q{i}", "turns": [f"Case {i}, turn {k}: {draw.random()} é中" for k in range(draw.randrange(1, 7))]}
        for i in range(n)
    ]
    rows[0]["turns"] = ["one", "two", "three"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def asked(path: Path, **build: Any) -> QuestionSet:
    return questions.build(card.from_file(str(path), id_key="id"), **build)


def settings_of(out: Path, url: str, api: Any = "chat", turns: str = "", name: str = "talks") -> RunSettings:
    own = BenchmarkSettings(samples=1, sampling=Sampling(max_tokens=100), turns=turns_in(turns))
    return run_settings(out, url, benchmarks={name: own}, spelling=Spelling(api_name=api), canary=False, concurrency=4)


def replies_of(sample: Sample) -> list[str | None]:
    steps = sample.steps or ()
    return [step.text or sample.text for step in steps]


def proven(question: Question, sample: Sample) -> None:
    """Assert that each reply of a sample is the checksum of the question's turns so far and the replies before."""
    history = [(message.role, message.content) for message in question.messages]
    replies = replies_of(sample)
    assert len(replies) == len(question.turns or ())
    for turn, reply in zip(question.turns or (), replies, strict=True):
        history += [(message.role, message.content) for message in turn.messages]
        assert reply == checksum(history)
        history.append(("assistant", str(reply)))


@pytest.mark.fuzz
@pytest.mark.parametrize("api", APIS)
def test_no_kill_loses_a_turn_or_asks_a_stored_one_again(tmp_path: Path, api: str) -> None:
    n, draw = examples(130) + 1, random.Random(api)
    path = conversations(tmp_path, n)
    question_set, folder = asked(path), RunFolder(tmp_path / "run").benchmark("talks")
    total = sum(len(question.turns or (1,)) for question in question_set.questions)
    stored_before, child, kill_at = Counter[str](), list[Any](), [0]
    lock, n_asked = threading.Lock(), [0]

    def reply(request: Request) -> Reply | Said:
        with lock:
            n_asked[0] += 1
            if n_asked[0] == kill_at[0]:
                child[0].kill()
            answered[checksum(history_of(request.json))] += 1
        return seen(request)

    answered = Counter[str]()
    with FakeServer(serving(reply)) as server:
        for _ in range(3 + n // 100):
            kill_at[0] = n_asked[0] + draw.randrange(2, 2 + total // 4)
            child[:] = [
                warm.started(["tests.turns.test_asked_turns", str(tmp_path), server.base_url, api], cwd=Path.cwd())
            ]
            child[0].wait(PATIENCE_SECONDS)
            stored = stored_texts(folder.turns) | stored_texts(folder.samples)
            # What stood on disk before a kill was not asked again afterwards.
            assert {text: answered[text] for text in stored_before} == dict(stored_before)
            stored_before = Counter({text: answered[text] for text in stored})
        kill_at[0] = 0
        settings = settings_of(tmp_path / "run", server.base_url, api)
        assert run(settings, question_set).complete
        assert {text: answered[text] for text in stored_before} == dict(stored_before)
    samples = {sample.question_id: sample for sample in samples_of(settings, "talks")}
    assert len(samples) == n
    for question in question_set.questions:
        if question.turns:
            proven(question, samples[question.question_id])


def stored_texts(path: Path) -> set[str]:
    """The replies in whole lines of a file of turns or samples."""
    texts = set[str]()
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    for line in lines:
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            texts |= {record["step"]["text"]} if "step" in record else {record["text"]}
            texts |= {step["text"] for step in record.get("steps", ()) if "text" in step}
    return texts


def test_a_run_killed_in_turn_three_asks_turn_three(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps({"id": "q0", "turns": ["one", "two", "three"]}) + "\n", encoding="utf-8")
    faults = [False]

    def reply(request: Request) -> Reply | Said:
        if len(history_of(request.json)) == 5 and not faults[0]:
            faults[0] = True
            os.kill(child.pid, signal.SIGKILL)
        return seen(request)

    with FakeServer(serving(reply)) as server:
        child = warm.started(["tests.turns.test_asked_turns", str(tmp_path), server.base_url, "chat"], cwd=Path.cwd())
        child.wait(PATIENCE_SECONDS)
        n_before = len(posts(server))
        settings = settings_of(tmp_path / "run", server.base_url)
        question_set = asked(path)
        assert run(settings, question_set).complete
        later = posts(server)[n_before:]
    assert [len(history_of(body)) for body in later] == [5]
    (sample,) = samples_of(settings, "talks")
    proven(question_set.questions[0], sample)
    assert [step.resumed is True for step in sample.steps or ()] == [False, False, True]
    assert sample.timing.total < 60


def posts(server: FakeServer) -> list[Any]:
    return [request.json for request in server.requests if request.method == "POST"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("history", ["answer", "reasoning"])
def test_the_reasoning_goes_back_only_if_asked(tmp_path: Path, api: str, history: str) -> None:
    path = conversations(tmp_path, 1)
    with FakeServer(serving(seen)) as server:
        run(settings_of(tmp_path / "run", server.base_url, api, f"history={history}"), asked(path))
        bodies = posts(server)
    assert len(bodies) == 3
    assert ("hm" in json.dumps(bodies[-1])) == (history == "reasoning")
    assert len({body["seed"] for body in bodies if "seed" in body}) in (0, 3)


@pytest.mark.parametrize(
    ("status", "message", "finish"),
    [(400, "This model's maximum context length is 9 tokens", "context"), (400, "no", "turn_rejected")],
)
def test_a_refused_turn_ends_the_conversation(tmp_path: Path, status: int, message: str, finish: str) -> None:
    def reply(request: Request) -> Reply | Said:
        refused = len(history_of(request.json)) == 3
        return [http(status, {"error": {"message": message}})] if refused else seen(request)

    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps({"id": "q0", "turns": ["one", "two", "three"], "answer": "5"}) + "\n", encoding="utf-8")
    with FakeServer(serving(reply)) as server:
        settings = settings_of(tmp_path / "run", server.base_url)
        assert run(settings, asked(path)).complete
    (sample,) = samples_of(settings, "talks")
    assert (sample.finish_reason, sample.text, len(sample.steps or ())) == (finish, None, 1)
    assert sample.truncated


FORMS: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    # a row, the option `turns`, the turns
    "MT-Bench": ({"question_id": 81, "turns": ["a", "b"], "reference": ["5", ""]}, "", ["a", "b"]),
    "Multi-IF": ({"turn_1_prompt": "a", "turn_2_prompt": "b", "turn_3_prompt": ""}, "", ["a", "b"]),
    "guidellm": ({"prompt_1": "a", "prompt_2": "b", "output_tokens_count_2": 7}, "", ["a", "b"]),
    "OpenCompass": ({"question1": "a", "answer1": "3", "question2": "b", "answer2": "4"}, "", ["a", "b"]),
    "messages, live": (
        {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"},
                      {"role": "assistant", "content": "x"}, {"role": "user", "content": "b"}]}, "live", ["a", "b"]),
    "ShareGPT": ({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "x"},
                                    {"from": "human", "value": "b"}]}, "live", ["a", "b"]),
    "evalscope": ({"conversation": [{"human": "a", "assistant": "x"}, {"human": "b"}]}, "live", ["a", "b"]),
    "aiperf": ({"session_id": "1", "turns": [{"text": "a"}, {"text": "b", "delay": 500}]}, "", ["a", "b"]),
    "SGLang": ({"conversations": [[{"messages": [{"role": "user", "content": "a"}]},
                                   {"messages": [{"role": "user", "content": "b"}]}]]}, "", ["a", "b"]),
    "vLLM": ({"id": "q", "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "x"},
                                      {"role": "user", "content": "b"}]}, "live,max=1", ["a"]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_public_form_is_read_turn_by_turn(tmp_path: Path, form: str) -> None:
    row, turns, texts = FORMS[form]
    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (question,) = questions.build(card.from_file(str(path)), prompt="none", turns=turns or None).questions
    first, *later = question.turns or ()
    assert [question.messages[-1].content, *(turn.messages[-1].content for turn in later)] == texts
    references = {"MT-Bench": [("5",), ()], "OpenCompass": [("3",), ("4",)]}
    assert [turn.references for turn in (first, *later)] == references.get(form, [()] * len(texts))
    assert [turn.max_tokens for turn in later] == [7 if form == "guidellm" else None] * len(later)
    assert [turn.delay for turn in later] == [0.5 if form == "aiperf" else 0] * len(later)


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "empty": ({"turns": ["a", " "]}, "", "has no text in turn 2"),
    "mixed": ({"turns": ["a", 3]}, "", "neither a text nor an object"),
    "references": ({"turns": ["a", "b"], "answer": ["1", "2", "3"]}, "", "2 turns but 3 references"),
    "delay": ({"turns": [{"text": "a", "delay": "soon"}]}, "", "delay is not a number"),
    "role": ({"turns": [{"messages": [{"role": "assistant", "content": "a"}]}]}, "", "does not end with a user"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_form_is_one_sentence(tmp_path: Path, case: str) -> None:
    row, turns, words = WRONG[case]
    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        questions.build(card.from_file(str(path)), turns=turns or None)


def test_two_user_messages_in_a_row_are_a_warning(tmp_path: Path) -> None:
    path, said = tmp_path / "talks.jsonl", [{"role": "user", "content": text} for text in "ab"]
    for between, expected in ([], 1), ([{"role": "assistant", "content": "x"}], 0):
        row = {"messages": [said[0], *between, said[1]], "answer": "5"}
        path.write_text(json.dumps(row) + "\n", encoding="utf-8")
        notes = questions.build(card.from_file(str(path))).notes
        assert sum("two user messages in a row" in note for note in notes) == expected


@pytest.mark.parametrize("words", ["lively", "history=all", "delay=2", "max=0", "max=1001"])
def test_a_wrong_setting_says_what_was_expected(words: str) -> None:
    with pytest.raises(ValueError, match="expected live, history=answer"):
        turns_in(words)


@pytest.mark.parametrize("options", [["--api", "completions"], ["--batch"]])
def test_what_conversations_cannot_have_is_one_sentence(tmp_path: Path, options: list[str]) -> None:
    path = conversations(tmp_path, 2)
    done = command(tmp_path, "run", "--data", str(path), "--base-url", "http://127.0.0.1:1/v1", *options)
    assert done.code != 0
    assert "conversations of several turns" in done.err


def main() -> None:
    folder, url, api = Path(sys.argv[1]), *sys.argv[2:]
    run(settings_of(folder / "run", url, api), asked(folder / "talks.jsonl"))


if __name__ == "__main__":
    main()
