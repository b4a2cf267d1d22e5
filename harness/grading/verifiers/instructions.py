"""Instructions that a program can check (IFEval, IFBench), by their authors' own package `ifbench`.

The reference is a JSON list of [name of the instruction, its arguments]. A reply follows a prompt if it follows each
of its instructions: strictly as it stands, loosely if any of eight readings of it does: with or without its first line,
its last line and its asterisks.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

from harness.core.records import Question

try:
    # Its authors' package holds the checks of IFBench and of IFEval. Imported here: a run asks nothing without it.
    _CHECKS: dict[str, Any] = importlib.import_module("ifbench.instructions_registry").INSTRUCTION_DICT
except ImportError as error:
    raise ImportError("checking instructions needs the package ifbench: `pip install ifbench`") from error


def followed_strictly(answer: str, question: Question) -> bool:
    """Whether the reply, as it stands, follows all instructions of the prompt."""
    return all(_followed(name, arguments, [answer], question) for name, arguments in _instructions(question))


def followed_loosely(answer: str, question: Question) -> bool:
    """Whether some reading of the reply follows each instruction; the reading may differ between instructions."""
    readings = _readings(answer)
    return all(_followed(name, arguments, readings, question) for name, arguments in _instructions(question))


def _instructions(question: Question) -> list[tuple[str, dict[str, Any]]]:
    return [(name, arguments) for name, arguments in json.loads(question.references[0])]


def _followed(name: str, arguments: dict[str, Any], readings: list[str], question: Question) -> bool:
    """Whether at least one of the `readings` of a reply follows the instruction of this name with these arguments."""
    check = _CHECKS[name](name)
    check.build_description(**arguments)
    if "prompt" in (check.get_instruction_args() or ()):
        # Such a check compares the reply with the prompt itself.
        prompt = question.messages[-1].content if question.messages else question.prompt
        check.build_description(prompt=prompt)
    return any(bool(reading.strip() and check.check_following(reading)) for reading in readings)


def _readings(answer: str) -> list[str]:
    lines = answer.split("\n")
    # Models like to add a line before and after their reply; as the authors' program, each is left out in turn.
    cut = [answer, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cut, *(text.replace("*", "") for text in cut)]
