"""Experiments on the error of an accuracy: repeated runs, and runs of several sizes.

The repeats are drawn from one scored run, without replacement, or are sampled anew. A sampled repeat is a run folder of
its own with seeds of its own; the same call again asks only for what is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from harness.asking.options import RepeatsRules, RunOptions, SizesRules
from harness.asking.options.verbs import RepeatedOptions
from harness.asking.prepare import Prepared, default_folder, prepare
from harness.asking.session import end_if_signalled, generate
from harness.asking.watching import Watcher
from harness.core.codec import digest
from harness.core.errors import StoreError, UsageError, option
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.presets.grading import GradingOptions
from harness.reports.scored import read_runs
from harness.runs import RunFolder
from harness.scoring import QuestionTally
from harness.scoring.pipeline import score_run
from harness.scoring.resampling import (
    Counts,
    Repeats,
    SampleSizes,
    real_repeats,
    real_sizes,
    resampled_repeats,
    resampled_sizes,
)
from harness.verbs.compare import counted_questions

DRAWS = 200
"""Default number of repeats of each size that `samples` draws from one run."""

DRAWN = ("samples", "seed", "out")
"""The options of a run that are allowed when repeats are drawn from a stored run."""

Source = str | PathLike[str] | Sequence[str] | None
"""A run folder, or benchmarks by name, as the command `run` takes them."""

Result = TypeVar("Result", Repeats, SampleSizes)

OnRepeat = Callable[[int, int, RunFolder], None]
"""A callback before each sampled repeat: receives its number, the number of repeats, and its run folder."""


@dataclass(frozen=True, kw_only=True)
class SampledRepeats:
    """The sampled repeats of an experiment, stored below the folder `out`.

    folders: number of samples a question (None: the benchmarks' own) → the run folders of the repeats with this number,
    in order. owed: a sentence that names the folders with missing samples; empty if none are missing. Until they are
    there, the errors cannot be estimated.
    """

    out: Path
    folders: dict[int | None, tuple[RunFolder, ...]]
    owed: str = ""


@dataclass(frozen=True, kw_only=True)
class Experimented(Generic[Result]):
    """The results of an experiment, one per benchmark. out: the folder of its pictures, and of sampled repeats.

    owed: a sentence that names the run folders with missing samples, empty if none are missing; until they are there,
    `results` is empty.
    """

    results: Sequence[Result]
    out: Path
    owed: str = ""


def repeats(
    source: Source,
    rules: RepeatsRules,
    given: Mapping[str, Any],
    watcher: Watcher,
    on_repeat: OnRepeat = lambda _number, _of, _folder: None,
) -> Experimented[Repeats]:
    """Measure how far the accuracies of repeated runs differ, and compare it with what their sampling error predicts.

    source: a scored run folder, from whose samples the repeats are drawn; with `rules.real`, benchmarks as a run takes
    them. given: options of a run, by name; a drawing accepts only those in `DRAWN`. Raises `UsageError`, `StoreError`,
    and with `rules.real` what a run raises.
    """
    if rules.real:
        sampled = sample_repeats(_to_sample(source, given), rules.runs, (), watcher, on_repeat)
        results = [] if sampled.owed else repeats_between(sampled.folders[None])
        return Experimented(results=results, out=sampled.out, owed=sampled.owed)
    folder, options = _to_draw(source, given)
    return Experimented(
        results=repeats_of(folder, rules.runs, options.samples, options.seed or 0), out=options.out or folder.path
    )


def sizes(
    source: Source,
    rules: SizesRules,
    given: Mapping[str, Any],
    watcher: Watcher,
    on_repeat: OnRepeat = lambda _number, _of, _folder: None,
) -> Experimented[SampleSizes]:
    """Show how the sampling error falls as each question gets more samples. Parameters and errors as in `repeats`."""
    if rules.real:
        sampled = sample_repeats(_to_sample(source, given), rules.runs or 1, rules.n, watcher, on_repeat)
        results = [] if sampled.owed else sizes_between(list(sampled.folders.values()))
        return Experimented(results=results, out=sampled.out, owed=sampled.owed)
    folder, options = _to_draw(source, given)
    if options.samples is not None:
        raise UsageError(f"leave out {option('samples')}: {option('n')} says how many are drawn", field="samples")
    results = sizes_of(folder, rules.n, rules.runs or DRAWS, options.seed or 0)
    return Experimented(results=results, out=options.out or folder.path)


def _to_sample(source: Source, given: Mapping[str, Any]) -> RepeatedOptions:
    """The options for sampling repeats of the benchmarks that `source` names. Raises `UsageError`."""
    benchmarks = os.fspath(source) if isinstance(source, PathLike) else source
    return RepeatedOptions.of(benchmarks=benchmarks, **given)


def _to_draw(source: Source, given: Mapping[str, Any]) -> tuple[RunFolder, RepeatedOptions]:
    """The stored run to draw repeats from, and the options for drawing.

    Raises `UsageError` for options that need new samples, and if `source` is no folder.
    """
    stated = RepeatedOptions.without_unset(given)
    if others := [name for name in stated if name not in DRAWN]:
        raise UsageError(f"it needs {option('real', True)}: a stored run is not sampled again", field=others[0])
    if not source or not isinstance(source, str | PathLike):
        raise UsageError(f"give a run folder; or a benchmark together with {option('real')}")
    if not Path(source).is_dir():
        raise UsageError(
            f"{visible(str(source), 120)} is no run folder: make one with `harness run` and `harness score`; or give "
            f"{option('real')} to sample repeats of a benchmark"
        )
    return RunFolder.open(Path(source)), RepeatedOptions.of(**stated)


def repeats_of(folder: RunFolder, runs: int, n: int | None = None, seed: int = 0) -> list[Repeats]:
    """For each benchmark of one scored run, draw `runs` repeats of n samples of each question, and return their spread.

    n: None: the largest n for which the repeats share no sample; if there are fewer stored samples than repeats, half
    of the stored samples. seed: of the drawing. Raises `UsageError`, and `StoreError` if the run is not scored.
    """
    results = []
    for name, correct, counts, warnings in _stored_counts(folder):
        stored = int(counts.min())
        size = n or stored // runs or stored // 2
        _check_size(name, size, stored, field="samples")
        if size == stored:
            raise UsageError(
                f"{visible(name, 80)} has {count_noun(stored, 'sample')} of each question, and every repeat would "
                f"hold all of them: take fewer, or sample repeats with {option('real')}",
                field="samples",
                value=size,
            )
        result = resampled_repeats(name, correct, counts, size, runs, seed)
        results.append(msgspec.structs.replace(result, warnings=warnings))
    return results


def sizes_of(folder: RunFolder, ns: Sequence[int], runs: int = DRAWS, seed: int = 0) -> list[SampleSizes]:
    """For each benchmark of one scored run, the sampling error at each number of samples, from repeats drawn from it.

    ns: numbers of samples a question. runs: repeats of each number. seed: of the drawing. Raises `UsageError`, and
    `StoreError` if the run is not scored.
    """
    results = []
    for name, correct, counts, warnings in _stored_counts(folder):
        for n in ns:
            _check_size(name, n, int(counts.min()), field="n")
        result = resampled_sizes(name, correct, counts, tuple(sorted(set(ns))), runs, seed)
        results.append(msgspec.structs.replace(result, warnings=warnings))
    return results


def sample_repeats(
    options: RunOptions,
    runs: int,
    ns: Sequence[int] = (),
    watcher: Watcher | None = None,
    on_repeat: OnRepeat = lambda _number, _of, _folder: None,
) -> SampledRepeats:
    """Sample and score `runs` runs for each number of samples in `ns`, each with its own seeds, below `options.out`.

    An empty `ns` means the benchmarks' own number of samples; `options.out` None means below `experiments/`. One server
    serves all runs. Stored samples count, so the same call asks only for what is missing. Raises what `prepare` and
    `generate` raise.
    """
    out = options.out or default_folder(Path("experiments"), options)
    numbered = options.samples is not None or any(name.rpartition(":")[2].isdigit() for name in options.benchmarks)
    if ns and numbered:
        raise UsageError(f"{option('n')} says how many samples each question gets: leave out other numbers")
    for name in ("target_error", "budget_tokens", "budget_usd"):
        if getattr(options, name) is not None:
            raise UsageError(
                "all repeats need the same number of samples, and this option would end some early: leave it out",
                field=name,
            )
    sizes: list[int | None] = [*sorted(set(ns))] or [None]
    paths = {n: [_folder(out, n, number) for number in range(1, runs + 1)] for n in sizes}
    every = [(n, number, path) for n in sizes for number, path in enumerate(paths[n], 1)]
    owed = []
    # Prepared once for all repeats: to look at a server or to start one may take longer than a repeat.
    with prepare(options.but(out=every[0][2]), watcher) as prepared:
        for count, (n, number, path) in enumerate(every, 1):
            on_repeat(count, len(every), RunFolder(path))
            outcome = _run(prepared, path, n, _seed(options.seed, n, number), watcher)
            if not outcome:
                owed.append(path.name if n is None else f"{path.parent.name}/{path.name}")
    folders = {n: tuple(map(RunFolder, paths[n])) for n in sizes}
    if owed:
        listed = ", ".join(owed[:5]) + (f" and {len(owed) - 5} more" if len(owed) > 5 else "")
        return SampledRepeats(
            out=out,
            folders=folders,
            owed=f"samples are missing in {listed}; give the same command again to request them",
        )
    for repeated in folders.values():
        for folder in repeated:
            score_run(folder, GradingOptions(), (watcher or Watcher()).graded)
    return SampledRepeats(out=out, folders=folders)


def repeats_between(folders: Sequence[RunFolder]) -> list[Repeats]:
    """The spread of two or more runs with the same settings, for each benchmark. Raises `StoreError` if a run is not
    scored.
    """
    names = tuple(folder.path.name for folder in folders)
    return [real_repeats(name, names, correct, counts) for name, correct, counts in _tallies(folders)]


def sizes_between(cells: Sequence[Sequence[RunFolder]]) -> list[SampleSizes]:
    """The spread of runs of several sizes, for each benchmark. cells: for each size, the runs of this size.

    Raises `StoreError` if a run is not scored.
    """
    by_name: dict[str, list[tuple[Counts, Counts]]] = {}
    for folders in cells:
        for name, correct, counts in _tallies(folders):
            by_name.setdefault(name, []).append((correct, counts))
    return [real_sizes(name, tuple(tallies)) for name, tallies in by_name.items()]


# ---- sampling


def _run(prepared: Prepared, path: Path, n: int | None, seed: int | None, watcher: Watcher | None) -> bool:
    """Sample one repeat; return whether it is complete."""
    benchmarks = prepared.settings.benchmarks
    if n is not None:
        benchmarks = {name: replace(benchmark, samples=n) for name, benchmark in benchmarks.items()}
    settings = replace(prepared.settings, out=path, seed=seed, benchmarks=benchmarks)
    outcome = generate(replace(prepared, settings=settings), settings, watcher)
    end_if_signalled(outcome, replace(prepared, settings=settings), watcher)
    return outcome.complete


def _folder(out: Path, n: int | None, number: int) -> Path:
    """The run folder of a repeat: `run-01`, or `n8/run-01` for a size of 8 samples."""
    return (out if n is None else out / f"n{n}") / f"run-{number:02}"


def _seed(base: int | None, n: int | None, number: int) -> int | None:
    """The run seed of one repeat, from which the seeds of its samples come; None if the experiment has no seed."""
    return None if base is None else int(digest(["repeat", base, n, number])[:7], 16) + 1


# ---- counting


def _stored_counts(folder: RunFolder) -> Iterator[tuple[str, Counts, Counts, tuple[str, ...]]]:
    """For each benchmark of a run: (name, right samples of each question, samples of each question, warnings).

    Raises `UsageError` if a question has fewer than two samples.
    """
    (run,) = read_runs([folder])
    for name, benchmark in run.benchmarks.items():
        correct, counts = _counts(counted_questions(run, benchmark))
        if counts.min() < 2:
            raise UsageError(
                f"{visible(name, 80)} of {visible(run.label, 80)} has a question with {counts.min()} sample"
                f"{'' if counts.min() == 1 else 's'}, which shows no spread: sample at least two of each"
            )
        assert benchmark.score is not None
        missing = benchmark.score.n_missing
        warnings = (f"the run is unfinished: {missing} of its samples are missing",) if missing else ()
        yield name, correct, counts, warnings


def _tallies(folders: Sequence[RunFolder]) -> Iterator[tuple[str, Counts, Counts]]:
    """For each benchmark of runs with the same settings: (name, numbers of right samples, numbers of samples).

    The numbers have the shape (runs, questions). Raises `StoreError` if the runs have different questions.
    """
    runs = read_runs(folders)
    for name in runs[0].benchmarks:
        rows: list[tuple[Counts, Counts]] = []
        question_ids: list[list[str]] = []
        for run in runs:
            items = counted_questions(run, run.benchmarks[name])
            question_ids.append([item.question.question_id for item in items])
            rows.append(_counts(items))
        if any(ids != question_ids[0] for ids in question_ids):
            raise StoreError(
                f"the runs have different questions of {visible(name, 80)}; repeats need the same ones in each run."
            )
        yield name, np.array([correct for correct, _ in rows]), np.array([counts for _, counts in rows])


def _counts(items: Sequence[QuestionTally]) -> tuple[Counts, Counts]:
    """(right samples, samples) of each question."""
    return np.array([item.correct for item in items]), np.array([item.n for item in items])


def _check_size(name: str, n: int, stored: int, *, field: str) -> None:
    """Raise `UsageError` if `n` samples cannot be drawn from the `stored` ones. field: the option that set `n`."""
    if not 1 <= n <= stored:
        raise UsageError(
            f"{visible(name, 80)} has {count_noun(stored, 'sample')} of each question, and {n} cannot be drawn from "
            f"them: take 1 to {stored}, or ask for new samples with {option('real')}",
            field=field,
            value=n,
        )
