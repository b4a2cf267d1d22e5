"""The limits of a session: its phase, and its budget in tokens or money. No I/O.

The most that one request may still use is its *reserve*, for a prompt and a reply:

| tokens | reserve of one request |
| --- | --- |
| prompt | the maximum for any prompt of the session (`Billing`) |
| reply, all benchmarks have a max_tokens | the largest of these |
| reply, one benchmark has none | the longest so far; before the first, `UNKNOWN_LENGTH` or the rest of the budget |

Invariant, whenever a request is sent: used + reserve × (requests in flight + 1) ≤ budget. Once a request has ended, its
reserve is replaced by the tokens that the server reports or, without a report, by the most that it can have used
(`Billing`). This includes requests that failed or were cancelled, since a server bills the part of a reply that it has
written. Only a request that produced no part of a reply is free (`RequestFailed.free`). So with max_tokens, neither the
tokens of replies nor the cost exceeds the budget, whatever the lengths: the reserve does not depend on earlier replies,
whose questions may be easier. Without max_tokens, the length of a reply has no limit.

The session requests samples in rounds (one sample of every question), so that the score of a stopped run is not biased.
A round starts only if all of it is expected to fit: its last request at the reserve, the others at the mean cost so
far. The mean is used once the first `KNOWN` samples to *begin* have ended (the first to finish are short). Until then
the reserve is used in its place, so the first round of a run starts only if the budget covers all of it; otherwise
nothing is sent. Without max_tokens, nothing is known before the first reply, so the first round starts if one request
fits. If a round or a request does not fit, the session waits for the requests in flight, which may use less than their
reserve; if none is in flight, it ends.

A budget belongs to the run folder: an `Account` begins with what earlier sessions have used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Literal

from harness.client.request_fields import most_prompt_tokens
from harness.core.errors import HarnessError
from harness.core.number_text import Prices, count_noun
from harness.core.records import Sample, Usage
from harness.generation.dispatch.schedule import UNKNOWN_LENGTH
from harness.generation.dispatch.state import SessionPlan, Work
from harness.generation.run_progress import Account, Spent, completion_tokens
from harness.generation.settings import RunSettings
from harness.runs.log_events import STOPPED_BY_BUDGET
from harness.runs.missing import Missing, Task

# ---- the phase of a session


Phase = Literal["asking", "draining", "stopping"]
"""The phase of a session.

asking: requests are sent. draining: no more are sent, and those in flight finish. stopping: requests in flight are
cancelled.
"""


class Ending:
    """The phase of a session, and why it is no longer "asking".

    The phase only moves forwards; the first reason stays.
    """

    def __init__(self) -> None:
        self.phase: Phase = "asking"
        self.why = ""
        """A sentence on why the session ended before all samples were requested; empty if nothing ended it early."""
        self.rule = ""
        """The user's rule (a budget, a target error) that ended the run early; empty if none did."""
        self.repeats = False
        """Whether the same command would end again for the same reason."""
        self.error: BaseException | None = None
        """The error that ended the session early, which the session's owner raises; None without one."""
        self.grace_ends: float | None = None
        """Monotonic second at which "draining" becomes "stopping"; None: never."""

    def drain(self, why: str, grace_ends: float | None = None) -> None:
        """Send no more requests; those in flight may end.

        why: the reason that the session ends. grace_ends: the time at which requests in flight are cut off; None:
        never.
        """
        if self.phase == "asking":
            self.phase = "draining"
        if grace_ends is not None:
            self.grace_ends = grace_ends
        self.why = self.why or why

    def stop(self, why: str) -> None:
        """Send no more requests, and cancel those in flight. why: the reason that the session ends."""
        self.phase = "stopping"
        self.why = self.why or why

    def fail(self, error: BaseException, *, repeats: bool = False) -> bool:
        """Cancel the requests in flight because of `error`. Returns False if another error came first.

        repeats: whether the same command would fail again in the same way.
        """
        self.phase = "stopping"
        if self.error is not None:
            return False
        self.error, self.repeats = error, repeats
        self.why = error.sentence if isinstance(error, HarnessError) else str(error)
        return True

    def by_rule(self, why: str) -> None:
        """Send no more requests, because a user's rule (a budget) applies, which the same command meets again."""
        self.drain(why)
        self.rule = self.why
        self.repeats = True

    @property
    def may_send(self) -> bool:
        """Whether requests may still be sent."""
        return self.phase == "asking"


