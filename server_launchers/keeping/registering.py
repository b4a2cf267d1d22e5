"""Registers a ready server for other machines: its address goes into a file in a folder that all of them see."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from harness.core.errors import UsageError
from server_launchers.errors import LaunchError
from server_launchers.spec import ServerSpec

_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound
_LOOPBACK = ("localhost", "::1")


def check(spec: ServerSpec) -> None:
    """Raise `UsageError` where other machines could not reach the server."""
    if spec.host in _LOOPBACK or spec.host.startswith("127."):
        raise UsageError(
            "other machines cannot reach this address: give 0.0.0.0, or this machine's address",
            field="server.host",
            value=spec.host,
        )


def public_addresses(spec: ServerSpec, base_urls: Sequence[str]) -> list[str]:
    """The addresses for other machines: with this machine's name where the server listens on all networks."""
    if spec.host not in _EVERYWHERE:
        return list(base_urls)
    # Under Slurm the node's own name, which the other nodes resolve; a host name may be unknown to them.
    host = spec.node_address or os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    host = f"[{host}]" if ":" in host else host
    return [urlunsplit(urlsplit(url)._replace(netloc=f"{host}:{urlsplit(url).port}")) for url in base_urls]


@contextlib.contextmanager
def register(file: Path, urls: Sequence[str]) -> Iterator[None]:
    """Context manager in which `file` holds the addresses `urls`, one a line; the file is removed at the end.

    Without addresses, as on a node that only lends its devices to the first node, no file is written. Raises
    LaunchError.
    """
    if not urls:
        yield
        return
    # One `try` from before the file is there until after it is gone: a signal may come between any two of these lines.
    try:
        _write(file, urls)
        yield
    finally:
        # The job's folder may have been cleaned up already, and the server ends either way.
        with contextlib.suppress(OSError):
            file.unlink()


def _write(file: Path, urls: Sequence[str]) -> None:
    """Write the addresses as a whole. Raises LaunchError."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # A reader on another machine must see whole addresses; rename is atomic on shared folders too, appending is
        # not.
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        temporary.write_text("".join(f"{url}\n" for url in urls), "utf-8")
        temporary.replace(file)
    except OSError as error:
        raise LaunchError(f"cannot write the server's address to {file}: {error.strerror or error}") from error
