"""Joins several folders of one run: shards, or the same run started in several places.

    1 check     paths, logs, manifests: one identity, one model, one set of questions   nothing is written before
    2 manifest  one for all folders, with the plan of the whole run                     atomically
    3 samples   for each benchmark: what `out` is missing, in the order of the folders  appended as a run appends
    4 logs      a copy of each folder's log, since scores count failed requests         atomically

Invariant: the data on disk is always a prefix of the final result, so if a merge is killed at any step, repeating the
call finishes it, byte for byte. Each key counts once: a sample already in `out` is kept; otherwise the first folder
that has one provides it. The folders may still be written to: repeating the call adds the rest.
Not covered: grades, opinions and corrections stay in their folder; the joined run is graded from scratch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from harness.core import channel
from harness.core.errors import InUse, StoreError, UsageError
from harness.core.files import open_untrusted, read_errors, real, write_atomically
from harness.core.images import ImageFolder
from harness.core.number_text import count_noun
from harness.core.records import Question
from harness.core.sanitize import quoted, safe_name, visible
from harness.runs import questions
from harness.runs.journal import Journal, read_samples, stored_keys, stored_state
from harness.runs.layout import TRY_SECONDS, BenchmarkFolder, RunFolder, RunLog, holder_of, labels, readable
from harness.runs.lock import hold
from harness.runs.manifest import (
    BenchmarkRecord,
    Difference,
    Manifest,
    Provenance,
    changes_of,
    differences,
    servers_refusal,
)
from harness.runs.missing import KeySet, Plan

COPY_BYTES = 1024 * 1024

JOIN_SECONDS = 10.0
"""Seconds that a shard waits for its run to become free, since scoring holds the run while it joins the shards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The result of a merge for one benchmark.

    n_samples: samples in the joined folder. n_added: how many of them this call added. n_expected: planned samples.
    n_missing: how many of them are not stored. n_again: samples that an earlier folder also has. n_damaged: damaged
    lines in all folders, which do not count.
    """

    name: str
    n_samples: int
    n_added: int
    n_expected: int
    n_missing: int
    n_again: int
    n_damaged: int

    def notes(self) -> Iterator[str]:
        """Sentences to tell the user, safe to print."""
        name = visible(self.name, 80)
        if self.n_again:
            n = count_noun(self.n_again, "sample")
            yield f"{name}: {n} found in two folders; the version in the first folder is used"
        if self.n_damaged:
            n = count_noun(self.n_damaged, "damaged line")
            yield f"{name}: {n} ignored; list them with `harness doctor`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The result of a merge. notes: remarks on the merge, one sentence each."""

    folder: RunFolder
    benchmarks: tuple[Joined, ...]
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Folder of the merged run."""
        return self.folder.path

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def complete(self) -> bool:
        """Whether the merged run has all its samples."""
        return not any(joined.n_missing for joined in self.benchmarks)


def merge(folders: Sequence[RunFolder], out: RunFolder, *, accept_server_change: bool = False) -> Merged:
    """Join `folders` into `out`, which may contain an earlier part of the same run.

    accept_server_change: join even if the servers reported different models. Raises `UsageError` for a folder given
    twice, `StoreError` for different identities or models, a damaged manifest or a failed disk write.
    """
    _check_paths(folders, out)
    for path in (path for folder in folders for path in folder.logs()):
        with read_errors(path):  # before anything is written
            open_untrusted(path).close()
    sources = [(folder, Manifest.load(folder)) for folder in folders]
    with hold(out) as target:
        log = target.log
        together = sources if target.manifest is None else [(out, target.manifest), *sources]
        manifest = joined_manifest(together, accept_server_change)
        question_sets = {name: _merge_questions(name, together) for name in manifest.benchmarks}
        records = {}
        for name, all_questions in question_sets.items():
            settings = {**manifest.benchmarks[name].settings, questions.DIGEST: questions.seal(all_questions)}
            records[name] = msgspec.structs.replace(manifest.benchmarks[name], settings=settings)
        manifest = msgspec.structs.replace(manifest, benchmarks=records)
        manifest.save(out)
        joined = []
        for name, all_questions in question_sets.items():
            for folder in folders:
                theirs = ImageFolder(folder.benchmark(name).images)
                questions.take_images(out.benchmark(name), all_questions, theirs)
            questions.write(out.benchmark(name), all_questions)
            joined.append(_join(out.benchmark(name), manifest.benchmarks[name], all_questions, sources, log))
        _copy_logs(out, folders)
        log.write(
            "merged",
            sources=[str(folder.path) for folder in folders],
            samples=[benchmark.n_samples for benchmark in joined],
        )
    return Merged(folder=out, benchmarks=tuple(joined), notes=tuple(filter(None, [target.warning])))


def join_shards(run: RunFolder, *, ended: bool = False, accept_server_change: bool = False) -> None:
    """Add the samples that only its shards have to `run`, if it has shards. Warns about damaged lines.

    ended: whether all shards must have ended; if not, a run held by another process is left unchanged, since that
    process may be joining the shards. Raises `InUse` if a shard that must have ended has not, and anything that `merge`
    raises.
    """
    if ended:
        refuse_doubled(run)
    shards = [shard for shard in run.shards() if shard.has_samples()]
    if not shards:
        return
    try:
        merged = merge(shards, run, accept_server_change=accept_server_change)
    except InUse:
        if ended:
            raise
        return
    for joined in merged.benchmarks:
        for note in joined.notes():
            channel.warn(note)


def unjoined(run: RunFolder) -> dict[str, int]:
    """By benchmark, the number of samples that are in the run's shards but not in the run, so that its scores omit
    them. Raises `StoreError`.

    A damaged shard is left out, with a warning.
    """
    in_shards: dict[str, KeySet] = {}
    for shard, manifest in readable(run.shards(), Manifest.load):
        for name in manifest.benchmarks:
            stored = in_shards.setdefault(name, KeySet())
            for key in stored_keys(shard.benchmark(name)):
                stored.add(key)
    n_lacking = {name: len(keys - stored_keys(run.benchmark(name))) for name, keys in in_shards.items()}
    return {name: n for name, n in n_lacking.items() if n}


def describe_unjoined(run: RunFolder) -> list[str]:
    """A sentence on the samples that are in the run's shards but not in the run; empty if there are none."""
    if not (n := sum(unjoined(run).values())):
        return []
    path = visible(str(run.path), 200)
    return [f"{path} is missing {count_noun(n, 'sample')} from its shards; `harness score {path}` adds them"]


