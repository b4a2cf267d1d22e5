"""Facts about a server that was started here, taken from its command line and its model's files, not its replies."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.core.codec import digest
from harness.core.errors import ServerError
from harness.core.files import checksum, open_named, read_named
from harness.core.installation import hub_cache, state_folder
from harness.core.records import ServerFacts
from harness.core.sanitize import MAX_NAME_BYTES, visible
from harness.core.secret import without_secrets
from server_launchers.engines import table as engines

if TYPE_CHECKING:
    from harness.client.address.endpoint import Endpoint
    from server_launchers.lifecycle.servers import ServerState


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names by which a machine refers to itself."""


def _recorded() -> list[ServerState]:
    """The servers that were started on this machine, the earliest first."""
    # Most runs use servers that were started elsewhere, of which this machine has no record. A state folder that other
    # users can write to is rejected; in that case no server counts as started here.
    if (state_folder() / "servers").is_dir():
        from server_launchers.errors import LaunchError
        from server_launchers.lifecycle import servers

        with contextlib.suppress(LaunchError, OSError):
            return servers.status()
    return []


def running() -> list[ServerState]:
    """The servers started here that serve requests; a node that only contributes devices has no address."""
    from server_launchers.lifecycle import servers

    return [server for server in servers.status() if server.status == "ready" and server.base_urls]


def running_as(name: str) -> ServerState | None:
    """The running server of this name that was started here; None if there is none. Raises `ServerError` if the latest
    server with that name has exited by itself.
    """
    # Most runs specify an address, and this machine has no record of any server.
    if not name or not re.fullmatch(r"[\w.-]+", name) or not (state_folder() / "servers").is_dir():
        return None
    if (server := next((server for server in running() if server.name == name), None)) is not None:
        return server
    if (why := latest_ended(name)) is not None:
        raise ServerError(why)
    return None


def servers_at(endpoints: Sequence[Endpoint]) -> list[ServerState]:
    """The running servers with these addresses, without duplicates; empty unless all were started on this machine."""
    if not all(endpoint.local for endpoint in endpoints):
        return []
    ready = {_host_and_port(url): each for each in _recorded() if each.status == "ready" for url in each.base_urls}
    by_endpoint = [ready.get(_host_and_port(endpoint.base_url)) for endpoint in endpoints]
    each = {server.name: server for server in by_endpoint if server is not None}
    return list(each.values()) if all(by_endpoint) else []


def exit_reason(name: str, guard_pid: int, *, lives: bool = False) -> str | None:
    """A sentence on why this server exited by itself; None while it is running or if nothing is known.

    guard_pid: pid of the process that watches it; a later server with that name has a different one. lives: whether it
    is still running although its engine has died.
    """
    from server_launchers.lifecycle import servers

    why = servers.why_ended(name, guard_pid, lives=lives)
    end = "must be restarted because its engine died" if lives else "has ended"
    return f"the server {visible(name, 80)}, which was started here, {end}: {why}" if why else None


def latest_ended(name: str = "", url: str = "") -> str | None:
    """The sentence of `exit_reason` on the latest server with this name or address; without both, the latest server."""
    for server in reversed(_recorded()):
        addresses = map(_host_and_port, server.base_urls)
        if (not name or server.name == name) and (not url or _host_and_port(url) in addresses):
            return exit_reason(server.name, server.guard_pid)
    return None


def _host_and_port(url: str) -> str:
    """Return `HOST:PORT` of an address, with `localhost` for every name of this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{'localhost' if host in _LOOPBACK else host}:{parts.port}"


@dataclass(frozen=True, slots=True)
class StartRecord:
    """Facts about a server, recorded when it was started here.

    about: information for the manifest. facts: facts that it does not report over HTTP. model: its model's name if its
    model list does not contain it, else None.
    """

    about: dict[str, Any]
    facts: ServerFacts
    model: str | None


def record_of(state: ServerState) -> StartRecord:
    """The facts about a server, recorded when it was started here, and checksums of its model's files."""
    named = {"server": state.name, "engine": state.engine, "source": state.source, "commands": state.commands}
    about = {**named, **state.versions}
    argv = next((member.argv for member in state.members if member.role == "engine"), [])
    flags = {f"flags.{name}": flag_value(argv, name) for name in model_flags()}
    files: dict[str, str] = {}
    # Deleted files must not end a run whose server has the weights in memory.
    with contextlib.suppress(OSError):
        files = fingerprints(state.source)
    model = {"source": state.source, **flags, **{f"files.{name}": value for name, value in files.items()}}
    facts = ServerFacts(model=without_secrets(model), host={"launcher": state.engine, **state.versions})
    engine = engines.find(state.engine)
    return StartRecord(about, facts, None if engine is None or engine.lists_models else state.model or None)


