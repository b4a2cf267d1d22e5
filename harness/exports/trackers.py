"""A scored run told to an experiment tracker: Weights & Biases, MLflow, trackio, or one of another package.

Enter by `track`. What is told are the numbers of the scores and the facts of the run's identity: no question, no text
of a sample, no address of a server, no key. A run that is told again is the same entry there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import util
from typing import Any

from harness.core import plugins
from harness.core.about import install_line
from harness.core.errors import UsageError, near_names
from harness.core.hidden import without_secrets, without_user_info
from harness.runs import Manifest, RunFolder
from harness.scoring import Score
from harness.scoring.columns import numbers

PROJECT = "reasoning-harness"
"""Project, or experiment, where the tracker's own environment names none."""

MAX_FACT_CHARS = 250
"""Longest fact that is told, in characters; a longer one (a system prompt, a prefill) as its digest."""

_ODD = re.compile(r"[^\w.\- :/]")
"""What MLflow takes in no name."""

_MLFLOW_BATCH = 100
"""MLflow takes so many parameters at a time."""

Fact = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """What a tracker is told of a run.

    key: 16 hexadecimal digits, the same for the same run; name: that of its folder. facts: `model`, `created`,
    `harness_version`, and by `benchmark.field` the identity of each benchmark. scores: by `benchmark/column`; the
    columns are those of `report.csv` with `pass@4` spelt `pass_at_4`, `pass^4` `pass_hat_4`; fractions; what is unknown
    is left out. Of a name, what is no letter, digit or one of `_.- :/` becomes `_`.
    """

    key: str
    name: str
    facts: Mapping[str, Fact]
    scores: Mapping[str, float]


Tracker = Callable[[Tracked], object]
"""Sends it. What it returns, if anything, says where it can be seen."""


def tracker_named(name: str) -> Tracker:
    """Ours, else a plug-in's; its failures are sentences. Raises `UsageError`: unknown, or its package is missing."""
    if name in TRACKERS:
        if util.find_spec(name) is None:
            raise UsageError(f"the package {name} is missing. Install it: {install_line(name)}", field="track")
        return partial(plugins.call, "tracker", name, TRACKERS[name])
    found = plugins.function("tracker", name)
    if found is None:
        known = ", ".join([*TRACKERS, *plugins.names("tracker")])
        said = f"unknown tracker; there are {known}.{near_names(name, TRACKERS)}"
        raise UsageError(said, field="track", value=name)
    return found


def track(folder: RunFolder, scores: Sequence[Score], tracker: Tracker) -> str:
    """Tell it of the run; where it can be seen, empty where the tracker does not say. Raises `UsageError`."""
    with contextlib.redirect_stdout(sys.stderr):  # trackers talk; what is printed here may be JSON
        return str(tracker(told_of(Manifest.load(folder), folder.path.absolute().name, scores)) or "")


def told_of(manifest: Manifest, name: str, scores: Sequence[Score]) -> Tracked:
    """What a tracker is told of the run in a folder of that name."""
    said = f"{manifest.created}\n{manifest.model}\n{name}"
    facts = dict(_flat("model", manifest.model))
    facts |= {"created": manifest.created, "harness_version": manifest.harness_version}
    for benchmark, record in manifest.benchmarks.items():
        facts |= dict(_flat(_named(benchmark), without_secrets(record.identity)))
    return Tracked(
        key=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        name=name,
        facts=facts,
        scores={
            _named(f"{score.benchmark}/{column}"): value
            for score in scores
            for column, value in numbers(score).items()
            if isinstance(value, int | float)
        },
    )


def _named(name: str) -> str:
    return _ODD.sub("_", name.replace("@", "_at_").replace("^", "_hat_"))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Fact]]:
    """The scalars of a JSON value by dotted path; nothing for null, and a list as one text."""
    if isinstance(value, dict):
        for field, inner in value.items():
            yield from _flat(f"{name}.{field}", inner)
    elif isinstance(value, bool | int | float):
        yield name, value
    elif value is not None:
        text = value if isinstance(value, str) else str(value)
        data = text.encode("utf-8", "surrogatepass")
        yield name, text if len(text) <= MAX_FACT_CHARS else f"sha256:{hashlib.sha256(data).hexdigest()[:16]}"


def _wandb(told: Tracked) -> str:
    """Where and as whom: `WANDB_PROJECT`, `WANDB_ENTITY`, `WANDB_API_KEY`, `WANDB_MODE` …"""
    import wandb

    # It would also send the command line, the host, the commit, the installed packages and what is printed.
    quiet = wandb.Settings(
        console="off", disable_git=True, save_code=False, silent=True, x_disable_machine_info=True, x_disable_meta=True,
        x_disable_stats=True, x_save_requirements=False,
    )  # fmt: skip
    project = os.environ.get("WANDB_PROJECT") or PROJECT
    run = wandb.init(
        project=project, id=told.key, name=told.name, resume="allow", config=dict(told.facts), allow_val_change=True,
        job_type="evaluation", settings=quiet,
    )  # fmt: skip
    run.log(dict(told.scores))
    run.finish()
    folder = str(run.settings.sync_dir)
    return f"{folder} (offline: `wandb sync` sends it)" if run.offline else str(run.url or folder)


def _mlflow(told: Tracked) -> str:
    """Where: `MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`, and what else MLflow reads."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient()
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
    known = client.get_experiment_by_name(name)
    experiment = client.create_experiment(name) if known is None else known.experiment_id
    tag = "harness.run"
    found = client.search_runs([experiment], f"tags.`{tag}` = '{told.key}'", max_results=1)
    run = found[0] if found else client.create_run(experiment, run_name=told.name, tags={tag: told.key})
    facts = [Param(field, str(value)) for field, value in told.facts.items()]
    for first in range(0, len(facts), _MLFLOW_BATCH):
        client.log_batch(run.info.run_id, params=facts[first : first + _MLFLOW_BATCH])
    now = int(time.time() * 1000)
    client.log_batch(run.info.run_id, metrics=[Metric(column, value, now, 0) for column, value in told.scores.items()])
    client.set_terminated(run.info.run_id)
    return f"run {run.info.run_id} of {name} at {without_user_info(client.tracking_uri)}"


def _trackio(told: Tracked) -> str:
    """Where: `TRACKIO_DIR`, or `TRACKIO_SPACE_ID`, `TRACKIO_SERVER_URL`."""
    import trackio

    name = f"{told.name}-{told.key}"  # it knows runs by their names
    run = trackio.init(
        project=PROJECT, name=name, config=dict(told.facts), resume="allow", embed=False, auto_log_cpu=False,
        auto_log_gpu=False,
    )  # fmt: skip
    run.log(dict(told.scores))
    trackio.finish()
    return f"{name} of {PROJECT}: see it with trackio show"


TRACKERS: dict[str, Tracker] = {"wandb": _wandb, "mlflow": _mlflow, "trackio": _trackio}
"""Those that ship, by the name of their package and of the extra that installs it."""
