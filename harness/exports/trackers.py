"""Sends the scores of a run to an experiment tracker: Weights & Biases, MLflow, trackio, or a plug-in's.

Enter by `track`. A tracker gets the numbers of the scores and the facts of the run's identity: no question, no text of
a sample, no address of a server, no key. A run that is sent again updates its entry there.
The trackers themselves are extensions (`harness.extensions.trackers`), found by name.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import util
from typing import Any

from harness.core import plugins
from harness.core.about import install_line
from harness.core.errors import UsageError
from harness.core.secret import without_secrets
from harness.runs import Manifest, RunFolder
from harness.scoring import Score
from harness.scoring.columns import numbers

PROJECT = "reasoning-harness"
"""The project, or experiment, where the tracker's own environment names none."""

MAX_FACT_CHARS = 250
"""Longest fact that is sent as text, in characters; of a longer one (a system prompt, a prefill) the digest is sent."""

_NOT_IN_NAMES = re.compile(r"[^\w.\- :/]")
"""Characters that MLflow refuses in a name."""

Fact = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """A scored run as a tracker gets it.

    key: 16 hexadecimal digits, the same for the same run. name: the run folder's. facts: `model`, `created`,
    `harness_version`, and by `benchmark.field` the identity of each benchmark. scores: fractions, by
    `benchmark/column`; the columns are those of `report.csv`, with `pass@4` spelt `pass_at_4` and `pass^4` spelt
    `pass_hat_4`; unknown numbers are left out. In a name, a character that is no letter, digit or one of `_.- :/`
    becomes `_`.
    """

    key: str
    name: str
    facts: Mapping[str, Fact]
    scores: Mapping[str, float]


Tracker = Callable[[Tracked], object]
"""Sends a scored run. What the function returns, if anything, says where the run can be seen."""


def tracker_named(name: str) -> Tracker:
    """Ours, else a plug-in's; its failures are sentences. Raises `UsageError`: unknown, or its package is missing."""
    send = plugins.extension("tracker", name)
    if send is not None:
        if util.find_spec(name) is None:
            raise UsageError(f"the package {name} is missing. Install it: {install_line(name)}", field="track")
        return partial(plugins.call, "tracker", name, send)
    offered = plugins.function("tracker", name)
    if offered is None:
        raise plugins.unknown_name_error("tracker", "tracker", name, field="track")
    return offered


def track(folder: RunFolder, scores: Sequence[Score], tracker: Tracker) -> str:
    """Send the scores. Returns where they can be seen; empty where the tracker does not say. Raises `UsageError`."""
    with contextlib.redirect_stdout(sys.stderr):  # trackers print, and what this command prints may be JSON
        return str(tracker(tracked(Manifest.load(folder), folder.path.absolute().name, scores)) or "")


def tracked(manifest: Manifest, name: str, scores: Sequence[Score]) -> Tracked:
    """The scored run in the folder of that name."""
    run = f"{manifest.created}\n{manifest.model}\n{name}"
    facts = dict(_flat("model", manifest.model))
    facts |= {"created": manifest.created, "harness_version": manifest.harness_version}
    for benchmark, record in manifest.benchmarks.items():
        facts |= dict(_flat(_named(benchmark), without_secrets(record.identity)))
    return Tracked(
        key=hashlib.sha256(run.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        name=name,
        facts=facts,
        scores={
            _named(f"{score.benchmark}/{column}"): value
            for score in scores
            for column, value in numbers(score).items()
            if isinstance(value, int | float)
        },
    )


def _named(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name.replace("@", "_at_").replace("^", "_hat_"))


def _flat(name: str, value: Any) -> Iterator[tuple[str, Fact]]:
    """The scalars of a JSON value by dotted path; nothing for null, and a list as one text."""
    if isinstance(value, dict):
        for field, inner in value.items():
            yield from _flat(f"{name}.{field}", inner)
    elif isinstance(value, bool | int | float):
        yield name, value
    elif value is not None:
        text = value if isinstance(value, str) else str(value)
        data = text.encode("utf-8", "surrogatepass")
        yield name, text if len(text) <= MAX_FACT_CHARS else f"sha256:{hashlib.sha256(data).hexdigest()[:16]}"
