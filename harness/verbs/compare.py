"""`compare` compares runs with a baseline; `verify` compares a run with published scores of its model.

Both read scored run folders, or scored outputs of other tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec

from harness.asking.options import CompareOptions, VerifyOptions
from harness.core.errors import StoreError, UsageError, option
from harness.core.inert import visible
from harness.core.nouns import are, count_noun
from harness.reports.history import grown
from harness.reports.plots.published import MAX_SOURCES
from harness.reports.published import beside, other_questions, published_of, reported_by, source_title, verdict
from harness.reports.scored import ScoredBenchmark, ScoredRun, read_runs
from harness.runs import setting_names
from harness.runs.layout import RunFolder
from harness.runs.manifest import UNKNOWN_MODEL, BenchmarkRecord, Difference, changes_of, differences
from harness.scoring import (
    PairedComparison,
    PublishedComparison,
    PublishedScore,
    QuestionTally,
    compare_runs,
    load_published,
)
from harness.scoring.beside import APART, decides, kind, overall_verdict
from harness.scoring.comparison import PublishedVerdict
from harness.scoring.deciding import Decision, RunPair, decide
from harness.scoring.moves import Move, moves, pairs
from harness.scoring.published.all_sources import PublicAgreement, beside_all
from harness.scoring.published.benchmark_name import find_card
from harness.scoring.published.index import find_scores, scores_of_models
from harness.scoring.score import MAX_GRADER_CHARS
from harness.scoring.spending import SpentPoint, spent_points
from harness.scoring.uncertainty import unequal_clusters
from harness.verbs.known_questions import known_as
from harness.verbs.outputs import open_scored
from harness.viewer.beside import PublishedBeside, SourcePoint

DECIDING_SOURCES = 3
"""Smallest number of public sources that decide together where the scores with stated settings cannot say."""

_SAME_QUESTIONS = ("dataset_digest", "prompt_digest", "api")
"""Fields of an identity that determine the prompts; runs that differ in them answer different questions."""


class SampleKinds(NamedTuple):
    """Counts of one run's samples on a benchmark: all (`n`) and those of a kind.

    truncated: samples cut by max_tokens. mean_completion_tokens: their mean length; None if no server stated it.
    """

    n: int
    undecided: int
    truncated: int
    no_answer: int
    mean_completion_tokens: float | None


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """One comparison: the decision, the questions whose results changed, and the settings that differ.

    baseline_samples, samples: counts of the baseline's and of the run's samples, over all questions that each has.
    moved: the questions whose results changed, the largest fall first. settings: the settings that differ.
    """

    decision: Decision
    baseline_samples: SampleKinds
    samples: SampleKinds
    moved: Sequence[Move]
    settings: Sequence[Difference]


def compare(sources: Sequence[Path], options: CompareOptions) -> list[RunComparison]:
    """Compare every other run with the baseline (default: the first), on each benchmark that both ran.

    sources: scored run folders, or scored outputs of other tools. Raises `UsageError` where two runs share no
    benchmark, `StoreError` where a run is damaged or not scored.
    """
    folders = [open_scored(source) for source in (options.baseline, *sources) if source is not None]
    others = [folder for folder in folders[1:] if folder.path.resolve() != folders[0].path.resolve()]
    if not others and len(folders) > 1:
        raise UsageError(f"{visible(str(folders[0].source))} is named twice: name another run to compare it with")
    if not others:
        raise UsageError("give at least two runs: the others are compared with the first")
    # One triple for each benchmark of another run that the baseline has too.
    base, *runs = read_runs([folders[0], *others])
    compared_to = [
        (run, benchmark, base.benchmarks[name])
        for run in runs
        for name, benchmark in run.benchmarks.items()
        if name in base.benchmarks
    ]
    if not compared_to:
        held = "; ".join(
            f"{visible(run.label)} holds {', '.join(map(visible, run.benchmarks))}" for run in (base, *runs)
        )
        raise UsageError(
            f"{visible(base.label)} shares no benchmark with the other runs: {held}. To compare outputs of another "
            f"tool with runs of a benchmark, score the outputs under the benchmark's name "
            f"({option('score.benchmark')})"
        )
    compared = [
        RunPair(
            run=run.label,
            baseline=base.label,
            paired=compare_runs(scored(run, benchmark), scored(base, first)),
            samples=min(
                item.n for scored_benchmark in (benchmark, first) for item in scored_benchmark.questions if item.n
            ),
            warnings=(*_warnings(benchmark, first), *grown({"the run": run.history, "the baseline": base.history})),
        )
        for run, benchmark, first in compared_to
    ]
    compared = [msgspec.structs.replace(pair, warnings=(*_left_out(pair.paired), *pair.warnings)) for pair in compared]
    return [
        RunComparison(
            decision=_with_spending(decision, benchmark, first) if options.at_equal_tokens else decision,
            baseline_samples=_kinds_of(first),
            samples=_kinds_of(benchmark),
            moved=moves(first.questions, benchmark.questions),
            settings=[*_differences(first.record, benchmark.record), *_servers_apart(base, run)],
        )
        for decision, (run, benchmark, first) in zip(decide(compared), compared_to, strict=True)
    ]


def _kinds_of(benchmark: ScoredBenchmark) -> SampleKinds:
    """Count the samples of a benchmark that is scored."""
    score = benchmark.score
    assert score is not None
    return SampleKinds(
        n=score.n_samples,
        undecided=score.n_undecided,
        truncated=score.n_truncated,
        no_answer=score.n_no_answer,
        mean_completion_tokens=score.mean_completion_tokens,
    )


def _with_spending(decision: Decision, benchmark: ScoredBenchmark, first: ScoredBenchmark) -> Decision:
    """`decision` with both runs' accuracy as a function of the tokens spent, over the questions that both have.

    Raises `UsageError` if a server stated no tokens for some samples.
    """
    shared = pairs(first.questions, benchmark.questions)
    points: list[SpentPoint] = []
    for run, items in (
        (decision.baseline, [baseline for baseline, _ in shared]),
        (decision.run, [item for _, item in shared]),
    ):
        of_run = spent_points(run, items)
        if not of_run:
            raise UsageError(
                f"the server stated no tokens for some samples of {visible(run)} on {visible(benchmark.name, 80)}, so "
                "the runs cannot be compared at equal tokens; leave this option out",
                field="at_equal_tokens",
            )
        points += of_run
    points.sort(key=lambda point: (point.tokens, point.run))
    return msgspec.structs.replace(decision, spending=tuple(points))


@dataclass(frozen=True, kw_only=True)
class Verified:
    """One benchmark of a run compared with published scores of its model.

    standing: the verdict. comparisons: the nearest settings first. public: the comparison with all public sources at
    once; None unless all public scores were asked for, the run is finished and a source asked the same questions.
    n_near: number of public scores of similar model names, which decide nothing; 0 unless all public scores were asked
    for. reason: why scores published under the benchmark's name are not compared; empty if they are.
    """

    benchmark: str
    standing: PublishedVerdict
    comparisons: Sequence[PublishedComparison]
    public: PublicAgreement | None = None
    n_near: int = 0
    reason: str = ""


def verify(source: Path, options: VerifyOptions) -> list[Verified]:
    """Compare a scored run, or another tool's scored outputs, with published scores of its model, by benchmark.

    Raises `UsageError` where no score of the model is published, `StoreError` where the run is damaged or not scored.
    """
    (run,) = read_runs([open_scored(source)], known_as=known_as)
    return verify_run(run, options)


def verify_run(run: ScoredRun, options: VerifyOptions) -> list[Verified]:
    """Do what `verify` does, for a run that is read already."""
    published = options.published
    name = options.model or run.manifest.model
    if name == UNKNOWN_MODEL:
        raise UsageError(
            f"no record names the model that wrote {visible(run.label, 200)}: give its name", field="model"
        )
    scores = [] if options.against == "any" else load_published(published, models=[name])
    verified = []
    for benchmark in run.benchmarks.values():
        scored(run, benchmark)
        assert benchmark.score is not None
        # The scores of this model and benchmark: from every public source, or from the shipped or given files.
        if options.against == "any":
            rows = find_scores(name, benchmark.known_as or benchmark.name)
            # `find_scores` also returns scores of similar names; only those of the same name are compared.
            references = [row.score for row in rows if row.match.same]
            n_near = sum(not row.match.same for row in rows)
        else:
            references, n_near = published_of(run, benchmark, scores, name), 0
        if reason := other_questions(benchmark, references):
            verified.append(Verified(benchmark=benchmark.name, standing="cannot say", comparisons=(), reason=reason))
        elif comparisons := beside(run, benchmark, references):
            public = None
            if options.against == "any":
                same = [entry.published for entry in comparisons if kind(entry) != APART]
                public = _beside_all(benchmark, same)
            if public is None:
                standing = overall_verdict(comparisons, run.suite.source)
            else:
                standing = _standing_beside_all(comparisons, public)
            verified.append(
                Verified(
                    benchmark=benchmark.name,
                    standing=standing,
                    comparisons=comparisons,
                    public=public,
                    n_near=n_near,
                )
            )
    if not verified:
        names = ", ".join(visible(benchmark, 40) for benchmark in run.benchmarks)
        if options.against == "any":
            raise UsageError(
                f"neither the shipped scores nor the local index hold one of {visible(name, 100)} on {names}: give "
                f"{option('model')} if the model is published under another name, or bring the index up to date by "
                "`harness published update`"
            )
        where = "results/published/" if published is None else visible(str(published), 200)
        if not {score.benchmark for score in load_published(published)} & run.benchmarks.keys():
            raise UsageError(
                f"{where} holds no score of any model on {names}: give {option('published')} for scores of your own"
            )
        raise UsageError(
            f"{where} holds no published score of {visible(name, 100)} on {names}: give {option('model')} "
            f"if the model is published under another name, or {option('published')} for scores of your own"
        )
    return verified


def published_beside(folder: RunFolder, benchmark: str) -> PublishedBeside:
    """What is published of the run's model on this benchmark; empty if the run is damaged or not scored."""
    try:
        (run,) = read_runs([folder], known_as=known_as)
        scored_benchmark = run.benchmarks[benchmark]
        scored(run, scored_benchmark)
        references = published_of(run, scored_benchmark, scores_of_models([run.manifest.model]))
        comparisons = beside(run, scored_benchmark, references)
    except (StoreError, UsageError):
        return PublishedBeside()
    if reason := other_questions(scored_benchmark, references):
        return PublishedBeside(reason)
    source = run.suite.source
    points = tuple(
        SourcePoint(
            source=source_title(entry),
            printed=entry.published.printed,
            accuracy=entry.published.value,
            decides=decides(entry, source),
        )
        for entry in comparisons
        if entry.published.metric == "pass@1"
    )
    words = reported_by(comparisons, source, scored_benchmark.record.plan.samples)
    return PublishedBeside(words, verdict(comparisons, source) or "", points[:MAX_SOURCES])


