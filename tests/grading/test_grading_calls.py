"""Function calls: which are accepted, what is said of those that are not, and what hostile schemas can do.

For: harness.answers.calls, harness.grading.compare.calls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.answers.calls import DecodedCall, read_reference, read_tools
from harness.core.errors import UsageError
from harness.grading.compare.calls import fault_of
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
    "city": ["New York, NY"], "days": ["", 3], "scale": ["", 2.0], "hours": ["", [1, 2]],
    "place": ["", {"zip": ["10001", ""]}], "stops": ["", [{"a": [1]}]],
}  # fmt: skip
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
        ({"reference": "maybe"}, "not a reference for calls"),
        ({"response": "[1]"}, 'expected a list of {"name", "arguments"}'),
        ({"tools": "{}"}, "tools"),
        ({"tools": [{"name": "f", "parameters": 1}]}, "tools"),
    ],
)
def test_a_mistake_is_one_sentence(options: dict[str, Any], named: str) -> None:
    given = {"reference": "some", "response": "[]", "tools": TOOLS} | options
    with pytest.raises(UsageError, match=named.replace("{", r"\{")):
        harness.grade(given["reference"], given["response"], kind="calls", tools=given["tools"])


def test_verdicts_are_those_of_the_leaderboards_own_checker() -> None:
    """HARNESS_BFCL names the unpacked wheel of bfcl-eval (docs/testing.md)."""
    package, oracle = os.environ.get("HARNESS_BFCL"), SHARED_DATA.parent / "calls" / "oracle.py"
    if package is None or not oracle.exists():
        pytest.skip("HARNESS_BFCL names no package of the leaderboard, or there is no ../shared/calls")
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
