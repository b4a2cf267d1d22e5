"""Scores one cell in a process of its own: a hostile answer that exhausts the memory ends this process, not the sweep.

python -m harness.sweeps.scorer < TASK > SCORE      # JSON

The task comes by standard input, not as arguments: a judge's headers hold keys, and every user of the machine can read
the arguments of a process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from harness.commands.score import score, send_scores, sent_in_words, trackers_named
from harness.commands.second_opinions import second_opinions
from harness.core import codec
from harness.core.errors import EXIT_UNJUDGED, HarnessError
from harness.core.inert import quoted
from harness.options.judge import JudgeOptions
from harness.options.score import ScoreOptions
from harness.preparing.watching import Watcher
from harness.presets.grading import GradingOptions
from server_launchers import isolated

MAX_SAID_CHARS = 2000
"""Longest reason that the child process returns, in characters."""


class ScoringTask(msgspec.Struct, frozen=True, kw_only=True):
    """The task of the child process.

    folder: the run folder. options: the fields of `ScoreOptions` that are set. judge: the fields of `JudgeOptions` that
    are set; None without a judge.
    """

    folder: str
    options: dict[str, Any]
    judge: dict[str, Any] | None = None


class CellScore(msgspec.Struct, frozen=True, kw_only=True):
    """How a scoring ended. code: 0: everything is graded; else the exit code that `harness score` would have.

    reason: why the code is not 0; else empty. unsent: names of the trackers that failed, if everything is graded.
    addresses: for each tracker that got the scores, a sentence with the address where they can be seen.
    """

    code: int
    reason: str = ""
    unsent: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def score_cell(folder: Path, options: GradingOptions, judge: JudgeOptions | None) -> CellScore:
    """Grade and score a run folder in a process of its own."""
    task = ScoringTask(
        folder=str(folder),
        options=options.plain,
        judge=None if judge is None else judge.for_worker(),
    )
    done = subprocess.run(
        isolated.command("harness.sweeps.scorer"),
        input=codec.encode(task),
        capture_output=True,
        check=False,
    )
    try:
        return codec.decode(done.stdout, CellScore)
    except codec.DecodeError:
        # The process died before it could answer, by a signal or out of memory; the last line of its standard error
        # then tells most.
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        reason = lines[-1] if lines else f"the process that scores ended with {done.returncode}"
        return CellScore(code=done.returncode or 1, reason=quoted(reason))


def _score_cell(task: ScoringTask) -> CellScore:
    """Grade and score as the task says; every failure becomes a code and a reason."""
    try:
        options = ScoreOptions.of(**task.options)
        judge = None if task.judge is None else JudgeOptions.of(**task.judge)
        scored = score(Path(task.folder), options, judge, Watcher())
        for grader in options.second_graders:
            second_opinions(scored.folder, grader, options.also_python)
    except HarnessError as error:
        return CellScore(code=error.exit_code, reason=error.sentence)
    mute = [scored.judged.mute] if scored.judged is not None and scored.judged.mute else []
    # An incomplete score is made anew by the same sweep, and sent once it is complete.
    if reasons := [*scored.owed, *mute, *scored.verifier_errors]:
        return CellScore(code=EXIT_UNJUDGED, reason=reasons[0])
    code, reason = 0, ""
    addresses: list[str] = []
    unsent: list[str] = []
    for name in options.track:
        # A tracker that fails keeps no other one from its scores; the first failure is the one that is reported.
        try:
            tracker = trackers_named([name])[name]
            addresses.append(sent_in_words(name, send_scores(scored, tracker, options)))
        except HarnessError as error:
            unsent.append(name)
            code, reason = (code, reason) if code else (error.exit_code, error.sentence)
    return CellScore(code=code, reason=reason, unsent=tuple(unsent), addresses=tuple(addresses))


def _answer(task: bytes) -> bytes:
    """The score of the cell that the task names, both as JSON."""
    result = _score_cell(codec.decode(task, ScoringTask))
    return codec.encode(msgspec.structs.replace(result, reason=result.reason[:MAX_SAID_CHARS]))


if __name__ == "__main__":
    sys.stdout.buffer.write(_answer(sys.stdin.buffer.read()))
