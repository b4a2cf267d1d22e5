"""The printed command repeats a run, the commands of other tools are translated, and dry runs show what would happen.

For: harness.cli.foreign, harness.cli.pasting, harness.cli.help, harness.cli.demo, harness.cli.dry_run,
harness.cli.sweep, harness.sweeps.sweep_runner.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import types
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.cli import demo
from harness.cli.flags import command_of, options_typed, typed_run_options
from harness.cli.foreign.tables import COMMON, FlagTable, tables
from harness.cli.foreign.translation import quoted
from harness.cli.main import cli
from harness.commands.report import lines_again, options_again, run_command
from harness.core.errors import UsageError
from harness.core.sanitize import visible
from harness.options.run import RunCommand, RunOptions
from harness.runs import RunFolder
from harness.runs.manifest import BenchmarkRecord, Manifest, Plan, differences
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.grading_settings import grading_settings
from harness.scoring.judging import JudgeErrors
from harness.scoring.score import Score
from harness.sweeps import cells
from harness.testing import FakeServer, scripted
from tests.budget import share_of
from tests.scoring.graded import graded
from tests.system.command import harness as command
from tests.system.old_runs import FOLDERS, answer


def parsed(line: str) -> RunOptions:
    """The options of the run that `harness run …` would make."""
    words = shlex.split(line)
    assert words[:2] == ["harness", "run"]
    return RunOptions(**typed_run_options(options_typed(command_of("run").make_context("run", words[2:]), RunCommand)))


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
        again = harness.run(**repeated.explicit)
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
def test_a_benchmark_is_repeated_by_its_typed_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
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
def test_a_key_variable_is_named_only_if_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_set: bool) -> None:
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


# -- command lines of other tools --------------------------------------------------------------------------------------


MOVING = Path(__file__).parents[2] / "docs" / "moving.md"
TOOLS = {name: table for name, table in tables().items() if table.starts}
KEY = "sk-canary0123456789abcdef"
TEXTS = {
    "--base-url": "{url}", "--model": "org/m", "MODEL": "org/m", "--thinking": "high", "--header": "A:b",
    "--prompt": "qwen_boxed", "--out": "r", "--system-prompt": "none", "--stop": "x", "--extra-body": '{"a": 1}',
    "--quantization": "fp8", "--reasoning-parser": "qwen3", "--devices": "0", "--chat-template": "t.jinja",
    "--host": "h", "--served-name": "n", "--attention-backend": "x", "--device": "cpu", "--ids": "demo-01",
    "--dtype": "auto", "SOURCE": "f.jsonl", "URL": "{url}", "BENCHMARKS": "demo", "--max-model-len": "8192",
}  # fmt: skip
"""Our flag → a value for it; a number for any other."""
WITH_COMMON = ("lm_eval", "vllm serve", "lm-eval run", "lighteval accelerate")
"""The commands with which the flags of `common` are tried."""
APART = (
    "--data", "--question-key", "--answer-key", "--batch", "--provider", "--api", "--node-rank", "--head-address",
    "--head-port", "--nodes", "--thinking-tokens", "--json",
)  # fmt: skip
"""Flags that need another one, or exclude the benchmark or the server of the lines here."""


def pasted(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def flags_of(table: FlagTable, start: str, url: str) -> list[tuple[str, ...]]:
    """A flag of each name in the table and in `common` that is an option here, with a value that it takes."""
    flags = []
    for name, entry in {**(tables()[COMMON].answers if start in WITH_COMMON else {}), **table.answers}.items():
        ours, plain = entry.text.split(" ")[0], name.partition("=")[0]
        # Neither the questions of a fixed benchmark nor a server at a fixed address may be here.
        fixed = (ours == "BENCHMARKS" and "{benchmarks}" not in entry.text) or "http:" in entry.text
        if not (entry.is_reason or fixed) and entry.text and ours not in APART and not re.search(r"[:*.]", plain):
            exact = name.partition("=")[2].replace("[Ff]", "F").replace("*/*", "./t.jinja").replace("*.*", "t.jinja")
            value = (
                exact.replace("*", "org/m") or TEXTS.get(ours, "1").replace("{url}", url) if "{" in entry.text else ""
            )
            flags.append((f"--{plain}", *([value] if value else [])))
    return flags


@pytest.mark.parametrize(
    ("name", "start"),
    [
        (name, start)
        for name, one in TOOLS.items()
        for start in {ours: start for start, ours in one.starts.items()}.values()
    ],
)
def test_each_printed_command_works(name: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.jinja").write_text("")
    table, tried = TOOLS[name], set[str]()
    with FakeServer(scripted("4", model="org/m")) as server:
        for flag in share_of(flags_of(table, start, server.base_url)):
            need = {
                "serve": ["--model", "org/m"],
                "run": ["--tasks", "demo", "--model", "org/m", "--model-args", "model=org/m"],
                "score": ["--input-path", "x"],
            }
            mark = [f"--{table.marks.split()[0]}", "2"] if ".py" in start else []
            port = ["--port", server.base_url.rpartition(":")[2]] if "port" in table.defaults else []
            line = [*start.split(), *mark, *port, *need.get(table.starts[start].split()[0], []), *flag]
            ours = pasted(*(["python", "-m", *line] if "." in line[0] else line)).stdout.strip()
            words = shlex.split(ours)[1:]
            if not words or words[0] not in ("serve", "run") or ours in tried:
                continue
            tried.add(ours)
            server_words = [] if {"--base-url", "--serve"} & {*words} else ["--base-url", server.base_url]
            at = words.index("--") if "--" in words else len(words)
            words[at:at] = ["--dry-run", *(server_words if words[0] == "run" else [])]
            done = pasted(*words)
            assert done.exit_code == 0, (line, ours, done.output, done.exception)


@pytest.mark.parametrize(
    "line", re.findall(r"^(?:python|vllm|lm_eval|inspect|evalscope|ns eval|opencompass).*", MOVING.read_text(), re.M)
)
def test_each_line_of_the_page_is_known(line: str) -> None:
    done = pasted(*shlex.split(line))
    # A configuration of OpenCompass names neither model nor server, and no run has sparse attention: only a part.
    part = (2, "") if re.match("opencompass|.*parallel_run_hf", line) else (0, "harness ")
    assert (done.exit_code, done.stdout[:8]) == part, done.output


SERVED = "harness serve vllm m"
EVAL = "lm_eval --model local-chat-completions"
WORDS = [
    ("vllm serve m", SERVED),
    ("A='b c' vllm serve m", f"A='b c' {SERVED}"),
    ("env A=b nohup /opt/bin/vllm serve m", f"A=b {SERVED}"),
    ("sudo srun -n1 vllm serve m", SERVED),
    ("vllm serve '$A'", ""),
    ("vllm serve m --dtype '`id`$(id)$X'", f"{SERVED} --dtype '`id`$(id)$X'"),
    ("echo vllm serve m", None),
    ("python ./foo/eval_all.py --tasks gsm8k", None),
    ("uv run --with x /v/bin/sgl-eval run aime24,GSM8K", "harness run aime24,gsm8k"),
    ("uv run --with x /v/bin/sgl-eval run aime24,nosuch", ""),
    ("sgl-eval run 'gsm8k;reboot' nosuch", ""),
    (f"vllm serve m {KEY}", ""),
    (f"VLLM_API_KEY={KEY} vllm serve m", f"{SERVED} --server-key-env VLLM_API_KEY"),
    (f"HF_TOKEN={KEY} vllm serve m", SERVED),
    (f"vllm serve m --api-key {KEY}", f"{SERVED} --server-key-env VLLM_API_KEY"),
    (
        f"sgl-eval run gsm8k --base-url https://h/v1 --api-key {KEY}",
        "harness run gsm8k --base-url https://h/v1 --api-key-env OPENAI_API_KEY",
    ),
    ("sgl-eval run gsm8k --api-key EMPTY", "harness run gsm8k"),
    (f"{EVAL} --tasks gsm8k", "harness run gsm8k --temperature 0"),
    (
        "lm_eval --model vllm --model_args pretrained=m -t gsm8k",
        "harness run gsm8k --api completions --serve vllm --model m --temperature 0",
    ),
    (
        "lm_eval --model vllm --model_args pretrained=m -t gsm8k --apply_chat_template",
        "harness run gsm8k --serve vllm --model m --temperature 0",
    ),
    (
        "lm_eval --model_args pretrained=m -t gsm8k",
        "harness run gsm8k --api completions --model m --serve transformers --temperature 0",
    ),
    (f"aiperf profile -m m -u h:1 --header 'Authorization: Bearer {KEY}' --concurrency 3", ""),
]
"""A command line → our command; none: there is a reason; None: no tool is known."""
LOCAL = "http://127.0.0.1"
SCOPE, SCOPED = "evalscope eval --api-url http://h:1/v1", "harness run gsm8k --base-url http://h:1/v1"
LLMEVAL = "harness run aime24 --preset llmeval --base-url http://h:1/v1"
MEANING = [
    # One server: the ranks share the GPUs of --tp.
    (
        "python -m sglang.launch_server --model-path m --tp 8 --dp 8 --enable-dp-attention",
        "harness serve sglang m --tp 8 -- --enable-dp-attention --dp-size 8",
    ),
    ("sglang serve --model-path m --tp 8 --dp 8", "harness serve sglang m --tp 8 --dp 8 --dp-mode engine"),
    ("sglang serve --model-path m -- --dp-size 8", ""),
    ("vllm serve m -tp 2 -dp 4 --data-parallel-size-local 4", f"{SERVED} --tp 2 --dp 4 --dp-mode engine"),
    (
        "vllm serve m --headless -dp 4 -dpl 2 -dpr 2 -dpa 10.0.0.1 -dpp 99",
        f"{SERVED} --dp 4 --dp-mode engine --head-address 10.0.0.1 --head-port 99 --nodes 2 --node-rank 1",
    ),
    ("HCCL_IF_IP=1 vllm serve m", "HCCL_IF_IP=1 harness serve vllm_ascend m"),
    ("vllm serve m --quantization ascend", "harness serve vllm_ascend m --quantization ascend"),
    ("vllm serve m --quantization fp8", f"{SERVED} --quantization fp8"),
    ("vllm serve m --swap-space 4", SERVED),
    ("vllm serve m --use-v2-block-manager", ""),
    ("llama-server -hf o/m --port 1", "harness serve command --port 1 -- llama-server --port '{port}' -hf o/m"),
    (
        "python benchmark/gsm8k/bench_sglang.py --num-questions 9",
        "harness run gsm8k --api completions --prompt lm_eval --temperature 0 --max-tokens 512 --limit 9 --base-url http://127.0.0.1:30000",
    ),
    ("python bench_sglang.py --num-questions 9", ""),
    ("python bench_sglang.py --num-tries 2", "harness run limo --samples 2 --base-url http://127.0.0.1:30000"),
    (
        "python ./llmeval/tasks/math_eval/eval.py --input_path o.jsonl --cache_path c "
        "--task_name math_opensource/aime24",
        "harness score o.jsonl --benchmark aime24",
    ),
    (
        "python ./llmeval/vllm_utils/infer_multithread.py --input_file d/aime24.jsonl --output_file o.jsonl "
        "--base_url http://h:1/v1 --model_name o/m --n_samples 8 --max_workers 4",
        LLMEVAL.replace("--base", "--out o.jsonl --base") + " --model o/m --samples 8 --concurrency 4",
    ),
    (
        "python infer_multithread.py --input_file d/aime24.jsonl --base_url http://h:1/v1",
        f"{LLMEVAL} --samples 64 --concurrency 128 --model Qwen/QwQ-32B",
    ),
    ("python infer_multithread.py --input_file d/aime24.jsonl --end 3", ""),
    (
        "python3 -m sglang.test.run_eval --eval-name gpqa --port 9 --repeat 8 --thinking-mode deepseek-v3",
        f"harness run gpqa_diamond --base-url {LOCAL}:9 --samples 8 --temperature 0 --max-tokens 2048 --top-p 1 "
        """--extra-body '{"chat_template_kwargs": {"thinking": true}}'""",
    ),
    (
        "python3 -m sglang.test.run_eval --eval-name humaneval --base-url http://h:1 --temperature 0.6 --top-p 0.9",
        "harness run humaneval:5 --base-url http://h:1 --temperature 0.6 --top-p 0.9 --max-tokens 2048",
    ),
    ("python3 -m sglang.test.run_eval --base-url http://h:1", ""),  # MMLU
    ("python3 -m sglang.test.run_eval --eval-name math", ""),
    ("python3 -m sglang.test.run_eval --eval-name mmmu", ""),
    ("python3 -m sglang.test.run_eval --eval-name gsm8k --api completion", ""),
    ("python3 -m sglang.test.run_eval --eval-name longbench_v2 --categories code", ""),
    (
        "python3 -m sglang.test.few_shot_gsm8k --host http://10.0.0.2 --port 9 --parallel 4 --num-shots 5",
        "harness run gsm8k --api completions --prompt lm_eval --temperature 0 --max-tokens 512 "
        "--base-url http://10.0.0.2:9 --concurrency 4 --limit 200",
    ),
    ("python3 -m sglang.test.few_shot_gsm8k --num-shots 8", ""),
    ("python eval.py --model_name_or_path m", ""),
    (
        "lighteval vllm 'model_name=o/m,generation_parameters={temperature:0.6,max_new_tokens:9}' 'aime24|0'",
        "harness run aime24 --serve vllm --model o/m --temperature 0.6 --max-tokens 9",
    ),
    ("tau2 run --domain airline", ""),
    ("python bench_sglang.py --data-path opencompass/AIME2025 --port 9", f"harness run aime25_i --base-url {LOCAL}:9"),
    ("python ./llmeval/inference/online.py --input_file d/aime24.jsonl --base_url http://h:1/v1", LLMEVAL),
    (f"{EVAL} --tasks hendrycks_math500,gpqa_diamond_cot_n_shot", "harness run math500,gpqa_diamond --temperature 0"),
    (f"{EVAL} --tasks leaderboard_mmlu_pro", ""),
    (f"{EVAL} --tasks gsm8k --limit 0.1", ""),
    ("vllm serve m --max-model-len 8k", ""),
    ("vllm serve m --config c.yaml", ""),
    ("vllm serve m --ssl-keyfile k", ""),
    ("sglang serve --model-path m --nnodes 1 --dist-init-addr h:1", "harness serve sglang m --nodes 1"),
    (f"{EVAL} --tasks gpqa_diamond_zeroshot", ""),
    (
        "lighteval vllm model_name=o/m 'gpqa:diamond|0'",
        "harness run gpqa_diamond --serve vllm --model o/m --temperature 0",
    ),
    (
        f"{SCOPE} --datasets live_code_bench hle",
        f"{SCOPED} --temperature 0 --max-tokens 2048".replace("gsm8k", "livecodebench,hle_text"),
    ),
    (
        "opencompass --datasets gpqa_gen_4baadb math_500_gen --hf-type chat --hf-path o/m -a vllm --max-out-len 9",
        "harness run gpqa_diamond,math500 --model o/m --serve vllm --max-tokens 9",
    ),
    ("opencompass --datasets math_500_gen --hf-path o/m -a lmdeploy", ""),
    ("build/bin/llama-server -m m", "harness serve command -- build/bin/llama-server --port '{port}' -m m"),
    ("ais_bench --datasets gsm8k_gen_0_shot_cot_str", "harness run gsm8k"),
    (
        "python simple_evals.py --eval gpqa --examples 9",
        "harness run gpqa_diamond --provider openai --temperature 0.5 --limit 9",
    ),
    (f"{EVAL} --tasks gsm8k --no-such-flag 3", ""),
    ("vllm serve m --port 1 --seed 1 --seed 2 --port 3 --seed 1", f"{SERVED} --port 3 --server-seed 1"),
    ("vllm serve m --enable-prefix-caching --no-enable-prefix-caching", f"{SERVED} --no-prefix-caching"),
]


@pytest.mark.parametrize(("line", "ours"), [*WORDS, *MEANING])
def test_a_command_line_is_read_as_its_tool_reads_it(line: str, ours: str | None) -> None:
    done = pasted(*shlex.split(line))
    known = not re.search("no command|no tool", done.output)
    # The default port of each server; `test_a_server_keeps_its_usual_port` reads it.
    printed = re.sub(r" --port (?:8000|30000|8080)\b", "", done.stdout) if "port" not in line else done.stdout
    assert (known, printed, done.exit_code) == (ours is not None, f"{ours}\n" if ours else "", 0 if ours else 2), (
        done.output
    )
    assert not known or ours or re.search(r"^# [^\n]+: \w+|^Error: ", done.output, re.MULTILINE), done.output
    assert KEY not in done.output


@pytest.mark.parametrize(
    ("line", "port"),
    [
        ("vllm serve m", 8000),
        ("sglang serve --model-path m", 30000),
        ("llama-server -hf m", 8080),
        ("vllm serve m --port 9", 9),
    ],
)
def test_a_server_keeps_its_usual_port(line: str, port: int) -> None:
    words = shlex.split(pasted(*shlex.split(line)).stdout)
    assert words[words.index("--port") + 1] == str(port)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("vllm serve m\n", ["m"]),
        ("vllm serve \\\n  m", ["m"]),
        ("'vllm' serve \"m\"", ["m"]),
        ("vllm serve m --dtype 'a;b|c&d>e<f$g\nfor'", ["m", "--dtype", "a;b|c&d>e<f$g\nfor"]),
        (r"vllm serve m --dtype a\;", ["m", "--dtype", "a;"]),
    ],
)
def test_a_quoted_command_line_is_read_as_its_words(text: str, words: list[str]) -> None:
    assert (pasted(text).output, pasted(text).exit_code) == (pasted("vllm", "serve", *words).output, 0)


PROGRAMS = {
    "Only one command": [
        "vllm serve m && vllm serve n", "vllm serve m || vllm serve n", "vllm serve m; vllm serve n",
        "vllm serve m\nvllm serve n", "vllm serve m & sleep 1", "vllm serve m | tee log", "(vllm serve m)",
        'vllm serve "$(cat f)"',
        "f() { vllm serve m; }; f", "#!/bin/bash\nvllm serve m",
    ],
    "Loops and conditions": [
        "for A in m n; do vllm serve $A; done", "while x; do vllm serve m; done", "if x; then vllm serve m; fi",
        "case $A in a) vllm serve m ;; esac", "A=m\nuntil x\ndo vllm serve m\ndone",
    ],
    "Redirections": ["vllm serve m > log", "vllm serve m 2>&1", "sbatch <<'EOF'\nvllm serve m\nEOF", "cat <log"],
    "Variables": ["vllm serve $A", "vllm serve m --port ${PORT:-1}", "vllm serve `cat f`"],
    "Put a value": ["vllm serve m --port <PORT>", "vllm serve <DIR>/m"],
    "unclosed quote": ["vllm serve 'm"],
    "Compose files": ["services:\n  a:\n    image: e", "# one\napiVersion: v1\nkind: Pod"],
    "Containers": ["docker run vllm/vllm-openai --model m", "sudo docker exec c vllm serve m", "podman run e"],
    "Manifests": ["kubectl apply -f f"],
    "Programs": ["bash -c 'vllm serve m && x'", "sudo sh vllm.sh"],
    "Unset the variable": ["env -u A vllm serve m", "sudo env -i vllm serve m"],
    "Job scripts": ["sbatch --wrap 'vllm serve m'"],
    "on this machine": ["ssh host 'vllm serve m'"],
    "two commands": ["vllm bench sweep serve --serve-cmd 'vllm serve m' --bench-cmd 'vllm bench serve'"],
}  # fmt: skip
"""What a sentence says → texts that are not one command."""


@pytest.mark.parametrize(("words", "text"), [(words, text) for words, texts in PROGRAMS.items() for text in texts])
def test_a_program_is_refused_with_a_sentence(words: str, text: str, tmp_path: Path) -> None:
    refused = command(tmp_path, text)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1), refused.err
    assert words in refused.err


@pytest.mark.parametrize("word", [">", "2>&1", ">>log", "&&", ";", "|", "&"])
def test_an_operator_among_words_is_refused(word: str, tmp_path: Path) -> None:
    refused = command(tmp_path, "vllm", "serve", "m", word, "x")
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1), refused.err


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("python ./tools/evaluate_all.py --x 1", "./tools/evaluate_all.py"),
        ("A=b python3 -u -m some.module", "some.module"),
        ("uv run /opt/score", "/opt/score"),
        ("score_all --x", "score_all"),
        ("python", "python"),
    ],
)
def test_an_unknown_program_is_named(line: str, program: str) -> None:
    done = pasted(*shlex.split(line))
    assert (done.exit_code, repr(program) in done.output) == (2, True), done.output


BENCH = "python -m sglang.bench_serving --dataset-name random --random-range-ratio 1"
LOAD_TESTS = {
    "vllm bench serve --backend openai-chat --model m --port 9 --dataset-name random --random-input-len 1000 "
    "--random-output-len 5 --num-prompts 8 --max-concurrency 4 --ignore-eos": (
        {"base_url": "http://127.0.0.1:9", "max_tokens": 5, "limit": 8},
        [4],
    ),
    "vllm bench serve --num-prompts 8": (
        {"api": "completions", "base_url": "http://127.0.0.1:8000", "max_tokens": 128, "limit": 8},
        [8],
    ),
    "vllm bench serve --num-prompts 8 --request-rate 0.5 --max-concurrency 3": (
        {"api": "completions", "base_url": "http://127.0.0.1:8000", "max_tokens": 128, "limit": 8, "concurrency": 3},
        [0.5],
    ),
    "vllm bench serve --num-prompts 8 --request-rate 2": (
        {"api": "completions", "base_url": "http://127.0.0.1:8000", "max_tokens": 128, "limit": 8, "concurrency": 8},
        [2],
    ),
    f"{BENCH} --max-concurrency 4": (
        {"api": "completions", "base_url": "http://127.0.0.1:30000", "max_tokens": 1024, "limit": 1000},
        [4],
    ),
    "evalscope perf --parallel 5 10 --number 5 20 --dataset random --url http://h:1/v1/chat/completions --api openai": (
        {"limit": 20, "base_url": "http://h:1/v1"},
        [5, 10],
    ),
    "guidellm benchmark --target http://h:1 --profile concurrent --rate 2,1 --data prompt_tokens=999,output_tokens=9": (
        {"base_url": "http://h:1", "max_tokens": 9},
        [1, 2],
    ),
    "vllm bench serve --num-prompts 8 --goodput ttft:500 tpot:50": (
        {"api": "completions", "base_url": "http://127.0.0.1:8000", "max_tokens": 128, "limit": 8},
        [8],
    ),
    "genai-perf profile -m m --url h:1 --concurrency 4 --num-prompts 8 --synthetic-input-tokens-mean 1024 "
    "--synthetic-input-tokens-stddev 0": ({"base_url": "h:1", "limit": 8}, [4]),
    "aiperf profile -m m --url http://h:1 --concurrency 3 --request-count 6 --goodput "
    "'time_to_first_token:500 inter_token_latency:50'": (
        {"base_url": "http://h:1", "limit": 6},
        [3],
    ),
}
"""Line → the options of the sweep's runs, and its loads."""


