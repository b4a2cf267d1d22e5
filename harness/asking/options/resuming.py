"""Options that say where a run is stored, what it goes on from, and what stops it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.asking.options.headings import RESUMING
from harness.core.choices import SalvageMode
from harness.core.options import Option, Options


class Resuming(Options):
    """Where a run is stored, and under which conditions it goes on. See docs/running.md and docs/provenance.md."""

    out: Annotated[Path | None, Option("Run folder. Default: results/ and the model's name.", under=RESUMING)] = None
    accept_missing: Annotated[
        bool, Option("Count samples that cannot succeed (a prompt too long) as done.", under=RESUMING)
    ] = False
    accept_server_change: Annotated[
        bool,
        Option(
            "Resume although the server reports another model, template or quantisation than the run's samples have.",
            under=RESUMING,
        ),
    ] = False
    canary: Annotated[
        bool,
        Option("Do not stop when the first samples are all empty, identical or truncated.", under=RESUMING),
    ] = True
    fingerprint: Annotated[
        bool | None,
        Option(
            "Compare the beginnings of eight greedy replies of each server (some 350 tokens) with the run's. "
            "Default: of vLLM, SGLang and llama.cpp; of no hosted provider.",
            under=RESUMING,
        ),
    ] = None
    probe: Annotated[
        bool,
        Option(
            "Make the quick checks of `harness probe` first, and ask nothing where one would spoil the score.",
            under=RESUMING,
        ),
    ] = False
    break_lock: Annotated[bool, Option("Take over the lock of a run whose host is dead.", under=RESUMING)] = False
    salvage: Annotated[
        SalvageMode,
        Option(
            "Go on with answers that were half written when a session was killed or a stream broke. exact: where "
            "the server gets the very tokens again; near: also where their text is turned into tokens anew.",
            under=RESUMING,
        ),
    ] = "exact"
    continue_from: Annotated[
        Path | None,
        Option(
            "Another tool's file of replies to these questions, also a half-done one (LLMEval's, LIMO's, any that "
            "`harness score` reads): they are taken over, marked as its, and only the rest is asked.",
            under=RESUMING,
            metavar="FILE",
        ),
    ] = None
    lengths_from: Annotated[
        Path | None,
        Option(
            "A former run of these questions, by which the longest answers start first. Changes no sample.",
            under=RESUMING,
            metavar="RUN",
        ),
    ] = None
