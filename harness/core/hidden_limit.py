"""Detects that a server ends replies at its own length limit, saying that the model stopped or that it cut them.

A cut reply (`length`) with fewer tokens than max_tokens allows was not cut by max_tokens; see `EarlyCut`. The rest is
about replies that say `stop`: those at a limit all have the largest length L, in tokens, of any reply. Lengths of
replies that really stopped become rarer toward the largest: of two lengths just below L, the larger is no more
frequent. So each of n replies that stopped in the last quarter of lengths, ¾ L to L, has length L with probability at
most p = 1 / (number of these lengths). The first reply at L makes L the largest length, so it is not evidence. For k of
the n − 1 others at L, the probability is at most (Chernoff 1952, Ann. Math. Statist. 23:493)

    exp(−(n − 1) · D(k / (n − 1) ‖ p)),   D(a ‖ p) = a ln(a / p) + (1 − a) ln((1 − a) / (1 − p))

A limit is suspected if this is at most `MAX_CHANCE`. Equal texts count once. Forced answers, such as one letter or one
JSON field, have equal lengths by their form. They are recognized by `MIN_TOKENS`, and by equal numbers of characters,
since free texts of L tokens have many different ones (`MIN_TEXT_LENGTHS`).
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from harness.core.number_text import count_noun
from harness.core.records import Question, Sample
from harness.core.reply_notes import PROMPT_CUT, Limit

MIN_TOKENS = 16
"""Smallest length, in tokens, that can be suspected as a limit; answers without reasoning are shorter."""

MIN_TEXT_LENGTHS = 5
"""Smallest number of different character counts that the replies of the largest token length must have."""

MAX_CHANCE = 1e-6
"""A limit is suspected if, without one, lengths agree this well with at most this probability."""

DIGEST_BITS = 32
"""Number of low bits of a reply's checksum, which hold the CRC-32; the upper bits hold the length in characters."""

MIN_EARLY_CUTS = 5
"""Smallest number of cut replies of one length that are evidence of a server limit."""

MIN_EARLY_BY_TOKENS = 16
"""A reply was cut early if max_tokens allowed at least this many tokens more: counts may leave out special tokens."""

_MAX_CHARS = (1 << 31) - 1


def reply_checksum(text: str, reasoning: str = "") -> int:
    """A checksum of a reply's text and reasoning; its bits above `DIGEST_BITS` are their length in characters."""
    # The zero byte distinguishes reasoning "a" with text "b" from no reasoning with text "ab".
    begun = zlib.crc32(reasoning.encode("utf-8", "surrogatepass") + b"\0")
    digest = zlib.crc32(text.encode("utf-8", "surrogatepass"), begun)
    return min(len(reasoning) + len(text), _MAX_CHARS) << DIGEST_BITS | digest


def checksum_of(sample: Sample) -> int:
    """The checksum of a sample's texts, and of earlier turns and their calls if it has a tool. If it has a verdict
    instead of a text, the checksum of its key and verdict, so that no two are copies.
    """
    if sample.has_verdict_only:
        return reply_checksum("", f"{sample.question_id}\0{sample.sample_index}\0{sample.verdict}")
    before = "".join(
        text
        for step in sample.steps or ()
        for text in (step.text or "", step.reasoning or "", *(call.arguments for call in step.calls))
    )
    return reply_checksum(sample.text or "", before + (sample.reasoning or ""))


class HiddenLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A length limit that the server seems to apply without reporting it."""

    tokens: int
    """The limit, in tokens: samples stop at exactly this length, and none is longer."""
    n_at: int
    """Number of samples that stopped at exactly `tokens` tokens."""
    n_samples: int
    """Number of samples examined."""

    @property
    def sentence(self) -> str:
        """The warning, such as `19 of 20 replies end at exactly 40 tokens and say stop: …`."""
        return (
            f"{self.n_at:,} of {count_noun(self.n_samples, 'reply', 'replies')} end at exactly {self.tokens:,} tokens "
            "but report `stop`: the server may be truncating replies at its own limit without reporting it"
        )


class EarlyCut(msgspec.Struct, frozen=True, kw_only=True):
    """A server limit, lower than max_tokens, at which all truncated replies are cut off."""

    tokens: int
    """Number of tokens at which replies are truncated."""
    max_tokens: int
    """The max_tokens value that was sent."""
    n_at: int
    """Number of truncated replies."""
    n_samples: int
    """Number of samples examined."""

    @property
    def sentence(self) -> str:
        """The warning, such as `137 of 240 samples (57.1%) were truncated by the server at 100 tokens …`."""
        share = self.n_at / self.n_samples
        return (
            f"{self.n_at:,} of {count_noun(self.n_samples, 'sample')} ({share:.1%}) were truncated by the server "
            f"at {self.tokens:,} tokens although `max_tokens` was {self.max_tokens:,}: the server or provider has "
            "a lower limit, so raising `max_tokens` will not help"
        )


LIMITS: dict[Limit, tuple[str, str]] = {
    "tokens": ("max_tokens", "raise `max_tokens`"),
    "steps": ("the tool's step limit", "allow more tool steps (`tool`)"),
    "context": ("the server's context", "use a server with a longer context"),
    "rejected": ("a turn that the server rejected", "see the server's log"),
}
"""Limit that cuts samples off → (its name, what to do)."""


@dataclass(slots=True)
class Cuts:
    """The samples that a limit cut off, by limit, their lengths, and the max_tokens sent with each."""

    n_by_limit: Counter[Limit] = field(default_factory=Counter)
    _tokens: set[int | None] = field(default_factory=set)
    _max_tokens: set[int | None] = field(default_factory=set)

    @property
    def n(self) -> int:
        """The number of cut samples."""
        return self.n_by_limit.total()

    @property
    def limits_and_remedies(self) -> tuple[str, str]:
        """The names of the limits, most frequent first, and what to do; those of max_tokens if no sample was cut."""
        limits, remedies = zip(
            *(LIMITS[limit] for limit, _ in self.n_by_limit.most_common() or [("tokens", 0)]), strict=True
        )
        return " and ".join(limits), ", and ".join(remedies)

    def observe(self, limit: Limit, tokens: int | None, max_tokens: int | None) -> None:
        """Count a cut sample. tokens: its length from `cut_tokens`. max_tokens: None if none was sent."""
        self.n_by_limit[limit] += 1
        # Two different lengths already decide the outcome, so the sets stay small.
        length = tokens if limit == "tokens" else None
        for values, value in ((self._tokens, length), (self._max_tokens, max_tokens)):
            if len(values) < 2:
                values.add(value)

    def early_cut(self, n_samples: int) -> EarlyCut | None:
        """The limit that the lengths of `n_samples` replies reveal; None if there is none.

        Replies cut by a limit all have its length. Other lengths below max_tokens may be wrong counts, for example from
        servers that do not count the reasoning.
        """
        if self.n < MIN_EARLY_CUTS or len(self._tokens) > 1 or len(self._max_tokens) > 1:
            return None
        (tokens,), (max_tokens,) = self._tokens, self._max_tokens
        if tokens is None or max_tokens is None or tokens > max_tokens - MIN_EARLY_BY_TOKENS:
            return None
        return EarlyCut(tokens=tokens, max_tokens=max_tokens, n_at=self.n, n_samples=n_samples)


LONG_PROMPT_CHARS = 2_000
"""Length from which a prompt's tokens are compared with its characters; below it, a chat template matters."""

MAX_TOKEN_CHARS = 20
"""Characters per token, averaged over the words of long prompts, that no vocabulary reaches. Longer words do not count,
since a token may be a long run of one character, but not several words.
"""

MIN_EQUAL_PROMPTS = 3
UNEQUAL_LENGTHS = 1.1
"""Number of long prompts with the largest token count, and the ratio of their lengths, that show a limit."""


