"""What each engine is started with, over many specs, is what was recorded: words, variables, ports, pages, refusals.

`python -m tests.server_launchers.test_started` records it anew, one file an engine in `started/`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

import server_launchers
from server_launchers import replicas
from server_launchers.engines import table
from server_launchers.errors import LaunchError
from server_launchers.spec import ENGINES, OPTIONS, EngineName, ServerSpec
from tests.server_launchers.test_taken_fields import BESIDE
from tests.server_launchers.test_taken_fields import OTHERS as TAKEN

RECORDED = Path(__file__).with_name("started")
ROOT = Path(server_launchers.__file__).resolve().parent

MODELS: dict[str, str] = {"llama_cpp": "/models/one.gguf"}
WORDS: dict[str, tuple[str, ...]] = {"command": ("./server", "{port}", "{host}", "{served_name}", "{model}")}

OTHERS = TAKEN | {"chat_template": Path("/templates/chat.jinja")}

VARIED: dict[str, tuple[Any, ...]] = {
    "engine_version": ("0.5.6", "0.11.0", "0.15.0", "0.33.0"),
    "device": ("cuda", "npu"),
    "dp_mode": ("engine", "client"),
    "reasoning_parser": ("deepseek_r1", "deepseek-r1", "kimi-k2"),
    "prefix_caching": (True,),
    "extra_flags": (("--generation-config", "/own"), ("--sampling-defaults=model",), ("--nonsense", "1")),
    "host": ("0.0.0.0", "::"),
}
"""Further values of a field than the one in `OTHERS`."""

_OTHER_ENGINES = re.compile(r"(?<=does not support it); [a-z_, ]+ do(es)?\b")
"""The engines that take a refused field: a new engine would change the record of each."""

VARIABLES = ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", "/hub")


def singles() -> Iterator[dict[str, Any]]:
    """The plain spec, then one field at a time with what it needs beside it."""
    yield {}
    for field, value in OTHERS.items():
        for each in (value, *VARIED.get(field, ())):
            yield BESIDE.get(field, {}) | {field: each}
    for words in VARIED["extra_flags"]:
        yield {"extra_flags": words}


def pairs(field: str) -> Iterator[dict[str, Any]]:
    """`field` together with every other, and what both need."""
    for option, value in OTHERS.items():
        for own in (OTHERS[field], *VARIED.get(field, ())):
            yield BESIDE.get(option, {}) | BESIDE.get(field, {}) | {option: value, field: own}


def started(engine: EngineName, fields: Mapping[str, Any]) -> dict[str, Any]:
    """All that a server of these fields is started with; the sentence where it is refused."""
    words = (*WORDS.get(engine, ()), *fields.get("extra_flags", ()))
    described = {"engine": engine, "model": MODELS.get(engine, "org/model"), **fields, "extra_flags": words}
    try:
        spec = ServerSpec(**described)
        facts = table.assumed_facts(spec)
        first = spec.port or 8000
        deployment = replicas.deploy(spec, range(first, first + replicas.ports_needed(spec)), facts)
    except LaunchError as error:
        return {"refused": _OTHER_ENGINES.sub("", str(error))}
    return {"version": facts.version, **msgspec.to_builtins(deployment)}


def written(value: Any) -> str:
    """One line that is the same on every machine."""
    text = json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)
    return text.replace(sys.executable, "PYTHON").replace(str(ROOT), "LAUNCHERS")


def recording(engine: EngineName) -> str:
    """The lines of an engine's file: each single field in full, all pairs of a field by a digest."""
    lines = [f"{written(fields)} -> {written(started(engine, fields))}" for fields in singles()]
    for field in OPTIONS:
        both = "\n".join(f"{written(fields)} -> {written(started(engine, fields))}" for fields in pairs(field))
        lines.append(f"pairs of {field}: {hashlib.sha256(both.encode()).hexdigest()[:16]}")
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_is_started_as_recorded(engine: EngineName) -> None:
    path = RECORDED / f"{engine}.txt"
    recorded = path.read_text("utf-8").splitlines() if path.exists() else []
    assert recording(engine).splitlines() == recorded, "run `python -m tests.server_launchers.test_started`"


def test_every_recording_is_of_an_engine() -> None:
    recorded = {path.stem for path in RECORDED.iterdir()}
    assert recorded == set(ENGINES), "run `python -m tests.server_launchers.test_started`"


@pytest.mark.parametrize(
    ("fields", "others"),
    [({"tp": 2}, {"tp": 4}), ({"host": "::"}, {}), ({"api_key_env": "A"}, {"api_key_env": "B"})],
)
def test_different_fields_give_different_recordings(fields: dict[str, Any], others: dict[str, Any]) -> None:
    assert written(started("vllm", fields)) != written(started("vllm", others))


if __name__ == "__main__":
    for name in VARIABLES:
        os.environ.pop(name, None)
    os.environ["HF_HOME"] = "/hub"
    for engine in ENGINES:
        (RECORDED / f"{engine}.txt").write_text(recording(engine), "utf-8")
