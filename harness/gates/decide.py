"""The decision of a gate: a function of the policy, the scored runs, the earlier decisions, and the date.

Long: the decision based on the samples and the steps that may replace it are kept together, in order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import takewhile
from statistics import NormalDist
from typing import ClassVar, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core import codec
from harness.core.inert import visible
from harness.core.nouns import count_noun, count_points, in_percent, in_points
from harness.deciding import gate
from harness.deciding.nights import Learned, Prior, contradicting_deviation, learned
from harness.gates.metrics import OF_A_GATE, MetricCheck, check_lines
from harness.gates.policy import Policy, Watched
from harness.generation.dispatch.canary import BEGINNING
from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.runs.recorded_settings import difference_in_words, server_differences, setting_differences
from harness.scoring.measures import n_cut
from harness.scoring.stats import Array, effective_samples
from harness.scoring.tally import CORRECT, UNDECIDED, QuestionTally

State = Literal["pass", "fail", "undecided", "missing", "truncated", "stopped", "canary", "probe", "same", "waived"]
"""The state of a benchmark; `Checked` explains each word."""

HALTED = ("missing", "stopped", "probe")
"""States in which the samples have not decided; the same command continues."""

PASSING = frozenset({"pass", "same", "waived"})
"""States of critical benchmarks that let a gate pass."""

DECIDED: dict[State, float] = {"pass": 1.0, "undecided": math.nan, "fail": 0.0, "waived": 0.0}
"""States that are based on the run's samples → `accepted` of `nights.learned`."""

USUAL_CUT = 5.0
"""Allowed percentage of replies truncated by max_tokens for a benchmark with a floor, unless its policy sets one."""


DIGEST_CHARS = 12
"""Number of characters of each digest in a key."""

MAX_CHANGED = 4
"""Largest number of differences from the baseline that a decision lists."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on one benchmark."""

    benchmark: str
    """Name of the benchmark."""
    tier: str
    """Tier: "critical", "supporting" or "advisory"; only critical benchmarks can fail the gate."""
    state: State
    """"pass", "fail" or "undecided" (based on the samples), "waived" (failed, but a waiver is in force), "missing"
    (samples are missing), "truncated" (too many replies were truncated), "canary" (the first replies looked wrong),
    "probe" (a probe found a fault in the server), "stopped" (another rule stopped sampling) or "same" (the build is
    equivalent to its base, which the policy accepts without sampling).
    """
    accuracy: float | None
    """The run's accuracy, as a fraction; None if it has none."""
    reference: float
    """The floor, or the baseline's accuracy, as a fraction."""
    loss: float
    """The loss that the gate must detect, as a fraction."""
    rounds: float
    """Number of samples per question used for the decision; 0.25 means one sample for a quarter of the questions."""
    max_rounds: int
    """Maximum number of samples per question that the policy allows."""
    variance: float
    """Variance of the sampling error."""
    deviation: float
    """Run-to-run standard deviation in excess of sampling error that the policy specifies, as a fraction."""
    known_runs: int
    """Number of earlier runs in the accepted state."""
    why: str
    """The reason, as one human-readable line."""
    bounds: tuple[float, float] | None = None
    """Accuracy if all undecided answers were wrong, and accuracy if all were correct; None if no answers are undecided.
    """
    copies: bool = False
    """Whether some samples are duplicates. Duplicates count only once."""
    odd: bool = False
    """Whether the run is not in the accepted state; its accuracy then hardly affects the accepted level."""
    key: str = ""
    """Digests of the reference and of the model, settings and engine. An earlier run is used only if its key
    matches.
    """
    closed: bool = False
    """Whether sampling ended because more samples are unlikely to lead to a decision."""
    limits: tuple[float, float] | None = None
    """Highest accuracy that fails at this stage, and lowest accuracy that passes; None if there was no stage."""

    @property
    def label(self) -> str:
        """Its name in a table."""
        return self.benchmark

    @property
    def is_open(self) -> bool:
        """Whether more samples may change the state."""
        return self.state in HALTED or (self.state == "undecided" and self.rounds < self.max_rounds and not self.closed)


