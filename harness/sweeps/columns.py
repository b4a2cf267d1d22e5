"""The columns of the sweep tables with one row per cell.

A suite lists the columns of the document that it reproduces (`table: {shown: …}`). Published numbers keep the digits of
their source and are followed by the settings known to differ, in brackets; a footnote names the source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from harness.core.sanitize import visible
from harness.deciding import published_order
from harness.deciding.published_comparison import PublishedComparison
from harness.reports import comparison_tables
from harness.reports.table import AT_MOST, Notes
from harness.scoring.score import Score
from harness.scoring.stats import Estimate
from harness.scoring.table_cells import ABSENT, accuracy_cell, percent, with_interval
from harness.scoring.uncertainty import pass_at
from harness.sweeps.results import CellResult

MARK = " *"
"""Follows the accuracy of a cell that differs significantly from its base cell."""


PER_QUESTION = (
    "error per question, as reported by SGLang: the mean of sd/√n over questions. The sampling error of the "
    "accuracy is smaller than this by a factor of about the square root of the number of questions"
)
"""The footnote for `error_per_question`."""


def score_text(result: CellResult, notes: Notes) -> str:
    """The accuracy of a cell in %, with `MARK` if it differs from its base, and with footnotes on missing and undecided
    samples, on a comparison that could not be made, on a model whose files have changed, and on "at most". A cell
    without a score is "missing", with a footnote that explains why; cells with the same reason share it.
    """
    if result.score is None:
        return f"missing{notes.mark(result.reason)}"
    accuracy = accuracy_cell(result.score)
    marks = notes.mark(*result.notes, AT_MOST * ("at most" in accuracy))
    return accuracy + (MARK if result.differs else "") + marks


def published_text(comparison: PublishedComparison | None, samples: float | None, notes: Notes, why: str = "") -> str:
    """A published number as printed, with the settings that differ in brackets and a footnote: `80 (1 sample) [2]`.

    comparison: comparison with that number; None if nothing is published, in which case the text is `ABSENT` with the
    footnote `why`. samples: our samples per question; None if unknown.
    """
    if comparison is None:
        return ABSENT + notes.mark(why)
    return comparison_tables.as_printed(comparison, samples) + notes.mark(_source(comparison))


def pass_at_k(result: CellResult, k: int) -> Estimate | None:
    """The pass@k of a scored cell; None if a question has fewer than k samples."""
    assert result.score is not None
    assert result.benchmark is not None
    if k in result.score.pass_at:
        return result.score.pass_at[k]
    if result.score.points_of and not result.score.right_from:
        return None
    items = [item for item in result.benchmark.questions if item.n]
    return pass_at(items, k).estimate if items and all(item.n >= k for item in items) else None


def _source(comparison: PublishedComparison) -> str:
    """The footnote for a published number: its source and the settings that differ."""
    reference = comparison.published
    quoted = "quoted by " if reference.quoted else ""
    parts = [f"{quoted}{visible(reference.source.citation)}", *comparison_tables.describe_settings(comparison)]
    if reference.samples is None and not reference.quoted:
        parts.append("number of samples not reported")
    return "; ".join(parts)


def _at_k(result: CellResult, k: int, notes: Notes) -> str:
    value = pass_at_k(result, k)
    few = "" if value is not None else f"{result.cell.name}: fewer than {k} samples per question"
    return with_interval(value) + notes.mark(few)


def _error_per_question(result: CellResult, _k: int, notes: Notes) -> str:
    """The mean over questions of the standard error of each question's accuracy, as reported by SGLang's benchmark."""
    several = [item for item in result.benchmark.questions if item.n > 1] if result.benchmark else []
    if not several:
        return ABSENT
    errors = [math.sqrt(item.right * (item.n - item.right) / (item.n - 1)) / item.n for item in several]
    return percent(math.fsum(errors) / len(errors)) + notes.mark(PER_QUESTION)


def _published(choose: Choose, metric: str = "pass@1") -> Text:
    """The texts of a column that shows a published number for this metric, with `{k}` for the k of pass@k."""

    def text(result: CellResult, k: int, notes: Notes) -> str:
        comparison = choose(result.published, metric.format(k=k), result.suite)
        return published_text(comparison, result.samples, notes, result.other_questions)

    return text


def _published_column(value: Callable[[PublishedComparison], str]) -> Text:
    """The texts of a column that shows `value` of the nearest published pass@1."""

    def text(result: CellResult, _k: int, _notes: Notes) -> str:
        nearest = result.nearest
        return (value(nearest) if nearest is not None else "") or ABSENT

    return text


def _scored(value: Callable[[Score], str]) -> Text:
    """The texts of a column that shows `value` of the cell's score."""
    return lambda cell, _k, _notes: ABSENT if cell.score is None else value(cell.score)


