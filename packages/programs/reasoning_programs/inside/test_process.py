"""The test process: it runs a benchmark's own test code, and calls the program's functions in another process.

    test code ─ candidate(3) ─► Remote ─ pipe ─► the program's process
              ◄── plain value ─────────── pipe ──

Why a verdict can be trusted: every assertion is evaluated in this process, which never runs any code from the reply.
The program's process can only report the values that its functions return. It has none of this process's descriptors,
cannot see it, and was started before the tests were read. A value that is not plain stays in the program's process and
is a `Remote` here: the program reports its representation, but never whether it equals another value.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

from reasoning_programs.inside.values import decode, encode

Ask = Callable[[dict[str, Any]], Any]
"""A function that sends a request to the program and returns its reply."""

MAX_SHOWN_CHARS = 400
"""Maximum length of a value's text in a report."""


_STANDARD_MODULES = frozenset(getattr(sys, "stdlib_module_names", ()) or sys.modules)
"""Names of standard modules. A test that uses such a name gets the module, never one of the program's objects."""


class ProgramEndedError(BaseException):
    """The program ended, or exceeded a limit, before it answered. rule: the rule of the verdict, such as "time limit".

    A `BaseException`, so that test code that catches `Exception` does not catch it.
    """

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


class _UnsendableError(BaseException):
    """The tests pass an argument that cannot be sent to any program, so the tests are broken.

    A `BaseException`, so that test code that catches `Exception` does not catch it.
    """


