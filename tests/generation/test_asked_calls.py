"""Questions whose answer is a function call: asked with their tools, stored as sent, graded, shown, on three APIs.

For: harness.benchmarks.drafts, harness.generation.network.requests, harness.viewer.printed.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.testing import FakeServer, Request, Step
from tests.generation.called_tools import calling, scripted
from tests.system.command import harness as command

TOOL = {
    "name": "weather.get",
    "description": "The weather of a city.",
    "parameters": {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ROWS = [
    # question, tools, accepted, what the server replies, verdict and rule
    ("Bonn?", [TOOL], {"calls": [{"weather.get": {"city": ["Bonn"]}}]}, ['{"city": "bonn"}'], "correct", "calls"),
    ("Köln?", [TOOL], {"calls": [{"weather.get": {"city": ["Köln"]}}]}, ['{"city": "Bonn"}'], "wrong", "value"),
    ("Hi!", [TOOL], "none", "Hello!", "correct", "calls"),
    ("Oh?", [TOOL], "some", "Hello!", "no_answer", "no call"),
    ("Ulm?", [TOOL], "schema", ['{"city": 7}'], "wrong", "schema"),
    ("Jena?", [TOOL], None, ['{"city": "x"}', '{"city": "y"}'], "correct", "calls"),
    ("Hof?", [TOOL], "some", ['{"city": '], "correct", "calls"),
    (
        "Rom?",
        [{"type": "function", "function": TOOL}],
        "some",
        '<tool_call>\n{"name": "weather_get", "arguments": {"city": "Rom"}}\n</tool_call>',
        "wrong",
        "unread call",
    ),
]


def questions_file(folder: Path) -> str:
    rows = [
        {"id": question, "messages": [{"role": "user", "content": question}], "tools": tools}
        | ({} if accepted is None else {"answer": accepted})
        for question, tools, accepted, *_ in ROWS
    ]
    (folder / "asked.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return str(folder / "asked.jsonl")


def server_of(request: Request) -> Iterable[Step]:
    """The reply of the row whose question is asked."""
    if request.method == "GET":
        return scripted("")(request)
    body = json.dumps(request.json, ensure_ascii=False)
    reply = next(reply for question, _, _, reply, *_ in ROWS if f'"{question}"' in body)
    is_text = isinstance(reply, str)
    return scripted(reply if is_text else calling(*reply, name="weather_get"))(request)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_questions_that_offer_tools_are_asked_stored_and_graded(tmp_path: Path, api: str) -> None:
    with FakeServer(server_of) as server:
        words = ["run", "--data", questions_file(tmp_path), "--model", "test-model", "--base-url", server.base_url]
        words += ["--out", "r", "--api", api, *(["--max-tokens", "99"] if api == "messages" else [])]
        done = command(tmp_path, *words)
        assert done.code == 0, done.err
    offered = {json.dumps(each.json["tools"][0]) for each in server.requests if each.method == "POST"}
    (only,) = offered
    assert all(
        text in only for text in ('"weather_get"', '"The weather of a city."', '{"type": "object", "properties"')
    )
    samples = [json.loads(line) for line in (tmp_path / "r" / "asked" / "samples.jsonl").read_text().splitlines()]
    for question, _, _, reply, *_ in ROWS:
        (sample,) = (each for each in samples if each["question_id"] == question)
        assert [call["arguments"] for call in sample["calls"]] == ([] if isinstance(reply, str) else reply)
    scored = command(tmp_path, "score", "r")
    assert scored.code == 0, scored.err
    grades = {
        grade["question_id"]: (grade["verdict"], grade["rule"])
        for grade in map(json.loads, (tmp_path / "r" / "asked" / "grades.jsonl").read_text().splitlines())
    }
    assert grades == {question: (verdict, rule) for question, _, _, _, verdict, rule in ROWS}
    shown = command(tmp_path, "show", "r", "Bonn?:0").out
    assert '[call of weather_get]\n{"city": "bonn"}' in shown
    assert '"The weather of a city."' in shown, "the printed request offers the tool"
    score = json.loads((tmp_path / "r" / "asked" / "scores.json").read_text())
    shares = {name: round(8 * each["value"], 3) for name, each in score["measures"].items()}
    assert shares == {
        "schema accuracy": 4.8,  # three of the five replies with calls
        "replies with calls": 5,
        "arguments not JSON": 1,
        "arguments not matching the schema": 1,
        "call markup in the text": 1,
    }
    warned = str(score["warnings"])
    assert "<tool_call>" in warned
    assert "--tool-call-parser" in warned
    for why, question in (("no_json", "Hof?"), ("schema", "Ulm?"), ("unread_call", "Rom?"), ("value", "Köln?")):
        listed = command(tmp_path, "show", "r", "--why", why).out
        assert [each for each, *_ in ROWS if each in listed] == [question]
    if api == "chat":
        (tmp_path / "s").mkdir()
        for file in (tmp_path / "r").rglob("*"):
            if file.is_file():
                (kept := tmp_path / "s" / file.relative_to(tmp_path / "r")).parent.mkdir(exist_ok=True)
                kept.write_bytes(file.read_bytes())
        compared = command(tmp_path, "compare", "r", "s").out
        assert "function calls where the baseline also calls one: F1 100.0%" in compared


LOGGED = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Bonn?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather.get", "arguments": '{"city":"Bonn"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
]
SENT = {
    "chat": [
        *LOGGED[:2],
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather_get", "arguments": '{"city":"Bonn"}'}}
            ],
        },
        LOGGED[3],
    ],
    "responses": [
        LOGGED[1],
        {"type": "function_call", "call_id": "c1", "name": "weather_get", "arguments": '{"city":"Bonn"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    ],
    "messages": [
        LOGGED[1],
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "weather_get", "input": {"city": "Bonn"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "rain"}]},
    ],
}
"""Earlier turns with a call and its result, as a user logs them and as each API has them."""


@pytest.mark.parametrize("api", [*SENT])
def test_logged_requests_are_sent_as_they_are_beside_plain_questions(tmp_path: Path, api: str) -> None:
    plain = {"id": "sum", "messages": [{"role": "user", "content": "1 + 1?"}], "answer": "2"}
    rows = [{"id": "log", "messages": LOGGED, "tools": [TOOL]}, plain]
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def server_of(request: Request) -> Iterable[Step]:
        if request.method == "GET" or "tools" not in request.json:
            return scripted("\\boxed{2}")(request)
        return scripted(calling('{"city": "Ulm"}', name="weather_get"))(request)

    with FakeServer(server_of) as server:
        words = [
            "run",
            "--data",
            "requests.jsonl",
            "--model",
            "test-model",
            "--base-url",
            server.base_url,
            "--out",
            "r",
        ]
        words += ["--api", api, "--tool-choice", "required", "--no-parallel-calls", "--max-tokens", "99"]
        done = command(tmp_path, *words)
        assert done.code == 0, done.err
        assert command(tmp_path, *words).code == 0
        other = command(tmp_path, *[word for word in words if word != "--no-parallel-calls"])
        assert (other.code, "calling" in other.err) == (3, True)
    logged, plain = sorted(
        (each.json for each in server.requests if each.method == "POST"), key=lambda body: "tools" not in body
    )[:: len(rows) - 1]
    assert logged["input" if api == "responses" else "messages"] == SENT[api]
    assert "tool_choice" not in plain
    assert "boxed" in json.dumps(plain)
    assert "boxed" not in json.dumps(logged)
    single = {"type": "any", "disable_parallel_tool_use": True}
    assert logged["tool_choice"] == (single if api == "messages" else "required")
    assert logged.get("parallel_tool_calls") == (None if api == "messages" else False)
    assert command(tmp_path, "score", "r").code == 0
    assert 'weather_get({"city":"Bonn"})' in command(tmp_path, "show", "r", "log:0").out


PARTS = [{"type": "text", "text": "Köln?"}, {"type": "text", "text": "Be\nquick."}]
TURN = {"id": "c1", "type": "function", "function": {"name": "weather_get", "arguments": "{}"}}
IN_PARTS = [
    {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
    {"role": "user", "content": PARTS},
    {"role": "assistant", "content": PARTS, "tool_calls": [TURN]},
    {"role": "tool", "tool_call_id": "c1", "content": PARTS},
    {"role": "assistant", "content": PARTS},
    {"role": "user", "content": PARTS},
]
NAMED = {"type": "function", "function": {"name": "weather.get"}}
ROW_CHOICES: list[dict[str, Any]] = [
    {"tool_choice": NAMED},
    {"tool_choice": "required", "parallel_tool_calls": False},
    {"tool_choice": None},
]
SENT_CHOICES = {
    "chat": [{"type": "function", "function": {"name": "weather_get"}}, "required", None],
    "responses": [{"type": "function", "name": "weather_get"}, "required", None],
    "messages": [{"type": "tool", "name": "weather_get"}, {"type": "any", "disable_parallel_tool_use": True}, None],
}


@pytest.mark.parametrize("api", [*SENT])
def test_a_row_s_lists_of_texts_and_its_choice_are_sent_as_logged(tmp_path: Path, api: str) -> None:
    rows = [{"messages": IN_PARTS, "tools": [TOOL], **choice} for choice in ROW_CHOICES]
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with FakeServer(scripted(calling("{}", name="weather_get"))) as server:
        words = ["run", "--data", "requests.jsonl", "--model", "test-model", "--base-url", server.base_url]
        words += ["--api", api, "--max-tokens", "99", "--no-fingerprint", "--out", "r"]
        assert command(tmp_path, *words).code == 0
        assert command(tmp_path, *words[:-1], "o", "--tool-choice", "none").code == 0
        (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, rows)).replace('"required"', '"auto"'))
        assert command(tmp_path, *words).code == 0
    bodies = [each.json for each in server.requests if each.method == "POST"]
    assert len(bodies) == 7, "another choice is another question"
    assert all("none" in json.dumps(body["tool_choice"]) for body in bodies[3:6]), "an option replaces the row's"
    bodies = bodies[:3]
    texts = [{"type": "input_text" if api == "responses" else "text", "text": part["text"]} for part in PARTS]
    for body in bodies:
        turns = body["input" if api == "responses" else "messages"]
        assert turns[-1] == {"role": "user", "content": texts}
        assert body.get("instructions", body.get("system", turns[0]["content"])) == "Be brief."
        assert json.dumps(turns).count("quick.") == 5
    assert sorted(json.dumps(body.get("tool_choice")) for body in bodies) == sorted(map(json.dumps, SENT_CHOICES[api]))
    assert sum(body.get("parallel_tool_calls") is False for body in bodies) == (api != "messages")


@pytest.mark.parametrize(("reply", "right"), [("It is mild.", 1.0), (calling("{}", name="weather_get"), 0.0)])
def test_a_row_that_forbids_calls_accepts_none(tmp_path: Path, reply: Any, right: float) -> None:
    row = {"messages": [{"role": "user", "content": "?"}], "tools": [TOOL], "tool_choice": "none"}
    (tmp_path / "requests.jsonl").write_text(json.dumps(row))
    with FakeServer(scripted(reply)) as server:
        words = [
            "run",
            "--data",
            "requests.jsonl",
            "--model",
            "test-model",
            "--base-url",
            server.base_url,
            "--out",
            "r",
        ]
        assert command(tmp_path, *words, "--max-tokens", "99", "--no-fingerprint").code == 0
    assert command(tmp_path, "score", "r").code == 0
    assert json.loads((tmp_path / "r" / "requests" / "scores.json").read_text())["accuracy"]["value"] == right


def test_a_file_of_requests_with_replies_is_scored_shown_and_exported(tmp_path: Path) -> None:
    def row(text: str | None, *arguments: str, **more: Any) -> dict[str, Any]:
        calls = [{"id": "c", "function": {"name": "weather.get", "arguments": each}} for each in arguments]
        return {"messages": LOGGED, "tools": [{"function": TOOL}], "content": text, "tool_calls": calls or None, **more}

    bonn = {"calls": [{"weather.get": {"city": ["Bonn"]}}]}
    rows = [
        row(None, '{"city": "Bonn"}'),
        row("", '{"city": 7}'),
        row("Hello", answer="none"),
        row('<tool_call>{"name": "x"', finish_reason="stop"),
        row(None, '{"city": "bonn"}', '{"ci', answer=bonn, finish_reason="length"),
    ]
    for number, each in enumerate(rows):
        each["id"] = f"q{number}"
    (tmp_path / "replies.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert command(tmp_path, "score", "replies.jsonl").code == 0
    folder = tmp_path / "replies.jsonl.scored" / "replies"
    grades = [json.loads(line) for line in (folder / "grades.jsonl").read_text().splitlines()]
    assert {each["question_id"]: (each["rule"], each["call_signs"]) for each in grades} == {
        "q0": ("calls", ["call", "fits"]),
        "q1": ("schema", ["call", "schema"]),
        "q2": ("calls", []),
        "q3": ("unread call", ["unread_call"]),
        "q4": ("number of calls", ["call", "cut_call", "same_id", "no_json"]),
    }
    assert '"city": 7' in command(tmp_path, "show", "replies.jsonl", "--why", "schema").out
    for form in ("csv", "inspect"):
        exported = command(tmp_path, "export", "replies.jsonl.scored", "--to", form, "--out", "o")
        assert exported.code == 0, exported.err
    (file,) = (tmp_path / "o").rglob("*.csv")
    assert '""name"":""weather_get""' in file.read_text()
    (log,) = (tmp_path / "o").rglob("*.eval")
    with zipfile.ZipFile(log) as archive:
        (name,) = (each for each in archive.namelist() if "q0" in each)
        reply = json.loads(archive.read(name))["messages"][-1]
    called = {"id": "c", "function": "weather_get", "arguments": {"city": "Bonn"}, "type": "function"}
    assert reply["tool_calls"] == [called]
    (tmp_path / "bad.jsonl").write_text(json.dumps(row(None) | {"tool_calls": [1]}))
    assert "bad.jsonl:1: invalid tools, calls or reference" in command(tmp_path, "score", "bad.jsonl").err


@pytest.mark.parametrize(
    ("unfit", "model", "code", "on_vllm"),
    [
        (0, "kimi-k2-thinking", 0, "not compatible"),
        (25, "kimi-k2-thinking", 4, "compatible"),
        (100, "moonshotai/Kimi-K2-Instruct-0905", 4, "not compatible"),
    ],
)
def test_the_schema_accuracy_is_compared_with_published_servers(
    tmp_path: Path, unfit: int, model: str, code: int, on_vllm: str
) -> None:
    call = {"type": "function", "function": {"name": "weather_get", "arguments": '{"city": 7}'}}
    fits = {"type": "function", "function": {"name": "weather_get", "arguments": '{"city": "Ulm"}'}}
    rows = [
        {"messages": [{"role": "user", "content": f"{n}?"}], "tools": [TOOL], "content": "Hi"}
        | ({"tool_calls": [call if n < unfit else fits]} if n < 200 else {})
        for n in range(300)
    ]
    (tmp_path / "k2_vendor_verifier.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert command(tmp_path, "score", "k2_vendor_verifier.jsonl").code == 0
    done = command(tmp_path, "verify", "k2_vendor_verifier.jsonl", "--model", model, "--json")
    assert done.code == code, done.err
    (verified,) = json.loads(done.out)
    (by,) = (verified["comparisons"][number] for number in verified["decided_by"])
    assert (by["published"]["server"], by["ours"]) == ("", 1 - unfit / 200), "only the authors' own server decides"
    (vllm,) = (each for each in verified["comparisons"] if each["published"]["server"] == "vLLM")
    assert vllm["verdict"] == on_vllm
    printed = command(tmp_path, "verify", "k2_vendor_verifier.jsonl", "--model", model).out
    assert f"  schema accuracy on vLLM {100 * vllm['published']['value']:.2f}% by" in printed
    assert f"({vllm['published']['replies']:,} replies with calls): " in printed


def test_the_doctor_tries_calls_that_are_accepted_and_others(tmp_path: Path) -> None:
    tried = command(tmp_path, "doctor", "--benchmark", questions_file(tmp_path))
    assert tried.code == 0
    assert [*tried.out.split()][-5:] == ["asked", "6", "6/6", "8/8", "passed"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--api", "completions"], "use chat or responses or messages"),
        (["--tool", "python"], "have their own tools"),
        (["--extra-body", '{"tools": []}'], "remove tools from it"),
        (
            ["--tool-choice", "none", "--extra-body", '{"tool_choice": "auto"}'],
            "it sets a field that an option also sets",
        ),
    ],
)
def test_what_a_question_with_tools_cannot_have_is_one_sentence(tmp_path: Path, words: list[str], said: str) -> None:
    given = ["run", "--data", questions_file(tmp_path), "--model", "m", "--base-url", "http://127.0.0.1:9", "--dry-run"]
    refused = command(tmp_path, *given, *words)
    assert (refused.code, "Traceback" in refused.err) == (2, False)
    assert said in " ".join(refused.err.split())


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"tools": [{"name": 1}]}, "the column 'tools'"),
        ({"tools": [TOOL, TOOL]}, "two tools with the same name"),
        ({"tools": [TOOL], "answer": {"call": []}}, "not a valid reference for calls"),
        (
            {"tools": [TOOL], "tool_choice": "any"},
            "tool_choice must be auto, required, none or the name of an offered tool",
        ),
        ({"tools": [TOOL], "tool_choice": NAMED | {"function": {"name": "x"}}}, "or the name of an offered tool"),
        ({"tools": [TOOL], "parallel_tool_calls": "no"}, "parallel_tool_calls must be true or false"),
        (
            {"question": [{"role": "user", "content": [{"type": "file"}]}]},
            "content that is a string or a list of text parts",
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    (tmp_path / "bad.jsonl").write_text(json.dumps({"question": "?"} | row))
    refused = command(
        tmp_path, "run", "--data", "bad.jsonl", "--model", "m", "--base-url", "http://127.0.0.1:9", "--dry-run"
    )
    assert refused.code == 2
    assert said in " ".join(refused.err.split())
    assert "bad.jsonl:1:" in refused.err
