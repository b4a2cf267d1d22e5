"""A run beside the published scores of its model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.core.inert import visible
from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.reports.settings import by_weight, differing_in_words, settings_beside
from harness.runs.recorded_settings import in_words
from harness.scoring.comparison_published import PublishedComparison, compare_published, in_order, reported_scores
from harness.scoring.published import PublishedScore, matching

MAX_NAME_CHARS = 40
"""A source's name is cut to this length in a cell."""


def published_of(
    run: ScoredRun, benchmark: ScoredBenchmark, scores: Sequence[PublishedScore], model: str = ""
) -> list[PublishedScore]:
    """The published scores of this benchmark and of `model`, out of `scores`. model: empty means the run's own.

    If the benchmark holds other questions than the card of its name, they are those of the card (`other_questions`).
    """
    return matching(scores, model or run.manifest.model, benchmark.known_as or benchmark.name)


def beside(
    run: ScoredRun, benchmark: ScoredBenchmark, references: Iterable[PublishedScore]
) -> list[PublishedComparison]:
    """Compare a scored benchmark of a run with each of these published scores; the nearest come first (`in_order`).

    Empty if the run asked other questions than the benchmark has; `other_questions` then says so.
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


def other_questions(benchmark: ScoredBenchmark, references: Sequence[PublishedScore]) -> str:
    """Why the published scores are not compared: the run asked other questions under the benchmark's name.

    Empty if they are compared, or if `references` is empty.
    """
    if benchmark.known_as is not None or not references:
        return ""
    name = visible(benchmark.name, MAX_NAME_CHARS)
    return (
        f"no published score stands beside this run: its questions are not known to be those of {name}; if they are, "
        f"`harness benchmarks fetch {name}` lets them be compared"
    )


def label_of(benchmark: str, comparisons: Sequence[PublishedComparison]) -> str:
    """The benchmark, and in brackets the one whose questions it holds: `my_questions (aime24)`."""
    names = dict.fromkeys(entry.published.benchmark for entry in comparisons)
    others = [visible(name, MAX_NAME_CHARS) for name in names if name != benchmark]
    return visible(benchmark) + (f" ({', '.join(others)})" if others else "")


def differences(comparison: PublishedComparison, samples: float | None) -> list[str]:
    """The settings of a published score that differ from the run's, in words to show with its number.

    These are the attention budget, token budget, prompt and number of samples. samples: per question, in the run;
    None: unknown.
    """
    words = []
    for name, (_, theirs) in sorted(comparison.differing.items(), key=by_weight):
        if name == "attention_budget":
            words.append("full attention" if theirs is None else f"attention to {in_words(theirs)} tokens")
        elif name == "tool":
            words.append("without a tool" if theirs is None else f"with {in_words(theirs)}")
        elif name == "max_tokens":
            words.append(f"{in_words(theirs)} tokens")
        elif name in ("prompt", "system_prompt"):
            words.append("another prompt")
    stated = comparison.published.samples
    if None not in (stated, samples) and stated != samples:
        words.append("1 sample" if stated == 1 else f"{stated} samples")
    return list(dict.fromkeys(words))


def settings_in_words(comparison: PublishedComparison) -> list[str]:
    """The settings that may explain a difference from a published score, a phrase for each that differs.

    If the verdict is "not compatible", a source that states no settings gets a phrase that says so.
    """
    words = differing_in_words(comparison.differing)
    published = comparison.published
    if comparison.verdict == "not compatible" and not published.states_settings:
        theirs = "a guess" if published.settings else "none stated"
        words.append(f"settings: {theirs} there, so the difference may come from them")
    return words


def as_printed(comparison: PublishedComparison, samples: float | None) -> str:
    """A published number as its source printed it, with what differs in brackets: `80 (1 sample)`."""
    differing = "; ".join(differences(comparison, samples))
    return comparison.published.printed + (f" ({differing})" if differing else "")


def reported_by(comparisons: Sequence[PublishedComparison], suite: str = "", samples: float | None = None) -> str:
    """Each source with its pass@1: `LLMEval 78.65 · vendor 79.5`; empty where nothing is published.

    comparisons: as `beside` returns them. suite: address of the suite's source. samples: per question, in the run.
    """
    return " · ".join(
        f"{visible(name, MAX_NAME_CHARS)} {as_printed(comparison, samples)}"
        for name, comparison in reported_scores(comparisons, "pass@1", suite)
    )
