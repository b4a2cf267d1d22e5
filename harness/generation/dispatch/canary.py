"""Checks the replies of a session for signs that the run's setup is broken. No I/O.

- The run stops if the first samples are all truncated, all empty, all the same, all without an answer, or all reasoning
  without text.
- The run also stops if a reply comes from a different model than the run's first reply.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.client.apis.api import Call
from harness.client.protocol.reply import Reply
from harness.core.hidden_limit import Cuts, cut_tokens
from harness.core.reply_notes import ALL_REASONING, limit_of
from harness.core.sanitize import quoted
from harness.runs.missing import Task

FIRST_SAMPLES = 16
"""Number of first samples that must all be bad before the run stops."""

BEGINNING = f"the first {FIRST_SAMPLES} samples"
"""The beginning of each sentence with which the canary stops a run."""

MIN_QUESTIONS = 3
"""Minimum number of different questions among identical replies for the replies to count as a sign."""

ANSWERS_IN_REASONING = (
    "reasoning but no text, although they ended normally: the server treats the answer as part of the reasoning. "
    "Fix its reasoning parser, or read the reasoning too: `harness score RUN --answer-from-reasoning`"
)
"""The problem with replies noted as `ALL_REASONING`, and its remedy."""

Answered = Callable[[Task, Reply], bool]
"""Whether the reply gives an answer. The caller passes the grader's extractor."""


def _text_of(call: Call) -> str:
    """A call as text, which is not empty even without arguments."""
    return f"{call.name} {call.arguments}"


class Canary:
    """Explains why a run with a broken setup should stop: its first `FIRST_SAMPLES` samples all have the same problem.

    They are all truncated, all empty, all the same text, all without an answer, or all reasoning. on: False: nothing is
    checked.
    """

    def __init__(self, answered: Answered | None = None, *, on: bool = True) -> None:
        self._has_answer = answered
        self._watching = on
        self._n = 0
        self._cuts = Cuts()
        self._empty = self._all_reasoning = 0
        self._unanswered = 0
        self._first: tuple[object, ...] | None = None  # the texts and the tokens of the first reply
        self._all_same = True
        self._questions: set[tuple[str, str]] = set()

    def observe(self, task: Task, reply: Reply, max_tokens: int | None) -> str | None:
        """Return why the run should stop, or None. Called once per finished sample, in order of arrival.

        max_tokens: the limit of new tokens, for the sentence.
        """
        if not self._watching:
            return None
        self._n += 1
        if (limit := limit_of(reply.finish_reason)) is not None:
            self._cuts.observe(limit, cut_tokens(reply.usage.completion_tokens, reply.timing.events), max_tokens)
        texts = reply.text or "", reply.reasoning or "", *map(_text_of, reply.calls)
        # If a sample has no step left, its last reply is a call.
        self._empty += limit in (None, "tokens") and not "".join(texts).strip()
        self._all_reasoning += ALL_REASONING in reply.notes
        if self._has_answer is not None:
            self._unanswered += not self._has_answer(task, reply)
        # The token counts distinguish replies whose reasoning is hidden or that follow different tool calls.
        said = *texts, reply.usage.completion_tokens
        self._first = self._first or said
        self._all_same = self._all_same and said == self._first
        self._questions.add((task.benchmark, task.question_id))
        if self._n < FIRST_SAMPLES:
            return None
        self._watching, self._first = False, None
        return self._verdict(reply, max_tokens)

    def _verdict(self, last: Reply, max_tokens: int | None) -> str | None:
        """Return why the run should stop after its first replies; None if they look normal.

        last: the last reply, quoted in the sentence. max_tokens: the limit of new tokens, for the sentence.
        """
        anyway = "To continue anyway, set `canary=False`; stored samples are kept."
        if self._empty == self._n:
            return f"{BEGINNING} are all empty. Check the server's chat template and reasoning parser. {anyway}"
        if self._all_reasoning == self._n:
            return f"{BEGINNING} all have {ANSWERS_IN_REASONING}. {anyway}"
        if self._cuts.n == self._n and (early := self._cuts.early_cut(self._n)) is not None:
            return f"{BEGINNING} are all truncated: {early.sentence}. {anyway}"
        if self._cuts.n == self._n:
            bound = "" if max_tokens is None else f" (`max_tokens` is {max_tokens})"
            limits, mend = self._cuts.limits_and_remedies
            mend = (
                f"{mend[0].upper()}{mend[1:]}, and delete the run folder, because all samples in a run must use the "
                "same settings"
            )
            return f"{BEGINNING} are all truncated by {limits}{bound}. {mend}. {anyway}"
        if self._all_same and len(self._questions) >= MIN_QUESTIONS:
            text = quoted(last.text or last.reasoning or " ".join(map(_text_of, last.calls)))
            return f"{BEGINNING}, from {len(self._questions)} questions, are all the same: {text!r}. {anyway}"
        if self._has_answer is not None and self._unanswered == self._n:
            text = quoted((last.text or "")[-200:])
            return f"{BEGINNING} contain no answer that the grader can find; the last one ends with {text!r}. {anyway}"
        return None


class ModelName:
    """The model name in replies, compared with that in the run's own first reply because routers rename models."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        """The name in the first reply; it is stored with the run, so that a resumed run is compared with it, too."""

    def observe(self, base_url: str, name: str | None) -> str | None:
        """Return why the run must stop if `name` is not the first reply's name; else None. base_url: the endpoint's."""
        if not name:
            return None
        self.name = self.name or name
        if self.name == name:
            return None
        return (
            f"{base_url} reports the model '{quoted(name)}', but this run's first reply came from "
            f"'{quoted(self.name)}', and a run never mixes models. Start that model again, or use another run folder."
        )
