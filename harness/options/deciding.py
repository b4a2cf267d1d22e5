"""The options of commands that decide between runs.

Differences are in points: one point is one hundredth of an accuracy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from harness.core.errors import UsageError
from harness.core.options import POINTS, PRICES, Option, Options
from harness.options.command import CommandOptions, prints


class Margin(Options):
    """The loss that decides whether a run is not worse than another."""

    margin: Annotated[float | None, Option(above=0, below=100, kind=POINTS)] = None
    """Smallest loss that matters: is the new run not worse by so many points or more, on the same questions? Default:
    only differences from 0.
    """


class CompareOptions(Margin):
    """The baseline of a comparison, and the loss that matters."""

    baseline: Annotated[Path | None, Option()] = None
    """The run that all others are compared with. Default: in each benchmark the first run that has it."""


class CompareCommand(CompareOptions, CommandOptions):
    """Compare scored RUNS question by question with the first of them that has the benchmark, or with --baseline.

    A run is a run folder, or another tool's outputs that `harness score` has graded.
    For each benchmark, one line says whether the same run would be better if the same questions were asked again, and
    one whether it would be on other questions of this kind. If runs share several benchmarks, a last line is about
    their mean. The p values are raised for the number of lines (Holm's
    method), so that with two equal runs any line shows a difference in at most 5 % of cases. That holds if you look
    once; to look again and again while runs grow, use `harness race`. Exit code beside a margin: 0 no run is worse by
    it or more, 4 one is, 1 the samples leave it open, or a score is compared with no other.

    \b
    harness compare results/base results/tuned
    harness compare results/base theirs.jsonl
    harness compare results/checkpoint-* --baseline results/base
    harness compare results/base results/quantised --margin 1
    harness compare results/base results/tuned --samples
    """

    apart: ClassVar = (("show_samples", "as_json", "baseline", "margin"),)

    runs: Annotated[tuple[Path, ...], Option(argument=True)]
    """Scored runs."""
    show_samples: Annotated[bool, Option(flag="samples")] = False
    """Print where two runs differ instead: questions that moved, verdicts that flipped, settings."""
    as_json: Annotated[bool, prints("a list of the decisions", "list[harness.deciding.verdicts:Decision]")] = False


class GateCommand(CommandOptions):
    """Say whether a model still reaches the floors of POLICY, a YAML file, within a promised rate of false alarms.

    Without RUN the benchmarks are sampled in rounds until each is decided or has used its samples; with RUN, scored
    runs that exist are looked at. gate.json, gate.md, gate.xml (JUnit) and gate.html (the runs so far) are written, and
    a line is added to the policy's history. Exit code 0: pass. 1: a critical benchmark fails. 4: undecided, or samples
    are missing.

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
    """Scored runs that exist."""
    out: Annotated[Path | None, Option(metavar="FOLDER")] = None
    """Folder of the new run, or of the files about runs that exist. A folder without a decision continues. Default:
    results/gate-NAME/ and the time, or the commit in CI; or the first RUN.
    """
    dry_run: Annotated[bool, Option()] = False
    """Say what the gate will cost and find, by simulation; send no request. Exit code 1 if it finds a loss less often
    than the policy wants.
    """
    forget: Annotated[str | None, Option(metavar="DATE", chars=10)] = None
    """Take the runs that were sampled at this date, or time, out of what teaches the deviation of runs."""
    example: Annotated[bool, Option()] = False
    """Print a policy with comments, to be edited."""
    as_json: Annotated[bool, prints("the decision (gate.json)", "harness.gates.decide:Gated")] = False


class VerifyOptions(Options):
    """Which published scores a run is compared with."""

    model: Annotated[str | None, Option(chars=1)] = None
    """The model's published name, if the run has another name or none."""
    published: Annotated[Path | None, Option()] = None
    """Compare with the scores of this file (YAML) or folder of files. Default: the scores that are shipped."""


