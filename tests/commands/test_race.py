"""`harness race` against servers of known ability: the better one is found with few samples, equal ones are not told
apart, and what was sampled is a run like any other.

For: harness.cli.race.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.cli import race as race_command
from harness.commands import run
from harness.deciding.race import RaceStanding
from harness.gates.race import candidates, race
from harness.grading.verdict import JUDGE_RULE
from harness.options.deciding import RaceRules
from harness.progress.watching import Collecting
from harness.runs import RunFolder, grades
from harness.scoring.stats import Interval
from harness.testing import FakeServer, Request, Said, Step, completion, serving
from tests.faults.able import able, sums
from tests.system.command import harness


@pytest.fixture(autouse=True)
def questions(tmp_path: Path) -> Path:
    return sums(tmp_path, 12)


def words(*urls: str) -> list[str]:
    given = ["race", "--data", "sums.jsonl", "--id-key", "id", "--no-canary", "--out", "out"]
    for name, url in zip(("base", "tuned", "third"), urls, strict=False):
        given += ["--candidate", f"{name} base_url={url}"]
    return given


@pytest.mark.parametrize(
    ("common", "folder"),
    [
        ({"data": "some/mine.jsonl"}, "races/mine"),
        ({"data": "mine2.v1.csv"}, "races/mine2"),
        ({"benchmarks": "aime24:64"}, "races/aime24"),
        ({"benchmarks": ["aime24"]}, "races/aime24"),
        ({"benchmarks": "aime24", "data": "theirs.jsonl"}, "races/aime24"),
        ({"data": "mine.jsonl", "out": "elsewhere"}, "elsewhere"),
    ],
)
def test_the_folder_of_a_race_has_the_benchmarks_name_by_default(common: dict[str, Any], folder: str) -> None:
    entrants = candidates([("base", {}), ("tuned", {"temperature": 0.5})], {"base_url": "http://a:1", **common})
    assert [options.out for options in entrants.values()] == [Path(folder, "base"), Path(folder, "tuned")]


def test_the_better_model_is_found_with_few_samples_and_the_runs_remain(tmp_path: Path) -> None:
    with FakeServer(able(0.3)) as weak, FakeServer(able(0.9, shift=1)) as strong:
        given = [*words(weak.base_url, strong.base_url), "--samples", "64"]
        done = harness(tmp_path, *given)
        assert done.code == 0, done.err
        assert "tuned against base: +" in done.out
        assert done.out.splitlines()[0].endswith(": better")
        n_asked = len(strong.requests)
        assert n_asked < 12 * 30
        told = json.loads(harness(tmp_path, *given, "--json").out)
        assert not [r for r in strong.requests[n_asked:] if r.method == "POST"]
    assert (told["exit_code"], told["baseline"], told["standings"]["tuned"]["verdict"]) == (0, "base", "better")
    assert json.loads(harness(tmp_path, "score", "out/tuned", "--json").out)[0]["n_missing"] == 0


def test_each_start_of_a_race_takes_one_fingerprint_of_each_candidate(tmp_path: Path) -> None:
    """However many looks it has; the next start takes another, since the server may be another by then."""

    def reply(request: Request) -> Iterable[Step]:
        greedy = request.method == "POST" and request.json["temperature"] == 0
        return iter(completion("a beginning", tokens=16)) if greedy else able(0.6)(request)

    with FakeServer(reply) as one, FakeServer(reply) as two:

        def n_greedy() -> list[int]:
            posts = [[request for request in server.requests if request.method == "POST"] for server in (one, two)]
            return [sum(request.json["temperature"] == 0 for request in each) for each in posts]

        given = [*words(one.base_url, two.base_url), "--fingerprint", "--samples", "6", "--step"]
        first = harness(tmp_path, *given, "2", "--max-tokens", "64")
        assert n_greedy() == [8, 8], first.err
    for path in tmp_path.glob("out/*/manifest.json"):
        assert json.loads(path.read_text())["benchmarks"]["sums"]["settings"]["fingerprint"] is True


def test_the_looks_of_a_race_are_fixed_at_its_start(tmp_path: Path) -> None:
    """Equal models stay undecided."""
    with FakeServer(able(0.5)) as one, FakeServer(able(0.5, shift=1)) as second:
        given = [*words(one.base_url, second.base_url), "--step", "2", "--samples"]
        done = harness(tmp_path, *given, "4")
        assert (done.code, "after 4 rounds" in done.out, done.out.splitlines()[0][-11:]) == (1, True, ": undecided")
        raised = harness(tmp_path, *given, "6")
        said = "this race started with samples 4, which cannot be changed later"
        assert (raised.code, said in raised.err) == (2, True)
        plan = next(tmp_path.rglob("race.json"))
        plan.write_text("{")
        assert harness(tmp_path, *given, "4").code == 3
        plan.unlink()
        lost = harness(tmp_path, *given, "4")
        assert (lost.code, "contains samples of a race but no race.json" in lost.err) == (2, True)


def murky(request: Request) -> Said:
    """A model that is always wrong, or so unclear that no rule can tell."""
    rng = random.Random(request.json["seed"])
    answer = "999" if rng.random() < 0.5 else r"\text{it is what comes after that number}"
    return Said(rf"Case {rng.random()}: so \boxed{{{answer}}}", 50)


@pytest.mark.parametrize("unclear", [True, False])
def test_undecided_answers_that_may_exceed_the_margin_withhold_equal(unclear: bool, tmp_path: Path) -> None:
    with FakeServer(able(0)) as one, FakeServer(serving(murky) if unclear else able(0, shift=1)) as second:
        given = [*words(one.base_url, second.base_url), "--samples", "40", "--margin", "25", "--step", "8"]
        done = harness(tmp_path, *given)
        again = harness(tmp_path, *given, "--json")
    first = done.out.splitlines()[0]
    for told in (done, again):
        said = "tuned against base: undecided answers count as wrong" in " ".join(told.err.split())
        assert (told.code, said) == (int(unclear), unclear)
    assert ("undecided (undecided answers could move the difference to anywhere from +0.0 to +" in first) == unclear
    assert first.endswith("equal within the margin") != unclear


def test_a_race_whose_runs_a_judge_has_graded_keeps_its_verdicts(tmp_path: Path) -> None:
    with FakeServer(able(0.3)) as weak, FakeServer(able(0.9, shift=1)) as strong:
        given = [*words(weak.base_url, strong.base_url), "--samples", "64"]
        done = harness(tmp_path, *given)
        files = RunFolder(tmp_path / "out" / "tuned").benchmark("sums")
        first, *others = grades.read(files)
        grades.write(files, [msgspec.structs.replace(first, rule=JUDGE_RULE), *others])
        files.scores.unlink()
        again = harness(tmp_path, *given)
    assert (again.code, again.out) == (done.code, done.out)
    assert "tuned against base: comparison warnings are unavailable: " in " ".join(again.err.split())
    assert "are unavailable" not in done.err


def test_a_decided_candidate_samples_no_more(questions: Path, tmp_path: Path) -> None:
    models = {"base": able(0.5), "hopeless": able(0.02, shift=1), "like": able(0.5, shift=2)}
    common = {"data": questions, "id_key": "id", "samples": 16, "canary": False, "out": tmp_path / "race"}
    with contextlib.ExitStack() as served:
        urls = {name: served.enter_context(FakeServer(model)).base_url for name, model in models.items()}
        raced = race(candidates([(name, {"base_url": url}) for name, url in urls.items()], common))
    assert raced.standings["hopeless"].verdict == "worse"
    assert raced.n_rounds["hopeless"] < raced.n_rounds["like"] == raced.n_rounds["base"] == 16


@pytest.mark.parametrize(
    ("names", "more", "words_of_refusal"),
    [
        (["a temperature", "b"], [], "--candidate 'a temperature': expected KEY=VALUE"),
        (["", "b"], [], "the name is missing"),
        (["a", "b budget_tokens=2000"], [], "all candidates together"),
        (["a", "b prices=1,2"], ["--budget-usd", "1"], "has no prices"),
    ],
)
def test_a_race_that_cannot_be_is_refused(
    tmp_path: Path, names: list[str], more: list[str], words_of_refusal: str
) -> None:
    given = ["--data", "sums.jsonl", "--base-url", "http://127.0.0.1:1", "--samples", "4", "--out", "out", *more]
    done = harness(tmp_path, "race", *given, *(word for name in names for word in ("--candidate", name)))
    assert (done.code, words_of_refusal in done.err) == (2, True), done.err


def test_a_look_prints_each_candidate_and_counts_one_round_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = RaceStanding(
        1, -0.3, Interval(-0.9, -0.1), "undecided", 1, "worse after 1 round, to be confirmed by round 2"
    )
    decided = msgspec.structs.replace(waiting, rounds=2, verdict="worse", withheld="")
    unlooked = msgspec.structs.replace(waiting, rounds=0)
    for state in (unlooked, waiting, decided):
        race_command._print_look({"int4": state})
    assert capsys.readouterr().err.splitlines() == [
        "  int4: -30.0 points after 1 round, between -90.0 and -10.0: undecided (worse after 1 round, to be confirmed "
        "by round 2)",
        "  int4: -30.0 points after 2 rounds, between -90.0 and -10.0: worse",
    ]


def billed(server: FakeServer) -> int:
    """New tokens of all replies of a server: each has 50."""
    return 50 * sum(request.method == "POST" for request in server.requests)


@pytest.mark.parametrize(
    ("budget", "used"),
    [
        (["--budget-tokens", "2000"], "1800 of 2000 tokens"),
        (["--budget-usd", "0.002", "--prices", "0,1"], "0.0018 of 0.002 USD"),
    ],
)
def test_a_budget_is_for_all_candidates_and_looks_of_one_command_and_the_next_has_a_new_one(
    budget: list[str], used: str, tmp_path: Path
) -> None:
    """Each round of a candidate takes 600 tokens; 2,000 are enough for three, and the fourth is not begun."""
    with FakeServer(able(0.5)) as one, FakeServer(able(0.5, shift=1)) as two:
        given = [*words(one.base_url, two.base_url), "--samples", "9", "--step", "1", "--max-tokens", "50"]
        done = harness(tmp_path, *given, *budget)
        assert (done.code, billed(one) + billed(two)) == (4, 1800), done.err
        assert f"stopped by the budget: {used} used" in done.err
        assert "harness race " in done.err.rpartition("Resume with: ")[2]
        again = harness(tmp_path, *given, *budget)
        assert (again.code, billed(one) + billed(two)) == (4, 3600), again.err


def test_each_look_of_a_race_warns_of_what_no_look_before_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warnings that differ by a number only are the same; candidates that do so are not."""
    looks = itertools.count()
    sample_to = run.sample_to

    def warning(*args: Any, **keywords: Any) -> Any:
        look = next(looks) // 2
        return replace(sample_to(*args, **keywords), warnings=[f"{look} of 9", *["only the second"] * (look == 1)])

    monkeypatch.setattr(run, "sample_to", warning)
    watcher = Collecting()
    with FakeServer(able(0.5)) as server:
        common = {"data": str(tmp_path / "sums.jsonl"), "base_url": server.base_url, "samples": 3, "canary": False}
        entrants = candidates([("s1", {}), ("s2", {})], {**common, "out": tmp_path / "out"})
        race(entrants, RaceRules(step=1), watcher)
    given = [line for line in watcher.warnings if line.startswith(("s1: ", "s2: "))]
    assert (next(looks), given) == (6, ["s1: 0 of 9", "s2: 0 of 9", "s1: only the second", "s2: only the second"])


