"""`harness gate`: a sound model passes, a worse one fails, what is open is named, a bad policy is one sentence.

For: harness.deciding.gate, harness.gates, harness.cli.gate.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from bench import simulate_nights
from harness.core.errors import StoreError, UsageError
from harness.deciding import gate, simulation
from harness.deciding.nightly_history import Prior, contradicting_deviation, learn
from harness.gates import execution, output
from harness.gates.decision import Gated
from harness.gates.policy import EXAMPLE, read
from harness.testing import STALL, FakeServer, Request, Said, Step, completion, serving
from tests.commands.reading_server import Reader
from tests.commands.test_probe_replies import a_run
from tests.faults.able import able, sums
from tests.patience import until
from tests.pins.server import solving
from tests.system.command import harness, start


def policy(folder: Path, url: str, *, benchmark: str = "floor: 85, loss: 15, max_samples: 8", more: str = "") -> None:
    run = f'{{base_url: "{url}", data: sums.jsonl, id_key: id, canary: false}}'
    text = f"name: t\nrun: {run}\nbenchmarks:\n  sums: {{{benchmark}}}\nhistory: hist\n{more}"
    folder.joinpath("gate.yaml").write_text(text, encoding="utf-8")


def test_a_gate_without_answers_says_what_to_write_into_its_file(tmp_path: Path) -> None:
    sums(tmp_path, 40)
    with FakeServer(serving(Said(""))) as server:
        policy(tmp_path, server.base_url)
        file = tmp_path / "gate.yaml"
        file.write_text(file.read_text().replace("canary: false", "max_tokens: 9"))
        done = harness(tmp_path, "gate", "gate.yaml", "--out", "run")
    shown = done.out + (tmp_path / "run" / "gate.md").read_text()
    assert (done.code, "canary: false" in shown, "canary=" in shown) == (4, True, False), shown


@pytest.mark.parametrize(("chance", "code", "state"), [(0.95, 0, "pass"), (0.4, 1, "fail")])
def test_a_healthy_model_passes_a_worse_one_fails_and_both_are_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chance: float, code: int, state: str
) -> None:
    sums(tmp_path, 40)
    with FakeServer(able(chance)) as server:
        policy(tmp_path, server.base_url)
        words = ("gate", "gate.yaml", "--out", "run", "--json")
        done = harness(tmp_path, *words)
        assert done.code == code, done.err
        n_asked = len(server.requests)
        again = harness(tmp_path, *words)
        assert len((tmp_path / "hist" / "history.jsonl").read_text().splitlines()) == 1
        on_run = harness(tmp_path, "gate", "gate.yaml", "run", "--json")
        assert (again.code, json.loads(again.out)) == (code, json.loads(done.out)), again.err
        assert "has already been decided" in again.err
        assert (on_run.code, on_run.out) == (code, done.out)
        assert n_asked < 40 * 8
        # Without a name each gate has a folder of its own, in CI the commit's.
        for commit in ("", "", "4f2c", "4f2c"):
            monkeypatch.setenv("GITHUB_SHA", commit)
            assert harness(tmp_path, "gate", "gate.yaml").code == code
            time.sleep(1.1)  # folders are named by the second
    made = sorted(path.name for path in (tmp_path / "results" / "gate-t").iterdir())
    assert (len(made), made[2:]) == (4, ["4f2c", "4f2c.2"])
    (check,) = json.loads(done.out)["checks"]
    assert (check["state"], check["loss"]) == (state, 0.15)
    assert json.loads((tmp_path / "run" / "gate.json").read_text()) == json.loads(done.out)
    # Decided on as RUN, a run has a second line, which counts in place of the first.
    assert len((tmp_path / "hist" / "history.jsonl").read_text().splitlines()) == 6
    suite = ElementTree.parse(tmp_path / "run" / "gate.xml").getroot()
    assert suite.get("failures") == str(code)
    assert f"| critical | {state} |" in (tmp_path / "run" / "gate.md").read_text()


@pytest.mark.parametrize(("floor", "loss", "most"), [(98, 10, 4), (99, 5, 8), (99, 3, 16)])
def test_a_healthy_run_passes_a_floor_near_100(tmp_path: Path, floor: int, loss: int, most: int) -> None:
    """The variance of an accuracy with the loss is several times that of the floor."""
    sums(tmp_path, 50)
    policy(tmp_path, "http://127.0.0.1:9", benchmark=f"floor: {floor}, loss: {loss}, max_samples: {most}")
    foretold = harness(tmp_path, "gate", "gate.yaml", "--dry-run")
    alarms, passes, power = map(float, re.findall(r"([\d.]+)% (?:false|passes|of cases)", foretold.out)[:3])
    assert (foretold.code, alarms < 2, passes > 90, power >= 95) == (0, True, True, True), foretold.out


def test_a_large_set_is_sampled_in_parts_and_the_baseline_gets_the_same(tmp_path: Path) -> None:
    """The page's chart shows both runs; what a gate takes is foretold by the baseline, or by the gate's last run."""
    sums(tmp_path, 420)
    with FakeServer(able(0.9)) as server:
        words = f"--data sums.jsonl --id-key id --no-canary --prices 1,2 --base-url {server.base_url}".split()
        assert harness(tmp_path, "run", *words, "--limit", "400", "--samples", "2", "--out", "base").code == 0
        assert harness(tmp_path, "score", "base").code == 0
        for benchmark, out, n in (("floor: 88", "floor", 420), ("baseline: base", "beside", 400)):
            policy(tmp_path, server.base_url, benchmark=f"{benchmark}, loss: 30, max_samples: 2")
            done = harness(tmp_path, "gate", "gate.yaml", "--out", out, "--json")
            (check,) = json.loads(done.out)["checks"]
            n_asked = len((tmp_path / out / "sums" / "samples.jsonl").read_text().splitlines())
            assert (check["state"], n_asked) == ("pass", check["rounds"] * n), done.out
            assert check["rounds"] < 1
            assert harness(tmp_path, "gate", "gate.yaml", out, "--json").out == done.out
            foretold = harness(tmp_path, "gate", "gate.yaml", "--dry-run").out
            assert "new tokens" in foretold.split("at most: ")[1], foretold
            assert ("USD" in foretold) == (out == "beside")
            # The baseline asked a part of the questions, which is none for a floor; beside itself it proves nothing.
            assert harness(tmp_path, "gate", "gate.yaml", "base", "--out", "seen").code == (4 if out == "floor" else 2)
    shown = (tmp_path / "beside" / "gate.html").read_text()
    assert (shown.count("<title>2"), "http" in shown.split("<svg")[1]) == (2, False)


@pytest.mark.parametrize(
    ("benchmark", "run", "source", "floor"),
    [
        ("math500", "temperature: 0.6", "", None),
        ("math500", "temperature: 0.6", ": open-r1 README, DeepSeek's results reproduced with LightEval", (94.5, 4)),
        ("math500", "temperature: 0.8, top_p: 0.9", "", (94.1, 3)),
        ("math500", "temperature: 0.8, top_p: 0.95", "", None),
        ("aime25_i", "top_p: 0.95", ": LIMO README", None),  # the mean over three temperatures is no run's
    ],
)
def test_a_published_score_is_a_floor_if_it_is_one(
    tmp_path: Path, benchmark: str, run: str, source: str, floor: tuple[float, int] | None
) -> None:
    watches = f'{{{benchmark}: {{loss: 2, baseline: "published{source}"}}}}'
    text = f"run: {{model: DeepSeek-R1-Distill-Qwen-7B, {run}}}\nbenchmarks: {watches}"
    tmp_path.joinpath("gate.yaml").write_text(text, encoding="utf-8")
    if floor is None:
        with pytest.raises(UsageError, match="expected exactly one published score"):
            read(tmp_path / "gate.yaml")
    else:
        watched = read(tmp_path / "gate.yaml").benchmarks[benchmark]
        assert (watched.floor, watched.floor_samples, watched.floor_unit) == (pytest.approx(floor[0]), floor[1], 0.1)


@pytest.fixture(scope="module")
def stopped_gates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, str]]:
    """The folders of a gate that its budget stopped, and of one that was killed at its end before it wrote its
    decision; the address of their server.
    """
    folder = tmp_path_factory.mktemp("gates") / "stopped"
    folder.mkdir()
    sums(folder, 40)
    with FakeServer(able(0.9)) as server:
        words = f"--data sums.jsonl --id-key id --no-canary --base-url {server.base_url}".split()
        for base, seed in (("base", "1"), ("other", "2")):
            assert harness(folder, "run", *words, "--samples", "4", "--seed", seed, "--out", base).code == 0
            assert harness(folder, "score", base).code == 0
        policy(folder, server.base_url, benchmark="baseline: base, loss: 12, max_samples: 4")
        text = (folder / "gate.yaml").read_text().replace("canary: false", "canary: false, max_tokens: 60")
        (folder / "gate.yaml").write_text(text.replace("canary: false", "canary: false, budget_tokens: 3000"))
        stopped = harness(folder, "gate", "gate.yaml", "--out", "run")
        assert (stopped.code, "stopped" in stopped.out) == (4, True), stopped.err
        ended = shutil.copytree(folder, folder.with_name("ended"))
        (ended / "gate.yaml").write_text(text)
        assert "points) after" in harness(ended, "gate", "gate.yaml", "--out", "run").out
        (ended / "run" / "gate.json").unlink()
        yield folder, ended, server.base_url


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ("temperature: 0.1", 3, "generated with different settings"),
        ("model: other", 2, "does not serve other"),
        ("base_url: http://127.0.0.1:9/v1", 2, "no server answers"),
        ("loss", 2, "this gate started with other benchmarks"),
        ("baseline", 2, "other baselines"),
        ("plan", 3, "gate.plan.json is not the plan of a gate"),
        ("", 1, ""),
    ],
)
def test_a_gate_goes_on_after_a_stop_and_only_as_it_began(
    stopped_gates: tuple[Path, Path, str], tmp_path: Path, change: str, code: int, says: str
) -> None:
    """Another model, setting, server, policy or baseline is refused: before any sample, and if all are there. So is a
    damaged plan of the looks.
    """
    stopped, ended, url = stopped_gates
    text = (ended / "gate.yaml").read_text()
    changed = {
        "loss": text.replace("loss: 12", "loss: 11"),
        "baseline": text.replace("baseline: base", "baseline: other"),
        "": text,
        "plan": text,
        "base_url: http://127.0.0.1:9/v1": text.replace(url, "http://127.0.0.1:9/v1"),
    }.get(change, text.replace("canary: false", f"canary: false, {change}"))
    for begun in (stopped, ended):
        folder = shutil.copytree(begun, tmp_path / begun.name)
        (folder / "gate.yaml").write_text(changed)
        if change == "plan":
            (folder / "run" / "gate.plan.json").write_text("{")
        done = harness(folder, "gate", "gate.yaml", "--out", "run")
        assert (done.code == code or not says, says in done.err) == (True, True), (done.code, done.out + done.err)
        assert ("points) after" in done.out) == (not says)


def test_undecided_answers_leave_a_gate_open_if_they_could_turn_it(tmp_path: Path) -> None:
    """Right twin: without them it fails, and where they could turn nothing it passes."""
    sums(tmp_path, 60)

    def answer(request: Request) -> Iterable[Step]:
        number = request.method == "GET" or int(request.json["messages"][-1]["content"].split()[2])
        return able(1.0)(request) if number is True or number % 5 else completion(rf"\boxed{{{reply}}}", tokens=9)

    for reply, floor, code in (("f(x)", 98, 4), ("3", 98, 1), ("f(x)", 70, 0)):
        with FakeServer(answer) as server:
            policy(tmp_path, server.base_url, benchmark=f"floor: {floor}, loss: 15, max_samples: 4")
            done = harness(tmp_path, "gate", "gate.yaml", "--out", f"{reply} {floor}", "--json")
        (check,) = json.loads(done.out)["checks"]
        assert done.code == code, done.out
        assert check["bounds"] == (None if reply == "3" else [pytest.approx(0.8, abs=0.02), 1.0])
        assert ("the undecided answers could change the verdict" in check["why"]) == (code == 4)


def test_copies_of_a_server_that_ignores_seeds_count_as_one_sample(tmp_path: Path) -> None:
    sums(tmp_path, 60)

    def cached(request: Request) -> Said:
        number = int(request.json["messages"][-1]["content"].split()[2])
        return Said("so " * 400 + rf"\boxed{{{number + (number % 5 > 0)}}}", 50)

    for deaf in (False, True):
        with FakeServer(serving(cached) if deaf else able(0.8)) as server:
            policy(tmp_path, server.base_url, benchmark="floor: 80, loss: 6, max_samples: 24")
            done = harness(tmp_path, "gate", "gate.yaml", "--out", f"run{deaf}", "--json")
        (check,) = json.loads(done.out)["checks"]
        # Copies tell in the second round, which is then the last one; an open gate whose end is known asks for no more.
        assert ("counting duplicates as one" in check["why"]) == deaf, done.out
        assert not deaf or (
            check["rounds"] <= 2,
            done.code,
            "; errors, in points: sampling " in check["why"],
        ) == (True, 4, True), done.out
        assert harness(tmp_path, "gate", "gate.yaml", "--out", f"run{deaf}").code == 2
    foretold = harness(tmp_path, "gate", "gate.yaml", "--dry-run").out
    assert "(as in earlier runs, copies count as one sample)" in foretold, foretold


@pytest.mark.parametrize(("api", "takes_seeds"), [("chat", True), ("responses", True), ("messages", False)])
def test_each_gate_folder_draws_anew_on_any_api_with_seeds(tmp_path: Path, api: str, takes_seeds: bool) -> None:
    sums(tmp_path, 20)
    with FakeServer(solving(90, "vllm")) as server:
        policy(tmp_path, server.base_url)
        text = (tmp_path / "gate.yaml").read_text()
        (tmp_path / "gate.yaml").write_text(text.replace("canary: false", f"canary: false, api: {api}"))
        drawn = []
        for out in ("one", "two"):
            assert harness(tmp_path, "gate", "gate.yaml", "--out", out).code in (0, 1)
            bodies = [request.json for request in server.requests if request.method == "POST"]
            drawn.append({body["seed"] for body in bodies if "seed" in body and body.get("temperature")})
            server.requests.clear()
    assert (not drawn[0] & drawn[1], {bool(seeds) for seeds in drawn}) == (True, {takes_seeds})


def test_a_history_teaches_by_what_it_is_a_history_of_and_forgets(tmp_path: Path) -> None:
    sums(tmp_path, 40)
    known = {}
    with FakeServer(able(0.95)) as server:
        policy(tmp_path, server.base_url)
        text = (tmp_path / "gate.yaml").read_text()
        steps = {"first": text, "second": text, "hot": text.replace("canary: false", "canary: false, temperature: 0.1")}
        steps |= {"floor": text.replace("floor: 85", "floor: 84"), "third": text, "forgotten": text}
        for name, content in steps.items():
            (tmp_path / "gate.yaml").write_text(content)
            if name == "forgotten":
                done = harness(tmp_path, "gate", "gate.yaml", "--forget", "2001-01-01")
                assert (done.code, "the history contains no run from that time" in done.err) == (2, True)
                today = json.loads((tmp_path / "third" / "gate.json").read_text())["sampled"][:10]
                done = harness(tmp_path, "gate", "gate.yaml", "--forget", today)
                assert (done.code, done.out) == (0, "5 runs of the history will be ignored by later decisions\n")
            done = harness(tmp_path, "gate", "gate.yaml", "--out", name, "--json")
            known[name] = json.loads(done.out)["checks"][0]["known_runs"]
    assert known == {"first": 0, "second": 1, "hot": 0, "floor": 0, "third": 2, "forgotten": 0}


def test_gates_that_end_together_lose_no_run_of_the_history(tmp_path: Path) -> None:
    """Also beside readers, `--forget` and the half line of a machine that died."""
    policy(tmp_path, "http://127.0.0.1:9/v1")
    gates, runs = read(tmp_path / "gate.yaml").model_copy(update={"history": tmp_path / "hist"}), range(24)
    (tmp_path / "hist").mkdir()
    (tmp_path / "hist" / "history.jsonl").write_text('{"gate":"t","run":"ru')

    def carry_out(number: int) -> int:
        day = f"2026-01-{number + 1:02}"
        gated = Gated(gate="t", run=day, verdict="pass", exit_code=0, checks=(), sampled=day)
        output.write(gates, gated, tmp_path / day)
        return len(output.read_history(gates)) and output.forget(gates, day)

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(carry_out, runs)] == [1] * len(runs)
    assert len({each.run for each in output.read_history(gates) if each.forgotten}) == len(runs)
    gates = gates.model_copy(update={"history": tmp_path / "gate.yaml"})
    with pytest.raises(StoreError, match="is not a folder"):
        carry_out(0)


def test_a_policy_that_cannot_keep_its_power_says_what_would(tmp_path: Path) -> None:
    sums(tmp_path, 40)
    for benchmark, code, says in (
        ("floor: 90, loss: 2, max_samples: 4", 1, "it would be reached with "),
        ("floor: 90, loss: 25%, max_samples: 8", 0, "a loss of 22.5 points is detected in "),
    ):
        policy(tmp_path, "http://127.0.0.1:9/v1", benchmark=benchmark)
        done = harness(tmp_path, "gate", "gate.yaml", "--dry-run")
        assert (done.code, says in done.out, "errors, in points: " in done.out) == (code, True, code == 1), done.out


def test_a_gate_that_is_killed_three_times_comes_to_the_same(tmp_path: Path) -> None:
    """In a part of the first round, in its rest, and later."""
    limit = 0

    def answer(request: Request) -> Iterable[Step]:
        return [STALL] if limit and request.number > limit else able(0.75)(request)

    decisions = []
    for name, limits in (("once", ()), ("killed", (6, 150, 400))):
        (folder := tmp_path / name).mkdir()
        sums(folder, 210)
        with FakeServer(answer) as server:
            policy(folder, server.base_url, benchmark="floor: 80, loss: 8, max_samples: 8")
            words = ("gate", "gate.yaml", "--out", "run", "--json")
            for limit in limits:
                process = start(folder, words)
                until(lambda n=limit: len(server.requests) > n, "a request that gets no answer")  # type: ignore[misc]
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
                assert not (folder / "run" / "gate.json").exists()
            limit = 0
            done = harness(folder, *words)
        decisions.append((done.code, json.loads(done.out) | {"run": None, "sampled": None}))
        assert len((folder / "hist" / "history.jsonl").read_text().splitlines()) == 1
    assert decisions[0] == decisions[1]
    assert decisions[0][1]["checks"][0]["rounds"] * 210 > 400


def test_a_failure_beside_a_baseline_names_the_setting_that_changed(tmp_path: Path) -> None:
    sums(tmp_path, 40)
    with FakeServer(able(0.9)) as server:
        url = server.base_url
        words = ("--data", "sums.jsonl", "--id-key", "id", "--samples", "4", "--no-canary", "--temperature", "0.5")
        assert harness(tmp_path, "run", "--base-url", url, *words, "--out", "base").code == 0
        assert harness(tmp_path, "score", "base").code == 0
    with FakeServer(able(0.2)) as server:
        policy(tmp_path, server.base_url, benchmark="baseline: base, loss: 30")
        done = harness(tmp_path, "gate", "gate.yaml", "--out", "run")
    assert done.code == 1
    assert "differs from the baseline: temperature: 0.5" in done.out
    assert "seed" not in done.out


def test_runs_that_are_not_of_the_same_questions_decide_nothing(tmp_path: Path) -> None:
    """Neither a part of the baseline's questions, nor others, nor a run beside one that lacks some, nor one twice."""
    (other := tmp_path / "other").mkdir()
    sums(tmp_path, 10)
    others = sums(other, 10)
    others.write_text(others.read_text().replace('"q', '"z'))
    data = dict.fromkeys(("worse", "again", "whole"), "sums.jsonl")
    data |= {"part": "sums.jsonl --limit 4", "others": "other/sums.jsonl"}
    with FakeServer(able(1.0)) as server, FakeServer(able(0.0)) as wrong:
        for name, given in data.items():
            url = (wrong if name == "worse" else server).base_url
            words = f"--data {given} --id-key id --samples 2 --no-canary --base-url {url} --out {name}"
            assert harness(tmp_path, "run", *words.split()).code == 0
            assert harness(tmp_path, "score", name).code == 0
        policy(tmp_path, server.base_url, benchmark="baseline: worse, loss: 20")
        worse = harness(tmp_path, "gate", "gate.yaml", "--out", "seen")
        assert worse.code == 2
        assert "a loss of 20.0 points exceeds the accuracy of sums in worse: 0.0" in worse.err
        policy(tmp_path, server.base_url, benchmark="baseline: whole, loss: 20, max_samples: 2")
        for runs in (("part",), ("others",), ("worse", "part")):
            done = harness(tmp_path, "gate", "gate.yaml", *runs, "--out", "seen")
            assert (done.code, "sums (critical): missing: " in done.out) == (4, True), (runs, done.out)
        # Right twin: two runs of the same questions.
        both = harness(tmp_path, "gate", "gate.yaml", "worse", "again", "--out", "seen")
        assert (both.code, "sums (critical): fail: " in both.out) == (1, True), both.out + both.err
        twice = harness(tmp_path, "gate", "gate.yaml", "whole", "whole", "--out", "seen")
        assert (twice.code, "a run is listed twice" in twice.err) == (2, True)
        text = (tmp_path / "gate.yaml").read_text().replace("sums.jsonl", "other/sums.jsonl")
        (tmp_path / "gate.yaml").write_text(text)
        new = harness(tmp_path, "gate", "gate.yaml", "--out", "new")
    assert (new.code, "does not contain 10 of the 10 questions in its baseline" in new.err) == (2, True), new.out


