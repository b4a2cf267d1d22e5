"""Every command line that a launcher can write is parsed by the engine's own parser, of the version installed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness.presets import preset as presets
from server_launchers import replicas
from server_launchers.engines import table
from server_launchers.machine.environments import Facts
from server_launchers.spec import ServerSpec
from tests.embedded import THINKING_TEMPLATE

FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"served_name": "name", "host": "0.0.0.0", "port": 9000},
    {"context": 40960, "memory_fraction": 0.85, "max_sequences": 64, "max_batched_tokens": 8192},
    {"dtype": "bfloat16", "quantization": "fp8", "seed": 7, "trust_remote_code": True},
    {"eager": True, "prefix_caching": True, "chat_template": str(THINKING_TEMPLATE)},
    {"eager": True, "prefix_caching": False, "attention_backend": "BACKEND"},
)
PARSERS = tuple(presets.load(name).reasoning_parser for name in presets.names())
NODES = {"nodes": 2, "head_address": "10.0.0.1", "interface": "eth0", "node_address": "10.0.0.2"}
PARALLEL: tuple[dict[str, Any], ...] = (
    {"tp": 2},
    {"tp": 2, "pp": 2},
    {"tp": 2, "dp": 2},
    {"tp": 2, "dp": 2, "dp_mode": "engine"},
    {"tp": 2, "dp": 2, "dp_mode": "router"},
    {"tp": 8, "pp": 2, **NODES},
    {"tp": 8, "dp": 4, "dp_mode": "engine", **NODES},
)
KINDS = {"vllm": ({},), "sglang": ({}, {"device": "cpu"}, {"device": "npu"}, {"device": "cuda"})}
BACKENDS = {"vllm": "FLASH_ATTN", "sglang": "triton"}

READ_VLLM = """
import json, sys
from vllm.entrypoints.cli import serve
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = FlexibleArgumentParser()
subcommands = parser.add_subparsers(dest="subparser")
commands = [command for command in serve.cmd_init()]
for command in commands:
    command.subparser_init(subcommands)
for line in sys.stdin:
    try:
        arguments = parser.parse_args(json.loads(line))
        commands[0].validate(arguments)
        print(arguments.tensor_parallel_size, flush=True)
    except (SystemExit, Exception) as error:
        print("refused:", repr(error), flush=True)
"""
READ_SGLANG = """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
for line in sys.stdin:
    try:
        print(parser.parse_args(json.loads(line)).tp_size, flush=True)
    except (SystemExit, Exception) as error:
        print("refused:", repr(error), flush=True)
"""


def specs(engine: str) -> Iterator[ServerSpec]:
    """Specs that use every field that reaches the command line, alone or with its like, on every shape."""
    named = [{"reasoning_parser": parser.name_in(engine) if parser else None} for parser in PARSERS]
    for fields, parallel, kind in product((*FIELDS, *named), PARALLEL, KINDS[engine]):
        changed = dict(fields)
        if changed.get("attention_backend"):
            changed["attention_backend"] = BACKENDS[engine]
        for rank in range(parallel.get("nodes", 1)):
            yield ServerSpec(
                **{"engine": engine, "model": "org/model", "node_rank": rank, **changed, **parallel, **kind}
            )


def command_lines(engine: str, version: str) -> list[tuple[str, ...]]:
    """The engine's arguments of every process of every spec, each once."""
    lines: dict[tuple[str, ...], None] = {}
    for spec in specs(engine):
        ports = range(8000, 8000 + replicas.ports_needed(spec))
        for process in replicas.deploy(spec, table.engine_of(spec), ports, Facts(version)).processes:
            if process.role == "engine":
                lines[process.command.argv] = None
    return list(lines)


def answers(python: Path, code: str, lines: list[tuple[str, ...]], tmp_path: Path) -> list[str]:
    """What the engine's parser makes of each line."""
    sent = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([python, "-c", code], input=sent, capture_output=True, text=True, check=False, cwd=tmp_path)
    answered = [line for line in done.stdout.splitlines() if line.isdigit() or line.startswith("refused:")]
    assert len(answered) == len(lines), done.stderr[-2000:]
    refused = [f"{line}: {answer}" for line, answer in zip(lines, answered, strict=True) if not answer.isdigit()]
    assert not refused, "\n".join(refused[:5]) + done.stderr[-2000:]
    return answered


@pytest.mark.parametrize(
    ("engine", "version", "code", "words_of_program", "n_lines"),
    [("vllm", "0.32.0", READ_VLLM, 1, 60), ("sglang", "0.5.23", READ_SGLANG, 3, 240)],
)
def test_the_engines_parser_takes_every_command_line(
    engine: str,
    version: str,
    code: str,
    words_of_program: int,
    n_lines: int,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    lines = command_lines(engine, version)
    assert len(lines) > n_lines
    parsed = answers(request.getfixturevalue(engine), code, [line[words_of_program:] for line in lines], tmp_path)
    assert set(parsed) == {"2", "8"}
