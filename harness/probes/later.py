"""Checks of the tokens after the first: decode kernels, speculative decoding and the sampler's state act only there.

Each later token is compared with the distribution that the server stated for its place, by the sum of the
log-probabilities of all drawn tokens (`exact`): once among the tokens that usual cuts keep, and once among all listed
ones. Tokens that are likelier than stated come from a lower temperature or a cut that nobody asked for, less likely
ones from a higher temperature or a draft model's tokens that are accepted unchecked.

Some engines (vLLM) put an unlikely drawn token into the list, in place of its last token or after it. Then the list
depends on the draw. So each list loses its last token (`undrawn`), which makes it the same for every draw.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence

import msgspec

from harness.client.wires.chat import CHAT
from harness.client.wires.completions import COMPLETIONS
from harness.core.inert import quoted
from harness.probes import exact
from harness.probes.asking import Inquiry, ProbeReply, Refused, Token, first_top
from harness.probes.findings import FALSE_ALARM, MAX_LOST, Check, Seen, sound, spoils, untested, warns
from harness.probes.overlap import divergence
from harness.probes.sampling import CUTS, NEAR, SURE, core
from harness.probes.subject import LONG, RAW_TEXTS, STORY, TOP, Subject, listed

REPLIES, LOOKS = 12, 2
"""Number of sampled replies, of `LONG` tokens each, at a look at the tokens after the first (some 270 tokens); largest
number of looks, each at the tokens of the earlier ones, too.
"""

ODD = 0.05
"""With a p-value of a look below this, a check is not sound. Sound servers have smaller ones at one look in twenty."""

PARTS_OF_LOOK = 2
"""Number of tests at a look; its p-value is the smallest of theirs, multiplied by this."""

CUT_REPLIES = 4
"""Number of sampled replies in a test of each cut at later places; a single token outside the cut decides."""

COLD = 0.5
"""Temperature of the test; a server that forgets it, even after the first token only, draws at 1."""

MIN_PLACES, SURE_LOGPROB = 50, math.log(0.9)
"""Nothing is concluded from fewer places than this. A check is sound only if the likeliest token had less than this
log-probability at as many.
"""

SAME_NATS = 0.1
"""Largest mean difference of log-probabilities, in nats, between two lists of one distribution."""

WRITTEN = 16
"""Number of greedy tokens after each raw text, whose distributions are compared with those of reading the same text."""

READ_AT = (3, 6, 9, 12, 15)
"""After these numbers of written tokens, the text so far is also sent as a prompt."""

GRAVE = 0.004
"""A median divergence above this is worth a warning. Of Watt-Tool 8B, weights of 5 bits diverge by 0.0047 nats a token
(huggingface.co/eaddario/Watt-Tool-8B-GGUF).
"""

TWO_KERNELS = 0.01
"""A median divergence above this, in nats, between the probabilities that a server computes while it writes a text and
while it reads the same text, is a fault: batches make 0.0004 (with logits that move by 0.02), weights of 8 bits less
than 0.004.
"""

HIDDEN = "no log-probabilities came for the tokens after the first"


def undrawn(tops: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return the lists (token → log-probability) without tokens that a server lists only because it drew them.

    If the shortest list has k tokens, each list keeps its k − 1 likeliest tokens: a server that adds the drawn token to
    its list puts it in the last place or beyond.
    """
    k = min(map(len, tops), default=0)
    return [dict(sorted(listed(top).items(), key=lambda item: -item[1])[: max(k - 1, 1)]) for top in tops]


def _sampled(subject: Subject, n: int, **fields: object) -> list[ProbeReply]:
    """Sampled replies to the story prompt, with log-probabilities. Raises `Refused` where a request fails."""
    common = {"max_tokens": LONG, "temperature": 1.0, "top_p": 1.0, **CHAT.likeliest(TOP)}
    # The seeds are far apart, because generators with neighbouring seeds may begin alike.
    seeds = random.Random(subject.new_seeds(n).stop).sample(range(2**31), n)  # noqa: S311 - no secret
    bodies = [Inquiry(STORY, {**common, "seed": seed, **fields}).body(subject.server.asker) for seed in seeds]
    return subject.server.every(bodies)


def _later(replies: Sequence[ProbeReply]) -> list[Token]:
    """The tokens after the first of each reply, if the server states the likeliest tokens at their place."""
    return [token for reply in replies for token in reply.tokens[1:] if token.top]


