"""What a judge's replies about a benchmark took in all sessions: requests, tokens, and money where prices are known.

A request that brought no reply is in no count.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Annotated

import msgspec

from harness.core import codec
from harness.core.files import open_untrusted
from harness.core.money import Prices
from harness.core.records import Sample
from harness.runs import RunFolder, read_samples
from harness.runs.layout import RunLog
from harness.runs.session_costs import MAX_LINE_BYTES
from harness.scoring.judging import JudgeCost

PRICED = "samples_priced"
"""The event of the log of a judge's folder: prices were given."""

_Price = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class _Priced(msgspec.Struct, frozen=True):
    """The fields of such a log line. prompt, completion: the prices in USD per million tokens."""

    event: str = ""
    prompt: _Price = 0
    completion: _Price = 0


def cost_of(replies: Iterable[Sample]) -> JudgeCost:
    """What these replies took, without the money."""
    cost = JudgeCost()
    for reply in replies:
        tokens_in, tokens_out = reply.usage.prompt_tokens, reply.usage.completion_tokens
        if tokens_in is None or tokens_out is None:
            cost = cost.plus(JudgeCost(1, reply.attempts))
        else:
            cost = cost.plus(JudgeCost(1, reply.attempts, 1, tokens_in, tokens_out))
    return cost


def keep_prices(folder: RunFolder, prices: Prices | None) -> None:
    """Log the prices in the judge's folder unless they are the recorded ones; None: none are known."""
    if prices is not None and prices != recorded_prices(folder):
        with RunLog(folder) as log:
            log.write(PRICED, prompt=prices.prompt, completion=prices.completion)


def total_cost(folder: RunFolder, benchmark: str, prices: Prices | None) -> JudgeCost:
    """What all replies of the judge about the benchmark took.

    folder: of the judge's replies. prices: those given now; None: those that the folder records, if any.
    """
    cost = cost_of(read_samples(folder.benchmark(benchmark)))
    prices = prices or recorded_prices(folder)
    if prices is None or (cost.replies and not cost.n_stated):
        return cost  # replies of unknown length were not free
    return msgspec.structs.replace(cost, usd=prices.usd(cost.prompt_tokens, cost.completion_tokens))


def recorded_prices(folder: RunFolder) -> Prices | None:
    """The prices that were given last, whether or not the judge was then asked; None if none were given.

    The log is their one place: a session that asks for nothing has no manifest to write them to.
    """
    prices = None
    with contextlib.suppress(OSError), open_untrusted(folder.log) as file:
        for line in iter(lambda: file.readline(MAX_LINE_BYTES), b""):
            if PRICED.encode() in line:
                with contextlib.suppress(codec.DecodeError):
                    event = codec.decode(line, _Priced)
                    if event.event == PRICED:
                        prices = Prices(event.prompt, event.completion)
    return prices
