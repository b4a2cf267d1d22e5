"""Several processes share a folder: shards of a run, and readers of files that are being written.

For: harness.cli.merge, harness.runs.merging, harness.runs.layout, harness.runs.line_file, harness.runs.lock,
harness.runs.questions, server_launchers.lifecycle.servers, server_launchers.lifecycle.log_file.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.benchmarks.shards import assign_parts
from harness.commands.report import options_again, run_facts
from harness.core.errors import InUse
from harness.core.records import Key
from harness.runs import BenchmarkRecord, JournalReport, Manifest, RunFolder, locked, questions, read_samples
from harness.runs.line_file import append_line, read_appended
from harness.runs.lock import hold
from harness.runs.missing import Plan
from harness.testing import FakeServer, Request, Said, serving
from server_launchers.lifecycle import log_file, servers
from tests.budget import examples, rounds
from tests.patience import PATIENCE_SECONDS
from tests.reports.run_folders import write_run
from tests.runs.recorded import IDENTITY, NAME, asked
from tests.server_launchers.test_state_folder import gone
from tests.system.command import argv
from tests.system.command import harness as command
from tests.system.old_runs import FOLDERS, answer, words

N, SAMPLES = 5, 3.5
TOTAL = Plan(samples=SAMPLES).total([f"q{n}" for n in range(N)])
LATER = f"{N * 8 - TOTAL} samples"

DIFFERS = r"2-of-2 does not belong to the same run as .*1-of-2; they differ:\n  sums.seed: 0 → 7"


def said(request: Request) -> Said:
    """Right for even seeds."""
    body = request.json
    number = int(body["messages"][-1]["content"].split("+")[1].split("?")[0])
    wrong = body["seed"] % 2
    return Said(rf"so \boxed{{{1 + number + wrong}}}", body["seed"] % 50 + 2)


answer_of = serving(said, "m")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Keywords of the run that all tests ask for."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(N)))
    with FakeServer(answer_of) as server:
        yield {
            "data": path,
            "question_key": "problem",
            "answer_key": "answer",
            "id_key": "id",
            "samples": SAMPLES,
            "model": "m",
            "base_url": server.base_url,
            "canary": False,
        }


def numbers(folder: Path) -> dict[str, Any]:
    """A score without what depends on the clock."""
    score = json.loads((folder / "sums" / "scores.json").read_bytes())
    return {name: value for name, value in score.items() if name not in ("speed", "workload")}


def test_parallel_shards_in_one_folder_become_the_run_of_one_client(
    served: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One client is late, and the run is scored before: the score says what is missing, and the next one is whole."""
    whole = harness.run(out=tmp_path / "whole", **served)
    first = harness.run(out=tmp_path / "run", shard="1/2", **served)
    assert first.complete
    assert first.path == tmp_path / "run" / "shards" / "1-of-2"
    (early,) = harness.score(tmp_path / "run", workers=1)
    assert (early.n_samples, early.n_missing) == (first.outcome.n_done, TOTAL - first.outcome.n_done)

    with locked(RunFolder(first.path)):  # the two write at the same time
        second = harness.run(out=tmp_path / "run", shard="2/2", **served)
        with pytest.raises(harness.StoreError, match=r"a shard of .* is in use by process"):
            harness.run(out=tmp_path / "run", **served)
    monkeypatch.setattr("harness.runs.merging.JOIN_SECONDS", 0.1)
    with locked(RunFolder(tmp_path / "run")), pytest.raises(harness.StoreError, match="which samples all questions"):
        harness.run(out=tmp_path / "run", shard="1/2", **served)
    monkeypatch.setattr("harness.runs.merging.JOIN_SECONDS", PATIENCE_SECONDS)
    joining = ExitStack()
    joining.enter_context(locked(RunFolder(tmp_path / "run")))  # as a score does for a moment
    threading.Timer(0.5, joining.close).start()
    assert harness.run(out=tmp_path / "run", shard="1/2", **served).complete
    assert sorted(part.outcome.n_done for part in (first, second)) == [7, 12], "two questions and three"
    for folder in ("run", "whole"):
        harness.score(tmp_path / folder, workers=1)
    assert numbers(whole.path) == numbers(tmp_path / "run")
    again = harness.run(out=tmp_path / "run", **served)
    assert (again.complete, again.outcome.tally.finished) == (True, 0), "the joined folder is a run like any other"
    assert harness.run(out=tmp_path / "run", shard="2/2", **served).outcome.tally.finished == 0
    (compared,) = harness.compare([tmp_path / "run", whole.path])
    assert compared.settings == []

    seen = command(tmp_path, "status", "run")
    assert [line for line in seen.out.splitlines() if ": ended" in line] == [
        f"{path}: ended" for path in (tmp_path / "run", first.path, second.path)
    ]
    assert command(tmp_path, "doctor", "run", "run/shards/1-of-2").code == 0


