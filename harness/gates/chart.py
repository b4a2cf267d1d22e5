"""The control chart of a gate: the nights of one benchmark as points with intervals, its reference and its limit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.core.inert import visible
from harness.core.nouns import in_percent
from harness.gates.decide import Checked, Gated, nights_of
from harness.reports.plots.plot import AXIS, SERIES, Axis, Dot, Mark, Plot, Stroke, round_values
from harness.scoring.stats import Z_95

MAX_NIGHTS = 90
"""Largest number of nights that a chart shows: the latest."""

COLOURS = {"pass": SERIES[0], "fail": SERIES[1], "waived": SERIES[4]}
"""State of a night → the colour of its point; other states have that of the axis."""

CAPTION = (
    "Points: runs with 95 % intervals of sampling and deviation; filled: taught the deviation of runs, hollow: not. "
    "Blue passed, red failed, ochre was waived, grey is undecided. Line: the reference; dashed: with the loss."
)


def chart(benchmark: str, entries: Sequence[Gated]) -> Plot | None:
    """The picture of a benchmark; None if no night has an accuracy."""
    nights = [(entry, check) for entry in entries for check in entry.checks if check.benchmark == benchmark]
    shown = [(entry, check) for entry, check in nights if check.accuracy is not None][-MAX_NIGHTS:]
    if not shown:
        return None
    taught = [id(check) for check in nights_of(benchmark, shown[-1][1].key, entries) if not check.odd]
    marks: list[Mark] = []
    for colour, dash, share in ((AXIS, "", 0), (SERIES[1], "4 3", 1)):
        ends = [(number + half, check) for number, (_, check) in enumerate(shown) for half in (-0.5, 0.5)]
        marks.append(Stroke([(x, check.reference - share * check.loss) for x, check in ends], colour, 1, dash=dash))
    for number, (entry, check) in enumerate(shown):
        colour, (low, high) = COLOURS.get(check.state, AXIS), _interval(check)
        marks.append(Stroke([(number, low), (number, high)], colour, 1.5, 0.6))
        title = f"{entry.sampled} {check.state}: {check.why}"
        size = max(0.5, min(1.0, 30 / len(shown)))
        at = (number, check.accuracy or 0.0)
        marks.append(Dot(at, colour, size=size, hollow=id(check) not in taught, title=title))
    seen = [end for _, check in shown for end in (*_interval(check), check.reference, check.reference - check.loss)]
    low, high = min(seen), max(seen)
    days = [(number, visible(entry.sampled[:10], 10)) for number, (entry, _) in enumerate(shown)]
    return Plot(
        name=f"gate-{benchmark}",
        title=visible(benchmark, 80),
        summary=CAPTION,
        columns=("run", "sampled", "state", "accuracy", "low", "high", "reference", "loss"),
        rows=tuple(
            (entry.run, entry.sampled, check.state, check.accuracy, *_interval(check), check.reference, check.loss)
            for entry, check in shown
        ),
        x=Axis(-0.5, len(shown) - 0.5, days),
        y=Axis(
            low,
            high,
            [(value, f"{in_percent(value)}") for value in round_values(low, high, 5)],
            "accuracy in %",
            grid=True,
        ),
        marks=marks,
    )


def _interval(check: Checked) -> tuple[float, float]:
    """The accuracy of a night, less and plus the 95 % reach of sampling and deviation."""
    reach = Z_95 * math.sqrt(check.variance + check.deviation**2)
    return max(0.0, (check.accuracy or 0.0) - reach), min(1.0, (check.accuracy or 0.0) + reach)
