"""Checks the prompt that the model gets: which messages reach it, what is added to them, and what the server reveals of
it (llama.cpp: /apply-template; vLLM, SGLang: /tokenize with messages); whether a prompt nearly as long as the context
arrives whole; and where a thinking model's reasoning ends up when it is cut.

Every word of a prompt moves the logits of the next token a little. A change that moves them no more than repeating the
same request never reached the model. The measure is an F ratio: the squared distance between the mean log-probabilities
with the change (ȳ, of n requests) and without it (x̄, of m requests), divided by its expected value if only noise
separates them (batching and kernels move logits from request to request).

    ratio = mean over tokens of (x̄ − ȳ)² / (s² (1/m + 1/n)),   s²: variance of repeats, pooled over tokens

If there are no log-probabilities, a message reached the model if the greedy reply changes without it. Token counts show
what a server adds.

Long: the measure is kept together with the two kinds of checks that use it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.client.apis.chat import CHAT
from harness.client.facts.tokens import THINK, THINK_END
from harness.core.errors import ServerError
from harness.core.records import Message
from harness.core.sanitize import quoted
from harness.probes.findings import Check, Observation, fails, passes, untested, warns
from harness.probes.requests import Inquiry, ProbedServer, Refused, first_top
from harness.probes.tested_server import TOP, Subject, listed

MIN_EFFECT = 8.0
"""Smallest F ratio of a change that reached the model. If twenty tokens have independent noise, noise alone produces a
ratio above 3 in one of 10,000 cases. The limit is well above 3 because batching noise moves all tokens together.
"""

MAX_CHANCE = 3.0
"""Largest F ratio of a change without a visible effect; between this and `MIN_EFFECT`, noise and an effect look the
same.
"""

MIN_POWER = 20.0
"""A missing effect counts only if the same kind of change elsewhere moves the log-probabilities by this many times the
distance that noise alone produces. The factor is far above 1, because a model may react several times less strongly to
one part of a prompt than to another.
"""

MIN_REPEATS = 2
"""Smallest number of identical requests from which the noise is estimated."""

EQUAL_NATS = 1e-4
"""Log-probabilities that differ by less are equal; servers round the values that they return."""

MAX_NOISE_NATS = 0.1
"""Largest spread of the log-probabilities of repeats at which a missing effect proves that a change never reached the
model. A larger spread may mask a real effect; batching and caches move trained models by only about 0.02.
"""

MIN_COMMON = 3
"""Minimum number of tokens that all lists must have in common; lists with fewer differ by more than noise."""

Top = Mapping[str, float]
"""Token → log-probability, for the likeliest next tokens after a prompt."""


@dataclass(frozen=True)
class Shift:
    """How far a change of the prompt moved the next token's log-probabilities, in nats.

    distance: root mean square difference between the mean log-probabilities; infinite if too few tokens are shared.
    chance: the distance expected from noise alone. noise: standard deviation of repeats.
    """

    distance: float
    chance: float
    noise: float

    @property
    def ratio(self) -> float:
        """The F ratio of the change: about 1 if it never reached the model, large if it did.

        Infinite if the means differ but repeats do not, or if the lists share fewer than `MIN_COMMON` tokens; 0 if the
        means are equal.
        """
        if self.distance == 0:
            return 0.0
        return math.inf if self.chance < EQUAL_NATS else (self.distance / self.chance) ** 2

    def hides_none(self, elsewhere: Sequence[Shift]) -> bool:
        """Whether it is certain that this change never reached the model, so that noise hides no effect.

        It is certain if there is no noise and no log-probability moves at all; or if this change has no visible effect,
        and the same kind of change elsewhere has an effect so large that noise could not hide a similar one here.
        elsewhere: the same kind of change in other parts of the prompt; parts without a visible effect are ignored.
        """
        if self.distance == 0 and self.noise < EQUAL_NATS:
            return True
        visible = [shift.distance for shift in elsewhere if shift.ratio >= MIN_EFFECT]
        silent = self.ratio < MAX_CHANCE and self.noise <= MAX_NOISE_NATS
        return silent and bool(visible) and max(visible) >= MIN_POWER * max(self.chance, EQUAL_NATS)


def shift_of(before: Sequence[Top], after: Sequence[Top]) -> Shift:
    """Measure how far a change of the prompt moved the next token's log-probabilities.

    before: for each request without the change, token → log-probability; at least `MIN_REPEATS` requests. after: the
    same for the requests with the change.
    """
    assert len(before) >= MIN_REPEATS
    assert after
    common = sorted(set.intersection(*(set(top) for top in (*before, *after))))
    # Noise swaps only the last few of twenty tokens, so lists with so few common tokens come from different prompts.
    if len(common) < MIN_COMMON:
        return Shift(distance=math.inf, chance=0.0, noise=0.0)
    x = np.array([[top[token] for token in common] for top in before])
    y = np.array([[top[token] for token in common] for top in after])
    distance = x.mean(axis=0) - y.mean(axis=0)
    # One variance for all tokens: with two or three repeats, per-token variances would be mostly chance.
    freedom = len(x) - 1 + len(y) - 1
    spread = float(((x - x.mean(axis=0)) ** 2).sum() + ((y - y.mean(axis=0)) ** 2).sum()) / (freedom * len(common))
    equal = float(np.abs(distance).max()) < EQUAL_NATS
    return Shift(
        distance=0.0 if equal else math.sqrt(float((distance**2).mean())),
        chance=math.sqrt(spread * (1 / len(x) + 1 / len(y))),
        noise=math.sqrt(spread),
    )


def ask(server: ProbedServer, bodies: Sequence[Mapping[str, Any]]) -> list[Top]:
    """The next token's log-probabilities after each of these prompts.

    Raises `Refused` if a request fails or returns no log-probabilities.
    """
    fields = {"max_tokens": 1, "temperature": 0, **CHAT.likeliest(TOP)}
    replies = server.send_all([{**body, **fields} for body in bodies])
    tops: list[Top] = [listed(first_top(reply)) for reply in replies]
    if not all(tops):
        raise Refused(0, "the reply has no log-probabilities")
    return tops


# ---- messages, and what the server reveals


SUM = "What is 17 + 25?"
CUT_AT = 16
"""Length of a reply in tokens at which a thinking model is still thinking."""


def _prompt(subject: Subject) -> Observation:
    """Render a question: the template's markers must not be duplicated. `messages` and `added words` test what is lost
    or added, even if the server does not reveal prompts.
    """
    sent = "a question rendered by the server"
    if (rendered := _rendered(subject)) is None:
        return untested(sent, "the server does not expose its prompts")
    text, ids = rendered
    if len(ids) > 1 and ids[0] == ids[1]:
        return fails(sent, f"the prompt begins with the same token twice ({ids[0]}): a duplicate BOS")
    if text.count(THINK) > 1:
        return fails(sent, f"the prompt contains {THINK} {text.count(THINK)} times: {quoted(text[-80:])!r}")
    return passes(sent, f"{quoted(text)!r}, {len(ids)} tokens")


def _rendered(subject: Subject) -> tuple[str, list[int]] | None:
    """The prompt that the server builds for a sum, as text and token IDs; None if it does not reveal prompts."""
    try:
        return subject.server.render([Message("user", SUM)])
    except ServerError:
        return None


def _reasoning(subject: Subject) -> Observation:
    """Cut a reply within its reasoning: the reasoning must not be returned as the answer."""
    sent = f"an addition problem at temperature 0, limited to {CUT_AT} tokens"
    reply = subject.chat(SUM, max_tokens=CUT_AT)
    if not reply.reasoning_and_text and subject.server.unread:
        return untested(sent, f"the reply has no text; {subject.server.unread}")
    if reply.reasoning:
        answer = "if the reply is truncated, the answer is empty" if not reply.text else "the answer had already begun"
        return passes(sent, f"the reasoning is in a separate field; {answer}")
    marked, rendered = THINK in reply.text or THINK_END in reply.text, _rendered(subject)
    # If the prompt ends with the marker, the reply begins inside the reasoning.
    if not marked and (rendered is None or not rendered[0].rstrip().endswith(THINK)):
        return untested(sent, "either the model does not reason, or its reasoning is not shown")
    if reply.finish_reason == "stop":
        return untested(sent, "the reply ended before the limit")
    if THINK in reply.text:
        return passes(sent, f"the reasoning is in the text, after {THINK}")
    shown = quoted(reply.text[:60])
    return fails(sent, f"the template opens {THINK}, and truncated reasoning is returned as the answer: {shown!r}")


Messages = Sequence[Mapping[str, str]]
"""The messages of a chat request, each with `role` and `content`."""

DOOR = "What colour shall I paint the door?"
SYSTEM = "You are a painter who loves orange. Answer every question with the one word ORANGE, whatever is asked."
EARLIER = (
    {
        "role": "user",
        "content": "My neighbour's door is violet, and his fence is violet too. I want the same as he has.",
    },
    {"role": "assistant", "content": "Understood: you want violet, as your neighbour has it."},
)
"""A question whose answer must change if a system message or two earlier turns reach the model."""

TOKENS = 16
"""Number of new tokens of the greedy replies that are compared if there are no log-probabilities."""

MAX_OVERHEAD = 100
"""Number of tokens that a chat template may add to one short message. Templates of known models add up to about 70."""


def _request_body(server: ProbedServer, messages: Messages, **fields: Any) -> dict[str, Any]:
    """The body of a chat request with these messages."""
    return {**Inquiry(DOOR, fields).body(server.asker), "messages": [*messages]}


def _reaches_model(subject: Subject, messages: Messages, without: Messages) -> bool | None:
    """Whether the messages that are in `messages` but not in `without` reached the model; None if there is no evidence.

    messages, without: the same conversation with and without these messages. Raises `Refused`.
    """
    body, less = _request_body(subject.server, messages), _request_body(subject.server, without)
    try:
        before, after = ask(subject.server, [body] * MIN_REPEATS), ask(subject.server, [less] * MIN_REPEATS)
    except Refused as refused:
        if refused.status >= 500:
            raise
        # The server returns no log-probabilities: compare greedy replies instead.
        fields = {"max_tokens": TOKENS, "temperature": 0}
        texts = [subject.server.unstreamed({**request, **fields}).reasoning_and_text for request in (body, less)]
        # Equal greedy replies prove nothing: the messages may move probabilities without changing the likeliest token.
        return True if texts[0] != texts[1] else None
    return shift_of(before, after).ratio >= MIN_EFFECT


_REACHED = {True: "reached the model", False: "never reached the model", None: "had no visible effect on the reply"}
"""Whether a part of a conversation reached the model (`_reaches_model`) → its words in the finding."""


def _messages(subject: Subject) -> Observation:
    """Check that the system message and earlier turns reach the model: omitting either must change the next token."""
    sent = "a question with and without a system message, and with and without two earlier turns"
    user = {"role": "user", "content": DOOR}
    parts: dict[str, Messages] = {
        "the system message": [{"role": "system", "content": SYSTEM}],
        "the earlier turns": EARLIER,
    }
    reached, words = list[bool | None](), list[str]()
    for part, messages in parts.items():
        try:
            reached.append(_reaches_model(subject, [*messages, user], [user]))
            words.append(f"{part}: {_REACHED[reached[-1]]}")
        except Refused as refused:
            reached.append(None)
            words.append(f"{part}: rejected: {quoted(refused.sentence)}")
    received = "; ".join(words)
    if False in reached:
        return fails(sent, received)
    return untested(sent, received) if None in reached else passes(sent, received)


def _check_system_prompt(subject: Subject) -> Observation:
    """Check that the server does not add its own system prompt: the prompt must not be shorter with a system message
    than without one, and the prompt for one word must be short.
    """
    sent = "a one-word prompt, alone and after a one-word system message, to compare prompt token counts"
    user = {"role": "user", "content": "Hi"}
    alone, after = (
        subject.server.unstreamed({**_request_body(subject.server, messages), "max_tokens": 1}).usage
        for messages in ([user], [{"role": "system", "content": "Hi"}, user])
    )
    if alone.prompt_tokens is None or after.prompt_tokens is None:
        return untested(sent, "the server reports no usage")
    n, with_system = alone.prompt_tokens, after.prompt_tokens
    both = f"{n} tokens without a system message, {with_system} with one"
    if n > with_system:
        return warns(sent, f"{both}: the server adds a system prompt if none is sent")
    if n > MAX_OVERHEAD:
        return warns(sent, f"{n} tokens for one word: the server adds a system prompt")
    return passes(sent, both)


CHECKS = (
    Check(
        name="reasoning", group="protocol", look=_reasoning,
        why="The grader looks for the answer after the reasoning. If truncated reasoning is returned as text, a guess "
        "within it is graded as the answer.",
        fix="Start the engine with the model's reasoning parser. Alternatively, use a template that shows "
        "<think>, without a parser.",
    ),
    Check(
        name="prompt", group="template", look=_prompt,
        why="A duplicate BOS or <think> makes the same weights behave like a different model.",
        fix="Start the engine with the model's own template.",
    ),
    Check(
        name="messages", group="template", look=_messages, tokens=400,
        why="If a system message or earlier turn does not reach the model, the model answers a different question.",
        fix="Look for a gateway that rewrites messages, and start the engine with the model's own template.",
    ),
    Check(
        name="added words", group="template", look=_check_system_prompt,
        why="A system prompt that you did not send makes the same weights behave like a different model.",
        fix="If the model's own chat template adds it, as with Qwen2.5, nothing is wrong. Otherwise, send your "
        "own system prompt, or ask the provider for a route that does not add one.",
    ),
)  # fmt: skip


# ---- a long prompt


MAX_TOKENS = 5_120
"""Longest prompt that is sent, in tokens, unless the user specifies a context to try."""

SECONDS = 20.0
"""Seconds that reading the longest prompt may take, estimated from the short prompts; a CPU reads 50 tokens a second.
"""

MIN_TOKENS = 1_024
"""Shortest test prompt, in tokens, however slow the server is."""

ROOM = 64
"""Number of tokens reserved for the reply and for what the chat template adds."""

SHORT, LONGER = 50, 150
"""Numbers of words in the two short prompts that measure how many tokens a word takes."""

TOLERANCE = 0.02
"""A prompt's token count may differ by this fraction from the count that the short prompts predict."""


