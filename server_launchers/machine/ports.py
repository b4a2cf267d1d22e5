"""The TCP ports of this machine: ports for a server to listen on, and the programs that already use a port."""

from __future__ import annotations

import contextlib
import errno
import random
import socket
from collections.abc import Sequence

from server_launchers.errors import LaunchError
from server_launchers.machine import processes

MAX_PORT = 65_535
"""Largest TCP port number."""

DRAWN = range(20_000, 30_000)
"""Ports that are drawn for servers: below the system's ephemeral ports (Linux: from 32,768), and separate from those of
Ray's workers (10,002 to 19,999); the internal ports of `engines.vllm` are below them."""


def following(first: int, count: int) -> range:
    """The `count` ports starting at `first`. Raises LaunchError if the last of them is not a valid port."""
    last = first + count - 1
    if last > MAX_PORT:
        raise LaunchError(
            f"`port` {first}: {count} ports are needed, up to {last}, but the highest port is {MAX_PORT}; use at most "
            f"{MAX_PORT - count + 1}"
        )
    return range(first, last + 1)


def free_ports(host: str, first: int | None, count: int) -> Sequence[int]:
    """`count` ports of `host` that no process listens on: starting at `first`, or drawn from `DRAWN`.

    An engine starts listening minutes later. By then the system may have assigned an ephemeral port to another program.
    Raises LaunchError for a port that is taken (with the program's name), or if this machine does not own the address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if first:
        ports = following(first, count)
        for port in ports:
            _refuse_taken(host, port, family)
        return ports
    # Independent of any seed, so that two processes do not draw the same ports; if too few are free, the system assigns
    # one (0).
    candidates = [*random.SystemRandom().sample(DRAWN, min(len(DRAWN), count + 100)), *[0] * count]
    with contextlib.ExitStack() as probes:
        bound: list[int] = []
        # All ports are bound at the same time, so that they are distinct.
        while len(bound) < count:
            probe = probes.enter_context(socket.socket(family))
            try:
                probe.bind((host, candidates.pop(0)))
            except OSError as error:
                if error.errno == errno.EADDRINUSE and candidates:
                    continue
                raise LaunchError(f"cannot listen on {host}: {error.strerror}; correct `host`") from None
            bound.append(int(probe.getsockname()[1]))
    return bound


def _refuse_taken(host: str, port: int, family: socket.AddressFamily) -> None:
    """Raise LaunchError if `port` is taken; the message names the program that uses it."""
    with socket.socket(family) as probe:
        # Servers set this option too: a port that only an ended connection occupies counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            owners = ", ".join(processes.describe(pid) for pid in sorted(processes.listeners(port) or ()))
            holder = f", held by {owners}" if owners else ""
            raise LaunchError(
                f"cannot listen on {host} port {port}: {error.strerror}{holder}; stop that program or choose another "
                "`port`"
            ) from None
