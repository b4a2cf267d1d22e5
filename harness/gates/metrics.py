"""A gate's lines on metrics: acceptance, speed, first token, reply length, cache hits, time limits.

The metrics of two runs on the same server differ by more than their samples suggest, even with the same questions. So a
line is decided by the spread between runs: estimated from the history if it has at least `MIN_RUNS` runs, otherwise a
default if there is evidence for one. Metrics are compared by their logarithms, in the direction that is worse. If the
history shows two levels that return, or a level that walks, and the verdict depends on which level is right, the line
is undecided and names the key that answers this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from harness.commands.imported_runs import open_scored
from harness.core import codec
from harness.core.time_limits import limits_in
from harness.deciding import nightly_history
from harness.deciding.nightly_history import LAWS, Learned, Prior, chance_beyond, tail_quantile
from harness.gates.policy import LIMITED, SHARES, MetricLine, MetricName, Policy
from harness.reports.inputs import ScoredRun, read_without_grades
from harness.scoring.stats import Z_95, Array

MIN_RUNS = 5
"""Minimum number of earlier runs for estimating the spread between runs."""

DEFAULTS = {"acceptance_length": 0.026, "tokens_per_second": 0.03}
"""Spread between runs until the history shows it, as a fraction: the larger one of two public histories of acceptance
with four runs each, and the largest of several histories of speed at 8 requests or more. There are no public histories
of the other metrics.
"""

SPAN = 1.0
"""Range of the logarithms of a metric."""

WALKING = 0.3
"""Chance of a walk from which on a line does not fail for a slow change."""

LEVEL_ERROR = 0.5
"""Variance of the error of a specified level, in variances of runs: as if it were the mean of two runs."""

WALKING_ALARMS = 0.03, 0.1
"""Fraction of healthy nights that fail if the level changes slowly, with the baseline `history` and others
(`make simulate WHAT=nights`).
"""

MAX_WAITS = 9
"""Largest number of consecutive nights on which a line may wait for similar runs."""

IN_FLIGHT = "requests in flight"
"""The label of a run's concurrency."""

MIN_IN_FLIGHT = 8
"""With fewer requests in flight than this, tokens per second differ between runs by up to 20%."""

HISTORY = "history"
"""The baseline of a line that is compared with the accepted level of its earlier runs."""

RISING = ("first_token_p99", "reply_length")
"""Metrics that are worse when they rise; the others are worse when they fall."""

OF_A_GATE = {"seed", "samples", "canary", "questions_made", "questions_digest"}
"""Settings chosen by a gate; a difference from the baseline's has no effect on scores."""


MetricState = Literal["pass", "fail", "undecided", "waived"]
"""The state of a metric; "waived": failed, but a waiver is in force."""


class MetricCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on one metric."""

    benchmark: str
    """Name of the benchmark."""
    metric: MetricName
    """Name of the metric."""
    tier: str
    """Tier: "critical", "supporting" or "advisory"; only critical metrics can fail the gate."""
    state: MetricState = "undecided"
    """The decision; "waived" means that the metric failed but a waiver is in force."""
    value: float | None = None
    """The metric's value; None if unknown."""
    reference: float | None = None
    """The floor, the ceiling, or the baseline's value; None if unknown."""
    findable: float | None = None
    """Smallest loss that can be detected with the required power, as a fraction; None if not yet known."""
    known_runs: int = 0
    """Number of earlier runs from which `findable` was estimated."""
    key: str = ""
    """Digest of the settings, engine, load and source. An earlier run is used only if its key matches."""
    why: str = ""
    """The reason, as one human-readable line."""
    waits: bool = False
    """Whether the history has too few runs for a decision, and the metric has not waited long for more; it then does
    not affect the verdict.
    """

    @property
    def label(self) -> str:
        """The metric's name in a table."""
        return f"{self.benchmark} {self.metric}"

    @property
    def is_critical(self) -> bool:
        """Whether its state counts for the verdict."""
        return self.tier == "critical" and not self.waits


