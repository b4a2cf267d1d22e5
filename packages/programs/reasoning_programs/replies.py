"""The program in a reply: the last code block that is a Python program.

Blocks follow Markdown (CommonMark 0.31, section 4.5), including list items and quotes; blocks that name another
language are considered last. If all fences are paired, the last block is the one that LiveCodeBench uses
(lcb_runner/utils/extraction_utils.py, extract_code). If there is no such program, or if a later fence is unpaired or
has text on its line, the last statements outside blocks that form a program are used.

A program parses and calls or defines something, or defines the function that the question asks for. Nothing is run.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reasoning_programs.tests_of import QuestionTests

MAX_PROGRAM_CHARS = 400_000
"""Maximum length of a program, in characters; a longer one counts as no answer."""

MAX_PARSED_CHARS = 100_000
"""Maximum length of a text that is parsed, in characters. Its syntax tree takes up to 100 MB and a second."""

_BEFORE = r"(?>(?:[ \t]*+(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t])))*)[ \t]*+"
"""The list and quote marks at the beginning of a line, and its indentation."""

_MARK = r"(?:`{3,}+|~{3,}+)"
_FENCE = re.compile(rf"(?m)^(?P<before>{_BEFORE})(?P<mark>{_MARK})(?P<info>[^`\n]*)$\n?")
"""A line that begins or ends a block of code."""

_ANY_FENCE = re.compile(rf"{_MARK}(?:[ \t]*(?P<info>[\w+#.-]*)[ \t]*(?:\n|\Z)|(?i:python3?|py)\b)?")
_GLUED = re.compile(rf"(?m)^(?!{_BEFORE}{_MARK}).*?{_MARK}[\w+#.-]*[ \t]*$")
"""A line with text that ends with a fence."""

_PYTHON = re.compile(r"\W*(?:(?i:python|py|sage)|\Z)")
"""The info string of a block that may be Python: one of Python's names, or none."""

_QUOTED = re.compile(r"(?m)^ {0,3}> ?")
_BODY = re.compile(r"(?:[ \t]*\n)*(?:[ \t].*\n?|\n)*")
"""The lines of a reply that begins with an indented line, up to the first line that is not indented."""

MAX_INDENT = 3
"""A closing fence may be indented by up to this many spaces more than its opening fence."""

_STATEMENT = re.compile(
    r"(?m)^(?=\S)(?>(?:@.*\n)*)(?:\S.*)?(?>(?:\n(?:[ \t)\]}#].*|(?:else|elif|except|finally)\b.*|(?=\n|\Z)))*)"
)
"""A line and its continuation lines: indented lines, empty lines, closing brackets, comments, further branches."""


class ReplyProgram(NamedTuple):
    """The program in a reply. code: the program as it is run. start, end: the range of characters in the reply that
    contains it."""

    code: str
    start: int
    end: int


class _Block(NamedTuple):
    """A code block. code: its text without surrounding list and quote marks. info: the words after its fence."""

    code: str
    start: int
    end: int
    info: str = ""


def program_of(reply: str | None, tests: QuestionTests) -> ReplyProgram | None:
    """The program in a reply; None if there is none. reply: its text after the reasoning; None if it has none."""
    if not reply:
        return None
    blocks = list(_fenced(reply))
    if tests.style == "checks" and not blocks and _continues(reply, tests):
        blocks = [_Block(reply[:end], 0, end) for end in (_BODY.match(reply).end(), len(reply))]  # type: ignore[union-attr]
    program = _last_program((block for block in blocks if _PYTHON.match(block.info)), tests)
    closed = [block for block in blocks if block.end < len(reply) and _GLUED.search(block.code) is None]
    start = 0 if program is None else program.end
    # If an unpaired fence, or one with text on its line, follows the program, there may be a better program.
    if program is None or blocks[-1:] != closed[-1:] or _GLUED.search(reply, start):
        program = _last_program(_outside(reply, closed, start), tests) or program
    # A block that does not parse is run too, because the sandbox may have a newer Python.
    program = program or _last_program(blocks, tests) or next((b for b in blocks[::-1] if b.code.strip()), None)
    if program is None or len(program.code) > MAX_PROGRAM_CHARS:
        return None
    return ReplyProgram(_join(program.code, tests), program.start, program.end)


def _last_program(blocks: Iterable[_Block], tests: QuestionTests) -> _Block | None:
    """The last of `blocks` that is a program for the question; None if there is none."""
    function = tests.function if tests.style == "checks" else ""
    return next((block for block in [*blocks][::-1] if _is_program(_join(block.code, tests), function)), None)


