"""Checks that a server has the weights of a reference: another server, or a file saved from one.

Two checks compare the server with the reference: their next-token distributions, and the beginnings of greedy replies.
The first sends plain text to the completions API, so templates play no part, and compares the next token at fixed
places in fixed passages. At each place, the divergence of the two lists (`overlap`) is never larger than the true one,
so it accuses no sound server. Places of one passage are not independent, so the statistics treat each passage as one
cluster.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.generation import fingerprint
from harness.probes.asking import Refused, first_top, is_echo
from harness.probes.findings import Check, Lost, Outcome, Seen, sound, spoils, untested, warns
from harness.probes.named_reference import Likely, Reference, beginnings_of, first_token, next_tokens
from harness.probes.overlap import COVERED, covered, divergence
from harness.probes.passages import PASSAGES, PLACES, texts
from harness.probes.subject import Subject, listed
from harness.scoring.stats import t_factor

SLIGHT, GRAVE = 0.0005, 0.004
"""Divergences in nats a token that count as slight and as grave.

For Watt-Tool 8B the divergence from the unquantised weights is 0.0047 at 5 bits (Q5_K_M) and 0.051 at 3 bits (Q3_K_M),
measured by llama.cpp's own tool: scores in huggingface.co/eaddario/Watt-Tool-8B-GGUF.
"""

MAX_FLIP = 0.5
"""Nats by which the reference may prefer its likeliest token to the server's; rounding swaps tokens within 0.1."""

MIN_FLIPS = 3
"""With at least this many places beyond `MAX_FLIP`, a server is accused of other weights, even if its mean divergence
is small: equal weights have no such place.
"""

FAR, MIN_FAR = 0.1, 4
"""A server is accused if at least `MIN_FAR` places diverge by more than `FAR` nats, which rounding alone makes at none.

The mean alone might not accuse it: these places raise the mean to `GRAVE`, but its interval may still reach 0 if they
lie in few passages.
"""

MAX_ODD_SAME = 1
"""A server is accused if at most this many of its eight greedy replies begin as the reference's do.

Batching and other kernels do not explain so many differences: if each reply differed with a chance of 30 %, seven of
eight would differ once in 800 probes.
"""


@dataclass(frozen=True)
class TokenComparison:
    """The server's and the reference's distribution of the next token at one place. divergence: of the server from the
    reference, in nats. same: whether both have the same likeliest token. flip: by how many nats the reference prefers
    its likeliest token to the server's; 0 where they are the same. covered: the fraction of the reference's listed
    probability that the server's list covers; below `COVERED` the divergence is a lower bound.
    """

    passage: int
    divergence: float
    same: bool
    flip: float
    covered: float


def compared(passage: int, server: Likely, reference: Likely) -> TokenComparison:
    """The comparison at one place of this passage, from the log-probabilities that both list."""
    # Some servers give all unlikely tokens one and the same lowest log-probability. These tokens are left out, unless
    # no other tokens are listed.
    server, reference = listed(server) or server, listed(reference) or reference
    ours, theirs = (max(likely, key=likely.__getitem__) for likely in (server, reference))
    return TokenComparison(
        passage=passage,
        divergence=divergence(server, reference),
        same=ours == theirs,
        # A token that the reference does not list is less likely than the least likely token that it lists.
        flip=reference[theirs] - reference.get(ours, min(reference.values())),
        covered=covered(server, reference),
    )


def interval(values: list[tuple[int, float]]) -> tuple[float, float, float]:
    """Return the mean over the clusters and the two ends of its 95 % interval, by Student's t over the clusters' means.

    values: (cluster, value) pairs. With a single cluster the interval is infinite.
    """
    by_cluster: dict[int, list[float]] = {}
    for cluster, value in values:
        by_cluster.setdefault(cluster, []).append(value)
    means = [statistics.fmean(of_cluster) for of_cluster in by_cluster.values()]
    centre = statistics.fmean(means)
    if len(means) < 2:
        return centre, -math.inf, math.inf
    half = t_factor(len(means) - 1) * statistics.stdev(means) / math.sqrt(len(means))
    return centre, centre - half, centre + half


def weighed(comparisons: Sequence[TokenComparison], named: str) -> tuple[Outcome, str]:
    """Decide from all places whether the server has the reference's weights: the outcome, and a sentence that gives the
    divergences. named: the reference's name in the sentence.
    """
    mean, low, high = interval([(token.passage, token.divergence) for token in comparisons])
    n_bounds = sum(token.covered < COVERED for token in comparisons)
    at_least = "at least " if n_bounds else ""
    sentence = f"divergence from {named} {at_least}{mean:.4f} nats a token ({low:.4f} to {high:.4f})"
    if n_bounds:
        sentence += (
            f"; in {n_bounds} of {len(comparisons)} places the server lists less than {COVERED:.0%} of the probability "
            f"that the reference lists, so the divergence is only bounded there"
        )
    # A few places with very different distributions decide before the mean, which many equal places may keep small.
    n_flips = sum(token.flip > MAX_FLIP for token in comparisons)
    n_far = sum(token.divergence > FAR for token in comparisons)
    if n_flips >= MIN_FLIPS or n_far >= MIN_FAR:
        worst = max(token.divergence for token in comparisons)
        odd_places = f"{n_far} of {len(comparisons)} places the distributions are more than {FAR:g} nats apart"
        if n_flips >= MIN_FLIPS:
            odd_places = (
                f"{n_flips} of {len(comparisons)} places the likeliest token is one that the reference finds "
                f"{MAX_FLIP:g} nats less likely than its own"
            )
        return "spoils", (
            f"{sentence}; in {odd_places} (the largest divergence of a place: {at_least}{worst:.2f} nats): other "
            "weights there, or several models"
        )
    if low <= SLIGHT:
        return "sound", sentence
    explained = "rounding in two engines, or 8-bit weights, explain as much"
    return ("spoils", sentence) if low > GRAVE else ("warns", f"{sentence}: {explained}")


