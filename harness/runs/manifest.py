"""The file `manifest.json`: the settings and servers of a run's samples, and the check that no other samples are mixed
in.

`identity` (built by `generation.settings.RunSettings.identity`) is compared field by field on every resume; `settings`
may change; `plan` may grow or shrink. `provenance` records, by session, which servers generated the samples:

    "provenance": {"servers": {"3f9c0a12b4d7": {"model": {"root": "Qwen/QwQ-32B"}, "host": {"version": "0.33.0"}}},
                   "sessions": [{"started": "2026-11-20T23:01:07+00:00",
                                 "endpoints": {"http://h:8000/v1": "3f9c0a12b4d7"}}]}

A new server is compared with the run's servers by the facts that both report. A run without stored facts accepts any
server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import OtherModel, StoreError
from harness.core.files import LINK, read_untrusted, write_atomically
from harness.core.records import MAX_SAMPLES, SCHEMA_VERSION, ServerFacts
from harness.core.sanitize import quoted, safe_name, visible
from harness.core.secret import without_secrets
from harness.runs.layout import RunFolder
from harness.runs.line_file import refuse_link
from harness.runs.missing import Plan

# ---- which servers made the samples

DIGEST_CHARS = 12
"""Length of the prefix of the digest of a server's facts by which a run identifies the server."""

WEIGHTS = ("files.weights_sha256", "files.weights_sample")
"""Facts that identify weights regardless of their location; the first that both servers report decides."""

PLACES = frozenset({"source", "root", "model_path", "tokenizer", "files.weights"})
"""Facts about the location of weights and the names of their files.

A change of these facts counts as a change of the model, unless a checksum shows the same weights.
"""

MAX_SHOWN_VALUE = 200
"""Maximum number of characters of a field's value shown in a refusal."""


class RecordedSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session."""

    started: str
    """When it started (UTC, ISO 8601)."""
    endpoints: dict[str, str]
    """Base URL → digest of its server's facts."""
    accepted: list[str] = []
    """Changes that the user accepted, as sentences."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Which servers made a run's samples."""

    servers: dict[str, ServerFacts] = {}
    """Digest → facts about the server, in the order of their first session."""
    sessions: list[RecordedSession] = []
    """Sessions of the run."""

    def after(self, started: str, endpoints: Mapping[str, ServerFacts], accepted: Sequence[str]) -> Provenance:
        """Return this record of servers and sessions with one more session added.

        started: when the session began, as a string. endpoints: each server's facts, by base URL. accepted: the changes
        of the server that the user accepted.
        """
        named = {url: _name(facts) for url, facts in endpoints.items()}
        session = RecordedSession(started=started, endpoints=named, accepted=list(accepted))
        servers = {**self.servers, **{named[url]: facts for url, facts in endpoints.items()}}
        return msgspec.structs.replace(self, servers=servers, sessions=[*self.sessions, session])

    def with_endpoint(self, url: str, facts: ServerFacts) -> Provenance:
        """The provenance with another endpoint in the last session."""
        name = _name(facts)
        last = self.sessions[-1]
        last = msgspec.structs.replace(last, endpoints={**last.endpoints, url: name})
        return msgspec.structs.replace(
            self, servers={**self.servers, name: facts}, sessions=[*self.sessions[:-1], last]
        )


class Difference(NamedTuple):
    """A changed field of an identity or of a server's facts. field: dotted path. old, new: None if not set. where: the
    server's base URL; empty for an identity.
    """

    field: str
    old: Any
    new: Any
    where: str = ""

    def __str__(self) -> str:
        """The change in words: `http://h:8000/v1: root was "a", now "b"`, or `seed: 0 → 1`."""
        field, old, new = visible(self.field, MAX_SHOWN_VALUE), _show(self.old), _show(self.new)
        where = visible(self.where, MAX_SHOWN_VALUE)
        return f"{where}: {field} was {old}, now {new}" if where else f"{field}: {old} → {new}"


class Changes(NamedTuple):
    """Changed facts. model: facts that change the distribution of replies. host: all others."""

    model: list[Difference]
    host: list[Difference]


