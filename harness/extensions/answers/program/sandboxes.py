"""The kinds of sandboxes that the option `sandbox` names."""

from __future__ import annotations

from harness.core.errors import UsageError
from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.cells import SandboxCell, SandboxMaker
from harness.extensions.answers.program.containers import ENGINES, ContainerEngine

BUBBLEWRAP = "bwrap"
"""The kind of sandbox that is used if none is named."""

_MEMORY_OF_QUESTION = 512 << 20
"""Bytes of memory of a container that is started only to learn its version of Python."""


def name_of(kind: str, maker: SandboxMaker) -> str:
    """The sandbox's name in grades: its kind, and its version of Python, learned from one that is started for this.

    Raises `UsageError` if such a sandbox does not work on this machine.
    """
    cell = SandboxCell(maker)
    try:
        cell.start(_MEMORY_OF_QUESTION)
        return f"{kind} python{cell.version}"
    finally:
        cell.close()


def condition() -> str:
    """A sentence: which sandbox works on this machine, or why none does. Bubblewrap is tried."""
    try:
        return f"programs run in {name_of(BUBBLEWRAP, bubblewrap)}"
    except UsageError as error:
        return f"programs: {error}"


def maker_of(word: str | None) -> tuple[str, SandboxMaker]:
    """Return (the kind that the option `sandbox` names, its maker); None: bubblewrap. Raises `UsageError`."""
    kind, _, image = (word or BUBBLEWRAP).partition(":")
    if kind == BUBBLEWRAP and not image:
        return kind, bubblewrap
    if kind in ENGINES:
        return kind, ContainerEngine(kind, image)
    raise UsageError(
        f"unknown sandbox; there are bwrap and {', '.join(ENGINES)} ({ENGINES[0]}:IMAGE)", field="sandbox", value=word
    )
