"""Verdicts of suites that grade themselves become scored runs: by each form, with its errors, and damage refused.

For: harness.foreign.verdicts.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from click.testing import CliRunner

import harness
from harness.cli.main import cli
from harness.core.errors import UsageError
from harness.runs import grades, questions
from harness.runs.layout import imported_at

Verdicts = Mapping[str, Sequence[float | None]]
"""Task → the share of each attempt that is right; None: no verdict."""

TASKS: Verdicts = {"a": [1, 0, 1], "b": [0, 0], "c": [1, None], "7": [1, 1, 0]}
ONCE: Verdicts = {"a": [1], "b": [0], "c": [None], "d": [1], "e": [0], "f": [None]}
OTHER: Verdicts = {name: [1 - (each[0] or 0)] for name, each in {**TASKS, **ONCE}.items()}


def rows(verdicts: Verdicts) -> list[dict[str, Any]]:
    return [
        {"task": name, "try": n, "ok": share, "error": "lost" if share is None else None, "completion_tokens": 5}
        for name, each in verdicts.items()
        for n, share in enumerate(each)
    ]


def jsonl(path: Path, lines: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def whole(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1))
    return path


def table(path: Path, verdicts: Verdicts) -> Path:
    words = {1: "resolved", 0: "Unresolved", None: ""}
    (file := io.StringIO()).write("task,try,ok\n")
    csv.writer(file).writerows([row["task"], row["try"], words[row["ok"]]] for row in rows(verdicts))
    path.write_text(file.getvalue())
    return path


def swe_bench(path: Path, verdicts: Verdicts) -> Path:
    names = {1: ["resolved_ids"], 0: ["unresolved_ids", "empty_patch_ids"], None: ["error_ids", "incomplete_ids"]}
    lists = dict[str, list[str]]()
    for number, (task, (share,)) in enumerate(verdicts.items()):
        lists.setdefault(names[share][number // 3 % len(names[share])], []).append(task)
    return whole(path, {**lists, "total_instances": len(verdicts), "schema_version": 2})


def tau2_bench(path: Path, verdicts: Verdicts) -> Path:
    each = [
        {
            "task_id": row["task"],
            "trial": row["try"],
            "duration": 2.5,
            "reward_info": {"reward": float(row["ok"] or 0)},
            "termination_reason": "user_stop" if row["ok"] is not None else "infrastructure_error",
        }
        for row in reversed(rows(verdicts))
    ]
    return whole(path, {"info": {}, "tasks": [{}], "simulations": each})


def harbor(path: Path, verdicts: Verdicts) -> Path:
    for row in rows(verdicts):
        (trial := path / f"{row['task']}__{row['try']}").mkdir(parents=True)
        judged = row["ok"] is not None
        result = {
            "task_name": row["task"],
            "agent_result": {"n_input_tokens": 9, "n_output_tokens": 5, "cost_usd": 0.1},
            "verifier_result": {"rewards": {"reward": float(row["ok"])}} if judged else None,
            "exception_info": {"exception_type": "AgentTimeoutError"} if row["ok"] != 1 else None,
        }
        whole(trial / "result.json", result)
    whole(path / "result.json", {"n_total_trials": len(rows(verdicts))})
    return path


def inspect(path: Path, verdicts: Verdicts) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for row in rows(verdicts):
            text = {"choices": [{"message": {"role": "assistant", "content": "hm"}}]}
            scores = {} if row["ok"] is None else {"choice": {"value": "C" if row["ok"] else "I"}, "f1": {"value": 0.5}}
            sample = {"id": row["task"], "epoch": row["try"] + 1, "input": "?", "target": "A", "output": text}
            name = f"samples/{row['task']}_epoch_{row['try'] + 1}.json"
            archive.writestr(name, json.dumps({**sample, "scores": scores, "error": row["error"]}))
    return path


def lm_eval(path: Path, verdicts: Verdicts) -> Path:
    tasks = {name: each[0] for name, each in verdicts.items()}
    kinds = (("strict", lambda _: 0.0), ("flexible", lambda share: share))
    return jsonl(
        path,
        [
            {"doc_id": name, "doc": {}, "target": "#", "resps": [["x"]], "filter": kind, "exact_match": of(share)}
            for kind, of in kinds
            for name, share in tasks.items()
        ],
    )


NAMED = {"id_key": "task", "sample_key": "try", "verdict_key": "ok"}
Form = tuple[str, Callable[[Path, Verdicts], Path], Mapping[str, str], Verdicts]
FORMS: list[Form] = [
    ("t.jsonl", lambda path, of: jsonl(path, rows(of)), NAMED, TASKS),
    ("t.csv", table, NAMED, TASKS),
    (
        "lists.jsonl",
        lambda path, of: jsonl(path, [{"id": k, "ok": v} for k, v in of.items()]),
        {"verdict_key": "ok"},
        TASKS,
    ),
    (
        "list.json",
        lambda path, of: whole(path, [{"id": k, "ok": v[0]} for k, v in of.items()]),
        {"verdict_key": "ok"},
        ONCE,
    ),
    ("ids.json", lambda path, of: whole(path, {k: v[0] and bool(v[0]) for k, v in of.items()}), {}, ONCE),
    ("report.json", swe_bench, {}, ONCE),
    ("results.json", tau2_bench, {}, TASKS),
    ("job", harbor, {}, TASKS),
    ("log.eval", inspect, {"verdict_key": "choice"}, TASKS),
    ("samples_x.jsonl", lm_eval, {"verdict_key": "exact_match,flexible"}, {"a": [1], "b": [0], "c": [0.25]}),
]


def accuracy(verdicts: Verdicts, *, wrong: bool = False) -> float:
    """The mean over tasks of the mean over attempts, by hand."""
    counted = [[s or 0 for s in each if wrong or s is not None] for each in verdicts.values()]
    return fmean(fmean(shares) for shares in counted if shares)


@pytest.mark.parametrize(("name", "write", "options", "verdicts"), FORMS, ids=[form[0] for form in FORMS])
def test_each_form_gives_its_own_numbers(
    tmp_path: Path, name: str, write: Callable[..., Path], options: Mapping[str, Any], verdicts: Verdicts
) -> None:
    file = write(tmp_path / name, verdicts)
    lost = sum(share is None for each in verdicts.values() for share in each)
    for errors in ("missing", "wrong", None):
        wrong = errors == "wrong" or (errors is None and write is swe_bench)
        for fresh in (False, True):
            given = {"errors": errors, "fresh": fresh} if errors else {"fresh": fresh}
            (score,) = harness.score(file, workers=1, **options, **given)
            assert score.accuracy is not None
            assert score.accuracy.value == pytest.approx(accuracy(verdicts, wrong=wrong))
            assert (score.n_missing, score.graders, score.maj_at) == (0 if wrong else lost, ("given",), {})
    folder = imported_at(file).benchmark(score.benchmark)
    assert {grade.grader for grade in grades.read(folder)} == {"given"}
    assert {each.question_id for each in questions.read(folder)} == {*verdicts}
    (elsewhere := tmp_path / "other").mkdir()
    other = write(elsewhere / name, {task: OTHER[task] for task in verdicts})
    harness.score(other, workers=1, **options)
    (found,) = harness.compare([file, other])
    counted = {task: [s or 0 for s in each if s is not None or wrong] for task, each in verdicts.items()}
    apart = [fmean(OTHER[task]) - fmean(each) for task, each in counted.items() if each]
    assert found.decision.paired.difference.value == pytest.approx(fmean(apart))


def said(*words: str | Path) -> tuple[int, str]:
    """(exit code, what a command prints)."""
    done = CliRunner().invoke(cli, list(map(str, words)))
    refusal = str(done.exception) if done.exception and not isinstance(done.exception, SystemExit) else ""
    return int(bool(done.exit_code or refusal)), done.output + refusal


def test_what_needs_a_reply_says_that_there_is_none(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "t.jsonl", rows(TASKS))
    words = ["--id-key", "task", "--sample-key", "try", "--verdict-key", "ok"]
    code, table = said("score", file, *words)
    assert (code, "`--errors wrong` counts them as wrong" in " ".join(table.split())) == (0, True)
    for command, failed, told in (
        (["show", file, "a:0"], 0, "its source file contains only the verdict, not the reply"),
        (["show", file, "a:1"], 0, "the verdict, a score of 0, was given in the file; nothing was graded"),
        (["score", file, *words, "--also", "math-verify"], 1, "the file already contains verdicts"),
        (["score", file, *words, "--judge", "m@http://127.0.0.1:9,scope=all"], 1, "the file already contains verdicts"),
        (["score", file, *words, "--benchmark", "demo"], 1, "FILE contains verdicts"),
        (["export", file, "--to", "llmeval", "--out", tmp_path / "x"], 1, "not the reply"),
        (["export", file, "--to", "alpaca", "--out", tmp_path / "y"], 1, "without a reply"),
        (["audit", file, "--out", tmp_path / "z"], 1, "not the reply"),
        (["export", file, "--to", "csv", "--out", tmp_path / "c"], 0, "t.csv: 9"),
        (["plan", file, "--detect", "20"], 0, "samples per question in each of two runs"),
        (["report", file, "--out", tmp_path / "r.html"], 0, "the verdicts come from the file; nothing was graded here"),
        (["status", file], 0, "9/12 samples"),
        (["verify", file, "--model", "m"], 1, "no score for m on t"),
    ):
        code, text = said(*command)
        assert (code, told in " ".join(text.split())) == (failed, True), (command, text)


SWE = {"resolved_ids": ["a"], "unresolved_ids": ["b"], "error_ids": [], "total_instances": 2}
SIMULATION = {"task_id": "a", "trial": 0, "reward_info": {"reward": 1.0}}
LINE, OK = {"id": "a", "ok": True}, {"verdict_key": "ok"}
DAMAGED: list[tuple[str, Any, Mapping[str, str], str]] = [
    ("t.json", json.dumps(SWE, indent=1)[:60], {}, r"t\.json.*not valid JSON"),
    ("t.json", '{"a": true, "a": false}', {}, "the key 'a' twice"),
    ("t.json", {"a": True, "b": "perhaps"}, {}, "t.json:b: 'verdict' must be a verdict, found 'perhaps'"),
    ("t.json", {"a": True, "b": {"c": 1}}, {"tool": "verdicts"}, "t.json:b: .* found {'c': 1}"),
    ("t.json", {}, {"tool": "verdicts"}, "must contain a JSON object with verdicts"),
    ("t.json", {**SWE, "unresolved_ids": ["a"]}, {}, r"unresolved_ids\[0\]: 'a' also appears at .*resolved_ids\[0\]"),
    ("t.json", {**SWE, "error_ids": "b"}, {}, "error_ids must be a list of ids"),
    ("t.json", {**SWE, "resolved_ids": [None, "a"]}, {}, r"resolved_ids\[0\] has no task id"),
    ("t.json", {**SWE, "total_instances": 500}, {}, "total_instances is 500, but the lists contain 2 instances"),
    ("t.json", {"simulations": [SIMULATION, SIMULATION]}, {}, r"simulations\[1\]: sample 0 of 'a' has the same number"),
    ("t.json", {"simulations": []}, {}, "contains no finished sample"),
    ("t.json", {"simulations": [{"id": "a"}]}, {}, r"simulations\[0\] is not a tau2-bench simulation"),
    ("t.json", {"simulations": [{**SIMULATION, "trial": "x"}]}, {}, "'trial' must be a whole number ≥ 0"),
    ("t.json", {"simulations": [{**SIMULATION, "reward_info": {}}]}, {}, r"simulations\[0\]: .* found {}"),
    ("t.jsonl", [LINE, {**LINE, "ok": -0.5}], OK, "t.jsonl:2: 'ok' must be a verdict, found -0.5"),
    ("t.jsonl", [LINE, {**LINE, "ok": float("nan")}], OK, "t.jsonl:2: .* found nan"),
    ("t.jsonl", [LINE, {**LINE, "ok": 10**400}], OK, "t.jsonl:2: .* found 10000"),
    ("t.jsonl", [LINE, {"id": "b"}], OK, "t.jsonl:2 has no column 'ok'"),
    ("t.jsonl", [{"id": 1.5, "ok": True}], OK, "t.jsonl:1 has no task id; .* found 1.5"),
    ("t.jsonl", [{"ok": True}], OK, "t.jsonl:1 has no task id; .* specify its column with id_key"),
    ("t.jsonl", [{**LINE, "gen": ["x", "y"], "ok": [True]}], OK, "1 verdicts for 2 replies"),
    ("t.jsonl", [{**LINE, "n": 10**6}], {**OK, "sample_key": "n"}, "is 1,000,000 or higher"),
    ("t.jsonl", [{**LINE, "ok": None}], OK, "contains no finished sample"),
    ("t.jsonl", [LINE], {"verdict_key": "OKAY"}, "no column 'OKAY' for the verdict; available columns: id, ok"),
    ("t.jsonl", [LINE], {**OK, "sample_key": "n"}, "no column 'n' for the sample's number"),
    ("t.jsonl", [{"response": "5", "answer": "5"}], {"errors": "wrong"}, "errors.*files with verdicts"),
    ("t.jsonl", b'{"id": "\xff", "ok": true}\n', OK, "t.jsonl:1 is not UTF-8"),
    ("t.jsonl", b"", OK, "has no rows"),
    ("t.csv", b"id,ok\na,maybe\n", OK, "t.csv:2: 'ok' must be a verdict, found 'maybe'"),
    ("job/x/result.json", {"trial_name": "x"}, {}, "is not a Harbor trial"),
    ("job/x/result.json", {"task_name": "a", "verifier_result": {"rewards": {"r": 1}}}, {}, "has no 'reward' in"),
    ("samples_x.jsonl", [{"doc_id": 1, "doc": {}, "target": "#", "resps": [["x"]], "m": 1, "filter": f} for f in "ab"],
     {"verdict_key": "m,c"}, "no row has the filter 'c'; the first row has 'a'"),
    ("samples_x.jsonl", [{"doc_id": 1, "doc": {}, "target": "#", "resps": [["x"]], "m": 1, "filter": f} for f in "ab"],
     {"verdict_key": "m"}, "a different filter than earlier rows; use m,a or m,b"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "message"), DAMAGED)
def test_damage_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, name: str, content: Any, options: Mapping[str, Any], message: str
) -> None:
    (path := tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        jsonl(path, content)
    else:
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    file = tmp_path / name.partition("/")[0]
    with pytest.raises(UsageError, match=message) as refused:
        harness.score(file, workers=1, **options)
    assert len(str(refused.value)) < 1_000
    assert not imported_at(file).path.exists()
