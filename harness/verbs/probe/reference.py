"""Are these the weights of the reference: next-token distributions of both, the server's own draws under the
reference's, and the beginnings of greedy replies.

Plain text goes to the completions API of both, so that templates play no part. In each place both distributions are
coarsened to the tokens that both list and one event for the rest; a Kullback-Leibler divergence of coarsened
distributions is never larger than the true one, so it accuses nobody wrongly. Places of one passage are one cluster.

Two engines that compute in 16 bits differ by rounding, in one model by more than 8 bits a weight do in another. So
where the reference is a model of this machine, it is computed in 32 bits, and once more in its own 16: what these two
differ by is the yardstick for the server, place by place.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness.client.asker import Asker
from harness.client.spelling import RequestTemplate
from harness.core import codec
from harness.core.choices import Api
from harness.core.codec import digest
from harness.core.inert import quoted
from harness.generation import fingerprint
from harness.scoring.distributions import normal_two_sided, t_factor
from harness.verbs.probe.asking import COMPLETIONS, Choice, Inquiry, ProbedServer, ProbeReply, Refused
from harness.verbs.probe.findings import Check, Outcome, Seen, sound, spoils, untested, warns
from harness.verbs.probe.subject import Subject, drawn, logprob_fields

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
"""Places of each passage in which the next token is looked at."""

FIRST_WORD, STEP = 6, 3

SLIGHT, GRAVE = 0.0005, 0.004
"""Nats a token. Of Watt-Tool 8B the divergence from the unquantised weights is 0.0047 at 5 bits (Q5_K_M) and 0.051 at 3
(Q3_K_M), by llama.cpp's own tool: scores in huggingface.co/eaddario/Watt-Tool-8B-GGUF."""

MORE = 1.25
"""Times what rounding does to the reference's model: no engine that computes the same weights in 16 bits diverges by
more. Measured ratios are in docs/probe.md."""

NEGLIGIBLE_NATS = 1e-7
"""Divergence in nats that is added to both sides of a ratio, so that two tiny ones compare as equal."""

MAX_ODD_SAME = 1
"""Greedy beginnings that are the reference's, of the eight, up to which no batch and no other kernel explains the rest:
were each to differ with a chance of 30 %, seven of eight would once in 800 probes."""

Likely = Mapping[str, float]
"""The likeliest tokens in a place → natural logarithms of their probabilities; empty where they were not told."""


def texts() -> list[tuple[int, str]]:
    """(number of the passage, text before the place) of each place in which the next token is looked at."""
    split = [(i, passage.split()) for i, passage in enumerate(PASSAGES)]
    return [(i, " ".join(words[:n])) for i, words in split for n in range(FIRST_WORD, FIRST_WORD + STEP * PLACES, STEP)]


VERSION = digest([texts(), fingerprint.version({})])[:12]
"""Version of the texts: references of another version are not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpelling:
    """How a run asked for its fingerprint, beside what the server's provider and engine want. neutral: as `Fingerprint`
    has it."""

    api: Api = "chat"
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    prefill: Mapping[str, Any] | None = None
    neutral: Mapping[str, Any] = field(default_factory=dict)

    def template(self, asker: Asker) -> RequestTemplate:
        """Its requests, as they are to be sent to another server. One that was taken without neutral values is compared
        with one without."""
        spelling = replace(
            asker.spelling,
            api=self.api,
            max_tokens_field=asker.spelling.max_tokens_field if self.api == "chat" else "max_tokens",
            prefill=self.prefill,
            chat_template_kwargs=self.chat_template_kwargs,
            extra_body=self.extra_body,
        )
        own = replace(asker, spelling=spelling)
        neutral = (fingerprint.neutral_values(own) or self.neutral) if self.neutral else {}
        return _whole(fingerprint.template(own, neutral))


def _plain(asker: Asker) -> RequestTemplate:
    """The requests of a fingerprint with nothing of a run's in them."""
    return _whole(fingerprint.template(asker, fingerprint.neutral_values(asker)))


def _whole(template: RequestTemplate) -> RequestTemplate:
    return replace(template, spelling=replace(template.spelling, stream=False, token_ids=False))


class Begun(Protocol):
    """Whose greedy replies a server's are held against. named: how a report calls it."""

    @property
    def named(self) -> str: ...

    def beginnings(self) -> Sequence[str]:
        """Of the greedy replies to the prompts of `fingerprint`. Raises `Refused`."""
        ...


class ProbeReference(Begun, Protocol):
    """What a server is held against. n_tokens: what it was asked for so far."""

    @property
    def model(self) -> str: ...

    @property
    def engine(self) -> str | None: ...

    @property
    def n_tokens(self) -> int: ...

    def likely(self) -> Sequence[Likely]:
        """Of each place of `texts`. Raises `Refused` where it gives no log-probabilities."""
        ...

    def rounding(self) -> Sequence[float]:
        """Of each place of `texts`, by how many nats this model diverges from itself where it is computed in 16 bits;
        empty where that is not known. Raises `Refused`."""
        ...


