"""The body of a request: what was asked for, nothing else, the same bytes again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.client.asker import Asker
from harness.client.spelling import RequestTemplate, Spelling
from harness.core.errors import UsageError
from harness.core.records import Message, Question

QUESTION = Question(
    benchmark="b",
    question_id="q",
    messages=(Message("system", "be brief"), Message("user", "17+25? ∑ \ud800")),
    prompt="17+25=",
    references=("42",),
    kind="integer",
    row_digest="",
    prompt_digest="",
)


def body(template: RequestTemplate, **options: Any) -> dict[str, Any]:
    return json.loads(template.body(QUESTION, **options))  # type: ignore[no-any-return]


def test_a_chat_request_holds_what_was_set_and_nothing_else() -> None:
    template = RequestTemplate(model="m", sampling={"temperature": 0.6, "top_p": None, "top_k": 20}, max_tokens=100)
    assert body(template, seed=7) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.6,
        "top_k": 20,
        "max_tokens": 100,
        "seed": 7,
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "17+25? ∑ \ud800"}],
    }
    assert template.path == "/chat/completions"
    assert template.body(QUESTION, 7) == template.body(QUESTION, 7) != template.body(QUESTION, 8)
    for seed in (7, None):
        assert template.names(seed=seed is not None) == body(template, seed=seed).keys() - {"messages"}


def test_providers_names_and_extra_fields() -> None:
    template = RequestTemplate(
        model="m",
        sampling={"temperature": 1.0},
        max_tokens=5,
        spelling=Spelling(
            max_tokens_field="max_completion_tokens",
            chat_template_kwargs={"enable_thinking": False},
            extra_body={"temperature": 0.1, "reasoning_effort": "high"},
        ),
    )
    got = body(template)
    assert got["max_completion_tokens"] == 5
    assert got["chat_template_kwargs"] == {"enable_thinking": False}
    assert (got["temperature"], got["reasoning_effort"]) == (0.1, "high")
    assert "max_tokens" not in got
    given = RequestTemplate(model="m", max_tokens=5, spelling=Spelling(extra_body={"max_tokens": 7}))
    assert body(given)["max_tokens"] == 7


@pytest.mark.parametrize("field", ["n", "messages", "prompt", "model", "stream", "seed"])
def test_fields_that_the_harness_sets_are_refused_in_the_extra_body(field: str) -> None:
    with pytest.raises(UsageError, match=field):
        Spelling(extra_body={field: 1})


def test_keys_of_the_body_are_sealed_from_the_first_moment_and_nothing_of_it_is_in_a_repr() -> None:
    spelling = Spelling(
        extra_body={"api_key": "k-123456", "word": "hunter"},
        chat_template_kwargs={"token": "t-123456", "hint": "hunter"},
    )
    assert {secret.reveal() for secret in spelling.secrets} == {"k-123456", "t-123456"}
    assert "hunter" not in repr(spelling)
    assert body(RequestTemplate(model="m", spelling=spelling))["api_key"] == "k-123456"


def test_a_request_of_a_plain_text_is_one_user_message_or_the_prompt() -> None:
    chat, raw = (
        RequestTemplate(model="m", spelling=Spelling(api=api, stream=False)) for api in ("chat", "completions")
    )  # type: ignore[arg-type]
    shared = {"model": "m", "stream": False}
    assert json.loads(chat.body_of_text("Hi", 7)) == {
        **shared,
        "seed": 7,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    assert json.loads(raw.body_of_text("Hi")) == {**shared, "prompt": "Hi"}
    after = {**shared, "seed": 7, "max_tokens": 40, "prompt": [3, 1, 2]}
    assert json.loads(raw.body_after_tokens((3, 1, 2), 7, 40)) == after


def test_a_template_sends_neutral_values_for_what_was_not_set_or_those_of_earlier_requests() -> None:
    asker = Asker(
        model="m", engine="vllm", left_out=frozenset({"min_p"}), spelling=Spelling(extra_body={"presence_penalty": 1})
    )
    template = asker.template({"top_p": 0.9, "max_tokens": 50})
    assert template.sampling == {"top_k": -1, "repetition_penalty": 1.0, "top_p": 0.9}
    assert template.max_tokens == 50
    again = asker.template({"top_p": 0.9, "top_k": 5}, neutral={"top_k": -1, "min_p": 0.5})
    assert again.sampling == {"top_p": 0.9, "top_k": 5, "min_p": 0.5}
    assert again.max_tokens is None
