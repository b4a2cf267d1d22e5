"""What an engine's log says: how far a start has come, and in plain words why it failed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from server_launchers.terminal import visible

TAIL_BYTES = 64 << 10
TAIL_LINES = 15

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


def phase(lines: Iterable[str]) -> str | None:
    """How far the start is by the last line that tells."""
    for line in reversed(list(lines)):
        for pattern, text in _PHASES:
            if found := pattern.search(line):
                return text.format(*found.groups())
    return None
