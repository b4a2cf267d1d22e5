"""Checks that a server has the weights of a reference.

Three checks compare the server with the reference (another server, a saved reference, or a model computed on this
machine): their next-token distributions, the server's own draws against the reference's distribution, and the
beginnings of greedy replies. The first two checks send plain text to the completions API, so templates play no part.
They compare the next token at fixed places in fixed passages. At each place, the divergence of the two lists
(`overlap`) is never larger than the true one, so it accuses no sound server. Places of one passage are not independent,
so the statistics treat each passage as one cluster.

Two engines that compute in 16 bits differ by rounding; in one model this difference is larger than the effect of 8-bit
weights. So a reference model on this machine is computed in 32 bits, and once more in its own 16 bits: the difference
between these two is the yardstick for the server, place by place.

Long: the texts, the statistics on them and the three checks that use both are read together.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.client.asker import Asker
from harness.client.spelling import TEMPLATE_TOKENS, RequestTemplate
from harness.core import codec
from harness.core.choices import Api
from harness.core.codec import digest
from harness.core.errors import ServerError, option
from harness.generation import fingerprint
from harness.scoring.intervals import t_factor
from harness.verbs.probe import exact
from harness.verbs.probe.asking import COMPLETIONS, Choice, Inquiry, ProbedServer, ProbeReply, Refused, first_top
from harness.verbs.probe.findings import Check, Finding, Outcome, Seen, sound, untested
from harness.verbs.probe.overlap import COVERED, coarse, covered, divergence
from harness.verbs.probe.subject import Lost, Subject, drawn, is_echo, listed, logprob_fields

PASSAGES: tuple[str, ...] = (
    "The old bridge was closed because the river had risen overnight, and nobody in the village could reach "
    "the market before the water fell again in the afternoon",
    "A prime number has exactly two divisors, one and itself, which is why the number one is not counted among "
    "them by anybody who studies arithmetic today",
    "In the winter of that year the printer moved his shop to the other side of the street, where the rent was "
    "lower and the windows let in more light",
    "To make bread you need flour, water, salt and time; the dough rests for an hour under a cloth, and is "
    "folded twice before it goes into the oven",
    "The function reads the file line by line, splits each line at the comma and returns a list of numbers, or "
    "raises an error when a field is empty",
    "When light passes from air into glass it slows down and bends towards the normal, by an angle that "
    "depends on its colour, so that a prism spreads it",
    "The court found that the contract had never been signed by both parties, and that the goods had to be "
    "returned within thirty days of the decision",
    "She walked along the beach every morning, collecting shells that she later arranged by size on the shelf "
    "above the small table in her kitchen",
    "The train to the capital leaves at seven in the morning from platform four, stops at every station, and "
    "arrives a little after noon if the weather is good",
    "Vaccines train the immune system to recognise a virus before it meets one, by showing it a harmless part "
    "of the virus or the instructions to make such a part",
    "The orchestra had rehearsed the second movement for three weeks, but on the evening of the concert the "
    "conductor decided to play it much slower than before",
    "Prices rose by four percent over the year, mostly because of energy and rent, while wages in the public "
    "sector stayed where they had been since the last agreement",
    "If a triangle has sides of three, four and five units, the angle between the two shorter sides is a right "
    "angle, as the theorem of Pythagoras says",
    "The keeper of the lighthouse wrote down the name of every ship that passed, the hour at which it came and "
    "the wind that carried it towards the harbour",
    "Our team lost the first half by two goals, changed the formation during the break, and scored three times "
    "in the last twenty minutes of the match",
    "The moon turns once around its axis in the time in which it travels once around the earth, and therefore "
    "always shows us the same side of its face",
)

PLACES = 6
"""Number of places of each passage at which the next token is compared."""

FIRST_WORD, STEP = 6, 3
"""The first place of a passage is behind this many words; each further place is this many words later."""

SLIGHT, GRAVE = 0.0005, 0.004
"""Divergences in nats a token that count as slight and as grave.

For Watt-Tool 8B the divergence from the unquantised weights is 0.0047 at 5 bits (Q5_K_M) and 0.051 at 3 bits (Q3_K_M),
measured by llama.cpp's own tool: scores in huggingface.co/eaddario/Watt-Tool-8B-GGUF.
"""

MORE = 1.25
"""A server with the same weights in 16 bits diverges by at most this multiple of what rounding does to the reference's
model. Measured ratios are in docs/probe.md.
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

