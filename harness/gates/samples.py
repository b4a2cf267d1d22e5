"""Decides one benchmark of a gate by its samples, look by look, and says what to change if it stays undecided."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core import codec
from harness.core.number_text import count_noun, count_points, in_percent, in_points
from harness.core.records import CallSign, Grade
from harness.deciding import gate
from harness.deciding.nightly_history import Learned
from harness.gates.decision import Checked, State
from harness.gates.policy import Policy, SampleLine, Watched
from harness.reports.inputs import ScoredBenchmark
from harness.scoring.measures import n_cut
from harness.scoring.stats import Array, effective_samples
from harness.scoring.tally import CORRECT, UNDECIDED, QuestionTally

USUAL_CUT = 5.0
"""Allowed percentage of replies truncated by max_tokens for a benchmark with a floor, unless its policy sets one."""


COUNTED = 128
"""A bit, in addition to those of a tally: the sample counts toward the share."""


def _signs(grade: Grade) -> Collection[CallSign]:
    """The signs of a reply's calls; empty if it has none."""
    return grade.call_signs or ()


SHARE_OF: dict[str, Callable[[Grade], bool | None]] = {
    "schema": lambda grade: "fits" in _signs(grade) if "call" in _signs(grade) else None,
    "calls": lambda grade: "call" in _signs(grade) if grade.call_signs is not msgspec.UNSET else None,
    "parsed_calls": lambda grade: "unread_call" not in _signs(grade) if grade.call_signs is not msgspec.UNSET else None,
    "answered": lambda grade: grade.verdict != "no_answer",
}
"""For each share, whether a reply counts as good; None: it does not count. schema: of the replies with calls, those
whose calls all match their schemas. parsed_calls: of the replies to questions about calls, those without call markup
in the text.
"""


def bits_of(item: QuestionTally, share: str) -> NDArray[np.uint8]:
    """Bits for each sample: `CORRECT` if it is good, `UNDECIDED` if it may be, `COUNTED` if it counts. share: the share
    of replies that is judged; "" for the accuracy.
    """
    if not share:
        return np.asarray(item.facts["signs"] & (CORRECT | UNDECIDED) | COUNTED, dtype=np.uint8)
    goods = [SHARE_OF[share](grade) for grade in item.grades]
    return np.array([0 if good is None else COUNTED | CORRECT * good for good in goods], dtype=np.uint8)


class Look(NamedTuple):
    """What the runs show at one look. number: of the look. planned: its rounds according to the plan. rounds: number of
    samples per question. right, undecided, counts: (Q,), independent samples; (1,) for a share, which is a ratio of
    sums over the questions. most: number of independent samples after all rounds. n: number of samples that count.
    copies: whether some samples are duplicates.
    """

    number: int
    planned: float
    rounds: float
    right: Array
    undecided: Array
    counts: Array
    most: float
    n: int
    copies: bool

    @property
    def bounds(self) -> tuple[float, float]:
        """The accuracy if all undecided answers were wrong, and if all were correct."""
        low, high = self.right, self.right + self.undecided
        return float((low / self.counts).mean()), float((high / self.counts).mean())

    @property
    def total(self) -> float:
        """The number of independent samples."""
        return float(effective_samples(self.counts))


class GateSamples(NamedTuple):
    """The samples of one benchmark. share: as in `SampleLine`. by_run: for each run, the questions that count, by id.
    baseline: the questions of the baseline by id, the only ones that count; empty with a floor. ids: ids in the order
    in which early looks include them. n_questions: number of questions of the benchmark.
    """

    share: str

    by_run: Sequence[Mapping[str, QuestionTally]]
    baseline: Mapping[str, QuestionTally]
    ids: Sequence[str]
    n_questions: int

    @classmethod
    def of(
        cls,
        share: str,
        runs: Sequence[ScoredBenchmark],
        baseline: Mapping[str, QuestionTally],
        n_questions: int | None,
    ) -> GateSamples:
        """The samples of these runs; arguments as in `check_samples`."""
        by_run = [
            {item.question.question_id: item for item in run.questions if _is_same(item, baseline)} for run in runs
        ]
        ids = in_order(baseline or (by_run[0] if by_run else ()), runs[0].record.identity.get("seed") if runs else 0)
        return cls(share, by_run, baseline, ids, len(baseline) or n_questions or len(ids))

    def verdicts(self, n: int) -> list[Verdicts]:
        """The complete rounds of each run on the first `n` questions."""
        ids = self.ids[:n]
        return [Verdicts.of([rows[each] for each in ids if each in rows], n, self.share) for rows in self.by_run]

    def looks(self, planned: Sequence[float], max_samples: int) -> Iterator[Look]:
        """The planned looks, in rounds, up to the first one that lacks samples."""
        verdicts_of = cache(self.verdicts)
        for number, look in enumerate(planned):
            n, n_rounds = math.ceil(min(look, 1) * self.n_questions), math.ceil(look)
            if len(self.ids) < n or any(len(each.right) < n_rounds for each in verdicts_of(n)):
                return
            yield _look(number, look, verdicts_of(n), max_samples, pooled=bool(self.share))


