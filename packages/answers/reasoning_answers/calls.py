"""Function calls as answers: the tools a question offers, the calls it accepts, and the calls of a reply.

A reference in JSON is "none" (no call), "some" (at least one), "schema" (calls that fit the schemas of their tools),
"auto" (as "schema", or no call: the right answer is unknown), or
{"calls": [{NAME: {PARAMETER: [accepted values]}}], "any_order": false}, in the form of the Berkeley Function-Calling
Leaderboard: "" among the accepted values means that the parameter may be left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from reasoning_answers import codec
from reasoning_answers.records import OfferedTool, SentCall
from reasoning_answers.text import quoted

AnyCalls = Literal["none", "some", "schema", "auto"]
_WORDS: dict[str, AnyCalls] = {word: word for word in get_args(AnyCalls)}

STANDARD_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}
"""Type in the leaderboard's files → type in JSON Schema."""


_KEYS_OF_A_CALL = frozenset({"id", "call_id", "type", "function", "name", "arguments", "input", "index", "status"})
"""Keys of a call in any API. With others, a call without arguments may have them under a wrong name."""


class AcceptedCalls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reference that lists calls: each maps one name to the accepted values of its parameters."""

    calls: tuple[dict[str, dict[str, list[Any]]], ...]
    any_order: bool = False


class DecodedCall(msgspec.Struct, frozen=True):
    """A call in a reply. arguments: an object, or the text that the reply had in its place; an empty one means none."""

    name: str
    arguments: dict[str, Any] | str = {}


class _LoggedCall(DecodedCall, frozen=True):
    id: str | None = None


def request_name(name: str, offered: Container[str] = ()) -> str:
    """The name of a tool in requests: that of an offered tool, or with underscores for dots, as the leaderboard has it,
    since APIs reject dots.
    """
    return name if name in offered else name.replace(".", "_")


def read_reference(reference: Any) -> AcceptedCalls | AnyCalls:
    """A reference from JSON or its value; a word needs no quotes. Raises `ValueError` with the end of a sentence."""
    if isinstance(reference, str) and (word := _WORDS.get(reference.strip().strip('"'))) is not None:
        return word
    try:
        if isinstance(reference, str):
            accepted = codec.decode(reference, AcceptedCalls)
        else:
            accepted = msgspec.convert(reference, AcceptedCalls)
    except (ValueError, msgspec.MsgspecError) as error:
        raise ValueError(
            'is not a valid reference for calls: expected "none", "some", "schema", "auto" or '
            f'{{"calls": [{{NAME: {{PARAMETER: [accepted values]}}}}]}} ({error})'
        ) from error
    if not accepted.calls or any(len(call) != 1 for call in accepted.calls):
        raise ValueError(
            'is not a valid reference for calls: "calls" must list at least one call, and each call must have '
            "exactly one name"
        )
    return accepted


def written_reference(reference: Any) -> str:
    """A reference as the text that a question stores. Raises `ValueError` as `read_reference` does."""
    return codec.encode(read_reference(reference)).decode()


def examples_of(reference: str) -> tuple[str | None, str]:
    """A list of calls that a reference accepts (None if its schemas decide) and one that it rejects, both as JSON."""
    accepted, other = read_reference(reference), [{"name": "no tool has this name"}]
    if isinstance(accepted, str):
        right = {"some": codec.encode(other).decode(), "schema": None}.get(accepted, "[]")
        return right, "[]" if accepted == "some" else codec.encode(other).decode()
    calls = []
    for call in accepted.calls:
        ((name, parameters),) = call.items()
        calls.append({"name": request_name(name), "arguments": _one_of(parameters)})
    return codec.encode(calls).decode(), codec.encode(calls[1:]).decode()


def _one_of(value: Any) -> Any:
    """A concrete value for an accepted value; in an accepted object, each key has a list of values."""
    if isinstance(value, list):
        return [_one_of(each) if isinstance(each, dict) else each for each in value]
    if not isinstance(value, dict):
        return value
    listed = ((key, each if isinstance(each, list) else [each]) for key, each in value.items())
    stated = {key: [each for each in values if each != ""] for key, values in listed}
    return {key: _one_of(values[0]) for key, values in stated.items() if values}


def read_tools(value: Any) -> tuple[OfferedTool, ...]:
    """Tools from JSON or its value: a list of {"name", "description", "parameters"}, or of a request's entries.

    The entries of a request stay as they are. In a function alone, as in the leaderboard's files, dots of the name
    become underscores, and types such as `dict` those of JSON Schema. Raises `ValueError` with the end of a sentence.
    """
    try:
        listed = msgspec.convert(codec.decode(value) if isinstance(value, str | bytes) else value, list[Any])
        return tuple(map(_tool, listed))
    except (ValueError, msgspec.MsgspecError, TypeError, RecursionError) as error:
        raise ValueError(f'expected a list of objects with "name", "description" and "parameters" ({error})') from error


def _tool(entry: Any) -> OfferedTool:
    """A tool in any API's form. Raises as `msgspec.convert`."""
    fields = dict(msgspec.convert(entry, dict[str, Any]))
    fields |= msgspec.convert(fields.get("function", {}), dict[str, Any])
    fields["parameters"] = fields.get("parameters") or fields.get("input_schema") or {}
    tool = msgspec.convert({name: each for name, each in fields.items() if each is not None}, OfferedTool)
    if {"function", "type"} & fields.keys():
        return tool
    return msgspec.structs.replace(tool, name=request_name(tool.name), parameters=standard(tool.parameters))


