"""Which servers made a run's samples, session by session, and whether another one may go on with them.

    "provenance": {"servers": {"3f9c0a12b4d7": {"model": {"root": "Qwen/QwQ-32B"}, "host": {"version": "0.33.0"}}},
                   "sessions": [{"started": "2026-11-20T23:01:07+00:00",
                                 "endpoints": {"http://h:8000/v1": "3f9c0a12b4d7"}}]}

A server is compared in what both it and the run's servers tell; a run that knows nothing of its servers takes any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import StoreError
from harness.core.inert import visible
from harness.core.records import ServerFacts
from harness.core.wording import option

DIGEST_CHARS = 12
"""A server is named within a run by this many characters of its digest."""

MAX_SESSIONS = 200
"""Sessions that are kept: the first one and the latest. The servers of all are kept."""

WEIGHTS = ("files.weights_sha256", "files.weights_sample")
"""Facts by which weights are known wherever they lie; the first that both servers tell decides."""

PLACES = frozenset({"source", "root", "model_path", "tokenizer", "files.weights"})
"""Facts that say where the weights lie and how files are called: what they are known by where there is no checksum."""

MAX_SHOWN_VALUE = 200
MAX_SHOWN_CHANGES = 12


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """started: UTC, ISO 8601. endpoints: base URL → digest of its server's facts. accepted: changes that the user
    accepted, as sentences. same: base URL → how many beginnings of the fingerprint are the run's. builds: base URL →
    values of `system_fingerprint` in its replies."""

    started: str
    endpoints: dict[str, str]
    accepted: list[str] = []
    same: dict[str, int] = {}
    builds: dict[str, list[str]] = {}


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Greedy beginnings of replies to the fixed prompts of a version, as an endpoint of the run first gave them.

    neutral: the values that were sent so that the server's own defaults did not come in; none in older runs.
    """

    version: str
    beginnings: list[str]
    endpoint: str
    neutral: dict[str, Any] = {}


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """servers: facts by digest, in the order of their first session. fingerprint: None where none was taken."""

    servers: dict[str, ServerFacts] = {}
    sessions: list[Session] = []
    fingerprint: Fingerprint | None = None

    def after(self, started: str, endpoints: Mapping[str, ServerFacts], accepted: Sequence[str]) -> Provenance:
        """With one more session. endpoints: by base URL."""
        named = {url: _name(facts) for url, facts in endpoints.items()}
        session = Session(started=started, endpoints=named, accepted=list(accepted))
        sessions = [*self.sessions, session]
        if len(sessions) > MAX_SESSIONS:
            sessions = [sessions[0], *sessions[1 - MAX_SESSIONS :]]
        servers = {**self.servers, **{named[url]: facts for url, facts in endpoints.items()}}
        return msgspec.structs.replace(self, servers=servers, sessions=sessions)

    def joined(self, url: str, facts: ServerFacts) -> Provenance:
        """With one more endpoint of the last session."""
        name = _name(facts)
        last = self.sessions[-1]
        last = msgspec.structs.replace(last, endpoints={**last.endpoints, url: name})
        return msgspec.structs.replace(
            self, servers={**self.servers, name: facts}, sessions=[*self.sessions[:-1], last]
        )

    @property
    def builds(self) -> set[str]:
        """Every `system_fingerprint` of the run's replies."""
        return {value for session in self.sessions for values in session.builds.values() for value in values}

    def built(self, seen: Mapping[str, Sequence[str]]) -> Provenance:
        """With the values of `system_fingerprint` of the last session, by base URL."""
        last = msgspec.structs.replace(self.sessions[-1], builds={url: list(values) for url, values in seen.items()})
        return msgspec.structs.replace(self, sessions=[*self.sessions[:-1], last])

    def agreeing(self, fingerprint: Fingerprint, same: Mapping[str, int]) -> Provenance:
        """With the run's fingerprint, and how many of its beginnings the endpoints of the last session gave."""
        last = msgspec.structs.replace(self.sessions[-1], same={**self.sessions[-1].same, **same})
        return msgspec.structs.replace(self, fingerprint=fingerprint, sessions=[*self.sessions[:-1], last])


class Change(NamedTuple):
    """One fact in which a server differs from the run's. where: its base URL; before, now: values as JSON."""

    where: str
    field: str
    before: Any
    now: Any

    def __str__(self) -> str:
        """`http://h:8000/v1: root was "a", now "b"`."""
        before, now = (visible(codec.encode(value).decode(), MAX_SHOWN_VALUE) for value in (self.before, self.now))
        return f"{visible(self.where, MAX_SHOWN_VALUE)}: {visible(self.field, MAX_SHOWN_VALUE)} was {before}, now {now}"


class Changes(NamedTuple):
    """model: of what changes the distribution of replies; host: of the rest."""

    model: list[Change]
    host: list[Change]


def changes(run: Provenance, endpoints: Mapping[str, ServerFacts]) -> Changes:
    """In what the servers of a session differ from those that made the run's samples, and from each other.

    Each server is held against all that are known and against the session's before it: a value differs where the field
    is known and no server had that value. The same weights in another place are a change of the host. Pure.
    """
    model: list[Change] = []
    host: list[Change] = []
    former = list(run.servers.values())
    for url, facts in endpoints.items():
        moved = any(_same_weights(before.model, facts.model) for before in former)
        for change in _apart(url, [before.model for before in former], facts.model):
            (host if moved and change.field in PLACES else model).append(change)
        host += _apart(url, [before.host for before in former], facts.host)
        former.append(facts)
    return Changes(model, host)


def servers_refusal(changed: Sequence[Change]) -> StoreError:
    """The refusal to mix samples of two models, one line a fact."""
    shown = [f"  {change}" for change in changed[:MAX_SHOWN_CHANGES]]
    if len(changed) > MAX_SHOWN_CHANGES:
        shown.append(f"  and {len(changed) - MAX_SHOWN_CHANGES} more")
    lines = "\n".join(shown)
    return StoreError(
        f"the server is not the one that made this run's samples, and runs never mix:\n{lines}\n"
        f"Ask the former server, or use another run folder; {option('accept_server_change', True)} mixes them "
        "all the same and records it."
    )


def _apart(url: str, former: Sequence[Mapping[str, Any]], now: Mapping[str, Any]) -> Iterator[Change]:
    for name, value in now.items():
        values = [facts[name] for facts in former if name in facts]
        if values and digest(value) not in map(digest, values):
            yield Change(url, name, values[-1], value)


def _same_weights(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    fact = next((name for name in WEIGHTS if name in mine and name in theirs), None)
    return fact is not None and mine[fact] == theirs[fact]


def _name(facts: ServerFacts) -> str:
    return digest({"model": facts.model, "host": facts.host})[:DIGEST_CHARS]
