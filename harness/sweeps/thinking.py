"""The picture of thinking: accuracy against tokens spent, in a sweep over efforts, thinking budgets or `max_tokens`.

A truncated reply counts as wrong, so a budget looks like a lack of ability: a tick shows the accuracy of the replies
that were not truncated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from harness.core.sanitize import visible
from harness.reports.plots import plot
from harness.reports.plots.pictures import numbers_of
from harness.reports.plots.plot import TICK, Cell, Mark, Plot, Stroke, Words, key_of, share_axis, zero_axis
from harness.runs.recorded_settings import setting_differences
from harness.scoring.score import Score
from harness.sweeps.load_curve import pareto_front
from harness.sweeps.results import CellResult, Results

_SPENDING = re.compile("effort|thinking|reasoning|max_tokens")
"""Settings that determine how many tokens are spent."""


def thinking_plots(results: Results) -> Iterator[Plot]:
    """The picture of each benchmark for which such settings differ; checkpoints have curves of their own."""
    for entry in () if results.sweep.checkpoints else results.sweep.axes["benchmarks"]:
        of = [result for result in results.results if result.cell.benchmark == entry.name and result.benchmark]
        records = [result.benchmark.record for result in of if result.benchmark]
        if any(_SPENDING.search(each.field) for record in records for each in setting_differences(records[0], record)):
            spent = [
                (result, score, score.mean_completion_tokens)
                for result in of
                if (score := result.score) and score.accuracy and score.mean_completion_tokens
            ]
            if len(spent) > 1:
                yield _plot(results, entry.name, spent)


def _plot(results: Results, benchmark: str, spent: list[tuple[CellResult, Score, float]]) -> Plot:
    """The picture of one benchmark. spent: each cell with its score and its mean tokens per reply."""
    sweep, shares, rows = results.sweep, list[float | None](), list[tuple[Cell, ...]]()
    names = [sweep.configuration(result.cell, ("models", "servers", "prompts")) for result, _, _ in spent]
    keys = {name: key_of(number) for number, name in enumerate(dict.fromkeys(names))}
    at = [(tokens, score.accuracy.value) for _, score, tokens in spent if score.accuracy]
    right = 1.15 * max(tokens for tokens, _ in at)
    best = pareto_front(((benchmark, (-x, y), (x, y)) for x, y in at))
    marks: list[Mark] = [Stroke(best, plot.SOFT, 1, dash="4 4")]
    for name, (result, score, _), point in zip(names, spent, at, strict=True):
        key, label = keys[name], sweep.label("sampling", result.cell.point.get("sampling", ""))
        value, low, high, *_ = numbers_of(score.accuracy)
        cut = (score.n_truncated or 0) / max(1, score.n_samples)
        marks += [Stroke([(point[0], end), point], key.color, 1.5) for end in (low, high) if end is not None]
        if cut and score.accuracy_finished:
            marks.append(replace(key, at=(point[0], score.accuracy_finished.value), shape=TICK, title="not truncated"))
        marks += [
            replace(key, at=point, hollow=bool(cut), title=label),
            Words((point[0] + right / 50, point[1]), label),
        ]
        finished = score.accuracy_finished.value if score.accuracy_finished else None
        shares += [value, low, high, finished if cut else None]
        rows.append((name, label, *point, low, high, cut, finished, point in best))
    return Plot(
        name=f"{benchmark}-thinking",
        title=f"Accuracy vs. tokens spent: {visible(benchmark, 80)}",
        summary="Lines: 95% sampling intervals (same questions, sampled again). Dashed: the frontier. Hollow points "
        "have truncated replies, which count as wrong; ticks show the accuracy without them.",
        columns=("series", "setting", "tokens", "accuracy", "low", "high", "truncated", "finished", "frontier"),
        rows=tuple(rows),
        x=zero_axis(right, "mean completion tokens per reply"),
        y=share_axis(shares),
        marks=marks,
        legend=[(visible(name), key) for name, key in keys.items() if name],
        height=260,
    )
