"""Read a question's tests from a data row, in the format that the settings name.

    tests          a user's own: `tests` (a list of {input, output}, or of test code), `function`, `starter`, `solution`
    humaneval      HumanEval, HumanEval+: prompt, test (code with `check`), entry_point, canonical_solution
    mbpp           MBPP: test_list, test_setup_code, code    ·    MBPP+: test (code), code, prompt
    livecodebench  public_test_cases, private_test_cases, metadata (func_name), starter_code

Formats: openai/human-eval data/HumanEval.jsonl.gz; evalplus/evalplus (evalplus/data); google-research/mbpp;
LiveCodeBench lcb_runner/benchmarks/code_generation.py. What a program may use without importing it: testing_util.py.

LiveCodeBench's private tests are a pickled text, compressed with zlib and encoded in base64. A pickle is a list of
instructions that can import and call anything, so loading an untrusted one is unsafe. Here the instructions are listed
but not executed, and only the few that write a text are accepted.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from reasoning_programs.tests_of import (
    MAX_TESTS_BYTES,
    Case,
    ProgramLimits,
    QuestionTests,
    Style,
    reference_of,
    tests_of,
)
from reasoning_programs.text import from_json, visible

T = TypeVar("T")

MAX_CASES = 10_000
"""Maximum number of tests per question."""


ReadRow = tuple[str, QuestionTests]
"""The text of a row's question, and its tests."""


class _Metadata(msgspec.Struct):
    func_name: str | None = None


_LIVECODEBENCH_STAR = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json "
    "builtins typing"
)
"""Modules whose names LiveCodeBench imports."""
_LIVECODEBENCH_HEADER = "".join(f"from {name} import *\n" for name in _LIVECODEBENCH_STAR.split()) + "".join(
    f"import {name}\n" for name in _LIVECODEBENCH_STAR.split() if name not in ("builtins", "typing")
)
"""The names that LiveCodeBench imports for every program (testing_util.py, `import_string`)."""

_WITH_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose your code within "
    "delimiters."
)
_WITHOUT_STARTER = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly test on the sample "
    "inputs). Enclose your code within delimiters as follows. Ensure that when the python program runs, it reads the "
    "inputs, runs the algorithm and writes output to STDOUT."
)
"""LiveCodeBench's own instructions to a model, with and without starter code."""


def read_row(settings: Mapping[str, Any], text: str, row: Mapping[str, Any], cache: Path) -> tuple[str, str]:
    """Return (text of the question, its tests as the reference) of a data row.

    settings: `format` (see the module), `seconds` of CPU time per test, and `memory_mb`. text: the cell in the question
    column. cache: the folder for long tests. Raises `ValueError` with the end of a sentence whose subject is the row
    ("has no list of tests …").
    """
    limits = ProgramLimits(seconds=settings["seconds"], memory_mb=settings["memory_mb"])
    question, tests = _FORMATS[settings["format"]](text, row)
    return question, reference_of(msgspec.structs.replace(tests, limits=limits), cache)


def read_reference(text: str, cache: Path) -> str:
    """Return the reference for the tests in a text that a user writes. Raises `ValueError`.

    text: JSON of a row of `format: tests` or of a list of tests, or a stored reference. cache: the folder for long
    tests.
    """
    try:
        value: Any = from_json(text)
    except ValueError as error:
        raise ValueError(f"a program's tests must be JSON, such as {_WRITTEN}: {error}") from error
    if isinstance(value, dict) and "style" in value:
        return reference_of(tests_of(text, cache), cache)
    row = {"tests": value} if isinstance(value, list) else value
    if not isinstance(row, dict):
        raise ValueError(f"a program's tests must be a JSON list or mapping, such as {_WRITTEN}")
    try:
        return reference_of(_tests("", row)[1], cache)
    except ValueError as error:
        raise ValueError(f"the reference {error}") from error


_WRITTEN = '[{"input": "1 2", "output": "3"}]'
"""An example of tests, for messages."""


def _humaneval(text: str, row: Mapping[str, Any]) -> ReadRow:
    """The question and tests in a row of HumanEval."""
    function, test = _name(row, "entry_point"), _text(row, "test")
    tests = QuestionTests(
        style="checks",
        setup=f"{text}    pass\n",  # the prompt ends in a docstring; its helpers are the benchmark's own
        checks=(f"{test}\n\ncheck({function})\n",),
        function=function,
        starter=text,
        solution=text + _text(row, "canonical_solution", ""),
    )
    return text, tests


_CALLED = re.compile(
    r"^\s*assert\s+(?:not\s+)?[(\s]*(?:(?:\w+\.)*(?:set|sorted|abs|isclose|tuple|list|str|len|round)\s*\(\s*)*"
    r"([A-Za-z_]\w*)\s*\("
)
"""An MBPP test; the group is the first function of the program that it calls, inside calls such as `set(` or
`sorted(`."""


def _mbpp(text: str, row: Mapping[str, Any]) -> ReadRow:
    """The question and tests in a row of MBPP or MBPP+. Raises `ValueError`."""
    solution, listed = _text(row, "code", ""), row.get("test_list")
    if not (isinstance(listed, list) and listed and all(isinstance(test, str) for test in listed)):
        raise ValueError(f"must have a list of tests in `test_list`, found {visible(repr(listed))}")
    name = _CALLED.search(str(listed[0]))
    if name is None:
        raise ValueError(f"begins with a test that does not call a function: {visible(str(listed[0]))}")
    plus = _text(row, "test", "")
    imports = row.get("test_imports") or []
    setup = "\n".join([*map(str, imports), _text(row, "test_setup_code", "")])
    checks = (plus,) if plus else tuple(listed)
    question = f"{text.strip()}\nYour code should satisfy these tests:\n\n" + "\n".join(listed)
    return question, QuestionTests(style="checks", setup=setup, checks=checks, function=name[1], solution=solution)


