"""A file of endpoints, one a line, that may change while a run goes on.

http://node1:8000/v1
http://node2:8000/v1 weight=2   # twice the share
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.client.address.endpoint import Endpoint, split_weight
from harness.core.errors import UsageError
from harness.core.wording import option

MAX_BYTES = 1024 * 1024
MAX_ENDPOINTS = 4096


class EndpointsFile:
    """The endpoints in `path`. complete: gives an address the key and headers of this run."""

    def __init__(self, path: Path, complete: Callable[[str], Endpoint] = Endpoint.parse) -> None:
        self.path = path.absolute()
        self._complete = complete
        self._seen: tuple[int, int, int] | None = None

    def read(self) -> tuple[Endpoint, ...]:
        """What the file says now. Raises `UsageError` naming file and line."""
        found: dict[str, Endpoint] = {}
        for number, words in self._lines():
            place = f"{option('endpoints_file', self.path)}, line {number}"
            endpoint = self._endpoint(words, place)
            if endpoint.base_url in found:
                raise UsageError(f"{place}: {endpoint.base_url} stands there twice.")
            found[endpoint.base_url] = endpoint
        if not 1 <= len(found) <= MAX_ENDPOINTS:
            raise self._refused(f"{len(found)} addresses; expected 1 to {MAX_ENDPOINTS}.")
        return tuple(found.values())

    def _lines(self) -> list[tuple[int, list[str]]]:
        """(number, words) of each line that says anything."""
        try:
            with self.path.open("rb") as file:
                self._seen = self._state()
                data = file.read(MAX_BYTES + 1)
            text = data.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self._refused(f"{error}.") from error
        if len(data) > MAX_BYTES:
            raise self._refused(f"over {MAX_BYTES} bytes; expected one address a line.")
        rows = ((n, line.partition("#")[0].replace(",", " ").split()) for n, line in enumerate(text.splitlines(), 1))
        return [(number, words) for number, words in rows if words]

    def addresses(self) -> list[str]:
        """The addresses as they stand there. Raises `UsageError`."""
        return [words[0] for _, words in self._lines()]

    def changed(self) -> tuple[Endpoint, ...] | None:
        """What the file says, if it is another one than at the last look; else None. Raises `UsageError`, once."""
        try:
            state = self._state()
        except OSError:
            return None  # between two versions: an editor has moved the old one away
        return self.read() if state != self._seen else None

    def forget(self) -> None:
        """The next `changed` reads the file in any case."""
        self._seen = None

    def _state(self) -> tuple[int, int, int]:
        now = self.path.stat()
        return now.st_mtime_ns, now.st_size, now.st_ino

    def _endpoint(self, words: list[str], place: str) -> Endpoint:
        try:
            address, weight = split_weight(",".join(words))
            return replace(self._complete(address), weight=weight)
        except UsageError as error:
            raise UsageError(f"{place}: {error.sentence.marked}") from error

    def _refused(self, why: str) -> UsageError:
        return UsageError(why, field="endpoints_file", value=self.path)