def test_a_run_and_its_shards_ask_for_what_the_others_lack(served: dict[str, Any], tmp_path: Path) -> None:
    part = harness.run(out=tmp_path / "run", shard="1/2", **served)
    rest = harness.run(out=tmp_path / "run", **served)
    assert (rest.complete, rest.outcome.tally.finished) == (True, TOTAL - part.outcome.n_done)
    for shard in ("1/2", "2/2", "3/4"):  # and they ask for nothing that the run has
        ended = harness.run(out=tmp_path / "run", shard=shard, **served)
        assert (ended.complete, ended.outcome.tally.finished) == (True, 0)


def test_samples_that_only_shards_hold_are_never_left_out_in_silence(served: dict[str, Any], tmp_path: Path) -> None:
    for shard in ("1/2", "2/2"):
        part = harness.run(out=tmp_path / "run", shard=shard, **served)
    (scored,) = harness.score(part, workers=1)
    assert (scored.n_samples, scored.n_missing) == (TOTAL, 0), "a shard's folder stands for its run"
    harness.score(harness.run(out=tmp_path / "other", **served), workers=1)
    for line in ("compare run other", "export run --to csv --out e"):
        done = command(tmp_path, *line.split())
        assert (done.code in (0, 4), "shards hold" in done.err) == (True, False), done.err
    for shard in ("1/2", "2/2"):
        harness.run(out=tmp_path / "run", shard=shard, **{**served, "samples": 8})
    assert harness.run(out=tmp_path / "new", shard="1/2", **served).complete
    for line in ("compare run other", "plan run --detect 2"):
        done = command(tmp_path, *line.split())
        assert done.code == 3, line
        assert f"scored before its last {LATER} were stored; run `harness score` again" in done.err, line
    for line in ("export run --to csv --out e", "show run"):
        assert f"run is missing {LATER} from its shards; `harness score" in command(tmp_path, *line.split()).err
    report = command(tmp_path, "report", ".")
    assert f"{LATER} stored since the run was last scored are not included in this score" in report.out
    assert "new is omitted because its shards have not been joined" in report.err
    assert f"{LATER} from its shards" in run_facts(RunFolder(tmp_path / "run"))["warnings"][-1]
    harness.score(tmp_path / "run", workers=1)
    assert command(tmp_path, "compare", "run", "other").code in (0, 1)


def test_shards_of_other_settings_never_mix(served: dict[str, Any], tmp_path: Path) -> None:
    """The second is refused before its first request; where both began at once, what joins them refuses."""
    run = tmp_path / "run"
    harness.run(out=run, shard="1/2", **served)
    with pytest.raises(harness.StoreError, match=DIFFERS):
        harness.run(out=run, shard="2/2", seed=7, **served)
    assert not RunFolder(run / "shards" / "2-of-2").has_samples()
    late = harness.run(out=tmp_path / "late", shard="2/2", seed=7, **served)
    shutil.rmtree(run / "shards" / "2-of-2")
    late.path.rename(run / "shards" / "2-of-2")
    for act in (partial(harness.score, run), partial(harness.run, out=run, **served)):
        with pytest.raises(harness.StoreError, match=DIFFERS):
            act()


