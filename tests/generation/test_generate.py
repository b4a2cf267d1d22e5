"""A run, start to end, against a scripted server on a real socket.

For: harness.core.reply_notes, harness.generation, harness.generation.outcome, harness.generation.session.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.core.codec import sample_seed
from harness.core.contradictions import ARRIVED, CHANGED, TOO_FEW_STATED
from harness.core.errors import Interrupted, StoreError
from harness.core.records import Timing, Usage
from harness.generation.run_progress import Progress
from harness.generation.settings import BenchmarkSettings
from harness.presets.sampling import Sampling
from harness.runs.layout import RunFolder
from harness.runs.lock import locked
from harness.runs.manifest import Manifest
from harness.testing import FakeServer, Said, delta, event, event_stream, http, serving
from tests.generation.small_runs import expected_keys, keys_of, question_set, run, run_settings, samples_of, well
from tests.system.command import harness


def test_raised_samples_extend_and_lowered_ones_keep_all(tmp_path: Path) -> None:
    questions = question_set(tmp_path, 3)
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=1)
        run(settings, questions)
        again = run(settings, questions, transport_factory=refuse_contact)
        assert (again.complete, again.tally.finished) == (True, 0)
        more = run_settings(tmp_path / "run", server.base_url, samples=4)
        assert run(more, questions).tally.finished == 9
        fewer = run_settings(tmp_path / "run", server.base_url, samples=2)
        outcome = run(fewer, questions)
    assert (outcome.complete, outcome.n_expected, outcome.tally.finished) == (True, 6, 0)
    assert keys_of(settings) == expected_keys(3, 4)
    assert Manifest.load(RunFolder(settings.out)).benchmarks["sums"].plan.samples == 2


def test_samples_that_the_manifest_does_not_know_are_refused(tmp_path: Path) -> None:
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url)
        run(settings, question_set(tmp_path, 2))
        folder = RunFolder(settings.out)
        replaced = msgspec.structs.replace(Manifest.load(folder), benchmarks={})
        replaced.save(folder)
        with pytest.raises(StoreError, match=r"manifest\.json does not record"):
            run(settings, question_set(tmp_path, 2))


def test_what_may_change_between_sessions_changes_and_is_recorded_without_secrets(tmp_path: Path) -> None:
    questions = question_set(tmp_path, 2)
    with FakeServer(well) as server:
        secret = Endpoint.parse(server.base_url, "sk-canary", (("X-Key", "sk-other"),))
        settings = run_settings(tmp_path / "run", server.base_url, samples=1, endpoints=(secret,))
        run(settings, questions)
        run(replace(settings, concurrency=1, benchmarks=run_settings(tmp_path).benchmarks), questions)
    record = Manifest.load(RunFolder(settings.out)).benchmarks["sums"]
    assert record.settings["concurrency"] == 1
    for path in settings.out.rglob("*"):
        assert not path.is_file() or b"sk-" not in path.read_bytes(), path


def test_a_sample_says_how_it_came_about(tmp_path: Path) -> None:
    questions = question_set(tmp_path, 2)
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, seed=7)
        run(settings, questions)
    by_id = {q.question_id: q for q in questions.questions}
    for sample in samples_of(settings):
        assert sample.seed == sample_seed(7, sample.question_id, sample.sample_index)
        assert sample.text == f"seed {sample.seed}"
        assert sample.endpoint == server.base_url
        assert sample.attempts == 1
        assert sample.prompt_digest == by_id[sample.question_id].prompt_digest
        assert sample.timing.queued is not None
        assert sample.usage.completion_tokens == 7
    assert all("n" not in r.json for r in server.requests)


def test_several_benchmarks_share_one_run_with_their_own_samples_and_sampling(tmp_path: Path) -> None:
    sets = [question_set(tmp_path, 2, "first"), question_set(tmp_path, 3, "second")]
    benchmarks = {
        "first": BenchmarkSettings(samples=3, sampling=Sampling(temperature=0.6, max_tokens=100)),
        "second": BenchmarkSettings(samples=1, sampling=Sampling(temperature=0.0)),
    }
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, benchmarks=benchmarks)
        outcome = run(settings, *sets)
    assert outcome.complete
    assert keys_of(settings, "first") == expected_keys(2, 3)
    assert keys_of(settings, "second") == expected_keys(3, 1)
    assert sorted(r.json.get("max_tokens", 0) for r in server.requests) == [0, 0, 0] + [100] * 6
    assert outcome.progress is not None
    assert {(b.name, b.done, b.total) for b in outcome.progress.benchmarks} == {("first", 6, 6), ("second", 3, 3)}


def test_a_failing_display_ends_the_run_without_losing_a_sample(tmp_path: Path) -> None:
    def broken(progress: Progress) -> None:
        raise ValueError("no terminal")

    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=50)
        with pytest.raises(ValueError, match="no terminal"):
            run(settings, question_set(tmp_path, 8), on_progress=broken, interval=0.01)
        stored = len(samples_of(settings))
        assert run(settings, question_set(tmp_path, 8)).tally.finished == 400 - stored
    assert keys_of(settings) == expected_keys(8, 50)
    assert threading.active_count() < 40


def test_a_broken_pipe_ends_the_run_like_a_signal(tmp_path: Path) -> None:
    def gone(progress: Progress) -> None:
        raise BrokenPipeError

    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=100)
        with pytest.raises(Interrupted, match="SIGPIPE") as caught:
            run(settings, question_set(tmp_path, 10), on_progress=gone, interval=0.01)
        assert caught.value.exit_code == 128 + signal.SIGPIPE
        assert server.aborted == 0
        assert len(samples_of(settings)) == len(server.requests) < 1000


def test_a_signal_before_the_first_request_ends_the_run_and_frees_it(tmp_path: Path) -> None:
    def contexts() -> Iterator[int]:
        os.kill(os.getpid(), signal.SIGINT)
        yield 5000

    settings = run_settings(tmp_path / "run")
    with pytest.raises(Interrupted, match=r"stopped by SIGINT.*Resume with: again") as caught:
        run(settings, question_set(tmp_path, 2), contexts=contexts(), resume_command="again")
    assert caught.value.exit_code == 130
    with locked(RunFolder(settings.out)):
        pass


def test_a_request_that_has_ended_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    """Else thousands of long replies stay in memory until it runs."""
    requests: list[weakref.ref[asyncio.Task[Any]]] = []
    alive: list[int] = []

    class Quick:
        async def complete(self, *_: object) -> Reply:
            requests.append(weakref.ref(asyncio.current_task()))  # type: ignore[arg-type]  # no local: a frame keeps it
            alive.append(sum(request() is not None for request in requests))
            fails = len(requests) % 3 == 0
            await asyncio.sleep(0)
            if fails:
                raise RequestFailed("connect", "refused")
            return Reply(
                text="4", reasoning=None, finish_reason="stop", usage=Usage(), timing=Timing(started=0, total=0)
            )

        async def close(self) -> None: ...

    settings = run_settings(tmp_path / "run", samples=20, canary=False)
    gc.disable()
    try:
        assert run(settings, question_set(tmp_path, 10), transport_factory=Quick).complete
    finally:
        gc.enable()
    assert max(alive) <= 2 * settings.concurrency < 100 < len(requests)


def refuse_contact(*_: object) -> Any:
    raise AssertionError("the server was contacted")


@pytest.mark.parametrize("stated", [30, 60])
def test_a_score_names_a_usage_of_half_the_tokens(tmp_path: Path, stated: int) -> None:
    last = delta(finish="stop", usage={"prompt_tokens": 9, "completion_tokens": stated})
    reply = [*event_stream(*(delta(f" word{n}") for n in range(60)), last)]
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": "q", "problem": "1 + 1 = ?", "answer": "2"}) + "\n")
    with FakeServer(serving(reply)) as server:
        words = ("run", "--data", "q.jsonl", "--samples", "2", "--base-url", server.base_url, "--out", "run")
        done = harness(tmp_path, *words, "--no-canary", "--no-fingerprint", "--temperature", "1")
    assert done.code == 0, done.err
    scored = harness(tmp_path, "score", "run")
    shown = " ".join(scored.out.split())
    assert (f"of 2 replies 2 {TOO_FEW_STATED}" in shown) is (TOO_FEW_STATED in done.err) is (stated == 30), scored.out


FORMAT = {"type": "json_schema", "name": "answer", "schema": {"type": "object", "required": ["answer"]}}


@pytest.mark.parametrize(
    ("echo", "arrived", "changed"),
    [
        ({"reasoning": {"effort": "high", "summary": "detailed"}, "text": {"format": FORMAT | {"strict": None}}}, 2, 0),
        ({"reasoning": {"effort": "low"}, "text": {"format": FORMAT}}, 1, 1),
        ({"reasoning": {"effort": None}, "text": {"format": {"type": "text"}}}, 0, 1),
        ({"reasoning": "high", "text": None}, 0, 0),
        ({}, 0, 0),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_settings_that_a_reply_repeats_are_compared_with_those_that_were_sent(
    tmp_path: Path, echo: dict[str, Any], arrived: int, changed: int, streamed: bool
) -> None:
    *events, _ = Said("2").events("responses")
    whole = Said("2").whole("responses") | echo
    last = event({"type": "response.completed", "response": whole})
    reply = [*event_stream(*events, last, end=())] if streamed else [http(200, whole)]
    (tmp_path / "q.jsonl").write_text(json.dumps({"id": "q", "problem": "1 + 1 = ?", "answer": "2"}) + "\n")
    sent = json.dumps({"reasoning": {"effort": "high"}, "text": {"format": FORMAT}})
    with FakeServer(serving(reply)) as server:
        words = ("run", "--data", "q.jsonl", "--samples", "2", "--base-url", server.base_url, "--out", "run")
        further = (
            "--no-canary",
            "--api",
            "responses",
            "--extra-body",
            sent,
            *([] if streamed else ["--drop", "stream"]),
        )
        done = harness(tmp_path, *words, *further, *([] if streamed else ["--drop", "stream"]))
    assert done.code == 0, done.err
    shown = " ".join(harness(tmp_path, "score", "run").out.split())
    for told in (done.err, shown):
        assert sum(f"2 {kind}" in told for kind in CHANGED.values()) == changed, told
    harness(tmp_path, "report", "run")
    report = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert sum(f"{path} (2 replies)" in report for path in ARRIVED) == arrived
