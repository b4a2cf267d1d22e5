"""Sampling settings: a value that cards, presets and runs share, and the field's defaults.

Precedence, from strong to weak: what the run asks for, named preset, benchmark card, `DEFAULT_SAMPLING`; `resolve`
applies it.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


_Number = Annotated[float, AfterValidator(_finite)]


class Sampling(BaseModel):
    """What is sent with each request; `None` = the field is not sent and the server decides.

    temperature ≥ 0 (0 = greedy); top_p in (0, 1]; top_k ≥ 1, or -1/0 = off; min_p in [0, 1]; max_tokens ≥ 1, new
    tokens of one completion, thinking included; the penalties as in the OpenAI and vLLM protocols; stop: at most 16.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    temperature: Annotated[_Number, Field(ge=0)] | None = None
    top_p: Annotated[_Number, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Annotated[_Number, Field(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    presence_penalty: Annotated[_Number, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[_Number, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[_Number, Field(gt=0)] | None = None
    stop: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(max_length=16, strict=False)] | None = None

    def over(self, base: Sampling) -> Sampling:
        """`base` with every field that is set here replaced."""
        return base.model_copy(update=self.sent())

    def sent(self) -> dict[str, Any]:
        """The fields that are set, by name."""
        return {name: value for name, value in self if value is not None}


DEFAULT_SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=32768)
"""The field's defaults for reasoning models (DeepSeek-R1's advice; also the scripts' defaults)."""


def resolve(*layers: Sampling | None) -> Sampling:
    """The settings that hold, from the strongest layer to the weakest; `DEFAULT_SAMPLING` is below them all."""
    result = DEFAULT_SAMPLING
    for layer in reversed(layers):
        if layer is not None:
            result = layer.over(result)
    return result
