"""Chat: messages, which the server puts into its chat template."""

from __future__ import annotations

from harness.client.wires.choices import OWNED, READER
from harness.client.wires.wire import Wire

CHAT = Wire(
    api="chat", path="/chat/completions", owned=OWNED, bound=None, reader=lambda: READER,
    prompt=lambda messages, _text: {"messages": messages},
    likeliest=lambda n: {"logprobs": True, "top_logprobs": n},
)  # fmt: skip
