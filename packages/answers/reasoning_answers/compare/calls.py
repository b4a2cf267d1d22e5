"""Whether the function calls of a reply are the accepted ones, or at least fit the schemas of the tools.

The rules for Python are those of the Berkeley Function-Calling Leaderboard (`ast_checker.py` of bfcl-eval 2026.3.23),
followed to the letter, because scores are compared with the leaderboard's. Its types are read from JSON Schema:
`number` is its float, `object` its dict, `array` its list and tuple, `string` its text and "any".

Schemas and patterns come from strangers: call this only in a process with limits of time and memory.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from reasoning_answers import codec
from reasoning_answers.calls import (
    STANDARD_TYPES,
    AcceptedCalls,
    AnyCalls,
    DecodedCall,
    decoded,
    request_name,
    standard,
)
from reasoning_answers.records import CallSign, OfferedTool, SentCall
from reasoning_answers.text import quoted

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
"""The error in a list of calls, in one word."""

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
    """Why a list of calls is not accepted. words: the call and parameter, the value found, and the accepted values."""

    rule: CallRule
    words: str


def fault_of(
    calls: Sequence[DecodedCall],
    reference: AcceptedCalls | AnyCalls,
    tools: Sequence[OfferedTool],
    unfits: Iterable[Fault | None] | None = None,
) -> Fault | None:
    """Why the reference does not accept `calls`; None if it does. unfits: `unfits_of` the calls, if known."""
    if reference == "none":
        return (
            Fault("a call", f"the reply calls {_named(calls)}, but the reference accepts no calls") if calls else None
        )
    if not calls and reference != "auto":
        return Fault("no call", "the reply contains no calls")
    if reference == "some":
        return None
    if isinstance(reference, AcceptedCalls):
        return _unlike(calls, reference, _by_name(tools))
    return next(filter(None, unfits_of(calls, tools) if unfits is None else unfits), None)


def canonical(calls: Sequence[DecodedCall], references: Iterable[AcceptedCalls | AnyCalls]) -> str:
    """The calls as a text that is the same for equal lists of calls, or equal sets if their order does not matter."""
    texts = [codec.encode([call.name, call.arguments or {}], in_order=True).decode() for call in calls]
    is_any = any(isinstance(reference, AcceptedCalls) and reference.any_order for reference in references)
    return "\n".join(sorted(texts) if is_any else texts)


def _named(calls: Sequence[DecodedCall]) -> str:
    """The names of the calls, in words."""
    return ", ".join(quoted(call.name) for call in calls[:4]) + (" …" if len(calls) > 4 else "") + " was"


# --- the schema
_SIGNS: dict[CallRule, CallSign] = {
    "arguments no JSON": "no_json",
    "name of a call": "unknown_name",
    "schema": "schema",
    "unreadable schema": "unreadable_schema",
}


def signs_of(
    calls: Sequence[DecodedCall], tools: Sequence[OfferedTool], unfits: Iterable[Fault | None]
) -> list[CallSign]:
    """Whether calls fit the schemas of their tools, or how they do not, and whether Moonshot's validator accepts them;
    empty if there are none. unfits: `unfits_of` the calls.
    """
    signs, offered = sorted({_SIGNS[fault.rule] for fault in unfits if fault is not None}), _by_name(tools)
    valid: list[CallSign] = ["valid_for_kimi"] if all(_is_valid_for_kimi(call, offered) for call in calls) else []
    return [*(signs or ["fits"]), *valid] if calls else []


def _by_name(tools: Sequence[OfferedTool]) -> dict[str, OfferedTool]:
    """The tools by name; the first one of a name counts."""
    return {tool.name: tool for tool in reversed(tools)}


def unfits_of(calls: Sequence[DecodedCall], tools: Sequence[OfferedTool]) -> Iterator[Fault | None]:
    """Why each call does not fit the schema of its tool; None for a call that does."""
    offered = _by_name(tools)
    return (schema_fault(call, offered.get(call.name), f"call {number}") for number, call in enumerate(calls, 1))


@lru_cache(maxsize=1_024)
def _validator(schema: bytes) -> tuple[Any, bool]:
    """The validator for a schema, which is given as JSON and may have the leaderboard's types, and whether the schema
    is valid itself.
    """
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    given = codec.decode(schema, dict[str, Any])
    kind = validators.validator_for(given, default=Draft202012Validator)
    # An empty registry: a `$ref` to an address is not fetched.
    validator, is_valid = kind(standard(given), registry=Registry()), False
    with contextlib.suppress(Exception):  # it can break the library anywhere
        kind.check_schema(given)
        is_valid = True
    return validator, is_valid


def misfit(calls: Iterable[SentCall], tool: OfferedTool) -> tuple[str, str] | None:
    """Why the first call that does not fit a tool does not fit it: (rule, in words); None if all fit."""
    faults = (schema_fault(call, tool if call.name == tool.name else None, "a call") for call in map(decoded, calls))
    return next(((fault.rule, fault.words) for fault in faults if fault is not None), None)


def schema_fault(call: DecodedCall, tool: OfferedTool | None, where: str) -> Fault | None:
    """Why a call does not fit the schema of its tool; None if it does. tool: None if no tool has its name."""
    from jsonschema import exceptions

    if tool is None:
        return Fault("name of a call", f"{where}: no tool is named {quoted(call.name)}")
    if (unread := _unread(call, where)) is not None:
        return unread
    try:
        validator, _ = _validator(codec.encode(tool.parameters))
        error = exceptions.best_match(validator.iter_errors(call.arguments or {}))
        place = "" if error is None else ".".join(map(str, error.absolute_path)) or "arguments"
    except Exception as broken:  # noqa: BLE001  a stranger's schema can break the library anywhere
        return Fault(
            "unreadable schema", f"{where}, {call.name}: this tool's schema cannot be read: {quoted(str(broken))}"
        )
    return None if error is None else Fault("schema", f"{where}, {call.name}: {place}: {quoted(error.message)}")


def _is_valid_for_kimi(call: DecodedCall, offered: Mapping[str, OfferedTool]) -> bool:
    """Whether Moonshot's K2-Vendor-Verifier (`validate_tool_call` of its tool_calls_eval.py at 0bc5061) accepts a call.

    It rejects a tool without parameters and a schema that is not valid itself. Missing arguments are no JSON, but `NaN`
    is.
    """
    try:
        parameters = offered[call.name].parameters
        validator, is_valid = _validator(codec.encode(parameters))
        arguments = call.arguments if isinstance(call.arguments, dict) else json.loads(call.arguments)
        return bool(parameters and is_valid and validator.is_valid(arguments))
    except Exception:  # noqa: BLE001  as there
        return False


def _unread(call: DecodedCall, where: str) -> Fault | None:
    """The error in arguments that are not a JSON object; None if they are one."""
    if isinstance(call.arguments, dict) or not call.arguments:
        return None
    return Fault(
        "arguments no JSON", f"{where}, {call.name}: the arguments are not a JSON object: {quoted(call.arguments)}"
    )


# --- the accepted values
def _unlike(calls: Sequence[DecodedCall], reference: AcceptedCalls, offered: Mapping[str, OfferedTool]) -> Fault | None:
    """Why the calls do not match the reference's calls one for one; None if they do."""
    if len(calls) != len(reference.calls):
        return Fault("number of calls", f"{len(calls)} calls; accepted: {len(reference.calls)}")
    left = list(enumerate(calls, 1))
    for accepted in reference.calls:
        ((name, parameters),) = accepted.items()
        name = request_name(name, offered)
        tool = offered.get(name, OfferedTool(name=name))
        faults = dict[int, Fault]()
        for position, (number, call) in enumerate(left if reference.any_order else left[:1]):
            if (fault := _unlike_one(call, tool, parameters, f"call {number}")) is None:
                del left[position]
                break
            faults[fault.rule == "name of a call"] = fault
        else:
            return faults[min(faults)]
    return None


