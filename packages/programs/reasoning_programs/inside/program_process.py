"""The process of a program: it runs the reply's code, then calls the program's functions as requested over two pipes.
It can also be an interpreter, a model's tool, that persists from call to call.

The program can change everything in this process, so no other process trusts it. The bytes that it writes to the pipe
are only the program's claim about what its functions return; the process that runs the tests judges them.

An interpreter has the descriptors 3 (the code of a call, a file in memory), 4 (requests), 5 (replies) and 6 (restored
as 1 and 2 at the beginning of each call, even if the previous call closed them). Its reports are not trusted: they can
only affect what a call appears to have printed.
"""

from __future__ import annotations

import ast
import codecs
import importlib
import importlib.metadata
import linecache
import os
import random
import sys
import sysconfig
import traceback
import types
from itertools import islice
from typing import Any

from reasoning_programs.inside import frames
from reasoning_programs.inside.values import decode, encode

EXIT_EXCEPTION, EXIT_MEMORY = 1, 97
"""Exit codes of a program that ended with an exception, and of one that ran out of memory."""


def run_script(code: str, header: str) -> None:
    """Run a whole program on standard input and output; does not return."""
    # New streams, because those of the forked cell have its locale's encoding and belong to its former descriptors.
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    status = 0
    try:
        try:
            exec(_compiled(code), _globals("__main__", header))
        except SystemExit:
            pass
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()  # as the interpreter does: other threads may still write
        import atexit

        # os._exit runs no exit handlers, and programs print from them.
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except MemoryError:
        status = EXIT_MEMORY
    except BaseException:
        traceback.print_exc()
        status = EXIT_EXCEPTION
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        # This process is a fork of the supervisor, whose code an ordinary exit would return to.
        os._exit(status)


def _compiled(code: str) -> Any:
    """The program's code, compiled without the future statements of this module."""
    return compile(code, "<program>", "exec", dont_inherit=True)


def _globals(name: str, header: str) -> dict[str, Any]:
    """The globals of a new module, after the header has run in it."""
    module = types.ModuleType(name)
    sys.modules[name] = module  # where a dataclass looks up its annotations
    names = module.__dict__
    names["__builtins__"] = __builtins__
    if header:
        exec(compile(header, "<header>", "exec", dont_inherit=True), names)
    return names


class ServedProgram:
    """A program whose functions another process calls.

    _requests, _replies: descriptors of the pipes from and to the caller. _code: the program's code. _names: its
    globals. _objects: the values that cannot be sent as plain values; the caller refers to each by its number, the
    index in this list. _numbers: id of such a value → its number.
    """

    def __init__(self, requests: int, replies: int) -> None:
        self._requests, self._replies = requests, replies
        self._code = ""
        self._names: dict[str, Any] = {}
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}

    def serve(self, code: str, header: str) -> None:
        """Run the program's code and report how it ended; then answer requests until the caller disconnects. Does not
        return."""
        with open(os.devnull, "w") as null:
            sys.stdout = sys.stderr = null
            self._answer(lambda: self._run(code, header))
            while True:
                request = frames.receive(self._requests)
                self._answer(lambda: self._do(request))  # noqa: B023 - called at once

    def _answer(self, action: Any) -> None:
        """Call `action` and send its value, or the name and message of the exception that it raised."""
        try:
            reply = {"value": encode(action(), self._hold)}
        except MemoryError:
            # There is no memory left for an answer, so the exit code reports this.
            os._exit(EXIT_MEMORY)
        except BaseException as error:
            name = type(error).__name__
            reply = {"raised": name, "message": str(error)[:500]}
        try:
            frames.send(self._replies, reply)
        except (ValueError, RecursionError):
            frames.send(self._replies, {"raised": "ValueError", "message": "the value cannot be written"})

    def _run(self, code: str, header: str) -> list[str]:
        """Run the program's code after `header`; return the names of the functions and classes that it defines."""
        self._code = code
        self._names = _globals("program", header)
        exec(_compiled(code), self._names)
        return [name for name, value in self._names.items() if isinstance(name, str) and callable(value)]

    def _hold(self, value: Any) -> int:
        """Store a value that cannot be sent, and return its number, which is the same for the same object."""
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)  # stored, so that no other object gets its id
        return number

    def _do(self, request: Any) -> Any:
        """Execute a request from the tests, and return the value to send back.

        request: "do" is the kind of request; "target" is the name of a function or the number of an object;
        "arguments", "named" and "name" are used by some kinds.
        """
        what, target = request["do"], request.get("target")
        if what == "method":  # LeetCode's form: a method of an object of the class Solution, if there is one
            in_class = "class Solution" in self._code
            return self._hold(getattr(self._names["Solution"](), target) if in_class else self._names[target])
        held = self._names[target] if isinstance(target, str) else self._objects[target]
        arguments = [decode(value, self._objects.__getitem__) for value in request.get("arguments", ())]
        if what == "call":
            named = {key: decode(value, self._objects.__getitem__) for key, value in request.get("named", {}).items()}
            return held(*arguments, **named)
        if what == "hold":
            return self._hold(held)
        if what == "get":
            return getattr(held, request["name"])
        if what == "set":
            return setattr(held, request["name"], arguments[0])
        if what == "items":
            return _items_of(held)
        if what == "item":
            return held[arguments[0]]
        return _BUILTINS[what](held)


