"""The warnings of a comparison: what makes it less meaningful than its numbers suggest.

| what | how it is found |
| --- | --- |
| different questions | the stored questions of both runs are compared, id by id |
| different graders, unfinished judging | from the scores, by `harness.scoring.grading_settings` |
| missing samples, groups of questions, undecided answers | from the grades |
| one run repeats the other's replies | from the replies, by `harness.commands.repeated_replies` |
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from harness.commands import repeated_replies
from harness.commands.baselines import Side
from harness.core.number_text import count_noun, in_percent, is_are
from harness.core.sanitize import visible
from harness.deciding.paired_comparison import PairedComparison, pairs
from harness.reports.inputs import ScoredBenchmark
from harness.runs.recorded_settings import NAMED_BY, describe_difference, describe_setting, setting_differences
from harness.scoring.grading_settings import grading_warnings
from harness.scoring.score import Score
from harness.scoring.uncertainty import unequal_clusters

MAX_NAMED_QUESTIONS = 5
"""Largest number of left-out questions that a comparison names."""

_SAME_QUESTIONS = ("dataset_digest", "prompt_digest", "api")
"""Identity fields that determine the prompts; runs that differ in them answer different questions."""

_OF_AN_API = {"api", "api_headers", "neutral", "seed"}
"""Identity fields that differ between APIs but change no prompt. Of the sampling, only what the server does if a field
cannot be sent (`neutral`, `seed`) may differ."""


def comparison_warnings(ours: Side, baseline: Side, paired: PairedComparison) -> list[str]:
    """The warnings of a comparison. ours: the run. baseline: the run it is compared with. paired: their comparison."""
    assert ours.benchmark.score is not None
    assert baseline.benchmark.score is not None
    warnings = [*_left_out(ours, baseline, paired)]
    warnings += _other_settings(ours, baseline)
    warnings += effort_without_effect(ours.benchmark, baseline.benchmark)
    warnings += grading_warnings(ours.benchmark.score, baseline.benchmark.score)
    scores = {"the run": ours.benchmark.score, "the baseline": baseline.benchmark.score}
    warnings += [*_judge_warnings(scores, paired), *_by_hand_warnings(scores)]
    for which, score in scores.items():
        found = [score.copies.sentence] if score.copies is not None and score.copies.is_excessive else []
        found += [each.sentence for each in (score.early_cut, score.hidden_limit) if each]
        warnings += [f"{which}: {sentence}" for sentence in found]
    # If groups of questions, such as variants of one problem, have very unequal sizes, the question interval is wide.
    shared = list(pairs(baseline.benchmark.questions, ours.benchmark.questions))
    warnings += filter(None, [unequal_clusters([item for item, _ in shared])])
    warnings += _undecided_warnings(ours, baseline)
    for which, record in (("the run", ours.record), ("the baseline", baseline.record)):
        if record.imported:
            warnings.append(f"{which} was made by another tool: its settings are unknown")
    records = ours.record, baseline.record
    folders = ours.folder, baseline.folder
    return [*warnings, *repeated_replies.warnings(folders, records, [item.question.question_id for item, _ in shared])]


# ---- settings


def _other_settings(ours: Side, baseline: Side) -> Iterator[str]:
    """A warning for each setting that determines the prompts and differs, with a text in place of digests."""
    one, other = baseline.record.identity, ours.record.identity
    differing = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    if "api" in differing and differing <= _OF_AN_API:
        yield (
            f"the runs differ only in their API: the difference and its intervals show the effect of "
            f"api={other['api']} compared with api={one['api']}"
        )
        return
    same = {name for name in _SAME_QUESTIONS if baseline.record.identity.get(name) == ours.record.identity.get(name)}
    determining = {*_SAME_QUESTIONS, *(name for digest, name in NAMED_BY.items() if digest not in same)}
    for difference in setting_differences(baseline.record, ours.record):
        field = difference.field.rsplit(".", 1)[-1]
        if field == "dataset_digest":
            yield "the runs' data differ: questions, answers or grading rules are not the same"
        elif field == "prompt_digest":
            prompt = visible(str(ours.record.identity.get("prompt")), 80)
            yield f"the settings of the runs differ: the text of the prompt {prompt} is different"
        elif field in determining:
            yield f"the settings of the runs differ: {difference._replace(field=describe_setting(difference.field))}"


_EFFORT = re.compile("effort|thinking|reasoning")
"""Settings with such names say how much a model reasons before it answers."""


def effort_without_effect(ours: ScoredBenchmark, baseline: ScoredBenchmark) -> Iterator[str]:
    """A warning if the runs differ in how much the model should reason, but not in reply length beyond chance."""
    changed = [
        setting for setting in setting_differences(baseline.record, ours.record) if _EFFORT.search(setting.field)
    ]
    scores = (baseline.score, ours.score)
    counts = [score.tokens.completion for score in scores if score is not None and score.tokens is not None]
    means = [one.mean for one in counts if one is not None]
    if not changed or len(means) < 2 or not (means[0].sampling and means[1].sampling):
        return
    low, high = sorted(means, key=lambda mean: mean.value)
    assert low.sampling is not None
    assert high.sampling is not None
    # The ends of both intervals that are closer to each other.
    reach = math.hypot(high.value - high.sampling.low, low.sampling.high - low.value)
    if high.value - low.value <= reach:
        yield (
            f"{'; '.join(map(describe_difference, changed))}, but the mean reply lengths do not differ "
            f"significantly ({means[0].value:,.0f} and {means[1].value:,.0f} tokens). The server may ignore the setting"
        )


# ---- questions


def _left_out(ours: Side, baseline: Side, paired: PairedComparison) -> Iterator[str]:
    """A warning that counts and names the questions that have the same id in both runs but different rows of data, and
    a warning about those that only one run has.
    """
    new, old = ours.questions(), baseline.questions()
    shared = [name for name in old if name in new]
    changed = [name for name in shared if old[name].question.row_digest != new[name].question.row_digest]
    alone = [name for name in (*old, *new) if (name in old) != (name in new)]
    same_id = f"{'has' if len(changed) == 1 else 'have'} the same ID in both runs but a different text or answer, and"
    for names, which in ((changed, same_id), (alone, "in only one run")):
        if names:
            yield (
                f"{count_noun(len(names), 'question')} {which} {is_are(len(names))} left out: {_named(names)}; both "
                f"accuracies are computed over the {paired.n_questions:,} shared questions"
            )


def _named(ids: Sequence[str]) -> str:
    """The ids of the first of these questions, and the number of the others."""
    named = ", ".join(visible(question_id, 40) for question_id in ids[:MAX_NAMED_QUESTIONS])
    more = len(ids) - MAX_NAMED_QUESTIONS
    return f"{named} and {more:,} more" if more > 0 else named


# ---- grades


def _judge_warnings(scores: Mapping[str, Score], paired: PairedComparison) -> list[str]:
    """A warning if a judge, whose errors no interval covers, decided verdicts; otherwise none.

    scores: "the run" or "the baseline" → its score. paired: their comparison.
    """
    judged = {which: score.judge_errors for which, score in scores.items() if score.judge_errors is not None}
    if not judged:
        return []
    interval = paired.difference.sampling
    parts = (f"{by.n_judged:,} of {by.n_samples:,} verdicts of {which}" for which, by in judged.items())
    sentence = (
        f"{'; '.join(parts)} come from a judge. The difference and its intervals ignore the judge's errors: "
        "`harness audit` measures them"
    )
    nearest = min(abs(interval.low), abs(interval.high)) if interval and interval.low * interval.high > 0 else 0.0
    if nearest:
        sentence += (
            f". Grading errors that favor one run by {in_percent(nearest)} points would cancel out this difference"
        )
    return [sentence]


def _by_hand_warnings(scores: Mapping[str, Score]) -> list[str]:
    """A warning if verdicts by hand differ from the grader's; otherwise none. scores: as in `_judge_warnings`."""
    parts = [
        f"{which}: a person disagrees with the grader on {count_noun(score.n_overridden, 'sample')}"
        for which, score in scores.items()
        if score.accuracy_overridden is not None
    ]
    if not parts:
        return []
    advice = "`harness compare --samples` shows the difference with manual verdicts"
    return [f"{'; '.join(parts)}. The comparison uses the grader's verdicts; {advice}"]


