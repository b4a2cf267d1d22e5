"""Checks that several run folders are parts of one run, and makes the manifest of the whole.

Parts have the same model and, for each benchmark, the same identity. Shards differ only in the number of the shard. One
part may be a whole run: the folder into which some shards were joined before. Pure, except that `PartFolder` names the
folder of a manifest for errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.core.errors import StoreError
from harness.core.inert import quoted
from harness.runs.layout import RunFolder
from harness.runs.manifest import (
    SHARD,
    BenchmarkRecord,
    Difference,
    Manifest,
    Provenance,
    changes_of,
    differences,
    servers_refusal,
)
from harness.runs.record import Plan


@dataclass(frozen=True, slots=True)
class PartFolder:
    """A folder with its manifest. label: a short, unique name."""

    folder: RunFolder
    manifest: Manifest
    label: str


def joined_manifest(sources: Sequence[PartFolder], accept_server_change: bool) -> Manifest:
    """The manifest of the whole run. Raises `StoreError` that names the differences."""
    first = sources[0]
    records: dict[str, BenchmarkRecord] = {}
    # By benchmark: the first folder that has it, and the first one that has a shard of it.
    first_with: dict[str, PartFolder] = {}
    first_shard_of: dict[str, PartFolder] = {}
    combined = Provenance()
    environment: dict[str, Any] = {}
    for source in sources:
        _same("model", first, source, first.manifest.model, source.manifest.model)
        for key, value in source.manifest.environment.items():
            environment.setdefault(key, value)
        if not accept_server_change:
            model, other_model = (part.manifest.environment.get("server_model") for part in (first, source))
            _same("server_model", first, source, model, other_model)
        for name, record in source.manifest.benchmarks.items():
            siblings = [first_with.setdefault(name, source)]
            # If the first folder is a whole run, only another shard shows whether the shards fit together.
            if _is_shard(record):
                siblings.append(first_shard_of.setdefault(name, source))
            for sibling in siblings:
                if changed := _apart(sibling.manifest.benchmarks[name].identity, record.identity):
                    raise _refusal(sibling, source, changed, name)
            whole = _whole(record)
            records[name] = _extend(records[name], whole) if name in records else whole
        changes = changes_of(combined, _servers(source.manifest.provenance))
        if changes.model and not accept_server_change:
            raise servers_refusal(changes.model)
        combined = _with_sessions(combined, source.manifest.provenance)
    return msgspec.structs.replace(
        first.manifest,
        created=min(source.manifest.created for source in sources),
        benchmarks=records,
        environment=environment,
        provenance=combined,
    )


def _same(what: str, first: PartFolder, source: PartFolder, mine: Any, theirs: Any) -> None:
    """Raise `StoreError` if both folders state the fact `what`, with different values."""
    if mine is not None and theirs is not None and mine != theirs:
        raise _refusal(first, source, [Difference(what, mine, theirs)])


def _apart(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    """The differences of two identities, apart from the number of the shard.

    A whole run is compatible with its shards.
    """
    if SHARD in mine and SHARD in theirs:
        return differences({**mine, SHARD: _kind(mine[SHARD])}, {**theirs, SHARD: _kind(theirs[SHARD])})
    return differences({**mine, SHARD: None}, {**theirs, SHARD: None})


def _kind(shard: Any) -> dict[str, Any]:
    """The fields that the shards of one run have in common. shard: `{"part": "2/8", …}`, or a stranger's."""
    if not isinstance(shard, dict):
        return {}
    return {"of": str(shard.get("part")).partition("/")[2], "selection": shard.get("selection")}


def _is_shard(record: BenchmarkRecord) -> bool:
    return SHARD in record.identity


def _whole(record: BenchmarkRecord) -> BenchmarkRecord:
    """The record of the whole run to which this shard belongs; a record of a whole run stays unchanged."""
    if not _is_shard(record):
        return record
    identity = {name: value for name, value in record.identity.items() if name != SHARD}
    return msgspec.structs.replace(
        record, identity=identity, plan=msgspec.structs.replace(record.plan, question_ids=None)
    )


def _extend(mine: BenchmarkRecord, theirs: BenchmarkRecord) -> BenchmarkRecord:
    """Return one record for both: the questions of both, the larger number of samples, and the endpoints of both.

    The questions that can never succeed are joined, too.
    """
    mine_ids, their_ids = mine.plan.question_ids, theirs.plan.question_ids
    ids = None if mine_ids is None or their_ids is None else list(dict.fromkeys([*mine_ids, *their_ids]))
    settings = dict(mine.settings)
    for name in ("endpoints", "never_succeeds"):
        a, b = mine.settings.get(name), theirs.settings.get(name)
        if isinstance(a, list) and isinstance(b, list):
            settings[name] = [*a, *(value for value in b if value not in a)]
        elif isinstance(a, dict) and isinstance(b, dict):
            settings[name] = {**b, **a}
    plan = Plan(samples=max(mine.plan.samples, theirs.plan.samples), question_ids=ids)
    return msgspec.structs.replace(mine, plan=plan, settings=settings)


def _servers(made_by: Provenance) -> Mapping[str, Any]:
    """The facts of a run's servers by base URL, or by digest if no stored session names the server."""
    named = {name: url for session in made_by.sessions for url, name in session.endpoints.items()}
    return {named.get(name, name): facts for name, facts in made_by.servers.items()}


def _with_sessions(mine: Provenance, theirs: Provenance) -> Provenance:
    """The provenance of two folders joined: their servers and sessions, in order of time."""
    sessions = sorted(
        [*mine.sessions, *(session for session in theirs.sessions if session not in mine.sessions)],
        key=lambda session: session.started,
    )
    return msgspec.structs.replace(
        mine,
        servers={**mine.servers, **theirs.servers},
        sessions=sessions,
        fingerprint=mine.fingerprint or theirs.fingerprint,
    )


def _refusal(first: PartFolder, source: PartFolder, changed: Sequence[Difference], benchmark: str = "") -> StoreError:
    """The error that says which settings keep two folders from being joined."""
    what = f" in {quoted(benchmark)}" if benchmark else ""
    lines = "\n".join(f"  {difference}" for difference in changed)
    return StoreError(
        f"{first.folder.path} and {source.folder.path} are not parts of the same run; they differ{what}:\n{lines}\n"
        "Join only runs with the same settings."
    )
