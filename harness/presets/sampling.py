"""Sampling settings: each field declared once, as cards, presets and runs share it; and the defaults.

A field of a request's body that shapes the next token is added here, and nowhere else: its check, flag, keyword, key of
a card, a preset and a sweep's file, its place in the body, the identity and the record all come from the declaration.
So does what a run makes of it: whether `drop` keeps it out, whether a half-written answer may go on under it, whether a
model's card is held against it. A declaration that leaves one of these open is refused by the type checker.

Precedence, from strong to weak: what the run asks for, named preset, benchmark card, `DEFAULT_SAMPLING`; `resolve`
applies it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from harness.core.options import Option, Options, options_of

HEADING = "Sampling"

ContinuationRule = Literal["same", "the rest", "counts", "servers differ", "at the seam"]
"""The effect of a field on a request that continues a half-written answer. same: no difference. the rest: the request
asks for what is left of the number. counts: the server counts the written part as prompt. servers differ: in what they
count. at the seam: the written part may end inside a stop text."""


@dataclass(frozen=True, kw_only=True)
class SamplingOption(Option):
    """A field of the body. neutral: the value under which leaving it out changes nothing; None: there is none.

    filled: servers are known to fill the field where a request leaves it out (`harness.client.asker`).
    """

    neutral: float | None
    continued: ContinuationRule
    filled: bool = False
    under: str = HEADING
    strict: bool = False


class SamplingOptions(Options):
    """The fields of a request's body that shape its tokens, by the API's own names. None = the field is not sent."""

    temperature: Annotated[
        float | None,
        SamplingOption("Sampling temperature; 0 is greedy. Default: 0.6.", least=0, neutral=1.0, continued="same"),
    ] = None
    top_p: Annotated[
        float | None,
        SamplingOption(
            "Nucleus sampling: the smallest set of tokens with this probability. Default: 0.95.",
            above=0,
            most=1,
            neutral=1.0,
            continued="same",
        ),
    ] = None
    top_k: Annotated[
        int | None, SamplingOption("Default: not sent.", least=-1, neutral=-1, continued="same", filled=True)
    ] = None
    """-1 and 0 are off."""
    min_p: Annotated[
        float | None, SamplingOption("Default: not sent.", least=0, most=1, neutral=0.0, continued="same", filled=True)
    ] = None
    max_tokens: Annotated[
        int | None,
        SamplingOption(
            "New tokens of one completion, thinking included. Default: 32768.",
            least=1,
            neutral=None,
            continued="the rest",
        ),
    ] = None
    presence_penalty: Annotated[
        float | None, SamplingOption("Default: not sent.", least=-2, most=2, neutral=0.0, continued="counts")
    ] = None
    frequency_penalty: Annotated[
        float | None, SamplingOption("Default: not sent.", least=-2, most=2, neutral=0.0, continued="counts")
    ] = None
    repetition_penalty: Annotated[
        float | None,
        SamplingOption("Default: not sent.", above=0, neutral=1.0, continued="servers differ", filled=True),
    ] = None
    stop: Annotated[
        tuple[str, ...] | None,
        SamplingOption(
            "Text that ends a completion; may be repeated.", chars=1, items=16, neutral=None, continued="at the seam"
        ),
    ] = None


class Sampling(SamplingOptions, strict=True):
    """What is sent with each request."""

    def over(self, base: Sampling) -> Sampling:
        """`base` with every field that is set here replaced."""
        return base.but(**self.sent())

    def sent(self) -> dict[str, Any]:
        """The fields that are set, by name."""
        return {name: value for name, value in self if value is not None}


def sampling_fields() -> dict[str, SamplingOption]:
    """The declarations by field, in the order of a body."""
    return {name: field for name, field in options_of(Sampling).items() if isinstance(field, SamplingOption)}


DEFAULT_SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=32768)
"""The defaults for reasoning models (DeepSeek-R1's advice; also the scripts' defaults)."""


def resolve(*layers: Sampling | None) -> Sampling:
    """The settings that hold, from the strongest layer to the weakest; `DEFAULT_SAMPLING` is below them all."""
    result = DEFAULT_SAMPLING
    for layer in reversed(layers):
        if layer is not None:
            result = layer.over(result)
    return result
