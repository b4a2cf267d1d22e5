"""Checks that tokens are drawn as requested: greedy replies, seeds, and the tokens after the first, since decode
kernels, speculative decoding and the sampler's state affect only those.

Each later token is compared with the distribution that the server reported for its position, by the sum of the
log-probabilities of all drawn tokens: once among the tokens that common cuts keep, and once among all listed tokens.
Tokens that are too likely are a sign of a lower temperature or an unrequested truncation; tokens that are too
unlikely, of a higher temperature or of draft model tokens that are accepted unchecked.

Some engines (vLLM) add an unlikely drawn token to the list, in place of its last token or after it, so the list depends
on the draw. Therefore the last token of each list is dropped (`without_drawn_tokens`): the rest is equal for each draw.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

from harness.client.apis.chat import CHAT, Token
from harness.client.apis.completions import COMPLETIONS
from harness.core.sanitize import quoted
from harness.probes.findings import FALSE_ALARM, MAX_LOST, Check, Observation, Outcome, fails, passes, untested, warns
from harness.probes.likelihood import divergence
from harness.probes.requests import Inquiry, ProbeReply, Refused, first_top
from harness.probes.tested_server import FIRST_CHARS, LONG, RAW_TEXTS, STORY, TOP, Subject, listed

CORE = 1 / 16
"""A cut no stronger than a min_p of 0.05, llama.cpp's default, keeps the tokens whose probability is at least this
fraction of the largest. Draws among them show the temperature whatever else is cut.
"""

GREEDY_REPLIES, MORE_GREEDY_REPLIES = 3, 5
"""Number of replies at temperature 0, and number of additional replies if the first ones all begin differently. Of 75
simulated servers whose logits batching moves by 0.02, none gave eight different beginnings.
"""

MAX_SWAPPED_NATS = 0.2
"""Rounding in batches may swap tokens that are nearly equally likely, but moves them by less than this, in nats."""

MAX_NUCLEUS = 0.33
"""A little more than the requested top_p of 0.3, since batching may move the cutoff by a token."""

NEAR = 1.25
"""Batching moves probabilities: tokens within this factor of the cutoff's probability may be kept or dropped.
"""

SURE = 0.99
"""Minimum probability that an ignored cut would have been noticed; below it, the check is untested.
"""

REPLIES, LOOKS = 12, 2
"""Number of sampled replies, of `LONG` tokens each, per look at the tokens after the first (about 270 tokens); maximum
number of looks, each of which includes the tokens of the earlier ones.
"""

ODD = 0.05
"""A check does not pass if a look has a p-value below this. Healthy servers have one at one look in twenty."""

PARTS_OF_LOOK = 2
"""Number of tests per look; the look's p-value is the smallest of theirs, multiplied by this."""

CUT_REPLIES = 4
"""Number of sampled replies in the test of each cut at later positions; a single token outside the cut decides."""

COLD = 0.5
"""Temperature of the test; a server that forgets it, even if only after the first token, draws at 1."""

MIN_PLACES, SURE_LOGPROB = 50, math.log(0.9)
"""Minimum number of positions for a conclusion. A check passes only if the likeliest token had less than this
log-probability at that many positions.
"""

SAME_NATS = 0.1
"""Largest mean difference of log-probabilities, in nats, between two lists of the same distribution."""

WRITTEN = 16
"""Number of greedy tokens after each raw text; their distributions are compared with those of reading the same text.
"""

READ_AT = (3, 6, 9, 12, 15)
"""Numbers of written tokens after which the text so far is also sent as a prompt."""

GRAVE = 0.004
"""A median divergence above this is worth a warning. 5-bit weights of Watt-Tool 8B diverge by 0.0047 nats per token
(huggingface.co/eaddario/Watt-Tool-8B-GGUF).
"""

TWO_KERNELS = 0.01
"""A median divergence above this, in nats, between the probabilities that a server computes while writing a text and
while reading the same text is a fault: batching causes 0.0004 (logits move by 0.02), 8-bit weights less than 0.004.
"""

HIDDEN = "the server returns no log-probabilities after the first token"


