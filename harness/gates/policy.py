"""Reads and validates the policy of a gate, a YAML file."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import AliasChoices, BeforeValidator, Field, ValidationError, model_validator

from harness.client.apis.table import api_of
from harness.core import yaml_file
from harness.core.errors import UsageError
from harness.core.files import real
from harness.core.number_text import in_percent
from harness.core.option_kinds import LIMITS
from harness.core.options import options_of
from harness.core.sanitize import visible
from harness.core.validation import PartInvalid, first_problem, places_in, problem_of
from harness.core.yaml_mapping import SHORT_NAME, Part
from harness.deciding.published import load_published, matching
from harness.options.run import RunOptions

EXAMPLE = Path(__file__).with_name("example.yaml")
"""An example policy with comments."""

Points = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
PERCENT = r"\d{1,2}(\.\d+)? ?%"
Percent = Annotated[str, Field(pattern=f"^{PERCENT}$")]
Tier = Literal["critical", "supporting", "advisory"]
Count = Annotated[int, Field(strict=True, ge=1, le=100_000)]


MetricName = Literal[
    "acceptance_length", "tokens_per_second", "first_token_p99", "reply_length", "cache_hit_rate", "within",
    "right_within", "schema", "calls", "parsed_calls", "answered",
]  # fmt: skip
"""The metrics for which a gate may have a line (`harness.gates.metrics`); the last four are `SHARES`."""

SHARES = ("schema", "calls", "parsed_calls", "answered")
"""Shares of replies. A gate decides them as it decides an accuracy, in points (`harness.gates.samples`)."""

LIMITED = ("within", "right_within")
"""Metrics that count requests within time limits."""

RANGES = {**dict.fromkeys(("cache_hit_rate", *LIMITED), (1.0, 100.0)), "acceptance_length": (1.0, math.inf)}
"""Possible levels of metrics: percent, and tokens per step."""


def _of_metric(content: Any) -> Any:
    """The content of a metric's line. Raises `ValueError` unless it is a mapping."""
    if not isinstance(content, Mapping | MetricLine):
        raise ValueError("expected a mapping, such as `{floor: 95}`")
    return content


def _limits(value: Any) -> Any:
    """Time limits as text. Raises `ValueError`, for a metric with its place."""
    for name in {*get_args(MetricName)}.intersection(value if isinstance(value, Mapping) else ()):
        raise ValueError(f"{name} is a metric: move it next to `limits`, as in `metrics: {{{name}: {{floor: 95}}}}`")
    return LIMITS.parse(value)


class MetricLine(Part):
    """A line on a metric: a floor or a ceiling for its true value, or a loss compared with a baseline that must be
    detected. baseline: a scored run, `history` (the accepted level of the earlier runs), or a level. loss: a percentage
    of the baseline; for a share, also points, by default those of its benchmark. tier: None: the benchmark's tier.
    """

    floor: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    ceiling: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    baseline: Annotated[float, Field(gt=0, allow_inf_nan=False)] | str | None = None
    loss: Annotated[float, Field(gt=0, lt=100)] | Percent | None = None
    tier: Tier | None = None

    def fault(self, name: MetricName) -> str:
        """Why this cannot be the line of a metric; empty if it can: several limits or none, a loss without a baseline
        or the reverse, or a value that the metric cannot have.
        """
        if sum(each is not None for each in (self.floor, self.ceiling, self.baseline)) != 1:
            return "expected a floor, a ceiling or a baseline"
        if name in SHARES:
            is_run = isinstance(self.baseline, str) and self.baseline not in ("history", "published")
            fits = 0 < self.floor <= 100 if self.floor else is_run
            return (
                "" if fits else "a share of replies requires a floor in points (at most 100), or a run as its baseline"
            )
        if (self.loss is None) != (self.baseline is None) or isinstance(self.loss, float) or self.share in (0, 1):
            return "a baseline requires a maximum loss, such as `5%`; a floor or ceiling must not have one"
        if name == "first_token_p99" and self.floor:
            return "a lower latency is better, so set a ceiling (in seconds) instead of a floor"
        low, high = RANGES.get(name, (0.0, math.inf))
        limit = self.floor or self.ceiling or self.baseline
        if isinstance(limit, float) and limit < low:
            return f"is in percent: write {100 * limit:g} for {limit:g}" if high == 100 else f"is at least {low:g}"
        return f"is at most {high:g}" if isinstance(limit, float) and limit > high else ""

    @property
    def share(self) -> float | None:
        """The loss as a fraction of the baseline."""
        return None if self.loss is None else float(str(self.loss).rstrip("% ")) / 100


