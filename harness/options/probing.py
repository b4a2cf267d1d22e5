"""The options of a probe: the server, what it should equal, and which checks are made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.core.errors import UsageError
from harness.core.options import COMMAS, Option, Options
from harness.options.command import CommandOptions, prints
from harness.options.headings import WHOM
from harness.options.request import HowWritten
from harness.options.whom import WhichServer
from harness.presets.sampling import SERVER_FILLED, sampling_fields


class ProbeRules(Options):
    """What a probe compares the server with, and which checks it makes."""

    reference: Annotated[str | None, Option(metavar="URL[#MODEL]|NAME|FILE")] = None
    """Compare with a server with the true weights (its address, with #MODEL if it has several models, or the name of a
    running one), or with a file of save_reference. A reference server is compared, not examined, and gets its own
    provider's key (DEEPSEEK_API_KEY …) or none.
    """
    save_reference: Annotated[Path | None, Option(metavar="FILE")] = None
    """Write a file for later use with `reference`: from the server that `reference` names, else from this one."""
    checks: Annotated[tuple[str, ...], Option(metavar="NAME[,NAME...]", kind=COMMAS)] = ()
    """Only these checks, or groups of them. Default: all."""
    context: Annotated[int | None, Option(metavar="TOKENS", least=1024)] = None
    """Length of the longest prompt to try, with template and reply. Default: the stated context, at most 8,192 tokens
    or what the server reads in 20 s.
    """
    quick: Annotated[bool, Option()] = False
    """Only the checks that take a few short requests."""
    seed: Annotated[int | None, Option()] = None
    """Seed of the probe's own draws; give it to repeat a probe. Default: a new one."""

    def _check(self) -> None:
        """Raise `UsageError` if `save_reference` is a folder."""
        super()._check()
        if self.save_reference is not None and self.save_reference.is_dir():
            raise UsageError("it is a folder; expected a file", field="save_reference", value=self.save_reference)


NO_SERVER = ("serve", "concurrency")
"""Options of a run that a probe does not take: it starts no server, and each check sets its own concurrency."""

DROPPABLE = (*SERVER_FILLED, "top_p", "stream_options", "seed", "random_seed")
"""Fields that a probe adds to requests whose check is not about them; `drop` can keep these out."""


class ProbeOptions(WhichServer, ProbeRules, HowWritten, without=NO_SERVER):
    """The server that a probe examines, and the fields that all its requests have, as those of a run."""

    base_url: Annotated[tuple[str, ...], Option(under=WHOM, argument=True, metavar="[URL]")] = ()
    """The server. Default: OPENAI_BASE_URL, else the running server."""

    def _check(self) -> None:
        """Raise `UsageError` for a dropped field that only the checks about it send; and if a reference is saved of
        requests with further fields, since a later probe has others.
        """
        super()._check()
        if odd := next((name for name in self.drop if name not in DROPPABLE), None):
            raise UsageError(
                f"expected one of {', '.join(DROPPABLE)}: a probe sends any other field only where a check is about it",
                field="drop",
                value=odd if odd in (*sampling_fields(), "stream") else "…",  # another text may be a key
            )
        if self.save_reference is not None and self.extra_body:
            raise UsageError("it saves the replies to plain requests: leave out extra_body", field="save_reference")


class ProbeCommand(ProbeOptions, CommandOptions):
    """Examine the server at URL: protocol, sampling, context, template, load; with --reference also its weights.
    Each check says what was sent, what came back, why it matters for a score and how to mend it.

    Exit code 0: nothing spoils a score. 4: something does. 2: the server (or the reference) cannot be asked, or stops
    answering, or no check could be made.

    \b
    harness probe http://127.0.0.1:8000
    harness probe http://127.0.0.1:8000 --checks sampling --json
    harness probe http://127.0.0.1:8000 --save-reference qwq.json
    harness probe https://api.example.com/v1 --reference http://127.0.0.1:8000#MODEL
    """

    as_json: Annotated[bool, prints("one object", "harness.probes.findings:ProbeReport")] = False
    quiet: Annotated[bool, Option()] = False
    """Show no progress."""
