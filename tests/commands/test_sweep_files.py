"""A sweep's file: what may stand in it is what the options are, what is wrong is named with its line, and the plan is
the product of its axes.

For: harness.cli.sweep, harness.sweeps.cells, harness.sweeps.checkpoints, harness.sweeps.sweep_runner,
harness.sweeps.execution, harness.sweeps.cell_state.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import os
import shutil
import tempfile
import traceback
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from harness.cli.flags import command_of
from harness.core.errors import UsageError
from harness.core.options import options_of
from harness.options.judge import JudgeOptions
from harness.options.run import RunOptions
from harness.options.score import OutputsOptions, ScoreOptions
from harness.presets.grading import GradingOptions
from harness.progress.events import Watcher
from harness.sweeps import cells, record, schema
from harness.sweeps import sweep_runner as sweeps
from harness.sweeps.checkpoints import NO_STEP, checkpoint_at
from harness.sweeps.execution import CellScore, score_cell
from harness.sweeps.plan import Sweep
from harness.sweeps.results import results
from harness.sweeps.table import write
from harness.testing import FakeServer, Reply, Request, http, serving
from server_launchers.spec import OPTIONS
from tests.commands.test_sweep_runs import questions
from tests.system.command import harness

BUDGETS = """\
models:
  - Qwen/Qwen3-4B
  - {model: Qwen/Qwen3-8B, server: {tp: 2}}
servers:
  - {name: full, engine: vllm, max_model_len: 40960}
  - {name: b2048, command: "python serve.py --model {model} --port {port} --token-budget 2048"}
  - {name: b4096, command: [python, serve.py, "{model}", --port, "{port}", --token-budget, "4096"]}
