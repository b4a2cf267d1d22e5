"""`harness sweep bfcl`, whole: all categories are asked of a server of known ability, and four of them make the mean.

For: harness.sweeps.whole, harness.benchmarks.row_forms.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.benchmarks import catalog
from harness.testing import FakeServer, Request, Said, serving
from tests.conftest import CHECKOUT
from tests.generation.called_tools import calling
from tests.system.command import harness

NON_LIVE = {"simple_python": 4, "multiple": 3, "parallel": 2, "parallel_multiple": 1}
"""Category → how many of its four questions the server answers rightly; of all other categories none."""
OTHERS = ("irrelevance", "live", "live_irrelevance", "live_relevance")


def stand_in(folder: Path, category: str) -> None:
    """The card of a category under its name, with four questions."""
    card = yaml.safe_load((CHECKOUT / "datasets" / f"bfcl_{category}.yaml").read_text("utf-8"))
    card |= {"source": {"kind": "file", "path": f"{category}.jsonl"}, "questions": 4, "checksum": None}
    (folder / f"bfcl_{category}.yaml").write_text(yaml.safe_dump({key: value for key, value in card.items() if value}))
    row: dict[str, Any] = {"function": [{"name": "math.f", "parameters": {"type": "dict", "properties": {}}}]}
    if not category.endswith("relevance"):
        row["ground_truth"] = [{"math.f": {}}] * (1 + ("parallel" in category))
    named = "live_simple" if category == "live" else category
    turns = ([[{"role": "user", "content": f"{category}: {n}?"}]] for n in range(4))
    rows = (json.dumps(row | {"id": f"{named}_{n}", "question": turn}) for n, turn in enumerate(turns))
    (folder / f"{category}.jsonl").write_text("\n".join(rows))


def answered(request: Request) -> Said:
    """The calls of a question, or calls where none are right and none where one is."""
    category, number = re.findall(r"(\w+): (\d)\?", json.dumps(request.json["messages"]))[0]
    if (int(number) < NON_LIVE.get(category, 0)) == category.endswith("irrelevance"):
        return Said("No call.")
    return calling(*["{}"] * (1 + ("parallel" in category)), name="math_f")


def test_the_suite_prints_the_mean_of_the_four_non_live_categories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cards").mkdir()
    for category in (*NON_LIVE, *OTHERS):
        stand_in(tmp_path / "cards", category)
    (tmp_path / "cards" / "suites").symlink_to(CHECKOUT / "datasets" / "suites")
    monkeypatch.setattr(catalog, "shipped_folder", lambda: tmp_path / "cards")
    with FakeServer(serving(answered, "test-model")) as server:
        done = harness(tmp_path, "sweep", "bfcl", "--model", "test-model", "--base-url", server.base_url, "--out", "s")
        assert done.code == 0, done.err
    offered = [each.json for each in server.requests if b"tools" in each.body]
    assert [(body["temperature"], body["tools"][0]["function"]["name"]) for body in offered] == [(0.001, "math_f")] * 32
    assert re.search(r"test-model +100\.0 .* 75\.0 .* 50\.0 .* 25\.0 .* 62\.5 ", done.out), done.out
