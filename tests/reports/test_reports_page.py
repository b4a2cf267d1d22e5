"""The HTML page: self-contained, inert, bounded."""

from __future__ import annotations

import html.parser
import http.server
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.inert import visible
from harness.reports import report
from harness.reports.markup import tag
from tests.reports.payloads import PAYLOADS
from tests.reports.run_folders import write_run

TAGS = set(
    re.findall(
        r"\w+",
        """
        html head meta title style body main section h1 h2 h3 p div table caption thead tbody tr th td ol li
        details summary code br span footer svg g rect line circle polyline path text
        """,
    )
)


class Elements(html.parser.HTMLParser):
    """Every element with its attributes, and the text between."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def hostile_page(folder: Path, url: str) -> str:
    """A report in which every foreign text is a payload, each one in turn."""
    texts = cycle(payload.format(url=url) for payload in PAYLOADS)
    runs = [
        write_run(
            folder / f"run{number}",
            model=PAYLOADS[number].format(url=url),
            benchmarks=[(f"<b>{number}</b>", len(PAYLOADS), 3)],
            identity={f"<i>{number}": next(texts), "nested": {"x": [next(texts)]}},
            spoil=lambda text: f"{next(texts)}{text}",
        )
        for number in range(3)
    ]
    return report(runs).html()


def test_a_page_of_hostile_texts_holds_only_our_elements_and_no_handler_or_link(tmp_path: Path) -> None:
    found = Elements(hostile_page(tmp_path, "http://example.invalid"))
    assert found.tags <= TAGS
    names = {name for name, _ in found.attributes}
    assert not names & {"href", "src", "style", "action", "data", "srcset", "xlink:href"}
    assert not any(name.startswith("on") for name in names)
    assert any("<script>fetch(" in text for text in found.texts)


def test_the_policy_allows_nothing_but_the_pages_own_style(tmp_path: Path) -> None:
    page = report([write_run(tmp_path / "run")]).html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert re.fullmatch(
        r"default-src &#x27;none&#x27;; style-src &#x27;sha256-[\w+/=]+&#x27;; "
        r"base-uri &#x27;none&#x27;; form-action &#x27;none&#x27;",
        policy[1],
    )
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_the_same_runs_make_the_same_page(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    assert report([folder]).html() == report([folder]).html()


def test_long_texts_are_clipped_and_the_page_stays_small(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", benchmarks=[("demo", 4, 2)], spoil=lambda text: text + "x" * 1_000_000)
    assert len(report([folder]).html()) < 60_000


def test_a_large_benchmark_lists_its_first_questions_and_says_so(tmp_path: Path) -> None:
    page = report([write_run(tmp_path / "run", benchmarks=[("demo", 600, 1)])]).html()
    assert "Questions (the first 500 of 600)" in page


def test_settings_that_differ_between_runs_are_marked(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"t{t}", identity={"temperature": t / 10}) for t in (6, 8)]
    page = report(runs).html()
    assert "<td>temperature *</td><td>0.6</td><td>0.8</td>" in page
    assert "<td>top_p</td><td>0.95</td><td>0.95</td>" in page


def test_the_curve_of_pass_at_k_is_drawn_through_the_scores_own_values(tmp_path: Path) -> None:
    made = report([write_run(tmp_path / "run", benchmarks=[("demo", 6, 4)])])
    score = made.scores[0][2]
    line = re.search(r'class="curve pass s0" points="([^"]*)"', made.html())
    assert line is not None
    heights = [float(point.split(",")[1]) for point in line[1].split()]
    assert heights == pytest.approx([210 - 200 * score.pass_at[k] for k in (1, 2, 4)], abs=0.06)


def test_dot_and_error_bars_stand_where_the_score_says(tmp_path: Path) -> None:
    made = report([write_run(tmp_path / "run", benchmarks=[("demo", 6, 4)])])
    score = made.scores[0][2]
    assert score.accuracy is not None
    assert score.sampling_interval is not None
    left, scale = 270, (720 - 270 - 60)
    dot = re.search(r'class="dot" cx="([\d.]+)"', made.html())
    bar = re.search(r'class="error thick" x1="([\d.]+)" x2="([\d.]+)"', made.html())
    assert dot is not None
    assert bar is not None
    assert float(dot[1]) == pytest.approx(left + score.accuracy * scale, abs=0.06)
    assert [float(bar[1]), float(bar[2])] == pytest.approx(
        [left + end * scale for end in score.sampling_interval], abs=0.06
    )


def test_the_histogram_counts_every_sample_by_its_verdict(tmp_path: Path) -> None:
    made = report([write_run(tmp_path / "run", benchmarks=[("demo", 6, 4)])])
    score = made.scores[0][2]
    bars = re.findall(r"tokens: (\d+) correct, (\d+) not", made.html())
    assert sum(int(correct) for correct, _ in bars) == score.n_correct
    assert sum(int(other) for _, other in bars) == score.n_samples - score.n_correct


@given(st.text(max_size=60))
def test_any_text_comes_back_as_itself_from_content_and_attribute(text: str) -> None:
    found = Elements(tag("p", text, title=text))
    assert "".join(found.texts) == visible(text)
    assert found.attributes == {("title", visible(text))}
    assert found.tags == {"p"}


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server's address and the paths that were asked of it."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


def browse(page: Path) -> str:
    """The page's elements as the browser has them after its scripts, if any, have run."""
    assert CHROMIUM is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    flags += ["--disable-background-networking", "--virtual-time-budget=1000", "--dump-dom"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        done = subprocess.run(
            [CHROMIUM, *flags, f"--user-data-dir={profile}", page.as_uri()],
            capture_output=True,
            timeout=60,
            check=True,
            env={**os.environ, "HOME": profile},
        )
    return done.stdout.decode("utf-8", "replace")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path (apt install chromium)")
def test_a_browser_runs_nothing_and_asks_nothing_of_a_page_of_hostile_texts(
    tmp_path: Path, listener: tuple[str, list[str]]
) -> None:
    url, asked = listener
    armed = tmp_path / "armed.html"
    armed.write_text(f"<title>t</title><script>document.title='ran'</script><img src='{url}/control'>", "utf-8")
    assert "<title>ran</title>" in browse(armed)
    assert "/control" in asked, "the browser cannot reach the listener, so silence would prove nothing"
    asked.clear()

    inert = tmp_path / "report.html"
    page = hostile_page(tmp_path, url)
    inert.write_text(page, "utf-8")
    seen = browse(inert)
    assert asked == []
    assert Elements(seen).tags - {"script"} <= TAGS
    assert "<script" not in seen
    assert "&lt;script&gt;fetch(" in seen
