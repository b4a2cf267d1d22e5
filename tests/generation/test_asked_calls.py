"""Questions whose answer is a function call: asked with their tools, stored as sent, graded, shown, on three APIs.

For: harness.benchmarks.drafts, harness.generation.network.requests, harness.viewer.sample_text,
harness.core.reply_notes, harness.generation.network.tool_turns.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.generation.network import tool_turns
from harness.generation.network.tool_turns import Turns
from harness.runs.missing import Task
from harness.testing import FakeServer, Request, Step
from reasoning_answers.host import lost_call
from tests.budget import rounds
from tests.generation.called_tools import calling, scripted
from tests.system.command import harness as command

TOOL = {
    "name": "weather.get",
    "description": "The weather of a city.",
    "parameters": {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ENTRY = TOOL | {"name": "weather_get", "parameters": TOOL["parameters"] | {"type": "object"}}
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
        [{"type": "function", "function": ENTRY}],
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
    assert "strict" not in only
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
        # Responses has no finish reasons by which Moonshot counts.
        **({} if api == "responses" else {"schema accuracy by Moonshot's rule": 4.8}),
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
        leads = "function calls where the baseline also calls one: F1 100.0%"
        assert compared.index(leads) < compared.index("no difference seen between ")
        assert "with calls 5 of 8 → 5 of 8, arguments not JSON 1 of 8 → 1 of 8" in compared


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
    rows = [{"id": "log", "messages": LOGGED, "tools": [TOOL | {"strict": True}]}, plain]
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def server_of(request: Request) -> Iterable[Step]:
        if request.method == "GET" or "tools" not in request.json:
            return scripted("\\boxed{2}")(request)
        return scripted(calling('{"city": "Ulm"}', name="weather_get"))(request)

    with FakeServer(server_of) as server:
        words = ["run", "--data", "requests.jsonl", "--model", "test-model", "--base-url", server.base_url]
        words += ["--out", "r", "--api", api, "--tool-choice", "required", "--no-parallel-calls", "--max-tokens", "99"]
        done = command(tmp_path, *words)
        assert done.code == 0, done.err
        assert command(tmp_path, *words).code == 0
        other = command(tmp_path, *[word for word in words if word != "--no-parallel-calls"])
        assert (other.code, "calling" in other.err) == (3, True)
    logged, plain = sorted(
        (each.json for each in server.requests if each.method == "POST"), key=lambda body: "tools" not in body
    )[:: len(rows) - 1]
    assert logged["input" if api == "responses" else "messages"] == SENT[api]
    assert json.dumps(logged["tools"]).count('"strict": true') == 1
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
        words += ["--api", api, "--max-tokens", "99", "--out", "r"]
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
        words = ["run", "--data", "requests.jsonl", "--model", "test-model", "--base-url", server.base_url]
        assert command(tmp_path, *words, "--out", "r", "--max-tokens", "99").code == 0
    assert command(tmp_path, "score", "r").code == 0
    assert json.loads((tmp_path / "r" / "requests" / "scores.json").read_text())["accuracy"]["value"] == right


def test_a_file_of_requests_with_replies_is_scored_shown_and_exported(tmp_path: Path) -> None:
    def row(text: str | None, *arguments: str, **more: Any) -> dict[str, Any]:
        calls = [{"id": "c", "function": {"name": "weather.get", "arguments": each}} for each in arguments]
        return {
            "messages": LOGGED,
            "tools": [{"function": ENTRY}],
            "content": text,
            "tool_calls": calls or None,
            **more,
        }

    bonn = {"calls": [{"weather.get": {"city": ["Bonn"]}}]}
    rows = [
        row(None, '{"city": "Bonn"}'),
        row("", '{"city": 7}'),
        row("Hello", answer="none"),
        row('<tool_call>{"name": "x"', finish_reason="stop"),
        row(None, '{"city": "bonn"}', '{"ci', answer=bonn, finish_reason="length"),
        row('[weather_get(city="Bonn")]', answer="none"),
        row("Action: weather_get\nAction Input: Ulm", '{"city": "Bonn"}'),
        row("I call weather_get for Bonn.", '{"city": "Bonn"}'),
    ]
    for number, each in enumerate(rows):
        each["id"] = f"q{number}"
    (tmp_path / "replies.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert command(tmp_path, "score", "replies.jsonl").code == 0
    folder = tmp_path / "replies.jsonl.scored" / "replies"
    grades = [json.loads(line) for line in (folder / "grades.jsonl").read_text().splitlines()]
    assert {each["question_id"]: (each["rule"], each["call_signs"]) for each in grades} == {
        "q0": ("calls", ["call", "ends_in_calls", "unstated", "fits", "valid_for_kimi"]),
        "q1": ("schema", ["call", "ends_in_calls", "unstated", "schema"]),
        "q2": ("calls", []),
        "q3": ("unread call", ["unread_call", "unstated"]),
        "q4": ("number of calls", ["call", "cut_call", "same_id", "no_json"]),
        "q5": ("unread call", ["unread_call"]),
        "q6": ("unread call", ["call", "unread_call", "ends_in_calls", "unstated", "fits", "valid_for_kimi"]),
        "q7": ("calls", ["call", "ends_in_calls", "unstated", "fits", "valid_for_kimi"]),
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


def counted_by_moonshot(row: dict[str, Any]) -> tuple[bool, bool]:
    """Whether Moonshot's K2-Vendor-Verifier counts a reply, and whether it counts its calls as valid:
    `process_request`, `validate_tool_call` and `compute_summary` of its tool_calls_eval.py at 0bc5061.
    """

    def is_valid(call: dict[str, Any]) -> bool:
        try:
            parameters = (
                tool["function"]["parameters"]
                for tool in row["tools"]
                if tool["function"]["name"] == call["function"]["name"]
            )
            schema = next(parameters, None)
            if not schema:
                return False
            arguments = call["function"]["arguments"]
            jsonschema.validate(json.loads(arguments) if isinstance(arguments, str) else arguments, schema)
        except Exception:  # noqa: BLE001  as there
            return False
        return True

    calls = row.get("tool_calls")
    return row["finish_reason"] == "tool_calls", bool(calls) and all(map(is_valid, calls))


def entry(name: str = "get_news", **schema: Any) -> dict[str, Any]:
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {"type": "function", "function": {"name": name, "parameters": city | schema}}


def news(arguments: str = '{"city": "Ulm"}', name: str = "get_news") -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}


BARE: dict[str, Any] = {"type": "function", "function": {"name": "get_news"}}
OLD = {"city": {"type": "string", "required": True}}
MOONSHOT: dict[str, dict[str, Any]] = {
    # what is odd about a row
    "nothing": {},
    "arguments that do not fit": {"tool_calls": [news('{"city": 7}')]},
    "a finish without a call": {"tool_calls": None},
    "calls under stop": {"finish_reason": "stop"},
    "calls under length": {"finish_reason": "length"},
    "unfit calls under stop": {"finish_reason": "stop", "tool_calls": [news("{")]},
    "a tool without parameters": {"tools": [BARE]},
    "a tool with empty parameters": {"tools": [{"function": BARE["function"] | {"parameters": {}}}]},
    "types of the leaderboard": {"tools": [entry(type="dict")]},
    "types of the leaderboard inside": {"tools": [entry(properties={"city": {"type": "any"}})]},
    "the old form of required": {"tools": [entry(properties=OLD)]},
    "two tools of one name": {"tools": [entry(properties={"city": {"type": "integer"}}), entry()]},
    "two tools of one name, turned": {"tools": [entry(), entry(properties={"city": {"type": "integer"}})]},
    "a name without its dot": {"tools": [entry("get.news")]},
    "a name with its dot": {"tools": [entry("get.news")], "tool_calls": [news(name="get.news")]},
    "no arguments": {"tools": [entry(required=[])], "tool_calls": [news("")]},
    "arguments that are a list": {"tools": [entry(type=["object", "array"])], "tool_calls": [news("[1]")]},
    "not a number": {"tools": [entry(properties={"city": {"type": "number"}})], "tool_calls": [news('{"city": NaN}')]},
    "arguments that are a number": {"tool_calls": [news("7")]},
    "a second call that does not fit": {"tool_calls": [news(), news("{}")]},
    "an odd schema": {"tools": [entry(properties=None)]},
    "a reference to nothing": {"tools": [entry(allOf=[{"$ref": "#/nothing"}])]},
}  # fmt: skip


@pytest.mark.parametrize("kind", MOONSHOT)
def test_moonshots_rule_counts_as_its_own_validator(tmp_path: Path, kind: str) -> None:
    plain = {"tools": [entry()], "tool_calls": [news()], "finish_reason": "tool_calls", "content": ""}
    silent, odd = plain | {"tool_calls": None, "finish_reason": "stop"}, plain | MOONSHOT[kind]
    rows = [
        {
            "messages": [{"role": "user", "content": f"{n}?"}],
            **(odd if n < 3 else plain if n < 5 else silent),
        }
        for n in range(8)
    ]
    (tmp_path / "k2_vendor_verifier.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    done = command(tmp_path, "score", "k2_vendor_verifier.jsonl")
    assert done.code == 0, done.err
    (file,) = tmp_path.rglob("scores.json")
    score = json.loads(file.read_text())
    counted = [valid for is_counted, valid in map(counted_by_moonshot, rows) if is_counted]
    assert score["measures"]["schema accuracy by Moonshot's rule"]["value"] == pytest.approx(
        sum(counted) / len(counted)
    )
    assert score["accuracy"] is None


@pytest.mark.parametrize(
    ("unfit", "model", "code", "on_vllm"),
    [
        (0, "kimi-k2-thinking", 0, "not compatible"),
        (25, "kimi-k2-thinking", 1, "compatible"),
        (100, "moonshotai/Kimi-K2-Instruct-0905", 1, "not compatible"),
    ],
)
def test_the_schema_accuracy_is_compared_with_published_servers(
    tmp_path: Path, unfit: int, model: str, code: int, on_vllm: str
) -> None:
    rows = [
        {"messages": [{"role": "user", "content": f"{n}?"}], "tools": [entry()], "content": "Hi"}
        | ({"tool_calls": [news('{"city": 7}' if n < unfit else '{"city": "Ulm"}')]} if n < 200 else {})
        for n in range(300)
    ]
    rows = [row | {"finish_reason": "stop"} if n == 0 else row for n, row in enumerate([*rows[-1:], *rows])]
    (tmp_path / "k2_vendor_verifier.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    scored = command(tmp_path, "score", "k2_vendor_verifier.jsonl")
    assert scored.code == 0
    assert f"{100 - unfit / 2:.1f}%" in scored.out
    assert "schema accuracy" in scored.out
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


def test_the_accuracy_covers_only_requests_that_state_an_answer(tmp_path: Path) -> None:
    def row(n: int, **more: Any) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": f"{n}?"}], "tools": [entry()], "content": "Hi", **more}

    bonn = {"calls": [{"get_news": {"city": ["Ulm"]}}]}
    rows = [
        *(row(n) for n in range(4)),
        row(4, tool_calls=[news()]),
        row(5, tool_calls=[news("{}")]),
        row(6, answer=bonn, tool_calls=[news()]),
        row(7, answer=bonn),
        row(8, tool_choice="required"),
        row(9, tool_choice="none"),
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert command(tmp_path, "score", "log.jsonl").code == 0
    (folder,) = (file.parent for file in tmp_path.rglob("scores.json"))
    score = json.loads((folder / "scores.json").read_text())
    assert (score["accuracy"]["value"], score["n_questions"]) == (0.5, 10)
    grades = [json.loads(line)["verdict"] for line in (folder / "grades.jsonl").read_text().splitlines()]
    assert grades == [*["correct"] * 5, "wrong", "correct", "no_answer", "no_answer", "correct"]
    assert score["measures"]["schema accuracy"]["value"] == pytest.approx(2 / 3)


def test_a_log_of_replies_needs_no_calls_and_one_reply_a_row(tmp_path: Path) -> None:
    row = {"messages": [{"role": "user", "content": "?"}], "tools": [entry()], "content": "Hi"}
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {"tools": []}))
    assert command(tmp_path, "score", "log.jsonl").code == 0
    (file,) = tmp_path.rglob("scores.json")
    assert json.loads(file.read_text())["accuracy"] is None
    (tmp_path / "two.jsonl").write_text(json.dumps(row | {"tool_calls": None, "content": ["Hi", "Ho"]}))
    done = command(tmp_path, "score", "two.jsonl")
    assert (done.code, "Traceback" in done.err) == (2, False)
    assert "a row with tools must contain one reply, but it contains 2" in " ".join(done.err.split())


def test_the_doctor_tries_calls_that_are_accepted_and_others(tmp_path: Path) -> None:
    tried = command(tmp_path, "doctor", "--benchmark", questions_file(tmp_path))
    assert tried.code == 0
    assert [*tried.out.split()][-5:] == ["asked", "7", "7/7", "8/8", "passed"]


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


# -- calls that a server left in the text of a reply -------------------------------------------------------------------


FAMILIES = {
    # NAME: of the tool; CODE: the code; ARGS: an object with it in JSON
    "hermes": '<tool_call>\n{"name": "NAME", "arguments": ARGS}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=NAME>\n<parameter=code>\nCODE\n</parameter>\n</function>\n</tool_call>",
    "seed_oss": "<seed:tool_call>\n<function=NAME>\n<parameter=code>CODE</parameter>\n</function>\n</seed:tool_call>",
    "deepseek_v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nARGS\n```",
    "deepseek_v31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGS<｜tool▁call▁end｜>",
    "deepseek_v32": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="NAME">\n<｜DSML｜parameter name="code">'
    "CODE</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "gpt-oss, its own tool": "<|channel|>analysis to=NAME code<|message|>CODE<|call|>",
    "gpt-oss, a function": "<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>ARGS<|call|>",
    "gpt-oss without its tokens": "analysis to=NAME codeCODE",
    "gpt-oss, a function, without": "commentary to=functions.NAME jsonARGS",
    "mistral": '[TOOL_CALLS][{"name": "NAME", "arguments": ARGS}]',
    "mistral, new": "[TOOL_CALLS]NAME[ARGS]ARGS",
    "mistral without its tokens": '[{"name": "NAME", "arguments": ARGS, "id": "VvvODy9mT"}]',
    "llama3_json": '{"name": "NAME", "parameters": ARGS}',
    "llama3, its own tool": "<|NAME_tag|>CODE",
    "llama4_pythonic": "<|python_start|>[NAME(code=QUOTED)]<|python_end|>",
    "pythonic": "[NAME(code=QUOTED)]",
    "lfm2": "<|tool_call_start|>[NAME(code=QUOTED)]<|tool_call_end|>",
    "olmo3": "<function_calls>\nNAME(code=QUOTED)\n</function_calls>",
    "glm45": "<tool_call>NAME\n<arg_key>code</arg_key>\n<arg_value>CODE</arg_value>\n</tool_call>",
    "longcat": "<longcat_tool_call>NAME\n<longcat_arg_key>code</longcat_arg_key>\n</longcat_tool_call>",
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>ARGS",
    "minimax_m1": '<tool_calls>\n{"name": "NAME", "arguments": ARGS}\n</tool_calls>',
    "minimax_m2": '<minimax:tool_call>\n<invoke name="NAME">\n<parameter name="code">CODE</parameter>\n</invoke>',
    "step3": '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="NAME">'
    '<steptml:parameter name="code">CODE</steptml:parameter></steptml:invoke>',
    "step3 without its tokens": 'function<steptml:invoke name="NAME"><steptml:parameter name="code">CODE',
    "xlam": '```json\n[{"name": "NAME", "arguments": ARGS}]\n```',
    "internlm": '<|action_start|><|plugin|>\n{"name": "NAME", "parameters": ARGS}<|action_end|>',
    "granite": '<|tool_call|>[{"name": "NAME", "arguments": ARGS}]',
    "granite-20b": '<function_call> {"name": "NAME", "arguments": ARGS}',
    "phi4mini": 'functools[{"name": "NAME", "arguments": ARGS}]',
    "gemma": "```tool_code\nprint(NAME(code=QUOTED))\n```",
    "gemma, code": "```tool_code\nCODE\n```",
    "functiongemma": "<start_function_call>call:NAME{code:<escape>CODE<escape>}<end_function_call>",
    "gemma4": '<|tool_call>call:NAME{code:<|"|>CODE<|"|>}<tool_call|>',
    "gigachat3": 'function call<|role_sep|>\n{"name": "NAME", "arguments": ARGS}',
    "command": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "NAME", "parameters": ARGS}]<|END_ACTION|>',
    "command without its tokens": '[{"tool_call_id": "0", "tool_name": "NAME", "parameters": ARGS}]',
    "functionary": "<function=NAME>ARGS</function>",
    "claude": '<function_calls>\n<invoke name="NAME">\n<parameter name="code">CODE</parameter>\n</invoke>',
    "apertus": '<|tools_prefix|>[{"NAME": ARGS}]<|tools_suffix|>',
    "apertus without its tokens": '[{"NAME": ARGS}]',
    "seed": '<|FunctionCallBegin|>[{"name": "NAME", "parameters": ARGS}]<|FunctionCallEnd|>',
    "the API's own": '{"tool_calls": [{"type": "function", "function": {"name": "NAME", "arguments": ARGS}}]}',
    "arguments first": '{"arguments": ARGS, "name": "NAME"}',
    "lm studio": '[TOOL_REQUEST]{"name": "NAME", "arguments": ARGS}[END_TOOL_REQUEST]',
    "anthropic's own": '{"type": "tool_use", "id": "t1", "name": "NAME", "input": ARGS}',
    "responses' own": '{"type": "function_call", "call_id": "c1", "name": "NAME", "arguments": ARGS}',
    "gemini's own": '{"functionCall": {"name": "NAME", "args": ARGS}}',
    "the API's former": '{"function_call": {"name": "NAME", "arguments": ARGS}}',
    "langchain": '```json\n{"tool": "NAME", "tool_input": ARGS}\n```',
    "kimi_k2 without its tokens": "functions.NAME:0ARGS",
    "harmony's namespace": "functions.NAME(ARGS)",
    "nemotron": '<TOOLCALL>[{"name": "NAME", "arguments": ARGS}]</TOOLCALL>',
    "hunyuan": '<tool_calls>[{"name": "NAME", "arguments": ARGS}]</tool_calls>',
    "pangu": '[unused11][{"name": "NAME", "arguments": ARGS}][unused12]',
    "qwen3_coder without its tag": "<function=NAME>\n<parameter=code>\nCODE\n</parameter>\n</function>",
    "qwen-agent": "✿FUNCTION✿: NAME\n✿ARGS✿: ARGS",
    "glm4": "NAME\nARGS",
    "llama3, a library": "<|python_tag|>NAME.call(code=QUOTED)",
    "llama3, in JSON": '<|python_tag|>{"name": "NAME", "parameters": ARGS}',
    "raven": "Call: NAME(code=QUOTED)",
    "solar": "<|tool_call:begin|>c1<|tool_call:name|>NAME<|tool_call:args|>ARGS<|tool_call:end|>",
    "default_api": "```tool_code\nprint(default_api.NAME(code=QUOTED))\n```",
    "pythonic, two": "[NAME(code=QUOTED), NAME(code=QUOTED)]",
    "a tag in a tag": "<tool_use>\n<tool_name>NAME</tool_name>\n<arguments>ARGS</arguments>\n</tool_use>",
    "hermes, cut": '<tool_call>\n{"name": "NAME", "arguments": {"code": "pri',
    "deepseek_v3 without its tokens": "function<｜tool▁sep｜>NAME\n```json\nARGS\n```",
    "react": "Thought: compute.\nAction: NAME\nAction Input: CODE",
    "react in JSON": '{"action": "NAME", "action_input": ARGS}',
    "a tag of its name": "<NAME>\nCODE\n</NAME>",
    "a function": "NAME(QUOTED)",
    "a function with code": "NAME(print(6*7))",
    "a plain block": "```NAME\nCODE\n```",
    "a block that was not closed": "```NAME\nCODE\n",
}
"""What each family writes, as the parsers of vLLM and SGLang read it, or as it stands without special tokens."""

ANSWERS = {
    "a number": "So \\boxed{42}.",
    "a program": "```python\ndef solve(n):\n    return n\n```",
    "a program with words behind it": "```python\nprint(6*7)\n```\nIt prints 42, so \\boxed{42}.",
    "a program's words": "The function `solve` calls `python` (3.11), [1]python-like code, to=1, and Tool: Python.",
    "a box token": "<|begin_of_box|>42<|end_of_box|>",
    "tokens of the end": "\\boxed{42}<|im_end|><|endoftext|>",
    "C++": "```cpp\n#include <functional>\nstd::function<int(int)> f; vector<Action> a; if (a<call && b>c) f(1);\n```",
    "HTML": '<a href="x">call</a><b>python</b><code class="language-python">x</code><button name="tool">',
    "JSON": '{"name": "Ann", "age": 3, "language": "python", "version": {"python": "3.11"}}',
    "a shebang": "#!/usr/bin/env python\nprint(f(call=1), tool(2))\npython solve.py",
    "mathematics": "f: A -> B, <x, y>, [1, 2], {a: b}, $\\langle f|g \\rangle$, [CALL] is a put, a<|b|>c",
}

SENTENCES = {
    # NAME: of an offered tool; OTHER: a name that no tool has
    "a marker in a sentence": "A server without its parser leaves <tool_call> and </tool_call> in the text.",
    "a marker that begins a sentence": "<tool_call> is the marker with which NAME begins.",
    "a token in a sentence": "The token <|tool_call_begin|> stands before NAME in such a call.",
    "a quoted marker": 'It writes `<tool_call>{"name": "NAME", "arguments": {}}</tool_call>` and ends.',
    "an example in a block": 'So:\n\n```\n<tool_call>\n{"name": "NAME", "arguments": {}}\n</tool_call>\n```\n',
    "an object that is the answer": '{"name": "OTHER", "arguments": ["a", "b"]}',
    "objects that are the answer": '[{"name": "OTHER", "parameters": {"x": 1}}, {"name": "b", "parameters": {}}]',
    "an object in a sentence": 'A call has the form {"name": "NAME", "arguments": {"code": "1"}}.',
    "an object in a longer sentence": 'Here {"name": "NAME", "arguments": {"code": "1"}} would run it.',
    "a curl line": 'curl -s http://h/v1 -d \'{"name": "NAME", "arguments": {"code": "1"}}\'',
    "a curl line with tools": """curl http://h -d '{"tools": [{"type": "function", "function": """
    """{"name": "NAME", "parameters": {"type": "object"}}}]}'""",
    "the definition of a tool": '{"name": "NAME", "parameters": {"type": "object", "properties": {}}}',
    "a list of tools": "I can use:\n- NAME: runs code\n- OTHER: searches",
    "a label": "Function: NAME\nPurpose: it runs code.",
    "a tool in prose": "I would call NAME with the code, since NAME(code) returns its output.",
    "a call in prose": 'You may call `NAME(code="1")` for this, or functions.NAME in the playground.',
    "a call that begins a sentence": 'NAME(code="1") would return 1, which I know without it.',
    "another function": 'OTHER(code="1")\nprint(OTHER(2))',
    "a program": '```py\nx = 1\nresult = NAME(code="1")\nprint(result)\n```',
    "XML": '<action name="OTHER"><call name="b"/></action>',
    "a refusal": "No tool fits: NAME cannot do this, and tool calls cost money.",
}
"""Texts about calls, and answers that look like one; none is a call."""

