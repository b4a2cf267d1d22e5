"""Writing prompts: what the APIs share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import msgspec

from harness.client.apis.api import Parts
from harness.core import codec
from harness.core.records import Message, OfferedTool
from harness.tools.table import arguments_of


def prompt_of(
    system: str, turns: str, messages: Sequence[Message], turn: Callable[[Message], list[dict[str, Any]]]
) -> dict[str, Any]:
    """The fields of a prompt: the first message, if it is a system message, as `system`, and all others as `turns`.

    turn: makes the turns of a message.
    """
    first = {system: messages[0].content} if messages[0].role == "system" else {}
    return {**first, turns: [*chain.from_iterable(map(turn, messages[len(first) :]))]}


def content_of(message: Message, parts: Parts) -> str | list[dict[str, Any]]:
    """The content of a message as it is sent: a text, or a list of parts."""
    if not (message.breaks or message.media):
        return message.content
    return [
        parts["text"](part) if isinstance(part, str) else parts[part.kind](part.url or f"sha256:{part.sha256}")
        for part in message.parts
    ]


def function_of(tool: OfferedTool) -> dict[str, Any]:
    """A tool as a function with a schema, which is strict if the question says so."""
    function: dict[str, Any] = msgspec.to_builtins(tool)
    return function


def sendable(name: str, arguments: str) -> str:
    """A call's arguments as a server accepts them back: a JSON object (`arguments_of`). name: the tool's."""
    with contextlib.suppress(codec.DecodeError):
        value: Any = codec.decode(arguments.encode("utf-8", "surrogatepass"))
        if isinstance(value, dict) and "\\ud" not in arguments.lower():
            return arguments
    return codec.encode_strictly(arguments_of(name, arguments)).decode()
