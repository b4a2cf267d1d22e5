"""Finds replies that look wrong (loops, garbled text, copies). They are counted and cause warnings, but change no
verdict.

| what | where it is detected |
| --- | --- |
| signs: repetition, garbled text, no text | in a single reply, in at most `HEAD_CHARS + TAIL_CHARS` of it |
| copies: from a cache, or from a server that ignores seeds | in the replies to one question |
| a hidden length limit of the server | in the lengths of all replies (`hidden_limit`) |
| doubts: the client noted that the text may not be the whole answer | in the session counts in the run's logs |

Independent draws of long replies never repeat a text, but short replies do: nearly every reply to a multiple-choice
question may be "B". So a text that occurs g times among n samples of a question is compared with what independent draws
allow for its length of l characters:

    m = 2^(−`COPY_BITS` · l)                    the largest chance of a text, far above any real model's
    allowed = max(1, n·m + 3·√(n·m·(1−m)))      how often a text may occur among n independent samples
    excess = g − allowed, if at least 1         how many samples count as copies

A model may also answer a question with one of a few texts. Draws from the observed replies would repeat at least as
often as the replies themselves, so repeats among texts below `LONG_CHARS` are no evidence, unless the replies to a
question hardly vary. Such texts count only if, over all questions, they repeat more often than n draws from two equally
likely texts, n − 2 + 2^(1−n) per question, plus three standard deviations.

A score warns if the excess is more than `MAX_COPIES_SHARE` of the samples. Copies of a text then count as one draw:
with group sizes g, a question has n² / Σ g² independent samples (the variance of a mean with weights g/n). Texts are
identified by their length and 32 bits of their checksum: among 64 samples of 200,000 questions, one pair is equal by
chance.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core import contradictions
from harness.core.hidden_limit import DIGEST_BITS
from harness.core.number_text import count_noun
from harness.core.records import Anomaly, Sample
from harness.core.reply_notes import DOUBTFUL, FORMER
from harness.core.sanitize import quoted
from harness.runs.layout import RunFolder
from harness.runs.log_events import LogEvent, log_events

HEAD_CHARS, TAIL_CHARS = 8000, 8000
"""Number of characters examined at the beginning and at the end of a longer text; most faults are at the end."""

LOOP_CHARS, LOOP_TIMES = 200, 4
"""A text loops if it ends in a passage that is repeated at least `LOOP_TIMES` times and fills at least `LOOP_CHARS`."""

MIN_COMPRESSED = 0.06
"""A text repeats itself if zlib shrinks its end to less than this fraction; prose shrinks to 0.3, worked algebra to
0.15.
"""

COMPRESSED_CHARS = 2000
"""Minimum length in characters of a text that is judged by its compression."""

MIN_ODD = 3
"""Smallest number of garbled characters that counts as a sign; fewer may be part of a quotation."""

_GARBLED = re.compile(r"\ufffd|<0x[0-9A-F]{2}>|\u00c3[\u0080-\u00bf]|\u00e2\u20ac|\u0120\w|\u010a")
"""Replacement characters, byte tokens in words, UTF-8 read as Latin-1 or CP-1252, and raw byte-level tokens."""


class Anomalies(msgspec.Struct, frozen=True, kw_only=True):
    """Samples whose text appears to be broken."""

    n_samples: int
    """Number of samples examined."""
    n_any: int
    """Number of samples with at least one sign of broken text."""
    by_sign: dict[str, int] = {}
    """Number of samples that show each sign of broken text; signs that do not occur are omitted."""

    @property
    def sentence(self) -> str:
        """The warning, for example `12 of 320 samples (3.8%) look wrong: 9 repetition, 4 garbled`.

        Empty if no sample looks wrong.
        """
        if not self.n_any:
            return ""
        named = ", ".join(f"{n} {sign}" for sign, n in self.by_sign.items())
        return (
            f"{self.n_any} of {count_noun(self.n_samples, 'sample')} ({self.n_any / self.n_samples:.1%}) look "
            f"wrong: {named}"
        )


def anomalies(shown: Mapping[Anomaly, NDArray[np.bool_]]) -> Anomalies | None:
    """Count the samples that look wrong, by sign. shown: for every sign, (n_samples,), whether each sample shows it.
    Returns None without samples.
    """
    some = np.logical_or.reduce([*shown.values()])
    if not len(some):
        return None
    counts: dict[str, int] = {sign: int(showing.sum()) for sign, showing in shown.items() if showing.any()}
    return Anomalies(n_samples=len(some), n_any=int(some.sum()), by_sign=counts)


def signs_of(sample: Sample) -> frozenset[Anomaly]:
    """The signs found in a sample's text and reasoning."""
    if sample.has_verdict_only:
        return frozenset()
    # A reply truncated by a limit may have spent its tokens on reasoning that the server hides.
    if not sample.truncated and not ((sample.text or "").strip() or sample.reasoning or sample.calls):
        return frozenset({"no text"})
    return signs(sample.reasoning or "") | signs(sample.text or "")


