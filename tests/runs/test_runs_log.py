"""The log: one event one line, inert."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


def test_a_long_text_is_clipped(run: RunFolder) -> None:
    with RunLog(run) as log:
        log.write("server", message="x" * 1_000_000)
    assert run.log.stat().st_size < 3000
