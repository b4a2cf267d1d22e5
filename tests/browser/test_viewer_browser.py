"""The viewer's pages in a real headless Chromium: no error, no violation, nothing of a model's text alive."""

from __future__ import annotations

import http.server
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import get_args
from urllib.parse import quote

import pytest

from harness.core.records import MediaPart, Message, VerdictName
from harness.presets.grading import GradingOptions
from harness.runs import overrides
from harness.scoring.pipeline import score_run
from harness.testing import FakeServer, Request
from tests.browser.axe_core import NotInstalled, axe
from tests.browser.chromium import Browser, Keys, browsing
from tests.reports.payloads import PAYLOADS
from tests.runs.recorded import append
from tests.viewer.running import Viewer, viewing
from tests.viewer.small_run import SMALL, RunQuestion, RunReply, sample, write_run

MATHS = r"Let $x=\frac{a+b}{2}$, so \[\sum_{k=1}^n k = \frac{n(n+1)}{2}.\] It costs $5 and $7. Thus \(\boxed{42}\)."

BOMBS = [
    r"$\def\a{\a\a}\a$",
    r"$\def\a{\b\b\b\b\b\b\b\b}\def\b{\c\c\c\c\c\c\c\c}\def\c{\d\d\d\d\d\d\d\d}\def\d{xxxxxxxxxxxxxxxx}\a$",
    r"$\newcommand{\x}{\x}\x$",
    r"$\let\a=\def \a\b{\b\b}\b$",
    r"$\rule{100000em}{100000em}$",
    r"$\kern-100000em X\hspace{100000em}\raisebox{-99999em}{Y}$",
    r"$\href{javascript:document.title='hacked'}{click}$",
    r"$\url{javascript:alert(1)}$",
    r"$\includegraphics[width=9em]{{url}/katex.png}$",
    r"$\htmlId{main}{x}\htmlClass{row}{y}\htmlStyle{position:fixed;inset:0}{z}\htmlData{key=1}{w}$",
    "$" + r"\sqrt{" * 900 + "$",
    "$" + "{" * 1900 + "$",
    "$" + r"\frac{1}{" * 180 + "x" + "}" * 180 + "$",
    "$" + r"\begin{matrix}" + r"a&b\\" * 300 + r"\end{matrix}$",
    r"\begin{align}" * 2000,
    "$" * 5001,
    r"\[" * 5000,
    r"\(" * 2500 + r"\)" * 2500,
]


def named(number: int, text: str) -> str:
    """An id as hostile as an address allows."""
    return f"{number} {text[:60]}".encode("utf-8", "replace").decode()


@pytest.fixture(scope="module")
def trap() -> Iterator[tuple[str, list[Request]]]:
    """A server that nothing may ask, and what was asked of it."""
    with FakeServer(lambda _: [http(404)]) as server:
        yield server.base_url.removesuffix("/v1"), server.requests


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, trap: tuple[str, list[Request]], window: Browser) -> Path:
    folder = tmp_path_factory.mktemp("browsed") / "results"
    questions = {
        f"q{n}": RunQuestion(
            MATHS,
            "42",
            [RunReply(MATHS if (n + i) % 3 else r"\boxed{41}", reasoning="Hm. " * 50 + MATHS) for i in range(20)],
            metadata={"level": 1 + n % 2, "subject": ["Algebra", "Geometry"][n % 2]},
        )
        for n in range(1, 9)
    }
    write_run(folder / "a", {"demo": SMALL, "sums": questions})
    worse = {
        name: RunQuestion(question.text, "42", [*question.replies[5:], *[RunReply(r"\boxed{1}")] * 5])
        for name, question in questions.items()
    }
    write_run(folder / "b", {"sums": worse}, identity={"seed": 3})
    url, _ = trap
    texts = [text.replace("{url}", url) for text in [*PAYLOADS, *BOMBS]]
    hostile = {
        named(n, text): RunQuestion(
            text,
            text or "1",
            [RunReply(text, reasoning=text), RunReply(f"${text}$")],
            "text",
            metadata={text[:99]: text},
        )
        for n, text in enumerate(texts)
    }
    write_run(folder / HOSTILE_RUN, {HOSTILE_BENCHMARK: hostile})
    return folder.parent


@pytest.fixture(autouse=True)
def _only_these_runs(results: Path) -> Iterator[None]:
    """What a test adds to the results is gone after it."""
    before = set((results / "results").iterdir())
    yield
    for added in set((results / "results").iterdir()) - before:
        shutil.rmtree(added)


