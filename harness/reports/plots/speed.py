"""Plots of a run over time: tokens per second, and the latency of replies."""

from __future__ import annotations

from collections.abc import Callable

from harness.reports.plots.plot import COUNT_AXIS, HEIGHT, SERIES, Cell, Plot, axis
from harness.reports.plots.plot import series as series_of
from harness.scoring.workload import Slice, Workload

MIN_FINISHED = 8
"""Smallest number of samples for plots over time."""


def speed_plots(workload: Workload | None) -> list[Plot]:
    """Throughput and latency over the busy time; empty for fewer than `MIN_FINISHED` samples."""
    if workload is None or workload.n_samples < MIN_FINISHED or not workload.slices:
        return []
    unit, seconds = _unit(workload.busy_s)
    plots = []
    throughput = [(part.start / seconds, part.tokens_per_s, part.in_flight) for part in workload.slices]
    if all(rate is not None for _, rate, _ in throughput):
        mean = sum(rate or 0.0 for _, rate, _ in throughput) / len(throughput)
        plots.append(
            Plot(
                name="throughput",
                title="Throughput",
                summary=f"{mean:,.0f} completion tokens a second on average, over the time with requests in flight.",
                columns=("time", "tokens_per_s", "in_flight"),
                rows=tuple(throughput),
                drawing={
                    "height": HEIGHT,
                    "mark": {"type": "area", "color": SERIES[0], "line": {"color": SERIES[0]}, "interpolate": "step"},
                    "encoding": {
                        "x": axis("time", unit, format=",~f"),
                        "y": axis("tokens_per_s", "tokens/s", **COUNT_AXIS),
                    },
                },
            )
        )
    rows: list[tuple[Cell, ...]] = [
        (name, part.start / seconds, value)
        for name, latency in _LATENCIES.items()
        for part in workload.slices
        if (value := latency(part)) is not None
    ]
    names = [name for name in _LATENCIES if any(row[0] == name for row in rows)]
    plots.append(
        Plot(
            name="latency",
            title="Latency",
            summary="Seconds since the request, for the replies that ended in each slice of the run.",
            columns=("series", "time", "seconds"),
            rows=tuple(rows),
            drawing={
                "mark": {"type": "line", "point": {"size": 14}},
                "encoding": {
                    "x": axis("time", unit, format=",~f"),
                    "y": axis("seconds", "seconds", format=",~f"),
                    "color": series_of(names),
                },
            },
        )
    )
    return plots


_LATENCIES: dict[str, Callable[[Slice], float | None]] = {
    "reply, 95 %": lambda part: part.latency_p95,
    "reply, median": lambda part: part.latency_p50,
    "first token, median": lambda part: part.first_token_p50,
}


def _unit(busy_s: float) -> tuple[str, float]:
    """Return (name, seconds) of the unit of time for the axis of a run of this length."""
    if busy_s < 180:
        return "seconds", 1.0
    return ("minutes", 60.0) if busy_s < 3 * 3600 else ("hours", 3600.0)
