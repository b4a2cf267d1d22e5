"""What `--json` prints: JSON alone, of the schema that `--json-schema` prints.

For: harness.cli.json_output.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli.json_output import output_types, schema
from harness.testing import FakeServer
from tests.embedded import RunningServer
from tests.faults.able import able, sums
from tests.reports.run_folders import write_run
from tests.system.command import harness
from tests.system.json_schemas import strict, valid

SUMS = ("--data", "sums.jsonl", "--id-key", "id", "--no-canary")
PRINTED = {
    "run": ("run", *SUMS, "--base-url", "{url}", "--out", "run", "--samples", "2"),
    "score": ("score", "run", "--workers", "1"),
    "compare": ("compare", "a", "b"),
    "verify": ("verify", "a", "--published", "published.yaml"),
    "gate": ("gate", "gate.yaml", "a"),
    "plan": ("plan", "a", "--detect", "20"),
    "sweep": ("sweep", "sweep.yaml", "--base-url", "{url}"),
    "status": ("status", "a"),
    "probe": ("probe", "{url}", "--checks", "context"),
    "export": ("export", "a", "--to", "lm-eval"),
    "benchmarks list": ("benchmarks", "list"),
    "serve status": ("serve", "status"),
}
"""Every command, as it prints something of each record where that is quick."""

REFUSED = {
    "run": ("run", "no-such-benchmark", "--base-url", "http://127.0.0.1:9"),
    "score": ("score", "nowhere"),
    "compare": ("compare", "nowhere", "nowhere-else"),
    "verify": ("verify", "nowhere"),
    "gate": ("gate", "nowhere.yaml"),
    "plan": ("plan", "./nowhere", "--detect", "20"),
    "sweep": ("sweep", "nowhere.yaml"),
    "status": ("status", "nowhere"),
    "probe": ("probe", "--checks", "nothing", "http://127.0.0.1:9"),
    "export": ("export", "nowhere", "--to", "parquet"),
    "benchmarks list": ("benchmarks", "list", "more"),
    "serve status": ("serve", "status", "more"),
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


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer(able(0.5)) as one:
        yield one


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scored runs, questions, a gate, a sweep and published scores."""
    run_folder = tmp_path_factory.mktemp("printed")
    for run, seed in (("a", 1), ("b", 2)):
        write_run(run_folder / run, benchmarks=[("demo", 4, 4)], seed=seed)
    sums(run_folder, 3)
    (run_folder / "published.yaml").write_text(PUBLISHED, "utf-8")
    policy = {"name": "g", "benchmarks": {"demo": {"floor": 50, "loss": 40, "max_samples": 4}}}
    (run_folder / "gate.yaml").write_text(json.dumps(policy), "utf-8")
    suite = {
        "suite": {"title": "sums", "aggregate": "mean"},
        "models": ["test-model"],
        "run": {"id_key": "id", "canary": False},
        "score": {"workers": 1},
        "benchmarks": [{"data": "sums.jsonl", "samples": 2}],
    }
    (run_folder / "sweep.yaml").write_text(json.dumps(suite), "utf-8")  # JSON is YAML
    return run_folder


@pytest.mark.parametrize("command", [name for name in PRINTED if name != "serve status"])
def test_the_output_is_of_its_schema(folder: Path, server: FakeServer, command: str) -> None:
    """`harness` holds it to the schema, to which no field may be added there."""
    if command == "score" and not (folder / "run").exists():
        assert printed(folder, server.base_url, "run")
    value = printed(folder, server.base_url, command)
    if command == "sweep":
        assert ["models" in value[rows][0] for rows in ("cells", "means")] == [True, True], (
            "where it stands on the axes"
        )
    if command == "verify":
        outermost = {**value[0], "no such field": 1}
        assert valid(command, [outermost]), "a later version's"
        assert not strict(command).is_valid([outermost]), "a later version's"


def printed(folder: Path, url: str, command: str, **extra: str) -> Any:
    done = harness(folder, *(word.replace("{url}", url) for word in PRINTED[command]), "--json", extra=extra)
    assert done.out, done.err
    assert done.code in ((0,) if command in ("run", "sweep") else (0, 1, 2, 4)), done.err
    return json.loads(done.out)


def test_servers_are_of_their_schema(folder: Path, embedded_server: RunningServer, private_state: Path) -> None:
    value = printed(folder, "", "serve status", HARNESS_STATE=str(private_state))
    (row,) = (row for row in value["servers"] if row["name"] == embedded_server.name)  # other tests serve, too
    assert row["base_urls"] == list(embedded_server.base_urls)


def test_no_command_is_left_out() -> None:
    assert {*PRINTED} == set(REFUSED) == set(output_types())


@pytest.mark.parametrize("command", REFUSED)
def test_a_refusal_leaves_standard_output_empty(command: str, tmp_path: Path) -> None:
    words = REFUSED[command]
    done = harness(tmp_path, *words, *(() if "--json" in words else ("--json",)))
    assert (done.code in (2, 3), done.out, done.err != "") == (True, "", True)


def test_only_axes_of_a_sweep_and_what_few_benchmarks_have_may_be_left_out() -> None:
    free = {
        (record, name)
        for command in output_types()
        for record, found in schema(command)["$defs"].items()
        for name in set(found.get("properties", ())) - set(found.get("required", ()))
    }
    axes = ("models", "servers", "prompts", "sampling", "benchmarks")
    rare = {("Estimate", "unit"), ("JudgeErrors", "key_variable"), ("RunScore", "points_of")}
    rare |= {
        ("Finding", "likelihood"),
        ("RunScore", "right_from"),
        ("RunScore", "tool"),
        ("RunScore", "turns"),
        ("RunScore", "engine"),
        ("RunScore", "speculation"),
        ("Speculation", "by_question"),
        ("PairedComparison", "trigger"),
        ("Verified", "judge"),
        ("CellRow", "load"),
        ("CellRow", "goodput"),
        ("RunScore", "goodput"),
        ("Workload", "cached_tokens"),
    }
    assert free == rare | {(record, axis) for record in ("CellRow", "MeanRow") for axis in axes}


def test_the_command_prints_the_schema_of_its_json(tmp_path: Path) -> None:
    done = harness(tmp_path, "serve", "status", "--json-schema")
    assert (done.code, json.loads(done.out)) == (0, schema("serve status"))


@pytest.mark.parametrize(
    "words",
    [
        "sweep demo --model m --schema",
        "sweep demo --model m --list",
        "sweep demo --model m --dry-run",
        "run demo --dry-run",
    ],
)
def test_json_goes_without_what_prints_otherwise(tmp_path: Path, words: str) -> None:
    done = harness(tmp_path, *words.split(), "--json")
    sentence = f"harness: --json: it does not work with {words.split()[-1]}: omit one of them\n"
    assert (done.code, done.out, done.err) == (2, "", sentence)