TOOL_NAMES = ("python", "calculator", "get_weather", "my.tool-2")
PLACES = {
    "alone": ("{}", ""),
    "behind a thought": ("{}", "So."),
    "behind words": ("I compute it.\n\n{}\n", "So."),
    "at the end of a line": ("I compute it: {}", ""),
    "in the reasoning": ("", "I see.\n{}"),
}


def written(form: str, name: str, code: str) -> str:
    """A call in this form."""
    text = form.replace("[ARGS]", "[\0]").replace("✿ARGS", "✿\0")
    for word, value in {"CODE": code, "ARGS": json.dumps({"code": code}), "QUOTED": repr(code)}.items():
        text = text.replace(word, value)
    return text.replace("\0", "ARGS").replace("NAME", name).replace("OTHER", "lookup")


def is_found(place: str, text: str, name: str) -> bool:
    content, reasoning = (each.replace("{}", text) for each in PLACES[place])
    return bool(lost_call(content, reasoning, "stop", (name, "other"), asks_program=False))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_call_of_every_family_is_lost_wherever_it_stands(family: str) -> None:
    code = ("print(6*7)", "import math\nfor i in range(3):\n    print('{}', \"a\", i < 2 > 1)")
    for name, place, each in itertools.product(TOOL_NAMES, PLACES, code):
        begins_a_line = "block" in family or FAMILIES[family][:1] not in "<[{" or family == "a tag of its name"
        if (place == "at the end of a line" and begins_a_line) or (place == "in the reasoning" and "block" in family):
            continue
        assert is_found(place, written(FAMILIES[family], name, each), name), (place, name, each)


