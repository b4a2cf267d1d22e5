"""The sampling of a request, as options: what a run, a card or a preset may set, by the API's own names."""

from __future__ import annotations

from typing import Annotated

from harness.core.options import Option, Options

HEADING = "Sampling"


class SamplingOptions(Options):
    """None = the field is not sent, or a preset, the card or the field's default fills it."""

    temperature: Annotated[float | None, Option("Default: 0.6. 0 is greedy.", under=HEADING, least=0, strict=False)] = (
        None
    )
    top_p: Annotated[float | None, Option("Default: 0.95.", under=HEADING, above=0, most=1, strict=False)] = None
    top_k: Annotated[int | None, Option("Default: not sent.", under=HEADING, least=-1, strict=False)] = None
    min_p: Annotated[float | None, Option("Default: not sent.", under=HEADING, least=0, most=1, strict=False)] = None
    max_tokens: Annotated[
        int | None,
        Option(
            "New tokens of one completion, thinking included. Default: 32768.", under=HEADING, least=1, strict=False
        ),
    ] = None
    presence_penalty: Annotated[
        float | None, Option("Default: not sent.", under=HEADING, least=-2, most=2, strict=False)
    ] = None
    frequency_penalty: Annotated[
        float | None, Option("Default: not sent.", under=HEADING, least=-2, most=2, strict=False)
    ] = None
    repetition_penalty: Annotated[float | None, Option("Default: not sent.", under=HEADING, above=0, strict=False)] = (
        None
    )
    stop: Annotated[
        tuple[str, ...] | None,
        Option("Text that ends a completion; may be repeated.", under=HEADING, chars=1, items=16),
    ] = None