# ---- what a request is billed for


class Billing:
    """Tokens of prompts and replies: as reported by the server, or else the maximum possible."""

    def __init__(self, settings: RunSettings, plan: SessionPlan) -> None:
        self._bytes: Mapping[tuple[str, str], int] = plan.prompt_bytes
        """(benchmark, question_id) → bytes of the prompt; empty if the session does not count money."""
        self._max_tokens = {name: benchmark.sampling.max_tokens for name, benchmark in settings.benchmarks.items()}
        self.longest_prompt = max(map(most_prompt_tokens, self._bytes.values()), default=0)
        """The maximum number of tokens in the prompt of another request; 0 if the session does not count money."""

    def last_bill(self, sample: Sample) -> Spent:
        """What the last request for this sample was billed for. If money is counted, `longest_prompt` grows to its
        prompt.
        """
        usage = sample.usage
        prompt = usage.prompt_tokens
        if prompt is None:
            prompt = self._most_prompt(sample.benchmark, sample.question_id)
        elif self._bytes:
            self.longest_prompt = max(self.longest_prompt, prompt)
        most = self._max_tokens.get(sample.benchmark)
        stated = usage.completion_tokens
        if stated == 0 and (sample.text or sample.reasoning):
            stated = None  # A count of 0 with a text is not a real count.
        # The stream gives no upper bound: one event may have several tokens, and thinking may be hidden.
        completion = stated if stated is not None else most or completion_tokens(sample)
        unstated = usage.prompt_tokens is None or stated is None
        return Spent(prompt, completion, int(unstated), usage.cached_tokens or 0)

    def step(self, work: Work, usage: Usage) -> Spent:
        """What a request for a step was billed for. If money is counted, `longest_prompt` grows to its prompt."""
        prompt, stated = usage.prompt_tokens, usage.completion_tokens
        if prompt is None:
            prompt = self._most_of_step(work)
        elif self._bytes:
            self.longest_prompt = max(self.longest_prompt, prompt)
        completion = stated if stated is not None else self._max_tokens.get(work.task.benchmark) or 0
        return Spent(prompt, completion, int(None in (usage.prompt_tokens, stated)), usage.cached_tokens or 0)

    def next_step(self, n_bytes: int) -> None:
        """Record that the prompt of the next step has at most this many bytes."""
        if self._bytes:
            self.longest_prompt = max(self.longest_prompt, most_prompt_tokens(n_bytes))

    def _most_of_step(self, work: Work) -> int:
        """The maximum number of tokens in the prompt of the work's next request."""
        of_step = most_prompt_tokens(work.prompt_bytes) if work.prompt_bytes and self._bytes else 0
        return max(self._most_prompt(work.task.benchmark, work.task.question_id), of_step)

    def most(self, work: Work, n_events: int) -> Spent:
        """The most that can be billed for a request that ended without a sample.

        n_events: token events received: the server wrote at least as many tokens, and read the prompt. Without
        max_tokens, they are the only indication of how much it wrote.
        """
        bound = self._max_tokens.get(work.task.benchmark) or 0
        return Spent(self._most_of_step(work), max(bound, n_events), n_unstated=1)

    def _most_prompt(self, benchmark: str, question_id: str) -> int:
        return most_prompt_tokens(self._bytes.get((benchmark, question_id), 0))


# ---- the budget


class OutOfBudget(Exception):
    """The next step of a sample does not fit into the budget, so the sample is dropped."""


KNOWN = 20
"""Once this many samples have ended, their mean cost is used as the expected cost of later ones."""


ROUNDING = 1 + 1e-9
"""Sums of prices may exceed the budget by this factor, because they are sums of floats."""


