"""Replies with calls of a tool, in the form of each API, for `harness.testing.FakeServer`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.testing import FAULTS, Answer, Reply, Request, Said, http, serving


def calling(
    *arguments: str, text: str = "", reasoning: str = "", name: str = "python", finish: str = "tool_calls"
) -> Said:
    """A reply that calls a tool with each of these arguments, as sent."""
    return Said(text, 3, reasoning, finish, tuple((name, each) for each in arguments))


def calls(*codes: str, text: str = "", reasoning: str = "") -> Said:
    """A reply that calls the tool `python` with each of these codes."""
    return calling(*(json.dumps({"code": code}) for code in codes), text=text, reasoning=reasoning)


def _called_before(body: Any) -> list[str]:
    """The arguments of the calls that a request hands back as text."""
    turns = [turn for turn in body.get("input") or body.get("messages") or () if isinstance(turn, dict)]
    functions = [call["function"] for turn in turns for call in turn.get("tool_calls") or ()]
    items = [turn for turn in turns if turn.get("type") == "function_call"]
    return [function["arguments"] for function in (*functions, *items)]


def handed_back(body: Any) -> list[Any]:
    """The arguments of the calls that a request of any API hands back, decoded."""
    contents = [turn.get("content") for turn in body.get("messages") or ()]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return [*map(json.loads, _called_before(body)), *(each["input"] for each in blocks if each["type"] == "tool_use")]


def _is_object(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(text), dict)
    return False


def scripted(*texts: str | Said, faults: Sequence[str] = (), model: str = "test-model") -> Answer:
    """As `harness.testing.scripted`, but the turns of the model in a request decide its text: none, the first; one,
    the second. A call that is handed back with arguments that are no JSON object is refused.
    """
    failures = iter([FAULTS[name] for name in faults])

    def reply(request: Request) -> Reply:
        if any(not _is_object(text) for text in _called_before(request.json)):
            return [http(400, {"error": {"message": "Expecting value: line 1 column 1 (char 0)"}})]  # as vLLM
        if failure := next(failures, ()):
            return failure
        # A turn of the model on Responses is several items, one of which is its reasoning.
        turns = request.json.get("input") or request.json["messages"]
        n = sum(
            (turn.get("role") == "assistant" and "id" not in turn) or turn.get("type") == "reasoning" for turn in turns
        )
        said = texts[n % len(texts)]
        return replace(Said(said) if isinstance(said, str) else said, model=model)

    return serving(reply, model)
