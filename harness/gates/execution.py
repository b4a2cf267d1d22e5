"""Runs a gate: samples in rounds until it is decided, or decides on existing runs. Also forecasts what a gate will
cost.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET

from harness.benchmarks.questions import QuestionSet
from harness.commands.imported_runs import open_scored
from harness.commands.plan import run_forecast
from harness.commands.rounds import grade_new
from harness.commands.run import end_if_signalled, run_session, stage_of
from harness.core import codec
from harness.core.errors import StoppedByRule, UsageError
from harness.core.files import real
from harness.core.number_text import count_noun, in_percent
from harness.core.sanitize import visible
from harness.deciding import gate, simulation
from harness.deciding.nightly_history import Learned
from harness.gates.decision import Gated, Halt, past_metrics, past_nights
from harness.gates.evaluation import decide, learn_from, reference_key
from harness.gates.metrics import check_lines
from harness.gates.output import read_decision, read_history, read_plan, settle_plan
from harness.gates.policy import Policy, SampleLine, Watched, seed_of
from harness.gates.samples import Errors, counted, in_order, reference_of, rules_of
from harness.generation.forecast import Forecast
from harness.preparing.prepare import Prepared, prepare
from harness.preparing.run_questions import questions_of
from harness.probes.probe import probe_of_run
from harness.progress.events import Watcher
from harness.reports.inputs import ScoredRun, counted_questions, read_runs
from harness.runs.layout import RESULTS, RunFolder
from harness.scoring.tally import QuestionTally

OnLook = Callable[[Gated], None]
"""A callback that receives the state of the gate after each look."""


def read_baselines(policy: Policy) -> dict[str, ScoredRun]:
    """The baseline of each accuracy and share that has one, by label.

    Raises `UsageError` if a baseline does not have the benchmark, and `StoreError` if its score is missing or outdated.
    """
    baselines = {}
    check_lines(policy, (), ())  # raises its errors before hours of sampling
    for line in policy.lines:
        name, _, watched = line
        if watched.baseline is not None:
            (run,) = read_runs([open_scored(watched.baseline)])
            _refuse_ungraded([run], [name])
            compared = _compared_questions(run, name)
            if not compared:
                held = ", ".join(visible(each, 40) for each in run.benchmarks)
                raise UsageError(f"the baseline {watched.baseline} has no scored samples of {name}, only of {held}")
            if line.share and not counted(compared, line.share)[-1].any():
                raise UsageError(f"no reply in the baseline {watched.baseline} counts toward {line.label}")
            reference = reference_of(line, n_questions=0, baseline=compared)  # 0: only a floor needs it
            loss = watched.loss_of(reference.value)
            if reference.value < loss:
                has = f"the {line.share or 'accuracy'} of {name} in {watched.baseline}: {in_percent(reference.value)}"
                raise UsageError(f"a loss of {in_percent(loss)} points exceeds {has}")
            if not line.share and reference.samples < 1.5 * len(compared):  # most questions have one sample
                raise UsageError(
                    f"{name} in the baseline {watched.baseline} has {reference.samples / len(compared):.3g} samples "
                    f"per question (counting duplicates as one), which is too few to estimate its error: use at least 2"
                )
            baselines[line.label] = run
    return baselines


def _compared_questions(baseline: ScoredRun | None, benchmark: str) -> list[QuestionTally]:
    """The questions of a benchmark that have samples in its baseline; empty without a baseline."""
    scored = None if baseline is None else baseline.benchmarks.get(benchmark)
    return [] if scored is None else [item for item in scored.questions if item.n]


def gate_runs(policy: Policy, sources: Sequence[Path]) -> Gated:
    """Decide on existing scored runs.

    Raises `StoreError` if a run is damaged, not scored, or was scored before its latest samples.
    """
    if len({real(source) for source in sources}) < len(sources):
        raise UsageError("a run is listed twice")
    folders = [open_scored(source) for source in sources]
    based = {real(open_scored(each.baseline).path) for _, _, each in policy.lines if each.baseline}
    if own := [folder for folder in folders if real(folder.path) in based]:
        raise UsageError(
            f"{own[0].path} is a baseline of this gate and cannot be compared with itself: use another run"
        )
    runs = read_runs(folders)
    _refuse_ungraded(runs, policy.benchmarks)
    # A single folder may be a gate's own, which may have asked only some questions so far: its plan has the total.
    plan = read_plan(folders[0].path) if len(folders) == 1 else None
    label = " ".join(sorted(map(_named, sources, runs)))
    return decide(
        policy,
        label,
        runs,
        read_baselines(policy),
        read_history(policy),
        datetime.now(UTC).date(),
        n_questions={} if plan is None else plan["questions"],
    )


def _refuse_ungraded(runs: Sequence[ScoredRun], benchmarks: Iterable[str]) -> None:
    """Raise `StoreError` if a score of these benchmarks is missing, or leaves out samples stored here or in a shard.
    This also applies while the run is in progress, because the decision is about the whole run.
    """
    for run in runs:
        for name in run.benchmarks.keys() & {*benchmarks}:
            counted_questions(replace(run, is_sampling=False), run.benchmarks[name])


class Session:
    """Samples the benchmarks of a gate into its run folder. ids: question ids of each benchmark, in the order in which
    they are sampled. halt: why sampling is not allowed; None if it is.
    """

    ids: Mapping[str, Sequence[str]]
    halt: Halt | None

    def __init__(self, policy: Policy, prepared: Prepared, baselines: Mapping[str, ScoredRun], watcher: Watcher | None):
        self._prepared, self._policy, self._watcher = prepared, policy, watcher
        self.ids = _ids_to_sample(policy, prepared.sets, baselines, prepared.settings.seed)
        self.halt = None
        if not prepared.folder.manifest.exists():
            self.halt = _accusation(policy, prepared, watcher) or _likelihood_halt(policy, prepared, watcher)
        prepared.folder.create()

    def runs(self) -> list[ScoredRun]:
        """The scored run, with its latest samples graded; empty before the first sample."""
        folder = self._prepared.folder
        if not folder.manifest.exists():
            return []
        for name, watched in self._policy.benchmarks.items():
            grade_new(folder, name, watched.limits)
        return read_runs([folder])

    def sample(self, looks: Mapping[str, float]) -> Halt | None:
        """Sample each benchmark up to a look. Returns why sampling ended early, if it did."""
        prepared = _stage(self._prepared, self.ids, looks)
        rounds = {name: math.ceil(look) for name, look in looks.items()}
        try:
            outcome = run_session(prepared, stage_of(prepared, rounds), self._watcher)
            end_if_signalled(outcome, prepared)
        except StoppedByRule as stop:
            return "stopped", str(stop)
        if n := outcome.n_missing or outcome.n_impossible:
            lost = f"{count_noun(n, 'sample')} could not be sampled"
            return "missing", f"{lost}: see the warnings, then run the command again"
        return None


Opener = Callable[[Policy, Path, Mapping[str, ScoredRun]], AbstractContextManager[Session]]
"""Opens a session for a policy, a run folder and baselines."""


def with_watcher(watcher: Watcher | None) -> Opener:
    """Return an opener of sessions that use the policy's server."""

    @contextmanager
    def opened(policy: Policy, out: Path, baselines: Mapping[str, ScoredRun]) -> Iterator[Session]:
        with prepare(policy.options(out), watcher, must_answer=True) as prepared:
            if prepared.settings.seed is not None and "seed" not in policy.run:
                prepared = replace(prepared, settings=replace(prepared.settings, seed=seed_of(out)))
            yield Session(policy, prepared, baselines, watcher)

    return opened