class Gated(msgspec.Struct, frozen=True, kw_only=True):
    """A gate's decision, as stored in `gate.json` and in each line of `history.jsonl`."""

    FORMER_KEYS: ClassVar = ((rb'"figures":(?= ?\[)', b'"metrics":'), (rb'"figure":(?= ?")', b'"metric":'))
    schema: int = 1
    """Version of this format."""
    gate: str
    """Name of the gate."""
    run: str
    """Names of the run folders."""
    verdict: Literal["pass", "fail", "undecided"]
    """"fail" if a critical benchmark or metric fails; "pass" if every critical benchmark and metric has the state
    "pass", "same" or "waived"; otherwise "undecided".
    """
    exit_code: int
    """Exit code of the command."""
    checks: tuple[Checked, ...]
    """Decisions on benchmarks."""
    sampled: str = ""
    """When the run started (UTC, ISO 8601); empty if there is no run."""
    forgotten: bool = False
    """Whether `--forget` excludes this run from what the gate learns."""
    metrics: tuple[MetricCheck, ...] = ()
    """Decisions on metrics; a metric is "undecided" if sampling stopped before all samples were taken."""

    @property
    def lines(self) -> tuple[Checked | MetricCheck, ...]:
        """The decisions on benchmarks and metrics."""
        return (*self.checks, *self.metrics)

    @property
    def is_open(self) -> bool:
        """Whether more samples may change the decision, so the same command continues."""
        return any(check.is_open for check in self.checks)


EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 4}
"""Verdict of a gate → exit code of the command."""

Halt = tuple[State, str]
"""Why sampling ended although a benchmark is undecided: the state that the benchmark then gets, and a sentence."""


def nights_of(benchmark: str, key: str, history: Iterable[Gated]) -> list[Checked]:
    """The earlier runs with this key whose samples led to a decision, in order, without forgotten ones."""
    checks = [check for entry in history if not entry.forgotten for check in entry.checks]
    return [each for each in checks if (each.benchmark, each.key) == (benchmark, key) and key and each.state in DECIDED]


def learned_from(policy: Policy, nights: Sequence[Checked]) -> Learned:
    """What these earlier runs (`nights_of`) show, given the policy's deviation of runs."""
    return learned(
        tuple(night.accuracy or 0.0 for night in nights),
        tuple(night.variance for night in nights),
        Prior(policy.run_deviation / 100),
        tuple(DECIDED[night.state] for night in nights),
    )


def _contradiction(policy: Policy, nights: Sequence[Checked]) -> str:
    """A clause that these earlier runs differ by more than the policy specifies; empty if they do not."""
    held = [(night.accuracy or 0.0, night.variance) for night in nights if night.state in ("pass", "undecided")]
    shown = contradicting_deviation(held, policy.run_deviation / 100)
    more = f"points, which is more than run_deviation: {policy.run_deviation:g}"
    return "" if shown is None else f"; runs differ by about {in_percent(shown)} {more}"


def reference_key(watched: Watched, baseline: ScoredRun | None) -> str:
    """The digest of what the benchmark is compared with; the first part of `Checked.key`."""
    made = baseline and baseline.manifest.created
    return codec.digest([watched.floor, watched.floor_samples, watched.floor_unit, made])[:DIGEST_CHARS]


def _key(watched: Watched, name: str, runs: Sequence[ScoredRun], baseline: ScoredRun | None) -> str:
    """`Checked.key`; empty for several runs, because their mean is not a run."""
    if len(runs) != 1 or name not in runs[0].benchmarks:
        return ""
    manifest, identity = runs[0].manifest, runs[0].benchmarks[name].record.identity
    hosts = [facts.host for facts in manifest.provenance.servers.values()]
    servers = {f"{host.get('engine')} {host.get('version')}" for host in hosts}
    settings = {field: value for field, value in identity.items() if field not in OF_A_GATE}
    state = codec.digest([manifest.model, settings, sorted(servers)])
    return f"{reference_key(watched, baseline)}-{state[:DIGEST_CHARS]}"