def standard(schema: Any) -> Any:
    """A schema with its types converted to those of JSON Schema."""
    if isinstance(schema, Mapping):
        kind = schema.get("type")
        values = {name: standard(value) for name, value in schema.items()}
        return values | {"type": STANDARD_TYPES.get(kind, kind)} if isinstance(kind, str) else values
    return [standard(value) for value in schema] if isinstance(schema, list) else schema


def read_calls(reply: Any, offered: Container[str] | None = None) -> tuple[SentCall, ...]:
    """The calls in a reply, given as JSON or its value: a list of {"name", "arguments"} or of an API's tool calls;
    arguments are an object or a string. offered: the names of the offered tools, if a name may need underscores for
    dots.

    Raises `ValueError` with the end of a sentence.
    """
    try:
        listed = msgspec.convert(codec.decode(reply) if isinstance(reply, str) else reply, list[dict[str, Any]])
        calls = msgspec.convert(list(map(_fields, listed)), tuple[_LoggedCall, ...])
    except (ValueError, msgspec.MsgspecError) as error:
        raise ValueError(f'expected a list of objects with "name" and "arguments" ({error})') from error
    names = [call.name if offered is None else request_name(call.name, offered) for call in calls]
    return tuple(
        SentCall(id=call.id or "", name=name, arguments=_as_text(call.arguments))
        for call, name in zip(calls, names, strict=True)
    )


def _fields(entry: dict[str, Any]) -> dict[str, Any]:
    """The fields of a call in any API's form. Raises `msgspec.ValidationError` if its arguments have an unknown key."""
    fields = entry | msgspec.convert(entry.get("function", {}), dict[str, Any])
    stated = [fields[key] for key in ("arguments", "input") if fields.get(key) is not None]
    if not stated and (unknown := fields.keys() - _KEYS_OF_A_CALL):
        raise msgspec.ValidationError(f"{quoted(min(unknown))} is not a key of a call")
    return {**fields, "id": fields.get("call_id") or fields.get("id"), "arguments": stated[0] if stated else {}}


def _as_text(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else codec.encode(arguments).decode()


def answer_of(calls: Iterable[SentCall]) -> str:
    """The calls of a reply as one text that is the same for equal calls: JSON is normalized, and keys are sorted."""
    return codec.encode([decoded(call) for call in calls], in_order=True).decode()


def calls_in(answer: str) -> Sequence[DecodedCall]:
    """The calls in a text that `answer_of` returned."""
    return codec.decode(answer, list[DecodedCall])


def decoded(call: SentCall) -> DecodedCall:
    """A call with its arguments as an object; arguments of another type are unchanged."""
    try:
        return DecodedCall(call.name, codec.decode(call.arguments, dict[str, Any]))
    except ValueError:
        return DecodedCall(call.name, call.arguments.strip() and call.arguments)