def changes_of(run: Provenance, endpoints: Mapping[str, ServerFacts]) -> Changes:
    """How a session's servers differ from those that generated the run's samples, and from each other.

    A server's fact has changed if earlier servers reported it, but none with the same value. Earlier servers are the
    run's servers and those before it in `endpoints`. The same weights in another location count as a change of the
    host. endpoints: base URL → facts of its server. Pure.
    """
    model: list[Difference] = []
    host: list[Difference] = []
    former = list(run.servers.values())
    for url, facts in endpoints.items():
        moved = any(_same_weights(before.model, facts.model) for before in former)
        for change in _new_facts(url, [before.model for before in former], facts.model):
            changes = host if moved and change.field in PLACES else model
            changes.append(change)
        host += _new_facts(url, [before.host for before in former], facts.host)
        former.append(facts)
    return Changes(model, host)


def servers_refusal(changed: Sequence[Difference]) -> OtherModel:
    """The error that rejects mixing samples of two models, with one line per fact."""
    lines = "\n".join(f"  {change}" for change in changed)
    return OtherModel(
        f"this is not the server that generated the run's samples, and runs never mix servers:\n{lines}\n"
    )


def _new_facts(url: str, former: Sequence[Mapping[str, Any]], now: Mapping[str, Any]) -> Iterator[Difference]:
    """The facts of `now` that some server in `former` reported, but none with the same value."""
    for name, value in now.items():
        values = [facts[name] for facts in former if name in facts]
        # Compared by the digest of canonical JSON, since 1 equals True in Python.
        if values and digest(value) not in map(digest, values):
            yield Difference(name, values[-1], value, url)


