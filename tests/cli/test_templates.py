"""Templates of settings, and the defaults of the environment.

For: harness.cli.flags.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import rewards as harness_rewards
from harness.benchmarks import catalog
from tests.conftest import CHECKOUT
from tests.system.command import harness

TEMPLATES = CHECKOUT / "datasets" / "templates"
SWEEPS = ("checkpoint", "hosted", "comparison", "suite")
FIELDS = json.loads((Path(__file__).parents[1] / "exports" / "trainer_fields.json").read_text("utf-8"))
"""Settings file → the fields that its trainer publishes, with their types, as its argument classes declare them."""
PLAIN = {"bool": bool, "int": int, "float": (int, float), "str": str, "list": list}


def unfit(name: str, settings: dict[str, Any]) -> list[str]:
    """The settings that the trainer of this file does not know, or would read as another type."""
    fields = FIELDS[name]["fields"]

    def fits(kind: str, value: Any) -> bool:
        return isinstance(value, PLAIN.get(kind, object)) and not (isinstance(value, bool) and kind in ("int", "float"))

    return [key for key, value in settings.items() if key not in fields or not fits(fields[key], value)]


@pytest.mark.parametrize("name", FIELDS)
def test_each_setting_of_training_is_one_that_its_trainer_publishes(name: str) -> None:
    settings = yaml.safe_load(((TEMPLATES / "training") / name).read_text("utf-8"))
    assert unfit(name, settings) == []
    assert unfit(name, {**settings, "learning_rat": 1e-6}) == ["learning_rat"]
    assert unfit(name, {**settings, "bf16": "yes", "learning_rate": "1e-6"}) == ["learning_rate", "bf16"]


def test_training_gets_data_settings_rewards_and_lines_for_one_node_and_several(tmp_path: Path) -> None:
    folder = TEMPLATES / "training"
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
    assert "\nharness sweep checkpoints.yaml\n" in lines


def open_r1_names(folder: Path) -> set[str]:
    """open-r1's names of the rewards that the script replaces by ours, each of which we have."""
    functions = set(re.findall(r'"(\w+_reward)"', (folder / "open_r1_grpo.py").read_text("utf-8")))
    assert all(callable(getattr(harness_rewards, name)) for name in functions)
    return {name.removesuffix("_reward") for name in functions}


@pytest.mark.parametrize("kind", SWEEPS)
def test_each_template_is_a_sweep_that_can_be_planned(tmp_path: Path, kind: str) -> None:
    path = Path(shutil.copy(TEMPLATES / f"{kind}.yaml", tmp_path / "run.yaml"))
    content = yaml.safe_load(path.read_text())
    for name in content.get("benchmarks", ()):
        catalog.load(name.partition(":")[0])
    # Its benchmarks are not on this machine: those of the demo in their place.
    changed = re.sub(r"(?m)^benchmarks: .*$", "benchmarks: [demo:2]", path.read_text())
    path.write_text(changed if "benchmarks:" in changed else changed + "benchmarks: [demo:2]\n")
    done = harness(tmp_path, "sweep", "run.yaml", "--dry-run", extra={"DEEPSEEK_API_KEY": "sk-none"})
    assert done.code == 0, done.err
    assert ("vllm serve /path/to/checkpoint" in done.out) == (kind != "hosted")
    assert done.out.count("+demo") == (2 if kind == "comparison" else 1)
