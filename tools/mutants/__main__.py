"""Tries the mutants (small changes) of a group of modules, a room, on its tests: `make mutants ROOM=journal`
(docs/testing.md).
"""

from __future__ import annotations

import argparse
import functools
import importlib
import math
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.mutants import cases, planting, rooms, session
from tools.mutants.cases import Case
from tools.mutants.children import DONE, Ended, Job, Message, Say, ended
from tools.mutants.results import KILLED, LATE, SURVIVED, Remembered, Result, hash_of
from tools.mutants.session import Measured
from tools.tests_of import CHECKOUT, modules

MAX_TEST_SECONDS = 60.0
"""A test that takes longer than these seconds is not used: it would cost minutes for each mutant that survives."""

_GRACE_SECONDS = 3.0
_SLOWNESS = 3.0
"""A test counts as late after this multiple of its usual CPU seconds, plus a grace period."""

_WAITING = 30.0
"""A test also counts as late after this multiple of that time by the wall clock, which a busy machine stretches."""

_FORK_SECONDS = 0.05
"""CPU seconds that a test costs in addition to its own."""

_UNTRIED = 0.02
"""Expected kills of a test that has killed no mutant near this one yet."""

_COLLECTION = "collection"
_COLLECTION_SECONDS = 300.0
_MEASURING_SECONDS = 900.0


@dataclass
class Trial:
    """A room (a group of modules) and its tests. files: of its modules. tests: its test files. words: the same as
    pytest gets them.
    """

    room: str
    n_at_once: int
    wide: bool
    remembered: Remembered
    files: list[str]
    tests: list[str]
    words: list[str]
    measured: dict[str, Measured] = field(default_factory=dict)
    kills: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    imported: dict[str, set[int]] = field(default_factory=dict)

    def tests_for(self, case: Case) -> list[str]:
        """Names of the tests that run the mutant's lines, the likeliest to kill it first.

        A change outside of functions may show in a test that runs no line of its module: all tests are tried on it.
        """
        lines = range(case.first, case.last + 1)
        file = str(case.file)
        names = [
            name
            for name, test in self.measured.items()
            if test.passed
            and test.seconds <= MAX_TEST_SECONDS
            and (self.wide or test.starts or not case.runs_late or _runs(test.lines.get(file, ()), lines))
        ]
        scope, module = self.kills[_scope(case)], self.kills[case.module]
        n_module = 1 + sum(module.values())

        def worth(name: str) -> float:
            """Expected kills for each CPU second."""
            kills = scope[name] + module[name] / n_module + _UNTRIED
            return kills / (_FORK_SECONDS + self.measured[name].seconds)

        return sorted(names, key=lambda name: (-worth(name), name))

    def seconds_of(self, message: Message) -> float:
        """Seconds that a child process may take for the test that it has just begun."""
        test = self.measured.get(message.get("test", ""))
        return _COLLECTION_SECONDS if test is None else _WAITING * self.busy_seconds(message["test"])

    def busy_seconds(self, test: str) -> float:
        """CPU seconds that the test may use."""
        return _GRACE_SECONDS + _SLOWNESS * self.measured[test].seconds

    def judge(self, case: Case, end: Ended) -> Result:
        """Decide whether a test noticed the mutant whose child process has ended, and store the result."""
        last: Message = {}
        for message in end.messages:
            last |= message
        status = LATE if end.late and "failed" not in last else SURVIVED if "survived" in last else KILLED
        test = str(last.get("test", "")) if status != SURVIVED else ""
        tests_hash = hash_of([test.partition("::")[0]]) if "::" in test else hash_of(self.tests)
        result = Result(status, test, end.seconds, len(self.tests_for(case)), hash_of([case.file]), tests_hash)
        self.note(case, result)
        return result

    def note(self, case: Case, result: Result) -> None:
        self.remembered.results[case.name] = result
        if "::" in result.test:
            self.kills[_scope(case)][result.test] += 1
            self.kills[case.module][result.test] += 1

    def stored_result(self, case: Case) -> Result | None:
        """The result of an earlier try of this mutant; None if a file on which it depends has changed."""
        result = self.remembered.results.get(case.name)
        if result is None or result.module_hash != hash_of([case.file]):
            return None
        file = result.test.partition("::")[0]
        if result.status != SURVIVED and "::" in result.test and not (CHECKOUT / file).is_file():
            return None
        judges = [file] if "::" in result.test else self.tests
        return result if result.tests_hash == hash_of(judges) else None


