"""Checks that a long prompt reaches the model whole, and that a prompt beyond the context is refused, not cut."""

from __future__ import annotations

import time

from harness.core.inert import quoted
from harness.verbs.probe.asking import CHAT, Inquiry, ProbeReply, Refused
from harness.verbs.probe.findings import Check, Seen, sound, spoils, untested
from harness.verbs.probe.subject import Subject, logprob_fields

MAX_TOKENS = 16_384
"""Longest prompt that is sent, in tokens; a longer stated context is believed without a test."""

SECONDS = 20.0
"""Seconds that reading the longest prompt may take, estimated from the short prompts; a CPU reads 50 tokens a second.
"""

MIN_TOKENS = 1_024
"""Shortest test prompt, in tokens, however slow the server is."""

UNKNOWN_CONTEXT = 2_048
"""Length of the test prompt, in tokens, if the server states no context."""

ROOM = 64
"""Tokens left for the reply and for what the chat template adds."""

SHORT, LONGER = 50, 150
"""Words in the two short prompts that measure how many tokens a word takes."""

TOLERANCE = 0.02
"""A prompt's token count may differ by this fraction from the count that the short prompts predict."""


def _prompt(words: int, head: str = "Remember the first word.") -> str:
    return f"{head} {'word ' * words}What was the first word?"


def _count(answer: ProbeReply) -> int | None:
    return answer.usage.prompt_tokens if answer.usage else None


def _tokens_by_words(subject: Subject) -> tuple[float, float] | None:
    """(tokens of a prompt without words, tokens per word), from two short prompts; None without usable counts."""
    # Each prompt opens differently, because the caller times them: a prefix cache must not shorten the second.
    short, longer = (_count(subject.chat(_prompt(n, f"{n} words follow."), max_tokens=1)) for n in (SHORT, LONGER))
    if short is None or longer is None or longer <= short:
        return None
    slope = (longer - short) / (LONGER - SHORT)
    return short - slope * SHORT, slope


def _long_prompt_check(subject: Subject) -> Seen:
    """Send a prompt nearly as long as the stated context, and compare its token count with the expected one.

    Two short prompts give the tokens per word and the speed of reading; a slow server gets a shorter prompt.
    """
    stated = subject.server.context
    begun = time.monotonic()
    line = _tokens_by_words(subject)
    # Without counts: about the length of a template, and one token a word.
    base, slope = line or (64.0, 1.0)
    # Words stand for tokens here; the estimate only keeps a slow server from reading for minutes.
    in_time = (SHORT + LONGER) / (time.monotonic() - begun) * SECONDS
    room = min(stated or UNKNOWN_CONTEXT, MAX_TOKENS) - ROOM
    target = min(room, max(MIN_TOKENS, in_time))
    words = int((target - base) / slope)
    expected = base + slope * words
    sent = (
        f"a prompt of {expected:,.0f} tokens; the server states a context of {f'{stated:,}' if stated else 'nothing'}"
    )
    try:
        answer = subject.chat(_prompt(words), max_tokens=1)
    except Refused as refused:
        return spoils(sent, f"refused: {quoted(refused.sentence)}")
    n = _count(answer)
    if line is None or n is None:
        return _by_head(subject, words, sent)
    if abs(n - expected) > TOLERANCE * expected + 2:
        return spoils(sent, f"the model got {n:,} tokens: the prompt was cut on its way")
    further = "" if stated is None or n > stated - 2 * ROOM else "; longer prompts were not tried"
    return sound(sent, f"the model got {n:,} tokens{further}")


def _by_head(subject: Subject, words: int, sent: str) -> Seen:
    """Compare two prompts that differ only in their first words, for servers without usage.

    If both lead to exactly the same distribution of the next token, the beginning never reached the model.
    """
    tops = []
    for head in ("Remember the first word.", "Forget all other words."):
        fields = {"max_tokens": 1, "temperature": 0, **logprob_fields(CHAT)}
        try:
            tokens = subject.whole(Inquiry(_prompt(words, head), fields)).first.tokens
        except Refused as refused:
            return untested(
                sent, f"the server states no usage and refuses log-probabilities: {quoted(refused.sentence)}"
            )
        tops.append(tokens[0].top if tokens else {})
    if not tops[0]:
        return untested(
            sent,
            "the server states neither usage nor log-probabilities, so nothing shows how much of "
            "the prompt the model got",
        )
    if tops[0] == tops[1]:
        return spoils(
            sent, "the first words of the prompt change no digit of the distribution: the prompt was cut on its way"
        )
    return sound(sent, "no usage stated; the first words of the prompt change the reply's distribution")


def _beyond_context_check(subject: Subject) -> Seen:
    """Send a prompt 1.2 times as long as the stated context: the server must refuse it."""
    stated = subject.server.context
    if stated is None:
        return untested("a prompt longer than the context", "the server states no context")
    line = _tokens_by_words(subject)
    base, slope = line or (64.0, 1.0)
    words = int((1.2 * stated - base) / slope) + ROOM
    sent = f"a prompt of {base + slope * words:,.0f} tokens; the context is {stated:,}"
    try:
        answer = subject.chat(_prompt(words), max_tokens=1)
    except Refused as refused:
        return sound(sent, f"refused: {quoted(refused.sentence)}")
    return spoils(
        sent, f"a reply to {_count(answer) or 'an unknown number of'} prompt tokens: the prompt was cut without a word"
    )


CHECKS = (
    Check(
        name="context", group="context", look=_long_prompt_check, quick=False,
        why="A prompt that loses its beginning is a different question; long reasoning needs the whole stated context.",
        mend="Look for a gateway that truncates prompts, and start the engine with the context that the server states.",
    ),
    Check(
        name="too long a prompt", group="context", look=_beyond_context_check,
        why="A question beyond the context must count as not asked; a server that cuts the prompt silently answers "
            "another question.",
        mend="Switch off the truncation of prompts at the server or the gateway.",
    ),
)  # fmt: skip