PERCENT = {"unit": "percent"}
"""Part of the load of a proportion. Nights before it stored fractions, so they do not count."""


class Metric(NamedTuple):
    """A metric of one run. value: None if unknown, with the reason in `why`; otherwise `why` gives details. load: by
    label, what must be the same in runs that are compared. spread: spread of its samples, as a fraction of the value;
    None: unknown. is_zero: whether it is a proportion of 0, whose value is the middle of its interval.
    """

    value: float | None
    why: str
    load: Mapping[str, Any]
    spread: float | None = None
    is_zero: bool = False


def metric_of(run: ScoredRun, benchmark: str, name: MetricName, limits: str | None) -> Metric:
    """A run's metric, with what it depends on. limits: those of the benchmark, as text."""
    scored = run.benchmarks.get(benchmark)
    score = None if scored is None else scored.score
    if scored is None or score is None:
        return Metric(None, "the run has no score for it", {})
    engine, servers = score.engine, run.manifest.provenance.servers.values()
    identity = {each: value for each, value in scored.record.identity.items() if each not in (*OF_A_GATE, "model")}
    by_replies = name == "acceptance_length" and bool(score.speculation)
    load = {
        IN_FLIGHT: engine.concurrency if engine else None,
        "servers": len(servers),
        "settings": codec.digest(identity),
        "engine": sorted({str(facts.host.get("engine")) for facts in servers}),
        "source": by_replies,
    }
    if name in LIMITED:
        kept = score.goodput or None
        if kept is None or not limits or kept.limits[:3] != limits_in(limits)[:3]:
            return Metric(None, f"the run is not scored with these limits: harness score --limits {limits}", load)
        good, load = kept.within if name == "within" else kept.right, load | {"limits": limits, **PERCENT}
        return _proportion(good.value, good.low, good.high, load)
    plain = {
        "reply_length": (score.mean_completion_tokens, "no server reports token counts"),
        "first_token_p99": (score.speed and score.speed.first_token_p99, "no reply was streamed"),
        "tokens_per_second": (
            engine and engine.client_tokens_per_s,
            "no server has a metrics page, or the run was too short to reach full load",
        ),
    }
    if name in plain:
        value, why = plain[name]
        return Metric(value or None, "" if value else why, load)
    share = f"{engine.draft_share:.1%} of the steps used a draft" if engine and engine.draft_share else ""
    if by_replies and score.speculation:
        return Metric(score.speculation.length, share, load)
    if not engine:
        return Metric(None, "no server has a metrics page", load)
    value = engine.acceptance_length if name == "acceptance_length" else engine.cache_hit_rate
    if value is None or not engine.own:
        return Metric(None, "; ".join(engine.remarks) or "the servers' metrics pages do not report it", load)
    return Metric(value, share, load) if name == "acceptance_length" else Metric(100 * value, "", load | PERCENT)


def _proportion(value: float, low: float | None, high: float | None, load: Mapping[str, Any]) -> Metric:
    """The metric of a proportion with a 95% interval."""
    if low is None or high is None:
        return Metric(100 * value or None, "the run was too short to give it an interval", load)
    middle = value or (low + high) / 2
    why = "" if value else "the middle of its interval counts, since 0 has no logarithm"
    return Metric(100 * middle, why, load, (high - low) / 2 / Z_95 / middle, is_zero=not value)


def check_lines(policy: Policy, runs: Sequence[ScoredRun], history: Iterable[MetricCheck]) -> list[MetricCheck]:
    """The decisions on all lines; without runs, the loss that each line can detect. history: checks of earlier gates
    that count.

    Raises `StoreError` for a baseline that is not a scored run.
    """
    checks, former = [], list(history)
    for benchmark, watched in policy.benchmarks.items():
        for name, line in watched.metrics.items():
            if name in SHARES:
                continue
            metrics, baseline = [metric_of(run, benchmark, name, watched.limits) for run in runs], None
            if isinstance(line.baseline, str) and line.baseline != HISTORY:
                former_run = read_without_grades(open_scored(line.baseline))
                baseline = metric_of(former_run, benchmark, name, watched.limits)
            of_line = [each for each in former if (each.benchmark, each.metric) == (benchmark, name)]
            key = codec.digest([name, metrics[0].load])[:12] if metrics else of_line[-1].key if of_line else ""
            may_wait = len(of_line) < MAX_WAITS or any(each.findable for each in of_line[-MAX_WAITS:])
            check = MetricCheck(benchmark=benchmark, metric=name, tier=line.tier or watched.tier, key=key)
            alike = [each for each in of_line if each.key == key and (each.value or 0) > 0]
            check = _decided(check, policy, line, metrics, baseline, alike)
            checks.append(replace(check, waits=check.waits and may_wait))
    return checks


