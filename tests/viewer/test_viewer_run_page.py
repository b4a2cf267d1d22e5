"""The page of a run answers: with which settings? In process, without a port.

For: harness.verbs.report, harness.viewer.app, harness.viewer.pages, harness.reports.history.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from aiohttp.test_utils import make_mocked_request

from harness.core import codec
from harness.runs import RunFolder
from harness.runs.manifest import Manifest
from harness.verbs.report import run_facts
from harness.viewer.app import Viewer
from harness.viewer.library import Library
from harness.viewer.pages import RunFacts
from tests.viewer.small_run import write_run

TOKEN = "secret"
PORT = 9


def repeat(manifest: Manifest) -> list[str]:
    return [f"harness run --model {manifest.model}"]


def facts(folder: RunFolder) -> RunFacts:
    return run_facts(folder, repeat)


def get(results: Path, path: str) -> tuple[int, Any]:
    """Status and JSON of a page of the viewer over `results`."""
    application = Viewer(Library((results,)), lambda *_: ("", ""), facts, TOKEN, PORT).application()
    application.freeze()
    headers = {"Host": f"127.0.0.1:{PORT}", "Cookie": f"harness-view-{PORT}={TOKEN}"}

    async def answer() -> tuple[int, Any]:
        response = await application._handle(make_mocked_request("GET", path, headers=headers, app=application))
        return response.status, codec.decode(response.body)  # type: ignore[attr-defined]

    return asyncio.run(answer())


def table(page: Any, title: str) -> dict[str, list[str]]:
    """The rows of a table of the page by their first cells."""
    (rows,) = [it["rows"] for it in page["facts"]["tables"] if it["title"] == title]
    return {row[0]: row[1:] for row in rows}


def test_the_page_of_a_run_says_settings_and_who_decided_them(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results" / "a")
    manifest = Manifest.load(folder)
    manifest.benchmarks["demo"].settings["sampling_from"] = {"temperature": "options", "top_p": "card"}
    manifest.save(folder)
    folder.log.write_bytes(
        b'{"event":"warning","message":"slow \\u001b[2J"}\n{"event":"warning","message":"slow \\u001b[2J"}\nbroken\n'
    )
    status, page = get(tmp_path / "results", "/api/run?run=a")
    assert status == 200
    settings = table(page, "Settings of demo")
    assert settings["temperature"] == ["0.6", "options"]
    assert settings["top_p"] == ["0.95", "card"]
    assert settings["max_tokens"] == ["32,768", "not recorded"]  # as by an earlier version
    assert not [name for name in settings if name.startswith("sampling_from")]
    assert table(page, "The run")["model"] == ["org/model-7b"]
    assert page["facts"]["warnings"] == [r"slow \x1b[2J"]
    assert page["facts"]["commands"] == ["harness run --model org/model-7b"]
    assert page["prompts"]["demo"]["text"]["text"].startswith("What is")


def test_an_unknown_run_and_a_damaged_manifest_are_sentences(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results" / "a", scored=False)
    status, page = get(tmp_path / "results", "/api/run?run=b")
    assert (status, page["error"][:24]) == (400, "there is no run 'b' here")
    folder.manifest.write_bytes(b"{")
    status, page = get(tmp_path / "results", "/api/run?run=a")
    assert status == 409
    assert "manifest.json" in page["error"]


def test_the_newest_run_comes_first(tmp_path: Path) -> None:
    for name, created in (("a", "2026-01-01"), ("b", "2026-03-01"), ("c", "2026-02-01")):
        folder = write_run(tmp_path / "results" / name, scored=False)
        manifest = msgspec.structs.replace(Manifest.load(folder), created=f"{created}T00:00:00+00:00")
        manifest.save(folder)
    assert [run["run"] for run in get(tmp_path / "results", "/api/runs")[1]["runs"]] == ["b", "c", "a"]


def test_samples_are_listed_with_tokens_and_length(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results" / "a", scored=False)
    lines = folder.benchmark("demo").samples.read_bytes().splitlines(keepends=True)
    samples = get(tmp_path / "results", "/api/question?run=a&benchmark=demo&question=q1")[1]["samples"]
    assert [(row["tokens"], row["record_bytes"]) for row in samples] == [
        (tokens, length) for tokens, length in zip([7, None, 7], map(len, lines), strict=False)
    ]
