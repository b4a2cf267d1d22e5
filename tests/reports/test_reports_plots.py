"""Plots: their data are the scores' own, their pictures hold text as text, and nothing foreign acts in a file.

For: harness.reports.plots.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.core.sanitize import visible
from harness.reports.plots.pictures import MAX_ROWS, Labeled, PublishedTick, accuracy_plot
from harness.reports.plots.plot import (
    DARK_STYLE,
    LABEL_CHARS,
    MAX_LABEL_CHARS,
    TICK,
    WIDTH,
    Axis,
    Plot,
    label,
    lines_plot,
    round_values,
    share_axis,
    write_plots,
)
from harness.reports.report import Report, report
from tests.reports.payloads import PAYLOADS
from tests.reports.run_folders import write_run

pytestmark = pytest.mark.slow

HARMLESS = {"svg", "path", "rect", "text", "title"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("runs")
    runs = [
        write_run(folder / "base", benchmarks=[("demo", 12, 8), ("other", 30, 4)], cut=0.5),
        write_run(folder / "tuned", benchmarks=[("demo", 12, 8)], strength=0.7, seed=2, cut=0.3),
    ]
    return report(runs)


@pytest.fixture(scope="module")
def plots(made: Report) -> dict[str, Plot]:
    return {plot.name: plot for plot in made.plots()}


def column(plot: Plot, name: str) -> list[object]:
    return [row[plot.columns.index(name)] for row in plot.rows]


def test_accuracy_and_its_intervals_are_the_scores_own(made: Report, plots: dict[str, Plot]) -> None:
    plot = plots["accuracy"]
    scores = {f"{run.label} · {name}": score for run, b, score in made.scores for name in [b.name]}
    assert set(column(plot, "series")) == set(scores)
    for row in plot.rows:
        values = dict(zip(plot.columns, row, strict=True))
        score = scores[str(values["series"])]
        assert values["accuracy"] == score.accuracy.value
        assert (values["sampling_low"], values["sampling_high"]) == score.accuracy.sampling
        assert (values["question_low"], values["question_high"]) == score.accuracy.question


def test_curves_go_through_the_scores_values_with_their_bands(made: Report, plots: dict[str, Plot]) -> None:
    score = made.scores[0][2]
    plot = plots["base-demo-curves"]
    found = {(str(row[0])[:6], row[1]): row[2:] for row in plot.rows}
    for k, one in score.pass_at.items():
        assert found["pass@k", k] == (one.value, *(one.sampling or ()))
        assert found["maj@k:", k][0] == score.maj_at[k].value
        assert found["pass^k", k][0] == score.pass_hat[k].value


def test_the_scatter_pairs_each_question_with_itself(made: Report, plots: dict[str, Plot]) -> None:
    ours, theirs = (
        {item.question.question_id: item.right / item.n for item in run.benchmarks["demo"].questions}
        for run in made.runs
    )
    for question, baseline, other, *_ in plots["demo-scatter-1"].rows:
        assert (baseline, other) == (ours[str(question)], theirs[str(question)])


def drawn(plot: Plot, *, alone: bool = False) -> ET.Element:
    """The picture: harmless elements, no text below 11 pixels, each color with a dark twin, all within its frame."""
    root = ET.fromstring(plot.svg(alone=alone).replace(' xmlns="http://www.w3.org/2000/svg"', ""))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert width == WIDTH
    assert {element.tag for element in root.iter()} <= HARMLESS | ({"style"} if alone else set())
    for element in root.iter():
        attributes = element.attrib
        assert not any(name.startswith("on") or name.endswith("href") or name == "style" for name in attributes)
        for kind in ("fill", "stroke"):
            assert attributes.get(kind, "none") == "none" or f'[{kind}="{attributes[kind]}"]' in DARK_STYLE
        if element.tag == "text":
            assert float(attributes["font-size"]) >= 11
            x, room = float(attributes["x"]), 5.5 * len(element.text or "")
            share = {"start": 0.0, "middle": 0.5, "end": 1.0}[attributes["text-anchor"]]
            assert x - share * room >= -1, element.text
            assert x + (1 - share) * room <= width + 1, element.text
            assert 0 < float(attributes["y"]) <= height
        if element.tag == "path" and "transform" not in attributes:
            at = [float(number) for number in re.findall(r"-?[\d.]+|nan|inf", attributes["d"])]
            assert all(0 <= x <= width for x in at[::2])
            assert all(0 <= y <= height for y in at[1::2])
        if "transform" in attributes:
            x, y, size = map(float, re.findall(r"[-\d.]+", attributes["transform"]))
            assert 0 <= x <= width
            assert 0 <= y <= height
            assert size > 0
    return root


def test_a_plot_stays_in_its_frame_with_real_text_in_light_and_dark_colors(plots: dict[str, Plot]) -> None:
    assert all(len(list(drawn(plot).iter("text"))) > 3 for plot in plots.values())


WHEREVER = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 1e-9, 1e12])


@given(
    st.lists(
        st.tuples(st.text(max_size=60), WHEREVER, st.none() | WHEREVER, st.none() | WHEREVER, st.none() | WHEREVER),
        max_size=12,
    ),
    WHEREVER,
    WHEREVER,
    st.booleans(),
    st.text(max_size=120),
)
@example([], 1.0018088079523295, 1.0018088079523295, False, "0")  # an axis with a title and no tick
def test_whatever_is_drawn_lies_within_the_frame(
    rows: list[tuple[str, float, float | None, float | None, float | None]],
    low: float,
    high: float,
    doubling: bool,
    text: str,
) -> None:
    low, high = sorted((low, high))
    ticks = [(value, f"{value:g}") for value in round_values(low, high)]
    across, up = Axis(low, high, ticks, text), Axis(low, high, ticks, text, grid=True)
    if doubling:
        across = Axis(2.0, 2.0**20, [(2.0**n, str(2**n)) for n in range(1, 21)], text, grid=True, doubling=True)
        rows = [(row[0], abs(row[1]) + 0.1, *row[2:]) for row in rows]
    plot = replace(lines_plot("name", text, "", (), rows, across, up), subject=text)
    drawn(plot)
    drawn(plot, alone=True)


def test_published_scores_are_ticks_beside_the_accuracy_named_as_printed(made: Report) -> None:
    score = made.scores[0][2]
    ticks = [PublishedTick("vendor", "79.50", 0.795), PublishedTick("LLMEval", "78.65", 0.7865)]
    plot = accuracy_plot([Labeled("mine", score.accuracy, ticks), Labeled("none", None)])
    assert plot is not None
    texts = [text.text for text in drawn(plot).iter("text")]
    assert "published: vendor 79.50 · LLMEval 78.65" in texts
    places = [float(x) for x in re.findall(rf'd="{TICK}" transform="translate\(([\d.]+) ', plot.svg())]
    right, left = WIDTH - 10, 12 - 7  # the axis of a plot without labels on its left
    assert places == [pytest.approx(left + (right - left) * plot.x.share(tick.value), abs=0.06) for tick in ticks]
    assert "none" not in column(plot, "series")
    many = accuracy_plot([Labeled(str(n), score.accuracy) for n in range(MAX_ROWS + 5)])
    assert many is not None
    assert len(many.rows) == MAX_ROWS
    assert all("The first 60 of 65" in shown for shown in (many.summary, many.svg(alone=True)))


@given(st.text(max_size=400))
def test_a_label_keeps_its_text_up_to_its_bound(text: str) -> None:
    shown = label(text)
    assert max(map(len, shown.split("\n"))) <= LABEL_CHARS
    kept = re.sub(r"\s", "", shown)
    assert kept == re.sub(r"\s", "", visible(text, MAX_LABEL_CHARS))


def test_hostile_texts_are_text_in_every_file_of_every_plot(tmp_path: Path) -> None:
    texts = [payload.format(url="http://example.invalid") for payload in PAYLOADS]
    hostile = itertools.cycle(texts)
    runs = [
        write_run(
            tmp_path / f"<script>alert({number})</script>"[:20].replace("/", "-"),
            model=next(hostile).encode("utf-8", "replace").decode(),
            benchmarks=[("<img src=x onerror=alert(1)>", len(texts), 3)],
            spoil=lambda text: next(hostile) + text,
        )
        for number in (1, 2)
    ]
    hostiles = [*report(runs).plots()]
    assert all(drawn(plot, alone=True) is not None for plot in hostiles)
    for file in write_plots(hostiles, tmp_path / "plots"):
        assert file.parent == tmp_path / "plots"
        if file.suffix == ".csv":
            cells = [cell for row in csv.reader(io.StringIO(file.read_text("utf-8"))) for cell in row]
            assert not any(cell[:1] in ("=", "+", "@", "\t", "\r") for cell in cells)
            assert not any(cell.startswith("-") and not re.fullmatch(r"-[\d.e-]+", cell) for cell in cells)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.41, 0.43), "41% 42% 43%"),
        ((0.4, 0.6), "40% 45% 50% 55% 60%"),
        ((0.02, 0.97), "0% 20% 40% 60% 80% 100%"),
        ((1.0, None), "99% 100%"),
        ((0.0, 0.0), "0% 1%"),
        ((), "0% 20% 40% 60% 80% 100%"),
    ],
)
def test_an_axis_of_fractions_uses_its_space(values: tuple[float | None, ...], ticks: str) -> None:
    assert " ".join(text for _, text in share_axis(values).ticks) == ticks


def test_a_plot_has_a_picture_and_data(tmp_path: Path, plots: dict[str, Plot]) -> None:
    plot = plots["base-demo-curves"]
    svg, table = write_plots([plot], tmp_path / "new" / "folder")
    rows = list(csv.reader(io.StringIO(table.read_text("utf-8"))))
    assert tuple(rows[0]) == plot.columns
    assert [float(row[2]) for row in rows[1:]] == [row[2] for row in plot.rows]
    assert "More samples" in "".join(ET.fromstring(svg.read_text("utf-8")).itertext())
