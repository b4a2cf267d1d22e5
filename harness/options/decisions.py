"""The options of commands that decide between runs.

Differences are in points: one point is one hundredth of an accuracy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from harness.core.errors import UsageError
from harness.core.option_kinds import POINTS, PRICES
from harness.core.options import Option, Options
from harness.options.command import CommandOptions, prints


class Margin(Options):
    """The loss that decides whether a run is not worse than another."""

    margin: Annotated[float | None, Option(above=0, below=100, kind=POINTS)] = None
    """Test whether the new run is worse by less than this many points on the same questions. Default: test for any
    difference.
    """


class CompareOptions(Margin):
    """The baseline of a comparison, and the loss that matters."""

    baseline: Annotated[Path | None, Option()] = None
    """The run that all other runs are compared with. Default: for each benchmark, the first run that includes it."""


class CompareCommand(CompareOptions, CommandOptions):
    """Compare scored RUNS question by question with the first run, or with --baseline. A run is a run folder, or
    another tool's outputs graded by `harness score`.

    For each benchmark, one line shows whether a run is better on the same questions, and another shows whether it would
    be better on new questions of the same kind. If the runs share several benchmarks, the last line compares their
    means. p-values are adjusted for the number of lines (Holm's method): if two runs are equally good, the chance that
    any line shows a difference is at most 5%. This guarantee covers a single comparison of complete runs; plan their
    number of samples with `harness plan`.

    Exit code with --margin: 0 if no run is worse by the margin or more, 1 if any run is, 4 if there are too few samples
    to tell or a score has no counterpart.

    \b
    harness compare results/base results/tuned
    harness compare results/base theirs.jsonl
    harness compare results/checkpoint-* --baseline results/base
    harness compare results/base results/quantized --margin 1
    harness compare results/base results/tuned --samples
    """

    apart: ClassVar = (("show_samples", "as_json", "baseline", "margin"),)

    runs: Annotated[tuple[Path, ...], Option(argument=True)]
    """Scored runs."""
    show_samples: Annotated[bool, Option(flag="samples")] = False
    """List the differences between two runs instead: accuracy per question, verdicts and settings."""
    as_json: Annotated[bool, prints("a list of the decisions", "list[harness.deciding.verdicts:Decision]")] = False


class GateCommand(CommandOptions):
    """Check a model against the accuracy floors in the YAML file POLICY, with a bounded false-alarm rate.

    Without RUN, the benchmarks are sampled in rounds until each is decided or its sample limit is reached. With RUN,
    existing scored runs are checked. The gate writes gate.json, gate.md, gate.xml (JUnit) and gate.html (run history),
    and adds a line to the policy's history. Exit code: 0 if the gate passes, 1 if a critical benchmark fails, 4 if it
    is undecided or samples are missing.

    \b
    harness gate --example > gate.yaml
    harness gate gate.yaml --dry-run
    harness gate gate.yaml --out results/gate-4f2c
    harness gate gate.yaml results/nightly
    """

    apart: ClassVar = (("dry_run", "as_json", "runs"),)

    policy: Annotated[Path | None, Option(argument=True)] = None
    """The policy's file."""
    runs: Annotated[tuple[Path, ...], Option(argument=True, metavar="[RUN]...")] = ()
    """Existing scored runs."""
    out: Annotated[Path | None, Option(metavar="FOLDER")] = None
    """Gate folder. An unfinished gate in this folder is resumed. Default: the first RUN's folder (for a file, its
    parent), or a folder in results/gate-NAME/ named after the time (in CI, after the commit).
    """
    dry_run: Annotated[bool, Option()] = False
    """Simulate the gate's cost and power without sending requests. The exit code is 1 if the power is below the
    policy's minimum.
    """
    forget: Annotated[str | None, Option(metavar="DATE", chars=10)] = None
    """Ignore runs sampled on this date (or at this time) when estimating the variation between runs."""
    example: Annotated[bool, Option()] = False
    """Print a commented example policy to edit."""
    as_json: Annotated[bool, prints("the decision (gate.json)", "harness.gates.decision:Gated")] = False


class VerifyOptions(Options):
    """Which published scores a run is compared with."""

    model: Annotated[str | None, Option(chars=1)] = None
    """The model's published name, if the run uses a different name or none."""
    published: Annotated[Path | None, Option()] = None
    """YAML file (or folder of files) with the scores to compare against. Default: the published scores included in the
    harness.
    """


class VerifyCommand(VerifyOptions, CommandOptions):
    """Check whether RUN's scores agree with the model's published scores, and list settings that differ. RUN is a run
    folder, or another tool's outputs graded by `harness score`.

    If any published scores were measured with the run's settings, only those are used. A run agrees if it matches one
    of the most precise published scores. Exit code: 0 if it agrees, 1 if it does not, 4 if this cannot be determined
    (there are too few samples, or none of the disagreeing sources reports its settings).

    \b
    harness verify results/mine && echo "as published"
    harness verify results/mine --published expected.yaml --model org/name
    harness verify aime24.jsonl --model org/name
    """

    run: Annotated[Path, Option(argument=True, newest=True)]
    """The scored run. Default: the newest run here."""
    as_json: Annotated[
        bool, prints("a list with one entry per benchmark", "list[harness.commands.compare:Verified]")
    ] = False


class PlanBasis(Margin):
    """The margin of a planned comparison, the accuracy of the model, and the prices of tokens."""

    accuracy: Annotated[float | None, Option(above=0, below=100, kind=POINTS)] = None
    """Your model's accuracy in %, if you do not have a run. The spread of published runs is adjusted to this
    accuracy.
    """
    prices: Annotated[str | None, Option(metavar="IN,OUT[,CACHED]", kind=PRICES)] = None
    """USD per million prompt and completion tokens, such as 0.5,2. Default: the run's prices."""
    recovery: Annotated[float | None, Option(least=50, below=100, kind=POINTS)] = None
    """Smallest acceptable share of the baseline's accuracy, in %. For example, 95 allows a loss of 5% of that accuracy.
    """
    floor: Annotated[float | None, Option(above=0, below=100, kind=POINTS)] = None
    """A threshold that you use today, in %. Needs a number of samples. The plan then also estimates how often it fails
    a model that has not changed, and the loss that it detects.
    """
    limit: Annotated[int | None, Option(least=1)] = None
    """Plan for this number of the benchmark's questions."""
    plots: Annotated[Path | None, Option()] = None
    """Folder for a plot (SVG and CSV) of the minimum detectable difference against the number of samples."""


class PlanOptions(PlanBasis):
    """The options of a plan: its basis, and the difference to detect or the margin to show."""

    detect: Annotated[float | None, Option(above=0, below=100, kind=POINTS)] = None
    """True difference to detect, in points. Not needed if you specify a number of samples."""

    @property
    def is_margin(self) -> bool:
        """Whether the goal is to rule out a loss rather than to detect a difference."""
        return self.margin is not None or self.recovery is not None

    def points(self, accuracy: float) -> float | None:
        """The difference to detect or the margin to show, in points; None if none is specified.

        accuracy: the baseline's, as a fraction.
        """
        return self.margin or self.detect if self.recovery is None else (100 - self.recovery) * accuracy

    def _check(self) -> None:
        """Raise `UsageError` for more than one goal."""
        super()._check()
        if sum(each is not None for each in (self.margin, self.detect, self.recovery)) > 1:
            raise UsageError(
                "`detect`, `margin` and `recovery` are different goals: specify only one of them, "
                "and rerun the command for another goal"
            )
        if self.floor is not None and self.floor < 1:
            points = f"{100 * self.floor:g}"
            raise UsageError(f"a floor is given in points: write {points} for {points}%", field="floor")


class PlanCommand(PlanOptions, CommandOptions):
    """Print how many samples per question are needed to detect a true difference of --detect points (80% power), along
    with the required tokens, time and cost. RUN must be scored and have at least two samples per question. It can be
    the first part of the planned run, or an earlier run of a similar model. For a BENCHMARK or a file of your own
    questions, the spread of published runs is used, scaled to your model's --accuracy. With BENCHMARK:SAMPLES or
    RUN:SAMPLES, print the minimum detectable difference instead.

    The difference is between two new runs of equal size on the same questions. If there are several benchmarks, the
    plan is for a single `harness compare`, which corrects their p-values together, so each benchmark needs more samples
    than it would alone.

    --margin plans enough samples to show, with 80% power if both models are equally good, that a new run is worse by
    less than this many points. --recovery does the same, but the limit is the percentage of the baseline's accuracy
    that the new run must exceed.

    \b
    harness run aime24:2 … && harness score results/mine && harness plan results/mine --detect 2
    harness plan aime24 --detect 2
    harness plan aime24:64
    harness plan aime24 --margin 1
    harness plan results/base --recovery 95
    """

    runs: Annotated[tuple[str, ...], Option(argument=True, metavar="RUN|BENCHMARK[:SAMPLES]...")]
    """Runs or benchmarks to plan for one comparison."""
    as_json: Annotated[bool, prints("a list with one plan per benchmark", "list[harness.commands.plan:Needed]")] = False
