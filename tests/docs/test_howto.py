"""Each command of the how-to pages and of README is accepted, those of other pages are parsed; the recipes read a real
run, and the tutorials run with a real model (`make test-docs`) and print what stands there.

For: harness.cli.demo.
"""

from __future__ import annotations

import json
import os
import random
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import types
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from harness.benchmarks.shards import Shard
from harness.cli.demo import next_lines, program
from harness.testing import FakeServer, Request, serving
from server_launchers import isolated
from server_launchers.lifecycle.launch import RunningServer
from tests.docs.pages import DOCS, ROOT, Typed, blocks, commands, commands_of
from tests.docs.test_links import made_up, missing
from tests.docs.trying import ROW, Bench
from tests.system.command import environment, harness

SCALING = DOCS / "scaling.md"
PAGES = [DOCS / name for name in ("ci.md", "exports.md", "gpu-nodes.md", "running.md")]
OTHERS = [
    *(page for page in sorted(DOCS.glob("*.md")) if page not in PAGES and page.name != "moving.md"),
    *sorted((DOCS / "tutorials").glob("*.md")),
    *sorted((DOCS / "questions").glob("*.md")),
    ROOT / "examples" / "plugin_package" / "README.md",
]
"""Pages whose commands are parsed only; moving.md has a test of its own."""


@pytest.mark.parametrize("typed", [one for page in PAGES for one in commands(page)], ids=str)
def test_each_line_is_accepted(bench: Bench, typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.try_(typed) in (0, -1), capsys.readouterr().err


@pytest.mark.parametrize("typed", [one for page in OTHERS for one in commands(page)], ids=str)
def test_each_line_of_the_other_pages_is_parsed(bench: Bench, typed: Typed) -> None:
    bench.parse(list(typed.words))


def test_recipes_read_a_run(tmp_path_factory: pytest.TempPathFactory, embedded_server: RunningServer) -> None:
    if shutil.which("jq") is None:
        pytest.skip("no jq")
    folder = tmp_path_factory.mktemp("recipes")
    words = ["run", "demo:2", "--limit", "2", "--max-tokens", "16", "--no-canary", "--out", "run"]
    assert harness(folder, *words, "--base-url", embedded_server.base_urls[0]).code == 0
    assert harness(folder, "score", "run").code == 0
    page = DOCS / "exports.md"
    for language, start in (("jq", ["bash", "-euo", "pipefail", "-c"]), ("python", [sys.executable, "-c"])):
        *_, block = blocks(page, language)
        done = subprocess.run([*start, block.text], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "demo-" in done.stdout


def test_a_job_array_of_clients_takes_every_shard_once(tmp_path: Path) -> None:
    """The page's script as Slurm runs it, with a program in the place of `harness` that keeps its words."""
    script = next(block.text for block in blocks(SCALING, "bash") if "--shard" in block.text)
    program = tmp_path / "harness"
    program.write_text('#!/bin/sh\nprintf "%s " "$@" >> words\n')
    program.chmod(0o755)
    (first, last) = map(int, re.findall(r"--array=(\d+)-(\d+)", script)[0])
    for number in range(first, last + 1):
        slurm = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(last - first + 1)}
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **slurm}
        subprocess.run(["bash", "-s"], input=script, text=True, cwd=tmp_path, env=environment, check=True)
    typed = re.findall(r"--shard (\S+)", (tmp_path / "words").read_text())
    assert [Shard.parse(shard) for shard in typed] == [Shard(number, 8) for number in range(1, 9)]


TUTORIALS = sorted(page for page in (DOCS / "tutorials").glob("*.md") if page.name != "README.md")


MARK = "--- the next block"
DEMO_ROWS = map(json.loads, (ROOT / "datasets/demo.jsonl").read_text("utf-8").splitlines())
DEMO = {row["question"]: row["answer"] for row in DEMO_ROWS}


