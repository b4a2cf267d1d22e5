"""What is asked of a server reaches its engine or is refused: each field of the spec, for each engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from harness.core.errors import UsageError
from server_launchers.engines import table
from server_launchers.errors import LaunchError
from server_launchers.spec import ENGINES, OPTIONS, EngineName, ServerSpec, flag_of
from tests.server_launchers.planned import planned

OTHERS: dict[str, Any] = {
    "served_name": "another", "host": "127.0.0.2", "port": 9000, "api_key_env": "SOME_KEY", "tp": 2, "pp": 2, "dp": 2,
    "dp_mode": "router", "devices": ("2", "3"), "device": "cpu", "nodes": 2, "node_rank": 1, "head_address": "10.0.0.2",
    "head_port": 29501, "node_address": "10.0.0.3", "interface": "eth7", "context": 4096, "memory_fraction": 0.5,
    "max_sequences": 7, "max_batched_tokens": 2048, "images_per_prompt": 3, "attention_backend": "other",
    "dtype": "float16",
    "quantization": "fp8", "reasoning_parser": "qwen3", "sampling_defaults": "model", "deterministic": True, "seed": 5,
    "eager": True, "prefix_caching": False, "chat_template": Path(__file__), "trust_remote_code": True,
    "threads": 3, "environment": {"A": "b"}, "engine_version": "0.7.3", "python": Path("/envs/one/bin/python"),
    "docker": "image:tag", "router_python": Path("/envs/router/bin/python"),
    "health_path": "/alive", "start_timeout": 5.0, "stop_grace": 1.0, "restarts": 3,
}  # fmt: skip
"""For each field a value that is not the default."""

PAIR: dict[str, Any] = {"devices": ("0", "1")}
BESIDE: dict[str, dict[str, Any]] = {
    **{field: {"tp": 6, "nodes": 3, "head_address": "10.0.0.1"} for field in OTHERS if re.search("node|head", field)},
    **{"tp": PAIR, "pp": PAIR, "device": PAIR | {"dp": 2}},
    "router_python": {"dp_mode": "router"},
}
"""What a field needs beside it to mean anything."""

OURS = {"start_timeout", "stop_grace", "restarts"}
"""Read by the process that keeps the server (test_launch), not written into the engine's command."""


def deployed(engine: EngineName, fields: dict[str, Any]) -> tuple[object, ...]:
    """All that a server is started with."""
    words = ("./server", "{port}", "{host}", "{served_name}") if engine == "command" else ()
    spec = ServerSpec(engine=engine, model="org/model", extra_flags=words, **fields)
    made, facts = planned(spec), table.engine_of(spec).assumed_facts(spec)
    return [process.command for process in made.processes], made.base_urls, made.readiness, facts.version


@pytest.mark.parametrize("engine", ENGINES)
def test_a_field_changes_what_is_started_or_is_refused(engine: EngineName) -> None:
    assert set(OTHERS) == set(OPTIONS)
    takes = table.by_name(engine).takes
    for field, value in OTHERS.items():
        beside = BESIDE.get(field, {})
        if field not in takes:
            with pytest.raises(UsageError, match="does not support it") as refused:
                deployed(engine, beside | {field: value})
            assert refused.value.field in (field, *beside)
        elif field not in OURS:
            without = {name: value for name, value in beside.items() if name in takes}
            assert deployed(engine, without) != deployed(engine, without | {field: value}), f"{engine} drops {field}"


@pytest.mark.parametrize(
    ("engine", "fields", "message"),
    [
        ("vllm", {"threads": 3}, r"^threads: vllm does not support it; it is supported by llama_cpp$"),
        *(
            (engine, {"dp": 2, "dp_mode": "engine"}, "cannot run several replicas")
            for engine in ("llama_cpp", "transformers", "command")
        ),
        ("vllm", {"head_address": "10.0.0.1"}, "head_address: this address applies only to multiple nodes"),
        ("vllm", {"dp": 2, "router_python": Path("python3")}, "router_python: no router will be started: set `dp_mode"),
        ("vllm", {"device": "npu"}, "the engine vllm_ascend"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(engine: EngineName, fields: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, LaunchError), match=message):
        deployed(engine, fields)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_help_of_an_engine_shows_what_it_takes_and_nothing_else(engine: EngineName) -> None:
    text = CliRunner().invoke(cli, ["serve", engine, "--help-all"]).output
    shown = set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE))
    # click keeps the spelling of a command's own help from its first call, whichever test made that.
    own = {"--name", "--detach", "--dry-run", "--help", "--help-all", "--register", "--models"}
    assert shown - own == {flag_of(field) for field in table.by_name(engine).takes}


@pytest.mark.parametrize(
    "words",
    [
        "serve llama_cpp m.gguf --dtype bfloat16",
        "run demo --model m.gguf --serve llama_cpp --serve-option dtype=bfloat16",
    ],
)
def test_a_flag_that_the_engine_does_not_take_is_refused_by_its_name(words: str) -> None:
    done = CliRunner().invoke(cli, [*words.split(), "--dry-run"])
    output = f"{done.output}{done.exception}"
    assert done.exit_code != 0
    assert "dtype" in output
    assert "llama_cpp does not support it; it is supported by vllm, " in output