NEGLIGIBLE_NATS = 1e-7
"""Divergence in nats that is added to both sides of a ratio, so that two tiny ones compare as equal."""

MAX_ODD_SAME = 1
"""A server is accused if at most this many of its eight greedy replies begin as the reference's do.

Batching and other kernels do not explain so many differences: if each reply differed with a chance of 30 %, seven of
eight would differ once in 800 probes.
"""

NO_SUCH_PAGE = (404, 405, 501)
"""Statuses of a server that has no page for raw text."""

NEEDS_RAW_TEXT = (
    "this check sends raw text to POST /v1/completions and reads log-probabilities, which a server for chats only "
    "lacks; `greedy replies` and the checks of tools need only chat"
)

Likely = Mapping[str, float]
"""The likeliest tokens at a place → natural logarithms of their probabilities; empty where the server hides them."""


def texts() -> list[tuple[int, str]]:
    """(number of the passage, text before the place) of each place at which the next token is compared."""
    lengths = range(FIRST_WORD, FIRST_WORD + STEP * PLACES, STEP)
    split = [(i, passage.split()) for i, passage in enumerate(PASSAGES)]
    return [(i, " ".join(words[:n_words])) for i, words in split for n_words in lengths]


VERSION = digest([texts(), fingerprint.version({})])[:12]
"""Version of the texts; references of another version are not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpelling:
    """How a run wrote the requests of its fingerprint, beyond what the provider and engine of the server require.

    neutral: sampling values that the run sent so that the server's own defaults did not count.
    """

    api: Api = "chat"
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    prefill: Mapping[str, Any] | None = None
    neutral: Mapping[str, Any] = field(default_factory=dict)

    def template(self, asker: Asker) -> RequestTemplate:
        """The template of the run's fingerprint requests, written for the server that `asker` asks.

        Neutral values are sent only if the run sent some, so that both fingerprints are made alike.
        """
        spelling = replace(
            asker.spelling,
            api=self.api,
            max_tokens_field=asker.spelling.max_tokens_field if self.api == "chat" else "max_tokens",
            prefill=self.prefill,
            chat_template_kwargs=self.chat_template_kwargs,
            extra_body=self.extra_body,
        )
        own = replace(asker, spelling=spelling)
        neutral: Mapping[str, Any] = {}
        if self.neutral:
            neutral = fingerprint.neutral_values(own) or self.neutral
        return _whole(fingerprint.template(own, neutral))


def _plain(asker: Asker) -> RequestTemplate:
    """The template of a fingerprint's requests without any option of a run."""
    return _whole(fingerprint.template(asker, fingerprint.neutral_values(asker)))


def _whole(template: RequestTemplate) -> RequestTemplate:
    """The template for replies in one piece, without token ids."""
    return replace(template, spelling=replace(template.spelling, stream=False, token_ids=False))


class Begun(Protocol):
    """A reference whose greedy replies can be compared. named: its name in a report."""

    @property
    def named(self) -> str: ...

    def beginnings(self) -> Sequence[str]:
        """The beginnings of the greedy replies to the prompts of `fingerprint`. Raises `Refused`."""
        ...


class ProbeReference(Begun, Protocol):
    """A reference whose next-token distributions can be compared, too. n_tokens: tokens asked of it so far."""

    @property
    def model(self) -> str: ...

    @property
    def engine(self) -> str | None: ...

    @property
    def n_tokens(self) -> int: ...

    def likely(self) -> Sequence[Likely]:
        """The likeliest tokens at each place of `texts`.

        Raises `Refused` where the reference gives no log-probabilities.
        """
        ...

    def rounding(self) -> Sequence[float]:
        """How far the model diverges from itself when computed in 16 bits, in nats, at each place of `texts`.

        Empty if unknown. Raises `Refused`.
        """
        ...


