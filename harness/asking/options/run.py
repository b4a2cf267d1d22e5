"""All options of a run, and what must go together."""

from __future__ import annotations

from harness.asking.options.limits import Limits, Metrics, Money
from harness.asking.options.request import BatchOptions, HowReasoned, HowWritten, WhichPreset
from harness.asking.options.resuming import Resuming
from harness.asking.options.what import OF_DATA, WhatIsAsked
from harness.asking.options.whom import HowReached, WhichServer
from harness.core.errors import UsageError
from harness.core.wording import option
from harness.presets.sampling import SamplingOptions


class RunOptions(
    WhatIsAsked,
    WhichServer,
    HowReached,
    WhichPreset,
    SamplingOptions,
    HowReasoned,
    HowWritten,
    BatchOptions,
    Limits,
    Money,
    Resuming,
    Metrics,
):
    """What a run is to ask, how, and when it is to end; every option may be left out but the benchmark.

    Each is described where it is declared, and by `harness run` in its help.
    """

    def _check(self) -> None:
        """Raise `UsageError` for the first options that do not go together."""
        super()._check()
        if self.endpoints_file is not None and (self.base_url or self.server or self.serve):
            raise UsageError(
                f"it names the servers: leave out {option('base_url')}, {option('server')} and {option('serve')}",
                field="endpoints_file",
            )
        if (keys := [key for key in OF_DATA if getattr(self, key)]) and not self.data:
            raise UsageError(f"it goes with {option('data')}, a file of questions", field=keys[0])
        if (self.price_in is None) != (self.price_out is None):
            raise UsageError(
                f"{option('price_in')} and {option('price_out')} go together: prompts and replies are both billed"
            )
        if self.shard is not None and self.target_error is not None:
            raise UsageError(
                f"it does not work with {option('shard')}, since a shard's error is not the run's: give all shards as "
                f"many samples with {option('samples')}",
                field="target_error",
                value=self.target_error,
            )
        if self.batch or self.batch_file is not None:
            self._check_batch("batch" if self.batch else "batch_file")
        if self.price_in is not None and self.prices is not None:
            raise UsageError(f"{option('prices')} and {option('price_in')} both say what tokens cost: give one of them")

    def _check_batch(self, way: str) -> None:
        """Raise `UsageError` for what means nothing where all is asked at once, and answered hours later."""
        if self.batch and self.batch_file is not None:
            raise UsageError(f"{option('batch')} and {option('batch_file')} are two ways: give one of them")
        others = ("target_error", "budget_tokens", "budget_usd", "rpm", "tpm", "endpoints_file", "serve", "probe")
        if given := [name for name in others if getattr(self, name) not in (None, False)]:
            raise UsageError(f"it does not go with {option(way)}: all samples are asked at once", field=given[0])
        if len(self.base_url) > 1:
            raise UsageError(f"one address goes with {option(way)}", field="base_url")
        if self.batch_file is not None and not self.model:
            raise UsageError(f"it needs {option('model')}: no server is asked for it", field="batch_file")