def _unlike_one(call: DecodedCall, tool: OfferedTool, accepted: dict[str, list[Any]], where: str) -> Fault | None:
    """Why a call is not the accepted call of `tool`; None if it is."""
    if call.name != tool.name:
        return Fault("name of a call", f"{where}: {quoted(call.name)} was called; accepted: {quoted(tool.name)}")
    if (unread := _unread(call, where)) is not None:
        return unread
    arguments = call.arguments or {}
    assert isinstance(arguments, dict)
    where = f"{where}, {call.name}"
    # A schema that states no parameters, or that cannot be read, leaves the verdict to the accepted values.
    properties, required = tool.parameters.get("properties"), tool.parameters.get("required")
    types = properties if isinstance(properties, dict) else dict.fromkeys(accepted)
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in arguments:
            return Fault("parameters", f"{where}: the required argument {quoted(name)} is missing")
    for name, value in arguments.items():
        if name not in types or name not in accepted:
            return Fault("parameters", f"{where}: {quoted(name)} is not accepted")
        rule = _unlike_value(value, accepted[name], types[name])
        if rule is not None:
            return Fault(rule, f"{where}: {quoted(name)} is {_shown(value)}; accepted: {_choices(accepted[name])}")
    for name, values in accepted.items():
        if name not in arguments and "" not in values:
            return Fault("parameters", f"{where}: {quoted(name)} is missing; accepted: {_choices(values)}")
    return None


