"""The first commands of a user: their own questions, the newest run, and a reply of which a part is not read."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.testing import FakeServer, Request, Said, Step, http, models, serving
from tests.faults.able import sums
from tests.patience import PATIENCE_SECONDS
from tests.system.command import harness, start

SHORT = ("--max-tokens", "64", "--no-canary")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a model that answers 1 to every question."""
    with FakeServer(serving(Said(r"So \boxed{1}"))) as server:
        yield server.base_url


# -- a file of questions in place of a benchmark -----------------------------------------------------------------------


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A folder with two questions in q.csv, in other columns in odd.csv, and in a file named as a benchmark."""
    (tmp_path / "demo").write_text("problem,answer\n0+1?,1\n")
    (tmp_path / "q.csv").write_text("problem,answer\n0+1?,1\n1+1?,2\n")
    (tmp_path / "odd.csv").write_text("p,a\n0+1?,1\n1+1?,2\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "n"),
    [
        ("run q.csv:4 --out o", 8),
        ("run ./q.csv --samples 3 --out o", 6),
        ("run q.csv:1,demo:1 --limit 1 --out o", 2),
        ("run odd.csv:2 --question-key p --answer-key a --out o", 4),
        ("run --data q.csv --samples 2 --out o", 4),
        ("run demo:1 --out o", 40),
        ("sweep q.csv:2 --concurrency 1,2 --out o", 8),
    ],
)
def test_a_file_of_questions_is_taken_where_a_benchmark_is_named(asked: Path, url: str, words: str, n: int) -> None:
    done = harness(asked, *words.split(), *SHORT, "--base-url", url)
    assert done.code == 0, done.err
    assert sum(len(file.read_text().splitlines()) for file in asked.glob("o/**/samples.jsonl")) == n
    assert not [run for run in asked.glob("o/**/manifest.json") if ".csv" in str(run.relative_to(asked))]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run absent.csv:4", "file absent.csv does not exist"),
        ("run q.csv:x", "'q.csv:x'"),
        ("run odd.csv:2", "--question-key"),
        ("run demo:1 --question-key p", "--question-key: it only applies to a file of questions"),
        ("sweep absent.csv:2 --concurrency 1,2", "absent.csv"),
    ],
)
def test_another_file_or_an_option_without_a_file_is_one_sentence(asked: Path, url: str, words: str, says: str) -> None:
    done = harness(asked, *words.split(), "--base-url", url, "--out", "o")
    assert (done.code, says in done.err, len(done.err.splitlines())) == (2, True, 1), done.err


def test_a_plan_takes_a_file_of_questions(asked: Path) -> None:
    done = harness(asked, "plan", "q.csv:4", "--accuracy", "50", "--json")
    assert (done.code, [(each["n_questions"], each["given_samples"]) for each in json.loads(done.out)]) == (0, [(2, 4)])


# -- the newest run ----------------------------------------------------------------------------------------------------


@pytest.fixture
def two_runs(asked: Path, url: str) -> Path:
    """A folder with a scored run in results, and a later one in another folder."""
    for when, out in enumerate(("results/old", "sw/new"), start=10**9):
        assert harness(asked, "run", "q.csv:2", *SHORT, "--base-url", url, "--out", out).code == 0
        assert harness(asked, "score", out).code == 0
        os.utime(asked / out / "log.jsonl", (when, when))
    published = {"question_id": "q", "benchmark": "q", "correct": True}
    (asked / "published.jsonl").write_text(json.dumps(published) + "\n")
    return asked


@pytest.mark.parametrize("words", ["score", "score --fresh", "report", "show", "verify --published published.jsonl"])
def test_a_command_without_a_run_takes_the_newest_one_and_names_it(two_runs: Path, words: str) -> None:
    for newest in ("sw/new", "results/old"):
        without, named = harness(two_runs, *words.split()), harness(two_runs, *words.split(), newest)
        first, _, rest = without.err.partition("\n")
        assert first == f"the newest run: {two_runs / newest}"
        assert (without.code, without.out, rest) == (named.code, named.out, named.err)
        shutil.rmtree(two_runs / "sw", ignore_errors=True)
    shutil.rmtree(two_runs / "results")
    none = harness(two_runs, *words.split())
    assert (none.code, "Missing argument" in none.err, "newest" in none.err) == (2, True, False), none.err
    assert "There is no run in results/ or in the current folder." in none.err


# -- parts of a reply that are not read --------------------------------------------------------------------------------


def part_of(api: str, whole: dict[str, Any]) -> dict[str, Any]:
    """The part of a whole reply that has the text."""
    paths: dict[str, tuple[Any, ...]] = {
        "chat": ("choices", 0, "message"),
        "completions": ("choices", 0),
        "responses": ("output", 0),
        "messages": ("content", 0),
    }
    part: Any = whole
    for key in paths[api]:
        part = part[key]
    assert isinstance(part, dict)
    return part


class Marked:
    """A model with a field beside its text. All replies but the first wait until a test saw what is said of it."""

    def __init__(self, api: str, **beside: Any) -> None:
        self.api, self.beside, self.seen, self.n = api, beside, threading.Event(), 0

    def __call__(self, request: Request) -> Iterable[Step]:
        if request.method == "GET":
            return [models("test-model")]
        self.n += 1
        if self.n > 1:
            assert self.seen.wait(PATIENCE_SECONDS)
        whole = Said(r"So \boxed{1}").whole(self.api)
        part_of(self.api, whole).update(self.beside)
        return [http(200, whole)]


@pytest.mark.parametrize("api", ["chat", "completions", "responses", "messages"])
def test_a_part_that_is_not_read_is_named_once_while_the_run_goes_on(tmp_path: Path, api: str) -> None:
    sums(tmp_path, 4)
    words = ("run", "sums.jsonl:1", *SHORT, "--drop", "stream", "-c", "4", "--api", api, "--out", "o", "--base-url")
    said, answer = list[str](), Marked(api, thought=True)
    with FakeServer(answer) as server, start(tmp_path, [*words, server.base_url]) as run:
        assert run.stderr is not None
        for line in run.stderr:
            said.append(line)
            if line == "a reply has a field of the message that is not read: thought\n":
                answer.seen.set()
    assert run.returncode == 0
    assert len([line for line in said if line.startswith("a reply has")]) == 1
    assert any("unusual replies: 4: " in line for line in said), said


@pytest.mark.parametrize("beside", [{"thought": False}, {"rethink": None}, {"cached": True}, {"is_thinking": 0}])
@pytest.mark.parametrize("api", ["chat", "completions", "responses", "messages"])
def test_a_field_that_marks_no_thought_is_silent(tmp_path: Path, api: str, beside: dict[str, Any]) -> None:
    answer = Marked(api, **beside)
    answer.seen.set()
    with FakeServer(answer) as server:
        words = ("--drop", "stream", "--api", api, "--out", "o", "--base-url", server.base_url)
        done = harness(tmp_path, "run", f"{sums(tmp_path, 2)}:1", *SHORT, *words)
    assert (done.code, "not read" in done.err) == (0, False), done.err