@pytest.mark.parametrize("line", LOAD_TESTS)
def test_a_load_test_becomes_a_sweep(line: str, tmp_path: Path) -> None:
    done, (run, loads) = pasted(*shlex.split(line)), LOAD_TESTS[line]
    assert done.exit_code == 0, done.output
    file, _, sweep = done.stdout.strip().rpartition("\n")
    subprocess.run(["/bin/sh", "-c", file], cwd=tmp_path, check=True)
    written = yaml.safe_load((tmp_path / "load.yaml").read_text())
    # SGLang and GuideLLM fix the length of the output without being asked.
    extra = {"extra_body": {"ignore_eos": True}} if re.search("eos|sglang|guidellm", line) else {}
    axis = "rate" if "request-rate" in line else "concurrency"
    assert (written["run"], written[axis], written["benchmarks"]) == (run | extra, loads, ["random_1k"])
    assert written.get("score") == ({"limits": "first_token=500ms,token_gap=50ms"} if "goodput" in line else None)
    dry = command(tmp_path, *shlex.split(sweep)[1:], "--dry-run")
    assert (dry.code, f"{len(loads)} cell" in dry.out) == (0, True), dry.err


LESS = [
    f"{EVAL} --tasks gsm8k --num_fewshot 5",
    f"{EVAL} --tasks gsm8k --fewshot_as_multiturn",
    f"{EVAL} --tasks gsm8k --device cpu",
    f"{EVAL} --tasks gsm8k --wandb_args project=p",
    "lm_eval --tasks gsm8k --model_args pretrained=o/m,add_bos_token=False",
    "lighteval vllm model_name=o/m 'lighteval|gsm8k|5|0'",
    "lighteval vllm model_name=o/m 'gsm8k|5'",
    f'{SCOPE} --datasets gsm8k --dataset-args \'{{"gsm8k": {{"few_shot_num": 4}}}}\'',
    f'{SCOPE} --datasets gsm8k --dataset-args \'{{"gsm8k": {{"prompt_template": "{{query}}"}}}}\'',
    f'{SCOPE} --datasets gsm8k --dataset-args \'{{"gsm8k": {{"filters": {{"a": 1}}}}}}\'',
    f'{SCOPE} --datasets gsm8k --dataset-args \'{{"gsm8k": {{"subset_list": ["main"]}}}}\'',
    "ais_bench --datasets gsm8k_gen --mode perf",
    "ais_bench --datasets gsm8k_gen_4_shot_cot_str",
    "inspect eval inspect_evals/gsm8k --model vllm/m --scorer match",
    "guidellm benchmark --target http://h:1 --rate-type constant --rate 4",
    "guidellm benchmark --target http://h:1 --data prompt_tokens=1000",
    "vllm bench serve --request-rate 4 --burstiness 2",
    "vllm bench serve --dataset-name sharegpt",
    "vllm bench serve --random-input-len 300",
    "vllm bench serve --num-prompts 5000",
    "vllm bench serve --goodput itl:50",
    "vllm bench serve --num-prompts x",
    "vllm bench serve --num-prompts '$N' --max-concurrency 4",
    "python -m sglang.bench_serving",
    "python -m sglang.bench_serving --dataset-name random",
    "evalscope perf --url http://h:1/v1/chat/completions --parallel 1",
]
"""Lines that ask for something that no command of ours does."""


