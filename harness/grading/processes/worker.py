"""The program of a worker: reads framed tasks on one pipe, writes framed replies on another, under system limits.

Guarantees: at most 1 GB of address space; Python code can open files only for reading; no file is written; an answer
does not affect the verdict of the next one; the worker ends when its parent dies. Not guaranteed: that an answer is
decided in time. The parent enforces the deadline and kills a worker that is late.

The frames are defined in `core.codec`. The parent sends lists of tasks, and the worker a reply to each task in order;
between replies it may send notes, which stop and start the parent's clock.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from typing import Any

import msgspec

from harness.core import codec
from harness.core.records import OfferedTool, Question, SentCall
from harness.grading import verifier
from harness.grading.grades import decide
from reasoning_answers import Verdict, equal
from reasoning_answers.host import misfit

WORKER_MEMORY_BYTES = 1 << 30
"""Address space of one worker."""

MAX_FRAME_BYTES = 8 << 20
"""Longest message between the parent and a worker, in bytes."""


class GradingTask(msgspec.Struct, array_like=True):
    """One answer to grade. item: the id that the reply must repeat. question: None: the previous task's question."""

    item: str
    question: Question | None
    answer: str
    with_steps: bool = False


class GradingReply(msgspec.Struct, array_like=True):
    """The verdict on one task; or, if item is "", a note to the parent: whether imports are done (`is_ready`), so that
    the answer's deadline is running, or an import is in progress and the answer may take longer.
    """

    item: str
    verdict: Verdict | None
    is_ready: bool = True


class VerifierCheck(msgspec.Struct):
    """The result of importing a verifier: its identity, or the error in words.

    not_found: whether the verifier's own module was not found, rather than a module that it imports.
    """

    identity: str = ""
    error: str = ""
    not_found: bool = False


def check(grader: str) -> None:
    """Import the verifier `grader`, and write the result, a `VerifierCheck`, to standard output."""
    # Text that the module prints on import must not reach the parent as the result.
    reply = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    _limit()
    try:
        checked = VerifierCheck(identity=verifier.identity(grader))
    except (Exception, SystemExit) as error:  # noqa: BLE001  foreign code is imported
        module = grader.partition(":")[0]
        # The module or a package around it, not one that it imports.
        not_found = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        checked = VerifierCheck(error=verifier.describe(error), not_found=not_found)
    reply.write(codec.encode(checked))
    reply.close()


def main(deadline: float) -> None:
    """Answer the parent's tasks until it closes the pipe. deadline: seconds for one answer."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    # Text that a verifier prints must not reach the parent as a reply.
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 0)
    os.dup2(quiet, 1)
    equal("1", "1")  # imports the rules before the first deadline runs
    _limit()
    replies.write(codec.frame(GradingReply("", None)))  # ready: the parent starts the first deadline
    question: Question | None = None
    imported = {verifier.RULES}
    while (body := codec.read_frame(requests, MAX_FRAME_BYTES)) is not None:
        for task in codec.decode(body, list[GradingTask]):
            question = task.question or question
            assert question is not None
            needed = "calls" if question.kind == "calls" else question.rules.grader
            if needed not in imported:
                imported.add(needed)
                _import(needed, replies)
            _limit_time(deadline)
            replies.write(codec.frame(_serve(question, task)))


_CALL = SentCall(name="any", arguments="{}")


def _import(needed: str, replies: Any) -> None:
    """Import a verifier, or the library with which the grader checks calls, which may take seconds: the parent's clock
    for the answer is stopped.
    """
    replies.write(codec.frame(GradingReply("", None, is_ready=False)))
    # An error is reported later: the call for the answer imports the verifier again.
    with contextlib.suppress(Exception, SystemExit):
        misfit([_CALL], OfferedTool(name=_CALL.name)) if needed == "calls" else verifier.load(needed)
    replies.write(codec.frame(GradingReply("", None)))


def _serve(question: Question, task: GradingTask) -> GradingReply:
    """Return the reply to one task; an answer that needs too much memory is undecided."""
    try:
        return GradingReply(task.item, decide(question, task.answer, with_steps=task.with_steps))
    except MemoryError:
        return GradingReply(task.item, Verdict("undecided", "memory"))


_CHANGES_FOLDER = frozenset(
    ("os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.utime")
)
"""Python audit events for changing a folder or a file without opening it."""

_FOR_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_DIRECTORY
"""Flags with which a file may be opened: none that write to it or create it."""


def _refuse_changes(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: raise `PermissionError` if a file would be created or changed.

    event, arguments: as reported by Python's audit.
    """
    if event == "open":
        path, _, flags = arguments
        # Allowed: a path that is a number (a file that is already open), and /dev/null, which stores nothing.
        if isinstance(path, int) or path == os.devnull or not isinstance(flags, int) or not flags & ~_FOR_READING:
            return
        raise PermissionError("a verifier may open files only for reading")
    if event in _CHANGES_FOLDER:
        raise PermissionError("a verifier must not change files")


def _limit() -> None:
    """Set the limits of this process permanently."""
    sys.addaudithook(_refuse_changes)
    sys.set_int_max_str_digits(30_000)
    sys.setrecursionlimit(6_000)
    sys.dont_write_bytecode = True
    for kind, soft in (
        (resource.RLIMIT_AS, WORKER_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # a stricter limit is already in force
            resource.setrlimit(kind, (soft, soft))
    if sys.platform == "linux":
        import ctypes

        # Another C library may not have prctl; the worker then ends when its pipe closes.
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            library.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL: no worker outlives its parent
            library.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS


def _limit_time(deadline: float) -> None:
    """End this process if an answer uses 60 s of processor time beyond its deadline and the parent does not kill it."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    with contextlib.suppress(ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        # The limit counts from the start of the process, so what earlier answers used is added.
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + deadline) + 60, hard))


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(sys.argv[2])
    else:
        main(float(sys.argv[1]))
