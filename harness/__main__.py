"""The command `harness`, also as `python -m harness`."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Import the command line, which takes a moment in which a Ctrl-C must be as quiet as later, and run it."""
    # httpx imports a command line of its own, and with it all of rich, for a third of a start's CPU. It does without.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    try:
        from harness.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
