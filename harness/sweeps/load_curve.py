"""The load curve of a sweep over `concurrency` or `rate`: throughput against per-user speed, with the accuracy.

A point is not on the frontier if another point is better on both axes, if samples are missing, or unless it is shown to
be less accurate than its base by less than `MARGIN`, because a server that drops tokens is fast. By default, the base
is the first configuration at its lowest load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, takewhile
from operator import itemgetter
from typing import NamedTuple, TypeVar

from msgspec.structs import astuple

from harness.core.number_text import count_points, exact, in_percent
from harness.core.sanitize import visible
from harness.core.time_limits import NAMES
from harness.reports.plots import plot
from harness.reports.plots.pictures import numbers_of
from harness.reports.plots.plot import Axis, Cell, Mark, Plot, Stroke, Words, key_of, lines_plot, zero_axis
from harness.reports.score_tables import UNKNOWN, engine_cell, rate_cell
from harness.reports.table import Notes, Table
from harness.scoring.goodput import Goodput, retry_warning
from harness.scoring.load import LoadPoint, Percentiles, Rate
from harness.scoring.stats import Estimate
from harness.scoring.table_cells import ABSENT
from harness.sweeps.columns import score_text
from harness.sweeps.results import CellResult, Results

T = TypeVar("T")

MARGIN = 0.01
"""Loss of accuracy that has to be ruled out for a point on the frontier, as a fraction."""

OVER_TIME = "Bands: 95% intervals based on variation over time."
"""The summary of a plot with intervals of rates."""

_ENGINE_HEADS = ("running", "waiting", "cache %", "preempted", "acceptance length")
"""Columns with the engine's own metrics."""


class CurvePoint(NamedTuple):
    """One load of one configuration.

    series: the configuration. load: the measured load; None if it was never reached. per: the number of GPUs that the
    throughput is divided by; 1 if unknown. offered: the value of the option `key`, the load.
    """

    series: str
    result: CellResult
    load: LoadPoint | None
    per: int

    offered: float
    key: str = "concurrency"

    @property
    def unit(self) -> str:
        """The unit of the load."""
        return "requests/s" if self.key == "rate" else "requests in flight"

    @property
    def late(self) -> str:
        """The warning that requests were sent late; empty if they were not."""
        warnings = self.result.score.warnings if self.result.score else ()
        return next((each.text for each in warnings if each.kind == "rate"), "")

    @property
    def failed(self) -> str:
        """The warning that requests failed at first; empty if few did."""
        return retry_warning(self.load.n_retried, self.load.requests) if self.load else ""

    @property
    def accuracy(self) -> Estimate | None:
        """Its accuracy; None if there is none."""
        return self.result.score.accuracy if self.result.score else None

    @property
    def goodput(self) -> Goodput | None:
        """The requests within the limits; None without limits or full load."""
        return (self.result.score and self.result.score.goodput) or None

    @property
    def possible_loss(self) -> float:
        """The largest loss of accuracy that its samples do not rule out (95% interval), as a fraction; 0 for a base."""
        pair = self.result.against_base
        if pair is None:
            return 0.0
        return 1.0 if pair.difference.sampling is None else -pair.difference.sampling.low

    @property
    def is_less_accurate(self) -> bool:
        """Whether its accuracy is shown to be below that of its base."""
        pair = self.result.against_base
        return pair is not None and self.result.differs and pair.difference.value < 0

    @property
    def verdict(self) -> str:
        """Why it is not on the frontier, however fast it is; empty if it may be."""
        if self.is_less_accurate:
            return "less accurate"
        lost = "" if self.possible_loss < MARGIN else f"may lose {count_points(in_percent(self.possible_loss))}"
        return "incomplete" if self.result.reason else "requests failed" if self.failed else lost

    @property
    def is_served(self) -> bool:
        """Whether it is complete, holds the limits and is not shown to be less accurate."""
        return bool(self.goodput and self.goodput.holds) and not (self.is_less_accurate or self.result.reason)

    @property
    def at(self) -> tuple[float, float] | None:
        """Its position in the plot: tokens per second per user, and per GPU; None if either is unknown."""
        if self.load is None or self.load.user_tokens_per_s is None:
            return None
        return self.load.user_tokens_per_s.value, self.load.tokens_per_s.value / self.per


