"""Runs that end before their time: killed, interrupted, told to stop. What is stored counts, the rest is asked.

Also a run that is watched, and one whose file of endpoints changes.

For: harness.generation.network, harness.generation.network.control.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.errors import UsageError
from harness.generation.network.admission import EndpointsFile
from harness.generation.network.control import progress_of
from harness.generation.run_progress import Progress
from harness.generation.runner import Outcome
from harness.generation.settings import SPARE_DESCRIPTORS, RunSettings
from harness.runs.layout import RunFolder
from harness.runs.lock import locked
from harness.testing import FakeServer, Pause, Request, Step, http, serving
from tests import warm
from tests.budget import rounds
from tests.faults.able import sums
from tests.generation.small_runs import expected_keys, keys_of, question_set, run, run_settings, samples_of, well
from tests.patience import PATIENCE_SECONDS, until

CHECKOUT = Path(__file__).parents[2]


def start(
    folder: Path, questions: int, samples: int, *urls: str, grace: float = 20.0, limits: Mapping[int, int] | None = None
) -> subprocess.Popen[str]:
    """A run as a child."""
    words = map(str, (folder, questions, samples, grace, *urls))
    return warm.started(["tests.generation.small_runs", *words], limits=limits, cwd=CHECKOUT, stderr=subprocess.PIPE)


def ended(child: subprocess.Popen[str]) -> tuple[int, str]:
    """(exit code, what it said)."""
    _, stderr = child.communicate(timeout=PATIENCE_SECONDS)
    return child.returncode, stderr


def goes_on_to_its_end(folder: Path, questions: int, samples: int, *urls: str) -> None:
    """Go on with the run in this process."""
    settings = run_settings(folder / "run", *urls, samples=samples)
    assert run(settings, question_set(folder, questions)).complete


def unhurried(request: Request) -> Iterator[Step]:
    """A reply in pieces, so that there is time to be killed in."""
    for step in well(request):
        yield step
        if request.number % 5 == 0:
            yield Pause(0.002)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_first_signal_finishes_open_requests_and_says_how_to_resume(tmp_path: Path, signum: int) -> None:
    def answer(request: Request) -> Iterator[Step]:
        steps = list(well(request))
        yield from steps[:2]
        if request.number == 8:
            child.send_signal(signum)
        yield Pause(0.4)
        yield from steps[2:]

    with FakeServer(answer) as server:
        child = start(tmp_path, 10, 10, server.base_url)
        code, stderr = ended(child)
        n_asked = len(server.requests)
        assert server.aborted == 0
        assert code == 128 + signum
        assert "Run the same command to resume." in stderr
        assert f"{n_asked} of 100 samples" in stderr
        assert len(keys_of(run_settings(tmp_path / "run"))) == n_asked < 100
        server.answer = well
        goes_on_to_its_end(tmp_path, 10, 10, server.base_url)
    assert keys_of(run_settings(tmp_path / "run")) == expected_keys(10, 10)


def slow(request: Request) -> Iterator[Step]:
    yield Pause(0.15)
    yield from well(request)


@pytest.mark.parametrize(("concurrency", "is_late"), [(64, False), (1, True)])
def test_times_of_a_run_with_a_rate_count_from_the_planned_arrival(
    tmp_path: Path, concurrency: int, is_late: bool
) -> None:
    with FakeServer(slow) as server:
        settings = run_settings(
            tmp_path / "run", server.base_url, samples=1, concurrency=concurrency, requests_per_second=40.0
        )
        assert run(settings, question_set(tmp_path, 20)).complete
    times = sorted((sample.timing for sample in samples_of(settings)), key=lambda timing: timing.started)
    for timing in times:
        assert timing.late is not msgspec.UNSET
        assert timing.first_token is not None
        assert timing.total >= timing.first_token >= timing.late + 0.14
    assert times[-1].started - times[0].started < 1.5, "20 arrivals at 40 per second, although one reply takes 0.15 s"
    late = times[-1].late
    assert late is not msgspec.UNSET
    assert (late > 1.0) == is_late


def test_a_killed_run_with_a_rate_resumes_without_false_arrivals(tmp_path: Path) -> None:
    words = [
        "--data",
        "sums.jsonl",
        "--id-key",
        "id",
        "--rate",
        "60",
        "-n",
        "2",
        "--no-canary",
        "--seed",
        "3",
        "--out",
        "run",
    ]
    questions = question_set(tmp_path, 30)
    with FakeServer(serving(slow)) as server:
        child = warm.started(["harness", "run", *words, "--base-url", server.base_url], cwd=tmp_path)
        assert server.wait_for(lambda: len(server.requests) > 20)
        child.kill()
        child.wait()
        killed_at = time.time()
        n_asked = len(server.requests)
        again = warm.started(["harness", "run", *words, "--base-url", server.base_url], cwd=tmp_path)
        assert again.wait(PATIENCE_SECONDS) == 0
    settings = run_settings(tmp_path / "run")
    assert keys_of(settings) == expected_keys(len(questions.questions), 2)
    later = [sample.timing for sample in samples_of(settings) if sample.timing.started > killed_at]
    earlier = [sample.timing for sample in samples_of(settings) if sample.timing.started <= killed_at]
    assert len(later) + len(earlier) == 60
    assert all(timing.started + timing.total < killed_at for timing in earlier), (
        "nothing was planned before the restart"
    )
    assert len(earlier) <= n_asked


@pytest.mark.parametrize("left", [b'{"key":["sums","q0",1],"part":{"request":"r","text":"half"},"schema":1}', b"\xff"])
def test_a_reply_left_half_written_is_requested_whole(tmp_path: Path, left: bytes) -> None:
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=1)
        assert run(settings, question_set(tmp_path, 1)).complete
        (settings.out / "inflight.jsonl").write_bytes(left)
        settings = run_settings(tmp_path / "run", server.base_url, samples=2)
        again = run(settings, question_set(tmp_path, 1))
        posts = [request.json["messages"] for request in server.requests if request.method == "POST"]
    assert (again.complete, again.warnings, posts[0] == posts[1], len(posts)) == (True, [], True, 2)
    assert all(sample.text == f"seed {sample.seed}" and not sample.salvaged_at for sample in samples_of(settings))


MOMENTS = rounds(1)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("signums", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)], ids=["one", "two"])
def test_a_signal_at_any_time_leaves_a_run_that_resumes(tmp_path: Path, signums: tuple[signal.Signals, ...]) -> None:
    chance = random.Random(55)
    with FakeServer(unhurried) as server:
        for moment in range(MOMENTS):
            folder = tmp_path / str(moment)
            folder.mkdir()
            child = start(folder, 6, 20, server.base_url)
            assert server.wait_for((folder / "run" / "log.jsonl").exists)
            time.sleep(chance.uniform(0.0, 0.25))
            for signum in signums:
                child.send_signal(signum)
            code, stderr = ended(child)
            assert "Traceback" not in stderr, stderr
            # A second signal after the session's end, while the process leaves, ends it as any other process.
            assert code in (0, 128 + signums[0], *(-signum for signum in signums[1:]))
            stored = (
                keys_of(run_settings(folder / "run")) if (folder / "run" / "sums" / "samples.jsonl").exists() else set()
            )
            assert stored <= expected_keys(6, 20)
            assert (code == 0) == (stored == expected_keys(6, 20))
            goes_on_to_its_end(folder, 6, 20, server.base_url)
            assert keys_of(run_settings(folder / "run")) == expected_keys(6, 20)


def test_a_low_limit_of_open_files_lowers_the_concurrency_and_says_so(tmp_path: Path) -> None:
    with FakeServer(well) as server:
        child = start(tmp_path, 5, 4, server.base_url, limits={resource.RLIMIT_NOFILE: SPARE_DESCRIPTORS + 3})
        assert ended(child) == (0, "")
        assert server.connections <= 3 + 1
    log = (tmp_path / "run" / "log.jsonl").read_text(encoding="utf-8")
    assert "reduces `concurrency` to 3" in log
    assert keys_of(run_settings(tmp_path / "run")) == expected_keys(5, 4)


class Gate:
    """A server that finishes its replies while it is open. closes_at: open up to this request; 0: closed at first."""

    def __init__(self, closes_at: int = 0) -> None:
        self.closes_at = closes_at
        self.open = threading.Event()
        if closes_at:
            self.open.set()
        self.working = 0
        self.most = 0
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.number == self.closes_at:
            self.open.clear()
        with self._lock:
            self.working += 1
            self.most = max(self.most, self.working)
        try:
            *steps, last = well(request)
            yield from steps[:2]
            while not self.open.is_set():
                yield Pause(0.005)
            yield from steps[2:]
        finally:
            with self._lock:
                self.working -= 1
        yield last  # the client, who now asks again, is not faster than the count


@contextlib.contextmanager
def going(settings: RunSettings, *sets: Any, **more: Any) -> Iterator[Callable[[], Outcome]]:
    """A run in a thread of its own; the call waits for its end. It reports its progress when the block begins."""
    ends: list[Outcome | BaseException] = []

    def work() -> None:
        try:
            ends.append(run(settings, *sets, **more))
        except BaseException as error:  # noqa: BLE001 - told to the test
            ends.append(error)

    def outcome() -> Outcome:
        thread.join(PATIENCE_SECONDS)
        assert ends, "the run does not end"
        assert isinstance(ends[0], Outcome), ends[0]
        return ends[0]

    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: progress_of(RunFolder(settings.out)) is not None or bool(ends), "the run's progress")
    yield outcome
    thread.join(PATIENCE_SECONDS)


def progress(settings: RunSettings) -> Progress:
    facts = progress_of(RunFolder(settings.out))
    assert facts is not None
    return facts


def events(settings: RunSettings, name: str) -> list[dict[str, Any]]:
    written = (settings.out / "log.jsonl").read_text(encoding="utf-8")
    whole_lines = written[: written.rfind("\n") + 1].splitlines()  # the last one may be on its way to the disk
    return [event for event in map(json.loads, whole_lines) if event["event"] == name]


def test_a_run_is_watched_while_it_goes(tmp_path: Path) -> None:
    gate = Gate()
    with FakeServer(gate) as server:
        settings = run_settings(tmp_path / "run", server.base_url, samples=10)
        with going(settings, question_set(tmp_path, 10)) as outcome:
            until(lambda: gate.working == progress(settings).in_flight == 8, "8 requests in flight")
            facts = progress(settings)
            gate.open.set()
            assert outcome().complete
    assert (facts.done, facts.total, facts.concurrency, facts.endpoints[0].base_url) == (0, 100, 8, server.base_url)
    assert not (settings.out / "status.json").exists()


def test_an_interrupted_run_goes_on_with_another_concurrency(tmp_path: Path) -> None:
    with FakeServer(unhurried) as server:
        child = start(tmp_path, 6, 20, server.base_url)
        assert server.wait_for(lambda: len(server.requests) > 20)
        child.send_signal(signal.SIGINT)
        assert ended(child)[0] == 130
        settings = run_settings(tmp_path / "run", server.base_url, samples=20, concurrency=2)
        stored = samples_of(settings)
        server.answer = gate = Gate(closes_at=10**9)
        assert run(settings, question_set(tmp_path, 6)).complete
    assert samples_of(settings)[: len(stored)] == stored
    assert keys_of(settings) == expected_keys(6, 20)
    assert 1 <= gate.most <= 2  # on a busy machine a request may end before the next one begins


# ---- the file of endpoints


def listing(path: Path, *lines: str) -> EndpointsFile:
    new = path.with_name("new")  # a run that reads an address's file while it is written sees no half of it
    new.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    new.replace(path)
    return EndpointsFile(path)


def test_endpoints_join_and_leave_as_the_file_changes(tmp_path: Path) -> None:
    gates = [Gate() for _ in range(3)]
    with FakeServer(gates[0]) as one, FakeServer(gates[1]) as two, FakeServer(gates[2]) as three:
        file = listing(tmp_path / "nodes", f"{one.base_url}  # the first", "", two.base_url)
        settings = run_settings(tmp_path / "run", samples=10, endpoints=file.read(), concurrency=8)
        with going(settings, question_set(tmp_path, 10), endpoints_file=file) as outcome:
            until(lambda: [g.working for g in gates] == [4, 4, 0], "4 requests at each")
            listing(tmp_path / "nodes", two.base_url, three.base_url)
            until(lambda: bool(events(settings, "endpoints_changed")), "the other endpoints")
            n_asked = len(one.requests)
            for gate in gates:
                gate.open.set()
            assert outcome().complete
    assert len(one.requests) == n_asked == 4
    assert one.aborted == 0, "what was in flight ends"
    by_endpoint = Counter(s.endpoint for s in samples_of(settings))
    assert by_endpoint[one.base_url] == 4
    assert by_endpoint[three.base_url] > 0 < by_endpoint[two.base_url]


def test_servers_register_in_a_folder_and_sign_off(tmp_path: Path) -> None:
    file = EndpointsFile(tmp_path)
    with pytest.raises(UsageError, match="no server has registered"):
        file.read()
    (tmp_path / "server-1.log").write_text("no address")
    for name in ("a", "b"):
        (tmp_path / f"{name}.url").write_text(f"http://{name}:1\n")
    assert [one.base_url for one in file.changed() or ()] == ["http://a:1/v1", "http://b:1/v1"]
    assert file.changed() is None
    (tmp_path / "a.url").unlink()
    assert [one.base_url for one in file.changed() or ()] == ["http://b:1/v1"]


def test_a_broken_file_changes_nothing_and_says_where(tmp_path: Path) -> None:
    gate = Gate()
    with FakeServer(gate) as server:
        file = listing(tmp_path / "nodes", server.base_url)
        settings = run_settings(tmp_path / "run", endpoints=file.read())
        with going(settings, question_set(tmp_path, 8), endpoints_file=file) as outcome:
            until(lambda: gate.working == 8, "8 requests in flight")
            listing(tmp_path / "nodes", server.base_url, "http://other:1 weight=2")
            until(lambda: bool(events(settings, "endpoints_not_changed")), "the refusal of the file")
            assert "line 2: expected one address per line" in events(settings, "endpoints_not_changed")[0]["reason"]
            (tmp_path / "nodes").unlink()
            gate.open.set()
            assert outcome().complete


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nodes", "", "0 addresses; expected 1"),
        ("nodes", "ftp://a\n", "line 1: .*expected http"),
        ("nodes", "http://a\n# b\nhttp://a/v1\n", "line 3: http://a/v1 is listed twice"),
        ("7.url", "http://a\nftp://b\n", r"7\.url, line 2: .*expected http"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        EndpointsFile(tmp_path if name == "7.url" else tmp_path / name).read()


@pytest.mark.parametrize(
    ("status", "message"),
    [(404, "the model `test-model` does not exist"), (400, "This model's maximum context length is 8 tokens.")],
)
def test_an_endpoint_that_joins_and_refuses_is_dropped(tmp_path: Path, status: int, message: str) -> None:
    gate = Gate(closes_at=10)
    wrong = http(status, {"error": {"message": message}})
    with FakeServer(gate) as server, FakeServer(lambda _: [wrong]) as wrong_server:
        file = listing(tmp_path / "nodes", server.base_url)
        settings = run_settings(tmp_path / "run", samples=10, endpoints=file.read())
        with going(settings, question_set(tmp_path, 8), endpoints_file=file) as outcome:
            until(lambda: gate.working == 8, "8 requests in flight")
            listing(tmp_path / "nodes", server.base_url, wrong_server.base_url)
            until(lambda: bool(events(settings, "endpoints_changed")), "the other endpoints")
            gate.open.set()
            end = outcome()
    assert end.complete
    failures = {(one["endpoint"], message in one["message"]) for one in events(settings, "request_failed")}
    assert failures == {(wrong_server.base_url, True)}


# ---- open files


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="another process's limits are changed on Linux only")
def test_descriptors_that_run_out_on_the_way_lose_no_sample(tmp_path: Path) -> None:
    gate, settings = Gate(closes_at=20), run_settings(tmp_path / "run")
    words = ["--data", str(sums(tmp_path, 12)), "--id-key", "id", "-n", "20", "--model", "test-model", "--out", "run"]
    words += ["--rate", "60", "--concurrency", "200", "--no-canary"]
    with FakeServer(serving(gate)) as server:
        words += ["--base-url", server.base_url]
        child = warm.started(["harness", "run", *words], cwd=tmp_path, stderr=subprocess.PIPE)
        try:
            manifest = RunFolder(settings.out).manifest
            until(lambda: manifest.exists() and b"server_model" in manifest.read_bytes(), "the manifest")
            until(lambda: gate.working >= 8, "8 requests in flight")
            in_use = len(list(Path(f"/proc/{child.pid}/fd").iterdir()))
            resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (in_use + 4, in_use + 4))
            until(lambda: bool(events(settings, "request_failed")), "a failure")
            gate.open.set()
            code, stderr = ended(child)
        finally:
            child.send_signal(signal.SIGKILL)
    assert code == 0, stderr
    assert keys_of(settings) == expected_keys(12, 20)
    assert {e["kind"] for e in events(settings, "request_failed")} == {"connect"}
    assert all("ulimit -n" in e["message"] for e in events(settings, "request_failed"))
    with locked(RunFolder(settings.out)):
        pass
