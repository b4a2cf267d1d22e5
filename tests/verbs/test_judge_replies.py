"""What `harness show` and the viewer quote of a judge: its reply about the sample, its verdict, and where they lie.

For: harness.scoring.judge_replies, harness.viewer.why.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.grading.second.judge_prompts import LIMO, VERDICT, with_rubric
from harness.runs import RunFolder
from harness.testing import FakeServer, Request, Step, completion
from tests.system.command import harness
from tests.verbs.judged_runs import PROSE, judge_run, judging, ruling_by, serve, write_run
from tests.viewer.running import answering_here

GOOD, BAD = r"\boxed{\text{plants making sugar from light}}", r"\boxed{\text{plants burning sugar at night}}"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "run", {"q1": (PROSE, [GOOD, BAD]), "q2": ("4", [r"\boxed{4}"])})


def steps(run: RunFolder, sample: str) -> list[str]:
    """The lines that `harness show` prints below "why"."""
    done = harness(run.path.parent, "show", "run", sample)
    assert done.code == 0, done.err
    return done.out.partition("\nwhy\n")[2].partition("\nrequest\n")[0].split("\n")[:-1]


def test_a_judged_sample_ends_with_the_judges_reply_and_names_the_command_that_shows_it(run: RunFolder) -> None:
    with FakeServer(ruling_by({"making": True, "burning": False})) as server:
        (score,) = judge_run(run, serve(server)).scores
    doubt = "the judge's own run: 2 replies of this run: its usage states fewer tokens than came as events"
    assert doubt in [warning.text for warning in score.warnings]
    for sample, verdict, quoted in (
        ("q1:0", "correct", "making sugar from light} **VERDICT: CORRECT**"),
        ("q1:1", "wrong", "burning sugar at night} **VERDICT: INCORRECT**"),
    ):
        last = steps(run, sample)[-1]
        assert f"  the judge judge@verdict calls the answer {verdict}: “The answer reads: " in last
        assert quoted in last
        _, folder, case = last.removesuffix(")").rsplit(" ", 2)
        whole = harness(run.path.parent, "show", folder, case)
        assert quoted.rpartition(" ")[2] in whole.out
    assert not any("the judge" in step for step in steps(run, "q2:0")), "the rules decided it"
    with answering_here(run.path.parent) as viewer, viewer.client() as client:
        where = {"run": "run", "benchmark": "prose", "question": "q1", "sample": "1"}
        assert client.get("/api/why", params=where).json()["steps"][-1].startswith("the judge judge@verdict calls")


def test_of_two_judges_the_one_that_decided_comes_last_and_a_reply_without_a_verdict_says_so(run: RunFolder) -> None:
    rubric = with_rubric("Sugar is never right.")
    for prompt, verdicts in ((VERDICT, {"making": True}), (rubric, {"making": False, "burning": True})):
        with FakeServer(ruling_by(verdicts)) as server:
            judge_run(run, serve(server), prompt=prompt)
        assert steps(run, "q1:0")[-1].startswith(f"  the judge judge@{prompt.name} calls the answer ")
    first, last = steps(run, "q1:0")[-2:]
    assert first.startswith("  the judge judge@verdict calls the answer correct")
    assert last.startswith(f"  the judge judge@{rubric.name} calls the answer wrong")
    with FakeServer(ruling_by({})) as server:
        judge_run(run, serve(server))
    assert steps(run, "q1:0")[-1] == first, "the judge that decided now"
    assert any(step.startswith("  the judge judge@verdict gives no verdict") for step in steps(run, "q1:1"))


def test_a_judges_reply_is_quoted_at_its_end_and_escaped(run: RunFolder) -> None:
    def long_winded(_request: Request) -> Iterator[Step]:
        return completion(f"BEGIN {'hm ' * 1000}\x1b[31m\u202e\nVERDICT: CORRECT", tokens=11)

    with FakeServer(judging(long_winded)) as server:
        judge_run(run, serve(server))
    last = steps(run, "q1:0")[-1]
    assert "BEGIN" not in last
    assert "\x1b" not in last
    assert "\u202e" not in last
    assert "VERDICT: CORRECT”" in last
    assert len(last) < 1500


def test_limo_s_judge_sees_each_reply_whole_and_the_default_one_each_answer_once(tmp_path: Path) -> None:
    texts = [f"One way:\nlight\n{GOOD}", f"Another way:\n<b>\n{GOOD}"]
    run = write_run(tmp_path / "run", {"q1": (PROSE, texts)})
    for prompt, shown, says in (
        (VERDICT, ["plants making sugar from light"], "VERDICT: CORRECT"),
        (LIMO, texts, "## Analysis\nsame\n\n## Correctness\nCORRECT"),
    ):
        with FakeServer(judging(lambda _, says=says: completion(says, tokens=9))) as server:  # type: ignore[misc]
            judge_run(run, serve(server), prompt=prompt)
        asked = [request.json["messages"][-1]["content"] for request in server.requests if request.method == "POST"]
        assert len(asked) == len(shown), prompt.name
        assert all(sum(f">{text}<" in content or text in content for content in asked) == 1 for text in shown)
        assert f"judge@{prompt.name} calls the answer correct" in steps(run, "q1:1")[-1]