def rules_of(
    policy: Policy,
    watched: Watched,
    n_questions: int,
    reference: gate.Reference,
    nights: Learned,
    runs: int = 1,
) -> gate.Rules:
    """The levels of a benchmark's looks; critical benchmarks share the chance of a false alarm.

    reference: for all questions. runs: number of existing runs; several runs have a single look.
    """
    critical, loss = policy.critical if watched.tier == "critical" else 1, watched.loss_of(reference.value)
    held = gate.corrected(reference, gate.share_planned(reference), loss, nights)
    error = gate.Planned.of(n_questions, watched.max_samples, held, loss, nights.sd, runs)
    looks = gate.planned(n_questions, watched.max_samples) if runs == 1 else (1.0,)
    return gate.rules(looks, error, policy.false_alarm / 100 / critical, 1 - policy.power / 100)


def counted(items: Sequence[QuestionTally]) -> tuple[Array, Array, Array]:
    """Number of right, undecided and independent samples per question, (Q,); copies count as one sample, as in a
    score.
    """
    right, undecided, n = np.array([(item.right, item.undecided, item.n) for item in items], dtype=float).T
    counts = np.array([max(1, item.independent) for item in items], dtype=float)
    return right * counts / n, undecided * counts / n, counts


def reference_of(
    watched: Watched, n_questions: int, baseline: Sequence[QuestionTally], *, undecided_right: bool = False
) -> gate.Reference:
    """What the benchmark is compared with. baseline: the questions of its baseline; empty with a floor.

    n_questions: number of the benchmark's questions, each with `floor_samples` samples behind the floor; a baseline has
    its own counts. undecided_right: whether undecided answers of the baseline count as right instead of wrong.
    """
    if watched.floor is None:
        right, undecided, counts = counted(baseline)
        right += undecided_right * undecided
        value, total = float((right / counts).mean()), float(effective_samples(counts))
        return gate.Reference(value, total, runs=1.0, correct=right, counts=counts)
    if watched.floor_samples is None:
        return gate.Reference(watched.floor / 100)
    rounding = (watched.floor_unit / 100) ** 2 / 12
    return gate.Reference(watched.floor / 100, float(watched.floor_samples * n_questions), rounding, runs=1.0)


def in_order(question_ids: Iterable[str], seed: int | None) -> list[str]:
    """The questions in the order in which early looks include them. The order depends on the seed."""
    return sorted(question_ids, key=lambda question_id: codec.sample_seed(seed or 0, question_id, -1))


def decide(
    policy: Policy,
    label: str,
    runs: Sequence[ScoredRun],
    baselines: Mapping[str, ScoredRun],
    history: Sequence[Gated],
    today: date,
    n_questions: Mapping[str, int],
    halt: Halt | None = None,
) -> Gated:
    """The decision. label: names the runs; their own and later entries of `history` do not count. baselines: by
    benchmark. halt: why sampling ended.

    n_questions: number of questions by benchmark, for a gate's own run, which may have asked only some of them so far.
    """
    checks = []
    former = [*takewhile(lambda entry: entry.run != label, history)]
    for name in policy.benchmarks:
        present = [run.benchmarks[name] for run in runs if name in run.benchmarks]
        baseline = baselines[name].benchmarks[name].questions if name in baselines else ()
        key = _key(policy.benchmarks[name], name, runs, baselines.get(name))
        nights = nights_of(name, key, former)
        check = _check(
            policy,
            name,
            present if len(present) == len(runs) else (),
            {item.question.question_id: item for item in baseline if item.n},
            learned_from(policy, nights),
            n_questions.get(name),
        )
        check = msgspec.structs.replace(check, key=key)
        if check.state in DECIDED and nights and learned_from(policy, [*nights, check]).odd[-1]:
            apart = in_points((check.accuracy or 0.0) - (nights[-1].accuracy or 0.0))
            why = f"{check.why}; outlier: {apart} points from the previous run, not in the accepted state"
            check = msgspec.structs.replace(check, odd=True, why=why)
        check = msgspec.structs.replace(check, why=check.why + _contradiction(policy, nights))
        # Each of these steps may replace the state decided by the samples alone, or add to its explanation.
        stopped = [run.history.stopped for run in runs if run.history.stopped.startswith(BEGINNING)]
        if stopped and policy.run.get("canary", True) and check.state != "pass":
            why = f"{stopped[0]} (set options under `run` in the policy)"
            check = msgspec.structs.replace(check, state="canary", why=why)
        if halt is not None and check.state in ("undecided", "missing") and not check.closed:
            check = msgspec.structs.replace(check, state=halt[0], why=halt[1])
        if name in baselines and check.state in ("fail", "undecided", "truncated"):
            changed = _changed(name, baselines[name], runs[0])
            check = msgspec.structs.replace(check, why="; ".join([check.why, *changed[:MAX_CHANGED]]))
        checks.append(_with_waivers(check, policy, today))
    # Testing metrics before sampling ends would add a chance of a false alarm. Existing runs get no more samples.
    sampled = runs if halt is None or not any(check.is_open for check in checks) else ()
    metrics = [_with_waivers(line, policy, today) for line in check_lines(policy, sampled, teaching(former))]
    if not sampled:
        metrics = [msgspec.structs.replace(line, why=f"without samples; {line.why}") for line in metrics]
    critical_states = {check.state for check in checks if check.tier == "critical"}
    critical_states |= {line.state for line in metrics if line.tier == "critical" and not line.waits}
    verdict: Literal["pass", "fail", "undecided"] = "undecided"
    if "fail" in critical_states:
        verdict = "fail"
    elif critical_states <= PASSING:
        verdict = "pass"
    return Gated(
        gate=policy.name,
        run=label,
        verdict=verdict,
        exit_code=EXIT_CODES[verdict],
        checks=tuple(checks),
        metrics=tuple(metrics),
        sampled=runs[0].manifest.created if runs else "",
    )


