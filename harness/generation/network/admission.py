"""Which endpoints a run may use: follows the endpoints file, and checks each joining endpoint in a separate thread.

The file has one endpoint per line and may change during a run. It may also be a folder in which servers register, with
one `*.url` file per server.

http://node1:8000/v1
http://node2:8000/v1   # the slower one
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event, Thread

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.core.errors import ServerError, UsageError
from harness.core.files import read_named
from harness.core.sanitize import visible

# ---- the file that lists them


MAX_BYTES = 1024 * 1024
MAX_ENDPOINTS = 4096

REGISTERED = "*.url"
"""Pattern of the files in a folder in which servers register."""

_State = tuple[tuple[str, int, int, int], ...]
"""Name, time, size and inode of each file."""


class EndpointsFile:
    """The endpoints in the file or folder `path`. complete: makes an endpoint from an address, with this run's key."""

    def __init__(self, path: Path, complete: Callable[[str], Endpoint] = Endpoint.parse) -> None:
        self.path = path.absolute()
        self._complete = complete
        self._seen: _State | None = None

    def read(self) -> tuple[Endpoint, ...]:
        """The endpoints currently in the file. Raises a `UsageError` that names the file and line."""
        endpoints: dict[str, Endpoint] = {}
        for where, words in self._lines():
            position = f"base_url={self.path}, {where}"
            endpoint = self._endpoint(words, position)
            if endpoint.base_url in endpoints:
                raise UsageError(f"{position}: {endpoint.base_url} is listed twice. Remove one of them.")
            endpoints[endpoint.base_url] = endpoint
        if not endpoints and self.path.is_dir():
            raise self._refused(f"no server has registered: the folder has no file {REGISTERED}.")
        if not 1 <= len(endpoints) <= MAX_ENDPOINTS:
            raise self._refused(f"{len(endpoints)} addresses; expected 1 to {MAX_ENDPOINTS}.")
        return tuple(endpoints.values())

    def _lines(self) -> list[tuple[str, list[str]]]:
        """Read the file or folder of endpoints: (position, words) of each line that is not empty or a comment."""
        try:
            # Before the file is read, so that a change during the read is noticed at the next check.
            self._seen = self._state()
            return [line for file in self._files() for line in self._lines_of(file)]
        except OSError as error:
            name = Path(error.filename or self.path).name
            which = "" if name == self.path.name else f"{visible(name, 80)}: "
            raise self._refused(f"{which}{error.strerror or error}.") from error
        except UnicodeDecodeError as error:
            raise self._refused(f"{error}.") from error

    def _files(self) -> list[Path]:
        return sorted(self.path.glob(REGISTERED)) if self.path.is_dir() else [self.path]

    def _lines_of(self, path: Path) -> Iterator[tuple[str, list[str]]]:
        """Read one file of endpoints: (position for messages, words) of each line that is not empty or a comment."""
        try:
            data = read_named(path, MAX_BYTES)
        except FileNotFoundError:
            if path == self.path:
                raise
            return  # A server that has just left removed its file.
        if len(data) > MAX_BYTES:
            raise self._refused(f"larger than {MAX_BYTES} bytes; expected one address per line.")
        whose = "" if path == self.path else f"{visible(path.name, 80)}, "
        for number, line in enumerate(data.decode("utf-8").splitlines(), 1):
            if words := line.partition("#")[0].replace(",", " ").split():
                yield f"{whose}line {number}", words

    def addresses(self) -> list[str]:
        """The addresses as written in the file. Raises `UsageError`."""
        return [words[0] for _, words in self._lines()]

    def changed(self) -> tuple[Endpoint, ...] | None:
        """The endpoints if the file has changed since the last check, else None.

        Raises `UsageError` for a bad file, once per change of the file.
        """
        try:
            state = self._state()
        except OSError:
            return None  # An editor has moved the old version away, and the new one does not exist yet.
        return self.read() if state != self._seen else None

    def _state(self) -> _State:
        """Times and sizes of the files, from which a change is detected."""
        files = []
        for path in self._files():
            try:
                now = path.stat()
            except FileNotFoundError:
                if path == self.path:
                    raise
                # Its server left between the listing and this check.
                continue
            files.append((path.name, now.st_mtime_ns, now.st_size, now.st_ino))
        return tuple(files)

    def _endpoint(self, words: list[str], position: str) -> Endpoint:
        try:
            if words[1:]:
                line = visible(" ".join(words), 80)
                raise UsageError(f"expected one address per line, without a weight or an option, found {line!r}.")
            return self._complete(words[0])
        except UsageError as error:
            raise UsageError(f"{position}: {error.sentence}") from error

    def _refused(self, why: str) -> UsageError:
        return UsageError(why, field="base_url", value=self.path)


# ---- the check of each that joins


RETRY_S = 2.0
"""Seconds between two checks of an endpoint that is not answering yet."""

Check = Callable[[Endpoint], str | None]
"""Blocking function: endpoint → a sentence on why it may not join, or None. Raises `ServerError` while it is down."""


class _Verdict(msgspec.Struct, eq=False):
    """Whether a listed endpoint may join. admitted: None while the endpoint is being checked."""

    admitted: bool | None = None


class Admission:
    """Decides which endpoints may be used. Called on the network's event loop; never blocks.

    check: None: every endpoint may be used. listed: the run's endpoints. present: the endpoints that may be used from
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
        """The endpoints that may be used from now on; None if they are the same as at the last call or there are
        none.
        """
        try:
            listed = None if self._file is None else self._file.changed()
        except UsageError as error:
            self._on_event("endpoints_not_changed", reason=str(error))
            return None
        self._listed = self._listed if listed is None else listed
        admitted = self.members(self._listed)
        if not admitted or admitted == self._in_use:
            return None
        self._in_use = admitted
        return admitted

    def members(self, endpoints: Sequence[Endpoint]) -> list[Endpoint]:
        """Return the members of `endpoints` that have passed their check, in order.

        Starts a check of each new endpoint (does it run the same model?); call again for the result.
        """
        listed = {endpoint.base_url for endpoint in endpoints}
        for url in self._verdicts.keys() - listed:
            del self._verdicts[url]  # Its thread ends. If the endpoint returns, it may be a different server.
        for endpoint in endpoints:
            if endpoint.base_url not in self._verdicts:
                verdict = self._verdicts[endpoint.base_url] = _Verdict(admitted=None if self._check else True)
                # A server that is loading its model delays a check for minutes.
                if self._check is not None:
                    arguments = (self._check, endpoint, verdict)
                    Thread(target=self._check_until_answer, args=arguments, daemon=True, name="admission").start()
        return [endpoint for endpoint in endpoints if self._verdicts[endpoint.base_url].admitted]

    def stop(self) -> None:
        """Start no more checks."""
        self._stopped.set()

    def _check_until_answer(self, check: Check, endpoint: Endpoint, verdict: _Verdict) -> None:
        """Check an endpoint until it answers or leaves the list, and note whether it may join; the body of a thread."""
        while not self._stopped.is_set() and self._verdicts.get(endpoint.base_url) is verdict:
            try:
                refusal = check(endpoint)
            except ServerError:
                self._stopped.wait(RETRY_S)
                continue
            except Exception as error:  # noqa: BLE001 - a bug in a check keeps the endpoint out, and is logged
                refusal = f"the endpoint could not be checked: {error}"
            verdict.admitted = refusal is None
            if refusal is not None:
                self._on_event("endpoint_refused", endpoint=endpoint.base_url, reason=refusal)
            return
