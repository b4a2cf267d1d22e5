"""Reads the lines of an engine's log: in plain words why a start failed.

It opens no file and knows no life cycle. It knows what torch, the hub, the loader and the system write under every
engine; the lines of one engine are in its own file (`Engine.causes`). Lines are matched against the patterns of all
engines, because they need not name theirs. The most specific causes are tried first: a refused option, then an engine's
own lines, then common ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from harness.core.inert import visible
from server_launchers.engines import table

_PORT_IN_USE = r"[Aa]ddress already in use|couldn't bind HTTP server socket|EADDRINUSE"
"""Lines of a program whose port is taken."""
_FATAL = re.compile(_PORT_IN_USE)
"""Lines that mean a failed start for every engine, though some engines hang instead of ending."""

_MEMORY = "lower `memory_fraction`, `context` or `max_sequences`, or raise `tp`"
"""Advice where the devices have too little memory."""
_OPTION_CAUSES = (
    (r"unrecognized arguments?: (.+)", "the engine does not know the option {}"),
    (r"No such option:? (\S+)", "the engine does not know the option {}"),
    (r"error: (argument .+: invalid \S+.*)", "the engine refuses an option: {}"),
    (r"error: (the following arguments are required: .+)", "the engine needs an option: {}"),
)
"""Pattern of a refused option → the cause. Tried before an engine's own causes."""

_SHARED_CAUSES = (
    (
        r"GatedRepoError|Cannot access gated repo",
        "the model is gated: accept its terms on the hub and set HF_TOKEN",
    ),
    (
        r"RepositoryNotFoundError|Repository Not Found|is not a local folder and is not a valid model identifier",
        "the model was not found: check its name, or set HF_TOKEN if the model is private",
    ),
    (
        r"SafetensorError: (.+)",
        "a file of the model's weights is damaged or incomplete ({}): wait until it is written, or fetch it again",
    ),
    (
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect to 'https?://\S+'|"
        r"(?:Temporary failure in name resolution|Name or service not known|Network is unreachable)",
        "the model is not in the cache and the hub cannot be reached: check the network and HF_HUB_OFFLINE",
    ),
    (r"No space left on device", "the disk is full: free space, or set HF_HOME to another disk"),
    (
        r"(?:CUDA|HIP|NPU) out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        f"the devices ran out of memory: {_MEMORY}",
    ),
    (
        r"(?:pass the argument|setting) `trust_remote_code=True`|requires you to execute the \w+ file",
        "the model brings its own code: read it, then give `trust_remote_code`",
    ),
    (
        r"[Ww]orld size \((\d+)\).*?(?:number of available|available GPUs)|invalid device ordinal",
        "the machine has fewer devices than requested: lower `tp`, `pp` or `dp`",
    ),
    (
        r"NVIDIA driver on your system is too old|driver version is insufficient for CUDA runtime",
        "the NVIDIA driver is too old for this build of torch: update it, or install a build for an older CUDA",
    ),
    (
        r"Found no NVIDIA driver|No CUDA GPUs are available|Failed to infer device type|libcuda\.so\.1|"
        r"has no attribute '_cuda_setDevice'|Torch not compiled with CUDA enabled",
        "the engine sees no device: check nvidia-smi or npu-smi, the driver, and the visible-devices variable",
    ),
    (
        r"(?:ImportError|OSError|error while loading shared libraries): (lib\S+?):? cannot open shared object file",
        "the shared library {} is missing: install it, or add its folder to LD_LIBRARY_PATH",
    ),
    (
        r"error while loading shared libraries: (lib\S+?):",
        "the shared library {} is missing: install it, or add its folder to LD_LIBRARY_PATH",
    ),
    (r"ModuleNotFoundError: No module named '([^']+)'", "the engine's environment lacks the Python module {}"),
    (
        _PORT_IN_USE,
        "a port is in use: choose another `port`, or stop the program that holds it",
    ),
    (r"unable to (?:open|write to) (?:file|shared memory)|[Bb]us error", "shared memory ran out: enlarge /dev/shm"),
    (r"^\[harness\] cannot run (.+)", "{}: the program cannot be run"),
)
"""Pattern of what every engine's log may say → the cause. Tried after an engine's own causes."""
_ERROR = re.compile(r"(?:\b\w*(?:Error|Exception): |^\s*Value error, )(\S.{7,}?)(?: \[type=\w+,.*)?$", re.MULTILINE)
"""The message of an exception at the end of a traceback."""
# Errors that only send the reader to another line: they are no cause.
_POINTS_ELSEWHERE = re.compile(r"[Ss]ee (?:the )?(?:root cause|stack trace)|Too many open files.{1,3}Consider")
_SIGNALS = {
    4: "it was killed by signal 4 (SIGILL): this CPU lacks an instruction that the build uses",
    6: "it aborted (signal 6)",
    7: "it was killed by signal 7 (SIGBUS): shared memory or a mapped file ran out",
    9: "it was killed by signal 9 (SIGKILL), as the kernel does when the machine's memory ends",
    11: "it crashed (signal 11)",
    15: "it was told to stop (signal 15)",
}
"""Signal that ended a process → the cause."""


@cache
def _causes() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Pattern → the sentence on the cause, in the order in which patterns are tried."""
    own = dict.fromkeys(pair for engine in table.every().values() for pair in engine.causes)
    pairs = (*_OPTION_CAUSES, *own, *_SHARED_CAUSES)
    return tuple((re.compile(pattern, re.MULTILINE), sentence) for pattern, sentence in pairs)


def is_fatal(lines: Iterable[str]) -> bool:
    """Whether a line says that the start has failed. Engines may write such a line and hang instead of ending."""
    return any(_FATAL.search(line) for line in lines)


def known_cause(lines: Iterable[str]) -> str | None:
    """A known cause of failure in these lines; None if there is none.

    Causes far above the last line count too, since engines end with "initialization failed, see above".
    """
    text = "\n".join(lines)
    for pattern, sentence in _causes():
        if match := pattern.search(text):
            return sentence.format(*(visible(group or "", 200) for group in match.groups()))
    return None


def cause(lines: Sequence[str], exit_code: int | None) -> str:
    """Why the engine ended, in one sentence: from a known pattern in its log's lines, else from its exit code."""
    if sentence := known_cause(lines):
        return sentence
    text = "\n".join(lines)
    errors = [match[1] for match in _ERROR.finditer(text) if not _POINTS_ELSEWHERE.search(match[1])]
    if not errors:
        return _exit_sentence(exit_code)
    # `_exit_sentence` would read SIGKILL as a lack of memory, but SGLang kills itself by SIGKILL after any error.
    code = exit_code or 0
    ending = "" if exit_code is None else f"it ended with {f'signal {-code}' if code < 0 else f'exit status {code}'}; "
    return f"{ending}its log says: {visible(errors[-1], 300)}"


def _exit_sentence(code: int | None) -> str:
    """The end of a process in words. code: its exit code, negative for a signal; None if it is unknown."""
    if code is None:
        return "for no known cause"
    if code >= 0:
        return f"it ended with exit status {code}"
    return _SIGNALS.get(-code, f"it was killed by signal {-code}")
