"""Bugs to plant in the dispatcher, each a change of a few characters, to see that the simulator finds them."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from harness.generation.dispatch.continuations import Continuations
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.lanes import Lane, Lanes
from harness.generation.dispatch.retry import Retries
from harness.generation.dispatch.schedule import Scheduler


class Bug(NamedTuple):
    """In `owner.name`, `right` becomes `wrong`."""

    owner: type
    name: str
    right: str
    wrong: str


PLANTED = {
    "a lost wake-up: nobody wakes for a sample that waits to be asked again": Bug(
        Dispatcher, "_seconds_to_next_change", "(due := self._retries.next_due) is not None", "(due := 0.0) is None"
    ),
    "a double hand-out: what is given back is handed out twice": Bug(
        Scheduler, "give_back", "self._returned.append(task)", "self._returned.extend([task, task])"
    ),
    "an endpoint set aside is never probed again": Bug(Lane, "limit", "1 if self.set_aside", "0 if self.set_aside"),
    "an in-flight count leaks where a request is cancelled": Bug(
        Lanes, "cancelled", "self._lanes[ticket.place].pace.ended(ticket)", "pass"
    ),
    "a give-up forgets its key": Bug(
        Dispatcher, "_give_up", "self.causes.gave_up(task, kind, message, status)", "pass"
    ),
    "the budget of retries is counted and not obeyed": Bug(
        Retries, "failed", "if not self.budget.take():", "if not (self.budget.take() or True):"
    ),
    "one sample too many on its way to the disk": Bug(Dispatcher, "_fill", "self._n_unwritten <= limit and", ""),
    "a paused session asks": Bug(Dispatcher, "next", "and not self._paused", ""),
    "a continuation that fails is tried for ever": Bug(
        Continuations, "allowed", "self._failures[place][task] < TRIES", "True"
    ),
    "the end comes before the disk has all": Bug(
        Dispatcher, "_ended", "if self._flights or self._n_unwritten:", "if self._flights:"
    ),
}
"""The first five are classics of such programs."""

FOUND = {
    "a server that says 429 for ever, at its own pace, was never taken for down": (
        17591,
        Bug(Lanes, "failed", "lane.in_flight == 1", "(lane.pace.limit == 1)"),
    ),
    "the patience ended while a probe's reply was under way": (
        83321,
        Bug(Lanes, "gave_up", "lane.try_owed or lane.in_flight", "lane.try_owed"),
    ),
    "a request that failed while the user cancelled its sample ended the session": (
        12,
        Bug(Dispatcher, "cancel", "self._flights[task].given_up = True", "pass"),
    ),
}
"""Real ones that the simulator found, each with a seed that meets it."""


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    """The bug is there for the length of the block."""
    real = inspect.getattr_static(bug.owner, bug.name)
    function = real.fget if isinstance(real, property) else real
    assert callable(function)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(bug.right) == 1, f"{bug.owner.__name__}.{bug.name} no longer reads {bug.right!r}"
    space: dict[str, Any] = {}
    module = vars(sys.modules[bug.owner.__module__])
    exec(compile(source.replace(bug.right, bug.wrong), f"<{bug.name} with a bug>", "exec"), module, space)
    setattr(bug.owner, bug.name, space[bug.name])
    try:
        yield
    finally:
        setattr(bug.owner, bug.name, real)