def interrupting(answer: Callable[[Request], Iterator[Step]], n: int) -> Callable[[Request], Iterator[Step]]:
    """The model, whose user presses Ctrl-C while reply `n` is awaited. The reply comes all the same."""
    numbers = itertools.count(1)

    def reply(request: Request) -> Iterable[Step]:
        if request.method == "POST" and next(numbers) == n:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        return answer(request)

    return reply


@pytest.mark.parametrize(
    ("words", "n", "code"),
    [
        ("run --samples 1", 12, 0),  # nothing is left to do
        # The first stage has 8 rounds of 12 requests, which are too few for one point.
        ("run --samples 64 --target-error 1", 96, 130),
        ("race --samples 8 --step 1 --candidate one --candidate two --concurrency 2 --prices 0,1", 12, 130),
        ("sweep own.yaml", 12, 130),
    ],
)
def test_a_ctrl_c_ends_a_command_although_the_replies_in_flight_complete_a_part(
    tmp_path: Path, words: str, n: int, code: int
) -> None:
    """A part: a round of a race, a stage towards a target, a cell of a sweep."""
    (tmp_path / "own.yaml").write_text(
        "run: {model: test-model, canary: false, samples: 1}\nbenchmarks: [{data: sums.jsonl, id_key: id}]\n"
        "sampling: [{name: cold, temperature: 0.2}, {name: hot, temperature: 0.8}]\n"
    )
    with FakeServer(interrupting(able(0.5), n)) as server:
        asked = "" if words.startswith("sweep") else "--data sums.jsonl --id-key id --no-canary"
        done = harness(tmp_path, *f"{words} {asked} --out out --base-url {server.base_url}".split())
        assert (done.code, billed(server)) == (code, 50 * n), done.err
        if asked and code:
            assert f"stopped by SIGINT: {n} samples are stored in " in done.err
            assert "Resume with: harness " in done.err
            assert ("This session: 0.00060 USD" in done.err) == ("--prices" in words)
        if not asked:
            again = harness(tmp_path, "sweep", "own.yaml", "--out", "out", "--base-url", server.base_url)
            assert (again.code, billed(server)) == (0, 1200), again.err