def run_gate(
    policy: Policy, out: Path, opener: Opener, on_look: OnLook = lambda _gated: None, today: date | None = None
) -> Gated:
    """Sample the gate's benchmarks look by look into one run folder until each is decided or has used its samples.

    Repeating the call continues the gate; of a decided gate, it returns the decision. Raises `UsageError` for a folder
    whose gate was started with another policy or baseline, and whatever `prepare` and `generate` raise. If a rule stops
    the sampling, such as a budget, the gate's state is "stopped".
    """
    decided = read_decision(out)
    baselines, history = read_baselines(policy), read_history(policy)
    day = today or datetime.now(UTC).date()
    with opener(policy, out, baselines) as session:
        n_questions = {name: len(each) for name, each in session.ids.items()}
        halt, before, runs = session.halt, None, session.runs()
        if halt is None:
            plan = _plan_of(policy, n_questions, baselines)
            settle_plan(out, plan, begun=any(run.benchmarks for run in runs))
        if decided is not None and not decided.is_open:
            session.sample(_past_looks(decided))
            return decided
        while True:
            label = _named(out, runs[0]) if runs else f"{real(out)} -"
            gated = decide(policy, label, runs, baselines, history, day, n_questions, halt)
            on_look(gated)
            looks = _next_looks(gated, n_questions)
            if not looks and runs and before is None:
                looks = _past_looks(gated)
            # If samples led to no new look, for example because questions have changed, they never will.
            if halt is not None or not looks or looks == before:
                return gated
            before = looks
            halt, runs = session.sample(looks), session.runs()


