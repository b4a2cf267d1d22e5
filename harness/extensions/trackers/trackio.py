"""Send scores to trackio: one trackio run for each run folder or series, identified by its name."""

from __future__ import annotations

from harness.exports.trackers import PROJECT, Tracked


def send(scored: Tracked) -> str:
    """Send the scores to the folder TRACKIO_DIR, or to the server that TRACKIO_SPACE_ID and TRACKIO_SERVER_URL specify.

    Returns where to see them, in words.
    """
    import trackio

    name = f"{scored.name}-{scored.key}"  # trackio identifies runs only by name
    run = trackio.init(
        project=PROJECT,
        name=name,
        config=dict(scored.facts),
        resume="allow",
        embed=False,
        auto_log_cpu=False,
        auto_log_gpu=False,
    )
    run.log(dict(scored.scores), step=scored.step)
    trackio.finish()
    return f"{name} of {PROJECT}; view it with `trackio show`"


TRACKER = send
