"""Function calls as answers: the tools a question offers, the calls it accepts, and the calls of a reply.

A reference in JSON is "none" (no call), "some" (at least one), "schema" (calls that fit the schemas of their tools), or
{"calls": [{NAME: {PARAMETER: [accepted values]}}], "any_order": false}, in the form of the Berkeley Function-Calling
Leaderboard: "" among the accepted values means that the parameter may be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from reasoning_answers import codec
from reasoning_answers.records import OfferedTool, SentCall

AnyCalls = Literal["none", "some", "schema"]
_WORDS: dict[str, AnyCalls] = {"none": "none", "some": "some", "schema": "schema"}

_STANDARD_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}
"""Type in the leaderboard's files → type in JSON Schema."""


class AcceptedCalls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reference that lists calls: each maps one name to the accepted values of its parameters."""

    calls: tuple[dict[str, dict[str, list[Any]]], ...]
    any_order: bool = False


class DecodedCall(msgspec.Struct, frozen=True):
    """A call in a reply. arguments: an object, or the text that the reply had in its place."""

    name: str
    arguments: dict[str, Any] | str = {}


class _LoggedCall(DecodedCall, frozen=True):
    id: str | None = None


def request_name(name: str) -> str:
    """The name of a tool in requests: APIs reject dots, so they become underscores, as the leaderboard does."""
    return name.replace(".", "_")


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
            'is not a valid reference for calls: expected "none", "some", "schema" or '
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
        right = {"none": "[]", "some": codec.encode(other).decode(), "schema": None}[accepted]
        return right, "[]" if accepted == "some" else codec.encode(other).decode()
    calls = []
    for call in accepted.calls:
        ((name, parameters),) = call.items()
        stated = {parameter: [each for each in values if each != ""] for parameter, values in parameters.items()}
        arguments = {parameter: _one_of(values[0]) for parameter, values in stated.items() if values}
        calls.append({"name": request_name(name), "arguments": arguments})
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
    """Tools from JSON or its value: a list of {"name", "description", "parameters"}, or of a request's
    entries.

    Types of the leaderboard's files, such as `dict`, become those of JSON Schema. Raises `ValueError` with the end of a
    sentence.
    """
    try:
        listed = codec.decode(value) if isinstance(value, str | bytes) else value
        bare = [
            each.get("function", each) if isinstance(each, Mapping) else each
            for each in msgspec.convert(listed, list[Any])
        ]
        tools = msgspec.convert(bare, tuple[OfferedTool, ...])
        parameters = [_standard(tool.parameters) for tool in tools]
    except (ValueError, msgspec.MsgspecError, TypeError, RecursionError) as error:
        raise ValueError(f'expected a list of objects with "name", "description" and "parameters" ({error})') from error
    return tuple(
        msgspec.structs.replace(tool, name=request_name(tool.name), parameters=schema)
        for tool, schema in zip(tools, parameters, strict=True)
    )


def _standard(schema: Any) -> Any:
    """A schema with its types converted to those of JSON Schema."""
    if isinstance(schema, Mapping):
        kind = schema.get("type")
        standard = {name: _standard(value) for name, value in schema.items()}
        return standard | {"type": _STANDARD_TYPES.get(kind, kind)} if isinstance(kind, str) else standard
    return [_standard(value) for value in schema] if isinstance(schema, list) else schema


def read_calls(reply: Any, *, as_requested: bool = False) -> tuple[SentCall, ...]:
    """The calls of a reply from JSON or its value: a list of {"name", "arguments"}, or of entries of its
    `tool_calls`; arguments are an object or a string.

    as_requested: return the names of tools as requests have them. Raises `ValueError` with the end of a sentence.
    """
    try:
        listed = msgspec.convert(codec.decode(reply) if isinstance(reply, str) else reply, list[Any])
        flat = [
            {"id": each.get("id"), **each["function"]}
            if isinstance(each, Mapping) and isinstance(each.get("function"), Mapping)
            else each
            for each in listed
        ]
        calls = msgspec.convert(flat, tuple[_LoggedCall, ...])
    except (ValueError, msgspec.MsgspecError) as error:
        raise ValueError(f'expected a list of objects with "name" and "arguments" ({error})') from error
    return tuple(
        SentCall(
            id=call.id or "",
            name=request_name(call.name) if as_requested else call.name,
            arguments=call.arguments if isinstance(call.arguments, str) else codec.encode(call.arguments).decode(),
        )
        for call in calls
    )


def answer_of(calls: Iterable[SentCall]) -> str:
    """The calls of a reply as one text that is the same for equal calls: JSON arguments are normalized."""
    return codec.encode([decoded(call) for call in calls]).decode()


def calls_in(answer: str) -> Sequence[DecodedCall]:
    """The calls in a text that `answer_of` returned."""
    return codec.decode(answer, list[DecodedCall])


def decoded(call: SentCall) -> DecodedCall:
    """A call with its arguments as an object, empty if there are none; arguments of another type are unchanged."""
    try:
        return DecodedCall(call.name, codec.decode(call.arguments.strip() or "{}", dict[str, Any]))
    except ValueError:
        return DecodedCall(call.name, call.arguments)