@dataclass
class ServerReference:
    """A reference that is a server. See `ProbeReference`."""

    server: ProbedServer
    named: str

    @property
    def model(self) -> str:
        """See `ProbeReference`."""
        return self.server.asker.model

    @property
    def engine(self) -> str | None:
        """See `ProbeReference`."""
        return self.server.engine

    @property
    def n_tokens(self) -> int:
        """See `ProbeReference`."""
        return self.server.n_tokens

    def likely(self) -> Sequence[Likely]:
        """See `ProbeReference`."""
        return [_top(answer) for answer in _next_tokens(self.server, len(texts()))]

    def rounding(self) -> Sequence[float]:
        """See `ProbeReference`: a server computes in one type."""
        return ()

    def beginnings(self) -> Sequence[str]:
        """See `ProbeReference`."""
        return [choice.whole[: fingerprint.MAX_CHARS] for choice in _greedy(self.server, _plain)]


@dataclass(frozen=True)
class TokenComparison:
    """One next token under both. divergence: of the server from the reference, in nats. ratio: the logarithm of the
    server's over the reference's probability of the server's own draw. surprise: −log of the reference's; expected and
    variance: of it, were the draw the reference's. same: whether the likeliest token is. rounding: the divergence of
    the reference's own model in 16 bits, where it is known."""

    passage: int
    divergence: float
    ratio: float
    surprise: float
    expected: float
    variance: float
    same: bool
    rounding: float | None = None


def compared(
    passage: int, token: str, server: Likely, reference: Likely, rounding: float | None = None
) -> TokenComparison:
    """From the listed log-probabilities of both, and the token that the server drew."""
    events = [name for name in server if name in reference]
    p, q = _coarse(events, server), _coarse(events, reference)
    drawn_event = events.index(token) if token in events else len(events)
    logs = [math.log(probability) for probability in q]
    expected = -sum(probability * log for probability, log in zip(q, logs, strict=True))
    return TokenComparison(
        passage=passage,
        divergence=_divergence(p, q),
        ratio=math.log(p[drawn_event] / q[drawn_event]),
        surprise=-logs[drawn_event],
        expected=expected,
        variance=sum(probability * log * log for probability, log in zip(q, logs, strict=True)) - expected**2,
        same=max(server, key=server.__getitem__) == max(reference, key=reference.__getitem__),
        rounding=rounding,
    )


def divergence(server: Likely, reference: Likely) -> float:
    """Kullback-Leibler divergence in nats, over the tokens that both list and the rest as one token."""
    events = [name for name in server if name in reference]
    return _divergence(_coarse(events, server), _coarse(events, reference))


def _divergence(p: Sequence[float], q: Sequence[float]) -> float:
    return max(0.0, sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))


def _coarse(events: list[str], logprobs: Likely) -> list[float]:
    """Probabilities of the events and of the rest, none of them 0."""
    probabilities = [max(math.exp(logprobs[name]), 1e-9) for name in events]
    probabilities.append(max(1 - sum(probabilities), 1e-6))
    total = sum(probabilities)
    return [probability / total for probability in probabilities]


def interval(values: list[tuple[int, float]]) -> tuple[float, float, float]:
    """Mean of (cluster, value) and its 95 % interval by Student's t over the means of the clusters."""
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
    """How many times what rounding does to the reference's model the server diverges by, and its 95 % interval; None
    where that is not known. The geometric mean over places: what is hard to round is so for both, and the mean is not
    that of a few places."""
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
    """The outcome of the divergences, and its sentence."""
    mean, low, high = interval([(token.passage, token.divergence) for token in comparisons])
    times = times_rounding(comparisons)
    sentence = f"divergence from {named} {mean:.4f} nats a token ({low:.4f} to {high:.4f})"
    if times is None:
        odd, why = low > SLIGHT, "two engines differ by as much through rounding, and 8 bits a weight do"
    else:
        sentence += f", {times[0]:.2f} times what rounding does to this model ({times[1]:.2f} to {times[2]:.2f})"
        odd, why = times[1] > MORE, "more than rounding does to this model: 8 bits a weight, or another copy"
    if not odd:
        return "sound", sentence
    return ("spoils", sentence) if low > GRAVE else ("warns", f"{sentence}: {why}")


def places(subject: Subject, reference: ProbeReference) -> list[TokenComparison]:
    """What both say of all places. Raises `Refused` where one of them gives no log-probabilities."""
    where = texts()
    subject.seed += len(where)
    ours, theirs = _next_tokens(subject.server, subject.seed), reference.likely()
    rounding: Sequence[float | None] = reference.rounding() or [None] * len(where)
    comparisons = []
    for (passage, _), answer, reference_likely, alone in zip(where, ours, theirs, rounding, strict=True):
        if (server := _top(answer)) and reference_likely:
            assert isinstance(answer, ProbeReply)
            comparisons.append(compared(passage, drawn(answer.first), server, reference_likely, alone))
    if not comparisons:
        raise Refused(0, "no log-probabilities came")
    return comparisons


