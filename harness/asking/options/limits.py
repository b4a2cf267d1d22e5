"""Options that say how much is asked, how long is waited, and where a run ends: pace, patience, budgets, prices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.asking.options.headings import LIMITS, MONEY, OUTPUT
from harness.core.options import POINTS, Option, Options


class Limits(Options):
    """Bounds of a session. Timeouts are seconds."""

    rpm: Annotated[float | None, Option("Requests per minute at most.", under=LIMITS, above=0)] = None
    tpm: Annotated[
        float | None, Option("Tokens per minute at most, prompts and replies together.", under=LIMITS, above=0)
    ] = None
    budget_tokens: Annotated[
        int | None, Option("Send no request that could exceed N new tokens.", under=LIMITS, metavar="N", least=1)
    ] = None
    budget_usd: Annotated[
        float | None,
        Option(
            "Send no request that could exceed this much money; needs the prices.",
            under=LIMITS,
            metavar="USD",
            above=0,
        ),
    ] = None
    target_error: Annotated[
        float | None,
        Option(
            "Stop after the round at which the sampling error is no larger than this many points.",
            under=LIMITS,
            above=0,
            below=50,
            kind=POINTS,
        ),
    ] = None
    first_token_timeout: Annotated[
        float | None,
        Option("Seconds from the request to the first token. Default: 600.", under=LIMITS, above=0),
    ] = None
    idle_timeout: Annotated[
        float | None, Option("Seconds between two tokens. Default: 120.", under=LIMITS, above=0)
    ] = None
    attempts: Annotated[
        int | None, Option("Requests per sample before it is given up. Default: 5.", under=LIMITS, least=1)
    ] = None
    disk_reserve: Annotated[
        float,
        Option(
            "Megabytes that stay free on the disk: at less, the run ends cleanly. Default: 200; 0: no reserve.",
            under=LIMITS,
            metavar="MB",
            least=0,
        ),
    ] = 200.0
    fit_context: Annotated[
        bool, Option("Lower max_tokens to the server's context instead of refusing.", under=LIMITS)
    ] = False


class Money(Options):
    """What tokens cost. USD per million."""

    price_in: Annotated[
        float | None,
        Option("USD per million prompt tokens: shows what a session cost.", under=MONEY, least=0),
    ] = None
    price_out: Annotated[
        float | None, Option("USD per million new tokens, thinking included.", under=MONEY, least=0)
    ] = None
    prices: Annotated[
        Path | None,
        Option(
            "The same for several models, as YAML: a line `MODEL: {in: USD, out: USD}` each.",
            under=MONEY,
            metavar="FILE",
        ),
    ] = None


class Metrics(Options):
    """Where a session's figures are served in the format of OpenMetrics."""

    metrics_port: Annotated[
        int | None,
        Option(
            "Serve the run's figures here for Prometheus (OpenMetrics), while it goes on; 0: a free port.",
            under=OUTPUT,
            least=0,
            most=65535,
        ),
    ] = None
    metrics_host: Annotated[
        str,
        Option("Address on which they are served. Default: 127.0.0.1, this machine.", under=OUTPUT, metavar="ADDRESS"),
    ] = "127.0.0.1"
