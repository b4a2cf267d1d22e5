"""Scores one cell as `harness score` does: grades, a judge's verdicts, second opinions, and the scores for trackers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.commands.score import score, send_scores, sent_in_words, trackers_named
from harness.commands.second_opinions import second_opinions
from harness.core.errors import EXIT_UNJUDGED, HarnessError, Interrupted
from harness.core.inert import quoted
from harness.options.judge import JudgeOptions
from harness.options.score import ScoreOptions
from harness.preparing.watching import Watcher


@dataclass(frozen=True, kw_only=True)
class CellScore:
    """How a scoring ended. code: 0: everything is graded; else the exit code that `harness score` would have.

    reason: why the code is not 0; else empty. unsent: names of the trackers that failed, if everything is graded.
    """

    code: int = 0
    reason: str = ""
    unsent: Sequence[str] = ()


def score_cell(folder: Path, options: ScoreOptions, judge: JudgeOptions | None, watcher: Watcher) -> CellScore:
    """Grade and score a run folder, and send the scores. Every failure becomes a code and a reason.

    Raises `Interrupted` alone.
    """
    try:
        scored = score(folder, options, judge, watcher)
        for grader in options.second_graders:
            second_opinions(scored.folder, grader, options.also_python)
    except Interrupted:
        raise
    except HarnessError as error:
        return CellScore(code=error.exit_code, reason=error.sentence)
    except Exception as error:  # noqa: BLE001  a fault of ours, or too little memory, must not cost the other cells
        return CellScore(code=1, reason=quoted(f"{type(error).__name__}: {error}"))
    mute = [scored.judged.mute] if scored.judged is not None and scored.judged.mute else []
    # An incomplete score is made anew by the same sweep, and sent once it is complete.
    if reasons := [*scored.owed, *mute, *scored.verifier_errors]:
        return CellScore(code=EXIT_UNJUDGED, reason=reasons[0])
    failures: dict[str, HarnessError] = {}
    for name in options.track:
        # A tracker that fails keeps no other one from its scores; the first failure is the one that is reported.
        try:
            tracker = trackers_named([name])[name]
            watcher.standing(f"{folder.name}: {sent_in_words(name, send_scores(scored, tracker, options))}")
        except HarnessError as error:
            failures[name] = error
    for failure in failures.values():
        return CellScore(code=failure.exit_code, reason=failure.sentence, unsent=tuple(failures))
    return CellScore()
