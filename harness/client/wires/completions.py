"""Completions: one plain text, or token ids, to which no chat template is applied."""

from __future__ import annotations

from harness.client.wires.chat import OWNED, READER
from harness.client.wires.wire import Wire

COMPLETIONS = Wire(
    api="completions",
    path="/completions",
    owned=OWNED,
    bound="max_tokens",
    templated=False,
    reader=lambda: READER,
    prompt=lambda _messages, text: {"prompt": text},
    likeliest=lambda n: {"logprobs": n},
)
