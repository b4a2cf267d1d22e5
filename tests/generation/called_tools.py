"""Replies with calls of a tool, in the form of each API, for `harness.testing.FakeServer`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from harness.testing import DONE, FAULTS, Answer, Request, Step, delta, event_stream, http, message, named, response
from harness.testing import scripted as scripted_texts


class Calls(NamedTuple):
    """A reply with calls of a tool. arguments: of each call, as sent. finish: the finish reason of the chat API."""

    arguments: tuple[str, ...]
    text: str = ""
    reasoning: str = ""
    name: str = "python"
    finish: str = "tool_calls"


def calls(*codes: str, text: str = "", reasoning: str = "") -> Calls:
    """A reply that calls the tool `python` with each of these codes, for `scripted`."""
    return Calls(tuple(json.dumps({"code": code}) for code in codes), text, reasoning)


def calls_events(reply: Calls, api: str, model: str) -> list[bytes]:
    """The events of a reply with calls in the form of an API; in chat, the arguments come in two pieces."""
    called = [(n, f"call_{n}", text) for n, text in enumerate(reply.arguments)]
    if api == "responses":
        thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": reply.reasoning}]}
        items = [thought | {"encrypted_content": "sealed"}, *response(reply.text)["output"]]
        form: dict[str, Any] = {"type": "function_call", "name": reply.name}
        items += [form | {"call_id": name, "arguments": text} for _, name, text in called]
        done = [named("response.output_item.done", output_index=n, item=item) for n, item in enumerate(items)]
        return [*done, named("response.completed", response=response("", model=model) | {"output": items})]
    if api == "messages":
        form = {"type": "tool_use", "name": reply.name, "input": {}}
        blocks: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": reply.reasoning}),
            ({"type": "text", "text": ""}, {"type": "text_delta", "text": reply.text}),
            *((form | {"id": name}, {"type": "input_json_delta", "partial_json": text}) for _, name, text in called),
        ]
        events = [named("message_start", message=message("", model) | {"content": [], "stop_reason": None})]
        for n, (start, piece) in enumerate(blocks):
            events.append(named("content_block_start", index=n, content_block=start))
            events += [named("content_block_delta", index=n, delta=piece), named("content_block_stop", index=n)]
        last = named("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 3})
        return [*events, last, named("message_stop")]
    events = [delta(reasoning_content=reply.reasoning), delta(reply.text)]
    for n, name, text in called:
        function = {"name": reply.name, "arguments": text[:5]}
        events.append(delta(tool_calls=[{"index": n, "id": name, "type": "function", "function": function}]))
        events.append(delta(tool_calls=[{"index": n, "function": {"arguments": text[5:]}}]))
    return [*events, delta(finish=reply.finish, usage={"prompt_tokens": 9, "completion_tokens": 3}), DONE]


def _called_before(body: Any) -> list[str]:
    """The arguments of the calls that a request hands back."""
    turns = [turn for turn in body.get("input") or body.get("messages") or () if isinstance(turn, dict)]
    functions = [call["function"] for turn in turns for call in turn.get("tool_calls") or ()]
    items = [turn for turn in turns if turn.get("type") == "function_call"]
    return [function["arguments"] for function in (*functions, *items)]


def _is_object(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(text), dict)
    return False


def scripted(*texts: str | Calls, faults: Sequence[str] = (), model: str = "test-model") -> Answer:
    """As `harness.testing.scripted`; a reply with `calls` is always a stream.

    The model's turns in a request decide which text it gets: none, the first; one, the second. A call that is handed
    back with arguments that are no JSON object is refused.
    """
    failures = iter([FAULTS[name] for name in faults])

    def answer(request: Request) -> Iterable[Step]:
        """The model list, or the text for this turn."""
        if request.method == "GET":
            return scripted_texts(model=model)(request)
        if any(not _is_object(text) for text in _called_before(request.json)):
            return [http(400, {"error": {"message": "Expecting value: line 1 column 1 (char 0)"}})]  # as vLLM
        if failure := next(failures, ()):
            return failure
        # A turn of the model on Responses is several items, one of which is its reasoning.
        turns = request.json.get("input") or request.json["messages"]
        n = sum(
            (turn.get("role") == "assistant" and "id" not in turn) or turn.get("type") == "reasoning" for turn in turns
        )
        text = texts[n % len(texts)]
        if isinstance(text, Calls):
            return event_stream(*calls_events(text, request.path.rpartition("/")[2], model), end=())
        return scripted_texts(text, model=model)(request)

    return answer
