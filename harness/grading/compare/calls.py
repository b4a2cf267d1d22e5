"""Whether the function calls of a reply are the accepted ones, or at least fit the schemas of the tools.

The rules for Python are those of the Berkeley Function-Calling Leaderboard (`ast_checker.py` of bfcl-eval 2026.3.23),
followed to the letter, because scores are compared with its own. Its types are read from JSON Schema: `number` is its
float, `object` its dict, `array` its list and tuple, `string` its text and "any".

Schemas and patterns come from strangers: call this only in a process with limits of time and memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from harness.answers.calls import AcceptedCalls, AnyCalls, DecodedCall, request_name
from harness.core import codec
from harness.core.inert import quoted
from harness.core.records import CallSign, OfferedTool

CallRule = Literal[
    "no call",
    "a call",
    "number of calls",
    "name of a call",
    "arguments no JSON",
    "schema",
    "unreadable schema",
    "parameters",
    "type of a value",
    "value",
]
"""The fault of a list of calls, in a word."""

_TYPES: dict[str, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
_IGNORED = re.compile(r"[ ,./\-_*^]")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a list of calls is not accepted. words: which call and parameter, what was found, what is accepted."""

    rule: CallRule
    words: str


def fault_of(
    calls: Sequence[DecodedCall], reference: AcceptedCalls | AnyCalls, tools: Sequence[OfferedTool]
) -> Fault | None:
    """Why `calls` are not what the reference accepts; None if they are."""
    if reference == "none":
        return (
            Fault("a call", f"the reply calls {_named(calls)}, but the reference accepts no calls") if calls else None
        )
    if not calls:
        return Fault("no call", "the reply contains no calls")
    if reference == "some":
        return None
    offered = {tool.name: tool for tool in tools}
    if isinstance(reference, AcceptedCalls):
        return _unlike(calls, reference, offered)
    faults = (unfit(call, offered, f"call {number}") for number, call in enumerate(calls, 1))
    return next((fault for fault in faults if fault is not None), None)


def _named(calls: Sequence[DecodedCall]) -> str:
    """The names of the calls, in words."""
    return ", ".join(quoted(call.name) for call in calls[:4]) + (" …" if len(calls) > 4 else "") + " was"


# --- the schema
MAX_SIGNED = 100
"""Calls of a reply whose schemas are tried beside accepted values."""

_SIGNS: dict[CallRule, CallSign] = {
    "arguments no JSON": "no_json",
    "name of a call": "unknown_name",
    "schema": "schema",
    "unreadable schema": "unreadable_schema",
}


def signs_of(calls: Sequence[DecodedCall], tools: Sequence[OfferedTool]) -> tuple[CallSign, ...]:
    """Whether the calls fit the schemas of their tools (`fits`), or in which ways they do not; empty without calls."""
    offered = {tool.name: tool for tool in tools}
    faults = [unfit(call, offered, "") for call in calls[:MAX_SIGNED]]
    signs = {_SIGNS[fault.rule] for fault in faults if fault is not None}
    return tuple(sorted(signs)) or (("fits",) if calls else ())


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Any:
    """The validator of a schema, which is JSON."""
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    parameters = codec.decode(schema, dict[str, Any])
    kind = validators.validator_for(parameters, default=Draft202012Validator)
    # An empty registry: a `$ref` to an address is not fetched.
    return kind(parameters, registry=Registry())


def unfit(call: DecodedCall, offered: Mapping[str, OfferedTool], where: str) -> Fault | None:
    """Why a call does not fit the schema of its tool; None if it does."""
    from jsonschema import exceptions
    from referencing.exceptions import Unresolvable

    tool = offered.get(call.name)
    if tool is None:
        return Fault("name of a call", f"{where}: there is no tool {quoted(call.name)}")
    if (unread := _unread(call, where)) is not None:
        return unread
    try:
        error = exceptions.best_match(_validator(codec.encode(tool.parameters)).iter_errors(call.arguments))
    except (
        Unresolvable,
        exceptions.SchemaError,
        exceptions.UnknownType,
        re.error,
        TypeError,
        ValueError,
        RecursionError,
    ) as broken:
        return Fault(
            "unreadable schema", f"{where}, {call.name}: this tool's schema cannot be read: {quoted(str(broken))}"
        )
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path)) or "arguments"
    return Fault("schema", f"{where}, {call.name}: {place}: {quoted(error.message)}")


def _unread(call: DecodedCall, where: str) -> Fault | None:
    """The fault of arguments that are no JSON object; None if they are one."""
    if isinstance(call.arguments, dict):
        return None
    return Fault(
        "arguments no JSON", f"{where}, {call.name}: the arguments are not a JSON object: {quoted(call.arguments)}"
    )


