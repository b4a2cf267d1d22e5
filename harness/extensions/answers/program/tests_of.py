"""The tests of a question, as its reference holds them, and the programs that they are run on.

A reference is the JSON of a `QuestionTests`. Long tests (LiveCodeBench has megabytes for one question) are kept once,
in the cache folder under their checksum; the reference then holds the checksum in their place (`stored`), so that a
run folder stays small. Where the cache lacks them, reading the card's data again brings them back.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from typing import Literal

import msgspec

from harness.core import about, codec
from harness.core.errors import UsageError, option
from harness.core.files import read_named, write_atomically

MAX_INLINE_CHARS = 40_000
"""Longest tests that stand in the reference itself, in characters of JSON."""

MAX_TESTS_BYTES = 512 * 1024 * 1024
"""Largest unpacked size of the tests of one question, in bytes."""

Style = Literal["stdin", "calls", "checks"]
"""stdin: whole programs, standard output compared · calls: results of one function compared · checks: test code."""


class Case(msgspec.Struct, frozen=True):
    """What goes in and must come out: text of the standard streams, or JSON of arguments (one a line) and result."""

    input: str
    output: str


class ProgramLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """CPU seconds of a test (in `checks`: of all tests of a question) and MB of memory that a program may use."""

    seconds: float = 10.0
    memory_mb: int = 4096


class QuestionTests(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tests of one question.

    cases: of `stdin` and `calls`. checks: test code, a text a test; setup: code before it. function: the one that the
    question asks for, "" for a whole program. starter: code that a reply may go on from. header: code that every
    program begins with. solution: a right program, where the data have one. stored: checksum of these tests in the
    cache, in place of cases, checks and setup.
    """

    style: Style
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
    """The reference that holds the tests; long ones are put into the cache."""
    tests = msgspec.structs.replace(tests, n=len(tests.cases) or len(tests.checks))
    text = codec.encode(tests)
    if len(text) <= MAX_INLINE_CHARS:
        return text.decode()
    body = codec.encode([tests.cases, tests.checks, tests.setup])
    stored = hashlib.sha256(body).hexdigest()
    path = about.cache_folder() / "tests" / f"{stored}.z"
    if not path.exists():
        write_atomically(path, zlib.compress(body, 6))
    light = msgspec.structs.replace(tests, cases=(), checks=(), setup="", stored=stored)
    return codec.encode(light).decode()


def tests_of(reference: str) -> QuestionTests:
    """The tests of a reference, whole. Raises `UsageError` where the cache lacks them."""
    tests = summary_of(reference)
    if not tests.stored:
        return tests
    path = about.cache_folder() / "tests" / f"{tests.stored}.z"
    whole = damaged = False
    try:
        packed = zlib.decompressobj()
        body = packed.decompress(read_named(path, MAX_TESTS_BYTES), MAX_TESTS_BYTES)
        whole = not packed.unconsumed_tail and hashlib.sha256(body).hexdigest() == tests.stored
        damaged = not whole
    except zlib.error:
        damaged = True
    except OSError:
        pass
    if damaged:  # the next reading of the benchmark's data writes them again
        with contextlib.suppress(OSError):
            path.unlink()
    if not whole:
        raise UsageError(
            f"the tests {tests.stored[:12]}… are not in {path.parent}, or are damaged there: `harness doctor` "
            f"with {option('benchmark')} reads the benchmark's data again"
        )
    cases, checks, setup = codec.decode(body, tuple[tuple[Case, ...], tuple[str, ...], str])
    return msgspec.structs.replace(tests, cases=cases, checks=checks, setup=setup, stored="")


def summary_of(reference: str) -> QuestionTests:
    """The tests of a reference as far as they stand in it. Raises `UsageError` for what is no tests."""
    try:
        return codec.decode(reference.encode("utf-8", "surrogatepass"), QuestionTests)
    except codec.DecodeError as error:
        raise UsageError(f"the reference of a program holds no tests: {error}") from error
