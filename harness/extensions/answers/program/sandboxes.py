"""The kinds of sandboxes, by the word of the option `sandbox`."""

from __future__ import annotations

from typing import Protocol

from harness.core.errors import UsageError
from harness.extensions.answers.program import bubblewrap
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.decide import Sandbox


class StartedSandbox(Sandbox, Protocol):
    """A sandbox that is ended when it is no longer needed."""

    def close(self) -> object:
        """End the sandbox."""
        ...


class SandboxKind(Protocol):
    """How sandboxes are made."""

    def name(self) -> str:
        """The kind and its interpreter, as grades name them. Raises `UsageError` where it does not work here."""
        ...

    def start(self) -> StartedSandbox:
        """A sandbox for one thread."""
        ...


class _Bubblewrap:
    def name(self) -> str:
        """See `SandboxKind`."""
        bubblewrap.require()
        return f"bwrap {bubblewrap.interpreter().name}"

    def start(self) -> StartedSandbox:
        """See `SandboxKind`."""
        return SandboxCell()


KINDS = {"bwrap": _Bubblewrap}
"""Word → kind."""


def sandbox_kind(word: str | None) -> SandboxKind:
    """The kind of that word; None: bubblewrap. Raises `UsageError`."""
    if word is None or word in KINDS:
        return KINDS[word or "bwrap"]()
    raise UsageError(f"unknown sandbox; there are {', '.join(KINDS)}", field="sandbox", value=word)
