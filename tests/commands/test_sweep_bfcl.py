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

from harness.benchmarks import catalogue
from harness.testing import FakeServer, Reply, Request, Said, serving
from tests.conftest import CHECKOUT
from tests.generation.called_tools import calling
from tests.system.command import harness

RIGHT = {  # category → how many of its four questions the server answers rightly
    "simple_python": 4,
    "multiple": 3,
    "parallel": 2,
    "parallel_multiple": 1,
    "irrelevance": 0,
    "live_simple": 0,
    "live_irrelevance": 0,
    "live_relevance": 0,
}


def stand_ins(folder: Path) -> None:
    """The suite's cards under their names, each with four questions of its category."""
    folder.mkdir()
    for category in RIGHT:
        card = f"bfcl_{category}" if category != "live_simple" else "bfcl_live"
        content = yaml.safe_load((CHECKOUT / "datasets" / f"{card}.yaml").read_text("utf-8"))
        fields = {key: value for key, value in content.items() if key not in ("questions", "checksum")}
        fields["source"] = {"kind": "file", "path": f"{card}.jsonl"}
        (folder / f"{card}.yaml").write_text(yaml.safe_dump(fields))
        rows: list[dict[str, Any]] = [
            {
                "id": f"{category}_{n}",
                "question": [[{"role": "user", "content": f"{category}: {n}?"}]],
                "function": [{"name": "math.f", "parameters": {"type": "dict", "properties": {}}}],
            }
            | (
                {}
                if category.endswith("relevance")
                else {"ground_truth": [{"math.f": {}}] * (1 + ("para" in category))}
            )
            for n in range(4)
        ]
        (folder / f"{card}.jsonl").write_text("\n".join(map(json.dumps, rows)))


def answered(request: Request) -> Reply | Said:
    """The calls of a question, or calls where none are right and none where one is."""
    asked = re.search(r"(\w+): (\d)\?", json.dumps(request.json["messages"]))
    assert asked is not None
    category = asked[1]
    right = int(asked[2]) < RIGHT[category]
    if right != (category in ("irrelevance", "live_irrelevance")):
        return calling(*["{}"] * (1 + ("para" in category)), name="math_f")
    return Said("No call.")


def test_the_suite_of_calls_prints_the_mean_of_the_four_non_live_categories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_ins(tmp_path / "cards")
    (tmp_path / "cards" / "suites").symlink_to(CHECKOUT / "datasets" / "suites")
    monkeypatch.setattr(catalogue, "shipped_folder", lambda: tmp_path / "cards")
    with FakeServer(serving(answered, "test-model")) as server:
        done = harness(tmp_path, "sweep", "bfcl", "--model", "test-model", "--base-url", server.base_url, "--out", "s")
        assert done.code == 0, done.err
    offered = [each.json for each in server.requests if b"tools" in each.body]
    assert len(offered) == 4 * len(RIGHT)
    assert {(body["temperature"], body["tools"][0]["function"]["name"]) for body in offered} == {(0.001, "math_f")}
    assert "Mean of the benchmarks' accuracies" in done.out
    assert re.search(r"test-model +100\.0 .* 75\.0 .* 50\.0 .* 25\.0 .* 62\.5 ", done.out), (
        "simple to parallel multiple, and the mean"
    )
