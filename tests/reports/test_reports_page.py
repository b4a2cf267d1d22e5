"""The HTML page: self-contained, inert, bounded."""

from __future__ import annotations

import html
import html.parser
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.codec import digest
from harness.core.inert import visible
from harness.reports import page as page_module
from harness.reports.report import report
from harness.runs import RunLog
from tests.reports.run_folders import hostile_report, write_run
from tests.system.command import harness
from tests.viewer.small_run import RunQuestion, RunReply
from tests.viewer.small_run import write_run as viewed_run

pytestmark = pytest.mark.slow

TAGS = set(
    re.findall(
        r"\w+",
        """
        html head meta title style body main header nav a section h1 h2 h3 h4 p div dl dt dd table thead tbody tr th td
        ol li code br span figure figcaption details summary footer svg g defs clippath rect line path text
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


def test_a_page_of_hostile_texts_holds_only_our_elements_and_no_handler_or_link(tmp_path: Path) -> None:
    found = Elements(hostile_report(tmp_path, "http://example.invalid").html())
    assert found.tags <= TAGS
    names = {name for name, _ in found.attributes}
    assert not names & {"src", "style", "action", "data", "srcset", "xlink:href"}
    assert {value for name, value in found.attributes if name == "href"} <= {
        "#benchmark-1",
        "#benchmark-2",
        "#benchmark-3",
        "#numbers",
        "#making",
    }
    assert not any(name.startswith("on") for name in names)
    assert any("<script>fetch(" in text for text in found.texts)


def test_the_policy_allows_nothing_but_the_pages_own_style(tmp_path: Path) -> None:
    page = report([write_run(tmp_path / "run")]).html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'",
        html.unescape(policy[1]),
    )
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_long_texts_are_clipped_and_the_page_stays_small(tmp_path: Path) -> None:
    short = report([write_run(tmp_path / "short", benchmarks=[("demo", 4, 2)])]).html()
    long = write_run(tmp_path / "long", benchmarks=[("demo", 4, 2)], spoil=lambda text: text + "x" * 1_000_000)
    assert len(report([long]).html()) < len(short) + 10_000


def test_the_headline_is_the_accuracy_with_both_intervals_by_their_names(tmp_path: Path) -> None:
    of_one_run = report([write_run(tmp_path / "run", benchmarks=[("demo", 6, 4)])])
    score = of_one_run.scores[0][2]
    assert score.accuracy is not None
    assert score.accuracy.sampling is not None
    texts = "".join(Elements(of_one_run.html()).texts)
    low, high = (f"{100 * end:.1f}" for end in score.accuracy.sampling)
    assert re.search(rf"demo\s*{100 * score.accuracy.value:.1f}%\s*same questions{low}–{high}", texts)


def test_a_list_of_questions_names_one_by_its_text_where_its_id_is_only_a_checksum(tmp_path: Path) -> None:
    asked = {
        digest(["What is 2 + 3?"])[:16]: RunQuestion("What is 2 + 3?", "5", [RunReply("5")]),
        "0123456789abcdef": RunQuestion("What is 1 + 1?", "2", [RunReply("2")]),
    }
    worse = {name: RunQuestion(one.text, one.reference, [RunReply("7")]) for name, one in asked.items()}
    for name, questions in (("base", asked), ("worse", worse)):
        viewed_run(tmp_path / name, {"sums": questions})
    shown = harness(tmp_path, "show", "base").out
    assert f"{digest(['What is 2 + 3?'])[:16]}  What is 2 + 3?   reference 5" in shown, "its id opens it"
    assert "0123456789abcdef   reference 2" in shown
    compared = harness(tmp_path, "compare", "base", "worse", "--samples").out
    assert re.findall(r"(What is 2 \+ 3\?|0123456789abcdef) +100% of 1 +0% of 1", compared)[1:], compared


def test_the_page_says_how_long_it_took_and_what_it_cost(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run", settings={"prices": {"prompt": 1.0, "completion": 2.0}}, environment={"engine": "vllm 0.33"}
    )
    with RunLog(run) as log:
        log.write("session_ended", done=24, spent={"prompt_tokens": 1_000_000, "completion_tokens": 250_000})
        log.write("session_ended", done=24, spent={"prompt_tokens": 0, "completion_tokens": 0, "n_unstated": 1})
    of_one_run = report([run])
    workload = of_one_run.scores[0][2].workload
    assert workload is not None
    cost = (workload.prompt_tokens + 2 * workload.completion_tokens) / 1e6
    rows = dict(re.findall(r"<tr><td>([^<]*)</td><td>([^<]*)</td></tr>", of_one_run.html()))
    assert rows["cost of the samples"] == f"{cost:.4f} USD"
    assert rows["cost of all sessions"] == "at most 1.50 USD"
    written = harness(tmp_path, "report", "run", "--out", "report")
    assert "all sessions of run: at most 1.50 USD" in written.out.splitlines(), written.err
    unpriced = report([write_run(tmp_path / "unpriced")]).html()
    assert "cost of" not in unpriced
    assert rows["tokens out"] == f"{workload.completion_tokens:,}"
    assert rows["engine"] == "vllm 0.33"
    assert rows["requests for them"] == str(24 + 3)


@given(st.text(max_size=60))
def test_any_text_comes_back_inert_from_content_and_attribute(text: str) -> None:
    template = page_module._environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    found = Elements(template.render(text=text))
    assert "".join(found.texts) == visible(text)
    assert found.attributes == {("title", visible(text))}
    assert found.tags == {"p"}
