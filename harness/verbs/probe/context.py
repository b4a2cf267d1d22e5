"""Does a long prompt reach the model whole, and is one that is too long refused rather than cut."""

from __future__ import annotations

import time

from harness.core.inert import quoted
from harness.verbs.probe.asking import CHAT, Inquiry, ProbeReply, Refused
from harness.verbs.probe.findings import Check, Seen, sound, spoils, untested
from harness.verbs.probe.subject import Subject, logprob_fields

MAX_TOKENS = 16_384
"""Longest prompt that is sent to be read; a longer context is taken at the server's word from there on."""

SECONDS = 20.0
"""For which the longest prompt may be read, as the short ones tell it; a CPU reads 50 tokens a second."""

MIN_TOKENS = 1_024
"""Shortest prompt that is sent, in tokens, however slow the server is."""

UNKNOWN_CONTEXT = 2_048
"""Tokens of the prompt where the server states no context."""

ROOM = 64
"""Tokens left for the reply and for what the template adds."""

SHORT, LONGER = 50, 150
"""Words of the two short prompts from which the tokens a word takes are told."""

TOLERANCE = 0.02
"""Share of the tokens by which a prompt's count may miss the line through the short ones."""


def _prompt(words: int, head: str = "Remember the first word.") -> str:
    return f"{head} {'word ' * words}What was the first word?"


def _count(answer: ProbeReply) -> int | None:
    return answer.usage.prompt_tokens if answer.usage else None


def _line(subject: Subject) -> tuple[float, float] | None:
    """(tokens of a prompt without words, tokens per word), from two short prompts; None without usable counts."""
    # `_reached` times such prompts: each opens differently, so that no prefix cache answers for another.
    short, longer = (_count(subject.chat(_prompt(n, f"{n} words follow."), max_tokens=1)) for n in (SHORT, LONGER))
    if short is None or longer is None or longer <= short:
        return None
    slope = (longer - short) / (LONGER - SHORT)
    return short - slope * SHORT, slope


def _reached(subject: Subject) -> Seen:
    stated = subject.server.context
    begun = time.monotonic()
    line = _line(subject)
    base, slope = line or (64.0, 1.0)
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
    further = "" if stated is None or n > stated - 2 * ROOM else "; what lies beyond was not tried"
    return sound(sent, f"the model got {n:,} tokens{further}")


def _by_head(subject: Subject, words: int, sent: str) -> Seen:
    """Without usage: two prompts that differ in their first words alone must not lead to the very same distribution."""
    tops = []
    for head in ("Remember the first word.", "Forget all other words."):
        fields = {"max_tokens": 1, "temperature": 0, **logprob_fields(CHAT)}
        try:
            tokens = subject.whole(Inquiry(_prompt(words, head), fields)).first.tokens
        except Refused as refused:
            return untested(sent, f"no usage, and log-probabilities are refused: {quoted(refused.sentence)}")
        tops.append(tokens[0].top if tokens else {})
    if not tops[0]:
        return untested(sent, "neither usage nor log-probabilities tell how much of it the model got")
    if tops[0] == tops[1]:
        return spoils(sent, "its first words change nothing, to the last digit: the prompt was cut on its way")
    return sound(sent, "no usage; its first words change the reply's distribution")


def _too_long(subject: Subject) -> Seen:
    stated = subject.server.context
    if stated is None:
        return untested("a prompt longer than the context", "the server states no context")
    line = _line(subject)
    base, slope = line or (64.0, 1.0)
    words = int((1.2 * stated - base) / slope) + ROOM
    sent = f"a prompt of {base + slope * words:,.0f} tokens, the context being {stated:,}"
    try:
        answer = subject.chat(_prompt(words), max_tokens=1)
    except Refused as refused:
        return sound(sent, f"refused: {quoted(refused.sentence)}")
    return spoils(sent, f"a reply, to {_count(answer) or 'an unknown number of'} prompt tokens: it was cut unsaid")


CHECKS = (
    Check(
        name="context", group="context", look=_reached, quick=False,
        why="A prompt whose beginning is dropped is another question; long reasoning needs the room that is stated.",
        mend="Look for a gateway that truncates, and start the engine with the context that it states.",
    ),
    Check(
        name="too long a prompt", group="context", look=_too_long,
        why="Such a question must count as not asked; a prompt that is cut unsaid is answered without its beginning.",
        mend="Switch truncation of prompts off at the server or the gateway.",
    ),
)  # fmt: skip
