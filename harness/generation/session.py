"""One session of a run as its folder sees it: identity, journals, what is owed before it, what it came to after it."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.client.fast.lag import Lag
from harness.core.about import __version__
from harness.core.errors import ServerError, StoreError
from harness.core.records import Question
from harness.core.wording import Sentence, option
from harness.generation.context import fitted_max_tokens
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.outcome import Outcome, doubts
from harness.generation.plan import Owed, SessionPlan, owed
from harness.generation.progress import Progress
from harness.generation.settings import RunSettings
from harness.runs import questions as stored_questions
from harness.runs.journal import Journal
from harness.runs.layout import RunFolder
from harness.runs.log import RunLog
from harness.runs.manifest import BenchmarkRecord, Manifest, Plan

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet

LONG_PROMPT_CHARS = 2000
"""From here on (some 500 tokens) an endpoint that has read a question's prompt is asked for more of its samples."""

_MISSING = "never_succeeds"


class Session:
    """The run folder's side of `generate`: what is planned, opened, and told at the end."""

    def __init__(
        self,
        settings: RunSettings,
        question_sets: Sequence[QuestionSet],
        folder: RunFolder,
        log: RunLog,
        clock: Callable[[], float],
        environment: Mapping[str, Any],
    ) -> None:
        self._settings = settings
        self._sets = {s.name: s for s in question_sets}
        self._folder = folder
        self._log = log
        self._clock = clock
        self._started = clock()
        self.journals: dict[str, Journal] = {}
        """By benchmark, from `plan` to the end of the `with` block."""
        self.fitted: dict[str, int | None] = {}
        """max_tokens by benchmark, where it was fitted to the server's context; else None."""
        self._missing: dict[str, dict[str, str]] = {}
        self._bound: set[str] = set()
        self._warnings: list[Sentence] = []
        self._environment = {"python": platform.python_version(), "system": platform.platform(), **environment}
        self._manifest = Manifest.start(folder, model=settings.model, harness_version=__version__)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        failures = []
        for journal in self.journals.values():
            try:
                journal.close()
            except StoreError as failure:
                failures.append(failure)
        if failures and error is None:
            raise failures[0]

    def warn(self, warning: str) -> None:
        self._warnings.append(Sentence(warning))
        self._log.write("warning", message=warning)

    # ---- before the first request

    def plan(self, context_of: Callable[[Endpoint, str], int | None]) -> SessionPlan:
        """Compare identities, open the journals, find what is owed, check the context, write manifest and questions."""
        rows: list[Owed] = []
        done: dict[str, int] = {}
        total: dict[str, int] = {}
        self._forget_empty()
        for name, chosen in self._sets.items():
            self.fitted[name] = self._recorded_fit(name)
            self._manifest = self._manifest.extend(name, self._record(name, chosen))
        for name, chosen in self._sets.items():
            journal = Journal.open(self._folder.benchmark(name), log=self._log)
            self.journals[name] = journal
            if name not in self._bound:
                stored_questions.forget(self._folder.benchmark(name))
            if journal.report.damaged:
                n_damaged = len(journal.report.damaged)
                self.warn(f"{name}: {n_damaged} damaged lines of samples.jsonl do not count (see log.jsonl).")
            samples, keys = self._settings.benchmarks[name].samples, journal.keys
            ids = [q.question_id for q in chosen.questions]
            mine = owed(name, ids, samples, keys)
            total[name] = len(ids) * samples
            done[name] = total[name] - sum(len(o.indices) for o in mine)
            self._missing[name] = self._accepted_missing(name)
            rows += [o for o in mine if o.question_id not in self._missing[name]]
        if rows:
            self._check_context({o.benchmark for o in rows}, context_of)
        for name, chosen in self._sets.items():
            self._note_questions(name, chosen)
        self._manifest.save(self._folder)
        for name, chosen in self._sets.items():
            stored_questions.write(self._folder.benchmark(name), chosen.questions)
        self._log.write(
            "session_started", owed=sum(len(o.indices) for o in rows), done=sum(done.values()), version=__version__,
            **self._settings.settings_record(),
        )  # fmt: skip
        known = self._manifest.environment.get("server_model")
        return SessionPlan(
            owed=rows,
            done=done,
            total=total,
            long_prompts={key for key, q in self.questions.items() if q.prompt_chars >= LONG_PROMPT_CHARS},
            server_model=known if isinstance(known, str) else None,
        )

    @property
    def questions(self) -> dict[tuple[str, str], Question]:
        """By (benchmark, question_id)."""
        return {(name, q.question_id): q for name, chosen in self._sets.items() for q in chosen.questions}

    def _forget_empty(self) -> None:
        """A benchmark without a single sample binds nothing: its record and its questions may be replaced."""
        records = self._manifest.benchmarks
        bound = self._bound = {name for name in records if _has_samples(self._folder, name)}
        if not bound and self._manifest.model != self._settings.model:
            self._manifest = msgspec.structs.replace(self._manifest, model=self._settings.model)
            records = {}
        for name in self._sets.keys() - records.keys():
            if _has_samples(self._folder, name):
                raise StoreError(
                    f"{self._folder.benchmark(name).path} holds samples of which the manifest knows nothing: nothing "
                    "says under which settings they were made. Put the manifest back, or use another run folder."
                )
        kept = {name: record for name, record in records.items() if name in bound or name not in self._sets}
        environment = {**(self._manifest.environment if bound else {}), **self._environment}
        self._manifest = msgspec.structs.replace(self._manifest, benchmarks=kept, environment=environment)

    def _record(self, name: str, chosen: QuestionSet) -> BenchmarkRecord:
        ids = [q.question_id for q in chosen.questions]
        known = self._manifest.benchmarks.get(name)
        return BenchmarkRecord(
            identity=self._settings.identity(chosen, self.fitted[name]),
            plan=Plan(
                samples=self._settings.benchmarks[name].samples,
                question_ids=None if len(ids) == chosen.n_all else ids,
            ),
            settings={
                **self._settings.benchmark_record(name),
                _MISSING: known.settings.get(_MISSING, {}) if known is not None else {},
                **({} if chosen.publish else {"publish_questions": False}),
            },
        )

    def _note_questions(self, name: str, chosen: QuestionSet) -> None:
        """The manifest says which questions the file will hold, so that scoring sees whether they are those."""
        asked = stored_questions.merged(self._folder.benchmark(name), chosen.questions)
        record = self._manifest.benchmarks[name]
        settings = {**record.settings, stored_questions.DIGEST: stored_questions.digest_of(asked)}
        self._manifest = self._manifest.extend(name, msgspec.structs.replace(record, settings=settings))

    def _recorded_fit(self, name: str) -> int | None:
        known = self._manifest.benchmarks.get(name)
        value = known.identity.get("fitted_max_tokens") if known is not None and self._settings.fit_context else None
        return value if isinstance(value, int) else None

    def _accepted_missing(self, name: str) -> dict[str, str]:
        stored = self._manifest.benchmarks[name].settings.get(_MISSING, {})
        if not self._settings.accept_missing or not isinstance(stored, dict):
            return {}
        return {q.question_id: stored[q.question_id] for q in self._sets[name].questions if q.question_id in stored}

    def _check_context(self, owing: Collection[str], context_of: Callable[[Endpoint, str], int | None]) -> None:
        """Raises `ServerError` where a benchmark of `owing` does not fit the context."""
        context = self._smallest_context(context_of)
        if context is None:
            return
        for name, chosen in self._sets.items():
            if name not in owing:
                continue
            asked = self._settings.benchmarks[name].sampling.max_tokens
            before = self.fitted[name]
            fresh = self._settings.fit_context and name not in self._bound
            fitted = fitted_max_tokens(
                name, chosen.questions, asked if fresh or before is None else before, context, fit=fresh
            )
            if fresh and fitted != asked:
                self.fitted[name] = fitted
                self.warn(f"{name}: max_tokens is lowered from {asked} to {fitted}: the server's context is {context}.")
                rest = {n: r for n, r in self._manifest.benchmarks.items() if n != name}
                self._manifest = msgspec.structs.replace(self._manifest, benchmarks=rest)
                self._manifest = self._manifest.extend(name, self._record(name, chosen))

    def _smallest_context(self, context_of: Callable[[Endpoint, str], int | None]) -> int | None:
        if not self._settings.endpoints:
            raise ServerError(
                f"samples are owed and no server is known: name one with {option('base_url')}, or start one."
            )
        stated, failures = [], []
        for endpoint in self._settings.endpoints:
            try:
                stated.append(context_of(endpoint, self._settings.model))
            except ServerError as failure:
                failures.append(failure)
        if not stated:
            raise failures[0]
        for unreachable in failures:
            self.warn(unreachable.sentence.marked)
        known = [tokens for tokens in stated if tokens is not None]
        return min(known) if known else None

    # ---- while it runs and afterwards

    def remember_model(self, name: str | None) -> None:
        """Keep the name that the model answers under with the run, for the next session to compare."""
        if name is not None and self._manifest.environment.get("server_model") != name:
            environment = {**self._manifest.environment, "server_model": name}
            self._manifest = msgspec.structs.replace(self._manifest, environment=environment)
            self._manifest.save(self._folder)

    def finish(self, dispatcher: Dispatcher, progress: Progress, lag: Lag | None) -> Outcome:
        """Keep what the session found out, log its end, and give the account of it."""
        self.remember_model(dispatcher.model_name.name)
        too_long = dispatcher.causes.too_long()
        for name, found in too_long.items():
            record = self._manifest.benchmarks[name]
            missing = {**record.settings.get(_MISSING, {}), **found}
            record = msgspec.structs.replace(record, settings={**record.settings, _MISSING: missing})
            self._manifest = self._manifest.extend(name, record)
            if self._settings.accept_missing:
                self._missing[name] |= found
        if too_long:
            self._manifest.save(self._folder)
        counts, ending = dispatcher.counts, dispatcher.ending
        self._log.write(
            "session_ended", done=sum(counts.done.values()), finished=counts.finished, tokens=counts.tokens,
            failures=counts.failures, retries=counts.retries, notes=counts.notes, stopped=ending.why,
            lag_s=lag._asdict() if lag else None,
        )  # fmt: skip
        for doubt in doubts(dispatcher, seeded=self._settings.seed is not None):
            self.warn(doubt)
        outcome = self._outcome(counts.total, counts.done)
        return replace(
            outcome,
            n_session=counts.finished,
            n_truncated=counts.truncated,
            n_duplicates=dispatcher.duplicates.n,
            n_loops=counts.loops,
            tokens=counts.tokens,
            causes=dispatcher.causes.listed(outcome.n_owed, Sentence(ending.why)),
            stopped=Sentence(ending.why),
            spent=counts.spent,
            progress=progress,
        )

    def nothing_owed(self, plan: SessionPlan) -> Outcome:
        """The account of a session that has nothing to ask."""
        return self._outcome(plan.total, plan.done)

    def _outcome(self, total: Mapping[str, int], done: Mapping[str, int]) -> Outcome:
        n_expected, n_done = sum(total.values()), sum(done.values())
        n_missing = sum(
            len(row.indices)
            for name, journal in self.journals.items()
            for row in owed(name, self._missing[name], self._settings.benchmarks[name].samples, journal.keys)
        )
        return Outcome(
            complete=n_expected - n_done == n_missing,
            n_expected=n_expected,
            n_done=n_done,
            n_owed=n_expected - n_done,
            n_missing=n_missing,
            elapsed_s=self._clock() - self._started,
            warnings=self._warnings,
        )


def _has_samples(folder: RunFolder, benchmark: str) -> bool:
    with contextlib.suppress(OSError):
        return folder.benchmark(benchmark).samples.stat().st_size > 0
    return False
