"""Carries out a gate: samples in rounds until it is decided, or decides on runs that exist; writes what it decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from harness.asking.prepare import prepare, questions_of
from harness.asking.session import sample_to
from harness.asking.watching import Watcher
from harness.core import codec
from harness.core.errors import StoppedByRule, UsageError
from harness.core.files import read_named, read_record, write_atomically
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.reports.scored import ScoredRun, read_runs
from harness.runs.layout import GATE_PLAN
from harness.scoring import gate
from harness.scoring.race import planned_looks
from harness.verbs.gate.decide import Gated, Halt, decide, deviation_of, reference_of, rules_of
from harness.verbs.gate.policy import Policy
from harness.verbs.graded import GradedRounds
from harness.verbs.outputs import open_scored

MAX_HISTORY_BYTES = 64 * 1024 * 1024
"""Largest history.jsonl that is read, in bytes."""

MAX_PLAN_BYTES = 1024 * 1024
"""Largest plan of a gate that is read, in bytes."""

HISTORY = "history.jsonl"
"""Name of the file of former decisions in the policy's folder `history`."""

OnLook = Callable[[Gated], None]
"""Receives the state of the gate after each look."""


def _today() -> date:
    """The day by which waivers end, in UTC."""
    return datetime.now(UTC).date()


def read_history(policy: Policy, label: str) -> list[Gated]:
    """The former decisions, up to that on the runs of this label. Raises `UsageError` for a damaged file."""
    return [] if policy.history is None else list(takewhile(lambda entry: entry.run != label, _entries(policy.history)))


def _entries(history: Path) -> list[Gated]:
    """All former decisions. Raises `UsageError` for a damaged file."""
    path, entries = history / HISTORY, []
    lines = read_named(path, MAX_HISTORY_BYTES).splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            entries.append(codec.decode(line, Gated))
        except codec.DecodeError as error:
            raise UsageError(f"{path}:{number} is no decision of a gate: delete the line") from error
    return entries


def read_baselines(policy: Policy) -> dict[str, ScoredRun]:
    """The baseline of each benchmark that has one. Raises `UsageError` if it lacks the benchmark, or its score."""
    baselines = {}
    for name, watched in policy.benchmarks.items():
        if watched.baseline is not None:
            (run,) = read_runs([open_scored(watched.baseline)])
            if name not in run.benchmarks or not any(item.n for item in run.benchmarks[name].questions):
                held = ", ".join(visible(each, 40) for each in run.benchmarks)
                raise UsageError(f"the baseline {watched.baseline} holds no scored samples of {name}: it holds {held}")
            baselines[name] = run
    return baselines


def gate_runs(policy: Policy, sources: Sequence[Path]) -> Gated:
    """Decide on scored runs that exist. Raises `StoreError` if one is damaged or not scored."""
    if len({source.resolve() for source in sources}) < len(sources):
        raise UsageError("a run is named twice, and would count as two")
    runs = read_runs([open_scored(source) for source in sources])
    label = " ".join(sorted(map(_named, sources, runs)))
    return decide(policy, label, runs, read_baselines(policy), read_history(policy, label), _today())


def run_gate(policy: Policy, out: Path, watcher: Watcher | None, on_look: OnLook = lambda _gated: None) -> Gated:
    """Sample the gate's benchmarks look by look into one run folder until each is decided or has used its samples.

    The same call continues. Raises what `prepare` and `generate` raise, but for a rule that stops the sampling.
    """
    baselines, today = read_baselines(policy), _today()
    with prepare(policy.options(out), watcher) as prepared:
        _refuse_other_names(policy, [each.name for each in prepared.sets])
        graded = GradedRounds(prepared.folder, prepared.sets)

        def now(halt: Halt | None = None) -> Gated:
            runs, label = [], ""
            if prepared.folder.manifest.exists():
                _settle(policy, prepared.folder.path)
                for name in policy.benchmarks:
                    graded.of(name)
                runs = read_runs([prepared.folder])
                label = _named(out, runs[0])
            return decide(policy, label, runs, baselines, read_history(policy, label), today, halt)

        first, before = True, [-1]
        while True:
            gated = now()
            on_look(gated)
            targets, rounds = _next_rounds(policy, gated), [check.rounds for check in gated.checks]
            # Samples that make no round more, such as of questions that the baseline lacks, never will.
            if not targets or (not first and rounds == before):
                return gated
            before = rounds
            try:
                outcome = sample_to(prepared, targets, watcher, first=first)
                if n_missing := outcome.n_owed or outcome.n_missing:
                    words = (
                        f"{count_noun(n_missing, 'sample')} could not be had: see the warnings, and repeat the command"
                    )
                    return now(Halt("missing", words))
            except StoppedByRule as stop:
                return now(Halt("stopped", str(stop)))
            first = False


def _named(place: Path, run: ScoredRun) -> str:
    """The name of a run in the history: a folder that is made anew is another run."""
    return f"{place.resolve()} {run.manifest.created}"


def _refuse_other_names(policy: Policy, names: Sequence[str]) -> None:
    """Raise `UsageError` if a benchmark of the policy has another name of its own: an alias, or a card's file."""
    for own, written in zip(names, policy.benchmarks, strict=False):
        if own not in policy.benchmarks:
            raise UsageError(f"the benchmark {visible(written, 200)} is called {own}: write that name in the policy")