def _tokens_by_words(subject: Subject) -> tuple[float, float] | None:
    """Measure the tokens of an empty prompt, and the tokens per word, with two short prompts.

    None if the server reports no token counts, or if they do not grow with the prompt.
    """
    # Each prompt begins differently, because the caller times them and a prefix cache would make them faster.
    prompts = (f"{n} words follow. {'word ' * n}What was the first word?" for n in (SHORT, LONGER))
    replies = (subject.chat(prompt, max_tokens=1) for prompt in prompts)
    short, longer = (reply.usage.prompt_tokens for reply in replies)
    if short is None or longer is None or longer <= short:
        return None
    slope = (longer - short) / (LONGER - SHORT)
    return short - slope * SHORT, slope


DEPTHS = {"head": 0.02, "first quarter": 0.25, "middle": 0.5, "last quarter": 0.75, "tail": 0.98}
"""The places of the code words in a long prompt: name → fraction of the prompt's words before the code word."""

CODE_WORDS = ("amber", "walnut", "cobalt", "lantern", "saffron")
OTHER_WORDS = ("violin", "granite", "meadow", "copper", "thistle")
"""Code words at the places of `DEPTHS`, and the words that replace them when a place is tested."""

AROUND = 16
"""Number of words around a code word that are also replaced if the code word alone has no effect. They make up less
than 2% of the shortest prompt.
"""