def _join(code: str, tests: QuestionTests) -> str:
    """The program to run: the question's starter code, then the reply's code.

    If the reply contains only the body of the function, all starter code precedes it; if the reply defines the function
    itself, only the starter code above that function does, such as imports and helpers.
    """
    if not tests.starter or tests.style != "checks":
        return code
    if not _defines(code, tests.function):
        return tests.starter + code if _continues(code, tests) else code
    *_, own = re.split(rf"(?m)^(?=def {re.escape(tests.function)}\b)", tests.starter)
    return tests.starter.removesuffix(own) + "\n" + code if own != tests.starter else code


def _defines(code: str, function: str) -> bool:
    """Whether the code defines the function at its top level."""
    return bool(function) and re.search(rf"^(async )?def {re.escape(function)}\b", code, re.MULTILINE) is not None


def _continues(code: str, tests: QuestionTests) -> bool:
    """Whether the text is the body of the starter code's function: its first line is indented."""
    first = next((line for line in code.splitlines() if line.strip()), "")
    return bool(tests.starter) and first[:1] in (" ", "\t")


def _statements(code: str) -> list[ast.stmt] | None:
    """The statements of a program; None if it does not parse or is too long."""
    # Warnings about strings such as "\\d"; a temporary filter would not be thread-safe.
    warnings.filterwarnings("ignore", module="a reply")
    try:
        return ast.parse(code, "a reply").body if len(code) <= MAX_PARSED_CHARS else None
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _is_program(code: str, function: str = "") -> bool:
    """Whether the code parses and defines the function; without a function, whether it calls or defines anything."""
    statements = _statements(code)
    if statements is None or function:
        return statements is not None and _defines(code, function)
    acts = (ast.Call, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(node, acts) for statement in statements for node in ast.walk(statement))


def _fenced(reply: str) -> Iterator[_Block]:
    """Yield the blocks between Markdown fences; the last may end with the reply."""
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(reply):
        if opening is None:
            opening = fence
        elif (
            fence["mark"].startswith(opening["mark"])
            and not fence["info"].strip()
            and len(fence["before"]) <= len(opening["before"]) + MAX_INDENT
        ):
            yield _block(reply, opening, max(opening.end(), fence.start() - 1))
            opening = None
    if opening is not None:
        yield _block(reply, opening, len(reply))


def _block(reply: str, opening: re.Match[str], end: int) -> _Block:
    """The block from a fence to `end`, without the quote marks and indentation that it shares with its fence."""
    before, start = opening["before"], opening.end()
    code = re.sub(rf"(?m)^(?:[ \t]*> ?){{0,{before.count('>')}}}", "", reply[start:end])
    indents = [len(line) - len(line.lstrip()) for line in code.split("\n") if line.strip()]
    width = min([len(re.sub(r".*> ?", "", before)), *indents])
    code = re.sub(rf"(?m)^[ \t]{{0,{width}}}", "", code)
    return _Block(code, start, end, opening["info"])


def _outside(reply: str, closed: list[_Block], start: int) -> Iterator[_Block]:
    """Yield the runs of statements of reply[start:] outside of closed blocks."""
    first = max(start, len(reply) - MAX_PARSED_CHARS)
    closed = [block for block in closed if block.start > first]
    ends = [*(block.start for block in closed), len(reply)]
    for start, end in zip([first, *(block.end for block in closed)], ends, strict=True):
        info = ""
        for fence in (*_ANY_FENCE.finditer(reply, start, end), None):
            if _PYTHON.match(info) is not None:
                yield from _runs(reply, start, end if fence is None else fence.start())
            if fence is not None:
                start, info = fence.end(), fence["info"] or ""


def _runs(reply: str, start: int, end: int) -> Iterator[_Block]:
    """Yield the runs of statements among the lines of reply[start:end], and the indented code below a line."""
    code = textwrap.dedent(_QUOTED.sub("", reply[start:end]))
    shift = start if code == reply[start:end] else None
    first: int | None = None
    for line in (*_STATEMENT.finditer(code), None):
        if line is not None and _is_code(line.group()):
            first = line.start() if first is None else first
            last = line.end()
            continue
        if first is not None:
            yield _Block(code[first:last], *((start, end) if shift is None else (shift + first, shift + last)))
        if line is not None and (indented := line.group().partition("\n\n")[2]):
            yield _Block(textwrap.dedent(indented), start, end)
        first = None


def _is_code(line: str) -> bool:
    """Whether a line, with its continuation lines, is a statement: neither a lone value, such as a word, nor `x: y`."""
    statements = _statements(line)
    return statements is not None and not any(
        (isinstance(statement, ast.Expr) and not any(isinstance(node, ast.Call) for node in ast.walk(statement)))
        or (isinstance(statement, ast.AnnAssign) and statement.value is None)
        for statement in statements
    )
