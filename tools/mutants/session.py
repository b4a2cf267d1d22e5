"""Collects a room's tests once in a pytest session, and runs some of them in forked child processes.

    collect                       traced: which lines of the room run while modules are imported
    measure: each test            traced, in a child: the lines that it runs, its seconds, whether it starts processes
    try: mutant × its tests       in a child: new code objects into the live functions, tests until the first failure

A mutant in a function's body is put into the functions that already exist (`__code__`), so every module, class and
fixture that holds one of them has the mutant, and nothing is imported again. `anew` is for the others.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import signal
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
from hypothesis import Phase, settings

from tools.mutants.children import Say

OPTIONS = (
    *("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=sys", "-m", "not server"),
    *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
)
"""Options of pytest: each child runs the same tests in the same order, without pytest's cache of former runs."""

_STARTS = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec"})


@dataclass
class Measured:
    """What a test does without a mutant. seconds: of the processor, or on the clock if it starts processes. lines: file
    → lines of it. starts: it starts processes, whose lines are not seen. passed: False for a test that cannot judge a
    mutant, and why.
    """

    seconds: float
    lines: dict[str, list[int]]
    starts: bool
    passed: bool
    why: str = ""


@dataclass
class _Session:
    """A pytest plug-in that calls `work` with the collected tests instead of running them."""

    work: Callable[[dict[str, pytest.Item]], None]

    def pytest_configure(self) -> None:
        # No example of another session, no shrinking: the first failure is enough.
        quick = settings(
            settings.default, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate), deadline=None
        )
        settings.register_profile("mutants", quick)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("a test file cannot be imported")
        self.work({item.nodeid: item for item in session.items})
        return True


def collect(files: Iterable[str], work: Callable[[dict[str, pytest.Item]], None]) -> int:
    """Collect the test files, then do the work with the tests by their names. Returns pytest's exit code."""
    return int(pytest.main([*OPTIONS, *files], plugins=[_Session(work)]))


class _Watch:
    """A pytest plug-in that reports each failed test and nothing else."""

    def __init__(self) -> None:
        self.failed = False
        self.why = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = True
            self.why = report.longreprtext[-600:]


def run(items: Sequence[pytest.Item], seconds: Callable[[str], float], say: Say) -> None:
    """Run the tests in this order up to the first failure; report each start and the failure by `say`.

    seconds: of processor time that a test of this name may take; the process ends by SIGPROF where it takes more. A
    timer, not a limit of the process: tests look whether their process still has the limits that it had.
    """
    watch = _Watch()
    if items:
        items[0].config.pluginmanager.register(watch)
    for item, after in zip_longest(items, items[1:]):
        say({"test": item.nodeid})
        signal.setitimer(signal.ITIMER_PROF, seconds(item.nodeid))
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if watch.failed:
            say({"failed": item.nodeid, "why": watch.why})
            return
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    say({"survived": True})


Lines = dict[str, set[int]]
"""File → the numbers of lines in it."""


class Tracer:
    """Records which lines of the files run, in every thread, for each context (such as the name of a test)."""

    def __init__(self, files: Sequence[str]) -> None:
        # Written in C: a trace function of Python's would run at each call of any function, ours or not.
        self._coverage = coverage.Coverage(data_file=None, config_file=False, include=files)
        # A test may run no line of them; pytest would make an error of the warning.
        self._coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self._files = files

    def start(self, context: str) -> None:
        self._coverage.start()
        self.enter(context)

    def enter(self, context: str) -> None:
        """Count the lines that run from now on for this context."""
        self._coverage.switch_context(context)

    def stop(self) -> dict[str, Lines]:
        """Stop recording; return context → the lines that ran in it."""
        self._coverage.stop()
        lines: defaultdict[str, Lines] = defaultdict(lambda: defaultdict(set))
        data = self._coverage.get_data()
        for file in self._files:
            for number, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    lines[context][file].add(number)
        return lines


@dataclass(eq=False)
class _Fixtures:
    """Records the lines that a shared fixture runs when it is set up; they count for every test that uses the fixture.

    A plug-in of pytest, so it is hashable: it equals only itself. context: of the test that runs.
    """

    tracer: Tracer
    context: str = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        outer, self.context = self.context, self.named(fixturedef.argname)
        self.tracer.enter(self.context)
        try:
            return (yield)
        finally:
            self.context = outer
            self.tracer.enter(outer)

    @staticmethod
    def named(fixture: str) -> str:
        """The name of the context under which the fixture's lines are recorded."""
        return f"fixture {fixture}"