RECALL_TOKENS = 48
"""Number of new tokens in which the model may name all code words. A model that thinks first needs more, so it is
tested by the effect of the code words on the next token.
"""


def needles(words: int, codes: Sequence[str]) -> str:
    """Make a prompt of about `words` words that has code words at the depths `DEPTHS` and asks for them at its end."""
    filler = ["word"] * words
    # Inserted from the end, because each insertion moves all words after it.
    for depth, code in reversed(list(zip(DEPTHS.values(), codes, strict=True))):
        filler.insert(int(depth * words), f"A code word is {code}.")
    return f"Remember the code words. {' '.join(filler)} Name all code words, in their order, and nothing else."


def _long_prompt_check(subject: Subject) -> Observation:
    """Check that a prompt nearly as long as the context arrives whole, by its code words and its token count.

    Two short prompts give the tokens per word and the reading speed; a slow server gets a shorter prompt, unless the
    user specified the context to try.
    """
    begun = time.monotonic()
    tokens_by_words = _tokens_by_words(subject)
    target = _target(subject, (SHORT + LONGER) / max(time.monotonic() - begun, 1e-6))
    # Without counts, a template of typical length and one token per word are assumed.
    n_empty, per_word = tokens_by_words or (64.0, 1.0)
    stated = f"a context of {subject.server.context:,}" if subject.server.context else "no context"
    # The sentence with each code word takes five or six tokens.
    words = max(8, int((target - n_empty) / per_word) - 6 * len(DEPTHS))
    sent = f"a prompt of {target:,.0f} tokens that contains {len(DEPTHS)} code words; the server reports {stated}"
    try:
        answer = subject.chat(needles(words, CODE_WORDS), max_tokens=RECALL_TOKENS)
    except Refused as refused:
        received = f"rejected: {quoted(refused.sentence)}"
        if subject.context is None and subject.server.context is None and refused.status:  # it may be too long
            return untested(sent, f"{received}; use `context` to set the number of tokens to try")
        return fails(sent, received)
    n = answer.usage.prompt_tokens
    got = f"the model received {n:,} tokens" if n is not None else "no usage reported"
    if tokens_by_words is not None and n is not None and n < (1 - TOLERANCE) * per_word * words - 2:
        return fails(sent, f"{got}: the prompt was truncated")
    reached, how = _depths(subject, words, answer.reasoning_and_text)
    if lost := ", ".join(depth for depth in DEPTHS if reached.get(depth) is False):
        return fails(sent, f"{got} according to the server, but the text at its {lost} never reached the model ({how})")
    if len(reached) < len(DEPTHS):
        return untested(sent, f"{got}; {how}")
    return passes(sent, f"{got}; {how}")