_BUILTINS: dict[str, Any] = {"bool": bool, "len": len, "str": str}
"""Kind of request → the built-in function that it calls."""

MAX_ITERATED = 1_000_000
"""Maximum number of items taken from one of the program's iterables, which may be infinite."""


def _items_of(iterable: Any) -> list[Any]:
    """Return all items of an iterable. Raises `ValueError` for more than `MAX_ITERATED`."""
    items = list(islice(iterable, MAX_ITERATED + 1))
    if len(items) > MAX_ITERATED:
        raise ValueError("an iterable has too many items")
    return items


# ---- an interpreter


_PIECE_BYTES = 1 << 16
_MAX_DRAINED_BYTES = 1 << 22
"""Number of bytes read at a time, and at the end of a call; a pipe holds less, but a thread may continue to write."""

_NO_TOOLS = frozenset({"pip", "setuptools", "wheel"})
"""Installed packages that are not offered to calls."""


def imported(packages: tuple[str, ...]) -> dict[str, str]:
    """Import these packages, so that forked interpreters have them immediately; return name → version of each available
    one, and of all others that a call can import."""
    folders = [sysconfig.get_path(kind) for kind in ("purelib", "platlib")] if packages else []
    versions = {each.name: each.version for each in importlib.metadata.distributions(path=folders)} if folders else {}
    for name in packages:
        try:
            versions[name] = str(importlib.import_module(name).__version__)
        except Exception:
            versions.pop(name, None)
    return {name: version for name, version in sorted(versions.items()) if name not in _NO_TOOLS}


class Printed:
    """The beginning and the end of what a call prints, in bounded memory. most: maximum number of characters kept."""

    def __init__(self, most: int) -> None:
        self._half = (most + 1) // 2
        self._n = 0
        self._head = self._tail = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def add(self, text: str) -> None:
        """Add text."""
        self._n += len(text)
        room = self._half - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-self._half :]

    def take(self, fd: int) -> int:
        """Read a chunk of the data in the pipe; return the number of bytes, 0 at its end, -1 if the pipe is empty."""
        try:
            data = os.read(fd, _PIECE_BYTES)
        except BlockingIOError:
            return -1
        self.add(self._decode(data))
        return len(data)

    def drain(self, fd: int) -> None:
        """Read the data in the pipe."""
        left = _MAX_DRAINED_BYTES
        while left > 0 and (n := self.take(fd)) > 0:
            left -= n

    @property
    def text(self) -> str:
        """The text kept, with the number of characters omitted in the middle."""
        n_out = self._n - len(self._head) - len(self._tail)
        gap = f"\n[… {n_out:,} characters left out …]\n" if n_out else ""
        return f"{self._head}{gap}{self._tail}"


def serve_calls() -> None:
    """Run the code of each request until the caller disconnects; does not return."""
    names = _globals("__main__", "")
    # Equal calls produce equal random numbers, so that a sample can be repeated.
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    frames.send(5, {"call": 0})
    while True:
        request = frames.receive(4)
        size, number = request["bytes"], request["call"]
        for fd in (1, 2):
            os.dup2(6, fd)
        # One stream for both, so that output keeps the order of writing; line-buffered, so that an interrupted call has
        # printed its output so far.
        sys.stdout = sys.stderr = open(1, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
        reply = _call(os.pread(3, size, 0).decode("utf-8", "replace"), f"<call {number}>", names)
        try:
            sys.stdout.flush()
        except BaseException:
            pass
        frames.send(5, {**reply, "call": number})


def _call(code: str, name: str, names: dict[str, Any]) -> dict[str, str]:
    """Run code; return how it ended, with the value of a last expression or the traceback of an exception."""
    try:
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        tree: Any = compile(code, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec", dont_inherit=True), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), names)
            if value is not None:
                return {"end": "ran", "shown": str(repr(value))[: frames.MAX_REPLY_BYTES // 16]}
        return {"end": "ran", "shown": ""}
    except BaseException as error:
        try:
            frame = error.__traceback__.tb_next if error.__traceback__ else None  # without this function's own
            shown = "".join(traceback.format_exception(type(error), error, frame))
        except BaseException:
            shown = type(error).__name__
        return {"end": "failed", "shown": shown[-frames.MAX_REPLY_BYTES // 16 :]}
