"""The errors of launchers, each a single sentence for the user, and the cause of a failed start in an engine's log.

LaunchError          a server cannot be started, found, made ready or stopped
├── ModelError       the model is a path without a model that the engine serves
└── DownloadError    model weights cannot be fetched
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Sequence

from harness.core.errors import ServerError
from harness.core.sanitize import quoted


class LaunchError(ServerError):
    """A server could not be started, found, made ready or stopped; the text explains why and what to do."""


class ModelError(LaunchError):
    """The model is a path without a model that the engine serves."""


class DownloadError(LaunchError):
    """Model weights cannot be fetched: no index is reachable, the checksum differs, or the disk is full."""


GUARDS_MARK = "[harness]"
"""Prefix of each line that the guard, which watches the engine, writes to the engine's log."""

LOG_TAIL = "last lines of"
"""Prefix of an error's line before the last lines of a log: `last lines of PATH:`."""


def shorten_error(text: str) -> str:
    """Shorten the text of an error for a footnote: the lines of a log become the log's path and the engine's last line.

    That line is omitted if the text before it says the same.
    """
    head, tail, lines = text.partition(f"\n{LOG_TAIL} ")
    if not tail:
        return text
    path, *written = lines.splitlines()
    # The guard's own lines come last and say nothing about the cause.
    last = next((line.strip() for line in reversed(written) if not line.lstrip().startswith(GUARDS_MARK)), "")
    is_repeated = (last.partition(": ")[2] or last) in head
    return f"{head}\nits log: {path.removesuffix(':')}" + ("" if is_repeated else f"\nits last line: {last}")


# ---- the cause of a failed start in plain words, from the lines of an engine's log


_CAUSES = (
    (
        r"(?:CUDA|HIP|NPU) out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        "the devices ran out of memory: lower `memory_fraction`, `context` or `max_sequences`, or raise `tp`",
    ),
    (
        r"No available memory for the cache blocks|larger than the available KV cache memory"
        r"|Loaded weights leave no GPU memory for the KV cache|Please try to increase --mem-fraction-static",
        "the weights leave too little memory for the cache: raise `memory_fraction` or `tp`, or lower `context`",
    ),
    (
        r"(?:pass the argument|setting) `trust_remote_code=True`|requires you to execute the \w+ file",
        "the model contains custom code: review it, then set `trust_remote_code`",
    ),
)
"""Pattern in an engine's log → the cause."""
_ERROR = re.compile(r"(?:\b\w*(?:[Ee]rror|Exception): |^\s*Value error, )(\S.{7,}?)(?: \[type=\w+,.*)?$", re.MULTILINE)
"""The message of an exception at the end of a traceback, or of a program that rejects its options."""
# Errors that only refer the reader to another line; they are not a cause.
_POINTS_ELSEWHERE = re.compile(
    r"[Ss]ee (?:the )?(?:root cause|stack trace)|Too many open files.{1,3}Consider|\d+ validation errors? for "
)
_SIGNALS: dict[int, str] = {
    signal.SIGILL: ": this CPU does not support an instruction that the build uses",
    signal.SIGBUS: ": shared memory or disk space for a mapped file ran out",
}
"""Signal that ended a process → what it may mean."""


def log_cause(lines: Sequence[str], exit_code: int | None, takes: Collection[str]) -> str:
    """Why the engine ended, in one sentence, from its log's lines or, failing that, its exit code.

    Causes far above the last line count too, because engines end with "initialization failed, see above". The first and
    the last exception are named in the engine's own words. A few causes are extended with the options that fix them, if
    the engine takes these. takes: the fields of the spec that the engine takes.
    """
    text = "\n".join(lines)
    for pattern, sentence in _CAUSES:
        if re.search(pattern, text):
            return sentence if {*re.findall("`(.+?)`", sentence)} <= {*takes} else sentence.partition(": ")[0]
    ending = "the reason is unknown" if exit_code is None else f"it ended with {describe_exit(exit_code)}"
    errors = [match[1] for match in _ERROR.finditer(text) if not _POINTS_ELSEWHERE.search(match[1])]
    if errors:
        # The signal has no meaning here: SGLang kills itself with SIGKILL after any error.
        quotations = dict.fromkeys(f"“{quoted(error)}”" for error in (errors[0], errors[-1]))
        return f"{ending}; its log says: {' and last: '.join(quotations)}"
    return ending + _SIGNALS.get(-(exit_code or 0), "")


def describe_exit(code: int) -> str:
    """An exit code in words. code: negative for the signal that ended the process."""
    return f"exit status {code}" if code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"
