"""Checks that sampling does what the request says: temperature, cuts of the distribution, penalties, seeds, no cached
replies.

Draws of one token are tested against the server's own log-probabilities at temperature 1, so no knowledge of the model
is needed. The statistics are in `exact`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from harness.core.inert import quoted
from harness.verbs.probe import exact
from harness.verbs.probe.asking import Refused
from harness.verbs.probe.findings import FALSE_ALARM, Check, Seen, sound, spoils, untested, warns
from harness.verbs.probe.subject import Draws, Open, Subject, shares
from server_launchers.engines import table as engines

DRAWS, PRICED_DRAWS, MAX_DRAWS = 100, 250, 500
"""Smallest number of draws in a test of a temperature or of the whole distribution, the largest number of draws at a
temperature that a budget pays for, and the largest without a budget.
"""

OFF, POWER, PLANNED = 1.5, 0.8, 0.9
"""A test of a temperature is sound only if it finds a temperature that is `OFF` times too high or too low with the
chance `POWER`. As many draws are made as find it with the chance `PLANNED`.
"""

CORE = 1 / 16
"""A cut keeps the tokens whose probability is at least this fraction of the largest, if it is no stronger than a min_p
of 0.05, the default of llama.cpp. Draws among them show the temperature whatever else is cut.
"""

PARTS = 6
"""A check of a temperature has three tests at each of two looks: after one prompt and another, or of the later tokens
of some replies and of more. The smallest p-value is multiplied by this.
"""

BOUND = FALSE_ALARM / 6
"""The smallest bound that Holm's method sets for a p-value: a probe has six checks with one."""

GREEDY_REPLIES, MORE_GREEDY_REPLIES = 3, 5
"""Number of replies at temperature 0, and number of further replies if the first ones all begin differently. Of 75
simulated servers whose logits a batch moves by 0.02, none gave eight different beginnings.
"""

CUT_DRAWS = 40
"""Number of draws in a test of a cut (top_k, top_p, min_p); a single token outside the cut decides."""

NEAR = 1.25
"""Batching changes probabilities slightly: a token whose probability is within this factor of the cut-off may be kept
or dropped.
"""

ROUNDED = 0.01
"""Largest share of draws that rounded log-probabilities of the listed tokens may hide."""

SURE = 0.99
"""Smallest chance that an ignored cut would have shown; below it, the check proves nothing and is untested."""

CLOSED = "no log-probabilities, or no prompt with several likely first tokens"


def _greedy(subject: Subject) -> Seen:
    """Check that replies at temperature 0 are greedy: each token is the likeliest one, and three replies are equal."""
    sent = "a prompt for a short story at temperature 0, three times"
    choice = subject.greedy
    # Rounding in a batch may swap tokens that are nearly equally likely, but moves them by less than 0.2 nats.
    odd = [t for t in choice.tokens if t.top and t.logprob is not None and max(t.top.values()) - t.logprob > 0.2]
    if odd:
        worst = max(odd, key=lambda t: max(t.top.values()) - (t.logprob or 0))
        likelier = max(worst.top, key=worst.top.__getitem__)
        return spoils(sent, f"{len(odd)} of {len(choice.tokens)} tokens are not the likeliest: "
                            f"{quoted(worst.token)!r} where {quoted(likelier)!r} is likelier")  # fmt: skip
    texts = {subject.chat().first.whole for _ in range(GREEDY_REPLIES)}
    if len(texts) == 1:
        return sound(
            sent, "the same reply each time" + (", the likeliest token in each place" if choice.tokens else "")
        )
    # Rounding may swap a few likely tokens, so three replies may all differ; only more different replies show sampling.
    if not choice.tokens and len({text[:12] for text in texts}) == GREEDY_REPLIES:
        texts |= {subject.chat().first.whole for _ in range(MORE_GREEDY_REPLIES)}
    if not choice.tokens and len({text[:12] for text in texts}) == GREEDY_REPLIES + MORE_GREEDY_REPLIES:
        return spoils(
            sent, f"replies that differ from the first token on: {', '.join(repr(quoted(t[:40])) for t in texts)}"
        )
    return warns(
        sent, f"{len(texts)} different replies: either greedy text depends on the batch, or the server samples"
    )


