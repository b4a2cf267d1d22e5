"""Whether a sample that was half written is gone on with, or asked anew: what failed continuations prove. No I/O.

A continuation that brings no token may have met a server that is down, or one that takes whole requests and no
continuations (a gateway without token ids). Only whole requests tell the two apart, so a failed continuation is held
against nobody until one was answered or failed:

| what ended | the sample | the endpoint |
| --- | --- | --- |
| a continuation, without a token | has one failure more; from `TRIES` on it is asked whole | is in doubt |
| a continuation, answered | has no failure | is trusted |
| a whole request, answered | is done | if in doubt: one doubt more, at `DOUBTS` no continuation in this session |
| a whole request, failed by the server or refused | all may go on again | is no longer in doubt: it was the server |
| a whole request, failed by chance | – (its question may be what fails) | is no longer in doubt |

An endpoint that is in doubt and set aside, or that refused a continuation by 429, gets a whole request next: a limiter
refuses that one, too, and a gateway that takes no continuations is found out without many refusals. What had been
written is kept until another reply brings tokens, so that a server that was down costs nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from harness.generation.plan import Task

TRIES = 2
"""A sample is asked anew by an endpoint after this many continuations there, in a row, that brought no token."""

DOUBTS = 3
"""An endpoint gets no more continuations when this many whole requests were answered after failed continuations, and
no continuation in between. A restart of the server accounts for one."""


class Continuations:
    """See the module. lane_number: an endpoint's, as in `Lanes`."""

    def __init__(self) -> None:
        self._failures: defaultdict[int, Counter[Task]] = defaultdict(Counter)  # by lane_number
        self._in_doubt: set[int] = set()
        self._refused: set[int] = set()  # those in doubt that answered 429
        self._doubts: dict[int, int] = {}
        self._off: set[int] = set()

    def allowed(self, task: Task, lane_number: int, *, set_aside: bool) -> bool:
        """Whether the next request for `task` at this endpoint may go on with what had been written."""
        probe = lane_number in self._refused or (set_aside and lane_number in self._in_doubt)
        return lane_number not in self._off and not probe and self._failures[lane_number][task] < TRIES

    def failed(self, task: Task, lane_number: int, *, refused: bool = False) -> int:
        """A continuation brought no token; returns how many of this sample have failed there. refused: by 429."""
        self._failures[lane_number][task] += 1
        self._in_doubt.add(lane_number)
        if refused:
            self._refused.add(lane_number)
        return self._failures[lane_number][task]

    def answered(self, task: Task, lane_number: int) -> None:
        """A continuation came to a sample."""
        self.forget(task)
        self._trust(lane_number)
        self._doubts.pop(lane_number, None)

    def whole_answered(self, task: Task, lane_number: int) -> bool:
        """A whole request came to a sample; returns whether the endpoint gets no continuation from now on."""
        self.forget(task)
        if lane_number not in self._in_doubt:
            return False
        self._trust(lane_number)
        self._doubts[lane_number] = self._doubts.get(lane_number, 0) + 1
        if self._doubts[lane_number] < DOUBTS or lane_number in self._off:
            return False
        self._off.add(lane_number)
        return True

    def whole_failed(self, lane_number: int, *, by_chance: bool) -> None:
        """A whole request failed, by the server's fault, its pace or by chance."""
        self._trust(lane_number)
        if not by_chance:
            self._failures[lane_number].clear()

    def forget(self, task: Task) -> None:
        """`task` has arrived, or is given up."""
        for failures in self._failures.values():
            del failures[task]

    def _trust(self, lane_number: int) -> None:
        self._in_doubt.discard(lane_number)
        self._refused.discard(lane_number)
