"""Tables that compare a run with another run or with published scores, with caveats.

A comparison may be one of several looks at growing runs, and it may be inconclusive; sentences explain this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.core.number_text import count_noun, in_percent, is_are
from harness.core.sanitize import visible
from harness.deciding.published import PublishedScore, matching
from harness.deciding.published_comparison import PublishedComparison, compare_published
from harness.deciding.published_order import in_order, reported_scores
from harness.deciding.verdicts import Decision
from harness.reports.inputs import ScoredBenchmark, ScoredRun
from harness.reports.settings import by_weight, describe_differing, settings_beside
from harness.reports.table import AT_MOST, Notes, Table, p_cell, short
from harness.runs.recorded_settings import value_text
from harness.scoring.table_cells import ABSENT, percent, point_cells, why_narrower

MAX_NAME_CHARS = 40
"""A source's name is truncated to this length in a cell."""


def published_of(
    run: ScoredRun, benchmark: ScoredBenchmark, scores: Sequence[PublishedScore], model: str = ""
) -> list[PublishedScore]:
    """The published scores in `scores` of this benchmark and `model`. model: empty means the run's own model.

    They are looked up by the benchmark's name even if its questions differ from its card's (see `question_mismatch`).
    """
    return matching(scores, model or run.manifest.model, benchmark.known_as or benchmark.name)


def published_comparisons(
    run: ScoredRun, benchmark: ScoredBenchmark, references: Iterable[PublishedScore]
) -> list[PublishedComparison]:
    """Compare a scored benchmark of a run with each of these published scores, nearest first (`in_order`).

    Empty if the run's questions are not the benchmark's; `question_mismatch` then explains this.
    """
    assert benchmark.score is not None
    if benchmark.known_as is None:
        return []
    compared = [
        compare_published(
            benchmark.score, benchmark.questions, reference, settings_beside(run, benchmark.name, reference.settings)
        )
        for reference in references
    ]
    return in_order(compared, run.suite.source, benchmark.record.plan.samples)


def question_mismatch(benchmark: ScoredBenchmark, references: Sequence[PublishedScore]) -> str:
    """Why the published scores are not compared: the run asked different questions under the benchmark's name.

    Empty if they are compared, or if `references` is empty.
    """
    if benchmark.known_as is not None or not references:
        return ""
    name = visible(benchmark.name, MAX_NAME_CHARS)
    return (
        f"not compared with published scores because its questions may differ from those of {name}; if they are the "
        f"same, run `harness benchmarks fetch {name}`"
    )


def label_of(benchmark: str, comparisons: Sequence[PublishedComparison]) -> str:
    """The benchmark, followed in brackets by the benchmark whose questions it contains: `my_questions (aime24)`."""
    names = dict.fromkeys(entry.published.benchmark for entry in comparisons)
    others = [visible(name, MAX_NAME_CHARS) for name in names if name != benchmark]
    return visible(benchmark) + (f" ({', '.join(others)})" if others else "")


def differences(comparison: PublishedComparison, samples: float | None) -> list[str]:
    """The settings of a published score that differ from the run's, as phrases to show with its number.

    Only the attention budget, tool, token budget, prompt and number of samples are listed. samples: number per question
    in the run; None: unknown.
    """
    words = []
    for name, (_, theirs) in sorted(comparison.differing.items(), key=by_weight):
        if name == "attention_budget":
            words.append("full attention" if theirs is None else f"attention to {value_text(theirs)} tokens")
        elif name == "tool":
            words.append("without a tool" if theirs is None else f"with {value_text(theirs)}")
        elif name == "max_tokens":
            words.append(f"{value_text(theirs)} tokens")
        elif name in ("prompt", "system_prompt"):
            words.append("another prompt")
    stated = comparison.published.samples
    if None not in (stated, samples) and stated != samples:
        words.append("1 sample" if stated == 1 else f"{stated} samples")
    return list(dict.fromkeys(words))


def describe_settings(comparison: PublishedComparison) -> list[str]:
    """The settings that may explain a difference from a published score, one phrase per differing setting.

    If the verdict is "not compatible" and the source reports no settings, a phrase says so.
    """
    words = describe_differing(comparison.differing)
    published = comparison.published
    if comparison.verdict == "not compatible" and not published.states_settings:
        theirs = "guessed" if published.settings else "not reported"
        words.append(f"the settings are {theirs} by the source, so the difference may be due to them")
    return words