def _target(subject: Subject, words_a_second: float) -> float:
    """The length of the long prompt, in tokens: the context to try, if the user specified one; otherwise at most
    `MAX_TOKENS`, and no more than the server reads in `SECONDS`.
    """
    if subject.context:
        return subject.context - ROOM - RECALL_TOKENS
    longest = min(subject.server.context or MAX_TOKENS, MAX_TOKENS) - ROOM - RECALL_TOKENS
    # There are about as many words as tokens.
    return min(longest, max(MIN_TOKENS, words_a_second * SECONDS))


def _depths(subject: Subject, words: int, reply: str) -> tuple[dict[str, bool], str]:
    """Return, for each depth of a long prompt, whether the text there reached the model, and how this is known.

    If the reply names the code word of a depth, the text there reached the model. Each other depth is tested by its
    effect: with different words there, the log-probabilities of the next token must change by more than between
    repeats. A depth without an effect counts as lost only if the same change at another depth has an effect far above
    the noise. A depth that neither test decides has no entry.
    """
    reached = {depth: True for depth, code in zip(DEPTHS, CODE_WORDS, strict=True) if code in reply.lower()}
    if len(reached) == len(DEPTHS):
        return reached, "the reply contains all code words"
    try:
        shifts = _shifts(subject, words)
    except Refused as refused:
        return reached, f"the reply does not contain all code words: {quoted(refused.sentence)}"
    for depth, shift in shifts.items():
        elsewhere = [at_depth for name, at_depth in shifts.items() if name != depth]
        if shift.ratio >= MIN_EFFECT:
            reached[depth] = True
        elif shift.hides_none(elsewhere):
            reached.setdefault(depth, False)
    if not all(reached.values()):
        return reached, "changing the words there affects the log-probabilities no more than repeating the request does"
    if len(reached) < len(DEPTHS):
        unseen = ", ".join(depth for depth in DEPTHS if depth not in reached)
        return reached, f"repeated requests vary too much to show whether the words at the {unseen} have an effect"
    return reached, "changing the words at any tested position changes the log-probabilities"


