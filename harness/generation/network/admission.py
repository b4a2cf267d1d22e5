"""Admits endpoints that join during a run: each is looked at on a thread of its own, and refused if it has another
model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Thread

from harness.client.address.endpoint import Endpoint
from harness.core.errors import ServerError

RETRY_S = 2.0
"""Seconds between two looks at an endpoint that does not answer yet."""

Check = Callable[[Endpoint], str | None]
"""Blocking function: why an endpoint may not join, in a sentence; None if it may.

Raises `ServerError` while it is down.
"""


class Admission:
    """Decides which endpoints are in. Called on the network's loop; never waits.

    listed: the endpoints of the run. present: those that are in from the start; the others were down.
    """

    def __init__(
        self, check: Check, listed: Sequence[Endpoint], present: Sequence[Endpoint], on_event: Callable[..., None]
    ) -> None:
        self._check = check
        self._on_event = on_event
        self.listed = listed
        self.present = list(present)
        self._verdicts: dict[str, bool | None] = dict.fromkeys((endpoint.base_url for endpoint in present), True)
        self._stopped = Event()

    def of(self, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """The endpoints that are in by now. The others are being looked at or were refused; call again."""
        listed = {endpoint.base_url for endpoint in endpoints}
        for url in self._verdicts.keys() - listed:
            del self._verdicts[url]  # An endpoint that returns may be another server.
        for endpoint in endpoints:
            if endpoint.base_url not in self._verdicts:
                # Present but undecided, so no second thread looks at it.
                self._verdicts[endpoint.base_url] = None
                # A server that loads its model keeps a look waiting for minutes.
                Thread(target=self._look, args=(endpoint,), daemon=True, name="admission").start()
        return [endpoint for endpoint in endpoints if self._verdicts.get(endpoint.base_url)]

    def stop(self) -> None:
        """Start no more looks."""
        self._stopped.set()

    def _look(self, endpoint: Endpoint) -> None:
        """Look at an endpoint until it answers, and note whether it may join the run; the work of a thread."""
        while not self._stopped.is_set():
            try:
                refusal = self._check(endpoint)
            except ServerError:
                self._stopped.wait(RETRY_S)
                continue
            except Exception as error:  # noqa: BLE001 - a look's bug keeps an endpoint out, and is told
                refusal = f"the endpoint could not be examined: {error}"
            # Taken off the list meanwhile: if it returns, it must be looked at anew.
            if endpoint.base_url in self._verdicts:
                self._verdicts[endpoint.base_url] = refusal is None
            if refusal is not None:
                self._on_event("endpoint_refused", endpoint=endpoint.base_url, reason=refusal)
            return
