"""The options of commands on finished runs (merge, report, export, audit), and of grading one response."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from harness.answers.calls import read_tools
from harness.core.options import Kind, Option, Options
from harness.core.plugins import extensions
from harness.core.records import AnswerKind
from harness.options.command import CommandOptions, JudgeFlag, prints
from harness.options.score import JudgingCosts
from harness.presets.grading import DEADLINE_SECONDS, MAX_DEADLINE_SECONDS


class MergeOptions(Options):
    """The folder that run folders are joined into."""

    out: Annotated[Path, Option()]
    """Folder of the joined run; if it holds an earlier part, the rest is added."""
    accept_server_change: Annotated[bool, Option()] = False
    """Join the folders although their servers reported different models, templates or quantisations."""


class MergeCommand(MergeOptions, CommandOptions):
    """Join the folders RUNS (one run that was begun on several machines) into one run folder.

    Shards that work in one folder need no merge: `harness score` joins them. Each sample is kept once. A folder with
    other settings is refused, and the differences are named. The same command again adds the samples that have come
    since. To ask for the missing samples, give `harness run` without --shard and with the joined folder as --out. Exit
    code 1 if samples are missing.

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
    """Folder for each plot as SVG and CSV; as PNG, too, with the extra `report`."""


class ReportCommand(ReportOptions, CommandOptions):
    """Print one table for RUNS, benchmarks as columns, and write it as Markdown, CSV, LaTeX and HTML.

    A run is a run folder, or another tool's outputs that `harness score` has graded; the folder of a sweep stands for
    all its runs. The files go to --out, else into
    the run folder; for several runs, into the folder that holds the first. Exit code 1: none of RUNS is scored.

    \b
    harness report results/base
    harness report results/base results/tuned --out comparison
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)]
    """Scored runs."""


def _reasons(value: object) -> object:
    """The finish reasons as a tuple or list; empty if `any` is among them."""
    reasons = (value,) if isinstance(value, str) else value
    return () if isinstance(reasons, tuple | list) and "any" in reasons else reasons


REASONS = Kind("Texts", _reasons)
"""Kind of an option that holds finish reasons, one or several; `any` becomes an empty list, which allows all."""


class ExportOptions(Options):
    """The samples to export, and the format. None: the format's own default."""

    to: Annotated[
        str,
        Option(
            computed=f"The format: {', '.join(extensions('exporter'))}; or that of a plug-in. docs/exports.md "
            "says what each writes.",
            metavar="FORMAT",
        ),
    ]
    out: Annotated[Path | None, Option()] = None
    """Folder for the files. Default: exports/FORMAT in the first run folder."""
    take: Annotated[Literal["correct", "all"] | None, Option()] = None
    """Which samples. Default: correct for training data, else all."""
    shortest: Annotated[int | None, Option(metavar="N", least=1)] = None
    """At most N samples of each question, the shortest ones."""
    finish_reasons: Annotated[tuple[str, ...] | None, Option(flag="finish-reason", metavar="REASON", kind=REASONS)] = (
        None
    )
    """Only replies with this finish reason (stop, length …; `any` for all); may be repeated. Default: stop for training
    data, else any.
    """
    distinct: Annotated[bool | None, Option()] = None
    """Write equal replies to one question once. Default: on for training data."""
    reasoning: Annotated[bool, Option()] = True
    """Leave the model's thinking out of training data."""
    solution_key: Annotated[str | None, Option(metavar="COLUMN", chars=1)] = None
    """Write a benchmark's own solutions, from this column of its data, in place of a run's replies. RUN is then the
    benchmark's name.
    """
    prompt: Annotated[str | None, Option()] = None
    """Prompt of the benchmark's questions beside its own solutions. Default: the card's."""
    i_know: Annotated[bool, Option()] = False
    """Also export a benchmark as training data, and questions whose authors ask not to publish them."""


class ExportCommand(ExportOptions, CommandOptions):
    """Write each RUN in the format of another tool: a folder with a file for each benchmark.

    \b
    harness export results/limo --to sharegpt
    harness export limo --to alpaca --solution-key solution
    harness export results/limo --to trl --shortest 1
    harness export results/qwq-32b --to parquet --out tables
    harness export results/gsm8k results/gpqa --to lm_eval
    """

    runs: Annotated[tuple[Path, ...], Option(argument=True)]
    """The runs, or the benchmark whose solutions are written."""
    as_json: Annotated[bool, prints("what was written", "harness.cli.printed.ends:Exported")] = False


