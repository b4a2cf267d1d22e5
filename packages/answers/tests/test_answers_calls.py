"""Function calls: which are accepted, what is said of those that are not, and what hostile schemas can do.

For: reasoning_answers.calls, reasoning_answers.compare.calls.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from reasoning_answers import grade
from reasoning_answers.host import read_calls

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
    verdict = grade(accepted, reply, kind="calls", tools=TOOLS)
    assert (verdict.outcome, verdict.rule) == (outcome, rule), verdict.steps
    as_text = grade(json.dumps(accepted), json.dumps(reply), kind="calls", tools=json.dumps(TOOLS))
    assert as_text == verdict


def test_calls_in_any_order_are_accepted_where_the_reference_says_so() -> None:
    accepted = {"calls": [WEATHER, NOW, WEATHER], "any_order": True}
    assert grade(accepted, [NY, NY, call("now")], kind="calls", tools=TOOLS)
    assert not grade(accepted, [NY, call("now"), call("now")], kind="calls", tools=TOOLS)


@pytest.mark.parametrize(
    ("schema", "outcome"),
    [
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "undecided"),
        ({"$ref": "file:///etc/hostname"}, "undecided"),
        ({"$ref": "#"}, "undecided"),
        ({"type": 7}, "undecided"),
        ({"properties": {"a": {"pattern": "("}}}, "undecided"),
        ({"properties": {"a": {"pattern": "^b"}}}, "wrong"),
    ],
)
def test_a_strangers_schema_fetches_nothing(schema: dict[str, Any], outcome: str) -> None:
    tools = [{"name": "f", "parameters": schema}]
    assert grade("schema", [call("f", a="aab")], kind="calls", tools=tools).outcome == outcome


KEYWORDS = (
    "properties", "required", "items", "multipleOf", "$ref", "allOf", "anyOf", "oneOf", "not", "if", "pattern", "enum",
    "const", "additionalProperties", "minimum", "maxLength", "dependentRequired", "patternProperties", "$schema",
    "$defs", "$id", "$anchor", "$dynamicRef", "prefixItems", "contains", "propertyNames", "unevaluatedProperties",
    "format", "uniqueItems",
)  # fmt: skip
ODD = (None, 3, 0, -1, "x", "(", True, [], [3], [None], {}, {"a": None}, {"a": 3}, [{"$ref": "#"}])


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_an_odd_schema_raises_nothing_and_decides_only_where_it_must(keyword: str) -> None:
    for value, is_inner in itertools.product(ODD, (False, True)):
        if keyword == "properties" and isinstance(value, dict) and not is_inner:
            continue  # it states other parameters
        city: dict[str, Any] = {"type": "string"} | ({keyword: value} if is_inner else {})
        schema = {"type": "object", "properties": {"city": city}} | ({} if is_inner else {keyword: value})
        tools = [{"type": "function", "name": "f", "parameters": schema}]
        verdicts = {
            str(reference): grade(reference, [call("f", city="Bonn")], kind="calls", tools=tools)
            for reference in ("none", "some", "schema", {"calls": [{"f": {"city": ["bonn"]}}]})
        }
        named, some, fits, right = verdicts.values()
        assert (named.rule, some.rule, right.rule) == ("a call", "calls", "calls"), schema
        assert fits.rule in ("calls", "schema", "unreadable schema")


@pytest.mark.parametrize("tool", [{"name": "f"}, {"name": "f", "parameters": None}, {"function": {"name": "f"}}])
def test_a_tool_without_parameters_takes_any(tool: dict[str, Any]) -> None:
    for reference in ("schema", {"calls": [{"f": {"a": [1]}}]}):
        assert grade(reference, [call("f", a=1)], kind="calls", tools=[tool])


def test_equal_calls_have_equal_votes_whatever_their_order() -> None:
    def vote(calls: list[Any], any_order: bool) -> str | None:
        reference = {"calls": [WEATHER, NOW], "any_order": any_order}
        return grade(reference, calls, kind="calls", tools=TOOLS).vote

    one = call(city="Bonn", place={"zip": "1", "a": "2"})
    other = call(place={"a": "2", "zip": "1"}, city="Bonn")
    assert vote([one, call("now")], False) == vote([other, call("now")], False)
    assert vote([one, call("now")], True) == vote([call("now"), other], True)
    assert vote([one, call("now")], False) != vote([call("now"), one], False)
    assert vote([one], True) != vote([call(city="bonn", place={"zip": "1", "a": "2"})], True)


@pytest.mark.parametrize(
    ("entry", "arguments"),
    [
        ({"name": "f", "input": {"a": 1}}, '{"a":1}'),
        ({"type": "tool_use", "id": "t1", "name": "f", "input": {}}, "{}"),
        ({"type": "function_call", "id": "x", "call_id": "t1", "name": "f", "arguments": "{}", "status": "done"}, "{}"),
        ({"id": "t1", "type": "function", "function": {"name": "f", "arguments": "1"}, "extra_content": {}}, "1"),
        ({"name": "f"}, "{}"),
        *(({"name": "f", key: {"a": 1}}, None) for key in ("argument", "args", "parameters", "Arguments", "kwargs")),
        ({"function": {"name": "f", "argument": "{}"}}, None),
        ({"function": {"name": "f"}, "parameters": {}}, None),
    ],
)
def test_arguments_are_read_under_the_keys_of_the_apis(entry: dict[str, Any], arguments: str | None) -> None:
    if arguments is None:
        with pytest.raises(ValueError, match="is not a key of a call"):
            read_calls([entry])
    else:
        (read,) = read_calls([entry])
        assert (read.id, read.arguments) == ("t1" if "t1" in entry.values() else "", arguments)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"reference": {"calls": []}}, "^the reference answer .*at least one call"),
        ({"reference": "maybe"}, "not a valid reference for calls"),
        ({"reply": "[1]"}, '^reply: expected a list of objects with "name" and "arguments"'),
        ({"tools": "{}"}, "^tools: expected a list"),
        ({"tools": [{"name": "f", "parameters": 1}]}, "^tools: expected a list"),
        ({"reference": "add(1)"}, "is not a valid reference for calls"),
    ],
)
def test_a_mistake_is_one_sentence(options: dict[str, Any], named: str) -> None:
    given = {"reference": "some", "reply": "[]", "tools": TOOLS} | options
    with pytest.raises(ValueError, match=named):
        grade(**given, kind="calls")