MAX_PAUSE = timedelta(hours=12)
"""An unnamed gate without a decision is continued if it started at most this long ago; otherwise a new one starts."""


def new_folder(policy: Policy, now: datetime, commit: str = "") -> Path:
    """The folder of an unnamed gate: `results/gate-NAME/` and the time, or the commit in CI.

    The latest folder without a decision is continued.
    """
    parent, time = Path(RESULTS, f"gate-{policy.name}"), "%Y-%m-%dT%H%M%S"
    if commit:
        numbered = (parent / (commit if number == 1 else f"{commit}.{number}") for number in count(1))
        return next(path for path in numbered if (gated := read_decision(path)) is None or gated.is_open)
    for path in sorted(parent.glob("????-??-??T*"), reverse=True):
        with contextlib.suppress(ValueError):
            age = now - datetime.strptime(path.name, time).replace(tzinfo=UTC)
            if age < -MAX_PAUSE:  # Its clock was wrong; otherwise it would stay the latest folder forever.
                continue
            if age <= MAX_PAUSE and ((gated := read_decision(path)) is None or gated.is_open):
                return path
            break
    return parent / now.strftime(time)


def _accusation(policy: Policy, prepared: Prepared, watcher: Watcher | None) -> Halt | None:
    """The first fault found by a quick probe that would make scores of this server wrong; None if there is none."""
    if not policy.probe:
        return None
    report = probe_of_run(prepared, watcher, quick=True)
    failed = [finding for finding in report.findings if finding.outcome == "fail"]
    if "stream" in policy.options(None).drop:
        failed = [finding for finding in failed if finding.check != "streaming"]
    return ("probe", f"{failed[0].check}: {failed[0].received}. {failed[0].fix}") if failed else None


def _likelihood_halt(policy: Policy, prepared: Prepared, watcher: Watcher | None) -> Halt | None:
    """The result of evaluating the base's replies, if it is enough for the policy; otherwise it is reported, and
    sampling starts.
    """
    if (asked := policy.likelihood) is None:
        return None
    (finding,) = probe_of_run(prepared, watcher, replies=asked.replies, margin=asked.loss).findings
    read = finding.likelihood
    if asked.enough and read is not UNSET and read.reach <= asked.loss and not read.template:
        return "same", finding.received
    (watcher or Watcher()).standing(f"likelihood: {finding.received}")
    return None


def _ids_to_sample(
    policy: Policy, sets: Sequence[QuestionSet], baselines: Mapping[str, ScoredRun], seed: int | None
) -> dict[str, list[str]]:
    """The ids of each benchmark's questions (all, or the baseline's), in the order in which they are sampled.

    Raises `UsageError` if a benchmark has a different name, or if questions of its baseline are missing.
    """
    ids = {}
    for each, written in zip(sets, policy.benchmarks, strict=True):
        if each.name not in policy.benchmarks:
            raise UsageError(
                f"the policy's benchmark {visible(written, 200)} is actually named {each.name}: use that name, and for "
                "a card of your own, set HARNESS_DATASETS to its folder"
            )
        question_ids = set(each.ids)
        if each.name in baselines:
            compared = {item.question.question_id for item in _compared_questions(baselines[each.name], each.name)}
            if absent := len(compared - question_ids):
                of_all = f"{absent} of the {count_noun(len(compared), 'question')} in its baseline"
                raise UsageError(
                    f"{visible(each.name, 200)} does not contain {of_all}: use the same questions, or a new baseline"
                )
            question_ids = compared
        ids[each.name] = in_order(question_ids, seed)
    return ids