@pytest.mark.parametrize("case", SENTENCES)
def test_a_text_about_calls_is_no_lost_call(case: str) -> None:
    for name, place in itertools.product(TOOL_NAMES, PLACES):
        assert not is_found(place, written(SENTENCES[case], name, "1"), name), (place, name)


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_is_no_lost_call(case: str) -> None:
    for text, reasoning in ((ANSWERS[case], "I could ask python(code='1')."), (ANSWERS[case], None)):
        assert not lost_call(text, reasoning, "stop", ("python",), asks_program=case == "a program")
    assert lost_call(ANSWERS[case], None, "tool_calls", ("python",), asks_program=True)


# -- many samples share a machine --------------------------------------------------------------------------------------


LEAST, MOST = 128 << 20, 2 << 30
MEMORY = 12 << 30


async def played(draw: random.Random, largest: int) -> tuple[int, int]:
    """Many samples to their ends; (calls, interpreters that were ended for their memory). largest: bytes of one."""
    asking, lost = set[Task](), list[Task]()
    turns = Turns(MEMORY, 2, 8, asking, lost.append)
    n_calls = 0

    async def sample(number: int) -> None:
        nonlocal n_calls
        task = Task("b", "q", number)
        for _ in range(draw.randint(1, 6)):
            asking.add(task)
            await asyncio.sleep(draw.choice((0, 0.001)))
            await turns.begin(task, LEAST + MOST, LEAST)
            state = turns.progress()
            assert state.running <= 8
            assert state.memory <= MEMORY or state.interpreters == 1
            await asyncio.sleep(draw.choice((0, 0.001)))
            turns.end(task, LEAST + draw.randint(0, largest))
            n_calls += 1
            if draw.random() < 0.2:  # its request fails, and waits for another try
                asking.discard(task)
                await asyncio.sleep(0.05)
        turns.forget(task)
        asking.discard(task)

    await asyncio.gather(*map(sample, range(60)))
    state = turns.progress()
    assert (state.running, state.waiting, state.interpreters, state.memory) == (0, 0, 0, 0)
    return n_calls, len(lost)


@pytest.mark.parametrize(("largest", "loses"), [(64 << 20, False), (MOST - 1, True)], ids=["usual", "greedy"])
def test_all_samples_end_within_the_memory(largest: int, loses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_turns, "STUCK_S", 0.01)
    lost = 0
    for seed in range(rounds(8)):
        n_calls, n_lost = asyncio.run(played(random.Random(seed), largest))
        assert n_calls >= 60
        lost += n_lost
    assert bool(lost) == loses, "an interpreter is ended where memory is short, and only there"


def test_a_call_that_is_cancelled_leaves_no_place_taken() -> None:
    async def scene() -> int:
        turns, one, other = Turns(MOST, 2, 8, set(), [].append), Task("b", "q", 1), Task("b", "q", 2)
        await turns.begin(one, LEAST + MOST, LEAST)
        waiting = asyncio.create_task(turns.begin(other, LEAST + MOST, LEAST))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        turns.end(one, LEAST)
        turns.forget(one)
        return turns.progress().memory + turns.progress().waiting

    assert asyncio.run(scene()) == 0
