"""Checks that greedy replies are greedy and that seeds act; and the cuts of the distribution that `later` tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from itertools import accumulate
from typing import Any

from harness.core.inert import quoted
from harness.probes.findings import Check, Seen, sound, spoils, warns
from harness.probes.subject import FIRST_CHARS, Subject

CORE = 1 / 16
"""A cut keeps the tokens whose probability is at least this fraction of the largest, if it is no stronger than a min_p
of 0.05, the default of llama.cpp. Draws among them show the temperature whatever else is cut.
"""

GREEDY_REPLIES, MORE_GREEDY_REPLIES = 3, 5
"""Number of replies at temperature 0, and number of further replies if the first ones all begin differently. Of 75
simulated servers whose logits a batch moves by 0.02, none gave eight different beginnings.
"""

MAX_SWAPPED_NATS = 0.2
"""Rounding in a batch may swap tokens that are nearly equally likely, but moves them by less than this, in nats."""

MAX_NUCLEUS = 0.33
"""A little more than the top_p of 0.3 that is asked for, since batching may move the cut-off by a token."""

NEAR = 1.25
"""Batching changes probabilities slightly: a token whose probability is within this factor of the cut-off may be kept
or dropped.
"""

SURE = 0.99
"""Smallest chance that an ignored cut would have shown; below it, the check proves nothing and is untested."""


def _greedy(subject: Subject) -> Seen:
    """Check that replies at temperature 0 are greedy: each token is the likeliest one, and three replies are equal."""
    sent = "a prompt for a short story at temperature 0, three times"
    reply = subject.greedy_reply
    behind = [(max(t.top.values()) - t.logprob, t) for t in reply.tokens if t.top and t.logprob is not None]
    odd = [(nats, token) for nats, token in behind if nats > MAX_SWAPPED_NATS]
    if odd:
        _, worst = max(odd, key=lambda pair: pair[0])
        likelier = max(worst.top, key=worst.top.__getitem__)
        return spoils(sent, f"{len(odd)} of {len(reply.tokens)} tokens are not the likeliest: "
                            f"{quoted(worst.token)!r} where {quoted(likelier)!r} is likelier")  # fmt: skip
    texts = {subject.chat().whole for _ in range(GREEDY_REPLIES)}
    if len(texts) == 1:
        return sound(sent, "the same reply each time" + (", the likeliest token in each place" if reply.tokens else ""))
    # Rounding may swap a few likely tokens, so three replies may all differ; only more different replies show sampling.
    if not reply.tokens and _n_beginnings(texts) == GREEDY_REPLIES:
        texts |= {subject.chat().whole for _ in range(MORE_GREEDY_REPLIES)}
        if _n_beginnings(texts) == GREEDY_REPLIES + MORE_GREEDY_REPLIES:
            return spoils(
                sent, f"replies that differ from the first token on: {', '.join(repr(quoted(t[:40])) for t in texts)}"
            )
    return warns(
        sent, f"{len(texts)} different replies: either greedy text depends on the batch, or the server samples"
    )


def _n_beginnings(texts: Collection[str]) -> int:
    """The number of different beginnings of these texts, of `FIRST_CHARS` characters."""
    return len({text[:FIRST_CHARS] for text in texts})


def core(listed: Mapping[str, float]) -> dict[str, float]:
    """The tokens that a usual cut keeps: those whose probability is at least `CORE` times the largest."""
    least = max(listed.values()) + math.log(CORE)
    return {token: value for token, value in listed.items() if value >= least}


def _end_of_nucleus(ps: list[float]) -> float:
    """The smallest of these probabilities, which fall, that is inside the nucleus: the likeliest tokens that together
    have the probability `MAX_NUCLEUS`.
    """
    return next((p for p, total in zip(ps, accumulate(ps), strict=True) if total >= MAX_NUCLEUS), ps[-1])


CUTS: tuple[tuple[str, float, Callable[[list[float]], float]], ...] = (
    ("top_k", 2, lambda ps: ps[min(1, len(ps) - 1)]),
    ("top_p", 0.3, _end_of_nucleus),
    ("min_p", 0.5, lambda ps: ps[0] / 2),
)
"""Each cut that is tested: (field, value, function). The function takes all probabilities in falling order and returns
the smallest that the cut keeps.
"""


def _hot(subject: Subject, **fields: Any) -> str:
    """The reply to the story prompt at temperature 1."""
    return subject.chat(temperature=1.0, top_p=1.0, **fields).whole


def _same_seed(subject: Subject) -> Seen:
    """Ask twice with the same seed, for three seeds: both replies must be equal."""
    sent = "three seeds at temperature 1, each twice"
    pairs = [(_hot(subject, seed=seed), _hot(subject, seed=seed)) for seed in subject.new_seeds(3)]
    same = sum(first == second for first, second in pairs)
    if same == 3:
        return sound(sent, "the same text for the same seed, in three of three cases")
    same_beginning = sum(_n_beginnings(pair) == 1 for pair in pairs)
    if same or same_beginning == 3:
        return warns(sent, f"the same text in {same} of three cases: seeds work, but batches change some texts")
    return warns(sent, "a different text each time: the server ignores the seed")


def _other_seed(subject: Subject) -> Seen:
    """Ask with four different seeds: the replies must not all be equal."""
    sent = "four seeds at temperature 1"
    texts = {_hot(subject, seed=seed) for seed in subject.new_seeds(4)}
    if len(texts) == 1:
        return spoils(sent, f"the same text each time: {quoted(texts.pop())!r}")
    return sound(sent, f"{len(texts)} different texts")


_REWRITTEN = "Look for a proxy that rewrites the field, or a server whose sampling defaults override requests."

CHECKS = (
    Check(
        name="temperature 0", group="sampling", look=_greedy, by_text=True, tokens=270,
        why="A greedy score comes from the likeliest tokens; sampled replies are another setting.",
        mend=_REWRITTEN,
    ),
    Check(
        name="same seed", group="sampling", look=_same_seed, by_text=True, seeded=True, tokens=400,
        why="A seed makes a sample repeatable; a score does not depend on seeds.",
        mend="Nothing to do for a score; to repeat samples, use an engine that obeys seeds.",
    ),
    Check(
        name="other seed", group="sampling", look=_other_seed, by_text=True, seeded=True, tokens=270,
        why="Samples that are copies of one another make pass@k and every error bar wrong.",
        mend="Look for a cache between here and the engine, or a server with a fixed seed.",
    ),
)  # fmt: skip
