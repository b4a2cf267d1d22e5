"""Replies as each server writes them, made here: what they say is known, and no server is needed to have them.

Their features are those that recordings of the real servers show (`make test-recordings` reads such recordings):

| server | its streams |
| --- | --- |
| vLLM | the first event has an empty text; the last text comes with the finish reason; usage with no choices |
| SGLang | `reasoning_content: null` beside each text; the finish reason comes without a text; `matched_stop` |
| llama.cpp | the first text is null; keys in another order; timings beside the usage; a comment while nothing comes |
| llama-cpp-python | a blank after each colon and comma; no usage at all |
| LiteLLM | usage beside one empty choice |
| transformers | finish reason and usage in one event; no `[DONE]` |
| sglang-router | the stream of the server behind it, refusals of its own |
| TGI | no blank after `data:`; an empty id; a role beside each text; `usage: null` (`router/src/chat.rs`) |
| Ollama | a role and a content beside each reasoning, too (`openai/openai.go`) |
| OpenRouter | comments first; `native_finish_reason`, `reasoning_details` (openrouter.ai/docs, streaming) |

The streams of Responses and Messages follow llama.cpp's `tools/server/server-task.cpp`, Ollama's `openai/responses.go`
and `anthropic/anthropic.go`, vLLM's and SGLang's `entrypoints/anthropic/serving.py`, OpenRouter's page of streaming,
and, for a LiteLLM that puts thoughts into a block of text, github.com/BerriAI/litellm/issues/32357.

An engine that dies in mid-stream sends an error event and `[DONE]` (vLLM), or breaks off (SGLang, llama.cpp); a proxy
between may cut a stream, leave `[DONE]` out, or spoil an event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.client.protocol.failures import FailureKind

DONE = b"data: [DONE]\n\n"
PIECES = ("1", "7", " +", " 2", "5", " is", " 4", "2", ",", " Größe", " ∑", " 🌱", "\n\n", "so", ' "', "42", '"', ".")
THOUGHTS = ("user", "\n", "Let", " me", " add", ":", " 40", " +", " 2")
TEXT, THOUGHT = "".join(PIECES), "".join(THOUGHTS)
USAGE = {"prompt_tokens": 44, "total_tokens": 44 + len(PIECES), "completion_tokens": len(PIECES)}


class Recording(NamedTuple):
    """A reply's body, and what it is: text, reasoning and the tokens it counts, or the kind of its failure."""

    server: str
    case: str
    body: bytes
    text: str = ""
    reasoning: str = ""
    tokens: int | None = None
    failure: FailureKind | None = None
    status: int = 200

    @property
    def name(self) -> str:
        return f"{self.server}: {self.case}"


Event = dict[str, Any]


@dataclass(frozen=True)
class Dialect:
    """How a server writes a stream.

    event: (choices, usage) as an event of its own. thinks: the field of reasoning. opening: of the first delta. beside:
    what stands beside every delta. text_with_finish: the last text comes with the finish reason. usage: "apart" with no
    choices, "beside" one empty choice, "with" the finish reason, or "never". blank: after each colon and comma. head:
    of the stream. field: begins each event.
    """

    event: Callable[[list[Event], Event | None], Event]
    thinks: str = "reasoning_content"
    opening: tuple[tuple[str, Any], ...] = (("role", "assistant"), ("content", ""))
    beside: tuple[tuple[str, Any], ...] = ()
    text_with_finish: bool = False
    usage: str = "apart"
    blank: bool = False
    done: bytes = DONE
    head: bytes = b""
    field: bytes = b"data: "

    def wire(self, choices: list[Event], usage: Event | None = None) -> bytes:
        separators = (", ", ": ") if self.blank else (",", ":")
        event = self.event(choices, usage)
        return self.field + json.dumps(event, ensure_ascii=False, separators=separators).encode() + b"\n\n"

    def choice(self, finish: str | None = None, index: int = 0, **delta: Any) -> Event:
        return {"index": index, "delta": dict(self.beside) | delta, "logprobs": None, "finish_reason": finish}

    def stream(
        self,
        pieces: tuple[str, ...] = PIECES,
        thoughts: tuple[str, ...] = (),
        finish: str = "stop",
        counted: bool = True,
        running: bool = False,
    ) -> Iterator[bytes]:
        """The events of a whole reply. running: each event states the usage so far."""

        def so_far(n: int) -> Event | None:
            return {"prompt_tokens": 44, "total_tokens": 44 + n, "completion_tokens": n} if running else None

        yield self.head + self.wire([self.choice(**dict(self.opening))], so_far(0))
        parts = [(self.thinks, one) for one in thoughts] + [("content", one) for one in pieces]
        last = parts.pop() if self.text_with_finish else None
        for n, (field, text) in enumerate(parts, 1):
            yield self.wire([self.choice(**{field: text})], so_far(n))
        ended = self.choice(finish, **({last[0]: last[1]} if last else {}))
        yield self.wire([ended], USAGE if counted and self.usage == "with" else so_far(len(PIECES)))
        if counted and self.usage in ("apart", "beside"):
            yield self.wire([{"index": 0, "delta": {}}] if self.usage == "beside" else [], USAGE)
        yield self.done


