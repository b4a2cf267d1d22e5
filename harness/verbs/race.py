"""A race: candidates sample the same questions in whole rounds until it is clear how they stand to the first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.asking.options import RaceRules, RunOptions
from harness.asking.prepare import Prepared, prepare
from harness.asking.session import generate
from harness.asking.watching import Watcher
from harness.core.errors import UsageError
from harness.core.inert import safe_name, visible
from harness.core.wording import option
from harness.generation.outcome import Outcome
from harness.scoring.race import RaceState, judge, totals_of
from harness.verbs.graded import GradedRounds


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One entrant. name: also that of its run folder. options: all that its run is to ask."""

    name: str
    options: RunOptions


@dataclass(frozen=True, kw_only=True)
class Raced:
    """How a race ended. standings: by candidate, the baseline left out; folders: by candidate; n_rounds: by candidate.

    owed: why a candidate's samples are owed, where they are: the race goes on from there when it is run again.
    """

    baseline: str
    standings: Mapping[str, RaceState]
    folders: Mapping[str, Path]
    n_rounds: Mapping[str, int]
    owed: str = ""

    @property
    def decided(self) -> bool:
        """Every candidate's standing to the baseline is clear."""
        return not self.owed and all(state.verdict != "undecided" for state in self.standings.values())


def candidates(entrants: Sequence[tuple[str, Mapping[str, Any]]], common: Mapping[str, Any]) -> list[Candidate]:
    """The candidates of a race. entrants: each one's name and the options that are its own; common: the options that
    hold for all, with `out`, the folder of the run folders (None: below races/, by the benchmark's name).

    Raises `UsageError` that names the candidate whose option is wrong.
    """
    shared = {name: value for name, value in common.items() if name != "out"}
    benchmarks = shared.get("benchmarks") or "data"
    name = safe_name(benchmarks if isinstance(benchmarks, str) else "-".join(benchmarks))
    out = Path(common.get("out") or Path("races") / name)
    return [_candidate(name, own, shared, out) for name, own in entrants]


def _candidate(name: str, own: Mapping[str, Any], common: Mapping[str, Any], out: Path) -> Candidate:
    try:
        return Candidate(name=name, options=RunOptions.of(**{**common, **own, "out": out / safe_name(name)}))
    except UsageError as error:
        if error.field in own or error.field is None:
            raise UsageError(f"candidate {visible(name, 80)}: {error.sentence}") from error
        raise


OnLook = Callable[[Mapping[str, RaceState]], None]
"""A callback that receives the standings after each look."""


def race(
    candidates: Sequence[Candidate],
    rules: RaceRules | None = None,
    watcher: Watcher | None = None,
    on_look: OnLook = lambda _standings: None,
) -> Raced:
    """Sample whole rounds of all candidates until every one is better or worse than the first, or within the margin of
    it, or has used its samples. A candidate that is decided samples no more.

    Raises `UsageError`, and what `sample` raises.
    """
    rules = rules or RaceRules()
    if len(candidates) < 2:
        raise UsageError("name two candidates at least: the first is the one that the others are measured against")
    names = [candidate.name for candidate in candidates]
    if len(set(names)) < len(names):
        raise UsageError(f"two candidates have one name: {visible(', '.join(names), 200)}")
    with contextlib.ExitStack() as stack:
        entered = {candidate.name: stack.enter_context(prepare(candidate.options, watcher)) for candidate in candidates}
        return _run(entered, rules, watcher, on_look)


@dataclass(frozen=True, kw_only=True)
class Played:
    """standings, rounds: by candidate; short: who could not complete its rounds, which ended the race."""

    standings: Mapping[str, RaceState]
    rounds: Mapping[str, NDArray[np.bool_]]
    short: str = ""


SampleTo = Callable[[str, int], NDArray[np.bool_]]
"""Has a candidate sample until it has so many rounds. (rounds, questions): whether right, of its complete rounds."""


def play(
    rounds: Mapping[str, NDArray[np.bool_]],
    sample_to: SampleTo,
    *,
    most: int,
    margin: float,
    step: int,
    on_look: OnLook,
) -> Played:
    """The race itself: who samples how much, and when it is over. No clock, no I/O, so that it can be simulated.

    rounds: what each candidate has already, the baseline first; most: rounds that a candidate may use.
    """
    baseline, *others = rounds
    have = dict(rounds)
    short = ""
    while True:
        standings = {name: _standing(have[name], have[baseline], margin, len(others)) for name in others}
        on_look(standings)
        running = [name for name in others if standings[name].verdict == "undecided" and standings[name].rounds < most]
        if short or not running:
            return Played(standings=standings, rounds=have, short=short)
        target = min(most, min(standings[name].rounds for name in running) + step)
        for name in (baseline, *running):
            have[name] = sample_to(name, max(target, len(have[name])))
            if len(have[name]) < target:
                short = name


def _run(entered: Mapping[str, Prepared], rules: RaceRules, watcher: Watcher | None, on_look: OnLook) -> Raced:
    benchmark = _one_benchmark(entered)
    graded = {name: GradedRounds(prepared.folder, prepared.sets) for name, prepared in entered.items()}
    n_owed: dict[str, int] = {}

    def sample_to(name: str, n: int) -> NDArray[np.bool_]:
        outcome = _sampled(entered[name], benchmark, n, watcher)
        n_owed[name] = outcome.n_owed or outcome.n_missing
        return graded[name].of(benchmark)

    played = play(
        {name: graded[name].of(benchmark) for name in entered},
        sample_to,
        most=min(prepared.settings.benchmarks[benchmark].samples for prepared in entered.values()),
        margin=rules.margin / 100,
        step=rules.step,
        on_look=on_look,
    )
    return Raced(
        baseline=next(iter(entered)),
        standings=played.standings,
        folders={name: prepared.folder.path for name, prepared in entered.items()},
        n_rounds={name: len(rounds) for name, rounds in played.rounds.items()},
        owed=f"{visible(played.short, 80)} owes {n_owed[played.short]} samples" if played.short else "",
    )


def _standing(
    candidate: NDArray[np.bool_], baseline: NDArray[np.bool_], margin: float, n_comparisons: int
) -> RaceState:
    common = min(len(candidate), len(baseline))
    return judge(totals_of(candidate[:common], baseline[:common]), margin, n_comparisons)


def _sampled(prepared: Prepared, benchmark: str, n: int, watcher: Watcher | None) -> Outcome:
    planned = prepared.settings.benchmarks
    few = {**planned, benchmark: replace(planned[benchmark], samples=n)}
    return generate(prepared, replace(prepared.settings, benchmarks=few), watcher)


def _one_benchmark(entered: Mapping[str, Prepared]) -> str:
    """The benchmark, whose questions must be the same for all."""
    for name, prepared in entered.items():
        if len(prepared.sets) != 1:
            raise UsageError(f"a race is run on one benchmark, and {visible(name, 80)} has {len(prepared.sets)}")
        if prepared.options.target_error is not None:
            raise UsageError(f"{option('target_error')} ends a run by itself; a race ends when it is decided")
    sets = {name: prepared.sets[0] for name, prepared in entered.items()}
    first = next(iter(sets.values()))
    rows = [(question.question_id, question.row_digest) for question in first.questions]
    for name, questions in sets.items():
        if [(question.question_id, question.row_digest) for question in questions.questions] != rows:
            raise UsageError(f"{visible(name, 80)} is asked other questions than the first candidate")
    return first.name
