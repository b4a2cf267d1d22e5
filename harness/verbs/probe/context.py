"""Checks that a long prompt reaches the model whole, and that a prompt beyond the context is refused, not cut."""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.core.inert import quoted
from harness.verbs.probe.asking import Inquiry, ProbeReply, Refused
from harness.verbs.probe.effect import MIN_EFFECT, MIN_REPEATS, Shift, Top, ask, shift_of
from harness.verbs.probe.findings import Check, Seen, sound, spoils, untested
from harness.verbs.probe.subject import Subject

MAX_TOKENS = 16_384
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


def _count(answer: ProbeReply) -> int | None:
    """The number of prompt tokens that the reply states; None without usage."""
    return answer.usage.prompt_tokens if answer.usage else None


def _tokens_by_words(subject: Subject) -> tuple[float, float] | None:
    """Measure with two short prompts the tokens of an empty prompt, and the tokens per word.

    None if the server states no counts of tokens, or counts that do not grow with the prompt.
    """
    # Each prompt begins differently: the caller measures their time, which a prefix cache would shorten.
    short, longer = (_count(subject.chat(_prompt(n, f"{n} words follow."), max_tokens=1)) for n in (SHORT, LONGER))
    if short is None or longer is None or longer <= short:
        return None
    slope = (longer - short) / (LONGER - SHORT)
    return short - slope * SHORT, slope


DEPTHS = {"head": 0.02, "first quarter": 0.25, "middle": 0.5, "last quarter": 0.75, "tail": 0.98}
"""The places in a long prompt at which a code word stands: name → fraction of the prompt's words before it."""

CODE_WORDS = ("amber", "walnut", "cobalt", "lantern", "saffron")
OTHER_WORDS = ("violin", "granite", "meadow", "copper", "thistle")
"""Code words at the places of `DEPTHS`, and the words that replace them when a place is tested."""

EFFECT_PROMPTS = 8
"""Number of prompts of full length that test whether each code word changes the model's next token; more are needed if
a code word does not.
"""

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


def _line_and_speed(subject: Subject) -> tuple[tuple[float, float] | None, float]:
    """Return the result of `_tokens_by_words`, and the number of words that the server reads in `SECONDS`."""
    begun, waited = time.monotonic(), subject.server.seconds_waited
    line = _tokens_by_words(subject)
    # Without the time in which the server's limits kept the requests back.
    seconds = time.monotonic() - begun - (subject.server.seconds_waited - waited)
    return line, (SHORT + LONGER) / max(seconds, 1e-6) * SECONDS


