"""What one endpoint has answered lately, and what each question has met there. No I/O.

From this an endpoint's failure says whose fault it is (the table of `retry`): a question's if others pass, the
endpoint's if others fail, too.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Literal, NamedTuple

import msgspec

Past = Literal["new", "hopeless", "spare", "known", "alone", "others pass"]
"""The past of an endpoint and a question before a failure.

new: the endpoint has answered nothing (for a rejected request: nothing of the same benchmark). hopeless: new, and it
has refused `HOPELESS_QUESTIONS`. spare: new, but another endpoint may answer. known: it has answered. alone: since its
last answer only this question has failed, of which no sample was ever answered. others pass: since the question's first
failure more requests for others were answered than failed, and the last one was.
"""

HOPELESS_QUESTIONS = 3
"""After refusals of this many different questions, or of all, an endpoint without a reply is taken to refuse each."""

MAX_FAILURES = 3
"""Failures of one question that are held, so that no two questions excuse each other for ever."""

RECENT = 64
"""Ended requests that an endpoint's history holds."""

Question = tuple[str, str]


class _End(NamedTuple):
    """A request that ended. number: of the request; nth: of the end; both count from 1."""

    number: int
    nth: int
    question: Question
    answered: bool


class History(msgspec.Struct, eq=False):
    """The history of one endpoint in a session.

    n_sent: requests so far; a request's number is `n_sent` after it was sent. in_flight: requests by question. answers:
    replies by benchmark. recent: the last requests that ended. refused: questions that were refused, by benchmark if
    only its requests may be concerned. first_failed: the first failure of each question since any endpoint answered it;
    the owner removes it.
    """

    n_sent: int = 0
    n_ended: int = 0
    in_flight: Counter[Question] = msgspec.field(default_factory=Counter)
    answers: Counter[str] = msgspec.field(default_factory=Counter)
    recent: deque[_End] = msgspec.field(default_factory=lambda: deque(maxlen=RECENT))
    refused: dict[str | None, set[Question]] = msgspec.field(default_factory=dict)
    first_failed: dict[Question, _End] = msgspec.field(default_factory=dict)

    def over(self, question: Question) -> None:
        """Note that a request for `question` is no longer in flight."""
        self.in_flight[question] -= 1
        if not self.in_flight[question]:
            del self.in_flight[question]

    def has_answered(self, benchmark: str | None) -> bool:
        """Whether any request was answered; benchmark: any of this one."""
        return bool(self.answers if benchmark is None else self.answers[benchmark])

    def answered(self, number: int, question: Question) -> None:
        """Note a reply to the request of this number."""
        self.answers[question[0]] += 1
        self.recent.append(self._end(number, question, answered=True))

    def failed(self, number: int, question: Question, *, proven: bool) -> Past:
        """Note a failure, and return what came before it. proven: whether a sample of the question was ever answered.

        A failure of a question whose others pass is not noted, so that it makes no other question look innocent.
        """
        end = self._end(number, question, answered=False)
        first = self.first_failed.setdefault(question, end)
        # Requests that were under way when the question was first asked say nothing: a server that shuts down finishes
        # them, and refuses what comes later. Nor do replies before its failure.
        others = [o for o in self.recent if o.number > first.number and o.nth > first.nth and o.question != question]
        if others and others[-1].answered and 2 * sum(other.answered for other in others) > len(others):
            return "others pass"
        if sum(other.question == question and not other.answered for other in self.recent) < MAX_FAILURES:
            self.recent.append(end)
        for other in reversed(self.recent):
            if other.answered:
                break
            if other.question != question:
                return "known"
        return "known" if proven else "alone"

    @property
    def well(self) -> bool:
        """Whether the last request that ended was answered."""
        return bool(self.recent) and self.recent[-1].answered

    def _end(self, number: int, question: Question, *, answered: bool) -> _End:
        self.n_ended += 1
        return _End(number, self.n_ended, question, answered)