def test_a_run_or_baseline_whose_score_leaves_samples_out_is_refused(tmp_path: Path) -> None:
    """Not scored, scored before its last samples, or before those that only a shard holds. No decision is written."""
    sums(tmp_path, 10)
    steps = {
        "has not been scored": ("1",),
        "was scored before its last 10 samples": ("2",),
        "was scored before its last 5 samples": ("3", "--shard", "2/2"),
    }
    with FakeServer(able(1.0)) as server:
        data = ("--data", "sums.jsonl", "--id-key", "id")
        ask = ("run", "--base-url", server.base_url, *data, "--no-canary", "--samples")
        for words in ((*ask, "2", "--out", "other"), ("score", "other")):
            assert harness(tmp_path, *words).code == 0
        for says, more in steps.items():
            assert harness(tmp_path, *ask, *more, "--out", "run").code == 0
            for benchmark, run in (("floor: 85, loss: 15", "run"), ("baseline: run, loss: 15", "other")):
                policy(tmp_path, server.base_url, benchmark=benchmark)
                done = harness(tmp_path, "gate", "gate.yaml", run, "--out", "seen")
                assert (done.code, f"sums of run {says}" in done.err) == (3, True), done.err
            assert harness(tmp_path, "score", "run").code in (0, 4)  # the half of a round that a shard has is missing
        # Right twin: what else the baseline holds is not compared.
        (tmp_path / "two.jsonl").write_text((tmp_path / "sums.jsonl").read_text())
        two = (*ask[:3], "--data", "two.jsonl", *data[2:], *ask[-2:], "1", "--out")
        for words in ((*two, "other"), (*two, "both"), (*ask, "1", "--out", "both"), ("score", "both")):
            assert harness(tmp_path, *words).code == 0
        (tmp_path / "two.yaml").write_text("benchmarks: {sums: {baseline: other, loss: 15}, two: {floor: 85, loss: 9}}")
        done = harness(tmp_path, "gate", "two.yaml", "both", "--out", "two")
        assert (done.code, done.out.startswith("Gate gate is undecided: sums 100.0 against ")) == (4, True), (
            done.out + done.err
        )
        (tmp_path / "one.yaml").write_text("benchmarks: {sums: {baseline: both, loss: 15}}")
        one = harness(tmp_path, "gate", "one.yaml", "other")
        assert (one.code, "has 1 samples per question" in one.err) == (2, True), one.out + one.err
    assert not any((tmp_path / name).exists() for name in ("seen", "hist"))