@dataclass
class ServerReference:
    """A `ProbeReference` that asks a server."""

    server: ProbedServer
    named: str

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.server.asker.model

    @property
    def engine(self) -> str | None:
        """The engine that serves the model; None if unknown."""
        return self.server.engine

    @property
    def n_tokens(self) -> int:
        """Tokens asked of the server so far."""
        return self.server.n_tokens

    def likely(self) -> Sequence[Likely]:
        """The likeliest tokens at each place of `texts`."""
        with self._named():
            seed = len(texts())
            return [first_top(answer) for answer in _next_tokens(self.server, seed, _first_token(self.server, seed))]

    def rounding(self) -> Sequence[float]:
        """Empty: a server computes in one type, so its rounding is unknown."""
        return ()

    def beginnings(self) -> Sequence[str]:
        """The beginnings of the greedy replies to the prompts of `fingerprint`."""
        with self._named():
            return _beginnings(_greedy(self.server, _plain))

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Turn each failure of the reference server into a `Refused` that names the reference, since the probed server
        may be sound.
        """
        by = f"the reference {self.named}"
        try:
            yield
        except Refused as refused:
            raise Refused(refused.status, refused.words, by) from refused
        except ServerError as error:
            raise Refused(0, error.sentence.marked, by) from error


@dataclass(frozen=True)
class TokenComparison:
    """The server's and the reference's distribution of the next token at one place. divergence: of the server from the
    reference, in nats. ratio: logarithm of the server's probability of its own draw over the reference's. surprise:
    minus the logarithm of the reference's probability of that draw; expected and variance: of the surprise, if the draw
    were the reference's. same: whether both have the same likeliest token. rounding: divergence of the reference's own
    model in 16 bits, if known. flip: by how many nats the reference prefers its likeliest token to the server's; 0
    where they are the same. events: the reference's probabilities of the tokens that both list, and of the rest.
    covered: the fraction of the reference's listed probability that the server's list covers; below `COVERED` the
    divergence is a lower bound.
    """

    passage: int
    divergence: float
    ratio: float
    surprise: float
    expected: float
    variance: float
    same: bool
    rounding: float | None = None
    flip: float = 0.0
    events: tuple[float, ...] = ()
    covered: float = 1.0


def compared(
    passage: int, token: str, server: Likely, reference: Likely, rounding: float | None = None
) -> TokenComparison:
    """The comparison at one place, from the log-probabilities that both list and the token that the server drew.

    passage: its number. rounding: divergence of the reference's model in 16 bits here, in nats; None if unknown.
    """
    # Some servers give all unlikely tokens one and the same lowest log-probability. These tokens are left out, unless
    # no other tokens are listed.
    server, reference = listed(server) or server, listed(reference) or reference
    events = [name for name in server if name in reference]
    p, q = coarse(events, server), coarse(events, reference)
    drawn_event = events.index(token) if token in events else len(events)
    logs = [math.log(probability) for probability in q]
    ours, theirs = (max(likely, key=likely.__getitem__) for likely in (server, reference))
    expected = -sum(probability * log for probability, log in zip(q, logs, strict=True))
    return TokenComparison(
        passage=passage,
        divergence=divergence(server, reference),
        ratio=math.log(p[drawn_event] / q[drawn_event]),
        surprise=-logs[drawn_event],
        expected=expected,
        variance=sum(probability * log * log for probability, log in zip(q, logs, strict=True)) - expected**2,
        same=ours == theirs,
        rounding=rounding,
        # A token that the reference does not list is less likely than the least likely token that it lists.
        flip=reference[theirs] - reference.get(ours, min(reference.values())),
        events=tuple(q),
        covered=covered(server, reference),
    )


def sharing_little(comparisons: Sequence[TokenComparison]) -> int:
    """The number of places at which the lists of both share so little that the divergence is a lower bound only."""
    return sum(token.covered < COVERED for token in comparisons)


def interval(values: list[tuple[int, float]]) -> tuple[float, float, float]:
    """Return the mean over the clusters and the two ends of its 95 % interval, by Student's t over the clusters' means.

    values: (cluster, value) pairs. With a single cluster the interval is infinite.
    """
    by: dict[int, list[float]] = {}
    for cluster, value in values:
        by.setdefault(cluster, []).append(value)
    means = [statistics.fmean(values) for values in by.values()]
    centre = statistics.fmean(means)
    if len(means) < 2:
        return centre, -math.inf, math.inf
    half = t_factor(len(means) - 1) * statistics.stdev(means) / math.sqrt(len(means))
    return centre, centre - half, centre + half


def times_rounding(comparisons: Sequence[TokenComparison]) -> tuple[float, float, float] | None:
    """The server's divergence as a multiple of what rounding does to the reference's model, with a 95 % interval.

    None if rounding is unknown. The multiple is a geometric mean over the places, so that a few large divergences do
    not dominate it. A place at which rounding matters much raises both divergences, so their ratio stays fair.
    """
    ratios = [
        (token.passage, math.log((token.divergence + NEGLIGIBLE_NATS) / (token.rounding + NEGLIGIBLE_NATS)))
        for token in comparisons
        if token.rounding is not None
    ]
    if not ratios:
        return None
    mean, low, high = map(math.exp, interval(ratios))
    return mean, low, high


def weighed(comparisons: Sequence[TokenComparison], named: str) -> tuple[Outcome, str]:
    """Decide from all places whether the server has the reference's weights: the outcome, and a sentence that gives the
    divergences. named: the reference's name in the sentence.
    """
    mean, low, high = interval([(token.passage, token.divergence) for token in comparisons])
    n_bounds = sharing_little(comparisons)
    at_least = "at least " if n_bounds else ""
    sentence = f"divergence from {named} {at_least}{mean:.4f} nats a token ({low:.4f} to {high:.4f})"
    if n_bounds:
        sentence += (
            f"; in {n_bounds} of {len(comparisons)} places the server lists less than {COVERED:.0%} of the probability "
            f"that the reference lists, so the divergence is only bounded there"
        )
    times = times_rounding(comparisons)
    if times is None:
        odd = low > SLIGHT
        why = "rounding in two engines, or 8-bit weights, explain as much"
    else:
        ratio, ratio_low, ratio_high = times
        sentence += f", {ratio:.2f} times what rounding does to this model ({ratio_low:.2f} to {ratio_high:.2f})"
        odd = ratio_low > MORE
        why = "more than rounding does to this model: 8-bit weights, or another copy of the model"
    # A few places with very different distributions decide before the mean, which many equal places may keep small.
    n_flips = sum(token.flip > MAX_FLIP for token in comparisons)
    n_far = sum(token.divergence > FAR for token in comparisons)
    if n_flips >= MIN_FLIPS or n_far >= MIN_FAR:
        worst = max(token.divergence for token in comparisons)
        which = (
            f"{n_flips} of {len(comparisons)} places the likeliest token is one that the reference finds {MAX_FLIP:g} "
            f"nats less likely than its own"
            if n_flips >= MIN_FLIPS
            else f"{n_far} of {len(comparisons)} places the distributions are more than {FAR:g} nats apart"
        )
        return "spoils", (
            f"{sentence}; in {which} (the largest divergence of a place: {at_least}{worst:.2f} nats): other weights "
            "there, or several models"
        )
    if not odd:
        return "sound", sentence
    return ("spoils", sentence) if low > GRAVE else ("warns", f"{sentence}: {why}")


def surprise_p(comparisons: Sequence[TokenComparison], seed: int) -> float:
    """Return the two-sided p-value of the hypothesis that the server's tokens come from the reference's distributions.

    The statistic is the sum of the tokens' surprises, −log of their probability by the reference. It is compared with
    sums of simulated tokens, since a few very unlikely tokens make it far from normal. seed: of the simulation.
    """
    rng = np.random.default_rng(seed)

    def simulate(m: int) -> NDArray[np.float64]:
        sums = np.zeros(m)
        for token in comparisons:
            q = np.array(token.events)
            sums += -np.log(q)[rng.choice(len(q), m, p=q / q.sum())]
        return sums

    return exact.two_sided(sum(token.surprise for token in comparisons), simulate)


@dataclass(frozen=True)
class ComparedPlaces:
    """The comparisons at the places of `texts`, without those that are `lost`: one side gave no log-probabilities."""

    comparisons: list[TokenComparison]
    lost: Lost


def places(subject: Subject, reference: ProbeReference) -> ComparedPlaces:
    """Compare the server's next-token log-probabilities with the reference's, at each place of `texts`.

    Raises `Refused` if there is no place at which both sides give some.
    """
    where = texts()
    # `_next_tokens` counts down from this seed, so each request has a seed that no check has used.
    subject.seed += len(where)
    # A single request to each server shows a refusal before a hundred are spent on the other server.
    first = _first_token(subject.server, subject.seed)
    theirs = reference.likely()
    ours = _next_tokens(subject.server, subject.seed, first)
    rounding: Sequence[float | None] = reference.rounding() or [None] * len(where)
    comparisons = []
    for (passage, _), answer, reference_likely, by_rounding in zip(where, ours, theirs, rounding, strict=True):
        if (server := first_top(answer)) and reference_likely:
            assert isinstance(answer, ProbeReply)
            comparisons.append(compared(passage, drawn(answer.first), server, reference_likely, by_rounding))
    if not comparisons:
        raise Refused(0, "no place of the texts has log-probabilities of both", "the two models")
    refused = [answer.sentence for answer in ours if isinstance(answer, Refused)]
    why = refused[0] if refused else "no log-probabilities of both models"
    return ComparedPlaces(comparisons, Lost(n=len(where) - len(comparisons), of=len(where), why=why))


def _first_token(server: ProbedServer, seed: int) -> ProbeReply | Refused:
    """The server's answer for the first of the fixed texts. Raises `Refused` if the server takes no raw text, so that
    it would refuse all further requests, too.
    """
    (answer,) = server.many(_next_token_bodies(server, seed)[:1], COMPLETIONS)
    if isinstance(answer, Refused) and answer.status in NO_SUCH_PAGE:
        raise Refused(answer.status, f"{answer.words or 'no explanation'}; {NEEDS_RAW_TEXT}")
    return answer


def _next_tokens(server: ProbedServer, seed: int, first: ProbeReply | Refused) -> list[ProbeReply | Refused]:
    """Return the server's answers for one next token after each of the fixed texts. first: its answer for the first.

    Raises `Refused` if no reply has log-probabilities.
    """
    answers = [first, *server.many(_next_token_bodies(server, seed)[1:], COMPLETIONS)]
    if not any(map(first_top, answers)):
        raise next((answer for answer in answers if isinstance(answer, Refused)), None) or Refused(
            0, "no log-probabilities came"
        )
    return answers


def _next_token_bodies(server: ProbedServer, seed: int) -> list[Mapping[str, Any]]:
    """The requests for one next token after each of the fixed texts. seed: of the first request; each further request
    has the seed before it.
    """
    common = {"max_tokens": 1, "temperature": 1.0, "top_p": 1.0, **logprob_fields(COMPLETIONS)}
    inquiries = [Inquiry(text, {"seed": seed - n, **common}, COMPLETIONS) for n, (_, text) in enumerate(texts())]
    return [inquiry.body(server.asker) for inquiry in inquiries]


def _greedy(server: ProbedServer, template_of: Callable[[Asker], RequestTemplate]) -> list[Choice]:
    """Greedy replies to the prompts of a run's fingerprint, with log-probabilities if the server gives them.

    Raises `Refused` where a request fails.
    """
    template = template_of(server.asker)
    bodies: list[dict[str, Any]] = [codec.decode(content) for content in fingerprint.bodies(template)]
    answers = server.many([{**body, **logprob_fields(template.path)} for body in bodies], template.path)
    if any(isinstance(answer, Refused) for answer in answers):
        answers = server.many(bodies, template.path)
    choices = []
    for answer in answers:
        if isinstance(answer, Refused):
            raise answer
        choices.append(answer.first)
    return choices


def _beginnings(choices: Sequence[Choice]) -> list[str]:
    """The beginnings of these replies, as a fingerprint stores them."""
    return [choice.whole[: fingerprint.MAX_CHARS] for choice in choices]


WEIGHTS, DRAWS, GREEDY_REPLIES = "weights", "draws", "greedy replies"
NAMES = ("reference", WEIGHTS, DRAWS, GREEDY_REPLIES)
"""The group of the checks that need a reference, and their names."""

WHY = "A quantised copy, another checkpoint or a broken kernel under the same name gives other scores."
MEND_CUT = (
    "Replies that begin alike and end early show no other weights or template, but a hidden limit: "
    f"{option('checks', ['length', 'ends'])} shows it, with the server whose replies are shorter as the probed one."
)
MEND_GREEDY = "Compare the chat template (reference: the model's folder), then weights and engine."
WHY_NOT_WEIGHTS = (
    "The weights are the same, and rounding seldom parts so many replies of the same weights, so that a prompt that is "
    "cut or changed on its way, or another chat template, is likely."
)
MEND_PROMPT = "Compare the chat template (reference: the model's folder), then what a gateway does to the prompts."
MEND = "Compare quantisation, checkpoint and engine of both; where a copy is quantised, say so beside the score."


def against(reference: ProbeReference) -> tuple[Check, ...]:
    """The three checks of weights: next-token distributions, the server's own draws, and its greedy replies."""
    # Holds the comparisons once they are made, or why they cannot be made.
    looked: list[ComparedPlaces | Refused] = []

    def seen(subject: Subject) -> list[TokenComparison]:
        """The comparisons at all places; the servers are asked once, for both checks. Raises `Refused`."""
        if not looked:
            try:
                looked.append(places(subject, reference))
            except Refused as refused:
                looked.append(refused)
        if isinstance(looked[0], Refused):
            raise looked[0]
        subject.lost = looked[0].lost
        return looked[0].comparisons

    passages = f"{len(PASSAGES)} passages, the next token at {PLACES} places of each, by both models"

    def weights(subject: Subject) -> Seen:
        """Check that both servers run the same weights, by the probabilities of the next token at many places."""
        before, before_there = subject.server.n_tokens, reference.n_tokens
        sent = passages + subject.off_road(COMPLETIONS)
        try:
            comparisons = seen(subject)
        except Refused as refused:
            return untested(sent, refused.whose)
        there = f" here, {reference.n_tokens - before_there:,} on the reference" if reference.n_tokens else ""
        outcome, sentence = weighed(comparisons, reference.named)
        n_same = sum(token.same for token in comparisons)
        came = f"{sentence}; likeliest token the same in {n_same} of {len(comparisons)} places"
        if not _draws_hidden(comparisons):
            ratio, low, high = interval([(token.passage, token.ratio) for token in comparisons])
            came += f"; mean log-ratio of its own draws {ratio:+.4f} ({low:+.4f} to {high:+.4f})"
        came += f"; {subject.server.n_tokens - before:,} tokens{there}"
        return Seen(outcome=outcome, sent=sent, came=came)

    def draws(subject: Subject) -> Seen:
        """Test whether the server's own draws could come from the reference's distribution."""
        sent = passages + subject.off_road(COMPLETIONS)
        try:
            comparisons = seen(subject)
        except Refused as refused:
            return untested(sent, refused.whose)
        if hidden := _draws_hidden(comparisons):
            return untested(sent, hidden)
        deviation = math.sqrt(sum(token.variance for token in comparisons))
        if deviation == 0:
            return untested(sent, "the reference is certain of every token, so the draws test nothing")
        z = sum(token.surprise - token.expected for token in comparisons) / deviation
        p = surprise_p(comparisons, subject.seed)
        return Seen(
            outcome="spoils",
            sent=sent,
            came=f"the reference finds the server's draws {z:+.1f} standard deviations more surprising than its own",
            p=p,
        )

    return (
        Check(
            name=WEIGHTS, group="reference", look=weights, why=WHY, mend=MEND, quick=False,
            tokens=1_600, unstated=_most_tokens(),
        ),
        Check(
            name=DRAWS, group="reference", look=draws, why=WHY, mend=MEND, quick=False,
            tokens=1_600, unstated=_most_tokens(), rereads=WEIGHTS,
        ),
        begun_alike(reference),
    )  # fmt: skip


