"""What a run under way can be told to do: the verbs of `harness ctl`, read, checked and carried out on the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted, visible
from harness.generation.network.control import Answer, Command
from harness.generation.network.descriptors import affordable
from harness.generation.settings import MAX_CONCURRENCY

if TYPE_CHECKING:
    from harness.generation.network.thread import Network

VERBS = {
    "status": "What the run is doing.",
    "concurrency": "So many requests in flight from now on.",
    "pause": "Ask nothing more; what is in flight ends, and the run waits.",
    "resume": "Go on after a pause.",
    "drain": "Ask nothing more, and end the session when what is in flight has ended.",
    "cancel": "Give up one sample (QUESTION_ID:INDEX) or a question (QUESTION_ID) for this session; they stay owed.",
    "reload": "Read the file of endpoints again.",
}
_WITH_VALUE = ("concurrency", "cancel")


class Steering:
    """Obeys the commands for one network."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def obey(self, command: Command) -> Answer:
        """Carry out `command`. Raises `UsageError` with the reason when it cannot be done."""
        verb, value = command.verb, command.value
        if verb not in VERBS:
            raise UsageError(
                f"no command {visible(verb, 60)!r}; there are {', '.join(VERBS)}.{near_names(verb, VERBS)}"
            )
        if (verb in _WITH_VALUE) != bool(value):
            raise UsageError(f"{verb} {'needs a' if verb in _WITH_VALUE else 'takes no'} value.")
        if verb == "status":
            return self._status()
        if self._network.draining:
            raise UsageError("the run is ending: it asks nothing more.")
        if verb == "concurrency":
            return self._concurrency(value)
        if verb == "cancel":
            return self._cancel(value)
        if verb == "reload":
            return Answer(said=self._network.reload())
        facts = self._network.facts()
        if verb == "drain":
            self._network.drain_unhurried("drained by `harness ctl`")
            return Answer(said=f"draining: {facts.in_flight} requests in flight end, then the session ends")
        self._network.set_paused(verb == "pause")
        if verb == "pause":
            return Answer(said=f"paused; {facts.in_flight} requests in flight go on")
        return Answer(said="resumed" if facts.paused else "the run was not paused")

    def _status(self) -> Answer:
        facts = self._network.facts()
        state = "ending" if facts.stopping else "paused" if facts.paused else "running"
        said = f"{state}: {facts.done} of {facts.total} samples, {facts.in_flight} of {facts.concurrency} in flight"
        return Answer(said=said, facts=msgspec.to_builtins(facts))

    def _concurrency(self, value: str) -> Answer:
        if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= MAX_CONCURRENCY:
            raise UsageError(f"concurrency {visible(value, 40)}: expected a number from 1 to {MAX_CONCURRENCY}.")
        wanted = int(value[:9])
        number = affordable(wanted)
        self._network.set_concurrency(number)
        limited = f"; the limit of open files (ulimit -n) allows no {wanted}" if number < wanted else ""
        return Answer(said=f"concurrency is {number}{limited}")

    def _cancel(self, key: str) -> Answer:
        # An id may itself end in a colon and a number: the whole text goes first.
        n = self._network.cancel(key, None, "cancelled by `harness ctl`")
        question_id, colon, index = key.rpartition(":")
        if not n and colon and index.isascii() and index.isdigit():
            n = self._network.cancel(question_id, int(index[:9]), "cancelled by `harness ctl`")
        if not n:
            raise UsageError(f"no sample of {quoted(key)} is still to come in this session.")
        return Answer(said=f"{n} {'sample' if n == 1 else 'samples'} cancelled; owed, and asked in the next session")
