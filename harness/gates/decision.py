"""The records of a gate's decision."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from harness.core.errors import Exit
from harness.core.sanitize import visible
from harness.deciding.nightly_history import OPEN
from harness.gates.metrics import MetricCheck

State = Literal["pass", "fail", "undecided", "missing", "truncated", "stopped", "canary", "probe", "same", "waived"]
"""The state of a benchmark; `Checked` explains each word."""

HALTED = ("missing", "stopped", "probe")
"""States in which the samples have not decided; the same command continues."""

PASSING = frozenset({"pass", "same", "waived"})
"""States of critical benchmarks that let a gate pass."""

DECIDED: dict[State, float] = {"pass": 1.0, "undecided": OPEN, "fail": 0.0, "waived": 0.0}
"""States that are based on the run's samples → `accepted` of `nightly_history.learn`."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on one benchmark."""

    benchmark: str
    """Name of the benchmark."""
    tier: str
    """Tier: "critical", "supporting" or "advisory"; only critical benchmarks can fail the gate."""
    state: State
    """"pass", "fail" or "undecided" (based on the samples), "waived" (failed, but a waiver is in force), "missing"
    (samples are missing), "truncated" (too many replies were truncated), "canary" (the first replies looked wrong),
    "probe" (a probe found a fault in the server), "stopped" (another rule stopped sampling) or "same" (the build is
    equivalent to its base, which the policy accepts without sampling).
    """
    share: str = ""
    """The share of replies that is decided ("schema", "calls", "parsed_calls" or "answered"); empty: the accuracy."""
    accuracy: float | None
    """The run's accuracy or share, as a fraction; None if it has none."""
    reference: float
    """The floor, or the baseline's accuracy, as a fraction."""
    loss: float
    """The loss that the gate must detect, as a fraction."""
    rounds: float
    """Number of samples per question used for the decision; 0.25 means one sample for a quarter of the questions."""
    max_rounds: int
    """Maximum number of samples per question that the policy allows."""
    variance: float
    """Variance of the sampling error."""
    deviation: float
    """Run-to-run standard deviation in excess of sampling error that the policy specifies, as a fraction."""
    known_runs: int
    """Number of earlier runs in the accepted state."""
    why: str
    """The reason, as one human-readable line."""
    bounds: tuple[float, float] | None = None
    """Accuracy if all undecided answers were wrong, and accuracy if all were correct; None if no answers are undecided.
    """
    copies: bool = False
    """Whether some samples are duplicates. Duplicates count only once."""
    odd: bool = False
    """Whether the run is not in the accepted state; its accuracy then hardly affects the accepted level."""
    key: str = ""
    """Digests of the reference and of the model, settings and engine. An earlier run is used only if its key
    matches.
    """
    closed: bool = False
    """Whether sampling ended because more samples are unlikely to lead to a decision."""
    limits: tuple[float, float] | None = None
    """Highest accuracy that fails at this stage, and lowest accuracy that passes; None if there was no stage."""

    @property
    def label(self) -> str:
        """Its name in a table."""
        return f"{self.benchmark} {self.share}".rstrip()

    @property
    def is_critical(self) -> bool:
        """Whether its state counts for the verdict."""
        return self.tier == "critical"

    @property
    def is_open(self) -> bool:
        """Whether more samples may change the state."""
        return self.state in HALTED or (self.state == "undecided" and self.rounds < self.max_rounds and not self.closed)


class Gated(msgspec.Struct, frozen=True, kw_only=True):
    """A gate's decision, as stored in `gate.json` and in each line of `history.jsonl`."""

    FORMER_KEYS: ClassVar = ((rb'"figures":(?= ?\[)', b'"metrics":'), (rb'"figure":(?= ?")', b'"metric":'))
    schema: int = 1
    """Version of this format."""
    gate: str
    """Name of the gate."""
    run: str
    """Names of the run folders."""
    verdict: Literal["pass", "fail", "undecided"]
    """"fail" if a critical benchmark or metric fails; "pass" if every critical benchmark and metric has the state
    "pass", "same" or "waived"; otherwise "undecided".
    """
    exit_code: int
    """Exit code of the command."""
    checks: tuple[Checked, ...]
    """Decisions on benchmarks."""
    sampled: str = ""
    """When the run started (UTC, ISO 8601); empty if there is no run."""
    forgotten: bool = False
    """Whether `--forget` excludes this run from what the gate learns."""
    metrics: tuple[MetricCheck, ...] = ()
    """Decisions on metrics; a metric is "undecided" if sampling stopped before all samples were taken."""

    @property
    def lines(self) -> tuple[Checked | MetricCheck, ...]:
        """The decisions on benchmarks and metrics."""
        return (*self.checks, *self.metrics)

    @property
    def sentence(self) -> str:
        """The decision in one sentence, with the lines that decide it."""
        verb = {"pass": "passes", "fail": "fails", "undecided": "is undecided"}[self.verdict]
        deciding = [line for line in self.lines if line.is_critical and line.state not in PASSING]
        if self.verdict == "fail":
            deciding = [line for line in deciding if line.state == "fail"]
        whys = "; ".join(f"{visible(line.label)} {visible(re.split('[:;]', line.why)[0], 300)}" for line in deciding)
        return f"Gate {self.gate} {verb}" + f": {whys}" * bool(whys)

    @property
    def rounds(self) -> dict[str, float]:
        """The rounds of each benchmark: the most that an accuracy or a share has."""
        rounds = dict[str, float]()
        for check in self.checks:
            rounds[check.benchmark] = max(rounds.get(check.benchmark, 0), check.rounds)
        return rounds

    @property
    def is_open(self) -> bool:
        """Whether more samples may change the decision, so the same command continues."""
        return any(check.is_open for check in self.checks)


EXIT_CODES = {"pass": Exit.YES, "fail": Exit.NO, "undecided": Exit.CANNOT_SAY}
"""Verdict of a gate → exit code of the command."""

Halt = tuple[State, str]
"""Why sampling ended although a benchmark is undecided: the state that the benchmark then gets, and a sentence."""


def past_nights(benchmark: str, key: str, history: Iterable[Gated]) -> list[Checked]:
    """The earlier runs with this key whose samples led to a decision, in order, without forgotten ones."""
    checks = [check for entry in history if not entry.forgotten for check in entry.checks]
    return [each for each in checks if (each.benchmark, each.key) == (benchmark, key) and key and each.state in DECIDED]


def past_metrics(history: Iterable[Gated]) -> list[MetricCheck]:
    """The metric lines in earlier decisions that are not forgotten."""
    return [line for entry in history if not entry.forgotten for line in entry.metrics]
