"""The options of a scoring: how a run is graded, and how another tool's file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from harness.core.errors import UsageError
from harness.core.options import PRICES, Kind, Option, Options, options_of
from harness.options.command import CommandOptions, JudgeFlag, prints
from harness.options.headings import GRADING, JUDGE, MONEY, OUTPUT, OUTPUTS
from harness.presets.grading import GradingOptions

TOOL = Kind("OutputsFormat", lambda value: value)
"""A tool's name; the reader of the file refuses an unknown name and suggests near ones."""


class OutputsOptions(Options):
    """How a file of another tool's outputs is read. Every option may be left out."""

    response_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of the response in FILE; a cell may hold a list of samples."""
    answer_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of the reference answer in FILE; not needed with `benchmark`, which has the references."""
    question_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of the question in FILE; rows with equal questions are samples of one question."""
    id_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of the question's id in FILE. Default: `id`, if each question has one. If you name it and FILE has no
    texts of questions, rows are matched with `benchmark` by it.
    """
    sample_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of the number of the sample, or attempt, in FILE. Default: `sample_index`, else the order of the rows."""
    verdict_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Field of FILE's own verdicts, which are taken in place of grading: a column; of lm_eval a metric, also as
    METRIC,FILTER; of evalscope a metric; of inspect a scorer; of harbor a reward.
    """
    errors: Annotated[Literal["missing", "wrong"] | None, Option(under=OUTPUTS)] = None
    """Whether attempts without a verdict in FILE are missing or wrong. Default: missing; of swe_bench wrong."""
    tool: Annotated[str | None, Option(under=OUTPUTS, flag="from", kind=TOOL)] = None
    """The tool that wrote FILE: llmeval, limo, lm_eval, inspect, openai_batch, sglang, nemo_skills and sgl_eval (also a
    folder of output-rs*.jsonl), opencompass, evalscope; of verdicts only: verdicts (a JSON object of ids), swe_bench,
    tau2_bench, harbor (a job's folder).
    """
    benchmark: Annotated[str | None, Option(under=OUTPUTS)] = None
    """The benchmark that FILE answers, or a file of questions: rows are matched by the question's text (without texts:
    by id_key), and graded by the references there.
    """
    written_by: Annotated[str | None, Option(under=OUTPUTS, metavar="MODEL")] = None
    """Name of the model that wrote FILE, as in published tables: `harness verify` and `report` look up its scores
    there. Default: the model that FILE names if it is an export as llmeval, else unknown.
    """
    repeats: Annotated[Literal["auto", "samples", "questions"], Option(under=OUTPUTS)] = "auto"
    """Whether rows of FILE with equal questions are samples of one question, or different questions."""
    out: Annotated[Path | None, Option(under=OUTPUTS, metavar="RUN")] = None
    """Folder of the run that is made of FILE. Default: FILE.scored, beside FILE."""


class JudgingCosts(Options):
    """Whether the command only says what the judge would be asked and what that costs, and the prices of its tokens."""

    dry_run: Annotated[bool, Option(under=JUDGE)] = False
    """Say how often the judge would be asked and what that costs at most; send and store nothing."""
    prices: Annotated[str | None, Option(under=MONEY, metavar="IN,OUT", kind=PRICES)] = None
    """USD per million tokens of the judge's prompts and replies, such as 0.5,2; the score then says its cost."""


class ScoreOptions(GradingOptions, OutputsOptions):
    """All options for scoring a run folder or a file of outputs."""

    track: Annotated[tuple[str, ...], Option(under=OUTPUT, metavar="TOOL")] = ()
    """Send the scores to wandb, mlflow, trackio or a plug-in's tracker (docs/exports.md); may be repeated."""
    step: Annotated[int | None, Option(under=OUTPUT, least=0)] = None
    """Send the scores as step N of one tracker run, which `series` names."""
    series: Annotated[str | None, Option(under=OUTPUT, metavar="NAME")] = None
    """Name of the tracker run of all steps. Default: the name of the folder that holds RUN."""
    on: Annotated[str | None, Option(under=GRADING, metavar="ray[://HOST:PORT]")] = None
    """Grade on the nodes of a Ray cluster; the scores are computed on this machine (docs/scaling.md)."""

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
    harness score agent_runs.csv --id-key task --verdict-key resolved
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
    apart: ClassVar = (("follow", "on", "judge", "dry_run"), ("dry_run", "as_json"))

    sources: Annotated[tuple[Path, ...], Option(argument=True, metavar="SOURCE...")]
    """Run folders and files of outputs."""
    as_json: Annotated[
        bool, prints("a list of the scores, one of each benchmark,", "list[harness.cli.printed.scores:RunScore]")
    ] = False
    follow: Annotated[bool, Option()] = False
    """Keep grading new samples until the run ends."""
    every_table: Annotated[bool, Option(flag="all")] = False
    """Print every table: both intervals, pass@k, lengths, speed."""