class VerifyCommand(VerifyOptions, CommandOptions):
    """Say whether the scores of RUN agree with the published scores of its model, and which settings differ. RUN is a
    run folder, or another tool's outputs that `harness score` has graded.

    Published scores with the run's own settings come first; if there are any, only they decide. A run agrees if it
    matches one of the most exact published scores. Exit code: 0 it agrees, 4 it does not, 1 cannot say: the samples are
    too few to tell, or no source that disagrees states its settings.

    \b
    harness verify results/mine && echo "as published"
    harness verify results/mine --published expected.yaml --model org/name
    harness verify aime24.jsonl --model org/name
    """

    run: Annotated[Path, Option(argument=True)]
    """The scored run."""
    as_json: Annotated[bool, prints("a list, one of each benchmark,", "list[harness.commands.compare:Verified]")] = (
        False
    )


class PlanBasis(Margin):
    """The margin of a planned comparison, the accuracy of the model, and the prices of tokens."""

    accuracy: Annotated[float | None, Option(above=0, below=100, kind=POINTS)] = None
    """Accuracy of your model in %, if no run shows it: published spreads are scaled to it."""
    prices: Annotated[str | None, Option(metavar="IN,OUT", kind=PRICES)] = None
    """USD per million tokens of prompts and replies, such as 0.5,2. Default: the run's."""
    recovery: Annotated[float | None, Option(least=50, below=100, kind=POINTS)] = None
    """Smallest acceptable share of the baseline's accuracy in %. 95 is a margin of 5 % of the accuracy."""
    plots: Annotated[Path | None, Option()] = None
    """Folder for a picture, as SVG and CSV: the difference that each number of samples finds."""


class PlanOptions(PlanBasis):
    """The options of a plan: its basis, and the difference to find or the margin to show."""

    detect: Annotated[float | None, Option(above=0, below=100, kind=POINTS)] = None
    """True difference to find. May be left out if a number of samples is given."""

    @property
    def is_margin(self) -> bool:
        """Whether a loss is to be ruled out, not a difference to be found."""
        return self.margin is not None or self.recovery is not None

    def points(self, accuracy: float) -> float | None:
        """The difference to find, or the margin to show, in points; None if none is given.

        accuracy: a fraction, of the baseline.
        """
        return self.margin or self.detect if self.recovery is None else (100 - self.recovery) * accuracy

    def _check(self) -> None:
        """Raise `UsageError` for more than one aim."""
        super()._check()
        if sum(each is not None for each in (self.margin, self.detect, self.recovery)) > 1:
            raise UsageError(
                "`detect` plans to find a difference, `margin` and `recovery` to show that no run is worse by so "
                "much: give only one of them; a second command plans another"
            )


class PlanCommand(PlanOptions, CommandOptions):
    """Say how many samples per question it takes to find a true difference of --detect points in 80 % of repetitions,
    and their tokens, time and money. A RUN is scored and has at least two samples per question: a part of the run, or a
    former run of a similar model. For a BENCHMARK, or a file of your own questions, the spread of published runs is
    taken, at your model's --accuracy. BENCHMARK:SAMPLES or RUN:SAMPLES asks the other way round: how small a difference
    do these samples find?

    The difference is between two new runs of equal size on the same questions. Several benchmarks are planned for one
    `harness compare` of all of them: it corrects their p values together, so each benchmark needs more samples than
    alone.

    --margin plans another verdict of `harness compare`: that a new run is not worse by so many points or more. So many
    samples show it in 80 % of repetitions, if both models are equally good. --recovery plans the same for a percentage
    of the baseline's accuracy.

    \b
    harness run aime24:2 … && harness score results/mine && harness plan results/mine --detect 2
    harness plan aime24 --detect 2
    harness plan aime24:64
    harness plan aime24 --margin 1
    harness plan results/base --recovery 95
    """

    runs: Annotated[tuple[str, ...], Option(argument=True, metavar="RUN|BENCHMARK[:SAMPLES]...")]
    """Runs or benchmarks that are planned for one comparison."""
    as_json: Annotated[bool, prints("a list, one plan of each benchmark,", "list[harness.commands.plan:Needed]")] = (
        False
    )


class RaceRules(Options):
    """When a race is decided, and how often its standings are checked."""

    margin: Annotated[float, Option(least=0, most=50, kind=POINTS)] = 0.0
    """A race also ends, as equal, once the difference surely lies within so many points; better and worse still mean
    that it is not 0. Default: 0 (never equal).
    """
    step: Annotated[int, Option(least=1, most=1000)] = 2
    """Rounds of samples between two looks at the standings. Default: 2."""
