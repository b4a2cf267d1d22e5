"""Function calls: which are accepted, what is said of those that are not, and what hostile schemas can do.

For: reasoning_answers.calls, reasoning_answers.compare.calls.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.benchmarks import catalog, questions
from harness.benchmarks.card import UrlSource
from harness.benchmarks.sources import web
from harness.core.errors import UsageError
from reasoning_answers.calls import (
    DecodedCall,
    answer_of,
    calls_in,
    examples_of,
    read_calls,
    read_reference,
    read_tools,
)
from reasoning_answers.compare.calls import fault_of
from tests.benchmarks.test_benchmarks_cards import SHIPPED
from tests.conftest import SHARED_DATA

TOOLS = [
    {
        "name": "weather.get",
        "parameters": {
            "type": "dict",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "scale": {"type": "float"},
                "hours": {"type": "array", "items": {"type": "integer"}},
                "place": {"type": "dict", "properties": {"zip": {"type": "string"}}},
                "stops": {"type": "array", "items": {"type": "dict"}},
            },
            "required": ["city"],
        },
    },
    {"type": "function", "function": {"name": "now", "description": "The time."}},
]
ACCEPTED = {
    "city": ["New York, NY"],
    "days": ["", 3],
    "scale": ["", 2.0],
    "hours": ["", [1, 2]],
    "place": ["", {"zip": ["10001", ""]}],
    "stops": ["", [{"a": [1]}]],
}
WEATHER, NOW = {"weather.get": ACCEPTED}, {"now": {}}


def call(name: str = "weather_get", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


NY = call(city="new york ny")


@pytest.mark.parametrize(
    ("reference", "reply", "outcome", "rule"),
    [
        ([WEATHER], [NY], "correct", "calls"),
        ([WEATHER], [call(city="York")], "wrong", "value"),
        ([WEATHER], [call(city="New York, NY", days=3)], "correct", "calls"),
        ([WEATHER], [call(city="New York, NY", days=3.0)], "wrong", "type of a value"),
        ([WEATHER], [call(city="New York, NY", days=True)], "wrong", "type of a value"),
        ([WEATHER], [call(city="New York, NY", scale=2)], "correct", "calls"),
        ([WEATHER], [call(city="New York, NY", hours=[1, 2])], "correct", "calls"),
        ([WEATHER], [call(city="New York, NY", hours=[2, 1])], "wrong", "value"),
        ([WEATHER], [call(city="New York, NY", place={})], "correct", "calls"),
        ([WEATHER], [call(city="New York, NY", place={"zip": "1-0001"})], "correct", "calls"),
        ([WEATHER], [call(city="New York, NY", place={"zip": 10001})], "wrong", "value"),
        ([WEATHER], [call(city="New York, NY", stops=[{"a": 1}])], "correct", "calls"),
        ([WEATHER], [call(city="New York, NY", stops=[{"b": 1}])], "wrong", "value"),
        ([WEATHER], [call(city="New York, NY", unit="C")], "wrong", "parameters"),
        ([WEATHER], [call(days=3)], "wrong", "parameters"),
        ([WEATHER], [call("weather.get", city="New York, NY")], "wrong", "name of a call"),
        ([WEATHER], [{"name": "weather_get", "arguments": '{"city": "New York NY"}'}], "correct", "calls"),
        ([WEATHER], [{"name": "weather_get", "arguments": '{"city": NaN}'}], "wrong", "arguments no JSON"),
        ([WEATHER], [{"name": "weather_get", "arguments": '{"city": "\ud83d'}], "wrong", "arguments no JSON"),
        ([WEATHER], [{"name": "weather\ud83d", "arguments": "{}"}], "wrong", "name of a call"),
        ([WEATHER], [NY, NY], "wrong", "number of calls"),
        ([WEATHER], [], "no_answer", "no call"),
        ([NOW], [{"name": "now", "arguments": ""}], "correct", "calls"),
        ([WEATHER, NOW], [call("now"), NY], "wrong", "name of a call"),
        ("none", [], "correct", "calls"),
        ("none", [NY], "wrong", "a call"),
        ("some", [call("other")], "correct", "calls"),
        ("some", [], "no_answer", "no call"),
        ("schema", [call(city="x", days=9)], "correct", "calls"),
        ("schema", [call(city="x", days="9")], "wrong", "schema"),
        ("schema", [call(days=9)], "wrong", "schema"),
        ("schema", [NY, call("other")], "wrong", "name of a call"),
    ],
)
def test_calls_are_accepted_or_refused_by_a_rule(reference: Any, reply: Any, outcome: str, rule: str) -> None:
    accepted = reference if isinstance(reference, str) else {"calls": reference}
    verdict = harness.grade(accepted, reply, kind="calls", tools=TOOLS)
    assert (verdict.outcome, verdict.rule) == (outcome, rule), verdict.steps
    as_text = harness.grade(json.dumps(accepted), json.dumps(reply), kind="calls", tools=json.dumps(TOOLS))
    assert as_text == verdict


def test_calls_in_any_order_are_accepted_where_the_reference_says_so() -> None:
    accepted = {"calls": [WEATHER, NOW, WEATHER], "any_order": True}
    assert harness.grade(accepted, [NY, NY, call("now")], kind="calls", tools=TOOLS)
    assert not harness.grade(accepted, [NY, call("now"), call("now")], kind="calls", tools=TOOLS)


@pytest.mark.parametrize(
    ("schema", "outcome"),
    [
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "undecided"),
        ({"$ref": "file:///etc/hostname"}, "undecided"),
        ({"$ref": "#"}, "undecided"),
        ({"type": 7}, "undecided"),
        ({"properties": {"a": {"pattern": "("}}}, "undecided"),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, "undecided"),
        ({"properties": {"a": {"pattern": "^b"}}}, "wrong"),
    ],
)
def test_a_strangers_schema_is_bounded_and_fetches_nothing(schema: dict[str, Any], outcome: str) -> None:
    tools = [{"name": "f", "parameters": schema}]
    assert harness.grade("schema", [call("f", a="a" * 40 + "b")], kind="calls", tools=tools).outcome == outcome


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"reference": {"calls": []}}, "at least one call"),
        ({"reference": "maybe"}, "not a valid reference for calls"),
        ({"response": "[1]"}, 'expected a list of objects with "name" and "arguments"'),
        ({"tools": "{}"}, "tools"),
        ({"tools": [{"name": "f", "parameters": 1}]}, "tools"),
    ],
)
def test_a_mistake_is_one_sentence(options: dict[str, Any], named: str) -> None:
    given = {"reference": "some", "response": "[]", "tools": TOOLS} | options
    with pytest.raises(UsageError, match=named.replace("{", r"\{")):
        harness.grade(given["reference"], given["response"], kind="calls", tools=given["tools"])


@pytest.fixture
def package() -> str:
    """The unpacked wheel of bfcl-eval, which HARNESS_BFCL names (docs/testing.md)."""
    if (package := os.environ.get("HARNESS_BFCL")) is None:
        pytest.skip("HARNESS_BFCL names no package of the leaderboard")
    return package


@pytest.mark.parametrize("name", [name for name in SHIPPED if name.startswith("bfcl_")])
def test_a_card_reads_the_leaderboards_files_and_its_answers_are_right(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    card = catalog.load(name)
    assert isinstance(card.source, UrlSource)
    for source in (card.source, *card.source.further):
        (kept := web.cached_path(source)).parent.mkdir(parents=True)
        shutil.copy(Path(package) / "bfcl_eval" / "data" / source.url.partition("/data/")[2], kept)
    asked = questions.build(card)
    assert (asked.n_all, asked.notes) == (card.questions, ())
    wrong = 0
    for question in asked.questions:
        right, other = (read_calls(text or "[]") for text in examples_of(question.references[0]))
        faults = [
            fault_of(calls_in(answer_of(calls)), read_reference(question.references[0]), question.tools or ())
            for calls in (right, other)
        ]
        wrong += faults[0] is not None
        assert faults[1] is not None, question.question_id
    # Values that the leaderboard's own checker refuses, too.
    assert wrong == {"bfcl_live": 5, "bfcl_parallel_multiple": 2}.get(name, 0)
    if not card.source.further[1:]:
        file = Path(package) / "bfcl_eval" / "data" / card.source.url.rpartition("/")[2]
        assert questions.build(card.with_data(str(file))).rows_digest == asked.rows_digest


def test_verdicts_are_those_of_the_leaderboards_own_checker(package: str) -> None:
    oracle = SHARED_DATA.parent / "calls" / "oracle.py"
    if not oracle.exists():
        pytest.skip("there is no ../shared/calls")
    data = Path(package) / "bfcl_eval" / "data"
    asked = subprocess.run([sys.executable, oracle, package], stdout=subprocess.PIPE, check=True, timeout=300)
    cases = [json.loads(line) for line in asked.stdout.splitlines() if line.startswith(b'{"category"')]
    tools, truths = {}, {}
    for category in {case["category"] for case in cases}:
        for line in (data / f"BFCL_v4_{category}.json").read_text("utf-8").splitlines():
            tools[json.loads(line)["id"]] = read_tools(json.loads(line)["function"])
        for line in (data / "possible_answer" / f"BFCL_v4_{category}.json").read_text("utf-8").splitlines():
            truth = {"calls": json.loads(line)["ground_truth"], "any_order": "parallel" in category}
            truths[json.loads(line)["id"]] = read_reference(truth)
    differing = [
        case
        for case in cases
        for calls in [[DecodedCall(each["name"], each["arguments"]) for each in case["calls"]]]
        if (fault_of(calls, truths[case["id"]], tools[case["id"]]) is None) != case["valid"]
    ]
    assert len(cases) > 28_000
    assert differing == []
