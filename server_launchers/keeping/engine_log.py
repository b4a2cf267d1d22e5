"""Reads the lines of an engine's log: in plain words why a start failed.

It opens no file and knows no life cycle. The last exception in the log is the cause, in the engine's own words; a few
causes get the options by which the harness helps.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from harness.core.inert import visible

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
        "the model brings its own code: read it, then give `trust_remote_code`",
    ),
)
"""Pattern of what an engine's log may say → the cause."""
_ERROR = re.compile(r"(?:\b\w*(?:[Ee]rror|Exception): |^\s*Value error, )(\S.{7,}?)(?: \[type=\w+,.*)?$", re.MULTILINE)
"""The message of an exception at the end of a traceback, or of a program that refuses its options."""
# Errors that only send the reader to another line: they are no cause.
_POINTS_ELSEWHERE = re.compile(r"[Ss]ee (?:the )?(?:root cause|stack trace)|Too many open files.{1,3}Consider")
_SIGNALS: dict[int, str] = {
    signal.SIGILL: ": this CPU lacks an instruction that the build uses",
    signal.SIGBUS: ": shared memory or a mapped file ran out",
    signal.SIGKILL: ", as the kernel does when the machine's memory ends",
}
"""Signal that ended a process → what it may mean."""


def cause(lines: Sequence[str], exit_code: int | None) -> str:
    """Why the engine ended, in one sentence: from its log's lines, else from its exit code.

    Causes far above the last line count too, since engines end with "initialization failed, see above".
    """
    text = "\n".join(lines)
    for pattern, sentence in _CAUSES:
        if re.search(pattern, text):
            return sentence
    ending = "for no known cause" if exit_code is None else f"it ended with {exit_in_words(exit_code)}"
    errors = [match[1] for match in _ERROR.finditer(text) if not _POINTS_ELSEWHERE.search(match[1])]
    if errors:
        # No meaning of the signal: SGLang kills itself by SIGKILL after any error.
        return f"{ending}; its log says: {visible(errors[-1], 300)}"
    return ending + _SIGNALS.get(-(exit_code or 0), "")


def exit_in_words(code: int) -> str:
    """An exit code in words. code: negative for the signal that ended the process."""
    return f"exit status {code}" if code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"
