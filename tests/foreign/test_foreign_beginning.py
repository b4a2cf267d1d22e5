"""A run goes on with the file that another tool has not finished.

For: harness.foreign.recognition.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.core.errors import UsageError
from harness.core.records import FROM_FILE
from harness.runs import RunFolder, read_samples
from harness.testing import FakeServer
from tests.budget import examples
from tests.faults.able import able, sums


def run(folder: Path, file: Path, n_each: int, url: str) -> Sequence[str]:
    """The warnings of a run that begins with the file."""
    options: Any = {"base_url": url, "canary": False, "fingerprint": False}
    return harness.run(data=str(folder / "sums.jsonl"), out=file, samples=n_each, **options).warnings


def posts(server: FakeServer) -> int:
    return sum(request.method == "POST" for request in server.requests)


@pytest.mark.fuzz
def test_the_replies_of_the_file_are_kept_and_only_the_rest_is_asked(tmp_path: Path) -> None:
    sums(tmp_path, 3)
    for number in range(examples(40)):
        chance = random.Random(seed := random.getrandbits(32))
        n_each, file = chance.randint(1, 3), tmp_path / f"half-{number}.jsonl"
        rows = [
            {"prompt": f"What is {n} + 1?", "answer": str(n + 1), "gen": [chance.choice([f"so {n + 1}", "", None])]}
            for n in (*chance.choices(range(4), k=chance.randint(1, 6)), 0)
        ]
        rows[-1]["gen"] = ["so 1"]
        lines = [json.dumps(row) for row in rows]
        torn = lines[0][: chance.randrange(len(lines[0]))] if chance.random() < 0.5 else ""
        file.write_text("\n".join([*lines, torn]))
        with_text = Counter(row["prompt"] for row in rows if row["gen"][0])
        taken = sum(min(n_each, with_text[f"What is {n} + 1?"]) for n in range(3))
        with FakeServer(able(1.0)) as server:
            first, again = (run(tmp_path, file, n_each, server.base_url) for _ in range(2))
            assert posts(server) == 3 * n_each - taken, seed
        samples = [*read_samples(RunFolder(Path(f"{file}.run")).benchmark("sums"))]
        assert len({sample.key for sample in samples}) == len(samples) == 3 * n_each, seed
        assert sum(sample.endpoint == FROM_FILE + file.name for sample in samples) == taken, seed
        (said,) = [warning for warning in first if "were added to this run" in warning]
        assert "were added to this run" not in "".join(again), seed
        empty, other = sum(not row["gen"][0] for row in rows), with_text.total() - taken
        assert said.startswith(f"{taken} sample"), seed
        assert (f"{empty} empty" in said, f"{other} ignored" in said) == (empty > 0, other > 0), (seed, said)


def test_a_file_of_other_questions_is_no_beginning(tmp_path: Path) -> None:
    sums(tmp_path, 3)
    file = tmp_path / "other.jsonl"
    file.write_text(json.dumps({"prompt": "Who?", "answer": "1", "gen": ["1"]}) + "\n")
    with FakeServer(able(1.0)) as server:
        with pytest.raises(UsageError, match=r"other.jsonl contains no replies to this run's questions"):
            run(tmp_path, file, 1, server.base_url)
        assert posts(server) == 0
    assert not Path(f"{file}.run").exists()
