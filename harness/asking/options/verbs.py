"""Declares all options of a run, and which options must go together; lists which verb takes which options.

The error for an option that a verb does not take is made here too, the same for the command line and for Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from harness.asking.options.deciding import (
    CompareOptions,
    PlanOptions,
    RaceRules,
    VerifyOptions,
)
from harness.asking.options.finished import AuditOptions, ExportOptions, GradeOptions, MergeOptions, ReportOptions
from harness.asking.options.headings import ASKED, RESUMING, WHOM
from harness.asking.options.limits import Limits, Money
from harness.asking.options.probing import ProbeOptions
from harness.asking.options.request import BatchOptions, HowReasoned, HowWritten, WhichPreset
from harness.asking.options.resuming import Resuming
from harness.asking.options.score import ScoreOptions
from harness.asking.options.what import OF_DATA, WhatIsAsked
from harness.asking.options.whom import HowReached, WhichServer
from harness.core.errors import UsageError
from harness.core.options import Option, Options, options_of
from harness.presets.sampling import SamplingOption, SamplingOptions


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
):
    """All options of a run; only the benchmark is required.

    Each option is described where it is declared, and in the help of `harness run`.
    """

    def _check(self) -> None:
        """Raise `UsageError` for the first options that do not go together."""
        super()._check()
        if (keys := [key for key in OF_DATA if getattr(self, key)]) and not self.data:
            raise UsageError("it needs `data`, a file of questions", field=keys[0])
        if self.shard is not None and self.target_error is not None:
            raise UsageError(
                "it does not work with `shard`, since a shard's error is not the run's: give all "
                "shards the same number of samples with `samples`",
                field="target_error",
                value=self.target_error,
            )
        if self.batch:
            self._check_batch()

    def _check_batch(self) -> None:
        """Raise `UsageError` for options that mean nothing when all samples are asked at once, answered hours later."""
        others = ("target_error", "budget_tokens", "budget_usd", "rpm", "serve")
        if given := [name for name in others if getattr(self, name) is not None]:
            raise UsageError(
                "it does not work with `batch`, which sends all requests at once: leave one of them out",
                field=given[0],
            )
        if len(self.base_url) > 1:
            raise UsageError("`batch` takes only one address: leave the others out", field="base_url")


# ---- which verb takes which


class OnRay(Options):
    """The cluster whose nodes ask for a run's samples."""

    on: Annotated[
        str | None,
        Option(
            "Ask from the nodes of a Ray cluster, each node a shard of the questions, into one run folder "
            "(docs/scaling.md).",
            under=WHOM,
            metavar="ray[://HOST:PORT]",
        ),
    ] = None


class SpreadRunOptions(RunOptions, OnRay):
    """The options of a run, from this machine or from a cluster."""


class RaceOptions(RunOptions, RaceRules):
    """The options of a race; the options of a run hold for every candidate."""

    samples: Annotated[
        int | None,
        Option("Samples per question that a candidate may use at most. Default: the card's.", under=ASKED, least=1),
    ] = None
    out: Annotated[
        Path | None,
        Option("Folder of the candidates' run folders. Default: races/ and the benchmark's name.", under=RESUMING),
    ] = None


class SweepOptions(RunOptions):
    """The options of a sweep; options of a run override the file's."""

    out: Annotated[
        Path | None,
        Option("Folder of the cells and tables. Default: results/ and the sweep's name.", under=RESUMING),
    ] = None


@dataclass(frozen=True)
class Verb:
    """The options that a verb takes. refused: an option that people try in vain → what to do instead."""

    options: type[Options]
    refused: Mapping[str, str] = field(default_factory=dict)


_OWN_PACE = "a probe keeps to the pace that the server allows by itself: leave this option out"
_NO_RACE_TRIAL = "a race has no dry run: use `harness run` for it"

VERBS: dict[str, Verb] = {
    "run": Verb(
        SpreadRunOptions,
        {
            "repeats": "the samples of a question are `samples` here",
            "benchmark": "give the benchmarks before the options",
        },
    ),
    "race": Verb(RaceOptions, {"dry_run": _NO_RACE_TRIAL}),
    "sweep": Verb(SweepOptions),
    "score": Verb(
        ScoreOptions,
        {
            "dry_run": "this function grades; only the command line can say beforehand what a judge would be asked",
            "serve": "a judge is an endpoint: start it by `harness serve ENGINE MODEL`, and give its address",
        },
    ),
    "plan": Verb(
        PlanOptions,
        {
            "data": "a file of questions is named without a flag, as in `harness plan questions.jsonl:16`",
            "samples": "the number of samples stands behind the name, as in `harness plan aime24:64`",
        },
    ),
    "compare": Verb(CompareOptions),
    "verify": Verb(VerifyOptions),
    "merge": Verb(MergeOptions),
    "report": Verb(
        ReportOptions, {"i_know": "a report holds no question and no reply, so nothing is withheld: leave it out"}
    ),
    "export": Verb(ExportOptions),
    "audit": Verb(AuditOptions),
    "grade": Verb(GradeOptions),
    "probe": Verb(ProbeOptions, dict.fromkeys(("rpm", "concurrency"), _OWN_PACE)),
}
"""Every verb whose options come from declarations, by its words on a command line."""


def refusal(verb: str, name: str) -> UsageError | None:
    """The error for an option that the verb does not take; None if it takes the option, or if no verb does."""
    own = VERBS[verb]
    if name in own.refused:
        return UsageError(own.refused[name], field=name)
    takers = [taker for taker, takes in VERBS.items() if name in options_of(takes.options)]
    if not takers or verb in takers:
        return None
    # Verbs for which an option means the same share its help; the first of them stands for the others.
    meanings = {options_of(VERBS[taker].options)[name].help: taker for taker in reversed(takers)}
    first, *others = (f"`harness {taker}`" for taker in takers if taker in meanings.values())
    does = f"{first} does" if not others else f"{', '.join([first, *others[:-1]])} and {others[-1]} do"
    what_for = ": their help says what for" if others else ""
    return UsageError(f"`harness {verb}` does not take it; {does}{what_for}{_as_field(own, name)}", field=name)


def _as_field(verb: Verb, name: str) -> str:
    """How to send a refused sampling option as a field of each request: the end of a sentence, empty if none."""
    declared = options_of(SamplingOptions).get(name)
    # One without a neutral value, such as max_tokens, bounds a reply, which the verb decides itself.
    if (
        not isinstance(declared, SamplingOption)
        or declared.neutral is None
        or "extra_body" not in options_of(verb.options)
    ):
        return ""
    return f". To send the field with each request, give extra_body '{{\"{name}\": VALUE}}'"


def check(verb: str, names: Iterable[str]) -> None:
    """Raise `UsageError` for the first of these options that this verb does not take, but another verb does (see
    `refusal`).
    """
    for name in names:
        if (refused := refusal(verb, name)) is not None:
            raise refused
