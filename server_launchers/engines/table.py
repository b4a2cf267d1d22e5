"""The engines by name. A name of `spec.EngineName` is a module of this room, imported when its engine is first needed.

Outside this room no code names an engine: it asks the values here, or takes a role (`EMBEDDED`, `ANY_PROGRAM`).
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from server_launchers.engines.dialect import Dialect
from server_launchers.engines.engine import Engine, Launcher
from server_launchers.errors import LaunchError, SpecError
from server_launchers.spec import ENGINES, OPTIONS, EngineName, ServerSpec

if TYPE_CHECKING:
    from server_launchers.machine.accelerators import Accelerator
    from server_launchers.machine.inspection import Facts

EMBEDDED: EngineName = "llama_cpp"
"""The engine that the harness brings along: any GGUF file, on any machine."""
ANY_PROGRAM: EngineName = "command"
"""The engine that starts a program of the user's or of a plug-in."""
LIBRARY: EngineName = "transformers"
"""The engine whose package is the models' reference implementation."""

UNKNOWN = Dialect(name="")
"""The dialect of a server that does not tell which engine it is."""


@cache
def named(name: EngineName) -> Engine:
    """What the engine's file says."""
    module = importlib.import_module(f"server_launchers.engines.{name}")
    assert isinstance(module.ENGINE, Engine)
    return module.ENGINE


def find(name: str | None) -> Engine | None:
    """What the file of that engine says; None where the name is no engine's."""
    return next((named(engine) for engine in ENGINES if engine == name), None)


def every() -> dict[EngineName, Engine]:
    """All engines by name, in the order in which people are shown them."""
    return {name: named(name) for name in ENGINES}


def launcher_of(spec: ServerSpec) -> Launcher:
    """How the spec's engine is started."""
    return named(spec.engine).launcher


def client_name(spec: ServerSpec) -> str:
    """The model name that a client asks for; empty where only the running server can tell."""
    return launcher_of(spec).client_name(spec)


def accelerator(spec: ServerSpec) -> Accelerator:
    """The kind of accelerator that the spec's engine computes on."""
    return launcher_of(spec).runs_on(spec)


@cache
def dialects() -> tuple[Dialect, ...]:
    """The dialects that are known, each once."""
    return tuple(
        {engine.dialect.name: engine.dialect for engine in every().values() if engine.dialect is not None}.values()
    )


def dialect(name: str | None) -> Dialect:
    """The dialect of that name; `UNKNOWN` for any other name."""
    return next((candidate for candidate in dialects() if candidate.name == name), UNKNOWN)


def dialect_of_entry(entry: Mapping[str, Any]) -> Dialect:
    """The dialect that the entry of a model list tells; older servers name no owner, and are known by a key."""
    owner = next((candidate for candidate in dialects() if candidate.owns(entry)), None)
    return owner or next((candidate for candidate in dialects() if candidate.marked(entry)), UNKNOWN)


@cache
def anonymous() -> Dialect:
    """The dialect of routers, which hide the names of their workers' models: such servers are read as its workers."""
    return next(candidate for candidate in dialects() if candidate.hides_behind)


def batch_words(requests: Path, results: Path) -> tuple[str, ...]:
    """A command that answers a file of requests, of the first engine that has one."""
    return next(engine.batch_words(requests, results) for engine in every().values() if engine.batch_words is not None)


def check(spec: ServerSpec) -> None:
    """Raise SpecError for the first field that the engine lacks or does not take: no wish is dropped."""
    launcher = launcher_of(spec)
    if not getattr(spec, launcher.needs):
        what = "a model" if launcher.needs == "model" else "the command line after `--`"
        raise SpecError(launcher.needs, f"engine {spec.engine} needs {what}")
    for name, option in OPTIONS.items():
        if name in launcher.takes or getattr(spec, name) == ({} if option.kind is dict else option.default):
            continue
        able = [engine_name for engine_name, engine in every().items() if name in engine.launcher.takes]
        others = f"; {', '.join(able)} {'do' if len(able) > 1 else 'does'}" if able else ""
        raise SpecError(name, f"{spec.engine} does not take it{others}{launcher.instead}")
    if launcher.command is None and spec.extra_flags:
        raise SpecError("extra_flags", "nothing is started that could take them; leave out what follows `--`")
    if spec.dp_mode == "engine" and not launcher.spreads:
        raise SpecError("dp_mode", f"{spec.engine} runs one replica a process: choose client or router")
    if spec.router_python is not None and not launcher.always_routed and spec.dp_mode != "router":
        raise SpecError("router_python", "no router is asked for: it goes with --dp-mode router")


def recorded_facts(spec: ServerSpec) -> Facts:
    """Facts without asking the machine: the recorded options, devices unknown."""
    launcher = launcher_of(spec)
    return replace(launcher.recorded(spec), router_python=launcher.router.interpreter(spec))


def inspect(spec: ServerSpec) -> Facts:
    """Facts of this machine; raises LaunchError where the engine is missing or its version does not fit."""
    check(spec)
    launcher = launcher_of(spec)
    router = launcher.router
    facts = replace(launcher.inspect(spec), router_python=router.here_or(spec))
    if not launcher.routed(spec):
        return facts
    from server_launchers.machine import environments

    version = None
    # Whether it is there is checked before the start; a dry run needs no router.
    with contextlib.suppress(LaunchError):
        version = environments.installed_version((facts.router_python,), router.program)
    return replace(facts, versions={**facts.versions, router.module: version}) if version else facts
