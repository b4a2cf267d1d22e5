"""A run, from its options to the end of its session: prepare, ask for the samples, and report the outcome."""

from __future__ import annotations

from harness.asking.options import JudgeOptions, RunOptions
from harness.asking.options.verbs import OnRay
from harness.asking.prepare import Prepared, prepare
from harness.asking.session import Ran, Sampled, generate
from harness.asking.watching import Watcher


def run_at(where: OnRay, options: RunOptions, watcher: Watcher, judge: JudgeOptions | None = None) -> Ran:
    """Run the benchmarks from this machine, or from the nodes of the cluster that `where` names.

    judge: the judge that will score the run; it is tried before the first request. Raises what `run` raises.
    """
    if where.on is None:
        return run(options, watcher, judge)
    from harness.verbs.elsewhere import cluster  # Imported late: a run from this machine needs no cluster.

    _try(judge, watcher)
    return cluster(where.on).run(where.on, options, where.shards, watcher)


def run(options: RunOptions, watcher: Watcher, judge: JudgeOptions | None = None) -> Ran:
    """Ask for every missing sample of the run; the same call again continues.

    judge: as for `run_at`. Raises what `sample`, `prepare` and `try_judge` raise.
    """
    with prepare(options, watcher) as prepared:
        _try(judge, watcher)
        sampled = sample(prepared, watcher)
        settings = prepared.settings
    return Ran(folder=settings.out, model=settings.model, sampled=sampled, prices=settings.prices)


def _try(judge: JudgeOptions | None, watcher: Watcher) -> None:
    """Try the judge, if there is one. Raises what `try_judge` raises."""
    if judge is not None:
        from harness.verbs.judge import try_judge  # Imported late: most runs have no judge.

        try_judge(judge, watcher)


def sample(prepared: Prepared, watcher: Watcher | None = None) -> Sampled:
    """Ask for every missing sample of a prepared run, or sample until the target error, where the options name one.

    Raises what `generate` raises, and `StoppedByRule` where a requested probe finds a fault that would spoil the score.
    """
    if prepared.options.probe:
        from harness.verbs.probe.probe import before_run

        before_run(prepared, watcher)
    error = prepared.options.target_error
    if error is not None:
        from harness.verbs.target import until_error  # Imported late: only a run with a target grades.

        return until_error(prepared, error / 100, watcher)
    return Sampled(outcome=generate(prepared, prepared.settings, watcher))
