"""A session's budget of tokens or money: no request is sent that could exceed what is left. No I/O.

What one request may still use is its *reserve*:

| known so far | reserve of one request |
| --- | --- |
| little | the largest max_tokens of the session |
| the first `KNOWN` samples that were begun have all ended | the longest reply so far, at most the largest max_tokens |
| little, and no max_tokens | the longest reply so far; before the first, `UNKNOWN_LENGTH` or the budget |

The second row waits for the first samples *begun*, not the first to finish: those are the short ones. The longest of
20 replies is their 95 % quantile, so about one later reply in 21 or more exceeds its reserve, and the reserve grows
with it. A prompt counts as the longest one so far.

Invariant, whenever a request is sent: used + reserve × (requests in flight + 1) ≤ budget.

The session asks in rounds (one sample of every question), so that a score of a stopped run is not biased. A round
starts only if all of it is expected to fit: at the mean length so far, or at the reserve while little is known. Where a
round or a request does not fit, the session waits for the requests in flight, which may turn out shorter than their
reserve; with none in flight it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from harness.core.records import Sample
from harness.generation.dispatch.schedule import UNKNOWN_LENGTH
from harness.generation.lengths import completion_tokens, tokens_before
from harness.generation.plan import Order, Owed, Task
from harness.generation.settings import RunSettings

KNOWN = 20
"""The longest reply so far bounds later ones once this many samples, the first begun, have ended."""


ROUNDING = 1 + 1e-9
"""Sums of prices may exceed the budget by this factor: they are sums of floats."""


@dataclass(slots=True)
class _Limit:
    """One budget, in tokens or USD. cost: what a prompt and a reply of so many tokens take of it."""

    total: float
    unit: str
    cost: Callable[[float, float], float]
    used: float = 0.0

    def amount(self, number: float) -> str:
        """`number` in the unit."""
        return f"{number:.4g}" if self.unit == "USD" else f"{number:.0f}"


class Budget:
    """See the module. Without a budget in `settings` everything fits."""

    def __init__(self, settings: RunSettings, rows: Sequence[Owed], max_tokens: Collection[int]) -> None:
        """max_tokens: of the benchmarks that have one."""
        self._limits: list[_Limit] = []
        if settings.budget_tokens is not None:
            self._limits.append(_Limit(settings.budget_tokens, "tokens", lambda _, completion: completion))
        if settings.budget_usd is not None and settings.prices is not None:
            self._limits.append(_Limit(settings.budget_usd, "USD", settings.prices.usd))
        self._max_tokens = max(max_tokens) if max_tokens and len(max_tokens) == len(settings.benchmarks) else None
        self._round_sizes = Counter(index for row in rows for index in row.indices if self)
        self._round = 0
        self._n_begun = 0
        self._first: set[Task] = set()  # of the first `KNOWN` samples begun, those that may still finish
        self._in_flight = 0
        self._n_finished = 0
        self._longest = 0
        self._longest_prompt = 0
        self.holds_round = False
        """The next round did not fit when the scheduler asked, and no request has ended since."""

    def __bool__(self) -> bool:
        return bool(self._limits)

    def order(self, order: Order) -> Order:
        """The order in which the session asks: rounds, where there is a budget."""
        return "rounds" if self else order

    # ---- what happens

    def sent(self, task: Task, attempt: int) -> None:
        """A request for `task` goes out, the sample's `attempt`-th."""
        self._in_flight += 1
        if attempt == 1 and self._n_begun < KNOWN:
            self._n_begun += 1
            self._first.add(task)

    def failed(self) -> None:
        """A request came to nothing. Servers state no usage then, so it counts as free."""
        self._in_flight -= 1
        self.holds_round = False

    def finished(self, task: Task, sample: Sample) -> None:
        """A request came to `sample`."""
        self._in_flight -= 1
        self._n_finished += 1
        self.holds_round = False
        self._first.discard(task)
        n_before = tokens_before(sample)
        completion = max(0, completion_tokens(sample) - n_before)
        stated = sample.usage.prompt_tokens
        prompt = self._longest_prompt if stated is None else stated + n_before
        self._longest = max(self._longest, completion)
        self._longest_prompt = max(self._longest_prompt, prompt)
        for limit in self._limits:
            limit.used += limit.cost(prompt, completion)

    def forget(self, task: Task) -> None:
        """`task` is not asked again in this session: its length stays unknown."""
        self._first.discard(task)

    # ---- what fits

    def fits(self) -> bool:
        """Whether one more request may be sent."""
        return not self._limits or not self._exceeded_by(self._in_flight + 1, self._reserve)

    def may_start(self, number: int) -> bool:
        """Whether round `number` is expected to fit, with what is in flight."""
        self._round = number
        self.holds_round = bool(self._exceeded_by(self._in_flight + self._round_sizes[number], self._expected))
        return not self.holds_round

    def sentence(self) -> str:
        """Why the session ends, with nothing in flight: what it used, and what did not fit."""
        if not self._exceeded_by(1, self._reserve):
            n, each, what = self._round_sizes[self._round], self._expected, "round would take about"
        else:
            n, each, what = 1, self._reserve, "sample could take"
        limit = self._exceeded_by(n, each)[0]
        used, total, more = (limit.amount(number) for number in (limit.used, limit.total, n * each(limit)))
        return f"stopped by the budget: {used} of {total} {limit.unit} used, and the next {what} {more}"

    def _exceeded_by(self, n_requests: int, each: Callable[[_Limit], float]) -> list[_Limit]:
        """Limits that this many more requests, of `each` so much, would exceed."""
        return [limit for limit in self._limits if limit.used + n_requests * each(limit) > ROUNDING * limit.total]

    @property
    def _is_known(self) -> bool:
        """Whether the lengths so far say how long the next reply may become."""
        return self._n_finished >= KNOWN and not self._first

    def _reserve(self, limit: _Limit) -> float:
        """What one request may take of `limit`."""
        most = self._max_tokens
        if self._is_known:
            return limit.cost(self._longest_prompt, self._longest if most is None else min(most, self._longest))
        if most is None and not self._n_finished:
            return min(limit.total, limit.cost(0, UNKNOWN_LENGTH))
        return limit.cost(self._longest_prompt, self._longest if most is None else most)

    def _expected(self, limit: _Limit) -> float:
        """What one request takes of `limit` on average."""
        return limit.used / self._n_finished if self._is_known else self._reserve(limit)
