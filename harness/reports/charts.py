"""Charts as inline SVG: no script, no style attribute, colours by class so that light and dark both work.

All coordinates are pixels of the chart's own view box; the page scales it. Every chart names itself for readers
of screens, and every mark that stands for something tells it in a tooltip.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from harness.core.inert import visible
from harness.reports.markup import Content, Markup, join, tag
from harness.reports.tables import interval_cell, percent
from harness.scoring import QuestionTally, Score

WIDTH = 720
SERIES = 6
"""Line colours that the style sheet knows; further runs begin again."""

MAX_CELLS = 2000
"""Questions shown in one strip."""

MAX_LABEL_CHARS = 28

_BINS = 24
_GROUPS = 8
_MIN_GROUP = 5
"""Fewest samples whose fraction correct is drawn as a point."""


def accuracy_chart(rows: Sequence[tuple[str, str, Score]]) -> Markup:
    """One line a (run, benchmark, score): dot = accuracy, thick bar = sampling, thin bar = question interval."""
    left, right, step, top = 270, 60, 26, 8
    scale = (WIDTH - left - right) / 100
    height = top + step * len(rows) + 26
    bottom = top + step * len(rows)
    marks: list[Content] = []
    for tick in (0, 25, 50, 75, 100):
        x = left + tick * scale
        marks.append(tag("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom))
        marks.append(tag("text", tick, class_="tick", x=x, y=bottom + 16, text_anchor="middle"))
    for place, (label, benchmark, score) in enumerate(rows):
        y = top + step * (place + 0.5)
        name = f"{visible(label, MAX_LABEL_CHARS)} · {visible(benchmark, 16)}"
        marks.append(tag("text", name, class_="label", x=left - 12, y=y + 4, text_anchor="end"))
        if score.accuracy is None:
            marks.append(tag("text", "no samples", class_="tick", x=left + 6, y=y + 4))
            continue
        x = left + 100 * score.accuracy * scale
        drawn: list[Content] = [
            tag(
                "title",
                f"{label}, {benchmark}: {percent(score.accuracy)} %, sampling interval "
                f"{interval_cell(score.sampling_interval)}, question interval {interval_cell(score.question_interval)}",
            )
        ]
        for kind, interval in (("thin", score.question_interval), ("thick", score.sampling_interval)):
            if interval is not None:
                x1, x2 = (left + 100 * end * scale for end in interval)
                drawn.append(tag("line", class_=f"error {kind}", x1=x1, x2=x2, y1=y, y2=y))
        drawn.append(tag("circle", class_="dot", cx=x, cy=y, r=4))
        marks.append(tag("g", *drawn))
        marks.append(tag("text", percent(score.accuracy), class_="value", x=WIDTH - right + 14, y=y + 4))
    return _chart("Accuracy of each run", height, *marks)


def question_strip(questions: Sequence[QuestionTally]) -> Markup:
    """One cell a question in the order asked: the fuller the colour, the more of its samples are correct."""
    shown = questions[:MAX_CELLS]
    columns = min(100, max(30, len(shown)))
    size = WIDTH / columns
    rows = -(-len(shown) // columns)
    height = min(size, 24)
    cells: list[Content] = []
    for place, item in enumerate(shown):
        x, y = (place % columns) * size, (place // columns) * height
        title = tag("title", f"{visible(item.question.question_id, 60)}: {item.correct} of {item.n} correct")
        frame = {"x": x + 0.5, "y": y + 0.5, "width": size - 1, "height": height - 1}
        cells.append(tag("rect", class_="cell", **frame))
        opacity = f"{item.correct / item.n:.2f}" if item.n else "0"
        cells.append(tag("rect", title, class_="hit" if item.n else "void", fill_opacity=opacity, **frame))
    return _chart("Fraction correct of each question", rows * height, *cells)


def sample_strip(item: QuestionTally, most: int = 64) -> Markup:
    """The verdicts of one question's samples, in order of their index; one path a kind keeps many marks small."""
    step, height = 4, 12
    kinds: dict[str, list[str]] = {}
    for place, grade in enumerate(item.grades[:most]):
        kind = "cut" if grade.truncated and grade.verdict != "correct" else grade.verdict
        kinds.setdefault(kind, []).append(f"M{place * step} 1h3v10h-3z")
    width = step * max(1, min(item.n, most))
    paths = [tag("path", class_=f"mark {kind}", d="".join(path)) for kind, path in sorted(kinds.items())]
    return tag(
        "svg",
        tag("title", f"{item.correct} of {item.n} correct"),
        *paths,
        class_="samples",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
    )