def _improvement(result: CellResult, _k: int, _notes: Notes) -> str:
    nearest, score = result.nearest, result.score
    if nearest is None or not nearest.published.previous or score is None or score.accuracy is None:
        return ABSENT
    return f"{100 * score.accuracy.value - float(nearest.published.previous):+z.1f}"


def _training_samples(result: CellResult, _k: int, _notes: Notes) -> str:
    """The samples used to train the model. Since they do not depend on settings, a published mean over settings may
    supply them, too.
    """
    stated = (one.published.training_samples for one in result.published if one.published.training_samples)
    return visible(next(stated, ABSENT))


def _sources(result: CellResult, _k: int, _notes: Notes) -> str:
    """Every source's number for the cell: `LLMEval 78.65 · vendor 79.5`; or why the published numbers do not apply."""
    reported = comparison_tables.reported_by(result.published, result.suite, result.samples)
    return result.other_questions or reported or ABSENT


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:,.0f}"


Text = Callable[[CellResult, int, Notes], str]
"""Makes the text of a scored cell from (its result, k, the footnotes)."""

Choose = Callable[[Sequence[PublishedComparison], str, str], PublishedComparison | None]
"""Returns the comparison to show, given (a cell's comparisons with published numbers, a metric, the suite's address); a
function from `harness.deciding.published_order`.
"""

COLUMNS: Mapping[str, tuple[str, Text]] = MappingProxyType(
    {
        "samples": ("samples", lambda cell, _k, _notes: ABSENT if cell.samples is None else str(cell.samples)),
        "accuracy": ("pass@1", lambda cell, _k, notes: score_text(cell, notes)),
        "reported": ("reported", _published(published_order.nearest)),
        "pass_at_k": ("pass@{k}", _at_k),
        "reported_at_k": ("reported", _published(published_order.nearest, "pass@{k}")),
        "sources": ("reported by", _sources),
        "vendor": ("by the model's authors", _published(published_order.vendor)),
        "quoted": ("quoted", _published(published_order.quotation)),
        "verdict": ("verdict", lambda cell, _k, _notes: cell.standing or ABSENT),
        "error": ("sampling error", _scored(lambda score: percent(score.sampling_error))),
        "error_per_question": ("error per question", _error_per_question),
        "reported_error": ("reported error", _published_column(lambda one: percent(one.published.standard_error))),
        "tokens": ("mean tokens", _scored(lambda score: _number(score.mean_completion_tokens))),
        "reported_tokens": ("reported tokens", _published_column(lambda one: _number(one.published.mean_tokens))),
        "training_samples": ("training samples", _training_samples),
        "previous": ("previous best", _published_column(lambda one: one.published.previous)),
        "improvement": ("improvement", _improvement),
        "reported_improvement": ("reported improvement", _published_column(lambda one: one.published.improvement)),
    }
)
"""Name in `table: {shown: …}` → (the heading, with `{k}` for the k of pass@k; the function that makes its texts)."""


def column_heads(names: Sequence[str], ks: Collection[int]) -> list[str]:
    """The headings of these columns. ks: all values of k for pass@k among the rows."""
    (k,) = ks if len(ks) == 1 else ("k",)
    return [COLUMNS[name][0].format(k=k) for name in names]


def column_texts(names: Sequence[str], result: CellResult, k: int, notes: Notes) -> list[str]:
    """The texts of these columns for one cell; if it has no score, only the accuracy column has a text."""
    if result.score is None:
        return [score_text(result, notes) if name == "accuracy" else ABSENT for name in names]
    return [COLUMNS[name][1](result, k, notes) for name in names]