def _standing_beside_all(comparisons: Sequence[PublishedComparison], public: PublicAgreement) -> PublishedVerdict:
    """The verdict of the scores with stated settings; if they cannot say, the verdict of all sources together.

    A score without settings decides nothing alone, so with fewer than `DECIDING_SOURCES` sources the verdict stays
    "cannot say".
    """
    stated = [entry for entry in comparisons if entry.published.settings and entry.published.stated]
    decided = overall_verdict(stated)
    if decided != "cannot say" or public.sources < DECIDING_SOURCES:
        return decided
    return "compatible" if public.verdict == "as others report" else "not compatible"


def _beside_all(benchmark: ScoredBenchmark, references: Sequence[PublishedScore]) -> PublicAgreement | None:
    """The run's accuracy beside all sources that asked the same questions; None if the run is unfinished.

    Also None without such a source. A source that does not state its number of questions is taken to have asked all of
    them. references: the published scores of the run's model.
    """
    score = benchmark.score
    if score is None or score.accuracy is None or score.n_missing:
        return None
    card = find_card((benchmark.known_as or benchmark.name,)).card
    sizes = {score.n_questions, None} if card and card.questions == score.n_questions else {score.n_questions}
    error = score.sampling_error_bound if score.sampling_error is None else score.sampling_error
    return beside_all(score.accuracy, error, [entry for entry in references if entry.n_questions in sizes])


