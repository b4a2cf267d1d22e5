"""A run whose answers are programs, from the card to the score, the reading of a sample, and the resumption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.benchmarks import catalog, questions
from harness.core.errors import UsageError
from harness.core.records import Question
from harness.runs import RunFolder
from harness.runs import grades as grade_file
from harness.testing import FakeServer, completion, models
from reasoning_programs import bubblewrap, grading
from reasoning_programs.cells import SandboxCell
from tests.programs.sandboxed import needs_sandbox
from tests.runs import recorded
from tests.system.command import harness

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
        patch.setattr(SandboxCell, "do", lambda *_: pytest.fail("run again"))
        assert harness(tmp_path, "score", "run").code == 0
    assert run.benchmark("sums").grades.read_bytes() == before
    shown = harness(tmp_path, "show", "run", "io:1")
    assert "test 2 was the first to fail" in shown.out, shown.out + shown.err


def test_without_a_sandbox_nothing_is_run_and_one_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = a_run(tmp_path)
    monkeypatch.setattr(bubblewrap, "PROGRAM", "no-such-bwrap")
    for kind, message in (("bwrap", "nothing was executed"), ("none", "expected one of bwrap")):
        done = harness(tmp_path, "score", "run", "--sandbox", kind)
        assert (done.code, message in done.err, "Traceback" in done.err) == (UsageError.exit_code, True, False), (
            done.err
        )
    assert not run.benchmark("sums").grades.exists()


@pytest.mark.parametrize("works", [False, True])
def test_a_run_of_programs_warns_before_sampling_where_no_sandbox_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    a_run(tmp_path)  # for its card
    if works:
        monkeypatch.setattr(grading, "name_of", lambda *_: "bwrap python3")
    else:
        monkeypatch.setattr(bubblewrap, "PROGRAM", "no-such-bwrap")
    with FakeServer(
        lambda request: iter([models("m")]) if request.method == "GET" else completion("print(1)", tokens=5)
    ) as server:
        words = ["--samples", "1", "--base-url", server.base_url, "--out", "new", "--no-fingerprint"]
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
