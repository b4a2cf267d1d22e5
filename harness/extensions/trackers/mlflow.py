"""Send scores to MLflow: one MLflow run for each run folder or series, identified by its tag."""

from __future__ import annotations

import os
import time

from harness.core.secret import without_user_info
from harness.exports.trackers import PROJECT, Tracked

_BATCH = 100
"""Maximum number of parameters that MLflow accepts in one call."""


def send(scored: Tracked) -> str:
    """Send the scores to the experiment that MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME and MLflow's other variables
    specify. Returns the run's id and address, in words.
    """
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient()
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
    existing = client.get_experiment_by_name(name)
    experiment = client.create_experiment(name) if existing is None else existing.experiment_id
    tag = "harness.run"
    # MLflow's filter accepts a name with a dot only in backticks.
    runs = client.search_runs([experiment], f"tags.`{tag}` = '{scored.key}'", max_results=1)
    run = runs[0] if runs else client.create_run(experiment, run_name=scored.name, tags={tag: scored.key})
    # MLflow keeps a parameter as first sent, so a series has the parameters of its first step.
    facts = [Param(field, str(value)) for field, value in scored.facts.items() if not runs or scored.step is None]
    for first in range(0, len(facts), _BATCH):
        client.log_batch(run.info.run_id, params=facts[first : first + _BATCH])
    now = int(time.time() * 1000)
    client.log_batch(
        run.info.run_id,
        metrics=[Metric(column, value, now, scored.step or 0) for column, value in scored.scores.items()],
    )
    client.set_terminated(run.info.run_id)
    return f"run {run.info.run_id} of {name} at {without_user_info(client.tracking_uri)}"


TRACKER = send