@pytest.mark.parametrize(
    ("more", "run", "state"),
    [("probe: true\n", "", "probe"), ("probe: true\n", ", drop: stream", "probe"), ("", "", "canary")],
)
def test_a_server_that_a_probe_or_canary_flags_is_no_failure(tmp_path: Path, more: str, run: str, state: str) -> None:
    """Neither is sampled on, and each is named."""
    sums(tmp_path, 40)

    with FakeServer(serving(Said("no answer " * 9, 18))) as server:
        policy(tmp_path, server.base_url, benchmark="floor: 85, loss: 15, max_samples: 2", more=more)
        text = (tmp_path / "gate.yaml").read_text().replace("canary: false", f"canary: true{run}")
        (tmp_path / "gate.yaml").write_text(text)
        # The probe is made again; bad samples stay in their folder.
        for _ in range(2):
            done = harness(tmp_path, "gate", "gate.yaml", "--out", "run", "--json")
            assert (done.code, f'"state": "{state}"' in done.out) == (4, True), done.out + done.err
    assert (tmp_path / "run" / "sums").exists() == (state == "canary")


@pytest.mark.parametrize(
    ("shift", "asked", "state"),
    [
        (0.0, ", enough: true", "same"),
        (0.0, "", "pass"),
        (0.02, ", enough: true", "pass"),
        (0.02, ", loss: 0.1, enough: true", "same"),
    ],
)
def test_a_build_that_reads_like_its_base_skips_samples(tmp_path: Path, shift: float, asked: str, state: str) -> None:
    sums(tmp_path, 40)
    a_run(tmp_path, name="base")
    base, copy = Reader(), Reader("copy", shift=shift, rounding=0.01)
    with FakeServer(base) as server:
        assert (
            harness(tmp_path, "probe", server.base_url, "--replies", "base", "--reference", server.base_url).code == 0
        )

    def answer(request: Request) -> Iterable[Step]:
        return able(0.95)(request) if request.path.endswith("/chat/completions") else copy(request)

    with FakeServer(answer) as server:
        policy(tmp_path, server.base_url, more=f"likelihood: {{replies: base{asked}}}\n")
        done = harness(tmp_path, "gate", "gate.yaml", "--out", "run", "--json")
        chats = sum(request.path.endswith("/chat/completions") for request in server.requests)
    assert (done.code, f'"state": "{state}"' in done.out) == (0, True), done.out + done.err
    assert (chats == 0) == (state == "same")
    assert "nats per token" in (done.out if state == "same" else done.err), done.err


