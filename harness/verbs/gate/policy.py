"""The policy of a gate: a YAML file, read and checked."""

from __future__ import annotations

import zlib
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from harness.asking.options import RunOptions
from harness.core import yaml_file
from harness.core.errors import UsageError
from harness.core.options import options_of
from harness.core.part import Part
from harness.core.validation import first_problem

EXAMPLE = """\
# A gate: `harness gate POLICY.yaml --dry-run` says what it costs and finds, without a request.
name: nightly

# Options of `harness run`, by their names in Python; the benchmarks stand below.
run:
  base_url: http://127.0.0.1:8000
  temperature: 0.6
  max_tokens: 16384

benchmarks:
  gsm8k:
    floor: 94.5          # points that a sound model reaches
    floor_samples: 4     # samples of each question behind the floor; leave it out if the floor is a limit by itself
    loss: 2              # the loss, in points, that must be found
    max_samples: 4       # of each question, at most
    tier: critical       # critical: fails the gate · supporting: warns · advisory: is printed
  aime24:
    baseline: results/released   # a scored run of the same questions, in place of a floor
    loss: 8
    max_samples: 32
    tier: supporting

false_alarm: 1           # %: the chance that a sound model fails any critical benchmark, over all looks together
power: 95                # %: the chance that the loss is found
run_deviation: 0.5       # points by which runs differ beyond sampling, until `history` has five runs
history: gates/nightly   # former decisions: the deviation of runs is learnt from them

waivers:                 # a benchmark that may fail until a day
  - {benchmark: aime24, reason: the new tokenizer is known to cost 9 points, until: 2030-01-31}
"""

Points = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=1, le=100_000)]


class Watched(Part):
    """One benchmark of a gate. truncated: percent of replies cut by max_tokens that is still sound; default: what the
    baseline had, or 5.
    """

    floor: Points | None = None
    floor_samples: Count | None = None
    baseline: Path | None = None
    loss: Annotated[float, Field(gt=0, lt=100)]
    max_samples: Count = 8
    tier: Literal["critical", "supporting", "advisory"] = "critical"
    truncated: Points | None = None

    @model_validator(mode="after")
    def _one_reference(self) -> Watched:
        if (self.floor is None) == (self.baseline is None):
            raise ValueError("expected either a floor or a baseline")
        if self.floor is not None and 0 < self.floor <= 1:
            raise ValueError(f"a floor is in points: write {100 * self.floor:g} for {100 * self.floor:g} %")
        if self.floor is not None and self.loss > self.floor:
            raise ValueError(f"a loss of {self.loss:g} points is more than the floor of {self.floor:g}")
        if self.floor_samples is not None and self.floor is None:
            raise ValueError("floor_samples belongs to a floor; a baseline has its own samples")
        return self


class Waiver(Part):
    """A benchmark whose failure does not count up to and including a day."""

    benchmark: str
    reason: Annotated[str, Field(min_length=3)]
    until: date


class Policy(Part):
    """The content of a gate's file."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")] = "gate"
    run: dict[str, Any] = Field(default_factory=dict)
    benchmarks: Annotated[dict[str, Watched], Field(min_length=1)]
    false_alarm: Annotated[float, Field(ge=0.01, le=20)] = 1.0
    power: Annotated[float, Field(ge=50, le=99.9)] = 95.0
    run_deviation: Annotated[float, Field(ge=0, le=20)] = 0.5
    history: Path | None = None
    waivers: tuple[Waiver, ...] = ()

    @model_validator(mode="after")
    def _known_names(self) -> Policy:
        for waiver in self.waivers:
            if waiver.benchmark not in self.benchmarks:
                raise ValueError(f"the waiver names {waiver.benchmark!r}, which is no benchmark of this gate")
        if "data" in self.run and list(self.benchmarks) != [Path(str(self.run["data"])).name.partition(".")[0]]:
            raise ValueError(
                "with run: data, the only benchmark has the name of the file of questions, without its ending"
            )
        for name in ("benchmarks", "samples", "out", "target_error", "shard"):
            if name in self.run:
                raise ValueError(f"the gate sets {name} itself: leave it out of run")
        for name in ("limit", "filter", "ids"):
            if name in self.run and any(watched.baseline is None for watched in self.benchmarks.values()):
                raise ValueError(
                    f"run: {name} asks other questions than a floor is for: name a baseline of the same ones"
                )
        return self

    @property
    def critical(self) -> int:
        """The number of critical benchmarks, which share the chance of a false alarm; at least 1."""
        return max(1, sum(watched.tier == "critical" for watched in self.benchmarks.values()))

    def options(self, out: Path | None) -> RunOptions:
        """The options of the run. out: its folder; each name of a folder draws anew. Raises `UsageError`."""
        if unknown := sorted(self.run.keys() - options_of(RunOptions).keys()):
            raise UsageError(f"run: {unknown[0]!r} is no option of `harness run`")
        run = {"seed": zlib.crc32(out.resolve().name.encode()) if out else 0} | self.run
        if "data" in run:  # A file of questions is one benchmark, named after the file.
            ((_, watched),) = self.benchmarks.items()
            return RunOptions.of(**run, samples=watched.max_samples, out=out)
        asked = tuple(f"{name}:{watched.max_samples}" for name, watched in self.benchmarks.items())
        return RunOptions.of(**run, benchmarks=asked, out=out)


def read(path: Path) -> Policy:
    """Read a policy. Raises `UsageError`: one sentence with file and line."""
    content, line = yaml_file.read_with_lines(path, "a gate's policy")
    try:
        return Policy.model_validate(content)
    except ValidationError as error:
        problem = first_problem(error, Policy.model_fields | Watched.model_fields)
        keys = next(each["loc"] for each in error.errors() if problem.field == ".".join(map(str, each["loc"])))
        raise UsageError(f"{path}:{line(keys)}: {problem.sentence}") from None
