"""The batch reader is the general one, only faster: same texts from the same bytes, or nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.client.fast.batches import Template, Templates, TokenBatch, learn_template
from tests.budget import examples
from tests.client.dialects import DIALECTS, PIECES


def vllm(text: str, *, field: str = "content", **extra: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {field: text}, "logprobs": None, "finish_reason": None, "token_ids": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 7,
        "model": "m",
        "choices": [choice],
        **extra,
    }


def frame(value: Any, ascii_only: bool = False, **dumps: Any) -> bytes:
    """An event in an HTTP chunk of its own."""
    event = b"data: " + (
        value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=ascii_only, **dumps).encode()
    )
    event += b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


def learnt_from(value: dict[str, Any], **dumps: Any) -> Template:
    template = learn_template(json.dumps(value, ensure_ascii=False, **dumps).encode())
    assert template is not None
    return template


LIKE_SERVERS = {
    "vllm": vllm,
    "vllm reasoning": lambda text: vllm(text, field="reasoning"),
    "llama.cpp": lambda text: {
        "choices": [{"finish_reason": None, "index": 0, "delta": {"content": text}}],
        "created": 7,
        "id": "chatcmpl-x",
        "model": "m",
        "object": "chat.completion.chunk",
    },
    "sglang": lambda text: {
        "id": "a",
        "created": 7,
        "choices": [{"index": 0, "delta": {"reasoning_content": None, "content": text}, "matched_stop": None}],
    },
    "completions": lambda text: {
        "id": "a",
        "choices": [{"index": 0, "text": text, "finish_reason": None}],
        "usage": None,
    },
}
texts = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=12)


@pytest.mark.parametrize("server", LIKE_SERVERS)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@given(tokens=texts, ascii_only=st.booleans())
@settings(deadline=None, max_examples=examples(40))
def test_a_run_of_token_events_gives_their_texts(
    server: str, separators: tuple[str, str], tokens: list[str], ascii_only: bool
) -> None:
    make = LIKE_SERVERS[server]
    template = learnt_from(make("x"), separators=separators)
    tokens = [token.encode("utf-8", "ignore").decode() or "x" for token in tokens]
    later = [make(token) for token in tokens]
    for n, value in enumerate(later):
        value.update({name: {"id": "other", "created": n}[name] for name in ("id", "created") if name in value})
    raw = b"".join(frame(value, ascii_only, separators=separators) for value in later)
    assert template.fits(raw, 0)
    batch = template.batch(raw, 0)
    assert batch is not None
    assert (batch.end, batch.texts, batch.reply_id) == (len(raw), tokens, "other")
    assert (template.reasoning, template.model) == ("reasoning" in server, make("x").get("model"))
    if len(later) > 1:
        later[len(later) // 2]["id"] = "of another reply"
        assert template.batch(b"".join(frame(value, ascii_only, separators=separators) for value in later), 0) is None


@given(tokens=texts, odd=st.integers(0, 7), place=st.integers(0, 12))
@settings(deadline=None, max_examples=examples(300))
def test_an_event_that_is_no_token_ends_the_run_before_it(tokens: list[str], odd: int, place: int) -> None:
    tokens = [token.encode("utf-8", "ignore").decode() or "x" for token in tokens]
    finish = vllm("z")
    finish["choices"][0]["finish_reason"] = "stop"
    second = vllm("z")
    second["choices"][0]["index"] = 1
    odds = [
        frame(finish),
        frame(second),
        frame(vllm("z", usage={"completion_tokens": 3})),
        frame(vllm("z", error={"message": "boom"})),
        frame(vllm("z", field="reasoning")),
        frame(b"[DONE]"),
        b"9\r\n: ping\n\n\r\n",
        frame(json.dumps(vllm("z")).encode().replace(b'"z"', b'"z","content":"y"')),
    ]
    place = min(place, len(tokens))
    frames = [frame(vllm(token)) for token in tokens]
    before = b"".join(frames[:place])
    raw = before + odds[odd] + b"".join(frames[place:])
    got = learnt_from(vllm("x")).batch(raw, 0)
    assert (got and got[:2]) == ((len(before), tokens[:place]) if place else None)


@pytest.mark.parametrize(
    "value",
    [
        vllm("x", usage={"completion_tokens": 1}),
        vllm("x", error="boom"),
        vllm(""),
        {"choices": []},
        {"choices": [{"index": 1, "delta": {"content": "x"}}]},
        {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "delta": {"content": "x", "reasoning": "y"}}]},
        {"choices": [{"index": 0, "delta": {"content": "x", "tool_calls": [{}]}}]},
        {"choices": [{"index": 0, "delta": {"content": "x"}}, {"index": 1, "delta": {"content": "x"}}]},
        {"choices": [{"index": 0, "delta": {"content": None}}], "content": "x"},
        ["content"],
    ],
)
def test_nothing_is_learnt_from_an_event_with_more_than_a_token(value: Any) -> None:
    assert learn_template(json.dumps(value).encode()) is None


def test_a_model_named_like_a_field_confuses_nothing() -> None:
    value = vllm("x") | {"model": '"content":"x"', "object": '"id":"y"'}
    raw = frame(value) + frame(value)
    assert (learnt_from(value).batch(raw, 0) or ())[:2] == (len(raw), ["x", "x"])


def test_lone_surrogates_are_left_to_the_general_path() -> None:
    raw = frame(vllm("\ud83d"), True) + frame(vllm("\ude00"), True)
    assert learnt_from(vllm("x"), separators=(", ", ": ")).batch(raw, 0) is None


@given(st.binary(max_size=80))
@settings(deadline=None)
def test_any_bytes_are_refused_without_an_error(raw: bytes) -> None:
    template = learnt_from(vllm("x"))
    good = frame(vllm("a"))
    for bytes_ in (raw, good + raw, raw + good):
        got = template.batch(bytes_, 0)
        if got is not None:
            # The first chunk's size is not checked against its contents.
            assert bytes_[: got[0]].split(b"\r\n", 1)[1] == (good * len(got[1])).split(b"\r\n", 1)[1]
    learn_template(raw)
    Templates().learn(raw)


def batch_of(body: bytes) -> TokenBatch | None:
    """What is read at once of a stream whose first text has been read, each event in a chunk of its own."""
    raw = b"".join(frame(event) for event in re.findall(rb"data: (\{.*\})\n\n", body))
    templates = Templates()
    first = raw.index(b"\n\n\r\n") + 4
    templates.learn(raw)
    template = templates.find(raw, first)
    return None if template is None else template.batch(raw, first)


@pytest.mark.parametrize("server", DIALECTS)
def test_the_events_of_every_server_are_learnt(server: str) -> None:
    batch = batch_of(b"".join(DIALECTS[server].stream()))
    assert batch is not None
    assert list(batch.texts) == list(PIECES[: len(PIECES) - DIALECTS[server].text_with_finish])


def test_events_of_every_recorded_server_are_learnt(shared_data: Path) -> None:
    servers = (
        "vllm-0.32-cpu",
        "sglang-0.5.23-cpu_noreasoning",
        "llamacpp-xllamacpp",
        "sglang-router-0.3.2_to_llamacpp",
    )
    for server in servers:
        batch = batch_of((shared_data / "sse" / f"{server}__stop.sse").read_bytes())
        assert batch is not None, server
        assert len(batch.texts) > 10, server


@given(texts=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=20), seed=st.integers(0, 999))
def test_token_ids_are_read_apart_and_belong_to_their_events(texts: list[str], seed: int) -> None:
    def one(text: str, ids: list[int]) -> dict[str, Any]:
        value = vllm(text)
        value["choices"][0]["token_ids"] = ids
        return value

    ids = [[(seed * 7 + n * 13 + k) % 50_000 for k in range(1 + n % 3)] for n in range(len(texts))]
    raw = b"".join(frame(one(text, numbers)) for text, numbers in zip(texts, ids, strict=True))
    batch = learnt_from(one("x", [5])).batch(raw, 0)
    assert batch is not None
    assert batch.texts == texts
    assert batch.ids == ids


def test_a_text_that_looks_like_token_ids_states_none() -> None:
    value = vllm('","token_ids":[6,6,6]')
    value["choices"][0]["token_ids"] = [1]
    odd = vllm("plain")
    odd["choices"][0]["token_ids"] = [2, 3]
    batch = learnt_from(odd).batch(frame(value) + frame(odd), 0)
    assert batch is not None
    assert batch.ids == [[1], [2, 3]]
    unstated = learnt_from(vllm("x")).batch(frame(vllm('"token_ids":[6]')), 0)
    assert unstated is not None
    assert unstated.ids is None
