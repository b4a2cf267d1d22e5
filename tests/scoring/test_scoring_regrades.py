"""A grade is kept while everything that it depends on stays as it was, and made anew at the next score otherwise. A
grading that is interrupted goes on: slow grades are kept as they are made, and the end is that of one call.

And the second column: what the accuracy would be if reasoning without a final answer were searched.

For: harness.scoring.journal_grades, harness.scoring.vote_groups, harness.benchmarks.catalog, harness.runs.grades.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
import signal
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from pathlib import Path
from threading import Timer

import msgspec
import pytest

import harness
from harness.benchmarks.catalog import DATA
from harness.core.errors import StoreError, UsageError
from harness.core.records import GradeRules, Question, Sample
from harness.grading.processes import pool
from harness.presets.grading import GradingOptions
from harness.reports.score_tables import accuracy_table
from harness.runs import Journal, Manifest, RunFolder, grades
from harness.runs.line_file import write_lines
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from reasoning_answers.verdict import Verdict
from tests.budget import examples
from tests.patience import PATIENCE_SECONDS, until
from tests.runs import recorded
from tests.system.command import start

NAME = "made up"


def graders(run: RunFolder) -> list[tuple[str, str]]:
    """(verdict, grader) of each stored grade."""
    return [(grade.verdict, grade.grader) for grade in grades.read(run.benchmark(NAME))]


@pytest.mark.slow
def test_a_changed_verifier_regrades_and_an_unchanged_one_does_not(tmp_path: Path, own_verifier: Path) -> None:
    run = run_with(
        tmp_path / "run",
        [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{8}", "")],
        rules=GradeRules(grader="own_verifier:judge"),
    )
    graded: list[int] = []
    own_verifier.write_text("def judge(answer, question):\n    return answer == '7'\n")
    (score,) = score_run(run, GradingOptions(workers=1), lambda _name, n: graded.append(n))
    first = graders(run)
    assert (score.accuracy.value, graded) == (0.5, [1, 2])
    assert [outcome for outcome, _ in first] == ["correct", "wrong"]
    assert all(grader.startswith("own_verifier:judge@") for _, grader in first)

    graded.clear()
    (score,) = score_run(run, GradingOptions(workers=1), lambda _name, n: graded.append(n))
    assert (score.accuracy.value, graded, graders(run)) == (0.5, [], first)
    assert "regraded" not in " ".join(score.sentences)

    own_verifier.write_text("def judge(answer, question):\n    return answer in ('7', '8')\n")
    (score,) = score_run(run, GradingOptions(workers=1), lambda _name, n: graded.append(n))
    assert (score.accuracy.value, graded) == (1.0, [1, 2])
    assert {grader for _, grader in graders(run)}.isdisjoint({grader for _, grader in first})
    (before, *_), (now, *_) = ([grader for _, grader in each] for each in (first, graders(run)))
    assert f"2 samples regraded because the grader changed from {before} to {now}" in score.sentences
    (score,) = score_run(run, GradingOptions(workers=1))
    assert "regraded" not in " ".join(score.sentences)


@pytest.mark.slow
@pytest.mark.parametrize(("returned", "failed"), [("{}[answer]", True), ("False", False), ("None", False)])
def test_a_verifier_that_raises_is_named(tmp_path: Path, own_verifier: Path, returned: str, failed: bool) -> None:
    own_verifier.write_text(f"def judge(answer, question):\n    return True if answer else {returned}\n")
    rules = GradeRules(grader="own_verifier:judge", whole_reply=True)
    run = run_with(tmp_path / "run", [sample(0, "seven", ""), sample(1, None, "thinking")], rules=rules)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert [outcome for outcome, _ in graders(run)] == ["correct", "no_answer"]
    sentence = "raised KeyError (own_verifier.py:2) on 1 sample: counted as wrong"
    assert (sentence in " ".join(score.verifier_errors)) == failed
    assert bool(score.verifier_errors) == failed


@pytest.mark.slow
def test_a_grading_timeout_is_retried_under_a_longer_deadline(tmp_path: Path, own_verifier: Path) -> None:
    go = tmp_path / "go"
    own_verifier.write_text(
        f"import os, time\ndef judge(answer, question):\n    while not os.path.exists({str(go)!r}):\n"
        "        time.sleep(0.01)\n    return True\n"
    )
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", "")], rules=GradeRules(grader="own_verifier:judge"))
    (first,) = score_run(run, GradingOptions(workers=1, deadline=0.2))
    assert (first.n_undecided, first.verifier_errors[0][:35]) == (1, "the verifier took longer than 0.2 s")
    (shorter,) = score_run(run, GradingOptions(workers=1, deadline=0.1))
    assert shorter.verifier_errors == first.verifier_errors, "the former grade is reused"
    go.touch()
    (longer,) = score_run(run, GradingOptions(workers=1, deadline=30))
    assert (longer.n_undecided, longer.accuracy.value, longer.verifier_errors) == (0, 1.0, ())


def test_a_verifier_that_broke_is_told_before_a_grade_is_lost(tmp_path: Path, own_verifier: Path) -> None:
    rules = GradeRules(grader="own_verifier:judge")
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", "")], rules=rules)
    own_verifier.write_text("def judge(answer, question):\n    return True\n")
    score_run(run, GradingOptions(workers=1))
    before = graders(run)
    own_verifier.write_text("import nothing_of_this_name\n")
    with pytest.raises(UsageError, match=r"ModuleNotFoundError: .*nothing_of_this_name.* \(own_verifier.py:1\)"):
        score_run(run, GradingOptions(workers=1))
    assert graders(run) == before


def test_another_version_of_the_grader_grades_again_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{8}", "")])
    score_run(run, GradingOptions(workers=1))
    current = graders(run)
    with monkeypatch.context() as older:
        older.setattr(pool, "GRADER", "rules/of another day")
        score_run(run, GradingOptions(workers=1))
        assert {grader for _, grader in graders(run)} == {"rules/of another day"}
    score_run(run, GradingOptions(workers=1))
    assert graders(run) == current


def test_only_a_replaced_reply_is_regraded(tmp_path: Path) -> None:
    """As after an older copy of `samples.jsonl` is put back."""
    first = [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{7}", "")]
    run = run_with(tmp_path / "run", first)
    (score,) = score_run(run, GradingOptions(workers=1))
    assert score.accuracy.value == 1.0
    place = run.benchmark(NAME)
    place.samples.unlink()
    with Journal.open(place) as journal:
        for one in (first[0], sample(1, r"\boxed{8}", "")):
            journal.append(one)
    graded: list[int] = []
    (score,) = score_run(run, GradingOptions(workers=1), lambda _name, n: graded.append(n))
    assert (score.accuracy.value, graded) == (0.5, [1])
    assert [outcome for outcome, _ in graders(run)] == ["correct", "wrong"]
    score_run(run, GradingOptions(workers=1), lambda _name, n: graded.append(n))
    assert graded == [1], "the new grade holds"


def test_a_grade_that_does_not_say_which_reply_it_read_is_made_anew(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", "")])
    score_run(run, GradingOptions(workers=1))
    place = run.benchmark(NAME)
    current = [*grades.read(place)]
    write_lines(place.grades, [msgspec.structs.replace(one, verdict="wrong", reply_checksum=None) for one in current])
    (score,) = score_run(run, GradingOptions(workers=1))
    assert score.accuracy.value == 1.0
    assert [*grades.read(place)] == current


def second_reader(data: bytes) -> dict[int, str]:
    """Sample index → verdict in each line that has its checksum, the CRC-32 of what stands before it."""
    verdicts = {}
    for line in data.removeprefix(b"\xef\xbb\xbf").splitlines():
        body, mark, checksum = line.rpartition(b',"crc":')
        if mark and checksum == b'"%08x"}' % zlib.crc32(body):
            record = json.loads(line)
            verdicts[record["sample_index"]] = record["verdict"]
    return verdicts


def altered(data: bytes, chance: random.Random) -> bytes:
    """A file of grades after something that an editor, a script or a disk does to it."""
    lines = data.splitlines(keepends=True)
    number, other = chance.sample(range(len(lines)), 2)
    line, at = lines[number], chance.randrange(len(lines[number]) - 1)
    flipped = {b'"wrong"': b'"correct"', b'"correct"': b'"wrong"', b'"vote":"8"': b'"vote":"7"'}
    old = chance.choice([text for text in flipped if text in line])
    edited = line.replace(old, flipped[old])
    bit = bytes([line[at] ^ 1 << chance.randrange(7)])
    if chance.random() < 0.2:  # a program that writes all lines in its own way, or an editor that drops some checksums
        lines[number] = edited
        rewritten = [json.dumps(json.loads(line)).encode() + b"\n" for line in lines]
        some = [re.sub(rb',"crc":"\w+"', b"", line) if n < 3 else line for n, line in enumerate(lines)]
        return b"".join(chance.choice([rewritten, some]))
    lines[number] = chance.choice(
        [
            edited,
            re.sub(rb',"crc":"\w+"', b"", edited),
            line.replace(b'"sample_index":', b'"sample_index":1'),
            b"",
            line * 2,
            lines[other],
            line[:at],
            line[:at] + b"\n",
            line[:at] + bit + line[at + 1 :],
            b"\0" * at + b"\n",
            b"\n" + line,
            b"\xef\xbb\xbf" + line,
            line.replace(b"\n", b"\r\n"),
        ]
    )
    return b"".join(lines)


@pytest.mark.fuzz
def test_no_altered_grade_is_believed_and_all_are_made_anew(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", [sample(index, rf"\boxed{{{7 + index % 2}}}", "") for index in range(6)])
    score_run(run, GradingOptions(workers=1))
    file = run.benchmark(NAME).grades
    data = file.read_bytes()
    right = second_reader(data)
    assert right == {index: ("correct", "wrong")[index % 2] for index in range(6)}
    for _ in range(examples(200)):
        chance = random.Random(seed := random.getrandbits(32))
        file.write_bytes(mutant := altered(data, chance))
        intact = second_reader(mutant)
        assert intact.items() <= right.items(), seed
        lines = [line for line in mutant.removeprefix(b"\xef\xbb\xbf").splitlines() if line]
        n_damaged = sum(line not in data.splitlines() for line in lines)
        with pytest.raises(StoreError, match=r"grades\.jsonl, line ") if n_damaged else nullcontext():
            assert {grade.sample_index: grade.verdict for grade in grades.read(run.benchmark(NAME))} == intact, seed
        (score,) = score_run(run, GradingOptions(workers=1))
        assert (score.accuracy.value, file.read_bytes()) == (0.5, data), seed
        assert told(score, "damaged or altered") == (n_damaged > 0), seed
        assert told(score, "missing from grades.jsonl") == (len(lines) < 6), seed


def test_grades_of_a_version_without_checksums_hold(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{8}", "")])
    score_run(run, GradingOptions(workers=1))
    file, graded = run.benchmark(NAME).grades, []
    file.write_bytes(re.sub(rb',"crc":"\w+"', b"", data := file.read_bytes()))
    assert [verdict for verdict, _ in graders(run)] == ["correct", "wrong"]
    score_run(run, GradingOptions(workers=1), lambda _name, n: graded.append(n))
    assert (graded, file.read_bytes()) == ([], data)


CARD = """
title: Made up
source: {kind: file, path: none.jsonl}
columns: {question: question, answer: answer}
"""


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's cards that holds none yet."""
    folder = tmp_path / "cards"
    folder.mkdir()
    monkeypatch.setenv("HARNESS_DATASETS", str(folder))
    return folder


