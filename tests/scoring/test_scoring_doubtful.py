"""Replies that leave a doubt are counted beside the score.

For: harness.scoring.anomalies, harness.core.reply_notes.
"""

from __future__ import annotations

from pathlib import Path

from harness.core import codec
from harness.core.reply_notes import AFTER_LEFTOVER, LATE_TEXT, UNREAD_TEXT
from harness.runs import RunFolder
from harness.scoring.anomalies import reply_doubts


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
