"""A session's part in the run folder: it checks the run's identity, plans what is missing, and records the result.

`plan` runs before the first request, `finish` after the last. In between, the runner calls the methods that record what
is learned about the servers. Nothing here sends a request for a sample.

A run adopts the plan of a session once its servers have been accepted, so a rejected session changes nothing that a
score, a status or a comparison reads.

Long: every step reads or changes the same manifest.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any

import msgspec

from harness.benchmarks.catalog import CARD, DATA, WITHOUT_CARD
from harness.benchmarks.questions import QuestionSet
from harness.benchmarks.sources.images import shared_folder
from harness.client.address.endpoint import Endpoint
from harness.client.request_fields import prompt_bytes
from harness.core import codec
from harness.core.errors import ServerError, StoreError
from harness.core.files import remove
from harness.core.hidden_limit import cut_prompts
from harness.core.installation import __version__
from harness.core.number_text import count_noun
from harness.core.records import Sample, ServerFacts
from harness.generation.context import fitted_max_tokens
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.state import SessionPlan
from harness.generation.outcome import Outcome, sample_warnings
from harness.generation.run_progress import Progress, Spent
from harness.generation.settings import RunSettings, with_record
from harness.runs import questions as stored_questions
from harness.runs.commit import commit
from harness.runs.journal import Journal, stored_keys
from harness.runs.layout import RunFolder, RunLog
from harness.runs.log_events import spent_so_far
from harness.runs.manifest import BenchmarkRecord, Manifest, Provenance, changes_of, servers_refusal
from harness.runs.merging import joined_manifest, refuse_doubled
from harness.runs.missing import KeySet, Missing, missing_samples, n_planned

_MISSING = "never_succeeds"
"""Field of a benchmark's record: questions that can never succeed, each with the server's message."""


class SamplingSession(contextlib.AbstractContextManager["SamplingSession"]):
    """Plans a session, opens its journals, keeps the manifest up to date, and makes the outcome; used by `generate`."""

    def __init__(
        self,
        settings: RunSettings,
        question_sets: Sequence[QuestionSet],
        folder: RunFolder,
        log: RunLog,
        environment: Mapping[str, Any],
        servers: Mapping[str, ServerFacts],
        on_surplus: Callable[[str], None] | None = None,
        taken_over: Iterable[Sample] = (),
    ) -> None:
        self._settings = settings
        self._question_sets = {s.name: s for s in question_sets}
        self._folder = folder
        self._log = log
        self._on_surplus = on_surplus
        self._taken_over = taken_over
        self.journals: dict[str, Journal] = {}
        """By benchmark, from `plan` to the end of the `with` block."""
        # By benchmark, for a shard: the keys of the samples already in its run.
        self._joined_keys: dict[str, KeySet] = {}
        # By benchmark, the max_tokens that fits the server's context if it had to be lowered, else None.
        self._fitted: dict[str, int | None] = {}
        # By benchmark: id of a question that can never succeed → the server's message.
        self._missing: dict[str, dict[str, str]] = {}
        # Benchmarks with stored samples, which bind the session to their settings.
        self._bound: set[str] = set()
        self._warnings: list[str] = []
        self._servers = servers
        self._joined: SimpleQueue[tuple[str, ServerFacts]] = SimpleQueue()
        here = {"python": platform.python_version(), "system": platform.platform(), "commit": commit()}
        self._environment = {**here, **environment}
        # Whether the log has the start of the session but not yet its end.
        self._under_way = False
        self.context: int | None = None
        """The smallest context length that the servers report, in tokens, once they have been asked."""
        self._manifest = Manifest.start(folder, model=settings.model, harness_version=__version__)

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Close the journals, and log the end of a session in progress. Raises the first error of a journal unless the
        block itself raised an error.
        """
        failures = []
        for journal in self.journals.values():
            # Each journal is closed even if another fails, because closing syncs it.
            try:
                journal.close()
            except StoreError as failure:
                failures.append(failure)
        if self._under_way:
            # The error may itself be a full disk, in which case this line also fails.
            with contextlib.suppress(StoreError):
                stopped = "" if error is None else str(error) or type(error).__name__
                self._log_end(self._n_stored(), stopped=stopped)
        # An error in the block is the cause; a journal's error on closing may be a consequence.
        if failures and error is None:
            raise failures[0]

    def warn(self, warning: str) -> None:
        self._warnings.append(warning)
        self._log.write("warning", message=warning)

    # ---- before the first request

    def plan(self, contexts: Iterable[int], down: Sequence[ServerError]) -> SessionPlan:
        """Prepare the session, and return its starting state.

        In this order: compare identities, open the journals, find the missing samples, check the servers and their
        context, write manifest and questions. Raises `StoreError`, `ServerError`. contexts: context lengths that the
        endpoints report, in tokens. down: why each endpoint that did not answer could not be used.
        """
        refuse_doubled(self._folder)
        rows: list[Missing] = []
        done: dict[str, int] = {}
        total: dict[str, int] = {}
        self._forget_empty()
        # (benchmark, key) of another tool's samples that are not stored yet.
        taken = {(sample.benchmark, sample.key) for sample in self._taken_over}
        # All identities before the first journal, because a rejected session must not touch any of the run's files.
        for name, question_set in self._question_sets.items():
            self._fitted[name] = self._recorded_fit(name)
            self._manifest = with_record(self._manifest, question_set, self._record(name, question_set))
        run = self._folder.run_of_shard()
        if run is not None:
            self._compare_with_shards(run)
        for name, question_set in self._question_sets.items():
            journal = Journal.open(self._folder.benchmark(name), log=self._log)
            self.journals[name] = journal
            if damaged := journal.report.damaged:
                self.warn(f"{name}: {len(damaged)} damaged lines of samples.jsonl are ignored (see log.jsonl).")
            self._joined_keys[name] = KeySet() if run is None else stored_keys(run.benchmark(name))
            expected, keys = self._settings.benchmarks[name].plan(), self._keys(name)
            taken = {(benchmark, key) for benchmark, key in taken if benchmark != name or keys.add(key)}
            ids = question_set.ids
            self._note_surplus(name, expected.samples, ids, keys)
            total[name], done[name] = expected.total(ids), expected.n_stored(keys, ids)
            self._missing[name] = self._accepted_missing(name)
            missing = missing_samples(name, ids, expected.samples, keys)
            rows += [o for o in missing if o.question_id not in self._missing[name]]
        if rows:
            self._check_servers()
            self._check_context({o.benchmark for o in rows}, self._smallest_context(contexts, down))
        for name, question_set in self._question_sets.items():
            self._note_questions(name, question_set)
            stored_questions.take_images(self._folder.benchmark(name), question_set.questions, shared_folder())
        self._adopt()
        if taken:
            for sample in self._taken_over:
                if (sample.benchmark, sample.key) in taken:
                    self.journals[sample.benchmark].append(sample)
            self._log.write("taken_over", samples=len(taken))
        self._log.write(
            "session_started",
            missing=sum(len(o.indices) for o in rows),
            done=sum(done.values()),
            version=__version__,
            **self._settings.settings_record(),
        )
        self._under_way = True
        server_model = self._manifest.environment.get("server_model")
        return SessionPlan(
            missing=rows,
            done=done,
            total=total,
            prompt_bytes=self._prompt_bytes(rows),
            server_model=server_model if isinstance(server_model, str) else None,
        )

    def _adopt(self) -> None:
        """Make the session's plan that of the run: write manifest and questions."""
        for name in self._question_sets:
            if name not in self._bound:
                remove(self._folder.benchmark(name).questions)
        # Before questions and samples, which must never be on disk without the settings that they were made with.
        self._manifest.save(self._folder)
        for name, question_set in self._question_sets.items():
            stored_questions.write(self._folder.benchmark(name), question_set.selection)

    def _prompt_bytes(self, rows: Sequence[Missing]) -> dict[tuple[str, str], int]:
        """Question → bytes of its prompt in a request; empty without prices, since prompts matter only for costs."""
        if self._settings.prices is None:
            return {}
        templates = {name: self._settings.template(name) for name in self._settings.benchmarks}
        return {
            (o.benchmark, o.question_id): prompt_bytes(
                codec.decode(templates[o.benchmark].body(self.questions[o.benchmark].question(o.question_id)))
            )
            for o in rows
        }

    @property
    def questions(self) -> Mapping[str, QuestionSet]:
        """The questions by benchmark."""
        return self._question_sets

    def _forget_empty(self) -> None:
        """Drop the records of this session's benchmarks without a stored sample, so that their settings may change.

        If no benchmark has a sample, the model, the environment and the provenance of the manifest are dropped too.
        Raises `StoreError` if a benchmark of this session has samples but no record.
        """
        records = self._manifest.benchmarks
        bound = self._bound = {name for name in records if self._folder.benchmark(name).has_samples()}
        if not bound and self._manifest.model != self._settings.model:
            self._manifest = msgspec.structs.replace(self._manifest, model=self._settings.model)
            records = {}
        for name in self._question_sets.keys() - records.keys():
            if self._folder.benchmark(name).has_samples():
                raise StoreError(
                    f"{self._folder.benchmark(name).path} contains samples, but manifest.json does not record "
                    "their settings. Restore the manifest, or use another run folder."
                )
        records_left = {
            name: record for name, record in records.items() if name in bound or name not in self._question_sets
        }
        environment = {**(self._manifest.environment if bound else {}), **self._environment}
        recorded = self._manifest.provenance if bound else Provenance()
        self._manifest = msgspec.structs.replace(
            self._manifest, benchmarks=records_left, environment=environment, provenance=recorded
        )

    def _record(self, name: str, question_set: QuestionSet) -> BenchmarkRecord:
        """Return a benchmark's record for the manifest: identity, plan and settings of this session."""
        # If the data have changed, the question file also has former questions, which no plan counts.
        takes_all = len(question_set.selection) == question_set.n_all and question_set.resumes is None
        former = self._manifest.benchmarks.get(name)
        settings = self._settings.benchmark_record(name)
        settings[_MISSING] = former.settings.get(_MISSING, {}) if former is not None else {}
        if not question_set.publish:
            settings["publish_questions"] = False
        if question_set.card_file is not None:
            settings[CARD] = question_set.card_file
        if question_set.given_data is not None:
            settings[DATA] = question_set.given_data
        if question_set.without_card:
            settings[WITHOUT_CARD] = True
        if question_set.data_file is not None:
            made = {"origin": question_set.data_file, "rows_digest": question_set.rows_digest}
            settings[stored_questions.MADE] = made
        benchmark, ids = self._settings.benchmarks[name], [q.question_id for q in question_set.selection]
        return BenchmarkRecord(
            identity=self._settings.identity(question_set, self._fitted[name]),
            plan=benchmark.plan(None if takes_all else ids),
            settings=settings,
            options=dict(benchmark.options),
        )

    def _compare_with_shards(self, run: RunFolder) -> None:
        """Raise `StoreError` if this shard differs from the first folder with samples among `run` and its shards."""
        for beside in (run, *run.shards()):
            if beside.path != self._folder.path and beside.has_samples():
                both = [(beside, Manifest.load(beside)), (self._folder, self._manifest)]
                joined_manifest(both, self._settings.accept_server_change)
                return

    def _note_surplus(self, name: str, samples: float, ids: Collection[str], keys: KeySet) -> None:
        """Report stored samples that the score will leave out, because this session plans fewer samples per question.

        samples: planned samples per question. ids: ids of the planned questions. keys: keys of the stored samples.
        """
        planned = set(ids)
        stored = (key for key in keys if key.sample_index >= int(samples) and key.question_id in planned)
        beyond = [key.sample_index for key in stored if key.sample_index >= n_planned(key.question_id, samples)]
        if not beyond or self._on_surplus is None:
            return
        sentence = (
            f"{name}: the score will use {count_noun(samples, 'sample')} per question and ignore the other "
            f"{len(beyond)} that are stored; request {max(beyond) + 1} to use all of them"
        )
        self._log.write("warning", message=sentence)
        self._on_surplus(sentence)

    def _note_questions(self, name: str, question_set: QuestionSet) -> None:
        """Record in the manifest a checksum of the questions in the future file, so that scoring can check the file.

        Raises `StoreError` if a question differs from the stored one.
        """
        folder, record = self._folder.benchmark(name), self._manifest.benchmarks[name]
        together = stored_questions.merge(folder, question_set.selection, with_stored=name in self._bound)
        settings = {**record.settings, stored_questions.DIGEST: stored_questions.seal(together)}
        self._manifest = self._manifest.extend(name, msgspec.structs.replace(record, settings=settings))

    def _recorded_fit(self, name: str) -> int | None:
        """The max_tokens that an earlier session fitted to the server's context; None if it was not fitted."""
        record = self._manifest.benchmarks.get(name) if self._settings.may_lower(name) else None
        value = record and record.identity.get("fitted_max_tokens")
        return value if isinstance(value, int) else None

    def _accepted_missing(self, name: str) -> dict[str, str]:
        """Return the questions that can never succeed (id → the server's message) if the user accepts their absence."""
        stored = self._manifest.benchmarks[name].settings.get(_MISSING, {})
        if not self._settings.accept_missing or not isinstance(stored, dict):
            return {}
        return {
            q.question_id: stored[q.question_id] for q in self._question_sets[name].questions if q.question_id in stored
        }

    def _check_servers(self) -> None:
        """Record which servers this session uses. Raises `StoreError` if a server runs a model other than the run's."""
        before = self._manifest.provenance
        changes = changes_of(before, self._servers)
        if changes.model and not self._settings.accept_server_change:
            raise servers_refusal(changes.model)
        for change in changes.model:
            self.warn(f"the run continues with a different model, as `accept_server_change` allows: {change}.")
        for change in changes.host:
            self.warn(f"the server has changed: {change}.")
        started = datetime.now(UTC).isoformat(timespec="seconds")
        after = before.after(started, self._servers, [str(change) for change in changes.model])
        self._manifest = msgspec.structs.replace(self._manifest, provenance=after)

    @property
    def settings_sent(self) -> RunSettings:
        """The settings for this session's requests after `plan`, in which each max_tokens fits the server's context.

        The original settings, which identify the run, keep the requested number.
        """
        benchmarks = dict(self._settings.benchmarks)
        for name, bound in self._fitted.items():
            if bound is not None:
                benchmarks[name] = replace(
                    benchmarks[name], sampling=benchmarks[name].sampling.replace(max_tokens=bound)
                )
        return replace(self._settings, benchmarks=benchmarks)

    def join(self, endpoint: Endpoint, facts: ServerFacts) -> str | None:
        """Return why an endpoint may not join the session; None if it may. Any thread may call this.

        `note_joined` later writes the new endpoint to the manifest. facts: what the endpoint reports.
        """
        changes = changes_of(self._manifest.provenance, {endpoint.base_url: facts})
        if changes.model and not self._settings.accept_server_change:
            refusal = servers_refusal(changes.model).sentence
            self.warn(f"{endpoint.base_url} cannot join the run: {refusal}")
            return refusal
        for change in changes.model + changes.host:
            self.warn(f"an endpoint added during the run differs from the run's servers: {change}.")
        self._joined.put((endpoint.base_url, facts))
        return None

    def note_joined(self) -> None:
        """Write the endpoints that have joined to the manifest. Only the session's own thread may call this."""
        while not self._joined.empty():
            url, facts = self._joined.get()
            joined = self._manifest.provenance.with_endpoint(url, facts)
            self._manifest = msgspec.structs.replace(self._manifest, provenance=joined)
            self._manifest.save(self._folder)

    def _check_context(self, owing: Collection[str], context: int | None) -> None:
        """Raise `ServerError` if prompt and max_tokens exceed the server's context in a benchmark in `owing`."""
        self.context = context
        if context is None:
            return
        for name, question_set in self._question_sets.items():
            if name not in owing:
                continue
            max_tokens = self._settings.benchmarks[name].sampling.max_tokens
            before = self._fitted[name]
            # A benchmark with stored samples keeps the max_tokens used for them.
            may_fit = self._settings.may_lower(name) and name not in self._bound
            to_send = max_tokens if may_fit or before is None else before
            fitted = fitted_max_tokens(name, question_set.selection, to_send, context, fit=may_fit)
            if may_fit and fitted != max_tokens:
                self._fitted[name] = fitted
                whose = "" if self._settings.fit_context else "its default "
                self.warn(
                    f"{name}: `max_tokens` is lowered from {whose}{max_tokens} to {fitted}, because the server's "
                    f"context length is {context}."
                )
                rest = {n: r for n, r in self._manifest.benchmarks.items() if n != name}
                self._manifest = msgspec.structs.replace(self._manifest, benchmarks=rest)
                self._manifest = with_record(self._manifest, question_set, self._record(name, question_set))

    def _smallest_context(self, contexts: Iterable[int], down: Sequence[ServerError]) -> int | None:
        """Return the smallest reported context length, in tokens; None if no endpoint reports one. Raises
        `ServerError`.
        """
        if not self._settings.endpoints:
            raise ServerError("samples are missing, but no server was specified: set `base_url`, or start a server.")
        # One endpoint that answers is enough; the others may still be starting.
        if len(down) == len(self._settings.endpoints):
            raise down[0]
        for unreachable in down:
            self.warn(unreachable.sentence)
        return min(contexts, default=None)

    # ---- while it runs and afterwards

    def remember_model(self, name: str | None) -> None:
        """Record the model name in the server's replies, so that the next session can compare it."""
        if name is not None and self._manifest.environment.get("server_model") != name:
            environment = {**self._manifest.environment, "server_model": name}
            self._manifest = msgspec.structs.replace(self._manifest, environment=environment)
            self._manifest.save(self._folder)

    def finish(self, dispatcher: Dispatcher, progress: Progress) -> Outcome:
        """Record what the session learned, log its end, and return its outcome."""
        self.remember_model(dispatcher.model_name.name)
        self.note_joined()
        too_long = dispatcher.causes.too_long()
        for name, messages in too_long.items():
            record = self._manifest.benchmarks[name]
            missing = {**record.settings.get(_MISSING, {}), **messages}
            record = msgspec.structs.replace(record, settings={**record.settings, _MISSING: missing})
            self._manifest = self._manifest.extend(name, record)
            if self._settings.accept_missing:
                self._missing[name] |= messages
        if too_long:
            self._manifest.save(self._folder)
        tally, ending = dispatcher.tally, dispatcher.ending
        stated = dispatcher.prompt_tokens.items()
        for name, known in self._question_sets.items():
            note, n_cut = cut_prompts((n, known.question(each)) for (_, _, of, each), n in stated if of == name)
            tally.notes |= {note: n_cut} if note else {}
        outcome = replace(
            self.outcome(dispatcher.total, dispatcher.done),
            tally=tally,
            elapsed_s=progress.elapsed_s,
            stopped=ending.why,
            progress=progress,
        )
        self._log_end(
            outcome.n_done,
            finished=tally.finished,
            tokens=tally.tokens,
            spent=asdict(outcome.spent),
            failures=tally.failures,
            retries=tally.retries,
            notes=tally.notes,
            stopped=ending.why,
        )
        for doubt in sample_warnings(dispatcher):
            self.warn(doubt)
        causes = dispatcher.causes.listed(outcome.n_missing, ending.why)
        return replace(outcome, causes=causes, advice=dispatcher.advice(causes))

    def _log_end(self, done: int, *, stopped: str, **counts: Any) -> None:
        """Write the end of the session to the log. done: stored samples of the plan. stopped: why it ended early."""
        self._log.write("session_ended", done=done, **counts, stopped=stopped)
        self._under_way = False

    def _keys(self, name: str) -> KeySet:
        """The keys of the stored samples of a benchmark."""
        keys = self.journals[name].keys
        for key in self._joined_keys[name]:
            keys.add(key)
        return keys

    def _n_stored(self) -> int:
        """The number of planned samples that are stored."""
        return sum(
            self._settings.benchmarks[name].plan().n_stored(self._keys(name), self._question_sets[name].ids)
            for name in self.journals
        )

    def outcome(self, total: Mapping[str, int], done: Mapping[str, int]) -> Outcome:
        """Return the outcome according to what is stored and missing now, before the session's end is logged.

        total, done: by benchmark, the numbers of planned and of stored samples. elapsed_s is 0; `finish` sets it.
        """
        # A question that can never succeed may have stored samples; only its other samples are missing.
        n_impossible = sum(
            len(row.indices)
            for name in self.journals
            for row in missing_samples(
                name, self._missing[name], self._settings.benchmarks[name].samples, self._keys(name)
            )
        )
        return Outcome(
            folder=self._folder.path,
            model=self._settings.model,
            prices=self._settings.prices,
            n_expected=sum(total.values()),
            n_done=sum(done.values()),
            n_impossible=n_impossible,
            elapsed_s=0.0,
            warnings=self._warnings,
            spent_before=Spent.of_all(spent_so_far(self._folder)),
        )
