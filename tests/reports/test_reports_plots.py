"""Plots: their data are the scores' own, their pictures hold text as text, and nothing foreign acts in a file.

For: harness.reports.plots.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import struct
import xml.etree.ElementTree as ET
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.reports.plots import draw
from harness.reports.plots.plot import LABEL_CHARS, MAX_LABEL_CHARS, Plot, label
from harness.reports.report import Report, report
from tests.reports.payloads import PAYLOADS
from tests.reports.run_folders import write_run

pytestmark = pytest.mark.slow

SVG = "{http://www.w3.org/2000/svg}"
HARMLESS = {"svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath"}


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
        {item.question.question_id: item.rate for item in run.benchmarks["demo"].questions} for run in made.runs
    )
    for question, baseline, other, *_ in plots["demo-scatter-1"].rows:
        assert (baseline, other) == (ours[str(question)], theirs[str(question)])


def test_a_plot_is_drawn_with_its_text_as_text_large_enough_and_narrow_enough(plots: dict[str, Plot]) -> None:
    for plot in plots.values():
        root = ET.fromstring(draw.svg(plot))
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= HARMLESS
        assert float(root.attrib["width"]) <= 400
        sizes = [float(text.attrib["font-size"].removesuffix("px")) for text in root.iter(f"{SVG}text")]
        assert sizes
        assert min(sizes) >= 11
        assert "style" not in {name for element in root.iter() for name in element.attrib}


def test_every_colour_of_a_plot_has_a_twin_for_the_dark(plots: dict[str, Plot]) -> None:
    style = resources.files("harness.reports").joinpath("page.css").read_text("utf-8")
    used = set()
    for plot in plots.values():
        used |= set(re.findall(r' (fill|stroke)="(#[0-9a-f]+)"', draw.svg(plot)))
    assert len(used) > 8
    assert {pair for pair in used if f'[{pair[0]}="{pair[1]}"]' not in style} == set()


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
    files = draw.write_plots(report(runs).plots(), tmp_path / "plots")
    assert {file.suffix for file in files} == {".svg", ".png", ".csv"}
    for file in files:
        assert file.parent == tmp_path / "plots"
        if file.suffix == ".svg":
            root = ET.fromstring(file.read_text("utf-8"))
            assert {element.tag.removeprefix(SVG) for element in root.iter()} <= HARMLESS
            names = {name for element in root.iter() for name in element.attrib}
            assert not any(name.startswith("on") or name.endswith("href") or name == "style" for name in names)
        if file.suffix == ".csv":
            cells = [cell for row in csv.reader(io.StringIO(file.read_text("utf-8"))) for cell in row]
            assert not any(cell[:1] in ("=", "+", "@", "\t", "\r") for cell in cells)
            assert not any(cell.startswith("-") and not re.fullmatch(r"-[\d.e-]+", cell) for cell in cells)


def test_a_plot_comes_as_a_picture_of_twice_its_pixels_and_as_its_data(tmp_path: Path, plots: dict[str, Plot]) -> None:
    plot = plots["base-demo-curves"]
    svg, png, table = draw.write_plots([plot], tmp_path / "new" / "folder")
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    assert 2 * 384 <= width <= 2 * 440
    assert height > 400
    rows = list(csv.reader(io.StringIO(table.read_text("utf-8"))))
    assert tuple(rows[0]) == plot.columns
    assert [float(row[2]) for row in rows[1:]] == [row[2] for row in plot.rows]
    assert "More samples" in "".join(ET.fromstring(svg.read_text("utf-8")).itertext())


def test_plots_without_their_library_are_refused_in_one_sentence(
    tmp_path: Path, plots: dict[str, Plot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw, "installed", lambda: False)
    with pytest.raises(UsageError, match=r"plots need the package vl-convert-python: .* install 'vl-convert-python"):
        draw.write_plots(plots.values(), tmp_path / "plots")
    assert not (tmp_path / "plots").exists()
