"""What `run` does: prepare, sample in one or more sessions, and report the outcome.

A run with a target error samples in stages, one session each, and grades after each (`rounds`); so does a gate. The
grader is imported with the first reply, and modules that only some runs need are imported when needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from queue import Queue
from signal import Signals
from threading import Thread
from typing import Self

from harness.benchmarks.questions import QuestionSet
from harness.client.address.endpoint import Endpoint
from harness.client.facts.discovery import NotServed, find_model
from harness.client.protocol.failures import reports_dead_engine
from harness.client.protocol.reply import Reply
from harness.core.errors import Interrupted, ServerError
from harness.core.number_text import count_noun, is_are
from harness.core.records import Sample
from harness.core.sanitize import visible
from harness.generation import runner
from harness.generation.dispatch.canary import Answered
from harness.generation.outcome import Outcome
from harness.generation.run_progress import Tally
from harness.generation.settings import RunSettings
from harness.options.judge import JudgeOptions
from harness.options.run import RunOptions
from harness.preparing import launched_servers
from harness.preparing.prepare import Prepared, prepare
from harness.preparing.question_warnings import question_warnings
from harness.progress.events import Watcher
from harness.runs import RunFolder
from harness.runs.manifest import Manifest
from harness.runs.merging import join_shards
from harness.runs.missing import Task

EXIT_S = 10.0
"""Seconds within which a server whose engine has died may exit and be restarted by itself."""


def run_at(on: str | None, options: RunOptions, watcher: Watcher, judge: JudgeOptions | None = None) -> Outcome:
    """Run the benchmarks on this machine, or on the nodes of the cluster that `on` names.

    judge: the judge that will score the run; it is tested before the first request. Raises what `run` raises.
    """
    if on is None:
        return run(options, watcher, judge)
    from harness.commands.cluster_interface import cluster  # imported late: a run from this machine needs no cluster

    _try(judge, watcher)
    return cluster(on).run_on(on, options, watcher)


def run(options: RunOptions, watcher: Watcher, judge: JudgeOptions | None = None) -> Outcome:
    """Request every missing sample of the run; repeating the call continues the run.

    judge: as for `run_at`. Raises what `sample`, `prepare` and `try_judge` raise.
    """
    with prepare(options, watcher) as prepared:
        for warning in question_warnings(prepared.sets, prepared.folder, judged=judge is not None):
            watcher.warn(warning)
        _try(judge, watcher, [each.questions[0].rules.judge for each in prepared.sets])
        return sample(prepared, watcher)


def _try(judge: JudgeOptions | None, watcher: Watcher, forms: Sequence[str] = ()) -> None:
    """Test the judge, if there is one. forms, and what is raised: as for `try_judge`."""
    if judge is not None:
        from harness.judges.judge import try_judge  # imported late: most runs have no judge

        try_judge(judge, watcher, forms)


def sample(prepared: Prepared, watcher: Watcher | None = None) -> Outcome:
    """Request every missing sample of a prepared run; if the options specify a target error, in stages, until the
    sampling error of every benchmark is at most the target.

    Everything is graded after each stage, and a benchmark that reaches the target is not sampled further. If a session
    ends with samples missing, this function also ends. Raises what `run_session` raises.
    """
    if prepared.options.target_error is None:
        return run_session(prepared, prepared.settings, watcher)
    from harness.commands.rounds import Target  # imported late: only a run with a target grades

    planned = {name: benchmark.samples for name, benchmark in prepared.settings.benchmarks.items()}
    target = Target(prepared.folder, prepared.sets, planned, prepared.options.target_error / 100)
    sessions: list[Outcome] = []
    while True:
        stage = target.stage()
        sessions.append(run_session(prepared, stage_of(prepared, stage), watcher))
        outcome = _total_outcome(sessions)
        if not outcome.complete:
            return outcome
        if target.ends_with(stage):
            return target.final_outcome(outcome)
        end_if_signalled(sessions[-1], prepared)


def _total_outcome(sessions: Sequence[Outcome]) -> Outcome:
    """The outcome of the last session, with the counts and warnings of all sessions."""
    return replace(
        sessions[-1],
        elapsed_s=sum(session.elapsed_s for session in sessions),
        tally=reduce(Tally.add, (session.tally for session in sessions)),
        spent_before=sessions[0].spent_before,
        warnings=list(dict.fromkeys(warning for session in sessions for warning in session.warnings)),
    )


def run_session(prepared: Prepared, settings: RunSettings, watcher: Watcher | None) -> Outcome:
    """Prepare the run folder, announce a session of the prepared run with `settings`, and carry it out.

    Raises what `runner.generate` raises, and `StoreError` for a folder that cannot be used for the run.
    """
    watcher = watcher or Watcher()
    # Before the run is announced: a folder that is not writable or not a run's must be rejected first.
    prepared.folder.refuse_foreign()
    join_shards(prepared.folder, ended=True)
    taken_over = _taken_over(prepared, settings, watcher)
    prepared.folder.create()
    watcher.sampling(_summary_line(settings, prepared.sets), prepared.folder)
    hosted = prepared.reached.provider.hosted
    listing = [one.endpoint for one in prepared.server_info.each if one.entry is not None and not hosted]
    return runner.generate(
        settings,
        prepared.sets,
        servers=runner.ServerSide(
            facts=prepared.server_info.facts,
            environment=prepared.reached.about,
            contexts=prepared.server_info.contexts,
            down=prepared.server_info.failures,
            describe=prepared.describe,
            endpoints_file=prepared.reached.file,
            lost=ServedHere.of(prepared).end_reason,
            listing=WaitedFor(listing, prepared.settings.model, watcher.warn).new_servers,
            watched=() if hosted or settings.batching else settings.endpoints,
        ),
        listener=runner.Listener(
            on_progress=watcher.progressed,
            # A stage deliberately plans fewer samples than the run, so stored samples beyond them are not surplus.
            on_surplus=watcher.warn if settings.benchmarks == prepared.settings.benchmarks else None,
            on_status=watcher.standing,
            on_warning=watcher.warn,
        ),
        answered=answer_finder(prepared.sets),
        taken_over=taken_over,
    )


def _summary_line(settings: RunSettings, sets: Sequence[QuestionSet]) -> str:
    """One line with the model, benchmarks with questions and samples, shard and run folder; safe to print."""
    benchmarks = ", ".join(f"{s.name} {len(s.questions)} × {settings.benchmarks[s.name].samples}" for s in sets)
    folder = RunFolder(settings.out)
    shard = f" · shard {folder.part}" if folder.part else ""
    line = f"{visible(settings.model)} · {benchmarks}{shard} · run folder {settings.out}"
    manifest = Manifest.find(folder)
    if manifest is not None and (others := manifest.benchmarks.keys() - {s.name for s in sets}):
        line += f", which holds {', '.join(map(visible, sorted(others)))} too"
    return line


def _taken_over(prepared: Prepared, settings: RunSettings, watcher: Watcher) -> Iterable[Sample]:
    """The samples of the unfinished file that `out` names; none if it names a folder. Raises `UsageError`."""
    if prepared.options.unfinished_outputs is None:
        return ()
    from harness.foreign.question_matching import Beginning  # imported late: few runs start from a file

    planned = {name: benchmark.samples for name, benchmark in settings.benchmarks.items()}
    beginning = Beginning(prepared.options.unfinished_outputs, prepared.sets, planned)
    if not prepared.folder.has_samples():
        watcher.warn(beginning.sentence)
    return beginning


def stage_of(prepared: Prepared, rounds: Mapping[str, float]) -> RunSettings:
    """The settings of a session that samples each benchmark in `rounds` up to so many samples per question."""
    benchmarks = {name: replace(prepared.settings.benchmarks[name], samples=n) for name, n in rounds.items()}
    return replace(prepared.settings, benchmarks=benchmarks)


def end_if_signalled(outcome: Outcome, prepared: Prepared) -> None:
    """Raise `Interrupted` if a signal arrived while the session was waiting for its last samples.

    Such a session has all its samples and therefore ends as though nothing had happened; a command that has more to do
    after this session must end here.
    """
    if outcome.caught is None:
        return
    samples, prices = count_noun(outcome.n_done, "sample"), prepared.settings.prices
    cost = f" This session: {outcome.spent.sentence(prices)}." if prices else ""
    raise Interrupted(
        f"stopped by {Signals(outcome.caught).name}: {samples} {is_are(outcome.n_done)} stored in "
        f"{prepared.folder.path}.{cost}{runner.RESUME}",
        outcome.caught,
    )


class ServedHere:
    """Detects that all servers of a run have ended, if all of them were started on this machine.

    guards: name → id of the process that ends the server's engine when the harness is gone. Servers that are not
    running before the run's first request do not count: an old state file may name a port that another server now uses.
    """

    def __init__(self, guards: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._guards = guards
        self._clock = clock
        self._dead_since: float | None = None

    @classmethod
    def of(cls, prepared: Prepared) -> Self:
        """The server that was started for the run, or the servers of `harness serve` with the run's addresses."""
        if prepared.server is not None:
            return cls({prepared.server.name: prepared.server.pid})
        # A file of endpoints may name other servers at any time, so its servers never count as lost.
        endpoints = () if prepared.reached.file is not None else prepared.settings.endpoints
        return cls({server.name: server.guard_pid for server in launched_servers.servers_at(endpoints)})

    def end_reason(self, failures: Sequence[str]) -> str | None:
        """A sentence on why the last server has ended if all have ended; None while any server may answer.

        failures: the failure for which each endpoint is set aside; empty for an endpoint that is not.
        """
        reasons = [launched_servers.exit_reason(name, guard) for name, guard in self._guards.items()]
        if not reasons or all(reasons):
            return reasons[-1] if reasons else None
        if not (failures and all(map(reports_dead_engine, failures))):
            self._dead_since = None
        elif self._dead_since is None:
            self._dead_since = self._clock()
        elif self._clock() > self._dead_since + EXIT_S:
            return launched_servers.exit_reason(*list(self._guards.items())[-1], lives=True)
        return None