def places(subject: Subject, reference: Reference) -> tuple[list[TokenComparison], Lost]:
    """Compare the server's next-token log-probabilities with the reference's, at each place of `texts`. Return the
    comparisons, and the places at which one side gives none.

    Raises `Refused` if there is no place at which both sides give some.
    """
    where = texts()
    seeds = subject.new_seeds(len(where))
    # Each server is asked once, and so may refuse, before a hundred requests are spent on the other server: first the
    # probed server once, then the reference once and for all places, then the probed server for all other places.
    first = first_token(subject.server, seeds)
    theirs = reference.likely()
    ours = next_tokens(subject.server, seeds, first)
    comparisons = [
        compared(passage, server, likely)
        for (passage, _), answer, likely in zip(where, ours, theirs, strict=True)
        if (server := first_top(answer)) and likely
    ]
    if not comparisons:
        raise Refused(status=0, words="no place of the texts has log-probabilities of both", by="the two models")
    refused = [answer.sentence for answer in ours if isinstance(answer, Refused)]
    why = refused[0] if refused else "no log-probabilities of both models"
    return comparisons, Lost(n=len(where) - len(comparisons), of=len(where), why=why)


WEIGHTS, GREEDY_REPLIES = "weights", "greedy replies"
NAMES = ("reference", WEIGHTS, GREEDY_REPLIES)
"""The group of the checks that need a reference, and their names."""

WHY = "A quantised copy, another checkpoint or a broken kernel under the same name gives other scores."
MEND = "Compare quantisation, checkpoint and engine of both; where a copy is quantised, say so beside the score."


def against(reference: Reference) -> tuple[Check, ...]:
    """The checks of weights: next-token distributions and greedy replies."""

    def weights(subject: Subject) -> Seen:
        """Check that both servers run the same weights, by the probabilities of the next token at many places."""
        sent = f"{len(PASSAGES)} passages, the next token at {PLACES} places of each, by both models"
        try:
            comparisons, lost = places(subject, reference)
        except Refused as refused:
            return untested(sent, refused.whose)
        outcome, sentence = weighed(comparisons, reference.named)
        n_same = sum(token.same for token in comparisons)
        came = f"{sentence}; likeliest token the same in {n_same} of {len(comparisons)} places"
        return Seen(outcome=outcome, sent=sent, came=came, lost=lost)

    def greedy_replies(subject: Subject) -> Seen:
        """Check that the greedy replies, which depend on template and weights, begin as the reference's do."""
        sent = f"{len(fingerprint.PROMPTS)} prompts, the first {fingerprint.TOKENS} tokens of the greedy reply, by both"
        try:
            theirs, ours = reference.beginnings(), beginnings_of(subject.server)
        except Refused as refused:
            return untested(sent, refused.whose)
        n_same = fingerprint.same(theirs, ours)
        came = f"{n_same} of {len(theirs)} replies begin as those of {reference.named}"
        if n_same >= fingerprint.MIN_SAME:
            return sound(sent, came)
        # Before a difference is called one of weights, both sides must be shown to repeat themselves.
        for whose, before, ask_again in (
            (f"the reference {reference.named}", theirs, reference.beginnings),
            ("the probed server", ours, lambda: beginnings_of(subject.server)),
        ):
            try:
                why = _incomparable(before, ask_again)
            except Refused as refused:
                why = refused.whose
            if why:
                return untested(sent, f"{whose} {why}, so nothing is known of the weights; {came}")
        return spoils(sent, came) if n_same <= MAX_ODD_SAME else warns(sent, came)

    return (
        Check(name=WEIGHTS, group="reference", look=weights, why=WHY, mend=MEND, quick=False, tokens=1_600),
        Check(
            name=GREEDY_REPLIES, group="reference", look=greedy_replies, quick=False, tokens=600,
            why="Other weights, another chat template, or sampling at temperature 0 gives other scores.",
            mend="Compare the chat template, then what a gateway does to the prompts, then weights and engine.",
        ),
    )  # fmt: skip


def _incomparable(begun: Sequence[str], ask_again: Callable[[], Sequence[str]]) -> str:
    """Why the beginnings of greedy replies of one side cannot be compared, with the side as the subject; empty if they
    can: they have text, are not the prompts, and come again when they are asked for again.
    """
    n_blank = sum(not text.strip() for text in begun)
    if 2 * n_blank > len(begun):
        return f"sent no text in {n_blank} of {len(begun)} replies"
    n_echoes = sum(is_echo(text, prompt) for text, prompt in zip(begun, fingerprint.PROMPTS, strict=True))
    if 2 * n_echoes > len(begun):
        return f"sent the prompt itself as the reply in {n_echoes} of {len(begun)} cases"
    n_same = fingerprint.same(begun, ask_again())
    if n_same < fingerprint.MIN_SAME:
        return f"repeats {n_same} of {len(begun)} greedy replies when asked again: it may sample at temperature 0"
    return ""