class Watched(Part):
    """One benchmark of a gate. metrics: lines on its metrics. floor_unit: unit of the floor's last digit. baseline: a
    run, or `published`. loss: points, or a percentage of the reference, such as `3%`, which may also be written as
    `recovery: 97%`. truncated: the allowed percentage of replies truncated by max_tokens; default: the baseline's
    percentage, or 5. limits: time limits for the metrics `within` and `right_within`.
    """

    floor: Points | None = None
    floor_samples: Count | None = None
    floor_unit: Points = 0
    baseline: str | None = None
    loss: Annotated[float, Field(gt=0, lt=100)] | Percent
    max_samples: Count = 8
    tier: Tier = "critical"
    truncated: Points | None = None
    metrics: dict[MetricName, Annotated[MetricLine, BeforeValidator(_of_metric)]] = Field(
        default_factory=dict, validation_alias=AliasChoices("metrics", "figures")
    )
    limits: Annotated[str | None, BeforeValidator(_limits)] = None

    @model_validator(mode="before")
    @classmethod
    def _loss_of_recovery(cls, content: Any) -> Any:
        """Replace `recovery: 95%` with the equivalent loss."""
        if not isinstance(content, dict) or "recovery" not in content:
            return content
        words = str(content["recovery"])
        if "loss" in content or not re.fullmatch(PERCENT, words):
            raise ValueError("expected a percentage for `recovery`, such as `95%`, and no `loss`")
        rest = {key: value for key, value in content.items() if key != "recovery"}
        # The space is kept because the plan of an earlier gate is compared as text.
        return rest | {"loss": f"{100 - float(words.rstrip('% ')):.12g} %"}

    @model_validator(mode="after")
    def _is_decidable(self) -> Watched:
        """Reject both or neither of floor and baseline, floors or losses with invalid values, and such lines."""
        self._refuse_odd_limits()
        for name, line in self.metrics.items():
            try:
                if fault := line.fault(name):
                    raise ValueError(fault)
                if name in LIMITED and self.limits is None:
                    raise ValueError("requires `limits`, such as `limits: {first_token: 2s}`")
                if name in SHARES:
                    self.of_share(name)._refuse_odd_limits()
            except ValueError as error:
                raise PartInvalid(("metrics", name), error) from None
        return self

    def _refuse_odd_limits(self) -> None:
        """Raise `ValueError` for both or neither of floor and baseline, and for invalid floors and losses."""
        if (self.floor is None) == (self.baseline is None):
            raise ValueError("expected either a floor or a baseline")
        if self.floor is not None and 0 < self.floor <= 1:
            raise ValueError(f"a floor is given in points: write {100 * self.floor:g} for {100 * self.floor:g}%")
        if self.floor is not None and 100 * self.loss_of(self.floor / 100) > self.floor:
            raise ValueError(f"a loss of {self.loss} points exceeds the floor of {self.floor:g}")
        if self.loss_of(1.0) == 0:
            raise ValueError("expected a loss above 0%")
        if self.floor_samples is not None and self.floor is None:
            raise ValueError("floor_samples applies only to a floor; a baseline has its own samples")

    def of_share(self, name: MetricName) -> Watched:
        """What the gate decides on a share of the replies: the same with the line's limit and loss."""
        line = self.metrics[name]
        own = {"floor": line.floor, "baseline": line.baseline, "loss": line.loss or self.loss}
        unset: dict[str, Any] = {"floor_samples": None, "floor_unit": 0.0, "truncated": None, "metrics": {}}
        return self.model_copy(update={**own, **unset, "tier": line.tier or self.tier})

    def loss_of(self, reference: float) -> float:
        """The loss relative to this reference, both as fractions."""
        if isinstance(self.loss, str):
            return reference * float(self.loss.rstrip("% ")) / 100
        return self.loss / 100


class SampleLine(NamedTuple):
    """What a gate decides by samples. share: one of `SHARES`; empty: the accuracy."""

    benchmark: str
    share: str
    watched: Watched

    @property
    def label(self) -> str:
        """Its name in a table."""
        return f"{self.benchmark} {self.share}".rstrip()


class Likeness(Part):
    """A first check of whether the build is equivalent to its base. replies: the base's run, whose replies the build
    evaluates; its values must be stored (`harness probe --replies RUN --reference URL`). loss: nats per token. enough:
    whether a build that is equivalent within the loss passes without samples.
    """

    replies: Path
    loss: Annotated[float, Field(gt=0, le=10)] = 0.01
    enough: bool = False


class Waiver(Part):
    """A benchmark whose failure does not count until the end of a given day."""

    benchmark: str
    reason: Annotated[str, Field(min_length=3)]
    until: date


