"""What `--json` prints: JSON alone, of the schema that `--json-schema` prints.

For: harness.cli.printed, harness.cli.json_output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli.json_output import printing, schema
from harness.cli.main import main
from harness.testing import FakeServer
from tests.embedded import RunningServer
from tests.faults.able import able, sums
from tests.faults.holding import Holding, going, until
from tests.patience import PATIENCE_SECONDS
from tests.reports.run_folders import write_run
from tests.system.command import Result, harness
from tests.system.json_schemas import strict, valid

SUMS = ("--data", "sums.jsonl", "--id-key", "id", "--no-canary")
PRINTED = {
    "run": ("run", *SUMS, "--base-url", "{url}", "--out", "run", "--samples", "2"),
    "score": ("score", "run", "--workers", "1"),
    "compare": ("compare", "a", "b"),
    "verify": ("verify", "a", "--published", "published.yaml"),
    "race": (
        "race", *SUMS, "--out", "raced", "--samples", "2", "--candidate", "one base_url={url}",
        "--candidate", "other base_url={url}",
    ),
    "gate": ("gate", "gate.yaml", "a"),
    "plan": ("plan", "a", "--detect", "20"),
    "sweep": ("sweep", "sweep.yaml", "--base-url", "{url}"),
    "status": ("status", "a"),
    "probe": ("probe", "{url}", "--checks", "context"),
    "export": ("export", "a", "--to", "every-eval-ever"),
    "benchmarks": ("benchmarks",),
    "benchmarks list": ("benchmarks", "list"),
    "serve status": ("serve", "status"),
}  # fmt: skip
"""Every command, as it prints something of each record where that is quick."""

REFUSED = {
    "run": ("run", "no-such-benchmark", "--base-url", "http://127.0.0.1:9"),
    "score": ("score", "nowhere"),
    "compare": ("compare", "nowhere", "nowhere-else"),
    "verify": ("verify", "nowhere"),
    "race": ("race", "demo", "--candidate", "alone"),
    "gate": ("gate", "nowhere.yaml"),
    "plan": ("plan", "./nowhere", "--detect", "20"),
    "sweep": ("sweep", "nowhere.yaml"),
    "status": ("status", "nowhere"),
    "probe": ("probe", "--checks", "nothing", "http://127.0.0.1:9"),
    "export": ("export", "nowhere", "--to", "parquet"),
    "benchmarks": ("benchmarks", "--json", "show", "demo"),
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


def told(folder: Path, url: str, command: str, **extra: str) -> tuple[Result, Any]:
    """What the command printed; `harness` has held it to the schema."""
    if command == "score" and not (folder / "run").exists():
        told(folder, url, "run")
    done = harness(folder, *(word.replace("{url}", url) for word in PRINTED[command]), "--json", extra=extra)
    assert done.out, done.err
    return done, json.loads(done.out)


def without(value: Any, path: tuple[Any, ...]) -> Any:
    """A copy that lacks the field at the end of `path`."""
    first, *rest = path
    if isinstance(value, list):
        return [without(one, tuple(rest)) if n == first else one for n, one in enumerate(value)]
    if not rest:
        return {key: one for key, one in value.items() if key != first}
    return {key: without(one, tuple(rest)) if key == first else one for key, one in value.items()}


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every field of every record is; those of a mapping from names are none that a schema could name."""
    inner = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for key, one in inner:
        if isinstance(key, str):
            yield (*path, key)
        yield from fields(one, (*path, key))


def hold(command: str, value: Any) -> None:
    """Every field that the schema requires is missed; none that it does not know goes unseen."""
    assert valid(command, value)
    outermost = value[0] if isinstance(value, list) else value
    for name in outermost:
        paths = (path for path in fields(value) if path[-1] == name)
        assert any(not valid(command, without(value, path)) for path in paths), f"{name} may be missing"
    more = {**outermost, "no such field": 1}
    longer = [more, *value[1:]] if isinstance(value, list) else more
    assert valid(command, longer)  # as of a later version
    assert not strict(command).is_valid(longer)


@pytest.mark.parametrize("command", [name for name in PRINTED if name not in ("serve status", "sweep")])
def test_the_output_is_of_its_schema_and_without_a_field_it_is_not(
    folder: Path, server: FakeServer, command: str
) -> None:
    done, value = told(folder, server.base_url, command)
    assert done.code in (0, 1, 2, 4), done.err
    hold(command, value)


def test_a_sweep_s_cells_and_means_are_of_their_schema(folder: Path, server: FakeServer) -> None:
    done, value = told(folder, server.base_url, "sweep")
    assert done.code == 0, done.err
    hold("sweep", value)
    for rows in ("cells", "means"):
        required = set(schema("sweep")["$defs"][{"cells": "CellRow", "means": "MeanRow"}[rows]]["required"])
        assert {*value[rows][0]} > required  # where it stands on the axes
        assert all(not valid("sweep", without(value, (rows, 0, name))) for name in required)


def test_servers_are_of_their_schema(folder: Path, embedded_server: RunningServer, private_state: Path) -> None:
    _, value = told(folder, "", "serve status", HARNESS_STATE=str(private_state))
    (row,) = (row for row in value["servers"] if row["name"] == embedded_server.name)  # other tests serve, too
    assert row["base_urls"] == list(embedded_server.base_urls)
    hold("serve status", value)
    assert not valid("serve status", without(value, ("servers", 0, "model")))


def test_a_run_under_way_answers_in_json(tmp_path: Path) -> None:
    holding = Holding()
    with FakeServer(holding) as server, going(tmp_path, server) as run:
        until(server, tmp_path, lambda facts: facts.in_flight == 4)
        (looked,) = json.loads(harness(tmp_path, "status", "results/run", "--json").out)
        refused = harness(tmp_path, "status", "results/run", "--concurrency", "many")
        holding.let_go.set()
        run.communicate(timeout=PATIENCE_SECONDS)
    hold("status", [looked])
    for name in looked["progress"]:
        assert not valid("status", [without(looked, ("progress", name))])
    assert (refused.code, "'many' is not a valid integer" in refused.err) == (2, True)


def test_no_command_is_left_out() -> None:
    assert {*PRINTED} == set(REFUSED) == set(printing())


@pytest.mark.parametrize("command", REFUSED)
def test_a_refusal_leaves_standard_output_empty(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = REFUSED[command]
    monkeypatch.setattr(sys, "argv", ["harness", *words, *(() if "--json" in words else ("--json",))])
    with pytest.raises(SystemExit) as end:
        main()
    output = capsys.readouterr()
    assert end.value.code in (2, 3)
    assert (output.out, output.err != "") == ("", True)


def test_only_axes_of_a_sweep_and_what_few_benchmarks_have_may_be_left_out() -> None:
    free = {
        (record, name)
        for command in printing()
        for record, found in schema(command)["$defs"].items()
        for name in set(found.get("properties", ())) - set(found.get("required", ()))
    }
    axes = ("models", "servers", "prompts", "sampling", "benchmarks")
    rare = {("Estimate", "unit"), ("JudgeErrors", "key_variable")}
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
    assert (done.code, done.out, f"leave out {words.split()[-1]}" in done.err) == (2, "", True)
