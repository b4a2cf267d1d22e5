"""Programs in the place of vLLM and SGLang over several nodes, and what they left behind."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

PROGRAM = str(Path(__file__).parent / "small_server.py")


def words(folder: Path, engine: str, nodes: int) -> list[str]:
    """The words after `serve` of such an engine; its ranks leave their files in `folder`/pids."""
    (folder / "pids").mkdir(exist_ok=True)
    environment = folder / "environment"
    environment.mkdir(exist_ok=True)
    run = f'exec {shlex.join([sys.executable, PROGRAM, "engine", str(folder / "pids")])} "$@"\n'
    (environment / "vllm").write_text(f"#!/bin/sh\n{run}")
    (environment / "python").write_text(f'#!/bin/sh\n[ "$1" = -c ] && exec echo 0.5.23\n{run}')
    for program in environment.iterdir():
        program.chmod(0o755)
    own = ["--python", str(environment / "python"), "--served-name", "small", "--device", "cpu"]
    own += ["--engine-version", "0.5.23"] if engine == "sglang" else []
    return [engine, "model", *own, "--tp", str(nodes), "--nodes", str(nodes)]


@dataclass(frozen=True)
class Rank:
    """One that was started."""

    pid: int
    rank: int
    address: str
    """The master's, with its port."""


def started(folder: Path) -> list[Rank]:
    """All that were ever started, by rank."""
    records = []
    for one in (folder / "pids").iterdir():
        if one.name.isdigit():
            rank, address = one.read_text().split()
            records.append(Rank(int(one.name), int(rank), address))
    return sorted(records, key=lambda one: (one.rank, one.pid))


def alive(folder: Path) -> list[Rank]:
    """Those that run."""
    return [one for one in started(folder) if psutil.pid_exists(one.pid)]


def whole(ranks: list[Rank], nodes: int) -> bool:
    """Each rank once, and one master for all."""
    return [one.rank for one in ranks] == list(range(nodes)) and len({one.address for one in ranks}) == 1
