"""The options of a scoring: how a run is graded, and how another tool's file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from harness.asking.options.headings import GRADING, OUTPUT, OUTPUTS
from harness.core.errors import UsageError
from harness.core.options import Kind, Option, Options, options_of
from harness.core.wording import option

TOOL = Kind("OutputsFormat", lambda value: value)
"""A tool's name; who reads the file refuses an unknown one, and names the near ones."""


class AnyK(Options):
    """The k of pass@k and its like."""

    k: Annotated[
        tuple[int, ...],
        Option(
            "Also pass@K, pass^K and maj@K, for any K up to the samples of a question; may be repeated.",
            under=GRADING,
            metavar="K",
            least=1,
        ),
    ] = ()
    """Beside the powers of two."""


class GradingOptions(AnyK):
    """How samples are graded; see `scoring.pipeline.Grading`."""

    workers: Annotated[
        int | None, Option("Processes that grade. Default: the cores.", under=GRADING, least=1, most=256)
    ] = None
    deadline: Annotated[
        float | None,
        Option("Seconds for one answer, after which it is undecided. Default: 2.", under=GRADING, above=0),
    ] = None
    fresh: Annotated[bool, Option("Grade all samples again, also those graded by this version.", under=GRADING)] = False
    answer_from_reasoning: Annotated[
        bool,
        Option("Also say what the accuracy would be if reasoning without a final answer were searched.", under=GRADING),
    ] = False
    cut_text: Annotated[
        bool,
        Option(
            "Also grade what longer replies had come to at smaller budgets, and when the right answer first stood.",
            under=GRADING,
        ),
    ] = False
    salvaged: Annotated[
        bool,
        Option(f"Leave samples out that went on after an interruption (see {option('salvage')}).", under=GRADING),
    ] = True
    also: Annotated[
        Literal["math-verify", "sympy"] | None,
        Option("Grade a second time by this grader, and compare.", under=GRADING),
    ] = None
    also_python: Annotated[
        Path | None, Option("Interpreter that has it. Default: this one.", under=GRADING, metavar="FILE")
    ] = None

    def _check(self) -> None:
        """Raise `UsageError` for an interpreter without a grader."""
        super()._check()
        if self.also_python is not None and self.also is None:
            raise UsageError(f"{option('also_python')} goes with {option('also', 'GRADER')}")


class OutputsOptions(Options):
    """How a file of another tool's outputs is read. Every option may be left out."""

    response_key: Annotated[
        str | None, Option("Column of the response in FILE; a cell may hold a list of samples.", under=OUTPUTS)
    ] = None
    answer_key: Annotated[str | None, Option("Column of the reference answer in FILE.", under=OUTPUTS)] = None
    question_key: Annotated[
        str | None, Option("Column of the question in FILE: equal questions are samples of one.", under=OUTPUTS)
    ] = None
    id_key: Annotated[str | None, Option("Column of the question's id in FILE.", under=OUTPUTS)] = None
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
            "The card whose questions FILE answers: they are known by their text, and graded by its references.",
            under=OUTPUTS,
        ),
    ] = None
    written_by: Annotated[
        str | None,
        Option(
            "The model that wrote FILE, by its published name: `harness verify` and `report` set its scores beside.",
            under=OUTPUTS,
            metavar="MODEL",
        ),
    ] = None
    repeats: Annotated[
        Literal["auto", "samples", "questions"], Option("What equal rows of FILE are.", under=OUTPUTS)
    ] = "auto"
    out: Annotated[
        Path | None,
        Option(
            "Write the grades of FILE here, too, one JSON line a sample. Of shards: where they are joined.",
            under=OUTPUTS,
        ),
    ] = None


class ScoreOptions(GradingOptions, OutputsOptions):
    """All that a scoring is asked, of a run folder or of a file of outputs."""

    track: Annotated[
        tuple[str, ...],
        Option(
            "Send the scores to wandb, mlflow, trackio or a plug-in's tracker (docs/howto/trackers.md); may be "
            "repeated.",
            under=OUTPUT,
            metavar="TOOL",
        ),
    ] = ()
    on: Annotated[
        str | None,
        Option(
            "Grade on the nodes of a Ray cluster, and count here (docs/howto/ray.md).",
            under=GRADING,
            metavar="ray[://HOST:PORT]",
        ),
    ] = None

    @property
    def of_outputs(self) -> list[str]:
        """Names of the options that are set and say something of a file, in their order."""
        return [name for name in self.changed if name in options_of(OutputsOptions)]
