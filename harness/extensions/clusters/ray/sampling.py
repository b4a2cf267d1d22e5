"""Sample one run with several clients on a Ray cluster.

Each shard is a task with its own run folder, and these folders are merged into the run folder at the end. A shard whose
worker or node is lost restarts on another node and continues from its journal. The samples that a shard requests depend
on the number of shards, so a later session uses the same number as the first.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from harness.commands.run import run
from harness.core.errors import InUse, UsageError
from harness.core.files import open_untrusted
from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.extensions.clusters.ray.cluster import Cluster
from harness.generation.dispatch.retry import Cause
from harness.generation.outcome import Outcome
from harness.generation.run_progress import Tally
from harness.options.run import RunOptions
from harness.preparing.run_questions import tools_of
from harness.progress.events import Watcher
from harness.runs import Manifest, RunFolder
from harness.runs.merging import merge

FREED_SECONDS = 60.0
"""Seconds that a restarted shard waits for the lost process to release the lock on the run folder."""

_ONE_CLIENT = ("shard", "serve", "target_error", "budget_tokens", "budget_usd", "rpm", "rate", "batch")
"""Options that a run on a cluster rejects: each applies to a single client, or names a local path."""


def run_on(on: str, options: RunOptions, watcher: Watcher) -> Outcome:
    """Run all shards and merge them. Returns the merged run and the outcome of this session, summed over the shards.

    on: the cluster, as in `Cluster`. There are as many shards as in the earlier session, or one per node in the first
    session. Raises `UsageError`, or the errors of a shard or the merge.
    """
    options = check(options)
    folder = _folder(options)
    with Cluster(on) as cluster:
        n = _earlier_shards(folder) or cluster.n_nodes
        if cluster.n_nodes > 1 and any("127.0.0.1" in url or "localhost" in url for url in options.base_url):
            watcher.warn("`base_url` is a local address, so each node uses its own local server")
        began, stored = time.monotonic(), _Stored(folder)
        n_before = stored.count()
        plain = options.for_worker() | {"out": str(folder.path)}
        names = [f"shard {i} of {n}" for i in range(1, n + 1)]
        (tools,) = cluster.each(tools_of_node, [(plain, {})], names[:1], Watcher())
        if tools:
            cluster.each(tools_of_node, [(plain, tools)] * n, names, Watcher())
        arguments = [(plain | {"shard": f"{i}/{n}"}, tools) for i in range(1, n + 1)]
        watcher.standing(f"{n} shards on {cluster.n_nodes} nodes · run folder {folder.path}")
        outcomes = cluster.each(
            run_shard, arguments, names, watcher, lambda: f"{count_noun(stored.count() - n_before, 'sample')} so far"
        )
    merged = merge(folder.shards(), folder, accept_server_change=options.accept_server_change)
    warnings = [*merged.notes, *(note for benchmark in merged.benchmarks for note in benchmark.notes())]
    n_lost = stored.count() - n_before - sum(outcome.tally.finished for outcome in outcomes)
    if n_lost > 0:
        samples = f"{count_noun(n_lost, 'sample')} from this session came from tasks that were later lost"
        warnings.append(f"{samples}: they are stored, but its sample and token counts do not include them.")
    return _outcome_of_all(folder, outcomes, warnings, time.monotonic() - began)


class _Stored:
    """Counts the stored samples of a run's shards; each count reads only what was written since the previous count."""

    def __init__(self, run: RunFolder) -> None:
        self._run, self._n = run, 0
        self._read: dict[Path, int] = {}
        """Journal → number of bytes that were read."""

    def count(self) -> int:
        """The number of lines of all journals."""
        for shard in self._run.shards():
            for journal in shard.path.glob("*/samples.jsonl"):
                # A count that fails must not end the run.
                with contextlib.suppress(OSError), open_untrusted(journal) as file:
                    file.seek(self._read.get(journal, 0))
                    while part := file.read(1024 * 1024):
                        self._n += part.count(b"\n")
                    self._read[journal] = file.tell()
        return self._n


