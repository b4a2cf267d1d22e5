"""A scoring that is refused leaves every file as it was: of all benchmarks, and of all runs of the command.

For: harness.verbs.score, harness.scoring.pipeline, harness.cli.score.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import msgspec
import pytest

import harness as reasoning_harness
from harness.core.errors import HarnessError
from harness.core.records import GradeRules
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, questions
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from harness.testing import FakeServer
from tests.system.command import harness
from tests.verbs.judged_runs import PROSE, ruling_by, write_run

ROWS = {"q1": (PROSE, [r"\boxed{x}"])}
JUDGED = "rules+judge:judge@verdict"
GRADERS = {
    "own_raising:f": "raise RuntimeError('a broken import')\n",
    "own_nameless:f": "def g(answer, question):\n    return True\n",
    "own_strange:f": "def f(answer, question):\n    return True\n",
}
REFUSALS = {
    "own_raising:f": "a broken import",
    "own_nameless:f": "has no attribute",
    "own_strange:f": "runs only if you trust it",
}


@pytest.fixture(autouse=True)
def graders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for grader, text in GRADERS.items():
        (tmp_path / f"{grader.partition(':')[0]}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    trusted = (grader.partition(":")[0] for grader in GRADERS if grader != "own_strange:f")
    monkeypatch.setenv("HARNESS_GRADERS", ",".join(trusted))


def scored_run(path: Path, *graders: str, judged: bool = True) -> RunFolder:
    """A run of a benchmark for each grader, in this order, whose stored scores would differ after any scoring."""
    for number, _ in enumerate(graders):
        folder = write_run(path, ROWS, f"benchmark-{number}")
    score_run(folder, GradingOptions(workers=1))
    for number, grader in enumerate(graders):
        place = folder.benchmark(f"benchmark-{number}")
        score = Score.load(place)
        assert score is not None
        msgspec.structs.replace(score, graders=(JUDGED,) if judged else ("rules/0",)).save(place)
        rules = GradeRules(grader=grader)
        questions.write(place, [msgspec.structs.replace(asked, rules=rules) for asked in questions.read(place)])
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("grader", REFUSALS)
def test_a_refused_grader_leaves_all_benchmarks_and_all_runs_as_they_were(tmp_path: Path, grader: str) -> None:
    runs = tmp_path / "runs"
    for number, order in enumerate(permutations(["rules", grader])):
        scored_run(runs / f"mixed-{number}", *order)
    scored_run(runs / "right", "rules")
    before = files(runs)
    # Each order of benchmarks by one of the doors, and the run that can be scored before one that cannot.
    refused = [harness(tmp_path, "score", *words) for words in (["runs/mixed-0"], ["runs/right", "runs/mixed-1"])]
    assert [result.code for result in refused] == [2, 2]
    assert all(REFUSALS[grader] in result.err and "judged before" not in result.err for result in refused)
    with pytest.raises(HarnessError, match=REFUSALS[grader]):
        reasoning_harness.score(runs / "mixed-0")
    assert files(runs) == before


def test_a_refused_judge_or_file_leaves_all_runs_as_they_were(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    scored_run(runs / "mixed", "rules", "own_strange:f")
    scored_run(runs / "new", "rules", judged=False)
    scored_run(runs / "judged", "rules")
    damaged = scored_run(runs / "damaged", "rules", "rules").benchmark("benchmark-1")
    damaged.overrides.write_text("{}\n")
    (runs / "lines.jsonl").write_text('{"response": "1", "answer": "1"}\nno JSON\n')
    (tmp_path / "spoilt.yaml").write_text(
        "title: Own\nsource: {kind: file, path: rows.jsonl}\ncolumns: {question: problem, answer: answer}\nkind: text\n"
        'rules: {grader: "own_strange:f"}\n'
    )
    (tmp_path / "rows.jsonl").write_text('{"problem": "Name?", "answer": "x y"}\n')
    (tmp_path / "replies.jsonl").write_text('{"problem": "Name?", "response": "x y"}\n')
    before = files(runs)
    replies = ["replies.jsonl", "--benchmark", "spoilt.yaml", "--response-key", "response"]
    with FakeServer(ruling_by({})) as server:
        judge = ["--judge", f"judge@{server.base_url}"]
        misspelt = ["--judge", f"jugde@{server.base_url}"]
        words = [
            (["runs/mixed", *judge], 2, "runs only if you trust it"),
            (["runs/judged", "runs/mixed", *judge], 2, "runs only if you trust it"),
            (["runs/new", "runs/judged", *misspelt], 2, "does not serve jugde"),
            (["runs/new", "runs/judged", judge[0], f"{judge[1]},prompt=absent.txt"], 2, "absent.txt"),
            (["runs/damaged"], 3, "overrides.jsonl"),
            (["runs/judged", "runs/damaged"], 3, "overrides.jsonl"),
            (["runs/judged", "runs/lines.jsonl", "--response-key", "response"], 2, "lines.jsonl"),
            ([*replies, "--out", "runs/made"], 2, "runs only if you trust it"),
        ]
        for given, code, sentence in words:
            result = harness(tmp_path, "score", *given)
            assert (result.code, sentence in result.err) == (code, True), (given, result)
            assert files(runs) == before, given
        assert [request for request in server.requests if request.method == "POST"] == []
