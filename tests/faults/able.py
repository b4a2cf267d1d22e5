"""Models of known ability, by sums whose result they may miss."""

from __future__ import annotations

import json
import random
from pathlib import Path

from harness.testing import Answer, Request, Said, serving


def able(chance: float, shift: int = 0, *, deaf: bool = False) -> Answer:
    """A model that is right with that chance, decided by the seed and its own nature (shift).

    deaf: decided by the question alone, as by a cache that knows no seeds.
    """

    def reply(request: Request) -> Said:
        number = int(request.json["messages"][-1]["content"].split()[2])
        rng = random.Random(number if deaf else request.json.get("seed", 0) + shift)
        right = number + 1 if rng.random() < chance else 999
        return Said(rf"Case {rng.random()}: so \boxed{{{right}}}", 50)

    return serving(reply)


def sums(folder: Path, n: int, name: str = "sums") -> Path:
    """A file of `n` questions that such a model understands: `NAME.jsonl`."""
    path = folder / f"{name}.jsonl"
    rows = [{"id": f"q{i}", "problem": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(n)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