def core(listed: Mapping[str, float]) -> dict[str, float]:
    """The tokens that a usual cut keeps: those whose probability is at least `CORE` times the largest."""
    least = max(listed.values()) + math.log(CORE)
    return {token: value for token, value in listed.items() if value >= least}


rounds_needed = partial(exact.rounds_needed, factor=OFF, level=BOUND / PARTS)
"""About how many draws at these places find a temperature that is off by `OFF` with the chance `power`."""

BLIND = (
    f"too few draws show a temperature {OFF:g} times as high or low behind a cut of unlikely tokens (top_k, top_p, "
    "min_p): `whole distribution` looks for cuts, and neutral values of these fields in each request prevent them"
)


def _plan(
    subject: Subject, value: float, tokens_of: Callable[[Mapping[str, float]], dict[str, float]]
) -> tuple[Open, int]:
    """The prompt and the number of draws that test this temperature, by the tokens that `tokens_of` takes of those
    listed: of the prompts that show enough, one on the path of a run's requests, and the cheapest; with a budget, the
    prompt for which the draws that it pays for tell most.
    """
    most = MAX_DRAWS if subject.room is None else PRICED_DRAWS
    plans = []
    for opened in subject.openings:
        tokens = tokens_of(opened.logprobs)
        needed = rounds_needed([tokens], value, power=PLANNED) / max(1 - exact.unlisted(tokens, value), 1 / most)
        n = round(min(most, max(DRAWS, needed)))
        if subject.room is None or opened.tokens <= (subject.draw_tokens or 0):
            plans.append((max(1.0, needed / most), bool(subject.off_road(opened.path)), n * opened.tokens, n, opened))
    *_, n, opened = min(plans, key=itemgetter(0, 1, 2))
    return opened, n


def _tokens_to_test(listed: Mapping[str, float], draws: Draws) -> list[Mapping[str, float]]:
    """The sets of tokens whose draws show a temperature: the `core`, which usual cuts keep, and all listed tokens if a
    less likely one was drawn, since cuts keep the likeliest tokens.
    """
    return [core(listed), listed] if draws.n_unlisted else [core(listed)]


def _why_blind(listed: Mapping[str, float], draws: Draws, value: float) -> str:
    """Why these draws may look sound at a temperature that is off by the factor `OFF`; empty if the test finds it with
    the chance `POWER`, whichever unlikely tokens the server may have cut.
    """
    # A cut kept each token that was drawn, and all likelier ones.
    least = -math.inf if draws.n_unlisted else min((listed.get(token, 0.0) for token in draws.counts), default=0.0)
    for tokens in _tokens_to_test(listed, draws):
        n = sum(draws.counts[token] for token in tokens)
        cuts = [-math.inf, *(cut for cut in tokens.values() if cut <= least)]
        if n >= max(rounds_needed([tokens], value, power=POWER, least=[cut]) for cut in cuts):
            return ""
    return BLIND