def _livecodebench(text: str, row: Mapping[str, Any]) -> ReadRow:
    """The question and tests in a row of LiveCodeBench. Raises `ValueError`."""
    function = _decode(_text(row, "metadata", "{}"), _Metadata, "metadata").func_name or ""
    starter = _text(row, "starter_code", "")
    cases = []
    for column in ("public_test_cases", "private_test_cases"):
        held = _text(row, column)
        try:
            if held.lstrip()[:1] not in ("[", ""):  # neither JSON nor empty, so the tests are packed
                held = unpacked_text(held)
        except ValueError as error:
            raise ValueError(f"has a column {column!r} that {error}") from error
        cases += _decode(held, list[Case], column)
    if not 0 < len(cases) <= MAX_CASES:
        raise ValueError(f"has {len(cases)} tests; expected 1 to {MAX_CASES}")
    question = (
        f"### Question:\n{text}\n\n### Format: {_WITH_STARTER if starter else _WITHOUT_STARTER}\n"
        f"```python\n{starter or '# YOUR CODE HERE'}\n```\n\n### Answer: (use the provided format with backticks)\n\n"
    )
    style: Style = "calls" if function else "stdin"
    return question, QuestionTests(style=style, cases=tuple(cases), function=function, header=_LIVECODEBENCH_HEADER)


def _tests(text: str, row: Mapping[str, Any]) -> ReadRow:
    """The question and tests in a row of a user-defined benchmark. Raises `ValueError`."""
    listed, function = row.get("tests"), _text(row, "function", "")
    starter, solution, setup = (_text(row, column, "") for column in ("starter", "solution", "setup"))
    if not (isinstance(listed, list) and 0 < len(listed) <= MAX_CASES):
        raise ValueError(f"must have a list of 1 to {MAX_CASES} tests in `tests`, found {visible(repr(listed))}")
    if all(isinstance(test, str) for test in listed):
        if not function:
            raise ValueError("has test code but no `function` for the program to define")
        tests = QuestionTests(style="checks", checks=tuple(listed), function=function)
    else:
        try:
            cases = msgspec.convert(listed, tuple[Case, ...])
        except msgspec.ValidationError as error:
            raise ValueError(f"has tests that are neither code nor {{input, output}} pairs: {error}") from error
        tests = QuestionTests(style="calls" if function else "stdin", cases=cases, function=function)
    return text, msgspec.structs.replace(tests, starter=starter, solution=solution, setup=setup)


_FORMATS: dict[str, Callable[[str, Mapping[str, Any]], ReadRow]] = {
    "tests": _tests,
    "humaneval": _humaneval,
    "mbpp": _mbpp,
    "livecodebench": _livecodebench,
}
"""Format → the function that reads its rows."""


def _text(row: Mapping[str, Any], column: str, default: str | None = None) -> str:
    """The text in a column; `default` if the column is missing. Raises `ValueError`."""
    value = row.get(column)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise ValueError(f"must have text in `{column}`, found {visible(repr(value))}")
    return value


def _name(row: Mapping[str, Any], column: str) -> str:
    """The name of a function in a column. Raises `ValueError`."""
    value = _text(row, column)
    if not re.fullmatch(r"[A-Za-z_]\w*", value):
        raise ValueError(f"must have a function name in `{column}`, found {visible(value)}")
    return value


def _decode(text: str, kind: type[T], column: str) -> T:
    """The value of this type in a column's JSON. Raises `ValueError`."""
    try:
        return from_json(text, kind)
    except ValueError as error:
        raise ValueError(f"has a column {column!r} that cannot be read: {error}") from error


# ---- packed tests


_TEXTS = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
"""Instructions that write a text."""
_MEMO = {"MEMOIZE", "BINPUT", "LONG_BINPUT"}
"""Instructions that only memoize the text."""


def unpacked_text(packed: str) -> str:
    """The text in a cell of packed tests.

    Raises `ValueError` if the cell is not the pickle of exactly one text; the error is the end of a sentence whose
    subject is the cell ("is cut off …").
    """
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(packed, validate=True), MAX_TESTS_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise ValueError(f"is neither JSON nor a base64-encoded zlib stream: {error}") from error
    if not reader.eof:
        raise ValueError(f"is truncated, or unpacks to more than {MAX_TESTS_BYTES} bytes")
    return pickled_text(data)


def pickled_text(data: bytes) -> str:
    """The text in a pickle. Raises `ValueError` if the pickle is not of exactly one text."""
    text = None
    try:
        for instruction, argument, offset in pickletools.genops(data):
            name = instruction.name
            if name in _TEXTS and text is None:
                text = str(argument)
            elif name == "STOP" and text is not None and offset == len(data) - 1:
                return text
            elif not (name in ("PROTO", "FRAME") or (name in _MEMO and text is not None)):
                raise ValueError(f"is a pickle that contains more than text (instruction {name} at byte {offset})")
    except ValueError as error:
        if str(error).startswith("is a pickle"):
            raise
    raise ValueError("is a pickle that is truncated or corrupted")
