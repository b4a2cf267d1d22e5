"""One run by several clients, as its user has it: shards, and the run that they are joined into.

For: harness.cli.merge, harness.runs.merging.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.benchmarks.shards import assign_parts
from harness.commands.again import options_again
from harness.commands.report import run_facts
from harness.core.records import Key
from harness.runs import JournalReport, Manifest, RunFolder, locked, read_samples
from harness.runs.missing import Plan
from harness.testing import FakeServer, Request, Said, serving
from tests.budget import rounds
from tests.patience import PATIENCE_SECONDS
from tests.system.command import argv
from tests.system.command import harness as command

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


answer = serving(said, "m")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Keywords of the run that all tests ask for."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f'{{"id": "q{n}", "problem": "1+{n}?", "answer": "{n + 1}"}}\n' for n in range(N)))
    with FakeServer(answer) as server:
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


def test_shards_side_by_side_in_one_folder_become_the_run_that_one_client_makes(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One client is late, and the run is scored before: the score says what is missing, and the next one is whole."""
    whole = harness.run(out=tmp_path / "whole", **asked)
    first = harness.run(out=tmp_path / "run", shard="1/2", **asked)
    assert first.complete
    assert first.path == tmp_path / "run" / "shards" / "1-of-2"
    (early,) = harness.score(tmp_path / "run", workers=1)
    assert (early.n_samples, early.n_missing) == (first.outcome.n_done, TOTAL - first.outcome.n_done)

    with locked(RunFolder(first.path)):  # the two write at the same time
        second = harness.run(out=tmp_path / "run", shard="2/2", **asked)
        with pytest.raises(harness.StoreError, match=r"a shard of .* is in use by process"):
            harness.run(out=tmp_path / "run", **asked)
    monkeypatch.setattr("harness.runs.merging.JOIN_SECONDS", 0.1)
    with locked(RunFolder(tmp_path / "run")), pytest.raises(harness.StoreError, match="which samples all questions"):
        harness.run(out=tmp_path / "run", shard="1/2", **asked)
    monkeypatch.setattr("harness.runs.merging.JOIN_SECONDS", PATIENCE_SECONDS)
    joining = ExitStack()
    joining.enter_context(locked(RunFolder(tmp_path / "run")))  # as a score does for a moment
    threading.Timer(0.5, joining.close).start()
    assert harness.run(out=tmp_path / "run", shard="1/2", **asked).complete
    assert sorted(part.outcome.n_done for part in (first, second)) == [7, 12], "two questions and three"
    for folder in ("run", "whole"):
        harness.score(tmp_path / folder, workers=1)
    assert numbers(whole.path) == numbers(tmp_path / "run")
    again = harness.run(out=tmp_path / "run", **asked)
    assert (again.complete, again.outcome.tally.finished) == (True, 0), "the joined folder is a run like any other"
    assert harness.run(out=tmp_path / "run", shard="2/2", **asked).outcome.tally.finished == 0
    (compared,) = harness.compare([tmp_path / "run", whole.path])
    assert compared.settings == []

    seen = command(tmp_path, "status", "run")
    assert [line for line in seen.out.splitlines() if ": ended" in line] == [
        f"{path}: ended" for path in (tmp_path / "run", first.path, second.path)
    ]
    assert command(tmp_path, "doctor", "run", "run/shards/1-of-2").code == 0


def test_a_run_and_its_shards_ask_for_what_the_others_lack(asked: dict[str, Any], tmp_path: Path) -> None:
    part = harness.run(out=tmp_path / "run", shard="1/2", **asked)
    rest = harness.run(out=tmp_path / "run", **asked)
    assert (rest.complete, rest.outcome.tally.finished) == (True, TOTAL - part.outcome.n_done)
    for shard in ("1/2", "2/2", "3/4"):  # and they ask for nothing that the run has
        ended = harness.run(out=tmp_path / "run", shard=shard, **asked)
        assert (ended.complete, ended.outcome.tally.finished) == (True, 0)


def test_samples_that_only_shards_hold_are_never_left_out_in_silence(asked: dict[str, Any], tmp_path: Path) -> None:
    for shard in ("1/2", "2/2"):
        part = harness.run(out=tmp_path / "run", shard=shard, **asked)
    (scored,) = harness.score(part, workers=1)
    assert (scored.n_samples, scored.n_missing) == (TOTAL, 0), "a shard's folder stands for its run"
    harness.score(harness.run(out=tmp_path / "other", **asked), workers=1)
    for words in ("compare run other", "export run --to csv --out e"):
        done = command(tmp_path, *words.split())
        assert (done.code in (0, 1), "shards hold" in done.err) == (True, False), done.err
    for shard in ("1/2", "2/2"):
        harness.run(out=tmp_path / "run", shard=shard, **{**asked, "samples": 8})
    assert harness.run(out=tmp_path / "new", shard="1/2", **asked).complete
    for words in ("compare run other", "plan run --detect 2"):
        done = command(tmp_path, *words.split())
        assert (done.code, f"scored before its last {LATER} were stored; run `harness score` again" in done.err) == (
            3,
            True,
        ), words
    for words in ("export run --to csv --out e", "show run"):
        assert f"run is missing {LATER} from its shards; `harness score" in command(tmp_path, *words.split()).err
    report = command(tmp_path, "report", ".")
    assert f"{LATER} stored since the run was last scored are not included in this score" in report.out
    assert "new is omitted because its shards have not been joined" in report.err
    assert f"{LATER} from its shards" in run_facts(RunFolder(tmp_path / "run"))["warnings"][-1]
    harness.score(tmp_path / "run", workers=1)
    assert command(tmp_path, "compare", "run", "other").code in (0, 1)