class AuditOptions(Options):
    """The samples of an audit, and where a person's verdicts come from."""

    samples: Annotated[int, Option(least=2)] = 100
    """Samples of each benchmark for a person to judge, including those judged before."""
    undecided: Annotated[bool, Option()] = False
    """Ask about the samples that the grader left undecided, in place of a random draw."""
    benchmark: Annotated[str | None, Option()] = None
    """Only this benchmark of the run. Default: each."""
    who: Annotated[str | None, Option(chars=1)] = None
    """Name stored with the verdicts. Default: the user's."""
    out: Annotated[Path | None, Option()] = None
    """Write the samples left to judge to FILE, as JSON lines."""
    verdicts: Annotated[Path | None, Option()] = None
    """Take the verdicts from FILE, which `out` wrote and a person filled in."""


class AuditCommand(AuditOptions, JudgingCosts, JudgeFlag, CommandOptions):
    """Judge samples of the scored RUN by hand, without seeing their verdicts, and print the accuracy that follows.

    A judge model makes errors, and the interval of its score leaves them out. An audit measures them. It draws samples
    at random from those that were graded correct and from the others; if a judge decided some samples, only from these.
    You may stop at any sample and go on later. Your verdicts are stored as corrections. The score keeps its accuracy;
    the audited accuracy stands beside it, with an interval that includes the grader's errors.

    \b
    harness audit results/r1
    harness audit results/r1 --undecided               # decide what the grader could not decide
    harness audit results/r1 --out to_judge.jsonl      # no terminal: fill in the verdicts, then
    harness audit results/r1 --verdicts to_judge.jsonl
    harness audit --labels labelled.jsonl --judge MODEL@URL,prompt=proofbench
    """

    run: Annotated[Path | None, Option(argument=True)] = None
    """The scored run."""
    labels: Annotated[Path | None, Option()] = None
    """Without RUN: measure the judge that `judge` names on the pairs in FILE, whose verdict or points a person gave
    (docs/judge.md)."""


TOOLS = Kind("str | Sequence[Mapping[str, Any]]", read_tools, str | list[dict[str, Any]])
"""Kind of an option that lists tools."""


class GradeOptions(Options):
    """The kind of a reference answer, and the tolerance of the comparison."""

    kind: Annotated[Literal["auto", AnswerKind], Option()] = "auto"
    """Kind of the reference answer."""
    relative_tolerance: Annotated[float, Option(least=0)] = 0.0
    """Accepted distance from the reference, as a fraction of it."""
    absolute_tolerance: Annotated[float, Option(least=0)] = 0.0
    """Accepted distance from the reference."""
    round_to_reference: Annotated[bool, Option()] = False
    """Accept a number that rounds to the reference's digits."""
    choices: Annotated[tuple[str, ...], Option(flag="choice")] = ()
    """Text of an option of a choice question, in order; repeat it for each."""
    tools: Annotated[Any, Option(metavar="JSON", kind=TOOLS)] = ()
    """With kind `calls`: the tools that were offered, a list of {"name", "description", "parameters"}."""
    grader: Annotated[str, Option(metavar="MODULE:FUNCTION")] = "rules"
    """A verifier of your own instead of the rules. Default: rules."""
    whole_reply: Annotated[bool, Option()] = False
    """Take the whole reply as the answer, as a card with `whole_reply: true` does."""
    deadline: Annotated[float, Option(above=0, below=MAX_DEADLINE_SECONDS)] = DEADLINE_SECONDS
    """Maximum seconds for grading the answer; an answer that takes longer stays undecided. Default: 2."""


class GradeCommand(GradeOptions, CommandOptions):
    """Say whether RESPONSE (`-` reads it from standard input) gives the answer REFERENCE, and by which rule.

    The last line is the verdict that `harness score` stores for a sample with this response. With --kind program,
    REFERENCE is tests in JSON, which the program in RESPONSE must pass in a sandbox. With --kind calls, REFERENCE and
    RESPONSE are JSON: the accepted function calls, and a list of {"name", "arguments"} (docs/grading.md).

    \b
    harness grade '1/2' 'So the answer is \\boxed{0.5}.'
    """

    dashed: ClassVar = True

    reference: Annotated[str, Option(argument=True)]
    """The reference answer."""
    response: Annotated[str, Option(argument=True)]
    """The model's words."""
