"""Carries out a gate: samples in rounds until it is decided, or decides on runs that exist; says what it will cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from harness.asking.options.probing import DROPPABLE, ProbeOptions
from harness.asking.prepare import Prepared, prepare, questions_of
from harness.asking.session import sample_to
from harness.asking.watching import Watcher
from harness.benchmarks.questions import QuestionSet
from harness.core.errors import StoppedByRule, UsageError
from harness.core.inert import visible
from harness.core.nouns import count_noun, in_percent
from harness.core.options import options_of
from harness.core.packed import Packed
from harness.core.records import Question
from harness.generation.forecast import Forecast
from harness.reports.scored import ScoredRun, read_runs
from harness.runs.layout import GATE_PLAN, RunFolder
from harness.scoring import gate
from harness.scoring.tally import QuestionTally
from harness.verbs import look_plan
from harness.verbs.compare import counted_questions
from harness.verbs.gate.decide import Gated, Halt, decide, deviation_of, in_order, reference_of, rules_of
from harness.verbs.gate.policy import Policy
from harness.verbs.gate.written import read_history
from harness.verbs.graded import grade_new
from harness.verbs.outputs import open_scored
from harness.verbs.plan import run_forecast
from harness.verbs.probe.probe import probe

OnLook = Callable[[Gated], None]
"""Receives the state of the gate after each look."""


def read_baselines(policy: Policy) -> dict[str, ScoredRun]:
    """The baseline of each benchmark that has one.

    Raises `UsageError` if it lacks the benchmark, and `StoreError` if its score is missing or older than its samples.
    """
    baselines = {}
    for name, watched in policy.benchmarks.items():
        if watched.baseline is not None:
            (run,) = read_runs([open_scored(watched.baseline)])
            _refuse_ungraded([run], [name])
            compared = _compared_questions(run, name)
            if not compared:
                held = ", ".join(visible(each, 40) for each in run.benchmarks)
                raise UsageError(f"the baseline {watched.baseline} holds no scored samples of {name}: it holds {held}")
            accuracy = reference_of(watched, n_questions=0, baseline=compared).value  # 0: only a floor needs it
            if 100 * accuracy < watched.loss:
                raise UsageError(
                    f"a loss of {watched.loss:g} points is more than {name} has in {watched.baseline}: "
                    f"{in_percent(accuracy)}"
                )
            baselines[name] = run
    return baselines


def _compared_questions(baseline: ScoredRun | None, benchmark: str) -> list[QuestionTally]:
    """The questions with samples of a benchmark in its baseline; none without a baseline."""
    scored = None if baseline is None else baseline.benchmarks.get(benchmark)
    return [] if scored is None else [item for item in scored.questions if item.n]


def gate_runs(policy: Policy, sources: Sequence[Path]) -> Gated:
    """Decide on scored runs that exist.

    Raises `StoreError` if one is damaged, not scored, or scored before its latest samples.
    """
    if len({source.resolve() for source in sources}) < len(sources):
        raise UsageError("a run is named twice, and would count as two")
    folders = [open_scored(source) for source in sources]
    based = {open_scored(each.baseline).path.resolve() for each in policy.benchmarks.values() if each.baseline}
    if own := [folder for folder in folders if folder.path.resolve() in based]:
        raise UsageError(f"{own[0].path} is a baseline of this gate, and says nothing of itself: name another run")
    runs = read_runs(folders)
    _refuse_ungraded(runs, policy.benchmarks)
    # A single folder may be a gate's own, which so far asked a part of its questions: its plan has the number of all.
    plan = look_plan.read(folders[0].path / GATE_PLAN, "gate") if len(folders) == 1 else None
    label = " ".join(sorted(map(_named, sources, runs)))
    return decide(
        policy, label, runs, read_baselines(policy), read_history(policy), datetime.now(UTC).date(),
        n_questions={} if plan is None else plan["questions"],
    )  # fmt: skip


def _refuse_ungraded(runs: Sequence[ScoredRun], benchmarks: Iterable[str]) -> None:
    """Raise `StoreError` if a score of these benchmarks is missing, or leaves out samples that are stored, here or
    in a shard: also while the run goes on, since the decision is of the whole run.
    """
    for run in runs:
        for name in run.benchmarks.keys() & {*benchmarks}:
            counted_questions(replace(run, is_sampling=False), run.benchmarks[name])


def run_gate(policy: Policy, out: Path, watcher: Watcher | None, on_look: OnLook = lambda _gated: None) -> Gated:
    """Sample the gate's benchmarks look by look into one run folder until each is decided or has used its samples.

    The same call continues. Raises what `prepare` and `generate` raise; a rule that stops the sampling, such as a
    budget, makes the gate's state "stopped".
    """
    baselines, today = read_baselines(policy), datetime.now(UTC).date()
    with prepare(policy.options(out), watcher) as prepared:
        ids = _ids_to_sample(policy, prepared.sets, baselines, prepared.settings.seed)
        n_questions = {name: len(each) for name, each in ids.items()}
        halt = None if prepared.folder.manifest.exists() else _accusation(policy, prepared, watcher)
        before: dict[str, float] | None = None
        while True:
            runs, label = [], f"{out.resolve()} -"
            if prepared.folder.manifest.exists():
                plan = _plan_of(policy, n_questions)
                look_plan.settle(prepared.folder.path / GATE_PLAN, plan, "gate", begun=False)
                for name in policy.benchmarks:
                    grade_new(prepared.folder, name)
                runs = read_runs([prepared.folder])
                label = _named(out, runs[0])
            gated = decide(policy, label, runs, baselines, read_history(policy), today, n_questions, halt)
            on_look(gated)
            looks = _next_looks(gated, n_questions)
            # Samples that make no look more, such as of questions that are now others, never will.
            if halt is not None or not looks or looks == before:
                return gated
            first, before = before is None, looks
            try:
                rounds = {name: math.ceil(look) for name, look in looks.items()}
                outcome = sample_to(_stage(prepared, ids, looks), rounds, watcher, first=first)
                if n := outcome.n_owed or outcome.n_missing:
                    words = f"{count_noun(n, 'sample')} could not be had: see the warnings, and repeat the command"
                    halt = "missing", words
            except StoppedByRule as stop:
                halt = "stopped", str(stop)


def _accusation(policy: Policy, prepared: Prepared, watcher: Watcher | None) -> Halt | None:
    """The first fault by which a quick probe says that a score of this server would be wrong; None without one."""
    if not policy.probe:
        return None
    given = {name: value for name, value in policy.run.items() if name in options_of(ProbeOptions)}
    dropped, server = policy.options(None).drop, prepared.settings.endpoints[0].base_url
    given |= {"base_url": server, "quick": True, "drop": [name for name in dropped if name in DROPPABLE]}
    spoilt = [finding for finding in probe(ProbeOptions.of(**given), watcher).findings if finding.outcome == "spoils"]
    if "stream" in dropped:
        spoilt = [finding for finding in spoilt if finding.check != "streaming"]
    return ("probe", f"{spoilt[0].check}: {spoilt[0].came}. {spoilt[0].mend}") if spoilt else None


def _ids_to_sample(
    policy: Policy, sets: Sequence[QuestionSet], baselines: Mapping[str, ScoredRun], seed: int | None
) -> dict[str, list[str]]:
    """The ids of each benchmark's questions, in the order in which looks at parts take them: all, or the baseline's.

    Raises `UsageError` if a benchmark has another name, or lacks questions of its baseline.
    """
    ids = {}
    for each, written in zip(sets, policy.benchmarks, strict=True):
        if each.name not in policy.benchmarks:
            raise UsageError(
                f"the benchmark {visible(written, 200)} is called {each.name}: write that name in the policy"
            )
        question_ids = set(each.ids)
        if each.name in baselines:
            compared = {item.question.question_id for item in _compared_questions(baselines[each.name], each.name)}
            if absent := len(compared - question_ids):
                raise UsageError(
                    f"{visible(each.name, 200)} lacks {absent} of {count_noun(len(compared), 'question')} of its "
                    f"baseline: ask the same ones, or make the baseline anew"
                )
            question_ids = compared
        ids[each.name] = in_order(question_ids, seed)
    return ids


def _stage(prepared: Prepared, ids: Mapping[str, Sequence[str]], looks: Mapping[str, float]) -> Prepared:
    """The prepared run with the questions of these looks alone."""
    parts = {name: set(each[: math.ceil(min(looks[name], 1) * len(each))]) for name, each in ids.items()}
    sets = [
        replace(each, questions=Packed(Question, (q for q in each.questions if q.question_id in parts[each.name])))
        for each in prepared.sets
    ]
    return replace(prepared, sets=sets)


def _named(place: Path, run: ScoredRun) -> str:
    """The name of a run in the history: a folder that is made anew is another run."""
    return f"{place.resolve()} {run.manifest.created}"


def _plan_of(policy: Policy, n_questions: Mapping[str, int]) -> dict[str, Any]:
    """What the looks are planned by."""
    planned = policy.model_dump(mode="json", include={"benchmarks", "false_alarm", "power", "run_deviation"})
    return planned | {"questions": dict(n_questions)}


def _next_looks(gated: Gated, n_questions: Mapping[str, int]) -> dict[str, float]:
    """The rounds of each benchmark at the next look; empty if none is open."""
    looks = {}
    for check in gated.checks:
        looks[check.benchmark] = check.rounds
        if check.state in ("undecided", "missing") and check.rounds < check.max_rounds:
            planned = gate.planned(n_questions[check.benchmark], check.max_rounds)
            looks[check.benchmark] = next(look for look in planned if look > check.rounds)
    return looks if any(looks[check.benchmark] > check.rounds for check in gated.checks) else {}


# ---- before it starts


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What to expect of one benchmark. ahead: what the samples take if all is well, and at most, with the requests in
    flight; by a run that exists: the baseline, or the gate's last one; empty without.
    """

    benchmark: str
    n_questions: int
    max_rounds: int
    deviation: gate.Deviations
    forecast: gate.Forecast
    ahead: tuple[tuple[Forecast | None, int], ...]