def _temperature(value: float) -> Callable[[Subject], Seen]:
    """Return the check that draws at this temperature follow the distribution of this temperature.

    It has three tests: how often each token of `core` and each listed one is drawn (see `_tokens_to_test`), and whether
    too many draws are unlisted tokens, which shows a higher temperature. If a cut of unlikely tokens may hide another
    temperature, further tokens are drawn, as many as the first test needs.
    """

    def look(subject: Subject) -> Seen:
        """Draw one token with many seeds and test the temperature."""
        sent = f"one token at temperature {value:g}"
        if subject.open is None or subject.mixed:
            return untested(sent, subject.mixed or CLOSED)
        n_seeds, ps, parts, hidden = 0, list[float](), list[str](), ""
        # Below temperature 1 few draws lie outside the core.
        for tokens_of in (dict, core) if value >= 1 else (core,):
            opened, n = _plan(subject, value, tokens_of)
            draws = subject.draws(n, opened, temperature=value)
            p, came = _drawn_at(opened, draws, value, subject.seed)
            hidden = _why_blind(opened.logprobs, draws, value)
            n_seeds, ps, parts = n_seeds + n, [*ps, p], [*parts, came]
            if not hidden or PARTS * p < BOUND or subject.room is not None:
                break
        p, hidden = min(1.0, PARTS * min(ps)), hidden or subject.off_road(opened.path).removeprefix(", ")
        return Seen(outcome="spoils", sent=f"{sent}, {n_seeds} seeds", came="; ".join(parts), p=p, hidden=hidden)

    return look


def _drawn_at(opened: Open, draws: Draws, value: float, seed: int) -> tuple[float, str]:
    """Test that tokens were drawn at this temperature: (smallest p-value of the tests, sentence). seed: of the
    simulation.
    """
    counts, n = draws.counts, draws.counts.total()
    sets = _tokens_to_test(opened.logprobs, draws)
    among_listed, tokens = min(
        ((exact.temperature(counts, each, value, seed), each) for each in sets), key=itemgetter(0)
    )
    most = min(1.0, NEAR * exact.unlisted(opened.logprobs, value) + ROUNDED)
    others = exact.hotter(draws.n_unlisted, n, most)
    came = f"{len(counts)} different tokens ({quoted(shares(counts))}) after {opened.text!r}"
    fitted = exact.fitted_temperature(counts, tokens)
    if others < FALSE_ALARM:
        listed = len(opened.logprobs)
        came += f"; {draws.n_unlisted} of {n} are beyond the {listed} likeliest, at most {n * most:.0f} expected: "
        came += "hotter than asked"
    elif among_listed < FALSE_ALARM and fitted is not None:
        side = "hotter than asked" if fitted > value else "colder than asked, or unlikely tokens are cut"
        came += f"; the draws are like those of temperature {fitted:.2g}, {side}"
    return min(among_listed, others), came


def _nothing_cut(subject: Subject) -> Seen:
    """Draw at temperature 1 without cuts: tokens beyond the listed likeliest ones must come as often as expected."""
    sent = "one token at temperature 1, nothing cut"
    opened = subject.open
    if opened is None or subject.mixed:
        return untested(sent, subject.mixed or CLOSED)
    mass = 1 - sum(map(math.exp, opened.logprobs.values()))
    # With so many draws, a server that draws no token beyond the list is found.
    n = max(DRAWS, math.ceil(math.log(BOUND) / math.log1p(-mass))) if 0 < mass < 1 else MAX_DRAWS + 1
    if n > (MAX_DRAWS if subject.room is None else DRAWS):
        return untested(sent, f"only {mass:.1%} of the distribution lies beyond the {len(opened.logprobs)} likeliest")
    counts = subject.draws(n, opened).counts
    sent, n = f"{sent}, {n} seeds{subject.off_road(opened.path)}", counts.total()
    outside = n - sum(counts[token] for token in opened.logprobs)
    came = f"{outside} of {n} tokens beyond the {len(opened.logprobs)} likeliest, {n * mass:.0f} expected"
    return Seen(outcome="spoils", sent=sent, came=came, p=exact.cut(outside, n, mass))


