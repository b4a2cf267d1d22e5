"""Replies that look wrong, beside their wrong twins: sound replies that come near.

For: harness.scoring.anomalies, harness.core.reply_notes.
"""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.core import codec
from harness.core.records import Sample, Usage
from harness.core.reply_notes import AFTER_LEFTOVER, LATE_TEXT, UNREAD_TEXT
from harness.runs import RunFolder
from harness.scoring.anomalies import anomalies, reply_doubts, signs, signs_of
from harness.scoring.observed import Observed
from tests.runs import recorded

WORDS = [
    *("let", "the", "number", "of", "ways", "be", "counted", "by", "cases", "where", "each", "prime", "factor"),
    *("divides", "one", "side", "but", "not", "the", "other"),
]
PROSE = " ".join(random.Random(1).choices(WORDS, k=900))
ALGEBRA = "\n".join(f"$x_{{{n}}} = {n * n + 7} - {n}y$, so $y = \\frac{{{n * 13}}}{{{n + 4}}}$." for n in range(120))
CHINESE = "设这个三角形的面积为所求，先看两条边的长度与夹角，再由余弦定理得到第三条边。" * 3


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        (PROSE + " Wait, let me check again." * 40, "repetition"),
        ("I will now list them. " + "0" * 6000, "repetition"),
        (PROSE + "".join(f"{n}, " for n in [1, 2, 3]) * 900, "repetition"),
        (PROSE + " caf\u00c3\u00a9 na\u00c3\u00afve r\u00c3\u00b4le", "garbled"),
        (PROSE + " \ufffd\ufffd\ufffd", "garbled"),
        ("\u0120the\u0120answer\u0120is\u01205", "garbled"),
    ],
)
def test_each_sign_is_seen(text: str, sign: str) -> None:
    assert signs(text) == {sign}


@pytest.mark.parametrize(
    "text",
    [
        "",
        r"\boxed{204}",
        PROSE,
        ALGEBRA,
        PROSE + " Wait, let me check again." * 3,
        "The word \ufffd is what was asked about.",
        "The café of São Paulo; \u03b1 + \u03b2 \u2264 \u03b3, \u2200x \u2208 \u211d, \U0001d465\u00b2 \u2192 \u221e.",
        "The Chinese for mountain is 山, that of water is 水.",
        "设 $\\angle ABC = 90^\\circ$，则 \\sin x = \\frac{a}{b}，cos x 为正。" + CHINESE,
        "\n".join(f"| {n} | {n * n % 97} |" for n in range(400)),
    ],
)
def test_a_sound_reply_shows_none(text: str) -> None:
    assert signs(text) == frozenset()


def test_of_a_long_reply_the_beginning_and_the_end_are_looked_at() -> None:
    sound, spoilt = PROSE * 9, "\ufffd" * 1000
    assert signs(sound + spoilt + sound) == frozenset()
    assert signs(spoilt + sound) >= {"garbled"}
    assert signs(sound + spoilt[:9]) == {"garbled"}


def sample(index: int, text: str | None, reasoning: str | None = None) -> Sample:
    return recorded.sample("q", index, text, reasoning=reasoning, usage=Usage())


def test_a_finished_reply_without_any_text_looks_wrong() -> None:
    assert signs_of(sample(0, "")) == signs_of(sample(0, None)) == {"no text"}
    # The reasoning is a text; a reply that max_tokens cut may have spent them on a hidden reasoning.
    assert signs_of(sample(0, "", "So it is 5.")) == frozenset()
    assert signs_of(msgspec.structs.replace(sample(0, ""), finish_reason="length")) == frozenset()


def test_samples_are_counted_by_what_they_show() -> None:
    observed = Observed()
    both = PROSE + " \ufffd\ufffd\ufffd" + " again and again, then." * 60
    given = [sample(0, PROSE), sample(1, "ok", both), sample(2, "0" * 999), sample(3, None), sample(4, "0" * 999)]
    rows = np.array([observed.observe(one) for one in given])
    counts = anomalies(observed.shown(rows[:4]))
    assert counts is not None
    assert (counts.n_samples, counts.n_any) == (4, 3)
    assert counts.by_sign == {"repetition": 2, "garbled": 1, "no text": 1}
    assert counts.sentence == "3 of 4 samples (75.0%) look wrong: 2 repetition, 1 garbled, 1 no text"
    assert anomalies(observed.shown(rows[:0])) is None
    assert [observed.anomalies(row) for row in (0, 1)] == [(), ("repetition", "garbled")]
    sound = anomalies(observed.shown(rows[:1]))
    assert sound is not None
    assert sound.sentence == ""


def folder_with(path: Path, *lines: object) -> RunFolder:
    (path / "log.jsonl").write_bytes(b"".join(codec.encode(line) + b"\n" for line in lines))
    return RunFolder(path)


def test_doubts_of_all_sessions_are_added_up_and_the_rest_is_left_out(tmp_path: Path) -> None:
    exposed = f"{AFTER_LEFTOVER}; 7 before this one came over used connections and may be wrong"
    notes = [
        {LATE_TEXT: 2, "no [DONE]": 9},
        {LATE_TEXT: 1, f"{UNREAD_TEXT}: thinking": 4, exposed: 1, "refusal": 3},
    ]
    folder = folder_with(tmp_path, *({"event": "session_ended", "notes": one} for one in notes), {"event": "other"})
    assert reply_doubts(folder) == [
        f"4 replies of this run: {UNREAD_TEXT}: thinking",
        f"3 replies of this run: {LATE_TEXT}",
        f"1 reply of this run: {exposed}",
    ]


def test_a_log_without_doubts_or_that_is_damaged_says_nothing(tmp_path: Path) -> None:
    assert reply_doubts(folder_with(tmp_path, {"event": "session_ended", "notes": {"no [DONE]": 3}})) == []
    (tmp_path / "log.jsonl").write_bytes(b'{"event": "session_ended", "notes": {"' + b"\xff" * 99 + b"\n[]\n")
    assert reply_doubts(RunFolder(tmp_path)) == []


def test_the_words_of_a_server_in_a_note_are_harmless(tmp_path: Path) -> None:
    ended = {"event": "session_ended", "notes": {f"{UNREAD_TEXT}: \x1b[2J": 1}}
    assert "\x1b" not in reply_doubts(folder_with(tmp_path, ended))[0]


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder_with(tmp_path, {"event": "session_ended", "notes": {LATE_TEXT: 2}}).log.rename(tmp_path / "elsewhere")
    (tmp_path / "log.jsonl").symlink_to(tmp_path / "elsewhere")
    (sentence,) = reply_doubts(RunFolder(tmp_path))
    assert sentence.startswith("doubts about replies are not known from log.jsonl: it is a symbolic link")