def tools_of_node(fields: dict[str, Any], tools: dict[str, Any]) -> dict[str, Any]:
    """Runs on a node, before the first request: the tool of each benchmark that has one, with the versions of the
    node's sandbox.

    fields: the run's `RunOptions`. tools: the first node's tools; empty: this is the first node. Raises `UsageError` if
    they differ or there is no sandbox.
    """
    own = {name: tool.identity for name, tool in tools_of(RunOptions(**fields)).items()}
    if tools and own != tools:
        raise UsageError(
            f"the sandbox ({visible(str(own), 400)}) differs from the first node's ({visible(str(tools), 400)}); "
            "install the same Python and packages on all nodes",
            field="tool",
        )
    return own


def run_shard(fields: dict[str, Any], tools: dict[str, Any]) -> Outcome:
    """Runs on a node: the session of one shard. Returns its outcome without the progress.

    fields: the shard's `RunOptions`. tools: the first node's tools. Raises the errors of a session.
    """
    options = RunOptions(**fields)
    if tools:
        tools_of_node(fields, tools)
    deadline = time.monotonic() + FREED_SECONDS
    while True:
        try:
            return replace(run(options, Watcher()), progress=None)
        except InUse:
            if time.monotonic() >= deadline:
                raise
            time.sleep(1.0)


def _outcome_of_all(folder: RunFolder, outcomes: Sequence[Outcome], notes: Sequence[str], elapsed_s: float) -> Outcome:
    """The outcome of all shards, each of which counts its part of this session's plan. The merged run may contain more:
    samples beyond this plan, other benchmarks. notes: warnings of the merge. elapsed_s: seconds since the run began.
    """
    causes: dict[str, Cause] = {}
    for cause in (cause for outcome in outcomes for cause in outcome.causes):
        earlier = causes.get(cause.kind)
        causes[cause.kind] = earlier.add(cause) if earlier else cause
    # All shards use the same servers and produce the same warnings; each warning is shown once.
    sentences = dict.fromkeys([*notes, *(warning for outcome in outcomes for warning in outcome.warnings)])
    return Outcome(
        folder=folder.path,
        model=Manifest.load(folder).model,
        prices=outcomes[0].prices,
        n_expected=sum(outcome.n_expected for outcome in outcomes),
        n_done=sum(outcome.n_done for outcome in outcomes),
        elapsed_s=elapsed_s,
        warnings=list(sentences),
        causes=sorted(causes.values(), key=lambda cause: -cause.count),
        advice="; ".join(dict.fromkeys(outcome.advice for outcome in outcomes if outcome.advice)),
        n_impossible=sum(outcome.n_impossible for outcome in outcomes),
        tally=reduce(Tally.add, (outcome.tally for outcome in outcomes)),
    )


def check(options: RunOptions) -> RunOptions:
    """Return the options, with OPENAI_BASE_URL as the server's address if no option specifies one.

    Raises `UsageError` for an option of `_ONE_CLIENT`, or if there is no address.
    """
    defaults = RunOptions()
    for name in _ONE_CLIENT:
        if getattr(options, name) != getattr(defaults, name):
            raise UsageError("it cannot be used with `on`, because every shard has its own client", field=name)
    for url in options.base_url:
        if not (":" in url or Path(url).exists()):
            raise UsageError(
                "a server's name is known only on its own node; use its address", field="base_url", value=url
            )
    if options.base_url or options.provider:
        return options
    if address := os.environ.get("OPENAI_BASE_URL"):
        return RunOptions(**options.for_worker(), base_url=(address,))
    raise UsageError("`on` requires an address that every node can reach: set `base_url` or `provider`")


def _folder(options: RunOptions) -> RunFolder:
    """The folder of the merged run. Raises `UsageError` if the options specify neither the folder nor a model."""
    if options.out is None and options.model is None:
        raise UsageError("`on` requires `model` or `out` to name the run folder")
    return RunFolder(options.out) if options.out is not None else RunFolder.default(str(options.model))


def _earlier_shards(folder: RunFolder) -> int | None:
    """The number of shards of the earlier sessions; None if there were none."""
    return max((int(shard.part.partition("/")[2]) for shard in folder.shards() if shard.part), default=None)
