"""`harness audit`: a person judges drawn samples, by file, in a terminal and from Python; the score counts them.

For: harness.cli.audit, harness.scoring.by_hand, harness.judges.audit, harness.viewer.auditing.
"""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness as front
from harness.benchmarks.judge_forms import with_rubric
from harness.core.records import Key
from harness.judges.audit import Audit
from harness.presets.grading import GradingOptions
from harness.runs import Manifest, RunFolder, grades, overrides
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from harness.testing import FakeServer
from tests.commands.judged_runs import PROSE, judge_run, ruling_by, serve, write_run
from tests.patience import PATIENCE_SECONDS
from tests.scoring.test_scoring_observed import folder as salvaged_run
from tests.system.command import argv, environment, harness
from tests.viewer.running import viewing

GOOD = r"So \boxed{\text{plants making sugar from light}}"
BAD = r"So \boxed{\text{plants burning sugar at night}}"
ROWS = {"q1": (PROSE, [GOOD, BAD, GOOD, BAD]), "q2": ("4", [r"\boxed{4}", r"\boxed{5}", r"\boxed{4}", r"\boxed{4}"])}


@pytest.fixture
def judge() -> Iterator[FakeServer]:
    with FakeServer(ruling_by({"making sugar": True, "burning sugar": False, "5": False, "4": True})) as server:
        yield server


@pytest.fixture
def judged(tmp_path: Path, judge: FakeServer) -> RunFolder:
    folder = write_run(tmp_path / "run", ROWS)
    judge_run(folder, serve(judge))
    return folder


def score_of(folder: RunFolder) -> Score:
    score = Score.load(folder.benchmark("prose"))
    return score


def warnings(folder: RunFolder) -> str:
    return "\n".join(score_of(folder).sentences)