def _settle(policy: Policy, out: Path) -> None:
    """Store what the looks are planned by, at the first start. Raises `UsageError` if it has changed since.

    Looks that are planned anew after some were taken would break the promised rate of false alarms.
    """
    planned = policy.model_dump(mode="json", include={"benchmarks", "false_alarm", "power", "run_deviation"})
    remedy = "Put an intact copy back, or name another folder for the gate."
    first = read_record(out / GATE_PLAN, dict[str, Any], MAX_PLAN_BYTES, what="the plan of a gate", remedy=remedy)
    if first is None:
        write_atomically(out / GATE_PLAN, codec.pretty(planned))
    elif first != planned:
        raise UsageError(f"{out}: its gate began by another policy, and looks are planned once: name another --out")


def _next_rounds(policy: Policy, gated: Gated) -> dict[str, int]:
    """The samples of each question that the next look needs, of all benchmarks; empty if none is open."""
    targets, more = {}, False
    for check in gated.checks:
        goes_on = check.state in ("undecided", "missing") and check.rounds < check.max_rounds
        looks = planned_looks(1, policy.benchmarks[check.benchmark].max_samples)
        targets[check.benchmark] = next(n for n in looks if n > check.rounds) if goes_on else max(1, check.rounds)
        more |= goes_on
    return targets if more else {}


# ---- before it starts


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What to expect of one benchmark. tokens: of one sample, as in its baseline; None if unknown."""

    benchmark: str
    n_questions: int
    max_rounds: int
    deviation: gate.Deviations
    forecast: gate.Forecast
    tokens: float | None


def expected(policy: Policy) -> list[Expected]:
    """Simulate this very policy for each of its benchmarks; no request is sent. Raises `UsageError`."""
    baselines, history = read_baselines(policy), read_history(policy, "")
    result = []
    sets = questions_of(policy.options(None)).sets
    _refuse_other_names(policy, [each.name for each in sets])
    for question_set in sets:
        name, n_questions = question_set.name, len(question_set.questions)
        watched = policy.benchmarks[name]
        items = baselines[name].benchmarks[name].questions if name in baselines else ()
        share, tokens = 1.0, None
        if items:
            score = baselines[name].benchmarks[name].score
            tokens = None if score is None else score.mean_completion_tokens
            correct, counts = np.array([(item.correct, item.n) for item in items if item.n], dtype=float).T
            share = float(gate.share_left(correct, counts))
        deviations = deviation_of(policy, name, history)
        rules = rules_of(policy, watched, watched.max_samples)
        seen = gate.forecast(
            n_questions, rules, reference_of(watched, n_questions, items), watched.loss / 100, policy.power / 100,
            deviations, min(share, 0.8), repeats=1000,
        )  # fmt: skip
        result.append(
            Expected(
                benchmark=name,
                n_questions=n_questions,
                max_rounds=watched.max_samples,
                deviation=deviations,
                forecast=seen,
                tokens=tokens,
            )
        )
    return result


# ---- what it writes


def write(policy: Policy, gated: Gated, folder: Path) -> None:
    """Write gate.json, gate.md and gate.xml (JUnit) to `folder`, and one line to the policy's history."""
    write_atomically(folder / "gate.json", codec.pretty(gated))
    write_atomically(folder / "gate.md", markdown(gated).encode())
    write_atomically(folder / "gate.xml", junit(gated).encode())
    if policy.history is not None:
        policy.history.mkdir(parents=True, exist_ok=True)
        entries = _entries(policy.history)
        # A gate that is decided again, such as after a kill, keeps its line.
        number = next((i for i, former in enumerate(entries) if former.run == gated.run), len(entries))
        entries[number : number + 1] = [gated]
        write_atomically(policy.history / HISTORY, b"".join(codec.encode(each) + b"\n" for each in entries))


def markdown(gated: Gated) -> str:
    """The decision as a table, for the step summary of a CI."""
    rows = []
    for check in gated.checks:
        why = visible(check.why, 400).replace("|", r"\|")
        rows.append(f"| {visible(check.benchmark, 80)} | {check.tier} | **{check.state}** | {why} |")
    head = ["| benchmark | tier | state | why |", "| --- | --- | --- | --- |"]
    return "\n".join([f"## Gate {visible(gated.gate, 80)}: {gated.verdict}", "", *head, *rows, ""])


def junit(gated: Gated) -> str:
    """The decision as JUnit XML: a critical failure is a failure, what is not known an error, the rest passes."""
    cases = []
    for check in gated.checks:
        kind = ""
        if check.tier == "critical" and check.state not in ("pass", "waived"):
            kind = "failure" if check.state == "fail" else "error"
        why = quoteattr(f"{check.state}: {visible(check.why, 400)}")
        inner = f"<{kind} message={why}/>" if kind else f"<system-out>{why[1:-1]}</system-out>"
        named = f"classname={quoteattr(visible(gated.gate, 80))} name={quoteattr(visible(check.benchmark, 80))}"
        cases.append(f"  <testcase {named}>{inner}</testcase>\n")
    counts = {kind: sum(f"<{kind} " in case for case in cases) for kind in ("failure", "error")}
    head = f'name={quoteattr(visible(gated.gate, 80))} tests="{len(cases)}" failures="{counts["failure"]}"'
    whole = f'<testsuite {head} errors="{counts["error"]}">\n{"".join(cases)}</testsuite>\n'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}'
