"""How a logged request lets the model call its tools: which tool it must call, and whether several at once."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import Any, get_args

from harness.core.literals import ToolChoice
from reasoning_answers.host import read_calls, read_reference


def accepted_calls(row: Mapping[str, Any], stated: Any) -> str:
    """The reference for calls of a logged request: the stated one, or what its `tool_choice` accepts. Raises
    `ValueError` with the end of a sentence.
    """
    choice = row.get("tool_choice") or "auto"
    unstated = choice if choice in ("none", "auto") else "schema"
    (reference,) = read_reference(unstated if stated in (None, "") else stated, "calls").accepted
    return reference


def read_calling(row: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The `tool_choice` and `parallel_tool_calls` of a logged request, as in the chat API; empty if it has neither.

    names: the names of the tools that it offers. Raises `ValueError`: a sentence.
    """
    calling = {name: row[name] for name in ("tool_choice", "parallel_tool_calls") if row.get(name) is not None}
    choice = calling.get("tool_choice", "auto")
    if isinstance(choice, Mapping):
        name = ""
        with contextlib.suppress(ValueError):  # it names none
            name = read_calls([choice], names)[0].name
        calling["tool_choice"] = {"type": "function", "function": {"name": name}}
        choice = "auto" if name in names else choice
    if choice not in get_args(ToolChoice):
        raise ValueError(f"tool_choice must be {', '.join(get_args(ToolChoice))} or the name of an offered tool")
    if not isinstance(calling.get("parallel_tool_calls", True), bool):
        raise ValueError("parallel_tool_calls must be true or false")
    return calling