def _unlike_value(value: Any, accepted: list[Any], schema: Any) -> CallRule | None:
    """The rule that a value violates if it is not among the accepted values; None if it is."""
    expected = _type_of(schema)
    item = _type_of(schema.get("items")) if expected is list and isinstance(schema, Mapping) else None
    if expected is float and type(value) is int:
        value = float(value)
    if expected is not None and not _is_of_type(value, accepted, expected, item):
        return "type of a value"
    stated = _stated_type(accepted)
    if expected is None:
        expected = stated
    # A text in place of another type is the name of a variable, and must match the reference.
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
    """The Python type for a schema's single type; None if the schema names no type or several."""
    name = schema.get("type") if isinstance(schema, Mapping) else None
    return _TYPES.get(STANDARD_TYPES.get(name, name)) if isinstance(name, str) else None


def _stated_type(accepted: list[Any]) -> type | None:
    """The type of the first accepted value; None if the only accepted choice is to leave the parameter out."""
    return next((type(each) for each in accepted if each != ""), None)


def _is_of_type(value: Any, accepted: list[Any], expected: type, item: type | None) -> bool:
    """Whether a value and its items have the type in the schema, or the type of the accepted values."""
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
    """A text normalized for comparison; any other value unchanged."""
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _listed(values: Any) -> list[Any]:
    """A list unchanged, a text as a list of characters, as on the leaderboard; any other value wrapped in a list."""
    return list(values) if isinstance(values, list | str) else [values]


def _is_same_object(value: dict[str, Any], accepted: Any) -> bool:
    """Whether an object has the accepted values. accepted: key → list of values, "" if the key may be left out."""
    if not isinstance(accepted, dict) or not isinstance(value, dict):
        return False
    for key, each in value.items():
        if key not in accepted or _plain(each) not in [_plain(one) for one in _listed(accepted[key])]:
            return False
    return all(key in value or "" in _listed(values) for key, values in accepted.items())


def _are_same_objects(value: list[Any], accepted: Any) -> bool:
    """Whether a list of objects matches the accepted objects, in order."""
    accepted = _listed(accepted)
    return len(value) == len(accepted) and all(map(_is_same_object, value, accepted))


# --- in words
def _shown(value: Any) -> str:
    """A value as JSON, safe to print."""
    return quoted(codec.encode(value).decode())


def _choices(values: list[Any]) -> str:
    """Accepted values in words."""
    return ", ".join("left out" if each == "" else _shown(each) for each in values[:6])