@pytest.fixture(scope="module")
def viewer(results: Path) -> Iterator[Viewer]:
    with viewing(results) as running:
        yield running


@pytest.fixture
def browser(window: Browser) -> Iterator[Browser]:
    """The window at its usual size; whatever a test did, the page must not have complained."""
    window.look(width=1280, dark=False)
    window.driver.get("about:blank")  # the page of the test before follows a run that may be gone
    window.complaints()
    yield window
    assert window.complaints() == []


ALIVE = Path(__file__).with_name("alive.js").read_text(encoding="utf-8")
HOSTILE_RUN = "<script>alert(1)<script>"
HOSTILE_BENCHMARK = "<iframe onload=alert(1)>\u202e"
PAGES = ["/", "/run/a", "/run/a/sums", "/run/a/sums/q1/s2", "/compare/a/b/sums", "/compare/a/b/sums/q1/s1"]


# --- every page ---
@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_each_page_is_accessible_and_fits(browser: Browser, viewer: Viewer, path: str, dark: bool, width: int) -> None:
    try:
        source = axe()
    except NotInstalled as reason:
        pytest.skip(f"axe-core is not here: {reason}")
    browser.look(width=width, dark=dark)
    browser.open(viewer, path)
    for summary in browser.all("summary"):
        browser.script("arguments[0].click()", summary)
    browser.script(source)
    shown = browser.script(
        "return axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})"
        ".then(r => r.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => [n.target, n.failureSummary])))"
    )
    assert shown == []
    assert browser.script("return document.documentElement.scrollWidth") <= width


def test_the_page_of_a_question_with_an_image_fits_a_phone(browser: Browser, tmp_path: Path) -> None:
    shown = Message("user", "<i>", media=(MediaPart(sha256="a" * 64, start=0, end=3),))
    question = RunQuestion("What is it?", "42", [RunReply(r"\boxed{42}")], before=[shown])
    write_run(tmp_path / "results" / "a", {"sums": {"q1": question}})
    browser.look(width=390, dark=False)
    with viewing(tmp_path, "results") as viewer:
        browser.open(viewer, "/run/a/sums/q1/s0")
        assert "a" * 64 in browser.text("figcaption")
        assert browser.script("return document.documentElement.scrollWidth") <= 390


# --- reading ---
def test_a_reader_goes_from_the_runs_to_a_sample_by_keyboard(browser: Browser, viewer: Viewer) -> None:
    browser.open(viewer)
    browser.wait(lambda: browser.all("a.row"))
    browser.press("j", "j", "j")
    assert "sums" in browser.script("return document.activeElement.getAttribute('href')")
    browser.press(Keys.ENTER)
    browser.wait(lambda: len(browser.all(".questions a.row")) == 8)
    browser.press("j", "j", "k", "j")
    browser.press(Keys.ENTER)
    browser.wait(lambda: browser.path() == "/run/a/sums/q2/s0")
    browser.wait(lambda: "Sample 0" in browser.text())
    browser.press(Keys.ARROW_RIGHT)
    browser.wait(lambda: "Sample 1" in browser.text())
    browser.press("l", "h", "l")
    browser.wait(lambda: browser.path().endswith("/s2") and "Sample 2" in browser.text())
    browser.press("r", "w")
    browser.wait(lambda: browser.one("details[data-key=reasoning]").get_attribute("open"))
    browser.wait(lambda: "answer found by" in browser.text("details[data-key=why]"))
    browser.press("k")
    browser.wait(lambda: browser.path() == "/run/a/sums/q1/s0")
    browser.press("u")
    browser.wait(lambda: browser.path() == "/run/a/sums")
    browser.wait(lambda: browser.all(".questions a.row"))
    browser.press("?")
    browser.wait(lambda: browser.one("#help").is_displayed())
    browser.press(Keys.ESCAPE)
    browser.press("/")
    assert browser.script("return document.activeElement.name") == "text"
    browser.press("j")  # in a field a letter is a letter
    assert browser.script("return document.activeElement.value") == "j"
    browser.driver.back()
    browser.wait(lambda: browser.path() == "/run/a/sums/q1/s0")


