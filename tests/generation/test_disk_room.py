"""A disk that is nearly full: known before the first request, and a clean end on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import StoreError
from harness.generation import machine_limits
from harness.generation.machine_limits import DiskRoom, expected_bytes
from harness.runs.record import Owed
from tests.faults.server import FaultServer, Request, http
from tests.generation.small_runs import expected_keys, keys_of, question_set, run, run_settings, well
from tests.system.command import harness


def test_below_the_reserve_nothing_is_asked_and_how_to_go_on_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [10**6]
    monkeypatch.setattr(machine_limits, "_free", lambda folder: free[0])
    (tmp_path / "q.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n', encoding="utf-8")
    models = {"data": [{"id": "m", "max_model_len": 1_000_000}]}
    with FaultServer(lambda r: [http(200, models)] if r.method == "GET" else well(r)) as server:
        words = ["run", "--data", "q.jsonl", "--base-url", server.base_url, "--out", "run", "--no-canary"]
        done = harness(tmp_path, *words)
        assert done.code == 3
        assert "the run keeps 200 MB. Make room, and give the same command again" in done.err
        assert not [r for r in server.requests if r.method == "POST"]
        free[0] = 10**12
        assert harness(tmp_path, *words).code == 0


def test_a_reserve_that_is_reached_lets_requests_in_flight_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forty = question_set(tmp_path, 40)
    free = [10_000]
    monkeypatch.setattr(machine_limits, "_free", lambda folder: free[0])

    def answer(request: Request) -> object:
        if request.number == 20:
            free[0] = 999
        return well(request)

    with FaultServer(answer) as server:  # type: ignore[arg-type]
        settings = run_settings(tmp_path / "run", server.base_url, disk_reserve=1000, requests_per_minute=6000)
        with pytest.raises(StoreError, match=r"stopped: \d+ of 80 samples are stored\. .* give the same command again"):
            run(settings, forty, interval=0.01)
        stored = keys_of(settings)
        assert 20 <= len(stored) < 80
        assert len(stored) == len(server.requests), "what was in flight is stored"
        free[0] = 10_000
        assert run(settings, forty).complete
        assert keys_of(settings) == expected_keys(40, 2)
        assert len(server.requests) == 80


def test_a_run_that_may_not_find_room_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    four = question_set(tmp_path, 4)
    with FaultServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url)
        assert not any("need about" in str(warning) for warning in run(settings, four).warnings)
        monkeypatch.setattr(machine_limits, "_free", lambda folder: 1000)
        more = run_settings(tmp_path / "run", server.base_url, samples=400, disk_reserve=0)
        (doubt,) = (str(one) for one in run(more, four).warnings if "need about" in str(one))
    assert "1 MB" in doubt
    assert "0 MB are free" in doubt


def test_the_size_is_told_from_samples_on_disk_else_from_the_bound() -> None:
    owed = [Owed("a", "1", (0, 1)), Owed("a", "2", (0,)), Owed("b", "1", (0,))]
    assert expected_bytes(owed, {"a": 50.0}, {"b": 100}) == 3 * 50 + 1000 + 5 * 100
    assert expected_bytes(owed[3:], {}, {"b": None}) == expected_bytes(owed[3:], {}, {"b": 99_999})


def test_a_reserve_of_nothing_is_never_reached(tmp_path: Path) -> None:
    assert not DiskRoom(tmp_path, 0).reach()
    assert DiskRoom(tmp_path, 1 << 60).reach()