def scored(run: ScoredRun, benchmark: ScoredBenchmark) -> tuple[QuestionTally, ...]:
    """The counted questions of a scored benchmark.

    Raises `StoreError` where it is not scored, or has samples that were stored after the scoring. While a run is being
    sampled, such samples come all the time; then they are left out.
    """
    if benchmark.score is None or not benchmark.questions:
        raise StoreError(f"{visible(benchmark.name, 80)} of {visible(run.label, 80)} is not scored; score it first.")
    if benchmark.n_ungraded and not run.is_sampling:
        raise StoreError(
            f"{visible(benchmark.name, 80)} of {visible(run.label, 80)} was scored before "
            f"{count_noun(benchmark.n_ungraded, 'sample')} of it {'was' if benchmark.n_ungraded == 1 else 'were'} "
            "stored; score it again first."
        )
    return benchmark.questions


def _graders(benchmark: ScoredBenchmark) -> set[str]:
    """The graders that decided the benchmark's grades."""
    return {grade.grader for item in benchmark.questions for grade in item.grades}


def _differences(first: BenchmarkRecord, second: BenchmarkRecord) -> Sequence[Difference]:
    """The settings that differ between two runs (only those that both runs record), and whether the chosen questions
    differ.
    """
    if first.imported or second.imported:
        return ()
    ids = [None if record.plan.question_ids is None else set(record.plan.question_ids) for record in (first, second)]
    if ids[0] == ids[1]:
        return differences(first.identity, second.identity)
    questions = Difference("questions (limit, ids, filter)", _chosen(ids[0]), _chosen(ids[1]))
    return [*differences(first.identity, second.identity), questions]


