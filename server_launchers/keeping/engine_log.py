"""What an engine's log says: how far a start has come, and in plain words why it failed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from server_launchers.terminal import visible

TAIL_BYTES = 256 << 10
"""Bytes at the end of a log in which causes are looked for."""
TAIL_LINES = 15
"""Lines of it that a message shows."""

_PHASES = (
    (re.compile(r"[Dd]ownload\w*.*?(\d{1,3})%"), "downloading weights {} %"),
    (re.compile(r"[Ll]oading (?:safetensors|pt|weights|checkpoint).*?(\d{1,3})%"), "loading weights {} %"),
    (re.compile(r"[Ll]oad_model: loading model|Load(?:ing)? weight begin|Starting to load model"), "loading weights"),
    (re.compile(r"[Cc]apturing (?:CUDA|cuda|ACL|acl|NPU)? ?graph.*?(\d{1,3})%"), "capturing graphs {} %"),
    (re.compile(r"[Cc]aptur(?:e|ing) (?:CUDA|cuda|ACL|acl|npu|NPU)"), "capturing graphs"),
    (re.compile(r"torch\.compile|Compiling|[Ii]nductor|Dynamo"), "compiling"),
    (re.compile(r"KV [Cc]ache|kv cache|KV_cache|GPU blocks|Memory pool"), "reserving the cache"),
    (re.compile(r"warm[- ]?up|Warm[- ]?up"), "warming up"),
    (re.compile(r"Application startup complete|fired up and ready|listening on http"), "listening"),
)

_PORT_IN_USE = r"[Aa]ddress already in use|couldn't bind HTTP server socket|EADDRINUSE"
_FATAL = re.compile(_PORT_IN_USE)
"""What no engine has been seen to recover from, though some go on without end."""

_MEMORY = "lower --memory-fraction, --max-model-len or --max-sequences, or raise --tp"
_CAUSES = tuple(
    (re.compile(pattern, re.MULTILINE), sentence)
    for pattern, sentence in (
        (r"unrecognized arguments?: (.+)", "the engine does not know the option {}"),
        (r"No such option:? (\S+)", "the engine does not know the option {}"),
        (r"error: (argument .+: invalid \S+.*)", "the engine refuses an option: {}"),
        (r"error: (the following arguments are required: .+)", "the engine misses an option: {}"),
        (
            r"Reasoning parser '([^']+)' not found\. Available parsers: ([\w, ]+)",
            "the engine has no reasoning parser {}; it has {}",
        ),
        (
            r"GatedRepoError|Cannot access gated repo",
            "the model is gated: accept its terms on the hub and set HF_TOKEN",
        ),
        (
            r"RepositoryNotFoundError|Repository Not Found|is not a local folder and is not a valid model identifier",
            "the model is not found: check its name, or set HF_TOKEN if it is private",
        ),
        (
            r"[Mm]odel architectures? \[?'?(\w+)'?\]? (?:are|is) not supported",
            "this version of the engine does not know the model's architecture {}: use a newer one",
        ),
        (
            r"SafetensorError: (.+)",
            "a file of the model's weights is damaged ({}): delete it and fetch it again",
        ),
        (
            r"failed to load model, '(.+?)'",
            "the model {} cannot be loaded: damaged, or of a kind this build does not know",
        ),
        (
            r"LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect to 'https?://\S+'|"
            r"(?:Temporary failure in name resolution|Name or service not known|Network is unreachable)",
            "the model is not in the cache and the hub cannot be reached: check the network and HF_HUB_OFFLINE",
        ),
        (r"No space left on device", "the disk is full: free space, or set HF_HOME to another disk"),
        (
            r"(?:max_model_len|context_length) \((\d+)\) is greater than the derived \w+ \((?:\S*?=)?(\d+)",
            "the context of {} tokens is more than the model's {}: lower --max-model-len",
        ),
        (
            r"(?:No available memory for the cache blocks|larger than the available KV cache memory|"
            r"Loaded weights leave no GPU memory for the KV cache|"
            r"Not enough memory\. Please try to increase --mem-fraction-static)",
            "the weights leave too little memory for the cache: raise --memory-fraction or --tp, "
            "or lower --max-model-len",
        ),
        (
            r"SGLANG_CPU_OMP_THREADS_BIND is not set.* ranks \(.*= (\d+)\) should be smaller",
            "{} workers are more than the processor's memory nodes: lower --tp and --dp, or bind the workers to cores "
            "with --env SGLANG_CPU_OMP_THREADS_BIND='0|1'",
        ),
        (
            r"Available memory on node \d+ \(([\d.]+)/\S+ GiB\).* less than requested memory for kv \(([\d.]+) GiB\)",
            "the machine has {} GiB of memory left for the cache and {} are asked for: lower VLLM_CPU_KVCACHE_SPACE "
            "(with --env)",
        ),
        (
            r"Free memory on device .*?less than desired GPU memory utilization",
            "other programs hold the devices' memory (see nvidia-smi): stop them or lower --memory-fraction",
        ),
        (
            r"(?:CUDA|HIP|NPU) out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
            f"the devices ran out of memory: {_MEMORY}",
        ),
        (
            r"(?:pass the argument|setting) `trust_remote_code=True`|requires you to execute the \w+ file",
            "the model brings its own code: read it, then give --trust-remote-code",
        ),
        (
            r"attention heads \((\d+)\) must be divisible by tensor parallel size \((\d+)\)",
            "the model's {} attention heads cannot be spread over --tp {}: choose a divisor",
        ),
        (
            r"Not enough allowed NUMA nodes to bind threads of (\d+) local CPUWorkers",
            "{} workers are more than the processor's memory nodes: lower --tp and --dp, or bind the workers to cores "
            "with --env VLLM_CPU_OMP_THREADS_BIND='0|1'",
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
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [visible(line) for line in text.split("\n") if line.strip()]


_NOT_DOING = re.compile(r"server_args=|non-default args|with config: |disabl")
"""Lines that list all settings, or what is left out."""


def phase(lines: Iterable[str]) -> str | None:
    """How far the start is by the last line that tells."""
    for line in reversed([line for line in lines if not _NOT_DOING.search(line)]):
        for pattern, text in _PHASES:
            if found := pattern.search(line):
                return text.format(*found.groups())
    return None


def is_fatal(lines: Iterable[str]) -> bool:
    """Whether one of `lines` says that the start has failed, whether or not the engine ends."""
    return any(_FATAL.search(line) for line in lines)


def known_cause(lines: Iterable[str]) -> str | None:
    """The cause of a failure that is known by its words; None where nothing of the kind stands in `lines`.

    The patterns are in order of what tells most; a cause far above the last line counts too, since engines
    report "initialization failed, see above" last.
    """
    text = "\n".join(lines)
    for pattern, sentence in _CAUSES:
        if found := pattern.search(text):
            return sentence.format(*(visible(group or "", 200) for group in found.groups()))
    return None


def cause(path: Path, exit_code: int | None) -> str:
    """Why the engine ended, in one sentence: from its log where a known pattern stands, else from its exit code."""
    lines = tail(path)
    if known := known_cause(lines):
        return known
    text = "\n".join(lines)
    said = [found[1] for found in _ERROR.finditer(text) if not _POINTS_ELSEWHERE.search(found[1])]
    if not said:
        return _exit_sentence(exit_code)
    # SGLang ends itself by SIGKILL after an error: no sign that memory ran out.
    ended = f"it ended with {'signal' if (exit_code or 0) < 0 else 'exit status'} {abs(exit_code or 0)}"
    return f"{ended}; its log says: {visible(said[-1], 300)}"


def _exit_sentence(code: int | None) -> str:
    if code is None:
        return "it ended"
    if code >= 0:
        return f"it ended with exit status {code}"
    return _SIGNALS.get(-code, f"it was killed by signal {-code}")