class Policy(Part):
    """The content of a gate's file."""

    name: Annotated[str, SHORT_NAME] = "gate"
    run: dict[str, Any] = Field(default_factory=dict)
    benchmarks: Annotated[dict[str, Watched], Field(min_length=1)]
    false_alarm: Annotated[float, Field(ge=0.01, le=20)] = 1.0
    power: Annotated[float, Field(ge=50, le=99.9)] = 95.0
    run_deviation: Annotated[float, Field(ge=0, le=20)] = 0.5
    history: Path | None = None
    probe: bool = False
    likelihood: Likeness | None = None
    waivers: tuple[Waiver, ...] = ()

    @model_validator(mode="after")
    def _known_names(self) -> Policy:
        """Reject waivers of unknown benchmarks, and `run` options that the gate sets itself or that its floors do not
        allow.
        """
        for waiver in self.waivers:
            if waiver.benchmark not in self.benchmarks:
                raise ValueError(
                    f"the waiver is for {waiver.benchmark!r}, which is not one of the benchmarks in this gate"
                )
        if "data" in self.run and list(self.benchmarks) != [Path(str(self.run["data"])).name.partition(".")[0]]:
            raise ValueError("with run: data, the only benchmark must be named after that file, without its extension")
        for name in ("benchmarks", "samples", "out", "target_error", "shard"):
            if name in self.run:
                raise ValueError(f"the gate sets {name} itself: remove it from run")
        for name in ("limit", "filter", "ids"):
            if name in self.run and any(watched.baseline is None for watched in self.benchmarks.values()):
                raise ValueError(
                    f"run: {name} selects some of the questions, but a floor applies to all: use a baseline"
                )
        return self

    @property
    def lines(self) -> list[SampleLine]:
        """The accuracies and the shares of replies that the gate decides, by benchmark."""
        lines = []
        for benchmark, watched in self.benchmarks.items():
            lines.append(SampleLine(benchmark, "", watched))
            lines += [SampleLine(benchmark, name, watched.of_share(name)) for name in watched.metrics if name in SHARES]
        return lines

    @property
    def critical(self) -> int:
        """The number of critical benchmarks and metric lines, which share the chance of a false alarm; at least 1."""
        watched = self.benchmarks.values()
        tiers = [line.tier or each.tier for each in watched for line in each.metrics.values()]
        return max(1, [*tiers, *(each.tier for each in watched)].count("critical"))

    def options(self, out: Path | None) -> RunOptions:
        """The options of the run in the folder `out`. Raises `UsageError`."""
        # If an API's servers accept different options, the session sets the seed, if they accept one.
        drawn = {"seed": seed_of(out)} if api_of(self.run.get("api", "chat")).takes is None else {}
        run = drawn | self.run
        if "data" in run:  # A question file is one benchmark, named after the file.
            ((_, watched),) = self.benchmarks.items()
            return RunOptions.of(**run, samples=watched.max_samples, out=out)
        asked = tuple(f"{name}:{watched.max_samples}" for name, watched in self.benchmarks.items())
        return RunOptions.of(**run, benchmarks=asked, out=out)


def seed_of(out: Path | None) -> int:
    """The seed of a gate in the folder `out` if its policy sets none; it depends on the folder's name."""
    return zlib.crc32(real(out).name.encode()) if out else 0


def _with_published(policy: Policy, path: Path) -> Policy:
    """The policy with each `published` baseline replaced by a floor: the model's score that shares the most settings.

    `published: TITLE` selects the score from one source. Raises `UsageError` unless exactly one score fits.
    """
    benchmarks = dict(policy.benchmarks)
    for name, watched in policy.benchmarks.items():
        word, _, title = (watched.baseline or "").partition(":")
        if word != "published":
            continue
        model = str(policy.run.get("model", ""))
        scores = [
            score
            for score in matching(load_published(models=[model]), model, name)
            if score.metric == "pass@1" and not score.averaged_over and title.strip() in ("", score.source.title)
            if all(policy.run.get(key, value) == value for key, value in score.settings.items())
        ]
        shared = [len(score.settings.keys() & policy.run.keys()) for score in scores]
        scores = [score for score, n in zip(scores, shared, strict=True) if n == max(shared)]
        if len({score.value for score in scores}) != 1:
            titles = ", ".join(f"{in_percent(each.value)} ({visible(each.source.title, 80)})" for each in scores[:8])
            raise UsageError(
                f"{path}: benchmarks.{name}.baseline: expected exactly one published score for the model in `run` "
                f"({visible(model, 80) or 'which is not set'}), found {titles or 'none'}; to choose one, write "
                "`published: TITLE`, and add to `run` the settings that distinguish them"
            )
        best = max(scores, key=lambda score: score.samples or 0)
        floor = {"floor": 100 * best.value, "floor_samples": best.samples or 1, "floor_unit": 100 * best.unit}
        benchmarks[name] = Watched.model_validate(watched.model_dump() | floor | {"baseline": None})
    return policy.model_copy(update={"benchmarks": benchmarks})


def read(path: Path) -> Policy:
    """Read a policy. Raises `UsageError` with the file and line."""
    content, line = yaml_file.read_with_lines(path, "a gate's policy")
    places = {name: [f"run.{name}"] for name in options_of(RunOptions)} | places_in(Policy)
    try:
        policy = Policy.model_validate(content)
    except ValidationError as error:
        problem = first_problem(error, places, content)
        raise UsageError(f"{path}:{line(problem.keys)}: {problem.sentence}") from None
    for name in policy.run.keys() - options_of(RunOptions).keys():
        unknown = problem_of({"type": "extra_forbidden", "loc": ("run", name), "msg": "", "input": ""}, places)
        raise UsageError(f"{path}:{line(unknown.keys)}: {unknown.sentence}")
    try:
        policy.options(None)
    except UsageError as error:
        raise UsageError(f"{path}:{line(('run', error.field or ''))}: run: {error.sentence}") from error
    return _with_published(policy, path)
