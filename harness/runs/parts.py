"""Checks that several run folders are of one run, and makes the manifest of the whole.

They have the same model and, for each benchmark, the same identity; plans and settings may differ. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.core.errors import StoreError
from harness.runs.layout import RunFolder
from harness.runs.manifest import (
    BenchmarkRecord,
    Difference,
    Manifest,
    Provenance,
    changes_of,
    differences,
    servers_refusal,
)
from harness.runs.record import Plan


def joined_manifest(sources: Sequence[tuple[RunFolder, Manifest]], accept_server_change: bool) -> Manifest:
    """The manifest of the whole run. Raises `StoreError` that names the differences."""
    (first, whole), *others = sources
    for folder, theirs in others:
        changed = _changed("model", whole.model, theirs.model)
        if not accept_server_change:
            changed += _changed("server_model", *(each.environment.get("server_model") for each in (whole, theirs)))
        for name, record in theirs.benchmarks.items():
            mine = whole.benchmarks.get(name, record)
            changed += [
                difference._replace(field=f"{name}.{difference.field}")
                for difference in differences(mine.identity, record.identity)
            ]
        if changed:
            lines = "\n".join(f"  {difference}" for difference in changed)
            raise StoreError(
                f"{folder.path} is not of the same run as {first.path}; they differ:\n{lines}\n"
                "Join only runs with the same settings."
            )
        changes = changes_of(whole.provenance, _servers(theirs.provenance))
        if changes.model and not accept_server_change:
            raise servers_refusal(changes.model)
        extended = {name: _extend(mine, theirs.benchmarks.get(name, mine)) for name, mine in whole.benchmarks.items()}
        whole = msgspec.structs.replace(
            whole,
            created=min(whole.created, theirs.created),
            benchmarks={**whole.benchmarks, **theirs.benchmarks, **extended},
            environment={**whole.environment, **theirs.environment, **whole.environment},
            provenance=_with_sessions(whole.provenance, theirs.provenance),
        )
    return whole


def _changed(field: str, mine: Any, theirs: Any) -> list[Difference]:
    """The difference of a fact of both runs, if both state it."""
    return [] if mine is None or theirs is None or mine == theirs else [Difference(field, mine, theirs)]


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