def _look(number: int, planned: float, runs: Sequence[Verdicts], max_samples: int, *, pooled: bool) -> Look:
    """A look at the verdicts of these runs. For several runs, all rounds count; for one run, the rounds of the look."""
    rounds_of = [math.ceil(planned) if len(runs) == 1 else len(each.right) for each in runs]
    parts = [each.first_rounds(n) for each, n in zip(runs, rounds_of, strict=True)]
    right, undecided, having, counts = (np.sum(arrays, axis=0) for arrays in zip(*parts, strict=True))
    rounds: float = sum(rounds_of)
    all_rounds, all_counts = rounds, counts
    if len(runs) == 1:
        rounds, all_rounds, all_counts = planned, max_samples, 1 + (max_samples - 1) * runs[0].fresh
    most = float(effective_samples(all_counts))
    copies = most < 0.99 * len(counts) * all_rounds
    n = sum(each.n(n_rounds) for each, n_rounds in zip(runs, rounds_of, strict=True))
    if pooled:
        most *= having.sum() / counts.sum()
        right, undecided, counts = (each.sum(keepdims=True) for each in (right, undecided, having))
    return Look(number, planned, rounds, right, undecided, counts, most, n, copies)


def check_samples(
    policy: Policy,
    line: SampleLine,
    runs: Sequence[ScoredBenchmark],
    compared: Sequence[QuestionTally],
    nights: Learned,
    n_questions: int | None,
) -> Checked:
    """The decision on one accuracy or share based on the samples alone.

    runs: the benchmark in each run; empty if a run does not have it. compared: the questions of the baseline; empty
    with a floor. n_questions: as in `decide`; None for existing runs.
    """
    baseline = {item.question.question_id: item for item in compared if item.n}
    watched, samples = line.watched, GateSamples.of(line.share, runs, baseline, n_questions)
    lacking = _missing_questions(runs, samples, n_questions)
    check = _missing(line, nights, lacking or "the first planned look lacks samples" * bool(runs))
    if not runs or (lacking and not baseline):
        return check
    # Several existing runs form one look; a single run has the same looks as while it was being sampled.
    whole = reference_of(line, samples.n_questions, [*baseline.values()])
    rules = rules_of(policy, watched, samples.n_questions, whole, nights, len(runs))
    for look in samples.looks(rules.looks, watched.max_samples):
        if not look.n:
            check = msgspec.structs.replace(check, rounds=look.rounds, why="no reply counts toward this share")
            continue
        check = _decide_look(check, line, samples, rules, nights, look)
        if check.state != "undecided" or check.closed:
            break
    sampled = [item for rows in samples.by_run for item in rows.values() if item.n]
    return check if line.share or check.state == "missing" else _cut(check, watched, sampled, baseline.values())


def _decide_look(
    check: Checked, line: SampleLine, samples: GateSamples, rules: gate.Rules, nights: Learned, look: Look
) -> Checked:
    """The check after this look."""
    watched, runs, low = line.watched, float(len(samples.by_run)), look.bounds[0]
    best, reference, share = _references(line, samples, look, nights)
    loss = watched.loss_of(reference.value)
    tests = gate.LookTests(rules, best, reference, share, loss, nights.sd, runs)
    verdict = tests.judge(look.right, look.undecided, look.counts, look.most, look.number)
    state: State = "fail" if verdict.failed else "pass" if verdict.passed else "undecided"
    single = low * (1 - low) * share
    why, limits = _describe_accuracy(watched, look, reference), tests.limits(look.total, verdict.number)
    if state == "pass" and low < reference.value:
        lost = count_points(in_percent(loss))
        why += f"; passes from {in_percent(limits[1])}, where the policy's loss of {lost} is ruled out"
    elif verdict.turns:
        why += ": the undecided answers could change the verdict: let a judge decide, or read them with `harness show`"
    elif state == "undecided":
        more = ", and more rounds are unlikely to help" * bool(verdict.closed and verdict.number == look.number)
        why += f": a loss of {count_points(in_percent(loss))} is neither detected nor ruled out{more}; "
        why += Errors(single, look.most, reference, nights.sd, watched.floor is not None, runs).sentence
    if not samples.baseline and look.planned <= 1 and runs == 1:
        # With a floor, one sample per question does not show f, and a part of the questions adds an error.
        single *= 1 - look.planned / 2
    return msgspec.structs.replace(
        check,
        state=state,
        accuracy=low,
        reference=float(reference.value),
        loss=float(loss),
        rounds=look.rounds,
        variance=float(single / look.total),
        bounds=look.bounds if look.undecided.any() else None,
        copies=look.copies,
        closed=bool(verdict.closed),
        limits=limits,
        why=why,
    )


