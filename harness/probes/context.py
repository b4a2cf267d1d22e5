"""Checks that a prompt nearly as long as the context reaches the model whole."""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.core.inert import quoted
from harness.probes.effect import MIN_EFFECT, MIN_REPEATS, Shift, Top, ask, shift_of
from harness.probes.findings import Check, Seen, sound, spoils, untested
from harness.probes.inquiries import Inquiry, Refused
from harness.probes.subject import Subject

MAX_TOKENS = 5_120
"""Longest prompt that is sent, in tokens, unless the user states a context to try."""

SECONDS = 20.0
"""Seconds that reading the longest prompt may take, estimated from the short prompts; a CPU reads 50 tokens a second.
"""

MIN_TOKENS = 1_024
"""Shortest test prompt, in tokens, however slow the server is."""

ROOM = 64
"""Number of tokens left for the reply and for what the chat template adds."""

SHORT, LONGER = 50, 150
"""Words in the two short prompts that measure how many tokens a word takes."""

TOLERANCE = 0.02
"""A prompt's token count may differ by this fraction from the count that the short prompts predict."""


def _prompt(words: int, head: str = "Remember the first word.") -> str:
    """A prompt with `words` filler words behind its first sentence, `head`."""
    return f"{head} {'word ' * words}What was the first word?"


def _tokens_by_words(subject: Subject) -> tuple[float, float] | None:
    """Measure with two short prompts the tokens of an empty prompt, and the tokens per word.

    None if the server states no counts of tokens, or counts that do not grow with the prompt.
    """
    # Each prompt begins differently: the caller measures their time, which a prefix cache would shorten.
    replies = (subject.chat(_prompt(n, f"{n} words follow."), max_tokens=1) for n in (SHORT, LONGER))
    short, longer = (reply.usage.prompt_tokens for reply in replies)
    if short is None or longer is None or longer <= short:
        return None
    slope = (longer - short) / (LONGER - SHORT)
    return short - slope * SHORT, slope


DEPTHS = {"head": 0.02, "first quarter": 0.25, "middle": 0.5, "last quarter": 0.75, "tail": 0.98}
"""The places in a long prompt at which a code word stands: name → fraction of the prompt's words before it."""

CODE_WORDS = ("amber", "walnut", "cobalt", "lantern", "saffron")
OTHER_WORDS = ("violin", "granite", "meadow", "copper", "thistle")
"""Code words at the places of `DEPTHS`, and the words that replace them when a place is tested."""

AROUND = 16
"""Number of words around a code word that are exchanged too if the code word alone shows no effect. They are less than
2 % of the shortest prompt.
"""

RECALL_TOKENS = 48
"""Number of new tokens in which the model may name all code words. A model that thinks first needs more, so it is
tested by the effect of the code words on the next token.
"""


def needles(words: int, codes: Sequence[str]) -> str:
    """Make a prompt of about `words` words with code words at the depths `DEPTHS`, which asks for them at its end."""
    filler = ["word"] * words
    # Inserted from the end, because each insertion moves all words after it.
    for depth, code in reversed(list(zip(DEPTHS.values(), codes, strict=True))):
        filler.insert(int(depth * words), f"A code word is {code}.")
    return f"Remember the code words. {' '.join(filler)} Name all code words, in their order, and nothing else."


def _long_prompt_check(subject: Subject) -> Seen:
    """Check that a prompt nearly as long as the context arrives whole: by its code words and by its count of tokens.

    Two short prompts give the tokens per word and the speed of reading; a slow server gets a shorter prompt, unless
    the context to try was stated by the user.
    """
    begun = time.monotonic()
    tokens_by_words = _tokens_by_words(subject)
    target = _target(subject, (SHORT + LONGER) / max(time.monotonic() - begun, 1e-6))
    # Without counts, a template of usual length and one token a word are assumed.
    n_empty, per_word = tokens_by_words or (64.0, 1.0)
    stated = f"a context of {subject.server.context:,}" if subject.server.context else "no context"
    # The sentence of each code word takes some five or six tokens.
    words = max(8, int((target - n_empty) / per_word) - 6 * len(DEPTHS))
    sent = f"a prompt of {target:,.0f} tokens with {len(DEPTHS)} code words; the server states {stated}"
    try:
        answer = subject.chat(needles(words, CODE_WORDS), max_tokens=RECALL_TOKENS)
    except Refused as refused:
        came = f"refused: {quoted(refused.sentence)}"
        if subject.context is None and subject.server.context is None and refused.status:  # it may be too long
            return untested(sent, f"{came}; `context` takes the number of tokens to try")
        return spoils(sent, came)
    n = answer.usage.prompt_tokens
    got = f"the model got {n:,} tokens" if n is not None else "no usage stated"
    if tokens_by_words is not None and n is not None and n < (1 - TOLERANCE) * per_word * words - 2:
        return spoils(sent, f"{got}: the prompt was cut on its way")
    reached, how = _depths(subject, words, answer.whole)
    lost = [depth for depth in DEPTHS if reached.get(depth) is False]
    if lost:
        return spoils(
            sent, f"{got}, says the server; but what stands at its {', '.join(lost)} never reached the model ({how})"
        )
    if len(reached) < len(DEPTHS):
        return untested(sent, f"{got}; {how}")
    return sound(sent, f"{got}; {how}")