def _undecided_warnings(ours: Side, baseline: Side) -> list[str]:
    """A sentence on the smallest and largest difference, if all undecided answers of one run are wrong and all of the
    other's are correct; empty if neither has any.
    """
    shared = pairs(ours.benchmark.questions, baseline.benchmark.questions)
    if not any(item.undecided for pair in shared for item in pair):
        return []

    def difference(ours_right: bool, theirs_right: bool) -> float:
        """The difference in points if the run's undecided answers, and the baseline's, are correct or wrong."""
        gaps = (
            (mine.right + ours_right * mine.undecided) / mine.n
            - (theirs.right + theirs_right * theirs.undecided) / theirs.n
            for mine, theirs in shared
        )
        return 100 * math.fsum(gaps) / len(shared)

    low, high = difference(ours_right=False, theirs_right=True), difference(ours_right=True, theirs_right=False)
    sides = zip(*shared, strict=True)
    counts = [f"{sum(item.undecided for item in side):,} of {sum(item.n for item in side):,}" for side in sides]
    return [
        f"undecided answers count as wrong: {counts[0]} in the run, {counts[1]} in the baseline. Depending on "
        f"their true verdicts, the difference may be anywhere from {low:+z.1f} to {high:+z.1f} points. "
        "The intervals above ignore this. Read the answers with `harness show`, or let a judge decide. Manual verdicts "
        "(`harness audit`) are used only by `harness compare --samples`"
    ]