def told(score: Score, words: str) -> bool:
    return any(words in warning for warning in score.sentences)


def test_a_changed_rule_grades_again_at_the_next_score(tmp_path: Path, cards: Path) -> None:
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{8}", "")])
    (before,) = score_run(run, GradingOptions(workers=1))
    first = grades.read(run.benchmark("made up"))
    assert (before.accuracy.value, told(before, "the card")) == (0.5, False)
    card = cards / "made up.yaml"
    for rules, accuracy, changed in (
        ("rules: {absolute_tolerance: 1.0}", 1.0, True),
        ("rules: {absolute_tolerance: 0.5}", 0.5, True),
        ("", 0.5, False),
    ):
        card.write_text(CARD + rules)
        (score,) = score_run(run, GradingOptions(workers=1))
        assert (score.accuracy.value, told(score, "the card's current rules")) == (accuracy, changed)
    assert grades.read(run.benchmark("made up")) == first


def test_a_card_that_is_broken_changes_nothing_and_is_told(tmp_path: Path, cards: Path) -> None:
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{8}", "")])
    (cards / "made up.yaml").write_text(CARD + "rules: {absolute_tolerance: -1}\n")
    (score,) = score_run(run, GradingOptions(workers=1))
    assert score.accuracy.value == 0.5
    assert told(score, "graded by the rules that applied when the run started")


