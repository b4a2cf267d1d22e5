"""TCP ports for a start: free ones, or requested ones, which are refused while another program holds them."""

from __future__ import annotations

import socket

from server_launchers.errors import LaunchError
from server_launchers.keeping import processes
from server_launchers.spec import ServerSpec

MAX_PORT = 65_535
"""Largest number of a TCP port."""


def choose(spec: ServerSpec, count: int) -> list[int]:
    """Return `count` ports: from the one in the spec on, or free ones.

    Raises LaunchError where this machine does not own the host address.
    """
    if spec.port:
        return [*following(spec.port, count)]
    probes, ports = [], []
    # All ports are bound at the same time, so that no two are equal.
    for _ in range(count):
        probe = socket.socket(_family(spec.host))
        probes.append(probe)
        try:
            # Port 0 lets the kernel choose one that is free now; a random number could hit one in use.
            probe.bind((spec.host, 0))
        except OSError as error:
            raise LaunchError(f"cannot listen on {spec.host}: {error.strerror}; correct --host") from None
        ports.append(int(probe.getsockname()[1]))
    for probe in probes:
        probe.close()
    return ports


def following(first: int, count: int) -> range:
    """The `count` ports from `first` on. Raises LaunchError where the last of them would be no port."""
    last = first + count - 1
    if last > MAX_PORT:
        raise LaunchError(
            f"--port {first}: {count} ports are needed, up to {last}, and there is none above {MAX_PORT}; give at most "
            f"{MAX_PORT - count + 1}"
        )
    return range(first, last + 1)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def refuse_taken(host: str, port: int) -> None:
    """Raise LaunchError if `port` is taken; the message names the program that holds it."""
    with socket.socket(_family(host)) as probe:
        # Servers set this option too: a port that only an ended connection occupies counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            owners = ", ".join(processes.describe(pid) for pid in sorted(processes.listeners(port) or ()))
            raise LaunchError(
                f"cannot listen on {host} port {port}: {error.strerror}{f', held by {owners}' if owners else ''}; "
                "stop that program or choose another --port"
            ) from None