def teaching(history: Iterable[Gated]) -> list[MetricCheck]:
    """The metric lines in earlier decisions that are not forgotten."""
    return [line for entry in history if not entry.forgotten for line in entry.metrics]


C = TypeVar("C", Checked, MetricCheck)


def _with_waivers(check: C, policy: Policy, today: date) -> C:
    """The check, with the state "waived" if it failed and a waiver is in force. After a failure, the reason names each
    waiver of its benchmark.
    """
    for waiver in policy.waivers:
        if waiver.benchmark == check.benchmark and check.state == "fail":
            state: Literal["waived", "fail"] = "waived" if waiver.until >= today else "fail"
            until = "waived until" if state == "waived" else "its waiver expired on"
            why = f"{check.why}; {until} {waiver.until}: {visible(waiver.reason, 200)}"
            check = msgspec.structs.replace(check, state=state, why=why)
    return check


def _check(
    policy: Policy,
    name: str,
    runs: Sequence[ScoredBenchmark],
    compared: Mapping[str, QuestionTally],
    nights: Learned,
    n_questions: int | None,
) -> Checked:
    """The decision on one benchmark based on the samples alone.

    runs: the benchmark in each run; empty if a run does not have it. compared: the questions of the baseline by id, the
    only ones that count; empty with a floor. n_questions: as in `decide`; None for existing runs.
    """
    watched = policy.benchmarks[name]
    # For each run, the questions that count, by id.
    of_runs = [{item.question.question_id: item for item in run.questions if _is_same(item, compared)} for run in runs]
    ids = in_order(compared or (of_runs[0] if of_runs else ()), runs[0].record.identity.get("seed") if runs else 0)
    n_whole = len(compared) or n_questions or len(ids)
    lacking = _lacking(runs, of_runs, compared, n_questions)
    check = _missing(name, watched, nights, lacking or ("the first planned look lacks samples" * bool(of_runs)))
    if not of_runs or (lacking and not compared):
        return check
    # Several existing runs form one look; a single run has the same looks as while it was being sampled.
    whole = reference_of(watched, n_whole, [*compared.values()])
    rules = rules_of(policy, watched, n_whole, whole, nights, len(of_runs))

    @cache
    def verdicts_of(n: int) -> list[Verdicts]:
        """The complete rounds of each run on the first `n` questions."""
        return [Verdicts.of([rows[each] for each in ids[:n] if each in rows], n) for rows in of_runs]

    for number, look in enumerate(rules.looks):
        n, n_rounds = math.ceil(min(look, 1) * n_whole), math.ceil(look)
        if len(ids) < n or any(len(verdicts.right) < n_rounds for verdicts in verdicts_of(n)):
            break
        # For several runs, all rounds count; for one run, the rounds of this look.
        parts = [each.first(n_rounds if len(of_runs) == 1 else len(each.right)) for each in verdicts_of(n)]
        right, undecided, counts = (np.sum(arrays, axis=0) for arrays in zip(*parts, strict=True))
        rounds = look if len(of_runs) == 1 else sum(len(each.right) for each in verdicts_of(n))
        held, runs_of = [compared[each] for each in ids[:n] if compared], float(len(of_runs))
        best, reference, share = _references(watched, n_whole, held, (right, counts), nights if look >= 1 else None)
        loss, total = watched.loss_of(reference.value), float(effective_samples(counts))
        all_rounds = 1 + (watched.max_samples - 1) * verdicts_of(n)[0].fresh
        most = float(effective_samples(all_rounds)) if len(of_runs) == 1 else total
        tests = gate.LookTests(rules, best, reference, share, loss, nights.sd, runs_of)
        said = tests.judge(right, undecided, counts, most, number)
        state: State = "fail" if said.failed else "pass" if said.passed else "undecided"
        bounds = float((right / counts).mean()), float(((right + undecided) / counts).mean())
        copies = most < 0.99 * n * (watched.max_samples if len(of_runs) == 1 else rounds)
        single, closed = bounds[0] * (1 - bounds[0]) * share, bool(said.closed)
        gap = best.value - reference.value + bounds[1] - bounds[0]
        errors = Errors(single, most, reference, nights.sd, gap, runs_of)
        limit = remedy_of(errors, policy, watched, n_whole, loss, copies=copies)
        if not compared and look <= 1 and len(of_runs) == 1:
            # With a floor, one sample per question does not show f, and the choice of a part of the questions adds an
            # error.
            single *= 1 - look / 2
        check = msgspec.structs.replace(
            check, state=state, accuracy=bounds[0], reference=float(reference.value), loss=float(loss), rounds=rounds,
            variance=float(single / total), bounds=bounds if undecided.any() else None, copies=copies, closed=closed,
            limits=tests.limits(total, said.number),
            why=_in_words(
                watched, state, bounds, reference, loss, round(n * rounds / min(look, 1)), limit,
                turns=bool(said.turns), copied=copies, closed=closed and said.number == number,
            ),
        )  # fmt: skip
        if state != "undecided" or closed:
            break
    sampled = [item for rows in of_runs for item in rows.values() if item.n]
    return check if check.state == "missing" else _cut(check, watched, sampled, compared.values())


