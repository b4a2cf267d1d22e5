"""The command that a report prints asks for the same samples again, and pastes into a shell as one command."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harness
from harness.cli.flags import command_of, options_typed, run_given
from harness.commands.again import lines_again, options_again, run_command
from harness.options.run import RunCommand, RunOptions
from harness.runs import RunFolder
from harness.runs.manifest import BenchmarkRecord, Manifest, Plan, differences
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.graded_by import grading_settings
from harness.scoring.judging import JudgeErrors
from harness.scoring.score import Score
from harness.testing import FakeServer
from tests.scoring.graded import graded
from tests.system.old_runs import FOLDERS, answer


def parsed(line: str) -> RunOptions:
    """The options of the run that `harness run …` would make."""
    words = shlex.split(line)
    assert words[:2] == ["harness", "run"]
    return RunOptions(**run_given(options_typed(command_of("run").make_context("run", words[2:]), RunCommand)))


ERRORS = JudgeErrors(n_judged=1, n_samples=2, n_both=0, n_differing=0, settings={"model": "m"})
NO_SEED: dict[str, Any] = {"seed": None}
EVERY: dict[str, Any] = {
    "temperature": 0.7,
    "top_p": 0.9,
    "top_k": 20,
    "min_p": 0.05,
    "max_tokens": 512,
    "repetition_penalty": 1.05,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.25,
    "seed": 7,
    "system_prompt": "Answer briefly.",
    "stop": ["END", "STOP"],
    "ids": ["demo-01", "demo-03"],
    "extra_body": {"logit_bias": {"5": -1}, "chat_template_kwargs": {"enable_thinking": True}},
}


OF_A_SESSION = {
    "concurrency": 3,
    "rpm": 900.0,
    "budget_tokens": 99999,
    "budget_usd": 9.0,
    "prices": "1,2",
    "timeout": 60.0,
    "attempts": 4,
    "accept_server_change": True,
}
OF_A_FILE = {"data": "my sums.jsonl", "question_key": "asked", "id_key": "id", "max_tokens": 512}


@pytest.mark.parametrize(
    "given",
    [
        {},
        EVERY,
        {"preset": "qwq-32b", "thinking": "on", "provider": "generic", "max_tokens": 900, **NO_SEED, "limit": 2},
        {
            "api": "completions",
            "preset": "greedy",
            "drop": ["stream", "top_p"],
            "fit_context": True,
            "limit": 1,
            "fingerprint": False,
            "canary": False,
            **OF_A_SESSION,
        },
        {**OF_A_FILE, "filter": ["level=1"]},
        {**OF_A_FILE, "ids": ["b", "c"]},
    ],
    ids=lambda given: " ".join(given),
)
def test_the_command_repeats_the_run_by_the_options_that_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    rows = [{"id": name, "asked": f"{name} + 1?", "answer": "2", "level": level} for level, name in enumerate("abc")]
    (tmp_path / "my sums.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    monkeypatch.chdir(tmp_path)
    asked = {"samples": 2} if "data" in given else {"benchmarks": "demo:2"}
    with FakeServer(answer) as server:
        made = harness.run(out="run", base_url=server.base_url, **asked, **given)
        manifest = Manifest.load(RunFolder(made.path))
        (options,) = options_again(manifest, "run")
        repeated = parsed(run_command(options))
        again = harness.run(**repeated.given)
    lasting = {name: value for name, value in given.items() if name not in (*OF_A_SESSION, "data")}
    assert options.keys() == {*asked, *lasting, *given.keys() & {"data"}, "model", "base_url", "out"}
    assert options.items() >= lasting.items()
    first, second = (next(iter(Manifest.load(RunFolder(run.path)).benchmarks.values())) for run in (made, again))
    assert (differences(first.identity, second.identity), first.plan) == ([], second.plan)
    assert first.options is not None
    assert {**first.options, **OF_A_SESSION} == {**(second.options or {}), **OF_A_SESSION}


def test_a_run_whose_options_nobody_recorded_has_no_line() -> None:
    former = Manifest.load(RunFolder(FOLDERS / "0.1.0" / "own-file"))
    assert options_again(former) == []
    judged = msgspec.structs.replace(score_benchmark(*graded(q1="cw"), 2), judge_errors=ERRORS)
    assert lines_again(former, "run", [judged]) == []
    (record,) = former.benchmarks.values()
    imported = msgspec.structs.replace(record, settings={"outputs": {}})
    assert lines_again(msgspec.structs.replace(former, benchmarks={"demo": imported}), "run", [judged]) == []


@pytest.mark.parametrize(("key", "n_comments"), [("[hidden]", 1), ("hidden", 0)])
def test_a_comment_says_where_a_hidden_value_belongs(key: str, n_comments: int) -> None:
    lines = lines_again(manifest(demo={"extra_body": {"api_key": key}}), "run", [])
    assert ["replace each [hidden] with your own value" in line for line in lines] == [True] * n_comments + [False] * 2


CARD = {
    "name": "own",
    "title": "Own",
    "source": {"kind": "file", "path": "test.jsonl"},
    "date_column": "date",
    "columns": {"question": "question", "answer": "answer"},
    "kind": "integer",
    "prompt": "boxed",
}


@pytest.mark.parametrize("typed", ["own.yaml", "own.yaml@2024..2024"])
def test_a_benchmark_is_repeated_by_the_name_that_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    rows = [{"question": f"{n} + 1?", "answer": str(n + 1), "date": f"{2024 + n}-05-01"} for n in range(3)]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "own.yaml").write_text(json.dumps(CARD), "utf-8")
    monkeypatch.chdir(tmp_path)
    with FakeServer(answer) as server:
        made = harness.run(f"{typed}:2", out=tmp_path / "run", max_tokens=512, base_url=server.base_url)
        (options,) = options_again(Manifest.load(RunFolder(made.path)), "run")
        repeated = harness.run(**{**options, "benchmarks": ",".join(options["benchmarks"]), "out": tmp_path / "again"})
    assert f"harness run {tmp_path / typed}:2 " in run_command(options).replace("'", "")
    ((name, first),) = Manifest.load(RunFolder(made.path)).benchmarks.items()
    second = Manifest.load(RunFolder(repeated.path)).benchmarks[name]
    assert (differences(first.identity, second.identity), first.plan) == ([], second.plan)


def manifest(**options: dict[str, Any]) -> Manifest:
    records = {
        name: BenchmarkRecord(identity={}, plan=Plan(samples=2), options=given) for name, given in options.items()
    }
    return Manifest(harness_version="0", created="", model="m", benchmarks=records)


def test_benchmarks_that_were_asked_alike_share_a_command() -> None:
    two_benchmarks = manifest(aime24={"drop": ["top_p", "top_k"]}, math500={"drop": ["top_p", "top_k"]}, demo=NO_SEED)
    lines = [run_command(options) for options in options_again(two_benchmarks)]
    assert [line.split()[2] for line in lines] == ["aime24:2,math500:2", "demo:2"]
    assert "--seed none" in lines[1]
    assert "--drop top_p --drop top_k" in lines[0]


@pytest.mark.parametrize("hostile", ["x; rm -rf /", "$(reboot)", "`id`", "a'b\"c", "--out=/etc", "\x1b]52;c;x\x07", 3])
def test_a_hostile_value_is_one_word_of_the_command(hostile: object) -> None:
    forged = {"system_prompt": hostile, "stop": hostile, "header": "X: y", "out": "/etc", "benchmarks": hostile, "z": 1}
    words = shlex.split(run_command(options_again(manifest(demo=forged))[0]))
    value = str(hostile)
    assert words == ["harness", "run", "demo:2", "--model", "m", "--stop", value, "--system-prompt", value]


def test_the_line_that_trusts_graders_of_ones_own_comes_first() -> None:
    """The verifiers of the harness, the rules and a judge need none."""
    of_demo = manifest(demo={})
    score = score_benchmark(*graded(q1="cw"), 2)

    def lines(*graders: str) -> list[str]:
        return lines_again(of_demo, "run", [msgspec.structs.replace(score, graders=graders)])

    assert [line.split()[:2] for line in lines("rules/24", "harness.extensions.answers.code:verify@0123456789ab")] == [
        ["harness", "run"],
        ["harness", "score"],
    ]
    named = lines("own.words:exact@0123456789ab+judge:m@verdict", "other:f@0123456789ab", "rules/24+judge:m:n@verdict")
    assert named[1:] == lines("rules/24")
    unscored = lines_again(of_demo, "run", [])
    assert unscored == lines("rules/24"), "a run that nobody has scored yet is repeated with its scoring, too"
    script = f"{named[0]}; echo $HARNESS_GRADERS $PYTHONPATH"
    for before, after in (({}, "/usr"), ({"PYTHONPATH": "/lib"}, "/usr:/lib")):
        done = subprocess.run(["/bin/sh", "-c", script], env=before, cwd="/usr", capture_output=True, check=True)
        assert done.stdout.decode().split() == ["other,own.words", after]


@pytest.mark.parametrize("is_set", [True, False])
def test_the_variable_of_the_key_is_named_only_if_it_holds_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_set: bool
) -> None:
    # A key typed in place of the variable's name passes if a header is given, too; it may look like a name.
    monkeypatch.delenv("MY_KEY", raising=False)
    if is_set:
        monkeypatch.setenv("MY_KEY", "sk-of-mine-0123456789")
    data = tmp_path / "sums.jsonl"
    data.write_text('{"id": "a", "question": "1 + 1?", "answer": "2"}', "utf-8")
    with FakeServer(answer) as server:
        given = {"data": data, "samples": 1, "max_tokens": 512, "base_url": server.base_url, "api_key_env": "MY_KEY"}
        made = harness.run(out=tmp_path / "run", header={"X-Org": "mine-0123456789"}, **given)
    *_, line, _ = lines_again(Manifest.load(RunFolder(made.path)), "run", [])
    assert ("--api-key-env MY_KEY" in line) is is_set
    stored = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert (b"MY_KEY" in stored) is is_set
    assert b"sk-of-mine" not in stored


def test_the_variable_of_the_judges_key_is_named() -> None:
    score = msgspec.structs.replace(score_benchmark(*graded(q1="cw"), 2), judge_errors=ERRORS)
    with_key = msgspec.structs.replace(score, judge_errors=msgspec.structs.replace(ERRORS, key_variable="JUDGE_KEY"))

    def judge_lines(score: Score) -> list[str]:
        return lines_again(manifest(demo={}), "run", [score])[-1:]

    assert judge_lines(with_key) == ["harness score run-again --judge m,api_key_env=JUDGE_KEY"]
    assert judge_lines(score) == ["harness score run-again --judge m"]
    # A function of one's own may leave answers to a judge, without whom the run would be refused.
    own = msgspec.structs.replace(with_key, graders=("mine:grade@0123456789ab+judge:m@verdict",))
    *_, run_line, _ = lines_again(manifest(demo={}), "run", [own])
    assert run_line.endswith(" --out run-again --judge m,api_key_env=JUDGE_KEY")
    *_, run_line, _ = lines_again(manifest(demo={}), "run", [with_key])
    assert "--judge" not in run_line
    # Scores without a judge belong to the recipe, too.
    assert judge_lines(score_benchmark(*graded(q1="cw"), 2)) == ["harness score run-again"]
    of_rubric = msgspec.structs.replace(ERRORS, settings={"model": "m", "prompt": "rubric-0c1f"})
    comments = lines_again(manifest(demo={}), "run", [msgspec.structs.replace(score, judge_errors=of_rubric)])[:-2]
    assert [line.split(" ", 2)[:2] for line in comments] == [["#", "create"]]
    # The variable decides no verdict, so two scores do not differ in it.
    assert grading_settings(with_key) == grading_settings(score)
