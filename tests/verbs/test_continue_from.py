"""A half-done file of another tool is gone on with: nothing asked twice, nothing counted as ours.

For: harness.foreign.continuing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.core.errors import UsageError
from harness.runs import RunFolder, read_samples
from tests.faults.server import FaultServer, Request, Step, completion, models

BOXED = "\nPlease reason step by step, and put your final answer within \\boxed{}."


def answering(request: Request) -> Iterator[Step]:
    if request.method == "GET":
        yield models("m")
    else:
        yield from completion(rf"asked here, seed {request.json.get('seed')}: \boxed{{2}}", tokens=5)


def row(number: int, gen: Any, **more: Any) -> str:
    return json.dumps({"prompt": f"1+{number}?{BOXED}", "answer": str(number + 1), "gen": gen, **more}) + "\n"


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text(
        "".join(json.dumps({"id": f"q{n}", "problem": f"1+{n}?", "answer": str(n + 1)}) + "\n" for n in range(3))
    )
    return path


def asked(server: FaultServer) -> int:
    return sum(request.method == "POST" for request in server.requests)


def go_on(questions: Path, file: Path, server: FaultServer, **more: Any) -> harness.Run:
    return harness.run(
        data=questions, id_key="id", base_url=server.base_url, samples=2, out=questions.parent / "run", canary=False,
        continue_from=file, fingerprint=False, **more,
    )  # fmt: skip


def stored(run: harness.Run) -> dict[tuple[str, int], Any]:
    return {tuple(one.key): one for one in read_samples(RunFolder(run.path).benchmark("sums"))}


def half_done(path: Path) -> Path:
    """As a killed LLMEval leaves it: a row a sample, a failed request, a row of another set, and a torn last line."""
    rows = [row(0, [r"theirs \boxed{1}"]), row(0, [r"theirs again \boxed{9}"]), row(1, [""]), row(1, [r"t \boxed{2}"])]
    strange = json.dumps({"prompt": "Something else?", "answer": "1", "gen": ["x"]}) + "\n"
    path.write_text("".join(rows) + strange + row(2, ["never finished"])[:40])
    return path


def test_only_the_rest_is_asked_and_the_samples_say_whose_they_are(questions: Path, tmp_path: Path) -> None:
    file = half_done(tmp_path / "aime_bz2.jsonl")
    with FaultServer(answering) as server:
        run = go_on(questions, file, server)
        assert asked(server) == 3
        again = go_on(questions, file, server)
        assert asked(server) == 3
    assert run.complete
    assert again.complete
    found = stored(run)
    assert sorted(found) == [(f"q{n}", i) for n in range(3) for i in range(2)]
    theirs = {key for key, one in found.items() if one.foreign}
    assert theirs == {("q0", 0), ("q0", 1), ("q1", 0)}
    assert found["q0", 0].endpoint == "file:aime_bz2.jsonl"
    assert found["q0", 0].text == r"theirs \boxed{1}"
    assert found["q0", 0].seed is None
    assert found["q1", 1].seed is not None
    assert any(
        "3 samples of aime_bz2.jsonl are kept, marked as made by another tool" in warning for warning in run.warnings
    )
    assert any(
        "1 are empty and will be asked again; 1 belong to other questions" in warning for warning in run.warnings
    )


def test_the_score_never_counts_them_silently(questions: Path, tmp_path: Path) -> None:
    with FaultServer(answering) as server:
        run = go_on(questions, half_done(tmp_path / "theirs.jsonl"), server)
    score = harness.score(run, workers=1)["sums"]
    assert score.n_samples == 6
    assert any(
        "3 samples were taken over from another tool's file (theirs.jsonl)" in warning for warning in score.warnings
    )
    assert {one.endpoint: one.n_samples for one in score.endpoints}["file:theirs.jsonl"] == 3
    assert score.workload is not None
    assert score.workload.n_samples == 3
    assert score.workload.started > 1e9


def test_what_is_here_already_stays(questions: Path, tmp_path: Path) -> None:
    with FaultServer(answering) as server:
        first = harness.run(
            data=questions, id_key="id", base_url=server.base_url, samples=2, out=tmp_path / "run", canary=False,
            fingerprint=False,
        )  # fmt: skip
        before = stored(first)
        run = go_on(questions, half_done(tmp_path / "theirs.jsonl"), server)
        assert asked(server) == 6
    assert stored(run) == before


def test_a_file_that_answers_all_asks_nobody(questions: Path, tmp_path: Path) -> None:
    file = tmp_path / "done.jsonl"
    file.write_text("".join(row(n, [rf"a {n} \boxed{{1}}", rf"b {n} \boxed{{1}}", "one too many"]) for n in range(3)))
    with FaultServer(answering) as server:
        run = go_on(questions, file, server)
        assert asked(server) == 0
    assert run.complete
    assert all(one.foreign for one in stored(run).values())


def test_a_repeated_question_is_told_by_its_reference_else_filled_in_order(questions: Path, tmp_path: Path) -> None:
    twice = [("a", "x?", "1"), ("b", "x?", "1"), ("c", "x?", "5")]
    questions.write_text("".join(json.dumps({"id": i, "problem": p, "answer": a}) + "\n" for i, p, a in twice))
    rows = [{"prompt": "x?", "answer": "1", "gen": [f"one {n}"]} for n in range(3)]
    rows.append({"prompt": "x?", "answer": "5", "gen": ["five"]})
    file = tmp_path / "theirs.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in rows))
    with FaultServer(answering) as server:
        found = stored(go_on(questions, file, server))
    assert [found["a", 0].text, found["a", 1].text, found["b", 0].text] == ["one 0", "one 1", "one 2"]
    assert found["c", 0].text == "five"
    assert not found["b", 1].foreign


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"prompt": "What else?", "answer": "1", "gen": ["x"]}\n', "no reply in .* is to a question of this run"),
        ("", "holds no rows"),
        ('{"a": 1}\n', "no usual column for the response"),
    ],
)
def test_a_file_of_something_else_is_refused_before_anything_is_asked(
    questions: Path, tmp_path: Path, content: str, sentence: str
) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(content)
    with FaultServer(answering) as server:
        with pytest.raises(UsageError, match=sentence):
            go_on(questions, file, server)
        assert asked(server) == 0
    assert not (tmp_path / "run" / "manifest.json").exists()
