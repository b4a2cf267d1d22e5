"""The grading settings of a score: the rules in force, including a function or a judge, and the judge's options.

The comparison uses the graders in force, not the graders that happened to decide a sample: a judge never sees an empty
reply, so of two runs graded the same way, one may have samples decided only by the function before the judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.core.sanitize import visible
from harness.grading.second.judge_messages import without_judge
from harness.runs.recorded_settings import value_text
from harness.scoring.score import MAX_GRADER_CHARS, Score

GRADERS = "graders"
"""The name of the setting that lists the graders."""

JUDGE = "judge: "
"""Prefix of the names of a judge's options."""

_NO_RULES = (f"{JUDGE}base_url", f"{JUDGE}ended")
"""Settings that affect no verdict, or that have a separate warning."""


def current_graders(score: Score) -> list[str]:
    """The graders of a benchmark: the rules, or a function with the checksum of its file, each with the judge that
    ruled after it, whether or not the judge decided a sample.
    """
    if score.judging:
        judges = {f"+{score.judging.name}"}
    else:  # the end of a grader's name, such as "+judge:model@prompt"; empty if no judge decided
        judges = {grader.removeprefix(without_judge(grader)) for grader in score.graders}
        judges = judges - {""} or {""}
    return sorted({without_judge(grader) + judge for grader in score.graders for judge in judges})


def grading_settings(score: Score) -> dict[str, object]:
    """The grading settings of a benchmark, by name: the graders in force (with the checksum of a user's file) and the
    options of their judge. A rubric is identified by its checksum in the name of the judge's prompt.
    """
    judge = {**(score.judging.settings if score.judging else {})}
    if score.judging and not score.judging.ended:
        judge["ended"] = False
    if score.judge_errors is not None:  # This also includes the server's address, which affects no verdict.
        judge |= score.judge_errors.settings
    options = {f"{JUDGE}{name}": value for name, value in judge.items()}
    return {GRADERS: current_graders(score), **options}


def grading_differences(first: Mapping[str, object], second: Mapping[str, object]) -> list[tuple[str, str, str]]:
    """(name, first run's value, second run's value), in words, of each differing setting of `grading_settings`."""
    names = dict.fromkeys((*first, *second))
    rows = ((name, value_text(first.get(name)), value_text(second.get(name))) for name in names)
    return [row for row in rows if row[1] != row[2]]


def grading_warnings(run: Score, baseline: Score) -> Iterator[str]:
    """The warnings about a difference between two scores that were graded differently, or not yet by their judge."""
    for which, score in (("the run", run), ("the baseline", baseline)):
        if score.judging and (doubt := score.judging.unfinished_warning(which)):
            yield doubt
    graders = [current_graders(score) for score in (run, baseline)]
    if graders[0] != graders[1] and not _judge_is_idle(run, baseline):
        ours, theirs = (", ".join(visible(name, MAX_GRADER_CHARS) for name in names) for names in graders)
        yield (
            f"the two runs were graded by different graders: the run by {ours}, the baseline by {theirs}. Score both "
            "again with the same version, card and judge"
        )
    elif graders[0] == graders[1]:
        differences = grading_differences(grading_settings(baseline), grading_settings(run))
        unlike = "; ".join(f"{name}: {old} → {new}" for name, old, new in differences if name not in _NO_RULES)
        if unlike:
            yield (
                f"the judge graded the two runs with different settings (baseline → run: {unlike}). Score both again "
                "with the same settings"
            )


def _judge_is_idle(run: Score, baseline: Score) -> bool:
    """Whether two scores differ only in a judge that could not have changed either score.

    This is so if the judge rules only on what the rules leave open and neither score has any: the scores are then the
    same with and without the judge.
    """
    judged = [score for score in (run, baseline) if score.judging]
    return (
        {*map(without_judge, current_graders(run))} == {*map(without_judge, current_graders(baseline))}
        and all(
            score.judge_errors is None and not score.n_undecided and not score.n_no_answer for score in (run, baseline)
        )
        and all(score.judging and score.judging.settings.get("scope") in ("open", "undecided") for score in judged)
    )
