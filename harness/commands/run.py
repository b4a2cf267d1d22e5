"""A run, from its options to the end of its session: prepare, ask for the samples, and report the outcome."""

from __future__ import annotations

from collections.abc import Sequence

from harness.commands.session import carry_out
from harness.generation.outcome import Outcome
from harness.options.judge import JudgeOptions
from harness.options.run import RunOptions
from harness.preparing.prepare import Prepared, prepare
from harness.preparing.question_warnings import question_warnings
from harness.progress.watching import Watcher


def run_at(on: str | None, options: RunOptions, watcher: Watcher, judge: JudgeOptions | None = None) -> Outcome:
    """Run the benchmarks from this machine, or from the nodes of the cluster that `on` names.

    judge: the judge that will score the run; it is tried before the first request. Raises what `run` raises.
    """
    if on is None:
        return run(options, watcher, judge)
    from harness.commands.elsewhere import cluster  # Imported late: a run from this machine needs no cluster.

    _try(judge, watcher)
    return cluster(on).run_on(on, options, watcher)


def run(options: RunOptions, watcher: Watcher, judge: JudgeOptions | None = None) -> Outcome:
    """Ask for every missing sample of the run; the same call again continues.

    judge: as for `run_at`. Raises what `sample`, `prepare` and `try_judge` raise.
    """
    with prepare(options, watcher) as prepared:
        for warning in question_warnings(prepared.sets, prepared.folder, judged=judge is not None):
            watcher.warn(warning)
        _try(judge, watcher, [each.questions[0].rules.judge for each in prepared.sets])
        return sample(prepared, watcher)


def _try(judge: JudgeOptions | None, watcher: Watcher, forms: Sequence[str] = ()) -> None:
    """Try the judge, if there is one. forms, and what is raised: as of `try_judge`."""
    if judge is not None:
        from harness.judges.judge import try_judge  # Imported late: most runs have no judge.

        try_judge(judge, watcher, forms)


def sample(prepared: Prepared, watcher: Watcher | None = None) -> Outcome:
    """Ask for every missing sample of a prepared run; if the options name a target error, sample until it is reached.

    Raises what `carry_out` raises.
    """
    error = prepared.options.target_error
    if error is not None:
        from harness.commands.target import until_error  # Imported late: only a run with a target grades.

        return until_error(prepared, error / 100, watcher)
    return carry_out(prepared, prepared.settings, watcher)