def _look(tokens: Sequence[Token], value: float, seed: int) -> tuple[float, str, str]:
    """What these later tokens show of the temperature: (p-value, sentence, why the check is not sound or empty).

    value: the temperature asked for divided by the one of the log-probabilities. seed: of the simulation.
    """
    tops = undrawn([token.top for token in tokens])
    tests = [(0.0, 1.0, 0)]  # (standard deviations less likely, p-value, number of places) of each test
    for lists in ([core(top) for top in tops], tops):
        # Tokens that are parts of a character are all shown as U+FFFD, so their names do not tell them apart.
        named = [{name: x for name, x in top.items() if "\ufffd" not in name} for top in lists]
        at_places = [(token.token, top) for token, top in zip(tokens, named, strict=True) if token.token in top]
        if at_places:
            drawn, listed_there = zip(*at_places, strict=True)
            tests.append((*exact.temperature_at_places(drawn, listed_there, value, seed), len(at_places)))
    z, p, n = min(tests, key=lambda test: test[1])
    p = min(1.0, PARTS_OF_LOOK * p)
    came = (
        f"{n} of {len(tokens)} tokens after the first are {abs(z):.1f} standard deviations "
        f"{'likelier' if z < 0 else 'less likely'} than the server's own log-probabilities say"
    )
    if p < ODD:
        return p, came, f"the draws are odd (p = {p:.2g} at this look), but no fault: ask again"
    n_open = sum(max(top.values()) < SURE_LOGPROB for top in tops)
    return p, came, f"only at {n_open} places had the model a choice" if n_open < MIN_PLACES else ""


def _later_draws(subject: Subject) -> Seen:
    """Check that later tokens come as often as the server's log-probabilities say, at the temperature `COLD`.

    Further replies are sampled if the first ones do not decide.
    """
    tokens = list[Token]()
    # Engines differ in whether they state log-probabilities before or after the temperature.
    warm = _sampled(subject, 1)
    for n_looks in range(1, LOOKS + 1):
        sent = f"{n_looks * REPLIES} replies of {LONG} tokens at temperature {COLD:g}"
        replies = _sampled(subject, REPLIES, temperature=COLD)
        tokens += _later(replies)
        if len(tokens) < MIN_PLACES:
            return untested(sent, f"only {len(tokens)} tokens after the first came with log-probabilities")
        # A reply may come empty; every other one has the same list at its first token.
        first, first_warm = (next((r.tokens[0].top for r in some if r.tokens), {}) for some in (replies, warm))
        stated = stated_at(first, first_warm, COLD)
        if stated is None:
            return untested(
                sent, "the first token does not show at which temperature the server states log-probabilities"
            )
        # Each look has its share of the bound, so the last p-value, times the looks, is that of the check.
        p, came, hidden = _look(tokens, COLD / stated, subject.seed)
        p = min(1.0, LOOKS * p)
        if not hidden or p <= FALSE_ALARM:
            break
    came += f"; p = {p:.2g}, a fault up to {FALSE_ALARM:g}"
    if p <= FALSE_ALARM:
        return Seen(outcome="spoils", sent=sent, came=came, p=p)
    return Seen(outcome="untested" if hidden else "sound", sent=sent, came=f"{hidden}; {came}" if hidden else came, p=p)


def stated_at(cold: Mapping[str, float], warm: Mapping[str, float], temperature: float) -> float | None:
    """Return the temperature of the log-probabilities that a server states in replies at `temperature`: 1 or
    `temperature`; None if the lists do not show it.

    cold, warm: the likeliest first tokens of the same prompt at `temperature` and at 1.
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


def outside(tokens: Sequence[Token], smallest: Callable[[list[float]], float]) -> tuple[int, float]:
    """Return (number of drawn `tokens` that a cut such as top_k forbids, chance to see any if the cut is ignored).

    If the chance is small, a count of 0 proves little: even a server that ignores the cut seldom draws a forbidden
    token. smallest: takes all listed probabilities in falling order and returns the smallest that the cut keeps. A
    token is forbidden if its probability is more than `NEAR` times smaller than this.
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


def _later_cuts(subject: Subject) -> Seen:
    """For each of `sampling.CUTS`, ask for replies with this cut alone, and count the tokens after the first that the
    cut forbids.
    """
    cuts = ", ".join(f"{name} {value:g}" for name, value, _ in CUTS)
    sent = f"{CUT_REPLIES} replies of {LONG} tokens at temperature 1 with each of {cuts}"
    obeyed, broken, unknown = [], [], []
    for name, value, smallest in CUTS:
        try:
            tokens = _later(_sampled(subject, CUT_REPLIES, **{name: value}))
        except Refused as refused:
            # The cut is to blame only if the same request without it is accepted.
            try:
                _sampled(subject, 1)
            except Refused as plain:
                return untested(sent, f"refused without a cut, too: {quoted(plain.sentence)}")
            unknown.append(f"{name} is refused ({quoted(refused.words)})")
            continue
        n_outside, chance_of_any = outside(tokens, smallest)
        if n_outside:
            broken.append(f"{name} is forgotten: {n_outside} of {len(tokens)} tokens lie outside it")
        # No token lies outside. That shows something only if a server that ignores the cut would have drawn one there.
        elif not tokens or chance_of_any < SURE:
            unknown.append(f"{name} shows nothing")
        else:
            obeyed.append(f"{name} is obeyed")
    came = "after the first token " + "; ".join([*broken, *obeyed, *unknown])
    if broken:
        return spoils(sent, came)
    return sound(sent, came) if obeyed else untested(sent, came)