def test_maths_is_typeset_and_the_answer_is_set_off(browser: Browser, viewer: Viewer) -> None:
    browser.open(viewer, "/run/a/sums/q1/s1")
    browser.wait(lambda: len(browser.all(".sample > .text .katex")) == 3)
    browser.wait(lambda: browser.all("h1 .katex, #path .katex"))
    assert "costs $5 and $7." in browser.text(".sample > .text")
    assert browser.one(".sample > .text mark.answer math").get_attribute("textContent")
    assert browser.script("return document.fonts.check('16px KaTeX_Main')")
    browser.press("m")
    browser.wait(lambda: browser.text(".sample > .text") == MATHS)
    assert browser.text(".sample mark.answer") == "42"
    assert browser.path() == "/run/a/sums/q1/s1?maths=off"


def test_the_list_is_filtered_and_ordered_and_its_address_says_so(browser: Browser, viewer: Viewer) -> None:
    browser.open(viewer, "/run/a/sums")
    ids = lambda: [element.text for element in browser.all(".questions .id")]  # noqa: E731
    browser.wait(lambda: len(ids()) == 8)
    browser.one("select[data-key='is.level']").send_keys("2")
    browser.wait(lambda: ids() == ["q1", "q3", "q5", "q7"])
    browser.one("input[data-key=find]").send_keys("q5")
    browser.wait(lambda: ids() == ["q5"])
    assert browser.path() == "/run/a/sums?is.level=2&find=q5"
    browser.open(viewer, "/run/a/sums?sort=fraction&show=mixed")
    fractions = browser.wait(lambda: [int(element.text.split("%")[0]) for element in browser.all(".fraction")])
    assert fractions == sorted(fractions)
    browser.open(viewer, "/run/a/demo?show=near")
    browser.wait(lambda: ids() == ["q1"])
    browser.one("select[data-key='is.near miss']").send_keys("a box that")
    browser.wait(lambda: browser.path().startswith("/run/a/demo?show=near&is.near+miss=a+box") and ids() == ["q1"])
    browser.open(viewer, "/run/a/demo?show=cut")
    browser.wait(lambda: ids() == ["q2/odd id"])


def test_two_runs_are_picked_compared_and_read_side_by_side(browser: Browser, viewer: Viewer) -> None:
    browser.open(viewer)
    for name in ("b", "a"):
        browser.one(f"input[aria-label='Compare {name}']").click()
    browser.one("button[data-key='compare sums']").click()
    browser.wait(lambda: browser.path() == "/compare/b/a/sums")
    browser.wait(lambda: browser.all("a.moved"))
    assert browser.text("h1") == "sums in A, b, and B, a"
    assert browser.text("main p").startswith("a is better than b on sums by ")
    assert browser.text("thead") == "settingAB"
    assert "seed" in browser.text("table")
    browser.wait(lambda: browser.all("a.moved")[0].click() is None)  # the list may just be drawn anew
    browser.wait(lambda: len(browser.all("section .sample")) == 2)
    browser.press(Keys.ARROW_RIGHT)
    browser.wait(lambda: browser.path().endswith("/s1"))
    browser.wait(lambda: [element.text[:8] for element in browser.all("section .sample h2")] == ["Sample 1"] * 2)


def test_a_verdict_is_corrected_by_hand_and_never_silently(browser: Browser, viewer: Viewer, results: Path) -> None:
    run = write_run(results / "results" / "hand")
    browser.open(viewer, "/run/hand/demo/q1/s1")
    browser.one("details[data-key=correct] summary").click()
    browser.one("form.correct input[name=who]").clear()
    browser.one("form.correct input[name=who]").send_keys("Ada <b>")
    browser.one("form.correct textarea").send_keys("<img src=x onerror=alert(1)>")
    browser.one("form.correct button").click()
    browser.wait(lambda: "by hand; the grader said wrong" in browser.text(".sample h2"))
    browser.wait(lambda: "correct by Ada <b> at " in browser.text("details[data-key=correct]"))
    (override,) = overrides.read(run.benchmark("demo"))
    assert (override.verdict, override.who, override.why) == ("correct", "Ada <b>", "<img src=x onerror=alert(1)>")
    for chosen, why in ("undecided", "I cannot say"), ("correct", "now I can"):
        browser.open(viewer, "/run/hand/demo/q1/s1")
        browser.one("details[data-key=correct] summary").click()
        offered = browser.script("return [...document.querySelector('select[name=verdict]').options].map(o => o.value)")
        assert offered == [*get_args(VerdictName), ""], "each verdict that an override can hold; none takes it back"
        browser.one("select[name=verdict]").send_keys(chosen)
        browser.one("form.correct textarea").send_keys(why)
        browser.one("form.correct button").click()
        browser.wait(lambda chosen=chosen, why=why: f"{chosen} by " in browser.text() and f": {why}" in browser.text())
        assert overrides.read(run.benchmark("demo"))[-1].verdict == chosen
        shown = "return document.querySelector('select[name=verdict]').value"
        assert browser.script(shown) == chosen, "the form shows the stored verdict"
        assert browser.script("return document.querySelector('form.correct textarea').value") == ""
        browser.open(viewer, "/run/hand/demo/q1/s1")
        browser.one("details[data-key=correct]")
        assert browser.script(shown) == chosen, "also when the page is opened again"
    browser.open(viewer, "/run/hand/demo")
    note = browser.wait(lambda: [element.text for element in browser.all(".note") if "by hand" in element.text])
    words = "1 sample judged by hand, 1 of them differently from the grader"
    assert f"{words}: the accuracy is 50.00% with these verdicts and 33.33% with the grader's" in note[0]
    browser.open(viewer)
    browser.wait(lambda: words in browser.text())


