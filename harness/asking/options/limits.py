"""Options that limit a session: pace, patience, budgets, prices."""

from __future__ import annotations

from typing import Annotated

from harness.asking.options.headings import LIMITS, MONEY
from harness.core.options import POINTS, PRICES, Option, Options


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
            "A prompt counts by its bytes until its request has ended. Needs the prices.",
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
    timeout: Annotated[
        float | None,
        Option(
            "Maximum seconds without a new token. Default: 600 before the first one, 120 between two.",
            under=LIMITS,
            above=0,
        ),
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

    prices: Annotated[
        str | None,
        Option(
            "USD per million tokens of prompts and of replies (thinking included), such as 0.5,2.",
            under=MONEY,
            metavar="IN,OUT",
            kind=PRICES,
        ),
    ] = None