def signs(text: str) -> frozenset[Anomaly]:
    """The signs found in `text`."""
    if len(text) > HEAD_CHARS + TAIL_CHARS:
        looked, tail = text[:HEAD_CHARS] + text[-TAIL_CHARS:], text[-TAIL_CHARS:]
    else:
        looked = tail = text
    shown: set[Anomaly] = set()
    if repeats(tail):
        shown.add("repetition")
    if len(_GARBLED.findall(looked)) >= MIN_ODD:
        shown.add("garbled")
    return frozenset(shown)


def repeats(text: str) -> bool:
    """Whether `text` ends in a loop, or its end compresses like a loop."""
    if len(text) >= COMPRESSED_CHARS:
        data = text.encode("utf-8", "surrogatepass")
        # The fastest level is enough: a loop shrinks far below the limit at any level.
        if len(zlib.compress(data, 1)) < MIN_COMPRESSED * len(data):
            return True
    if len(text) < LOOP_CHARS:
        return False
    last = text[-40:]
    # The distance to the last occurrence of the same 40 characters is the period of a loop.
    before = text.rfind(last, 0, len(text) - 1)
    if before < 0:
        return False
    period = len(text) - len(last) - before
    times = max(LOOP_TIMES, math.ceil(LOOP_CHARS / period))
    return period * times <= len(text) and text[-period * times :] == text[-period:] * times


# ---- doubts in the log

MAX_NOTES = 20
"""Largest number of kinds of doubt that are listed; some contain the server's text, so their number is unlimited."""


class _EndedSession(LogEvent, frozen=True):
    finished: int = 0
    notes: dict[str, int] = {}  # noqa: RUF012 - frozen


def reply_doubts(folder: RunFolder, told: Collection[str] = ()) -> list[str]:
    """One sentence about contradictions in the server's numbers, then one for each kind of doubt, most frequent first.

    told: kinds of contradictions that another sentence covers; they are left out. The last sentences name logs that
    cannot be read, such as links. The log does not distinguish between a run's benchmarks. A killed session leaves no
    counts.
    """
    counts, n_replies, unread = Counter[str](), 0, list[str]()

    def unknown(path: Path, error: OSError) -> None:
        unread.append(f"notes on unusual replies cannot be read from {quoted(path.name)}: {error.strerror or error}")

    for session in log_events(folder.logs(), _EndedSession, "session_ended", unread=unknown):
        counts.update({contradictions.FORMER.get(note, note): n for note, n in session.notes.items()})
        n_replies += session.finished
    doubts = [(note, n) for note, n in counts.most_common() if n > 0 and note.startswith((*DOUBTFUL, *FORMER))]
    numbers = contradictions.sentence({note: n for note, n in counts.items() if note not in told}, n_replies)
    return (
        [*filter(None, [numbers])]
        + [f"{n} {'reply' if n == 1 else 'replies'} of this run: {quoted(note)}" for note, n in doubts[:MAX_NOTES]]
        + unread[:MAX_NOTES]
    )


# ---- copies

COPY_BITS = 0.02
"""Smallest information in one character of a reply, in bits: a text of 35 characters has a probability of at most 62%,
and a text of 400 characters of at most 0.4%.
"""

LONG_CHARS = 1000
"""Length in characters from which independent replies never repeat a text; a shorter reply may be one of a few texts.
"""

