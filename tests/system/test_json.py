"""What `--json` prints is JSON alone, and what docs/json.md promises."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, promised
from tests.embedded import RunningServer
from tests.reports.run_folders import write_run
from tests.system.command import harness

PAGE = (DOCS / "json.md").read_text("utf-8")
ROWS = re.findall(r"^\| (`harness .*?--json`.*?) \| (.*?) \|", PAGE, re.MULTILINE)
"""Commands and shape, of each row of the page's first table."""


def shape(*words: str) -> str:
    """What the page says of a command."""
    (said,) = [shape for commands, shape in ROWS if f"`harness {' '.join(words)} " in commands]
    return said


def test_a_run_says_how_it_ended(tmp_path: Path, embedded_server: RunningServer) -> None:
    words = ("run", "demo:1", "--base-url", embedded_server.base_urls[0], "--out", "run", "--max-tokens", "4", "--json")
    first = harness(tmp_path, *words, "--limit", "2")
    again = harness(tmp_path, *words, "--limit", "2")
    said, later = json.loads(first.out), json.loads(again.out)
    assert shape("run") == "object"
    assert set(said) == promised("`harness run --json`")
    assert (said["exit_code"], first.code, said["complete"]) == (0, 0, True)
    counts = said["samples"]
    assert set(counts) <= set(re.findall(r"`(\w+)`", PAGE))
    assert (counts["expected"], counts["done"], counts["owed"], counts["this_session"]) == (2, 2, 0, 2)
    assert 0 < said["new_tokens"] <= 8
    assert later["samples"]["this_session"] == 0


@pytest.mark.parametrize("flag", ["--dry-run", "--pilot"])
def test_json_goes_without_what_prints_otherwise(tmp_path: Path, flag: str) -> None:
    done = harness(tmp_path, "run", "demo:1", "--base-url", "http://127.0.0.1:9", "--json", flag)
    assert (done.code, done.out) == (2, "")
    assert f"it goes without {flag}" in done.err


def test_lists_are_json_too(tmp_path: Path) -> None:
    for words in (("benchmarks", "--json"), ("benchmarks", "list", "--json")):
        assert shape(*words[:-1]) == "list"
        cards = json.loads(harness(tmp_path, *words).out)
        assert {"demo", "aime24"} <= {card["benchmark"] for card in cards}
        assert set(cards[0]) <= set(re.findall(r"`(\w+)`", PAGE))
    servers = harness(tmp_path, "serve", "status", "--json")
    assert shape("serve", "status") == "object"
    assert json.loads(servers.out) == {"servers": [], "unreadable": []}


OF_EACH_BENCHMARK = {
    ("compare",): ("a", "b"),
    ("verify",): ("a", "--published", "published.yaml"),
    ("plan",): ("a", "--detect", "20"),
    ("experiment", "repeats"): ("a", "--runs", "2"),
    ("score",): ("a", "--workers", "1"),
}
PUBLISHED = """
schema: 1
source: {title: A wiki, url: "https://example.org", by: others}
settings: {temperature: 0.6}
questions: {demo: 4, other: 4}
scores:
  - {model: org/model-7b, benchmark: demo, metric: pass@1, percent: 50, samples: 64}
  - {model: org/model-7b, benchmark: other, metric: pass@1, percent: 50, samples: 64}
"""


def test_the_page_says_the_shape_of_each_command() -> None:
    assert {shape for _, shape in ROWS} == {"list", "object"}


@pytest.mark.parametrize("benchmarks", [("demo",), ("demo", "other")])
def test_one_benchmark_has_the_shape_of_several(tmp_path: Path, benchmarks: tuple[str, ...]) -> None:
    (tmp_path / "published.yaml").write_text(PUBLISHED, "utf-8")
    for run, seed in (("a", 1), ("b", 2)):
        write_run(tmp_path / run, benchmarks=[(name, 4, 4) for name in benchmarks], seed=seed)
    for command, words in OF_EACH_BENCHMARK.items():
        done = harness(tmp_path, *command, *words, "--json")
        told = json.loads(done.out)
        assert shape(*command) == "list"
        assert [(one.get("paired") or one)["benchmark"] for one in told] == [*benchmarks], (command, done.err)
    (status,) = json.loads(harness(tmp_path, "status", "a", "--json").out)
    assert (shape("status"), Path(status["run"]).name) == ("list", "a")
