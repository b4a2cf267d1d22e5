"""The log: one event one line, inert."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import StoreError
from harness.runs import RunFolder, RunLog

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_an_event_is_one_line_with_its_time(run: RunFolder) -> None:
    with RunLog(run, now=lambda: MOMENT) as log:
        log.write("started", samples=3, endpoints=["a", "b"], model=None)
        log.write("ended")
    assert run.log.read_text().splitlines() == [
        '{"time":"2026-01-02T03:04:05.000+00:00","event":"started","samples":3,"endpoints":["a","b"],"model":null}',
        '{"time":"2026-01-02T03:04:05.000+00:00","event":"ended"}',
    ]


@given(text=st.text(st.characters(exclude_categories=())), name=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_starts_a_line_or_drives_a_terminal(run: RunFolder, text: str, name: str) -> None:
    run.log.unlink(missing_ok=True)
    with RunLog(run) as log:
        log.write("server", **{"message": text, "nested": {name: [text]}})
    data = run.log.read_bytes()
    assert data.count(b"\n") == 1
    assert all(0x20 <= byte < 0x7F for byte in data[:-1])
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not any(unicodedata.category(c) in hidden for c in json.loads(data)["message"])


def test_a_newline_in_a_server_message_is_shown_not_obeyed(run: RunFolder) -> None:
    with RunLog(run) as log:
        log.write("server", message='no\n{"event":"forged"}\x1b[2J')
    (line,) = run.log.read_text().splitlines()
    assert json.loads(line)["message"] == r'no\n{"event":"forged"}\x1b[2J'


def test_a_long_text_is_clipped(run: RunFolder) -> None:
    with RunLog(run) as log:
        log.write("server", message="x" * 1_000_000)
    assert run.log.stat().st_size < 3000


def test_half_a_line_of_a_killed_process_is_not_glued_to_the_next_event(run: RunFolder) -> None:
    run.create()
    run.log.write_text('{"time":"2026')
    with RunLog(run) as log:
        log.write("started")
    (event,) = run.log.read_text().splitlines()
    assert json.loads(event)["event"] == "started"


def test_a_second_log_appends(run: RunFolder) -> None:
    for _ in range(2):
        with RunLog(run) as log:
            log.write("started")
    assert len(run.log.read_text().splitlines()) == 2


def test_a_planted_link_is_not_written_through(run: RunFolder, tmp_path: Path) -> None:
    run.create()
    run.log.symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match="symbolic link"):
        RunLog(run)
    assert not (tmp_path / "victim").exists()