def _stage(prepared: Prepared, ids: Mapping[str, Sequence[str]], looks: Mapping[str, float]) -> Prepared:
    """The prepared run with only the questions of these looks."""
    parts = {name: set(each[: math.ceil(min(looks[name], 1) * len(each))]) for name, each in ids.items()}
    sets = [
        replace(each, questions=[q for q in each.questions if q.question_id in parts[each.name]])
        for each in prepared.sets
    ]
    return replace(prepared, sets=sets)


def _named(place: Path, run: ScoredRun) -> str:
    """The name of a run in the history; a recreated folder is a different run."""
    return f"{real(place)} {run.manifest.created}"


def _plan_of(policy: Policy, n_questions: Mapping[str, int], baselines: Mapping[str, ScoredRun]) -> dict[str, Any]:
    """The plan that determines the looks. A baseline is identified by its counts."""
    planned = policy.model_dump(mode="json", include={"benchmarks", "false_alarm", "power", "run_deviation"})
    for watched in planned["benchmarks"].values():
        watched["figures"] = watched.pop("metrics")  # the key in stored plans
        if watched["limits"] is None:  # not a key in older plans
            del watched["limits"]
    held = dict[str, str]()
    for line in policy.lines:
        if line.label in baselines:
            items = _compared_questions(baselines[line.label], line.benchmark)
            held[line.label] = codec.digest([(each.question.question_id, each.right, each.n) for each in items])
    return planned | {"questions": dict(n_questions), "baselines": held}


def _past_looks(gated: Gated) -> dict[str, float]:
    """The rounds of each benchmark that are sampled: a session for them is empty, but rejects other settings and
    another model.
    """
    return {name: rounds or 1 for name, rounds in gated.rounds.items()}


def _next_looks(gated: Gated, n_questions: Mapping[str, int]) -> dict[str, float]:
    """The rounds of each benchmark at the next look; empty if none is open."""
    looks = gated.rounds
    for check in gated.checks:
        name = check.benchmark
        if check.state in ("undecided", "missing") and check.rounds < check.max_rounds and not check.closed:
            planned = gate.look_sizes(n_questions[name], check.max_rounds)
            looks[name] = max(looks[name], next(look for look in planned if look > check.rounds))
    return looks if looks != gated.rounds else {}


# ---- before it starts


class Expected(NamedTuple):
    """The forecast for one accuracy or share, as if each reply counted toward a share. loss: a fraction. ahead: cost of
    the samples without a loss, and at most, each with the number of requests in flight, based on an existing run (the
    baseline or the gate's latest run); empty without one. mend: what would give the required power, and the errors;
    empty if the policy already gives it. known_runs: number of earlier runs in the accepted state.
    """

    label: str
    n_questions: int
    max_rounds: int
    loss: float
    known_runs: int
    forecast: simulation.Forecast
    ahead: tuple[tuple[Forecast | None, int], ...]
    mend: str


def simulate_policy(policy: Policy, watcher: Watcher | None = None) -> list[Expected]:
    """Simulate this policy for each of its benchmarks; no request is sent. Raises `UsageError`."""
    baselines, history = read_baselines(policy), read_history(policy)
    if policy.likelihood is not None:
        RunFolder.open(policy.likelihood.replies)  # raises its error
    sets = questions_of(policy.options(None), watcher).sets
    ids = _ids_to_sample(policy, sets, baselines, 0)
    return [
        _expected_of(policy, line, len(ids[line.benchmark]), baselines.get(line.label), history)
        for line in policy.lines
    ]


