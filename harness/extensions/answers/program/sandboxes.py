"""The kinds of sandboxes that the option `sandbox` names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from harness.core.errors import UsageError
from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.cells import SandboxCell, SandboxMaker
from harness.extensions.answers.program.containers import ENGINES, ContainerEngine


@dataclass(frozen=True)
class SandboxKind:
    """A way to make sandboxes.

    name: a function that returns the sandbox's name in grades: its kind, and its version of Python. The function raises
    `UsageError` if such a sandbox does not work on this machine.
    """

    maker: SandboxMaker
    name: Callable[[], str]

    def start(self) -> SandboxCell:
        """A cell for one thread; it starts its sandbox with the first job."""
        return SandboxCell(self.maker)


_MEMORY_OF_QUESTION = 512 << 20
"""Bytes of memory of a container that is started only to learn its version of Python."""


def _name_of_bubblewrap() -> str:
    bubblewrap.require()
    return f"bwrap {bubblewrap.interpreter().name}"


def _name_of_container(engine: ContainerEngine) -> str:
    """The engine, and the version of Python in its image, learned from a container that is started for this."""
    cell = SandboxCell(engine)
    try:
        cell.start(_MEMORY_OF_QUESTION)
        return f"{engine.engine} python{cell.version}"
    finally:
        cell.close()


def condition() -> str:
    """A sentence: which sandbox works on this machine, or why none does. Bubblewrap is tried."""
    cell = SandboxCell(bubblewrap)
    try:
        cell.start(0)
        return f"programs run in {_name_of_bubblewrap()}"
    except UsageError as error:
        return f"programs: {error}"
    finally:
        cell.close()


def sandbox_kind(word: str | None) -> SandboxKind:
    """The kind that the option `sandbox` names; None: bubblewrap. Raises `UsageError`."""
    kind, _, image = (word or "bwrap").partition(":")
    if kind == "bwrap" and not image:
        return SandboxKind(bubblewrap, _name_of_bubblewrap)
    if kind in ENGINES:
        engine = ContainerEngine(kind, image)
        return SandboxKind(engine, cache(partial(_name_of_container, engine)))
    raise UsageError(
        f"unknown sandbox; there are bwrap and {', '.join(ENGINES)} ({ENGINES[0]}:IMAGE)", field="sandbox", value=word
    )