def _written_and_read(subject: Subject) -> Seen:
    """Check that the server computes the same probabilities while it writes a reply as when it reads the same words."""
    sent = f"{len(RAW_TEXTS)} raw texts with {WRITTEN} greedy tokens, then {len(READ_AT)} beginnings of each as prompts"
    fields = {"temperature": 0, **COMPLETIONS.likeliest(TOP)}
    bodies, written = [], []
    for text in RAW_TEXTS:
        reply = subject.whole(Inquiry(text, {"max_tokens": WRITTEN, **fields}, COMPLETIONS))
        # Where temperature 0 is not obeyed, the written probabilities may be those of another temperature.
        if drawn := next((token for token in reply.tokens if not _is_likeliest(token)), None):
            return untested(sent, f"the server draws at temperature 0: {quoted(drawn.token)!r} came, not the likeliest")
        for n in READ_AT:
            so_far = "".join(token.token for token in reply.tokens[:n])
            # If the names of the tokens are not their text, the text so far is unknown and cannot be sent as a prompt.
            if n < len(reply.tokens) and reply.text.startswith(so_far) and "\ufffd" not in so_far:
                inquiry = Inquiry(text + so_far, {"max_tokens": 1, **fields}, COMPLETIONS)
                bodies.append(inquiry.body(subject.server.asker))
                written.append(reply.tokens[n].top)
    answers = subject.server.many(bodies, COMPLETIONS)
    refused = [answer.sentence for answer in answers if isinstance(answer, Refused)]
    seen = _divergence_of_kernels(sent, written, list(map(first_top, answers)))
    if not refused:
        return seen
    came = f"{seen.came}; {len(refused)} of {len(bodies)} requests brought nothing to judge ({quoted(refused[0])})"
    too_many = seen.outcome == "sound" and len(refused) > MAX_LOST * len(bodies)
    return untested(sent, came) if too_many else msgspec.structs.replace(seen, came=came)


def _divergence_of_kernels(
    sent: str, written: Sequence[Mapping[str, float]], read: Sequence[Mapping[str, float]]
) -> Seen:
    """Judge how far the next token's log-probabilities are apart when the same text is written and when it is read.

    written, read: token → log-probability at the same places; empty where none came.
    """
    apart = [divergence(listed(a), listed(b)) for a, b in zip(written, read, strict=True) if a and b]
    if len(apart) < len(READ_AT):
        return untested(sent, HIDDEN)
    median = statistics.median(apart)
    came = f"writing and reading the same words differ by {median:.4f} nats a token (median of {len(apart)} places)"
    if median > TWO_KERNELS:
        return spoils(
            sent, f"{came}: while writing, the server computes other probabilities than while reading the same text"
        )
    return warns(sent, came) if median > GRAVE else sound(sent, came)


def _is_likeliest(token: Token) -> bool:
    """Whether no listed token is clearly likelier than this one; True where the server lists none."""
    own = token.logprob if token.logprob is not None else token.top.get(token.token)
    return own is None or max(token.top.values(), default=own) - own < SAME_NATS


_WHY = "Nearly all of an answer comes after its first token; speculative decoding and decode kernels act only there."
_MEND = "Switch off speculative decoding and caches in low precision, and probe again; update the engine."

_MEND_DRAWS = (
    "Likelier tokens than stated come first of all from cuts that the request does not set (the server's default "
    "top_k, top_p or min_p): send neutral values with each run (top_p 1, top_k -1, llama.cpp: 0, min_p 0). Less likely "
    f"ones come from a higher temperature: look for a proxy or a setting that rewrites `temperature`. {_MEND}"
)

CHECKS = (
    Check(
        name="later draws at 0.5", group="sampling", look=_later_draws,
        why=_WHY, mend=_MEND_DRAWS, quick=False, tokens=2_000,
    ),
    Check(name="later cuts", group="sampling", look=_later_cuts, why=_WHY, mend=_MEND, quick=False, tokens=900),
    Check(
        name="writing and reading", group="sampling", look=_written_and_read,
        why=_WHY, mend=_MEND, quick=False, tokens=500,
    ),
)  # fmt: skip