def line_outcome(
    beyond: Any, allowed: float | None, laws: tuple[Array, Array], chances: tuple[float, float]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether a line fails, and whether it passes.

    beyond: how much worse the logarithm is than the limit. allowed: the loss as a logarithm; None: no loss. laws:
    weights and variances of the deviation. chances: the chance of a false alarm, and the required power.
    """
    fails = (beyond > 0) & (chance_beyond(*laws, beyond) < chances[0])
    if allowed is None:
        return fails, np.asarray(beyond <= 0)
    room = allowed - beyond
    return fails, (room > 0) & (chance_beyond(*laws, room) <= 1 - chances[1])


def compare_night(
    known: Learned, value: Any, allowed: float, chances: tuple[float, float], n_runs: int = 1
) -> tuple[NDArray[np.bool_], ...]:
    """Whether a night fails; whether it passes; whether it does neither because this depends on which of two levels is
    right, or on whether the level may change slowly.

    value: mean logarithm of `n_runs` runs; higher is better. Others: as in `line_outcome`.
    """
    (failed, passed), (of_other, _), (of_walk, _) = (
        line_outcome(each.level - value, allowed, (each.weights, each.variances / n_runs + each.doubts), chances)
        for each in (known, known.other, known.walking)
    )
    two_levels = np.where(failed, ~of_other & (known.returns > 0.5), of_other & (known.returns > 1.5))
    walks = failed & ~of_walk & (known.walk > WALKING)
    decided = ~(two_levels | walks)
    return failed & decided, passed & decided, two_levels, walks


def _decided(
    check: MetricCheck,
    policy: Policy,
    line: MetricLine,
    metrics: Sequence[Metric],
    baseline: Metric | None,
    former: Sequence[MetricCheck],
) -> MetricCheck:
    """The check with its state. metrics: of the runs; empty before sampling. baseline: metric of a baseline run.
    former: checks of similar earlier runs.
    """
    chances = policy.false_alarm / 100 / policy.critical, policy.power / 100
    sign = -1 if line.ceiling or (line.baseline and check.metric in RISING) else 1  # +1: a fall is worse
    is_history, usual = line.baseline == HISTORY, _usual_spread(check.metric, metrics)
    learned = _learn_line(former, sign, usual, (metrics[0].spread if metrics else None) or 0.0)
    allowed = None if line.share is None else -sign * math.log1p(-sign * line.share)
    unknown = (len(former) < MIN_RUNS or not learned.known) and (is_history or usual is None)
    level = line.baseline if isinstance(line.baseline, float) else None
    spread = learned.variances * (1 / max(1, len(metrics)) + (baseline is not None) + LEVEL_ERROR * bool(level))
    laws = learned.weights, spread + (learned.doubts if is_history else 0.0)
    limit = line.floor or line.ceiling or level or (baseline and baseline.value)
    if is_history and not unknown:
        limit = math.exp(sign * learned.level)
    least = tail_quantile(*laws, chances[0]) + tail_quantile(*laws, 1 - chances[1])
    findable = None if unknown else -sign * math.expm1(-sign * least)
    finds = _describe_reach(findable, sign, len(former), learned, WALKING_ALARMS[not is_history])
    sides = [*metrics, *([baseline] if baseline else [])]
    # The mean of several runs is not a run, so the history does not learn from it.
    value = metrics[0].value if len(metrics) == 1 else None
    check = replace(check, reference=limit, findable=findable, known_runs=learned.known, value=value)
    if not metrics:
        return replace(check, why=finds)
    if other := {each for side in sides for each, value in side.load.items() if metrics[0].load.get(each) != value}:
        return replace(check, why=f"not compared because these differ: {', '.join(sorted(other))}")
    if limit is None or not all((side.value or 0) > 0 for side in sides):
        why = next((side.why for side in sides if not side.value), finds)
        waits = unknown and is_history and all(side.value for side in sides)
        return replace(check, why=f"unknown: {why}", waits=waits)
    mean = fmean(math.log(each.value) for each in metrics if each.value)
    failed, passed = line_outcome(sign * (math.log(limit) - mean), allowed, laws, chances)
    question = ""
    if is_history and allowed:
        failed, passed, *asks = compare_night(learned, sign * mean, allowed, chances, len(metrics))
        accepted, second, now = (math.exp(sign * of.level) for of in (learned, learned.other, learned.walking))
        if asks[0]:
            question = f"which of two levels is right? Set `baseline: {accepted:.4g}` or `baseline: {second:.4g}`"
        elif asks[1]:
            question = f"has the level slowly changed to {now:.4g}? Set a `floor`, or `baseline: {accepted:.4g}`"
        elif failed:
            question = f"if this level is right, set `baseline: {math.exp(mean):.4g}`"
    what = "a floor" if line.floor else "a ceiling" if line.ceiling else "a baseline"
    shown = 0.0 if all(each.is_zero for each in metrics) else math.exp(mean)
    why = "; ".join(filter(None, [f"{shown:.4g}, {what} of {limit:.4g}", question, metrics[0].why, finds]))
    state: MetricState = "undecided" if unknown else "fail" if failed else "pass" if passed else "undecided"
    return replace(check, state=state, why=why)


def _usual_spread(name: MetricName, metrics: Sequence[Metric]) -> float | None:
    """The spread between runs to assume before the history shows it; None if there is no evidence for one."""
    if name == "tokens_per_second" and metrics and (metrics[0].load.get(IN_FLIGHT) or 0) < MIN_IN_FLIGHT:
        return None
    return DEFAULTS.get(name, metrics[0].spread if metrics else None)


def _learn_line(former: Sequence[MetricCheck], sign: int, usual: float | None, own: float) -> Learned:
    """What the earlier runs show, with this usual spread until enough of them are accepted.

    own: sampling error of a proportion, as a fraction, for each of the runs; it is then part of all variances.
    """
    accepted = tuple(float(each.state not in ("fail", "waived")) for each in former)
    values = tuple(sign * math.log(each.value or 1) for each in former)
    # Until then, the usual spread of a proportion is its sampling error.
    is_learned = sum(accepted) >= MIN_RUNS
    sampling, prior = own**2 * is_learned, Prior(None if is_learned else usual, LAWS, 0.0, SPAN)
    learned = nightly_history.learn(values, (sampling,) * len(former), prior, accepted)
    wider, other, walking = (
        state and state._replace(variances=state.variances + sampling)
        for state in (learned, learned.other, learned.walking)
    )
    return wider._replace(other=other, walking=walking)


def _describe_reach(findable: float | None, sign: int, n_former: int, learned: Learned, walking_alarms: float) -> str:
    """What a line can detect. n_former: number of similar earlier runs. walking_alarms: as in `WALKING_ALARMS`."""
    if findable is None:
        return f"the spread between runs is unknown: estimating it requires {MIN_RUNS} similar runs (found {n_former})"
    by = "the usual spread, which is used until the history contains similar runs"
    by = f"{learned.known} similar earlier runs" if learned.known else by
    slow = f"; the level changes slowly, so about {walking_alarms:.0%} of healthy runs fail" * bool(
        learned.walk > WALKING
    )
    return f"a {'fall' if sign > 0 else 'rise'} of {findable:.1%} can be detected, based on {by}{slow}"