def expected_lines(policy: Policy) -> list[tuple[str, bool]]:
    """The loss that each metric line can detect with this history, as a sentence, and whether this covers the line's
    own loss, if both are known.
    """
    checks = check_lines(policy, (), past_metrics(read_history(policy)))
    losses = [policy.benchmarks[each.benchmark].metrics[each.metric].share for each in checks]
    return [
        (f"{each.label}: {each.why}", loss is None or (each.findable or 0.0) <= loss)
        for each, loss in zip(checks, losses, strict=True)
    ]


def _last_known(
    policy: Policy, line: SampleLine, baseline: ScoredRun | None, history: Sequence[Gated]
) -> tuple[Learned, bool, float]:
    """What the earlier runs of the latest state for this reference show (the gate's future state is not known yet),
    whether they had duplicate samples, and by how much undecided answers could change the latest accuracy.
    """
    checks = [check for entry in history for check in entry.checks if check.label == line.label]
    key = checks[-1].key if checks else ""
    if not key.startswith(reference_key(line, baseline)):
        return learn_from(policy, ()), False, 0.0
    low, high = checks[-1].bounds or (0.0, 0.0)
    # Copies are not visible if one sample per question decides.
    copies = any(check.copies for check in checks if check.key == key)
    return learn_from(policy, past_nights(line.benchmark, key, history)), copies, high - low


def _expected_of(
    policy: Policy, line: SampleLine, n_questions: int, baseline: ScoredRun | None, history: Sequence[Gated]
) -> Expected:
    """The forecast for one accuracy or share. baseline: None with a floor."""
    name, _, watched = line
    nights, copies, gap = _last_known(policy, line, baseline, history)
    reference = reference_of(line, n_questions, _compared_questions(baseline, name))

    def forecast_of(watched: Watched) -> simulation.Forecast:
        """The simulation with these values."""
        rules, loss = rules_of(policy, watched, n_questions, reference, nights), watched.loss_of(reference.value)
        return simulation.forecast(n_questions, rules, reference, loss, policy.power / 100, nights, gap, copies=copies)

    forecast, loss = forecast_of(watched), watched.loss_of(reference.value)
    ahead: tuple[tuple[Forecast | None, int], ...] = ()
    if source := not line.share and (watched.baseline or _latest_run(name, history)):
        (run,) = read_runs([open_scored(source)])
        samples = (round(forecast.rounds * n_questions), watched.max_samples * n_questions)
        ahead = tuple(run_forecast(run, name, (n, 1)) for n in samples)
    mend = ""
    if forecast.power < policy.power / 100:
        # Only changes that the next dry run accepts, because it simulates the same.
        losses = [math.ceil(1000 * (forecast.findable or 1) * factor) / 10 for factor in (1, 1.05, 1.1)]
        tried = {"loss": [points for points in losses if points < 100 * reference.value]}
        tried |= {"max_samples": [n * watched.max_samples for n in (2, 4)]} if not copies else {}
        ways = []
        for key, values in tried.items():
            powers = ((n, forecast_of(watched.model_copy(update={key: n})).power) for n in values)
            ways += [*islice((f"`{key}: {n:g}`" for n, power in powers if power >= policy.power / 100), 1)]
        share = float(gate.share_planned(reference))
        held = gate.correct_reference(reference, share, loss, nights)
        most = float(n_questions * (1 if copies else watched.max_samples))
        errors = Errors(share * held.value * (1 - held.value), most, held, nights.sd, watched.floor is not None)
        facts = ["copies count as one sample"] * copies + ["undecided answers may be correct or wrong"] * (gap > 0)
        mend = f"; it would be reached with {' or '.join(ways)}" if ways else ""
        mend += (f" (as in earlier runs, {' and '.join(facts)})" if facts else "") + f"; {errors.sentence}"
    return Expected(line.label, n_questions, watched.max_samples, loss, nights.known, forecast, ahead, mend)


def _latest_run(benchmark: str, history: Sequence[Gated]) -> Path | None:
    """The folder of the gate's latest run that has this benchmark and still exists; None if there is none."""
    for entry in reversed(history):
        folder = Path(entry.run.rpartition(" ")[0])  # a label consists of the folder and the time of its creation
        if any(check.benchmark == benchmark for check in entry.checks) and RunFolder(folder).manifest.is_file():
            return folder
    return None
