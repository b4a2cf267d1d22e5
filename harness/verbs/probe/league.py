"""Compares the providers of one model over days: which of them changed, and which differs from the others. A look asks
each provider for `DRAWS` sampled first words after each of `PROMPTS`. Two sets of words are compared by the chi-square
statistic of their counts, summed over the prompts. Its p-value is by exact Monte Carlo: if one model drew both sets,
any division of all words between the two is as likely as the observed division. No log-probabilities are needed.

    family of tests     what is compared                              error it may spend at look k
    changed             a provider with its own earlier looks         ALPHA / 2 · 1 / (k (k − 1)), k at least 2
    differs             a provider with the others at this look       ALPHA / 2 · 1 / (k (k + 1))

Within a family and a look, Holm's method shares the error among the providers. Over all looks, each family spends at
most ALPHA / 2, so the chance of any false verdict in one history is at most `ALPHA`, however many days and providers
there are.

Of n providers, Holm's first rejection needs a p-value of at most the look's error / n; `MAX_SIMULATED` draws give none
below 1 / (1 + MAX_SIMULATED). A look that may spend less than that could reject nothing, so it is not judged, and
`worn_out` says to begin a new history.

All functions are pure except `draws` and `look_at_provider`, which ask servers, and `read` and `append`.
"""

from __future__ import annotations

import math
import random
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.asking.options import ProbeOptions
from harness.asking.watching import Watcher
from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import Sentence, UsageError, option
from harness.core.files import read_named, write_atomically
from harness.scoring.differences import holm
from harness.verbs.probe import exact
from harness.verbs.probe.asking import Inquiry, ProbedServer, Refused
from harness.verbs.probe.connecting import probed
from harness.verbs.probe.findings import ProbeReport

PROMPTS = (
    "Say one random English word.",
    "Pick a random number between 1 and 100. Answer with the number only.",
    "Invent a first name for a cat. Answer with the name only.",
    "Begin a story with any two words.",
)

DRAWS = 25
"""Number of sampled first words after each prompt: 100 requests, some 3,000 tokens a look."""

TOKENS = 3
"""Number of new tokens of a reply, of which the first word counts."""

MAX_CHARS = 40
"""Largest number of characters of a first word that are kept."""

ALPHA = 0.01
"""Chance of any false verdict on any provider, over all looks of a history."""

MAX_SIMULATED = 1_000_000
"""Largest number of simulated divisions of one comparison; it bounds the looks of a history that can be judged."""

MAX_CELLS = 250_000
"""Largest array of one simulation step (divisions × words), so that memory does not grow with the history."""

MAX_BYTES = 64 * 1024 * 1024
"""Largest history, in bytes; a look has some 3 KB."""

VERSION = digest([PROMPTS, DRAWS, TOKENS])[:12]
"""Version of the prompts; looks of another version are not compared."""


class ProviderLook(msgspec.Struct, frozen=True, kw_only=True):
    """One look at one provider: a line of the history.

    time: UTC, as ISO 8601. draws: of each prompt, first word → how often it came. spoils: checks that spoil a score.
    """

    kind: Literal["look at a provider"] = "look at a provider"
    version: str
    time: str
    address: str
    model: str
    draws: list[dict[str, int]]
    spoils: list[str]


@dataclass(frozen=True)
class ProviderStanding:
    """The comparison of a look with the provider's earlier looks ("changed") and with the other providers ("differs").

    n_looks: this one included. p_changed, p_differs: p-values; None if there is nothing to compare with. changed,
    differs: whether the look differs; None if no p-value could be small enough to show it.
    """

    look: ProviderLook
    n_looks: int
    changed: bool | None
    differs: bool | None
    p_changed: float | None
    p_differs: float | None


Draws = Sequence[Mapping[str, int]]


