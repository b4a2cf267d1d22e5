"""What an engine's log says: how far a start has come, and in plain words why it failed.

Here stands what torch, the hub, the loader and the system say under every engine; an engine's own words stand in its
file (`engines`, `LogWords`). A log is read by the words of all engines, since it need not say whose it is. Causes are
tried in the order of what tells most: a refused option, an engine's own words, then what they have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from server_launchers.engines import table
from server_launchers.keeping import private_files
from server_launchers.terminal import visible

TAIL_BYTES = 256 << 10
"""Causes are looked for in this many bytes at the end of a log."""
TAIL_LINES = 15
"""A message shows this many of the last lines."""

_SHARED_PHASES = (
    (r"[Dd]ownload\w*.*?(\d{1,3})%", "downloading weights {} %"),
    (r"[Ll]oading (?:safetensors|pt|weights|checkpoint).*?(\d{1,3})%", "loading weights {} %"),
    (r"[Cc]apturing (?:CUDA|cuda|ACL|acl|NPU)? ?graph.*?(\d{1,3})%", "capturing graphs {} %"),
    (r"[Cc]aptur(?:e|ing) (?:CUDA|cuda|ACL|acl|npu|NPU)", "capturing graphs"),
    (r"torch\.compile|Compiling|[Ii]nductor|Dynamo", "compiling"),
    (r"KV [Cc]ache|kv cache|KV_cache", "reserving the cache"),
    (r"warm[- ]?up|Warm[- ]?up", "warming up"),
    (r"Application startup complete", "listening"),
)

_PORT_IN_USE = r"[Aa]ddress already in use|couldn't bind HTTP server socket|EADDRINUSE"
_FATAL = re.compile(_PORT_IN_USE)
"""Lines after which no engine has been seen to recover, though some go on without end."""

_MEMORY = "lower --memory-fraction, --max-model-len or --max-sequences, or raise --tp"
_OPTION_CAUSES = (
    (r"unrecognized arguments?: (.+)", "the engine does not know the option {}"),
    (r"No such option:? (\S+)", "the engine does not know the option {}"),
    (r"error: (argument .+: invalid \S+.*)", "the engine refuses an option: {}"),
    (r"error: (the following arguments are required: .+)", "the engine misses an option: {}"),
)

_SHARED_CAUSES = (
    (
        r"GatedRepoError|Cannot access gated repo",
        "the model is gated: accept its terms on the hub and set HF_TOKEN",
    ),
    (
        r"RepositoryNotFoundError|Repository Not Found|is not a local folder and is not a valid model identifier",
        "the model is not found: check its name, or set HF_TOKEN if it is private",
    ),
    (
        r"SafetensorError: (.+)",
        "a file of the model's weights is damaged ({}): delete it and fetch it again",
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
        "the model brings its own code: read it, then give --trust-remote-code",
    ),
    (
        r"[Ww]orld size \((\d+)\).*?(?:number of available|available GPUs)|invalid device ordinal",
        "more devices are asked for than there are: lower --tp, --pp or --dp",
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
        "a port is in use: choose another --port, or stop the program that holds it",
    ),
    (r"unable to (?:open|write to) (?:file|shared memory)|[Bb]us error", "shared memory ran out: enlarge /dev/shm"),
    (r"^\[harness\] cannot run (.+)", "{}: the program cannot be run"),
)
_ERROR = re.compile(r"(?:\b\w*(?:Error|Exception): |^\s*Value error, )(\S.{7,}?)(?: \[type=\w+,.*)?$", re.MULTILINE)
_POINTS_ELSEWHERE = re.compile(r"[Ss]ee (?:the )?(?:root cause|stack trace)|Too many open files.{1,3}Consider")
_SIGNALS = {
    4: "it was killed by signal 4 (SIGILL): this CPU lacks an instruction that the build uses",
    6: "it aborted (signal 6)",
    7: "it was killed by signal 7 (SIGBUS): shared memory or a mapped file ran out",
    9: "it was killed by signal 9 (SIGKILL), as the kernel does when the machine's memory ends",
    11: "it crashed (signal 11)",
    15: "it was told to stop (signal 15)",
}


def tail(path: Path) -> list[str]:
    """The last lines of the log, empty where there is none yet."""
    text = (private_files.read_end(path, TAIL_BYTES) or b"").decode("utf-8", "replace")
    return [visible(line) for line in text.split("\n") if line.strip()]


@cache
def _phases() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Pattern of a line → the phase that it tells."""
    own = dict.fromkeys(pair for engine in table.every().values() for pair in engine.log.phases)
    return tuple((re.compile(pattern), text) for pattern, text in (*own, *_SHARED_PHASES))


@cache
def _causes() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Pattern → the sentence that it gives, in the order in which they are tried."""
    own = dict.fromkeys(pair for engine in table.every().values() for pair in engine.log.causes)
    pairs = (*_OPTION_CAUSES, *own, *_SHARED_CAUSES)
    return tuple((re.compile(pattern, re.MULTILINE), sentence) for pattern, sentence in pairs)


@cache
def _tells_no_phase() -> re.Pattern[str]:
    """Lines that list all settings, or what is left out."""
    settings = dict.fromkeys(pattern for engine in table.every().values() for pattern in engine.log.settings)
    return re.compile("|".join((*settings, "disabl")))


def phase(lines: Iterable[str]) -> str | None:
    """How far the start is by the last line that tells."""
    for line in reversed([line for line in lines if not _tells_no_phase().search(line)]):
        for pattern, text in _phases():
            if match := pattern.search(line):
                return text.format(*match.groups())
    return None


def is_fatal(lines: Iterable[str]) -> bool:
    """Whether one of `lines` says that the start has failed, whether or not the engine ends."""
    return any(_FATAL.search(line) for line in lines)


def known_cause(lines: Iterable[str]) -> str | None:
    """The cause of a failure that is known by its words; None where nothing of the kind stands in `lines`.

    A cause far above the last line counts too, since engines report "initialization failed, see above" last.
    """
    text = "\n".join(lines)
    for pattern, sentence in _causes():
        if match := pattern.search(text):
            return sentence.format(*(visible(group or "", 200) for group in match.groups()))
    return None


def cause(path: Path, exit_code: int | None) -> str:
    """Why the engine ended, in one sentence: from its log where a known pattern stands, else from its exit code."""
    lines = tail(path)
    if sentence := known_cause(lines):
        return sentence
    text = "\n".join(lines)
    errors = [match[1] for match in _ERROR.finditer(text) if not _POINTS_ELSEWHERE.search(match[1])]
    if not errors:
        return _exit_sentence(exit_code)
    # SGLang ends itself by SIGKILL after an error: no sign that memory ran out.
    ended = f"it ended with {'signal' if (exit_code or 0) < 0 else 'exit status'} {abs(exit_code or 0)}"
    return f"{ended}; its log says: {visible(errors[-1], 300)}"


def _exit_sentence(code: int | None) -> str:
    if code is None:
        return "it ended"
    if code >= 0:
        return f"it ended with exit status {code}"
    return _SIGNALS.get(-code, f"it was killed by signal {-code}")
