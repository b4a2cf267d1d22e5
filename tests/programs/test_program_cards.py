"""The cards of programs, over rows of the true form."""

from __future__ import annotations

import base64
import json
import pickle  # noqa: TID251 - as LiveCodeBench packs its private tests
import zlib
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks import catalog, questions
from harness.core.errors import UsageError
from harness.core.records import Question
from harness.runs import RunFolder
from harness.runs import grades as grade_file
from harness.testing import FakeServer, completion, models
from reasoning_programs import QuestionTests, UnavailableError, bubblewrap, grading
from reasoning_programs import tests_of as references
from reasoning_programs.cells import SandboxCell
from tests.programs.sandboxed import needs_sandbox
from tests.runs import recorded
from tests.system.command import harness


def packed(tests: object) -> str:
    """Tests as LiveCodeBench packs its private ones."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def problem(number: int, date: str, **more: Any) -> dict[str, Any]:
    """A row of LiveCodeBench's form."""
    case = {"input": "1\n", "output": "2\n", "testtype": "stdin"}
    return {
        "question_title": "t",
        "question_content": f"Question {number}.",
        "platform": "atcoder",
        "question_id": f"q{number}",
        "contest_id": "c",
        "contest_date": f"{date}T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([case]),
        "private_test_cases": packed([case, case]),
        "metadata": "{}",
        **more,
    }


