"""`engine.jsonl`: the servers' metrics during a run, one line per reading of an endpoint.

The metrics are named as in `server_launchers.engines.metrics`. The file is optional: no sample depends on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from harness.core import codec
from harness.core.files import open_untrusted
from harness.runs.layout import RunFolder
from harness.runs.line_file import appended_lines

MAX_FILE_BYTES = 32 * 1024 * 1024
"""Maximum size of the file in bytes; anything beyond it is neither written nor read."""

NO_PAGE = "HTTP 404"
"""The reason given for a server without a metrics page."""

Series = dict[str, float | None]
"""Labels (as on the page, sorted, without the model's) → the value; None if it is not finite or not unique."""


class EnginePage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reading of a metrics page."""

    engine: str = ""
    """Metric name prefix; empty if there are no metrics (see `why`)."""
    models: dict[str, dict[str, Series]] = {}
    """Series by model name (as shown on the page; empty if the page names none), then by quantity."""
    started: str = ""
    """Opaque identifier for one start of the server."""
    why: str = ""
    """Why there are no metrics; otherwise empty."""


class EngineReading(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reading of an endpoint's metrics; one line of `engine.jsonl`."""

    session: float
    """Unix time at which the session started. Lines with the same value belong to the same session."""
    time: float
    """Seconds since the session started."""
    endpoint: str
    """Base URL of the endpoint."""
    page: EnginePage
    """The metrics page."""
    in_flight: int = 0
    """Number of client requests in flight."""
    concurrency: int = 0
    """Maximum number of client requests in flight."""
    arrived: int = 0
    """Number of tokens that the client has received so far in the session."""


def read_engine_pages(folder: RunFolder) -> Iterator[EngineReading]:
    """The readings of a run, in file order; empty if there is no file. Unreadable lines are left out."""
    with contextlib.suppress(OSError), open_untrusted(folder.engine) as file:
        for line in appended_lines(file):
            if line.offset + line.length > MAX_FILE_BYTES:
                return
            with contextlib.suppress(codec.DecodeError):
                yield codec.decode(line.data or b"", EngineReading)