def _vllm(choices: list[Event], usage: Event | None) -> Event:
    for choice in choices:
        if choice["delta"].get("role") is None:
            choice |= {"stop_reason": None, "token_ids": None} if choice["finish_reason"] else {"token_ids": None}
    head = {"id": "chatcmpl-a47c", "object": "chat.completion.chunk", "created": 1795155660, "model": "smol"}
    return head | {"choices": choices} | ({"usage": usage} if usage else {})


def _sglang(choices: list[Event], usage: Event | None) -> Event:
    for choice in choices:
        choice["matched_stop"] = 2 if choice["finish_reason"] == "stop" else None
    counts = usage and usage | {"prompt_tokens_details": None, "reasoning_tokens": 0}
    head = {"id": "cbc04f04", "object": "chat.completion.chunk", "created": 1795157874, "model": "smol"}
    return head | {"choices": choices} | ({"usage": counts} if counts else {})


def _llama_cpp(choices: list[Event], usage: Event | None) -> Event:
    turned = [{key: choice[key] for key in ("finish_reason", "index", "delta")} for choice in choices]
    tail = {"created": 1795155260, "id": "chatcmpl-kDTY", "model": "smollm2-135m", "system_fingerprint": "b0-unknown"}
    counts = {"usage": usage, "timings": {"prompt_n": 1, "predicted_ms": 40.249}} if usage else {}
    return {"choices": turned} | tail | {"object": "chat.completion.chunk"} | counts


def _llama_cpp_python(choices: list[Event], usage: Event | None) -> Event:
    head = {"id": "chatcmpl-72ca", "model": "smol", "created": 1795157899, "object": "chat.completion.chunk"}
    return head | {"choices": choices} | ({"usage": usage} if usage else {})


def _litellm(choices: list[Event], usage: Event | None) -> Event:
    stated = [{key: one for key, one in choice.items() if one is not None} for choice in choices]
    head = {"id": "chatcmpl-fjSH", "created": 1795156614, "model": "smol-lite", "object": "chat.completion.chunk"}
    return head | {"choices": stated} | ({"usage": usage} if usage else {})


def _transformers(choices: list[Event], usage: Event | None) -> Event:
    stated = [{key: one for key, one in choice.items() if one is not None} for choice in choices]
    tail = {"created": 1795156974, "model": "m@main", "object": "chat.completion.chunk", "system_fingerprint": ""}
    return {"id": "d55b8e25", "choices": stated} | tail | ({"usage": usage} if usage else {})


def _tgi(choices: list[Event], usage: Event | None) -> Event:
    head = {"object": "chat.completion.chunk", "id": "", "created": 1795155260, "model": "smol"}
    return head | {"system_fingerprint": "3.3.6-native", "choices": choices, "usage": usage}


def _ollama(choices: list[Event], usage: Event | None) -> Event:
    head = {"id": "chatcmpl-321", "object": "chat.completion.chunk", "created": 1795155260, "model": "smol:135m"}
    return head | {"system_fingerprint": "fp_ollama", "choices": choices} | ({"usage": usage} if usage else {})


def _openrouter(choices: list[Event], usage: Event | None) -> Event:
    stated = [choice | {"native_finish_reason": choice.get("finish_reason")} for choice in choices]
    head = {"id": "gen-1795155260-x", "provider": "Together", "model": "smol", "object": "chat.completion.chunk"}
    return head | {"created": 1795155260, "choices": stated} | ({"usage": usage | {"cost": 0.1}} if usage else {})