def _long_prompt_check(subject: Subject) -> Seen:
    """Check that a prompt nearly as long as the context arrives whole: by its code words and by its count of tokens.

    Two short prompts give the tokens per word and the speed of reading; a slow server gets a shorter prompt, unless
    the context to try was stated by the user.
    """
    stated = subject.context or subject.server.context
    line, in_time = _line_and_speed(subject)
    # Without counts, a template of usual length and one token a word are assumed.
    base, slope = line or (64.0, 1.0)
    # The length of the prompt: as long as the context to try; without one, a slow server gets a shorter prompt.
    if subject.context:
        target: float = subject.context - ROOM - RECALL_TOKENS
    else:
        longest = min(stated or MAX_TOKENS, MAX_TOKENS) - ROOM - RECALL_TOKENS
        # `in_time` counts words, which are about as many as tokens.
        target = min(longest, max(MIN_TOKENS, in_time))
    # This prompt may take half of the budget. It decides alone if the reply names the code words; else others follow.
    if subject.room is not None:
        target = min(target, max(MIN_TOKENS, subject.room // 2))
    while True:
        # The sentence of each code word takes some five or six tokens.
        words = max(8, int((target - base) / slope) - 6 * len(DEPTHS))
        sent = f"a prompt of {target:,.0f} tokens with {len(DEPTHS)} code words; the server states {_stated(subject)}"
        try:
            answer = subject.chat(needles(words, CODE_WORDS), max_tokens=RECALL_TOKENS)
            break
        except Refused as refused:
            # Where no context is known, the first prompt may be too long.
            if stated is not None or target <= MIN_TOKENS or refused.status == 0:
                return spoils(sent, f"refused: {quoted(refused.sentence)}")
            target = max(MIN_TOKENS, target / 2)
    n = _count(answer)
    got = f"the model got {n:,} tokens" if n is not None else "no usage stated"
    if line is not None and n is not None and n < (1 - TOLERANCE) * slope * words - 2:
        return spoils(sent, f"{got}: the prompt was cut on its way")
    reached, how = _depths(subject, words, answer.first.whole)
    lost = [depth for depth in DEPTHS if reached.get(depth) is False]
    if lost:
        return spoils(
            sent, f"{got}, says the server; but what stands at its {', '.join(lost)} never reached the model ({how})"
        )
    if len(reached) < len(DEPTHS):
        return untested(sent, f"{got}; {how}")
    subject.longest = n or int(target)
    return sound(sent, f"{got}; {how}")


def _stated(subject: Subject) -> str:
    """The context that the server states, in words."""
    stated = subject.server.context
    return f"a context of {stated:,}" if stated else "no context"


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
    # If several models answer, two requests cannot be compared; `mixed` is then a sentence that says so.
    if subject.mixed:
        return reached, subject.mixed
    if subject.room is not None and subject.room < EFFECT_PROMPTS * words:
        missing = ", ".join(depth for depth in DEPTHS if depth not in reached)
        return reached, (
            f"the reply does not repeat the code words at its {missing}; whether they reached the model takes "
            f"{EFFECT_PROMPTS} more long prompts, for which the budget of tokens is too small"
        )
    try:
        shifts = _shifts(subject, words, set(reached))
    except Refused as refused:
        named = f"; it names those at its {', '.join(reached)}" if reached else ""
        unseen = f"their effect cannot be seen: {quoted(refused.sentence)}"
        return reached, f"the reply does not name all code words, and {unseen}{named}"
    # A named depth was measured for comparison only: it reached the model, whatever its shift is.
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


def _shifts(subject: Subject, words: int, named: set[str]) -> dict[str, Shift]:
    """Measure for each depth of a long prompt by how much other words there move the next token's log-probabilities.

    A depth whose code word the reply named is measured only while no other depth shows an effect, to learn whether
    effects show at all. Raises `Refused` if a request fails or brings no log-probabilities.
    """

    def tops(prompt: str, n: int) -> list[Top]:
        return ask(subject.server, [Inquiry(prompt, {}).body(subject.server.asker)] * n)

    shifts: dict[str, Shift] = {}
    before = tops(needles(words, CODE_WORDS), MIN_REPEATS)
    # The named depths come last, when it is known whether they are needed.
    for i, depth in sorted(enumerate(DEPTHS), key=lambda item: item[1] in named):
        seen = [shift.ratio >= MIN_EFFECT for shift in shifts.values()]
        if depth in named and any(seen):
            break
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


def _whole_context_check(subject: Subject) -> Seen:
    """Check that a prompt as long as the context reached the model in an earlier check. If not, the check is untested
    and says how much of the context was not tried.
    """
    stated = subject.context or subject.server.context
    sent = "the longest prompt that this probe sent, compared with the context that the server states"
    if not subject.longest:
        return untested(sent, "no long prompt is known to have reached the model")
    if stated is None:
        return untested(
            sent, f"prompts up to {subject.longest:,} tokens arrive; no context is stated, so none longer was tried"
        )
    if subject.longest < stated - 2 * ROOM - RECALL_TOKENS - TOLERANCE * stated:
        return untested(
            sent,
            f"prompts up to {subject.longest:,} tokens arrive; the other {stated - subject.longest:,} were not tried",
        )
    return sound(sent, f"a prompt of {subject.longest:,} tokens arrives, of a context of {stated:,}")


def _beyond_context_check(subject: Subject) -> Seen:
    """Send a prompt 1.2 times as long as the stated context: the server must refuse it."""
    stated = subject.server.context
    if stated is None:
        return untested("a prompt longer than the context", "the server states no context")
    if subject.room is not None and 1.2 * stated > subject.room:
        return untested(
            f"a prompt of {1.2 * stated:,.0f} tokens; the context is {stated:,}",
            "not sent, because a server that cuts the prompt would bill it, and the budget is too small",
        )
    # Without counts, a template of usual length and one token a word are assumed.
    base, slope = _tokens_by_words(subject) or (64.0, 1.0)
    words = int((1.2 * stated - base) / slope) + ROOM
    sent = f"a prompt of {base + slope * words:,.0f} tokens; the context is {stated:,}"
    try:
        answer = subject.chat(_prompt(words), max_tokens=1)
    except Refused as refused:
        return sound(sent, f"refused: {quoted(refused.sentence)}")
    counted = _count(answer) or "an unknown number of"
    return spoils(sent, f"a reply to {counted} prompt tokens: the server cut the prompt and reported no error")


CHECKS = (
    Check(
        name="context", group="context", look=_long_prompt_check, quick=False, tokens=25_000, shortest=2_600,
        why="A prompt that loses its beginning is a different question; long reasoning needs the whole stated context.",
        mend="Look for a gateway that truncates prompts, and start the engine with the context that the server states.",
    ),
    Check(
        name="whole context", group="context", look=_whole_context_check, quick=False, tokens=0,
        why="What was not tried is not known: a prompt may be cut beyond the longest one that was sent.",
        mend="Probe again and state the context to try: the tokens of the longest prompt that your benchmark needs.",
    ),
    Check(
        name="too long a prompt", group="context", look=_beyond_context_check, tokens=300,
        why="A question beyond the context must count as not asked; a server that cuts the prompt silently answers "
            "another question.",
        mend="Switch off the truncation of prompts at the server or the gateway.",
    ),
)  # fmt: skip