def expected(policy: Policy) -> list[Expected]:
    """Simulate this very policy for each of its benchmarks; no request is sent. Raises `UsageError`."""
    baselines, history = read_baselines(policy), read_history(policy)
    sets = questions_of(policy.options(None)).sets
    return [
        _expected_of(policy, name, len(ids), _compared_questions(baselines.get(name), name), history)
        for name, ids in _ids_to_sample(policy, sets, baselines, 0).items()
    ]


USUAL_SHARE = 0.8
"""Largest share of a coin's variance that is left when the question is given, which a forecast assumes."""


def _expected_of(
    policy: Policy, name: str, n_questions: int, compared: Sequence[QuestionTally], history: Sequence[Gated]
) -> Expected:
    """What to expect of one benchmark. compared: the questions of its baseline; empty with a floor."""
    watched, deviations, share = policy.benchmarks[name], deviation_of(policy, name, history), USUAL_SHARE
    if compared:
        correct, counts = np.array([(item.correct, item.n) for item in compared], dtype=float).T
        share = min(share, float(gate.share_left(correct, counts)))
    forecast = gate.forecast(
        n_questions, rules_of(policy, watched, gate.planned(n_questions, watched.max_samples)),
        reference_of(watched, n_questions, compared), watched.loss / 100, policy.power / 100, deviations, share,
        repeats=1000,
    )  # fmt: skip
    ahead: tuple[tuple[Forecast | None, int], ...] = ()
    if source := watched.baseline or _latest_run(name, history):
        (run,) = read_runs([open_scored(source)])
        samples = (round(forecast.rounds * n_questions), watched.max_samples * n_questions)
        ahead = tuple(run_forecast(run, name, (n, 1)) for n in samples)
    return Expected(
        benchmark=name, n_questions=n_questions, max_rounds=watched.max_samples, deviation=deviations,
        forecast=forecast, ahead=ahead,
    )  # fmt: skip


def _latest_run(benchmark: str, history: Sequence[Gated]) -> Path | None:
    """The folder of the latest run of the gate that has this benchmark and is still there; None without one."""
    for entry in reversed(history):
        folder = Path(entry.run.rpartition(" ")[0])  # a label is the folder and the time of its first sample
        if any(check.benchmark == benchmark for check in entry.checks) and RunFolder(folder).manifest.is_file():
            return folder
    return None