def _missing(name: str, watched: Watched, nights: Learned, why: str) -> Checked:
    """The check of a benchmark before its first look."""
    floor = (watched.floor or 0.0) / 100
    return Checked(
        benchmark=name,
        tier=watched.tier,
        state="missing",
        accuracy=None,
        reference=floor,
        loss=watched.loss_of(floor),
        rounds=0,
        max_rounds=watched.max_samples,
        variance=0.0,
        deviation=nights.sd,
        known_runs=nights.known,
        why=why or "the runs have no samples of this benchmark",
    )


def _references(
    watched: Watched,
    n_questions: int,
    baseline: Sequence[QuestionTally],
    counted: tuple[Array, Array],
    nights: Learned | None,
) -> tuple[gate.Reference, gate.Reference, float]:
    """The reference for the low end, where all undecided answers of the run are wrong and those of a baseline right;
    the reference for the high end, where it is the reverse; and the share f. nights: None for a part of the questions.
    """
    reference = reference_of(watched, n_questions, baseline)
    best = reference_of(watched, n_questions, baseline, undecided_right=True)
    share = float(gate.share_of(*counted, reference))
    if nights is not None and best.value == reference.value:
        best = reference = gate.corrected(reference, share, watched.loss_of(reference.value), nights)
    return best, reference, share


