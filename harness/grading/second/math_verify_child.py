"""Math-Verify as a process: JSON lines in, JSON lines out. Imports nothing of the harness, so any environment will do.

In: {"id": …, "reference": …, "response": …}; out: {"id": …, "correct": true | false | null}. The first line out is
{"ready": true}, or {"ready": false, "reason": …} if the library cannot be imported.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Serve until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)  # the library may print; only verdicts go to the parent

    def say(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    try:
        from math_verify import parse, verify
    except ImportError as error:
        say({"ready": False, "reason": str(error)})
        return
    say({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        reference, response = request["reference"], request["response"]
        if "$" not in reference and "\\boxed" not in reference:
            reference = f"${reference}$"  # the library reads a bare answer only as a formula
        try:
            correct: bool | None = bool(verify(parse(reference), parse(response)))
        except Exception:  # noqa: BLE001  any failure of the library is no opinion
            correct = None
        say({"id": request["id"], "correct": correct})


if __name__ == "__main__":
    main()