def _most_tokens() -> int:
    """The most tokens that one next token after each of the fixed texts can cost: as a probe reserves them."""
    return sum(len(codec.encode(text)) + TEMPLATE_TOKENS + 1 for _, text in texts())


def _draws_hidden(comparisons: Sequence[TokenComparison]) -> str:
    """Why the server's draws show nothing: at half of the places or more the reference's probability of most of them is
    unknown. Empty if they do.
    """
    n = sharing_little(comparisons)
    if 2 * n < len(comparisons):
        return ""
    return (
        f"in {n} of {len(comparisons)} places the likeliest tokens of both share less than {COVERED:.0%} of the "
        f"probability that the reference lists, so it is unknown how probable the reference finds the server's draws; "
        f"`{WEIGHTS}` compares the distributions"
    )


def begun_alike(reference: Begun, as_run: RunSpelling | None = None) -> Check:
    """The check that greedy replies, which depend on template and weights, begin as the reference's do.

    as_run: how the requests behind the reference were written, if the reference is a run.
    """
    kind = "chat" if as_run is None or as_run.api == "chat" else "raw"
    template_of = _plain if as_run is None else as_run.template
    sent = (
        f"{len(fingerprint.PROMPTS)} {kind} prompts, the first {fingerprint.TOKENS} tokens of the greedy reply, from "
        f"both"
    )

    def look(subject: Subject) -> Seen:
        """Check that the greedy replies begin as the reference's do."""
        try:
            theirs, ours = reference.beginnings(), _greedy(subject.server, template_of)
        except Refused as refused:
            return untested(sent, refused.whose)
        begun = _beginnings(ours)
        n_same = fingerprint.same(theirs, begun)
        counts = [_agreeing(our, their) for our, their in zip(ours, theirs, strict=True)]
        n_agreed, n_tokens = sum(agreed for agreed, _ in counts), sum(n for _, n in counts)
        share = f", {n_agreed} of {n_tokens} tokens before the first difference" if n_tokens else ""
        came = f"{n_same} of {len(theirs)} replies begin as those of {reference.named}{share}"
        shorter = {"the server": _cut_short(begun, theirs), "the reference": _cut_short(theirs, begun)}
        came += "".join(f"; {n} more of {whose} begin alike and end early" for whose, n in shorter.items() if n)
        alike = n_same + sum(shorter.values()) >= fingerprint.MIN_SAME
        if n_same >= fingerprint.MIN_SAME:
            return sound(sent, came)

        def ours_again() -> list[str]:
            """The beginnings of the server's replies once more; the subject notes whether they repeat."""
            again = _beginnings(_greedy(subject.server, template_of))
            subject.unrepeated |= fingerprint.same(begun, again) < fingerprint.MIN_SAME
            return again

        # Before a difference is called one of weights, both sides must be shown to repeat themselves.
        for whose, before, ask_again in (
            (f"the reference {reference.named}", theirs, reference.beginnings),
            ("the probed server", begun, ours_again),
        ):
            try:
                why = _incomparable(before, ask_again)
            except Refused as refused:
                why = refused.whose
            if why:
                return untested(sent, f"{whose} {why}, so nothing is known of the weights; {came}")
        came += subject.unlike and f"; {subject.unlike}"
        outcome: Outcome = "spoils" if n_same <= MAX_ODD_SAME else "warns"
        return Seen(outcome=outcome, sent=sent, came=came, mend=MEND_CUT if alike else "")

    return Check(
        name=GREEDY_REPLIES, group="reference", look=look, quick=False, tokens=600,
        why="Other weights, another chat template, or sampling where temperature 0 is asked for gives other scores.",
        mend=MEND_GREEDY,
    )  # fmt: skip


