"""Counts the tokens that a probe costs, and keeps them within its budget.

Before a request is sent, the most that it can cost is reserved. Once it has ended, the tokens that the server states
replace the reserve; a reply without usage is counted by its reserve. So the cost never exceeds the budget, as long as
the server keeps max_tokens. A request that was refused costs nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from harness.client.spelling import PromptBounds, prompt_bytes
from harness.core import codec
from harness.core.errors import HarnessError
from harness.core.nouns import count_noun

LENGTH_FIELDS = ("max_tokens", "max_completion_tokens")

SHORT = 16
"""New tokens of a reply without a valid max_tokens: only requests that a stop text or a refusal ends have none."""


class OverBudget(HarnessError):
    """The next request could cost more than is left of the probe's budget, so it was not sent."""


def most_new_tokens(body: Mapping[str, Any]) -> int:
    """The most new tokens that all replies to this request can have."""
    limits = [body[name] for name in LENGTH_FIELDS if isinstance(body.get(name), int) and body[name] > 0]
    n = body.get("n")
    return max(limits, default=SHORT) * (n if isinstance(n, int) and n > 1 else 1)


class CostReserve:
    """The most that one request can cost, in tokens: of its prompt and of its replies."""

    def __init__(self, body: Mapping[str, Any], path: str, bounds: PromptBounds) -> None:
        self.prompt = (path, codec.encode([body.get("messages"), body.get("prompt"), body.get("tools")]))
        self.n_bytes = prompt_bytes(body)
        self.n_prompt = bounds.most(self.prompt, self.n_bytes)
        self.n_new = most_new_tokens(body)

    @property
    def tokens(self) -> int:
        """Tokens of prompt and replies together."""
        return self.n_prompt + self.n_new


class Ledger:
    """The tokens of one probe; several threads use it. budget: tokens that the probe may cost; None: any number."""

    def __init__(self) -> None:
        self.budget: int | None = None
        self.n_tokens = 0
        """Tokens of the replies so far."""
        self.n_bounded = 0
        """Replies without stated usage, which are counted by their reserve."""
        self._reserved = 0
        self._bounds = PromptBounds()
        self._changed = threading.Condition()

    def reserve(self, bodies: Sequence[Mapping[str, Any]], path: str) -> list[CostReserve]:
        """Reserve the most that these requests can cost together; wait for those in flight if the budget needs it.

        Raises `OverBudget` if the rest of the budget is too small.
        """
        with self._changed:
            while True:
                reserves = [CostReserve(body, path, self._bounds) for body in bodies]
                n = sum(reserve.tokens for reserve in reserves)
                if self.budget is None or self.n_tokens + self._reserved + n <= self.budget:
                    self._reserved += n
                    return reserves
                if not self._reserved:
                    left = max(0, self.budget - self.n_tokens)
                    requests = "its next request" if len(bodies) == 1 else f"its next {len(bodies)} requests"
                    raise OverBudget(
                        f"{requests} could cost {count_noun(n, 'token')}, and {left:,} are left of the budget"
                    )
                self._changed.wait()

    def settle(self, reserve: CostReserve, prompt: int | None, completion: int | None, n_shown: int = 0) -> None:
        """Replace a reserve by what the reply states. n_shown: new tokens that the reply shows one by one."""
        with self._changed:
            if prompt is None or completion is None:
                self.n_bounded += 1
            if prompt is not None:
                self._bounds.learn(reserve.prompt, reserve.n_bytes, prompt)
            self.n_tokens += reserve.n_prompt if prompt is None else prompt
            self.n_tokens += max(reserve.n_new if completion is None else completion, n_shown)
            self._release(reserve)

    def drop(self, reserve: CostReserve) -> None:
        """Take a reserve back: its request brought no reply."""
        with self._changed:
            self._release(reserve)

    def _release(self, reserve: CostReserve) -> None:
        self._reserved -= reserve.tokens
        self._changed.notify_all()