def _greedy(subject: Subject) -> Observation:
    """Check that replies at temperature 0 are greedy: each token is the likeliest one, and three replies are equal."""
    sent = "a short story prompt at temperature 0, sent three times"
    reply = subject.greedy_reply
    behind = [(max(t.top.values()) - t.logprob, t) for t in reply.tokens if t.top and t.logprob is not None]
    odd = [(nats, token) for nats, token in behind if nats > MAX_SWAPPED_NATS]
    if odd:
        _, worst = max(odd, key=lambda pair: pair[0])
        likelier = max(worst.top, key=worst.top.__getitem__)
        return fails(
            sent,
            f"{len(odd)} of {len(reply.tokens)} tokens are not the most likely: "
            f"{quoted(worst.token)!r}, although {quoted(likelier)!r} is more likely",
        )
    texts = {subject.chat().reasoning_and_text for _ in range(GREEDY_REPLIES)}
    if len(texts) == 1:
        return passes(sent, "the same reply each time" + (", with the most likely tokens" if reply.tokens else ""))
    # Rounding may swap a few likely tokens, so three replies may all differ; only more of them prove sampling.
    if not reply.tokens and _n_beginnings(texts) == GREEDY_REPLIES:
        texts |= {subject.chat().reasoning_and_text for _ in range(MORE_GREEDY_REPLIES)}
        if _n_beginnings(texts) == GREEDY_REPLIES + MORE_GREEDY_REPLIES:
            shown = ", ".join(repr(quoted(text[:40])) for text in texts)
            return fails(sent, f"the replies already differ at the first token: {shown}")
    return warns(sent, f"{len(texts)} different replies: greedy output depends on the batch, or decoding is not greedy")


def _n_beginnings(texts: Collection[str]) -> int:
    """The number of distinct beginnings of these texts, of `FIRST_CHARS` characters each."""
    return len({text[:FIRST_CHARS] for text in texts})


def core(listed: Mapping[str, float]) -> dict[str, float]:
    """The tokens that a common cut keeps: those whose probability is at least `CORE` times the largest."""
    least = max(listed.values()) + math.log(CORE)
    return {token: value for token, value in listed.items() if value >= least}


def _end_of_nucleus(ps: list[float]) -> float:
    """The smallest of these probabilities, sorted in descending order, that is inside the nucleus: the likeliest tokens
    with a total probability of `MAX_NUCLEUS`.
    """
    return next((p for p, total in zip(ps, accumulate(ps), strict=True) if total >= MAX_NUCLEUS), ps[-1])


CUTS: tuple[tuple[str, float, Callable[[list[float]], float]], ...] = (
    ("top_k", 2, lambda ps: ps[min(1, len(ps) - 1)]),
    ("top_p", 0.3, _end_of_nucleus),
    ("min_p", 0.5, lambda ps: ps[0] / 2),
)
"""The cuts that are tested: (field, value, function). The function takes all probabilities in descending order and
returns the smallest that the cut keeps.
"""


def _hot(subject: Subject, **fields: Any) -> str:
    """The reply to the story prompt at temperature 1."""
    return subject.chat(temperature=1.0, top_p=1.0, **fields).reasoning_and_text


def _seeds(subject: Subject) -> Observation:
    """Send a request twice with each of four seeds: each seed must reproduce its text, and the texts must not all be
    equal.
    """
    sent = "four seeds at temperature 1, each used twice"
    pairs = [(_hot(subject, seed=seed), _hot(subject, seed=seed)) for seed in subject.new_seeds(4)]
    if len(texts := {text for pair in pairs for text in pair}) == 1:
        return fails(sent, f"the same text each time: {quoted(texts.pop())!r}")
    same = sum(first == second for first, second in pairs)
    if same == len(pairs):
        return passes(sent, f"{len(texts)} different outputs; the same seed always gives the same output")
    if same or all(_n_beginnings(pair) == 1 for pair in pairs):
        return warns(sent, f"the same output for {same} of four seeds: seeds work, but batching changes some outputs")
    return warns(sent, "different outputs for the same seed: the server ignores the seed")


# ---- the tokens after the first


