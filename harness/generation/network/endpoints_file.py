"""A file of endpoints, one per line, that may change while a run goes on; or a folder in which servers register.

http://node1:8000/v1
http://node2:8000/v1   # the slower one

In a folder, each file `*.url` counts, one per server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.client.address.endpoint import Endpoint
from harness.core.errors import UsageError
from harness.core.files import read_named
from harness.core.inert import visible

MAX_BYTES = 1024 * 1024
MAX_ENDPOINTS = 4096

REGISTERED = "*.url"
"""Pattern of the files in a folder in which servers register."""

_State = tuple[tuple[str, int, int, int], ...]
"""Name, time, size and inode of each file."""


class EndpointsFile:
    """The endpoints in the file or folder `path`. complete: makes an endpoint of an address, with this run's key."""

    def __init__(self, path: Path, complete: Callable[[str], Endpoint] = Endpoint.parse) -> None:
        self.path = path.absolute()
        self._complete = complete
        self._seen: _State | None = None

    def read(self) -> tuple[Endpoint, ...]:
        """The endpoints in the file now. Raises `UsageError` naming file and line."""
        endpoints: dict[str, Endpoint] = {}
        for where, words in self._lines():
            position = f"base_url={self.path}, {where}"
            endpoint = self._endpoint(words, position)
            if endpoint.base_url in endpoints:
                raise UsageError(f"{position}: {endpoint.base_url} is listed twice. Leave one of them out.")
            endpoints[endpoint.base_url] = endpoint
        if not endpoints and self.path.is_dir():
            raise self._refused(f"no server has registered: the folder holds no file {REGISTERED}.")
        if not 1 <= len(endpoints) <= MAX_ENDPOINTS:
            raise self._refused(f"{len(endpoints)} addresses; expected 1 to {MAX_ENDPOINTS}.")
        return tuple(endpoints.values())

    def _lines(self) -> list[tuple[str, list[str]]]:
        """Read the file or folder of endpoints: (position, words) of each line that is not empty or a comment."""
        try:
            # Before the file is read: a change during the read then shows at the next look.
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
            raise self._refused(f"over {MAX_BYTES} bytes; expected one address a line.")
        whose = "" if path == self.path else f"{visible(path.name, 80)}, "
        for number, line in enumerate(data.decode("utf-8").splitlines(), 1):
            if words := line.partition("#")[0].replace(",", " ").split():
                yield f"{whose}line {number}", words

    def addresses(self) -> list[str]:
        """The addresses as written in the file. Raises `UsageError`."""
        return [words[0] for _, words in self._lines()]

    def changed(self) -> tuple[Endpoint, ...] | None:
        """The endpoints, if the file has changed since the last look; else None.

        Raises `UsageError` for a bad file, once after each change of it.
        """
        try:
            state = self._state()
        except OSError:
            return None  # An editor has moved the old version away, and the new one is not there yet.
        return self.read() if state != self._seen else None

    def _state(self) -> _State:
        """Times and sizes of the files, by which a change is noticed."""
        files = []
        for path in self._files():
            try:
                now = path.stat()
            except FileNotFoundError:
                if path == self.path:
                    raise
                # Its server left between the listing and this look.
                continue
            files.append((path.name, now.st_mtime_ns, now.st_size, now.st_ino))
        return tuple(files)

    def _endpoint(self, words: list[str], position: str) -> Endpoint:
        try:
            if words[1:]:
                line = visible(" ".join(words), 80)
                raise UsageError(f"expected one address a line, without a weight, found {line!r}.")
            return self._complete(words[0])
        except UsageError as error:
            raise UsageError(f"{position}: {error.sentence}") from error

    def _refused(self, why: str) -> UsageError:
        return UsageError(why, field="base_url", value=self.path)