def test_a_page_follows_a_live_run_and_the_reader_stays(browser: Browser, viewer: Viewer, results: Path) -> None:
    run = write_run(
        results / "results" / "going",
        {"demo": {"q": RunQuestion("?", "42", [RunReply("1", reasoning="hm"), RunReply("2")])}},
    )
    browser.open(viewer, "/run/going/demo/q/s0")
    browser.one("details[data-key=reasoning] summary").click()
    browser.script("document.querySelector('[data-key=s1]').focus()")
    append(run, "demo", [sample("demo", "q", 2, RunReply(r"\boxed{42}"))])
    browser.wait(lambda: len(browser.all(".samples a")) == 3)
    score_run(run, GradingOptions(workers=1))
    browser.wait(lambda: [element.text for element in browser.all(".samples a")] == ["✗", "✗", "✓"])
    assert browser.script("return document.activeElement.dataset.key") == "s1"
    assert browser.one("details[data-key=reasoning]").get_attribute("open")
    browser.open(viewer, "/")
    write_run(results / "results" / "late")
    browser.wait(lambda: "late" in browser.text())


# --- names and settings ---


# --- hostile texts ---
@pytest.mark.timeout(600)  # some hundred pages
def test_hostile_texts_are_shown_and_do_nothing(
    browser: Browser, viewer: Viewer, results: Path, trap: tuple[str, list[Request]]
) -> None:
    url, requests = trap
    base = f"/run/{quote(HOSTILE_RUN, safe='')}/{quote(HOSTILE_BENCHMARK, safe='')}"
    browser.open(viewer, "/")
    browser.open(viewer, base)
    browser.wait(lambda: len(browser.all(".questions a.row")) == len(PAYLOADS) + len(BOMBS))
    for number, text in enumerate([text.replace("{url}", url) for text in [*PAYLOADS, *BOMBS]]):
        question = quote(named(number, text), safe="")
        for index in (0, 1):
            browser.open(viewer, f"{base}/{question}/s{index}")
            browser.wait(lambda: browser.all(".sample"))
            for summary in browser.all("summary"):
                browser.script("arguments[0].click()", summary)
            assert alive(browser) == []
    browser.wait(lambda: browser.script("return document.readyState") == "complete")
    assert requests == []


def alive(browser: Browser) -> list[str]:
    """Whatever of a foreign text has become more than text."""
    alive: list[str] = browser.script(ALIVE)
    return alive


@pytest.mark.parametrize(
    "payload", [p for p in PAYLOADS if p.isprintable() and p.isascii() and "$" not in p and "\\" not in p]
)
def test_a_hostile_text_reads_as_it_was_written(
    browser: Browser, viewer: Viewer, results: Path, trap: tuple[str, list[Request]], payload: str
) -> None:
    text = payload.replace("{url}", trap[0])
    number = PAYLOADS.index(payload)
    path = "/".join(quote(part, safe="") for part in ("run", HOSTILE_RUN, HOSTILE_BENCHMARK, named(number, text), "s0"))
    browser.open(viewer, f"/{path}")
    browser.wait(lambda: browser.text(".sample > .text") == text)


