"""The decision of a gate: a pure function of the policy, the scored runs, the former decisions, and the day."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import takewhile
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core import codec
from harness.core.inert import visible
from harness.core.nouns import count_noun, count_points, in_percent, in_points
from harness.generation.dispatch.canary import BEGINNING
from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.runs.recorded_settings import difference_in_words, server_differences, setting_differences
from harness.scoring import gate
from harness.scoring.stats import sampling_variance_of_mean
from harness.scoring.tally import QuestionTally
from harness.scoring.tokens import n_cut
from harness.verbs.gate.policy import Policy, Watched
from harness.verbs.graded import complete_rounds

State = Literal["pass", "fail", "undecided", "missing", "truncated", "stopped", "canary", "probe", "waived"]
"""How a benchmark stands; `Checked` says what each word means."""

USUAL_CUT = 5.0
"""Percent of replies cut by max_tokens that a benchmark with a floor may have, unless its policy says another."""


MAX_CHANGED = 4
"""Largest number of differences from the baseline that a decision names."""

LEARNT_FROM = ("pass", "undecided", "waived")
"""States of former runs whose accuracies show by how much sound runs differ."""

OF_A_GATE = {"seed", "samples", "canary", "fingerprint", "questions_made", "questions_digest"}
"""Settings that a gate chooses: where they differ from the baseline's, no score does."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on one benchmark. Fractions.

    state: pass, fail or undecided by the samples; waived: it failed, and a waiver is in force; missing: samples are;
    truncated: more replies were cut than was sound; canary: the first replies looked wrong; probe: a probe accuses the
    server; stopped: another rule ended the sampling. reference: the floor, or the baseline's accuracy. rounds: samples
    of each question that decided, 0.25 if one sample of a quarter of them did. variance: of the sampling error.
    deviation: of runs, beyond sampling; known_runs: former runs that show it, 0 if the policy states it. why: one line
    for a person.
    """

    benchmark: str
    tier: str
    state: State
    accuracy: float | None
    reference: float
    loss: float
    rounds: float
    max_rounds: int
    variance: float
    deviation: float
    known_runs: int
    why: str


class Gated(msgspec.Struct, frozen=True, kw_only=True):
    """The decision of a gate, the content of `gate.json` and a line of `history.jsonl`. run: names its folders.

    verdict: fail if a critical benchmark fails; else undecided if any of them neither passes nor is waived; else pass.
    """

    schema: int = 1
    gate: str
    run: str
    verdict: Literal["pass", "fail", "undecided"]
    exit_code: int
    checks: tuple[Checked, ...]


EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 4}
"""Verdict of a gate → exit code of the command."""

Halt = tuple[State, str]
"""Why no more samples come although some benchmark is undecided: the state that it has then, and a sentence."""


def deviation_of(policy: Policy, benchmark: str, history: Iterable[Gated]) -> gate.Deviations:
    """By how much runs of this benchmark differ beyond sampling. Runs that failed do not count, unless waived."""
    seen = [
        (check.accuracy, check.variance)
        for entry in history
        for check in entry.checks
        if check.benchmark == benchmark and check.accuracy is not None and check.state in LEARNT_FROM
    ]
    return gate.learnt_deviation([each[0] for each in seen], [each[1] for each in seen], policy.run_deviation / 100)


def rules_of(policy: Policy, watched: Watched, looks: tuple[float, ...]) -> gate.Rules:
    """The levels of a benchmark's looks; critical benchmarks share the chance of a false alarm."""
    critical = policy.critical if watched.tier == "critical" else 1
    return gate.rules(looks, policy.false_alarm / 100 / critical, 1 - policy.power / 100)


def reference_of(watched: Watched, n_questions: int, baseline: Iterable[QuestionTally]) -> gate.Reference:
    """What the benchmark is held against. baseline: the questions of its baseline; empty with a floor.

    n_questions: of the benchmark, each with `floor_samples` samples behind the floor; a baseline has its own counts.
    """
    if watched.floor is None:
        rates, counts = zip(*((item.correct / item.n, item.n) for item in baseline), strict=True)
        return gate.Reference(float(np.mean(rates)), float(sum(counts)), runs=1.0)
    if watched.floor_samples is None:
        return gate.Reference(watched.floor / 100)
    rounding = (watched.floor_unit / 100) ** 2 / 12
    return gate.Reference(watched.floor / 100, float(watched.floor_samples * n_questions), rounding, runs=1.0)


def in_order(question_ids: Iterable[str], seed: int | None) -> list[str]:
    """The questions in the order in which a look at a part takes them; another seed takes others."""
    return sorted(question_ids, key=lambda question_id: codec.sample_seed(seed or 0, question_id, -1))


