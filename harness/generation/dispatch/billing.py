"""Says what each request of a session was billed for, and what the next one can be billed for. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from harness.client.prompt_bound import PromptBounds
from harness.core.records import Sample
from harness.generation.lengths import completion_tokens, tokens_before
from harness.generation.plan import SessionPlan
from harness.generation.settings import RunSettings
from harness.generation.spending import Billed, Sure


class Billing:
    """Tokens of prompts and replies: as the server states them, else the most that they can be."""

    def __init__(self, settings: RunSettings, plan: SessionPlan) -> None:
        self._bytes: Mapping[tuple[str, str], int] = plan.prompt_bytes
        self._max_tokens = {name: benchmark.sampling.max_tokens for name, benchmark in settings.benchmarks.items()}
        self._bounds = PromptBounds()
        self._longest_stated = 0
        # Questions without a stated prompt, the longest last.
        self._unstated = sorted(self._bytes, key=lambda question: self._bytes[question])

    @property
    def longest_prompt(self) -> int:
        """The most tokens that the prompt of a further request can have; 0 if the session counts no money."""
        while self._unstated and self._bounds.knows(self._unstated[-1]):
            self._unstated.pop()
        if not self._unstated:
            return self._longest_stated
        question = self._unstated[-1]
        return max(self._longest_stated, self._bounds.most(question, self._bytes[question]))

    def billed(self, sample: Sample) -> Billed:
        """What the last request for this sample was billed for.

        The part of a continued sample that an earlier request wrote counts as prompt.
        """
        question, n_before = (sample.benchmark, sample.question_id), tokens_before(sample)
        n_bytes, usage = self._bytes.get(question, 0), sample.usage
        if usage.prompt_tokens is not None:
            self._bounds.learn(question, n_bytes, usage.prompt_tokens)
            self._longest_stated = max(self._longest_stated, usage.prompt_tokens + n_before)
        prompt = usage.prompt_tokens if usage.prompt_tokens is not None else self._bounds.most(question, n_bytes)
        most = self._max_tokens.get(sample.benchmark)
        # A count of 0 beside a text is no count.
        stated = usage.completion_tokens or (None if sample.text or sample.reasoning else usage.completion_tokens)
        # The stream is no bound: one event may hold several tokens, and thinking may be hidden.
        completion = stated if stated is not None else most or completion_tokens(sample)
        sure: Sure = "stated"
        if usage.prompt_tokens is None or stated is None:
            sure = "about" if stated is None and most is None else "at most"
        return Billed(prompt + n_before, max(0, completion - n_before), sure)
