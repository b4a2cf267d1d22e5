"""A careful person beside the run, who sees each request and its end, and says whose fault a failure was.

Typed without a look at the dispatcher: from lists of everything, with no books kept. Where a person could say either,
the verdict is "unclear", and the dispatcher may do either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from harness.client.protocol.failures import RequestFailed
from harness.runs.missing import Task

Verdict = Literal["endpoint", "question", "unclear"]

TAKES_NONE = frozenset({429, 502, 503, 504, 520, 521, 522, 523, 529})
"""Statuses by which a server, or one before it, says that it takes no requests now."""


class _End(NamedTuple):
    url: str
    task: Task
    sent_at: float
    ended_at: float
    failure: RequestFailed | None
    verdict: Verdict | None = None

    @property
    def question(self) -> tuple[str, str]:
        return self.task[:2]


class Careful:
    """attempts: failures of its own that a sample may have. proven: questions of which a sample is stored."""

    def __init__(self, attempts: int, proven: set[tuple[str, str]]) -> None:
        self._attempts = attempts
        self._proven = proven
        self._ends: list[_End] = []

    def answered(self, url: str, task: Task, sent_at: float, now: float) -> None:
        self._proven.add(task[:2])
        self._ends.append(_End(url, task, sent_at, now, None))

    def failed(self, url: str, task: Task, sent_at: float, now: float, failure: RequestFailed) -> Verdict:
        """Whose fault this failure is."""
        verdict = self._verdict(url, task[:2], failure)
        self._ends.append(_End(url, task, sent_at, now, failure, verdict))
        return verdict

    def _verdict(self, url: str, question: tuple[str, str], failure: RequestFailed) -> Verdict:
        here = [end for end in self._ends if end.url == url and not self._is_final(end.failure)]
        if not any(end.failure is None for end in here):
            return "endpoint"
        if not failure.sent:
            return "endpoint"
        others_pass = self._others_pass(here, question)
        if others_pass:
            return "question"
        last = max(n for n, end in enumerate(here) if end.failure is None)
        weather = [end for end in here[last + 1 :] if end.question != question and end.verdict == "endpoint"]
        if others_pass is None and (weather or question in self._proven):
            return "endpoint"
        return "unclear"

    def _others_pass(self, here: list[_End], question: tuple[str, str]) -> bool | None:
        """Whether others surely pass where this question fails; None: surely not."""
        cleared = [n for n, end in enumerate(self._ends) if end.question == question and end.failure is None]
        since = self._ends[cleared[-1]].ended_at if cleared else float("-inf")
        first = [end for end in here if end.question == question and end.failure and end.ended_at >= since][:1]
        later = [
            end
            for end in here
            for one in first
            if end.question != question and end.sent_at > one.sent_at and end.ended_at > one.ended_at
        ]
        n_good = sum(end.failure is None for end in later)
        if not n_good:
            return None
        return 2 * n_good > len(later) and later[-1].failure is None

    @staticmethod
    def _is_final(failure: RequestFailed | None) -> bool:
        """Whether the failure says nothing but of its own request."""
        return failure is not None and failure.kind in ("too_long", "runaway")

    @staticmethod
    def last_words(kinds: set[str], down: Sequence[RequestFailed | None] | None) -> set[str]:
        """What the last line must say of samples missing for these causes; what of it is left out, it may not say.

        down: if nothing has been answered, or nothing is any more, the last failure of each endpoint.
        """
        words = set()
        if kinds - {"too_long", "rejected", "refused", "runaway", "internal"}:
            is_known = down is not None and None not in down
            words.add(once(down) if is_known else "command again to request them")
            words |= {"perhaps with a longer timeout"} if "timeout" in kinds and not is_known else set()
        if kinds & {"rejected", "refused"} and down is None:
            words.add("so a retry would fail too")
        if "too_long" in kinds:
            words.add("smaller `max_tokens`")
        return words

    def may_give_up(self, task: Task, kind: str) -> str:
        """Why the sample should not have been given up by this kind of failure; empty if it may."""
        mine = [end for end in self._ends if end.task == task and end.failure is not None]
        if kind in ("too_long", "runaway", "internal", "malformed") or len(mine) >= self._attempts:
            return ""
        last = mine[-1]
        if kind in ("rejected", "refused"):
            before = [end for end in self._ends if end.url == last.url and end.ended_at < last.ended_at]
            answered = any(end.failure is None and end.task.benchmark == task.benchmark for end in before)
            return (
                "its endpoint has answered such requests, and others do not pass"
                if (answered and last.verdict == "endpoint")
                else ""
            )
        return f"it failed {len(mine)} times, of {self._attempts}"


def once(down: Sequence[RequestFailed | None] | None) -> str:
    """When the same command helps, if this is how the servers failed last."""
    takes_none = {f.status in TAKES_NONE or (f.kind == "connect" and f.sent) for f in down or () if f}
    kinds = {f.kind if f.sent else "unsent" for f in down or () if f}
    if True in takes_none:
        return "once the server accepts requests"
    if "unsent" in kinds:
        return "once the server responds"
    return "longer timeout, or" if "timeout" in kinds else "every request fails"
