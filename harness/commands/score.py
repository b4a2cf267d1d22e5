"""Grade and score one source: a run folder, or a file of another tool's outputs.

The rules grade first. If a judge is named, it then rules on the samples in its scope. The command line and Python both
call `score`, followed by `second_opinions` and `send_scores` if requested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.imported_runs import check_file, is_outputs, make_run
from harness.core.errors import Exit, StoreError, UsageError
from harness.core.number_text import Prices, prices_in
from harness.core.records import Key
from harness.core.sanitize import visible
from harness.grading.second.second_opinion import Agreement, agreement, second_verdicts
from harness.options.judge import JudgeOptions
from harness.options.score import JudgingCosts, OutputsOptions, ScoreOptions
from harness.presets.grading import GradingOptions
from harness.progress.events import Watcher
from harness.runs import Manifest, RunFolder, grades, overrides, questions, read_samples
from harness.runs.grades import read_opinions, replace_opinions
from harness.runs.merging import join_shards
from harness.scoring.pipeline import OnGraded, grade_run, score_run
from harness.scoring.score import Score
from server_launchers import isolated

# Functions import these modules only when they need them: a judge imports the client, and trackers import the cards.
# Together, these imports take a fifth of the time of scoring 4,000 short replies.
if TYPE_CHECKING:
    from harness.exports.trackers import Tracker
    from harness.judges.judge import Judged, JudgeSettings
    from harness.options.keywords import FilePath

ByRules = Callable[[RunFolder, GradingOptions, OnGraded], list[Score]]
"""Grades a run folder by the rules, once or for as long as the run continues."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A scored run. folder: its folder; for another tool's outputs, the folder of the run made from them.

    scores: including the judge's verdicts if there is a judge. judged: what the judge did; None without a judge.
    """

    folder: RunFolder
    scores: list[Score]
    judged: Judged | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The reasons why judge replies are missing; empty if none are. Repeating the call requests them again."""
        outcome = None if self.judged is None else self.judged.outcome
        if outcome is None or outcome.complete:
            return ()
        return tuple(map(str, outcome.causes)) or ("some of the judge's replies are missing",)

    @property
    def verifier_errors(self) -> list[str]:
        """Errors of the benchmarks' own verifiers."""
        return [error for score in self.scores for error in score.verifier_errors]

    @property
    def n_open(self) -> int:
        """The number of samples that the grader left undecided and no person has judged by hand."""
        n_open = sum(score.n_undecided for score in self.scores)
        for score in self.scores:
            benchmark = self.folder.benchmark(score.benchmark)
            by_hand = overrides.latest_overrides(overrides.read(benchmark)) if score.n_undecided else {}
            if by_hand:
                stored = grades.read(benchmark)
                n_open -= sum(grade.verdict == "undecided" and grade.key in by_hand for grade in stored)
        return max(0, n_open)

    @property
    def exit_code(self) -> Exit:
        """`CANNOT_SAY` for missing judge replies, for a judge without a single verdict, or for samples that a verifier
        could not judge; otherwise `YES`.
        """
        mute = self.judged is not None and self.judged.mute
        return Exit.CANNOT_SAY if self.missing or mute or self.verifier_errors else Exit.YES


def check(sources: Sequence[Path], options: ScoreOptions, *, follow: bool = False) -> None:
    """Raise `UsageError` if an option for run folders is given with a file of outputs, or vice versa.

    follow: whether scoring continues while the run grows.
    """
    of_outputs = options.narrow(OutputsOptions)
    file = next((source for source in sources if is_outputs(source, of_outputs)), None)
    if file is not None:
        if follow:
            raise UsageError(f"`follow` is for run folders, but {file} is a file")
        if options.out is not None and len(sources) > 1:
            raise UsageError(f"it works with only one file, but {len(sources)} sources were specified", field="out")
    elif options.of_outputs:
        raise UsageError(f"`{options.of_outputs[0]}` is for output files, but {sources[0]} is a run folder")


def refuse_any(sources: Sequence[Path], options: ScoreOptions) -> None:
    """Raise any error that would prevent scoring one of several sources, before the first of them is scored."""
    of_outputs = options.narrow(OutputsOptions)
    for source in sources:
        if is_outputs(source, of_outputs):
            check_file(source, of_outputs, options.sandbox)
        else:
            grade_run(_run_at(source), options)  # checks all benchmarks, and grades none before it is iterated


def _run_at(source: Path) -> RunFolder:
    """The run in this folder, including what its shards have stored so far; for a shard's folder, the run that the
    shard belongs to. Raises `StoreError`."""
    run = RunFolder(source).run_of_shard()
    join_shards(run or RunFolder(source))
    # The path as it was typed, for the error message.
    return RunFolder.open(run.path if run is not None else source)


