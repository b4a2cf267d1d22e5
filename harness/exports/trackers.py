"""Sends the scores of a run to an experiment tracker: Weights & Biases, MLflow, trackio, or a plug-in's tracker.

Callers use `find_tracker` and `track`. A tracker receives the numbers of the scores and the settings that identify the
run, but never a question, a sample's text, a server address or a key. If a run is sent again, its entry in the tracker
is updated. The trackers themselves are extensions (`harness.extensions.trackers`), found by name.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import util
from typing import Any

import msgspec

from harness.core import channel, plugins
from harness.core.errors import UsageError
from harness.core.installation import install_line
from harness.core.secret import without_secrets
from harness.runs import Manifest, RunFolder
from harness.runs.sweep_cell import names_in_sweep
from harness.scoring.score import Score
from harness.scoring.table_cells import numbers

PROJECT = "reasoning-harness"
"""The project (or experiment) in the tracker, unless the tracker's environment variables specify one."""

MAX_FACT_CHARS = 250
"""Maximum length in characters of a fact sent as text; a longer fact (a system prompt) is sent as a digest."""

_NOT_IN_NAMES = re.compile(r"[^\w.\- :/]")
"""Characters that MLflow rejects in a name."""

Fact = str | int | float | bool
"""The value of a fact about a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """A scored run as passed to a tracker.

    key: 16 hexadecimal digits, the same for the same run. name: of the run folder. facts: `model`, `created`,
    `harness_version`, and under `benchmark.field` the identity of each benchmark. scores: `benchmark/column` → number,
    such as an accuracy as a fraction, and the number of its `warnings`; `mean/column` is the mean over several
    benchmarks. The columns are those of `report.csv`, with `pass@4` as `pass_at_4` and `pass^4` as `pass_hat_4`;
    unknown numbers are left out. In these names, any character other than a letter, a digit or one of `_.- :/` becomes
    `_`. step: the run's step in a series of checkpoints; None for other runs. With a step, key and name belong to the
    series, so they are the same for every step.
    """

    key: str
    name: str
    facts: Mapping[str, Fact]
    scores: Mapping[str, float]
    step: int | None = None


@dataclass(frozen=True, slots=True)
class SeriesStep:
    """A run's place in a series of checkpoints, which a tracker shows as one run. name: name of the series. step: the
    run's training step.
    """

    name: str
    step: int


Tracker = Callable[[Tracked], object]
"""A function that sends a scored run. It may return the address where the run can be viewed, as text."""


def find_tracker(name: str) -> Tracker:
    """The tracker with this name, shipped or from a plug-in. Raises `UsageError` if the name is unknown, or if the
    tracker's package is not installed.

    The returned function raises any error of the tracker as a one-sentence `UsageError`.
    """
    shipped: Tracker | None = plugins.extension("tracker", name)
    if shipped is not None:
        if util.find_spec(name) is None:
            raise UsageError(f"the package {name} is missing. Install it: {install_line(name)}", field="track")
        return partial(plugins.call, "tracker", name, shipped)
    offered = plugins.function("tracker", name)
    if offered is None:
        raise plugins.unknown_name_error("tracker", "tracker", name, field="track")
    return offered


def track(
    folder: RunFolder,
    scores: Sequence[Score],
    tracker: Tracker,
    step: SeriesStep | None = None,
) -> str:
    """Send a run's scores. Return the address where they can be viewed; empty if the tracker returns none.

    A benchmark in a sweep keeps the name that the sweep gives it. step: the run's place in a series of checkpoints;
    None: the run is not part of a series. Raises `UsageError` and `StoreError`.
    """
    manifest = Manifest.load(folder)
    names = names_in_sweep(folder, manifest.benchmarks)
    benchmarks = {names.get(name, name): record for name, record in manifest.benchmarks.items()}
    scores = [msgspec.structs.replace(score, benchmark=names.get(score.benchmark, score.benchmark)) for score in scores]
    described = describe_run(
        msgspec.structs.replace(manifest, benchmarks=benchmarks), folder.path.absolute().name, scores, step
    )
    with (
        contextlib.redirect_stdout(sys.stderr),
        channel.waiting("the tracker to accept the scores"),
    ):  # trackers print, but our standard output may have to contain only JSON
        return str(tracker(described) or "")


def describe_run(manifest: Manifest, name: str, scores: Sequence[Score], step: SeriesStep | None = None) -> Tracked:
    """The facts and scores of a run as passed to a tracker. name: name of the run folder.

    step: the run's place in a series of checkpoints; None: the run is not part of a series.
    """
    # The steps of a series share its key, so the tracker shows them as one run.
    identity = f"{manifest.created}\n{manifest.model}\n{name}" if step is None else f"series\n{step.name}"
    facts = dict(_flat("model", manifest.model))
    facts |= {"created": manifest.created, "harness_version": manifest.harness_version}
    for benchmark, record in manifest.benchmarks.items():
        facts |= dict(_flat(_tracker_name(benchmark), without_secrets(record.identity)))
    return Tracked(
        key=hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        name=name if step is None else step.name,
        step=None if step is None else step.step,
        facts=facts,
        scores={
            _tracker_name(f"{score.benchmark}/{column}"): value
            for score in scores
            for column, value in {**numbers(score), "warnings": len(score.sentences)}.items()
            if isinstance(value, int | float)
        },
    )


def _tracker_name(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name.replace("@", "_at_").replace("^", "_hat_"))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Fact]]:
    """Yield (dotted path, value) for each number, boolean and string in a JSON value. name: the path of `value` itself.

    A list becomes one string, and a long string its digest; null is left out.
    """
    if isinstance(value, dict):
        for field, inner in value.items():
            yield from _flat(f"{name}.{field}", inner)
    elif isinstance(value, bool | int | float):
        yield name, value
    elif value is not None:
        text = value if isinstance(value, str) else str(value)
        data = text.encode("utf-8", "surrogatepass")
        yield name, text if len(text) <= MAX_FACT_CHARS else f"sha256:{hashlib.sha256(data).hexdigest()[:16]}"