class _Line:
    """The connection to the program, through which the tests call its functions.

    last: the latest call, as (function, arguments, result or exception), for reports. over: a `ProgramEndedError` or
    `_UnsendableError` that was raised; even a test that caught it has not passed. raised: the program's latest
    exception.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.last = ("", "", "")
        self.over: BaseException | None = None
        self.raised: Exception | None = None
        self._remotes: dict[int, Remote] = {}

    def remote(self, number: int) -> Remote:
        """The `Remote` for an object's number; a number always maps to the same `Remote`, so that it equals itself."""
        return self._remotes.setdefault(number, Remote(self, number))

    def do(self, what: str, target: Any, arguments: tuple[Any, ...] = (), **more: Any) -> Any:
        """As `_do`; an error that always fails the test is also recorded in `over`."""
        try:
            return self._do(what, target, arguments, **more)
        except (ProgramEndedError, _UnsendableError) as error:
            self.over = error
            raise

    def _do(
        self, what: str, target: Any, arguments: tuple[Any, ...], named: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        """Have the program's process perform an operation on one of its objects. Returns the value; raises the
        program's exception, or `ProgramEndedError`.

        what: the kind of request, such as "call". target: the object's name or number. arguments, named: values for the
        call. more: further fields of the request.
        """
        request = {"do": what, "target": target, "arguments": [encode(value, _number) for value in arguments], **more}
        if named:
            request["named"] = {key: encode(value, _number) for key, value in named.items()}
        reply = self._ask(request)
        if what == "call":
            shown = f"({show(arguments[0])})" if len(arguments) == 1 else show(arguments)
            self.last = (str(target), shown, "")
        if "raised" in reply:
            name, message = str(reply["raised"]), str(reply.get("message", ""))
            self.last = (*self.last[:2], f"{name}: {message}"[:MAX_SHOWN_CHARS])
            self.raised = _exception(name, message)
            raise self.raised
        try:
            value = decode(reply.get("value"), self.remote)
        except ValueError:
            raise ProgramEndedError("bad value") from None
        if what == "call":
            self.last = (*self.last[:2], show(value))
        return value


def _exception(name: str, message: str) -> Exception:
    """Python's exception with this name; `RuntimeError` for any other name, and for `StopIteration`, which would end a
    loop of the tests."""
    kind = getattr(builtins, name, None)
    try:
        if kind in (StopIteration, StopAsyncIteration):  # for `all(map(f, …))` it would end the arguments
            return RuntimeError(f"{name}: {message}")
        return kind(message) if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError(message)
    except TypeError:  # an exception class that requires more than a message
        return RuntimeError(message)


def _number(value: Any) -> int:
    """The number that identifies this object in the program's process.

    Raises `_UnsendableError` for an object that was created by the tests, not by the program.
    """
    if not isinstance(value, Remote):
        raise _UnsendableError(f"the tests pass {type(value).__name__}, which is not a plain value")
    if isinstance(value._target, int):
        return value._target
    number = value._line.do("hold", value._target)  # a function of the program by its name
    if not isinstance(number, int):
        raise ProgramEndedError("bad value")
    return number


class Remote:
    """A function of the program, or an object that stays in its process. It equals itself and nothing else."""

    def __init__(self, line: _Line, target: Any) -> None:
        object.__setattr__(self, "_line", line)
        object.__setattr__(self, "_target", target)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._line.do("call", self._target, arguments, named=named)

    def __getattr__(self, name: str) -> Any:
        # copy, pickle and numpy probe objects for such names; a remote answer would change how they treat the object.
        if name.startswith("__"):
            raise AttributeError(name)
        return self._line.do("get", self._target, name=name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._line.do("set", self._target, (value,), name=name)

    def __iter__(self) -> Any:
        return iter(self._line.do("items", self._target))

    def __bool__(self) -> bool:
        # `__bool__` must return a bool, and the program may answer anything.
        return self._line.do("bool", self._target) is True

    def __len__(self) -> int:
        return int(self._line.do("len", self._target))

    def __getitem__(self, index: Any) -> Any:
        return self._line.do("item", self._target, (index,))

    def __str__(self) -> str:
        return str(self._line.do("str", self._target))

    def __repr__(self) -> str:
        return "<an object of the program>"


def show(value: Any) -> str:
    """A value's `repr`, cut to `MAX_SHOWN_CHARS`; never raises."""
    try:
        text = repr(value)
    except Exception as error:  # an integer with too many digits, or a value nested too deeply
        text = f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
    if len(text) <= MAX_SHOWN_CHARS:
        return text
    return text[: MAX_SHOWN_CHARS // 2] + " … " + text[-MAX_SHOWN_CHARS // 2 :]


def run_tests(setup: str, tests: list[str], own: list[str], offered: list[str], ask: Ask) -> dict[str, Any]:
    """Run test code; return a report: passed, or the number of the first failed test and the reason.

    setup: code that the tests need. own: names that always mean the program's objects, even if setup defines them.
    offered: the program's functions and classes; setup and tests get the ones that they use and do not define. A
    standard module that they use without importing it is imported here, never taken from the program. ask: sends a
    request to the program.
    """
    line = _Line(ask)
    ours = {name: Remote(line, name) for name in own}
    names: dict[str, Any] = {"__name__": "tests"}
    try:
        names.update(_names_beside_own([setup, *tests], set(own), set(offered), line))
        # Last, so that the names under test override a standard module of the same name.
        names.update(ours)
        exec(compile(setup, "<setup>", "exec", dont_inherit=True), names)
        sources = [compile(test, f"<test {number}>", "exec", dont_inherit=True) for number, test in enumerate(tests)]
    except ProgramEndedError as ended:
        return {"end": "failed", "test": 0, "rule": ended.rule}
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"[:MAX_SHOWN_CHARS]
        if isinstance(error, _UnsendableError):
            return {"end": "broken", "why": why}
        # Setup called the program, which failed, or uses a name that the program does not define.
        if line.last[0] or isinstance(error, NameError):
            return _failed(0, "exception", line, why)
        return {"end": "broken", "why": why}
    # Again: the setup may have defined these names itself.
    names.update(ours)
    for number, code in enumerate(sources):
        line.last = ("", "", "")
        try:
            exec(code, names)
            if line.over is not None:
                raise line.over
        except ProgramEndedError as ended:
            return _failed(number, ended.rule, line, "")
        except _UnsendableError as error:
            return {"end": "broken", "why": str(error)[:MAX_SHOWN_CHARS]}
        except BaseException as error:
            # A package that the tests need and the sandbox does not have, such as numpy, is not the program's fault.
            if isinstance(error, ImportError) and error is not line.raised:
                return {"end": "broken", "why": f"{type(error).__name__}: {error}"[:MAX_SHOWN_CHARS]}
            rule = "wrong output" if isinstance(error, AssertionError) else "exception"
            asserted = _asserted_line(error, number, tests[number])
            return _failed(number, rule, line, f"{type(error).__name__}: {error}", asserted)
    return {"end": "passed"}


def _names_beside_own(codes: list[str], own: set[str], offered: set[str], line: _Line) -> dict[str, Any]:
    """The names that test code uses, in addition to its `own`, from standard modules and from what the program has
    `offered`.

    codes: the texts of the test code. line: the connection through which a `Remote` for an offered name reaches the
    program. Raises `SyntaxError` for code that cannot be parsed.
    """
    nodes = (node for code in codes for node in ast.walk(ast.parse(code)))
    loaded = {node.id for node in nodes if isinstance(node, ast.Name)} - own
    # A program that defines `sorted` must not replace the one that the tests use.
    free = {name for name in loaded if not hasattr(builtins, name)}
    names: dict[str, Any] = {name: Remote(line, name) for name in free & offered - _STANDARD_MODULES}
    for name in free & _STANDARD_MODULES:
        with contextlib.suppress(ImportError):  # this system does not have the module
            names[name] = importlib.import_module(name)
    return names


def run_calls(function: str, cases: list[dict[str, str]], ask: Ask) -> dict[str, Any]:
    """Call a function of the program, or of its class `Solution`, for each case, and compare the results.

    Returns a report: {"end": "passed"}, or the number of the first failed test and the reason.

    cases: each with `input`, the arguments in JSON, one per line, and `output`, the expected result in JSON. A tuple
    counts as a list, as in LiveCodeBench (lcb_runner/evaluation/testing_util.py, grade_call_based).
    """
    line = _Line(ask)
    number = 0
    try:
        parsed = [
            ([json.loads(text) for text in case["input"].split("\n") if text.strip()], json.loads(case["output"]))
            for case in cases
        ]
    except ValueError as error:
        return {"end": "broken", "why": f"a test is not valid JSON: {error}"[:MAX_SHOWN_CHARS]}
    try:
        method = Remote(line, line.do("method", function))
        for number, (arguments, expected) in enumerate(parsed):
            line.last = ("", "", "")
            came = method(*arguments)
            if isinstance(came, tuple):
                came = list(came)
            if isinstance(came, Remote) or not came == expected:  # noqa: SIM201
                return {**_failed(number, "wrong output", line, ""), "expected": show(expected)}
    except ProgramEndedError as ended:
        return _failed(number, ended.rule, line, "")
    except Exception as error:
        return _failed(number, "exception", line, f"{type(error).__name__}: {error}")
    return {"end": "passed"}


def _failed(number: int, rule: str, line: _Line, message: str, asserted: str = "") -> dict[str, Any]:
    """The report on test `number`, which failed by `rule`. asserted: the line of the test at which it failed."""
    function, arguments, result = line.last
    return {
        "end": "failed",
        "test": number,
        "rule": rule,
        "asserted": asserted[:MAX_SHOWN_CHARS],
        "message": message[:MAX_SHOWN_CHARS],
        "arguments": f"{function}{arguments}" if function else "",
        "came": result,
    }


def _asserted_line(error: BaseException, number: int, test: str) -> str:
    """The text of the line of test `number` at which `error` was raised."""
    frames = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in frames if frame.f_code.co_filename == f"<test {number}>"]
    return test.splitlines()[lines[-1] - 1].strip() if lines else ""