NO_TEXT = (("role", "assistant"), ("content", None))
ROLE = (("role", "assistant"),)
DIALECTS = {
    "vllm": Dialect(_vllm, thinks="reasoning", text_with_finish=True),
    "sglang": Dialect(_sglang, beside=(("reasoning_content", None),)),
    "llama.cpp": Dialect(_llama_cpp, opening=NO_TEXT),
    "llama-cpp-python": Dialect(_llama_cpp_python, opening=ROLE, usage="never", blank=True),
    "litellm": Dialect(_litellm, opening=ROLE, usage="beside"),
    "transformers": Dialect(_transformers, opening=ROLE, usage="with", done=b""),
    "sglang-router": Dialect(_llama_cpp, opening=NO_TEXT),
    "tgi": Dialect(_tgi, beside=(*ROLE, ("content", "")), field=b"data:", text_with_finish=True),
    "ollama": Dialect(_ollama, thinks="reasoning", beside=(*ROLE, ("content", ""))),
    "openrouter": Dialect(
        _openrouter,
        thinks="reasoning",
        beside=(*ROLE, ("content", ""), ("reasoning", None), ("reasoning_details", [])),
        head=b": OPENROUTER PROCESSING\n\n" * 2,
    ),
}


def recordings() -> list[Recording]:
    """Every reply that a server ends in order: streams, raw completions, whole bodies."""
    return [one for server, dialect in DIALECTS.items() for one in _whole(server, dialect)]


def several_answers() -> list[Recording]:
    """Streams of three answers at once, as `n: 3` asks for them; the first is the reply."""
    return [Recording(server, "n3", b"".join(_three(dialect)), TEXT) for server, dialect in DIALECTS.items()]


def _whole(server: str, dialect: Dialect) -> Iterator[Recording]:
    counts = dialect.usage != "never"
    tokens = len(PIECES) if counts else None

    def of(case: str, text: str = TEXT, reasoning: str = "", counted: bool = counts, **options: Any) -> Recording:
        body = b"".join(dialect.stream(counted=counted, **options))
        return Recording(server, case, body, text, reasoning, len(PIECES) if counted else None)

    yield of("stop")
    yield of("length", finish="length")
    yield of("no usage", counted=False)
    running = b"".join(dialect.stream(running=True))
    yield Recording(server, "continuous usage", running, TEXT, tokens=len(PIECES))
    yield of("reasoning then content", reasoning=THOUGHT, thoughts=THOUGHTS)
    yield of("reasoning cut", "", THOUGHT, pieces=(), thoughts=THOUGHTS, finish="length")
    yield of("one token", PIECES[0], pieces=PIECES[:1], finish="length")
    yield of("nothing said", "", pieces=("",))
    probabilities = {"content": [{"token": "1", "logprob": -0.25, "bytes": [49], "top_logprobs": []}]}
    events = list(dialect.stream())
    yield Recording(
        server,
        "logprobs",
        b"".join(
            event.replace(b'"logprobs":null', b'"logprobs":' + json.dumps(probabilities).encode()) for event in events
        ),
        TEXT,
        tokens=tokens,
    )
    yield Recording(server, "completions", b"".join(_completion(dialect)), TEXT)
    yield Recording(server, "comments", b": ping\n\n".join(events) + b":\n\n", TEXT, tokens=tokens)
    yield Recording(server, "crlf", b"".join(events).replace(b"\n", b"\r\n"), TEXT, tokens=tokens)
    message = {"role": "assistant", "content": TEXT, dialect.thinks: THOUGHT}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    body = {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    yield Recording(server, "whole body", json.dumps(body, ensure_ascii=False).encode(), TEXT, THOUGHT, len(PIECES))


def _three(dialect: Dialect) -> Iterator[bytes]:
    for index in range(3):
        yield dialect.wire([dialect.choice(index=index, **dict(dialect.opening))])
    for piece in PIECES:
        for index in range(3):
            yield dialect.wire([dialect.choice(index=index, content=piece if index == 0 else f"{index}")])
    for index in (2, 0, 1):
        yield dialect.wire([dialect.choice("stop", index)])
    yield dialect.done


def _completion(dialect: Dialect) -> Iterator[bytes]:
    head = {"id": "cmpl-1", "object": "text_completion", "created": 7, "model": "m"}
    for n, piece in enumerate(PIECES, 1):
        finish = "stop" if n == len(PIECES) else None
        event = head | {"choices": [{"index": 0, "text": piece, "logprobs": None, "finish_reason": finish}]}
        yield b"data: " + json.dumps(event, separators=(", ", ": ") if dialect.blank else (",", ":")).encode() + b"\n\n"
    yield dialect.done


def _named(events: list[Event], *, plain: bool = False) -> bytes:
    """Events of an API that names them. plain: without their names."""
    heads = ("" if plain else f"event: {event['type']}\n" for event in events)
    return b"".join(f"{head}data: {json.dumps(event)}\n\n".encode() for head, event in zip(heads, events, strict=True))


def engine_messages() -> dict[str, bytes]:
    """Engine → its stream of the Messages API: a thought, then a text."""
    begun = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "smol"}
    bare: Event = {"type": "message_start", "message": begun | {"usage": {"input_tokens": 44, "output_tokens": 0}}}
    start = {"type": "message_start", "message": bare["message"] | {"stop_reason": None, "stop_sequence": None}}
    end: Event = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 18}}

    def block(kind: str, index: int, **more: Any) -> Event:
        return {"type": f"content_block_{kind}", "index": index, **more}

    def said(index: int, kind: str, pieces: tuple[str, ...]) -> list[Event]:
        return [block("delta", index, delta={"type": f"{kind}_delta", kind: piece}) for piece in pieces]

    thought, text = said(0, "thinking", THOUGHTS), said(1, "text", PIECES)
    thinks = block("start", 0, content_block={"type": "thinking", "thinking": ""})
    tells, *stops = block("start", 1, content_block={"type": "text", "text": ""}), block("stop", 0), block("stop", 1)
    plain = [thinks, *thought, stops[0], tells, *text, stops[1]]
    signed = [
        block("start", 0, content_block=thinks["content_block"] | {"signature": ""}), *thought,
        *said(0, "signature", ("0f3c9e",)), *plain[len(thought) + 1 :],
    ]  # fmt: skip
    streams = {
        "vllm": [start, *signed],
        "sglang": [start, *plain],
        "llama.cpp": [start, thinks, *thought, tells, *text, *said(0, "signature", ("",)), *stops],
        "ollama": [bare, *plain],
        "openrouter": [start, {"type": "ping"}, *signed],
        "litellm": [start, start, tells | {"index": 0}, *thought, *said(0, "text", PIECES), stops[0]],
    }
    for name, events in streams.items():
        more = {} if name == "ollama" else {"stop_sequence": None}
        events += [end | {"delta": end["delta"] | more}, {"type": "message_stop"}]
    comments = {"openrouter": b": OPENROUTER PROCESSING\n\n"}
    return {name: comments.get(name, b"") + _named(events) for name, events in streams.items()}


