"""`harness init` and the defaults of the environment.

For: harness.cli.flags.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import rewards as harness_rewards
from harness.benchmarks import catalogue
from harness.cli import init
from tests.faults.server import FaultServer, completion, models
from tests.system.command import argv, environment, harness

SWEEPS = [kind for kind in init.KINDS if kind not in (init.QUESTIONS, init.TRAINING)]
FIELDS = json.loads((Path(__file__).parents[1] / "exports" / "trainer_fields.json").read_text("utf-8"))
"""Settings file → the fields that its trainer publishes, with their types, as its argument classes declare them."""
PLAIN = {"bool": bool, "int": int, "float": (int, float), "str": str, "list": list}


def test_a_table_of_questions_is_asked_as_it_stands(tmp_path: Path) -> None:
    done = harness(tmp_path, "init", "exam", "--for", "questions")
    assert done.code == 0, done.err
    with FaultServer(lambda r: [models("m")] if r.method == "GET" else completion("42")) as server:
        (line,) = [line for line in done.out.splitlines() if " run " in line]
        words = line.partition("#")[0].replace("http://127.0.0.1:8000", server.base_url).split()[1:]
        ran = harness(tmp_path, *words, "--no-canary")
    assert ran.code == 0, ran.err
    assert harness(tmp_path, *done.out.splitlines()[-1].split()[1:]).code == 0
    assert harness(tmp_path, "init", "exam", "--for", "questions").code == 3, "it overwrites nothing"


def unfit(name: str, settings: dict[str, Any]) -> list[str]:
    """The settings that the trainer of this file does not know, or would read as another type."""
    fields = FIELDS[name]["fields"]
    return [
        key
        for key, value in settings.items()
        if key not in fields
        or not isinstance(value, PLAIN.get(fields[key], object))
        or (isinstance(value, bool) and fields[key] in ("int", "float"))
    ]


@pytest.mark.parametrize("name", FIELDS)
def test_each_setting_of_training_is_one_that_its_trainer_publishes(name: str) -> None:
    settings = yaml.safe_load((init.template("training") / name).read_text("utf-8"))
    assert unfit(name, settings) == []
    assert unfit(name, {**settings, "learning_rat": 1e-6}) == ["learning_rat"]
    assert unfit(name, {**settings, "bf16": "yes", "learning_rate": "1e-6"}) == ["learning_rate", "bf16"]


def test_training_gets_data_settings_rewards_and_lines_for_one_node_and_several(tmp_path: Path) -> None:
    done = harness(tmp_path, "init", "train", "--for", "training")
    assert done.code == 0, done.err
    folder = tmp_path / "train"
    assert {path.name for path in folder.iterdir()} == set(init.template_files("training"))
    lines = (folder / "README.md").read_text("utf-8")
    for name in FIELDS:
        assert len(re.findall(rf"^[^#\n].*{name}", lines, re.MULTILINE)) == 3, "one node, and each of two"
    for settings in (yaml.safe_load((folder / name).read_text("utf-8")) for name in FIELDS):
        for path in settings.get("reward_funcs", ()):
            assert callable(getattr(harness_rewards, path.rpartition(".")[2], None)) or path in open_r1_names(folder)
    # The file of its checkpoints is one that the sweep takes, for the folder that the trainer writes.
    content = lines.partition("<<'END'\n")[2].partition("END\n")[0]
    (tmp_path / "checkpoints.yaml").write_text(content, encoding="utf-8")
    saved = yaml.safe_load((folder / "sft.yaml").read_text("utf-8"))["output_dir"]
    (tmp_path / saved / "checkpoint-500").mkdir(parents=True)
    planned = harness(tmp_path, "sweep", "checkpoints.yaml", "--dry-run")
    assert "checkpoint-500" in planned.out, planned.err
    assert "harness sweep checkpoints.yaml --follow " in lines
    again = harness(tmp_path, "init", "train", "--for", "training")
    assert (again.code, "exists already" in again.err) == (3, True)


def open_r1_names(folder: Path) -> set[str]:
    """open-r1's names of the rewards that the script replaces by ours, each of which we have."""
    functions = set(re.findall(r'"(\w+_reward)"', (folder / "open_r1_grpo.py").read_text("utf-8")))
    assert all(callable(getattr(harness_rewards, name)) for name in functions)
    return {name.removesuffix("_reward") for name in functions}


