"""`harness export`, `merge`, `report`, `show` and `status`, and their functions: what is read of runs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet

from tests.pins import reading, stored
from tests.pins.stage import Scene, Stage, words_of

VOLATILE = (
    "time|date|version|uuid|^_?id$|_id$|hash|sha|commit|created|path|endpoint|host|speed|duration|total|origin|^started"
    "|^queued|^first_token|^grader|^rule$"
)
"""Keys of exported records that hold times, places, versions and what decided a verdict."""
MAX_RECORDS = 3


def export(stage: Stage) -> None:
    """The records of every format, read back."""
    stored.copy("first", stage.folder, scored=True)
    stage.command("export", "first", "--to", "nothing")
    stage.python("export", "first", "nothing")
    for to in (names := stage.listed()):
        stage.command("export", "first", "--to", to, "--out", to, "--i-know")
        stage.keep(**records(stage.folder / to))
    assert names


def export_options(stage: Stage) -> None:
    """What is taken, by both doors."""
    stored.copy("first", stage.folder, scored=True)
    options: dict[str, Any] = {"take": "all", "shortest": 1, "distinct": False, "reasoning": False, "i_know": True}
    words = words_of(options | {"finish_reason": "any", "out": "by-command"})
    stage.command("export", "first", "--to", "sharegpt", *words)
    stage.keep(**records(stage.folder / "by-command"))
    stage.python("export", "first", "sharegpt", out="by-python", finish_reasons=(), **options)
    stage.keep(**records(stage.folder / "by-python"))


def records(folder: Path) -> dict[str, Any]:
    """The records of each kind of file in a folder: their number, and the first ones without what is volatile."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        rows = rows_of(path)
        shown = reading.bare(rows[:MAX_RECORDS], VOLATILE)
        found[path.suffix] = {"n": len(rows), "records": shown}
    return {"files": found}


def rows_of(path: Path) -> list[Any]:
    """The records of a file."""
    if path.suffix == ".parquet":
        return list(pyarrow.parquet.read_table(path).to_pylist())
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as archive:
            names = [name for name in sorted(archive.namelist()) if name.startswith("samples/")]
            samples = [json.loads(archive.read(name)) for name in names]
        return [one | {"output": {"choices": one["output"]["choices"]}} for one in samples]
    if path.suffix == ".csv":
        return reading.rows_of_csv(path)
    text = path.read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else [json.loads(text)]


def merge(stage: Stage) -> None:
    """Two shards of one run, by both doors; a shard alone, and what is no part of the same run."""
    for name in ("first", "second", "shard-1", "shard-2"):
        stored.copy(name, stage.folder)

    def kept(run: str) -> None:
        folder = stage.folder / run
        if (folder / "manifest.json").exists():
            stage.keep(**reading.questions(folder), **reading.samples(folder), **reading.settings(folder))

    stage.both("merge", ["shard-1", "shard-2"], out="joined", json=False, then=kept)
    stage.command("merge", "shard-1", "--out", "alone")
    stage.both("merge", ["first", "second"], out="never", json=False, then=kept)


def report(stage: Stage) -> None:
    """The numbers of the tables, by both doors."""
    for name in ("first", "second"):
        stored.copy(name, stage.folder, scored=True)

    def kept(out: str) -> None:
        stage.keep(**reading.reported(stage.folder / out))

    stage.both("report", ["first", "second"], out="out", json=False, then=kept)
    stage.command("report", "nowhere")


def show(stage: Stage) -> None:
    """Which questions and samples each filter shows."""
    for name in ("first", "second"):
        stored.copy(name, stage.folder, scored=True)
    filters = ["wrong", "no-answer", "undecided", "cut", "near-miss", "anomaly", "disputed"]
    for words in (
        [],
        ["q1"],
        ["q1:3", "--reasoning"],
        *([f"--{name}"] for name in filters),
        ["--grep", "case"],
        ["--filter", "level=2"],
        ["q9"],
    ):
        stage.command("show", "first", *words, read=reading.shown)


def status(stage: Stage) -> None:
    """What the files of an ended run say; that no server runs."""
    stored.copy("first", stage.folder, scored=True)
    stage.command("status", "first", "--json", read=reading.progress)
    for words in (["status", "nowhere"], ["status", "--json"], ["view", "nowhere"]):
        stage.command(*words)
    stage.command("serve", "status", "--json", read=dict)
    for words in (["serve", "stop", "nobody"], ["serve", "logs", "nobody"], ["doctor", "first"], ["doctor", "nowhere"]):
        stage.command(*words)


SCENES: tuple[Scene, ...] = (export, export_options, merge, report, show, status)
