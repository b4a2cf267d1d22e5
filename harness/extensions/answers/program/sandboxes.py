"""The kinds of sandboxes that the option `sandbox` names."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from harness.core.errors import UsageError
from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.containers import ENGINES, ContainerEngine
from harness.extensions.answers.program.decide import Sandbox


class StartedSandbox(Sandbox, Protocol):
    """A sandbox that must be ended by `close`."""

    def close(self) -> object:
        """End the sandbox."""
        ...


class SandboxKind(Protocol):
    """A way to make sandboxes."""

    def name(self) -> str:
        """The sandbox's name in grades: its kind and its version of Python.

        Raises `UsageError` if such a sandbox does not work on this machine.
        """
        ...

    def start(self) -> StartedSandbox:
        """Make a sandbox for one thread."""
        ...


class _Bubblewrap:
    def name(self) -> str:
        """ "bwrap" and the name of its interpreter. Raises `UsageError` where bubblewrap does not work."""
        bubblewrap.require()
        return f"bwrap {bubblewrap.interpreter().name}"

    def start(self) -> StartedSandbox:
        """A cell that starts its sandbox with the first job."""
        return SandboxCell(bubblewrap)


class _Container:
    def __init__(self, engine: ContainerEngine) -> None:
        self._engine = engine

    @cached_property
    def _name(self) -> str:
        """The kind's name, learned from a container that is started and ended for this."""
        cell = SandboxCell(self._engine)
        try:
            cell.start(_MEMORY_OF_QUESTION)
            return f"{self._engine.engine} python{cell.version}"
        finally:
            cell.close()

    def name(self) -> str:
        """The container engine, and the version of Python in the image; the first call starts the image to learn it.

        Raises `UsageError` if the image cannot be started.
        """
        return self._name

    def start(self) -> StartedSandbox:
        """A cell that starts its container with the first job."""
        return SandboxCell(self._engine)


_MEMORY_OF_QUESTION = 512 << 20
"""Bytes of memory of a container that is started only to learn its version of Python."""


def condition() -> str:
    """A sentence: which sandbox works on this machine, or why none does. Bubblewrap is tried."""
    cell = SandboxCell(bubblewrap)
    try:
        cell.start(0)
        return f"programs run in {_Bubblewrap().name()}"
    except UsageError as error:
        return f"programs: {error}"
    finally:
        cell.close()


def sandbox_kind(word: str | None) -> SandboxKind:
    """The kind that the option `sandbox` names; None: bubblewrap. Raises `UsageError`."""
    kind, _, image = (word or "bwrap").partition(":")
    if kind == "bwrap" and not image:
        return _Bubblewrap()
    if kind in ENGINES:
        return _Container(ContainerEngine(kind, image))
    raise UsageError(
        f"unknown sandbox; there are bwrap and {', '.join(ENGINES)} ({ENGINES[0]}:IMAGE)", field="sandbox", value=word
    )