def asked(tmp_path: Path, name: str, *rows: dict[str, Any]) -> list[Question]:
    """The questions of a card whose data are these rows."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return list(questions.build(catalog.load(name).with_data(str(path))).questions)


def all_tests_of(question: Question, folder: Path) -> QuestionTests:
    """The tests of a question, with those in the cache."""
    return references.tests_of(question.references[0], folder / "cache")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder of the test's own."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("livecodebench", "q1 q2 q3"),
        ("livecodebench@2024-08..2024-09", "q1 q2"),
        ("livecodebench@2024-08-02..", "q2 q3"),
        ("livecodebench@..2024", "q1 q2"),
        ("lcb@v5@2025..2025", "q3"),
    ],
)
def test_a_span_of_dates_has_both_its_ends(tmp_path: Path, name: str, ids: str) -> None:
    rows = [problem(1, "2024-08-01"), problem(2, "2024-09-30"), problem(3, "2025-01-01")]
    assert [question.question_id for question in asked(tmp_path, name, *rows)] == ids.split()


@pytest.mark.parametrize("name", ["livecodebench@v9", "livecodebench@2024-8..2025", "gsm8k@v1", "livecodebench@"])
def test_a_release_is_the_first_files_and_any_other_argument_is_refused(name: str) -> None:
    released = catalog.load("livecodebench@v2")
    assert getattr(released.source, "files", ()) == ("test.jsonl", "test2.jsonl")
    with pytest.raises(UsageError, match="is neither a release nor a date range"):
        catalog.load(name)


def test_long_tests_are_kept_once_in_the_cache_and_missed_in_a_sentence(tmp_path: Path) -> None:
    cases = [{"input": "x" * 50_000, "output": "y"}]
    (question,) = asked(tmp_path, "livecodebench", problem(1, "2024-08-01", private_test_cases=packed(cases)))
    assert len(question.references[0]) < 5_000
    assert len(all_tests_of(question, tmp_path).cases[1].input) == 50_000
    (stored,) = (tmp_path / "cache" / "tests").iterdir()
    stored.write_bytes(stored.read_bytes()[:-9])
    with pytest.raises(UnavailableError, match="to reload them, read the benchmark's data"):
        all_tests_of(question, tmp_path)
    asked(tmp_path, "livecodebench", problem(1, "2024-08-01", private_test_cases=packed(cases)))
    assert len(all_tests_of(question, tmp_path).cases[1].input) == 50_000, "written again"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"private_test_cases": base64.b64encode(zlib.compress(pickle.dumps([1]))).decode()}, "more than text"),
        ({"private_test_cases": "no tests"}, "neither JSON nor a base64"),
        ({"public_test_cases": "[]", "private_test_cases": "[]"}, "has 0 tests"),
        ({"public_test_cases": '[{"input": 1}]'}, "cannot be read"),
        ({"public_test_cases": None}, "must have text in `public_test_cases`"),
    ],
)
def test_a_row_that_is_none_is_refused_by_its_place(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as refusal:
        asked(tmp_path, "livecodebench", problem(1, "2024-08-01", **changes))
    assert "rows.jsonl:1" in str(refusal.value)


def test_mbpp_shows_its_assertions_and_mbpp_plus_runs_the_long_ones(tmp_path: Path) -> None:
    row = {
        "task_id": 11,
        "text": "Add.",
        "prompt": "Add.",
        "code": "def add(a, b):\n    return a + b",
        "test_list": ["assert set(add([1], [2])) == {1, 2}", "assert add(1, 2) == 3"],
        "test_setup_code": "",
        "test_imports": ["import math"],
        "challenge_test_list": [],
    }
    (plain,) = asked(tmp_path, "mbpp", row)
    tests = all_tests_of(plain, tmp_path)
    assert (tests.function, tests.checks) == ("add", tuple(row["test_list"]))
    assert "assert add(1, 2) == 3" in plain.messages[-1].content
    (plus,) = asked(tmp_path, "mbpp_plus", row | {"test": "for x in range(9):\n    assert add(x, 1) == x + 1"})
    assert all_tests_of(plus, tmp_path).checks == ("for x in range(9):\n    assert add(x, 1) == x + 1",)
    with pytest.raises(UsageError, match="does not call a function"):
        asked(tmp_path, "mbpp", row | {"test_list": ["assert True"]})


def test_livecodebench_asks_as_its_own_code_does_and_keeps_all_tests(tmp_path: Path) -> None:
    called = problem(2, "2024-09-01", starter_code="class Solution:", metadata='{"func_name": "f"}')
    whole, function = asked(tmp_path, "livecodebench", problem(1, "2024-08-01"), called)
    assert whole.messages[-1].content.startswith("### Question:\nQuestion 1.\n\n### Format: Read the inputs from stdin")
    assert "```python\nclass Solution:\n```" in function.messages[-1].content
    kinds = [(t.style, t.n, t.function) for t in (all_tests_of(q, tmp_path) for q in (whole, function))]
    assert kinds == [("stdin", 3, ""), ("calls", 3, "f")]


# -- from a card to a score --------------------------------------------------------------------------------------------


CARD = """
title: Sums
source: {kind: file, path: sums.jsonl}
columns: {question: question, id: id}
kind: program
program: {format: tests, seconds: 2, memory_mb: 512}
prompt: none
"""
ROWS = [
    {"id": "io", "question": "Sum.", "tests": [{"input": "1 2", "output": "3"}, {"input": "2 2", "output": "4"}]},
    {"id": "call", "question": "Write add.", "function": "add", "tests": [{"input": "1\n2", "output": "3"}]},
    {
        "id": "code",
        "question": "Write plus.",
        "function": "plus",
        "tests": ["assert plus(1, 2) == 3"],
        "solution": "def plus(a, b): return a + b",
    },
]
REPLIES = {
    "io": ["```python\nprint(sum(map(int, input().split())))\n```", "<think>?</think>```python\nprint(3)\n```"],
    "call": ["```python\ndef add(a, b): return a + b\n```", "```python\ndef add(a, b): return a - b\n```"],
    "code": ["```python\ndef plus(a, b): return a + b\n```", "I cannot."],
}


def a_run(folder: Path) -> tuple[RunFolder, list[Question]]:
    """A run of two samples a question, not scored yet."""
    (folder / "sums.yaml").write_text(CARD, "utf-8")
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    built = list(questions.build(catalog.load(str(folder / "sums.yaml"))).questions)
    samples = [
        recorded.sample(question.question_id, index, text, benchmark="sums", prompt_digest=question.prompt_digest)
        for question in built
        for index, text in enumerate(REPLIES[question.question_id])
    ]
    return recorded.write_run(folder / "run", built, samples, planned=2, identity={"model": "m"}), built


@needs_sandbox
def test_a_score_of_programs_is_resumed_and_read_like_any_other(tmp_path: Path) -> None:
    run, _ = a_run(tmp_path)
    done = harness(tmp_path, "score", "run", "--json")
    assert done.code == 0, done.err
    verdicts = {(g.question_id, g.sample_index): (g.verdict, g.rule) for g in grade_file.read(run.benchmark("sums"))}
    assert verdicts == {
        ("io", 0): ("correct", "all tests"),
        ("io", 1): ("wrong", "wrong output"),
        ("call", 0): ("correct", "all tests"),
        ("call", 1): ("wrong", "wrong output"),
        ("code", 0): ("correct", "all tests"),
        ("code", 1): ("no_answer", "no answer"),
    }
    (score,) = json.loads(done.out)["scores"] if isinstance(json.loads(done.out), dict) else json.loads(done.out)
    assert score["accuracy"]["value"] == pytest.approx(0.5)
    before = run.benchmark("sums").grades.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SandboxCell, "run_job", lambda *_: pytest.fail("run again"))
        assert harness(tmp_path, "score", "run").code == 0
    assert run.benchmark("sums").grades.read_bytes() == before
    shown = harness(tmp_path, "show", "run", "io:1")
    assert "test 2 was the first to fail" in shown.out, shown.out + shown.err


def test_without_a_sandbox_nothing_runs_and_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = a_run(tmp_path)
    monkeypatch.setattr(bubblewrap, "PROGRAM", "no-such-bwrap")
    for kind, message in (("bwrap", "nothing was executed"), ("none", "expected one of bwrap")):
        done = harness(tmp_path, "score", "run", "--sandbox", kind)
        assert (done.code, message in done.err, "Traceback" in done.err) == (UsageError.exit_code, True, False), (
            done.err
        )
    assert not run.benchmark("sums").grades.exists()


@pytest.mark.parametrize("works", [False, True])
def test_programs_without_a_sandbox_get_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool) -> None:
    a_run(tmp_path)  # for its card
    if works:
        monkeypatch.setattr(grading, "name_of", lambda *_: "bwrap python3")
    else:
        monkeypatch.setattr(bubblewrap, "PROGRAM", "no-such-bwrap")
    with FakeServer(
        lambda request: iter([models("m")]) if request.method == "GET" else completion("print(1)", tokens=5)
    ) as server:
        words = ["--samples", "1", "--base-url", server.base_url, "--out", "new"]
        done = harness(tmp_path, "run", "sums.yaml", *words)
    assert done.code == 0, done.err
    said = " ".join(done.err.split())
    assert said.count("sums cannot be scored here yet: running programs requires a sandbox") == (not works)
    assert ("docker:IMAGE" in said) == (not works)


@needs_sandbox
def test_grade_runs_a_program_on_the_tests_of_a_person(tmp_path: Path) -> None:
    reply = "```\nprint(sum(map(int, input().split())))\n```"
    row = '{{"function": "f", "tests": ["assert f(1) == {}"]}}'
    function = "```\ndef f(x): return x + 1\n```"
    shown = "test 1 was the first to fail\ninput: f(1)\nexpected: assert f(1) == 3\ncame: 2"
    for tests, response, verdict, part in (
        ('[{"input": "1 2", "output": "3"}]', reply, "correct", ""),
        ('[{"input": "1 2", "output": "4"}]', reply, "wrong", ""),
        (row.format(2), function, "correct", ""),
        (row.format(3), function, "wrong", shown),
        (row.format(2), "I cannot.", "no answer", ""),
    ):
        done = harness(tmp_path, "grade", "--kind", "program", tests, response)
        assert (done.code, done.out.splitlines()[-1]) == (0, verdict), done.err
        assert part in done.out
        assert "starter code" not in done.out


@pytest.mark.parametrize("reference", ["assert f(1) == 2", "3", "[]", '{"tests": [1]}', '{"style": "x"}'])
def test_tests_that_cannot_be_read_are_refused_in_a_sentence(tmp_path: Path, reference: str) -> None:
    done = harness(tmp_path, "grade", "--kind", "program", reference, "print(1)")
    assert done.code == UsageError.exit_code
    assert done.err.startswith("harness: REFERENCE: ") or "contains no tests" in done.err
    assert "Traceback" not in done.err
