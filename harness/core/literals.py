"""The closed sets of words that options accept, as Literal types.

This module imports nothing from this project or third parties, so that help is printed without delay.
"""

from __future__ import annotations

from typing import Literal

ApiName = Literal["chat", "completions", "responses", "messages"]
"""The path of the requests: /chat/completions, /completions with one text, /responses, or Anthropic's /messages."""

TransportName = Literal["http", "openai"]
"""The code that sends requests. http: our own, for http, https, proxies, Unix sockets. openai: the openai package."""

Thinking = Literal["on", "off", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model reasons before it answers: on or off, or one of the efforts that a provider offers. `none` is sent
as the provider's effort of that name; a provider without one gets `off`."""

LengthField = Literal["max_tokens", "max_completion_tokens"]
"""The field of a request in which the server expects the largest number of new tokens."""

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
    "verdicts",
    "swe_bench",
    "tau2_bench",
    "harbor",
]
"""The layout of a file of outputs: columns that the user names, or the layout of the tool of that name."""

SecondGraderName = Literal["math-verify", "sympy"]
"""A grader that is run in addition to the rules and changes no verdict."""

ToolChoice = Literal["auto", "required", "none"]
"""Whether the model may, must, or must not call the tools of a question."""

Order = Literal["longest", "rounds"]
"""The order in which samples are requested; `harness.generation.dispatch.schedule` explains both."""
