"""Prompts of random words: seeded, different from the beginning on, and graded by the code that each hides.

For: harness.benchmarks.sources.chooser.
"""

from __future__ import annotations

import re
from pathlib import Path

import harness
from harness.benchmarks.card import RandomSource
from harness.benchmarks.sources.chooser import random_prompts
from harness.testing import FakeServer, Request, Said, serving


def test_prompts_are_seeded_and_share_no_beginning() -> None:
    rows = [
        [row.value for row in random_prompts(RandomSource(kind="random", words=100, size=n, seed=1)).rows]
        for n in (20, 50)
    ]
    assert rows[0] == rows[1][:20], "a larger size changes no prompt"
    assert len({" ".join(row["question"].split()[:10]) for row in rows[1]}) == 50
    for row in rows[1]:
        assert re.findall(r"\(the code is (\d{7})\)", row["question"]) == row["answer"]
        assert 90 <= len(row["question"].split()) <= 110
    other = next(iter(random_prompts(RandomSource(kind="random", words=100, size=1, seed=2)).rows)).value
    assert other["question"] != rows[0][0]["question"]
    assert random_prompts(RandomSource(kind="random", words=1, size=1)).rows, "the shortest has its code, too"


def test_a_reply_of_a_fixed_length_is_right_if_it_names_the_code(tmp_path: Path) -> None:
    def reply(request: Request) -> Said:
        prompt = request.json["messages"][-1]["content"]
        code = re.findall(r"code is (\d+)", prompt)[0]
        return Said(f"{code} is the code." if len(seen) % 2 else "time year", 12, finish="length")

    seen = list[int]()
    with FakeServer(serving(lambda request: (seen.append(1), reply(request))[1])) as server:
        made = harness.run(
            "random_1k", limit=4, base_url=server.base_url, out=tmp_path / "r", canary=False, concurrency=1
        )
    assert made.complete
    scored = harness.score(tmp_path / "r")["random_1k"]
    assert scored.accuracy is not None
    assert scored.accuracy.value == 0.5