def _missing(line: SampleLine, nights: Learned, why: str) -> Checked:
    """The check before its first look."""
    watched, floor = line.watched, (line.watched.floor or 0.0) / 100
    return Checked(
        benchmark=line.benchmark,
        share=line.share,
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
    line: SampleLine, samples: GateSamples, look: Look, nights: Learned
) -> tuple[gate.Reference, gate.Reference, float]:
    """Return the reference for the low end, where all undecided answers of the run are wrong and those of a baseline
    right; the reference for the high end, where it is the reverse; and f (`gate.share_of`).
    """
    n = math.ceil(min(look.planned, 1) * samples.n_questions)
    baseline = [samples.baseline[each] for each in samples.ids[:n] if samples.baseline]
    reference = reference_of(line, samples.n_questions, baseline)
    best = reference_of(line, samples.n_questions, baseline, undecided_right=True)
    share = float(gate.share_of(look.right, look.counts, reference))
    if look.planned >= 1 and best.value == reference.value:
        best = reference = gate.correct_reference(reference, share, line.watched.loss_of(reference.value), nights)
    return best, reference, share


class Verdicts(NamedTuple):
    """The complete rounds of one run. right, undecided, having: (rounds, Q); the last: whether the sample counts.
    worth: (Q,), the share of independent samples. fresh: (Q,), the share of independent samples after the first.
    """

    right: NDArray[np.bool_]
    undecided: NDArray[np.bool_]
    having: NDArray[np.bool_]
    worth: Array
    fresh: Array

    @classmethod
    def of(cls, items: Sequence[QuestionTally], n: int, share: str) -> Verdicts:
        """The rounds that all `n` questions have; none if some questions are absent."""
        # For each question, the samples in order up to the first missing one.
        verdicts = [bits_of(item, share)[item.facts["index"] == np.arange(item.n)] for item in items]
        n_rounds = min(map(len, verdicts)) if len(items) == n else 0
        signs = np.array([each[:n_rounds] for each in verdicts], dtype=np.uint8).reshape(len(items), n_rounds).T
        independent = [item.independent / max(1, item.n) for item in items]
        fresh = [(max(1, item.independent) - 1) / (item.n - 1) if item.n > 1 else 1.0 for item in items]
        bits = (signs & CORRECT > 0, signs & UNDECIDED > 0, signs & COUNTED > 0)
        return cls(*bits, np.array(independent), np.array(fresh))

    def n(self, n_rounds: int) -> int:
        """Number of samples that count in the first rounds."""
        return int(self.having[:n_rounds].sum())

    def first_rounds(self, n_rounds: int) -> tuple[Array, Array, Array, Array]:
        """Number of right, undecided, counting and all independent samples per question in the first rounds; see
        `counted`.
        """
        counts = np.maximum(1.0, np.floor(n_rounds * self.worth + 1e-9))
        right, undecided, having = (
            each[:n_rounds].sum(axis=0) * counts / n_rounds for each in (self.right, self.undecided, self.having)
        )
        return right, undecided, having, counts


def _is_same(item: QuestionTally, baseline: Mapping[str, QuestionTally]) -> bool:
    """Whether the baseline's question with this id, if any, is the same. A long run does not keep all digests."""
    first, second = item.question.row_digest, baseline.get(item.question.question_id, item).question.row_digest
    return len({first, second} - {""}) < 2


