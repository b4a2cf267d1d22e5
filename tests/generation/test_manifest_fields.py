"""Every field of a manifest, changed one by one before a resume: rejected with its difference, recorded anew, or kept.

The fields are those that a run with every setting set has written, so a new one cannot be forgotten: the table of
`docs/running.md` must name it unless a resume records it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.benchmarks import shards
from harness.benchmarks.questions import QuestionSet
from harness.benchmarks.shards import Shard
from harness.client.request_fields import Spelling
from harness.core.errors import StoreError
from harness.core.number_text import Prices
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling, sampling_fields
from harness.runs import Manifest, RunFolder
from harness.runs.recorded_settings import CHECKSUMS, describe_setting, may_move_scores, settings_by_path
from harness.testing import FakeServer
from tests.generation.small_runs import changed, question_set, run, run_settings, well
from tests.presets.every_field import every_field

PAGE = Path(__file__).resolve().parents[2] / "docs" / "running.md"
EVERY_SAMPLING = Sampling(**every_field())
ONE_FIELD = {"chat_template_kwargs", "extra_body", "endpoints", "sampling_from", "prices", "deadlines"}
"""Fields whose inner names are a user's, or stand for one thing."""
BY_ITS_OWN_RULES = {"provenance"}
"""Compared fact by fact; see `docs/provenance.md`."""

Path_ = tuple[str, ...]


def settings_of(folder: Path, url: str) -> RunSettings:
    return changed(
        run_settings(folder / "run", url),
        benchmarks={"sums": BenchmarkSettings(samples=2, sampling=EVERY_SAMPLING, origins={"top_k": "options"})},
        seed=7,
        spelling=Spelling(chat_template_kwargs={"enable_thinking": False}, extra_body={"top_a": 0.5}),
        key_variable="MY_KEY",
        fit_context=True,
        budget_tokens=10**9,
        budget_usd=1e6,
        prices=Prices(prompt=1.0, completion=2.0),
        requests_per_minute=1e6,
        requests_per_second=1e3,
    )


def fields(value: dict[str, Any], path: Path_ = ()) -> Iterator[Path_]:
    """The path of every value of a manifest."""
    for name, inner in value.items():
        if isinstance(inner, dict) and inner and name not in ONE_FIELD:
            yield from fields(inner, (*path, name))
        else:
            yield *path, name


def shown(path: Path_) -> str:
    """As the page names it: `benchmarks.sums.plan.samples` is `plan.samples`, and `identity` is one field."""
    name = ".".join(path[2:] if path[0] == "benchmarks" else path)
    return "identity" if name.startswith("identity.") else name


def other(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case list():
            return [*value, "x"]
        case dict():
            return {**value, "x": next((inner + 1 for inner in value.values() if type(inner) is int), "x")}
        case _:
            return ["q0"]


def at(manifest: dict[str, Any], path: Path_) -> Any:
    for name in path:
        manifest = manifest[name]
    return manifest


def after_a_change(settings: RunSettings, asked: QuestionSet, path: Path_, before: bytes) -> str:
    """What a resume makes of a manifest that had another value at `path`."""
    stored = settings.out / "manifest.json"
    changed = json.loads(before)
    at(changed, path[:-1])[path[-1]] = was = other(at(changed, path))
    stored.write_text(json.dumps(changed), encoding="utf-8")
    try:
        run(settings, asked, contexts=[5000])
    except StoreError as refusal:
        message = str(refusal)
    else:
        message = ""
    if message:
        assert stored.read_text() == json.dumps(changed), "a refused resume changed the manifest"
        name = ".".join(path[2:] if path[0] == "benchmarks" else path).removeprefix("identity.")
        expected = rf"schema {was}" if name == "schema" else rf"^  {re.escape(name)}\b.* → "
        assert re.search(expected, message, re.MULTILINE), (name, message)
        return "rejected"
    now = at(json.loads(stored.read_bytes()), path)
    assert now in (was, at(json.loads(before), path))
    return "kept" if now == was else "recorded"


def test_the_page_says_what_a_resume_makes_of_every_field(tmp_path: Path) -> None:
    asked = dataclasses.replace(question_set(tmp_path, 2, system_prompt="Be brief."), publish=False, n_all=3)
    asked = shards.part(asked, Shard(1, 1))
    with FakeServer(well) as server:
        settings = settings_of(tmp_path, server.base_url)
        assert run(settings, asked, contexts=[5000]).complete
        before = (settings.out / "manifest.json").read_bytes()
        by_field: dict[str, set[str]] = {}
        for path in fields({name: v for name, v in json.loads(before).items() if name not in BY_ITS_OWN_RULES}):
            n_asked = len([request for request in server.requests if request.method == "POST"])
            by_field.setdefault(after_a_change(settings, asked, path, before), set()).add(shown(path))
            assert len([request for request in server.requests if request.method == "POST"]) == n_asked
    rows = re.findall(
        r"^\| (rejected|recorded|kept), [^|]*\| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    table = {name: set(re.findall(r"`([\w.]+)`", listed)) for name, listed in rows}
    assert table == by_field | {"recorded": set()}, "the page names all but those that are recorded"
    assert sampling_fields().keys() <= json.loads(before)["benchmarks"]["sums"]["identity"]["sampling"].keys()


def test_every_digest_that_a_run_records_counts_as_a_checksum(tmp_path: Path) -> None:
    asked = dataclasses.replace(question_set(tmp_path, 2, system_prompt="Be brief."), publish=False, n_all=3)
    with FakeServer(well) as server:
        settings = settings_of(tmp_path, server.base_url)
        run(settings, shards.part(asked, Shard(1, 1)), contexts=[5000])
    by_path = settings_by_path(Manifest.load(RunFolder(settings.out)).benchmarks["sums"])
    digests = {path for path, value in by_path.items() if re.search(r"[0-9a-f]{32}", str(value))}
    assert digests >= {"prompt_digest", "questions_digest"}
    assert digests == CHECKSUMS & by_path.keys()
    assert [*map(describe_setting, ("prices.prompt", "sampling.top_k"))] == ["prices.prompt", "top_k"]
    assert [*map(may_move_scores, ("prices.prompt", "sampling.top_k"))] == [False, True]