def decide(
    policy: Policy, label: str, runs: Sequence[ScoredRun], baselines: Mapping[str, ScoredRun],
    history: Sequence[Gated], today: date, n_questions: Mapping[str, int], halt: Halt | None = None,
) -> Gated:  # fmt: skip
    """The decision. label: names the runs; what `history` says of them, and later, does not count. baselines: by
    benchmark. halt: why no more samples come.

    n_questions: of the whole benchmarks of a gate's own run, which may have asked a part so far.
    """
    checks = []
    former = [*takewhile(lambda entry: entry.run != label, history)]
    for name in policy.benchmarks:
        present = [run.benchmarks[name] for run in runs if name in run.benchmarks]
        baseline = baselines[name].benchmarks[name].questions if name in baselines else ()
        check = _check(
            policy, name, present if len(present) == len(runs) else (),
            {item.question.question_id: item for item in baseline if item.n}, deviation_of(policy, name, former),
            n_questions.get(name),
        )  # fmt: skip
        # Each of these steps may replace the state that the samples alone give, or say more of it.
        stopped = [run.history.stopped for run in runs if run.history.stopped.startswith(BEGINNING)]
        if stopped and policy.run.get("canary", True) and check.state != "pass":
            check = msgspec.structs.replace(check, state="canary", why=stopped[0])
        if halt is not None and check.state in ("undecided", "missing"):
            check = msgspec.structs.replace(check, state=halt[0], why=halt[1])
        if name in baselines and check.state in ("fail", "undecided", "truncated"):
            changed = _changed(name, baselines[name], runs[0])
            check = msgspec.structs.replace(check, why="; ".join([check.why, *changed[:MAX_CHANGED]]))
        checks.append(_with_waivers(check, policy, today))
    critical_states = {check.state for check in checks if check.tier == "critical"}
    verdict: Literal["pass", "fail", "undecided"] = "undecided"
    if "fail" in critical_states:
        verdict = "fail"
    elif critical_states <= {"pass", "waived"}:
        verdict = "pass"
    return Gated(
        gate=policy.name, run=label, verdict=verdict, exit_code=EXIT_CODES[verdict], checks=tuple(checks)
    )  # fmt: skip


def _with_waivers(check: Checked, policy: Policy, today: date) -> Checked:
    """The check, "waived" if it failed and a waiver is in force; the reason names each waiver of its benchmark."""
    for waiver in policy.waivers:
        if waiver.benchmark == check.benchmark and check.state == "fail":
            state: State = "waived" if waiver.until >= today else "fail"
            until = "waived until" if state == "waived" else "its waiver ended on"
            why = f"{check.why}; {until} {waiver.until}: {visible(waiver.reason, 200)}"
            check = msgspec.structs.replace(check, state=state, why=why)
    return check


def _check(
    policy: Policy, name: str, runs: Sequence[ScoredBenchmark], compared: Mapping[str, QuestionTally],
    deviations: gate.Deviations, n_questions: int | None,
) -> Checked:  # fmt: skip
    """The decision on one benchmark by the samples alone.

    runs: the benchmark in each of them; empty if one lacks it. compared: the questions of the baseline by their ids,
    which alone count; empty with a floor. n_questions: as in `decide`; None for runs that exist.
    """
    watched = policy.benchmarks[name]
    # Of each run, the questions that count, by id.
    of_runs = [{item.question.question_id: item for item in run.questions if _is_same(item, compared)} for run in runs]
    ids = in_order(compared or (of_runs[0] if of_runs else ()), runs[0].record.identity.get("seed") if runs else 0)
    n_whole = len(compared) or n_questions or len(ids)
    # Runs that exist beside each other are one look; one run is looked at as while it was sampled.
    looks = gate.planned(n_whole, watched.max_samples) if len(of_runs) == 1 else (1.0,)
    rules = rules_of(policy, watched, looks)
    lacking = _lacking(runs, of_runs, compared, n_questions)
    unlooked = "no look has all its samples" if of_runs else "the runs hold no samples of it"
    check = Checked(
        benchmark=name, tier=watched.tier, state="missing", accuracy=None, reference=(watched.floor or 0.0) / 100,
        loss=watched.loss / 100, rounds=0, max_rounds=watched.max_samples, variance=0.0, deviation=deviations.sd,
        known_runs=deviations.known, why=lacking or unlooked,
    )  # fmt: skip
    if not of_runs or (lacking and not compared):
        return check

    @cache
    def rounds_of(n: int) -> list[NDArray[np.bool_]]:
        """The complete rounds of each run on the first `n` questions."""
        return [complete_rounds([rows[each].grades if each in rows else () for each in ids[:n]]) for rows in of_runs]

    for number, look in enumerate(looks):
        n, n_rounds = math.ceil(min(look, 1) * n_whole), math.ceil(look)
        if len(ids) < n or any(len(rounds) < n_rounds for rounds in rounds_of(n)):
            break
        # Of several runs all rounds count; of one run, those of this look.
        rounds = np.concatenate(rounds_of(n) if len(of_runs) > 1 else [rounds_of(n)[0][:n_rounds]])
        correct, counts = rounds.sum(axis=0).astype(float), np.full(n, float(len(rounds)))
        reference = reference_of(watched, n_whole, [compared[each] for each in ids[:n] if compared])
        fails, passes = gate.look_at(
            correct, len(rounds), number, rules, reference, check.loss, deviations, float(len(of_runs))
        )  # fmt: skip
        state: State = "fail" if fails else "pass" if passes else "undecided"
        accuracy = float(rounds.mean())
        variance = accuracy * (1 - accuracy) / n
        if len(rounds) > 1:
            variance = float(sampling_variance_of_mean(correct, counts))
        check = msgspec.structs.replace(
            check, state=state, accuracy=accuracy, reference=reference.value, variance=variance,
            rounds=look if len(of_runs) == 1 else len(rounds),
            why=_in_words(watched, accuracy, reference, rounds.size, variance, deviations, state),
        )  # fmt: skip
        if state != "undecided":
            break
    sampled = [item for rows in of_runs for item in rows.values() if item.n]
    return check if check.state == "missing" else _cut(check, watched, sampled, compared.values())


