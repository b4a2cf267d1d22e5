"""The words between which options choose, for every room; without an import, so that a help is printed at once."""

from __future__ import annotations

from typing import Literal

Api = Literal["chat", "completions"]

TransportName = Literal["auto", "fast", "aiohttp", "sdk"]
"""auto: fast for plain http, aiohttp for https, proxies and unix sockets. sdk: the openai package."""

Thinking = Literal["on", "off", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""A switch, or an effort as a provider knows it. `none` is `off` where the provider has no such effort."""

LengthField = Literal["max_tokens", "max_completion_tokens"]
"""The server's name for the bound on new tokens."""

OutputsFormat = Literal[
    "columns",
    "llmeval",
    "limo",
    "lm_eval",
    "inspect",
    "openai_batch",
    "sglang",
    "nemo_skills",
    "sgl_eval",
    "opencompass",
    "evalscope",
]
"""The layout of a file of outputs: columns that the user names, or the layout of the tool of that name."""

SalvageMode = Literal["off", "exact", "near"]
"""The half-written answers that continue: none, those that continue exactly, all."""