def refuse_doubled(folder: RunFolder) -> None:
    """Raise `InUse` if another session may request the same samples: a session of this shard's run or of one of this
    run's shards. A session calls it while holding `folder`, so if two start at the same time, at least one notices the
    other.
    """
    run, due = folder.run_of_shard(), time.monotonic() + JOIN_SECONDS
    if held := next(filter(None, map(holder_of, folder.shards())), None):
        raise InUse(f"a shard of {folder.path} is in use by {held}; wait until the run's shards have finished.")
    with channel.waiting("another process that is using this shard's run"):
        while run is not None and (held := holder_of(run)) is not None:
            if time.monotonic() > due:
                raise InUse(f"{run.path} is in use by {held}, which samples all questions; wait until it has finished.")
            time.sleep(TRY_SECONDS)


def _check_paths(folders: Sequence[RunFolder], out: RunFolder) -> None:
    """Raise `UsageError` if no folder is given, one is given twice, or the output folder is one of them."""
    if not folders:
        raise UsageError("specify the run folders to merge")
    # Two spellings or a link may refer to the same folder.
    resolved = [real(folder.path) for folder in folders]
    if real(out.path) in resolved:
        raise UsageError("the new folder is one of the folders to merge; choose a different folder", field="out")
    if twice := [path for path in resolved if resolved.count(path) > 1]:
        raise UsageError(f"{twice[0]} is given twice")


# ---- the manifest


def joined_manifest(sources: Sequence[tuple[RunFolder, Manifest]], accept_server_change: bool) -> Manifest:
    """The manifest of the whole run. Raises a `StoreError` that lists the differences."""
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
                f"{folder.path} does not belong to the same run as {first.path}; they differ:\n{lines}\n"
                "Merge only runs with the same settings."
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
    """The difference in a fact between two runs, if both state it."""
    return [] if mine is None or theirs is None or mine == theirs else [Difference(field, mine, theirs)]


