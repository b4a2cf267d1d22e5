"""Send scores to Weights & Biases: one W&B run for each run folder or series, resumed by its id."""

from __future__ import annotations

import os

from harness.exports.trackers import PROJECT, Tracked


def send(scored: Tracked) -> str:
    """Send the scores to the project that WANDB_PROJECT, WANDB_ENTITY and wandb's other variables specify.

    Returns the W&B run's address, or the folder of an offline run.
    """
    import wandb

    # These settings suppress what wandb sends by default: command line, host, commit, packages, printed text.
    quiet = wandb.Settings(
        console="off",
        disable_git=True,
        save_code=False,
        silent=True,
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    project = os.environ.get("WANDB_PROJECT") or PROJECT
    # allow_val_change: a run that is scored again may have different facts, which wandb would otherwise reject.
    run = wandb.init(
        project=project,
        id=scored.key,
        name=scored.name,
        resume="allow",
        config=dict(scored.facts),
        allow_val_change=True,
        job_type="evaluation",
        settings=quiet,
    )
    if scored.step is None:
        run.log(dict(scored.scores))
    else:
        # wandb's own steps must increase, but runs may be scored in any order, so the step is sent as a metric.
        run.define_metric("*", step_metric="step")
        run.log({**scored.scores, "step": scored.step})
    run.finish()
    folder = str(run.settings.sync_dir)
    return f"{folder} (offline: `wandb sync` sends it)" if run.offline else str(run.url or folder)


TRACKER = send