def _missing_questions(runs: Sequence[ScoredBenchmark], samples: GateSamples, n_questions: int | None) -> str:
    """Why these runs do not have the questions required for the comparison; empty if they do. Arguments as in
    `check_samples`.
    """
    if total := len(samples.baseline):
        absent = max((len(samples.baseline.keys() - rows.keys()) for rows in samples.by_run), default=0)
        return f"{absent} of {count_noun(total, 'question')} in its baseline have no samples" if absent else ""
    if n_questions is None and any(run.record.plan.question_ids is not None for run in runs):
        return "a floor applies to all questions, but only some were sampled: use a baseline with the same questions"
    differ = any(rows.keys() != samples.by_run[0].keys() for rows in samples.by_run)
    return "the runs have different questions" if differ else ""


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
    held = gate.correct_reference(reference, gate.share_planned(reference), loss, nights)
    error = gate.Planned.of(n_questions, watched.max_samples, held, loss, nights.sd, runs)
    looks = gate.look_sizes(n_questions, watched.max_samples) if runs == 1 else (1.0,)
    return gate.rules(looks, error, policy.false_alarm / 100 / critical, 1 - policy.power / 100)


def counted(items: Sequence[QuestionTally], share: str = "") -> tuple[Array, Array, Array]:
    """Number of right, undecided and independent samples per question, (Q,), or in total for a share, (1,); copies
    count as one sample, as in a score.
    """
    n, counts = np.array([(item.n, max(1, item.independent)) for item in items], dtype=float).T
    if share:
        bits = [bits_of(item, share) for item in items]
        good, having = (
            np.array([(each & bit > 0).sum() for each in bits]) @ (counts / n) for bit in (CORRECT, COUNTED)
        )
        return np.array([good]), np.zeros(1), np.array([having])
    right, undecided = np.array([(item.right, item.undecided) for item in items], dtype=float).T
    return right * counts / n, undecided * counts / n, counts


def reference_of(
    line: SampleLine, n_questions: int, baseline: Sequence[QuestionTally], *, undecided_right: bool = False
) -> gate.Reference:
    """What the accuracy or share is compared with. baseline: the questions of its baseline; empty with a floor.

    n_questions: number of the benchmark's questions, each with `floor_samples` samples behind the floor; a baseline has
    its own counts. undecided_right: whether undecided answers of the baseline count as right instead of wrong.
    """
    watched = line.watched
    if watched.floor is None:
        right, undecided, counts = counted(baseline, line.share)
        right += undecided_right * undecided
        value, total = float((right / counts).mean()), float(effective_samples(counts))
        by_question = {} if line.share else {"correct": right, "counts": counts}
        return gate.Reference(value, total, runs=1.0, **by_question)
    if watched.floor_samples is None:
        return gate.Reference(watched.floor / 100)
    rounding = (watched.floor_unit / 100) ** 2 / 12
    return gate.Reference(watched.floor / 100, float(watched.floor_samples * n_questions), rounding, runs=1.0)


def in_order(question_ids: Iterable[str], seed: int | None) -> list[str]:
    """The questions in the order in which early looks include them. The order depends on the seed."""
    return sorted(question_ids, key=lambda question_id: codec.sample_seed(seed or 0, question_id, -1))


def _describe_accuracy(watched: Watched, look: Look, reference: gate.Reference) -> str:
    """The accuracy at a look, compared with the reference."""
    what, (low, high) = "the floor" if watched.floor is not None else "the baseline", look.bounds
    line = (
        f"{in_percent(low)} against {what} of {in_percent(reference.value)} "
        f"({in_points(low - reference.value)} points) after {count_noun(look.n, 'sample')}"
    )
    line += ", counting duplicates as one" * look.copies
    return line + f"; {in_percent(high)} if all undecided answers were correct" * (high > low)


# ---- what keeps a benchmark undecided


class Errors(NamedTuple):
    """What keeps a benchmark undecided. single: variance of one sample. total: largest number of independent samples.
    sd: deviation of runs. runs: number of runs of this build. has_floor: whether the reference is a floor.
    """

    single: float
    total: float
    reference: gate.Reference
    sd: float
    has_floor: bool
    runs: float = 1.0

    @property
    def sentence(self) -> str:
        """The largest error, and the others."""
        of_reference = self.single / self.reference.samples + self.reference.variance
        parts = {
            "runs differ": self.sd**2 * (1 / self.runs + self.reference.runs),
            "sampling": self.single / self.total,
            "the floor" if self.has_floor else "the baseline": of_reference,
        }
        largest = sorted(parts.items(), key=lambda part: -part[1])
        return "errors, in points: " + ", ".join(f"{name} {in_percent(math.sqrt(each))}" for name, each in largest)