def _servers_apart(base: ScoredRun, run: ScoredRun) -> Sequence[Difference]:
    """The facts of the model, such as its file, in which the servers of `run` differ from those of `base`."""
    servers = base.manifest.provenance, run.manifest.provenance
    changed = changes_of(servers[0], servers[1].servers).model if servers[0].servers else []
    return [
        Difference(f"server's {setting_names.fact_in_words(change.field)}", change.before, change.now)
        for change in changed
    ]


def _chosen(ids: set[str] | None) -> str:
    """A selection of questions in words: "all" if `ids` is None, else how many are chosen."""
    return "all" if ids is None else f"{len(ids):,} chosen"


def _left_out(paired: PairedComparison) -> list[str]:
    """One warning that counts and names the questions that only one run has; none if both have the same questions."""
    if not paired.unpaired:
        return []
    named = ", ".join(visible(question_id, 40) for question_id in paired.unpaired_ids)
    more = paired.unpaired - len(paired.unpaired_ids)
    which = f"{named} and {more:,} more" if more else named
    return [
        f"{paired.unpaired:,} questions that only one run has are left out: {which}; both accuracies are over the "
        f"{paired.n_questions:,} shared questions"
    ]


def _undecided(ours: Sequence[QuestionTally], theirs: Sequence[QuestionTally]) -> list[str]:
    """One warning with the range of the difference if some answers are undecided, since they count as wrong; else none.

    ours, theirs: the shared questions in the run and in the baseline.
    """
    counts = [sum(item.undecided for item in items) for items in (ours, theirs)]
    if not any(counts):
        return []

    def highest(items: Sequence[QuestionTally]) -> float:
        """The accuracy in points if all undecided answers are right."""
        return 100 * fmean((item.correct + item.undecided) / item.n for item in items)

    lowest = [100 * fmean(item.correct / item.n for item in items) for items in (ours, theirs)]
    samples = [sum(item.n for item in items) for items in (ours, theirs)]
    return [
        f"undecided answers count as wrong: {counts[0]:,} of {samples[0]:,} of the run, {counts[1]:,} of "
        f"{samples[1]:,} of the baseline. By them the difference may lie anywhere from "
        f"{lowest[0] - highest(theirs):+.1f} to {highest(ours) - lowest[1]:+.1f} points, for which the intervals "
        "above do not allow: read them with `harness show`, or let a judge decide"
    ]


def _warnings(ours: ScoredBenchmark, first: ScoredBenchmark) -> list[str]:
    """The warnings about settings that should be equal in a fair comparison but differ."""
    mine, theirs = ours.record.identity, first.record.identity
    warnings = [
        f"the settings of the runs differ: {difference.in_words}"
        for difference in _differences(first.record, ours.record)
        if difference.field.rsplit(".", 1)[-1] in _SAME_QUESTIONS
    ]
    assert ours.score is not None
    assert first.score is not None
    graders = [_graders(benchmark) for benchmark in (ours, first)]
    if graders[0] != graders[1]:
        run, baseline = (", ".join(visible(name, MAX_GRADER_CHARS) for name in sorted(names)) for names in graders)
        warnings.append(
            f"the two runs were graded by different graders: the run by {run}; the baseline by {baseline}. Score both "
            "again by the same version, card and judge"
        )
    for which, score in (("the run", ours.score), ("the baseline", first.score)):
        if score.copies is not None and score.copies.many:
            warnings.append(f"{which}: {score.copies.sentence}")
        if score.n_missing:
            warnings.append(
                f"{which} is unfinished: {count_noun(score.n_missing, 'sample')} {are(score.n_missing)} missing. "
                "The 5 % rate of false differences holds for one look; repeated looks at a growing run find more. "
                "To look after every round, use "
                f"`harness race`"
            )
    # If groups of questions, such as variants of one problem, have very unequal sizes, the question interval is wide.
    shared = list(pairs(first.questions, ours.questions))
    warnings += filter(None, [unequal_clusters([item for item, _ in shared])])
    warnings += _undecided([item for _, item in shared], [item for item, _ in shared])
    for which, record in (("the run", ours.record), ("the baseline", first.record)):
        if record.imported:
            warnings.append(f"{which} was made by another tool: its settings are unknown")
    if mine.get("seed") is not None and mine.get("seed") == theirs.get("seed") and mine == theirs:
        warnings.append(
            "both runs have the same model, settings and run seed. If the server obeys seeds, one run is a copy of "
            f"the other: sample one of the two again with another {option('seed')}"
        )
    return warnings
