"""Finding the program in a reply, by its text; no code is parsed.

question                                  program
a whole program, or a function of         the lines between the last two lines with three backticks, as its own code
LiveCodeBench                             does (lcb_runner/utils/extraction_utils.py, extract_code)
a function (HumanEval, MBPP)              the last fenced block that defines the function, else the last block; in a
                                          reply without fences, all of it, if it defines the function or begins
                                          with an indented line, as the body after the starter code does
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.answers.reasoning import final_part
from harness.extensions.answers.program.tests_of import QuestionTests

MAX_PROGRAM_CHARS = 400_000
"""Longest program; a longer one counts as no answer."""

FENCE = "```"
"""The mark of a line that begins or ends a block of code in Markdown."""


class ReplyProgram(NamedTuple):
    """The program in a reply. code: the program as it is run. start, end: the characters of the reply that hold it."""

    code: str
    start: int
    end: int


def program_of(text: str | None, tests: QuestionTests) -> ReplyProgram | None:
    """The program in the part of a reply after its reasoning; None if there is none."""
    part = final_part(text) if text else None
    if text is None or part is None:
        return None
    start, end = part
    blocks = _blocks(text, start, end)
    span: tuple[int, int] | None
    if tests.style == "checks":
        defining = [block for block in blocks if _defines(text[block[0] : block[1]], tests.function)]
        span = (defining or blocks)[-1] if blocks else None
        if span is None and (_continues(text[start:end], tests) or _defines(text[start:end], tests.function)):
            span = (start, end)
    else:
        span = _last_between_fences(text, start, end)
    if span is None or not text[span[0] : span[1]].strip() or span[1] - span[0] > MAX_PROGRAM_CHARS:
        return None
    return ReplyProgram(_join(text[span[0] : span[1]], tests), *span)


def _join(code: str, tests: QuestionTests) -> str:
    """The program to run: the question's starter code, then the reply's code.

    If the reply has only the body of the function, all starter code comes before it; if the reply defines the function
    itself, only what stands above that function in the starter code, such as imports and helpers.
    """
    if not tests.starter or tests.style != "checks":
        return code
    if not _defines(code, tests.function):
        return tests.starter + code
    starts = [
        match.start() for match in re.finditer(rf"^def {re.escape(tests.function)}\b", tests.starter, re.MULTILINE)
    ]
    return tests.starter[: starts[-1]] + "\n" + code if starts else code


def _defines(code: str, function: str) -> bool:
    """Whether the code defines the function at its top level."""
    return bool(function) and re.search(rf"^(async )?def {re.escape(function)}\b", code, re.MULTILINE) is not None


def _continues(code: str, tests: QuestionTests) -> bool:
    """Whether the text is the body of the starter code's function: its first line is indented."""
    first = next((line for line in code.splitlines() if line.strip()), "")
    return bool(tests.starter) and first[:1] in (" ", "\t")


def _last_between_fences(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return (start, end) of the text between the last two lines with a fence; None without two."""
    fences = [*re.finditer(rf"^.*{FENCE}.*\n?", text[start:end], re.MULTILINE)]
    return (start + fences[-2].end(), start + fences[-1].start() - 1) if len(fences) >= 2 else None


def _blocks(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return (start, end) of each block between lines that begin with a fence; the last may end with the reply."""
    fences = re.finditer(rf"^[^\S\n]*{FENCE}.*\n?", text[start:end], re.MULTILINE)
    borders = [(start + fence.start(), start + fence.end()) for fence in fences]
    pairs = zip(borders[::2], borders[1::2], strict=False)
    blocks = [(opened, max(opened, closed - 1)) for (_, opened), (closed, _) in pairs]
    return [*blocks, (borders[-1][1], end)] if len(borders) % 2 and borders[-1][1] < end else blocks
