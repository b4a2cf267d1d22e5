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


def test_the_page_of_a_run_says_settings_and_who_decided_them(tmp_path: Path, get: Get) -> None:
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
    assert settings["max_tokens"] == ["32,768", "not recorded"]  # as by an earlier version
    assert not [name for name in settings if name.startswith("sampling_from")]
    assert table(page, "The run")["model"] == ["org/model-7b"]
    assert page["facts"]["warnings"] == [r"slow \x1b[2J"]
    asked, scored = page["facts"]["commands"]
    assert asked.startswith("harness run demo:3 --model org/model-7b ")
    assert scored == "harness score a-again"
    assert page["prompts"]["demo"]["text"]["parts"][0].startswith("What is")


def test_the_page_of_an_unscored_run_has_the_times_and_tokens_of_its_log(tmp_path: Path, get: Get) -> None:
    rows = ["first session began (UTC)", "last session ended (UTC)", "time of the sessions", "samples at their end",
            "tokens in, of all their requests", "tokens out, of all their requests",
            "times and tokens of the samples"]  # fmt: skip
    start = '{"time":"2026-03-01T%s.5+00:00","event":"session_started","owed":4,"done":0}'
    end = '{"time":"2026-03-01T%s+00:00","event":"session_ended","done":%d,"spent":{"prompt_tokens":%d%s}}'
    stated, bounded = ',"completion_tokens":2000', ',"completion_tokens":2000,"n_bounded":1'
    logs = {
        "ended": [start % "23:59:50", end % ("23:59:59.5", 3, 7, stated)],
        "resumed": [
            start % "10:00:00", end % ("10:10:00.5", 3, 7, stated),
            start % "11:00:00", end % ("11:10:00.5", 4, 1000, bounded),
        ],
        "killed": [start % "10:00:00"],
        "odd": [start % "1", '{"time":"2026-03-01T10:00:00","event":"session_ended","done":3}'],
        "none": [],
    }  # fmt: skip
    shown, folder = {}, write_run(tmp_path / "results" / "a", scored=False)
    for name, lines in logs.items():
        folder.log.write_text("".join(f"{line}\n" for line in lines))
        run = table(get("/api/run?run=a")[1], "The run")
        shown[name] = [value for row in rows for value in run.get(row, ["–"])]
    advice = "score the run first: `harness score` adds them"
    assert shown == {
        "ended": ["2026-03-01 23:59", "2026-03-01 23:59", "9 s", "3", "7", "2,000", advice],
        "resumed": ["2026-03-01 10:00", "2026-03-01 11:10", "20 min", "4", "at most 1,007", "at most 4,000", advice],
        "killed": ["2026-03-01 10:00", *["–"] * 5, advice],
        "odd": [*["–"] * 6, advice],
        "none": [*["–"] * 6, advice],
    }
    write_run(tmp_path / "results" / "scored").log.write_text("".join(f"{line}\n" for line in logs["ended"]))
    assert not set(rows[:1] + rows[2:]) & table(get("/api/run?run=scored")[1], "The run").keys()


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