@pytest.mark.slow
@pytest.mark.fuzz
def test_shards_and_a_score_killed_side_by_side_lose_and_double_nothing(served: dict[str, Any], tmp_path: Path) -> None:
    run, stored = RunFolder(tmp_path / "run"), dict[Key, str | None]()
    words = ["--data", "sums.jsonl", "--question-key", "problem", "--answer-key", "answer", "--id-key", "id",
             "--samples", str(SAMPLES), "--model", "m", "--base-url", served["base_url"], "--no-canary"]  # fmt: skip
    lines = [["run", *words, "--out", "run", "--shard", f"{k}/3"] for k in (1, 2, 3)]
    for _ in range(rounds(2)):
        under_way = [
            subprocess.Popen(argv(*line), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for line in (*lines, ["score", "run", "--workers", "1"])
        ]
        time.sleep(random.uniform(1, 4))
        for process in under_way:
            process.kill()
            process.wait()
        now = {one.key: one.text for each in (run, *run.shards()) for one in read_samples(each.benchmark("sums"))}
        assert stored.items() <= now.items(), "what was stored stays"
        stored = now
    assert [command(tmp_path, *line).code for line in lines] == [0, 0, 0]
    assert command(tmp_path, "score", "run", "--workers", "1").code == 0
    report = JournalReport()
    reader = read_samples(run.benchmark("sums"), report=report)
    joined = {one.key: one.text for one in reader}
    assert stored.items() <= joined.items()
    assert (len(joined), report.n_duplicates, report.damaged) == (TOTAL, 0, [])


def test_a_shard_of_an_earlier_version_opens_goes_on_and_is_merged(served: dict[str, Any], tmp_path: Path) -> None:
    """Its manifest had the part in the identity, and the questions of the part as its plan."""
    part = harness.run(out=tmp_path / "run", shard="1/2", **served)
    former = part.path.rename(tmp_path / "former")
    manifest = json.loads((former / "manifest.json").read_bytes())
    record = manifest["benchmarks"]["sums"]
    record["identity"]["shard"] = {"part": "1/2", "selection": "x"}
    record["plan"]["question_ids"] = ["q0"]
    (former / "manifest.json").write_text(json.dumps(manifest))

    assert harness.run(out=former, shard="1/2", **served).outcome.tally.finished == 0
    assert Manifest.load(RunFolder(former)).benchmarks["sums"].plan.question_ids is None
    rest = harness.run(out=tmp_path / "rest", shard="2/2", **served)
    assert harness.merge([former, rest], out=tmp_path / "joined").complete


def test_the_command_of_a_shard_or_merged_parts_repeats_the_run(served: dict[str, Any], tmp_path: Path) -> None:
    def selected(run: Any) -> dict[str, Any]:
        (options,) = options_again(Manifest.load(RunFolder(run.path)))
        return {name: options[name] for name in ("shard", "limit", "ids") if name in options}

    selections: list[dict[str, Any]] = [{}, {"limit": 4}, {"ids": ["q3", "q4"]}]
    parts = [harness.run(out=tmp_path / str(n), shard="1/2", **one, **served) for n, one in enumerate(selections)]
    assert [selected(part) for part in parts] == selections
    rest = harness.run(out=tmp_path / "rest", shard="2/2", limit=4, **served)
    assert selected(harness.merge([parts[1], rest], out=tmp_path / "of one selection")) == {"limit": 4}
    assert selected(harness.merge(parts[1:], out=tmp_path / "of two")) == {"ids": [f"q{n}" for n in range(5)]}
    assert selected(harness.merge([parts[1], parts[0]], out=tmp_path / "of all")) == {}


def test_what_cannot_be_a_shard_is_one_sentence(served: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(harness.UsageError, match=r"shard='3/2': .*numbered from 1"):
        harness.run(out=tmp_path / "x", shard="3/2", **served)
    with pytest.raises(harness.UsageError, match="a shard's error differs from the run's error"):
        harness.run(out=tmp_path / "x", shard="1/2", target_error=10, **served)
    harness.run(out=tmp_path / "run", shard="1/2", **served)
    for line in (["show", "run"], ["doctor", "run"]):
        refused = command(tmp_path, *line).err
        assert f"run contains separate shards; `harness score {tmp_path / 'run'}` joins" in refused
    (tmp_path / "run/shards/1-of-2/sums/samples.jsonl").write_bytes(b"")
    for name in ("score", "doctor"):
        assert "run has stored a sample yet" in command(tmp_path, name, "run").err


def test_more_parts_than_questions_leave_some_with_none(served: dict[str, Any], tmp_path: Path) -> None:
    held = assign_parts("sums", [f"q{n}" for n in range(N)], N + 1)
    (empty,) = set(range(1, N + 2)) - set(held.values())
    with pytest.raises(harness.UsageError, match="fewer questions than shards"):
        harness.run(out=tmp_path / "none", shard=f"{empty}/{N + 1}", **served)
    parts = [harness.run(out=tmp_path / "run", shard=f"{k}/{N + 1}", **served) for k in sorted(held.values())]
    assert sorted(part.outcome.n_done for part in parts) == [3, 4, 4, 4, 4]
    assert harness.run(out=tmp_path / "run", **served).outcome.tally.finished == 0, "nobody misses the empty part"


# -- readers during writes ---------------------------------------------------------------------------------------------


CALLS = ("open", "replace", "unlink", "stat", "lstat", "fstat", "mkdir", "rmdir", "scandir", "ftruncate", "pwrite")
"""Calls of `os` around which the two may change places."""

Meeting = tuple[Callable[[int], object], Callable[[], str]]
"""The writer, by the number of its turn, and the reader, which says what it saw that never was; empty: all is well."""


def exchanged_state(folder: Path, _: ExitStack) -> Meeting:
    path, state = folder / "forged.json", gone()
    servers.write(path, state)
    return lambda _: servers.write(path, state), lambda: "" if servers.read(path) else "no server"


def turned_log(folder: Path, closing: ExitStack) -> Meeting:
    log = log_file.LogFile(folder / "s.log", [])
    closing.callback(log.close)
    for n in range(40):
        log.feed(b"before %d\n" % n)

    def read() -> str:
        return "" if len(servers.log_tail(folder / "s.log")) > 20 else "the end of the log is lost"

    return lambda n: log.feed(b"line %d\n" % n * 60), read


def removed_lines(folder: Path, _: ExitStack) -> Meeting:
    path = folder / "lines.jsonl"

    def write(n: int) -> None:
        append_line(path, b"{}\n")
        if n % 3 == 2:
            path.unlink()

    return write, lambda: "" if len(read_appended(path, dict, "")) <= 3 else "more lines than were there"


def removed_run(folder: Path, _: ExitStack) -> Meeting:
    samples = folder / "run" / "b" / "samples.jsonl"

    def write(_: int) -> None:
        samples.parent.mkdir(parents=True)
        samples.write_bytes(b"{}\n")
        shutil.rmtree(samples.parent)

    return write, lambda: str(RunFolder(folder / "run").has_samples() not in (True, False) or "")


def growing_run(folder: Path, _: ExitStack) -> Meeting:
    """Sessions that add questions, as `SamplingSession.plan` does: the manifest first. Every fifth is a new run's."""
    current: list[RunFolder] = []

    def write(n: int) -> None:
        run, every = RunFolder(folder / str(n // 5)), asked(2 + n % 5)
        with hold(run) as held:
            current[:] = [run]
            manifest = held.manifest or Manifest(harness_version="0", created="", model="m")
            plan = Plan(samples=2, question_ids=[each.question_id for each in every])
            settings = {questions.DIGEST: questions.seal(every)}
            manifest.extend(NAME, BenchmarkRecord(identity=IDENTITY, plan=plan, settings=settings)).save(run)
            questions.write(run.benchmark(NAME), every)

    def read() -> str:
        with contextlib.suppress(InUse):
            for run in [*current]:
                record = Manifest.load(RunFolder.open(run.path)).benchmarks[NAME]
                planned = questions.read_planned(run.benchmark(NAME), record)
                return "" if [each.question_id for each in planned] == record.plan.question_ids else "other questions"
        return ""

    return write, read


@pytest.fixture
def changing_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the threads change places often, and count as processes."""

    def yielding(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **keywords: Any) -> Any:
            result = call(*args, **keywords)
            if random.random() < 0.3:
                time.sleep(random.random() * 0.001)
            return result

        return called

    for name in CALLS:
        monkeypatch.setattr(os, name, yielding(getattr(os, name)))
    monkeypatch.setattr(os, "getpid", threading.get_native_id)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.setattr(log_file, "LOG_BYTES", 2000)


@pytest.mark.usefixtures("changing_places")
@pytest.mark.parametrize("meeting", [exchanged_state, turned_log, removed_lines, removed_run, growing_run])
def test_a_reader_sees_the_old_state_or_the_new(tmp_path: Path, meeting: Callable[[Path, ExitStack], Meeting]) -> None:
    with ExitStack() as closing, ThreadPoolExecutor(1) as other:
        write, read = meeting(tmp_path, closing)
        wrote = other.submit(lambda: [write(n) for n in range(examples(400))])
        seen = {read()}
        while not wrote.done():
            seen.add(read())
        wrote.result()
    assert seen == {""}


DAMAGED = ("manifest.json", "demo/scores.json", "demo/questions.jsonl", "demo/grades.jsonl")
HARMLESS = ("demo/scores.json", "demo/grades.jsonl")
"""`status` needs none for the counts of samples, and shows no score that cannot be read: nothing to warn of."""

COMMANDS = ("report results", "status", "status results")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three runs of one benchmark."""
    folder = tmp_path_factory.mktemp("runs")
    for number, name in enumerate("abc"):
        write_run(folder / "results" / name, benchmarks=[("demo", 6, 4)], seed=number)
    return folder


def damaged(results: Path, to: Path, file: str) -> Path:
    """A copy of the results in which one file of the run `b`, the latest, is damaged."""
    shutil.copytree(results, to, dirs_exist_ok=True)
    path = to / "results" / "b" / file
    path.write_text("{\n")
    for part in (to / "results" / "b").rglob("*"):
        os.utime(part)
    return to


@pytest.mark.parametrize("file", DAMAGED)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_neighbor_is_left_out_with_a_warning(results: Path, tmp_path: Path, name: str, file: str) -> None:
    folder = damaged(results, tmp_path, file)
    told = command(folder, *name.split())
    assert told.code == 0, told.err
    if name.startswith("report") or file not in HARMLESS:
        (warning,) = [line for line in told.err.splitlines() if f"results/b/{file}" in line]
        assert warning.startswith("harness: warning: ")
        assert "is skipped" in warning
        assert "results/b" not in told.out


def test_where_all_are_damaged_the_error_names_one(results: Path, tmp_path: Path) -> None:
    folder = damaged(results, tmp_path, "manifest.json")
    for run in "ac":
        shutil.rmtree(folder / "results" / run)
    for line in COMMANDS:
        told = command(folder, *line.split()).err
        assert ["results/b/manifest.json" in told, "Traceback" in told] == [True, False]


def test_python_warns_too(results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = damaged(results, tmp_path, "manifest.json")
    built = harness.report(folder / "results")
    assert [run.label for run in built.runs] == ["a", "c"]
    (record,) = caplog.records
    assert "results/b/manifest.json" in record.getMessage()


PINNED = {"card", "own-file", "completions"}
"""By `tests/pins/scenes/score.py`."""


@pytest.mark.parametrize("old", [path for path in sorted(FOLDERS.glob("*/*")) if path.name not in PINNED], ids=str)
def test_an_old_run_is_resumed_by_the_command_that_began_it(tmp_path: Path, old: Path) -> None:
    shutil.copytree(old, tmp_path / "run")
    (samples,) = (tmp_path / "run").glob("*/samples.jsonl")
    before = samples.read_bytes()

    with FakeServer(answer) as server:
        done = command(tmp_path, *words(old.name, server.base_url, "run"))
        n_asked = sum(request.method == "POST" for request in server.requests)

    assert done.code == 0, done.err
    after = samples.read_bytes()
    records = [json.loads(line) for line in after.splitlines()]
    assert after.startswith(before)
    assert n_asked == len(records) - len(before.splitlines()) > 0
    assert len({(record["question_id"], record["sample_index"]) for record in records}) == len(records)
    assert command(tmp_path, "score", "run").code == 0
    assert command(tmp_path, *words(old.name, server.base_url, "run", temperature="0.123")).code == 3