class Verdicts(NamedTuple):
    """The complete rounds of one run. right, undecided: (rounds, Q). worth: (Q,), the share of independent samples.
    fresh: (Q,), the share of independent samples after the first.
    """

    right: NDArray[np.bool_]
    undecided: NDArray[np.bool_]
    worth: Array
    fresh: Array

    @classmethod
    def of(cls, items: Sequence[QuestionTally], n: int) -> Verdicts:
        """The rounds that all `n` questions have; none if some questions are absent."""
        # For each question, the samples in order up to the first missing one.
        verdicts = [facts["signs"][facts["index"] == np.arange(len(facts))] for facts in (item.facts for item in items)]
        n_rounds = min(map(len, verdicts)) if len(items) == n else 0
        signs = np.array([each[:n_rounds] for each in verdicts], dtype=np.uint8).reshape(len(items), n_rounds).T
        independent = [item.independent / max(1, item.n) for item in items]
        fresh = [(max(1, item.independent) - 1) / (item.n - 1) if item.n > 1 else 1.0 for item in items]
        return cls(signs & CORRECT > 0, signs & UNDECIDED > 0, np.array(independent), np.array(fresh))

    def first(self, n_rounds: int) -> tuple[Array, Array, Array]:
        """Number of right, undecided and independent samples per question in the first rounds; see `counted`."""
        counts = np.maximum(1.0, np.floor(n_rounds * self.worth + 1e-9))
        part = counts / n_rounds
        return self.right[:n_rounds].sum(axis=0) * part, self.undecided[:n_rounds].sum(axis=0) * part, counts


def _is_same(item: QuestionTally, compared: Mapping[str, QuestionTally]) -> bool:
    """Whether the baseline's question with this id, if any, is the same. A long run does not keep all digests."""
    first, second = item.question.row_digest, compared.get(item.question.question_id, item).question.row_digest
    return len({first, second} - {""}) < 2


def _lacking(
    runs: Sequence[ScoredBenchmark],
    of_runs: Sequence[Mapping[str, QuestionTally]],
    compared: Mapping[str, QuestionTally],
    n_questions: int | None,
) -> str:
    """Why these runs do not have the questions required for the comparison; empty if they do.

    of_runs: the questions of each run by id. compared, n_questions: as in `_check`.
    """
    if compared:
        absent = max((len(compared.keys() - rows.keys()) for rows in of_runs), default=0)
        return f"{absent} of {count_noun(len(compared), 'question')} in its baseline have no samples" if absent else ""
    if n_questions is None and any(run.record.plan.question_ids is not None for run in runs):
        return "a floor applies to all questions, but only some were sampled: use a baseline with the same questions"
    return "the runs have different questions" if any(rows.keys() != of_runs[0].keys() for rows in of_runs) else ""


def _changed(benchmark: str, baseline: ScoredRun, run: ScoredRun) -> list[str]:
    """The settings and facts about the model that differ from the baseline's and may explain a different score."""
    servers = baseline.manifest.provenance, run.manifest.provenance
    first, second = baseline.benchmarks[benchmark].record, run.benchmarks[benchmark].record
    changed = setting_differences(first, second, servers) + server_differences(*servers)
    return [
        f"differs from the baseline: {difference_in_words(each)}"
        for each in changed
        if each.field.partition(".")[0] not in OF_A_GATE
    ]


def _cut(
    check: Checked, watched: Watched, sampled: Collection[QuestionTally], baseline: Collection[QuestionTally]
) -> Checked:
    """The check, with the state "truncated" if max_tokens truncated more replies than allowed, beyond chance (3
    errors).
    """
    n, n_baseline = sum(item.n for item in sampled), sum(item.n for item in baseline)
    cut = (n_cut(sampled) or 0) / n
    usual = USUAL_CUT if not n_baseline else 100 * (n_cut(baseline) or 0) / n_baseline
    allowed = (usual if watched.truncated is None else watched.truncated) / 100
    # Error of the difference of two fractions; 1/n keeps it above 0 if no reply may be truncated.
    error = math.sqrt((allowed * (1 - allowed) + 1 / n) * (1 / n + (1 / n_baseline if n_baseline else 0)))
    if cut <= allowed + 3 * error:
        return check
    why = (
        f"{in_percent(cut)}% of the replies are truncated (the limit is {in_percent(allowed)}%): raise max_tokens "
        f"(and the tool's steps, if one is used), or find out why the replies are longer ({check.why})"
    )
    return msgspec.structs.replace(check, state="truncated", why=why)