def _cut(name: str, value: float, smallest: Callable[[list[float]], float]) -> Callable[[Subject], Seen]:
    """Return the check that the field `name` (top_k, top_p …) with this value cuts the distribution.

    smallest: takes all probabilities in falling order and returns the smallest that the cut keeps.
    """

    def look(subject: Subject) -> Seen:
        """Draw one token with many seeds under the cut, and look for tokens outside it."""
        sent = f"one token at temperature 1 with {name} {value:g}, {CUT_DRAWS} seeds"
        opened = subject.open
        if opened is None or subject.mixed:
            return untested(sent, subject.mixed or CLOSED)
        sent += subject.off_road(opened.path)
        ps = {token: math.exp(logprob) for token, logprob in opened.logprobs.items()}
        least = smallest(sorted(ps.values(), reverse=True)) / NEAR
        allowed = {token for token, p in ps.items() if p >= least}
        chance_of_allowed = sum(ps[token] for token in allowed)
        chance_to_show = 1 - chance_of_allowed**CUT_DRAWS
        if chance_to_show < SURE:
            return untested(sent, "the cut hardly changes this distribution")
        try:
            counts = subject.draws(CUT_DRAWS, opened, **{name: value}).counts
        except Refused as refused:
            return untested(sent, f"refused: {quoted(refused.sentence)}")
        outside = {token: n for token, n in counts.items() if token not in allowed}
        if outside:
            n = sum(outside.values())
            return spoils(sent, f"{n} of {counts.total()} tokens lie outside the cut: {quoted(shares(outside))}")
        return sound(sent, f"all {counts.total()} tokens are among the {len(allowed)} that the cut leaves")

    return look


def _nucleus(mass: float) -> Callable[[list[float]], float]:
    """Return a function that finds the smallest probability inside the nucleus: the likeliest tokens that together have
    the probability `mass` (top_p).

    mass: a little more than asked for, since batching may move the cut-off by a token.
    """

    def least(ps: list[float]) -> float:
        """The smallest probability inside the nucleus. ps: all probabilities, in falling order."""
        total = 0.0
        for p in ps:
            total += p
            if total >= mass:
                return p
        return ps[-1]

    return least


CUTS: tuple[tuple[str, float, Callable[[list[float]], float]], ...] = (
    ("top_k", 2, lambda ps: ps[min(1, len(ps) - 1)]),
    ("top_p", 0.3, _nucleus(0.33)),
    ("min_p", 0.5, lambda ps: ps[0] / 2),
)
"""Each cut that is tested: (field, value, function). The function takes all probabilities in falling order and returns
the smallest that the cut keeps.
"""


def _penalties(subject: Subject) -> Seen:
    """Check that the server applies penalties: a repetitive reply must change with the frequency penalty."""
    text = "Write the word apple again and again, at least thirty times, and nothing else."
    sent = "a reply that repeats a word, with frequency_penalty 2, presence_penalty 2 and a repetition penalty of 1.5"
    plain = subject.chat(text, max_tokens=40).first.whole
    words = plain.lower().split()
    if not words or max(map(words.count, words)) < 6:
        return untested(sent, "the model does not repeat itself")
    repeat = engines.dialect(subject.server.engine).names.get("repetition_penalty", "repetition_penalty")
    changed: list[str] = []
    ignored: list[str] = []
    refused: list[str] = []
    for fields in ({"frequency_penalty": 2.0}, {"presence_penalty": 2.0}, {repeat: 1.5}):
        (name,) = fields
        try:
            same = subject.chat(text, max_tokens=40, **fields).first.whole == plain
            (ignored if same else changed).append(name)
        except Refused:
            refused.append(name)
    kinds = (("changes the reply", changed), ("does not change the reply", ignored), ("refused", refused))
    came = "; ".join(f"{', '.join(names)}: {what}" for what, names in kinds if names)
    # A confident model repeats itself even under the other penalties; only the frequency penalty grows with each
    # repetition, so only a reply that it does not change is a fault.
    return warns(sent, came) if "frequency_penalty" in ignored else sound(sent, came)


def _hot(subject: Subject, **fields: Any) -> str:
    """The reply to the story prompt at temperature 1."""
    return subject.chat(temperature=1.0, top_p=1.0, **fields).first.whole


