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
    """Column of FILE with the response, or a list of samples."""
    answer_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of FILE with the reference answer; not needed with `benchmark`."""
    question_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of FILE with the question; rows with the same question are its samples."""
    id_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of FILE with the question ids. If set, rows without questions are matched with `benchmark` by id. Default:
    `id`.
    """
    sample_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of FILE with the sample (attempt) number. Default: `sample_index`, or the order of the rows."""
    verdict_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Use FILE's own verdicts from this field instead of grading: a column, metric, scorer or reward (docs/moving.md).
    """
    errors: Annotated[Literal["missing", "wrong"] | None, Option(under=OUTPUTS)] = None
    """Count attempts of FILE without a verdict as missing or wrong. Default: missing; for swe_bench wrong."""
    tool: Annotated[str | None, Option(under=OUTPUTS, flag="from", kind=TOOL)] = None
    """Tool that wrote FILE: lm_eval, inspect, evalscope, opencompass, sglang, openai_batch, nemo_skills, sgl_eval …
    (docs/moving.md).
    """
    benchmark: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Benchmark that FILE answers, or a file of questions: rows are matched by question text and graded by its
    references.
    """
    written_by: Annotated[str | None, Option(under=OUTPUTS, metavar="MODEL")] = None
    """Model that wrote FILE, by its published name, to look up published scores. Default: the model that FILE names, if
    any.
    """
    repeats: Annotated[Literal["auto", "samples", "questions"], Option(under=OUTPUTS)] = "auto"
    """Treat rows of FILE with the same question as samples of it, or as different questions."""
    out: Annotated[Path | None, Option(under=OUTPUTS, metavar="RUN")] = None
    """Folder of the run made from FILE. Default: FILE.scored, next to FILE."""


class JudgingCosts(Options):
    """Whether the command only says what the judge would be asked and what that costs, and the prices of its tokens."""

    dry_run: Annotated[bool, Option(under=JUDGE)] = False
    """Print the number of judge requests and their maximum cost. Do not send requests."""
    prices: Annotated[str | None, Option(under=MONEY, metavar="IN,OUT", kind=PRICES)] = None
    """USD per million tokens of the judge's prompts and completions, such as 0.5,2, to print its cost."""


class ScoreOptions(GradingOptions, OutputsOptions):
    """All options for scoring a run folder or a file of outputs."""

    track: Annotated[tuple[str, ...], Option(under=OUTPUT, metavar="TOOL")] = ()
    """Send the scores to wandb, mlflow, trackio or a plug-in's tracker (docs/exports.md). Repeatable."""
    step: Annotated[int | None, Option(under=OUTPUT, least=0)] = None
    """Send the scores as step N of the tracker run in `series`."""
    series: Annotated[str | None, Option(under=OUTPUT, metavar="NAME")] = None
    """Name of the tracker run for all steps. Default: the name of RUN's parent folder."""
    on: Annotated[str | None, Option(under=GRADING, metavar="ray[://HOST:PORT]")] = None
    """Grade on the nodes of a Ray cluster; scores are computed on this machine (docs/scaling.md)."""

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
    FILE.scored; every command that takes a run also takes FILE.

    \b
    harness score results/qwq-32b
    harness score results/qwq-32b --k 10 --also math-verify
    harness score outputs.jsonl --response-key gen --answer-key answer
    harness score samples_aime24.jsonl --from lm_eval
    harness score agent_runs.csv --id-key task --verdict-key resolved
    harness score results/ck/step_500 --track wandb --step 500 --series my-training
    harness score results/qwq-32b --judge Qwen/Qwen2.5-32B-Instruct@http://127.0.0.1:8000
    """

    first: ClassVar = (
        *("response_key", "answer_key", "tool", "as_json", "fresh", "also", "follow", "every_table", "judge"),
        "dry_run",
    )
    apart: ClassVar = (("follow", "on", "judge", "dry_run"), ("dry_run", "as_json"))

    sources: Annotated[tuple[Path, ...], Option(argument=True, metavar="SOURCE...")]
    """Run folders and files of outputs."""
    as_json: Annotated[
        bool, prints("a list with one score per benchmark", "list[harness.cli.printed.scores:RunScore]")
    ] = False
    follow: Annotated[bool, Option()] = False
    """Keep grading new samples until the run ends."""
    every_table: Annotated[bool, Option(flag="all")] = False
    """Print every table: both intervals, pass@k, lengths, speed."""
