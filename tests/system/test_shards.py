"""One run by several clients, as its user has it: shards, each a run of its own, and what they are joined into.

For: harness.cli.merge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.benchmarks.shards import assign_parts
from harness.runs import Manifest, RunFolder
from harness.verbs.again import options_again
from tests.faults.server import FaultServer, Request, completion, http, models
from tests.system.command import harness as command

N = 5


def answer(request: Request) -> Iterator[bytes]:
    """Lists one model; right for even seeds."""
    if request.method == "GET":
        yield models("m") if request.path.endswith("/models") else http(404, {})
        return
    body = request.json
    number = int(body["messages"][-1]["content"].split("+")[1].split("?")[0])
    wrong = body["seed"] % 2
    yield from completion(rf"so \boxed{{{1 + number + wrong}}}", tokens=body["seed"] % 50 + 2)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Keywords of the run that all tests ask for."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(N)))
    with FaultServer(answer) as server:
        yield {
            "data": path, "question_key": "problem", "answer_key": "answer", "id_key": "id", "samples": 4, "model": "m",
            "base_url": server.base_url, "canary": False,
        }  # fmt: skip


def numbers(folder: Path) -> dict[str, Any]:
    """A score without what depends on the clock."""
    score = json.loads((folder / "sums" / "scores.json").read_bytes())
    return {name: value for name, value in score.items() if name not in ("speed", "workload")}


def test_shards_are_merged_into_the_run_that_one_client_makes(asked: dict[str, Any], tmp_path: Path) -> None:
    whole = harness.run(out=tmp_path / "whole", **asked)
    parts = [harness.run(out=tmp_path / f"part{k}", shard=f"{k}/2", **asked) for k in (1, 2)]
    assert all(part.complete for part in parts)
    assert sorted(part.outcome.n_done for part in parts) == [8, 12], "two questions and three, of four samples"

    merged = harness.merge(parts, out=tmp_path / "joined")
    assert merged.complete
    again = harness.run(out=merged.path, **asked)
    assert (again.complete, again.outcome.tally.finished) == (True, 0), "the joined folder is a run like any other"
    for folder in (whole.path, merged.path, *(part.path for part in parts)):
        harness.score(folder, workers=1)
    assert numbers(whole.path) == numbers(merged.path)
    assert numbers(parts[0].path)["n_questions"] + numbers(parts[1].path)["n_questions"] == N

    (compared,) = harness.compare([merged.path, whole.path])
    assert compared.settings == []
    (other,) = harness.compare([parts[0].path, merged.path])
    assert [one.field for one in other.settings] == ["shard", "questions"]

    seen = command(tmp_path, "status", "part1")
    assert seen.code == 0
    assert "sums" in seen.out
    assert command(tmp_path, "doctor", "part1", "part2", "joined").code == 0


def test_a_shard_that_is_taken_for_another_is_refused(asked: dict[str, Any], tmp_path: Path) -> None:
    harness.run(out=tmp_path / "part", shard="1/2", **asked)
    with pytest.raises(harness.StoreError, match=r'shard\.part: "1/2" → "2/2"'):
        harness.run(out=tmp_path / "part", shard="2/2", **asked)
    with pytest.raises(harness.StoreError, match=r"shard: .* → not set"):
        harness.run(out=tmp_path / "part", **asked)
    with pytest.raises(harness.StoreError, match=r"shard\.selection"):
        harness.run(out=tmp_path / "part", shard="1/2", limit=4, **asked)
    assert harness.run(out=tmp_path / "part", shard="1/2", **asked).outcome.tally.finished == 0


def test_the_command_that_repeats_a_shard_carries_what_was_selected(asked: dict[str, Any], tmp_path: Path) -> None:
    parts = [harness.run(out=tmp_path / f"part{k}", shard=f"{k}/2", limit=4, **asked) for k in (1, 2)]
    whole = harness.run(out=tmp_path / "whole", shard="1/2", **asked)

    def again(folder: Path) -> dict[str, Any]:
        (options,) = options_again(Manifest.load(RunFolder(folder)))
        return {name: options[name] for name in ("shard", "limit", "ids") if name in options}

    assert again(parts[0].path) == {"shard": "1/2", "limit": 4}
    assert again(whole.path) == {"shard": "1/2"}, "all questions are no choice"
    assert harness.run(out=parts[0].path, **again(parts[0].path), **asked).outcome.tally.finished == 0
    with pytest.raises(harness.StoreError, match=r"shard\.selection"):
        harness.run(out=parts[0].path, shard="1/2", ids=["q0", "q1", "q2"], **asked)
    joined = harness.merge(parts, out=tmp_path / "joined").path
    assert again(joined) == {"limit": 4}
    ids = {"ids": ["q0", "q1", "q2", "q3"]}
    named = harness.run(out=tmp_path / "named", shard="1/2", **ids, **asked)
    assert again(named.path) == {"shard": "1/2", **ids}
    assert harness.run(out=joined, **again(joined), **asked).outcome.tally.finished == 0


def test_the_command_joins_says_what_is_missing_and_scores(asked: dict[str, Any], tmp_path: Path) -> None:
    one = harness.run(out=tmp_path / "one", shard="1/2", **asked)
    done = command(tmp_path, "merge", "one", "--out", "joined")
    assert done.code == 1, "samples are owed"
    two = harness.run(out=tmp_path / "two", shard="2/2", **asked)
    n_one, n_two = one.outcome.n_done, two.outcome.n_done
    done = command(tmp_path, "merge", "one", "two", "--out", "joined")
    assert f"sums: {n_one + n_two} samples, {n_two} of them new" in done.err + done.out
    scored = command(tmp_path, "score", "joined", "--workers", "1", "--json")
    assert scored.code == 0, scored.err
    assert json.loads(scored.out)[0]["n_samples"] == N * 4
    refused = command(tmp_path, "score", "one", "two")
    assert refused.code == 2
    assert "one is a shard, and shards are joined before they are scored: `harness merge A B" in refused.err


def test_what_cannot_be_a_shard_is_one_sentence(asked: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(harness.UsageError, match=r"shard='3/2': .*counted from 1"):
        harness.run(out=tmp_path / "x", shard="3/2", **asked)
    with pytest.raises(harness.UsageError, match="a shard's error is not the run's"):
        harness.run(out=tmp_path / "x", shard="1/2", target_error=10, **asked)


def test_more_parts_than_questions_leave_some_with_none(asked: dict[str, Any], tmp_path: Path) -> None:
    held = assign_parts("sums", [f"q{n}" for n in range(N)], N + 1)
    (empty,) = set(range(1, N + 2)) - set(held.values())
    with pytest.raises(harness.UsageError, match="fewer questions than parts"):
        harness.run(out=tmp_path / "none", shard=f"{empty}/{N + 1}", **asked)
    parts = [harness.run(out=tmp_path / f"p{k}", shard=f"{k}/{N + 1}", **asked) for k in sorted(held.values())]
    assert [part.outcome.n_done for part in parts] == [4] * N
    merged = harness.merge(parts, out=tmp_path / "joined")
    assert merged.complete
    assert [note for one in merged.benchmarks for note in one.notes()] == [], "nobody misses the empty part"


def test_the_default_folder_of_a_shard_is_its_own(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert harness.run(shard="1/2", **asked).path == tmp_path / "results" / "m-shard-1-of-2"
    identity = Manifest.load(RunFolder(tmp_path / "results" / "m-shard-1-of-2")).benchmarks["sums"].identity
    assert identity["shard"]["part"] == "1/2"