def test_shards_of_other_settings_never_mix(asked: dict[str, Any], tmp_path: Path) -> None:
    """The second is refused before its first request; where both began at once, what joins them refuses."""
    run = tmp_path / "run"
    harness.run(out=run, shard="1/2", **asked)
    with pytest.raises(harness.StoreError, match=DIFFERS):
        harness.run(out=run, shard="2/2", seed=7, **asked)
    assert not RunFolder(run / "shards" / "2-of-2").has_samples()
    late = harness.run(out=tmp_path / "late", shard="2/2", seed=7, **asked)
    shutil.rmtree(run / "shards" / "2-of-2")
    late.path.rename(run / "shards" / "2-of-2")
    for act in (partial(harness.score, run), partial(harness.run, out=run, **asked)):
        with pytest.raises(harness.StoreError, match=DIFFERS):
            act()


@pytest.mark.slow
@pytest.mark.fuzz
def test_shards_and_a_score_killed_side_by_side_lose_and_double_nothing(asked: dict[str, Any], tmp_path: Path) -> None:
    run, stored = RunFolder(tmp_path / "run"), dict[Key, str | None]()
    words = ["--data", "sums.jsonl", "--question-key", "problem", "--answer-key", "answer", "--id-key", "id",
             "--samples", str(SAMPLES), "--model", "m", "--base-url", asked["base_url"], "--no-canary"]  # fmt: skip
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


def test_a_shard_of_an_earlier_version_opens_goes_on_and_is_merged(asked: dict[str, Any], tmp_path: Path) -> None:
    """Its manifest had the part in the identity, and the questions of the part as its plan."""
    part = harness.run(out=tmp_path / "run", shard="1/2", **asked)
    former = part.path.rename(tmp_path / "former")
    manifest = json.loads((former / "manifest.json").read_bytes())
    record = manifest["benchmarks"]["sums"]
    record["identity"]["shard"] = {"part": "1/2", "selection": "x"}
    record["plan"]["question_ids"] = ["q0"]
    (former / "manifest.json").write_text(json.dumps(manifest))

    assert harness.run(out=former, shard="1/2", **asked).outcome.tally.finished == 0
    assert Manifest.load(RunFolder(former)).benchmarks["sums"].plan.question_ids is None
    rest = harness.run(out=tmp_path / "rest", shard="2/2", **asked)
    assert harness.merge([former, rest], out=tmp_path / "joined").complete


def test_the_command_that_repeats_a_shard_or_joined_parts_repeats_the_run(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    def selected(run: Any) -> dict[str, Any]:
        (options,) = options_again(Manifest.load(RunFolder(run.path)))
        return {name: options[name] for name in ("shard", "limit", "ids") if name in options}

    selections: list[dict[str, Any]] = [{}, {"limit": 4}, {"ids": ["q3", "q4"]}]
    parts = [harness.run(out=tmp_path / str(n), shard="1/2", **one, **asked) for n, one in enumerate(selections)]
    assert [selected(part) for part in parts] == selections
    rest = harness.run(out=tmp_path / "rest", shard="2/2", limit=4, **asked)
    assert selected(harness.merge([parts[1], rest], out=tmp_path / "of one selection")) == {"limit": 4}
    assert selected(harness.merge(parts[1:], out=tmp_path / "of two")) == {"ids": [f"q{n}" for n in range(5)]}
    assert selected(harness.merge([parts[1], parts[0]], out=tmp_path / "of all")) == {}


def test_what_cannot_be_a_shard_is_one_sentence(asked: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(harness.UsageError, match=r"shard='3/2': .*numbered from 1"):
        harness.run(out=tmp_path / "x", shard="3/2", **asked)
    with pytest.raises(harness.UsageError, match="a shard's error differs from the run's error"):
        harness.run(out=tmp_path / "x", shard="1/2", target_error=10, **asked)
    harness.run(out=tmp_path / "run", shard="1/2", **asked)
    for words in (["show", "run"], ["doctor", "run"]):
        refused = command(tmp_path, *words).err
        assert f"run contains separate shards; `harness score {tmp_path / 'run'}` joins" in refused
    (tmp_path / "run/shards/1-of-2/sums/samples.jsonl").write_bytes(b"")
    for name in ("score", "doctor"):
        assert "run has stored a sample yet" in command(tmp_path, name, "run").err


def test_more_parts_than_questions_leave_some_with_none(asked: dict[str, Any], tmp_path: Path) -> None:
    held = assign_parts("sums", [f"q{n}" for n in range(N)], N + 1)
    (empty,) = set(range(1, N + 2)) - set(held.values())
    with pytest.raises(harness.UsageError, match="fewer questions than shards"):
        harness.run(out=tmp_path / "none", shard=f"{empty}/{N + 1}", **asked)
    parts = [harness.run(out=tmp_path / "run", shard=f"{k}/{N + 1}", **asked) for k in sorted(held.values())]
    assert sorted(part.outcome.n_done for part in parts) == [3, 4, 4, 4, 4]
    assert harness.run(out=tmp_path / "run", **asked).outcome.tally.finished == 0, "nobody misses the empty part"