def test_a_failure_that_is_waived_passes_until_its_day(tmp_path: Path) -> None:
    sums(tmp_path, 40)
    with FakeServer(able(0.4)) as server:
        for day, code in (("2999-01-01", 0), ("2001-01-01", 1)):
            waiver = f"waivers: [{{benchmark: sums, reason: known, until: {day}}}]\n"
            policy(tmp_path, server.base_url, more=waiver)
            (tmp_path / "run" / "gate.json").unlink(missing_ok=True)
            assert harness(tmp_path, "gate", "gate.yaml", "--out", "run").code == code


def test_a_gate_that_is_only_foretold_takes_no_run_and_prints_no_decision(tmp_path: Path) -> None:
    policy(tmp_path, "http://127.0.0.1:9")
    for given in ("--json", "RUN"):
        done = harness(tmp_path, "gate", "gate.yaml", "--dry-run", given)
        assert (done.code, f"it does not work with {given}" in done.err) == (2, True), done.err
    policy(tmp_path, "http://127.0.0.1:9", more="likelihood: {replies: nowhere}\n")
    assert "there is no run at" in harness(tmp_path, "gate", "gate.yaml", "--dry-run").err


@pytest.mark.parametrize(
    ("benchmark", "more", "says"),
    [
        ("loss: 2", "", "either a floor or a baseline"),
        ("floor: 90, baseline: x, loss: 2", "", "either a floor or a baseline"),
        ("floor: 1.5, loss: 2", "", "exceeds the floor"),
        ("floor: 0.8, loss: 0.02", "", "a floor is given in points: write 80 for 80%"),
        ("floor: 190, loss: 2", "", "less than or equal to 100"),
        ("floor: 90, loss: 2, tier: urgent", "", "critical"),
        ("floor: 90, recovery: 95", "", "expected a percentage for `recovery`, such as `95%`"),
        ("floor: 90, loss: 2, recovery: 95%", "", "and no `loss`"),
        ("floor: 90, recovery: 0.5%, tier: urgent", "", "critical"),
        ("floor: 90, loss: 2, flor: 3", "", "unknown key"),
        ("floor: 90, loss: 2, power: 99", "", "unknown key 'benchmarks.sums.power'. It belongs at the top level."),
        ("floor: 90, loss: 2, temperature: 1", "", "It belongs at `run.temperature`."),
        ("floor: 90, loss: 2, within: 3", "", "It belongs at `benchmarks.NAME.metrics.within`."),
        ("floor: 90, loss: 2, metrics: {within: {model: x}}", "", "It belongs at `run.model`."),
        ("floor: 90, loss: 2, metrics: {within: 1}", "", "expected a mapping, such as `{floor: 95}`, found 1"),
        ("floor: 90, loss: 2, limits: {within: 95%}", "", "benchmarks.sums.limits: within is a metric: move it next"),
        ("floor: 90, loss: 2", "floor: 95\n", "It belongs at `benchmarks.NAME.floor`."),
        ("floor: 90, loss: 2, severity: 3", "", "unknown key 'benchmarks.sums.severity'. Known keys: base"),
        ("floor: 90, loss: 2}\n  24: {floor: 90, loss: 2", "", "benchmarks.24: expected a valid string"),
        (
            "floor: 90, loss: 2",
            "waivers: [{benchmark: other, reason: why, until: 2030-01-01}]\n",
            "not one of the benchmarks",
        ),
        ("floor: 90, loss: 2", "false_alarm: 0\n", "greater than"),
    ],
)
def test_a_bad_policy_is_one_sentence(tmp_path: Path, benchmark: str, more: str, says: str) -> None:
    policy(tmp_path, "http://127.0.0.1:9", benchmark=benchmark, more=more)
    done = harness(tmp_path, "gate", "gate.yaml")
    assert (done.code, says in done.err, "gate.yaml:" in done.err) == (2, True, True), done.err


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("temprature: 1", "unknown key 'run.temprature'. Did you mean temperature?"),
        ("temperature: -1", "run: temperature=-1: expected a num"),
        ("within: 95", "unknown key 'run.within'. It belongs at `benchmarks.NAME.metrics.within`."),
        ("metrics: {}", "unknown key 'run.metrics'. It belongs at `benchmarks.NAME.metrics`."),
    ],
)
def test_a_wrong_run_option_has_its_line_even_for_an_existing_run(tmp_path: Path, option: str, says: str) -> None:
    policy(tmp_path, f'http://127.0.0.1:9", {option}, model: "x')
    for words in ((), ("--dry-run",), ("somewhere",)):
        done = harness(tmp_path, "gate", "gate.yaml", *words)
        assert (done.code, f"gate.yaml:2: {says}" in done.err) == (2, True), done.err