def engine_responses() -> dict[str, bytes]:
    """Engine → its stream of the Responses API: a thought, then a text."""
    head = {"id": "resp_1", "object": "response", "model": "smol"}
    usage = {"input_tokens": 44, "output_tokens": 27, "total_tokens": 71, "input_tokens_details": {"cached_tokens": 0}}

    def events(kind: str, *, places: bool) -> list[Event]:
        """kind: of the thought's events. places: whether events state the place of their item."""
        at = [{"output_index": 0}, {"output_index": 1, "content_index": 0}] if places else [{}, {}]
        of = "summary" if "summary" in kind else "content"
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], of: [{"type": f"{kind}_text", "text": THOUGHT}]}
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": TEXT}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        name = {"summary": "reasoning_summary_text", "reasoning": "reasoning_text"}[kind]
        last = {"type": "response.completed", "response": head | {"status": "completed", "output": [thought, message]}}
        last["response"] |= {"error": None, "usage": usage}  # type: ignore[operator]
        return [
            {"type": "response.created", "response": head | {"status": "in_progress"}},
            {"type": "response.in_progress", "response": head | {"status": "in_progress"}},
            {"type": "response.output_item.added", "item": thought | {of: []}, **at[0]},
            *({"type": f"response.{name}.delta", "item_id": "rs_1", "delta": each, **at[0]} for each in THOUGHTS),
            {"type": f"response.{name}.done", "item_id": "rs_1", "text": THOUGHT, **at[0]},
            {"type": "response.output_item.done", "item": thought, **at[0]},
            {"type": "response.output_item.added", "item": message | {"content": []}, **at[1]},
            {"type": "response.content_part.added", "item_id": "msg_1", "part": part | {"text": ""}, **at[1]},
            *({"type": "response.output_text.delta", "item_id": "msg_1", "delta": each, **at[1]} for each in PIECES),
            {"type": "response.output_text.done", "item_id": "msg_1", "text": TEXT, **at[1]},
            {"type": "response.content_part.done", "item_id": "msg_1", "part": part, **at[1]},
            {"type": "response.output_item.done", "item": message, **at[1]},
            last,
        ]

    return {
        "llama.cpp": _named(events("reasoning", places=False)),
        "ollama": _named(events("summary", places=True)),
        "vllm": _named(events("reasoning", places=True)),
        "openrouter": b": OPENROUTER PROCESSING\n\n" + _named(events("reasoning", places=True), plain=True) + DONE,
    }