SEQUENTIAL = 1.15
"""Factor by which planned looks and an unlucky reference increase the error, compared with a single look."""


class Errors(NamedTuple):
    """What keeps a benchmark undecided. single: variance of one sample. total: largest number of independent samples.
    sd: deviation of runs. gap: how much undecided answers may change the difference. runs: number of runs of this
    build.
    """

    single: float
    total: float
    reference: gate.Reference
    sd: float
    gap: float = 0.0
    runs: float = 1.0

    def parts(self) -> dict[str, float]:
        """The variances, by name."""
        of_reference = self.single / self.reference.samples + self.reference.variance
        return {
            "runs differ": self.sd**2 * (1 / self.runs + self.reference.runs),
            "sampling": self.single / self.total,
            "the baseline" if self.reference.correct is not None else "the floor": of_reference,
        }


def remedy_of(errors: Errors, policy: Policy, watched: Watched, n_questions: int, loss: float, *, copies: bool) -> str:
    """A text with the largest error, the other errors, and one change that finds the loss with the required power."""
    normal, (alarm, missed) = NormalDist().inv_cdf, (policy.false_alarm / 100 / policy.critical, 1 - policy.power / 100)
    z = SEQUENTIAL * (normal(1 - alarm) + normal(1 - missed))
    parts, of_one = errors.parts(), errors.single / n_questions
    whole = sum(parts.values())
    runs, sampling, of_reference = parts.values()
    room = (max(0.0, loss - errors.gap) / z) ** 2  # the variance at which the loss can be found
    ways = []
    if errors.gap and whole <= (loss / z) ** 2:
        ways.append("a judge for the undecided answers")
    if copies and whole - sampling + of_one / watched.max_samples <= room:
        ways.append(
            "settings that give different samples: a temperature above 0, a server that respects seeds, "
            "and no reply cache"
        )
    if not copies and room > whole - sampling:
        n = math.ceil(of_one / (room - whole + sampling))
        ways += [f"max_samples: {n}"] * (n > watched.max_samples)
    if room > whole - of_reference and of_reference:
        n = math.ceil(of_one / (room - whole + of_reference))
        ways.append(
            f"{count_noun(n, 'sample')} per question in the baseline"
            if watched.floor is None
            else f"floor_samples: {n}"
        )
    if runs and (n := next((n for n in range(2, 9) if whole - (runs + sampling) * (1 - 1 / n) <= room), 0)):
        ways.append(f"the mean of {n} RUNs")
    least = z * math.sqrt(whole) + errors.gap
    ways.append(
        f"a loss of {count_points(in_percent(least))}"
        if least > loss
        else "another run, because this one is an outlier by chance"
    )
    first, *others = sorted(parts, key=lambda name: -parts[name])
    rest = ", ".join(f"{name} {in_percent(math.sqrt(parts[name]))}" for name in others if parts[name])
    return (
        f"largest error: {first}, {in_percent(math.sqrt(parts[first]))} points ({rest}); to reduce it, use: {ways[0]}"
    )


def _in_words(
    watched: Watched,
    state: State,
    bounds: tuple[float, float],
    reference: gate.Reference,
    loss: float,
    n_samples: int,
    limit: str,
    *,
    turns: bool,
    copied: bool,
    closed: bool,
) -> str:
    """The decision in one human-readable line. turns: whether undecided answers could change it. limit: from
    `remedy_of`. copied: whether there are copies among the samples. closed: as in `Checked`.
    """
    what = "the floor" if watched.floor is not None else "the baseline"
    line = (
        f"{in_percent(bounds[0])} against {what} of {in_percent(reference.value)} "
        f"({in_points(bounds[0] - reference.value)} points) after {count_noun(n_samples, 'sample')}"
    )
    if copied:
        line += ", counting duplicates as one"
    more = ", and more rounds are unlikely to help" * closed
    if bounds[1] > bounds[0]:
        line += f"; {in_percent(bounds[1])} if all undecided answers were correct"
    if turns:
        line += ": the undecided answers could change the verdict: let a judge decide, or read them with `harness show`"
    elif state == "undecided":
        line += f": a loss of {count_points(in_percent(loss))} is neither detected nor ruled out{more}; {limit}"
    return line