@pytest.mark.parametrize("line", LESS)
def test_a_command_that_would_do_less_is_refused(line: str) -> None:
    done = pasted(*shlex.split(line))
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert re.search("^# [^\n]+: .", done.stderr, re.MULTILINE), done.stderr


FLAGS = [
    (start, f"--{name.partition('=')[0]}".replace("*", "x"), name.partition("=")[2])
    for table in TOOLS.values()
    for start in [*table.starts][:1]
    for name, entry in {**(tables()[COMMON].answers if start in WITH_COMMON else {}), **table.answers}.items()
    if entry.text and not re.search("[:.]", name.partition("=")[0])
    if not {name.partition("=")[2], entry.text.removesuffix("{none}").rpartition(" ")[2]} & {*table.defaults.values()}
    if entry.text.split()[0] not in ("--node-rank", "--head-address", "--head-port")  # nothing on a single node
]
"""Each flag whose effect is neither always on here nor the tool's default: the tool's first words, the flag, and the
pattern of its value.
"""


def test_each_flag_is_translated_named_or_refused() -> None:
    """Nothing falls through without a word."""
    need = {"run": "--tasks demo --model org/m", "serve": "--model org/m", "score": "--input-path x"}
    starts = {start: (table, ours.split()[0]) for table in TOOLS.values() for start, ours in table.starts.items()}
    plain = dict[str, str]()
    for start, flag, pattern in share_of(FLAGS):
        table, ours = starts[start]
        mark = f" --{table.marks.split()[0]} 2" if ".py" in start else ""
        line = f"{'python -m ' if '.' in start else ''}{start}{mark} {need.get(ours, '')}".split()
        value = re.sub(r"\[(.).*?\]", r"\1", pattern).replace("*", "x") or "7"
        without = plain.setdefault(start, pasted(*line).output)
        said = pasted(*line, f"{flag}={value}").output
        assert said != without or f"{flag}: " in said, (start, flag, value)


