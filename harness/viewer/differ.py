"""Compares two runs of one benchmark: questions whose fraction changed, samples whose verdict changed, settings that
differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.records import Key, VerdictName
from harness.runs import setting_names
from harness.runs.recorded_settings import in_words, server_differences, setting_differences
from harness.scoring import PairedComparison, compare_runs
from harness.scoring.audit import words_on_mixture
from harness.scoring.comparison import MAX_NAMED_QUESTIONS
from harness.scoring.graded_by import grading_differences, grading_settings
from harness.scoring.moves import pairs
from harness.scoring.stats import Estimate, Interval
from harness.scoring.uncertainty import point_cells, why_narrower
from harness.scoring.undecided import BothUndecided
from harness.viewer.library import OpenBenchmark, OpenRun
from harness.viewer.offsets import sample_pairs
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
    fraction of its graded samples that are correct. n_first, n_second: their number."""

    id: str
    title: str
    excerpt: str
    first: float
    second: float
    n_first: int
    n_second: int

    @property
    def change(self) -> float:
        """Second minus first."""
        return self.second - self.first


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Number of samples that have the verdict `first` in the first run and `second` in the second, by equal keys."""

    first: VerdictName
    second: VerdictName
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The second run beside the first.

    paired: first minus second, as `harness report` has it; None if they cannot be compared, and `reason` says why.
    same_replies: a sentence, if both hold one set of replies; then the difference is that of the grading, and an
    interval for another run or for other questions would be taken for one of the models. Else empty.
    intervals: both intervals of second minus first, in words. undecided: what undecided answers leave open, in a
    sentence that calls the runs A and B. Both are empty where `paired` is None or the replies are the same.
    narrower: why the interval for new questions is narrower than the one for the same questions; empty if it is not.
    n_overridden: number of verdicts corrected by hand in each run. They count everywhere except in `as_graded`, which
    is `paired` without corrections; None without any. mixture: `words_on_mixture` of both audits. moved: the questions
    that are asked alike in both, in order. flips: changed verdicts over samples of equal index, the most frequent
    first. n_same: number of samples of equal index with equal verdicts. settings: (name, the first run's, the second's)
    of those that differ, all in words; those of the grading come last.
    """

    benchmark: str
    paired: PairedComparison | None
    reason: str
    same_replies: str
    intervals: str
    undecided: str
    narrower: Sequence[str]
    n_overridden: tuple[int, int]
    as_graded: PairedComparison | None
    mixture: str
    moved: Sequence[Moved]
    flips: Sequence[Flip]
    n_same: int
    settings: Sequence[tuple[str, str, str]]


def compare(first_run: OpenRun, second_run: OpenRun, name: str) -> Compared:
    """Compare two runs on a benchmark. Verdicts corrected by hand count; `as_graded` has the result without them.

    Raises `UsageError` if a run lacks the benchmark, `StoreError` if it cannot be read.
    """
    first, second = first_run.benchmark(name), second_run.benchmark(name)
    tallies_first, tallies_second = first.tallies(overridden=True), second.tallies(overridden=True)
    n_overridden = len(first.overrides), len(second.overrides)
    paired, as_graded, reason = None, None, ""
    try:
        paired = compare_runs(tallies_first, tallies_second)
        if any(n_overridden):
            as_graded = compare_runs(first.tallies(overridden=False), second.tallies(overridden=False))
    except UsageError as error:
        ungraded = [name for name, run in (("first", first), ("second", second)) if run.n_stored and not run.grades]
        reason = f"no sample of the {' and of the '.join(ungraded)} run is graded yet" if ungraded else str(error)
    moved = [
        Moved(
            id=tally.question.question_id,
            title=title(first, first.questions[tally.question.question_id]),
            excerpt=excerpt(first, first.questions[tally.question.question_id]),
            first=tally.correct / tally.n,
            second=match.correct / match.n,
            n_first=tally.n,
            n_second=match.n,
        )
        for tally, match in pairs(tallies_first, tallies_second)
    ]
    flips, n_same = _flips(first, second, [question.id for question in moved])
    servers = [run.manifest.provenance for run in (first_run, second_run) if run.manifest is not None]
    changed = setting_differences(first.record, second.record, servers)
    if len(servers) == 2:
        changed += server_differences(*servers)
    same_replies = _same_replies(first, second, [question.id for question in moved])
    between = None if same_replies else paired
    grading = [grading_settings(run.score) for run in (first, second) if run.score is not None]
    return Compared(
        benchmark=first.name,
        paired=paired,
        reason=reason,
        same_replies=same_replies,
        intervals="" if between is None else _intervals(between),
        undecided="" if between is None else _undecided_warning(first, second),
        narrower=() if between is None else why_narrower(between.difference),
        n_overridden=n_overridden,
        as_graded=as_graded,
        mixture=words_on_mixture(
            *(run.score.audited if run.score else None for run in (first, second)),
            paired=not (between is None or between.unpaired or between.n_missing),
        ),
        moved=moved,
        flips=flips,
        n_same=n_same,
        settings=[
            ("questions", *_questions_apart(first, second))
            if field == _QUESTIONS
            else (setting_names.in_words(field), in_words(old), in_words(new))
            for field, old, new in changed
        ]
        + (grading_differences(*grading) if len(grading) == 2 else []),
    )


def _intervals(paired: PairedComparison) -> str:
    """The intervals of second minus first in words; `paired` is first minus second."""
    limits = paired.difference.sampling, paired.difference.question
    sampling, question = (ends and Interval(-ends.high, -ends.low) for ends in limits)
    turned = Estimate(
        value=-paired.difference.value, sampling=sampling, question=question, at_most=paired.difference.at_most
    )
    _, same, new = point_cells(turned)
    new = "unknown" if question is None else new
    return f"95 %: {same} if both runs asked the same questions again, {new} on new questions of this kind"


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


def flips_of(
    first: OpenBenchmark, second: OpenBenchmark, question_id: str
) -> list[tuple[int, VerdictName, VerdictName]]:
    """Samples of the question whose verdicts differ: (index, the first run's, the second's)."""
    flips = []
    for index in first.grades.get(question_id, {}):
        ours, theirs = (run.verdict(Key(question_id, index)) for run in (first, second))
        if ours is not None and theirs is not None and ours != theirs:
            flips.append((index, ours, theirs))
    return sorted(flips)


def _flips(first: OpenBenchmark, second: OpenBenchmark, question_ids: Sequence[str]) -> tuple[list[Flip], int]:
    """Count the samples of two runs by their pair of verdicts if these differ, and the samples with equal verdicts.

    question_ids: ids of the questions that both runs have.
    """
    counts: Counter[tuple[VerdictName, VerdictName]] = Counter()
    n_both = 0
    for question_id in question_ids:
        n_both += len(first.grades.get(question_id, {}).keys() & second.grades.get(question_id, {}).keys())
        counts.update((ours, theirs) for _, ours, theirs in flips_of(first, second, question_id))
    flips = [Flip(first=ours, second=theirs, n=n) for (ours, theirs), n in counts.most_common()]
    return flips, n_both - counts.total()