def budget_chart(rows: Sequence[tuple[str, Score]]) -> Markup:
    """pass@k (solid) and maj@k (dashed) against k, doubling; one colour a run."""
    left, right, top, bottom = 46, 190, 10, 210
    ks = sorted({k for _, score in rows for k in score.pass_at})
    if len(ks) < 2:
        return Markup("")
    x_of = {k: left + place * (WIDTH - left - right) / (len(ks) - 1) for place, k in enumerate(ks)}

    def y_of(value: float) -> float:
        return bottom - value * (bottom - top)

    marks: list[Content] = []
    for tick in (0, 25, 50, 75, 100):
        y = y_of(tick / 100)
        marks.append(tag("line", class_="grid", x1=left, x2=WIDTH - right, y1=y, y2=y))
        marks.append(tag("text", tick, class_="tick", x=left - 8, y=y + 4, text_anchor="end"))
    marks += [tag("text", k, class_="tick", x=x, y=bottom + 18, text_anchor="middle") for k, x in x_of.items()]
    for place, (label, score) in enumerate(rows):
        for kind, curve in (("pass", score.pass_at), ("maj", score.maj_at)):
            points = " ".join(f"{x_of[k]:.1f},{y_of(value):.1f}" for k, value in sorted(curve.items()))
            name = tag("title", f"{label}: {kind}@k")
            marks.append(tag("polyline", name, class_=f"curve {kind} s{place % SERIES}", points=points))
        y = top + 14 + 20 * place
        marks.append(
            tag("line", class_=f"curve s{place % SERIES}", x1=WIDTH - right + 14, x2=WIDTH - right + 34, y1=y, y2=y)
        )
        marks.append(tag("text", visible(label, 18), class_="label", x=WIDTH - right + 40, y=y + 4))
    marks.append(
        tag("text", "samples k", class_="tick", x=(left + WIDTH - right) / 2, y=bottom + 36, text_anchor="middle")
    )
    return _chart("pass@k and maj@k", max(bottom + 42, top + 20 * len(rows) + 20), *marks)


def length_chart(questions: Sequence[QuestionTally]) -> Markup:
    """How long completions are, correct ones below and the others above; then the fraction correct by length."""
    sized = [
        (g.completion_tokens, g.verdict == "correct")
        for q in questions
        for g in q.grades
        if g.completion_tokens is not None
    ]
    longest = max((tokens for tokens, _ in sized), default=0)
    if not longest:
        return Markup("")
    gap = 60
    half = (WIDTH - gap) / 2 - 30
    top, bottom = 24, 154
    marks = [
        tag("text", "samples by completion tokens", class_="label", x=30, y=12),
        tag("text", "% correct by completion tokens", class_="label", x=30 + half + gap, y=12),
        *_histogram(sized, longest, 30, half, top, bottom),
        *_correct_by_length(sized, longest, 30 + half + gap, half, top, bottom),
    ]
    return _chart("Completion lengths", bottom + 24, *marks)


def _histogram(
    sized: Sequence[tuple[int, bool]], longest: int, left: float, width: float, top: float, bottom: float
) -> list[Content]:
    right_counts, other_counts = [0] * _BINS, [0] * _BINS
    for tokens, correct in sized:
        (right_counts if correct else other_counts)[min(_BINS - 1, tokens * _BINS // longest)] += 1
    tallest = max(map(sum, zip(right_counts, other_counts, strict=True)))
    scale, step = (bottom - top) / tallest, width / _BINS
    marks: list[Content] = [tag("line", class_="axis", x1=left, x2=left + width, y1=bottom, y2=bottom)]
    for place, (right, other) in enumerate(zip(right_counts, other_counts, strict=True)):
        first, last = place * longest // _BINS, (place + 1) * longest // _BINS
        title = tag("title", f"{first} to {last} tokens: {right} correct, {other} not")
        x = left + place * step
        bars = [
            tag(
                "rect", class_="mark correct", x=x + 0.5, width=step - 1, y=bottom - right * scale, height=right * scale
            ),
            tag(
                "rect",
                class_="mark wrong",
                x=x + 0.5,
                width=step - 1,
                y=bottom - (right + other) * scale,
                height=other * scale,
            ),
        ]
        if right + other:
            marks.append(tag("g", title, *bars))
    marks.append(tag("text", tallest, class_="tick", x=left - 6, y=top + 4, text_anchor="end"))
    return marks + _length_ticks(longest, left, width, bottom)


def _correct_by_length(
    sized: Sequence[tuple[int, bool]], longest: int, left: float, width: float, top: float, bottom: float
) -> list[Content]:
    """Points for groups of about equally many samples, each at its mean length."""
    marks: list[Content] = []
    for tick in (0, 50, 100):
        y = bottom - tick / 100 * (bottom - top)
        marks.append(tag("line", class_="grid", x1=left, x2=left + width, y1=y, y2=y))
        marks.append(tag("text", tick, class_="tick", x=left - 6, y=y + 4, text_anchor="end"))
    ordered = sorted(sized)
    groups = max(1, min(_GROUPS, len(ordered) // _MIN_GROUP))
    edges = [place * len(ordered) // groups for place in range(groups + 1)]
    points: list[tuple[float, float]] = []
    dots: list[Content] = []
    for first, last in itertools.pairwise(edges):
        group = ordered[first:last]
        mean = sum(tokens for tokens, _ in group) / len(group)
        share = sum(correct for _, correct in group) / len(group)
        x, y = left + mean / longest * width, bottom - share * (bottom - top)
        points.append((x, y))
        title = tag("title", f"{len(group)} samples of {mean:.0f} tokens on average: {percent(share)} % correct")
        dots.append(tag("circle", title, class_="dot", cx=x, cy=y, r=3.5))
    line = tag("polyline", class_="curve s0", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))
    return [*marks, line, *dots, *_length_ticks(longest, left, width, bottom)]


def _length_ticks(longest: int, left: float, width: float, bottom: float) -> list[Content]:
    return [
        tag(
            "text",
            f"{round(share * longest):,}",
            class_="tick",
            x=left + share * width,
            y=bottom + 16,
            text_anchor=anchor,
        )
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    ]


def _chart(name: str, height: float, *marks: Content) -> Markup:
    return tag("svg", join(marks), class_="chart", viewBox=f"0 0 {WIDTH} {height:.0f}", role="img", aria_label=name)
