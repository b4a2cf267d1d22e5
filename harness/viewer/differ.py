"""Compares two runs of one benchmark: questions whose fraction changed, samples whose verdict changed, settings that
differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.nouns import count_noun, in_percent, in_points
from harness.core.records import Key, VerdictName
from harness.runs import setting_names
from harness.runs.offsets import sample_pairs
from harness.runs.recorded_settings import in_words, server_differences, setting_differences
from harness.scoring import PairedComparison, compare_runs
from harness.scoring.audit import words_on_mixture
from harness.scoring.comparison import MAX_NAMED_QUESTIONS
from harness.scoring.graded_by import grading_differences, grading_settings
from harness.scoring.moves import pairs
from harness.scoring.opened import OpenBenchmark, OpenRun
from harness.scoring.stats import Estimate, Interval
from harness.scoring.uncertainty import point_cells, why_narrower
from harness.scoring.undecided import BothUndecided
from harness.viewer.rows import excerpt, title

MAX_REPLIES = 200
"""Largest number of pairs of replies that are read to see whether two runs hold one set of replies; if there are more,
this many are drawn at random. The first unequal pair ends the search.
"""

_QUESTIONS = "dataset_digest"
"""Field of an identity that is a checksum of the questions: where it differs, the questions are named instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One question in both runs. title: as in `QuestionRow`. excerpt: the beginning of its text. first, second: the
    percentage of its graded samples that are correct, in words. change: in points, second minus first."""

    id: str
    title: str
    excerpt: str
    first: str
    second: str
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Number of samples that have the verdict `first` in the first run and `second` in the second, by equal keys."""

    first: VerdictName | None
    second: VerdictName | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The second run, B, beside the first, A.

    lines: sentences on the difference, first both accuracies; warnings: what restricts it. Verdicts by hand count.
    moved: the questions that are asked alike in both, in order. flips: changed verdicts over samples of equal index,
    the most frequent first. n_same: number of samples of equal index with equal verdicts. settings: (name, the first
    run's, the second's) of those that differ, all in words; those of the grading come last.
    """

    benchmark: str
    lines: Sequence[str]
    warnings: Sequence[str]
    moved: Sequence[Moved]
    flips: Sequence[Flip]
    n_same: int
    settings: Sequence[tuple[str, str, str]]


def compare(first_run: OpenRun, second_run: OpenRun, name: str, other: str = "") -> Compared:
    """Compare two runs on a benchmark. Raises `UsageError` if a run lacks it, `StoreError` if it cannot be read.

    other: the benchmark's name in the second run, if it has another there.
    """
    first, second = first_run.benchmark(name), second_run.benchmark(other or name)
    tallies = first.tallies(overridden=True), second.tallies(overridden=True)
    moved = [
        Moved(
            id=tally.question.question_id,
            title=title(first, first.questions[tally.question.question_id]),
            excerpt=excerpt(first, first.questions[tally.question.question_id]),
            first=f"{100 * tally.correct / tally.n:.0f} % of {tally.n}",
            second=f"{100 * match.correct / match.n:.0f} % of {match.n}",
            change=100 * (match.correct / match.n - tally.correct / tally.n),
        )
        for tally, match in pairs(*tallies)
    ]
    ids = [question.id for question in moved]
    same_replies = _same_replies(first, second, ids)
    warnings: list[str] = []
    try:
        paired = compare_runs(*tallies)
    except UsageError as error:
        ungraded = [name for name, run in (("first", first), ("second", second)) if run.n_stored and not run.grades]
        lines = [f"no sample of the {' and of the '.join(ungraded)} run is graded yet" if ungraded else str(error)]
    else:
        lines = [*_in_words(paired, same_replies), *_by_hand(first, second)]
        complete = not (same_replies or paired.unpaired or paired.n_missing)
        audits = [run.score.audited if run.score else None for run in (first, second)]
        undecided = "" if same_replies else _undecided_warning(first, second)
        warnings = [undecided, words_on_mixture(*audits, paired=complete)]
    flips, n_same = _flips(first, second, ids)
    return Compared(
        benchmark=first.name,
        lines=lines,
        warnings=[warning for warning in warnings if warning],
        moved=moved,
        flips=flips,
        n_same=n_same,
        settings=_settings(first_run, second_run, name, other or name),
    )


def _in_words(paired: PairedComparison, same_replies: str) -> Iterator[str]:
    """The difference of B minus A in sentences; `paired` is first minus second."""
    yield (
        f"A {in_percent(paired.first_accuracy)} %, B {in_percent(paired.second_accuracy)} % over "
        f"{count_noun(paired.n_questions, 'question')}; B better on {paired.worse}, worse on {paired.better}"
    )
    ours = paired.difference
    sampling, question = (ends and Interval(-ends.high, -ends.low) for ends in (ours.sampling, ours.question))
    theirs = Estimate(value=-ours.value, sampling=sampling, question=question, at_most=ours.at_most)
    value, same, new = point_cells(theirs)
    new = "unknown" if question is None else new
    intervals = f"95 %: {same} if both runs asked the same questions again, {new} on new questions of this kind"
    yield f"B − A = {value} points; {same_replies or intervals}"
    if not same_replies:
        yield from why_narrower(theirs)


def _by_hand(first: OpenBenchmark, second: OpenBenchmark) -> Iterator[str]:
    """A sentence on how many verdicts by hand count in each run, and on the accuracies without them; else nothing."""
    if first.overrides or second.overrides:
        graded = compare_runs(first.tallies(overridden=False), second.tallies(overridden=False))
        yield (
            f"verdicts by hand count: {len(first.overrides)} in A, {len(second.overrides)} in B; as graded "
            f"A {in_percent(graded.first_accuracy)} %, B {in_percent(graded.second_accuracy)} %, "
            f"B − A = {in_points(-graded.difference.value)} points"
        )


def _settings(first_run: OpenRun, second_run: OpenRun, name: str, other: str) -> list[tuple[str, str, str]]:
    """The settings that differ, in words."""
    first, second = first_run.benchmarks[name], second_run.benchmarks[other]
    servers = [run.manifest.provenance for run in (first_run, second_run) if run.manifest is not None]
    changed = setting_differences(first.record, second.record, servers)
    if len(servers) == 2:
        changed += server_differences(*servers)
    grading = [grading_settings(run.score) for run in (first, second) if run.score is not None]
    return [
        ("questions", *_questions_apart(first, second))
        if field == _QUESTIONS
        else (setting_names.in_words(field), in_words(old), in_words(new))
        for field, old, new in changed
    ] + (grading_differences(*grading) if len(grading) == 2 else [])


def _undecided_warning(first: OpenBenchmark, second: OpenBenchmark) -> str:
    """What undecided answers leave open of the difference, in a sentence; empty if there are none."""
    ours, theirs = (side.tallies(overridden=False) for side in (second, first))
    undecided = BothUndecided.of(ours, theirs, (second.overrides, first.overrides))
    return "" if undecided is None else undecided.warning("B", "A")


def _same_replies(first: OpenBenchmark, second: OpenBenchmark, ids: Sequence[str]) -> str:
    """A sentence, if the runs hold the same replies to these questions, word for word and with the same numbers, as
    after another grading of a copy; else an empty text.
    """
    sides = first.offsets, second.offsets
    # A run with further samples of these replies is another estimate, so its difference has an interval.
    if any(sides[0].of(name).keys() != sides[1].of(name).keys() for name in ids):
        return ""
    n_read = 0
    # Two models differ in the first pair or soon after, so this reads little unless the replies are the same.
    for pairs_of_question in sample_pairs(sides, ids, MAX_REPLIES):
        if any((ours.text, ours.reasoning) != (theirs.text, theirs.reasoning) for ours, theirs in pairs_of_question):
            return ""
        n_read += len(pairs_of_question)
    return (
        f"the replies are the same in both runs ({n_read:,} compared, word for word), so the difference is that of the "
        "grading: it has no interval for another run or for other questions"
        if n_read
        else ""
    )


def _questions_apart(first: OpenBenchmark, second: OpenBenchmark) -> tuple[str, str]:
    """The questions of two runs in words: how many each has, how many are the same, and which are not."""
    ours, theirs = first.questions, second.questions
    shared = [name for name in ours if name in theirs]
    changed = [name for name in shared if ours[name].row_digest != theirs[name].row_digest]
    ours_only = _list_of_ids("only here", [name for name in ours if name not in theirs])
    theirs_only = _list_of_ids("only here", [name for name in theirs if name not in ours])
    same = f"{len(theirs):,}, of which {len(shared) - len(changed):,} the same"
    return f"{len(ours):,}{ours_only}", f"{same}{theirs_only}{_list_of_ids('another text or answer', changed)}"


def _list_of_ids(what: str, ids: Sequence[str]) -> str:
    """`; only here: q1, q2 and 7 more`; empty without any id."""
    more = f" and {len(ids) - MAX_NAMED_QUESTIONS:,} more" if len(ids) > MAX_NAMED_QUESTIONS else ""
    return f"; {what}: {', '.join(visible(name, 40) for name in ids[:MAX_NAMED_QUESTIONS])}{more}" if ids else ""


def _flips(first: OpenBenchmark, second: OpenBenchmark, question_ids: Sequence[str]) -> tuple[list[Flip], int]:
    """Count the samples of two runs by their pair of verdicts if these differ, and the samples with equal verdicts.

    question_ids: ids of the questions that both runs have.
    """
    counts = Counter(
        tuple(run.verdict(Key(question_id, index)) for run in (first, second))
        for question_id in question_ids
        for index in first.grades.get(question_id, {}).keys() & second.grades.get(question_id, {}).keys()
    )
    flips = [Flip(first=ours, second=theirs, n=n) for (ours, theirs), n in counts.most_common() if ours != theirs]
    return flips, counts.total() - sum(flip.n for flip in flips)
