"""Completions: one plain text, or token ids, to which no chat template is applied."""

from __future__ import annotations

from harness.client.apis.api import API
from harness.client.apis.chat import OWNED, READER

COMPLETIONS = API(
    name="completions",
    path="/completions",
    owned=OWNED,
    bound="max_tokens",
    templated=False,
    reader=lambda: READER,
    prompt=lambda _messages, text: {"prompt": text},
    likeliest=lambda n: {"logprobs": n},
)
