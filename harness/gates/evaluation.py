"""The decision of a gate: a function of the policy, the scored runs, the earlier decisions, and the date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import takewhile
from typing import Literal, TypeVar

import msgspec

from harness.core import codec
from harness.core.errors import as_yaml
from harness.core.number_text import in_percent, in_points
from harness.core.sanitize import visible
from harness.deciding.nightly_history import Learned, Prior, contradicting_deviation, learn
from harness.gates.decision import DECIDED, EXIT_CODES, PASSING, Checked, Gated, Halt, State, past_metrics, past_nights
from harness.gates.metrics import OF_A_GATE, MetricCheck, check_lines
from harness.gates.policy import Policy, SampleLine
from harness.gates.samples import check_samples
from harness.generation.dispatch.canary import BEGINNING
from harness.reports.inputs import ScoredRun
from harness.runs.recorded_settings import describe_difference, server_differences, setting_differences

DIGEST_CHARS = 12
"""Number of characters of each digest in a key."""

MAX_CHANGED = 4
"""Largest number of differences from the baseline that a decision lists."""


def learn_from(policy: Policy, nights: Sequence[Checked]) -> Learned:
    """What these earlier runs (`past_nights`) show, given the policy's deviation of runs."""
    return learn(
        tuple(night.accuracy or 0.0 for night in nights),
        tuple(night.variance for night in nights),
        Prior(policy.run_deviation / 100),
        tuple(DECIDED[night.state] for night in nights),
    )


def reference_key(line: SampleLine, baseline: ScoredRun | None) -> str:
    """The digest of what a line is compared with; the first part of `Checked.key`."""
    watched, made = line.watched, baseline and baseline.manifest.created
    share = [line.share] if line.share else []
    return codec.digest([watched.floor, watched.floor_samples, watched.floor_unit, made, *share])[:DIGEST_CHARS]


def _key(line: SampleLine, runs: Sequence[ScoredRun], baseline: ScoredRun | None) -> str:
    """`Checked.key`; empty for several runs, because their mean is not a run."""
    name = line.benchmark
    if len(runs) != 1 or name not in runs[0].benchmarks:
        return ""
    manifest, identity = runs[0].manifest, runs[0].benchmarks[name].record.identity
    hosts = [facts.host for facts in manifest.provenance.servers.values()]
    servers = {f"{host.get('engine')} {host.get('version')}" for host in hosts}
    settings = {field: value for field, value in identity.items() if field not in OF_A_GATE}
    state = codec.digest([manifest.model, settings, sorted(servers)])
    return f"{reference_key(line, baseline)}-{state[:DIGEST_CHARS]}"


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
    label. halt: why sampling ended.

    n_questions: number of questions by benchmark, for a gate's own run, which may have asked only some of them so far.
    """
    former = [*takewhile(lambda entry: entry.run != label, history)]
    checks = []
    for line in policy.lines:
        name = line.benchmark
        present = [run.benchmarks[name] for run in runs if name in run.benchmarks]
        baseline = baselines.get(line.label)
        compared = baseline.benchmarks[name].questions if baseline else ()
        key = _key(line, runs, baseline)
        nights = past_nights(name, key, former)
        known, runs_of = learn_from(policy, nights), present if len(present) == len(runs) else ()
        check = check_samples(policy, line, runs_of, compared, known, n_questions.get(name))
        # Each of these steps may replace the state decided by the samples alone, or add to its explanation.
        check = _among_nights(msgspec.structs.replace(check, key=key), policy, nights)
        check = _with_halt(check, policy, runs, halt)
        check = _with_changes(check, baseline, runs)
        checks.append(_with_waivers(check, policy, today))
    # Testing metrics before sampling ends would add a chance of a false alarm. Existing runs get no more samples.
    sampled = runs if halt is None or not any(check.is_open for check in checks) else ()
    metrics = tuple(_with_waivers(each, policy, today) for each in check_lines(policy, sampled, past_metrics(former)))
    if not sampled:
        metrics = tuple(_with_reason(each, f"without samples; {each.why}") for each in metrics)
    lines: tuple[Checked | MetricCheck, ...] = (*checks, *metrics)
    critical = {line.state for line in lines if line.is_critical}
    verdict: Literal["pass", "fail", "undecided"] = "undecided"
    if "fail" in critical:
        verdict = "fail"
    elif critical <= PASSING:
        verdict = "pass"
    return Gated(
        gate=policy.name,
        run=label,
        verdict=verdict,
        exit_code=EXIT_CODES[verdict],
        checks=tuple(checks),
        metrics=metrics,
        sampled=runs[0].manifest.created if runs else "",
    )


def _among_nights(check: Checked, policy: Policy, nights: Sequence[Checked]) -> Checked:
    """The check, with remarks if it is an outlier among its earlier runs, and if these differ more than specified."""
    if check.state in DECIDED and nights and learn_from(policy, [*nights, check]).odd[-1]:
        apart = in_points((check.accuracy or 0.0) - (nights[-1].accuracy or 0.0))
        check = _with_reason(
            check, f"{check.why}; outlier: {apart} points from the previous run, not in the accepted state"
        )
        check = msgspec.structs.replace(check, odd=True)
    held = [(night.accuracy or 0.0, night.variance) for night in nights if night.state in ("pass", "undecided")]
    shown = contradicting_deviation(held, policy.run_deviation / 100)
    if shown is None:
        return check
    more = f"points, which is more than run_deviation: {policy.run_deviation:g}"
    return _with_reason(check, f"{check.why}; runs differ by about {in_percent(shown)} {more}")


def _with_halt(check: Checked, policy: Policy, runs: Sequence[ScoredRun], halt: Halt | None) -> Checked:
    """The check, with the reason why sampling ended as its state if samples are missing for another one."""
    stopped = [run.history.stopped for run in runs if run.history.stopped.startswith(BEGINNING)]
    if stopped and policy.run.get("canary", True) and check.state != "pass":
        return _with_reason(check, f"{as_yaml(stopped[0])} (set options under `run` in the policy)", "canary")
    if halt is not None and check.state in ("undecided", "missing") and not check.closed:
        return _with_reason(check, halt[1], halt[0])
    return check


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
            check = _with_reason(check, why, state)
    return check


def _with_reason(check: C, why: str, state: State | None = None) -> C:
    """The check with this reason, and with this state if there is one."""
    return msgspec.structs.replace(check, why=why, state=state or check.state)


def _with_changes(check: Checked, baseline: ScoredRun | None, runs: Sequence[ScoredRun]) -> Checked:
    """The check; unless it passed, with the settings and facts about the model that differ from the baseline's and may
    explain a different score.
    """
    if baseline is None or check.state not in ("fail", "undecided", "truncated"):
        return check
    servers = baseline.manifest.provenance, runs[0].manifest.provenance
    first, second = (run.benchmarks[check.benchmark].record for run in (baseline, runs[0]))
    changed = setting_differences(first, second, servers) + server_differences(*servers)
    may_matter = [each for each in changed if each.field.partition(".")[0] not in OF_A_GATE]
    said = [f"differs from the baseline: {describe_difference(each)}" for each in may_matter[:MAX_CHANGED]]
    return _with_reason(check, "; ".join([check.why, *said]))
