"""Several run folders of one run joined into one: shards, or the same run begun in several places.

Guarantees:
- nothing is written before every folder was found to be of one identity; what differs is refused by name;
- each key counts once: what the joined folder holds stays, then the folders come in the order given; a key that comes
  again with another text is named, and the first one counts;
- killed at any moment, the same call again gives the same samples in the same order: what is on disk is always the
  beginning of what will be;
- memory grows by eight bytes a sample, and by no text.
Not covered: grades, opinions and corrections stay with their folder; the joined run is graded anew.
The folders may still be written to: what is stored is joined, and the same call again adds the rest.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from harness.benchmarks.shards import Shard
from harness.core.errors import StoreError, UsageError
from harness.core.files import write_atomically
from harness.core.inert import quoted, safe_name, visible
from harness.core.packed import Packed
from harness.core.reading import open_untrusted
from harness.core.records import Key, Question, Sample
from harness.core.wording import Sentence
from harness.runs import provenance, questions
from harness.runs.journal import Journal, read_samples
from harness.runs.keys import KeySet
from harness.runs.layout import BenchmarkFolder, RunFolder, labels
from harness.runs.log import RunLog
from harness.runs.manifest import SHARD, BenchmarkRecord, Difference, Manifest, Plan, differences
from harness.runs.opening import held
from harness.runs.provenance import MAX_SESSIONS, Provenance

WAITING_CHARS = 16 * 1024 * 1024
"""Characters of samples handed to the journal after which it is waited for, so that memory stays bounded."""

SHOWN_KEYS = 3
"""Keys and shards that a sentence names; the rest are counted."""

COPY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What became of one benchmark.

    n_samples: in the joined folder; n_added: of them by this call; n_expected: planned. n_again: records whose key had
    come before with the same text. conflicts: keys that came with several texts. shards: the numbers of the parts that
    were given, and of: how many there are; 0 where there are none. n_damaged: lines that do not count, in all folders.
    """

    name: str
    n_samples: int
    n_added: int
    n_expected: int
    n_owed: int
    n_again: int = 0
    conflicts: tuple[Key, ...] = ()
    shards: tuple[int, ...] = ()
    of: int = 0
    n_damaged: int = 0

    @property
    def missing_shards(self) -> tuple[int, ...]:
        """Parts that were not given and whose questions are owed."""
        return tuple(n for n in range(1, self.of + 1) if n not in self.shards) if self.n_owed else ()

    def notes(self) -> Iterator[Sentence]:
        """What is to be said of it, in whole sentences, safe to print."""
        name = visible(self.name, 80)
        if self.missing_shards:
            missing = _named(map(str, self.missing_shards))
            yield Sentence(f"{name}: shards {missing} of {self.of} are missing; what they ask is owed")
        if self.n_again:
            yield Sentence(f"{name}: {self.n_again} samples were given twice with equal texts, and are kept once")
        if self.conflicts:
            keys = _named(f"{quoted(key.question_id)} #{key.sample_index}" for key in self.conflicts)
            yield Sentence(f"{name}: {len(self.conflicts)} keys have different texts; the first one counts: {keys}")
        if self.n_damaged:
            yield Sentence(f"{name}: {self.n_damaged} damaged lines do not count; `harness doctor` names them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge came to. notes: what to know beside the joined benchmarks."""

    folder: RunFolder
    benchmarks: tuple[Joined, ...]
    notes: tuple[Sentence, ...] = ()

    @property
    def path(self) -> Path:
        """The joined run's folder."""
        return self.folder.path

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def complete(self) -> bool:
        """Nothing is owed."""
        return not any(one.n_owed for one in self.benchmarks)


@dataclass(frozen=True, slots=True)
class _Source:
    """One folder with its manifest. label: a short name that no other one has."""

    folder: RunFolder
    manifest: Manifest
    label: str


@dataclass(slots=True)
class _Texts:
    """A hash of each key's text: eight bytes a sample. 0 stands for none."""

    _of: dict[str, array[int]] = field(default_factory=dict)
    _far: dict[Key, int] = field(default_factory=dict)

    def known(self, key: Key, said: int) -> int:
        """The hash that `key` has; 0, and from now on `said`, where it had none."""
        if key.sample_index >= _NEAR:
            before = self._far.get(key, 0)
            self._far.setdefault(key, said)
            return before
        hashes = self._of.setdefault(key.question_id, array("Q"))
        if key.sample_index >= len(hashes):
            hashes.extend([0] * (key.sample_index + 1 - len(hashes)))
        before = hashes[key.sample_index]
        if not before:
            hashes[key.sample_index] = said
        return before


_NEAR = 4096
"""Indices below it have their place in an array; a record may state any."""


def merge(folders: Sequence[RunFolder], out: RunFolder, *, accept_server_change: bool = False) -> Merged:
    """Join `folders` into `out`, which may hold an earlier part of the same.

    accept_server_change: also where servers tell of different models. Raises `UsageError` for folders that are given
    twice, `StoreError` for other identities, other models, a damaged manifest, or a disk that refuses.
    """
    _check_paths(folders, out)
    for path in (path for folder in folders for path in folder.logs()):
        _open_log(path).close()  # refused before anything is written
    sources = [
        _Source(folder, Manifest.load(folder), label) for folder, label in zip(folders, labels(folders), strict=True)
    ]
    with held(out) as target:
        log = target.log
        before = [] if target.manifest is None else [_Source(out, target.manifest, out.path.name)]
        manifest = _joined_manifest([*before, *sources], accept_server_change)
        kept = {name: _together(name, [*before, *sources]) for name in manifest.benchmarks}
        manifest = _with_digests(manifest, kept)
        manifest.save(out)
        notes = [Sentence(target.warning)] if target.warning else []
        found = []
        for name, asked in kept.items():
            questions.write(out.benchmark(name), asked)
            found.append(_join(out.benchmark(name), manifest.benchmarks[name], asked, sources, log))
        _copy_logs(out, sources)
        if corrected := [
            one.label for one in sources for name in kept if one.folder.benchmark(name).overrides.exists()
        ]:
            notes.append(Sentence(f"verdicts corrected by hand stay in {_named(map(visible, corrected))}"))
        log.write("merged", sources=[str(one.folder.path) for one in sources], samples=[one.n_samples for one in found])
    return Merged(folder=out, benchmarks=tuple(found), notes=tuple(notes))


def _check_paths(folders: Sequence[RunFolder], out: RunFolder) -> None:
    if not folders:
        raise UsageError("name the run folders that are to be joined")
    resolved = [folder.path.resolve() for folder in folders]
    if out.path.resolve() in resolved:
        raise UsageError("it is one of the folders that are to be joined: name another one", field="out")
    if twice := [path for path in resolved if resolved.count(path) > 1]:
        raise UsageError(f"{twice[0]} is given twice")


# ---- what makes them one run


def _joined_manifest(sources: Sequence[_Source], accept_server_change: bool) -> Manifest:
    """The manifest of all. Raises `StoreError` naming what differs."""
    first = sources[0]
    records: dict[str, BenchmarkRecord] = {}
    whose: dict[tuple[str, bool], _Source] = {}  # the first folder of a benchmark, and the first shard of it
    known = Provenance()
    environment: dict[str, Any] = {}
    for one in sources:
        _same("model", first, one, first.manifest.model, one.manifest.model)
        for key, value in one.manifest.environment.items():
            environment.setdefault(key, value)
        if not accept_server_change:
            _same("server_model", first, one, *(s.manifest.environment.get("server_model") for s in (first, one)))
        for name, record in one.manifest.benchmarks.items():
            for other in (whose.setdefault((name, False), one), whose.setdefault((name, _is_shard(record)), one)):
                if changed := _apart(other.manifest.benchmarks[name].identity, record.identity):
                    raise _refusal(other, one, changed, name)
            whole = _whole(record)
            records[name] = _extended(records[name], whole) if name in records else whole
        changes = provenance.changes(known, _servers(one.manifest.provenance))
        if changes.model and not accept_server_change:
            raise provenance.refusal(changes.model)
        known = _with_sessions(known, one.manifest.provenance)
    return msgspec.structs.replace(
        first.manifest,
        created=min(one.manifest.created for one in sources),
        benchmarks=records,
        environment=environment,
        provenance=known,
    )


def _same(what: str, first: _Source, one: _Source, mine: Any, theirs: Any) -> None:
    if mine is not None and theirs is not None and mine != theirs:
        raise _refusal(first, one, [Difference(what, mine, theirs)])


def _apart(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Difference]:
    """In what two identities differ, the number of the shard apart. A whole run goes with its shards: it may be what
    others were joined into."""
    siblings = SHARD in mine and SHARD in theirs
    return differences(*({**one, SHARD: _kind(one[SHARD]) if siblings else None} for one in (mine, theirs)))


def _kind(shard: Any) -> dict[str, Any]:
    """What siblings have in common."""
    return {"of": _numbers(shard)[1], "selection": shard.get("selection")} if isinstance(shard, dict) else {}


def _is_shard(record: BenchmarkRecord) -> bool:
    return SHARD in record.identity


def _numbers(shard: Mapping[str, Any]) -> tuple[int, int]:
    """(number, how many) of a record's shard; zeros where a manifest of foreign make says nothing of the kind."""
    try:
        shard_of_run = Shard.parse(str(shard.get("part", "")))
    except ValueError:
        return 0, 0
    return shard_of_run.number, shard_of_run.of


def _whole(record: BenchmarkRecord) -> BenchmarkRecord:
    """The record of the run of which this is a shard; a record of a whole run as it is."""
    if not _is_shard(record):
        return record
    identity = {name: value for name, value in record.identity.items() if name != SHARD}
    return msgspec.structs.replace(record, identity=identity, plan=Plan(samples=record.plan.samples))


def _extended(mine: BenchmarkRecord, theirs: BenchmarkRecord) -> BenchmarkRecord:
    """One record for both: all questions, the larger number of samples, all endpoints, all that can never succeed."""
    chosen, others = mine.plan.question_ids, theirs.plan.question_ids
    ids = None if chosen is None or others is None else list(dict.fromkeys([*chosen, *others]))
    settings = dict(mine.settings)
    for name in ("endpoints", "never_succeeds"):
        a, b = mine.settings.get(name), theirs.settings.get(name)
        if isinstance(a, list) and isinstance(b, list):
            settings[name] = [*a, *(one for one in b if one not in a)]
        elif isinstance(a, dict) and isinstance(b, dict):
            settings[name] = {**b, **a}
    plan = Plan(samples=max(mine.plan.samples, theirs.plan.samples), question_ids=ids)
    return msgspec.structs.replace(mine, plan=plan, settings=settings)


def _servers(known: Provenance) -> Mapping[str, Any]:
    """The servers of a run under the address of which it knows them."""
    named = {name: url for session in known.sessions for url, name in session.endpoints.items()}
    return {named.get(name, name): facts for name, facts in known.servers.items()}


def _with_sessions(mine: Provenance, theirs: Provenance) -> Provenance:
    sessions = sorted(
        [*mine.sessions, *(one for one in theirs.sessions if one not in mine.sessions)], key=lambda one: one.started
    )
    if len(sessions) > MAX_SESSIONS:
        sessions = [sessions[0], *sessions[1 - MAX_SESSIONS :]]
    return msgspec.structs.replace(
        mine,
        servers={**mine.servers, **theirs.servers},
        sessions=sessions,
        fingerprint=mine.fingerprint or theirs.fingerprint,
    )


def _refusal(first: _Source, one: _Source, changed: Sequence[Difference], benchmark: str = "") -> StoreError:
    what = f" in {quoted(benchmark)}" if benchmark else ""
    lines = "\n".join(f"  {difference}" for difference in changed)
    return StoreError(
        f"{first.folder.path} and {one.folder.path} are no parts of one run; they differ{what}:\n{lines}\n"
        "Join only what was made under the same settings."
    )


# ---- the questions


def _together(name: str, sources: Sequence[_Source]) -> Sequence[Question]:
    """The questions of all folders, in the order of the first that has them. Raises `StoreError` where one differs."""
    asked: Sequence[Question] = ()
    for one in sources:
        if name in one.manifest.benchmarks and one.folder.benchmark(name).questions.exists():
            theirs = questions.read(one.folder.benchmark(name))
            asked = theirs if not asked else _merged(asked, theirs, one, name)
            if not questions.as_sealed(one.manifest.benchmarks[name], theirs):
                raise StoreError(
                    f"{one.folder.benchmark(name).questions} was changed after the run wrote it. Remove the file and "
                    "give the run's command again to have it rebuilt."
                )
    if not asked:
        raise StoreError(f"none of the folders holds the questions of {quoted(name)}; give each run's command again.")
    return asked


def _merged(mine: Sequence[Question], theirs: Sequence[Question], one: _Source, name: str) -> Sequence[Question]:
    if questions.digest_of(mine) == questions.digest_of(theirs):
        return mine
    known = {question.question_id: questions.digest_of([question]) for question in mine}
    more: Packed[Question] = Packed(Question)
    for question in theirs:
        digest = known.get(question.question_id)
        if digest is None:
            more.append(question)
        elif digest != questions.digest_of([question]):
            raise StoreError(
                f"{one.folder.benchmark(name).questions}: question {quoted(question.question_id)} is another one than "
                "in the folders before it. Join only what was made from the same questions."
            )
    return Packed(Question, chain(mine, more)) if more else mine


def _with_digests(manifest: Manifest, kept: Mapping[str, Sequence[Question]]) -> Manifest:
    records = {
        name: msgspec.structs.replace(
            manifest.benchmarks[name],
            settings={**manifest.benchmarks[name].settings, questions.DIGEST: questions.seal(asked)},
        )
        for name, asked in kept.items()
    }
    return msgspec.structs.replace(manifest, benchmarks=records)


# ---- the samples


def _join(
    out: BenchmarkFolder, record: BenchmarkRecord, asked: Sequence[Question], sources: Sequence[_Source], log: RunLog
) -> Joined:
    """Append what `out` lacks, and say what came twice."""
    texts, came = _Texts(), KeySet()
    conflicts: dict[Key, None] = {}
    n_again = n_damaged = n_added = waiting = 0
    with Journal.open(out, log=log) as journal:
        for sample in read_samples(out):
            texts.known(sample.key, _said(sample))
        for one in sources:
            if out.name not in one.manifest.benchmarks:
                continue
            reader = read_samples(one.folder.benchmark(out.name))
            for sample in reader:
                said = _said(sample)
                before = texts.known(sample.key, said)
                again = not came.add(sample.key)
                if not before:
                    journal.hand_over(sample)
                    n_added += 1
                    waiting += len(sample.text or "") + len(sample.reasoning or "") + COUNTED_CHARS
                    if waiting >= WAITING_CHARS:
                        journal.flush()
                        waiting = 0
                elif before != said:
                    conflicts[sample.key] = None
                else:
                    n_again += again
            n_damaged += len(reader.report.damaged)
            conflicts.update(dict.fromkeys(reader.report.conflicts))
        journal.flush()
        keys = journal.keys
    ids = record.plan.question_ids or [question.question_id for question in asked]
    n_expected = len(ids) * record.plan.samples
    shards = [_numbers(shard) for one in sources if (shard := _shard_of(one, out.name)) is not None]
    return Joined(
        name=out.name,
        n_samples=len(keys),
        n_added=n_added,
        n_expected=n_expected,
        n_owed=n_expected - keys.count_within(ids, record.plan.samples),
        n_again=n_again,
        conflicts=tuple(conflicts),
        shards=tuple(sorted({number for number, _ in shards})),
        of=max((of for _, of in shards), default=0),
        n_damaged=n_damaged,
    )


COUNTED_CHARS = 512
"""What a sample takes beside its texts, about."""


def _shard_of(one: _Source, benchmark: str) -> Mapping[str, Any] | None:
    record = one.manifest.benchmarks.get(benchmark)
    shard = record.identity.get(SHARD) if record is not None else None
    return shard if isinstance(shard, dict) else None


def _said(sample: Sample) -> int:
    """A hash of the texts, never 0."""
    return hash((sample.text, sample.reasoning)) & 0xFFFFFFFFFFFFFFFF or 1


# ---- the logs


def _copy_logs(out: RunFolder, sources: Sequence[_Source]) -> None:
    """The logs of the folders stand beside the joined one's: scores count the failed requests in them."""
    for one in sources:
        for path in one.folder.logs():
            rest = path.name.removeprefix(one.folder.log.stem).lstrip(".")
            target = out.path / f"{out.log.stem}.{safe_name(one.label)}.{rest}"
            with _open_log(path) as file:
                write_atomically(target, iter(partial(file.read, COPY_BYTES), b""))


def _open_log(path: Path) -> io.BufferedReader:
    """Raises `StoreError`."""
    try:
        return open_untrusted(path)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error


def _named(names: Iterator[str] | Sequence[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - SHOWN_KEYS} more" if len(listed) > SHOWN_KEYS else ""
    return ", ".join(listed[:SHOWN_KEYS]) + more
