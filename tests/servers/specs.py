"""Specs of real engines on a CPU, small and quick to start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from server_launchers.spec import ServerSpec

MODEL = "scripted"
THOUGHT = "Adding the numbers gives that"
ANSWER = r" So \boxed{42}."
"""What the scripted model thinks and says, whatever it is asked."""
CONTEXT = 32768
"""Tokens that the scripted model takes: streams that go on for as long as a test needs."""
TOO_LONG = "one two three " * (CONTEXT // 2)
"""A prompt beyond it."""
KEY = "key-of-the-test"
OFFLINE = {"HF_HUB_OFFLINE": "1"}
VLLM_ENVIRONMENT = {**OFFLINE, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1"}
# On two cores vLLM's default reserves one and leaves a second worker none.
VLLM_BOTH_CORES = {**VLLM_ENVIRONMENT, "VLLM_CPU_OMP_THREADS_BIND": "0|1", "VLLM_CPU_NUM_OF_RESERVED_CPU": "0"}
# Threads of several servers that wait for each other in turn make two cores crawl.
SGLANG_ENVIRONMENT = {**OFFLINE, "OMP_NUM_THREADS": "1"}

_SHARED: dict[str, Any] = {
    "served_name": MODEL,
    "device": "cpu",
    "context": CONTEXT,
    "max_sequences": 8,
    "dtype": "bfloat16",
}


def vllm_spec(python: Path, models: Path, **changes: Any) -> ServerSpec:
    """vLLM without compilation, its cache bounded to 1 GiB."""
    own = {"model": str(models / MODEL), "python": python, "eager": True, "environment": VLLM_ENVIRONMENT}
    return ServerSpec(**({"engine": "vllm"} | _SHARED | own | changes))


def sglang_spec(python: Path, models: Path, **changes: Any) -> ServerSpec:
    """SGLang with torch's own attention.

    Its memory is half of what is free: smaller shares fail when other programs take and give memory. A scheduler
    without work would spin and take the cores from the servers under test.
    """
    own = {"model": str(models / MODEL), "python": python, "environment": SGLANG_ENVIRONMENT, "memory_fraction": 0.5}
    flags = {"attention_backend": "torch_native", "extra_flags": ("--max-total-tokens", "65536", "--sleep-on-idle")}
    return ServerSpec(**({"engine": "sglang"} | _SHARED | own | flags | changes))