def as_printed(comparison: PublishedComparison, samples: float | None) -> str:
    """A published number as its source printed it, followed by the differences in brackets: `80 (1 sample)`."""
    differing = "; ".join(differences(comparison, samples))
    return comparison.published.printed + (f" ({differing})" if differing else "")


def reported_by(comparisons: Sequence[PublishedComparison], suite: str = "", samples: float | None = None) -> str:
    """Each source with its pass@1: `LLMEval 78.65 · vendor 79.5`; empty if nothing is published.

    comparisons: as `published_comparisons` returns them. suite: address of the suite's source. samples: number per
    question in the run.
    """
    return " · ".join(
        f"{visible(name, MAX_NAME_CHARS)} {as_printed(comparison, samples)}"
        for name, comparison in reported_scores(comparisons, "pass@1", suite)
    )


# ---- caveats of a comparison


def n_missing_samples(benchmark: ScoredBenchmark) -> int:
    """Number of planned samples missing from the score, which repeating the `harness run` command would add.

    0 for an imported file, which gets no more samples.
    """
    return 0 if benchmark.score is None or benchmark.record.imported else benchmark.score.n_missing


def look_warnings(
    run: ScoredRun, benchmark: ScoredBenchmark, baseline: ScoredRun, of_baseline: ScoredBenchmark
) -> list[str]:
    """Warnings if one of two compared runs is unfinished.

    benchmark, of_baseline: the compared benchmark in the run and in its baseline.
    """
    sides = {f"the run {visible(run.label)}": benchmark, f"the baseline {visible(baseline.label)}": of_baseline}
    return [
        _missing_samples(which, scored)
        for which, scored in sides.items()
        if scored.score is not None and scored.score.n_missing
    ]


def _missing_samples(which: str, scored: ScoredBenchmark) -> str:
    """The warning about a run with missing samples. scored: must have a score."""
    score = scored.score
    assert score is not None
    if scored.record.imported:
        return (
            f"{which} was created from a file with no row for {count_noun(score.n_missing, 'sample')}. If these "
            "questions were not asked, score the run with a benchmark file that contains only the others"
        )
    why = "The intervals are wide because they account for every possible result of these samples. "
    wide = why if score.partial else ""
    return (
        f"{which} is unfinished: {count_noun(score.n_missing, 'sample')} {is_are(score.n_missing)} missing. "
        f"{wide}To complete the run, repeat the `harness run` command. "
        "Compare only once: the false-alarm rate of 5% does not hold if you compare a growing run repeatedly"
    )


ANSWERED_ONCE = (
    "the answers were read from a file; if the same questions cannot be asked again, only more questions of this kind "
    "can produce a clearer result"
)
"""This sentence replaces the advice on new runs if a side of the comparison was read from a file."""

COMPLETE_FIRST = "first repeat the `harness run` command to complete the run"
"""This advice replaces all other advice if planned samples are missing from a run."""


def open_points(decision: Decision) -> list[str]:
    """The sentences about what a comparison leaves open, for `harness compare` and reports; empty if nothing is
    open.
    """
    lines, is_open = [], decision.verdict == "no difference seen"
    if is_open:
        missed = "even the largest possible difference would be missed in more than 20% of comparisons"
        if (points := decision.detectable) is not None:
            seen = f"a true difference of {in_percent(points)} points would be missed in 20% of comparisons"
            missed = f"{seen}, and a smaller one would be missed more often"
        lines.append(f"this does not mean that they are equal: {missed}")
    n_missing, effect = decision.paired.n_missing, "the intervals account for every possible result of these samples"
    if not n_missing:
        n_missing, effect = decision.n_missing, "the incomplete rounds are not counted"
    if n_missing:
        advice = f": {COMPLETE_FIRST}" if decision.n_missing else ""
        return [*lines, f"{count_noun(n_missing, 'sample')} {is_are(n_missing)} missing, and {effect}{advice}"]
    if is_open or (decision.margin is not None and decision.margin.verdict == "open"):
        lines.append(
            ANSWERED_ONCE if decision.imported else "use `harness plan` to find out how many samples two new runs need"
        )
    return lines


# ---- tables