def _same_weights(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether a checksum that both servers report shows the same weights."""
    fact = next((name for name in WEIGHTS if name in mine and name in theirs), None)
    return fact is not None and mine[fact] == theirs[fact]


def _name(facts: ServerFacts) -> str:
    return digest({"model": facts.model, "host": facts.host})[:DIGEST_CHARS]


# ---- the manifest


NEUTRAL = "neutral"
"""Field of an identity: the sampling values that the harness sent to override the server's own defaults. Runs made
before this field existed resume without it.
"""

SHARD = "shard"
"""Field of the identity of a shard's benchmark in an earlier version: which part of the questions it had."""

KEY_VARIABLE = "api_key_env"
"""Setting of a benchmark: the environment variable that the user named for the key; it is named like the option."""

OUTPUTS = "outputs"
"""Setting of a benchmark whose samples another tool made: `{"digest": of the files, "read": how they were read,
"questions": digest of those of the benchmark that was named, "warnings": of the reading}`."""

UNKNOWN_MODEL = "unknown"
"""The model name for samples from another tool."""

MAX_MANIFEST_BYTES = 64 * 1024 * 1024
"""Maximum size of a manifest in bytes; a larger one is rejected before it is decoded."""

MAX_IMPORTED_SAMPLES = 10_000_000
"""Maximum number of samples per question in the outputs of another tool."""


class BenchmarkRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark in a run."""

    identity: dict[str, Any]
    """Settings that must match for samples to be comparable (model, api, sampling, max_tokens, seed, prompt and data
    digests, thinking switch, …).
    """
    plan: Plan
    """The planned questions and the planned number of samples."""
    settings: dict[str, Any] = {}
    """Settings that may change when a run is resumed (endpoints without secrets, concurrency, the server's context
    length, …). Only the most recent values are stored.
    """
    options: dict[str, Any] | None = None
    """Options that the user specified in the most recent session, by name, excluding API keys, addresses and values
    stored in other fields. None if no options were recorded (another tool's outputs, or an earlier version).
    """

    @property
    def imported(self) -> bool:
        """Whether another tool generated its samples, so that nothing is known about its identity."""
        return OUTPUTS in self.settings

    @property
    def reading_warnings(self) -> list[str]:
        """The warnings from importing another tool's outputs, which its scores repeat."""
        warnings = self._reading.get("warnings")
        return [warning for warning in warnings if isinstance(warning, str)] if isinstance(warnings, list) else []

    @property
    def planned(self) -> float | Mapping[str, int]:
        """The number of samples that a score expects per question. For another tool's outputs: the number of replies
        missing from its file, by question, which are expected in addition to the stored samples.
        """
        if not self.imported:
            return self.plan.samples
        missing = self._reading.get("missing")
        by_id = missing.items() if isinstance(missing, dict) else ()
        return {name: n for name, n in by_id if isinstance(n, int) and 0 < n <= MAX_SAMPLES}

    @property
    def _reading(self) -> dict[str, Any]:
        """The stored record of importing another tool's outputs."""
        stored = self.settings.get(OUTPUTS)
        return stored if isinstance(stored, dict) else {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The file `manifest.json`."""

    schema: int = SCHEMA_VERSION
    """Version of this format."""
    harness_version: str
    """Harness version that created the run."""
    created: str
    """When the run was created (UTC, ISO 8601)."""
    model: str
    """Name of the model."""
    benchmarks: dict[str, BenchmarkRecord] = {}
    """Plan and settings of each benchmark."""
    environment: dict[str, Any] = {}
    """Information about the environment in which the sessions ran."""
    provenance: Provenance = Provenance()
    """Servers that generated the samples, by session."""

    @classmethod
    def load(cls, folder: RunFolder) -> Manifest:
        """The run's manifest. Raises `StoreError` if it is missing or damaged or has a newer schema."""
        path = folder.manifest
        try:
            data = read_untrusted(path, MAX_MANIFEST_BYTES, ": too large for a run manifest.")
        except FileNotFoundError as error:
            raise folder.missing_manifest() from error
        try:
            # The head first, because a newer manifest may not decode as ours but must not be reported as damaged.
            head = codec.decode(data, _ManifestHead)
            if head.schema <= SCHEMA_VERSION:
                manifest = _with_whole_plan(codec.decode(data, Manifest))
                _refuse_forged(manifest, folder)
                return manifest
        except codec.DecodeError as error:
            raise StoreError(
                f"{path} is damaged ({quoted(str(error))}), so the settings of its samples are unknown. Restore "
                f"an intact copy, or use another run folder."
            ) from error
        raise StoreError(
            f"{path} has schema {head.schema}, written by harness {visible(head.harness_version, 40)}, but this "
            f"version supports only schemas up to {SCHEMA_VERSION}. Use that version or a newer one."
        )

    @classmethod
    def find(cls, folder: RunFolder) -> Manifest | None:
        """The run's manifest; None if no run has begun. A run that was killed before its first session counts as not
        begun.

        Raises `StoreError` if it is damaged, or missing although there are samples.
        """
        begun = folder.manifest.exists() or folder.manifest.is_symlink() or folder.has_samples()
        return cls.load(folder) if begun else None

    @classmethod
    def start(cls, folder: RunFolder, *, model: str, harness_version: str) -> Manifest:
        """The run's manifest, or a new one (not yet saved) if no run has begun.

        Raises `StoreError` if it is damaged, or missing although there are samples.
        """
        return cls.find(folder) or cls(
            harness_version=harness_version,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            model=model,
        )

    def save(self, folder: RunFolder) -> None:
        """Write the manifest atomically. Raises `StoreError` if the disk write fails or the path is a link."""
        refuse_link(folder.manifest)
        write_atomically(folder.manifest, codec.pretty(self))

    def extend(self, benchmark: str, record: BenchmarkRecord) -> Manifest:
        """This manifest with `record` added; for a known benchmark, with its plan and settings updated.

        Raises a `StoreError` that lists every field in which the identity differs from the one on disk.
        """
        model = record.identity.get("model", self.model)
        if model != self.model:
            raise refusal(benchmark, [Difference("model", self.model, model)])
        before = self.benchmarks.get(benchmark)
        if before is not None and (changed := differences(without_secrets(before.identity), record.identity)):
            raise refusal(benchmark, changed)
        twins = [name for name in self.benchmarks if name != benchmark and safe_name(name) == safe_name(benchmark)]
        if twins:
            raise StoreError(f"benchmarks {quoted(twins[0])} and {quoted(benchmark)} would share a folder. Rename one.")
        return msgspec.structs.replace(self, benchmarks={**self.benchmarks, benchmark: record})


def _with_whole_plan(manifest: Manifest) -> Manifest:
    """The manifest with the plan of the whole run, even if an earlier version stored the plan of one shard."""
    records = {}
    for name, record in manifest.benchmarks.items():
        identity = {**record.identity}
        if identity.pop(SHARD, None) is not None:
            plan = msgspec.structs.replace(record.plan, question_ids=None)
            record = msgspec.structs.replace(record, identity=identity, plan=plan)
        records[name] = record
    return msgspec.structs.replace(manifest, benchmarks=records)


def _refuse_forged(manifest: Manifest, folder: RunFolder) -> None:
    """Raise `StoreError`, before any work, for values that no run writes but an attacker might have written."""
    for name, record in manifest.benchmarks.items():
        samples, ids = record.plan.samples, record.plan.question_ids
        most = MAX_IMPORTED_SAMPLES if record.imported else MAX_SAMPLES
        if not 1 <= samples <= most:
            raise StoreError(
                f"{folder.manifest}: the plan for {quoted(name)} has {samples} samples per question, expected 1 to "
                f"{most}. Restore an intact copy."
            )
        if ids is not None and len(set(ids)) < len(ids):
            raise StoreError(f"{folder.manifest}: the plan for {quoted(name)} lists a question twice.")
        if folder.benchmark(name).path.is_symlink():
            raise StoreError(f"cannot read {folder.benchmark(name).path}: {LINK}.")


class _ManifestHead(msgspec.Struct):
    """The fields that every past and future manifest has."""

    schema: int
    harness_version: str = "unknown"


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[Difference]:
    """Every field, by dotted path, in which two identities differ as JSON; the order of keys does not matter.

    A missing field differs from any value except null. `true` is not 1; 1 is 1.0.
    """
    # Through JSON, since a tuple in memory is a list on disk.
    return list(_compare("", *(_current_identity(codec.decode(codec.encode(each))) for each in (old, new))))


def _current_identity(identity: dict[str, Any]) -> dict[str, Any]:
    """The identity plus what earlier versions left in `extra_body` or omitted: template arguments, tool limits."""
    if isinstance(tool := identity.get("tool"), dict):
        identity = identity | {"tool": {"calls": 100, "total_seconds": 3600} | tool}
    body = identity.get("extra_body")
    if not isinstance(body, dict) or "chat_template_kwargs" not in body:
        return identity
    rest = {name: value for name, value in body.items() if name != "chat_template_kwargs"}
    return identity | {"chat_template_kwargs": body["chat_template_kwargs"], "extra_body": rest}


def _compare(path: str, old: Any, new: Any) -> list[Difference]:
    """The differences between two values at this path; mappings are compared field by field."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            difference
            for name in [*old, *(name for name in new if name not in old)]
            for difference in _compare(f"{path}.{name}" if path else name, old.get(name), new.get(name))
        ]
    return [] if _same(old, new) else [Difference(path, old, new)]


def _same(old: Any, new: Any) -> bool:
    """Whether two values are equal as JSON: `true` is not 1, 1 is 1.0, and a missing field is null."""
    if isinstance(old, dict) and isinstance(new, dict):
        return not _compare("", old, new)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(_same(a, b) for a, b in zip(old, new, strict=True))
    return isinstance(old, bool) == isinstance(new, bool) and bool(old == new)


def refusal(benchmark: str, changed: list[Difference]) -> StoreError:
    """The error that rejects mixing samples, with one line per changed field."""
    lines = "\n".join(f"  {difference}" for difference in changed)
    error = StoreError(
        f"this run has samples of {quoted(benchmark)} generated with different settings; runs never mix "
        f"settings:\n{lines}\n"
        "Use the original settings, or choose another run folder with `out`."
    )
    error.other_settings = lines
    return error


def _show(value: Any) -> str:
    return "not set" if value is None else visible(codec.encode(value).decode(), MAX_SHOWN_VALUE)