def curve_points(results: Results) -> list[CurvePoint]:
    """The loads of a sweep, in order; empty if the sweep is not over loads."""
    sweep = results.sweep
    if not sweep.is_load_curve:
        return []
    all_gpus = [sweep.gpus(result.cell) for result in results.results]
    return [
        CurvePoint(
            sweep.configuration(result.cell),
            result,
            result.load,
            gpus if gpus and None not in all_gpus else 1,
            sweep.load(result.cell),
            sweep.load_key,
        )
        for result, gpus in zip(results.results, all_gpus, strict=True)
    ]


def frontier(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    """The points that no other point of their benchmark beats on both axes, in descending order of per-user speed."""
    return pareto_front((_benchmark(each), each.at, each) for each in points if each.at and not each.verdict)


def pareto_front(points: Iterable[tuple[str, tuple[float, float], T]]) -> list[T]:
    """The items that no other item of their group beats on both axes, in descending order of the first.

    points: group, position and item. On both axes, more is better.
    """
    best, kept = dict[str, float](), list[T]()
    for group, at, item in sorted(points, key=itemgetter(1), reverse=True):
        if at[1] > best.get(group, 0.0):
            kept.append(item)
            best[group] = at[1]
    return kept


def load_table(results: Results, star: str) -> Table | None:
    """A table with a row for each load; None if the sweep is not over loads. Columns without any value are left out.
    star: the meaning of the star, for the title.
    """
    if not (of := curve_points(results)):
        return None
    notes, best = Notes(), frontier(of)
    per_gpu = "/GPU" if any(each.per > 1 for each in of) or results.sweep.file.content.get("gpus") is not None else ""

    def lengths(point: CurvePoint) -> str:
        if (load := point.load) is None:
            return ABSENT + notes.mark(NO_LOAD if point.result.score else "")
        return f"{ABSENT if load.prompt_tokens is None else f'{load.prompt_tokens:,.0f}'} / {load.tokens:,.0f}"

    def engine(head: str, point: CurvePoint) -> str:
        metrics = point.result.score.engine if point.result.score else None
        return engine_cell(metrics, head) if metrics else ABSENT

    columns: dict[str, Callable[[CurvePoint], str]] = {
        "configuration": lambda each: each.series,
        of[0].unit.removeprefix("requests "): lambda each: (
            f"{each.offered:g}{notes.mark(each.late)}{notes.mark(each.failed)}"
        ),
        "frontier": lambda each: each.verdict or "yes" * (each in best),
        "accuracy %": lambda each: score_text(each.result, notes),
        "tokens in / out": lengths,
        "tokens/s": lambda each: _cell(each.load.tokens_per_s if each.load else None),
        "tokens/s/GPU": lambda each: _cell(each.load.tokens_per_s if each.load and per_gpu else None, 1 / each.per),
        "tokens/s/user": lambda each: _cell(each.load.user_tokens_per_s if each.load else None),
        "first token ms": lambda each: _cell(each.load.first_token if each.load else None, 1000),
        "ms/token": lambda each: _cell(each.load.time_per_token if each.load else None, 1000),
        "request s": lambda each: _cell(each.load.total if each.load else None),
        "gap p99 ms": lambda each: _cell(each.load.gap_p99 if each.load else None, 1000),
        "largest gap ms": lambda each: _cell(each.load.largest_gap if each.load else None, 1000),
        "within %": lambda each: _cell(each.goodput.within if each.goodput else None, 100),
        f"right within/s{per_gpu}": lambda each: _cell(
            each.goodput.right_per_s if each.goodput else None, 1 / each.per
        ),
        **{head: partial(engine, head) for head in _ENGINE_HEADS},
    }
    rows = [{head: text(each) for head, text in columns.items()} for each in of]
    heads = [head for head in columns if head == "frontier" or {row[head] for row in rows} - {ABSENT, UNKNOWN, ""}]
    names = [head for head in heads if head == "configuration"]
    title = (
        f"Load curve: p50 / p90 / p99 of the requests at full load; 95% intervals based on variation over time{star}"
    )
    cells = [[row[head] for head in heads] for row in rows]
    return replace(Table.of(title, names, heads[len(names) :], cells, notes.texts), n_names=len(names) + 1)


def advice(points: Sequence[CurvePoint]) -> list[str]:
    """For each configuration, a sentence with the load to serve with: the highest up to which every load keeps the
    limits; without limits, the one of the frontier with the most throughput.
    """
    sentences, best = [], frontier(points)
    by_curve: dict[tuple[str, str], list[CurvePoint]] = {}  # the loads of several benchmarks alternate
    for point in points:
        by_curve.setdefault((point.series, _benchmark(point)), []).append(point)
    for (series, _), each in by_curve.items():
        of = sorted(each, key=lambda point: point.offered)
        limited = [point for point in of if point.goodput]
        if limited and (first := limited[0].goodput):
            held = [*takewhile(lambda point: point.is_served, limited)]
            limits = f"{exact(first.share, 100)}% of the requests meet {first.limits.text}"
            if (above := limited[len(held) :]) and above[0].goodput and above[0].goodput.holds:
                limits += " and the accuracy is kept"
            why = f", the highest load at which {limits}", f"At no measured load could it be shown that {limits}"
        else:
            held = [point for point in of if point in best]
            reasons = ", ".join(dict.fromkeys(point.verdict for point in of if point.at and point.verdict))
            unknown = "No load has a known speed per user"
            why = "", f"No measured load can be recommended ({reasons})" if reasons else unknown
        name = f"{visible(series, 80)}: " if series else ""
        sentences.append(name + (f"Serve with {_describe_load(held[-1])}{why[0]}" if held else why[1]))
    return sentences


def _describe_load(point: CurvePoint) -> str:
    """A load with the speed that its users get, and what is known of its accuracy."""
    user = point.load and point.load.user_tokens_per_s
    speed = f" ({user.value:.3g} tokens/s per user)" if user else ""
    of_base = "" if point.result.against_base is None else ", which loses less than 1 point of accuracy"
    unit = point.unit.replace("requests", "request") if point.offered == 1 else point.unit
    return f"{point.offered:g} {unit}{speed}" + (f", which {point.verdict}" if point.verdict else of_base)


NO_LOAD = (
    "too few requests were in flight to reach this load, or the replies have no token counts, contain tool calls, or "
    "came from batches"
)
"""The note that explains why a load has no speeds."""


def _cell(value: Rate | Percentiles | float | None, factor: float = 1) -> str:
    """A rate with its interval, or one or three percentiles."""
    if value is None:
        return ABSENT
    if isinstance(value, Rate):
        return rate_cell(value, factor)
    numbers = [factor * each for each in (astuple(value) if isinstance(value, Percentiles) else [value])]
    return " / ".join(f"{each:.3g}" if each < 1_000 else f"{each:,.0f}" for each in numbers)


def curve_plots(results: Results) -> Iterator[Plot]:
    """Throughput against per-user speed, and accuracy against load."""
    of = curve_points(results)
    placed = [each for each in of if each.at is not None]
    if len({each.offered for each in placed}) > 1:
        limits = next((each.goodput.limits for each in placed if each.goodput), None)
        limit = next((name for name in NAMES if limits and getattr(limits, name)), "first_token")
        of_limit = {"first_token": "first_token", "token_gap": "time_per_token", "total": "total"}[limit]
        yield _times_plot("load-latency", limit, of_limit, placed, limits and getattr(limits, limit))
        if any(each.load and each.load.largest_gap for each in placed):
            yield _times_plot("load-stalls", "largest_gap", "largest_gap", placed)
    if placed:
        yield _curve_plot(placed)
    scored = [each for each in of if each.accuracy is not None]
    if len({each.offered for each in scored}) > 1:
        rows: list[tuple[Cell, ...]] = [(each.series, each.offered, *numbers_of(each.accuracy)) for each in scored]
        columns = ("series", scored[0].key, "accuracy", "low", "high", "question_low", "question_high")
        yield lines_plot("load-accuracy", "Accuracy against load", plot.BANDS, columns, rows, _loads_axis(scored))
    if limited := [(each, each.goodput) for each in scored if each.goodput]:
        heads = ("series", limited[0][0].key, "right_within", "low", "high", "within", "within_low", "within_high")
        shares = [(at.series, at.offered, *astuple(kept.right), *astuple(kept.within)) for at, kept in limited]
        title = "Right answers within the limits against load"
        yield lines_plot("load-goodput", title, OVER_TIME, heads, shares, _loads_axis([at for at, _ in limited]))


def _times_plot(
    plot_name: str, name: str, field: str, placed: Sequence[CurvePoint], limit: float | None = None
) -> Plot:
    """A time of the requests against the load, with its limit. name: of the time. field: its field of the load."""
    times = [(each, of) for each in placed if (of := getattr(each.load, field))]
    rows: list[tuple[Cell, ...]] = [(each.series, each.offered, of.p90, of.p50, of.p99) for each, of in times]
    x, marks, top = _loads_axis(placed), list[Mark](), [float(str(row[4])) for row in rows]
    summary = "Line: 90th percentile. Band: median to 99th percentile."
    if limit:
        marks.append(Stroke([(x.low, limit), (x.high, limit)], plot.SERIES[1], 1.5, dash="4 4"))
        top, summary = [*top, limit], f"{summary} Dashed: the limit."
    y = zero_axis(1.05 * max(top, default=1.0), at_most=5)
    title = f"{name.replace('_', ' ').capitalize()} against load, in seconds"
    return lines_plot(plot_name, title, summary, ("series", placed[0].key, "p90", "p50", "p99"), rows, x, y, marks)


def _loads_axis(points: Sequence[CurvePoint]) -> Axis:
    """The axis of the loads of these points."""
    loads = sorted({each.offered for each in points})
    return Axis(loads[0], loads[-1], [(n, f"{n:g}") for n in loads], points[0].unit, doubling=True)


def _curve_plot(placed: Sequence[CurvePoint]) -> Plot:
    """Throughput against per-user speed, with both errors, the load at each point, and the frontier."""
    names, best = list(dict.fromkeys(each.series for each in placed)), frontier(placed)
    keys = {name: key_of(number) for number, name in enumerate(names)}
    by_benchmark = groupby(sorted(best, key=_benchmark), _benchmark)
    marks: list[Mark] = [
        Stroke([each.at for each in of if each.at], plot.SOFT, 1, dash="4 4") for _, of in by_benchmark
    ]
    dots, rows, ends = list[Mark](), list[tuple[Cell, ...]](), list[tuple[float, float]]()
    for each in placed:
        load, at = each.load, each.at
        if load is None or at is None or load.user_tokens_per_s is None:
            continue
        user, total = _ends(load.user_tokens_per_s, 1), _ends(load.tokens_per_s, each.per)
        key = keys[each.series]
        marks += [Stroke([(end, at[1]) for end in user], key.color, 1.5)]
        marks += [Stroke([(at[0], end) for end in total], key.color, 1.5)]
        dots.append(replace(key, at=at, hollow=bool(each.verdict), title=f"{each.offered:g} {each.unit}"))
        ends += [(user[1], total[1]), at]
        shown = *at[:1], *user, *at[1:], *total, *numbers_of(each.accuracy)[:3]
        rows.append((each.series, each.offered, *shown, each in best, each.verdict))
    right, top = (1.1 * max(column) for column in zip(*ends, strict=True))
    dots += [Words((each.at[0] + right / 50, each.at[1] + top / 50), f"{each.offered:g}") for each in placed if each.at]
    unit = "tokens/s" if all(each.per == 1 for each in placed) else "tokens/s/GPU"
    out = ", ".join(f"{each.offered:g} ({each.verdict})" for each in placed if each.verdict)
    hollow = f" Hollow points are not on it: {out}." if out else ""
    columns = ("series", placed[0].key, "user_tokens_per_s", "user_low", "user_high", "tokens_per_s", "low", "high")
    return Plot(
        name="load-curve",
        title="Throughput vs. speed per user",
        summary=f"Numbers show {placed[0].unit}. Bars show 95% intervals based on variation over time. "
        f"The dashed line is the frontier.{hollow}",
        columns=(*columns, "accuracy", "accuracy_low", "accuracy_high", "frontier", "verdict"),
        rows=tuple(rows),
        x=zero_axis(right, "tokens/s/user"),
        y=zero_axis(top, unit, 5),
        marks=[*marks, *dots],
        legend=[(visible(name), key) for name, key in keys.items()],
        height=260,
    )


def _benchmark(point: CurvePoint) -> str:
    return point.result.cell.benchmark


def _ends(rate: Rate, by: int) -> tuple[float, float]:
    """The endpoints of a rate's interval; both equal its value if it has no interval."""
    low, high = (rate.value if end is None else end for end in (rate.low, rate.high))
    return low / by, high / by
