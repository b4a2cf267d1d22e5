"""What is pinned of a result: every field of every record but those named here, so that a new one fails its pin.

A field that is empty in all records of a kind is pinned by its name, among the names of all their fields. Where the
product spells a record or a file otherwise, a line here changes, and no data.
"""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.conftest import CHECKOUT


def plain(value: Any) -> Any:
    """A Python value as JSON."""
    return msgspec.to_builtins(
        value, str_keys=True, enc_hook=lambda one: one.tolist() if hasattr(one, "tolist") else str(one)
    )


VOLATILE = "run|schema|warnings|seconds|timing|speed|workload|request_id|crc|graders|(least|most)_s"
"""Fields that hold times, places and versions, or what the keys of notes hold (warnings)."""


def each(name: str, rows: Mapping[str, Any], left_out: str = VOLATILE) -> dict[str, Any]:
    """Records by their keys, and the names of their fields. left_out: names that are not pinned, at any depth."""
    records = {key: plain(row) for key, row in rows.items()}
    bare_records = {key: full(bare(row, f"^({left_out})$")) for key, row in records.items()}
    return {name: bare_records} | fields(name, records.values())


def fields(name: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The names of the fields of records."""
    return {f"fields of {name}": " ".join(sorted({field for row in rows for field in row}))}


def full(value: Any) -> Any:
    """The value without what is empty, at any depth."""
    if isinstance(value, dict):
        pairs = ((key, full(item)) for key, item in value.items())
        return {key: item for key, item in pairs if item not in (None, [], {}, "")}
    return [full(item) for item in value] if isinstance(value, list | tuple) else value


def bare(value: Any, unwanted: str) -> Any:
    """The value without the keys that match, at any depth."""
    if isinstance(value, dict):
        return {key: bare(item, unwanted) for key, item in value.items() if not re.search(unwanted, key)}
    return [bare(item, unwanted) for item in value] if isinstance(value, list | tuple) else value


# ---- scores and decisions


def scores(rows: Any) -> dict[str, Any]:
    """Scores by benchmark."""
    return each("scores", {row["benchmark"]: row for row in map(plain, rows)})


def decisions(rows: Any) -> dict[str, Any]:
    """How each run stands beside the first, by run and benchmark."""
    told = [row.get("decision", row) for row in plain(rows)]
    left_out = VOLATILE.replace("run|", "", 1)
    return each("decisions", {f"{row['run']}: {row['paired']['benchmark']}": row for row in told}, left_out)


def checks(rows: Any) -> dict[str, Any]:
    """How a run stands beside what is published."""
    return each("checks", {row["benchmark"]: row for row in plain(rows)})


def needed(rows: Any) -> dict[str, Any]:
    """The samples that a difference takes, with their tokens and price."""
    return each("plan", {row["benchmark"]: row for row in plain(rows)})


def cards(rows: Any) -> dict[str, Any]:
    """The fields, the size of the demo, and whether each shipped card is listed with the size that its file states."""
    listed = {row["benchmark"]: (row.get("questions"), row.get("samples")) for row in rows}
    files = {path.stem: yaml.safe_load(path.read_bytes()) for path in (CHECKOUT / "datasets").glob("*.yaml")}
    stated = {name: (card.get("questions"), card.get("samples", 1)) for name, card in files.items()}
    return {
        "fields": " ".join(sorted({*rows[0]})),
        "demo": listed.get("demo"),
        "as their files state": listed == stated,
    }


def swept(value: Any) -> dict[str, Any]:
    """A sweep's cells and the means of its suite."""
    return each("cells", {row["cell"]: row for row in value["cells"]}) | {"means": value["means"]}


def reported(folder: Path) -> dict[str, Any]:
    """The numbers in the rows of a report's CSV, by model and benchmark, and the headings of its tables."""
    rows = {f"{row['model']}: {row['benchmark']}": row for row in rows_of_csv(folder / "report.csv")}
    tables = re.findall(r"^\| (.*) \|\n\| -", (folder / "report.md").read_text("utf-8"), re.MULTILINE)
    return each("report", rows, f"({VOLATILE}).*") | {"tables": tables}


def rows_of_csv(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file, with numbers in place of their digits."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [{name: number(text) for name, text in row.items()} for row in csv.DictReader(file)]


def number(text: str) -> float | int | str:
    """The number that a text is, or the text."""
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError):
        return float(text)
    return text


# ---- runs


def ran(value: Any) -> dict[str, Any]:
    """How a session ended, where it was told."""
    if not isinstance(value, dict):
        return {}
    return each("end", {"run": value}, f"{VOLATILE}|exit_code")


def rows_of(run: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(key, row) of a file of JSON lines of each benchmark, by question and sample; of equal keys the last."""
    found = {}
    for path in sorted(run.glob(f"*/{name}.jsonl")):
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            found[":".join(str(row[key]) for key in ("question_id", "sample_index") if key in row)] = row
    yield from sorted(found.items())


def samples(run: Path) -> dict[str, Any]:
    """A run's samples by question and number."""
    of_requests = "endpoint|server_model|seed|prompt_digest"
    left_out = f"{VOLATILE}|benchmark|question_id|sample_index|{of_requests}"
    return each("samples", dict(rows_of(run, "samples")), left_out)


def questions(run: Path) -> dict[str, Any]:
    """A run's questions: what is right, and how it is compared."""
    return each("questions", dict(rows_of(run, "questions")), f"{VOLATILE}|benchmark|question_id|.*_digest")


def settings(run: Path) -> dict[str, Any]:
    """What a run may not be continued with otherwise, by benchmark."""
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))["benchmarks"]
    return each("settings", {name: one["identity"] | one["plan"] for name, one in manifest.items()})


def verdicts(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Verdict and answer of each sample; a third word says that a judge or a person decided."""
    told = {}
    for key, row in rows:
        by = re.findall(r"\+(\w+)", row["grader"])
        told[key] = [row["verdict"], row["extracted"], *by]
    return {"verdicts": told}


def graded(run: Path) -> dict[str, Any]:
    """The verdicts of a run folder."""
    rows = list(rows_of(run, "grades"))
    return verdicts(rows) | fields("grades", (row for _, row in rows))


def progress(rows: Any) -> dict[str, Any]:
    """What a status says of runs."""
    return each("status", {str(n): row for n, row in enumerate(rows)})


# ---- what is text only


def shown(text: str) -> dict[str, Any]:
    """The questions and samples that a text names."""
    listed = re.findall(r"\b(q\d+|demo-\d+|r\d+)(?: · sample (\d+))?", text)
    return {"shown": sorted({":".join(filter(None, pair)) for pair in listed})}


def verdict(graded: Any) -> dict[str, Any]:
    """The last of a grading's steps: the verdict."""
    return {"verdict": (graded.splitlines() if isinstance(graded, str) else graded.steps)[-1]}


def first_words(table: str) -> list[str]:
    """The first words of a table's lines."""
    return [line.split()[0] for line in table.splitlines() if line.split()]


def outcomes(report: Any) -> dict[str, Any]:
    """The word that each check of a probe came to."""
    findings = report["findings"]
    read = [one["likelihood"] for one in findings if "likelihood" in one]
    told = {"likelihood": {"verdict": read[0]["verdict"], "difference": read[0]["difference"]}} if read else {}
    return {"checks": {one["check"]: one["outcome"] for one in findings}} | told | fields("findings", findings)
