"""The options of a scoring: how a run is graded, and how another tool's file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from harness.asking.options.command import CommandOptions, JudgeFlag, prints
from harness.asking.options.headings import GRADING, JUDGE, MONEY, OUTPUT, OUTPUTS
from harness.core.errors import UsageError
from harness.core.options import PRICES, Kind, Option, Options, options_of
from harness.presets.grading import GradingOptions

TOOL = Kind("OutputsFormat", lambda value: value)
"""A tool's name; the reader of the file refuses an unknown name and suggests near ones."""


class OutputsOptions(Options):
    """How a file of another tool's outputs is read. Every option may be left out."""

    response_key: Annotated[
        str | None, Option("Column of the response in FILE; a cell may hold a list of samples.", under=OUTPUTS)
    ] = None
    answer_key: Annotated[
        str | None,
        Option(
            "Column of the reference answer in FILE; not needed with `benchmark`, which has the references.",
            under=OUTPUTS,
        ),
    ] = None
    question_key: Annotated[
        str | None,
        Option("Column of the question in FILE; rows with equal questions are samples of one question.", under=OUTPUTS),
    ] = None
    id_key: Annotated[
        str | None,
        Option(
            "Column of the question's id in FILE. Default: `id`, if each question has one. If you name it and FILE has "
            "no texts of questions, rows are matched with `benchmark` by it.",
            under=OUTPUTS,
        ),
    ] = None
    tool: Annotated[
        str | None,
        Option(
            "The tool that wrote FILE: llmeval, limo, lm_eval, inspect, openai_batch, sglang, nemo_skills and "
            "sgl_eval (also a folder of output-rs*.jsonl), opencompass, evalscope.",
            under=OUTPUTS,
            flag="from",
            kind=TOOL,
        ),
    ] = None
    benchmark: Annotated[
        str | None,
        Option(
            "The benchmark that FILE answers, or a file of questions: rows are matched by the question's text (without "
            "texts: by id_key), and graded by the references there.",
            under=OUTPUTS,
        ),
    ] = None
    written_by: Annotated[
        str | None,
        Option(
            "Name of the model that wrote FILE, as in published tables: `harness verify` and `report` look up its "
            "scores there. Default: the model that FILE names if it is an export as llmeval, else unknown.",
            under=OUTPUTS,
            metavar="MODEL",
        ),
    ] = None
    repeats: Annotated[
        Literal["auto", "samples", "questions"],
        Option(
            "Whether rows of FILE with equal questions are samples of one question, or different questions.",
            under=OUTPUTS,
        ),
    ] = "auto"
    out: Annotated[
        Path | None,
        Option(
            "Folder of the run that is made of FILE. Default: FILE.scored, beside FILE.", under=OUTPUTS, metavar="RUN"
        ),
    ] = None


class JudgingCosts(Options):
    """Whether the command only says what the judge would be asked and what that costs, and the prices of its tokens."""

    dry_run: Annotated[
        bool,
        Option(
            "Say how often the judge would be asked and what that costs at most; send and store nothing.", under=JUDGE
        ),
    ] = False
    prices: Annotated[
        str | None,
        Option(
            "USD per million tokens of the judge's prompts and replies, such as 0.5,2; the score then says its cost.",
            under=MONEY,
            metavar="IN,OUT",
            kind=PRICES,
        ),
    ] = None


class ScoreOptions(GradingOptions, OutputsOptions):
    """All options for scoring a run folder or a file of outputs."""

    track: Annotated[
        tuple[str, ...],
        Option(
            "Send the scores to wandb, mlflow, trackio or a plug-in's tracker (docs/exports.md); may be repeated.",
            under=OUTPUT,
            metavar="TOOL",
        ),
    ] = ()
    step: Annotated[
        int | None,
        Option(
            "Send the scores as step N of one tracker run, which `series` names.",
            under=OUTPUT,
            least=0,
        ),
    ] = None
    series: Annotated[
        str | None,
        Option(
            "Name of the tracker run of all steps. Default: the name of the folder that holds RUN.",
            under=OUTPUT,
            metavar="NAME",
        ),
    ] = None
    on: Annotated[
        str | None,
        Option(
            "Grade on the nodes of a Ray cluster; the scores are computed on this machine (docs/scaling.md).",
            under=GRADING,
            metavar="ray[://HOST:PORT]",
        ),
    ] = None

    def _check(self) -> None:
        """Raise `UsageError` for a step that is sent nowhere, and a series without a step."""
        super()._check()
        if self.step is not None and not self.track:
            raise UsageError("scores of a step are sent to a tracker: name the tracker with `track`", field="step")
        if self.series is not None and self.step is None:
            raise UsageError("a series has numbered steps: give this run's number with `step`", field="series")

    @property
    def of_outputs(self) -> list[str]:
        """Names of the options for files that are set, in order."""
        return [name for name in self.changed if name in options_of(OutputsOptions)]


class ScoreCommand(ScoreOptions, JudgingCosts, JudgeFlag, CommandOptions):
    """Grade and score each SOURCE: a run folder, or a file of another tool's outputs. A FILE becomes the run folder
    FILE.scored, for which FILE stands in every command that takes a run.

    \b
    harness score results/qwq-32b
    harness score outputs.jsonl --response-key gen --answer-key answer
    harness score samples_aime24.jsonl --from lm_eval
    harness score results/qwq-32b aime24_bz64.jsonl --benchmark aime24
    harness score results/qwq-32b --k 10
    harness score results/qwq-32b --follow
    harness score results/qwq-32b --also math-verify --also sympy
    harness score results/qwq-32b --track wandb
    harness score results/ck/step_500 --track wandb --step 500 --series my-training
    harness score results/qwq-32b --judge Qwen/Qwen2.5-32B-Instruct@http://127.0.0.1:8000
    harness score results/qwq-32b --judge MODEL,scope=wrong --dry-run --prices 0.5,2
    """

    first: ClassVar = (
        *("response_key", "answer_key", "tool", "as_json", "fresh", "also", "follow", "every_table", "judge"),
        "dry_run",
    )
    refused: ClassVar = {
        "dry_run": "this function grades; only the command line can say beforehand what a judge would be asked",
        "tau": "there is no G-Pass@k any more; pass^k, all of k samples right, stands in each score",
        "serve": "a judge is an endpoint: start it by `harness serve ENGINE MODEL`, and give its address",
    }

    sources: Annotated[
        tuple[Path, ...], Option("Run folders and files of outputs.", argument=True, metavar="SOURCE...")
    ]
    as_json: Annotated[
        bool, prints("a list of the scores, one of each benchmark,", "list[harness.cli.printed.scores:RunScore]")
    ] = False
    follow: Annotated[bool, Option("Keep grading new samples until the run ends.")] = False
    every_table: Annotated[bool, Option("Print every table: both intervals, pass@k, lengths, speed.", flag="all")] = (
        False
    )