def apart(ours: Draws, theirs: Draws, seed: int, level: float) -> float:
    """Return the p-value of the hypothesis that one model has drawn both sets of words.

    ours, theirs: of each prompt, first word → how often it came. seed: of the simulation. level: the smallest bound
    that the p-value is compared with.
    """
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if sum(a.values()) and sum(b.values())]
    # One table for each prompt, with one row for each word. A prompt without replies on one side has no table.
    tables = [np.array([[a.get(name, 0), b.get(name, 0)] for name in sorted({*a, *b})]) for a, b in pairs]
    observed = sum(float(_statistic(table[:, 0], table)) for table in tables)
    rng = np.random.default_rng(seed)
    p = 1.0
    # Simulated in two steps, as in `exact`: only p-values near the bound need many draws, and few are.
    for m in (exact.SIMULATED, min(MAX_SIMULATED, max(exact.SIMULATED_AGAIN, math.ceil(4 / level)))):
        p = (1 + _n_as_far(tables, observed, m, rng)) / (1 + m)
        if p > exact.SMALL:
            break
    return p


def _n_as_far(tables: Sequence[NDArray[np.int64]], observed: float, m: int, rng: np.random.Generator) -> int:
    """Divide the words of both sides at random, m times; return how often the two parts differ by `observed` or more.

    tables: of each prompt, how often each word came on both sides.
    """
    n_at_once = max(1, MAX_CELLS // max(map(len, tables), default=1))
    n_as_far = 0
    for start in range(0, m, n_at_once):
        size = min(n_at_once, m - start)
        drawn = np.zeros(size)
        for table in tables:
            sizes = table.sum(axis=1)
            drawn += _statistic(rng.multivariate_hypergeometric(sizes, int(table[:, 0].sum()), size=size), table)
        # Equal sums may differ in their last digits, since they are added in another order; they count as equal.
        n_as_far += int(np.count_nonzero(drawn >= observed - 1e-9))
    return n_as_far


def _statistic(first: NDArray[np.int64], table: NDArray[np.int64]) -> NDArray[np.float64]:
    """The chi-square of (words × 2) counts whose first column is `first`; the sums are those of `table`."""
    sizes, columns = table.sum(axis=1), table.sum(axis=0)
    expected = sizes * columns[0] / columns.sum()
    # The two cells of a row differ from their expectations by the same number.
    squares: NDArray[np.float64] = ((first - expected) ** 2 * (1 / expected + 1 / (sizes - expected))).sum(axis=-1)
    return squares


def pooled(looks: Sequence[ProviderLook]) -> list[dict[str, int]]:
    """The draws of several looks together, by prompt."""
    sums = [Counter[str]() for _ in PROMPTS]
    for look in looks:
        for total, counts in zip(sums, look.draws, strict=True):
            total.update(counts)
    return [dict(total) for total in sums]


def standings(history: Sequence[ProviderLook], now: Sequence[ProviderLook], seed: int = 1) -> list[ProviderStanding]:
    """Return for each provider whether it has changed since its earlier looks, and whether it differs from the others.

    history: the earlier looks. now: one new look (sampled first words) at each provider. seed: of the simulations.
    """
    earlier = [[look for look in history if (look.address, look.model) == (new.address, new.model)] for new in now]
    # The number of this look; the later the look, the smaller the error that it may spend (see the module's table).
    k = 1 + max(map(len, earlier), default=0)
    at_others = ALPHA / 2 / (k * (k + 1))
    at_earlier = ALPHA / 2 / (k * (k - 1)) if k > 1 else 0.0
    changed: list[float | None] = [
        apart(new.draws, pooled(before), seed, at_earlier / len(now)) if before else None
        for new, before in zip(now, earlier, strict=True)
    ]
    differs: list[float | None] = [
        apart(new.draws, pooled([look for look in now if look is not new]), seed, at_others / len(now))
        if len(now) > 1
        else None
        for new in now
    ]
    rejected = [_rejected(changed, at_earlier), _rejected(differs, at_others)]
    return [
        ProviderStanding(new, 1 + len(before), rejected[0][i], rejected[1][i], changed[i], differs[i])
        for i, (new, before) in enumerate(zip(now, earlier, strict=True))
    ]


def _rejected(p_values: Sequence[float | None], alpha: float) -> list[bool | None]:
    """For each hypothesis, whether Holm's method rejects it.

    False: Holm's method does not reject it, or it has no p-value. None: no p-value could be small enough, so nothing is
    judged. alpha: the error that these tests share.
    """
    tested = [i for i, p in enumerate(p_values) if p is not None]
    outcomes: dict[int, bool | None] = dict.fromkeys(tested)
    if tested and alpha / len(tested) >= 1 / (1 + MAX_SIMULATED):
        rejected = [p <= alpha for p in holm([p for p in p_values if p is not None])]
        outcomes.update(zip(tested, rejected, strict=True))
    return [outcomes.get(i, False) for i in range(len(p_values))]


def worn_out(looked: Sequence[ProviderStanding]) -> Sentence | None:
    """A warning if a history has so many looks that no change could be found any more; else None."""
    if not any(standing.changed is None or standing.differs is None for standing in looked):
        return None
    k = max(standing.n_looks for standing in looked)
    return Sentence(
        f"look {k} of this history cannot be judged: with so many looks, {MAX_SIMULATED:,} draws cannot show a change. "
        f"Begin a new history: give {option('history')} the name of a new file"
    )


def draws(server: ProbedServer, seed: int) -> list[dict[str, int]]:
    """The first words that the server draws after each prompt, without refused requests: word → how often it came.

    Raises `Refused` if more than a tenth of the requests of a prompt are refused.
    """
    # The seeds are far apart, because generators with neighbouring seeds may begin alike.
    seeds = random.Random(seed).sample(range(2**31), DRAWS * len(PROMPTS))  # noqa: S311 - no secret
    fields = {"max_tokens": TOKENS, "temperature": 1.0, "top_p": 1.0}
    counts = []
    for i, text in enumerate(PROMPTS):
        own = seeds[i * DRAWS : (i + 1) * DRAWS]
        answers = server.many([Inquiry(text, {**fields, "seed": one_seed}).body(server.asker) for one_seed in own])
        refusals = [answer for answer in answers if isinstance(answer, Refused)]
        if 10 * len(refusals) > DRAWS:
            raise refusals[0]
        texts = [answer.first.whole for answer in answers if not isinstance(answer, Refused)]
        counts.append(dict(Counter((text.split() or [""])[0][:MAX_CHARS] for text in texts)))
    return counts


def look_at_provider(
    options: ProbeOptions, reports: Sequence[ProbeReport], time: str, watcher: Watcher, *, shared_key: bool = True
) -> ProviderLook:
    """Ask the provider that the options name for sampled replies, and return them with its known faults.

    reports: the reports of a probe that just ended; those with this provider's address give the faults. time: of the
    look, UTC, ISO 8601. shared_key: as in `servers.find`. Raises `ServerError`.
    """
    (server, *_) = probed(options, watcher, options, shared_key=shared_key)
    address = server.endpoint.base_url
    findings = [finding for report in reports if report.address == address for finding in report.findings]
    return ProviderLook(
        version=VERSION,
        time=time,
        address=address,
        model=server.asker.model,
        draws=draws(server, secrets.randbelow(2**30)),
        spoils=[finding.check for finding in findings if finding.outcome == "spoils"],
    )


def read(path: Path) -> list[ProviderLook]:
    """Read the stored looks, without those of another version of the prompts; empty if there is no file.

    Raises `UsageError` if the file cannot be read.
    """
    looks = []
    try:
        content = read_named(path, MAX_BYTES) if path.exists() else b""
    except OSError as error:
        raise UsageError(f"the history cannot be read: {error}", field="history", value=path) from error
    for number, line in enumerate(content.splitlines(), 1):
        try:
            looks.append(codec.decode(line, ProviderLook))
        except codec.DecodeError as error:
            raise UsageError(
                f"line {number} is no record of a provider's replies, as an earlier probe wrote them: {error}",
                field="history",
                value=path,
            ) from error
    return [look for look in looks if look.version == VERSION and len(look.draws) == len(PROMPTS)]


def append(path: Path, looks: Sequence[ProviderLook]) -> None:
    """Add the looks to the history's end."""
    before = read_named(path, MAX_BYTES) if path.exists() else b""
    write_atomically(path.absolute(), before + b"".join(codec.encode(look) + b"\n" for look in looks))
