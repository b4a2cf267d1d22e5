"""Tries mutants, code with one small change each, on the tests of a package: `make mutants MODULE=grading`.

The tests run once under coverage, which says how long each takes and which lines it runs. Each mutant is then written
into a copy of the checkout, where the tests that run its lines run until one fails, the quickest first. A mutant that
fails none of them has survived, and is printed.
"""

from __future__ import annotations

import argparse
import ast
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from coverage import CoverageData

from harness.core.cores import granted_cores
from tools.mutants.operators import Mutant, mutants
from tools.tests_of import CHECKOUT

MAX_TEST_SECONDS = 60.0
"""A test function that takes longer than these seconds is left out: it would cost minutes for each survivor."""

PYTEST = ("-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not server")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "build", "dist", "node_modules")


@dataclass(frozen=True)
class Case:
    """One mutant. file: relative to the checkout. number: its place among the file's mutants. lines: of its statement.

    late: it stands in a function, so that only tests that run its lines can see it.
    """

    file: str
    number: int
    name: str
    lines: range
    late: bool


@dataclass(frozen=True)
class Measured:
    """The tests of a room. seconds: test function (`FILE::NAME`) → seconds. lines: (file, line) → test functions."""

    seconds: Mapping[str, float]
    lines: Mapping[tuple[str, int], set[str]]

    def tests_of(self, case: Case) -> list[str]:
        """The test functions that can see the mutant, the quickest first."""
        seen = set[str]().union(*(self.lines.get((case.file, line), set()) for line in case.lines))
        names = seen if case.late else self.seconds.keys()
        return sorted((name for name in names if self.seconds[name] <= MAX_TEST_SECONDS), key=self.seconds.__getitem__)


def _nth(source: str, number: int) -> tuple[ast.Module, Mutant]:
    """The syntax tree of a source, and its mutant of this number."""
    tree = ast.parse(source)
    return tree, next(mutant for place, mutant in enumerate(mutants(tree)) if place == number)


def cases_in(checkout: Path, files: Sequence[Path]) -> Iterator[Case]:
    """Every mutant of the files, in the order of their sources."""
    for path in files:
        file = str(path.relative_to(checkout))
        for number, mutant in enumerate(mutants(ast.parse(path.read_text("utf-8")))):
            name = f"{file}:{mutant.first} {mutant.scope}: {mutant.operator}: {mutant.before} → {mutant.after}"
            yield Case(file, number, name, range(mutant.first, mutant.last + 1), mutant.runs_late)


def _environment(checkout: Path) -> dict[str, str]:
    """The variables of a process that imports the code of this checkout."""
    return {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}


def measure(checkout: Path, tests: Sequence[str], source: Sequence[str], folder: Path) -> Measured:
    """Run the tests once; return what each takes and runs. Raises `SystemExit` if one fails without any mutant."""
    settings = folder / "coverage.ini"
    settings.write_text(f"[run]\ndata_file = {folder / 'coverage'}\nrelative_files = true\n")
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", f"--include={','.join(source)}"]
    command += [*PYTEST, "-p", "tools.mutants.contexts", f"--junitxml={folder / 'tests.xml'}", *tests]
    if code := subprocess.run(command, cwd=checkout, env=_environment(checkout), check=False).returncode:
        raise SystemExit(f"the tests do not pass without a mutant (pytest ended with {code})")
    seconds: defaultdict[str, float] = defaultdict(float)
    for test in ElementTree.parse(folder / "tests.xml").iter("testcase"):  # noqa: S314 - written by pytest above
        module, function = test.attrib["classname"], test.attrib["name"].partition("[")[0]
        seconds[f"{module.replace('.', '/')}.py::{function}"] += float(test.attrib["time"])
    data = CoverageData(str(folder / "coverage"))
    data.read()
    lines = {
        (file, line): seconds.keys() & contexts
        for file in data.measured_files()
        for line, contexts in data.contexts_by_lineno(file).items()
    }
    return Measured(seconds, lines)


def killer(case: Case, copy: Path, measured: Measured) -> str:
    """Try the mutant in the copy of the checkout; return what noticed it, empty if nothing did."""
    tests = measured.tests_of(case)
    if not tests:
        return ""
    path = copy / case.file
    right = path.read_text("utf-8")
    tree, mutant = _nth(right, case.number)
    mutant.put()
    path.write_text(ast.unparse(tree), "utf-8")
    limit = 30 + 5 * sum(measured.seconds[test] for test in tests)
    try:
        done = subprocess.run(
            [sys.executable, *PYTEST, "-x", *tests],
            cwd=copy,
            env=_environment(copy),
            timeout=limit,
            check=False,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return "too late"
    finally:
        path.write_text(right, "utf-8")
    if done.returncode == 0:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].partition(" - ")[0] if failed else f"pytest ended with {done.returncode}"


def survivors(checkout: Path, room: str, tests: Sequence[str], n: int, seed: int, jobs: int) -> list[str]:
    """Draw and try `n` mutants of a module or package; print each with what killed it; return those that survived.

    room: a path below the checkout, such as harness/grading.
    """
    place = checkout / room
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    cases = list(cases_in(checkout, files))
    drawn = cases if len(cases) <= n else random.Random(seed).sample(cases, n)  # noqa: S311 - a sample, no secret
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(checkout, tests, [str(path.relative_to(checkout)) for path in files], Path(folder))
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            copies.put(Path(shutil.copytree(checkout, Path(folder) / str(number), ignore=LEFT_OUT)))

        def tried(case: Case) -> str:
            """What killed a mutant, tried in a copy that no other thread has; empty if it survived."""
            copy = copies.get()
            try:
                return killer(case, copy, measured)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(jobs) as threads:
            ends = list(zip(drawn, threads.map(tried, drawn), strict=True))
    for case, end in ends:
        sys.stdout.write(f"{end or 'SURVIVED'}  {case.name}\n")
    return [case.name for case, end in ends if not end]


def main() -> None:
    """Try the mutants of the room named on the command line; print how many the tests killed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("room", help="a module or package: grading, runs/journal.py")
    parser.add_argument("tests", nargs="*", help="test files or folders; default: tests/ROOM")
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=granted_cores())
    typed = parser.parse_args()
    tests = typed.tests or [f"tests/{typed.room.partition('/')[0]}"]
    alive = survivors(CHECKOUT, f"harness/{typed.room}", tests, typed.mutants, typed.seed, typed.jobs)
    sys.stdout.write(f"{len(alive)} survived\n")


if __name__ == "__main__":
    main()
