"""The token counts of real makers' replies add up to the total that they state, and so do made ones.

For: harness.core.token_counts.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.client.protocol.reply import Reply
from harness.core.contradictions import contradictions
from harness.core.token_counts import MAX_STATED_TOKENS, believed, stated_usage
from harness.testing import Said
from tests.budget import examples
from tests.client.test_apis import read
from tests.client.test_events import DONE, delta, event, reply

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


def test_the_other_apis_count_the_thought_with_the_reply_and_a_cache_with_the_prompt() -> None:
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
    most = believed(
        stated_usage({names[1]: MAX_STATED_TOKENS, DETAILS: {}, names[2]: 4, "prompt_cache_hit_tokens": 3}),
        has_text=True,
        has_reasoning=False,
    )
    assert (most.completion_tokens, most.reasoning_tokens, most.cached_tokens) == (MAX_STATED_TOKENS, 4, 3)
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


@settings(max_examples=examples(200))
@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_random_parts_that_add_up_are_recovered(prompt: int, text: int, thought: int, cached: int) -> None:
    told, total = {OF_PROMPT: {CACHED: cached}}, prompt + text + thought
    within, apart = (chat(prompt, n, total, thought, **told) for n in (text + thought, text))
    for usage in (within, apart, chat(prompt, text, total)):
        got = stated_usage(usage)
        assert (got.prompt_tokens, got.completion_tokens, got.reasoning_tokens) == (prompt, text + thought, thought)
    short = stated_usage(chat(prompt, text, prompt + text - 1, **told))
    assert (short.prompt_tokens, short.completion_tokens, short.reasoning_tokens) == (prompt, text, None)
