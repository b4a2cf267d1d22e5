"""A question's tests, which are its reference answer: write, read and show them.

A reference is the JSON of a `QuestionTests`. Long tests (megabytes per question in LiveCodeBench) are stored once, in
the cache folder, under their checksum; the reference then contains the checksum instead (`stored`), so that run folders
stay small. If the cache loses them, reading the card's data again restores them.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from typing import Literal

import msgspec

from harness.core import about, codec
from harness.core.errors import UsageError
from harness.core.files import read_named, write_atomically
from harness.core.nouns import count_noun

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


def reference_of(tests: QuestionTests) -> str:
    """The reference for these tests; long tests are stored in the cache."""
    tests = msgspec.structs.replace(tests, n=len(tests.cases) or len(tests.checks))
    text = codec.encode(tests)
    if len(text) <= MAX_INLINE_CHARS:
        return text.decode()
    body = codec.encode([tests.cases, tests.checks, tests.setup])
    stored = hashlib.sha256(body).hexdigest()
    path = about.cache_folder() / "tests" / f"{stored}.z"
    # The name is the content's checksum, so a file that exists is the right one.
    if not path.exists():
        write_atomically(path, zlib.compress(body, 6))
    light = msgspec.structs.replace(tests, cases=(), checks=(), setup="", stored=stored)
    return codec.encode(light).decode()


def tests_of(reference: str) -> QuestionTests:
    """All tests of a reference, including those in the cache. Raises `UsageError` if they are missing from the
    cache."""
    tests = summary_of(reference)
    if not tests.stored:
        return tests
    path = about.cache_folder() / "tests" / f"{tests.stored}.z"
    packed, body = None, b""
    with contextlib.suppress(OSError, zlib.error):
        packed = read_named(path, MAX_TESTS_BYTES)
        # Limited, because a small file may unpack to any size.
        body = zlib.decompressobj().decompress(packed, MAX_TESTS_BYTES)
    if hashlib.sha256(body).hexdigest() != tests.stored:
        with contextlib.suppress(OSError):
            if packed is not None:  # damaged: they are written again when the benchmark's data are next read
                path.unlink()
        raise UsageError(
            f"the tests {tests.stored[:12]}… are damaged or missing from {path.parent}; to reload the "
            f"benchmark's data, run `harness doctor` with `benchmark`"
        )
    cases, checks, setup = codec.decode(body, tuple[tuple[Case, ...], tuple[str, ...], str])
    return msgspec.structs.replace(tests, cases=cases, checks=checks, setup=setup, stored="")


def summary_of(reference: str) -> QuestionTests:
    """The tests of a reference, without those in the cache. Raises `UsageError` if it contains no tests."""
    try:
        return codec.decode(reference.encode("utf-8", "surrogatepass"), QuestionTests)
    except codec.DecodeError as error:
        raise UsageError(f"a program's reference contains no tests: {error}") from error


def shown(reference: str) -> str:
    """The tests of a reference in a sentence: their number and style, their limits, and the first one."""
    tests = summary_of(reference)
    limits = f"{tests.limits.seconds:g} s of CPU time, {tests.limits.memory_mb} MB"
    function = f" of {tests.function}" if tests.function else ""
    parts = [part for case in tests.cases[:1] for part in (case.input, case.output)] or tests.checks[:1]
    first = f"; the first: {' → '.join(map(_clip, parts))}" if parts else ""
    return f"{count_noun(tests.n, 'test')}{function} ({_STYLES[tests.style]}, python; {limits}){first}"


def examples(reference: str) -> tuple[str, str] | None:
    """Create a correct and a wrong reply for testing a card: the data's solution, and a program that does nothing. None
    if the data have no solution."""
    tests = summary_of(reference)
    nothing = f"def {tests.function}(*values): raise NotImplementedError" if tests.function else "pass"
    return (f"```python\n{tests.solution}\n```", f"```python\n{nothing}\n```") if tests.solution else None


def _clip(text: str) -> str:
    """The beginning of a text, for a sentence."""
    text = text.strip()
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + " …"
