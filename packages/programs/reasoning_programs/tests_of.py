"""A question's tests, which are its reference answer: write, read and show them.

A reference is the JSON of a `QuestionTests`. Long tests (megabytes per question in LiveCodeBench) are stored once, in
a folder of the caller's (`cache`), under their checksum; the reference then contains the checksum instead (`stored`),
so that what stores references stays small. If the folder loses them, reading the data again restores them.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal

import msgspec

from reasoning_programs.errors import UnavailableError
from reasoning_programs.text import count_noun, from_json, to_json

MAX_INLINE_CHARS = 40_000
"""Maximum size of tests that are stored in the reference itself, as JSON."""

MAX_TESTS_BYTES = 512 * 1024 * 1024
"""Maximum unpacked size of a question's tests."""

Style = Literal["stdin", "calls", "checks"]
"""How a program is tested. stdin: it is a whole program, whose output is compared · calls: the results of one of its
functions are compared · checks: test code runs on it."""


_STYLES = {"stdin": "input and output", "calls": "function calls", "checks": "test code"}
"""Style → its human-readable name."""

MAX_SHOWN_CHARS = 300
"""Maximum length of a test as shown; a longer test is truncated."""


class Case(msgspec.Struct, frozen=True):
    """A test by input and expected output: texts of the standard streams (style stdin), or JSON of the arguments, one
    per line, and of the result (style calls)."""

    input: str
    output: str


class ProgramLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """Limits of a program. seconds: CPU time of a test; in style checks, of all tests together. memory_mb: its memory,
    in megabytes."""

    seconds: float = 10.0
    memory_mb: int = 4096


class QuestionTests(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tests of a question.

    cases: for the styles stdin and calls. checks: for the style checks, the code of each test; setup: code that runs
    before them. function: the function that the question asks for; "" for a whole program. starter: code that a reply
    may continue. header: code that runs before every program. solution: a correct program; "" if the data have none. n:
    number of tests. stored: checksum under which cases, checks and setup are stored in the cache; "" if they are stored
    here.
    """

    style: Style
    # No other language is run; a reference that names another language is rejected.
    language: Literal["python"] = "python"
    cases: tuple[Case, ...] = ()
    checks: tuple[str, ...] = ()
    setup: str = ""
    function: str = ""
    starter: str = ""
    header: str = ""
    solution: str = ""
    limits: ProgramLimits = ProgramLimits()
    n: int = 0
    stored: str = ""


def reference_of(tests: QuestionTests, cache: Path) -> str:
    """The reference for these tests; long tests are stored in the folder `cache`. Raises `OSError`."""
    tests = msgspec.structs.replace(tests, n=len(tests.cases) or len(tests.checks))
    text = to_json(tests)
    if len(text) <= MAX_INLINE_CHARS:
        return text.decode()
    body = to_json([tests.cases, tests.checks, tests.setup])
    stored = hashlib.sha256(body).hexdigest()
    path = _stored_at(cache, stored)
    # The name is the content's checksum, so a file that exists is the right one.
    if not path.exists():
        _write(path, zlib.compress(body, 6))
    light = msgspec.structs.replace(tests, cases=(), checks=(), setup="", stored=stored)
    return to_json(light).decode()


def _stored_at(cache: Path, checksum: str) -> Path:
    return cache / "tests" / f"{checksum}.z"


def _write(path: Path, data: bytes) -> None:
    """Write the file whole or not at all. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".tmp", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def tests_of(reference: str, cache: Path) -> QuestionTests:
    """All tests of a reference, including those in `cache`. Raises `UnavailableError` if they are missing."""
    tests = summary_of(reference)
    if not tests.stored:
        return tests
    path = _stored_at(cache, tests.stored)
    packed, body = None, b""
    with contextlib.suppress(OSError, zlib.error):
        with path.open("rb") as file:
            packed = file.read(MAX_TESTS_BYTES + 1)
        # Limited, because a small file may unpack to any size.
        body = zlib.decompressobj().decompress(packed, MAX_TESTS_BYTES)
    if hashlib.sha256(body).hexdigest() != tests.stored:
        with contextlib.suppress(OSError):
            if packed is not None:  # damaged: they are written again when the benchmark's data are next read
                path.unlink()
        raise UnavailableError(
            f"the tests {tests.stored[:12]}… are damaged or missing from {path.parent}; to reload them, read the "
            "benchmark's data again (`harness doctor` with `benchmark`)"
        )
    cases, checks, setup = from_json(body, tuple[tuple[Case, ...], tuple[str, ...], str])
    return msgspec.structs.replace(tests, cases=cases, checks=checks, setup=setup, stored="")


def summary_of(reference: str) -> QuestionTests:
    """The tests of a reference, without those in a cache. Raises `UnavailableError` if it contains none."""
    try:
        return from_json(reference, QuestionTests)
    except ValueError as error:
        raise UnavailableError(f"a program's reference contains no tests: {error}") from error


def describe(reference: str) -> str:
    """The tests of a reference in a sentence: their number and style, their limits, and the first one."""
    tests = summary_of(reference)
    limits = f"{tests.limits.seconds:g} s of CPU time, {tests.limits.memory_mb} MB"
    function = f" of {tests.function}" if tests.function else ""
    parts = [part for case in tests.cases[:1] for part in (case.input, case.output)] or tests.checks[:1]
    first = f"; the first: {' → '.join(map(_clip, parts))}" if parts else ""
    return f"{count_noun(tests.n, 'test')}{function} ({_STYLES[tests.style]}, python; {limits}){first}"


def example_replies(reference: str) -> tuple[str, str] | None:
    """Create a correct and a wrong reply for testing a card: the data's solution, and a program that does nothing. None
    if the data have no solution."""
    tests = summary_of(reference)
    nothing = f"def {tests.function}(*values): raise NotImplementedError" if tests.function else "pass"
    return (f"```python\n{tests.solution}\n```", f"```python\n{nothing}\n```") if tests.solution else None


def _clip(text: str) -> str:
    """The beginning of a text, for a sentence."""
    text = text.strip()
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + " …"
