"""Facts of a server that was started here, from other sources than its replies: its command line, its model's files."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.core.about import state_folder
from harness.core.inert import visible
from harness.core.records import ServerFacts
from harness.core.secret import without_secrets
from harness.preparing import model_files
from server_launchers.engines import table as engines

if TYPE_CHECKING:
    from harness.client.address.endpoint import Endpoint
    from server_launchers.keeping.servers import ServerState


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names under which a machine reaches itself."""


def _recorded() -> list[ServerState]:
    """The servers that were started on this machine, the earliest first."""
    # Most runs ask servers that were started elsewhere, and this machine keeps no state of any. A state folder in which
    # other users may write is refused, and then no server counts as started here.
    if (state_folder() / "servers").is_dir():
        from server_launchers.errors import LaunchError
        from server_launchers.keeping import servers

        with contextlib.suppress(LaunchError, OSError):
            return servers.status()
    return []


def servers_at(endpoints: Sequence[Endpoint]) -> list[ServerState]:
    """The running servers with these addresses, each once; empty unless all of them were started on this machine."""
    if not all(endpoint.local for endpoint in endpoints):
        return []
    ready = {_host_and_port(url): each for each in _recorded() if each.status == "ready" for url in each.base_urls}
    by_endpoint = [ready.get(_host_and_port(endpoint.base_url)) for endpoint in endpoints]
    each = {server.name: server for server in by_endpoint if server is not None}
    return list(each.values()) if all(by_endpoint) else []


def ended(name: str, guard_pid: int, *, lives: bool = False) -> str | None:
    """A sentence on why this server has ended by itself; None while it runs, and if nothing is known.

    guard_pid: number of the process that watches it; a later server of that name has another. lives: it runs on, though
    its engine has died.
    """
    from server_launchers.keeping import servers

    why = servers.why_ended(name, guard_pid, lives=lives)
    end = "needs a new start, as its engine died" if lives else "has ended"
    return f"the server {visible(name, 80)}, which was started here, {end}: {why}" if why else None


def latest_ended(name: str = "", url: str = "") -> str | None:
    """The sentence of `ended` on the latest server of this name or at this address; without both, on the latest."""
    for server in reversed(_recorded()):
        addresses = map(_host_and_port, server.base_urls)
        if (not name or server.name == name) and (not url or _host_and_port(url) in addresses):
            return ended(server.name, server.guard_pid)
    return None


def _host_and_port(url: str) -> str:
    """Return `HOST:PORT` of an address, with `localhost` for every name of this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{'localhost' if host in _LOOPBACK else host}:{parts.port}"


def facts_of(state: ServerState) -> ServerFacts:
    """The facts that the start recorded of the server, and checksums of its model's files on this machine."""
    argv = next((member.argv for member in state.members if member.role == "engine"), [])
    flags = {f"flags.{name}": flag_value(argv, name) for name in model_flags()}
    files: dict[str, str] = {}
    # Files that have vanished must not end a run whose server has the weights in memory.
    with contextlib.suppress(OSError):
        files = model_files.fingerprints(state.source)
    model = {"source": state.source, **flags, **{f"files.{name}": value for name, value in files.items()}}
    return ServerFacts(model=without_secrets(model), host={"launcher": state.engine, **state.versions})


def model_flags() -> list[str]:
    """The options of all engines that change the distribution of replies, each once, without leading dashes."""
    return list(dict.fromkeys(flag for engine in engines.every().values() for flag in engine.model_flags))


def flag_value(argv: Sequence[str], name: str) -> Any:
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
