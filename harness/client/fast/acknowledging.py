"""When the packets of a server are acknowledged: by the read that takes them, or up to 40 ms later by the kernel.

An acknowledgement is a packet of its own, and a read that sends one takes twice as long (5.9 µs instead of 2.7 µs). In
Linux's mode for interactive connections (`TCP_QUICKACK` 0) a read sends none: the kernel waits for a second packet, for
at most 40 ms, and acknowledges outside of this process. But the first wait that runs out ends the mode. With a token
every 50 ms it must therefore be set again before each read.

Danger: a server that collects small packets (Nagle's algorithm, `TCP_NODELAY` not set) sends no token before the one
before it is acknowledged. There the wait would hold tokens back, and their times would be wrong. So the mode is set
again in two cases only:

    case    what shows that the wait holds nothing back
    proven  a packet came less than 35 ms after a packet that was not acknowledged: the server does not collect
    slow    all packets of a batch came 50 ms apart or more, nearly all with one event: nothing comes within the wait

In every other case a connection has the mode from its start until the first wait runs out. That is long enough to show
that a server is of the case "proven".
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub

from harness.client.fast.batches import END_OF_FRAME

HELD_S = 0.035
"""A server that collects sends its next packet later than this after one that waits: the wait takes 40 ms."""

SLOW_S = 0.05
"""Seconds between the packets of a slow reply: a wait is over before the next one comes."""

MIN_GAP_S = 0.015
"""Mean seconds between reads below which setting the mode costs more than it saves: two packets share one wait."""

MAX_GAP_S = 0.2
"""Mean seconds between reads above which setting the mode saves nothing.

After such a pause the kernel acknowledges packets as they come, outside of this process.
"""

MAX_JOINED = 1 / 8
"""Largest fraction of the reads of a slow reply that may hold a second event."""

_MIN_READS = 6
"""Number of reads in a batch from which on it is judged."""

_PACKET_BYTES = 1200
"""A read up to this size was one packet; the kernel does not wait after several."""


class Acknowledging:
    """When the kernel acknowledges the packets of one server: at once, or, if `late`, after a wait.

    While `late` is true, each read from a socket of this server sets the mode with the wait again.
    """

    __slots__ = ("_proven", "late")

    def __init__(self) -> None:
        self.late = False
        self._proven = False

    def judge(self, pieces: Sequence[bytes], stamps: Sequence[float], *, fresh: bool) -> None:
        """Decide `late` by a batch of reads and their receive stamps in seconds.

        fresh: the batch begins with the first read of a connection, which was in the mode from its start.
        """
        # Equal stamps say that the wall clock was set meanwhile (`ClockOffset`).
        if fresh and len(pieces) > 1 and len(pieces[0]) <= _PACKET_BYTES and 0 < stamps[1] - stamps[0] < HELD_S:
            self._proven = True
        if len(pieces) < _MIN_READS:
            return
        gap = (stamps[-1] - stamps[0]) / (len(stamps) - 1)
        self.late = MIN_GAP_S < gap < MAX_GAP_S and (self._proven or _is_slow(pieces, stamps))


def _is_slow(pieces: Sequence[bytes], stamps: Sequence[float]) -> bool:
    """Whether all reads came far apart, nearly all with one event each; the last read of a reply may have several."""
    if min(map(sub, stamps[1:], stamps)) < SLOW_S:
        return False
    # A server that collects joins many events; a client that reads late joins a few.
    n_joined = b"".join(pieces[:-1]).count(END_OF_FRAME) - (len(pieces) - 1)
    return 0 <= n_joined <= len(pieces) * MAX_JOINED
