"""Options that limit a session: pace, patience, budgets, prices."""

from __future__ import annotations

from typing import Annotated

from harness.core.options import POINTS, PRICES, Option, Options
from harness.options.headings import LIMITS, MONEY


class Limits(Options):
    """Bounds of a session. Timeouts are seconds."""

    rpm: Annotated[float | None, Option(under=LIMITS, above=0)] = None
    """Maximum requests per minute."""
    budget_tokens: Annotated[int | None, Option(under=LIMITS, metavar="N", least=1)] = None
    """Stop before the command exceeds N new tokens, over all stages and candidates: with max_tokens, a request that
    could exceed them is not sent.
    """
    budget_usd: Annotated[float | None, Option(under=LIMITS, metavar="USD", above=0)] = None
    """Stop before the command exceeds this much money, over all stages and candidates: with max_tokens, a request that
    could exceed it is not sent. A prompt counts by its bytes until its request has ended. Needs the prices.
    """
    target_error: Annotated[float | None, Option(under=LIMITS, above=0, below=50, kind=POINTS)] = None
    """Stop after the round that brings the sampling error to this many points or fewer."""
    timeout: Annotated[float | None, Option(under=LIMITS, above=0)] = None
    """Maximum seconds without a new token. Default: 600 before the first one, 120 between two."""
    attempts: Annotated[int | None, Option(under=LIMITS, least=1)] = None
    """Maximum requests for one sample. Default: 5."""
    fit_context: Annotated[bool, Option(under=LIMITS)] = False
    """Lower a given max_tokens to the server's context instead of refusing. The default is always lowered."""


class Money(Options):
    """The prices of tokens, in USD per million."""

    prices: Annotated[str | None, Option(under=MONEY, metavar="IN,OUT", kind=PRICES)] = None
    """USD per million tokens of prompts and of replies (thinking included), such as 0.5,2."""