@pytest.mark.parametrize(("settings", "accuracy"), [({}, 1.0), ({DATA: "/data/made up.jsonl"}, 0.5)])
def test_own_data_that_are_named_as_a_card_keep_the_rules_of_their_run(
    settings: dict[str, str], accuracy: float, tmp_path: Path, cards: Path
) -> None:
    run = run_with(tmp_path / "run", [sample(0, r"\boxed{7}", ""), sample(1, r"\boxed{8}", "")])
    manifest = Manifest.load(run)
    record = manifest.benchmarks["made up"]
    benchmarks = {"made up": msgspec.structs.replace(record, settings={**record.settings, **settings})}
    msgspec.structs.replace(manifest, benchmarks=benchmarks).save(run)
    (cards / "made up.yaml").write_text(CARD + "rules: {absolute_tolerance: 1.0}")
    (score,) = score_run(run, GradingOptions(workers=1))
    assert (score.accuracy.value, told(score, "the card's current rules")) == (accuracy, not settings)


def sample(index: int, text: str | None, reasoning: str) -> Sample:
    """A sample of the only question; without a final text the budget ended it."""
    ended = "length" if text is None else "stop"
    return recorded.sample("q", index, text, benchmark="made up", reasoning=reasoning, finish_reason=ended)


def run_with(folder: Path, samples: list[Sample], rules: GradeRules | None = None) -> RunFolder:
    """A run that holds these samples of one question, whose answer is 7."""
    of_run = Question(
        benchmark="made up",
        question_id="q",
        references=("7",),
        kind="integer",
        row_digest="",
        prompt_digest="",
        rules=rules or GradeRules(),
    )
    return recorded.write_run(folder, [of_run], samples, planned=len(samples), identity={"model": "m"})


