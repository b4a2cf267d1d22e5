"""The kinds of sandboxes that the option `sandbox` names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from harness.core.errors import UsageError
from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.cells import SandboxCell, SandboxMaker
from harness.extensions.answers.program.containers import ENGINES, ContainerEngine

BUBBLEWRAP = "bwrap"


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


def _named(word: str, maker: SandboxMaker) -> str:
    """The kind of sandbox with its version of Python, learned from a sandbox that is started for this."""
    cell = SandboxCell(maker)
    try:
        cell.start(_MEMORY_OF_QUESTION)
        return f"{word} python{cell.version}"
    finally:
        cell.close()


def condition() -> str:
    """A sentence: which sandbox works on this machine, or why none does. Bubblewrap is tried."""
    try:
        return f"programs run in {_named(BUBBLEWRAP, bubblewrap)}"
    except UsageError as error:
        return f"programs: {error}"


def sandbox_kind(word: str | None) -> SandboxKind:
    """The kind that the option `sandbox` names; None: bubblewrap. Raises `UsageError`."""
    kind, _, image = (word or BUBBLEWRAP).partition(":")
    maker: SandboxMaker
    if kind == BUBBLEWRAP and not image:
        maker = bubblewrap
    elif kind in ENGINES:
        maker = ContainerEngine(kind, image)
    else:
        raise UsageError(
            f"unknown sandbox; there are bwrap and {', '.join(ENGINES)} ({ENGINES[0]}:IMAGE)",
            field="sandbox", value=word,
        )  # fmt: skip
    return SandboxKind(maker, cache(partial(_named, kind, maker)))