def test_the_example_is_a_policy(tmp_path: Path) -> None:
    tmp_path.joinpath("gate.yaml").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    assert read(tmp_path / "gate.yaml").critical == 1


@pytest.mark.parametrize(("below", "sign"), [(True, 1), (False, -1)])
def test_a_level_rises_with_the_accuracy_and_with_the_deviation_of_runs(below: bool, sign: int) -> None:
    seen, share = np.linspace(0.6, 1.0, 41), np.asarray(0.7)
    few, many = (gate.level(seen, 0.9, 400.0, share, gate.Reference(0.9), sd, below=below) for sd in (0.0, 0.02))
    assert (sign * np.diff(few) >= 0).all()
    far = few < 0.4
    assert (many[far] >= few[far]).all()


def test_a_lasting_rise_becomes_the_accepted_state_and_a_fall_never_does() -> None:
    """Even if each night of the fall passed."""
    steady, sampling = 0.8 + 0.004 * np.random.default_rng(2).standard_normal(30), (0.003**2,) * 30
    rise = 0.05 * (np.arange(30) >= 20)
    risen, fallen = (learn(tuple(steady + sign * rise), sampling, Prior(0.004)) for sign in (1, -1))
    assert [number for number, odd in enumerate(risen.odd) if odd] == [20, 21, 22, 23, 24]
    assert (fallen.odd.index(True), sum(fallen.odd), fallen.level) == (20, 10, pytest.approx(0.8, abs=0.004))