def _same_seed(subject: Subject) -> Seen:
    """Ask twice with the same seed, for three seeds: both replies must be equal."""
    sent = "three seeds at temperature 1, each twice"
    # These seeds are new, since a reply from a cache would look like an obeyed seed.
    subject.seed += 3
    pairs = [(_hot(subject, seed=seed), _hot(subject, seed=seed)) for seed in range(subject.seed - 3, subject.seed)]
    same = sum(first == second for first, second in pairs)
    if same == 3:
        return sound(sent, "the same text for the same seed, in three of three cases")
    same_beginning = sum(once[:12] == again[:12] for once, again in pairs)
    if same or same_beginning == 3:
        return warns(sent, f"the same text in {same} of three cases: seeds work, but batches change some texts")
    return warns(sent, "a different text each time: the server ignores the seed")


def _other_seed(subject: Subject) -> Seen:
    """Ask with four different seeds: the replies must not all be equal."""
    sent = "four seeds at temperature 1"
    subject.seed += 4
    texts = {_hot(subject, seed=seed) for seed in range(subject.seed - 4, subject.seed)}
    if len(texts) == 1:
        return spoils(sent, f"the same text each time: {quoted(texts.pop())!r}")
    return sound(sent, f"{len(texts)} different texts")


def _cache(subject: Subject) -> Seen:
    """Ask four times for one sampled reply without a seed: the replies must not all be equal."""
    sent = "the same request without a seed at temperature 1, four times"
    texts = {_hot(subject) for _ in range(4)}
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
        name="temperature 1", group="sampling", look=_temperature(1.0), quick=False, tokens=11_250,
        draws=PRICED_DRAWS,
        why="The temperature moves accuracy and the spread of samples; papers state it.",
        mend=_REWRITTEN,
    ),
    Check(
        name="temperature 0.5", group="sampling", look=_temperature(0.5), quick=False, tokens=11_250,
        draws=PRICED_DRAWS,
        why="The temperature moves accuracy and the spread of samples; papers state it.",
        mend=_REWRITTEN,
    ),
    Check(
        name="whole distribution", group="sampling", look=_nothing_cut, quick=False, tokens=4_500, draws=DRAWS,
        why="A cut that nobody asked for (default top_k, top_p or min_p) changes the setting of a run.",
        mend="Start the engine with neutral sampling defaults, or send the fields: top_p 1, top_k -1 (llama.cpp: 0), "
        "min_p 0.",
    ),
    Check(
        name="top_k", group="sampling", look=_cut(*CUTS[0]), quick=False, tokens=1_800, draws=CUT_DRAWS,
        why="Model cards recommend top_k (20 for Qwen3); without it, unlikely tokens are sampled too.",
        mend="Use a server that obeys it, or leave it out and say so beside the score.",
    ),
    Check(
        name="top_p", group="sampling", look=_cut(*CUTS[1]), quick=False, tokens=1_800, draws=CUT_DRAWS,
        why="Nearly every published score uses top_p 0.95; without it, unlikely tokens are sampled too.",
        mend="Use a server that obeys it, or leave it out and say so beside the score.",
    ),
    Check(
        name="min_p", group="sampling", look=_cut(*CUTS[2]), quick=False, tokens=1_800, draws=CUT_DRAWS,
        why="Some model cards recommend min_p.",
        mend="Use a server that obeys it, or leave it out and say so beside the score.",
    ),
    Check(
        name="penalties", group="sampling", look=_penalties, by_text=True, quick=False, tokens=600,
        why="If penalties are ignored, a run has another setting than it states.",
        mend="Leave penalties out, or use a server that obeys them.",
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
    Check(
        name="no cached replies", group="sampling", look=_cache, by_text=True, tokens=270,
        why="Samples that are copies of one another make pass@k and every error bar wrong.",
        mend="Look for a cache between here and the engine, or a server with a fixed seed; send seeds.",
    ),
)  # fmt: skip
