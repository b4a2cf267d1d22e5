"""The settings of datasets/templates/training beside the argument classes of the published trainers.

The wheels are fetched and read, not installed and not imported: their classes are lists of annotated fields.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.conftest import CHECKOUT

TRANSFORMERS = "transformers==5.23.0"

TRAINERS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "sft.yaml": (
        ("llamafactory==0.9.5", TRANSFORMERS),
        (
            *("ModelArguments", "DataArguments", "FinetuningArguments", "GeneratingArguments"),
            *("TrainingArguments", "Seq2SeqTrainingArguments"),
        ),
    ),
    "grpo.yaml": (
        ("trl==1.16.0", TRANSFORMERS),
        ("GRPOScriptArguments", "GRPOConfig", "ModelConfig", "DatasetMixtureConfig"),
    ),
}
"""Settings file → (the packages whose classes parse it, these classes). open-r1 is on no index."""


class Arguments(NamedTuple):
    """One class of arguments. fields: annotated in its own body. bases: names of the classes that it extends."""

    fields: set[str]
    bases: list[str]


def argument_classes(wheels: Sequence[Path]) -> dict[str, list[Arguments]]:
    """Name → the classes of that name in the modules of arguments of these wheels."""
    by_name: dict[str, list[Arguments]] = defaultdict(list)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".py") and any(part in name for part in ("args", "config.py", "scripts/")):
                    for node in ast.walk(ast.parse(archive.read(name))):
                        if isinstance(node, ast.ClassDef):
                            by_name[node.name].append(_arguments(node))
    return by_name


def _arguments(node: ast.ClassDef) -> Arguments:
    fields = {
        line.target.id for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }
    return Arguments(fields, [base.id for base in node.bases if isinstance(base, ast.Name)])


def fields_of(classes: Mapping[str, Sequence[Arguments]], name: str, below: frozenset[str] = frozenset()) -> set[str]:
    """The fields of a class and of all that it extends; a name that an own base repeats is read once."""
    if name in below:
        return set()
    entries = classes.get(name, ())
    inherited = (fields_of(classes, base, below | {name}) for entry in entries for base in entry.bases)
    return set().union(*(entry.fields for entry in entries), *inherited)


@pytest.mark.parametrize("name", TRAINERS)
def test_each_setting_is_a_field_of_the_published_argument_classes(name: str, tmp_path: Path) -> None:
    packages, classes = TRAINERS[name]
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path), *packages]
    subprocess.run(words, check=True, timeout=600)
    published = argument_classes(sorted(tmp_path.glob("*.whl")))
    fields = set().union(*(fields_of(published, of) for of in classes))
    assert all(fields_of(published, of) for of in classes)
    settings = yaml.safe_load((CHECKOUT / "datasets" / "templates" / "training" / name).read_text("utf-8"))
    assert settings.keys() - fields == set()
    assert "learning_rat" not in fields
