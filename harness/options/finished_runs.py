"""The options of commands on finished runs (merge, report, export, audit), and of grading one response."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from harness.core.option_kinds import Kind
from harness.core.options import Option, Options
from harness.core.plugins import extensions
from harness.core.records import AnswerKind
from harness.options.command import CommandOptions, JudgeFlag, prints
from harness.options.score import JudgingCosts
from harness.presets.grading import DEADLINE_SECONDS, MAX_DEADLINE_SECONDS
from reasoning_answers.host import read_tools


class MergeOptions(Options):
    """The folder that run folders are joined into."""

    out: Annotated[Path, Option()]
    """Folder for the merged run. If this folder exists, new samples are added to it."""
    accept_server_change: Annotated[bool, Option()] = False
    """Merge even if the servers reported different models, chat templates or quantization."""


class MergeCommand(MergeOptions, CommandOptions):
    """Merge RUNS (the folders of one run that was sampled on several machines) into a single run folder.

    Shards in the same folder do not need merging: `harness score` joins them. Duplicate samples are merged into one. A
    folder with different settings is rejected, and the differences are listed. Run the same command again to add new
    samples. To request missing samples, use `harness run` without --shard and with the merged folder as --out. The exit
    code is 4 if samples are missing.

    \b
    harness merge node1/qwq-32b node2/qwq-32b --out results/qwq-32b
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)]
    """Run folders."""


class ReportOptions(Options):
    """The folders that a report and its plots are written to."""

    out: Annotated[Path | None, Option()] = None
    """Folder for report.html, .md, .csv and .tex."""
    plots: Annotated[Path | None, Option()] = None
    """Folder for the plots, as SVG and CSV."""


class ReportCommand(ReportOptions, CommandOptions):
    """Print one table for RUNS, with a column per benchmark, and write it as Markdown, CSV, LaTeX and HTML.

    A run is a run folder, a sweep's folder (all its runs), or another tool's outputs graded by `harness score`. Files
    are written to --out. By default, this is the run folder or, for several runs, the first run's parent folder. The
    exit code is 4 if no run is scored.

    \b
    harness report results/base
    harness report results/base results/tuned --out comparison
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True, newest=True)]
    """Scored runs. Default: the newest run here."""


def _reasons(value: object) -> object:
    """The finish reasons as a tuple or list; empty if `any` is among them."""
    reasons = (value,) if isinstance(value, str) else value
    return () if isinstance(reasons, tuple | list) and "any" in reasons else reasons


REASONS = Kind("Texts", _reasons)
"""Kind of an option for one or more finish reasons; `any` becomes an empty list, which allows all."""


class ExportOptions(Options):
    """The samples to export, and the format. None: the format's default."""

    to: Annotated[
        str,
        Option(
            computed=f"Format: {', '.join(extensions('exporter'))}, or a plug-in's format (docs/exports.md).",
            metavar="FORMAT",
        ),
    ]
    out: Annotated[Path | None, Option()] = None
    """Folder for the files. Default: exports/FORMAT in the first run folder."""
    take: Annotated[Literal["correct", "all"] | None, Option()] = None
    """Samples to export. Default: correct for training data, otherwise all."""
    shortest: Annotated[int | None, Option(metavar="N", least=1)] = None
    """Export only the N shortest samples for each question."""
    finish_reasons: Annotated[tuple[str, ...] | None, Option(flag="finish-reason", metavar="REASON", kind=REASONS)] = (
        None
    )
    """Export only replies with this finish reason (stop, length …), or `any`. Default: stop for training data,
    otherwise any. Repeatable.
    """
    distinct: Annotated[bool | None, Option()] = None
    """Export identical replies to a question only once. Default: yes for training data, otherwise no."""
    reasoning: Annotated[bool, Option()] = True
    """Omit the model's reasoning from training data."""
    i_know: Annotated[bool, Option()] = False
    """Allow exporting benchmarks as training data, and exporting questions whose authors ask that they not be
    published.
    """


