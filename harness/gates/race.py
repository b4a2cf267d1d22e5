"""Runs a race: candidates sample the same questions in whole rounds until each is known to be better or worse than the
baseline (the first candidate), or equal to it within a margin.

A *round* is one sample of each question by a candidate. A *look* is a comparison of all candidates with the baseline
after some rounds. The verdict *equal* is *withheld* (undecided again) if undecided answers may move the difference
beyond the margin.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from harness.commands import run
from harness.commands.rounds import GradedRounds
from harness.core.errors import StoreError, UsageError
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.core.records import SCHEMA_VERSION
from harness.deciding.looks import planned_looks
from harness.deciding.race import RaceStanding, confirm, judge_planned
from harness.gates.written import settle_plan
from harness.generation.outcome import Outcome
from harness.generation.run_progress import Account
from harness.options.deciding import RaceRules
from harness.options.run import RunOptions
from harness.preparing.prepare import Prepared, prepare
from harness.preparing.run_questions import default_folder
from harness.progress.watching import Watcher
from harness.runs.layout import RACE_PLAN, RunFolder, named_folder

if TYPE_CHECKING:
    from harness.commands.compare import Caution

_NUMBER = re.compile(r"\d[\d,.]*")
"""A number in a warning; without the numbers, the warning is the same at each look."""


@dataclass(frozen=True, kw_only=True)
class Raced:
    """How a race ended.

    standings: by candidate, without the baseline. folders, n_rounds: by candidate, with the baseline. missing: the
    candidate with missing samples and their number, if the race ended early and can be continued; otherwise empty.
    warnings: by candidate, caveats about its comparison with the baseline.
    """

    baseline: str
    standings: Mapping[str, RaceStanding]
    folders: Mapping[str, Path]
    n_rounds: Mapping[str, int]
    missing: str = ""
    warnings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def decided(self) -> bool:
        """Whether every candidate is known to be better or worse than the baseline, or equal within the margin."""
        return not self.missing and all(state.verdict != "undecided" for state in self.standings.values())


def candidates(entrants: Sequence[tuple[str, Mapping[str, Any]]], common: Mapping[str, Any]) -> dict[str, RunOptions]:
    """The candidates of a race: name (also the name of the run folder) → all options of the run.

    entrants: each candidate's name and its own options. common: the options of all candidates, with `out`, the parent
    of the run folders (None: a folder below races/, named after the benchmark). Raises `UsageError` that names the
    candidate with an invalid option or a duplicate name.
    """
    raced: dict[str, RunOptions] = {}
    for name, own in entrants:
        if name in raced:
            raise UsageError(f"two candidates have the same name: {visible(name, 80)}")
        try:
            options = RunOptions.of(**{**common, **own, "out": common.get("out")})
        except UsageError as error:
            if error.field in own or error.field is None:
                raise UsageError(f"candidate {visible(name, 80)}: {error.sentence}") from error
            raise
        folder = options.out or default_folder(Path("races"), options)
        raced[name] = options.but(out=named_folder(folder, name))
    return raced


OnLook = Callable[[Mapping[str, RaceStanding]], None]
"""A callback that receives the standings after each look (a comparison of all candidates with the baseline)."""


def race(
    candidates: Mapping[str, RunOptions],
    rules: RaceRules | None = None,
    watcher: Watcher | None = None,
    on_look: OnLook = lambda _standings: None,
) -> Raced:
    """Sample whole rounds of all candidates until each is known to be better or worse than the first candidate, or
    equal to it within the margin, or has used up its samples.

    Sampling ends for a candidate once it is decided. Raises `UsageError`, and whatever `prepare` and `generate` raise.
    """
    rules = rules or RaceRules()
    if len(candidates) < 2:
        raise UsageError("a race needs at least two candidates: the others are compared with the first")
    for name in ("budget_tokens", "budget_usd"):
        if len({getattr(options, name) for options in candidates.values()}) > 1:
            raise UsageError("a budget applies to all candidates together: set it for the whole race", field=name)
    for name, options in candidates.items():
        if options.budget_usd is not None and options.prices is None:
            raise UsageError(
                f"the candidate {visible(name, 80)} has no prices, but the budget applies to all candidates together; "
                "if its tokens are free, set prices=0,0",
                field="budget_usd",
            )
    with contextlib.ExitStack() as stack:
        account = Account()  # A budget covers all candidates together.
        prepared = {name: stack.enter_context(prepare(options, watcher)) for name, options in candidates.items()}
        entered = {name: replace(each, account=account) for name, each in prepared.items()}
        return _run(entered, rules, watcher, on_look)


SampleTo = Callable[[str, int], NDArray[np.bool_]]
"""A callback that samples a candidate until it has a given number of rounds.

