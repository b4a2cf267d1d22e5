"""An interpreter that stays from call to call, as the tool of a model: its process, and what is kept of its output.

The process has the descriptors 3 (the code of a call, a file in memory), 4 (requests), 5 (replies) and 6 (what 1 and 2
are at the beginning of each call, whatever the call before has closed). Nobody trusts what it says: it can only say
what a call has printed.
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
from typing import Any

from harness.extensions.answers.program.inside import frames, served

_PIECE_BYTES = 1 << 16
_MAX_DRAINED_BYTES = 1 << 22
"""Bytes that are read at a time, and at the end of a call: a pipe holds less, but a thread may go on writing."""

_NO_TOOLS = frozenset({"pip", "setuptools", "wheel"})
"""Installed packages that are no part of what a call can use."""


def imported(packages: tuple[str, ...]) -> dict[str, str]:
    """Import these packages, so that forked interpreters have them at once; name → version of each that is there, and
    of all others that a call can import."""
    folders = [sysconfig.get_path(kind) for kind in ("purelib", "platlib")] if packages else []
    versions = {each.name: each.version for each in importlib.metadata.distributions(path=folders)} if folders else {}
    for name in packages:
        try:
            versions[name] = str(importlib.import_module(name).__version__)
        except Exception:
            versions.pop(name, None)
    return {name: version for name, version in sorted(versions.items()) if name not in _NO_TOOLS}


class Printed:
    """The beginning and the end of what a call prints, in bounded memory. most: characters that are kept."""

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
        """Read a piece of what lies in the pipe; return the number of bytes, 0 at its end, -1 if none lies there."""
        try:
            data = os.read(fd, _PIECE_BYTES)
        except BlockingIOError:
            return -1
        self.add(self._decode(data))
        return len(data)

    def drain(self, fd: int) -> None:
        """Read what lies in the pipe."""
        left = _MAX_DRAINED_BYTES
        while left > 0 and (n := self.take(fd)) > 0:
            left -= n

    @property
    def text(self) -> str:
        """What is kept, with the number of characters that were left out in the middle."""
        n_out = self._n - len(self._head) - len(self._tail)
        gap = f"\n[… {n_out:,} characters left out …]\n" if n_out else ""
        return f"{self._head}{gap}{self._tail}"


def serve() -> None:
    """Run the code of each request until the caller is gone; does not return."""
    names = served._globals("__main__", "")
    # Equal calls give equal numbers, so that an interpreter can be made again by its earlier calls.
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    frames.send(5, {"call": 0})
    while True:
        request = frames.receive(4)
        size, number = request["bytes"], request["call"]
        for fd in (1, 2):
            os.dup2(6, fd)
        # One stream for both, so that a call sees them in the order of writing; in lines, so that a call that is
        # stopped has printed what it did.
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