class ExportCommand(ExportOptions, CommandOptions):
    """Export each RUN to another tool's format, as a folder with one file per benchmark.

    \b
    harness export results/limo --to sharegpt
    harness export results/limo --to trl --shortest 1
    harness export results/qwq-32b --to parquet --out tables
    harness export results/gsm8k results/gpqa --to lm_eval
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)]
    """Scored runs."""
    as_json: Annotated[bool, prints("what was exported", "harness.cli.export:Exported")] = False


class AuditOptions(Options):
    """The samples of an audit, and the source of a person's verdicts."""

    samples: Annotated[int, Option(least=2)] = 100
    """Number of samples to grade per benchmark, including samples that you graded earlier."""
    undecided: Annotated[bool, Option()] = False
    """Grade the samples that the grader left undecided, instead of randomly drawn ones."""
    benchmark: Annotated[str | None, Option()] = None
    """Audit only this benchmark. Default: all."""
    who: Annotated[str | None, Option(chars=1)] = None
    """Your name, stored with the verdicts. Default: your user name."""
    out: Annotated[Path | None, Option()] = None
    """Write the samples that need a verdict to this file, as JSON Lines."""
    verdicts: Annotated[Path | None, Option()] = None
    """Read the verdicts from this file, which was written with `out` and then filled in by hand."""


class AuditCommand(AuditOptions, JudgingCosts, JudgeFlag, CommandOptions):
    """Grade samples from a scored RUN by hand, without seeing the grader's verdicts, and print how many differ.

    A score's interval does not account for the grader's errors. To measure these errors, you grade randomly drawn
    samples, only among those that a judge decided if there are any. You can stop at any point and resume later. Your
    verdicts are stored as corrections. The score stays the same; the accuracy with your verdicts is printed separately.

    \b
    harness audit results/r1
    harness audit results/r1 --undecided               # decide what the grader could not decide
    harness audit results/r1 --out to_judge.jsonl      # no terminal: fill in the verdicts, then
    harness audit results/r1 --verdicts to_judge.jsonl
    harness audit --labels labeled.jsonl --judge MODEL@URL,prompt=proofbench
    """

    run: Annotated[Path | None, Option(argument=True)] = None
    """The scored run."""
    labels: Annotated[Path | None, Option()] = None
    """Measure the accuracy of `judge` on this file of human-labeled answers. Cannot be combined with RUN
    (docs/judge.md).
    """


TOOLS = Kind("str | Sequence[Mapping[str, Any]]", read_tools, str | list[dict[str, Any]])
"""Kind of an option that lists tools."""


class GradeOptions(Options):
    """The kind of a reference answer, and the tolerance of the comparison."""

    kind: Annotated[Literal["auto", AnswerKind], Option()] = "auto"
    """Kind of the reference answer."""
    relative_tolerance: Annotated[float, Option(least=0)] = 0.0
    """Maximum allowed difference from the reference, as a fraction of the reference."""
    absolute_tolerance: Annotated[float, Option(least=0)] = 0.0
    """Maximum allowed difference from the reference."""
    round_to_reference: Annotated[bool, Option()] = False
    """Accept a number that equals the reference when rounded to as many digits as the reference has."""
    choices: Annotated[tuple[str, ...], Option(flag="choice")] = ()
    """Text of one multiple-choice option. Repeat for each option, in order."""
    tools: Annotated[Any, Option(metavar="JSON", kind=TOOLS)] = ()
    """Tools offered to the model, for --kind calls: a list of {"name", "description", "parameters"}."""
    grader: Annotated[str, Option(metavar="MODULE:FUNCTION")] = "rules"
    """Custom verifier to use instead of the built-in rules. Default: rules."""
    whole_reply: Annotated[bool, Option()] = False
    """Grade the whole reply instead of an extracted answer, like `whole_reply: true` in a card."""
    deadline: Annotated[float, Option(above=0, below=MAX_DEADLINE_SECONDS)] = DEADLINE_SECONDS
    """Maximum time to grade the answer, in seconds. An answer that takes longer is left undecided. Default: 2."""


class GradeCommand(GradeOptions, CommandOptions):
    """Grade RESPONSE (`-` reads standard input) against REFERENCE, and print the rule that determined the verdict.

    The last line printed is the verdict that `harness score` would store for this response. With --kind program,
    REFERENCE contains tests as JSON, which the program in RESPONSE must pass in a sandbox. With --kind calls,
    REFERENCE contains the accepted function calls as JSON, and RESPONSE is a list of {"name", "arguments"}
    (docs/grading.md).

    \b
    harness grade '1/2' 'So the answer is \\boxed{0.5}.'
    """

    dashed: ClassVar = True

    reference: Annotated[str, Option(argument=True)]
    """The reference answer."""
    response: Annotated[str, Option(argument=True)]
    """The model's reply."""