def model_flags() -> list[str]:
    """The options of all engines that change the distribution of replies, without duplicates and leading dashes."""
    return list(dict.fromkeys(flag for engine in engines.engines_by_name().values() for flag in engine.model_flags))


def flag_value(argv: Sequence[str], name: str) -> Any:
    """The value of the option `name` in a command line; True if it has no value, None if it is missing.

    If the option names an existing file, the file's checksum is returned instead of its path.
    """
    for index, word in enumerate(argv):
        flag, equals, value = word.partition("=")
        # vLLM also accepts underscores in option names.
        if flag.replace("_", "-") != f"--{name}":
            continue
        # An option that is the last word has no value, like an option that is followed by another option.
        after = argv[index + 1] if index + 1 < len(argv) else "--"
        argument = value if equals else after
        if not equals and after.startswith("--"):
            return True
        is_file = any(name in engine.file_flags for engine in engines.engines_by_name().values())
        return (content(argument) or argument) if is_file else argument
    return None


TEXTS = (
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt"),
    *("chat_template.jinja", "chat_template.json", "model.safetensors.index.json"),
)
"""Names of the files other than weights that define a model, as saved by transformers."""

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")

MAX_TEXT_BYTES = 256 * 1024 * 1024
"""Largest size in bytes of a file that is read for its checksum; a larger file is identified by its size.

The largest tokenizers take 40 MB.
"""

MAX_SHARDS = 10_000
"""Maximum number of weights files that are identified; any others are left out."""
HASHED_AT_ONCE = 4
"""Number of weights files that are read at the same time."""

PIECES, PIECE_BYTES = 16, 4096
"""Number and size in bytes of the evenly spaced pieces of each weights file that the checksum `weights_sample` covers.

A few pieces are enough to distinguish checkpoints, since training changes nearly all bytes.
"""


def fingerprints(source: str) -> dict[str, str]:
    """The checksum `sha256:…` of each of the model's files, by name; {} if the model is not on this machine.

    source: a folder, a file of weights, or a name on the hub (its snapshot in the local cache). Two more keys cover all
    weights files together: `weights` their names and sizes, `weights_sample` their sizes and pieces of their contents
    but not their names.
    """
    path = local(source)
    if path is None:
        return {}
    digests = {}
    if path.is_dir():
        digests = {name: _file_checksum(path / name) for name in TEXTS if (path / name).is_file()}
        # Sorted, since the order of a folder listing depends on the file system.
        shards = sorted(file for file in path.iterdir() if file.suffix in WEIGHTS and file.is_file())[:MAX_SHARDS]
    else:
        shards = [path]
    if shards:
        names, sizes = [path.name for path in shards], [path.stat().st_size for path in shards]
        digests["weights"] = _digest(zip(names, sizes, strict=True))
        with ThreadPoolExecutor(HASHED_AT_ONCE) as pool:
            digests["weights_sample"] = _digest(sorted(zip(sizes, pool.map(_sample, shards), strict=True)))
    return digests


def content(path: str) -> str | None:
    """The checksum `sha256:…` of a file, or of `generation_config.json` in a folder; None if there is no such file."""
    file = Path(path).expanduser()
    file = file / "generation_config.json" if file.is_dir() else file
    return _file_checksum(file) if file.is_file() else None


def local(source: str) -> Path | None:
    """The model's folder or file; None if it is not on this machine."""
    path = Path(source).expanduser()
    if path.exists():
        return path
    # The cache is searched in the same way as by huggingface_hub, which need not be installed.
    cached = hub_cache() / f"models--{source.replace('/', '--')}"
    try:
        snapshot = cached / "snapshots" / read_named(cached / "refs/main", MAX_NAME_BYTES).decode().strip()
        return snapshot if snapshot.is_dir() else None
    # The cache may contain anything: bytes that are not text, or a NUL in a path.
    except (OSError, ValueError):
        return None


def _file_checksum(path: Path) -> str:
    """The checksum of a file as `sha256:…`; if the file exceeds `MAX_TEXT_BYTES`, its size instead."""
    size = path.stat().st_size
    return f"{size} bytes" if size > MAX_TEXT_BYTES else f"sha256:{checksum(path)}"


def _sample(path: Path) -> str:
    """SHA-256 of `PIECES` evenly spaced pieces of a file, from its first bytes to its last."""
    last = max(0, path.stat().st_size - PIECE_BYTES)
    pieces = hashlib.sha256()
    with open_named(path) as file:
        for piece in range(PIECES):
            file.seek(last * piece // (PIECES - 1))
            pieces.update(file.read(PIECE_BYTES))
    return pieces.hexdigest()


def _digest(rows: Iterable[tuple[object, object]]) -> str:
    """The checksum `sha256:…` of a table, row by row."""
    return f"sha256:{digest([list(row) for row in rows])}"
