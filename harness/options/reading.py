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
    file that `harness score FILE` has scored; each sample then names its line of the file.

    With a filter, print every sample that fits. Verdicts (--correct, --wrong, --no-answer, --undecided) add up, other
    filters narrow down.

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
    """Benchmark of the run; needed only if several hold QUESTION."""
    correct: Annotated[bool, Option()] = False
    """Samples graded correct."""
    wrong: Annotated[bool, Option()] = False
    """Samples graded wrong."""
    no_answer: Annotated[bool, Option()] = False
    """Samples without an answer."""
    undecided: Annotated[bool, Option()] = False
    """Samples on which the grader could not decide."""
    cut: Annotated[bool, Option()] = False
    """Samples cut by max_tokens."""
    near_miss: Annotated[bool, Option()] = False
    r"""Wrong samples that came close: the right answer is in another \boxed{}, form or unit, or it is not rounded."""
    anomaly: Annotated[bool, Option()] = False
    """Samples that look wrong: repetition, garbled, no text."""
    disputed: Annotated[bool, Option()] = False
    """Samples on which a second grader contradicts the grade."""
    why: Annotated[str | None, Option(metavar="RULE|SIGN")] = None
    """Samples graded by this rule, or whose calls show this sign: call, fits, no_json, schema, unknown_name,
    unread_call, cut_call, same_id.
    """
    grep: Annotated[str | None, Option(metavar="TEXT")] = None
    """Samples that hold TEXT; small letters find capitals, too."""
    filter: Annotated[tuple[str, ...], Option(metavar="COLUMN=VALUE")] = ()
    """Questions whose metadata have this value; may be repeated."""
    reasoning: Annotated[bool, Option()] = False
    """Print the reasoning as well."""


class ViewCommand(CommandOptions):
    """Show RUN..., run folders or folders of them (default: results/), on a page on this machine only.

    The first line printed is its address. The page follows runs that are still going. Ctrl-C ends it.
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)] = ()
    """Runs."""
    port: Annotated[
        int | None,
        Option(
            computed=f"Port on 127.0.0.1; 0 = any free one. Default: {DEFAULT_PORT}, "
            "or any free one where that is taken.",
            least=0,
            most=65535,
        ),
    ] = None
    no_open: Annotated[bool, Option()] = False
    """Open no browser."""


class StatusCommand(CommandOptions):
    """Show what the run in the folder RUN is doing. Default: every running run in results/; if none runs, the latest.

    RUN may be the folder of a sweep: then the state of its cells and their running runs are shown. The options that
    steer a run that is going on are noted in its log.jsonl.

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
            "a list with an object for each run, or with --watch one object a line each second,",
            "list[harness.cli.printed.lists:RunStatus]",
        ),
    ] = False
    watch: Annotated[bool, Option()] = False
    """Keep showing until the run or the sweep has ended."""
    concurrency: Annotated[int | None, Option(metavar="N", least=1, most=100000)] = None
    """Have RUN keep so many requests in flight."""
    pause: Annotated[bool, Option()] = False
    """Have RUN send no further request until --resume."""
    resume: Annotated[bool, Option()] = False
    """Have a paused RUN go on."""
    drain: Annotated[bool, Option()] = False
    """Have RUN end when its requests in flight have ended."""


class DoctorCommand(CommandOptions):
    """Check plug-ins and every card whose data are here, or verify every checksum of RUN_FOLDER...

    A plug-in is imported; what it holds is checked when it is used. A card passes if the grader accepts each of its
    reference answers, written in a box, and refuses it with other numbers. If a card names a function of its own that
    decides, a reference need not be an answer, so only the import and the parameters of the function are checked. With
    --benchmark, a reference that no rule reads, or with words that none reads, gets a warning; so do references that
    need a judge. Exit code 1 if a card or a plug-in does not pass, 3 if a run is damaged.
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)] = ()
    """Run folders."""
    cards: Annotated[tuple[str, ...], Option(flag="benchmark")] = ()
    """Only these cards or files of questions; may be repeated."""
    demo: Annotated[bool, Option()] = False
    """Start the embedded server, run, score and report the demo benchmark. Downloads 98 MB of weights once."""