def _shifts(subject: Subject, words: int) -> dict[str, Shift]:
    """Measure, for each depth of a long prompt, how far different words there move the next token's log-probabilities.

    Raises `Refused` if a request fails or returns no log-probabilities.
    """

    def tops(prompt: str, n: int) -> list[Top]:
        return ask(subject.server, [Inquiry(prompt, {}).body(subject.server.asker)] * n)

    shifts: dict[str, Shift] = {}
    before = tops(needles(words, CODE_WORDS), MIN_REPEATS)
    for i, depth in enumerate(DEPTHS):
        shift = shift_of(before, tops(_exchanged(words, i), 1))
        if shift.ratio < MIN_EFFECT:
            # The requests are repeated, because one noisy reply must not decide. More words are replaced, because
            # rounding to 16 bits can hide the effect of a single word: vLLM then returns the same log-probabilities.
            shift = shift_of(before, tops(_exchanged(words, i, around=AROUND), 1 + MIN_REPEATS))
        shifts[depth] = shift
    return shifts


def _exchanged(words: int, i: int, around: int = 0) -> str:
    """The prompt of `needles` with a different code word at depth number `i`, and with other words in place of the
    filler words among the roughly `around` words next to it.
    """
    changed = [*CODE_WORDS[:i], OTHER_WORDS[i], *CODE_WORDS[i + 1 :]]
    text = needles(words, changed).split()
    center = text.index(f"{OTHER_WORDS[i]}.")
    near = range(max(0, center - around // 2), min(len(text), center + around // 2))
    for n, index in enumerate(i_word for i_word in near if text[i_word] == "word"):
        text[index] = OTHER_WORDS[n % len(OTHER_WORDS)]
    return " ".join(text)


CONTEXT_CHECKS = (
    Check(
        name="context", group="context", look=_long_prompt_check, quick=False, tokens=6_000,
        why="A prompt whose beginning is cut off is a different question, and long reasoning needs the full context.",
        fix="Look for a gateway that truncates prompts, and start the engine with the context length that it reports.",
    ),
)  # fmt: skip