def _extend(mine: BenchmarkRecord, theirs: BenchmarkRecord) -> BenchmarkRecord:
    """Return a joint record: the questions of both, the larger number of samples, and the endpoints of both.

    The questions that can never succeed are also joined. If the options differ, none of them selects questions.
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
    options = mine.options
    if options is not None and options != theirs.options:
        # Neither folder's selection applies to both; without a selection, the plan's ids are used.
        options = {name: value for name, value in options.items() if name not in ("limit", "filter")}
    return msgspec.structs.replace(mine, plan=plan, settings=settings, options=options)


def _servers(made_by: Provenance) -> Mapping[str, Any]:
    """The facts about a run's servers, by base URL, or by digest if no stored session names the server."""
    named = {name: url for session in made_by.sessions for url, name in session.endpoints.items()}
    return {named.get(name, name): facts for name, facts in made_by.servers.items()}


def _with_sessions(mine: Provenance, theirs: Provenance) -> Provenance:
    """The joint provenance of two folders: their servers and sessions, in chronological order."""
    sessions = sorted(
        [*mine.sessions, *(session for session in theirs.sessions if session not in mine.sessions)],
        key=lambda session: session.started,
    )
    return msgspec.structs.replace(
        mine,
        servers={**mine.servers, **theirs.servers},
        sessions=sessions,
    )


# ---- the questions


def _merge_questions(name: str, sources: Sequence[tuple[RunFolder, Manifest]]) -> Sequence[Question]:
    """The questions of all folders, in the order of their first occurrence. Raises `StoreError` if two differ."""
    digests: dict[str, str] = {}
    together = list[Question]()
    for run, manifest in sources:
        folder = run.benchmark(name)
        # A session that has just begun may be writing its questions right now.
        if name not in manifest.benchmarks or not (folder.questions.exists() or run.other_writer()):
            continue
        for question in questions.read_sealed(folder, manifest.benchmarks[name]):
            digest = questions.seal([question])
            if question.question_id not in digests:
                together.append(question)
            if digests.setdefault(question.question_id, digest) != digest:
                raise StoreError(
                    f"{folder.questions}: question {quoted(question.question_id)} differs from the one in an earlier "
                    f"folder. Join only runs with the same questions."
                )
    if not together:
        raise StoreError(f"none of the folders contains the questions of {quoted(name)}; run each run's command again.")
    return together


# ---- the samples


def _join(
    out: BenchmarkFolder,
    record: BenchmarkRecord,
    all_questions: Sequence[Question],
    sources: Sequence[tuple[RunFolder, Manifest]],
    log: RunLog,
) -> Joined:
    """Append the samples of one benchmark that are missing in `out`, and count the repeated ones.

    all_questions: the benchmark's questions from all folders.
    """
    seen = KeySet()
    n_again = n_damaged = n_added = 0
    with Journal.open(out, log=log) as journal:
        keys = journal.keys
        for folder, manifest in sources:
            if out.name not in manifest.benchmarks:
                continue
            files = folder.benchmark(out.name)
            # A key that was only in `out` was added by an earlier call of this merge, so it is not a repeat.
            theirs, report = stored_state(files)
            n_damaged += len(report.damaged)
            n_again += sum(not seen.add(key) for key in theirs)
            new = KeySet(key for key in theirs if key not in keys)
            for sample in read_samples(files, keys=new) if new else ():
                keys.add(sample.key)
                journal.append(sample)
                n_added += 1
    ids = record.plan.question_ids or [question.question_id for question in all_questions]
    n_expected = record.plan.total(ids)
    return Joined(
        name=out.name,
        n_samples=len(keys),
        n_added=n_added,
        n_expected=n_expected,
        n_missing=n_expected - record.plan.n_stored(keys, ids),
        n_again=n_again,
        n_damaged=n_damaged,
    )


# ---- the logs


def _copy_logs(out: RunFolder, folders: Sequence[RunFolder]) -> None:
    """Copy the folders' logs next to the joined run's log, because scores count failed requests in them."""
    for folder, label in zip(folders, labels(folders), strict=True):
        for path in folder.logs():
            rest = path.name.removeprefix(folder.log.stem).lstrip(".")
            target = out.path / f"{out.log.stem}.{safe_name(label)}.{rest}"
            with read_errors(path):
                file = open_untrusted(path)
            with file:
                write_atomically(target, iter(partial(file.read, COPY_BYTES), b""))