benchmarks: [aime24:64, {benchmark: math500, samples: 8, max_tokens: 1000}]
sampling: [{name: cool, temperature: 0.6}, {temperature: 1.0}]
"""


def planned(folder: Path, text: str, **given: object) -> Sweep:
    path = folder / "budgets.yaml"
    path.write_text(text, encoding="utf-8")
    return cells.plan_of(str(path), given, {})


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("demo -c 2,8 --model m", {"extends": "demo", "models": ["m"], "concurrency": [2, 8]}),
        ("math500:2 -c 2,8", {"benchmarks": ["math500:2"], "concurrency": [2, 8]}),
        ("mine.yaml:3,gsm8k -c 2,8", {"benchmarks": ["mine.yaml:3", "gsm8k"], "concurrency": [2, 8]}),
        ("math500,gsm8k -c 8", {"benchmarks": ["math500", "gsm8k"], "run": {"concurrency": 8}}),
        (
            "math500 -c 8 --limits total=9s",
            {"benchmarks": ["math500"], "concurrency": [8], "score": {"limits": {"total": "9s"}}},
        ),
        ("base.yaml -c 2,8", {"extends": "base.yaml", "concurrency": [2, 8], "name": "load", "out": "there"}),
        (
            "--data q.jsonl -c 2,8 --limits total=9s",
            {"benchmarks": [{"data": "q.jsonl"}], "concurrency": [2, 8], "score": {"limits": {"total": "9s"}}},
        ),
    ],
)
def test_a_typed_sweep_is_that_of_a_file(
    words: str, content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.jsonl").write_text('{"problem": "1 + 1", "answer": "2"}\n')
    (tmp_path / "base.yaml").write_text("{name: load, out: there, concurrency: [1], benchmarks: [demo]}")
    card = {
        "name": "mine",
        "title": "Mine",
        "source": {"kind": "file", "path": "q.jsonl"},
        "columns": {"question": ["problem"], "answer": ["answer"]},
    }
    (tmp_path / "mine.yaml").write_text(json.dumps(card | {"kind": "integer", "prompt": "boxed"}))
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    of_file = cells.plan_of("s.yaml", {"out": "o"}, {})
    limits = content.pop("score", {}).get("limits")
    of_content = cells.plan_of(content, {"out": "o"}, {}, limits=limits)
    assert [cell.options for cell in of_content.cells] == [cell.options for cell in of_file.cells]
    assert of_content.score == of_file.score
    typed, planned = (
        harness(tmp_path, "sweep", *line.split(), "--dry-run", "--out", "o") for line in (words, "s.yaml")
    )
    shown = [done.out.partition(": the server")[2] for done in (typed, planned)]  # after the name of the sweep
    assert (typed.code, shown[0]) == (0, shown[1]), typed.err
    assert shown[0]
    if "base.yaml" in words:  # the folder of the file
        assert "folder there" in harness(tmp_path, "sweep", *words.split(), "--dry-run").out


@pytest.mark.parametrize("words", ["", "gsm9k -c 2,8", "gsm8k,gsm9k -c 2,8"])
def test_a_sweep_of_nothing_known_is_one_sentence(tmp_path: Path, words: str) -> None:
    done = harness(tmp_path, "sweep", *words.split(), "--dry-run")
    assert (done.code, "or" in done.err, len(done.err.splitlines())) == (2, True, 1), done.err
    assert "benchmark" in done.err


def test_the_plan_is_the_product_of_the_axes_by_names_that_can_be_foretold(tmp_path: Path) -> None:
    sweep = planned(tmp_path, BUDGETS)
    groups = [*sweep.groups.values()]
    assert [*sweep.groups] == [
        f"{model}+{server}" for model in ("qwen3-4b", "qwen3-8b") for server in ("full", "b2048", "b4096")
    ]
    assert len(sweep.cells) == 2 * 3 * 2 * 2
    names = [cell.name for cell in groups[1]]
    assert names == [
        f"qwen3-4b+b2048+{how}+{what}" for how in ("cool", "temperature-1.0") for what in ("aime24", "math500")
    ]
    first, second = groups[1][:2]
    assert (first.options.samples, first.options.temperature) == (64, 0.6)
    assert (second.options.samples, second.options.max_tokens) == (8, 1000)
    assert sweep.folder(first) == Path("results/budgets/qwen3-4b+b2048+cool+aime24")
    words = ["python", "serve.py", "{model}", "--port", "{port}", "--token-budget", "4096"]
    assert groups[2][0].options.serve == {"model": "Qwen/Qwen3-4B", "extra_flags": words, "engine": "command"}
    assert groups[3][0].options.serve == {"model": "Qwen/Qwen3-8B", "context": 40960, "tp": 2, "engine": "vllm"}


def test_what_is_typed_stands_above_the_file(tmp_path: Path) -> None:
    sweep = planned(tmp_path, BUDGETS, samples=2, model="org/Other", out="elsewhere")
    assert {cell.options.samples for cell in sweep.cells} == {2}
    assert {cell.options.model for cell in sweep.cells} == {"org/Other"}
    assert sweep.folder(sweep.cells[0]) == Path("elsewhere/other+full+cool+aime24")
    served = planned(tmp_path, "benchmarks: [demo]\n", model="m", serve={"engine": "vllm", "tp": 8})
    assert served.cells[0].options.serve == {"model": "m", "tp": 8, "engine": "vllm"}


@pytest.mark.parametrize(
    ("pattern", "read"),
    [
        ("runs/*/step_*", {"runs/a/step_500": ("a", 500), "runs/b/step_0": ("b", 0), "runs/a/step_last": None}),
        ("ck/*", {"ck/500": ("ck", 500), "ck/global_step20": ("ck", 20), "ck/checkpoint-7": ("ck", 7)}),
        ("ck/*", {"ck/qwen3-8b-500": ("ck-qwen3-8b", 500), "ck/epoch=3-step=500": ("ck", 500), "ck/epoch3": ("ck", 3)}),
        ("ck/*", {"ck/step_1e3": None, "ck/step_2k": None, "ck/loss2.95": None, "ck/step_500.5": None}),
        ("ck/*-Q8_0.gguf", {"ck/iter-40-Q8_0.gguf": ("ck", 40)}),
        ("ck/*.gguf", {"ck/step_40.gguf": ("ck", 40), "ck/step_last.gguf": None}),
        ("ck/iter*/actor/huggingface", {"ck/iter20/actor/huggingface": ("ck", 20)}),
        ("runs/*/*/huggingface", {"runs/a/global_step_20/huggingface": ("a", 20)}),
        ("iter3/ckpts/*", {"iter3/ckpts/final": None, "iter3/ckpts/step_7": ("ckpts", 7)}),
        ("runs/a/step_20/hf", {"runs/a/step_20/hf": ("a", 20)}),
        ("step_*", {"step_5": ("", 5)}),
    ],
)
def test_the_star_of_a_pattern_stands_for_the_step(pattern: str, read: dict[str, tuple[str, int] | None]) -> None:
    for path, expected in read.items():
        found = checkpoint_at(Path(path), pattern)
        assert (found and (found.series, found.step)) == expected, path


def test_checkpoints_are_models_by_step_and_what_is_left_out_is_named(tmp_path: Path) -> None:
    for name in ("a/step_100", "a/step_20", "b/step_20", "b/step_last", "b/global_step_20"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    text = "checkpoints: [runs/*/*, sft/*]\nbenchmarks: [demo]\nservers: [{engine: llama_cpp}]\n"
    sweep = planned(tmp_path, text)
    steps = [(cell.point["models"], cell.curve, cell.checkpoint.step) for cell in sweep.cells if cell.checkpoint]
    assert steps == [("a-step_20", "a", 20), ("a-step_100", "a", 100), ("b-global_step_20", "b", 20)]
    assert sweep.cells[1].options.model == "runs/a/step_100"
    left_out = [
        "runs/b/step_20 is skipped: runs/b/global_step_20 has the same step or name; rename one of them",
        f"runs/b/step_last is skipped: {NO_STEP}",
        f"sft/* is skipped: no file or folder relative to {tmp_path} matches it",
    ]
    assert sweep.remarks == left_out
    (tmp_path / "s.yaml").write_text(text)
    shown = harness(tmp_path, "sweep", "s.yaml", "--dry-run")
    assert "steps of a: 20, 100\n" in shown.out
    assert {f"harness: warning: {line}" for line in left_out} == {*shown.err.splitlines()[:3]}
    with pytest.raises(UsageError, match=r"no entry is named 'a-step_300'"):
        planned(tmp_path, text + "table: {base: a-step_300}\n")
    with pytest.raises(UsageError, match=r"no checkpoint found: runs/b/step_last: its name has no "):
        planned(tmp_path, text.replace("runs/*/*", "runs/b/step_last"))


def test_a_dry_run_shows_what_a_reproduction_rests_on(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("models: [Qwen/QwQ-32B]\nbenchmarks: [aime24]\nrun: {temperature: 0.5}\n")
    shown = harness(tmp_path, "sweep", "s.yaml", "--dry-run").out
    for words in ("temperature 0.5, top_p 0.95", "prompt boxed", "`harness benchmarks fetch aime24`"):
        assert words in " ".join(shown.split()), shown
    assert "the server in OPENAI_BASE_URL or a running server" in shown


D = "benchmarks: [demo]\n"
M = D + "models: [m]\n"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (D + "modles: [m]\n", 2, "unknown key 'modles'. Did you mean models?"),
        (D + "run:\n  limit: 1\n  temprature: 1.0\n", 4, "'run.temprature'. Did you mean temperature?"),
        (D + "servers:\n  - engine: vllm\n    quantisation: x\n", 4, "Did you mean quantization?"),
        (M + "servers:\n- {url: x}\n", 4, "unknown key 'servers.0.url'. Known keys: api_key_env, "),
        ("benchmarks:\n- {benchmark: demo, n: 3}\n", 2, "key 'benchmarks.0.n'. Known keys: accept"),
        (M + "temperature: 1\n", 3, "It belongs at `run.temperature` or `models.temperature` or "),
        (D + "run: {layout: x}\n", 2, "unknown key 'run.layout'. It belongs at `table.layout`."),
        (D + "table: {run: {}}\n", 2, "unknown key 'table.run'. It belongs at the top level."),
        (D + "table: {grouping: x, kind: y}\n", 2, "key 'table.grouping'. Known keys:"),
        (D + "table: {shown: [accuracy, gap]}\n", 2, "table.shown.1: expected 'samples', 'accuracy', 'reported',"),
        (D + "servers:\n  - engine: vlm\n", 3, "servers.0.engine: expected 'llama_cpp'"),
        (D + "servers:\n  - {engine: vllm,\n     tp: 0}\n", 4, "greater than or equal to 1, found 0"),
        (D + "run: {samples: many}\n", 2, "run.samples: expected a valid number, found 'many'"),
        ("models: [m]\n", 1, "the key 'benchmarks' is missing"),
        (
            M + "servers:\n  - {command: 'serve {port} {modle}'}\n",
            4,
            "unknown placeholder {modle}. Did you mean model?",
        ),
        (D + "models: [n, m]\nservers:\n  - {command: 'serve {served_name}'}\n", 4, "would serve n and m; use {model}"),
        (M + "servers:\n  - {command: 'vllm serve m --x {budgets}'}\n", 4, "unknown placeholder {budgets}"),
        (M + "servers:\n  - {engine: vllm, environment: {X: '{budget}'}}\n", 4, "unknown placeholder {budget}"),
        (M + 'servers:\n  - {command: "vllm serve \'m"}\n', 4, "not a valid command line: No closing quotation"),
        (D + "sampling:\n  - {temperature: 1.0, stop: [a]}\n", 3, "give this entry of sampling a `name`"),
        (D + "servers: [{tp: 2, name: x}]\n", 2, "tp describes a server to start"),
        (D + "servers: [vllm]\n", 2, "the server needs a model"),
        (M + "servers: [vllm]\nrun: {base_url: http://a}\n", 1, "the cell starts its own"),
        (M + "servers:\n  - {engine: vllm, nodes: 2}\n", 4, "an address of node 0"),
        ("benchmarks:\n  - demo\n  - {samples: 3}\n", 3, "give this entry of benchmarks a `name`"),
        ("benchmarks:\n  - demo\n  - {name: x}\n", 3, "specify a `benchmark`, or a file"),
        (D + "suite: {title: x, mean_of: [dmo]}\n", 2, "no benchmark is named 'dmo'. Did you mean demo?"),
        (D + "table: {base: fll}\nservers: [{name: full, run: {seed: 1}}]\n", 2, "Did you mean full?"),
        (D + "checkpoints: nowhere/step_*\n", 2, "no checkpoint found: nowhere/step_*: no file or folder relative to"),
        (M + "servers: [{name: A B, engine: vllm}]\n", 3, "servers.0.name: expected at most 80 lowercase letters"),
        (D + "judge: {model: j, scope: some}\n", 2, "judge.scope"),
        (D + "run: {prices: [1.0, -2]}\n", 2, "expected two or three prices, each 0 or more"),
        (M + "except: [{models: m}]\n", 3, "`except` excludes every cell"),
        ("extends: seer4\nmodels: [m]\nexcept: [{benchmarks: aime2}]\n", 3, "benchmarks is named 'aime2'."),
        (D + "extends: aime-preview\nsuite: {title: x, mean_of: [t0.0]}\n", 3, "no benchmark is named 't0.0'."),
        (M + "except: [{models: [n]}]\n", 3, "no entry in models is named 'n'. The entries are m."),
        (M + "except:\n- benchmarks: [demo]\n  models: mm\n", 5, "no entry in models is named 'mm'. Did you mean m?"),
        (D + "except: [{models: 3}]\n", 2, "except.0.models: expected a valid string or a list in brackets, found 3"),
        (D + "except: [{modls: m}]\n", 2, "except.0.modls: expected 'models', 'servers', "),
        (D + "slots: 2\n", 2, "unknown key 'slots'. Known keys:"),
        (D + "table: {k: {demo: 0}}\n", 2, "table.k.demo: expected a number greater than or equal to 1, found 0"),
        (D + "prompts: [3]\n", 2, "prompts.0: expected a string or a mapping, found 3"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        planned(tmp_path, text)
    assert f"budgets.yaml:{line}: " in str(caught.value)
    assert words in str(caught.value)


def test_names_that_are_too_long_for_a_folder_are_refused(tmp_path: Path) -> None:
    text = D + "".join(f"{axis}: [{{name: {axis[0] * 75}}}]\n" for axis in ("prompts", "sampling", "servers"))
    with pytest.raises(UsageError, match="only 200 are allowed; give its entries a shorter"):
        planned(tmp_path, text)


def test_a_mistake_shows_no_key_of_the_file(tmp_path: Path) -> None:
    key = "sk-canary-0123456789abcdef"
    for part in ("run: {api_key: %s}", "run: {header: [%s]}", "run: {extra_body: [%s]}", "judge: {api_key: %s}"):
        with pytest.raises(UsageError) as caught:
            planned(tmp_path, D + part % key)
        assert key not in "".join(traceback.format_exception(caught.value))


def test_a_refused_flag_is_named_and_a_refused_key_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(D + "run: {target_error: 0}\n")
    assert harness(tmp_path, "sweep", "s.yaml").err == (
        "harness: s.yaml:2: run.target_error: expected a number greater than 0, found 0\n"
    )
    (tmp_path / "s.yaml").write_text(D)
    for flag, rest in (
        ("--target-error 0", "expected a number greater than 0"),
        ("--temperature -1", "expected a number greater than or equal to 0"),
        ("--target-error 1 --shard 1/2", "it does not work with --shard, because"),
        ("--judge j,max_tokens=0", "expected a number greater than or equal to 1"),
    ):
        refused = harness(tmp_path, "sweep", "s.yaml", *flag.split()).err
        assert refused.startswith(f"harness: {flag.split()[0]}")
        assert rest in refused


def test_a_missing_column_is_named_by_key_and_line_of_the_sweep_file(tmp_path: Path) -> None:
    (tmp_path / "bank.jsonl").write_text('{"question": "What is 1 + 2?", "loesung": "3"}\n')
    text = "models: [m]\nbenchmarks:\n  - demo\n  - {data: bank.jsonl, samples: 2}\nrun: {base_url: http://x/v1}\n"
    (tmp_path / "s.yaml").write_text(text)
    refused = harness(tmp_path, "sweep", "s.yaml", "--dry-run")
    assert refused.code == 2
    assert refused.err.startswith("harness: s.yaml:4: "), refused.err
    assert "Specify the column with `answer_key: NAME`." in refused.err
    of_run = harness(tmp_path, "run", "s.yaml")
    assert (of_run.code, "s.yaml is a sweep file: run it with `harness sweep`" in of_run.err) == (2, True)
    # Wrong twin: `harness run` has the flag.
    assert "--answer-key NAME" in harness(tmp_path, "run", "--data", "bank.jsonl", "--model", "m", "--dry-run").err
    named = text.replace("samples: 2", "samples: 2, answer_key: loesung")
    (tmp_path / "s.yaml").write_text(named)
    assert harness(tmp_path, "sweep", "s.yaml", "--dry-run").code == 0


def test_every_option_of_the_commands_can_stand_in_a_file() -> None:
    """The wrong twin: an option that only the schema knows, or only the command."""
    parts = schema.json_schema()["$defs"]
    assert set(parts["Run"]["properties"]) == set(options_of(RunOptions)) - set(schema.OWN)
    assert set(OPTIONS) <= set(parts["ServerVariant"]["properties"])
    assert {"max_model_len", "server_key_env", "env"} <= set(parts["ServerVariant"]["properties"])
    # `on` is where a run's clients are; a sweep scores each cell, and its judge has a part of its own in the file.
    shown_only = {"help_all", "as_json", "dry_run", "progress", "quiet", "benchmarks", "out", "serve", "serve_option"}
    shown_only |= {"json_schema", "on", "scores", "judge"}
    flags = {one.name for one in command_of("run").params} - shown_only
    assert flags == set(parts["Run"]["properties"])
    # A cell is no file to be split, and a sweep scores it: it does not say what its judge would cost.
    not_of_cells = {"help_all", "sources", "as_json", "json_schema", "follow", "by", "dry_run", "prices", "every_table"}
    scorer = {str(one.name) for one in command_of("score").params} - not_of_cells - {"judge"}
    assert scorer == set(options_of(ScoreOptions))
    assert scorer - set(parts["Score"]["properties"]) == {*options_of(OutputsOptions), "on", "track", "step", "series"}
    assert set(options_of(GradingOptions)) == set(parts["Score"]["properties"])
    assert set(options_of(JudgeOptions)) == {*parts["Judge"]["properties"], *schema.JUDGE_OWN}


def test_a_hostile_reason_is_text_in_every_format(tmp_path: Path) -> None:
    sweep = planned(tmp_path, D + "models: [m]\nservers: [vllm]\n", out=str(tmp_path / "out"))
    (cell,) = sweep.cells
    reason = "=HYPERLINK(1) <script>alert(1)</script> \x1b[31m"
    record.write(sweep.out, record.CellRecord(cell=cell.name, reason=reason, code=2))
    found = results(sweep)
    written = {path.suffix: path.read_text("utf-8") for path in write(found)}
    assert all("\x1b" not in text for text in written.values())
    assert "<script" not in written[".html"] + written[".md"]
    with (tmp_path / "out" / "table.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["reason"].startswith("'=HYPERLINK")
    assert "missing [1]" in written[".html"]
    assert found.results[0].score is None


@pytest.mark.parametrize("names", [("a",), ("a", "b")])
def test_a_file_that_extends_itself_is_refused_in_a_sentence(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name, base in zip(names, (*names[1:], names[0]), strict=True):
        Path(f"{name}.yaml").write_text(f"extends: {base}.yaml\n{D}")
    with pytest.raises(UsageError) as caught:
        cells.plan_of("a.yaml", {}, {})
    chain = "".join(f"{name}.yaml:1: " for name in names)
    assert str(caught.value).startswith(f"{chain}a.yaml extends itself, directly or through other files")


def test_a_file_takes_the_benchmarks_of_the_suite_that_it_extends(tmp_path: Path) -> None:
    sweep = planned(tmp_path, "extends: seer4\nmodels: [m]\n")
    benchmarks = [cell.options.benchmarks for cell in sweep.cells]
    assert benchmarks == [("aime24",), ("aime25",), ("math500",), ("gpqa_diamond",)]
    # The base's `except` and `mean_of` name entries that these files replace.
    replacing = "extends: seer4\nservers: [{name: x, run: {seed: 1}}]\nbenchmarks: [demo]\n"
    assert len(planned(tmp_path, replacing).cells) == 1
    assert planned(tmp_path, f"extends: aime-preview\n{D}").averaged == []
    with pytest.raises(UsageError, match=r"budgets.yaml:1: the key 'benchmarks' is missing"):
        planned(tmp_path, "models: [m]\n")


# -- sweeps from any state ---------------------------------------------------------------------------------------------


STEPS = (1, 2)
N_QUESTIONS = {"a": 1, "b": 2}
ENOUGH = 10**6


class Sweeping(RuleBasedStateMachine):
    """A training with two steps and a sweep's file with two benchmarks; the server counts its answers."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.before = Path.cwd()
        os.chdir(self.folder)
        for name, n in N_QUESTIONS.items():
            questions(self.folder, name, n, 3)
        self.n_answered, self.n_scored, self.answers_left, self.scorings_left = 0, 0, ENOUGH, ENOUGH
        self.server = FakeServer(serving(self.reply, *(f"ck/step_{step}" for step in STEPS))).__enter__()
        self.benchmarks, self.samples, self.max_tokens = ["a"], 1, 32
        self.max_tokens_of: dict[str, int] = {}  # of each cell with samples
        self.appear(1)

    def teardown(self) -> None:
        self.server.__exit__(None, None, None)
        os.chdir(self.before)
        shutil.rmtree(self.folder)

    def reply(self, _: Request) -> Reply:
        self.answers_left -= 1
        if self.answers_left < 0:
            return [http(401, {"error": {"message": "no"}})]
        self.n_answered += 1
        return r"\boxed{3}"

    def score(self, *task: Any) -> CellScore:
        self.scorings_left -= 1
        if self.scorings_left < 0:
            raise KeyboardInterrupt
        self.n_scored += 1
        return score_cell(*task)

    def plan(self, out: str = "results/s") -> Sweep:
        entries = [{"data": f"{name}.jsonl", "samples": self.samples} for name in self.benchmarks]
        run = {"base_url": self.server.base_url, "max_tokens": self.max_tokens, "attempts": 1, "concurrency": 1}
        checked = {"canary": False}
        content = {"checkpoints": "ck/step_*", "benchmarks": entries, "run": run | checked, "score": {"workers": 1}}
        Path("s.yaml").write_text(json.dumps(content))
        return cells.plan_of("s.yaml", {"out": out}, {})

    def stored(self, cell: str = "*") -> list[tuple[str, int]]:
        """Question and index of each sample on disk of the cell, or of all cells."""
        lines = [
            line for path in Path("results/s").glob(f"{cell}/*/samples.jsonl") for line in path.read_text().splitlines()
        ]
        rows = [json.loads(line) for line in lines if line.endswith("}")]  # not a torn tail
        return [(row["question_id"], row["sample_index"]) for row in rows]

    def carry_out(self) -> Any:
        """Sweep; afterwards the settings of each cell are those with which it was first sampled."""
        plan = self.plan()
        try:
            return sweeps.run_sweep(plan, Watcher(), score=self.score)
        finally:
            for cell in plan.cells:
                if self.stored(cell.name):
                    self.max_tokens_of.setdefault(cell.name, self.max_tokens)

    @rule(step=st.sampled_from(STEPS))
    def appear(self, step: int) -> None:
        Path(f"ck/step_{step}").mkdir(parents=True, exist_ok=True)

    @rule(step=st.sampled_from(STEPS))
    def disappear(self, step: int) -> None:
        if len([*Path("ck").iterdir()]) > 1 and Path(f"ck/step_{step}").exists():
            Path(f"ck/step_{step}").rmdir()

    @rule(
        benchmarks=st.sampled_from([["a"], ["b"], ["a", "b"]]),
        samples=st.integers(1, 3),
        max_tokens=st.sampled_from([32, 32, 64]),
    )
    def edit(self, benchmarks: list[str], samples: int, max_tokens: int) -> None:
        self.benchmarks, self.samples, self.max_tokens = benchmarks, samples, max_tokens

    @rule(answers=st.integers(0, 3))
    def break_server(self, answers: int) -> None:
        self.answers_left = answers
        self.carry_out()
        self.answers_left = ENOUGH

    @rule(scorings=st.integers(0, 3))
    def stop(self, scorings: int) -> None:
        self.scorings_left = scorings
        with contextlib.suppress(KeyboardInterrupt):
            self.carry_out()
        self.scorings_left = ENOUGH

    @rule(pattern=st.sampled_from(["*/*/scores.json", "*/*/samples.jsonl", "cells/*.json"]), data=st.data())
    def damage(self, pattern: str, data: st.DataObject) -> None:
        """Lose a file of a cell, or its end, as a full disk or a careless hand does."""
        if paths := sorted(Path("results/s").glob(pattern)):
            path = data.draw(st.sampled_from(paths))
            if pattern == "*/*/scores.json" or data.draw(st.booleans()):
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[: -data.draw(st.integers(1, 40))])
            self.n_answered = len(self.stored())

    @rule()
    def sweep(self) -> None:
        """An undisturbed sweep completes each cell but those of other settings; the next one finds nothing to do."""
        rows = {}
        for result in self.carry_out().results:
            cell, refused = result.cell, self.max_tokens_of[result.cell.name] != self.max_tokens
            assert ("of other settings" in result.reason) == refused, (cell.name, result.reason)
            if not refused:
                assert not result.reason, (cell.name, result.reason)
                rows[cell.name] = result.score and (result.score.accuracy, result.score.n_samples)
                ids = [f"{cell.benchmark}{number}" for number in range(N_QUESTIONS[cell.benchmark])]
                assert {*self.stored(cell.name)} >= {*itertools.product(ids, range(self.samples))}
            assert len(self.stored(cell.name)) == len({*self.stored(cell.name)})
        assert self.n_answered == len(self.stored()), "nothing that is stored was asked again"
        before = self.n_answered, self.n_scored
        self.carry_out()
        assert (self.n_answered, self.n_scored) == before, "nothing is left to do"
        fresh = sweeps.run_sweep(self.plan("fresh"), Watcher(), score=score_cell).results
        again = {one.cell.name: one.score and (one.score.accuracy, one.score.n_samples) for one in fresh}
        assert rows.items() <= again.items(), "the numbers are those of a sweep from nothing"
        shutil.rmtree("fresh")
        self.n_answered = before[0]


def test_a_sweep_comes_to_the_same_from_any_state() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Sweeping,
        settings=settings(
            max_examples=6,
            stateful_step_count=7,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        ),
    )
