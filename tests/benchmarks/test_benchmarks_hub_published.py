"""`harness published update --from hub`: the datastore and the leaderboards, from a server that speaks the protocol.

For: harness.verbs.published, harness.benchmarks.sources.hub.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.asking.options.deciding import PublishedUpdateOptions
from harness.core.errors import UsageError
from harness.scoring.published import index
from harness.verbs.published import DATASTORE, update
from tests.benchmarks.hub_server import Dataset, Hub
from tests.scoring.test_scoring_published import RECORD

NAME = "data/aime/org/model-7b/0a0b0c0d-0e0f-4a0b-8c0d-0e0f0a0b0c0d"
FROM_HUB = PublishedUpdateOptions(source="hub")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "own-cache"))


def test_records_and_leaderboards_become_scores_and_are_fetched_once(hub: Hub) -> None:
    first = {f"{NAME}.json": json.dumps(RECORD).encode(), f"{NAME}_samples.jsonl": b"{}\n", "README.md": b""}
    hub.datasets[DATASTORE] = Dataset({"a" * 40: first})
    entries = [
        {
            "rank": 1,
            "modelId": "org/Model-7B",
            "value": 63.3,
            "verified": True,
            "filename": "x",
            "author": {"name": "o"},
        },
        {"rank": 2, "modelId": "org/Other", "value": 0.4, "verified": False, "filename": "y", "author": {"name": "o"}},
    ]
    hub.leaderboards["HuggingFaceH4/MATH-500"] = json.dumps(entries).encode()
    by_origin = {entry.origin: entry.updated for entry in update(FROM_HUB)}
    assert by_origin[f"hf://datasets/{DATASTORE}"].scores == 1
    assert [row.score.benchmark for row in index.look_up("org/model-7b")] == ["aime24", "math500"]
    assert not [path for _, path, _ in hub.log if path.endswith("_samples.jsonl")]
    hub.log.clear()
    again = {entry.origin: entry.updated for entry in update(FROM_HUB)}
    assert {updated.read for updated in again.values()} == {0}
    assert not [path for _, path, _ in hub.log if "/resolve/" in path]
    changed = json.loads(json.dumps(RECORD))
    changed["evaluation_results"][0]["score_details"]["score"] = 12.5
    hub.datasets[DATASTORE].commits["b" * 40] = first | {f"{NAME}.json": json.dumps(changed).encode()}
    update(FROM_HUB)
    assert [row.score.value for row in index.look_up("org/model-7b", "aime24")] == [0.125]
    del hub.leaderboards["HuggingFaceH4/MATH-500"]
    (gone,) = [entry for entry in update(FROM_HUB) if entry.origin.endswith("leaderboard")]
    assert (gone.updated.gone, gone.updated.scores) == (1, 0)
    assert [row.score.benchmark for row in index.look_up("org/model-7b")] == ["aime24"]


def test_a_board_that_refuses_costs_no_other(hub: Hub) -> None:
    hub.datasets[DATASTORE] = Dataset({"a" * 40: {}})
    entry = {"rank": 1, "modelId": "org/Model-7B", "value": 63.3, "filename": "x", "author": {"name": "o"}}
    hub.leaderboards["HuggingFaceH4/MATH-500"] = json.dumps([entry]).encode()
    hub.refused = {"Idavidrein/gpqa": 401}
    reasons = {entry.origin: entry.updated.passed_over for entry in update(FROM_HUB)}
    assert "401" in next(iter(reasons["hf://datasets/Idavidrein/gpqa/leaderboard"]))
    assert index.look_up("org/model-7b", "math500")


@pytest.mark.parametrize(("status", "word"), [(500, "500"), (404, "404"), (403, "gated")])
def test_a_hub_that_refuses_is_told_in_one_sentence(hub: Hub, status: int, word: str) -> None:
    hub.broken = status
    with pytest.raises(UsageError, match=word):
        update(FROM_HUB)


def test_a_hub_that_is_away_is_told(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match="cannot be reached"):
        update(FROM_HUB)


@pytest.mark.parametrize("board", [b"", b"{}", b'[{"rank": 1}]', b'[{"modelId": "m", "value": "x"}]', b"\xff"])
def test_a_leaderboard_that_is_none_is_counted(hub: Hub, board: bytes) -> None:
    hub.datasets[DATASTORE] = Dataset({"a" * 40: {}})
    hub.leaderboards["HuggingFaceH4/MATH-500"] = board
    (entry,) = [entry for entry in update(FROM_HUB) if entry.origin.endswith("leaderboard")]
    assert entry.updated.scores == 0
    assert len(entry.updated.passed_over) == 1