def cut_prompts(prompts: Iterable[tuple[int, Question]]) -> tuple[str, int]:
    """The note that a server has cut prompts, with the numbers that show it, and how many; ("", 0) if nothing does.

    prompts: the questions of a benchmark, each with the number of tokens that the server states.
    """
    texts = ((n, question.prompt or "".join(each.content for each in question.messages)) for n, question in prompts)
    long = [(tokens, text) for tokens, text in texts if len(text) >= LONG_PROMPT_CHARS]
    most = max((tokens for tokens, _ in long), default=0)
    equal = sorted(len(text) for tokens, text in long if tokens == most)
    if len(equal) >= MIN_EQUAL_PROMPTS and equal[-1] > UNEQUAL_LENGTHS * equal[0]:
        return f"{PROMPT_CUT}: {most:,} tokens for {equal[0]:,} as for {equal[-1]:,} characters", len(equal)
    n_tokens, n_chars = sum(tokens for tokens, _ in long), sum(len(text) for _, text in long)
    in_words = (len(word) + 1 for _, text in long for word in text.split() if len(word) <= MAX_TOKEN_CHARS)
    if n_chars > MAX_TOKEN_CHARS * n_tokens < sum(in_words):
        return f"{PROMPT_CUT}: {n_tokens:,} tokens for {n_chars:,} characters in all", len(long)
    return "", 0


def cut_tokens(stated: int | None, events: int | None) -> int | None:
    """The length of a cut reply: as stated, or its number of token events if larger. None if the server states none."""
    # The number of events is not a length, because one event may contain several tokens.
    return None if stated is None else max(stated, events or 0)


@dataclass(slots=True)
class ReplyLengths:
    """Counts replies by their length in tokens; it keeps only the last quarter of lengths in memory."""

    _n: int = 0
    """Number of replies."""
    _longest: int = 0
    """Largest length of any reply, in tokens."""
    _stopped: Counter[int] = field(default_factory=Counter)
    """Length → number of replies that stopped there, for the last quarter of lengths."""
    _texts: dict[int, set[int]] = field(default_factory=dict)
    """Length → checksums of these replies, because equal texts count once."""

    def observe(self, tokens: int, checksum: int, *, stopped: bool) -> None:
        """Count a reply. checksum: from `reply_checksum`. stopped: whether its finish reason is `stop`."""
        self._n += 1
        if tokens > self._longest:
            self._longest = tokens
            for length in [length for length in self._texts if length < min_compared_length(self._longest)]:
                del self._texts[length], self._stopped[length]
        if stopped and tokens >= min_compared_length(self._longest):
            self._stopped[tokens] += 1
            self._texts.setdefault(tokens, set()).add(checksum)

    def count(self, n: int) -> None:
        """Count n replies that are too short to be kept (`min_compared_length`)."""
        self._n += n

    @property
    def limit(self) -> HiddenLimit | None:
        """The limit that the lengths suggest; None if they do not suggest any."""
        texts_at_limit = self._texts.get(self._longest, ())
        n_text_lengths = len({checksum >> DIGEST_BITS for checksum in texts_at_limit})
        if self._longest < MIN_TOKENS or n_text_lengths < MIN_TEXT_LENGTHS:
            return None
        # The first reply of the largest length is not evidence.
        n_others = sum(map(len, self._texts.values())) - 1
        n_lengths = 1 + self._longest // 4
        if agreement_chance(len(texts_at_limit) - 1, n_others, 1 / n_lengths) > MAX_CHANCE:
            return None
        return HiddenLimit(tokens=self._longest, n_at=self._stopped[self._longest], n_samples=self._n)


def min_compared_length(longest: int) -> int:
    """The shortest length, in tokens, that is compared with the longest: the start of the last quarter of lengths."""
    return longest - longest // 4


def agreement_chance(k: int, n: int, p: float) -> float:
    """Chernoff's upper bound on the probability that k or more of n independent replies have a property of probability
    p.
    """
    share = k / n
    if share <= p:
        return 1.0
    others = (1 - share) * math.log((1 - share) / (1 - p)) if share < 1 else 0.0
    return math.exp(-n * (share * math.log(share / p) + others))