def broken() -> list[Recording]:
    """Streams that are no reply: the engine died, or a proxy between spoilt them."""
    died = {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "param": None, "code": 500}
    found = []
    for server, dialect in DIALECTS.items():
        events = list(dialect.stream())
        half = b"".join(events[: len(events) // 2])
        error = b"data: " + json.dumps({"error": died}).encode() + b"\n\n" + DONE
        found += [
            Recording(server, "engine died", half + error, failure="server"),
            Recording(server, "broken off", half, failure="cut"),
            Recording(server, "broken off in an event", half + events[-3][:20], failure="cut"),
            Recording(server, "waits, then broken off", half + b":\n\n:\n\n", failure="cut"),
            Recording(server, "done in the middle", half + DONE, failure="cut"),
            Recording(server, "an event spoilt", half + b"data: {spoilt\n\n" + DONE, failure="malformed"),
            Recording(server, "gives up", b"".join(dialect.stream(finish="abort")), failure="server"),
        ]
    return found


def _flat(message: str, code: int, kind: str = "BadRequestError") -> Event:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def _nested(message: str, code: int, kind: str = "BadRequestError") -> Event:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def refusals() -> list[Recording]:
    """Bodies of refused requests, each server's own shape and words."""
    long_vllm = "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049."
    empty_vllm = "Cannot apply chat template to an empty conversation. Provide at least one message."
    long_llama = "request (12031 tokens) exceeds the available context size (2048 tokens), try increasing it"
    long_sglang = "The input (9033 tokens) is longer than the model's context length (8192 tokens)."
    over_sglang = "Requested token count exceeds the model's maximum context length of 8192 tokens."
    kind = "exceed_context_size_error"
    in_llama = {"error": {"code": 400, "message": long_llama, "type": kind, "n_ctx": 2048}}
    rows: list[tuple[str, str, int, Event, FailureKind]] = [
        ("vllm", "too long", 400, _nested(long_vllm, 400), "too_long"),
        ("vllm", "max_tokens too large", 400,
         _nested("max_tokens=1000000 cannot be greater than max_model_len=2048.", 400), "too_long"),
        ("vllm", "bad temperature", 400, _nested("temperature must be non-negative, got -1.0.", 400), "rejected"),
        ("vllm", "no messages", 400, _nested(empty_vllm, 400), "rejected"),
        ("vllm", "no tokens", 400, _nested("max_tokens must be at least 1, got 0.", 400), "rejected"),
        ("vllm", "wrong model", 404, _nested("The model `x` does not exist.", 404, "NotFoundError"), "refused"),
        ("sglang", "too long", 400, _flat(long_sglang, 400), "too_long"),
        ("sglang", "max_tokens too large", 400, _flat(over_sglang, 400), "too_long"),
        ("sglang", "bad temperature", 400, _flat("temperature must be a non-negative finite number", 400), "rejected"),
        ("sglang", "no messages", 400, _flat("Messages cannot be empty.", 400), "rejected"),
        ("llama.cpp", "too long", 400, in_llama, "too_long"),
        ("litellm", "too long", 400,
         _nested(f"litellm.ContextWindowExceededError: OpenAIException - {long_llama}", 400, "None"), "too_long"),
        ("litellm", "wrong model", 400,
         _nested("Invalid model name passed in model=x. Call `/v1/models` to view available models.", 400), "refused"),
        ("sglang-router", "too long", 400, in_llama, "too_long"),
        ("sglang-router", "no messages", 400, _nested("messages cannot be empty", 400), "rejected"),
        ("sglang-router", "no tokens", 400, _nested("max_tokens must be positive", 400), "rejected"),
    ]  # fmt: skip
    return [
        Recording(server, case, json.dumps(body).encode(), failure=failure, status=status)
        for server, case, status, body, failure in rows
    ]
