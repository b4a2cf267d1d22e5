"""The closed list of what differs between two runs of one scene: nothing else is taken out of what is compared.

Text holds ports, folders, times and names of the machine (`TEXT`). JSON holds measured seconds and what follows from
them (`MEASURED`, only in scenes that ask a server: a stored run is scored to the same digits) and facts of the machine
(`MACHINE`).
"""

from __future__ import annotations

import platform
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TEXT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?"), "<time>"),
    (re.compile(r"\b(\d+ (s|min|h|days?) )+ago"), "<n> ago"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(rf"\b{re.escape(socket.gethostname())}\b"), "<host>"),
    (re.compile(re.escape(platform.platform())), "<system>"),
)
"""Patterns in any text, and what stands in their place."""

PADDING = re.compile(r" {2,}")
"""Blanks of a table's line, where the line holds a folder or an address."""

SECONDS_IN_TEXT: tuple[tuple[re.Pattern[str], str], ...] = (
    # A forecast gives one time where the shortest and the longest one read the same.
    (re.compile(r"time: (about \d+ s|\d+ s to \d+ s) (with \d+ requests? in flight)( \(.*\))?"), r"time: <n> s \2"),
    (re.compile(r"\b\d[\d,.]* (s|ms|seconds|tokens/s)\b"), r"<n> \1"),
)
"""Measured durations in a sentence, in scenes that ask a server."""

MEASURED = frozenset(
    {"seconds", "timing", "speed", "workload", "lag_s", "crc", "started_at", "ended_at", "seconds_left", "eta"}
)
"""JSON keys whose value was measured by a clock; `crc` is the checksum of a line that holds such values."""

MACHINE = frozenset({"python", "system", "harness_version", "recipe"})
"""JSON keys of the machine and of the installed version; `recipe` is a checksum in which the path of a file stands."""


class Volatile:
    """Puts names in the place of what differs.

    folder: of the scene. ports: port → the name of the server that listens there. live: a server was asked, so that
    there are measured values.
    """

    def __init__(self, folder: Path, ports: Mapping[int, str], live: bool) -> None:
        self._live = live
        import harness

        checkout = Path(str(harness.__file__)).resolve().parent.parent
        names = {
            str(folder): "folder",
            str(folder.resolve()): "folder",
            sys.executable: "python",
            str(checkout): "code",
        }
        self._places = sorted(names.items(), key=lambda pair: -len(pair[0]))
        self._ports = [
            (re.compile(rf"\b(127\.0\.0\.1|localhost):{port}\b"), f"<{name}>") for port, name in ports.items()
        ]

    def text(self, value: str) -> str:
        """The text with names in the place of what differs."""
        settled = value
        for place, name in self._places:
            settled = settled.replace(place, f"<{name}>")
        for pattern, name in self._ports:
            settled = pattern.sub(name, settled)
        if settled != value:  # a table pads its cells by the length of the path
            settled = PADDING.sub("  ", settled)
        for pattern, name in (*TEXT, *(SECONDS_IN_TEXT if self._live else ())):
            settled = pattern.sub(name, settled)
        return settled

    def value(self, value: Any) -> Any:
        """The same of a JSON value, its keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._of_key(str(key), item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def _of_key(self, key: str, item: Any) -> Any:
        if key in MACHINE and isinstance(item, str):
            return f"<{key}>"
        if self._live and key in MEASURED and item is not None:
            return "<measured>"
        return self.value(item)
