"""The example package's README: its tables name what an exporter and a provider get, its two whole examples work.

For: harness.exports.choice, harness.exports.exporting, harness.client.address.providers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from harness.client.address.providers import Provider
from harness.exports.choice import ExportedBenchmark, SampleChoice
from harness.runs import Manifest
from tests.exports.graded_runs import sample, write_run

PAGE = (Path(__file__).resolve().parents[2] / "examples" / "plugin_package" / "README.md").read_text("utf-8")


def part(heading: str) -> str:
    return PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def named(heading: str) -> set[str]:
    """The names in the first column of the part's table, without brackets."""
    cells = re.findall(r"^\| (`[^|]*) \|", part(heading), re.MULTILINE)
    return {name.removesuffix("()") for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def example(heading: str) -> dict[str, Any]:
    """The names that the part's code block makes."""
    (block,) = re.findall(r"```python\n(.*?)```", part(heading), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "examples/plugin_package/README.md", "exec"), names)
    return names


def test_the_tables_name_every_attribute_and_no_other() -> None:
    own = {name for name in vars(ExportedBenchmark) if not name.startswith("_")}
    assert named("Exporters") == own | set(ExportedBenchmark.__dataclass_fields__)
    assert named("Providers") == set(Provider.model_fields)


def test_the_page_s_provider_is_one() -> None:
    provider = Provider.model_validate(example("Providers")["PROVIDER"])
    assert provider.endpoint(None, "key").base_url == "https://api.example.com/v1"


def test_the_page_s_exporter_writes_the_shortest_right_reply_of_each_question(tmp_path: Path) -> None:
    replies = [(0, r"So \boxed{1}."), (0, r"\boxed{1}"), (0, r"\boxed{9}"), (1, r"\boxed{7}"), (2, r"I say \boxed{3}")]
    samples = [sample(number, index, text) for index, (number, text) in enumerate(replies)]
    folder = write_run(tmp_path / "run", samples, of_each=len(samples))
    benchmark = ExportedBenchmark(folder, Manifest.load(folder), "own", SampleChoice())
    (path,) = example("Exporters")["best"]([benchmark], tmp_path / "out")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert lines == [{"id": "q0", "reply": r"\boxed{1}"}, {"id": "q2", "reply": r"I say \boxed{3}"}]
