"""What a run under way can be told to do: the verbs of `harness ctl`, read, checked and carried out on the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.client.address.endpoint import Endpoint
from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted, visible
from harness.core.wording import option
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.network.admission import Admission
from harness.generation.network.control import Answer, ControlCommand
from harness.generation.network.descriptors import affordable
from harness.generation.network.endpoints_file import EndpointsFile
from harness.generation.progress import Progress
from harness.generation.settings import MAX_CONCURRENCY

VERBS = {
    "status": "What the run is doing.",
    "concurrency": "Change the number of requests in flight.",
    "pause": "Ask nothing more; what is in flight ends, and the run waits.",
    "resume": "Go on after a pause.",
    "drain": "Ask nothing more, and end the session when what is in flight has ended.",
    "cancel": "Give up one sample (QUESTION_ID:INDEX) or a question (QUESTION_ID) for this session; they stay owed.",
    "reload": "Read the file of endpoints again.",
}
_WITH_VALUE = ("concurrency", "cancel")


class Steering:
    """Obeys the commands for one session, and follows its file of endpoints, if there is one."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        facts: Callable[[], Progress],
        endpoints_file: EndpointsFile | None,
        on_event: Callable[..., None],
        admission: Admission | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._facts = facts
        self._on_event = on_event
        self._endpoints_file = endpoints_file
        self._admission = admission
        self._listed: Sequence[Endpoint] = admission.listed if admission is not None else ()
        self._taken = admission.present if admission is not None else []

    def obey(self, command: ControlCommand) -> Answer:
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
        if not self._dispatcher.ending.asking:
            raise UsageError("the run is ending: it asks nothing more.")
        if verb == "concurrency":
            return self._concurrency(value)
        if verb == "cancel":
            return self._cancel(value)
        if verb == "reload":
            return self._reload()
        facts = self._facts()
        if verb == "drain":
            self._dispatcher.drain("drained by `harness ctl`")
            return Answer(sentence=f"draining: {facts.in_flight} requests in flight end, then the session ends")
        if verb == "pause":
            self._dispatcher.pause()
            return Answer(sentence=f"paused; {facts.in_flight} requests in flight go on")
        self._dispatcher.resume()
        return Answer(sentence="resumed" if facts.paused else "the run was not paused")

    def follow_file(self) -> str:
        """Take on what the file of endpoints says, if it has changed. Returns what came of it, in a sentence."""
        if not self._dispatcher.ending.asking or (self._endpoints_file is None and self._admission is None):
            return "no file of endpoints is followed"
        try:
            endpoints = self._endpoints_file.changed() if self._endpoints_file is not None else None
        except UsageError as error:
            self._on_event("endpoints_not_changed", reason=str(error))
            return f"{error.sentence.marked} The endpoints stay as they are."
        if self._admission is None:
            return "the file has not changed" if endpoints is None else self._dispatcher.replace_endpoints(endpoints)
        return self._admit(endpoints, self._admission)

    def _admit(self, changed: Sequence[Endpoint] | None, admission: Admission) -> str:
        """Take on those of the file's endpoints that may join by now."""
        self._listed = self._listed if changed is None else changed
        admitted = admission.of(self._listed)
        left_out = len(self._listed) - len(admitted)
        if not admitted or admitted == self._taken:
            return f"{left_out} endpoints are looked at, or refused" if left_out else "the file has not changed"
        self._taken = admitted
        sentence = self._dispatcher.replace_endpoints(admitted)
        return f"{sentence}; {left_out} more are looked at first" if left_out else sentence

    def _status(self) -> Answer:
        facts = self._facts()
        state = "ending" if facts.stopping else "paused" if facts.paused else "running"
        sentence = f"{state}: {facts.done} of {facts.total} samples, {facts.in_flight} of {facts.concurrency} in flight"
        return Answer(sentence=sentence, facts=facts)

    def _concurrency(self, value: str) -> Answer:
        if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= MAX_CONCURRENCY:
            raise UsageError(f"concurrency {visible(value, 40)}: expected a number from 1 to {MAX_CONCURRENCY}.")
        requested = int(value[:9])
        number = affordable(requested)
        self._dispatcher.set_concurrency(number)
        limited = f"; the limit of open files (ulimit -n) allows no {requested}" if number < requested else ""
        return Answer(sentence=f"concurrency is {number}{limited}")

    def _cancel(self, key: str) -> Answer:
        # An id may itself end in a colon and a number: the whole text goes first.
        n = self._dispatcher.cancel(key, None, "cancelled by `harness ctl`")
        question_id, colon, index = key.rpartition(":")
        if not n and colon and index.isascii() and index.isdigit():
            n = self._dispatcher.cancel(question_id, int(index[:9]), "cancelled by `harness ctl`")
        if not n:
            raise UsageError(f"no sample of {quoted(key)} is still to come in this session.")
        return Answer(
            sentence=f"{n} {'sample' if n == 1 else 'samples'} cancelled; owed, and asked in the next session"
        )

    def _reload(self) -> Answer:
        if self._endpoints_file is None:
            raise UsageError(f"this run has no file of endpoints; {option('endpoints_file')} names one")
        self._endpoints_file.forget()
        return Answer(sentence=self.follow_file())
