"""The replies of ../shared/dialects as real servers send them: what is read of each, however its bytes are split.

Where that folder is missing, these tests are left out.

For: harness.core.token_counts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from harness.client.apis.api import Turn
from harness.client.apis.table import api_of
from harness.client.protocol.failures import RequestFailed, failure_of_status
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.core.contradictions import contradictions
from harness.core.literals import ApiName
from harness.core.reply_notes import NO_TEXT, ODD_END, RESTATED
from harness.core.token_counts import MAX_STATED_TOKENS, plausible_usage, stated_usage
from harness.testing import Said
from tests.budget import share_of
from tests.client.dialects import TEXT, THOUGHT, engine_messages, engine_responses
from tests.client.test_events import DONE, delta, event, reply
from tests.generation.called_tools import calling

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "dialects"
LINES = FOLDER / "expected.jsonl"
# A message of the phase `commentary` is no part of the answer. An overload is waited for as a limit is.
CHANGED: dict[str, dict[str, str]] = {
    "r15_two_messages_phase.sse": {"text": "\\boxed{42}", "reasoning": "Let me compute.\n\nChecking."},
    "m11_error_after_text.sse": {"kind": "rate_limited"},
    "m32_error_529.json": {"kind": "rate_limited"},
}
CASES = [json.loads(line) for line in LINES.read_text("utf-8").splitlines()] if LINES.exists() else []
COUNTS = ("prompt", "completion", "reasoning", "cached")
NOTES = {
    "r07": "filter",
    "r08": "refusal",
    "r17": "brand_new",
    "r22": "tool call",
    "r23": "code_interpreter_call",
    "r26": "text after",
    "m10": "refusal",
    "m13": "no [DONE]",
    "m18": "sparkle_delta",
    "m20": "tool call",
    "m22": "pause_turn",
}


def read(api: str, pieces: list[bytes], status: int = 200, *, tool: bool = False) -> Reply | RequestFailed:
    """What comes of a body that arrives in these pieces. tool: one was offered."""
    if status != 200:
        return failure_of_status(status, b"".join(pieces))
    shape = api_of(api).with_calls if tool else api_of(api)
    parser = ReplyParser(shape, started=0.0, started_utc=0.0, max_body_bytes=1 << 24)
    try:
        for piece in pieces:
            parser.feed(piece, 1.0)
        return parser.finish(1.0)
    except RequestFailed as failure:
        return failure


def outcome(got: Reply | RequestFailed) -> dict[str, Any]:
    """It in the words of the file."""
    if isinstance(got, RequestFailed):
        return {"outcome": "failure", "kind": got.kind}
    usage = got.usage
    stated = (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cached_tokens)
    counts = dict(zip(COUNTS, stated, strict=True))
    said = {"text": got.text, "reasoning": got.reasoning, "finish": got.finish_reason}
    return {"outcome": "reply", **said, "usage": counts if any(counts.values()) else None}


@pytest.mark.skipif(not CASES, reason="there is no ../shared/dialects")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_a_reply_is_read_as_it_must_be_however_it_is_split(case: dict[str, Any]) -> None:
    data, status = (FOLDER / "streams" / case["file"]).read_bytes(), case.get("status", 200)
    whole = read(case["api"], [data], status)
    got = outcome(whole)
    case |= CHANGED.get(case["file"], {})
    assert got == {name: case.get(name, value) for name, value in got.items()}
    notes = getattr(whole, "notes", ())
    assert NOTES.get(case["file"][:3], "") in " ".join(notes)
    events = data.replace(b"\n\n", b"\n\n\0").split(b"\0")
    for pieces in (
        events,
        [data[i : i + 1] for i in range(len(data))],
        *([data[:i], data[i:]] for i in share_of(range(len(data)))),
    ):
        again = read(case["api"], pieces, status)
        assert (outcome(again), getattr(again, "notes", ())) == (got, notes)
    for pieces in ([data], events, [data[i : i + 1] for i in range(len(data))]):
        with_tool = read(case["api"], pieces, status, tool=True)
        is_call = bool(getattr(with_tool, "calls", ()))
        said = tuple(note for note in notes if not (is_call and note.startswith(NO_TEXT)))
        assert (outcome(with_tool), getattr(with_tool, "notes", ())) == (got, said)
        calls = [msgspec.to_builtins(call) for call in getattr(with_tool, "calls", ())]
        assert calls == [{**call, "id": call["id"] or ""} for call in case.get("calls", ())]
    assert not getattr(whole, "calls", ())
    if isinstance(with_tool, Reply) and with_tool.calls:
        form = api_of(case["api"]).tools
        assert form is not None
        turns = form.answered(with_tool.turn, ["out"] * len(calls))
        handed = json.dumps(turns)
        assert handed.count('"out"') == len(calls)
        assert all(call["arguments"] in handed.replace('\\"', '"') or call["name"] in handed for call in calls)
        assert with_tool.reasoning is None or with_tool.reasoning in handed


def _bodies(api: str, what: str) -> list[bytes]:
    """A stream and a whole body of `api`, whose reply is that and no text."""
    words = "I can not help."
    said: dict[str, Any] = {
        "a refusal": {"refusal": words},
        "a tool call": {"tool_calls": [{"id": "c"}]},
        "a field that is not read": {"answer": words},
        "nothing was sent": {},
        "": {"content": words},
    }[what]
    finish = {"index": 0, "finish_reason": "eos" if not said else "stop"}
    chat = [{"choices": [{"index": 0, name: said}]} for name in ("delta", "message")]
    item: dict[str, Any] = {"type": "message", "content": [{"type": "refusal", "refusal": words}]}
    item = {
        "a tool call": {"type": "function_call"},
        "a field that is not read": {"type": "new"},
        "nothing was sent": {"type": "message", "content": []},
        "": {"type": "message", "content": [{"type": "output_text", "text": words}]},
    }.get(what, item)
    ended = {"object": "response", "status": "completed", "output": [item]}
    block = {
        "a tool call": {"type": "tool_use"},
        "a field that is not read": {"type": "new"},
        "": {"type": "text", "text": words},
    }.get(what)
    stop = "refusal" if what == "a refusal" else "end_turn"
    message = {"type": "message", "content": [block] if block else None, "stop_reason": stop}
    begun = [{"type": "content_block_start", "index": 0, "content_block": block}] if block else []
    last = {"type": "message_delta", "delta": {"stop_reason": stop}}
    streams: dict[str, tuple[list[Any], Any]] = {
        "chat": ([chat[0], {"choices": [finish]}], {"choices": [chat[1]["choices"][0] | finish]}),
        "responses": ([{"type": "response.completed", "response": ended}], ended),
        "messages": ([*begun, last], message),
    }
    streams["completions"] = streams["chat"]
    assert api in streams, f"write in `_bodies` how {api} says each of these; return [] for what it cannot say"
    events, whole = streams[api]
    return [b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in events), json.dumps(whole).encode()]


@pytest.mark.parametrize("what", ["a refusal", "a tool call", "a field that is not read", "nothing was sent", ""])
@pytest.mark.parametrize("api", get_args(ApiName))
def test_a_reply_without_text_has_one_cause_in_every_dialect(api: str, what: str) -> None:
    for body in _bodies(api, what):
        got = read(api, [body])
        assert isinstance(got, Reply), got
        causes = [note for note in got.notes if note.startswith(NO_TEXT)]
        assert (bool(got.text), len(causes)) == (not what, bool(what))
        assert what in "".join(causes)
        if what == "a refusal" and api != "messages":
            assert got.refusal == "I can not help."


HANDED_BACK = {
    # arguments as they came: whether they go back as they are
    '{"code": "1"}': True,
    '{ "kode" : 1 }': True,
    "{}": True,
    '{"code": "1"': False,
    '{"code": "1"}}': False,
    '{"code": "1\n2"}': False,
    '{"x": NaN}': False,
    "print(1)": False,
    "[1]": False,
    "null": False,
    "": False,
    "\ud800": False,
}


@pytest.mark.parametrize("arguments", HANDED_BACK, ids=ascii)
def test_arguments_go_back_as_a_json_object(arguments: str) -> None:
    events: dict[str, dict[str, Any]] = {
        "chat": {
            "choices": [
                {"message": {"tool_calls": [{"id": "c", "function": {"name": "python", "arguments": arguments}}]}}
            ]
        },
        "responses": {
            "object": "response",
            "status": "completed",
            "output": [{"type": "function_call", "call_id": "c", "name": "python", "arguments": arguments}],
        },
        "messages": {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": arguments},
        },
    }
    strict = arguments.replace("\ud800", "\ufffd")
    for api, arrived in events.items():
        form = api_of(api).tools
        assert form is not None
        reader = form.reader()
        if api == "messages":
            block = {"type": "tool_use", "id": "c", "name": "python", "input": {}}
            reader.event({"type": "content_block_start", "index": 0, "content_block": block})
        reader.event(arrived)
        calls, carry = reader.calls_and_parts()
        assert calls[0].arguments == (arguments or "{}" if api == "messages" else arguments), "stored as it came"
        first = form.answered(Turn(None, None, calls, carry), ["out"])[0]
        sent = {
            "chat": lambda turn: turn["tool_calls"][0]["function"]["arguments"],
            "responses": lambda turn: turn["arguments"],
            "messages": lambda turn: turn["content"][0]["input"],
        }[api](first)
        as_object = {"": {}, '{"x": NaN}': {"x": None}}.get(arguments, {"code": strict})
        if api == "messages":
            assert sent == (json.loads(arguments) if HANDED_BACK[arguments] else as_object)
        elif HANDED_BACK[arguments]:
            assert sent == arguments
        else:
            assert json.loads(sent) == as_object


def responses_stream(last: dict[str, Any], deltas: str = "The answer is 4.", item: str | None = None) -> bytes:
    """A reply of one message, whose last event has the fields `last`. item: its text when its item is done."""
    message = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": deltas}]}
    ended = {"id": "r1", "object": "response", "model": "m", "status": "completed", "output": [message]} | last
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r1", "model": "m", "status": "in_progress"}},
        *({"type": "response.output_text.delta", "output_index": 0, "delta": piece} for piece in deltas),
        *([{"type": "response.output_item.done", "output_index": 0, "item": message | said(item)}] if item else []),
        {"type": ended.pop("type", "response.completed"), "response": ended},
    ]
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "output_text", "text": text}], **more}


WHOLE = "The answer is 4."
LASTS: dict[str, tuple[dict[str, Any], str | None, str | None, bool]] = {
    # the last event, the text of the finished item, the finish reason (None: refused), whether it is noted
    "the last token": ({"output": [{"type": "message", **said(" 4.")}]}, WHOLE, "completed", True),
    "only white space differs": (
        {"output": [{"type": "message", **said("\tThe answer\nis 4.\f")}]},
        None,
        "completed",
        False,
    ),
    "longer, two against one": ({"output": [{"type": "message", **said("<think>" + WHOLE)}]}, WHOLE, "completed", True),
    "a lost delta": ({"output": [{"type": "message", **said(WHOLE + "2")}]}, None, None, False),
    "a lost delta, said twice": ({"output": [{"type": "message", **said(WHOLE + "2")}]}, WHOLE + "2", None, False),
    "no status": ({"status": None}, None, "completed", False),
    "another id": ({"id": "r2"}, None, "completed", True),
    "another id and text": ({"id": "r2", "output": [{"type": "message", **said("No.")}]}, None, None, False),
    "another model": ({"model": "m-2026"}, None, "completed", True),
    "response.done": ({"type": "response.done"}, None, "completed", False),
    "unfinished by its status": ({"type": "response.ping", "status": "in_progress"}, None, None, False),
    "incomplete without a reason": ({"status": "incomplete", "incomplete_details": None}, None, "incomplete", False),
    "failed": ({"type": "response.failed", "status": None}, None, None, False),
}


TWICE = "The answer is is 4."


@pytest.mark.parametrize(
    ("deltas", "item", "last", "text"),
    [
        (TWICE, WHOLE, WHOLE, WHOLE),
        (WHOLE * 2, WHOLE, WHOLE, WHOLE),
        ("4. The answer is ", WHOLE, WHOLE, WHOLE),
        (TWICE, None, WHOLE, TWICE),
        (TWICE, WHOLE, "4.", TWICE),
        (TWICE, "4.", "4.", TWICE),
    ],
)
def test_two_equal_wholes_precede_repeated_or_moved_pieces(deltas: str, item: str | None, last: str, text: str) -> None:
    got = read("responses", [responses_stream({"output": [{"type": "message", **said(last)}]}, deltas, item)])
    assert isinstance(got, Reply), got
    assert (got.text, RESTATED in got.notes) == (text, text != deltas)


@pytest.mark.parametrize("where", ["added", "done", "last"])
def test_a_phase_stated_last_keeps_commentary_out_of_the_answer(where: str) -> None:
    items = [{"type": "message", **said("I look it up first, then I answer.")}, {"type": "message", **said("4")}]
    phased = [item | {"phase": phase} for item, phase in zip(items, ("commentary", "final_answer"), strict=True)]
    events: list[dict[str, Any]] = []
    for place, (item, stated) in enumerate(zip(items, phased, strict=True)):
        text = item["content"][0]["text"]
        begun = (stated if where == "added" else item) | {"content": []}
        events += [
            {"type": "response.output_item.added", "output_index": place, "item": begun},
            {"type": "response.output_text.delta", "output_index": place, "delta": text},
            {"type": "response.output_item.done", "output_index": place, "item": item if where == "last" else stated},
        ]
    events.append({"type": "response.completed", "response": {"status": "completed", "output": phased}})
    got = read("responses", [b"data: %s\n\n" % json.dumps(each).encode() for each in events])
    assert isinstance(got, Reply), got
    assert (got.text, got.reasoning) == ("4", "I look it up first, then I answer.")
    assert (RESTATED in got.notes) == (where != "added")


@pytest.mark.parametrize(("delta", "done"), [("", False), ("4", False), ("4", True), ("5", True)])
def test_an_answer_without_deltas_behind_commentary_is_read(delta: str, done: bool) -> None:
    """delta, done: what came of the answer before the last event. Two equal wholes precede a delta."""
    comment = {"type": "message", "phase": "commentary", **said("I look it up.")}
    answer = {"type": "message", "phase": "final_answer", **said("4")}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": comment | {"content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "I look it up."},
        {"type": "response.output_item.done", "output_index": 0, "item": comment},
        *([{"type": "response.output_text.delta", "output_index": 1, "delta": delta}] if delta else []),
        *([{"type": "response.output_item.done", "output_index": 1, "item": answer}] if done else []),
        {"type": "response.completed", "response": {"status": "completed", "output": [comment, answer]}},
    ]
    got = read("responses", [b"data: %s\n\n" % json.dumps(each).encode() for each in events])
    assert isinstance(got, Reply), got
    assert (got.text, got.reasoning) == ("4", "I look it up.")


@pytest.mark.parametrize("name", LASTS)
def test_the_deltas_are_the_reply_unless_one_was_lost(name: str) -> None:
    last, item, finish, is_noted = LASTS[name]
    got = read("responses", [responses_stream(last, item=item)])
    if finish is None:
        assert isinstance(got, RequestFailed)
    else:
        assert isinstance(got, Reply), got
        assert (got.text, got.finish_reason, ODD_END in got.notes) == (WHOLE, finish, is_noted)


def test_the_last_statement_of_an_item_counts_and_calls_may_be_deltas_only() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "python", "arguments": ""}
    thought = {"type": "reasoning", "id": "t", "encrypted_content": "old"}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        {"type": "response.output_item.added", "output_index": 1, "item": call},
        *({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": each} for each in "{}"),
    ]
    newer = thought | {"encrypted_content": "new"}
    for output, carry in ([], [thought, call | {"arguments": "{}"}]), ([newer, call | {"arguments": '{"x":1}'}],) * 2:
        last = {"type": "response.completed", "response": {"status": "completed", "output": output}}
        got = read("responses", [b"data: %s\n\n" % json.dumps(each).encode() for each in (*events, last)], tool=True)
        assert isinstance(got, Reply)
        assert [*got.carry] == carry
        assert [each.arguments for each in got.calls] == [carry[1]["arguments"]]


ENGINES = [("messages", each) for each in engine_messages().items()]
ENGINES += [("responses", each) for each in engine_responses().items()]


@pytest.mark.parametrize(("api", "stream"), ENGINES, ids=lambda each: each if isinstance(each, str) else each[0])
def test_the_streams_of_engines_are_read_without_a_doubt(api: str, stream: tuple[str, bytes]) -> None:
    got = read(api, [stream[1]])
    assert isinstance(got, Reply), got
    assert (got.text, got.reasoning, got.notes) == (TEXT, THOUGHT, ())


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_a_piece_of_a_call_is_a_sign_that_the_model_works(api: str) -> None:
    parser = ReplyParser(api_of(api).with_calls, started=0.0, started_utc=0.0, max_body_bytes=1 << 24)
    for arrived in calling("{}", name="f").events(api):
        parser.feed(arrived, 5.0)
    assert (parser.n_tokens, parser.last_token_at) == (0, 5.0)


@pytest.mark.parametrize("index", [[], None, 9])
def test_a_piece_of_a_call_for_no_block_is_refused_by_name(index: object) -> None:
    event = {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": "{}"}}
    got = read("messages", [f"data: {json.dumps(event)}\n\n".encode()], tool=True)
    assert isinstance(got, RequestFailed)
    assert "it continues a partial_json block that has not started" in str(got)


# -- token counts ------------------------------------------------------------------------------------------------------


DETAILS, OF_PROMPT, CACHED = "completion_tokens_details", "prompt_tokens_details", "cached_tokens"


def chat(prompt: int | None, completion: int | None, total: int | None, thought: int | None = None, **more: Any) -> Any:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    return {**counts, **more} if thought is None else {**counts, DETAILS: {"reasoning_tokens": thought}, **more}


MAKERS: dict[str, tuple[Any, tuple[int | None, ...]]] = {
    "OpenAI": (chat(32, 1008, 1040, 1000), (32, 1008, 1000)),
    "xAI": (chat(32, 8, 1040, 1000, **{OF_PROMPT: {"text_tokens": 32, CACHED: 6}}), (32, 1008, 1000)),
    "Gemini": (chat(32, 8, 1040), (32, 1008, 1000)),
    "no count of its text": (chat(32, None, 1040), (32, 1008, None)),
    "Gemini without thought": (chat(32, 8, 40), (32, 8, None)),
    "DeepSeek": (chat(32, 9, 41, 5, prompt_cache_hit_tokens=30, prompt_cache_miss_tokens=2), (32, 9, 5)),
    "OpenRouter": (chat(32, 9, 41, 5, cost=0.1, **{OF_PROMPT: {CACHED: 30, "cache_write_tokens": 0}}), (32, 9, 5)),
    "vLLM": (chat(32, 9, 41, **{OF_PROMPT: None}), (32, 9, None)),
    "SGLang": (chat(32, 9, 41, reasoning_tokens=4, **{OF_PROMPT: {CACHED: 1}}), (32, 9, 4)),
    "a cache apart": (chat(32, 9, 741, 4, cache_read_input_tokens=500, cache_creation_input_tokens=200), (732, 9, 4)),
    "a cache and a thought apart": (chat(32, 9, 641, 100, **{OF_PROMPT: {CACHED: 500}}), (532, 109, 100)),
    "audio apart": (chat(32, 9, 61, **{OF_PROMPT: {"audio_tokens": 20, CACHED: 0}}), (52, 9, None)),
    "neither form": (chat(32, 8, 1240, 1000), (32, 1208, 1200)),
    "no total": (chat(32, 8, None, 1000), (32, 8, None)),
    "a thought that fits nowhere": (chat(32, 8, 40, 1000), (32, 8, None)),
    "a total that is too small": (chat(32, 9, 12, 4), (32, 9, 4)),
    "a total that is none": (chat(32, 9, -1, 4), (32, 9, 4)),
    "a prompt that is none": (chat(0, 9, 1040, 4), (None, 9, 4)),
}
"""A usage of the chat API, with the counts of prompt, completion and reasoning that are read of it."""

ODD = {"no total", "a thought that fits nowhere", "a total that is too small"}
"""Those of which a count is dropped, and a note says so."""


def counts(got: Any) -> tuple[int | None, ...]:
    assert isinstance(got, Reply), got
    return got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.reasoning_tokens


@pytest.mark.parametrize("maker", MAKERS)
def test_the_counts_of_each_maker_add_up_and_what_is_dropped_is_said(maker: str) -> None:
    usage, expected = MAKERS[maker]
    # The last usage of a stream counts, whole: a total of an earlier one is not taken with it.
    stale = event(delta(content="4") | {"usage": chat(32, 1, 99_999)})
    got = reply(stale, event(delta("stop", content="2") | {"usage": usage}), DONE)
    assert counts(got) == expected
    assert bool(contradictions(got.claims(4096))) == (maker in ODD)


def test_the_other_apis_count_reasoning_in_replies_and_caches_in_prompts() -> None:
    of_cache = {"cache_read_input_tokens": 500, "cache_creation_input_tokens": 200}
    claude = {"input_tokens": 9, "output_tokens": 80, **of_cache, "output_tokens_details": {"thinking_tokens": 70}}
    gpt = {"input_tokens": 9, "output_tokens": 80, "output_tokens_details": {"reasoning_tokens": 70}}
    stated = (
        ("messages", claude, 709, 80),
        ("responses", gpt | {"total_tokens": 89}, 9, 80),
        ("responses", gpt | {"total_tokens": 159}, 9, 150),
    )
    for api, usage, prompt, completion in stated:
        assert counts(read(api, [event(Said().whole(api) | {"usage": usage})[6:]])) == (prompt, completion, 70)


def test_counts_that_cannot_be_true_are_unknown() -> None:
    names = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens")
    for odd in (0, -1, MAX_STATED_TOKENS + 1, 3.0, True, "3", None, [], {}):
        usage = {**dict.fromkeys(names, odd), DETAILS: odd, OF_PROMPT: odd, "prompt_cache_hit_tokens": odd}
        got = read("chat", [event(delta("stop", content="4") | {"usage": usage})])
        assert isinstance(got, Reply), got
        assert [getattr(got.usage, name) or None for name in names] == [None] * 4
    most = plausible_usage(
        stated_usage({names[1]: MAX_STATED_TOKENS, DETAILS: {}, names[2]: 4, "prompt_cache_hit_tokens": 3}),
        has_text=True,
        has_reasoning=False,
    )
    assert (most.completion_tokens, most.reasoning_tokens, most.cached_tokens) == (MAX_STATED_TOKENS, 4, 3)
    for cached in (8, 9):
        stated = stated_usage({names[0]: 8, names[1]: 1, OF_PROMPT: {"cached_tokens": cached}})
        known = plausible_usage(stated, has_text=True, has_reasoning=False).cached_tokens
        assert known == (8 if cached == 8 else None), "no more tokens are cached than sent"
    assert counts(read("chat", [event(delta("stop", content="4") | {"usage": "nonsense"})])) == (None,) * 3


def test_draft_counts_of_a_whole_reply_are_read() -> None:
    body = delta("stop") | {
        "usage": chat(3, 12, 15),
        "metrics": {"speculative_decoding": {"num_spec_steps": 4, "num_accepted_draft_tokens": 8}},
    }
    body["choices"][0] = {"index": 0, "finish_reason": "stop", "message": {"content": "4", "role": "assistant"}}
    got = read("chat", [json.dumps(body).encode()])
    assert isinstance(got, Reply), got
    assert (got.usage.spec_tokens, got.usage.spec_steps) == (12, 4)