def _is_same(item: QuestionTally, compared: Mapping[str, QuestionTally]) -> bool:
    """Whether the baseline's question of this id, if any, is the same. Of a long run not all digests are kept."""
    first, second = item.question.row_digest, compared.get(item.question.question_id, item).question.row_digest
    return len({first, second} - {""}) < 2


def _lacking(
    runs: Sequence[ScoredBenchmark], of_runs: Sequence[Mapping[str, QuestionTally]],
    compared: Mapping[str, QuestionTally], n_questions: int | None,
) -> str:  # fmt: skip
    """Why these runs are not of the questions that the benchmark is held against; empty if they are.

    of_runs: the questions of each run by id. compared, n_questions: as in `_check`.
    """
    if compared:
        absent = max((len(compared.keys() - rows.keys()) for rows in of_runs), default=0)
        return f"{absent} of {count_noun(len(compared), 'question')} of its baseline have no sample" if absent else ""
    if n_questions is None and any(run.record.plan.question_ids is not None for run in runs):
        return "a part of the questions was asked, and a floor is for all of them: name a baseline of the same ones"
    return "the runs hold different questions" if any(rows.keys() != of_runs[0].keys() for rows in of_runs) else ""


def _changed(benchmark: str, baseline: ScoredRun, run: ScoredRun) -> list[str]:
    """The settings and the model's facts that differ from the baseline's, which may be why the score does."""
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
    """The check, "truncated" if more replies were cut by max_tokens than is sound, beyond chance (3 errors)."""
    n, n_baseline = sum(item.n for item in sampled), sum(item.n for item in baseline)
    cut = (n_cut(sampled) or 0) / n
    usual = USUAL_CUT if not n_baseline else 100 * (n_cut(baseline) or 0) / n_baseline
    allowed = (usual if watched.truncated is None else watched.truncated) / 100
    # Of the difference of two fractions; 1/n keeps it above 0 where no reply may be cut.
    error = math.sqrt((allowed * (1 - allowed) + 1 / n) * (1 / n + (1 / n_baseline if n_baseline else 0)))
    if cut <= allowed + 3 * error:
        return check
    why = (
        f"max_tokens cut {in_percent(cut)}% of the replies, {in_percent(allowed)}% is sound: raise it, or look "
        f"at what makes the replies longer ({check.why})"
    )
    return msgspec.structs.replace(check, state="truncated", why=why)


def _in_words(
    watched: Watched, accuracy: float, reference: gate.Reference, n_samples: int, variance: float,
    deviations: gate.Deviations, state: State,
) -> str:  # fmt: skip
    """The decision in one line for a person."""
    what = "the floor" if watched.floor is not None else "the baseline"
    line = (
        f"{in_percent(accuracy)} beside {what} of {in_percent(reference.value)} "
        f"({in_points(accuracy - reference.value)} points) after {count_noun(n_samples, 'sample')}"
    )
    if state == "undecided":
        own = f"runs differ by {in_percent(deviations.sd)} points and sampling by {in_percent(math.sqrt(variance))}"
        line += f": a loss of {count_points(f'{watched.loss:g}')} is neither seen nor excluded ({own}); "
        line += "give more max_samples, a larger loss, or several runs"
    return line
