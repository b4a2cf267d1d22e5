"""How much the random tests try: little in the ordinary suite, less at each save, more in `make fuzz`."""

from __future__ import annotations

import os

QUICK = os.environ.get("HARNESS_TEST_EXAMPLES") == "quick"
"""Whether this is `make test-quick`."""


def examples(default: int) -> int:
    """Random inputs within one process: `default`, or HARNESS_FUZZ_EXAMPLES where that is more. Quick: a quarter."""
    return max(default // 4 if QUICK else default, int(os.environ.get("HARNESS_FUZZ_EXAMPLES", 0)))


def rounds(default: int) -> int:
    """Whole processes that are started, killed and looked after: `default`, or HARNESS_FUZZ_ROUNDS where more."""
    return max(default, int(os.environ.get("HARNESS_FUZZ_ROUNDS", default)))