def test_nights_contradict_a_deviation_that_is_too_small_at_any_level() -> None:
    noise = np.random.default_rng(2).standard_normal(30)
    fall = 0.05 * (np.arange(30) >= 20)
    steady, wide = (0.8 + sd * noise for sd in (0.004, 0.02))
    for nights in (steady, steady[:1], steady - fall / 5, steady - 0.0025 * np.arange(30)):
        assert contradicting_deviation([(each, 0.003**2) for each in nights], 0.004) is None
    for nights in (wide, wide - fall):
        assert contradicting_deviation([(each, 0.003**2) for each in nights], 0.004) == pytest.approx(0.02, rel=0.3)
    assert contradicting_deviation([(each, 0.003**2) for each in wide], 0.02) is None


@pytest.mark.parametrize("points", [0.3, 8.0])
def test_a_gate_says_that_runs_differ_by_more_than_its_policy_states(tmp_path: Path, points: float) -> None:
    cell = simulate_nights.Cell("c", deviation=points, loss=40)
    repository = simulate_nights.Repository.of(cell, np.random.default_rng(4), tmp_path)
    (check,) = [repository.night(number, 0.0) for number in range(12)][-1].checks
    assert (" points, which is more than run_deviation: 0.3" in check.why) == (points == 8.0)


