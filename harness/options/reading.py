"""The options of commands that show runs, servers and this installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from harness.core.options import Option
from harness.options.command import CommandOptions, prints

DEFAULT_PORT = 8765
"""Port of the viewer's page."""


class ShowCommand(CommandOptions):
    """Read RUN: its questions, one QUESTION with its samples, or one SAMPLE (from 0) in full. RUN is a run folder, or a
    file graded by `harness score FILE`, whose samples show their line in the file.

    With a filter, print every matching sample. Verdicts (--correct, --wrong, --no-answer, --undecided) are combined
    with OR, other filters with AND.

    \b
    harness show results/r1
    harness show results/r1 2024-I-1:3 --reasoning
    harness show results/r1 --wrong --filter level=5
    harness show replies.csv --undecided
    """

    run: Annotated[Path, Option(argument=True)]
    """The run."""
    question: Annotated[str | None, Option(argument=True, metavar="[QUESTION[:SAMPLE]]")] = None
    """The question."""
    benchmark: Annotated[str | None, Option()] = None
    """Benchmark of the run; needed only if several contain QUESTION."""
    correct: Annotated[bool, Option()] = False
    """Samples graded correct."""
    wrong: Annotated[bool, Option()] = False
    """Samples graded wrong."""
    no_answer: Annotated[bool, Option()] = False
    """Samples without an answer."""
    undecided: Annotated[bool, Option()] = False
    """Samples that the grader could not decide."""
    cut: Annotated[bool, Option()] = False
    """Samples truncated by max_tokens."""
    near_miss: Annotated[bool, Option()] = False
    r"""Wrong samples that came close: the right answer in another \boxed{}, form or unit, or not rounded."""
    anomaly: Annotated[bool, Option()] = False
    """Samples that look broken: repetition, garbled or empty text."""
    disputed: Annotated[bool, Option()] = False
    """Samples whose grade a second grader contradicts."""
    why: Annotated[str | None, Option(metavar="RULE|SIGN")] = None
    """Samples graded by this rule, or with this sign in their calls: call, fits, no_json, schema, unknown_name,
    unread_call, cut_call, same_id.
    """
    grep: Annotated[str | None, Option(metavar="TEXT")] = None
    """Samples that contain TEXT; lowercase also matches uppercase."""
    filter: Annotated[tuple[str, ...], Option(metavar="COLUMN=VALUE")] = ()
    """Questions with this value in their metadata. Repeatable."""
    reasoning: Annotated[bool, Option()] = False
    """Also print the reasoning."""


class ViewCommand(CommandOptions):
    """Show RUN..., run folders or folders of them (default: results/), on a web page that only this machine can open.

    The first line printed is its address. The page follows running runs. Press Ctrl-C to stop.
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)] = ()
    """Runs."""
    port: Annotated[
        int | None,
        Option(
            computed=f"Port on 127.0.0.1; 0 picks a free one. Default: {DEFAULT_PORT}, "
            "or any free one if that is taken.",
            least=0,
            most=65535,
        ),
    ] = None
    no_open: Annotated[bool, Option()] = False
    """Do not open a browser."""


class StatusCommand(CommandOptions):
    """Show what the run in the folder RUN is doing. Default: every active run in results/, or else the latest run.

    RUN can be a sweep's folder: this shows its cells and their active runs. Options that steer an active run are
    recorded in its log.jsonl.

    \b
    harness status
    harness status results/qwq-32b --watch
    harness status results/qwq-32b --json
    harness status results/my-sweep
    harness status results/qwq-32b --concurrency 128
    """

    run: Annotated[Path | None, Option(argument=True)] = None
    """The run."""
    as_json: Annotated[
        bool,
        prints(
            "a list of objects, one per run (with --watch one line per second),",
            "list[harness.cli.printed.lists:RunStatus]",
        ),
    ] = False
    watch: Annotated[bool, Option()] = False
    """Keep showing until the run or sweep ends."""
    concurrency: Annotated[int | None, Option(metavar="N", least=1, most=100000)] = None
    """Set the run's maximum requests in flight."""
    pause: Annotated[bool, Option()] = False
    """Stop sending requests until --resume."""
    resume: Annotated[bool, Option()] = False
    """Resume a paused run."""
    drain: Annotated[bool, Option()] = False
    """End the run once its requests in flight have finished."""


class DoctorCommand(CommandOptions):
    """Check plug-ins and every card whose data is downloaded, or verify every checksum of RUN_FOLDER...

    A plug-in is imported; its contents are checked when it is used. A card passes if the grader accepts each boxed
    reference answer and rejects it with other numbers. For a card with its own grading function, only the function's
    import and parameters are checked. With --benchmark, references that no rule can read fully, or that need a judge,
    get a warning. Exit code: 1 if a card or plug-in fails, 3 if a run is damaged.
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)] = ()
    """Run folders."""
    cards: Annotated[tuple[str, ...], Option(flag="benchmark")] = ()
    """Check only these cards or files of questions. Repeatable."""
    demo: Annotated[bool, Option()] = False
    """Start the embedded server, then run, score and report the demo benchmark. Downloads 98 MB of weights once."""
