"""The settings of a score's grading: the rules in force, a function or a judge among them, and the judge's options.

What was in force is compared, not which graders happened to decide a sample: a judge is not shown an empty reply, so
of two runs graded alike one may have samples that only the function before the judge decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.core.inert import visible
from harness.grading.second.judge_messages import without_judge
from harness.runs.recorded_settings import in_words
from harness.scoring.score import MAX_GRADER_CHARS, Score

GRADERS = "graders"
"""The name of the setting that lists the graders."""

JUDGE = "judge: "
"""The name of a judge's option begins with this."""

_NO_RULES = (f"{JUDGE}base_url", f"{JUDGE}ended")
"""Settings that decide no verdict, or have a warning of their own."""


def graders_in_force(score: Score) -> list[str]:
    """The graders by which a benchmark was graded: the rules, or a function with the checksum of its file, each with
    the judge that ruled after it, whether or not it decided a sample.
    """
    if score.judging:
        judges = {f"+{score.judging.name}"}
    else:  # the end of a grader's name, such as "+judge:model@prompt"; empty where none decided
        judges = {grader.removeprefix(without_judge(grader)) for grader in score.graders}
        judges = judges - {""} or {""}
    return sorted({without_judge(grader) + judge for grader in score.graders for judge in judges})


def grading_settings(score: Score) -> dict[str, object]:
    """Who graded a benchmark, by name: the graders in force (with the checksum of a file of the user's), and the
    options of their judge. A rubric is named as the judge's prompt, by its checksum.
    """
    judge = {**(score.judging.settings if score.judging else {})}
    if score.judging and not score.judging.ended:
        judge["ended"] = False
    if score.judge_errors is not None:  # It also has the server's address, which decides no verdict.
        judge |= score.judge_errors.settings
    options = {f"{JUDGE}{name}": value for name, value in judge.items()}
    return {GRADERS: graders_in_force(score), **options}


def grading_differences(first: Mapping[str, object], second: Mapping[str, object]) -> list[tuple[str, str, str]]:
    """(name, the first run's value, the second's) of the settings of `grading_settings` that differ, in words."""
    names = dict.fromkeys((*first, *second))
    rows = ((name, in_words(first.get(name)), in_words(second.get(name))) for name in names)
    return [row for row in rows if row[1] != row[2]]


def grading_warnings(run: Score, baseline: Score) -> Iterator[str]:
    """The warnings of a difference between two scores that are not graded alike, or not yet by their judge."""
    for which, score in (("the run", run), ("the baseline", baseline)):
        if score.judging and (doubt := score.judging.doubt(which)):
            yield doubt
    graders = [graders_in_force(score) for score in (run, baseline)]
    if graders[0] != graders[1] and not _idle(run, baseline):
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


def _idle(run: Score, baseline: Score) -> bool:
    """Whether two scores differ only in a judge that could not have changed either.

    It could not if it rules on undecided answers only and neither score has one: the scores are the same with the judge
    and without.
    """
    judged = [score for score in (run, baseline) if score.judging]
    return (
        {*map(without_judge, graders_in_force(run))} == {*map(without_judge, graders_in_force(baseline))}
        and all(score.judge_errors is None and not score.n_undecided for score in (run, baseline))
        and all(score.judging and score.judging.settings.get("scope") == "undecided" for score in judged)
    )