Returns whether each sample of the complete rounds is right, shape (rounds, questions).
"""


def play(
    rounds: Mapping[str, NDArray[np.bool_]],
    sample_to: SampleTo,
    *,
    most: int,
    margin: float,
    step: int,
    on_look: OnLook,
) -> tuple[Mapping[str, RaceStanding], Mapping[str, NDArray[np.bool_]], str]:
    """Run a race: at each look, compare every candidate with the baseline, then let the baseline and the undecided
    candidates sample up to the next multiple of `step` rounds.

    The race ends when all candidates are decided or have sampled `most` rounds, or when a candidate cannot complete its
    rounds. Returns the standings without the baseline, the rounds of all candidates, and the candidate that could not
    complete its rounds ("" if there is none). This function itself has no clock and no I/O. rounds: candidate → whether
    each stored sample is right, shape (rounds, questions); the baseline first. most: rounds that a candidate may use.
    margin: the largest difference, a fraction, that counts as equal. `step` and `most` fix the looks.
    """
    baseline, *others = rounds
    rounds_of = dict(rounds)
    incomplete = ""
    tests, looks = planned_looks(step, most), (*range(step, most, step), most)

    def standing(name: str) -> RaceStanding:
        """The candidate's standing against the baseline over the rounds that both have."""
        n = min(len(rounds_of[name]), len(rounds_of[baseline]))
        ours, theirs = rounds_of[name][:n], rounds_of[baseline][:n]
        return confirm(judge_planned(ours, theirs, tests, margin, len(others)), ours, theirs, looks)

    while True:
        standings = {name: standing(name) for name in others}
        on_look(standings)
        running = [name for name in others if standings[name].verdict == "undecided" and standings[name].rounds < most]
        if incomplete or not running:
            return standings, rounds_of, incomplete
        # Continue to the next planned look, even if a budget stopped the race between two looks.
        target = min(most, (min(standings[name].rounds for name in running) // step + 1) * step)
        for name in (baseline, *running):
            rounds_of[name] = sample_to(name, max(target, len(rounds_of[name])))
            if len(rounds_of[name]) < target:
                incomplete = name


def _run(entered: Mapping[str, Prepared], rules: RaceRules, watcher: Watcher | None, on_look: OnLook) -> Raced:
    """Run the race of the prepared candidates in their shared folder.

    entered: the prepared runs by candidate, the baseline first. on_look: receives the standings after each look.
    """
    benchmark, baseline = _one_benchmark(entered), next(iter(entered))
    graded = {name: GradedRounds(prepared.folder, prepared.sets) for name, prepared in entered.items()}
    last: dict[str, Outcome] = {}  # of each candidate's latest session
    warned: set[tuple[str, str]] = set()  # (candidate, sentence without its numbers)

    def sample_to(name: str, n: int) -> NDArray[np.bool_]:
        """Sample and grade a candidate up to round `n`."""
        last[name] = run.sample_to(entered[name], {benchmark: n}, watcher, first=name not in last)
        # Each look is a session, and later sessions repeat the same warnings with larger numbers.
        for sentence in last[name].warnings:
            if watcher is not None and (without_numbers := (name, _NUMBER.sub("", sentence))) not in warned:
                warned.add(without_numbers)
                watcher.warn(f"{visible(name, 80)}: {sentence}")
        return graded[name].of(benchmark)

    stored = {name: graded[name].of(benchmark) for name in entered}
    most = math.floor(min(prepared.settings.benchmarks[benchmark].samples for prepared in entered.values()))
    plan = {"samples": most, "step": rules.step, "candidates": len(entered), "schema": SCHEMA_VERSION}
    path = entered[baseline].folder.path.parent / RACE_PLAN
    settle_plan(path, plan, "race", begun=any(len(rounds) for rounds in stored.values()))
    margin, step = rules.margin / 100, rules.step
    standings, rounds_of, incomplete = play(stored, sample_to, most=most, margin=margin, step=step, on_look=on_look)
    n_missing = (last[incomplete].n_missing or last[incomplete].n_impossible) if incomplete else 0
    cautious = _cautions({name: entered[name].folder for name, rounds in rounds_of.items() if len(rounds)})
    return Raced(
        baseline=baseline,
        standings={name: _withhold_equal(state, cautious.get(name), rules.margin) for name, state in standings.items()},
        warnings={name: caution.warnings for name, caution in cautious.items()},
        folders={name: prepared.folder.path for name, prepared in entered.items()},
        n_rounds={name: len(rounds) for name, rounds in rounds_of.items()},
        missing=f"{visible(incomplete, 80)} misses {count_noun(n_missing, 'sample')}" if incomplete else "",
    )


def _cautions(folders: Mapping[str, RunFolder]) -> dict[str, Caution]:
    """The caveats about the comparisons with the baseline, by candidate; empty for fewer than two runs.

    folders: of the candidates that have rounds, the baseline first. If the runs cannot be compared, for example because
    of a judge's grades, the caveat is the reason, since the race's verdicts must not be lost.
    """
    if len(folders) < 2:
        return {}
    from harness.commands.compare import Caution, cautions  # only the end of a race compares runs

    _, *others = folders
    try:
        by_folder = cautions([*folders.values()])
    except (StoreError, UsageError) as error:
        return dict.fromkeys(others, Caution((f"comparison warnings are unavailable: {error}",), None))
    return {name: by_folder[folders[name].path] for name in others if folders[name].path in by_folder}


def _withhold_equal(state: RaceStanding, caution: Caution | None, margin: float) -> RaceStanding:
    """Return the state, but undecided if undecided answers may move an equal candidate beyond the margin.

    margin: in points.
    """
    low, high = (caution and caution.undecided_range) or (0.0, 0.0)
    if state.verdict != "equal within the margin" or max(-low, high) <= margin:
        return state
    reach = f"anywhere from {low:+z.1f} to {high:+z.1f} points, beyond the margin"
    why = f"undecided answers could move the difference to {reach}"
    return structs.replace(state, verdict="undecided", withheld=why)


def _one_benchmark(entered: Mapping[str, Prepared]) -> str:
    """The benchmark of a race, whose questions must be the same for all candidates. Raises `UsageError`."""
    for name, prepared in entered.items():
        if len(prepared.sets) != 1:
            raise UsageError(f"expected one benchmark for a race, but {visible(name, 80)} has {len(prepared.sets)}")
        if prepared.options.target_error is not None:
            raise UsageError("remove target_error: a race ends as soon as it has a verdict")
    rows = {
        name: [(question.question_id, question.row_digest) for question in prepared.sets[0].questions]
        for name, prepared in entered.items()
    }
    first = next(iter(rows))
    for name, own in rows.items():
        if own != rows[first]:
            raise UsageError(f"the questions of {visible(name, 80)} differ from those of the first candidate")
    return entered[first].sets[0].name