def test_false_alarms_and_found_losses_keep_the_promise() -> None:
    rng = np.random.default_rng(3)
    chances, of = (
        np.full((4000, 60), 0.9),
        gate.rules(gate.look_sizes(60, 16), gate.Planned(0.01, 8.0, 0.8, 8.0), 0.01, 0.05),
    )
    rules = (of, gate.Reference(0.9), 0.08, 0.0)
    assert simulation.play(rng, chances, *rules).failed.mean() <= 0.015
    assert simulation.play(rng, chances - 0.08, *rules).failed.mean() >= 0.95


def test_nights_through_the_command_keep_the_promise() -> None:
    """A few nights of each situation; `make simulate WHAT=nights` plays sixty of sixty repositories."""
    cells = [each for each in simulate_nights.cells() if each.questions < 200]
    played = [simulate_nights.play(cell, (5, number), 3, ask=False) for number, cell in enumerate(cells)]
    assert np.mean([each.alarms for each in played]) < 0.04
    surely = [each for each, cell in zip(played, cells, strict=True) if cell.name[:4] in ("step", "runs", "bett")]
    assert all(np.mean([getattr(each, name) for each in surely]) > 0.7 for name in ("found", "passed"))
    # What a model leaves undecided never fails it.
    (undecided,) = (each for each, cell in zip(played, cells, strict=True) if cell.undecided == "right")
    assert (undecided.alarms, undecided.passes) == (0, 0)


AGO = [((-30,), 0), ((-900, -30), 1), ((90_000, -30), 1), ((90_000,), None), ((30,), 0)]


@pytest.mark.parametrize(("minutes", "goes_on"), AGO)
def test_an_unnamed_gate_resumes_unless_it_is_old_or_dated_in_the_future(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: tuple[int, ...], goes_on: int | None
) -> None:
    monkeypatch.chdir(tmp_path)
    policy, now = read(EXAMPLE), datetime(2026, 5, 1, 12, tzinfo=UTC)
    begun = [execution.new_folder(policy, now + timedelta(minutes=each)) for each in minutes]
    for folder in begun:
        folder.mkdir(parents=True)
    fresh = begun[0].with_name("2026-05-01T120000")
    assert execution.new_folder(policy, now) == (fresh if goes_on is None else begun[goes_on])
