"""The options of commands that show runs, servers and this installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.core.options import Option
from harness.options.command import CommandOptions, prints

DEFAULT_PORT = 8765
"""Port of the viewer's page."""


class ShowCommand(CommandOptions):
    """Show the questions of RUN, one QUESTION with its samples, or one SAMPLE (counted from 0) in full. RUN is a run
    folder, or a file graded by `harness score FILE`; samples from a file are shown with their line numbers.

    With a filter, print all matching samples. The verdict filters (--correct, --wrong, --no-answer, --undecided) are
    combined with OR, all others with AND.

    \b
    harness show results/r1
    harness show results/r1 2024-I-1:3 --reasoning
    harness show results/r1 --wrong --filter level=5
    harness show replies.csv --undecided
    """

    run: Annotated[Path, Option(argument=True, newest=True)]
    """The run. Default: the newest run here."""
    question: Annotated[str | None, Option(argument=True, metavar="[QUESTION[:SAMPLE]]")] = None
    """The question."""
    benchmark: Annotated[str | None, Option()] = None
    """Benchmark to show. Required only if several of the run's benchmarks contain QUESTION."""
    correct: Annotated[bool, Option()] = False
    """Show samples that were graded correct."""
    wrong: Annotated[bool, Option()] = False
    """Show samples that were graded wrong."""
    no_answer: Annotated[bool, Option()] = False
    """Show samples without an answer."""
    undecided: Annotated[bool, Option()] = False
    """Show samples that the grader left undecided."""
    cut: Annotated[bool, Option()] = False
    """Show samples that were truncated by max_tokens."""
    near_miss: Annotated[bool, Option()] = False
    r"""Show near misses: the correct answer, but in a different \boxed{}, form or unit, or not rounded."""
    anomaly: Annotated[bool, Option()] = False
    """Show samples that look broken: repetitive, garbled or empty text."""
    disputed: Annotated[bool, Option()] = False
    """Show samples on which a second grader disagrees."""
    why: Annotated[str | None, Option(metavar="RULE|PROPERTY")] = None
    """Show samples graded by this rule, or samples whose calls have this property: call, fits, no_json, schema,
    unreadable_schema, unknown_name, unread_call, cut_call, same_id.
    """
    grep: Annotated[str | None, Option(metavar="TEXT")] = None
    """Show samples that contain TEXT. Lowercase letters also match uppercase letters."""
    filter: Annotated[tuple[str, ...], Option(metavar="COLUMN=VALUE")] = ()
    """Show only questions with this value in their metadata. Repeatable."""
    reasoning: Annotated[bool, Option()] = False
    """Also print the reasoning."""


class ViewCommand(CommandOptions):
    """Show RUN... on a web page that is only reachable from this machine. Each RUN is a run folder or a folder of runs.
    Default: results/.

    The first line printed is the page's address. The page updates while runs are in progress. Press Ctrl-C to stop.
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)] = ()
    """Runs."""
    port: Annotated[
        int | None,
        Option(
            computed=f"Port on 127.0.0.1; 0 picks a free port. Default: {DEFAULT_PORT}, or a free port if it is taken.",
            least=0,
            most=65535,
        ),
    ] = None
    no_open: Annotated[bool, Option()] = False
    """Do not open a browser."""


class StatusCommand(CommandOptions):
    """Show the status of the run in the folder RUN. Default: all active runs in results/, or the latest run if none is
    active.

    RUN can also be a sweep's folder; its cells and active runs are then shown.

    \b
    harness status
    harness status results/qwq-32b --watch
    harness status results/qwq-32b --json
    harness status results/my-sweep
    """

    run: Annotated[Path | None, Option(argument=True)] = None
    """The run."""
    as_json: Annotated[
        bool,
        prints(
            "a list of objects, one per run (with --watch, one line per second),",
            "list[harness.cli.status:RunStatus]",
        ),
    ] = False
    watch: Annotated[bool, Option()] = False
    """Keep updating until the run or sweep ends."""


class DoctorCommand(CommandOptions):
    r"""Check plug-ins and all cards whose data has been downloaded, or verify all checksums in RUN_FOLDER...

    A plug-in is only imported; its contents are checked when it is used. A card passes if the grader accepts each
    reference answer in \boxed{} and rejects it when its numbers are changed. If a card has its own grading function,
    only the function's import and parameters are checked. With --benchmark, references that no rule can fully parse, or
    that need a judge, produce a warning. The exit code is 1 if a card or plug-in fails, and 3 if a run is damaged.
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)] = ()
    """Run folders."""
    cards: Annotated[tuple[str, ...], Option(flag="benchmark")] = ()
    """Check only this card or file of questions. Repeatable."""
    demo: Annotated[bool, Option()] = False
    """Start the embedded server, then run, score and report the demo benchmark. Downloads 98 MB of weights the first
    time.
    """
