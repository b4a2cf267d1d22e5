"""A file of endpoints, one a line, that may change while a run goes on.

http://node1:8000/v1
http://node2:8000/v1 weight=2   # twice the share
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from harness.client.address.endpoint import Endpoint
from harness.core.errors import UsageError
from harness.core.inert import visible

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
            endpoint = self._endpoint(words, f"--endpoints {self.path}, line {number}")
            if endpoint.base_url in found:
                raise UsageError(f"--endpoints {self.path}, line {number}: {endpoint.base_url} stands there twice.")
            found[endpoint.base_url] = endpoint
        if not 1 <= len(found) <= MAX_ENDPOINTS:
            raise UsageError(f"--endpoints {self.path}: {len(found)} addresses; expected 1 to {MAX_ENDPOINTS}.")
        return tuple(found.values())

    def _lines(self) -> list[tuple[int, list[str]]]:
        """(number, words) of each line that says anything."""
        try:
            with self.path.open("rb") as file:
                self._seen = self._state()
                data = file.read(MAX_BYTES + 1)
            text = data.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--endpoints {self.path}: {error}.") from error
        if len(data) > MAX_BYTES:
            raise UsageError(f"--endpoints {self.path}: over {MAX_BYTES} bytes; expected one address a line.")
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
        weight = 1.0
        for word in words[1:]:
            name, _, value = word.partition("=")
            try:
                weight = float(value) if name == "weight" else -1.0
            except ValueError:
                weight = -1.0
            if not 0 < weight < float("inf"):
                raise UsageError(f"{place}: expected `weight=NUMBER` after the address, found {visible(word, 60)!r}.")
        try:
            return replace(self._complete(words[0]), weight=weight)
        except UsageError as error:
            raise UsageError(f"{place}: {error}") from error