# --- the accepted values
def _unlike(calls: Sequence[DecodedCall], reference: AcceptedCalls, offered: Mapping[str, OfferedTool]) -> Fault | None:
    """Why the calls are not those of the reference, one for one; None if they are."""
    if len(calls) != len(reference.calls):
        return Fault("number of calls", f"{len(calls)} calls; accepted: {len(reference.calls)}")
    left = list(enumerate(calls, 1))
    for accepted in reference.calls:
        ((name, parameters),) = accepted.items()
        tool = offered.get(request_name(name), OfferedTool(name=request_name(name)))
        fault: Fault | None = None
        for entry in left if reference.any_order else left[:1]:
            found = _unlike_one(entry[1], tool, parameters, f"call {entry[0]}")
            if found is None:
                left.remove(entry)
                fault = None
                break
            fault = fault if fault is not None and found.rule == "name of a call" else found
        if fault is not None:
            return fault
    return None


def _unlike_one(call: DecodedCall, tool: OfferedTool, accepted: dict[str, list[Any]], where: str) -> Fault | None:
    """Why a call is not the accepted call of `tool`; None if it is."""
    if call.name != tool.name:
        return Fault("name of a call", f"{where}: {quoted(call.name)} was called; accepted: {quoted(tool.name)}")
    if (unread := _unread(call, where)) is not None:
        return unread
    assert isinstance(call.arguments, dict)
    where = f"{where}, {call.name}"
    properties, required = tool.parameters.get("properties", {}), tool.parameters.get("required", ())
    for name in required:
        if name not in call.arguments:
            return Fault("parameters", f"{where}: the required argument {quoted(name)} is missing")
    for name, value in call.arguments.items():
        if name not in properties or name not in accepted:
            return Fault("parameters", f"{where}: {quoted(name)} is not accepted")
        rule = _unlike_value(value, accepted[name], properties[name])
        if rule is not None:
            return Fault(rule, f"{where}: {quoted(name)} is {_shown(value)}; accepted: {_choices(accepted[name])}")
    for name, values in accepted.items():
        if name not in call.arguments and "" not in values:
            return Fault("parameters", f"{where}: {quoted(name)} is missing; accepted: {_choices(values)}")
    return None


def _unlike_value(value: Any, accepted: list[Any], schema: Any) -> CallRule | None:
    """The rule by which a value is not among the accepted ones; None if it is."""
    expected = _type_of(schema)
    item = _type_of(schema.get("items")) if expected is list and isinstance(schema, Mapping) else None
    if expected is float and type(value) is int:
        value = float(value)
    if expected is not None and not _is_of_type(value, accepted, expected, item):
        return "type of a value"
    stated = _stated_type(accepted)
    if expected is None:
        expected = stated
    # A text in the place of another type is the name of a variable, and must be that of the reference.
    is_variable = stated is not None and (stated is not expected or type(value) is not expected)
    if is_variable:
        matches = value in accepted
    elif expected is dict:
        matches = any(_is_same_object(value, each) for each in accepted)
    elif expected is list and item is dict:
        matches = any(_are_same_objects(value, each) for each in accepted)
    elif expected is str:
        matches = _plain(value) in [_plain(each) for each in accepted if isinstance(each, str)]
    elif expected is list:
        matches = [_plain(each) for each in value] in [[_plain(part) for part in _listed(each)] for each in accepted]
    else:
        matches = value in accepted
    return None if matches else "value"


def _type_of(schema: Any) -> type | None:
    """The type of Python that a schema's one type stands for; None if it names none, or several."""
    name = schema.get("type") if isinstance(schema, Mapping) else None
    return _TYPES.get(name) if isinstance(name, str) else None


def _stated_type(accepted: list[Any]) -> type | None:
    """The type of the first accepted value; None if the parameter may only be left out."""
    return next((type(each) for each in accepted if each != ""), None)


def _is_of_type(value: Any, accepted: list[Any], expected: type, item: type | None) -> bool:
    """Whether a value has the type of its schema, its items too, or that of the accepted values."""
    stated = _stated_type(accepted)
    if type(value) is not expected:
        return stated is not None and type(value) is stated
    if item is None:
        return True
    for each in accepted:
        if not isinstance(each, list) or all(_is_of_type(part, each, item, None) for part in _listed(value)):
            return True
    return False


def _plain(value: Any) -> Any:
    """A text in the form in which texts are compared; any other value unchanged."""
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _listed(values: Any) -> list[Any]:
    """A list as it is, a text as a list of its characters, as the leaderboard has it; another value in a list."""
    return list(values) if isinstance(values, list | str) else [values]


def _is_same_object(value: dict[str, Any], accepted: Any) -> bool:
    """Whether an object has the accepted values. accepted: key → list of values, "" where it may be left out."""
    if not isinstance(accepted, dict) or not isinstance(value, dict):
        return False
    for key, each in value.items():
        if key not in accepted or _plain(each) not in [_plain(one) for one in _listed(accepted[key])]:
            return False
    return all(key in value or "" in _listed(values) for key, values in accepted.items())


def _are_same_objects(value: list[Any], accepted: Any) -> bool:
    """Whether a list of objects has the accepted ones, in order."""
    accepted = _listed(accepted)
    return len(value) == len(accepted) and all(map(_is_same_object, value, accepted))


# --- in words
def _shown(value: Any) -> str:
    """A value as JSON, safe to print."""
    return quoted(codec.encode(value).decode())


def _choices(values: list[Any]) -> str:
    """Accepted values in words."""
    return ", ".join("left out" if each == "" else _shown(each) for each in values[:6])
