"""Facts of a server that was started here, from other sources than its replies: its command line, its model's files,
whether it has ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.asking import model_files
from harness.core.inert import visible
from harness.core.records import ServerFacts
from harness.core.secret import without_secrets
from server_launchers.engines import table as engines

if TYPE_CHECKING:
    from harness.client.address.endpoint import Endpoint
    from server_launchers.keeping.state import ServerState

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names under which a machine reaches itself."""


class ServedHere:
    """Tells whether all servers that a run asks have ended, if all of them were started on this machine.

    They are found by their addresses at the first call of `lost`. Servers that do not run then do not count: an old
    state file may name a port that another server has by now.
    """

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = tuple(endpoints)
        self._servers: tuple[tuple[str, int], ...] | None = None
        """(name, process number of the guard) of each server. The guard is the process that ends the server's engine
        when the harness is gone. Empty if some endpoint was not started here; None before the first call of `lost`.
        """

    def lost(self) -> str | None:
        """Return a sentence on why the last server has ended if all have ended; None while a server may answer."""
        from server_launchers.keeping import servers  # imported late: the first request does not wait for it

        if self._servers is None:
            self._servers = self._servers_here()
        reasons = [(name, servers.why_ended(name, guard)) for name, guard in self._servers]
        if not reasons or not all(why for _, why in reasons):
            return None
        name, why = reasons[-1]
        return f"the server {visible(name, 80)}, which this run asks, has ended: {why}"

    def _servers_here(self) -> tuple[tuple[str, int], ...]:
        """Return (name, process number of the guard) of each server of the run; empty unless all were started here."""
        if not all(endpoint.local for endpoint in self._endpoints):
            return ()
        from server_launchers.errors import LaunchError
        from server_launchers.keeping import servers

        ready: dict[str, tuple[str, int]] = {}
        # A state folder in which other users may write is refused, and then no server counts as started here.
        with contextlib.suppress(LaunchError, OSError):
            for server in servers.status():
                if server.status == "ready":
                    ready |= {_host_and_port(url): (server.name, server.guard_pid) for url in server.base_urls}
        by_endpoint = [ready.get(_host_and_port(endpoint.base_url)) for endpoint in self._endpoints]
        each = tuple(dict.fromkeys(server for server in by_endpoint if server is not None))
        return each if all(by_endpoint) else ()


def _host_and_port(url: str) -> str:
    """Return `HOST:PORT` of an address, with `localhost` for every name of this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{'localhost' if host in _LOOPBACK else host}:{parts.port}"


def facts_of(state: ServerState, *, hash_weights: bool = False) -> ServerFacts:
    """The facts that the supervisor recorded of the server, and checksums of its model's files on this machine.

    hash_weights: also checksum the whole weights files, which takes about a second per GB.
    """
    argv = next((member.argv for member in state.members if member.role == "engine"), [])
    flags = {f"flags.{name}": given(argv, name) for name in model_flags()}
    files: dict[str, str] = {}
    # Files that have vanished must not end a run whose server has the weights in memory.
    with contextlib.suppress(OSError):
        files = model_files.fingerprints(state.source, hash_weights=hash_weights)
    model = {"source": state.source, **flags, **{f"files.{name}": value for name, value in files.items()}}
    return ServerFacts(model=without_secrets(model), host={"launcher": state.engine, **state.versions})


def model_flags() -> list[str]:
    """The options of all engines that change the distribution of replies, each once, without leading dashes."""
    return list(dict.fromkeys(flag for engine in engines.every().values() for flag in engine.model_flags))


def given(argv: Sequence[str], name: str) -> Any:
    """The value of the option `name` in a command line; True if it has no value, None if it is not there.

    For an option that names a file, the checksum of the file, if it exists, in place of its path.
    """
    for index, word in enumerate(argv):
        flag, equals, value = word.partition("=")
        # vLLM takes underscores in the names of its options, too.
        if flag.replace("_", "-") != f"--{name}":
            continue
        # An option that is the last word has no value, like an option that is followed by another option.
        after = argv[index + 1] if index + 1 < len(argv) else "--"
        argument = value if equals else after
        if not equals and after.startswith("--"):
            return True
        is_file = any(name in engine.file_flags for engine in engines.every().values())
        return (model_files.content(argument) or argument) if is_file else argument
    return None