MAX_COPIES_SHARE = 0.01
"""A score warns if more than this fraction of its samples are copies in excess of what independent draws allow."""


class Copies(msgspec.Struct, frozen=True, kw_only=True):
    """Samples with the same text as another sample of the same question."""

    n_samples: int
    """Number of samples examined."""
    n_equal: int
    """Samples with the same text as another sample of the same question."""
    n_excess: int
    """Number of duplicates in excess of what independent sampling would produce."""
    n_questions: int
    """Number of questions with duplicate samples."""
    independent: float
    """Fraction of samples that count as independent draws, averaged over questions; 1 if there are no duplicates."""

    @property
    def is_excessive(self) -> bool:
        """Whether there are too many copies for independent samples."""
        return self.n_excess > MAX_COPIES_SHARE * self.n_samples

    @property
    def sentence(self) -> str:
        """A score's warning about copies; empty if there are few."""
        if not self.is_excessive:
            return ""
        return (
            f"{self.n_excess} of {count_noun(self.n_samples, 'sample')} repeat another reply to the same question word "
            "for word, more often than expected by chance: the server ignores seeds, caches replies or uses "
            "temperature 0, or the model gets stuck, for example repeating one word in a loop. Duplicates count as one "
            "sample, so the sampling interval is only an upper bound ('at most')"
        )


def copies_among(
    question: NDArray[np.uint32], texts: NDArray[np.int64], n_questions: int
) -> tuple[Copies, NDArray[np.float64]] | None:
    """Return (the copies among these samples, the number of independent samples that each question counts for).

    question: (n,), the index of each sample's question, below n_questions. texts: (n,), `reply_checksum` of each
    sample; a negative value means an unknown text that equals no other. Returns None if no text is known. A few copies
    are attributed to chance, and all samples then count in full.
    """
    if not (texts >= 0).any():
        return None
    order = np.lexsort((texts, question))
    question, texts = question[order], texts[order]
    del order  # eight bytes per sample
    n = np.bincount(question, minlength=n_questions)
    with_short = np.unique(question[texts >> DIGEST_BITS < LONG_CHARS])
    # Groups of equal texts: where each starts, its size, and the number of its question.
    first = np.ones(len(texts), dtype=bool)
    first[1:] = (question[1:] != question[:-1]) | (texts[1:] != texts[:-1]) | (texts[1:] < 0)
    starts = np.flatnonzero(first)
    size = np.diff(starts, append=len(texts))
    starts, size = starts[size > 1], size[size > 1]
    of, length = question[starts], texts[starts] >> DIGEST_BITS
    excess = np.maximum(0.0, size - allowed_repeats(n[of], length))
    copied = excess >= 1
    is_short = length < LONG_CHARS
    if not _hardly_vary(size[is_short], n[with_short]):
        copied &= ~is_short
    squares = n + np.bincount(of, np.where(copied, size * size - size, 0), n_questions)
    independent = n**2 / np.maximum(squares, 1)
    copies = Copies(
        n_samples=len(texts),
        n_equal=int((size - 1).sum()),
        n_excess=int(excess[copied].sum()),
        n_questions=len(np.unique(of[copied])),
        independent=float((independent[n > 0] / n[n > 0]).mean()),
    )
    if not copies.is_excessive:
        return msgspec.structs.replace(copies, independent=1.0), n.astype(float)
    return copies, np.maximum(1.0, np.floor(independent))


def _hardly_vary(size: NDArray[np.int64], n: NDArray[np.int64]) -> bool:
    """Whether short texts repeat more often than draws from two equally likely texts per question would.

    size: number of samples of each text. n: number of samples of each question.
    """
    one_text = np.exp2(1.0 - n)  # the chance that all n draws give the same one of two texts
    allowed = (n - 2 + one_text).sum() + 3 * math.sqrt((one_text * (1 - one_text)).sum())
    return bool((size - 1).sum() > allowed)


def allowed_repeats(n: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.float64]:
    """How often a text of `length` characters may occur among n independent samples; a higher number suggests
    copies.
    """
    chance = np.exp2(-COPY_BITS * length)
    return np.asarray(np.maximum(1.0, n * chance + 3 * np.sqrt(n * chance * (1 - chance))))
