"""Another tool's outputs are judged, and graded a second time, as a run that is made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import harness
from harness.cli.main import cli
from harness.testing import FakeServer
from tests.verbs.judged_runs import PROSE, asked_of, ruling_by

COLUMNS = {"response_key": "gen", "answer_key": "answer"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A sentence with a good and a bad paraphrase, and a number that the rules decide."""
    path = tmp_path / "theirs.jsonl"
    good, bad = (rf"So \boxed{{\text{{plants {how} sugar}}}}" for how in ("making", "burning"))
    rows = [
        {"question": "why?", "answer": PROSE, "gen": [good, bad]},
        {"question": "2+2", "answer": "4", "gen": [r"\boxed{4}", r"\boxed{5}"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_is_judged_as_a_run_that_is_made_of_it(file: Path) -> None:
    (before,) = harness.score(file, **COLUMNS, workers=1)
    with FakeServer(ruling_by({"making sugar": True, "burning sugar": False})) as server:
        judge = harness.Judge(model="judge", base_url=server.base_url)  # type: ignore[arg-type]
        (after,) = harness.score(file, judge=judge, **COLUMNS, workers=1)
        assert {reference for reference, _ in asked_of(server)} == {PROSE}
    assert (before.accuracy.value, before.n_undecided) == (0.25, 2)
    assert (after.accuracy.value, after.n_undecided) == (0.5, 0)


def test_a_file_is_graded_a_second_time_as_a_run_that_is_made_of_it(file: Path) -> None:
    words = ["score", str(file), "--response-key", "gen", "--answer-key", "answer", "--also", "sympy"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert "rules 25.0 %, sympy " in done.output


def test_a_second_grader_that_is_unknown_or_not_named_is_one_sentence(file: Path) -> None:
    with pytest.raises(harness.UsageError, match=r"^also='mathverify': expected 'math-verify' or 'sympy'"):
        harness.score(file, also="mathverify", response_key="gen", answer_key="answer")  # type: ignore[arg-type]
    with pytest.raises(harness.UsageError, match=r"^also_python goes with also=GRADER$"):
        harness.score(file, also_python="python", response_key="gen", answer_key="answer")
