"""Which verb takes which options, and what both doors say of an option that a verb does not take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from harness.asking.options.deciding import (
    CompareOptions,
    PlanOptions,
    PublishedUpdateOptions,
    RaceRules,
    RepeatsRules,
    SizesRules,
    VerifyOptions,
)
from harness.asking.options.finished import AuditOptions, ExportOptions, GradeOptions, MergeOptions, ReportOptions
from harness.asking.options.headings import ASKED, RESUMING, SAMPLING, WHOM
from harness.asking.options.run import RunOptions
from harness.asking.options.score import ScoreOptions
from harness.core.errors import UsageError
from harness.core.options import SEED, Option, Options, options_of
from harness.core.wording import option


class OnRay(Options):
    """The cluster whose nodes ask for a run's samples."""

    on: Annotated[
        str | None,
        Option(
            "Ask from the nodes of a Ray cluster, each a shard of the questions; one run folder (docs/howto/ray.md).",
            under=WHOM,
            metavar="ray[://HOST:PORT]",
        ),
    ] = None
    shards: Annotated[
        int | None,
        Option(f"Number of shards with {option('on')}. Default: one a node.", under=WHOM, metavar="N", least=1),
    ] = None

    def _check(self) -> None:
        """Raise `UsageError` for shards without a cluster."""
        super()._check()
        if self.shards is not None and self.on is None:
            raise UsageError(
                f"it goes with {option('on')}; {option('shard', 'I/N')} asks one part from here",
                field="shards",
                value=self.shards,
            )


class SpreadRunOptions(RunOptions, OnRay):
    """The options of a run, from here or from a cluster."""


class RaceOptions(RunOptions, RaceRules):
    """The options of a race: those of a run hold for every candidate."""

    samples: Annotated[
        int | None,
        Option("Samples per question that a candidate may use at most. Default: the card's.", under=ASKED, least=1),
    ] = None
    out: Annotated[
        Path | None,
        Option("Folder of the candidates' run folders. Default: races/ and the benchmark's name.", under=RESUMING),
    ] = None


class RepeatedOptions(RunOptions):
    """The options of an experiment's repeats, drawn from a run; or sampled, and then those of a run hold for each."""

    samples: Annotated[
        int | None,
        Option(
            "Samples per question of each repeat. Default: as many as repeats that share none can have; with "
            f"{option('real')} the card's.",
            under=ASKED,
            least=1,
        ),
    ] = None
    seed: Annotated[
        int | None,
        Option(
            f"Seed of the drawing; with {option('real')} the run seed, from which each repeat's comes.",
            under=SAMPLING,
            strict=False,
            kind=SEED,
        ),
    ] = 0
    out: Annotated[
        Path | None,
        Option(
            f"Folder of the pictures. Default: RUN; with {option('real')} experiments/NAME, also of the run folders.",
            under=RESUMING,
        ),
    ] = None


class RepeatsOptions(RepeatedOptions, RepeatsRules):
    """The options of an experiment of repeats."""


class SizesOptions(RepeatedOptions, SizesRules):
    """The options of an experiment of more and more samples."""


class SweepOptions(RunOptions):
    """The options of a sweep: those of a run stand above what the file says."""

    out: Annotated[
        Path | None,
        Option("Folder of the cells and tables. Default: results/ and the sweep's name.", under=RESUMING),
    ] = None


@dataclass(frozen=True)
class Verb:
    """The options that a verb takes. refused: others that people try → what to do instead."""

    options: type[Options]
    refused: Mapping[str, str] = field(default_factory=dict)


_NO_TRIAL = "an experiment has neither a pilot nor a dry run: give `harness run` for it"
_NO_RACE_TRIAL = "a race has neither a pilot nor a dry run: give `harness run` for those"

VERBS: dict[str, Verb] = {
    "run": Verb(
        SpreadRunOptions,
        {
            "repeats": f"the samples of a question are {option('samples')} here",
            "benchmark": "a run's benchmarks stand before its options",
        },
    ),
    "race": Verb(RaceOptions, {"dry_run": _NO_RACE_TRIAL, "pilot": _NO_RACE_TRIAL}),
    "experiment repeats": Verb(RepeatsOptions, {"dry_run": _NO_TRIAL, "pilot": _NO_TRIAL}),
    "experiment samples": Verb(SizesOptions, {"dry_run": _NO_TRIAL, "pilot": _NO_TRIAL}),
    "sweep": Verb(SweepOptions, {"pilot": f"a sweep has no pilot: {option('dry_run')} says what it will take"}),
    "score": Verb(ScoreOptions),
    "plan": Verb(PlanOptions),
    "compare": Verb(CompareOptions),
    "verify": Verb(VerifyOptions),
    "published update": Verb(PublishedUpdateOptions),
    "merge": Verb(MergeOptions),
    "report": Verb(ReportOptions),
    "export": Verb(ExportOptions),
    "audit": Verb(AuditOptions),
    "grade": Verb(GradeOptions),
}
"""Every verb that has its options from declarations, by its words on a command line."""


def refusal(verb: str, name: str) -> UsageError | None:
    """The refusal of an option that the verb does not take; None if it takes the option, or if no verb does."""
    own = VERBS[verb]
    if name in own.refused:
        return UsageError(own.refused[name], field=name)
    takers = [taker for taker, takes in VERBS.items() if name in options_of(takes.options)]
    if not takers or verb in takers:
        return None
    return UsageError(f"`harness {verb}` does not take it; `harness {takers[0]}` does", field=name)


def check(verb: str, names: Iterable[str]) -> None:
    """Raise `UsageError` for the first of these options that the verb does not take, and another does."""
    for name in names:
        if (refused := refusal(verb, name)) is not None:
            raise refused
