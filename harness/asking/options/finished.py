"""The options of verbs that hand on what finished runs hold: merge, report and export; and of grading one response."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from harness.core.options import Kind, Option, Options
from harness.core.records import AnswerKind
from harness.presets.grading import MAX_DEADLINE_SECONDS, AnyK


class MergeOptions(Options):
    """Where run folders are joined."""

    out: Annotated[Path, Option("Folder of the joined run. One that holds an earlier part of it gets the rest.")]
    accept_server_change: Annotated[
        bool, Option("Join also where the servers told of another model, template or quantisation.")
    ] = False


class ReportOptions(AnyK):
    """What a report shows, and where its files go."""

    out: Annotated[Path | None, Option("Folder for report.html, .md, .csv and .tex.")] = None
    plots: Annotated[Path | None, Option("Folder for each plot as SVG, PNG and CSV.")] = None
    show_withheld: Annotated[
        bool,
        Option("Show also questions that their authors ask to keep out of what is published.", flag="i-know"),
    ] = False


def _reasons(value: object) -> object:
    reasons = (value,) if isinstance(value, str) else value
    return () if isinstance(reasons, tuple | list) and "any" in reasons else reasons


REASONS = Kind("Texts", _reasons)
"""How a reply may have ended, one word or several; `any`, or none of them: in any way."""


class ExportOptions(Options):
    """Which samples are exported, and in which tool's format. None: as the format has it."""

    to: Annotated[
        str,
        Option(
            "The format, by name.",
            metavar="FORMAT",
            complete="exporters",
        ),
    ]
    out: Annotated[Path | None, Option("Folder for the files. Default: exports/FORMAT in the run folder.")] = None
    take: Annotated[
        Literal["correct", "all"] | None, Option("Which samples. Default: correct for training data, else all.")
    ] = None
    shortest: Annotated[
        int | None, Option("Of each question at most N samples, the shortest ones.", metavar="N", least=1)
    ] = None
    finish_reasons: Annotated[
        tuple[str, ...] | None,
        Option(
            "Only replies that ended so (stop, length …; `any` for all); may be repeated. Default: stop for training "
            "data, else any.",
            flag="finish-reason",
            metavar="REASON",
            kind=REASONS,
        ),
    ] = None
    distinct: Annotated[
        bool | None, Option("Equal replies to one question once. Default: once for training data, else all.")
    ] = None
    reasoning: Annotated[bool, Option("Training data without the model's thinking: what it said after it.")] = True
    i_know: Annotated[
        bool,
        Option("Also training data of a benchmark that tests, and questions whose authors ask not to publish them."),
    ] = False


class GradeOptions(Options):
    """What a reference is, and what counts as equal to it."""

    kind: Annotated[Literal["auto", AnswerKind], Option("What the reference is.")] = "auto"
    relative_tolerance: Annotated[float, Option("Accepted distance, relative to the reference.", least=0)] = 0.0
    absolute_tolerance: Annotated[float, Option("Accepted distance.", least=0)] = 0.0
    round_to_reference: Annotated[bool, Option("Accept what rounds to the reference at its own digits.")] = False
    choices: Annotated[
        tuple[str, ...], Option("Text of an option, in order; for choice questions.", flag="choice")
    ] = ()
    grader: Annotated[
        str,
        Option(
            "A verifier of your own instead of the rules: module:function. Default: rules.", metavar="MODULE:FUNCTION"
        ),
    ] = "rules"
    deadline: Annotated[
        float | None,
        Option("Seconds for the answer, after which it is undecided. Default: 2.", above=0, below=MAX_DEADLINE_SECONDS),
    ] = None
