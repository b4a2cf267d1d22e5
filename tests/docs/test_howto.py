"""Each command of the how-to pages and of README is accepted, those of other pages are parsed; the recipes read a real
run, and the tutorials run with a real model (`make test-docs`) and print what stands there.

For: harness.cli.demo.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.benchmarks.shards import Shard
from harness.cli.demo import next_lines, program
from harness.testing import FakeServer, Request, serving
from server_launchers import isolated
from server_launchers.lifecycle.launch import RunningServer
from tests.docs.pages import DOCS, ROOT, Typed, blocks, commands, commands_of
from tests.docs.test_links import missing
from tests.docs.trying import ROW, Bench
from tests.system.command import environment, harness

SCALING = DOCS / "scaling.md"
PAGES = [DOCS / name for name in ("ci.md", "exports.md", "gpu-nodes.md", "running.md")]
OTHERS = [
    *(page for page in sorted(DOCS.glob("*.md")) if page not in PAGES and page.name != "moving.md"),
    *sorted((DOCS / "tutorials").glob("*.md")),
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
def test_the_commands_of_the_page_work_and_print_what_stands_there(
    page: Path, tmp_path: Path, whole_smollm2: Path
) -> None:
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
