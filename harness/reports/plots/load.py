"""The load of the servers over the time of a run."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reports.plots.plot import Axis, Plot, lines_plot, round_values
from harness.scoring.engine_figures import Moment

MOMENTS = range(4, 121)
"""Fewest moments that make a picture, and most that it shows."""


def load_plots(moments: Sequence[Moment]) -> list[Plot]:
    """The client's tokens a second, and the requests that run and wait by the servers' pages; empty for a short run."""
    shown = moments[:: 1 + len(moments) // MOMENTS.stop]
    if len(shown) < MOMENTS.start:
        return []
    speed = [("client", moment.minutes, moment.tokens / moment.seconds) for moment in shown]
    requests = [(name, moment.minutes, getattr(moment, name)) for name in ("running", "waiting") for moment in shown]
    return [
        _plot("tokens-over-time", "Tokens a second, by the client", speed),
        _plot("requests-over-time", "Requests, by the servers' own pages", requests),
    ]


def _plot(name: str, title: str, points: Sequence[tuple[str, float, float | None]]) -> Plot:
    end, top = points[-1][1], max(1.0, *(value for *_, value in points if value is not None))
    x = Axis(0, end, [(value, f"{value:g}") for value in round_values(0, end)], "minutes of the run, without pauses")
    y = Axis(0, top, [(value, f"{value:,g}") for value in round_values(0, top, 5)], grid=True)
    columns = ("series", "minutes", "value", "low", "high")
    return lines_plot(name, title, "", columns, [(*point, None, None) for point in points], x, y)