def test_only_samples_without_an_answer_are_searched_and_their_grades_stay(tmp_path: Path) -> None:
    run = run_with(
        tmp_path / "run",
        [
            sample(0, r"\boxed{7}", "thinking"),
            sample(1, r"\boxed{8}", r"it is \boxed{7}"),  # an answer was given: the reasoning is no matter
            sample(2, None, r"so it must be \boxed{7}"),
            sample(3, None, "no idea yet"),
        ],
    )
    (plain,) = score_run(run, GradingOptions(workers=1))
    assert (plain.accuracy.value, plain.accuracy_from_reasoning) == (0.25, None)
    (score,) = score_run(run, GradingOptions(workers=1, answer_from_reasoning=True))
    assert (score.accuracy.value, score.accuracy_from_reasoning.value) == (0.25, 0.5)
    shown = accuracy_table([("run", score)])
    assert any("with answers from the reasoning: 50.0%" in note for note in shown.notes)
    stored = [json.loads(line) for line in run.benchmark("made up").grades.read_bytes().splitlines()]
    assert [grade["verdict"] for grade in stored] == ["correct", "wrong", "no_answer", "no_answer"]


INTERRUPTED = "made up"
SLOW = "import time\ndef judge(answer, question):\n    time.sleep(0.03)\n    return answer.endswith('7')\n"


@pytest.fixture
def slow_verifier(own_verifier: Path) -> Path:
    """The file of a slow verifier of one's own."""
    own_verifier.write_text(SLOW)
    return own_verifier


def run_of(folder: Path, n: int) -> RunFolder:
    """A run of n samples with different answers, graded by the verifier."""
    samples = [sample(index, rf"\boxed{{{index}}}", "") for index in range(n)]
    return run_with(folder, samples, rules=GradeRules(grader="own_verifier:judge"))


def partial(run: RunFolder) -> Path:
    return run.benchmark(INTERRUPTED).partial_grades


