"""How much the random tests try: little in the ordinary suite, more where the environment says so (`make fuzz`)."""

from __future__ import annotations

import os


def examples(default: int) -> int:
    """Random inputs within one process: `default`, or HARNESS_FUZZ_EXAMPLES where that is more."""
    return max(default, int(os.environ.get("HARNESS_FUZZ_EXAMPLES", default)))


def rounds(default: int) -> int:
    """Whole processes that are started, killed and looked after: `default`, or HARNESS_FUZZ_ROUNDS where more."""
    return max(default, int(os.environ.get("HARNESS_FUZZ_ROUNDS", default)))
