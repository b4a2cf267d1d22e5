"""The page of a run answers: with which settings?

For: harness.verbs.report, harness.viewer.app, harness.viewer.pages, harness.reports.history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.benchmarks.prompts import BOXED, PROMPTS
from harness.runs.manifest import Manifest
from tests.viewer.running import answering_here
from tests.viewer.small_run import RunQuestion, RunReply, write_run

Get = Callable[[str], tuple[int, Any]]


@pytest.fixture
def get(tmp_path: Path) -> Iterator[Get]:
    """Returns status and JSON of a page of the viewer over `results`."""
    (tmp_path / "results").mkdir()
    with answering_here(tmp_path / "results") as running, running.client() as client:

        def page(path: str) -> tuple[int, Any]:
            answer = client.get(path)
            return answer.status_code, answer.json()

        yield page


def table(page: Any, title: str) -> dict[str, list[str]]:
    """The rows of a table of the page by their first cells."""
    (rows,) = [it["rows"] for it in page["facts"]["tables"] + page["facts"]["folded"] if it["title"] == title]
    return {row[0]: row[1:] for row in rows}


def test_the_page_of_a_run_says_settings_and_where_they_come_from(tmp_path: Path, get: Get) -> None:
    folder = write_run(tmp_path / "results" / "a")
    manifest = Manifest.load(folder)
    manifest.benchmarks["demo"].settings["sampling_from"] = {"temperature": "options", "top_p": "card"}
    manifest.save(folder)
    folder.log.write_bytes(
        b'{"event":"warning","message":"slow \\u001b[2J"}\n{"event":"warning","message":"slow \\u001b[2J"}\nbroken\n'
    )
    status, page = get("/api/run?run=a")
    assert status == 200
    settings = table(page, "Settings of demo")
    assert settings["temperature"] == ["0.6", "options"]
    assert settings["top_p"] == ["0.95", "card"]
    assert settings["max_tokens"] == ["32,768", ""]
    assert not [name for name in settings if name.startswith("sampling_from")]
    assert table(page, "The run")["model"] == ["org/model-7b"]
    assert page["facts"]["warnings"] == [r"slow \x1b[2J"]
    asked, scored = page["facts"]["commands"]
    assert asked.startswith("harness run demo:3 --model org/model-7b ")
    assert scored == "harness score a-again"
    assert page["prompts"]["demo"]["text"]["parts"][0].startswith("What is")


def test_the_page_of_an_unscored_run_says_what_adds_its_times_and_tokens(tmp_path: Path, get: Get) -> None:
    row = "times and tokens"
    for name, scored in (("a", False), ("b", True)):
        write_run(tmp_path / "results" / name, scored=scored)
    (words,) = table(get("/api/run?run=a")[1], "The run")[row]
    assert words == "score the run first: `harness score` adds them"
    assert row not in table(get("/api/run?run=b")[1], "The run")


def test_an_unknown_run_and_a_damaged_manifest_are_sentences(tmp_path: Path, get: Get) -> None:
    folder = write_run(tmp_path / "results" / "a", scored=False)
    status, page = get("/api/run?run=b")
    assert (status, page["error"][:24]) == (400, "there is no run 'b' here")
    folder.manifest.write_bytes(b"{")
    status, page = get("/api/run?run=a")
    assert status == 409
    assert "manifest.json" in page["error"]


def test_the_newest_run_comes_first(tmp_path: Path, get: Get) -> None:
    for name, created in (("a", "2026-01-01"), ("b", "2026-03-01"), ("c", "2026-02-01")):
        folder = write_run(tmp_path / "results" / name, scored=False)
        manifest = msgspec.structs.replace(Manifest.load(folder), created=f"{created}T00:00:00+00:00")
        manifest.save(folder)
    assert [run["run"] for run in get("/api/runs")[1]["runs"]] == ["b", "c", "a"]


def test_a_question_is_titled_as_its_data_have_it(tmp_path: Path, get: Get) -> None:
    asked = {
        "own": RunQuestion(f"What is 17 + 25?\n{BOXED}", "42", [RunReply("42")]),
        "other": RunQuestion("Put your answer in a box: what is 1 + 1?", "2", [RunReply("2")]),
        "bare": RunQuestion(BOXED, "2", [RunReply("2")]),
    }
    write_run(tmp_path / "results" / "a", {"sums": asked}, identity={"prompt": "boxed"})
    lines = "Solve it step by step."
    wrapped = {"q": RunQuestion(PROMPTS["answer_line"].template.replace("{question}", lines), "1", [RunReply("1")])}
    write_run(tmp_path / "results" / "b", {"sums": wrapped}, identity={"prompt": "answer_line"})
    title = lambda run, name: get(f"/api/question?run={run}&benchmark=sums&question={name}")[1]  # noqa: E731
    assert title("a", "own")["title"] == "What is 17 + 25?"
    assert title("a", "own")["question"]["text"]["parts"][0].endswith(BOXED), "the page shows what was asked"
    assert title("a", "other")["title"] == asked["other"].text
    assert title("a", "bare")["title"] == BOXED, "a question that is nothing else keeps it"
    assert title("b", "q")["title"] == lines
    rows = get("/api/benchmark?run=a&benchmark=sums")[1]["questions"]
    assert rows[0]["excerpt"] == "What is 17 + 25?"