@pytest.mark.parametrize("kind", SWEEPS)
def test_each_template_is_a_sweep_that_can_be_planned(tmp_path: Path, kind: str) -> None:
    made = harness(tmp_path, "init", "mine", "--for", kind)
    assert made.code == 0, made.err
    assert "harness sweep mine/run.yaml --dry-run" in made.out
    path = tmp_path / "mine" / "run.yaml"
    content = yaml.safe_load(path.read_text())
    for name in content.get("benchmarks", ()):
        catalogue.load(name.partition(":")[0])
    # Its benchmarks are not on this machine: those of the demo in their place.
    changed = re.sub(r"(?m)^benchmarks: .*$", "benchmarks: [demo:2]", path.read_text())
    path.write_text(changed if "benchmarks:" in changed else changed + "benchmarks: [demo:2]\n")
    done = harness(tmp_path, "sweep", "mine/run.yaml", "--dry-run", extra={"DEEPSEEK_API_KEY": "sk-none"})
    assert done.code == 0, done.err
    assert ("vllm serve /path/to/checkpoint" in done.out) == (kind != "hosted")
    assert done.out.count("+demo") == (2 if kind == "comparison" else 1)


def test_a_full_disk_leaves_no_half_file_that_would_stop_the_next_call(tmp_path: Path) -> None:
    full = subprocess.run(
        argv("init", "mine"),
        cwd=tmp_path,
        env=environment(tmp_path),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        capture_output=True,
        check=False,
    )
    assert full.returncode == 3, full.stderr
    assert list((tmp_path / "mine").iterdir()) == []
    assert harness(tmp_path, "init", "mine").code == 0
    assert (tmp_path / "mine" / "run.yaml").read_bytes() == init.template("checkpoint").read_bytes()


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("mine")
    done = harness(tmp_path, "init", ".")
    assert (done.code, "exists already" in done.err) == (3, True)
    assert (tmp_path / "run.yaml").read_text() == "mine"


def identity(tmp_path: Path, out: str) -> Any:
    return json.loads((tmp_path / out / "manifest.json").read_bytes())["benchmarks"]["demo"]["identity"]


def test_the_environment_gives_defaults_that_are_said_and_leave_the_identity_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.env").write_text("# defaults\nexport HARNESS_RUN_TEMPERATURE=0.3\nHARNESS_RUN_LIMIT='2'\n")
    with FaultServer(lambda r: [models("m")] if r.method == "GET" else completion("4")) as server:
        words = ("run", "demo:1", "--base-url", server.base_url, "--no-canary")
        typed = harness(tmp_path, *words, "--temperature", "0.3", "--limit", "2", "--out", "typed")
        assert (typed.code, "from the environment" in typed.err) == (0, False)
        extra = {"HARNESS_RUN_LIMIT": "1", "HARNESS_RUN_TEMPERATURE": "0.9"}
        taken = harness(tmp_path, *words, "--limit", "2", "--temperature", "0.3", "--out", "over", extra=extra)
        assert "from the environment" not in taken.err
        read = harness(tmp_path, *words, "--env-file", "mine.env", "--out", "read")
        assert "from the environment: --temperature (HARNESS_RUN_TEMPERATURE)" in read.err
        assert "2 of 2 samples" in read.err
        assert identity(tmp_path, "typed") == identity(tmp_path, "read") == identity(tmp_path, "over")
        cooler = harness(
            tmp_path,
            *words,
            "--env-file",
            "mine.env",
            "--out",
            "cool",
            extra=extra,
        )
        assert "1 of 1 sample" in cooler.err, "the environment goes before the file"
        assert identity(tmp_path, "cool") != identity(tmp_path, "typed")


def test_a_variable_or_a_line_that_sets_nothing_is_refused(tmp_path: Path) -> None:
    done = harness(tmp_path, "run", "demo", extra={"HARNESS_RUN_TEMPERATUR": "1"})
    assert (done.code, "HARNESS_RUN_TEMPERATUR sets no option" in done.err) == (2, True)
    assert "HARNESS_RUN_TEMPERATURE" in done.err
    (tmp_path / "bad.env").write_text("A=1\nsk-canary 5\n")
    done = harness(tmp_path, "run", "demo", "--env-file", "bad.env")
    assert (done.code, "bad.env:2: expected NAME=VALUE" in done.err) == (2, True)
    assert "canary" not in done.err


def test_a_folder_that_cannot_be_written_is_answered_with_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a user who may not write there: the tests may run as root, who may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK or Path(path).resolve() != tmp_path)
    for given in (".", "mine/deep"):
        done = harness(tmp_path, "init", given)
        assert done.code == 3
        assert done.err.rstrip().endswith("is not writable: give another folder"), done.err
    assert list(tmp_path.glob("*.yaml")) == []


def test_init_without_a_folder_says_what_stands_there(tmp_path: Path) -> None:
    done = harness(tmp_path, "init")
    assert done.code == 2
    assert done.err.endswith("Error: Missing argument 'DIR'. For example: `harness init mine`\n")