def paired_table(
    baselines: Mapping[str, str], decisions: Sequence[Decision], uncompared: Sequence[tuple[str, str, str]] = ()
) -> Table:
    """The table of each run's paired differences from the baseline of its benchmark.

    baselines: benchmark → name of the run that the others are
    compared with. decisions: their warnings become notes. uncompared: (name of the run, benchmark, why it is not
    compared).
    """
    notes = Notes()
    notes.mark(AT_MOST * any(decision.paired.difference.at_most for decision in decisions))
    rows: list[tuple[str, ...]] = []
    for decision in decisions:
        label, comparison = decision.run, decision.paired
        remarks = [*decision.warnings, *why_narrower(comparison.difference, imported=decision.imported)]
        remarks += open_points(decision)
        other = baselines.get(comparison.benchmark, decision.baseline) != decision.baseline
        label += f" (with {decision.baseline})" * other
        n_same = comparison.n_questions - comparison.better - comparison.worse
        value, same, new = point_cells(comparison.difference)
        p_new = ABSENT if decision.p_question is None else p_cell(decision.p_question)
        rows.append(
            (
                short(label),
                short(comparison.benchmark) + notes.mark_remarks(label, comparison.benchmark, remarks),
                *(value, same, p_cell(decision.p_sampling), new, p_new, percent(decision.detectable)),
                f"{comparison.better} / {comparison.worse} / {n_same}",
            )
        )
    rows += _mean_rows(decisions, notes)
    for label, benchmark, why in uncompared:
        rows.append((short(label), short(benchmark) + notes.mark_remarks(label, benchmark, [why]), *[ABSENT] * 7))
    heads = ("difference", "same questions", "p", "new questions", "p", "detectable", "better / worse / same")
    title = (
        f"Paired differences from {_name_of(baselines)}, in points, with 95% intervals (same questions, sampled again; "
        "new questions of this kind). p: corrected for all comparisons in this table (Holm). detectable: minimum "
        "detectable difference (80% power)"
    )
    return Table.of(title, ("run", "benchmark"), heads, rows, notes.texts)


def _mean_rows(decisions: Sequence[Decision], notes: Notes) -> Iterator[tuple[str, ...]]:
    """A row for each run that shares several benchmarks with one baseline: the mean of their differences.

    notes: the reason is added here if the mean is not compared because samples are missing.
    """
    by_run: dict[tuple[str, str], list[Decision]] = {}
    for decision in decisions:
        by_run.setdefault((decision.run, decision.baseline), []).append(decision)
    for (label, _), of_run in by_run.items():
        if len(of_run) < 2:
            continue
        name, mean = f"mean of {len(of_run)} benchmarks", of_run[0].mean
        if mean is None:
            remark = notes.mark_remarks(label, name, ["not compared because samples are missing"])
            yield (short(label), name + remark, *[ABSENT] * 7)
            continue
        value, same, _ = point_cells(mean.compared.difference)
        p, detectable = p_cell(mean.p_sampling), percent(mean.detectable)
        yield (short(label), name, value, same, p, ABSENT, ABSENT, detectable, ABSENT)


def _name_of(baselines: Mapping[str, str]) -> str:
    """The baseline's name; if there are several baselines, each with its benchmark."""
    if len(set(baselines.values())) == 1:
        return short(next(iter(baselines.values())))
    each = "; ".join(f"{short(benchmark)}: {short(label)}" for benchmark, label in baselines.items())
    return f"the first run of each benchmark ({each})"


def published_table(comparisons: Sequence[tuple[str, PublishedComparison]], reasons: Iterable[str] = ()) -> Table:
    """The table that compares runs with published scores of the same model and benchmark, one row per comparison.

    The last column lists the differing settings, those with the largest effect on a score first. comparisons: (name of
    the run, its comparison with a published score). reasons: why published scores are not compared, for the notes.
    """
    notes, rows = Notes(), []
    for label, comparison in comparisons:
        reference = comparison.published
        source = reference.source
        by = "reported by the authors" if reference.by == "authors" else "measured by others"
        quoted = "quoted by " if reference.quoted else ""
        by_whom = f"{quoted}{source.citation}, {by}" + (f": {source.note}" if source.note else "")
        rows.append(
            (
                short(label),
                short(reference.benchmark),
                short(reference.measure),
                percent(comparison.ours),
                reference.printed + notes.mark(by_whom),
                ABSENT if comparison.p is None else p_cell(comparison.p),
                percent(comparison.detectable),
                comparison.verdict + (f": {comparison.reason}" if comparison.reason else ""),
                "; ".join(describe_settings(comparison)) or "none known",
            )
        )
    columns = ("run", "benchmark", "metric", "this run", "published", "p", "detectable", "verdict")
    measured = ", in %. detectable: minimum detectable difference (80% power)" if rows else ""
    return Table(
        f"Compared with published scores{measured}",
        (*columns, "settings that differ"),
        tuple(rows),
        (*notes.texts, *reasons),
        frozenset(range(3, 7)),
    )