def measure(items: Mapping[str, pytest.Item], files: Sequence[str], say: Say) -> None:
    """Run each test once, and report its time, the lines it runs, whether it starts a process, and whether it fails."""
    n_started = 0  # processes begun so far

    starting = _STARTS  # the hook outlives the names of this module

    def count(event: str, _: object) -> None:
        nonlocal n_started
        n_started += event in starting

    sys.addaudithook(count)
    tracer = Tracer(files)
    fixtures = _Fixtures(tracer)
    for plugin in (fixtures, watch := _Watch()):
        next(iter(items.values())).config.pluginmanager.register(plugin)
    tests, caches = list(items.values()), caches_of(files)
    measured: list[tuple[pytest.Item, Measured]] = []
    tracer.start("")
    for item, after in zip(tests, [*tests[1:], None], strict=True):
        say({"test": item.nodeid})
        # What an earlier test left in a cache would hide the lines that this one runs by itself.
        for cache in caches:
            cache.cache_clear()
        n_before, started, busy, watch.failed = n_started, time.perf_counter(), time.process_time(), False
        fixtures.context = item.nodeid
        tracer.enter(item.nodeid)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        starts = n_started > n_before
        seconds = time.perf_counter() - started if starts else time.process_time() - busy
        measured.append((item, Measured(seconds, {}, starts, not watch.failed, watch.why if watch.failed else "")))
    lines = tracer.stop()
    for item, test in measured:
        contexts = [item.nodeid, *map(fixtures.named, getattr(item, "fixturenames", ()))]
        for file in files:
            if of_file := set[int]().union(*(lines[context][file] for context in contexts if context in lines)):
                test.lines[file] = sorted(of_file)
        say({"measured": item.nodeid, **vars(test)})
    say({"imported": sorted(sys.modules)})


def caches_of(files: Iterable[str]) -> list[functools._lru_cache_wrapper[Any]]:
    """The functions of these files with a cache of results (`functools.cache`)."""
    gc.unfreeze()  # a frozen object is not listed
    names = frozenset(files)
    return [
        thing
        for thing in gc.get_objects()
        if isinstance(thing, functools._lru_cache_wrapper)
        and getattr(getattr(thing.__wrapped__, "__code__", None), "co_filename", "") in names
    ]


Functions = Mapping[tuple[str, str, int], list[FunctionType]]


def live_functions(files: Iterable[str]) -> Functions:
    """Return the function objects that exist now, by (file, qualified name, first line)."""
    gc.unfreeze()  # a frozen object is not listed
    names = frozenset(files)
    functions: defaultdict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename in names:
            functions[_key(thing.__code__)].append(thing)
    return functions


def put_into(functions: Functions, code: CodeType) -> int:
    """Give these function objects the code of a mutant; return how many changed.

    Raises ValueError where the mutant no longer uses a variable of the enclosing function: its code does not fit then.
    """
    n_changed = 0
    for inner in _codes(code):
        for function in functions.get(_key(inner), ()):
            if function.__code__ != inner:
                function.__code__ = inner
                n_changed += 1
    return n_changed


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def anew(tests: Sequence[str], seconds: Callable[[str], float], prepare: Callable[[], None], say: Say) -> None:
    """Import everything with a mutant in it, then run the tests in this order."""
    prepare()
    collected = False

    def work(items: dict[str, pytest.Item]) -> None:
        nonlocal collected
        collected = True
        run([items[test] for test in tests if test in items], seconds, say)

    say({"test": "collection"})
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    collect(files, work)
    if not collected:
        say({"failed": "collection"})


def import_all(names: Iterable[str]) -> None:
    """Import these modules, but not those of the tests, so that the child processes need not."""
    for name in names:
        if name.partition(".")[0] not in {"tests", "__main__", "sitecustomize", "conftest"} and name not in sys.modules:
            with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
                importlib.import_module(name)


def freeze() -> None:
    """Take all present objects out of garbage collection: each child process would visit them and copy their memory."""
    gc.collect()
    gc.freeze()
