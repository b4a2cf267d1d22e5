"""Another tool's outputs, judged and graded a second time as a run's samples are."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

import harness
from harness.asking.options import ScoreOptions
from harness.asking.watching import Watcher
from harness.cli.main import cli
from harness.client.address.endpoint import Endpoint
from harness.client.asker import Asker
from harness.core import codec
from harness.core.records import Grade
from harness.grading.second.judge_prompts import VERDICT
from harness.runs.layout import OutputsFolder
from harness.scoring import Score
from harness.verbs.judge import JudgeSettings, Serve, Server
from harness.verbs.judged_outputs import judge_file
from harness.verbs.outputs import ScoredFile, score_file
from tests.faults.server import FaultServer
from tests.verbs.judged_runs import PROSE, asked_of, nobody, ruling_by, serve

GOOD = r"So \boxed{\text{plants making sugar from light}}"
BAD = r"So \boxed{\text{plants burning sugar at night}}"


COLUMNS = ("--response-key", "gen", "--answer-key", "answer")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A sentence with a good and a bad paraphrase, and a number that the rules decide."""
    path = tmp_path / "theirs.jsonl"
    rows = [
        {"question": "why?", "answer": PROSE, "gen": [GOOD, BAD]},
        {"question": "2+2", "answer": "4", "gen": [r"\boxed{4}", r"\boxed{5}"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scored(file: Path) -> ScoredFile:
    return score_file(file, ScoreOptions(workers=1, response_key="gen", answer_key="answer"), Watcher())


def test_a_judge_decides_what_the_rules_left_undecided_of_a_file(file: Path, tmp_path: Path) -> None:
    judge = JudgeSettings(model="judge", prompt=VERDICT)
    before = scored(file)
    with FaultServer(ruling_by({"making sugar": True, "burning sugar": False})) as server:
        judged = judge_file(before, judge, serve(server), out=tmp_path / "grades.jsonl")
        assert {reference for reference, _ in asked_of(server)} == {PROSE}
    assert (before.scores[0].accuracy.value, judged.scores[0].accuracy.value) == (0.25, 0.5)
    assert (before.scores[0].n_undecided, judged.scores[0].n_undecided) == (2, 0)
    stored = [codec.decode(line, Grade).verdict for line in (tmp_path / "grades.jsonl").read_bytes().splitlines()]
    assert stored == ["correct", "wrong", "correct", "wrong"]
    again = judge_file(scored(file), judge, nobody)  # its replies stand beside the file
    assert (again.outcome, again.scores) == (None, judged.scores)


def test_a_misspelt_judge_replaces_no_judged_score_of_a_file(file: Path) -> None:
    """The wrong twins: the first judge of a file may be any, and one that is down may be right."""
    words = ("score", str(file), *COLUMNS, "--workers", "1", "--judge")
    scores = OutputsFolder(file).benchmark("theirs").scores
    with FaultServer(ruling_by({"making sugar": True, "burning sugar": False})) as server:
        jugde, judge = (f"{name}@{server.base_url}" for name in ("jugde", "judge"))
        first = CliRunner().invoke(cli, [*words, jugde])
        assert "without the judge" in str(first.exception)
        assert CliRunner().invoke(cli, [*words, judge]).exit_code == 0
        judged = scores.read_bytes()
        refused = CliRunner().invoke(cli, [*words, jugde])
        assert "The stored scores, judged by judge@verdict, stay as they are" in str(refused.exception)
        assert scores.read_bytes() == judged
    assert "are now without the judge" in str(CliRunner().invoke(cli, [*words, jugde]).exception)
    assert scores.read_bytes() != judged


def test_with_all_in_scope_every_distinct_answer_is_asked(file: Path) -> None:
    judge = JudgeSettings(model="judge", prompt=VERDICT, scope="all")
    with FaultServer(ruling_by({"making sugar": True, "burning sugar": False, "4": True, "5": False})) as server:
        judge_file(scored(file), judge, serve(server))
        assert {reference for reference, _ in asked_of(server)} == {PROSE, "4"}


def test_what_the_rules_left_undecided_is_asked_first(file: Path) -> None:
    rows = [{"question": f"{n}+0", "answer": str(n), "gen": [f"\\boxed{{{n}}}"]} for n in range(3)]
    before = "".join(json.dumps(row) + "\n" for row in rows)
    file.write_text(before + file.read_text())
    judge = JudgeSettings(model="judge", prompt=VERDICT, scope="all")
    with FaultServer(ruling_by({})) as server:
        judge_file(scored(file), judge, one_by_one(server))
        references = [reference for reference, _ in asked_of(server)]
    assert references[:2] == [PROSE, PROSE]
    assert sorted(references[2:]) == ["0", "1", "2", "4", "4"]


def one_by_one(server: FaultServer) -> Serve:
    """The judge with one request at a time: the order of the requests is that of asking."""

    def served() -> AbstractContextManager[Server]:
        return nullcontext(
            Server(endpoints=(Endpoint.parse(server.base_url),), asker=Asker(model="judge"), concurrency=1)
        )

    return served


def test_the_command_and_python_have_a_file_judged_alike(file: Path) -> None:
    ruling = ruling_by({"making sugar": True, "burning sugar": False})
    with FaultServer(ruling) as server:
        words = ["score", str(file), *COLUMNS, "--judge", f"judge@{server.base_url}", "--json"]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, done.output
        n_asked = len(asked_of(server))
        judge = harness.Judge(model="judge", base_url=server.base_url)  # type: ignore[arg-type]
        scores = harness.score(file, judge=judge, response_key="gen", answer_key="answer", out=file.with_name("graded"))
        assert (n_asked, len(asked_of(server))) == (2, 2)  # what the command was told, Python needs not ask
    assert codec.decode(done.stdout.encode(), list[Score]) == [scores[0]]
    assert (scores[0].accuracy.value, scores[0].n_undecided) == (0.5, 0)
    assert [report.n_decided for report in scores.judge] == [2]
    assert "2 distinct answers; 2 samples decided by the judge" in done.stderr
    stored = [codec.decode(line, Grade).rule for line in file.with_name("graded").read_bytes().splitlines()]
    assert stored[:2] == ["judge", "judge"]


def test_the_command_and_python_grade_a_file_a_second_time_alike(file: Path) -> None:
    pytest.importorskip("math_verify")
    done = CliRunner().invoke(cli, ["score", str(file), *COLUMNS, "--also", "math-verify"])
    assert done.exit_code == 0, done.output
    assert "theirs: rules 25.0 %, math-verify 25.0 %" in done.output
    assert "undecided" in done.output
    scores = harness.score(file, also="math-verify", response_key="gen", answer_key="answer")
    found = scores.also["theirs"]
    assert (found.accuracy_ours, found.accuracy_theirs) == (0.25, 0.25)
    assert found.matrix["undecided", "wrong"] == 2


def test_a_second_grader_that_is_unknown_or_not_named_is_one_sentence(file: Path) -> None:
    with pytest.raises(harness.UsageError, match=r"^also='mathverify': expected 'math-verify' or 'sympy'"):
        harness.score(file, also="mathverify", response_key="gen", answer_key="answer")  # type: ignore[arg-type]
    with pytest.raises(harness.UsageError, match=r"^also_python goes with also=.GRADER.$"):
        harness.score(file, also_python="python", response_key="gen", answer_key="answer")
