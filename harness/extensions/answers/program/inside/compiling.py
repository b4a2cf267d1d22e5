"""Compiling a program of C++ in the sandbox, in a process of its own that runs no byte of what it compiles.

The compiler reads hostile text: an `#include` finds only what the sandbox has, and its CPU time, memory, files and
processes are bounded. A message says how it ended:

    compiled         with the binary             compile error    with the compiler's first errors
    compile limit    its CPU time was spent      no compiler      the sandbox has no g++
    compiler failed  it was killed, or had no memory: nothing is known of the program
"""

from __future__ import annotations

import base64
import os
import re
import resource
import shutil
import signal
import tempfile
from typing import Any

from harness.extensions.answers.program.inside import confinement, frames

MAX_MESSAGE_CHARS = 2_000
"""Longest part of the compiler's errors that is kept, from the first error on."""

_MAX_ERROR_BYTES = 1024 * 1024

_MAX_BINARY_BYTES = 32 * 1024 * 1024
_FOLDERS = "/usr/local/bin:/usr/bin:/bin"
_MAX_PROCESSES = 64
_OPTIONS = ["-x", "c++", "-std=gnu++20", "-O2", "-pipe", "-fmax-errors=5", "-fdiagnostics-color=never"]
_NAME = "program.cpp"
_REFUSES = re.compile(rf": error: |^{re.escape(_NAME)}:.*: fatal error: ")
"""A line by which the compiler or the linker refuses the program."""

_SPENT = re.compile(r"^(?:g\+\+|collect2): (?:fatal error|internal compiler error): .*CPU time limit exceeded")
"""A line by which the compiler says that the kernel ended one of its programs by SIGXCPU. The CPU time that the kernel
states afterwards is no proof: on a busy machine it may be far below the limit that the kernel enforced."""

_FAILS = re.compile(
    r"^(?:g\+\+|collect2): (?:fatal error|internal compiler error): |^virtual memory exhausted: "
    r"|^(?:\S*/)?(?:cc1plus|as|ld)(?:\.\w+)?: (?:out of memory allocating "
    r"|.*(?:memory exhausted|Cannot allocate memory)$)"
)
"""A line by which a program of the compiler says that it failed itself. Such a line begins with that program's name,
without a line number (`g++: `, not `g++:1:2: `); elsewhere these words may be quoted from the compiled text."""


def build(source: str, limits: dict[str, Any], sends: int) -> None:
    """Compile `source` and send a message with the result to the descriptor `sends`.

    limits: those of the job. The message has `end` ("compiled", "compile error" …), and the binary or the errors.
    """
    path = shutil.which("g++", path=_FOLDERS)
    if path is None:
        frames.send(sends, {"end": "no compiler"})
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        frames.send(sends, _build(path, folder, source, limits))


def _build(path: str, folder: str, source: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Compile `source` in `folder` by the compiler at `path`. Returns {"end": …, "cpu": seconds} with the binary in
    base64 or the compiler's message.

    limits: those of the job; `cpu` is in seconds.
    """
    text, binary, errors = (os.path.join(folder, name) for name in (_NAME, "program", "errors"))
    with open(text, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(source)
    pid = os.fork()
    if pid == 0:
        _compile([path, *_OPTIONS, "-o", binary, text, "-pthread"], errors, limits)
    status = os.wait4(pid, 0)[1]
    spent = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    with open(errors, "rb") as file:
        message = file.read(_MAX_ERROR_BYTES)
    if status == 0 and os.path.getsize(binary) <= _MAX_BINARY_BYTES:
        with open(binary, "rb") as file:
            return {"end": "compiled", "binary": base64.b64encode(file.read()).decode(), "cpu": spent}
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return {"end": "compile limit", "message": "", "cpu": spent}
    return {**end_without_binary(message.decode("utf-8", "replace").replace(text, _NAME)), "cpu": spent}


def end_without_binary(complaints: str) -> dict[str, str]:
    """What happened in a compiler that wrote `complaints` and no binary: {"end": "compile error" if it refuses the
    program, "compile limit" if its CPU time was spent, "compiler failed" if it failed itself; "message": its first
    errors}."""
    # Not splitlines, which also ends a line at characters that the compiler quotes from the text.
    lines = complaints.split("\n")
    if any(map(_SPENT.search, lines)):
        return {"end": "compile limit", "message": ""}
    # The lines before the first error only say where the compiler was (`In file included from`), often in hundreds.
    first = next((number for number, line in enumerate(lines) if _REFUSES.search(line)), -1)
    failed = first < 0 or any(map(_FAILS.search, lines))
    message = "\n".join(lines[max(first, 0) :])[:MAX_MESSAGE_CHARS]
    return {"end": "compiler failed" if failed else "compile error", "message": message}


def _compile(words: list[str], errors: str, limits: dict[str, Any]) -> None:
    """Replace this process by the compiler; does not return.

    words: the compiler's argv. errors: path of the new file for its standard error. limits: those of the job.
    """
    try:
        null, complaints = os.open(os.devnull, os.O_RDWR), os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        for fd, target in ((null, 0), (null, 1), (complaints, 2)):
            os.dup2(fd, target)
        os.closerange(3, 4_096)
        # The limits hold for each process; cc1plus does nearly all the work in one. At its soft limit of CPU time a
        # process gets SIGXCPU, which tells why it ended; at the hard limit it would get SIGKILL, which tells nothing.
        confinement.limit(int(limits["memory"]), int(limits["cpu"]) + 1, int(limits["file"]), _MAX_PROCESSES)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (min(int(limits["cpu"]), hard), hard))
        confinement.confine(compiles=True)
        os.execve(words[0], words, {"PATH": _FOLDERS, "LC_ALL": "C", "TMPDIR": os.path.dirname(errors)})
    finally:
        os._exit(127)