def main() -> int:
    """Change modules in small ways (mutants), and say which changes no test notices. Exit code 1 where one of these is
    not explained.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("room", choices=[*rooms.ROOMS, "all"])
    parser.add_argument("--mutants", type=int, default=200, help="how many are drawn in a room")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--fresh", action="store_true", help="forget former results")
    parser.add_argument(
        "--wide", action="store_true", help="try each mutant on all tests, not on those that run its lines"
    )
    parser.add_argument(
        "--survivors", action="store_true", help="try those that survived; believe what is stored of the others"
    )
    parser.add_argument("--only", default="", help="only mutants with this text in their names")
    arguments = parser.parse_args()
    names = [*rooms.ROOMS] if arguments.room == "all" else [arguments.room]
    try:
        return max(_room(name, arguments) for name in names)
    except rooms.MissingPart as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _scope(case: Case) -> str:
    """The module and the function that the mutant stands in."""
    return ": ".join(case.name.split(": ")[:2])


def _runs(lines: Collection[int], of: range) -> bool:
    """Whether at least one of the lines is run."""
    return any(line in of for line in lines)


def _room(room: str, arguments: argparse.Namespace) -> int:
    """Try the mutants (small changes) of the room's modules and print its row of the table. Returns 1 if a mutant
    survives without an explanation.
    """
    started = time.monotonic()
    names, words = rooms.modules_of(room), rooms.tests_of_room(room)
    tests = list(dict.fromkeys(word.partition("::")[0] for word in words))
    reasons = cases.explained()
    selected = [case for case in cases.drawn(names, arguments.mutants, arguments.seed) if arguments.only in case.name]
    remembered = Remembered.of(room, fresh=arguments.fresh)
    files = [str(modules()[name]) for name in names]
    trial = Trial(room, arguments.jobs, arguments.wide, remembered, files, tests, words)
    pending = []
    for case in selected:
        result = remembered.results.get(case.name) if arguments.survivors else trial.stored_result(case)
        again = arguments.wide or arguments.survivors
        if result is not None and not (again and result.status == SURVIVED):
            trial.note(case, result)
        elif case.name not in reasons:
            pending.append(case)
    if pending:
        _try(trial, pending)
    for case in selected:
        result = remembered.results.get(case.name)
        if case.name not in reasons and result is not None and result.status == SURVIVED:
            line = f"{case.file.relative_to(CHECKOUT)}:{case.first}"
            sys.stdout.write(f"survived, {result.n_tests} tests: {line}\n    {case.name}\n")
    return _row(trial, selected, reasons, time.monotonic() - started)


def _row(trial: Trial, tried_cases: list[Case], reasons: dict[str, str], seconds: float) -> int:
    statuses = Counter(
        "explained" if case.name in reasons else trial.remembered.results[case.name].status for case in tried_cases
    )
    n_killed, n_unexplained = statuses[KILLED] + statuses[LATE], statuses[SURVIVED]
    share = n_killed / max(1, n_killed + n_unexplained)
    results = trial.remembered.results
    tried = sum(results[case.name].seconds for case in tried_cases if case.name in results)
    sys.stdout.write(
        f"| {trial.room} | {len(tried_cases)} | {n_killed} | {statuses['explained']} | {n_unexplained} "
        f"| {100 * share:.1f} % | {tried:.0f} |\n"
        f"  {statuses[LATE]} of the killed by being late; this call took {seconds:.0f} s\n"
    )
    return 1 if n_unexplained else 0


def _try(trial: Trial, pending: list[Case]) -> None:
    """Run the tests with each mutant (small change of the code): first by changing functions in memory; where that may
    not reach all uses, in a process that imports everything anew.
    """
    late = {case.name: case for case in pending}
    job = Job("collect", functools.partial(_in_session, trial, pending), lambda _: 3600.0, math.inf, speaks=True)
    heard = next(ended(iter([job]), 1))
    again: list[Case] = []
    for message in heard.messages:
        if "measured" in message:
            trial.remembered.measured[message["measured"]] = (
                message["hash"],
                {name: Measured(**test) for name, test in message["tests"].items()},
            )
        elif "imported" in message:
            trial.remembered.imported, trial.remembered.sound = message["imported"], message["sound"]
            own = {path.name for path in CHECKOUT.iterdir()}
            session.import_all(name for name in message["imported"] if name.partition(".")[0] not in own)
        elif "anew" in message:
            again.append(late[message["anew"]])
        elif "result" in message:
            trial.note(late[message["result"]], Result(**message["as"]))
        elif "crash" in message:
            raise SystemExit(f"room {trial.room}: the tests could not be collected or measured: {message['crash']}")
    for file in trial.tests:
        trial.measured |= trial.remembered.measured[file][1]
    # Here, since the children are silent.
    for name, test in trial.measured.items():
        if not test.passed or test.seconds > MAX_TEST_SECONDS:
            why = test.why.replace("\n", "\n    ") if test.why else f"it takes {test.seconds:.0f} s"
            sys.stderr.write(f"judges nothing: {name}: {why}\n")
    trial.remembered.save()
    jobs = (Job(case.name, functools.partial(_try_anew, trial, case), trial.seconds_of) for case in again)
    for number, end in enumerate(ended(jobs, trial.n_at_once)):
        result = trial.judge(late[end.key], end)
        _tell(trial, f"anew {number + 1} of {len(again)}", end.key, result)
        trial.remembered.save()


def _tell(trial: Trial, number: str, name: str, result: Result) -> None:
    _tell_all(f"{trial.room} {number}: {result.status} {result.seconds:.1f} s  {name}  {result.test}")


def _tell_all(line: str) -> None:
    """Write a line to standard error, past pytest, which captures it."""
    os.write(2, line.encode() + b"\n")


def _try_anew(trial: Trial, case: Case, say: Say) -> None:

    def prepare() -> None:
        planting.plant(case.module, case.source())
        _carry(case)

    session.anew(trial.tests_for(case), trial.busy_seconds, prepare, say)


def _carry(case: Case) -> None:
    """A context manager: processes that the tests start import the changed module (the mutant), too."""
    folder = Path(os.environ["TMPDIR"]) / "mutant"
    folder.mkdir()
    planting.carry(case.module, case.source(), folder)


def _in_session(trial: Trial, pending: list[Case], say: Say) -> None:
    """Run in a child process: collect the tests, measure those that changed, try the mutants, and send the result of
    each step.
    """
    tracer = session.Tracer(trial.files)
    problems: list[BaseException] = []

    def work(items: dict[str, pytest.Item]) -> None:
        # A module that only a test imports would have no function yet to put a mutant into.
        for module in rooms.modules_of(trial.room):
            importlib.import_module(module)
        trial.imported = tracer.stop().get(_COLLECTION, {})
        try:
            _measure(trial, items)
            session.import_all(trial.remembered.imported)
            session.freeze()
            _look_whether_sound(trial, items)
            for file in trial.tests:
                hash_, tests = trial.remembered.measured[file]
                say({"measured": file, "hash": hash_, "tests": {name: vars(test) for name, test in tests.items()}})
            say({"imported": trial.remembered.imported, "sound": trial.remembered.sound})
            trial.remembered.save()
            _try_in_place(trial, items, pending, say)
        except BaseException as error:
            problems.append(error)
            raise

    tracer.start(_COLLECTION)
    code = session.collect(trial.words, work)
    if problems:
        raise problems[0]
    if code:
        raise RuntimeError(f"pytest ended with exit code {code}")


def _measure(trial: Trial, items: dict[str, pytest.Item]) -> None:
    """What each test does (lines it runs, seconds): stored, or measured now for test files that have changed."""
    product = hash_of(trial.files)
    stale: dict[str, str] = {}
    for file in trial.tests:
        hash_ = hash_of([file]) + product
        former, tests = trial.remembered.measured.get(file, ("", {}))
        if former != hash_ or not all(test.passed for test in tests.values()):
            stale[file] = hash_
    selected = {name: item for name, item in items.items() if name.partition("::")[0] in stale}
    for file, hash_ in stale.items():
        of_file = {name: item for name, item in selected.items() if name.partition("::")[0] == file}
        trial.remembered.measured[file] = hash_, _measured(of_file, trial)
        trial.remembered.save()
    for file in trial.tests:
        trial.measured |= trial.remembered.measured[file][1]
    if not any(test.passed for test in trial.measured.values()):
        reasons = [test.why[-100:] for test in trial.measured.values()] or ["there is no test"]
        raise RuntimeError(f"no test passes, even without a mutant; the first one says: {reasons[0]}")


def _measured(items: dict[str, pytest.Item], trial: Trial) -> dict[str, Measured]:
    """Measure what each test does (lines it runs, seconds). A test that ends its process (by a library's fault, say) is
    not used for mutants.
    """
    files = trial.files
    deadly: dict[str, Measured] = {}
    while True:
        act = functools.partial(session.measure, items, files)
        heard = next(ended(iter([Job("measure", act, lambda _: _MEASURING_SECONDS, math.inf)]), 1))
        if any("crash" in message for message in heard.messages):
            raise RuntimeError(f"a test could not be measured: {str(heard.messages[-3:])[:500]}")
        if DONE in heard.messages:
            break
        last = heard.messages[-1]["test"]
        _tell_all(f"ends its process, or never ends: {last}")
        deadly[last] = Measured(0.0, {}, starts=False, passed=False, why="it ends its process, or never ends")
        items = {name: item for name, item in items.items() if name != last}
    imported = {name for message in heard.messages for name in message.get("imported", ())}
    trial.remembered.imported = sorted(imported.union(trial.remembered.imported))
    lines = [message for message in heard.messages if "measured" in message]
    return deadly | {message.pop("measured"): Measured(**message) for message in lines}


def _look_whether_sound(trial: Trial, items: dict[str, pytest.Item]) -> None:
    """Run the tests without a mutant, in the way in which mutants are tried; a test that fails is not used."""
    hash_ = hash_of(trial.files) + hash_of(trial.tests)
    if trial.remembered.sound == hash_:
        return
    names = [name for name, test in trial.measured.items() if test.passed and test.seconds <= MAX_TEST_SECONDS]
    names.sort(key=lambda name: trial.measured[name].seconds)
    while names:
        act = functools.partial(session.run, [items[name] for name in names], trial.busy_seconds)
        end = next(ended(iter([Job("sound", act, trial.seconds_of)]), 1))
        last: Message = {}
        for message in end.messages:
            last |= message
        if "survived" in last:
            break
        test = trial.measured[last["test"]]
        test.passed, test.why = False, f"it fails among the others: {last.get('why', last.get('crash', 'it is late'))}"
        _tell_all(f"{trial.room}: {last['test']}: {test.why}")
        names = names[names.index(last["test"]) + 1 :]
    trial.remembered.sound = hash_ if all(test.passed for test in trial.measured.values()) else ""


def _try_in_place(trial: Trial, items: dict[str, pytest.Item], pending: list[Case], say: Say) -> None:
    functions = session.live_functions(trial.files)
    session.freeze()
    here = [case for case in pending if case.runs_late]
    for case in pending:
        if not case.runs_late:
            say({"anew": case.name})
    by_name = {case.name: case for case in here}
    jobs = _jobs(trial, items, here, functions)
    for number, end in enumerate(ended(jobs, trial.n_at_once)):
        case = by_name[end.key]
        result = trial.judge(case, end)
        lines = range(case.first, case.last + 1)
        at_import = not trial.imported.get(str(case.file), set()).isdisjoint(lines)
        if any("unfit" in message for message in end.messages) or (result.status == SURVIVED and at_import):
            say({"anew": case.name})
        else:
            say({"result": case.name, "as": vars(result)})
            trial.remembered.save()
        _tell(trial, f"{number + 1} of {len(here)}", case.name, result)


def _jobs(trial: Trial, items: dict[str, pytest.Item], here: list[Case], functions: session.Functions) -> Iterator[Job]:
    for case in here:
        yield Job(case.name, _in_place(trial, items, case, functions), trial.seconds_of)


def _in_place(
    trial: Trial, items: dict[str, pytest.Item], case: Case, functions: session.Functions
) -> Callable[[Say], None]:
    def act(say: Say) -> None:
        try:
            n_changed = session.put_into(functions, case.code())
        except ValueError:
            n_changed = 0
        if not n_changed:
            say({"unfit": True})
            return
        tests = trial.tests_for(case)
        if any(trial.measured[name].starts for name in tests):
            _carry(case)
        session.run([items[name] for name in tests if name in items], trial.busy_seconds, say)

    return act


if __name__ == "__main__":
    raise SystemExit(main())
