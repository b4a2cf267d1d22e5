"""Options for where a run is stored, how it continues, and what stops it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.core.options import Option, Options
from harness.options.headings import RESUMING


class Resuming(Options):
    """Where a run is stored, and the conditions for continuing it. See docs/running.md and docs/provenance.md."""

    out: Annotated[Path | None, Option(under=RESUMING)] = None
    """Run folder. Default: results/ and the model's name. Another tool's unfinished FILE is the beginning of the run
    FILE.run.
    """
    accept_server_change: Annotated[bool, Option(under=RESUMING)] = False
    """Resume although the server reports another model, template or quantisation than the run's samples have."""
    canary: Annotated[bool, Option(under=RESUMING)] = True
    """Do not stop when the first samples are all empty, identical or truncated."""
    fingerprint: Annotated[bool | None, Option(under=RESUMING)] = None
    """Compare the beginnings of eight greedy replies of each server (some 350 to 500 tokens) with the run's. Default:
    of engines whose neutral sampling values the harness knows (vLLM, for example) always, of other servers in a run of
    16 samples or more.
    """

    @property
    def begins(self) -> Path | None:
        """The unfinished file of another tool with which the run begins; None if `out` names a folder."""
        return self.out if self.out is not None and self.out.is_file() else None
