"""Which endpoints a run may ask: follows the file of endpoints, and checks each that joins on a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Thread

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.core.errors import ServerError, UsageError
from harness.generation.network.endpoints_file import EndpointsFile

RETRY_S = 2.0
"""Seconds between two checks of an endpoint that does not answer yet."""

Check = Callable[[Endpoint], str | None]
"""Blocking function: endpoint → a sentence why it may not join; None if it may. Raises `ServerError` while it is down.
"""


class _Verdict(msgspec.Struct, eq=False):
    """Whether an endpoint may join, from its listing on. admitted: None while it is being checked."""

    admitted: bool | None = None


class Admission:
    """Decides which endpoints may be asked. Called on the network's event loop; never waits.

    check: None: every endpoint may be asked. listed: the endpoints of the run. present: those that may be asked from
    the start; the others were down. file: lists the endpoints from then on; None: the list never changes.
    """

    def __init__(
        self,
        check: Check | None,
        listed: Sequence[Endpoint],
        present: Sequence[Endpoint],
        on_event: Callable[..., None],
        file: EndpointsFile | None = None,
    ) -> None:
        self._check = check
        self._on_event = on_event
        self._file = file
        self._listed = listed
        self._in_use = list(present)
        self._verdicts = {endpoint.base_url: _Verdict(admitted=True) for endpoint in present}
        self._stopped = Event()

    def changed(self) -> list[Endpoint] | None:
        """The endpoints that may be asked from now on; None if they are those of the last call, or none."""
        try:
            listed = None if self._file is None else self._file.changed()
        except UsageError as error:
            self._on_event("endpoints_not_changed", reason=str(error))
            return None
        self._listed = self._listed if listed is None else listed
        admitted = self.admitted(self._listed)
        if not admitted or admitted == self._in_use:
            return None
        self._in_use = admitted
        return admitted

    def admitted(self, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """Return those of `endpoints` that have passed their check, in order.

        Starts to check each new endpoint (is it the run's model?); call again for the result.
        """
        listed = {endpoint.base_url for endpoint in endpoints}
        for url in self._verdicts.keys() - listed:
            del self._verdicts[url]  # Its thread ends. An endpoint that returns may be another server.
        for endpoint in endpoints:
            if endpoint.base_url not in self._verdicts:
                verdict = self._verdicts[endpoint.base_url] = _Verdict(admitted=None if self._check else True)
                # A server that loads its model keeps a check waiting for minutes.
                if self._check is not None:
                    arguments = (self._check, endpoint, verdict)
                    Thread(target=self._look, args=arguments, daemon=True, name="admission").start()
        return [endpoint for endpoint in endpoints if self._verdicts[endpoint.base_url].admitted]

    def stop(self) -> None:
        """Start no more checks."""
        self._stopped.set()

    def _look(self, check: Check, endpoint: Endpoint, verdict: _Verdict) -> None:
        """Check an endpoint until it answers or leaves the list, and note whether it may join; the work of a thread."""
        while not self._stopped.is_set() and self._verdicts.get(endpoint.base_url) is verdict:
            try:
                refusal = check(endpoint)
            except ServerError:
                self._stopped.wait(RETRY_S)
                continue
            except Exception as error:  # noqa: BLE001 - a bug in a check keeps the endpoint out, and is logged
                refusal = f"the endpoint could not be examined: {error}"
            verdict.admitted = refusal is None
            if refusal is not None:
                self._on_event("endpoint_refused", endpoint=endpoint.base_url, reason=refusal)
            return