class WaitedFor:
    """Checks the list of models of each endpoint whose requests begin to fail, or to fail in another way, and reports a
    list without the model.

    endpoints: those that listed `model` before the first request. Requests continue, because a router may list the
    model again. The list of a hosted provider may be incomplete.
    """

    def __init__(self, endpoints: Sequence[Endpoint], model: str, warn: Callable[[str], None]) -> None:
        self._endpoints = {endpoint.base_url: endpoint for endpoint in endpoints}
        self._model, self._warn = model, warn
        self._failing, self._named = dict[str, str](), set[str]()
        self._looks: Queue[tuple[str, str]] = Queue()  # (base URL, what is missing there)

    def new_servers(self, failures: Mapping[str, str]) -> list[str]:
        """Start the checks that are due, and return the base URLs that have listed the model since the last call.

        failures: by base URL, as in `ServerSide.listing`.
        """
        failing = {url: why for url in self._endpoints if (why := failures.get(url))}
        for url, _ in failing.items() - self._failing.items():
            Thread(target=self._ask, args=(url,), daemon=True, name="look").start()
        self._failing = failing
        self._named &= failing.keys()
        ended = [self._looks.get() for _ in range(self._looks.qsize())]
        for url, lack in ended:
            if lack and url in failing.keys() - self._named:
                self._named.add(url)
                self._warn(lack)
        return [url for url, lack in ended if not lack]

    def _ask(self, url: str) -> None:
        try:
            if find_model(self._endpoints[url], self._model) is not None:
                self._looks.put((url, ""))
        except NotServed as error:
            self._looks.put((url, f"{error.sentence} Until then, it is sent only one request at a time."))
        except ServerError:
            pass


def answer_finder(sets: Sequence[QuestionSet]) -> Answered:
    """A function that returns whether the grader finds an answer in a reply, for the canary: a session whose first
    replies have no answers is stopped.

    For benchmarks with their own verifier, the function returns True.
    """
    set_of = {each.name: each for each in sets}

    def answered(task: Task, reply: Reply) -> bool:
        """Whether the grader finds an answer in this reply; True for benchmarks with their own verifier."""
        # Imported with the first reply, so that the first request does not wait for the import.
        from harness.grading.grades import sample_of
        from reasoning_answers.host import search

        question = set_of[task.benchmark].question(task.question_id)
        if question.kind == "calls":
            return bool(reply.calls) or question.references == ('"none"',)
        if not question.rules.is_built_in:
            return True
        return search(question, sample_of(reply.text or "")).method != "none"

    return answered
