"""The decision of a gate: a pure function of the policy, the scored runs, the former decisions, and the day."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.inert import visible
from harness.core.nouns import count_noun, in_percent, in_points
from harness.reports.scored import ScoredRun
from harness.runs.recorded_settings import difference_in_words, server_differences, setting_differences
from harness.scoring import QuestionTally, gate
from harness.scoring.stats import sampling_variance_of_mean
from harness.scoring.tokens import n_cut
from harness.verbs.gate.policy import Policy, Watched

State = Literal["pass", "fail", "undecided", "missing", "truncated", "stopped", "waived"]

USUAL_CUT = 5.0
"""Percent of replies cut by max_tokens that a benchmark with a floor may have, unless its policy says another."""


OF_A_GATE = {"seed", "samples", "canary", "fingerprint"}
"""Settings that a gate chooses: where they differ from the baseline's, no score does."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on one benchmark. Fractions.

    state: pass, fail or undecided by the samples; waived: it failed, and a waiver is in force; missing: samples are;
    truncated: more replies were cut than was sound; stopped: a rule (the canary, a budget, another model) ended the
    sampling. reference: the floor, or the baseline's accuracy. rounds: samples of each question that decided.
    variance: of the sampling error. deviation: of runs, beyond sampling; known_runs: former runs that show it, 0 if the
    policy states it. why: one line for a person.
    """

    benchmark: str
    tier: str
    state: State
    accuracy: float | None
    reference: float
    loss: float
    rounds: int
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


class Halt(msgspec.Struct, frozen=True):
    """Why no more samples come although some benchmark is undecided."""

    state: Literal["missing", "stopped"]
    why: str


def deviation_of(policy: Policy, benchmark: str, history: Sequence[Gated]) -> gate.Deviations:
    """By how much runs of this benchmark differ beyond sampling. Runs that failed do not count, unless waived."""
    seen = [
        check
        for entry in history
        for check in entry.checks
        if check.benchmark == benchmark
        and check.accuracy is not None
        and check.state in ("pass", "undecided", "waived")
    ]
    return gate.learnt_deviation(
        [check.accuracy or 0.0 for check in seen], [check.variance for check in seen], policy.run_deviation / 100
    )


def rules_of(policy: Policy, watched: Watched, most: int) -> gate.Rules:
    """The looks of a benchmark with at most `most` rounds; critical ones share the chance of a false alarm."""
    critical = policy.critical if watched.tier == "critical" else 1
    return gate.rules(most, policy.false_alarm / 100 / critical, 1 - policy.power / 100)


def reference_of(watched: Watched, n_questions: int, baseline: Sequence[QuestionTally]) -> gate.Reference:
    """What the benchmark is held against. baseline: the questions of its baseline; empty with a floor."""
    if watched.floor is not None:
        if watched.floor_samples is None:
            return gate.Reference(watched.floor / 100)
        return gate.Reference(watched.floor / 100, float(watched.floor_samples * n_questions), runs=1.0)
    rates = [item.correct / item.n for item in baseline if item.n]
    return gate.Reference(float(np.mean(rates)), float(sum(item.n for item in baseline)), runs=1.0)


def rounds_of(questions: Sequence[QuestionTally]) -> NDArray[np.bool_]:
    """Whether each sample is right, (rounds, Q), for the first rounds that all questions have."""
    right = [{grade.sample_index: grade.verdict == "correct" for grade in item.grades} for item in questions]
    whole = next(n for n in range(100_002) if not right or any(n not in each for each in right))
    return np.array([[each[n] for each in right] for n in range(whole)], dtype=bool).reshape(whole, len(right))


def decide(
    policy: Policy, label: str, runs: Sequence[ScoredRun], baselines: Mapping[str, ScoredRun],
    history: Sequence[Gated], today: date, halt: Halt | None = None,
) -> Gated:  # fmt: skip
    """The decision. label: names the runs. baselines: by benchmark. halt: why no more samples come."""
    checks = []
    for name, watched in policy.benchmarks.items():
        check = _check(policy, name, watched, runs, baselines.get(name), deviation_of(policy, name, history))
        if halt is not None and check.state in ("undecided", "missing"):
            check = msgspec.structs.replace(check, state=halt.state, why=halt.why)
        if name in baselines and check.state in ("fail", "undecided", "truncated"):
            changed = _changed(name, baselines[name], runs[0])
            check = msgspec.structs.replace(check, why="; ".join([check.why, *changed]))
        for waiver in policy.waivers:
            if waiver.benchmark == name and check.state == "fail":
                if waiver.until >= today:
                    why = f"{check.why}; waived until {waiver.until}: {visible(waiver.reason, 200)}"
                    check = msgspec.structs.replace(check, state="waived", why=why)
                else:
                    check = msgspec.structs.replace(check, why=f"{check.why}; its waiver ended on {waiver.until}")
        checks.append(check)
    states = {check.state for check in checks if check.tier == "critical"}
    verdict: Literal["pass", "fail", "undecided"] = "fail" if "fail" in states else "undecided"
    if states <= {"pass", "waived"}:
        verdict = "pass"
    return Gated(
        gate=policy.name, run=label, verdict=verdict, exit_code=EXIT_CODES[verdict], checks=tuple(checks)
    )  # fmt: skip


def _check(
    policy: Policy, name: str, watched: Watched, runs: Sequence[ScoredRun], baseline: ScoredRun | None,
    deviations: gate.Deviations,
) -> Checked:  # fmt: skip
    """The decision on one benchmark by the samples alone."""
    compared = () if baseline is None else tuple(item for item in baseline.benchmarks[name].questions if item.n)
    held, missing = _held(name, runs, compared)
    parts = [rounds_of(of) for of in held]
    blank = Checked(
        benchmark=name, tier=watched.tier, state="missing", accuracy=None, reference=(watched.floor or 0.0) / 100,
        loss=watched.loss / 100, rounds=0, max_rounds=watched.max_samples, variance=0.0, deviation=deviations.sd,
        known_runs=deviations.known, why=missing or "no round of it is complete",
    )  # fmt: skip
    if missing or not parts or not all(part.size for part in parts):
        return blank
    reference = reference_of(watched, parts[0].shape[1], compared)
    rounds = np.concatenate(parts)
    # Runs that exist beside each other are one look; one run is looked at as while it was sampled.
    most = watched.max_samples if len(parts) == 1 else 1
    of = rules_of(policy, watched, most)
    state: State = "undecided"
    n = 0
    for look, planned in enumerate(of.looks):
        due = planned if len(parts) == 1 else len(rounds)
        if due > len(rounds):
            break
        n = due
        fails, passes = gate.look_at(
            rounds[:n].sum(axis=0).astype(float), n, look, of, reference, watched.loss / 100, deviations,
            runs=float(len(parts)),
        )  # fmt: skip
        if fails or passes:
            state = "fail" if fails else "pass"
            break
    n = n or len(rounds)
    correct, counts = rounds[:n].sum(axis=0).astype(float), np.full(rounds.shape[1], float(n))
    accuracy = float(correct.mean() / n)
    variance = float(sampling_variance_of_mean(correct, counts)) if n > 1 else accuracy * (1 - accuracy) / len(correct)
    check = msgspec.structs.replace(
        blank, state=state, accuracy=accuracy, reference=reference.value, rounds=n, variance=variance,
        why=_in_words(watched, accuracy, reference, n, variance, deviations, state),
    )  # fmt: skip
    return _cut(check, watched, held, compared)


def _changed(benchmark: str, baseline: ScoredRun, run: ScoredRun) -> list[str]:
    """The settings and the model's facts that differ from the baseline's, which may be why the score does."""
    servers = baseline.manifest.provenance, run.manifest.provenance
    first, second = baseline.benchmarks[benchmark].record, run.benchmarks[benchmark].record
    changed = setting_differences(first, second, servers) + server_differences(*servers)
    return [
        f"differs from the baseline: {difference_in_words(each)}" for each in changed if each.field not in OF_A_GATE
    ]


def _held(
    name: str, runs: Sequence[ScoredRun], compared: Sequence[QuestionTally]
) -> tuple[list[list[QuestionTally]], str]:
    """The questions of each run, in one order, and why they cannot be decided on; empty if they can.

    compared: the questions of the baseline, which every run must have, and which alone count; empty with a floor.
    """
    held: list[list[QuestionTally]] = []
    keys = {(item.question.question_id, item.question.row_digest) for item in compared}
    for run in runs:
        items = run.benchmarks[name].questions if name in run.benchmarks else ()
        rows = {(item.question.question_id, item.question.row_digest): item for item in items}
        keys = keys or set(rows)
        if absent := len(keys - rows.keys()):
            of = "its baseline" if compared else "the other runs"
            return [], f"{visible(run.label, 80)} lacks {absent} of {count_noun(len(keys), 'question')} of {of}"
        if not compared and set(rows) != keys:
            return [], f"{visible(run.label, 80)} holds other questions than the other runs"
        held.append([rows[key] for key in sorted(keys)])
    return held, ""


def _cut(
    check: Checked, watched: Watched, held: Sequence[Sequence[QuestionTally]], baseline: Sequence[QuestionTally]
) -> Checked:
    """The check, "truncated" if more replies were cut by max_tokens than is sound, beyond chance (3 errors)."""
    total = sum(item.n for of in held for item in of)
    cut, theirs = sum(n_cut(of) or 0 for of in held), sum(item.n for item in baseline)
    usual = USUAL_CUT if not theirs else 100 * (n_cut(baseline) or 0) / theirs
    allowed = (usual if watched.truncated is None else watched.truncated) / 100
    error = math.sqrt((allowed * (1 - allowed) + 1 / total) * (1 / total + (1 / theirs if theirs else 0)))
    if cut / total <= allowed + 3 * error:
        return check
    why = (
        f"max_tokens cut {in_percent(cut / total)}% of the replies, {in_percent(allowed)}% is sound: raise it, or look "
        f"at what makes the replies longer ({check.why})"
    )
    return msgspec.structs.replace(check, state="truncated", why=why)


def _in_words(
    watched: Watched, accuracy: float, reference: gate.Reference, rounds: int, variance: float,
    deviations: gate.Deviations, state: State,
) -> str:  # fmt: skip
    """The decision in one line for a person."""
    what = "the floor" if watched.floor is not None else "the baseline"
    line = (
        f"{in_percent(accuracy)} beside {what} of {in_percent(reference.value)} "
        f"({in_points(accuracy - reference.value)} points) after {count_noun(rounds, 'round')}"
    )
    if state == "undecided":
        own = f"runs differ by {in_percent(deviations.sd)} points and sampling by {in_percent(math.sqrt(variance))}"
        line += (
            f": a loss of {watched.loss:g} points is neither seen nor excluded ({own}); give more max_samples, a larger"
        )
        line += " loss, or several runs"
    return line
