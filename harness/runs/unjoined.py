"""Samples that the shards of a run hold and the run lacks, so that its scores leave them out."""

from __future__ import annotations

from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.runs.layout import RunFolder, readable
from harness.runs.manifest import Manifest
from harness.runs.record import KeySet
from harness.runs.survey import stored_keys


def unjoined(run: RunFolder) -> dict[str, int]:
    """By benchmark, the number of samples that the run's shards hold and the run lacks. Raises `StoreError`.

    A damaged shard is left out, with a warning.
    """
    in_shards: dict[str, KeySet] = {}
    for shard, manifest in readable(run.shards(), Manifest.load):
        for name in manifest.benchmarks:
            stored = in_shards.setdefault(name, KeySet())
            for key in stored_keys(shard.benchmark(name)):
                stored.add(key)
    n_lacking = {name: len(keys - stored_keys(run.benchmark(name))) for name, keys in in_shards.items()}
    return {name: n for name, n in n_lacking.items() if n}


def unjoined_in_words(run: RunFolder) -> list[str]:
    """A sentence on the samples that the run's shards hold and the run lacks; none if it has all of them."""
    if not (n := sum(unjoined(run).values())):
        return []
    path = visible(str(run.path), 200)
    return [f"{path} lacks {count_noun(n, 'sample')} that its shards hold: `harness score {path}` adds them"]
