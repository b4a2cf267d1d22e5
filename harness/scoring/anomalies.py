"""Signs in a reply that something went wrong with the server or the model: repetition, garbled text, a language switch.

Pure. Each sign is linear in at most `HEAD_CHARS + TAIL_CHARS` characters of a text, and none changes a verdict.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.records import Anomaly, Sample

HEAD_CHARS, TAIL_CHARS = 8000, 8000
"""Characters at the beginning and the end of a longer text that are examined; faults show at the end."""

LOOP_CHARS, LOOP_TIMES = 200, 4
"""A text loops if it ends in a passage that is repeated at least `LOOP_TIMES` times and fills at least `LOOP_CHARS`."""

MIN_COMPRESSED = 0.06
"""A text repeats itself if zlib shrinks its end to less than this fraction; prose shrinks to 0.3, worked algebra to
0.15.
"""

COMPRESSED_CHARS = 2000
"""Length in characters from which a text is judged by its compression."""

MIN_ODD = 3
"""Least number of garbled or rare characters that counts as a sign; fewer may be quoted."""

SWITCH_CHARS, SWITCH_SHARE = 40, 0.02
"""A second script counts as a language switch from this many letters on, if they are also this fraction of all
letters.
"""

_GARBLED = re.compile(r"\ufffd|<0x[0-9A-F]{2}>|\u00c3[\u0080-\u00bf]|\u00e2\u20ac|\u0120\w|\u010a")
"""Replacement characters, byte tokens in words, UTF-8 read as Latin-1 or CP-1252, and raw byte-level tokens."""

_RARE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\U000e0000-\U0010ffff]")
"""Control characters, private use, and the planes beyond those with letters."""

_LATIN = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4,}")
"""Words of four letters or more, except LaTeX commands and names of variables."""

_SCRIPTS = {
    "Chinese or Japanese": re.compile("[\u3040-\u30ff\u3400-\u9fff]"),
    "Korean": re.compile("[\u1100-\u11ff\uac00-\ud7af]"),
    "Cyrillic": re.compile("[\u0400-\u052f]"),
    "Arabic": re.compile("[\u0600-\u06ff]"),
    "Hebrew": re.compile("[\u0590-\u05ff]"),
    "Devanagari": re.compile("[\u0900-\u097f]"),
    "Thai": re.compile("[\u0e00-\u0e7f]"),
}
"""Scripts by name; Greek is left out because it is mathematics."""


class Anomalies(msgspec.Struct, frozen=True, kw_only=True):
    """Samples examined, samples with any sign, and the number of samples by sign (only signs that occur)."""

    n_samples: int
    n_any: int
    by_sign: dict[str, int] = {}

    @property
    def sentence(self) -> str:
        """The warning, such as `12 of 320 samples (3.8%) look wrong: 9 repetition, 4 garbled`; empty if no sample looks
        wrong.
        """
        if not self.n_any:
            return ""
        named = ", ".join(f"{n} {sign}" for sign, n in self.by_sign.items())
        return f"{self.n_any} of {self.n_samples} samples ({self.n_any / self.n_samples:.1%}) look wrong: {named}"


def anomalies(shown: Mapping[Anomaly, NDArray[np.bool_]]) -> Anomalies | None:
    """The counts. shown: for every sign, (n_samples,), whether each sample shows it. Returns None without samples."""
    some = np.logical_or.reduce([*shown.values()])
    if not len(some):
        return None
    counts: dict[str, int] = {sign: n for sign, showing in shown.items() if (n := int(showing.sum()))}
    return Anomalies(n_samples=len(some), n_any=int(some.sum()), by_sign=counts)


def signs_of(sample: Sample) -> frozenset[Anomaly]:
    """The signs that a sample shows in its text, its reasoning and its log-probabilities."""
    odd: frozenset[Anomaly] = frozenset({"log-probabilities"} if sample.odd_logprobs else ())
    return odd | signs(sample.reasoning or "") | signs(sample.text or "")


def signs(text: str) -> frozenset[Anomaly]:
    """The signs that `text` shows."""
    if len(text) > HEAD_CHARS + TAIL_CHARS:
        looked, tail = text[:HEAD_CHARS] + text[-TAIL_CHARS:], text[-TAIL_CHARS:]
    else:
        looked = tail = text
    shown: set[Anomaly] = set()
    if repeats(tail):
        shown.add("repetition")
    if len(_GARBLED.findall(looked)) >= MIN_ODD:
        shown.add("garbled")
    if len(_RARE.findall(looked)) >= MIN_ODD:
        shown.add("rare characters")
    if not looked.isascii() and switches(looked):
        shown.add("language switch")
    return frozenset(shown)


def repeats(text: str) -> bool:
    """Whether `text` ends in a loop, or its end compresses like a loop."""
    if len(text) >= COMPRESSED_CHARS:
        data = text.encode("utf-8", "surrogatepass")
        if len(zlib.compress(data, 1)) < MIN_COMPRESSED * len(data):
            return True
    if len(text) < LOOP_CHARS:
        return False
    last = text[-40:]
    before = text.rfind(last, 0, len(text) - 1)
    if before < 0:
        return False
    period = len(text) - len(last) - before
    times = max(LOOP_TIMES, -(-LOOP_CHARS // period))
    return period * times <= len(text) and text[-period * times :] == text[-period:] * times


def switches(text: str) -> bool:
    """Whether `text` is written in two scripts or more, each with enough letters."""
    counts = [sum(map(len, _LATIN.findall(text)))]
    counts += [len(script.findall(text)) for script in _SCRIPTS.values()]
    least = max(SWITCH_CHARS, SWITCH_SHARE * sum(counts))
    return sum(count >= least for count in counts) > 1
