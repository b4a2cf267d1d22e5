"""Options that limit a session: pace, patience, budgets, prices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.asking.options.headings import LIMITS, MONEY
from harness.core.options import POINTS, Option, Options


class Limits(Options):
    """Bounds of a session. Timeouts are seconds."""

    rpm: Annotated[float | None, Option("Maximum requests per minute.", under=LIMITS, above=0)] = None
    budget_tokens: Annotated[
        int | None,
        Option(
            "Stop before the command exceeds N new tokens, over all stages and candidates: with max_tokens, a request "
            "that could exceed them is not sent.",
            under=LIMITS,
            metavar="N",
            least=1,
        ),
    ] = None
    budget_usd: Annotated[
        float | None,
        Option(
            "Stop before the command exceeds this much money, over all stages and candidates: with max_tokens, a "
            "request that could exceed it is not sent. "
            "A prompt counts by its bytes until a reply states its tokens. Needs the prices.",
            under=LIMITS,
            metavar="USD",
            above=0,
        ),
    ] = None
    target_error: Annotated[
        float | None,
        Option(
            "Stop after the round that brings the sampling error to this many points or fewer.",
            under=LIMITS,
            above=0,
            below=50,
            kind=POINTS,
        ),
    ] = None
    first_token_timeout: Annotated[
        float | None,
        Option("Maximum seconds from the request to the first token. Default: 600.", under=LIMITS, above=0),
    ] = None
    idle_timeout: Annotated[
        float | None, Option("Maximum seconds between two tokens. Default: 120.", under=LIMITS, above=0)
    ] = None
    attempts: Annotated[int | None, Option("Maximum requests for one sample. Default: 5.", under=LIMITS, least=1)] = (
        None
    )
    fit_context: Annotated[
        bool,
        Option(
            "Lower a given max_tokens to the server's context instead of refusing. The default is always lowered.",
            under=LIMITS,
        ),
    ] = False


class Money(Options):
    """The prices of tokens, in USD per million."""

    price_in: Annotated[
        float | None,
        Option("USD per million prompt tokens, for the cost of a session.", under=MONEY, least=0),
    ] = None
    price_out: Annotated[
        float | None, Option("USD per million new tokens, thinking included.", under=MONEY, least=0)
    ] = None
    prices: Annotated[
        Path | None,
        Option(
            "YAML file of prices, one line per model: `MODEL: {in: USD, out: USD}`, USD per million tokens.",
            under=MONEY,
            metavar="FILE",
        ),
    ] = None
