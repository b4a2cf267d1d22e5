"""Write pins anew: `python -m tests.pins.write [SCENE…]`, such as `score` or `score.shards`; without names, all.

Write only where a user is to see something else: write, read the diff of `tests/pins/data`, and say each change and its
reason in the commit's message. A refactoring never writes: a pin that changes though nothing was meant to change is a
defect that has been found. A new warning or error first gets a key in `notes.toml`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


def main() -> None:
    """Play the scenes in a test run that writes instead of comparing."""
    os.environ["HARNESS_WRITE_PINS"] = ",".join(sys.argv[1:]) or "all"
    raise SystemExit(pytest.main(["-q", "-p", "no:randomly", str(Path(__file__).with_name("test_pins.py"))]))


if __name__ == "__main__":
    main()