@pytest.mark.parametrize("where", [(grades, "read_stored"), (Score, "save")])
def test_of_two_scorings_at_once_none_misses_a_grade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: tuple[object, str]
) -> None:
    """The second begins when the first has read the former grades, or written its own; there it waits for the first."""
    run, call = recorded.write(tmp_path, [recorded.sampled(0, 0)], planned=2, n_questions=1), getattr(*where)
    score_run(run, GradingOptions())
    second: list[Future[list[Score]]] = []

    def overtaken(*args: object) -> object:
        monkeypatch.setattr(*where, call)
        result = [*call(*args)] if where[0] is grades else None
        recorded.append(run, recorded.NAME, [recorded.sampled(0, 1)])
        second.append(begin.submit(score_run, run, GradingOptions()))
        wait(second, timeout=PATIENCE_SECONDS if where[0] is grades else 0.5)
        return call(*args) if result is None else result

    monkeypatch.setattr(*where, overtaken)
    with ThreadPoolExecutor(1) as begin:
        (score,) = score_run(run, GradingOptions())
    stored, folder = Score.load(run.benchmark(recorded.NAME)), run.benchmark(recorded.NAME)
    assert stored is not None
    assert (stored.n_samples, len(grades.read(folder))) == (2, 2)
    assert [warning.text for warning in score.warnings if "gone" in warning.text] == []


def stop_at(n: int) -> Callable[[str, int], None]:
    """A callback that interrupts a grading, as Ctrl-C does, once n samples are graded."""

    def on_graded(_name: str, graded: int) -> None:
        if graded == n:
            raise KeyboardInterrupt

    return on_graded


def interrupted(run: RunFolder, n: int, options: GradingOptions) -> list[str]:
    """What a grading says that is interrupted after n samples."""
    with pytest.raises(KeyboardInterrupt) as stopped:
        score_run(run, options, stop_at(n))
    return stopped.value.__notes__


def graded_by(run: RunFolder, options: GradingOptions) -> int:
    """How many samples a grading grades that runs to its end."""
    n = [0]
    score_run(run, options, lambda _name, graded: n.append(graded))
    return n[-1]


@pytest.fixture
def whole(tmp_path: Path, slow_verifier: Path) -> bytes:
    """The grades of 40 samples, made without an interruption."""
    run = run_of(tmp_path / "whole", 40)
    score_run(run, GradingOptions(workers=2))
    return run.benchmark(INTERRUPTED).grades.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("n_torn", [0, 1])
def test_the_same_call_goes_on_where_it_was_interrupted(tmp_path: Path, whole: bytes, n_torn: int) -> None:
    run = run_of(tmp_path / "run", 40)
    (note,) = interrupted(run, 25, GradingOptions(workers=1))
    stored = partial(run).read_bytes()
    n_stored = len(stored.splitlines())
    assert n_stored >= 25
    assert note == f"made up: {n_stored} grades are stored; the same command continues"
    partial(run).write_bytes(stored[: len(stored) - 20 * n_torn])  # a torn last line costs its own grade only
    assert graded_by(run, GradingOptions(workers=1)) == 40 - n_stored + n_torn
    assert run.benchmark(INTERRUPTED).grades.read_bytes() == whole
    assert not partial(run).exists()


@pytest.mark.slow
def test_a_kept_grade_holds_only_while_its_verifier_does(tmp_path: Path, slow_verifier: Path) -> None:
    run = run_of(tmp_path / "run", 40)
    interrupted(run, 25, GradingOptions(workers=1))
    slow_verifier.write_text(SLOW.replace("'7'", "'8'"))
    assert graded_by(run, GradingOptions(workers=1)) == 40
    right = {grade.sample_index for grade in grades.read(run.benchmark(INTERRUPTED)) if grade.verdict == "correct"}
    assert right == {8, 18, 28, 38}


@pytest.mark.slow
def test_a_full_regrading_resumes_without_the_option_and_uses_nothing_old(tmp_path: Path, slow_verifier: Path) -> None:
    run = run_of(tmp_path / "run", 40)
    score_run(run, GradingOptions(workers=1))
    place = run.benchmark(INTERRUPTED)
    before = place.grades.read_bytes()
    # What the verifier reads has changed, and its file has not: only a person can know that.
    write_lines(
        place.grades,
        [msgspec.structs.replace(one, verdict="undecided") for one in grades.read(run.benchmark(INTERRUPTED))],
    )
    stored = place.grades.read_bytes()
    (note,) = interrupted(run, 25, GradingOptions(workers=1, fresh=True))
    n_stored = len(place.fresh_grades.read_bytes().splitlines())
    assert n_stored >= 25
    assert note == f"made up: {n_stored} grades are stored; the same command without `fresh` continues"
    (note,) = interrupted(run, 5, GradingOptions(workers=1))
    assert len(place.fresh_grades.read_bytes().splitlines()) >= n_stored + 5
    assert place.grades.read_bytes() == stored, "replaced only at the end"
    assert graded_by(run, GradingOptions(workers=1)) <= 40 - n_stored - 5
    assert place.grades.read_bytes() == before
    assert not place.fresh_grades.exists()


