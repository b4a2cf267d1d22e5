"""Replies of the Messages API, for `harness.testing.FakeServer`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.testing import named


def message(text: str = "42", model: str = "test-model") -> dict[str, Any]:
    """A whole reply of the Messages API."""
    of_text = {"content": [{"type": "text", "text": text}], "usage": {"input_tokens": 9, "output_tokens": 3}}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_reason": "end_turn", **of_text}


def message_events(text: str = "42", model: str = "test-model") -> Iterator[bytes]:
    """The events of that reply, a letter a piece."""
    yield named("message_start", message=message(text, model) | {"content": [], "stop_reason": None})
    yield named("ping")
    yield named("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield from (named("content_block_delta", index=0, delta={"type": "text_delta", "text": part}) for part in text)
    yield named("content_block_stop", index=0)
    yield named("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3})
    yield named("message_stop")