def made_up_answers(request: Request) -> str:
    """Right answers to most questions of the demo set, or to few at a high temperature."""
    asked = request.json
    question = asked["messages"][-1]["content"]
    share = 0.3 if asked["temperature"] > 1 else 0.7
    right = random.Random(f"{question} {asked.get('seed')} {share}").random() < share
    return rf"\boxed{{{DEMO.get(question, 99) if right else 99}}}"


def not_printed(page: Path, printed: list[str]) -> list[str]:
    """The lines of the page's blocks of output that are not in what the block of commands before each printed."""
    rest, last, wrong = iter(printed), "", list[str]()
    for block in blocks(page, "sh", "text"):
        if block.language == "sh":
            last = next(rest)
        else:
            wrong += missing(block.text, last)
    return wrong


@pytest.mark.whole_pages
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_pages_commands_work_and_print_what_it_shows(page: Path, tmp_path: Path, whole_smollm2: Path) -> None:
    script = "set -euo pipefail\nexec 2>&1\n" + "".join(f"{block.text}echo '{MARK}'\n" for block in blocks(page, "sh"))
    extra = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "80"}
    try:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment(tmp_path, extra),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=580,
            check=False,
        )
    finally:
        stop = [sys.executable, "-m", "harness", "serve", "stop", "--all"]
        subprocess.run(stop, env=environment(tmp_path), capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "Traceback" not in done.stdout
    assert not_printed(page, done.stdout.split(f"{MARK}\n")) == []


@pytest.mark.parametrize("name", ["first-score", "compare", "hosted"])
def test_the_outputs_of_a_tutorial_are_those_of_its_commands(name: str, tmp_path: Path) -> None:
    """As above, with a server of made-up answers in the place of the model, and without what needs a shell."""
    page, printed = DOCS / "tutorials" / f"{name}.md", []
    with FakeServer(serving(made_up_answers, "smollm2-135m")) as server:
        extra = {"OPENAI_BASE_URL": server.base_url, "PROVIDER_KEY": "made-up", "COLUMNS": "80"}
        for block in blocks(page, "sh"):
            printed.append("")
            for typed in commands_of(block):
                if typed.words[0] != "serve":
                    words = [server.base_url if word == "http://127.0.0.1:8701/v1" else word for word in typed.words]
                    result = harness(tmp_path, *words, extra=extra)
                    assert result.code == 0 or "|| true" in block.text, result.err
                    printed[-1] += result.err + result.out
    assert not_printed(page, printed) == []


README = ROOT / "README.md"


@pytest.mark.parametrize("typed", commands(README), ids=str)
def test_each_line_of_the_readme_is_accepted(bench: Bench, typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    (bench.folder / "my_questions.jsonl").write_text(json.dumps(ROW) + "\n")
    (bench.folder / "outputs.jsonl").write_text(json.dumps({"gen": r"\boxed{2}", "answer": 2}) + "\n")
    code = bench.try_(typed)
    assert code in (0, -1), capsys.readouterr().err


def test_make_targets_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    pages = [README, ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    named = {
        name for page in pages for name in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
    }
    assert {"demo", "test"} <= named
    assert [
        name for name in named if not re.search(rf"^(?:{name}|{name.partition('-')[0]}-%):", makefile, re.MULTILINE)
    ] == []


def test_extras_that_are_named_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    named = {one for some in re.findall(r"'\.\[([a-z,-]+)\]'", README.read_text("utf-8")) for one in some.split(",")}
    assert named
    assert all(re.search(rf"^{name} = \[", project, re.MULTILINE) for name in named), named


def test_what_the_demo_says_to_do_next_is_accepted_and_names_whole_paths(bench: Bench) -> None:
    lines = next_lines(Path("results/a demo"))
    for line in lines:
        program, *words = shlex.split(line)
        if program == "cp":  # a later line asks the questions of this file
            shutil.copy(words[0], bench.folder / words[1])
            continue
        assert program == "harness" or Path(program).is_file()
        assert bench.try_(Typed("demo", tuple(words))) in (0, -1)
    assert "my_questions.csv" in lines[0], "first something of one's own"
    assert sum(shlex.quote(str(bench.folder / "results/a demo")) in line for line in lines) == 2


def test_the_demo_names_a_program_that_a_shell_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, folder in (("installed", tmp_path / "venv"), ("another", tmp_path / "elsewhere")):
        folder.mkdir()
        (folder / "harness").write_text(f"#!/bin/sh\necho {name}\n", "utf-8")
        (folder / "harness").chmod(0o755)
    monkeypatch.setattr(isolated, "PYTHON", str(tmp_path / "venv/python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == shlex.quote(str(tmp_path / "venv/harness"))
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    assert program() == shlex.quote(str(tmp_path / "venv/harness")), "another harness is on the path"
    monkeypatch.setenv("PATH", str(tmp_path / "venv"))
    assert program() == "harness"


# -- examples/doors ----------------------------------------------------------------------------------------------------


DOORS = ROOT / "examples" / "doors"

ANSWERS = serving(made_up_answers, "smollm2-135m")


def run(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The program with `harness` on its path."""
    own = environment(folder, {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **variables})
    return subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False)


def test_the_runner_of_srt_slurm_runs_and_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = types.ModuleType("srtctl.benchmarks.base")
    vars(base).update(BenchmarkRunner=object, register_benchmark=lambda _name: lambda cls: cls)
    for name in ("srtctl", "srtctl.benchmarks"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, base.__name__, base)
    runner = runpy.run_path(str(DOORS / "srt_slurm_runner.py"))["HarnessRunner"]()
    variables = {"BENCHMARKS": "demo:1", "OUT": str(tmp_path / "out")}
    config = SimpleNamespace(benchmark=SimpleNamespace(env=variables), served_model_name="smollm2-135m")
    assert runner.validate_config(config) == []
    with FakeServer(ANSWERS) as server:
        port = int(server.base_url.removesuffix("/v1").rpartition(":")[2])
        command = runner.build_command(config, SimpleNamespace(frontend_port=port))
        done = run(command, tmp_path, **runner.get_environment(config, None))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").exists()


def test_a_change_of_vllm_is_compared_with_its_base(tmp_path: Path) -> None:
    with FakeServer(ANSWERS) as base, FakeServer(ANSWERS) as change:
        variables = {"BASE": base.base_url, "CHANGE": change.base_url, "MODEL": "smollm2-135m", "BENCHMARKS": "demo:4"}
        done = run([str(DOORS / "vllm_ci.sh")], tmp_path, **variables)
    assert done.returncode in (0, 1, 4), done.stderr
    assert all(words in done.stdout for words in (" on ", "new questions", "margin 2 points")), done.stdout


def test_the_recovery_of_a_copy_has_its_interval(tmp_path: Path) -> None:
    for name, accuracy in (("base", 0.6), ("copy", 0.57)):
        made_up(tmp_path, name, accuracy, 7)
    done = run([sys.executable, str(DOORS / "recovery.py"), "base", "copy"], tmp_path)
    recovery, low, high, copy, of_base = map(float, re.findall(r"[\d.]+(?=%| to|\))", done.stdout))
    assert low < recovery < high
    assert recovery == pytest.approx(100 * copy / of_base, abs=0.2)


def test_the_gate_in_place_of_a_limit_keeps_what_it_promises(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"question": f"What is {n} + 1?", "answer": n + 1}) + "\n" for n in range(1319))
    (tmp_path / "rows.jsonl").write_text(rows)
    card = "title: t\nsource: {kind: file, path: rows.jsonl}\ncolumns: {question: question, answer: answer}\n"
    (tmp_path / "gsm8k.yaml").write_text(card)
    words = ["gate", str(DOORS / "gate_gsm8k.yaml"), "--dry-run"]
    result = harness(tmp_path, *words, extra={"HARNESS_DATASETS": str(tmp_path)})
    assert result.code == 0, result.out + result.err


def test_vllms_nightly_samples_with_the_harness(tmp_path: Path) -> None:
    with FakeServer(ANSWERS) as server:
        url, args = server.base_url.removesuffix("/v1"), "num_concurrent=4,max_length=2048,max_gen_toks=64"
        line = f'set -euo pipefail; source "$DOOR"; run_lm_eval smollm2-135m {url} demo:2 5 {args} results'
        done = run(["bash", "-c", line], tmp_path, DOOR=str(DOORS / "perf_eval_run_lm_eval.sh"))
    assert done.returncode == 0, done.stderr
    # What ingest.py looks for below the folder of the task.
    (path,) = (tmp_path / "results" / "demo:2").glob("**/results_*.json")
    assert len([*(tmp_path / "results" / "demo:2").glob("**/samples_*.jsonl")]) == 1
    record = json.loads(path.read_bytes())
    assert record["configs"]["demo"]["generation_kwargs"] == {"temperature": 0.0, "top_p": 1.0, "max_tokens": 64}
    assert record["n-samples"]["demo"]["effective"] == len(DEMO)


def test_a_step_of_inferencex_leaves_the_results_in_its_folder(tmp_path: Path) -> None:
    with FakeServer(ANSWERS) as server:
        port = server.base_url.removesuffix("/v1").rpartition(":")[2]
        line = f'source "$DOOR"; run_lm_eval --port {port} --task evals/demo.yaml --results-dir out'
        done = run(
            ["bash", "-c", line],
            tmp_path,
            MODEL="smollm2-135m",
            CONC="4",
            DOOR=str(DOORS / "inferencex_run_lm_eval.sh"),
        )
    assert done.returncode == 0, done.stderr
    assert sorted(path.suffix for path in (tmp_path / "out").rglob("*.json*")) == [".json", ".jsonl"]


@pytest.mark.parametrize(("share", "most", "code"), [(30, 10**6, 0), (95, 10**6, 1), (95, 2, 4)])
@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml", "buildkite.yml"])
def test_a_template_of_ci_gates_a_server(tmp_path: Path, name: str, share: int, most: int, code: int) -> None:
    template = yaml.safe_load((DOORS / name).read_text("utf-8"))
    out = 'export OUT="{OUT}"\n'
    if name == "github.yml":
        step = next(step for step in template["jobs"]["gate"]["steps"] if "run" in step)
        script, tolerated = re.sub(r"\$\{\{.*?\}\}", "7", out.format(**step["env"])) + step["run"], []
    elif name == "gitlab.yml":
        job = template["gate"]
        script = out.format(**job["variables"]) + "\n".join(job["script"])
        tolerated = [job["allow_failure"]["exit_codes"]]
    else:
        script = template["steps"][0]["command"].replace("$$", "$")
        tolerated = [soft["exit_status"] for soft in template["steps"][0]["soft_fail"]]
    (tmp_path / "buildkite-agent").write_text('#!/bin/sh\necho "$@" && cat > annotated\n')
    (tmp_path / "buildkite-agent").chmod(0o755)
    with FakeServer(ANSWERS) as server:
        run_options = {"base_url": server.base_url, "budget_tokens": most}
        policy = {"run": run_options, "benchmarks": {"demo": {"floor": share, "loss": 25}}}
        (tmp_path / "gate.yaml").write_text(yaml.safe_dump({"name": "t", "power": 50, "run_deviation": 0.5, **policy}))
        own = {"CI_PIPELINE_ID": "7", "BUILDKITE_BUILD_NUMBER": "7", "GITHUB_STEP_SUMMARY": "annotated"}
        done = run(["bash", "-ec", f"PATH={tmp_path}:$PATH\n{script}"], tmp_path, **own)
    # GitHub has no code that it tolerates: the step itself turns 4 into a warning.
    assert done.returncode == (0 if code == 4 and name == "github.yml" else code), done.stdout + done.stderr
    assert ("::warning::" in done.stdout, tolerated) == ((code == 4, []) if name == "github.yml" else (False, [4]))
    reports = template["gate"]["artifacts"]["reports"]["junit"] if name == "gitlab.yml" else "results/gate-*/gate.md"
    assert [*tmp_path.glob(reports)]
    assert (name == "gitlab.yml") or (tmp_path / "annotated").read_text() == next(tmp_path.glob(reports)).read_text()


def test_the_page_on_floors_says_what_the_plan_says(tmp_path: Path) -> None:
    page = DOCS / "questions" / "red-by-luck.md"
    (shown,) = blocks(page, "console")
    command, *lines = shown.text.splitlines()
    said = harness(tmp_path, *shlex.split(command.removeprefix("$ harness "))).out.splitlines()
    assert [line for line in lines if line != "…"] == said[:1]
    rows = [line.strip("| ").split(" | ") for line in page.read_text("utf-8").splitlines() if line.startswith("| [")]
    assert len(rows) == 5
    for _, questions, floor, usual, _, fails, detects in rows:
        words = f"gsm8k:1 --limit {questions.replace(',', '')} --accuracy {usual} --floor {floor}"
        found = re.findall(r"fails (\S+) of|loss of (\S+) point", harness(tmp_path, "plan", *words.split()).out)
        assert ["".join(one) for one in found] == [fails, *([] if detects == "–" else [detects])], words


def test_a_floor_needs_a_number_of_samples_and_a_limit_a_benchmark(tmp_path: Path) -> None:
    done = harness(tmp_path, *["plan", "gsm8k", "--accuracy", "86", "--detect", "2", "--floor", "85"])
    assert (done.code, "--floor 85.0: specify a number of samples after the name" in done.err) == (2, True), done.err
    few, many = (harness(tmp_path, *f"plan gsm8k:{n} --accuracy 86 --floor 85".split()).out for n in (1, 16))
    assert "fails 0.0% of the runs" not in few
    assert "fails 0.0% of the runs" in many, "more samples, fewer failures by luck"


# -- docs/moving.md: what stands there for users of other tools is accepted, and reads what their tools store ----------


PAGE = DOCS / "moving.md"
TEXT = PAGE.read_text("utf-8")


def lines(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def lay_out(folder: Path) -> None:
    """The files of which the page speaks, as each tool writes them, and the cards' one question."""
    asked, right = ROW["problem"], r"\boxed{2}"
    nemo, doc = folder / "out" / "eval-results" / "aime24", {"question": asked}
    nemo.mkdir(parents=True)
    review = {"score": {"value": {"acc": 1.0}, "prediction": right}, "sample_id": 0, "group_id": 0}
    files: dict[str, dict[str, object]] = {
        "my_questions": {**ROW},
        "aime24_bz64": {"prompt": asked, "answer": 2, "gen": [f"so {right}"]},
        "limo_aime": {"question": asked, "generated_responses": [right], "gold_answer": "2"},
        "samples_gsm8k": {"doc_id": 0, "doc": doc, "target": "#### 2", "resps": [["#### 2"]]},
        "flat": {"problem": asked, "answer": "2", "response": right},
        "seer_aime24": {**ROW, "answer": "2", "completion": right},
        **{
            f"out/eval-results/aime24/output-rs{number}": {
                "problem": asked,
                "expected_answer": "2",
                "generation": f"{number}: {right}",
            }
            for number in range(2)
        },
        "reviews_aime24": {"index": 0, "input": asked, "target": "2", "sample_score": review},
    }
    for name, row in files.items():
        (folder / f"{name}.jsonl").write_text(lines(row))
    predicted = {"origin_prompt": [{"role": "HUMAN", "prompt": asked}], "prediction": right, "gold": "2"}
    (folder / "opencompass_aime24.json").write_text(json.dumps({"0": predicted}))
    head = "=" * 40 + " 0 " + "=" * 40
    (folder / "tmp_output_sglang.txt").write_text(f"{head}\n{asked}\nso {right}\n{'=' * 80}\n")
    choices = [{"message": {"role": "assistant", "content": right}, "stop_reason": "stop"}]
    sample = {"id": 1, "epoch": 1, "input": asked, "target": "2"}
    sample["output"] = {"choices": choices, "usage": {"output_tokens": 5}}
    with zipfile.ZipFile(folder / "aime.eval", "w") as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
    for block in blocks(PAGE, "yaml"):
        (folder / block.text.splitlines()[0].removeprefix("# ")).write_text(block.text)


def context_of(typed: Typed) -> int | None:
    """The context that the page's last `harness serve` before this line gives its server; None: it states none."""
    limit = None
    for line in commands(PAGE):
        if line == typed:
            break
        if line.words[0] == "serve":
            words = list(line.words)
            limit = int(words[words.index("--max-model-len") + 1]) if "--max-model-len" in words else None
    return limit


@pytest.mark.parametrize("typed", commands(PAGE), ids=str)
def test_each_line_of_the_page_is_accepted(bench: Bench, typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(bench.folder)
    bench.context = context_of(typed) if "--base-url" in typed.words and typed.words[0] == "run" else None
    code = bench.try_(typed)
    output = capsys.readouterr()
    assert code in (0, -1), output.err
    if code == 0 and typed.words[0] == "score":
        assert "100.0" in output.out, output


@pytest.mark.parametrize(
    "words",
    [("run", "aime24:64", "--num-trys", "3"), ("sweep", "nosuch", "--model", "m"), ("score", "flat.jsonl")],
    ids=str,
)
def test_a_line_that_is_wrong_would_be_seen(bench: Bench, words: tuple[str, ...]) -> None:
    (bench.folder / "flat.jsonl").write_text(lines({"response": "2"}))
    assert bench.try_(Typed("here", words)) == 2


def test_a_line_that_exceeds_its_servers_context_is_found(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    line = next(typed for typed in commands(PAGE) if "llmeval" in typed.words and context_of(typed) == 32768)
    bench.context = 32768
    assert bench.try_(Typed(line.where, (*line.words, "--max-tokens", "32768"))) != 0
    assert "--fit-context" in capsys.readouterr().err
    assert bench.try_(line) == 0
    assert "lowered to fit the context" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("jq") is None, reason="no jq")
def test_other_tools_files_are_merged_as_the_page_says(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    loops = [line for block in blocks(PAGE, "sh") for line in block.text.splitlines() if re.match("for ", line)]
    assert len(loops) == 1
    for number in range(2):
        run = bench.folder / f"result_seer_sparse/model/aime24_bs15_token_budget_B2048_start0/run_{number}"
        run.mkdir(parents=True)
        (run / "completions.jsonl").write_text(lines({"completion": r"\boxed{2}"}, {"completion": r"\boxed{9}"}))
    rows = bench.folder / "data/aime24/test.jsonl"
    rows.parent.mkdir(parents=True)
    rows.write_text(lines({"problem": "p", "answer": "2"}, {"problem": "q", "answer": "3"}))
    for line in loops:
        subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=bench.folder, check=True)
    words = "score seer_aime24.jsonl --response-key completion --answer-key answer --question-key problem"
    assert bench.call(words.split()) == 0
    output = capsys.readouterr().out
    assert ["50.0" in output, "2 × 2" in output] == [True, True]


WORDS = {
    "--samples": "num-tries n_samples n_sampling epochs repeats",
    "--concurrency": "parallel max_workers max-connections num_concurrent eval-batch-size",
    "--data": "data-path input_file",
    "--max-tokens": "max_new_tokens max_gen_toks tokens_to_generate",
    "--serve-option tp=VALUE": "tp-size tensor-parallel-size server_gpus",
    "--out": "output_file output_path output_dir log-dir",
}
"""Our option → names that it has in the tools of the page."""


def test_each_word_of_other_tools_is_answered_with_ours(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    for ours, theirs in WORDS.items():
        for word in theirs.split():
            assert bench.call(["run", "demo", f"--{word}", "3"]) == 2
            name = ours.removeprefix("--").replace("-", "_")
            assert re.search(f"[Uu]se {ours}|`{name}` here", capsys.readouterr().err), word