@pytest.mark.slow
def test_a_second_grading_of_all_samples_anew_reuses_nothing_of_the_first(tmp_path: Path, slow_verifier: Path) -> None:
    run = run_of(tmp_path / "run", 40)
    interrupted(run, 25, GradingOptions(workers=1, fresh=True))
    assert graded_by(run, GradingOptions(workers=1, fresh=True)) == 40
    assert not run.benchmark(INTERRUPTED).fresh_grades.exists()


def test_fast_grades_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grading them anew takes less time than keeping them; a bound of 5 stands for the thousands that a second has."""
    monkeypatch.setattr(pool, "MAX_KEPT", 5)
    run = run_with(tmp_path / "run", [sample(index, rf"\boxed{{{index}}}", "") for index in range(40)])
    (note,) = interrupted(run, 25, GradingOptions(workers=1))
    assert note == "made up: 0 grades are stored; the same command continues"
    assert not partial(run).exists()


@pytest.mark.slow
def test_grades_behind_a_slow_one_are_kept_too(tmp_path: Path, slow_verifier: Path) -> None:
    slow_verifier.write_text(
        "import time\ndef judge(answer, question):\n    time.sleep(600 if answer == '0' else 0.03)\n"
    )
    run = run_of(tmp_path / "run", 2 * 64)  # a batch for each worker
    process = start(tmp_path, ["score", str(run.path), "--workers", "2", "--deadline", "900"])
    until(lambda: partial(run).exists() and b"\n" in partial(run).read_bytes(), "grades behind the slow one")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    kept = [grade.sample_index for grade in grades.read_file(partial(run))]
    n_kept = "1 grade is" if len(kept) == 1 else f"{len(kept)} grades are"
    assert f"made up: {n_kept} stored; the same command continues" in err, err
    assert kept
    assert 0 not in kept


class _Sandbox:
    """Stands for an extension that decides in other processes: the verdict on sample 0 comes last, after 3 s."""

    name = "sandbox/1"

    def __init__(self) -> None:
        self._right = dataclasses.replace(harness.grade("7", r"\boxed{7}"), grader=self.name)

    def ask(self, _question: Question, sample: Sample) -> Future[Verdict]:
        future: Future[Verdict] = Future()
        Timer(3.0 if sample.sample_index == 0 else 0.0, future.set_result, [self._right]).start()
        return future

    def close(self) -> None:
        pass


@pytest.mark.slow
def test_verdicts_of_an_extension_are_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "is_elsewhere", lambda grader: grader == "sandbox")
    monkeypatch.setattr(pool, "require_package", lambda _: None)
    monkeypatch.setattr(pool, "Decider", lambda *_: _Sandbox())
    samples = [sample(index, rf"\boxed{{{index}}}", "") for index in range(5)]
    run = run_with(tmp_path / "run", samples, rules=GradeRules(grader="sandbox"))
    kept_before: list[int] = []

    def on_graded(_name: str, _n: int) -> None:
        kept_before.extend(grade.sample_index for grade in grades.read_file(partial(run)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_run(run, GradingOptions(workers=1), on_graded)
    assert kept_before == [1, 2, 3, 4]
    assert graded_by(run, GradingOptions(workers=1)) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "majority"), [((r"8\text{ km}", r"8000\text{ m}"), 0.0), ((r"8\text{ km}", r"8\text{ m}"), 1.0)]
)
def test_equal_wrong_answers_vote_together(tmp_path: Path, wrong: tuple[str, str], majority: float) -> None:
    answers = ["7", wrong[0], "7", wrong[1], "7", *wrong]
    run = run_with(tmp_path / "run", [sample(n, rf"\boxed{{{answer}}}", "") for n, answer in enumerate(answers)])
    scores = [score_run(run, GradingOptions(workers=1, fresh=fresh))[0] for fresh in (False, False, True)]
    assert [score.maj_at[7].value for score in scores] == [majority] * 3
    votes = [grade.vote for grade in grades.read(run.benchmark(NAME))]
    assert votes[3] == (wrong[1] if majority else wrong[0])