def test_acting_characters_are_seen(browser: Browser, viewer: Viewer, results: Path) -> None:
    text = "a\x1b[2Jb\u202egnp.exe\u2066c\x00d\u2028e\ud800f\x85g\n\ttail"
    write_run(
        results / "results" / "acting",
        {"demo": {name: RunQuestion("?", "1", [RunReply(text)]) for name in ("q", text)}},
    )
    browser.open(viewer, "/run/acting/demo")
    browser.wait(lambda: len(browser.all(".questions a.row")) == 2)
    browser.open(viewer, "/run/acting/demo/q/s0")
    shown = r"a\x1b[2Jb\u202egnp.exe\u2066c\x00d\u2028e\ud800f\x85g" + "\n\ttail"
    browser.wait(lambda: browser.text(".sample > .text") == shown)


def test_a_question_whose_id_is_no_utf8_has_a_link_that_works(browser: Browser, viewer: Viewer, results: Path) -> None:
    odd = "a\ud800/\udfff%ED%A0%80 é\U0001f600"
    run = write_run(
        results / "results" / "odd", {"demo": {odd: RunQuestion("?", "1", [RunReply("one"), RunReply("two")])}}
    )
    browser.open(viewer, "/run/odd/demo")
    browser.one(".questions a.row").click()
    browser.wait(lambda: browser.text(".sample > .text") == "one")
    browser.press(Keys.ARROW_RIGHT)
    browser.wait(lambda: browser.text(".sample > .text") == "two")
    browser.driver.refresh()
    browser.wait(lambda: browser.text(".sample > .text") == "two")
    raw = browser.one(".sample a[href^='/raw']").get_attribute("href")
    assert browser.script("return fetch(arguments[0]).then(r => r.text())", raw) == "two"
    browser.one("details[data-key=correct] summary").click()
    browser.one("form.correct textarea").send_keys("by eye")
    browser.one("form.correct button").click()
    browser.wait(lambda: "by hand" in browser.text(".sample h2"))
    (override,) = overrides.read(run.benchmark("demo"))
    assert (override.question_id, override.sample_index) == (odd, 1)


LONG: dict[str, str] = {
    "one word": "Q" * 1_900_000,
    "formulas": r"$\frac12$ " * 150_000,
    "acting characters": "a\u202e" * 500_000,
    "lines": "\n" * 1_000_000,
    "brackets": r"\(\[" * 300_000,
}
"""Texts of 1 to 2 million characters, as a file of questions may hold them."""

MAX_FORMULAS = 3 * 5000
"""Most formulas on a page that has the text in three places: the viewer typesets 5,000 of one text. Typesetting all of
150,000, or laying out the texts whole, kept a page's main thread for 12 to 75 s."""


@pytest.mark.parametrize("name", LONG)
def test_long_questions_are_cut_like_samples(name: str, browser: Browser, viewer: Viewer, results: Path) -> None:
    """In every place that its text reaches: the question, reference and metadata, a sample, the request."""
    text = LONG[name]
    hostile = RunQuestion(
        text, text, [RunReply(text, reasoning=text)], "text", metadata={"field": text, text[:50]: "value"}
    )
    run = f"long-{list(LONG).index(name)}"
    write_run(results / "results" / run, {"demo": {"q": hostile}}, scored=False)
    for path in (f"/run/{run}/demo", f"/run/{run}/demo/q/s0", f"/compare/{run}/{run}/demo/q/s0"):
        browser.open(viewer, path)
        if path.count("/") > 3:
            browser.wait(lambda: browser.all(".sample > .text"))
        if path.startswith(f"/run/{run}/demo/q"):
            for key in "rwc":
                browser.press(key)
        assert browser.script("return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0, 1)))") == 1
        assert len(browser.text()) < 10_000_000
        assert len(browser.all(".katex")) <= MAX_FORMULAS, path
    assert "characters omitted here" in browser.text(".text")


def test_formulas_and_forged_edits_write_no_active_character(browser: Browser, viewer: Viewer, results: Path) -> None:
    text = r'$\char"202E$ and $x + \text{\char"202D y}$ and $z$'
    folder = write_run(results / "results" / "acts", {"demo": {"q": RunQuestion(text, "1", [RunReply(text)])}})
    override = overrides.Override(
        benchmark="demo",
        question_id="q",
        sample_index=0,
        verdict="correct",
        graded="wrong",
        who="\u202ewho",
        when="2026-01-01T00:00:00+00:00",
        why="\u202ewhy",
    )
    overrides.append(folder.benchmark("demo"), override)
    browser.open(viewer, "/run/acts/demo/q/s0")
    browser.wait(lambda: browser.all(".sample .formula.set"))
    browser.wait(lambda: len(browser.all(".sample .formula.unset")) == 2)
    assert not {"\u202d", "\u202e"} & set(browser.text("body"))
