"""Makes the asker of a run, a judge or a probe from one look at its servers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from harness.asking.servers import Looks, ReachedServers
from harness.client.asker import Asker
from harness.client.interface import Deadlines
from harness.client.spelling import Spelling
from harness.core.errors import StoreError
from harness.generation.settings import NEUTRAL, BenchmarkSettings
from harness.runs import RunFolder
from harness.runs.manifest import Manifest


def asker_of(
    servers_found: ReachedServers,
    looks: Looks,
    *,
    spelling: Spelling | None = None,
    left_out: Collection[str] = (),
    deadlines: Deadlines | None = None,
) -> Asker:
    """Who asks these servers. spelling: None: as the provider wants requests, with nothing of the user's in them."""
    return Asker(
        model=looks.model,
        engine=looks.engine,
        spelling=servers_found.provider.spelling(looks.model, engine=looks.engine) if spelling is None else spelling,
        left_out=frozenset(left_out),
        deadlines=deadlines or Deadlines(),
    )


def with_neutral(
    benchmarks: Mapping[str, BenchmarkSettings], folder: RunFolder, asker: Asker
) -> dict[str, BenchmarkSettings]:
    """The settings with the servers' neutral values added. A benchmark with stored samples keeps the values it had."""
    earlier = _asked_before(folder)
    benchmark_settings = {}
    for name, benchmark in benchmarks.items():
        sent = benchmark.sampling.sent()
        fields = {*sent, *asker.left_out, *asker.spelling.extra_body}
        neutral = asker.neutral_fields(sent) if name not in earlier else earlier[name]
        sendable = {field: value for field, value in neutral.items() if field not in fields}
        benchmark_settings[name] = replace(benchmark, neutral=sendable)
    return benchmark_settings


def _asked_before(folder: RunFolder) -> dict[str, dict[str, Any]]:
    """The neutral values in earlier requests, by benchmark with samples."""
    try:
        manifest = Manifest.find(folder)
    except StoreError:  # A damaged manifest; the session refuses it with a reason.
        return {}
    return {
        name: dict(record.identity.get(NEUTRAL, {}))
        for name, record in ({} if manifest is None else manifest.benchmarks).items()
        if folder.benchmark(name).has_samples()
    }
