"""The options of verbs on finished runs (merge, report, export, audit), and of grading one response."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from harness.asking.options.command import CommandOptions, prints
from harness.core.options import Kind, Option, Options
from harness.core.plugins import extensions
from harness.core.records import AnswerKind
from harness.presets.grading import DEADLINE_SECONDS, MAX_DEADLINE_SECONDS


class MergeOptions(Options):
    """The folder that run folders are joined into."""

    out: Annotated[Path, Option("Folder of the joined run; if it holds an earlier part, the rest is added.")]
    accept_server_change: Annotated[
        bool, Option("Join the folders although their servers reported different models, templates or quantisations.")
    ] = False


class MergeCommand(MergeOptions, CommandOptions):
    """Join the folders RUNS (one run that was begun on several machines) into one run folder.

    Shards that work in one folder need no merge: `harness score` joins them. Each sample is kept once. A folder with
    other settings is refused, and the differences are named. The same command again adds the samples that have come
    since. To ask for the missing samples, give `harness run` without --shard and with the joined folder as --out. Exit
    code 1 if samples are missing.

    \b
    harness merge node1/qwq-32b node2/qwq-32b --out results/qwq-32b
    """

    runs: Annotated[tuple[Path, ...], Option("Run folders.", argument=True)]


class ReportOptions(Options):
    """The folders that a report and its plots are written to."""

    out: Annotated[Path | None, Option("Folder for report.html, .md, .csv and .tex.")] = None
    plots: Annotated[Path | None, Option("Folder for each plot as SVG, PNG and CSV.")] = None


class ReportCommand(ReportOptions, CommandOptions):
    """Print one table for RUNS, benchmarks as columns, and write it as Markdown, CSV, LaTeX and HTML.

    A run is a run folder, or another tool's outputs that `harness score` has graded; the folder of a sweep stands for
    all its runs. The files go to --out, else into
    the run folder; for several runs, into the folder that holds the first. Exit code 1: none of RUNS is scored.

    \b
    harness report results/base
    harness report results/base results/tuned --out comparison
    """

    refused: ClassVar = {
        "i_know": "a report holds no question and no reply, so nothing is withheld: leave it out",
        "k": "the scores hold pass@k: `harness score RUN` takes the k, and a report shows it",
    }

    runs: Annotated[tuple[Path, ...], Option("Scored runs.", argument=True)]


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
            f"The format: {', '.join(extensions('exporter'))}; or that of a plug-in. docs/exports.md "
            "says what each writes.",
            metavar="FORMAT",
        ),
    ]
    out: Annotated[Path | None, Option("Folder for the files. Default: exports/FORMAT in the run folder.")] = None
    take: Annotated[
        Literal["correct", "all"] | None, Option("Which samples. Default: correct for training data, else all.")
    ] = None
    shortest: Annotated[
        int | None, Option("At most N samples of each question, the shortest ones.", metavar="N", least=1)
    ] = None
    finish_reasons: Annotated[
        tuple[str, ...] | None,
        Option(
            "Only replies with this finish reason (stop, length …; `any` for all); may be repeated. Default: stop for "
            "training data, else any.",
            flag="finish-reason",
            metavar="REASON",
            kind=REASONS,
        ),
    ] = None
    distinct: Annotated[
        bool | None, Option("Write equal replies to one question once. Default: on for training data.")
    ] = None
    reasoning: Annotated[bool, Option("Leave the model's thinking out of training data.")] = True
    solution_key: Annotated[
        str | None,
        Option(
            "Write a benchmark's own solutions, from this column of its data, in place of a run's replies. RUN is then "
            "the benchmark's name.",
            metavar="COLUMN",
            chars=1,
        ),
    ] = None
    prompt: Annotated[
        str | None, Option("Prompt of the benchmark's questions beside its own solutions. Default: the card's.")
    ] = None
    i_know: Annotated[
        bool,
        Option("Also export a benchmark as training data, and questions whose authors ask not to publish them."),
    ] = False


class ExportCommand(ExportOptions, CommandOptions):
    """Write RUN in the format of another tool: a folder with a file for each benchmark.

    \b
    harness export results/limo --to sharegpt
    harness export limo --to alpaca --solution-key solution
    harness export results/limo --to trl --shortest 1
    harness export results/qwq-32b --to parquet --out tables
    """

    run: Annotated[Path, Option("The run, or the benchmark whose solutions are written.", argument=True)]
    as_json: Annotated[bool, prints("what was written", "harness.cli.printed.ends:Exported")] = False


class AuditOptions(Options):
    """The samples of an audit, and where a person's verdicts come from."""

    samples: Annotated[
        int, Option("Samples of each benchmark for a person to judge, including those judged before.", least=2)
    ] = 100
    undecided: Annotated[
        bool, Option("Ask about the samples that the grader left undecided, in place of a random draw.")
    ] = False
    benchmark: Annotated[str | None, Option("Only this benchmark of the run. Default: each.")] = None
    who: Annotated[str | None, Option("Name stored with the verdicts. Default: the user's.", chars=1)] = None
    out: Annotated[
        Path | None,
        Option("Write the samples left to judge to FILE, as JSON lines."),
    ] = None
    verdicts: Annotated[
        Path | None, Option("Take the verdicts from FILE, which `out` wrote and a person filled in.")
    ] = None


class AuditCommand(AuditOptions, CommandOptions):
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
    """

    run: Annotated[Path, Option("The scored run.", argument=True)]


class GradeOptions(Options):
    """The kind of a reference answer, and the tolerance of the comparison."""

    kind: Annotated[Literal["auto", AnswerKind], Option("Kind of the reference answer.")] = "auto"
    relative_tolerance: Annotated[
        float, Option("Accepted distance from the reference, as a fraction of it.", least=0)
    ] = 0.0
    absolute_tolerance: Annotated[float, Option("Accepted distance from the reference.", least=0)] = 0.0
    round_to_reference: Annotated[bool, Option("Accept a number that rounds to the reference's digits.")] = False
    choices: Annotated[
        tuple[str, ...], Option("Text of an option of a choice question, in order; repeat it for each.", flag="choice")
    ] = ()
    grader: Annotated[
        str,
        Option("A verifier of your own instead of the rules. Default: rules.", metavar="MODULE:FUNCTION"),
    ] = "rules"
    whole_reply: Annotated[
        bool, Option("Take the whole reply as the answer, as a card with `whole_reply: true` does.")
    ] = False
    deadline: Annotated[
        float,
        Option(
            "Maximum seconds for grading the answer; an answer that takes longer stays undecided. Default: 2.",
            above=0,
            below=MAX_DEADLINE_SECONDS,
        ),
    ] = DEADLINE_SECONDS


class GradeCommand(GradeOptions, CommandOptions):
    """Say whether RESPONSE (`-` reads it from standard input) gives the answer REFERENCE, and by which rule.

    The last line is the verdict that `harness score` stores for a sample with this response. With --kind program,
    REFERENCE is tests in JSON, which the program in RESPONSE must pass in a sandbox.

    \b
    harness grade '1/2' 'So the answer is \\boxed{0.5}.'
    """

    dashed: ClassVar = True
    refused: ClassVar = {"near_misses": "`harness show RUN --near-miss` prints the wrong answers that miss by little"}

    reference: Annotated[str, Option("The reference answer.", argument=True)]
    response: Annotated[str, Option("The model's words.", argument=True)]
