"""The sampling options, each declared once for runs, cards, presets and sweeps, and their defaults.

To add a request body field that influences the next token, declare it here and nowhere else. The declaration defines
its check, its flag and keyword, its key in cards, presets and sweeps, and its place in the body, in a run's identity
and in the record. `neutral` and `filled` are for fields with a neutral value in an engine's profile.

Precedence of values, highest first: the run's own, the named preset's, the benchmark card's, `DEFAULT_SAMPLING`
(`harness.preparing.run_questions.sampling_of`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from harness.core.options import Option, Options, options_of

HEADING = "Sampling"


@dataclass(frozen=True, kw_only=True)
class SamplingOption(Option):
    """The declaration of a sampling option.

    neutral: the value that has the same effect as omitting the field; None: there is no such value. filled: whether
    servers fill in the field if a request omits it (`harness.client.request_builder`).
    """

    neutral: float | None
    filled: bool = False
    under: str = HEADING
    strict: bool = False


class SamplingOptions(Options):
    """The fields of a request's body that shape its tokens, by the API's own names. None = the field is not sent."""

    temperature: Annotated[float | None, SamplingOption(least=0, neutral=1.0)] = None
    """Temperature; 0 is greedy. Default: 0.6."""
    top_p: Annotated[float | None, SamplingOption(above=0, most=1, neutral=1.0)] = None
    """Nucleus sampling: sample from the smallest set of tokens whose total probability reaches this value. Default:
    0.95.
    """
    top_k: Annotated[int | None, SamplingOption(least=-1, neutral=-1, filled=True)] = None
    """Sample from the K most likely tokens. Default: off (sends the engine's neutral value, if it has one).

    -1 and 0 are off.
    """
    min_p: Annotated[float | None, SamplingOption(least=0, most=1, neutral=0.0, filled=True)] = None
    """Minimum probability of a token, relative to the most likely token. Default: off (sends the engine's neutral
    value, if it has one).
    """
    max_tokens: Annotated[int | None, SamplingOption(least=1, neutral=None)] = None
    """Maximum number of new tokens per completion, including thinking. Default: 32768."""
    presence_penalty: Annotated[float | None, SamplingOption(least=-2, most=2, neutral=0.0)] = None
    """Penalty for tokens that have already appeared. Default: not sent."""
    frequency_penalty: Annotated[float | None, SamplingOption(least=-2, most=2, neutral=0.0)] = None
    """Penalty for tokens, proportional to how often they have appeared. Default: not sent."""
    repetition_penalty: Annotated[float | None, SamplingOption(above=0, neutral=1.0, filled=True)] = None
    """Penalty factor for repeated tokens. Default: off (sends the engine's neutral value, if it has one)."""
    stop: Annotated[tuple[str, ...] | None, SamplingOption(chars=1, items=16, neutral=None)] = None
    """Text that ends a completion. Repeatable."""


class Sampling(SamplingOptions, strict=True):
    """The sampling settings that are sent with each request."""

    def request_fields(self) -> dict[str, Any]:
        """The fields that are set, by name."""
        return {name: value for name, value in self if value is not None}


def sampling_fields() -> dict[str, SamplingOption]:
    """Field → its declaration, in the order of the fields in a request body."""
    return {name: field for name, field in options_of(Sampling).items() if isinstance(field, SamplingOption)}


SERVER_FILLED = tuple(name for name, field in sampling_fields().items() if field.filled)
"""The sampling fields that servers fill in if a request omits them."""

DEFAULT_SAMPLING = Sampling(temperature=0.6, top_p=0.95, max_tokens=32768)
"""The defaults, which suit reasoning models (as recommended by DeepSeek-R1's authors)."""