def beside_equal_weights(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; if `weights` is sound, the reason and the advice of `greedy replies` that differ leave out other
    weights. The advice about a cut stays.
    """
    equal = any(finding.check == WEIGHTS and finding.outcome == "sound" for finding in findings)
    return [
        msgspec.structs.replace(finding, why=WHY_NOT_WEIGHTS, mend=MEND_PROMPT)
        if equal
        and finding.check == GREEDY_REPLIES
        and finding.outcome in ("spoils", "warns")
        and finding.mend == MEND_GREEDY
        else finding
        for finding in findings
    ]


def _cut_short(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """How many of our replies have a text and are the beginning of a longer one of theirs."""
    return sum(
        bool(our.strip()) and our != their and their.startswith(our) for our, their in zip(ours, theirs, strict=True)
    )


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


def _agreeing(ours: Choice, theirs: str) -> tuple[int, int]:
    """Return how many tokens of our reply agree with theirs from its beginning, and how many tokens our reply has.

    The tokens of our reply are known from its log-probabilities; without them the result is (0, 0).
    """
    if ours.whole == theirs:
        return len(ours.tokens), len(ours.tokens)
    text, agreed = "", 0
    for token in ours.tokens:
        # A special token, such as the end of the reasoning, is no part of the text; those after it go on from there.
        if ours.whole.startswith(text + token.token):
            text += token.token
            agreed += theirs.startswith(text)
    return agreed, len(ours.tokens)
