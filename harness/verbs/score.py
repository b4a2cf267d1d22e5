"""Grade and score one source: a run folder, or a file of another tool's outputs.

The rules grade first. A judge, where one is named, then rules on what its scope names. Both doors call `score`, and
then `harness.verbs.second_opinions` and `tell` for what may follow a score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.asking.options import GradingOptions, JudgeOptions, ScoreOptions
from harness.asking.watching import Watcher
from harness.core.errors import EXIT_COMPLETE, EXIT_OWED, EXIT_UNJUDGED, UsageError
from harness.core.wording import option
from harness.exports.trackers import Tracker, track, tracker_named
from harness.runs import RunFolder
from harness.scoring import Score
from harness.scoring.pipeline import OnGraded, score_run
from harness.verbs.elsewhere import cluster
from harness.verbs.judge import Judged, JudgeSettings, judge_of, score_with_judge
from harness.verbs.judged_outputs import judge_file
from harness.verbs.outputs import ScoredFile, is_outputs, score_file

ByRules = Callable[[RunFolder, GradingOptions, OnGraded], list[Score]]
"""Grades a run folder by the rules, once or for as long as the run goes on."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A scored source. source: the run or file that was graded. folder: the folder of its scores.

    judged, judge: what the judge made of the grades, and who judged; None without a judge.
    """

    source: RunFolder | ScoredFile
    folder: RunFolder
    scores: list[Score]
    judged: Judged | None = None
    judge: JudgeSettings | None = None

    @property
    def owed(self) -> tuple[str, ...]:
        """Why answers of the judge are missing; the same call asks for them."""
        outcome = None if self.judged is None else self.judged.outcome
        if outcome is None or outcome.complete:
            return ()
        return tuple(map(str, outcome.causes)) or ("the judge owes answers",)

    @property
    def verifier_errors(self) -> list[str]:
        """Errors of the benchmarks' own verifiers."""
        return [error for score in self.scores for error in score.verifier_errors]

    @property
    def exit_code(self) -> int:
        """0, or the code for answers that the judge owes, or for samples that a verifier could not judge."""
        if self.owed:
            return EXIT_OWED
        return EXIT_UNJUDGED if self.verifier_errors else EXIT_COMPLETE


def are_outputs(source: Path, options: ScoreOptions) -> bool:
    """Whether `source` is scored as another tool's outputs, not as a run."""
    if options.tool is None and RunFolder(source).manifest.is_file():
        return False
    return is_outputs(source, tool=options.tool, described=bool(options.of_outputs))


def check(sources: Sequence[Path], options: ScoreOptions, *, follow: bool = False) -> None:
    """Raise `UsageError` for options that go with the other kind of source.

    follow: whether the scoring goes on while a run does.
    """
    file = next((source for source in sources if are_outputs(source, options)), None)
    if file is not None:
        for name, value in (("follow", follow), ("track", options.track), ("on", options.on)):
            if value:
                raise UsageError(f"{option(name)} goes with a run folder; {file} is a file")
    elif options.of_outputs:
        raise UsageError(f"{option(options.of_outputs[0])} goes with a file of outputs; {sources[0]} is a run folder")


def score(
    source: Path,
    options: ScoreOptions,
    judge: JudgeOptions | None,
    watcher: Watcher,
    *,
    by_rules: ByRules = score_run,
) -> Scored:
    """The scores of `source`, kept where reports find them.

    Raises `UsageError`, `StoreError`, and with a judge what a run raises.
    """
    grading: GradingOptions = options
    if are_outputs(source, options):
        return _score_file(source, options, judge, watcher)
    folder = RunFolder.open(source)
    if options.on is not None:
        grading = cluster(options.on).grade(options.on, folder, grading, watcher)
    if judge is None:
        return Scored(source=folder, folder=folder, scores=by_rules(folder, grading, watcher.graded))
    settings, serving = judge_of(judge, watcher)
    judged = score_with_judge(
        folder, grading, settings, serving, on_graded=watcher.graded, on_progress=watcher.progressed,
        resume_command=watcher.resume_command,
    )  # fmt: skip
    return Scored(source=folder, folder=folder, scores=judged.scores, judged=judged, judge=settings)


def _score_file(source: Path, options: ScoreOptions, judge: JudgeOptions | None, watcher: Watcher) -> Scored:
    scored = score_file(source, options, watcher)
    if judge is None:
        return Scored(source=scored, folder=scored.folder, scores=scored.scores)
    settings, serving = judge_of(judge, watcher)
    judged = judge_file(
        scored, settings, serving, on_progress=watcher.progressed, resume_command=watcher.resume_command,
        out=options.out,
    )  # fmt: skip
    return Scored(source=scored, folder=scored.folder, scores=judged.scores, judged=judged, judge=settings)


def trackers_named(names: Sequence[str]) -> dict[str, Tracker]:
    """The trackers by name, before anything is graded. Raises `UsageError` for one that is not there."""
    return {name: tracker_named(name) for name in names}


def tell(scored: Scored, tracker: Tracker) -> str:
    """Send the scores to a tracker. Returns where they can be seen; empty where the tracker does not say."""
    return track(scored.folder, scored.scores, tracker)