def score(
    source: Path,
    options: ScoreOptions,
    judge: JudgeOptions | None,
    watcher: Watcher,
    *,
    by_rules: ByRules = score_run,
    prices: Prices | None = None,
) -> Scored:
    """Make a run of `source` if it is a file of outputs, then score the run.

    by_rules: grades and scores a run folder by the rules if there is no judge; a judge needs the grades of `grade_run`.
    prices: the prices of the judge's tokens. Raises `UsageError`, `StoreError`, and with a judge what a run raises.
    """
    settings = None
    if judge is not None:
        from harness.judges.judge import judge_of

        settings = judge_of(judge, watcher, prices)  # first, so that a rejected judge leaves everything unchanged
    of_outputs = options.narrow(OutputsOptions)
    folder = make_run(source, of_outputs, options.sandbox) if is_outputs(source, of_outputs) else _run_at(source)
    return _score_run(folder, options, settings, watcher, by_rules)


def _score_run(
    folder: RunFolder, options: ScoreOptions, settings: JudgeSettings | None, watcher: Watcher, by_rules: ByRules
) -> Scored:
    """Score a run, and store the scores where reports find them. settings: of the judge; None without one."""
    grading: GradingOptions = options
    if options.on is not None:
        grade_run(folder, grading)  # only its checks, before the cluster is contacted
        from harness.commands.cluster_interface import cluster

        grading = cluster(options.on).grade_on(options.on, folder, grading, watcher)
    judged = None
    if settings is not None:
        from harness.judges.judge import score_with_judge

        judged = score_with_judge(folder, grade_run(folder, grading, watcher.graded), settings, watcher)
        scores = judged.scores
    else:
        if by_rules is score_run and not folder.has_samples():
            raise StoreError(f"{visible(str(folder.path))} has no samples yet, so there is nothing to score.")
        judges = _judges_with_replies(folder)
        scores = by_rules(folder, grading, watcher.graded)
        if judges:  # only now, so that a rejected grading leaves the judge's grades unchanged
            watcher.warn(
                f"this run was previously graded by the judge {', '.join(visible(name, 80) for name in judges)}; these "
                "are the grades without it. Its replies are kept: to restore its grades, set `judge` with the same "
                "prompt or rubric"
            )
    return Scored(folder=folder, scores=scores, judged=judged)


def _judges_with_replies(folder: RunFolder) -> list[str]:
    """The names of the judges whose replies are in the run, each once."""
    manifest = Manifest.find(folder)
    if manifest is None or not (folder.path / "judge").is_dir():
        return []
    from harness.scoring.judging import judges_of

    names = {
        f"{judge.model}@{judge.benchmarks[benchmark].identity.get('prompt')}"
        for benchmark in manifest.benchmarks
        for _, judge in judges_of(folder.benchmark(benchmark))
    }
    return sorted(names)


def judge_prices(costs: JudgingCosts, judge: JudgeOptions | None, named_by: str) -> Prices | None:
    """The prices of the judge's tokens; None if none are given. Raises `UsageError` for prices without a judge.

    named_by: how the caller names a judge.
    """
    if costs.prices is None:
        return None
    if judge is None:
        raise UsageError(f"they are the judge's prices: specify the judge with {named_by}", field="prices")
    return prices_in(costs.prices)


def trackers_named(names: Sequence[str]) -> dict[str, Tracker]:
    """Name → tracker. Raises `UsageError` for an unknown name.

    This is called before grading, so that a misspelled name costs no time.
    """
    if not names:
        return {}
    from harness.exports.trackers import find_tracker

    return {name: find_tracker(name) for name in names}


def describe_sent(name: str, address: str) -> str:
    """The sentence on a tracker that received the scores. address: where they can be viewed; empty if unknown."""
    return f"sent the scores to {visible(name, 100)}{': ' + visible(address, 400) if address else ''}"


def send_scores(scored: Scored, tracker: Tracker, options: ScoreOptions) -> str:
    """Send the scores to a tracker; return the address where they can be viewed, empty if the tracker names none."""
    from harness.exports.trackers import SeriesStep, track

    around = scored.folder.path.absolute().parent.name
    step = None if options.step is None else SeriesStep(options.series or around, options.step)
    return track(scored.folder, scored.scores, tracker, step)


def second_opinions(run: RunFolder, library: str, python: FilePath | None = None) -> dict[str, Agreement]:
    """Grade a scored run with another grader; return, by benchmark, how far it agrees with the stored grades.

    The stored grades are unchanged; the other verdicts are stored next to them. library: the other grader's name, such
    as math-verify. python: the interpreter that has the grader installed; None: the current interpreter. Raises
    `UsageError` if the grader is not installed.
    """
    agreements = {}
    for name in Manifest.load(run).benchmarks:
        folder = run.benchmark(name)
        by_id = {question.question_id: question for question in questions.read(folder)}
        theirs = dict[Key, bool | None]()
        try:
            second_verdicts(
                library, by_id, read_samples(folder), python=str(python or isolated.PYTHON), verdicts=theirs
            )
        finally:  # an interrupted grading stores its verdicts so far, and keeps earlier ones on the other samples
            earlier = {each.key: each.correct for each in read_opinions(folder) if each.grader == library}
            replace_opinions(folder, library, earlier | theirs)
        agreements[name] = agreement(grades.read(folder), theirs)
    return agreements
