"""`harness experiment`: repeats and sizes from one run and from real runs, their pictures, and what is refused.

For: harness.cli.experiment, harness.reports.plots.repeats.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import harness as product
from harness.cli.main import cli
from harness.core.errors import UsageError
from harness.core.series import numbers_of
from harness.reports.plots import draw
from harness.runs import Manifest, RunFolder
from tests.faults.able import able, sums
from tests.faults.server import FaultServer, Request, Step, completion
from tests.reports.run_folders import write_run
from tests.system.command import harness, start


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "run", benchmarks=[("demo", 12, 32)])


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return sums(tmp_path, 10)


def real(kind: str, url: str, *words: str) -> list[str]:
    given = ["experiment", kind, "--real", "--data", "sums.jsonl", "--id-key", "id", "--no-canary", "--out", "out"]
    return [*given, "--base-url", url, *words]


@pytest.mark.usefixtures("run")
def test_repeats_of_a_run_come_with_a_picture_and_its_data(tmp_path: Path) -> None:
    done = harness(tmp_path, "experiment", "repeats", "run", "--runs", "16", "--out", "figures")
    assert done.code == 0, done.err
    assert "demo: 16 repeats of 2 samples a question, cut from 32 samples of each question, none used twice" in done.out
    assert "points observed" in done.out
    rows = list(csv.DictReader((tmp_path / "figures" / "demo-repeats.csv").read_text("utf-8").splitlines()))
    assert [row["repeat"] for row in rows] == [str(number) for number in range(1, 17)]
    assert all(0 <= float(row["accuracy"]) <= 1 for row in rows)
    text = "".join(ET.parse(tmp_path / "figures" / "demo-repeats.svg").getroot().itertext())
    assert "predicted by the sampling error" in text
    assert (tmp_path / "figures" / "demo-repeats.png").read_bytes().startswith(b"\x89PNG")
    again = harness(tmp_path, "experiment", "repeats", "run", "--runs", "16", "--out", "figures")
    assert again.out == done.out


@pytest.mark.usefixtures("run")
def test_repeats_that_share_samples_say_so_and_what_runs_would_do(tmp_path: Path) -> None:
    done = harness(tmp_path, "experiment", "repeats", "run", "--samples", "16", "--json")
    (found,) = json.loads(done.out)
    assert (found["source"], found["n"], found["stored"]) == ("draws", 16, 32)
    assert found["predicted"] == pytest.approx(found["run_error"] / 2**0.5)
    assert (tmp_path / "run" / "demo-repeats.csv").exists()


@pytest.mark.usefixtures("run")
def test_sizes_of_a_run_follow_the_root_of_n(tmp_path: Path) -> None:
    done = harness(tmp_path, "experiment", "samples", "run", "--n", "2,4,…,32", "--json", "--out", "figures")
    assert done.code == 0, done.err
    (found,) = json.loads(done.out)
    sizes = found["sizes"]
    assert [one["n"] for one in sizes] == [2, 4, 8, 16, 32]
    assert sizes[0]["predicted"] == pytest.approx(4 * sizes[-1]["predicted"])
    rows = list(csv.DictReader((tmp_path / "figures" / "demo-samples.csv").read_text("utf-8").splitlines()))
    assert [row["n"] for row in rows] == ["2", "4", "8", "16", "32"]
    shown = harness(tmp_path, "experiment", "samples", "run", "--n", "2,8", "--out", "figures")
    assert "stated by a run" in shown.out


def test_several_benchmarks_are_a_list_like_one(tmp_path: Path) -> None:
    write_run(tmp_path / "two", benchmarks=[("demo", 4, 8), ("other", 4, 8)])
    done = harness(tmp_path, "experiment", "repeats", "two", "--runs", "4", "--json")
    assert [found["benchmark"] for found in json.loads(done.out)] == ["demo", "other"], done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["samples", "run", "--n", "8,64"], "has 32 samples of each question, and 64 cannot be drawn"),
        (["samples", "run", "--n", "8"], "at least two different numbers"),
        (["samples", "run", "--n", "1,8"], "2 or more"),
        (["samples", "run", "--n", "8,x"], "expected whole numbers"),
        (["repeats", "run", "--samples", "33"], "33 cannot be drawn"),
        (["repeats", "run", "--samples", "32"], "every repeat would hold all of them"),
        (["repeats", "run", "--temperature", "1"], "it needs --real: a stored run"),
        (["repeats", "aime24"], "aime24 is no run folder"),
        (["repeats"], "give a run folder"),
        (["repeats", "demo", "--real", "--target-error", "1"], "all repeats need the same number of samples"),
        (["samples", "demo:4", "--real", "--n", "2,4"], "--n says how many samples each question gets"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(run.path.rglob("*"))
    done = CliRunner().invoke(cli, ["experiment", *words])
    refusal = done.exception
    assert isinstance(refusal, UsageError) or done.exit_code == 2
    assert said in done.output + (str(refusal.sentence.marked) if isinstance(refusal, UsageError) else "")
    assert sorted(run.path.rglob("*")) == before


def test_a_run_of_one_sample_or_without_a_score_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "one", benchmarks=[("demo", 4, 1)])
    write_run(tmp_path / "raw", benchmarks=[("demo", 4, 4)], scored=False)
    assert "shows no spread" in harness(tmp_path, "experiment", "repeats", "one").err
    raw = harness(tmp_path, "experiment", "repeats", "raw")
    assert (raw.code, "is not scored" in raw.err) == (3, True)


@pytest.mark.usefixtures("questions")
def test_real_repeats_have_seeds_of_their_own_and_go_on_where_they_ended(tmp_path: Path) -> None:
    with FaultServer(able(0.5)) as server:
        words = real("repeats", server.base_url, "--samples", "4")
        done = harness(tmp_path, *words, "--runs", "3")
        assert done.code == 0, done.err
        seeds = [r.json["seed"] for r in server.requests if r.method == "POST"]
        assert len(seeds) == len(set(seeds)) == 3 * 10 * 4
        assert "3 of 3: " in done.err
        assert "3 repeats of 4 samples a question, each a run with its own seeds" in done.out
        more = harness(tmp_path, *words, "--runs", "5")
        assert more.code == 0, more.err
        assert len([r for r in server.requests if r.method == "POST"]) == 5 * 10 * 4
    once_more = harness(tmp_path, *words, "--runs", "5", "--model", "test-model", "--json")
    assert once_more.code == 0, once_more.err  # nothing is owed, and the server is gone
    (found,) = json.loads(once_more.out)
    assert (found["source"], found["names"][0], len(found["accuracies"])) == ("runs", "run-01", 5)
    folders = [RunFolder.open(tmp_path / "out" / f"run-0{number}") for number in range(1, 6)]
    identities = {Manifest.load(folder).benchmarks["sums"].identity["seed"] for folder in folders}
    assert len(identities) == 5
    scored = [json.loads(folder.benchmark("sums").scores.read_bytes())["accuracy"]["value"] for folder in folders]
    assert scored == pytest.approx(found["accuracies"])


@pytest.mark.usefixtures("questions")
def test_a_killed_experiment_goes_on_and_asks_for_nothing_twice_that_it_has(tmp_path: Path) -> None:
    killed = threading.Event()

    def slow(request: Request) -> Iterator[Step]:
        if request.method == "POST" and not killed.is_set() and len(server.requests) > 50:
            killed.wait(30)  # it stands still within the second repeat until the command is dead
        return able(0.5)(request)

    with FaultServer(slow) as server:
        words = real("repeats", server.base_url, "--samples", "4", "--runs", "2", "--concurrency", "4")
        words.append("--no-fingerprint")
        process = start(tmp_path, words)
        while len(server.requests) < 54:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        killed.set()
        stored = sum(len(path.read_bytes().splitlines()) for path in tmp_path.glob("out/run-*/sums/samples.jsonl"))
        assert 40 <= stored < 80
        n_before = len(server.requests)
        done = harness(tmp_path, *words)
        assert done.code == 0, done.err
        asked = [r for r in server.requests[n_before:] if r.method == "POST"]
    assert len(asked) == 80 - stored
    assert "2 repeats of 4 samples a question" in done.out


def test_without_the_extra_there_are_data_and_a_sentence(
    tmp_path: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw, "installed", lambda: False)
    done = CliRunner().invoke(cli, ["experiment", "repeats", str(run.path), "--out", str(tmp_path / "figures")])
    assert done.exit_code == 0, done.output
    assert re.search(r"no pictures were drawn; to draw them: \S+ -m pip install '?vl-convert-python", done.output)
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["demo-repeats.csv"]


def test_an_unfinished_run_is_warned_of(tmp_path: Path) -> None:
    write_run(tmp_path / "run", benchmarks=[("demo", 6, 32)], missing=0.05)
    done = harness(tmp_path, "experiment", "samples", "run", "--n", "2,8")
    assert done.code == 0, done.err
    assert "warning: demo: the run is unfinished" in done.err


@pytest.mark.usefixtures("questions")
def test_a_server_that_ignores_seeds_is_named(tmp_path: Path) -> None:
    half = able(0.5)
    n = 0

    def cached(request: Request) -> Iterator[Step]:
        """The k-th request of a question gets the same reply in every run."""
        nonlocal n
        if request.method == "GET":
            return half(request)
        number = int(request.json["messages"][-1]["content"].split()[2])
        n += 1
        right = number + 1 if (asked.setdefault(number, 0) % 4) < 2 else 999
        asked[number] += 1
        return completion(rf"Case {n}: so \boxed{{{right}}}", tokens=50)

    asked: dict[int, int] = {}
    with FaultServer(cached) as server:
        done = harness(tmp_path, *real("repeats", server.base_url, "--samples", "4", "--runs", "4"))
    assert done.code == 0, done.err
    assert "less than predicted" in done.out
    assert "does the server ignore seeds" in done.err


@pytest.mark.usefixtures("questions")
def test_real_sizes_are_runs_of_each_size(tmp_path: Path) -> None:
    with FaultServer(able(0.5)) as server:
        done = harness(tmp_path, *real("samples", server.base_url, "--n", "2,4,8", "--json"))
        assert done.code == 0, done.err
        assert len([r for r in server.requests if r.method == "POST"]) == 10 * (2 + 4 + 8)
    assert [one["n"] for one in json.loads(done.out)[0]["sizes"]] == [2, 4, 8]
    assert (tmp_path / "out" / "n8" / "run-01" / "manifest.json").exists()
    assert (tmp_path / "out" / "sums-samples.svg").exists()


def test_python_has_both(tmp_path: Path, run: RunFolder, questions: Path) -> None:
    found = product.repeats(run, 16)
    assert len(found.records()) == 16
    assert found.records()[0]["benchmark"] == "demo"
    assert [path.suffix for path in found.write(tmp_path / "figures")] == [".svg", ".png", ".csv"]
    assert [row["n"] for row in product.sample_sizes(run, [2, 4, 8]).records()] == [2, 4, 8]
    with pytest.raises(UsageError, match="needs real=True: a stored run"):
        product.repeats(run, 16, temperature=1.0)
    with FaultServer(able(0.5)) as server:
        made = product.repeats(
            (), 2, real=True, data=questions, id_key="id", samples=2, base_url=server.base_url, canary=False,
            out=tmp_path / "real",
        )  # fmt: skip
    assert made.folder == tmp_path / "real"
    assert [row["repeat"] for row in made.records()] == ["run-01", "run-02"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("8,16,…,256", (8, 16, 32, 64, 128, 256)),
        ("8,16,...,64", (8, 16, 32, 64)),
        ("2,4,…,10", (2, 4, 6, 8, 10)),
        ("3,5,…,11", (3, 5, 7, 9, 11)),
        ("4,8", (4, 8)),
    ],
)
def test_dots_go_on_by_the_ratio_else_by_the_step(text: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of(text) == numbers


@pytest.mark.parametrize("text", ["", "8,…", "…,8", "8,16,…", "16,8,…,2", "2,4,…,9", "8,,16", "0,0,…,8"])
def test_dots_that_lead_nowhere_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        numbers_of(text)