def filled(path: Path, verdict_of: Any) -> list[dict[str, Any]]:
    """The lines of a written file, with verdicts; stored in its place."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows:
        row["verdict"] = verdict_of(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return rows


def by_hand(folder: RunFolder, verdict_of: Any, **options: Any) -> Audit:
    """The audit after a person gave these verdicts in a file of its samples."""
    todo = folder.path.parent / "todo.jsonl"
    todo.unlink(missing_ok=True)
    front.audit(folder.path, out=todo, **options)
    filled(todo, verdict_of)
    (audit,) = front.audit(folder.path, verdicts=todo, **options)
    return audit


def making(row: dict[str, Any]) -> str:
    return "correct" if "making" in row["text"] else "wrong"


# --- what the grader left undecided ---
def test_only_the_undecided_samples_are_asked_about(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", ROWS)
    score_run(folder, GradingOptions(workers=1))
    benchmark = folder.benchmark("prose")
    undecided = {grade.key for grade in grades.read(benchmark) if grade.verdict == "undecided"}
    assert 0 < len(undecided) < 8
    written = harness(tmp_path, "audit", "run", "--undecided", "--out", "todo.jsonl")
    assert written.code == 0, written.err
    assert f"0 of {len(undecided)} undecided samples have been judged by hand\n  no manual verdicts yet" in written.out
    rows = filled(tmp_path / "todo.jsonl", making)
    assert {Key(row["question_id"], row["sample_index"]) for row in rows} == undecided
    read = harness(tmp_path, "audit", "run", "--verdicts", "todo.jsonl", "--undecided", "--who", "Ann")
    assert f"{len(undecided)} of {len(undecided)} undecided samples have been judged by hand" in read.out
    assert f"{len(undecided)} samples judged by hand, {len(undecided)} of them differently from the grader" in read.out
    score = score_of(folder)
    assert score.n_overridden == len(undecided)
    assert front.audit(folder.path, undecided=True)[0].items == []
    (drawn,) = front.audit(folder.path)
    assert (len(drawn.items), drawn.n_drawn) == (8 - len(undecided), 8)


def test_a_file_of_undecided_samples_is_known_as_such_though_the_option_is_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", ROWS)
    score_run(folder, GradingOptions(workers=1))
    front.audit(folder.path, undecided=True, out=tmp_path / "todo.jsonl")
    filled(tmp_path / "todo.jsonl", lambda _: "correct")
    told = harness(tmp_path, "audit", "run", "--verdicts", "todo.jsonl").out
    n = len((tmp_path / "todo.jsonl").read_text("utf-8").splitlines())
    assert f"{n} of {n} undecided samples have been judged by hand" in told
    assert {one.why for one in overrides.read(folder.benchmark("prose"))} == {"undecided by the grader"}


def test_only_what_a_judge_decided_is_drawn_and_a_larger_draw_contains_a_smaller_one(
    tmp_path: Path, judged: RunFolder
) -> None:
    drawn = {n: [item.key for item in front.audit(judged.path, samples=n)[0].items] for n in (2, 3, 100)}
    assert {key.question_id for key in drawn[100]} == {"q1"}
    assert (drawn[2], drawn[3], len(drawn[100])) == (drawn[100][:2], drawn[100][:3], 4)
    score_run(write_run(tmp_path / "by_rules", ROWS), GradingOptions(workers=1))
    (audit,) = front.audit(tmp_path / "by_rules")
    assert (audit.n_drawn, audit.by_hand) == (8, "")


def test_by_a_file(tmp_path: Path, judged: RunFolder) -> None:
    assert "4 of 8 verdicts come from a judge; the intervals do not account for its errors: no sample" in warnings(
        judged
    )
    written = harness(tmp_path, "audit", "run", "--out", "todo.jsonl")
    assert written.code == 0, written.err
    rows = filled(tmp_path / "todo.jsonl", lambda row: "correct" if "sugar" in row["answer"] else "wrong")
    assert len(rows) == 4  # only what the judge decided
    assert all(row["question"] == "Question q1?" and row["references"] == [PROSE] for row in rows)
    assert not any("rule" in row or "graded" in row for row in rows)  # blind
    for _ in range(2):  # the verdicts are stored once
        read = harness(tmp_path, "audit", "run", "--verdicts", "todo.jsonl", "--who", "Ann")
        assert read.code == 0, read.err
    assert "4 samples judged by hand, 2 of them differently from the grader: the accuracy is 87.50%" in read.out
    stored = overrides.read(judged.benchmark("prose"))
    assert [(one.who, one.why, one.verdict) for one in stored] == [("Ann", "audit", "correct")] * 4
    score = score_of(judged)
    assert (score.accuracy.value, score.accuracy_overridden.value) == (0.625, 0.875)  # the raw one stays
    assert "do not account for its errors: no sample was decided by both" in warnings(judged)
    assert "run `harness audit`" not in warnings(judged)


def test_the_last_verdict_is_taken_back_in_a_terminal_and_its_sample_comes_again(
    tmp_path: Path, judged: RunFolder
) -> None:
    sentences = in_terminal(tmp_path, "y\nn\nb\nb\nn\ny\nq\n")
    assert "Question q1?" in sentences
    assert f"reference:    {PROSE}" in sentences
    assert "judge" not in sentences.partition("Is the answer")[0]  # blind
    asked = [line for line in sentences.splitlines() if " · prose" in line or "prose · " in line]
    assert [line.split(" · ")[-1].strip().partition(" ")[0] for line in asked] == ["1", "2", "3", "2", "1", "2", "3"]
    assert [line.rsplit(" · ", 1)[0] for line in asked[:2]] == [asked[i].rsplit(" · ", 1)[0] for i in (4, 3)]
    stored = overrides.read(judged.benchmark("prose"))
    assert [one.verdict for one in stored] == ["correct", "wrong", None, None, "wrong", "correct"]
    assert sorted(str(one.verdict) for one in overrides.in_force(stored).values()) == ["correct", "wrong"]


def test_verdicts_in_the_viewer_reach_page_report_and_score_at_once(tmp_path: Path, judged: RunFolder) -> None:
    """As verdicts from a file do; a person who judges half of the samples and goes on leaves no former sentence."""
    where, pages = {"run": "run", "benchmark": "prose"}, []
    with viewing(tmp_path, "run") as viewer, viewer.client() as visitor:
        for item in front.audit(judged.path)[0].items:
            given = {"question": item.question_id, "sample": item.sample_index, "verdict": "correct"}
            body = {**where, **given, "who": "Ann", "why": "audit"}
            assert visitor.post("/api/override", json=body, headers={"X-Harness-View": "1"}).status_code == 200
            pages.append("\n".join(visitor.get("/api/benchmark", params=where).json()["notes"]))
    told = "4 samples judged by hand, 2 of them differently from the grader: the accuracy is 87.50%"
    assert pages[-1].startswith(told)
    assert told in " ".join(harness(tmp_path, "report", "run").out.split())
    before = score_of(judged)
    (audit,) = front.audit(judged.path)  # has nothing to add
    assert (audit.items, score_of(judged) == before) == ([], True)


def test_a_comparison_says_whose_verdicts_it_compares(tmp_path: Path, judged: RunFolder, judge: FakeServer) -> None:
    judge_run(write_run(tmp_path / "other", ROWS), serve(judge))
    score_run(write_run(tmp_path / "by_rules", ROWS), GradingOptions(workers=1))

    def said(*runs: str) -> str:
        result = harness(tmp_path, "compare", *runs)
        assert result.code == 0, result.err
        return " ".join((result.out + result.err).split())

    left_out = "come from a judge. The difference and its intervals ignore the judge's errors: `harness audit` measures"
    assert f"4 of 8 verdicts of the run {left_out}" in said("by_rules", "run")
    assert f"4 of 8 verdicts of the run; 4 of 8 verdicts of the baseline {left_out}" in said("run", "other")


def test_a_comparison_and_a_list_say_what_a_person_decided(tmp_path: Path) -> None:
    for name in ("one", "two"):
        score_run(write_run(tmp_path / name, ROWS), GradingOptions(workers=1))

    def said() -> str:
        return " ".join(harness(tmp_path, "compare", "one", "two").err.split())

    assert "a person" not in said()
    two = RunFolder(tmp_path / "two")
    n = by_hand(two, lambda _: "correct", undecided=True).n_drawn
    told = f"the run: a person disagrees with the grader on {n} samples. The comparison uses the grader's"
    assert told in said()
    listed = harness(tmp_path, "show", "two").out.splitlines()[1]
    assert listed.endswith("; this list is based on these manual verdicts")


def test_an_audit_shows_the_rubric_once(tmp_path: Path, judge: FakeServer) -> None:
    folder = write_run(tmp_path / "run", ROWS)
    judge_run(folder, serve(judge), prompt=with_rubric("It names all three points.\n\nNothing else matters.\x1b[1m"))
    shown = harness(tmp_path, "audit", "run", "--out", "todo.jsonl").out
    rubric = "The judge used this rubric for prose:\n\nIt names all three points.\n\nNothing else matters.\\x1b[1m\n"
    assert shown.count(rubric) == 1
    with viewing(tmp_path, "run") as viewer, viewer.client() as visitor:
        page = visitor.get("/api/benchmark", params={"run": "run", "benchmark": "prose"}).json()
    assert page["rubric"] == front.audit(folder.path)[0].rubric


def test_a_verdict_that_was_given_for_another_reason_is_not_asked_for_and_one_that_is_withdrawn_is(
    judged: RunFolder,
) -> None:
    (audit,) = front.audit(judged.path)
    folder, key, who = judged.benchmark("prose"), audit.items[0].key, {"graded": "wrong", "who": "Bob", "why": "a slip"}
    for item in audit.items:
        overrides.correct(folder, item.key, "correct", **who)
    (after,) = front.audit(judged.path)
    assert (after.items, after.by_hand[:24]) == ([], "4 samples judged by hand")
    overrides.correct(folder, key, None, **who)
    (withdrawn,) = front.audit(judged.path)
    assert [item.key for item in withdrawn.items] == [key]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sample_index": 9}, "words.jsonl, line 2: prose has no graded sample 9"),
        ({"verdict": "right"}, "line 2: verdict: unknown value 'right'; expected correct, no_answer, undecided, wrong"),
        ({"benchmark": "poems"}, "does not include the benchmark 'poems'"),
        (None, "words.jsonl, line 2"),
        ({"text": BAD}, "line 2: the verdict on sample 0 of question q1 is for a different reply, or a different"),
        ({"answer": "sugar"}, "line 2: the verdict on sample 0 of question q1 is for a different reply, or a"),
    ],
)
def test_a_wrong_line_stores_nothing(
    tmp_path: Path, judged: RunFolder, changed: dict[str, Any] | None, message: str
) -> None:
    harness(tmp_path, "audit", "run", "--out", "words.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "words.jsonl").read_text("utf-8").splitlines()]
    first = next(row for row in rows if row["sample_index"] == 0)
    second = "nonsense" if changed is None else json.dumps({**first, "verdict": "correct", **changed})
    (tmp_path / "words.jsonl").write_text(f"{json.dumps(first)}\n{second}\n", "utf-8")
    read = harness(tmp_path, "audit", "run", "--verdicts", "words.jsonl")
    assert (read.code, message in read.err) == (2, True), read.err
    assert overrides.read(judged.benchmark("prose")) == []


@pytest.mark.parametrize("word", ['"correct"', "correct"])  # the second is no JSON, but a person's work too
def test_a_file_that_is_half_filled_in_is_not_replaced(tmp_path: Path, judged: RunFolder, word: str) -> None:
    todo = tmp_path / "todo.jsonl"
    for _ in range(2):  # one that nobody filled in is replaced
        assert harness(tmp_path, "audit", "run", "--out", "todo.jsonl").code == 0
    before = todo.read_text("utf-8").replace("null", word, 1)
    todo.write_text(before, "utf-8")
    refused = harness(tmp_path, "audit", "run", "--out", "todo.jsonl")
    assert (refused.code, "todo.jsonl already contains verdicts" in refused.err) == (2, True), refused.err
    assert todo.read_text("utf-8") == before
    if word.startswith('"'):  # one whose verdicts are stored is replaced
        assert harness(tmp_path, "audit", "run", "--verdicts", "todo.jsonl", "--out", "todo.jsonl").code == 0
        assert len(todo.read_text("utf-8").splitlines()) == len(before.splitlines()) - 1


def test_only_the_benchmarks_of_a_file_are_told_and_it_must_be_of_the_named_one(
    tmp_path: Path, judged: RunFolder
) -> None:
    shutil.copytree(tmp_path / "run" / "prose", tmp_path / "run" / "sums")
    manifest = Manifest.load(judged)
    manifest.extend("sums", manifest.benchmarks["prose"]).save(judged)
    harness(tmp_path, "audit", "run", "--benchmark", "prose", "--out", "todo.jsonl")
    filled(tmp_path / "todo.jsonl", lambda row: "correct")
    refused = harness(tmp_path, "audit", "run", "--benchmark", "sums", "--verdicts", "todo.jsonl")
    assert refused.code == 2
    assert "todo.jsonl, line 1 contains a verdict on prose, but --benchmark is sums" in refused.err
    assert overrides.read(judged.benchmark("prose")) == []
    read = harness(tmp_path, "audit", "run", "--verdicts", "todo.jsonl")
    assert (read.code, "prose: " in read.out, "sums: " in read.out) == (0, True, False), read.err


def test_the_audit_is_of_the_samples_that_the_score_counts(tmp_path: Path) -> None:
    run = salvaged_run(tmp_path / "run", exact=True)
    drawn = {}
    for salvaged in (True, False):
        score_run(run, GradingOptions(workers=1, salvaged=salvaged))
        (audit,) = front.audit(run.path)
        drawn[salvaged] = {item.sample_index for item in audit.items}
    assert drawn == {True: {0, 1, 2, 3}, False: {1, 2, 3}}


def test_without_a_terminal_the_files_are_named_and_without_scores_nothing_is_audited(
    tmp_path: Path, judged: RunFolder
) -> None:
    refused = harness(tmp_path, "audit", "run")
    assert refused.code == 2
    assert (
        "write the samples to a file with --out FILE, fill in the verdicts, and load them with --verdicts FILE"
        in refused.err
    )
    write_run(tmp_path / "fresh", ROWS)
    refused = harness(tmp_path, "audit", "fresh", "--out", "todo.jsonl")
    assert (refused.code, "no score" in refused.err) == (3, True)


# --- from Python ---


# --- in a terminal ---
def in_terminal(folder: Path, keys: str) -> str:
    """What `harness audit run` shows to a person who types these keys."""
    leader, follower = pty.openpty()
    shown = b""
    with subprocess.Popen(
        argv("audit", "run"), cwd=folder, env=environment(folder), stdin=follower, stdout=follower, stderr=follower
    ) as person:
        os.close(follower)
        os.write(leader, keys.encode())
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the terminal's other side is closed
                break
            if not part:
                break
            shown += part
        assert person.wait(PATIENCE_SECONDS) == 0
    os.close(leader)
    return shown.decode().replace("\r\n", "\n")
