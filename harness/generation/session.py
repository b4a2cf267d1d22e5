"""One session of a run as its folder sees it: identity, journals, what is owed before it, what it came to after it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from tenacity import stop_after_attempt

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Transport
from harness.core.about import __version__
from harness.core.errors import ServerError, StoreError
from harness.core.wording import Sentence, option
from harness.generation.dispatch.budget import Budget
from harness.generation.context import fitted_max_tokens
from harness.generation.dispatch.canary import Answered, Canary, ModelName
from harness.generation.dispatch.causes import Cause
from harness.generation.dispatch.lanes import Lanes
from harness.generation.dispatch.retry import AsServerAsks, FullJitter, RetryPolicy, SameErrorAgain
from harness.generation.dispatch.schedule import Scheduler
from harness.generation.network.asking import Worker
from harness.generation.network.control import ControlSocket
from harness.generation.network.descriptors import affordable
from harness.generation.network.endpoints_file import EndpointsFile
from harness.generation.network.steering import Steering
from harness.generation.network.thread import Counts, Network
from harness.generation.plan import Owed, owed
from harness.generation.progress import Progress
from harness.generation.settings import RunSettings
from harness.generation.spending import Spent
from harness.runs import questions as stored_questions
from harness.runs.journal import Journal
from harness.runs.layout import RunFolder
from harness.runs.log import RunLog
from harness.runs.manifest import BenchmarkRecord, Manifest, Plan

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet

MANY_TRUNCATED = 0.01
"""A larger share of truncated samples is a warning: it is the commonest cause of a bad number."""

MANY_LOOPS = 0.01
"""A larger share of samples that end in a loop is a warning."""

MANY_DUPLICATES = 0.05
"""A larger share of replies that repeat another one under another seed is a warning."""

LONG_PROMPT_CHARS = 2000
"""From here on (some 500 tokens) an endpoint that has read a question's prompt is asked for more of its samples."""

