"""A prepared run, sampled: all of it, or until its sampling error is small."""

from __future__ import annotations

from harness.asking.prepare import Prepared
from harness.asking.session import Sampled, generate
from harness.asking.watching import Watcher


def sample(prepared: Prepared, watcher: Watcher | None = None) -> Sampled:
    """Ask for every sample that is owed; to the target, where the options name one. Raises what `generate` raises,
    and `StoppedByRule` where a probe that was asked for finds what would spoil the score."""
    if prepared.options.probe:
        from harness.verbs.probe.probe import before_run

        before_run(prepared, watcher)
    error = prepared.options.target_error
    if error is not None:
        from harness.verbs.target import until_error  # it grades; a run without a target does not

        return until_error(prepared, error, watcher)
    return Sampled(outcome=generate(prepared, prepared.settings, watcher))
