"""A run, from its options to the end of its session: prepare, ask, and say what it came to."""

from __future__ import annotations

from harness.asking.options import RunOptions
from harness.asking.options.verbs import OnRay
from harness.asking.prepare import Prepared, prepare
from harness.asking.session import Ran, Sampled, generate
from harness.asking.watching import Watcher


def run_at(where: OnRay, options: RunOptions, watcher: Watcher) -> Ran:
    """The run, asked from here, or from the nodes of the cluster that `where` names. Raises what `run` raises."""
    if where.on is None:
        return run(options, watcher)
    from harness.verbs.elsewhere import cluster  # a run from here needs none of it

    return cluster(where.on).run(where.on, options, where.shards, watcher)


def run(options: RunOptions, watcher: Watcher) -> Ran:
    """Ask for every sample that the run owes. The same call again asks only for what is missing. Raises what `sample`
    and `prepare` raise."""
    with prepare(options, watcher) as prepared:
        sampled = sample(prepared, watcher)
        settings = prepared.settings
    return Ran(folder=settings.out, model=settings.model, sampled=sampled, prices=settings.prices)


def sample(prepared: Prepared, watcher: Watcher | None = None) -> Sampled:
    """Ask for every sample that a prepared run owes; to the target, where the options name one. Raises what `generate`
    raises, and `StoppedByRule` where a probe that was asked for finds what would spoil the score."""
    if prepared.options.probe:
        from harness.verbs.probe.probe import before_run

        before_run(prepared, watcher)
    error = prepared.options.target_error
    if error is not None:
        from harness.verbs.target import until_error  # it grades; a run without a target does not

        return until_error(prepared, error / 100, watcher)
    return Sampled(outcome=generate(prepared, prepared.settings, watcher))
