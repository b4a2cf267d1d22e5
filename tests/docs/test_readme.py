"""README's commands are accepted as they stand; tests/system/test_python_api.py runs its Python."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from harness.cli.demo import next_lines, program
from server_launchers import isolated
from tests.docs.pages import ROOT, Typed, commands
from tests.docs.trying import ROW, Bench

PAGE = ROOT / "README.md"


@pytest.mark.parametrize("typed", commands(PAGE), ids=str)
def test_each_line_is_accepted(bench: Bench, typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    (bench.folder / "my_questions.jsonl").write_text(json.dumps(ROW) + "\n")
    (bench.folder / "outputs.jsonl").write_text(json.dumps({"gen": r"\boxed{2}", "answer": 2}) + "\n")
    code = bench.try_(typed)
    assert code in (0, -1), capsys.readouterr().err


def test_make_targets_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = set(re.findall(r"^(?:\$ )?make ([a-z-]+)", PAGE.read_text("utf-8"), re.MULTILINE))
    assert {"demo", "test"} <= named
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in named)


def test_extras_that_are_named_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    named = {one for some in re.findall(r"'\.\[([a-z,-]+)\]'", PAGE.read_text("utf-8")) for one in some.split(",")}
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
    assert program() == str(tmp_path / "venv/harness")
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    assert program() == str(tmp_path / "venv/harness"), "another harness is on the path"
    monkeypatch.setenv("PATH", str(tmp_path / "venv"))
    assert program() == "harness"
