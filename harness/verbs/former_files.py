"""Whether the files of a run's model are still those that made its samples.

A run on a server that the harness started records where the model's files lie and their checksums. A training that is
started again, for example, writes the same folders once more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.asking import model_files
from harness.core.errors import StoreError
from harness.core.inert import visible
from harness.runs import Manifest, RunFolder

FACTS = "files."
"""Beginning of the names of a server's facts about its model's files."""


def recorded_checksums(folder: RunFolder) -> dict[str, str]:
    """Name of each of the model's files → its checksum, as the server of the run's last session had it.

    Empty for a server that the harness did not start. Raises `StoreError` for a damaged manifest.
    """
    return _checksums(_last_servers(folder))


def changed_files(facts: dict[str, str], path: Path, present: dict[str, str] | None = None) -> list[str]:
    """The names of the files (or checksums of weights) that differ between those recorded and those at `path` now.

    facts: from `recorded_checksums`. present: the checksums now, if they are known already.
    """
    files = model_files.fingerprints(str(path)) if present is None else present
    # Runs of earlier versions may record a checksum of the whole weights.
    names = sorted({*facts, *files} - {"weights_sha256"})
    return [name for name in names if facts.get(name) != files.get(name)]


def in_words(path: Path, names: Sequence[str]) -> str:
    """The sentence on a model whose files changed. names: what changed."""
    which = ", ".join(visible(name, 80) for name in names)
    return (
        f"{visible(str(path), 200)} changed after its samples were made ({which}): its scores are those of the former "
        "files"
    )


def remarks(folder: RunFolder) -> list[str]:
    """A sentence if the model's files have changed since the run's samples; none if they are gone, or lie elsewhere."""
    with contextlib.suppress(StoreError, OSError):
        servers = _last_servers(folder)
        facts = _checksums(servers)
        sources = {Path(str(server["source"])) for server in servers if "source" in server}
        if facts and len(sources) == 1 and (path := sources.pop()).exists() and (names := changed_files(facts, path)):
            return [in_words(path, names)]
    return []


def _last_servers(folder: RunFolder) -> list[dict[str, object]]:
    """The facts of the models behind the endpoints of the run's last session."""
    provenance = Manifest.load(folder).provenance
    return [
        dict(provenance.servers[name].model)
        for session in provenance.sessions[-1:]
        for name in session.endpoints.values()
    ]


def _checksums(servers: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Name of each of the model's files → its checksum, by the facts of its servers."""
    return {
        name.removeprefix(FACTS): str(value)
        for server in servers
        for name, value in server.items()
        if name.startswith(FACTS)
    }