@given(st.text(alphabet="aA=$(){}[]'\"`\\<>|&;#\n -:!", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for typed in (text, f"vllm serve m --dtype {text}", f"vllm bench serve --num-prompts {text}"):
        for words in ([typed, *[""] * (not typed)], typed.split(" ")):
            done = pasted(*words)
            assert done.exception is None or isinstance(done.exception, SystemExit | UsageError), (
                words,
                done.exception,
            )


@pytest.mark.parametrize(
    "text", ["vllm serve m " + "a" * 400_000, "'" * 99_999, "\\" * 99_999, "a=" * 99_999, "<a" * 99_999]
)
def test_a_long_text_ends_in_a_sentence(text: str) -> None:
    done = pasted(text)
    refusal = done.output if isinstance(done.exception, SystemExit) else str(done.exception)
    assert len(refusal) < 999


@given(st.text(min_size=1))
def test_a_word_stays_one_harmless_word(word: str) -> None:
    shown = quoted(word)
    assert visible(shown) == shown
    assert shown.startswith("$'") or shlex.split(shown) == [word]


@pytest.mark.parametrize("value", ["[" * 90_000, '{"a":' * 90_000, '{"chat_template_kwargs": 3}', "a=1,b", "{{", "\0"])
def test_a_hostile_value_ends_in_a_line(value: str) -> None:
    options = ["--generation-config", value, "--generation-config", '{"chat_template_kwargs": {"a": 1}}']
    done = pasted("evalscope", "eval", "--datasets", "gsm8k", *options)
    assert "harness run gsm8k " in done.output, done.exception


def test_an_engines_line_after_serve_is_told_its_place() -> None:
    done = pasted("serve", "--", "vllm", "serve", "m")
    assert (done.exit_code, "as in harness vllm serve MODEL" in done.output) == (2, True), done.output


# -- dry runs ----------------------------------------------------------------------------------------------------------


SERVE = ("--serve", "vllm", "--model", "org/m", "--dry-run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sums.jsonl").write_text(json.dumps({"id": "1", "problem": "What is 1 + 1?", "answer": "2"}) + "\n")
    return tmp_path


def test_a_run_that_starts_its_server_shows_command_settings_and_prompt(folder: Path) -> None:
    words = ("run", "--data", "sums.jsonl", "--samples", "4", "--serve-option", "max-model-len=40960", *SERVE)
    done = command(folder, *words)
    assert done.code == 0, done.err
    for words in ("vllm serve org/m", "temperature 0.6", "4 per question", "boxed", "What is 1 + 1?"):
        assert words in done.out, words
    assert not (folder / "results").exists()


STEPS = "She sells 16 - 7 = <<16-7=9>>9 eggs.\nShe makes 9 * 2 = $<<9*2=18>>18."


@pytest.mark.parametrize(
    ("answer", "warned"),
    [(STEPS, True), (f"{STEPS}\n#### 18", False), ("18", False), (r"\frac{36}{2}", False), ("×", False)],
)
def test_the_first_reference_is_shown_and_an_unreadable_one_is_named(answer: str, warned: bool, folder: Path) -> None:
    """Before the first request, by the check of `harness doctor --benchmark`; a judge may decide such answers."""
    rows = [{"problem": "What does she make?", "answer": answer}, {"problem": "What is 1 + 1?", "answer": "2"}]
    (folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("run", "--data", "own.jsonl", "--serve-option", "max-model-len=40960", *SERVE)
    done = command(folder, *words)
    assert done.code == 0, done.err
    assert f"Its reference answer: {answer[:20]}" in done.out
    assert ("no rule can parse the reference answer for 1 of 2 questions, such as “She sells" in done.err) == warned
    assert "no rule reads" not in command(folder, *words, "--judge", "m@http://127.0.0.1:9").err
    tested = command(folder, "doctor", "--benchmark", "own.jsonl").out
    assert ("no rule can parse the reference “She sells" in tested) == warned


def test_a_judge_s_settings_are_shown_and_the_judge_is_not_asked(folder: Path) -> None:
    (folder / "rubric.txt").write_text("It names the cause.")
    words = ["run", "--data", "sums.jsonl", "--serve-option", "max-model-len=40960", *SERVE]
    assert "judge:" not in command(folder, *words).out
    judge = "judge-god@http://me:secret@127.0.0.1:9,prompt=rubric.txt,api_key_env=JUDGE_KEY"
    done = command(folder, *words, "--judge", judge)
    assert done.code == 0, done.err
    rows = {"": "judge-god", ": address": r"http://\S*127.0.0.1:9", ": samples": "open"}
    rows |= {
        ": requests": "at most 1 ",
        ": prompt": "rubric-[0-9a-f]{8}",
        ": key from": "JUDGE_KEY",
        ": sampling": "temperature 0.0",
    }
    for name, value in rows.items():
        assert re.search(rf"^ *judge{name} +{value}", done.out, re.MULTILINE), (name, done.out)
    assert "secret" not in done.out


def test_a_run_without_room_for_replies_is_refused_before_a_server_starts(folder: Path) -> None:
    words = ("run", "--data", "sums.jsonl", "--serve-option", "max-model-len=32768", *SERVE)
    done = command(folder, *words, "--max-tokens", "32768")
    assert done.code != 0
    assert "--fit-context" in done.err
    by_default = command(folder, *words)
    assert by_default.code == 0, by_default.err


@pytest.mark.parametrize(
    ("max_tokens", "samples", "reason"),
    [
        (4096, 4, "the server's context length is 4096"),
        (4095, 4, "the server's context length is 4096"),
        (1000, 2, "pass@4 requires 4 samples per question, but the cell has 2"),
        (1000, 4, ""),
        (None, 4, ""),  # the default, which is above the context, is lowered to it
    ],
)
def test_a_sweeps_dry_run_finds_lost_cells(folder: Path, max_tokens: int | None, samples: int, reason: str) -> None:
    cell = {"data": "sums.jsonl", "samples": samples} | ({"max_tokens": max_tokens} if max_tokens else {})
    server = {"engine": "vllm", "max_model_len": 4096}
    content = {"models": ["org/m"], "servers": [server], "benchmarks": [cell], "score": {"k": [4]}}
    (folder / "own.yaml").write_text(json.dumps(content))
    done = command(folder, "sweep", "own.yaml", "--dry-run")
    assert done.code == bool(reason)
    assert ("m+vllm+sums would end without producing a new score: " in done.err) == bool(reason)
    assert reason in done.err, done.err


def test_k_of_a_suite_s_tables_is_an_option(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    given = {"model": "m", "base_url": "http://127.0.0.1:9"}
    planned = cells.plan_of("efficient-reasoning", given, {})
    assert (planned.table.k_of("aime24"), planned.table.k_of("gsm8k")) == (10, 8)
    assert cells.plan_of("efficient-reasoning", given, {}, 4).table.k_of("aime24") == 4


def test_a_ctrl_c_while_the_server_starts_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.preparing.server_start.spec_of", lambda *_, **__: None)
    monkeypatch.setattr("harness.preparing.server_start.launch_server", interrupted)
    assert demo.run_demo() == demo.STOPPED
    assert capsys.readouterr().err.endswith("Stopped the demo and its server. Run the same command to resume.\n")


def test_an_impossible_run_folder_is_refused_before_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[object] = []
    monkeypatch.setattr("harness.preparing.server_start.spec_of", lambda *_, **__: types.SimpleNamespace(context=None))
    monkeypatch.setattr("harness.preparing.server_start.launch_server", lambda *given: starts.append(given))
    done = command(tmp_path, "run", "demo", "--serve", "vllm", "--model", "org/m", "--out", "/proc/nowhere/run")
    assert (done.code, starts) == (3, [])