def _target(subject: Subject, words_a_second: float) -> float:
    """The length of the long prompt in tokens: as long as the context to try, if the user stated one; else at most
    `MAX_TOKENS`, and what the server reads in `SECONDS`.
    """
    if subject.context:
        return subject.context - ROOM - RECALL_TOKENS
    longest = min(subject.server.context or MAX_TOKENS, MAX_TOKENS) - ROOM - RECALL_TOKENS
    # Words are about as many as tokens.
    return min(longest, max(MIN_TOKENS, words_a_second * SECONDS))


def _depths(subject: Subject, words: int, reply: str) -> tuple[dict[str, bool], str]:
    """Tell for each depth of a long prompt whether the text there reached the model, and how this is known.

    If the reply names the code word of a depth, the text there reached the model. Each other depth is tested by its
    effect: with other words there, the log-probabilities of the next token must change by more than between repeats.
    A depth without an effect is lost only if the same change at another depth shows one far above the noise. A depth
    that neither test decides has no entry.
    """
    reached = {depth: True for depth, code in zip(DEPTHS, CODE_WORDS, strict=True) if code in reply.lower()}
    if len(reached) == len(DEPTHS):
        return reached, "the reply names the code words at all depths"
    try:
        shifts = _shifts(subject, words)
    except Refused as refused:
        return reached, f"the reply does not name all code words: {quoted(refused.sentence)}"
    for depth, shift in shifts.items():
        elsewhere = [at_depth for name, at_depth in shifts.items() if name != depth]
        if shift.ratio >= MIN_EFFECT:
            reached[depth] = True
        elif shift.hides_none(elsewhere):
            reached.setdefault(depth, False)
    if not all(reached.values()):
        return reached, "another word there changes no log-probability by more than a repeat does"
    if len(reached) < len(DEPTHS):
        unseen = ", ".join(depth for depth in DEPTHS if depth not in reached)
        return (
            reached,
            f"repeats of one request differ too much to show whether other words at its {unseen} have an effect",
        )
    return reached, "other words at each depth change the log-probabilities"


def _shifts(subject: Subject, words: int) -> dict[str, Shift]:
    """Measure for each depth of a long prompt by how much other words there move the next token's log-probabilities.

    Raises `Refused` if a request fails or brings no log-probabilities.
    """

    def tops(prompt: str, n: int) -> list[Top]:
        return ask(subject.server, [Inquiry(prompt, {}).body(subject.server.asker)] * n)

    shifts: dict[str, Shift] = {}
    before = tops(needles(words, CODE_WORDS), MIN_REPEATS)
    for i, depth in enumerate(DEPTHS):
        shift = shift_of(before, tops(_exchanged(words, i), 1))
        if shift.ratio < MIN_EFFECT:
            # The server is asked again, because one noisy reply must not decide. More words are exchanged, because
            # rounding to 16 bits can hide the effect of a single word: vLLM then states the same log-probabilities.
            shift = shift_of(before, tops(_exchanged(words, i, around=AROUND), 1 + MIN_REPEATS))
        shifts[depth] = shift
    return shifts


def _exchanged(words: int, i: int, around: int = 0) -> str:
    """The prompt of `needles` with another code word at depth number `i`, and with other words in place of the filler
    words among about `around` words next to it.
    """
    changed = [*CODE_WORDS[:i], OTHER_WORDS[i], *CODE_WORDS[i + 1 :]]
    text = needles(words, changed).split()
    centre = text.index(f"{OTHER_WORDS[i]}.")
    near = range(max(0, centre - around // 2), min(len(text), centre + around // 2))
    for n, index in enumerate(i_word for i_word in near if text[i_word] == "word"):
        text[index] = OTHER_WORDS[n % len(OTHER_WORDS)]
    return " ".join(text)


CHECKS = (
    Check(
        name="context", group="context", look=_long_prompt_check, quick=False, tokens=6_000,
        why="A prompt that loses its beginning is a different question; long reasoning needs the whole stated context.",
        mend="Look for a gateway that truncates prompts, and start the engine with the context that the server states.",
    ),
)  # fmt: skip
