"""The report in a real headless Chromium: legible, printable, usable by everyone, and without a complaint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.reports.report import report
from tests.browser.axe_core import NotInstalled, axe
from tests.browser.chromium import Browser, browsing
from tests.reports.run_folders import hostile_report, write_run

LEAST_PX = 9
"""Smallest text that is still read, in CSS pixels."""

SIZES = """
const least = new Map();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.data.trim(), element = walker.currentNode.parentElement;
  if (!text || !element.getClientRects().length) continue;
  const scale = element.getScreenCTM ? Math.hypot(element.getScreenCTM().a, element.getScreenCTM().b) : 1;
  least.set(text.slice(0, 40), scale * parseFloat(getComputedStyle(element).fontSize));
}
return [...least].sort((a, b) => a[1] - b[1]).slice(0, 5);
"""


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, window: Browser) -> dict[str, str]:
    """Addresses of the report of one run, and of a comparison of two."""
    folder = tmp_path_factory.mktemp("reports")
    runs = [
        write_run(folder / "base", n_failures=3),
        write_run(folder / "worse-with-a-name-that-is-long-as-names-of-models-are", strength=0.2),
    ]
    addresses = {}
    for name, shown in {"one": runs[:1], "two": runs}.items():
        path = folder / f"{name}.html"
        path.write_text(report(shown).html(), encoding="utf-8")
        addresses[name] = path.as_uri()
    return addresses


@pytest.fixture
def browser(window: Browser) -> Iterator[Browser]:
    window.complaints()
    yield window
    assert window.complaints() == []


@pytest.mark.parametrize(
    ("name", "dark", "width"), [("one", False, 1280), ("one", True, 400), ("two", True, 1280), ("two", False, 400)]
)
def test_a_report_can_be_used_by_everyone_is_legible_and_fits(
    browser: Browser, pages: dict[str, str], name: str, dark: bool, width: int
) -> None:
    browser.look(width=width, dark=dark)
    browser.driver.get(pages[name])
    assert browser.script("return document.documentElement.scrollWidth") <= width
    assert [size for size in browser.script(SIZES) if size[1] < LEAST_PX] == []
    hidden = "return [...document.querySelectorAll('.stacked')].filter(one => one.scrollWidth > one.clientWidth).length"
    assert width > 500 or browser.script(hidden) == 0, "on a phone no column lies outside the screen"
    try:
        source = axe()
    except NotInstalled as reason:
        pytest.skip(f"axe-core is not here: {reason}")
    browser.script(source)
    texts = browser.script(
        "return axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})"
        ".then(r => r.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => [n.target, n.failureSummary])))"
    )
    assert texts == []


COLLIDING = """
const wrong = [];
for (const svg of document.querySelectorAll('figure svg')) {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map((one) => [one.textContent, one.getBoundingClientRect()]);
  texts.forEach(([text, box], i) => {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1) wrong.push(text);
    for (const [other, its] of texts.slice(i + 1))
      if (box.left < its.right - 1 && its.left < box.right - 1 && box.top < its.bottom - 3 && its.top < box.bottom - 3)
        wrong.push(`${text} on ${other}`);
  });
}
return wrong;
"""


def test_plots_fill_the_page_width_without_cut_or_overlapping_text(browser: Browser, pages: dict[str, str]) -> None:
    for width, name in ((400, "two"), (400, "one"), (1280, "two"), (1280, "one")):
        browser.look(width=width, dark=False)
        browser.driver.get(pages[name])
        assert browser.script(COLLIDING) == []
    right = "return Math.max(...[...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().right))"
    assert browser.script(right) > 1150


def test_a_page_of_hostile_texts_runs_nothing_and_asks_nothing(browser: Browser, tmp_path: Path) -> None:
    """What the page's policy refuses is a complaint of the browser; the last page shows that it complains."""
    pages = {"hostile": hostile_report(tmp_path, "http://127.0.0.1:9").html()}
    pages["armed"] = pages["hostile"].replace(
        "<body>", "<body><script>document.title='ran'</script><img src='//x.y/z'>"
    )
    for name, page in pages.items():
        (tmp_path / f"{name}.html").write_text(page, encoding="utf-8")
        browser.driver.get((tmp_path / f"{name}.html").as_uri())
        assert browser.driver.title != "ran"
        assert [bool(browser.complaints()), len(browser.all("script"))] == [name == "armed", int(name == "armed")]