_MISSING = "never_succeeds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a session came to. Samples: n_done of n_expected are on disk, n_owed are not.

    complete: nothing is owed, but for what `accept_missing` accepts (n_missing of the owed).
    causes: why samples are owed. n_session, n_truncated: finished in this session, and truncated among them.
    n_duplicates: replies that repeat another one word by word; n_loops: that end in a loop. spent: tokens as stated.
    stopped: why the session ended early; else empty.
    """

    complete: bool
    n_expected: int
    n_done: int
    n_owed: int
    n_missing: int
    n_session: int
    n_truncated: int
    n_duplicates: int
    n_loops: int
    tokens: int
    elapsed_s: float
    causes: list[Cause]
    warnings: list[Sentence]
    stopped: Sentence
    spent: Spent
    progress: Progress | None

    @property
    def truncated_share(self) -> float | None:
        """Of this session's samples; None if there were none."""
        return self.n_truncated / self.n_session if self.n_session else None


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
        endpoints_file: EndpointsFile | None = None,
    ) -> None:
        self._settings = settings
        self._endpoints_file = endpoints_file
        self._sets = {s.name: s for s in question_sets}
        self._folder = folder
        self._log = log
        self._clock = clock
        self._started = clock()
        self._journals: dict[str, Journal] = {}
        self._owed: list[Owed] = []
        self._done: dict[str, int] = {}
        self._total: dict[str, int] = {}
        self._missing: dict[str, dict[str, str]] = {}
        self._fitted: dict[str, int | None] = {}
        self._bound: set[str] = set()
        self._warnings: list[Sentence] = []
        self._running: Network | None = None
        self._environment = {"python": platform.python_version(), "system": platform.platform(), **environment}
        self._manifest = Manifest.start(folder, model=settings.model, harness_version=__version__)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        failures = []
        for journal in self._journals.values():
            try:
                journal.close()
            except StoreError as failure:
                failures.append(failure)
        if failures and error is None:
            raise failures[0]

    @property
    def n_owed(self) -> int:
        return sum(len(o.indices) for o in self._owed)

    def warn(self, warning: str) -> None:
        self._warnings.append(Sentence(warning))
        self._log.write("warning", message=warning)

    # ---- before the first request

    def plan(self, context_of: Callable[[Endpoint, str], int | None]) -> None:
        """Compare identities, open the journals, find what is owed, check the context, write manifest and questions."""
        self._forget_empty()
        for name, chosen in self._sets.items():
            self._fitted[name] = self._recorded_fit(name)
            self._manifest = self._manifest.extend(name, self._record(name, chosen))
        for name, chosen in self._sets.items():
            journal = Journal.open(self._folder.benchmark(name), log=self._log, on_failure=self._journal_failed)
            self._journals[name] = journal
            if name not in self._bound:
                self._folder.benchmark(name).questions.unlink(missing_ok=True)
            if journal.report.damaged:
                n_damaged = len(journal.report.damaged)
                self.warn(f"{name}: {n_damaged} damaged lines of samples.jsonl do not count (see log.jsonl).")
            samples, keys = self._settings.benchmarks[name].samples, journal.keys
            ids = [q.question_id for q in chosen.questions]
            rows = owed(name, ids, samples, keys)
            self._total[name] = len(ids) * samples
            self._done[name] = self._total[name] - sum(len(o.indices) for o in rows)
            self._missing[name] = self._accepted_missing(name)
            self._owed += [o for o in rows if o.question_id not in self._missing[name]]
        if self._owed:
            self._check_context(context_of)
        self._manifest.save(self._folder)
        for name, chosen in self._sets.items():
            stored_questions.write(self._folder.benchmark(name), chosen.questions)
        self._log.write(
            "session_started", owed=self.n_owed, done=sum(self._done.values()), version=__version__,
            **self._settings.settings_record(),
        )  # fmt: skip

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
            identity=self._settings.identity(chosen, self._fitted[name]),
            plan=Plan(
                samples=self._settings.benchmarks[name].samples,
                question_ids=None if len(ids) == chosen.n_all else ids,
            ),
            settings={
                **self._settings.settings_record(),
                _MISSING: known.settings.get(_MISSING, {}) if known is not None else {},
            },
        )

    def _recorded_fit(self, name: str) -> int | None:
        known = self._manifest.benchmarks.get(name)
        value = known.identity.get("fitted_max_tokens") if known is not None and self._settings.fit_context else None
        return value if isinstance(value, int) else None

    def _accepted_missing(self, name: str) -> dict[str, str]:
        stored = self._manifest.benchmarks[name].settings.get(_MISSING, {})
        if not self._settings.accept_missing or not isinstance(stored, dict):
            return {}
        return {q.question_id: stored[q.question_id] for q in self._sets[name].questions if q.question_id in stored}

    def _check_context(self, context_of: Callable[[Endpoint, str], int | None]) -> None:
        context = self._smallest_context(context_of)
        if context is None:
            return
        for name in dict.fromkeys(o.benchmark for o in self._owed):
            chosen = self._sets[name]
            asked = self._settings.benchmarks[name].sampling.max_tokens
            before = self._fitted[name]
            fresh = self._settings.fit_context and name not in self._bound
            fitted = fitted_max_tokens(
                name, chosen.questions, asked if fresh or before is None else before, context, fit=fresh
            )
            if fresh and fitted != asked:
                self._fitted[name] = fitted
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

    # ---- while it runs

    def network(
        self,
        transport_factory: Callable[[], Transport],
        loop_factory: Callable[[], asyncio.AbstractEventLoop],
        answered: Answered | None,
        prior: Mapping[tuple[str, str], float] | None,
        may_start_round: Callable[[int], bool] | None,
    ) -> Network:
        settings = self._settings
        concurrency = affordable(settings.concurrency)
        if concurrency < settings.concurrency:
            self.warn(f"the limit of open files (ulimit -n) lowers {option('concurrency')} to {concurrency}.")
            settings = dataclasses.replace(settings, concurrency=concurrency)
        counts = Counts(self._done, self._total)
        budget = Budget(settings, counts, self._owed)
        wanted = {(o.benchmark, o.question_id) for o in self._owed}
        asked = {
            (name, q.question_id): q for name, s in self._sets.items() for q in s.questions
            if (name, q.question_id) in wanted
        }  # fmt: skip
        scheduler = Scheduler(
            self._owed,
            self._clock,
            order="rounds" if budget.limited or may_start_round is not None else settings.order,
            n_endpoints=len(settings.endpoints),
            prior=prior,
            may_start_round=lambda number: self._may_start(number, budget, may_start_round),
            max_tokens={n: b.sampling.max_tokens for n, b in settings.benchmarks.items() if b.sampling.max_tokens},
            long_prompts={key for key, q in asked.items() if q.prompt_chars >= LONG_PROMPT_CHARS},
        )
        patience = settings.patience
        policy = RetryPolicy(
            wait=AsServerAsks(FullJitter(patience.first_wait, patience.longest_wait)),
            stop=stop_after_attempt(patience.attempts) | SameErrorAgain(),
        )
        known = self._manifest.environment.get("server_model")
        self._running = Network(
            settings,
            scheduler,
            Lanes(settings.endpoints, settings.concurrency, patience, self._clock),
            self._journals,
            counts,
            transport_factory=transport_factory,
            loop_factory=loop_factory,
            make_worker=lambda transport: Worker(settings, asked, transport, self._fitted, self._clock),
            policy=policy,
            canary=Canary(answered, on=settings.canary),
            model_name=ModelName(known if isinstance(known, str) else None),
            on_event=self._log.write,
            endpoints_file=self._endpoints_file,
            control=lambda network: ControlSocket(self._folder, Steering(network).obey, self._log.write),
            clock=self._clock,
        )
        return self._running

    def _may_start(self, number: int, budget: Budget, wanted: Callable[[int], bool] | None) -> bool:
        assert self._running is not None
        if wanted is not None and not wanted(number):
            self._running.stopped = f"no round after {number} samples a question was wanted"
            return False
        if why := budget.exceeded_by(number):
            self._running.end_by_rule(why)
            return False
        return True

    def remember_models(self, model: ModelName) -> None:
        """Keep the name that the model answers under with the run, for the next session to compare."""
        if model.name is not None and self._manifest.environment.get("server_model") != model.name:
            environment = {**self._manifest.environment, "server_model": model.name}
            self._manifest = msgspec.structs.replace(self._manifest, environment=environment)
            self._manifest.save(self._folder)

    def _journal_failed(self, failure: StoreError) -> None:
        """On a journal's thread: samples that cannot be stored need not be asked."""
        if self._running is not None:
            self._running.fail(failure)

    # ---- afterwards

    def finish(self, network: Network) -> None:
        """Keep what the session found out, and log its end."""
        self.remember_models(network.model_name)
        too_long = network.causes.too_long()
        for name, found in too_long.items():
            record = self._manifest.benchmarks[name]
            missing = {**record.settings.get(_MISSING, {}), **found}
            record = msgspec.structs.replace(record, settings={**record.settings, _MISSING: missing})
            self._manifest = self._manifest.extend(name, record)
            if self._settings.accept_missing:
                self._missing[name] |= found
        if too_long:
            self._manifest.save(self._folder)
        counts = network.counts
        self._log.write(
            "session_ended", done=sum(counts.done.values()), finished=counts.finished, tokens=counts.tokens,
            failures=counts.failures, retries=counts.retries, notes=counts.notes, stopped=network.stopped,
            lag_s=network.lag._asdict() if network.lag else None,
        )  # fmt: skip

    def outcome(self, network: Network | None) -> Outcome:
        """The account of the session; `network`: None if no request was owed."""
        done = sum((network.counts.done if network else self._done).values())
        expected = sum(self._total.values())
        missing = sum(
            1
            for name, journal in self._journals.items()
            for row in owed(name, self._missing[name], self._settings.benchmarks[name].samples, journal.keys)
            for _ in row.indices
        )
        if network is not None:
            self._judge(network)
        n_owed = expected - done
        return Outcome(
            complete=n_owed == missing,
            n_expected=expected,
            n_done=done,
            n_owed=n_owed,
            n_missing=missing,
            n_session=network.counts.finished if network else 0,
            n_truncated=network.counts.truncated if network else 0,
            n_duplicates=network.duplicates.n if network else 0,
            n_loops=network.counts.loops if network else 0,
            tokens=network.counts.tokens if network else 0,
            elapsed_s=self._clock() - self._started,
            causes=network.causes.listed(n_owed, Sentence(network.stopped)) if network else [],
            warnings=self._warnings,
            stopped=Sentence(network.stopped if network else ""),
            spent=network.counts.spent if network else Spent(),
            progress=network.progress if network else None,
        )

    def _judge(self, network: Network) -> None:
        """Warnings that stand beside the score."""
        for warning in network.warnings:
            self.warn(warning)
        counts = network.counts
        if not counts.finished:
            return
        truncated = counts.truncated / counts.finished
        if truncated > MANY_TRUNCATED:
            self.warn(
                f"{counts.truncated} of {counts.finished} samples ({truncated:.0%}) are truncated: "
                f"raise {option('max_tokens')}."
            )
        loops = counts.loops / counts.finished
        if loops > MANY_LOOPS:
            self.warn(f"{counts.loops} of {counts.finished} samples ({loops:.0%}) end in a loop of the same words.")
        if self._settings.seed is not None and network.duplicates.n / counts.finished > MANY_DUPLICATES:
            self.warn(
                f"{network.duplicates.n} of {counts.finished} replies repeat another one to the same question word by "
                "word, under different seeds: the server ignores seeds, or a cache answers."
            )


def _has_samples(folder: RunFolder, benchmark: str) -> bool:
    with contextlib.suppress(OSError):
        return folder.benchmark(benchmark).samples.stat().st_size > 0
    return False
