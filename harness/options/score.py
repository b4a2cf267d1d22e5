"""The options for scoring: how a run is graded, and how another tool's file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from harness.core.errors import UsageError
from harness.core.option_kinds import PRICES, Kind
from harness.core.options import Option, Options, options_of
from harness.options.command import GRADING, JUDGE, MONEY, OUTPUT, OUTPUTS, CommandOptions, JudgeFlag, prints
from harness.presets.grading import GradingOptions

TOOL = Kind("OutputsFormat", lambda value: value)
"""A tool's name; the reader of the file rejects an unknown name and suggests similar ones."""


class OutputsOptions(Options):
    """How a file of another tool's outputs is read. All options are optional."""

    response_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of FILE that contains the response, or a list of responses."""
    answer_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of FILE that contains the reference answer. Not needed with `benchmark`."""
    question_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of FILE that contains the question. Rows with the same question are treated as samples of that question.
    """
    id_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of FILE that contains the question ID. If set, rows without a question are matched to `benchmark` by ID.
    Default: `id`.
    """
    sample_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Column of FILE that contains the sample (attempt) number. Default: `sample_index`, otherwise the row order."""
    verdict_key: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Use the verdicts in this field of FILE (a column, metric, scorer or reward) instead of grading (docs/moving.md).
    """
    errors: Annotated[Literal["missing", "wrong"] | None, Option(under=OUTPUTS)] = None
    """How to count attempts in FILE that have no verdict. Default: `wrong` for swe_bench, otherwise `missing`."""
    tool: Annotated[str | None, Option(under=OUTPUTS, flag="from", kind=TOOL)] = None
    """Tool that wrote FILE, such as lm_eval, inspect, evalscope, opencompass, sglang or nemo_skills (docs/moving.md).
    """
    benchmark: Annotated[str | None, Option(under=OUTPUTS)] = None
    """Benchmark or file of questions that the replies in FILE belong to. Rows are matched by question text and graded
    against the benchmark's reference answers.
    """
    written_by: Annotated[str | None, Option(under=OUTPUTS, metavar="MODEL")] = None
    """Published name of the model that generated FILE, used to look up published scores. Default: the model named in
    FILE, if any.
    """
    out: Annotated[Path | None, Option(under=OUTPUTS, metavar="RUN")] = None
    """Folder for the run created from FILE. Default: FILE.scored, next to FILE."""

    @property
    def of_outputs(self) -> list[str]:
        """The names of the options for files that were set, in order."""
        return [name for name in self.changed if name in options_of(OutputsOptions)]


class JudgingCosts(Options):
    """Whether to report only what the judge would be asked and what that would cost, and the prices of its tokens."""

    dry_run: Annotated[bool, Option(under=JUDGE)] = False
    """Print the number of judge requests and their maximum cost, without sending requests."""
    prices: Annotated[str | None, Option(under=MONEY, metavar="IN,OUT[,CACHED]", kind=PRICES)] = None
    """The judge's prices in USD per million prompt and completion tokens, such as 0.5,2. Required to print the cost."""


class ScoreOptions(GradingOptions, OutputsOptions):
    """All options for scoring a run folder or a file of outputs."""

    track: Annotated[tuple[str, ...], Option(under=OUTPUT, metavar="TOOL")] = ()
    """Send the scores to wandb, mlflow, trackio or a plug-in's tracker (docs/exports.md). Repeatable."""
    step: Annotated[int | None, Option(under=OUTPUT, least=0)] = None
    """Step number under which the scores are sent to the tracker run named by `series`."""
    series: Annotated[str | None, Option(under=OUTPUT, metavar="NAME")] = None
    """Name of the tracker run that collects all steps. Default: the name of RUN's parent folder."""
    on: Annotated[str | None, Option(under=GRADING, metavar="ray[://HOST:PORT]")] = None
    """Grade on the nodes of a Ray cluster. Scores are computed on this machine (docs/scaling.md)."""

    def _check(self) -> None:
        """Raise `UsageError` for a step that is not sent anywhere, and for a series without a step."""
        super()._check()
        if self.step is not None and not self.track:
            raise UsageError("it requires a tracker: specify one with `track`", field="step")
        if self.series is not None and self.step is None:
            raise UsageError("it requires `step`, this run's number in the series", field="series")


class ScoreCommand(ScoreOptions, JudgingCosts, JudgeFlag, CommandOptions):
    """Grade and score each SOURCE: a run folder, or an output FILE from another tool. A FILE is converted to the run
    folder FILE.scored; after that, every command that takes a run also accepts FILE.

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

    sources: Annotated[tuple[Path, ...], Option(argument=True, newest=True, metavar="SOURCE...")]
    """Run folders and files of outputs. Default: the newest run here."""
    as_json: Annotated[bool, prints("a list with one score per benchmark", "list[harness.scoring.score:RunScore]")] = (
        False
    )
    follow: Annotated[bool, Option()] = False
    """Keep grading new samples until the run ends."""
    every_table: Annotated[bool, Option(flag="all")] = False
    """Print all tables, including both intervals, pass@k, lengths and speed."""