@dataclass(slots=True)
class _Limit:
    """One budget, in USD at these prices, or in tokens without. account: the amounts used so far."""

    total: float
    prices: Prices | None
    account: Account

    @property
    def unit(self) -> str:
        """The unit of the budget."""
        return "USD" if self.prices else "tokens"

    def cost(self, prompt_tokens: float, new_tokens: float) -> float:
        """The most that a prompt and a reply use."""
        return self.prices.usd(prompt_tokens, new_tokens) if self.prices else new_tokens

    @property
    def spending(self) -> float:
        """The amount used by all requests of the run."""
        return self.account.spent.usd(self.prices) if self.prices else self.account.spent.completion_tokens

    def amount(self, number: float) -> str:
        """`number` in the unit."""
        return f"{number:.4g}" if self.unit == "USD" else f"{number:.0f}"


class Budget:
    """The tokens or USD that a session may still use. Without a budget in `settings`, every request fits.

    holds_round: whether the next round of samples does not fit until another request ends or fails.
    """

    def __init__(
        self, settings: RunSettings, rows: Sequence[Missing], billing: Billing, account: Account, flights: Sized
    ) -> None:
        """rows: the samples that the session requests. billing: what requests were billed for.

        account: what the run has used. flights: the requests in flight.
        """
        self._account = account
        self._limits: list[_Limit] = []
        if settings.budget_tokens is not None:
            self._limits.append(_Limit(settings.budget_tokens, None, self._account))
        if settings.budget_usd is not None:
            self._limits.append(_Limit(settings.budget_usd, settings.prices, self._account))
        bounds = [benchmark.sampling.max_tokens for benchmark in settings.benchmarks.values()]
        # If one benchmark has no max_tokens, there is no limit for all requests of the session.
        self._max_tokens = max(filter(None, bounds)) if all(bounds) else None
        self._billing = billing
        # Counted only if there is a budget: the count visits every sample, and a run may have millions.
        counted = rows if self._limits else ()
        self._round_sizes: Mapping[int, int] = Counter(index for row in counted for index in row.indices)
        self._round = 0
        self._first_open: set[Task] = set()  # Those among the first `KNOWN` samples begun that may still finish.
        self._flights = flights
        self.billed_for_steps: Callable[[], int] = int
        """Completion tokens billed for earlier steps of the samples in flight; their reserves include them, too."""
        self.holds_round = False
        """Whether the next round did not fit when the scheduler last checked and no request has ended since."""

    def __bool__(self) -> bool:
        return bool(self._limits)

    # ---- what happens

    def record_sent(self, task: Task, attempt: int) -> None:
        """Record that a request for `task` is sent; if its sample is one of the first `KNOWN`, wait for its length.

        attempt: the request's number among those for this sample, from 1.
        """
        if self._limits and attempt == 1 and self._account.n_begun < KNOWN:
            self._account.n_begun += 1
            self._first_open.add(task)

    def failed(self, billed: Spent | None) -> None:
        """Count a request that ended without a sample. billed: the most that it can have cost; None if it was free."""
        if not self._limits:
            return
        self.holds_round = False
        if billed is not None:
            # The samples of the next round may also need such requests.
            self._account.spent = self._account.spent.add(billed)

    def step(self, billed: Spent) -> bool:
        """Count a step of a sample that continues. Returns whether all requests in flight, its next included, fit."""
        if not self._limits:
            return True
        self._account.spent = self._account.spent.add(billed)
        return not self._exceeded_by(len(self._flights))

    def finished(self, task: Task, billed: Spent, of_steps: int = 0) -> None:
        """Add the amount billed for the request for `task`; the length of its sample now counts toward the mean.

        of_steps: completion tokens of the sample's earlier steps.
        """
        if not self._limits:
            return
        self.holds_round = False
        self._first_open.discard(task)
        self._account.n_finished += 1
        self._account.longest = max(self._account.longest, of_steps + billed.completion_tokens)
        self._account.spent = self._account.spent.add(billed)

    def forget(self, task: Task) -> None:
        """Stop waiting for the length of `task`, which is not requested again in this session."""
        self._first_open.discard(task)

    # ---- what fits

    def fits(self) -> bool:
        """Whether one more request may be sent."""
        return not self._limits or not self._exceeded_by(len(self._flights) + 1)

    def may_start(self, number: int) -> bool:
        """Whether round `number` is expected to fit into the budget, together with the requests in flight."""
        self._round = number
        nothing_known = not self._account.n_begun and self._max_tokens is None
        self.holds_round = not nothing_known and bool(self._round_exceeds(number))
        return not self.holds_round

    def sentence(self) -> str:
        """Why the session ends: the amount that the run used, and what did not fit.

        If the run has sent no request, it also states the smallest budget that allows a first round.
        """
        if not self._account.n_begun:
            exceeded = self._exceeded_by(1) or self._exceeded_by(self._first_round)
            return self._too_small(exceeded[0])
        if exceeded := self._exceeded_by(1):
            limit = exceeded[0]
            what = f"the next sample could use up to {limit.amount(self._reserve(limit))}"
        elif exceeded := self._exceeded_by(n := len(self._flights)):
            limit = exceeded[0]
            what = f"the {count_noun(n, 'step')} in flight could use up to {limit.amount(n * self._reserve(limit))}"
        else:
            limit = self._round_exceeds(self._round)[0]
            cost = self._round_cost(limit, self._round_sizes[self._round])
            what = f"the next round could use {limit.amount(cost)}"
        return f"{self._used(limit)}, and {what}"

    @property
    def _first_round(self) -> int:
        """The number of requests of the first round."""
        return self._round_sizes[min(self._round_sizes)]

    def _too_small(self, limit: _Limit) -> str:
        """Say why `limit` allows no request, and the smallest budget that would."""
        each, n = self._reserve(limit), self._first_round
        # USD: a little more, so that rounding to the printed digits does not make the amount too small.
        smallest = (limit.spending + n * each) * (1 if limit.unit == "tokens" else 1.0005)
        longest = self._billing.longest_prompt
        with_prompt = f" with its prompt of up to {count_noun(longest, 'token')}" if limit.unit == "USD" else ""
        return (
            f"{self._used(limit)}. No request may exceed the budget, and a reply{with_prompt} may use "
            f"{limit.amount(each)}. The first round has {count_noun(n, 'reply', 'replies')}: set "
            f"`budget_{limit.unit.lower()}` to at least {limit.amount(smallest)}, or lower `max_tokens`"
        )

    def _used(self, limit: _Limit) -> str:
        """The beginning of the sentence on why the session ends: how much of `limit` is used."""
        used, total = limit.amount(limit.spending), limit.amount(limit.total)
        return f"{STOPPED_BY_BUDGET}: {self._account.spent.hedge}{used} of {total} {limit.unit} used"

    def _exceeded_by(self, n_requests: int) -> list[_Limit]:
        """The limits that `n_requests` more requests may exceed."""
        return self._exceeded(lambda limit: n_requests * self._reserve(limit))

    def _round_exceeds(self, number: int) -> list[_Limit]:
        """The limits that round `number`, together with the requests in flight, is expected to exceed."""
        n_requests = len(self._flights) + self._round_sizes[number]
        return self._exceeded(lambda limit: self._round_cost(limit, n_requests))

    def _exceeded(self, cost: Callable[[_Limit], float]) -> list[_Limit]:
        """The limits that a further `cost` would exceed."""
        # The reserves of the requests in flight include the amounts billed for earlier steps of their samples.
        steps = self.billed_for_steps()
        used = [(limit, limit.spending - limit.cost(0, steps)) for limit in self._limits]
        return [limit for limit, amount in used if amount + cost(limit) > ROUNDING * limit.total]

    def _round_cost(self, limit: _Limit, n_requests: int) -> float:
        """What `n_requests` are expected to use of `limit`: (n_requests − 1) × mean + reserve, for the last one."""
        reserve, n_finished = self._reserve(limit), self._account.n_finished
        mean = limit.spending / n_finished if n_finished >= KNOWN and not self._first_open else reserve
        return (n_requests - 1) * mean + reserve

    def _reserve(self, limit: _Limit) -> float:
        """Return how much of `limit` is reserved for one request in flight (the module's table)."""
        prompt = self._billing.longest_prompt
        if self._max_tokens is not None:
            return limit.cost(prompt, self._max_tokens)
        if self._account.n_finished:
            return limit.cost(prompt, self._account.longest)
        # No length is known yet: use a typical one, or all that is left if less, so that even a small budget can start.
        rest = limit.total - limit.spending
        return max(limit.cost(prompt, 0), min(rest, limit.cost(prompt, UNKNOWN_LENGTH)))