def _next_tokens(server: ProbedServer, seed: int) -> list[ProbeReply | Refused]:
    """One token in each place. Raises `Refused` where none came with log-probabilities."""
    common = {"max_tokens": 1, "temperature": 1.0, "top_p": 1.0, **logprob_fields(COMPLETIONS)}
    inquiries = [Inquiry(text, {"seed": seed - n, **common}, COMPLETIONS) for n, (_, text) in enumerate(texts())]
    answers = server.many([inquiry.body(server.asker) for inquiry in inquiries], COMPLETIONS)
    if not any(map(_top, answers)):
        raise next((answer for answer in answers if isinstance(answer, Refused)), None) or Refused(
            0, "no log-probabilities came"
        )
    return answers


def _top(answer: ProbeReply | Refused) -> dict[str, float]:
    tokens = [] if isinstance(answer, Refused) else answer.first.tokens
    return tokens[0].top if tokens else {}


def _greedy(server: ProbedServer, template_of: Callable[[Asker], RequestTemplate]) -> list[Choice]:
    """Greedy replies to the prompts of a run's fingerprint, with log-probabilities where they are to be had. Raises
    `Refused` where one fails."""
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


WHY = "A quantised copy, another checkpoint or a broken kernel under the same name scores otherwise."
MEND = "Compare quantisation, checkpoint and engine of both; where a copy is quantised, say so beside the score."


def against(reference: ProbeReference) -> tuple[Check, ...]:
    """Of what the server says of its tokens, of the tokens that it draws, and of its greedy replies."""
    looked: list[list[TokenComparison]] = []

    def seen(subject: Subject) -> list[TokenComparison]:
        if not looked:
            looked.append(places(subject, reference))
        return looked[0]

    sent = f"{len(PASSAGES)} passages, the next token in {PLACES} places of each, of both"

    def weights(subject: Subject) -> Seen:
        try:
            comparisons = seen(subject)
        except Refused as refused:
            return untested(sent, quoted(refused.sentence))
        outcome, sentence = weighed(comparisons, reference.named)
        ratio, low, high = interval([(token.passage, token.ratio) for token in comparisons])
        n_same = sum(token.same for token in comparisons)
        came = (
            f"{sentence}; likeliest token the same in {n_same} of {len(comparisons)} places; mean "
            f"log-ratio of its own draws "
            f"{ratio:+.4f} ({low:+.4f} to {high:+.4f}); {subject.server.n_tokens + reference.n_tokens:,} tokens so "
            "far"
        )
        return Seen(outcome=outcome, sent=sent, came=came)

    def draws(subject: Subject) -> Seen:
        try:
            comparisons = seen(subject)
        except Refused as refused:
            return untested(sent, quoted(refused.sentence))
        deviation = math.sqrt(sum(token.variance for token in comparisons))
        if deviation == 0:
            return untested(sent, "the reference leaves nothing to chance")
        z = sum(token.surprise - token.expected for token in comparisons) / deviation
        return Seen(
            outcome="spoils",
            sent=sent,
            came=f"the reference finds the server's draws {z:+.1f} standard deviations more surprising than its own",
            p=normal_two_sided(z),
        )

    return (
        Check(name="weights", group="reference", look=weights, why=WHY, mend=MEND, quick=False),
        Check(name="draws", group="reference", look=draws, why=WHY, mend=MEND, quick=False),
        begun_alike(reference),
    )


def begun_alike(reference: Begun, as_run: RunSpelling | None = None) -> Check:
    """The check that replies, so template and weights together, begin as the reference's do. as_run: how its own were
    asked for, where they are a run's."""
    kind = "chat" if as_run is None or as_run.api == "chat" else "raw"
    template_of = _plain if as_run is None else as_run.template
    sent = (
        f"{len(fingerprint.PROMPTS)} {kind} prompts, the first {fingerprint.TOKENS} tokens of the greedy reply, of both"
    )

    def look(subject: Subject) -> Seen:
        try:
            theirs, ours = reference.beginnings(), _greedy(subject.server, template_of)
        except Refused as refused:
            return untested(sent, quoted(refused.sentence))
        n_same = fingerprint.same(theirs, [choice.whole[: fingerprint.MAX_CHARS] for choice in ours])
        agreed, n = (sum(counts) for counts in zip(*map(_agreeing, ours, theirs), strict=True))
        share = f", {agreed} of {n} tokens up to where they part" if n else ""
        came = f"{n_same} of {len(theirs)} begin as those of {reference.named}{share}"
        if n_same <= MAX_ODD_SAME:
            return spoils(sent, came)
        return warns(sent, came) if n_same < fingerprint.MIN_SAME else sound(sent, came)

    return Check(
        name="greedy replies", group="reference", look=look, quick=False, why=WHY,
        mend="Compare the chat template first, by its check; then quantisation, checkpoint and engine.",
    )  # fmt: skip


def _agreeing(ours: Choice, theirs: str) -> tuple[int, int]:
    """(tokens of ours with which theirs begins, all of ours), as far as log-probabilities name them; (0, 0) without."""
    text, agreed = "", 0
    for token in ours.tokens:
        text += token.token
        agreed += theirs.startswith(text)
    return agreed, len(ours.tokens)