def without_drawn_tokens(tops: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return the lists (token → log-probability) without tokens that a server lists only because they were drawn.

    If the shortest list has k tokens, each list keeps its k − 1 likeliest tokens: a server that adds the drawn token to
    its list puts it in the last place or after it.
    """
    k = min(map(len, tops), default=0)
    return [dict(sorted(listed(top).items(), key=lambda item: -item[1])[: max(k - 1, 1)]) for top in tops]


def _sampled(subject: Subject, n: int, **fields: object) -> list[ProbeReply]:
    """Sampled replies to the story prompt, with log-probabilities. Raises `Refused` if a request fails."""
    common = {"max_tokens": LONG, "temperature": 1.0, "top_p": 1.0, **CHAT.likeliest(TOP)}
    # The seeds are far apart, because generators with neighboring seeds may start out similarly.
    seeds = random.Random(subject.new_seeds(n).stop).sample(range(2**31), n)  # noqa: S311 - no secret
    bodies = [Inquiry(STORY, {**common, "seed": seed, **fields}).body(subject.server.asker) for seed in seeds]
    return subject.server.send_all(bodies)


def _later(replies: Sequence[ProbeReply]) -> list[Token]:
    """The tokens after the first of each reply, if the server lists the likeliest tokens at their positions."""
    return [token for reply in replies for token in reply.tokens[1:] if token.top]


SIMULATED = 19_999
"""Number of simulated draws under the null hypothesis; the smallest two-sided p-value is then 1e-4."""


def temperature_at_places(
    tokens: Sequence[str], places: Sequence[Mapping[str, float]], temperature: float, seed: int
) -> tuple[float, float]:
    """Test the hypothesis that the token at each position was drawn at this temperature, using the sum of the tokens'
    log-probabilities. Return (how many standard deviations less likely the tokens are than expected, two-sided p).

    The Monte Carlo p-value is (1 + b) / (1 + m), where b of m simulated statistics are at least as extreme as the
    observed one. Under the null hypothesis it is at most α with probability at most α (Barnard 1963; Davison and
    Hinkley 1997, *Bootstrap Methods and their Application*, 4.2).

    tokens: the token at each position, one of those listed there. places: token → log-probability, for each position.
    seed: seed of the simulation.
    """
    observed = sum(top[token] for token, top in zip(tokens, places, strict=True))
    rng, sums = np.random.default_rng(seed), np.zeros(SIMULATED)
    for top in places:
        values = np.array(list(top.values()))
        shares = np.exp((values - values.max()) / temperature).cumsum()
        sums += values[np.minimum(shares.searchsorted(rng.random(SIMULATED) * shares[-1]), len(values) - 1)]
    # Equal sums may differ in their last digits, since they are added in a different order; these count as equal.
    slack = 1e-9 * max(1.0, abs(observed))
    below, above = np.count_nonzero(sums <= observed + slack), np.count_nonzero(sums >= observed - slack)
    p = min(1.0, 2.0 * (1 + int(min(below, above))) / (1 + SIMULATED))
    return float((sums.mean() - observed) / max(sums.std(), 1e-9)), p


def _test_temperature(tokens: Sequence[Token], value: float, seed: int) -> tuple[float, str, str]:
    """What these later tokens reveal about the temperature: (p-value, sentence, reason why the check does not pass or
    empty).

    value: the requested temperature divided by that of the log-probabilities. seed: seed of the simulation.
    """
    tops = without_drawn_tokens([token.top for token in tokens])
    tests = [(0.0, 1.0, 0)]  # (standard deviations less likely, p-value, number of positions) of each test
    for lists in ([core(top) for top in tops], tops):
        # Tokens that are parts of a character are all shown as U+FFFD, so their names do not distinguish them.
        named = [{name: x for name, x in top.items() if "\ufffd" not in name} for top in lists]
        at_places = [(token.token, top) for token, top in zip(tokens, named, strict=True) if token.token in top]
        if at_places:
            drawn, listed_there = zip(*at_places, strict=True)
            tests.append((*temperature_at_places(drawn, listed_there, value, seed), len(at_places)))
    z, p, n = min(tests, key=lambda test: test[1])
    p = min(1.0, PARTS_OF_LOOK * p)
    received = (
        f"taken together, {n} of {len(tokens)} tokens after the first are {'more' if z < 0 else 'less'} likely than "
        f"the server's own log-probabilities imply (a difference of {abs(z):.1f} standard deviations)"
    )
    if p < ODD:
        return p, received, f"the samples are unusual (p = {p:.2g} in this test) but do not prove a fault; probe again"
    n_open = sum(max(top.values()) < SURE_LOGPROB for top in tops)
    return p, received, f"the model had a choice at only {n_open} positions" if n_open < MIN_PLACES else ""


def _later_draws(subject: Subject) -> Observation:
    """Check that later tokens are drawn as often as the server's log-probabilities say, at the temperature `COLD`.

    More replies are sampled if the first ones are inconclusive.
    """
    tokens = list[Token]()
    # Engines differ in whether they return log-probabilities before or after applying the temperature.
    warm = _sampled(subject, 1)
    for n_looks in range(1, LOOKS + 1):
        sent = f"{n_looks * REPLIES} replies of {LONG} tokens at temperature {COLD:g}"
        replies = _sampled(subject, REPLIES, temperature=COLD)
        tokens += _later(replies)
        if len(tokens) < MIN_PLACES:
            return untested(sent, f"only {len(tokens)} tokens after the first have log-probabilities")
        # A reply may be empty; all others have the same list at their first token.
        first, first_warm = (next((r.tokens[0].top for r in some if r.tokens), {}) for some in (replies, warm))
        stated = stated_temperature(first, first_warm, COLD)
        if stated is None:
            return untested(sent, "the first token does not show the temperature of the log-probabilities")
        # Each look gets its share of the significance level, so the check's p-value is the last one times the number of
        # looks.
        p, received, hidden = _test_temperature(tokens, COLD / stated, subject.seed)
        p = min(1.0, LOOKS * p)
        if not hidden or p <= FALSE_ALARM:
            break
    received += f"; p = {p:.2g} (at most {FALSE_ALARM:g} indicates a fault)"
    if p > FALSE_ALARM and hidden:
        received = f"{hidden}; {received}"
    outcome: Outcome = "fail" if p <= FALSE_ALARM else "untested" if hidden else "pass"
    return Observation(outcome=outcome, sent=sent, received=received, p=p)


def stated_temperature(cold: Mapping[str, float], warm: Mapping[str, float], temperature: float) -> float | None:
    """Return the temperature of the log-probabilities in a server's replies at `temperature`: 1 or `temperature`; None
    if the lists do not reveal it.

    cold, warm: the likeliest first tokens for the same prompt at `temperature` and at 1.
    """
    common = [name for name in listed(cold) if name in listed(warm)]
    if len(common) < 2:
        return None
    best = max(common, key=warm.__getitem__)
    pairs = [(cold[name] - cold[best], warm[name] - warm[best]) for name in common]
    raw = statistics.fmean(abs(a - b) for a, b in pairs)
    scaled = statistics.fmean(abs(a - b / temperature) for a, b in pairs)
    # Undecided if neither temperature fits, or both do: nearly equal probabilities look the same at any temperature.
    if min(raw, scaled) > SAME_NATS or abs(raw - scaled) < SAME_NATS:
        return None
    return 1.0 if raw < scaled else temperature


def count_forbidden(tokens: Sequence[Token], smallest: Callable[[list[float]], float]) -> tuple[int, float]:
    """Return (number of drawn `tokens` that a cut such as top_k forbids, probability of at least one if the cut is
    ignored).

    If the probability is small, a count of 0 proves little: even a server that ignores the cut seldom draws a forbidden
    token. smallest: takes all listed probabilities in descending order and returns the smallest that the cut keeps. A
    token is forbidden if its probability is smaller than that by more than a factor of `NEAR`.
    """
    n, log_inside = 0, 0.0
    for token in tokens:
        ps = {name: math.exp(value) for name, value in token.top.items()}
        least = smallest(sorted(ps.values(), reverse=True)) / NEAR
        inside = sum(p for p in ps.values() if p >= least)
        if token.logprob is not None and math.exp(token.logprob) < least:
            n += 1
        log_inside += math.log(min(1.0, max(inside, 1e-9)))
    return n, 1 - math.exp(log_inside)


def _later_cuts(subject: Subject) -> Observation:
    """For each of `sampling.CUTS`, request replies with this cut alone, and count the tokens after the first that the
    cut forbids.
    """
    cuts = ", ".join(f"{name} {value:g}" for name, value, _ in CUTS)
    sent = f"{CUT_REPLIES} replies of {LONG} tokens at temperature 1 for each of {cuts}"
    obeyed, broken, unknown = [], [], []
    for name, value, smallest in CUTS:
        try:
            tokens = _later(_sampled(subject, CUT_REPLIES, **{name: value}))
        except Refused as refused:
            # The cut is to blame only if the same request without it is accepted.
            try:
                _sampled(subject, 1)
            except Refused as plain:
                return untested(sent, f"rejected even without these settings: {quoted(plain.sentence)}")
            unknown.append(f"{name} is rejected ({quoted(refused.words)})")
            continue
        n_outside, chance_of_any = count_forbidden(tokens, smallest)
        if n_outside:
            broken.append(f"{name} is ignored: {n_outside} of {len(tokens)} tokens fall outside its cutoff")
        # No token is outside the cut. That proves something only if a server that ignores the cut would have drawn one.
        elif not tokens or chance_of_any < SURE:
            unknown.append(f"{name} is inconclusive")
        else:
            obeyed.append(f"{name} is applied")
    received = "after the first token: " + "; ".join([*broken, *obeyed, *unknown])
    if broken:
        return fails(sent, received)
    return passes(sent, received) if obeyed else untested(sent, received)


def _written_and_read(subject: Subject) -> Observation:
    """Check that the server computes the same probabilities when it writes a reply and when it reads the same words."""
    sent = f"{len(RAW_TEXTS)} raw texts + {WRITTEN} greedy tokens each, then {len(READ_AT)} prefixes of each as prompts"
    fields = {"temperature": 0, **COMPLETIONS.likeliest(TOP)}
    bodies, written = [], []
    for text in RAW_TEXTS:
        reply = subject.unstreamed(Inquiry(text, {"max_tokens": WRITTEN, **fields}, COMPLETIONS))
        # If temperature 0 is not obeyed, the probabilities while writing may be those of another temperature.
        if drawn := next((token for token in reply.tokens if not _is_likeliest(token)), None):
            return untested(sent, f"temperature 0 is not greedy: {quoted(drawn.token)!r} is not the most likely token")
        for n in READ_AT:
            so_far = "".join(token.token for token in reply.tokens[:n])
            # If the names of the tokens are not their text, the text so far is unknown and cannot be sent as a prompt.
            if n < len(reply.tokens) and reply.text.startswith(so_far) and "\ufffd" not in so_far:
                inquiry = Inquiry(text + so_far, {"max_tokens": 1, **fields}, COMPLETIONS)
                bodies.append(inquiry.body(subject.server.asker))
                written.append(reply.tokens[n].top)
    answers = subject.server.send_many(bodies, COMPLETIONS)
    refused = [answer.sentence for answer in answers if isinstance(answer, Refused)]
    seen = _divergence_of_kernels(sent, written, list(map(first_top, answers)))
    if not refused:
        return seen
    received = f"{seen.received}; {len(refused)} of {len(bodies)} requests returned no result ({quoted(refused[0])})"
    too_many = seen.outcome == "pass" and len(refused) > MAX_LOST * len(bodies)
    return untested(sent, received) if too_many else msgspec.structs.replace(seen, received=received)


def _divergence_of_kernels(
    sent: str, written: Sequence[Mapping[str, float]], read: Sequence[Mapping[str, float]]
) -> Observation:
    """Judge how far apart the next token's log-probabilities are when the same text is written and when it is read.

    written, read: token → log-probability at the same positions; empty where there are none.
    """
    apart = [divergence(listed(a), listed(b)) for a, b in zip(written, read, strict=True) if a and b]
    if len(apart) < len(READ_AT):
        return untested(sent, HIDDEN)
    median = statistics.median(apart)
    received = f"the two probabilities diverge by {median:.4f} nats per token (median of {len(apart)} tokens)"
    if median > TWO_KERNELS:
        return fails(sent, f"{received}: generation and prompt processing give different probabilities")
    return warns(sent, received) if median > GRAVE else passes(sent, received)


def _is_likeliest(token: Token) -> bool:
    """Whether no listed token is clearly likelier than this one; True if the server lists none."""
    own = token.logprob if token.logprob is not None else token.top.get(token.token)
    return own is None or max(token.top.values(), default=own) - own < SAME_NATS


_WHY = "Speculative decoding and decode kernels affect only the text after the first token: almost all of an answer."
_MEND = "Update the engine, or disable speculative decoding and low-precision caches, and then probe again."

_MEND_DRAWS = (
    "If tokens are more likely than reported, the server probably applies a default top_k, top_p or min_p; send "
    "neutral values with each run (top_p 1, min_p 0, and top_k -1, or 0 for llama.cpp). If they are less likely, the "
    f"actual temperature is higher; look for a proxy or setting that rewrites `temperature`. {_MEND}"
)

_REWRITTEN = "Look for a proxy that rewrites the field, or for server sampling defaults that override requests."

CHECKS = (
    Check(
        name="temperature 0", group="sampling", look=_greedy, by_text=True, tokens=270,
        why="Greedy scores require the most likely tokens; scores from sampled replies are not comparable.",
        fix=_REWRITTEN,
    ),
    Check(
        name="seeds", group="sampling", look=_seeds, by_text=True, seeded=True, tokens=540,
        why="If samples are copies of one another, pass@k and all error bars are wrong. A seed only makes a sample "
            "reproducible; it does not affect scores.",
        fix="If samples are identical, look for a cache in front of the engine, or for a fixed seed on the server. To "
             "reproduce samples, use an engine that supports seeds.",
    ),
    Check(
        name="later draws at 0.5", group="sampling", look=_later_draws,
        why=_WHY, fix=_MEND_DRAWS, quick=False, tokens=2_000,
    ),
    Check(name="later cuts", group="sampling", look=_later_cuts, why=_WHY, fix=_MEND, quick=False, tokens=900),
    Check(
        name="writing and reading", group="sampling", look=_written_and_read,
        why=_WHY, fix=_MEND, quick=False, tokens=500,
    ),
)  # fmt: skip
