"""What `harness export` writes: which samples, in which form, and what it refuses.

For: harness.exports, harness.extensions.exporters, harness.commands.export.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import yaml
from click.testing import CliRunner

import harness
from harness.cli.flags import command_of
from harness.core.errors import StoreError, UsageError
from harness.core.records import Key, Sample
from harness.exports import export, formats
from harness.foreign import outputs
from harness.runs import BenchmarkFolder, Manifest, RunFolder, grades, overrides, read_samples
from tests.budget import examples, rounds
from tests.exports.graded_runs import complete, sample, varied, write_run
from tests.faults.snapshots import every_state, put, state_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return write_run(tmp_path_factory.mktemp("runs") / "run", varied())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def rows(run: RunFolder, to: str, out: Path, **options: Any) -> list[dict[str, Any]]:
    return lines(harness.export(run, to, out=out, **options).files[0].path)


def test_thinking_goes_along_or_not(run: RunFolder, tmp_path: Path) -> None:
    whole = [row["output"] for row in rows(run, "alpaca", tmp_path / "a")]
    final = [row["output"] for row in rows(run, "alpaca", tmp_path / "b", reasoning=False)]
    assert "<think>\nOne and one.\n</think>\n\n\\boxed{2}" in whole
    assert "<think>hm</think>\n\\boxed{2}" in whole
    assert final.count(r"\boxed{2}") == 2
    assert not any("think" in text for text in final)


def test_llmevals_file_comes_back_with_its_keys_texts_and_verdicts(run: RunFolder, tmp_path: Path) -> None:
    path = harness.export(run, "llmeval", out=tmp_path).files[0].path
    stored = {sample.key: sample for sample in read_samples(run.benchmark("own"))}
    pairs = list(outputs.read(path))
    assert len(pairs) == len(stored) == 10
    back = sorted(
        (row_question.question_id, sample.text or "", sample.reasoning or "", sample.finish_reason)
        for row_question, sample in pairs
    )
    there = sorted((k.question_id, s.text or "", s.reasoning or "", s.finish_reason) for k, s in stored.items())
    assert back == there
    verdicts = sorted(grade.verdict for grade in grades.read(run.benchmark("own")))
    score = harness.score(path, workers=1)["own"]
    assert score.n_correct == verdicts.count("correct")
    assert score.n_no_answer == verdicts.count("no_answer")


def test_the_report_of_an_exported_file_names_the_runs_model(run: RunFolder, tmp_path: Path) -> None:
    path = harness.export(run, "llmeval", out=tmp_path).files[0].path
    harness.score(path, workers=1)
    assert [each.manifest.model for each in harness.report(path).runs] == [Manifest.load(run).model]
    harness.score(path, workers=1, written_by="org/other")
    assert [each.manifest.model for each in harness.report(path).runs] == ["org/other"]
    # Wrong twins: two models in one file, and a row that names none.
    first, *rows = map(json.loads, path.read_text("utf-8").splitlines())
    for model in ("org/other", None):
        path.write_text("".join(json.dumps(row) + "\n" for row in ({**first, "model": model}, *rows)))
        harness.score(path, workers=1)
        assert [each.manifest.model for each in harness.report(path).runs] == ["unknown"]


def test_parquet_holds_every_field_and_says_what_each_is(run: RunFolder, tmp_path: Path) -> None:
    written = harness.export(run, "parquet", out=tmp_path)
    table = pyarrow.parquet.read_table(written.files[0].path)
    assert written.files[0].n == table.num_rows == 10
    by_key = {(row["question_id"], row["sample_index"]): row for row in table.to_pylist()}
    assert by_key["q1", 2]["text"] is None
    assert by_key["q1", 2]["verdict"] == "no_answer"
    assert by_key["q0", 3]["correct"] is False
    assert by_key["q2", 0]["text"].startswith("a lone \ufffd half, \u2028 a line, \x85")
    assert by_key["q0", 0]["references"] == ["1"]
    dictionary = {field["field"]: field for field in json.loads((tmp_path / "fields.json").read_text())}
    assert list(dictionary) == table.column_names
    assert all(
        table.schema.field(name).metadata[b"description"].decode() == field["about"]
        for name, field in dictionary.items()
    )


def test_parquet_hands_on_a_failed_reading(run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(folder: BenchmarkFolder) -> Iterator[Sample]:
        yield next(iter(read_samples(folder)))
        raise StoreError("the disk is gone")

    monkeypatch.setattr("harness.exports.choice.read_samples", failing)
    with pytest.raises(StoreError, match="the disk is gone"):
        harness.export(run, "parquet", out=tmp_path)
    assert not [*tmp_path.glob("*.parquet")]


@pytest.mark.parametrize(
    "text", ["=1+1", "-3", "-3+A1", "@sum", "a\0b", "two\r\nlines", 'a "quoted", word', "\ud83d half"]
)
def test_a_hostile_text_stays_one_cell(tmp_path: Path, text: str) -> None:
    run = write_run(tmp_path / "run", [sample(0, 0, text)], scored=False)
    (written,) = harness.export(run, "csv").files
    assert (written.n, written.path.read_bytes()[:13]) == (1, b"\xef\xbb\xbfbenchmark,")
    with written.path.open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    guard = "'" if text[0] in "=-@" and text != "-3" else ""  # a number is no formula
    assert row["text"] == guard + text.replace("\0", "").replace("\ud83d", "\ufffd")


def test_verdicts_by_hand_are_in_tables_and_choose_training_data(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", varied())
    files = run.benchmark("own")
    before = {(row["question_id"], row["sample_index"]): row for row in _table(run, tmp_path / "before")}
    right, wrong = Key("q0", 0), Key("q0", 3)
    assert [before[key]["verdict"] for key in (right, wrong)] == ["correct", "wrong"]
    n_correct = len(rows(run, "trl", tmp_path / "trl", distinct=False, finish_reasons=()))
    overrides.correct(files, right, "wrong", graded="correct", who="Ann", why="a guess")
    assert len(rows(run, "trl", tmp_path / "trl", distinct=False, finish_reasons=())) == n_correct - 1
    overrides.correct(files, wrong, "correct", graded="wrong", who="Ann", why="it is")
    assert len(rows(run, "trl", tmp_path / "trl", distinct=False, finish_reasons=())) == n_correct
    after = {(row["question_id"], row["sample_index"]): row for row in _table(run, tmp_path / "after")}
    facts = ("verdict", "correct", "rule", "graded")
    assert [after[right][name] for name in facts] == ["wrong", False, "override", "correct"]
    assert [after[wrong][name] for name in facts] == ["correct", True, "override", "wrong"]
    changed = [key for key, row in after.items() if row != before[key]]
    assert changed == [right, wrong]


def _table(run: RunFolder, out: Path) -> list[dict[str, Any]]:
    return pyarrow.parquet.read_table(harness.export(run, "parquet", out=out).files[0].path).to_pylist()


@pytest.mark.parametrize("source", ["typed.csv", "typed.csv.scored"])
def test_a_scored_file_of_others_is_exported_with_its_lines(tmp_path: Path, source: str) -> None:
    (tmp_path / "typed.csv").write_text("question,answer,response\n1 + 1?,2,2\n1 + 1?,2,3\n", encoding="utf-8")
    harness.score(tmp_path / "typed.csv")
    (file,) = harness.export(tmp_path / source, "csv", out=tmp_path / "out").files
    with file.path.open(encoding="utf-8-sig", newline="") as opened:
        exported = [(row["text"], row["verdict"], row["endpoint"]) for row in csv.DictReader(opened)]
    assert exported == [("2", "correct", "file:typed.csv:2"), ("3", "wrong", "file:typed.csv:3")]


def test_a_run_without_grades_has_no_correct_ones_but_all(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", varied(), scored=False)
    with pytest.raises(UsageError, match="has not been graded; run `harness score"):
        harness.export(run, "trl")
    table = pyarrow.parquet.read_table(harness.export(run, "parquet").files[0].path)
    assert set(table.column("verdict").to_pylist()) == {None}


@pytest.mark.parametrize("name", ["aime24", "AIME_2024", "gsm8k", "math500"])
def test_nobody_trains_on_a_test_by_mistake(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path / "run", {name: varied(name)})
    for to in ("sharegpt", "alpaca", "trl"):
        with pytest.raises(UsageError, match="can no longer be tested on them"):
            harness.export(run, to, out=tmp_path / to)
        assert not (tmp_path / to).exists()
        assert rows(run, to, tmp_path / to, i_know=True)
    for to in ("parquet", "llmeval"):
        assert harness.export(run, to, out=tmp_path / to).files[0].n == 10
        for choice in ({"take": "correct"}, {"shortest": 1}):
            with pytest.raises(UsageError, match="can no longer be tested on them"):
                harness.export(run, to, out=tmp_path / to, **choice)
            assert harness.export(run, to, out=tmp_path / to, i_know=True, **choice).files


def test_training_sets_and_ones_own_data_are_free(tmp_path: Path) -> None:
    assert rows(write_run(tmp_path / "a", {"limo": varied("limo")}), "trl", tmp_path / "a-out")
    card = {"card": str(tmp_path / "aime24.yaml")}
    assert rows(write_run(tmp_path / "b", {"aime24": varied("aime24")}, settings=card), "trl", tmp_path / "b-out")


def test_what_may_not_be_published_is_in_no_file_unless_told(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", varied(), settings={"publish_questions": False})
    for to in (name for name, exporter in formats().items() if exporter.withholds):
        with pytest.raises(UsageError, match="ask that its questions not be published"):
            harness.export(run, to, out=tmp_path / to)
        assert harness.export(run, to, out=tmp_path / to, i_know=True).files


def test_the_samples_are_those_of_the_plan(tmp_path: Path) -> None:
    surplus = [*varied(), sample(0, 7, r"\boxed{1} beyond the plan")]
    run = write_run(tmp_path / "run", surplus)
    assert harness.export(run, "parquet").files[0].n == 10


def test_each_sample_is_written_or_left_out_for_a_reason_and_no_file_is_empty(tmp_path: Path) -> None:
    n_refused = 0
    for number in range(examples(160)):
        chance = random.Random(seed := random.getrandbits(32))
        samples = [
            sample(n, index, chance.choice([r"\boxed{1}", r"\boxed{2}", "", None, "<think>so"]), finish_reason=reason)
            for n in range(2)
            for index in range(chance.randint(0, 3))
            for reason in chance.choices(["stop", "length", "unknown"])
        ]
        run = write_run(tmp_path / f"run-{number}", samples, questions=2, scored=bool(samples))
        options = {
            "take": chance.choice(["correct", "all", None]),
            "shortest": chance.choice([None, 1]),
            "finish_reasons": chance.choice([None, (), ("length",)]),
            "distinct": chance.choice([None, True]),
            "reasoning": chance.random() < 0.5,
        }
        to = chance.choice([name for name, exporter in formats().items() if exporter.kind != "results"])
        try:
            written = export([run], to, tmp_path / f"out-{number}", **options)
        except UsageError:
            assert not (tmp_path / f"out-{number}").exists(), seed
            n_refused += 1
        else:
            (n,) = (file.n for file in written.files if file.n is not None)
            left_out = written.left_out.get("own", {})
            assert (n > 0, n + sum(left_out.values())) == (True, 2 * 4), seed
            assert ("missing from the run" in left_out) == (len(samples) < 8), seed
    assert n_refused
    empty = write_run(tmp_path / "empty", [sample(0, 0, r"\boxed{1}", finish_reason="unknown")], of_each=1, questions=1)
    with pytest.raises(
        UsageError, match="no samples to export as trl: own: 1 sample left out: 1 with no finish reason in"
    ):
        export([empty], "trl")


@pytest.mark.wide
def test_a_large_run_goes_through_in_small_pieces(tmp_path: Path) -> None:
    many = [sample(0, index, f"{index} " + "x" * 200_000 + r" \boxed{1}") for index in range(300)]
    run = write_run(tmp_path / "run", many, questions=1, of_each=300, scored=False)
    code = (
        "import resource, sys, harness; from harness.runs import RunFolder\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "harness.export(sys.argv[1], 'llmeval'); n = harness.export(sys.argv[1], 'trl', take='all').files[0].n\n"
        "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run.path)], capture_output=True, text=True, check=True)
    n, grown = map(int, done.stdout.split())
    assert n == 300
    assert grown < 45_000, f"{grown} kB for 60 MB of samples"


def test_the_command_writes_into_the_run_folder_and_counts(run: RunFolder, tmp_path: Path) -> None:
    def invoked(*words: object) -> Any:
        return CliRunner().invoke(command_of("export"), [str(run.path), *map(str, words)])

    said = invoked("--to", "sharegpt", "--out", tmp_path / "a").output
    assert "own.jsonl: 5\n" in said
    assert "own: 7 samples left out: 3 not correct, 2 missing from the run, 1 identical" in said
    printed = json.loads(invoked("--to", "trl", "--finish-reason", "any", "--json").output)
    assert printed["folder"] == str(run.path / "exports" / "trl")
    assert [file["records"] for file in printed["files"]] == [6]
    assert "shortest=0: expected a number greater than" in str(invoked("--to", "trl", "--shortest", "0").exception)


def test_no_cell_of_a_csv_becomes_a_date_or_a_time(tmp_path: Path) -> None:
    answers = ("3:2", "1/2", "1-2", "12:30", "37升", "2.5", "1/2米")
    rows = [f"Which is number {n}?,{answer},\\boxed{{{answer}}}\n" for n, answer in enumerate(answers)]
    (tmp_path / "typed.csv").write_text("question,answer,response\n" + "".join(rows), encoding="utf-8")
    harness.score(tmp_path / "typed.csv")
    (file,) = harness.export(tmp_path / "typed.csv", "csv", out=tmp_path / "out").files
    with file.path.open(encoding="utf-8-sig", newline="") as opened:
        cells = [row["references"] for row in csv.DictReader(opened)]
    assert cells == ["'3:2", "'1/2", "'1-2", "'12:30", "37升", "2.5", "1/2米"]


def test_a_frame_has_the_columns_of_the_table_of_samples_and_a_row_for_each_grade_and_score(run: RunFolder) -> None:
    written = harness.export(run, "parquet", take="all", finish_reasons=(), distinct=False)
    table = pyarrow.parquet.read_table(written.files[0].path).to_pydict()
    samples, graded = harness.frame([run]), harness.frame(run, of="grades")
    for name in ("question_id", "references", "text", "verdict", "completion_tokens", "first_token", "attempts"):
        assert samples[name].to_pylist() == table[name], name
    assert dict(zip(graded["question_id"].to_pylist(), graded["verdict"].to_pylist(), strict=True)) == dict(
        zip(table["question_id"], table["verdict"], strict=True)
    )
    (score,) = harness.score(run, workers=1)
    assert harness.frame(run, of="scores")["accuracy"].to_pylist() == [score.accuracy and score.accuracy.value]
    with pytest.raises(UsageError, match="expected samples, grades or scores"):
        harness.frame(run, of="votes")  # type: ignore[arg-type]


FROM_THE_HUB, N_QUESTIONS = "aime26", 30


@pytest.mark.slow
@pytest.mark.parametrize("to", formats())
def test_what_a_killed_export_left_is_removed_by_the_next(to: str, tmp_path: Path) -> None:
    samples, out = {FROM_THE_HUB: complete(FROM_THE_HUB, N_QUESTIONS)}, tmp_path / "out"
    run = write_run(tmp_path / "run", samples, questions=N_QUESTIONS, of_each=1)
    with every_state(out) as states:
        export([run], to, out, i_know=True)
    torn = [state for state in states if any(name.endswith(".tmp") for name in state)]
    assert torn, "an export was seen under way"
    for state in random.sample(torn, min(len(torn), rounds(2))):
        put(state, out)
        export([run], to, out, i_know=True)
        assert not [name for name in state_of(out) if name.endswith(".tmp")]


ROWS = [
    {"question": "What is 1 + 1?", "solution": "One and one make two: \\boxed{2}", "answer": "2", "note": ""},
    {"question": "What is 2 + 2?", "solution": " ", "answer": "4", "note": " "},
]


def card(folder: Path, name: str = "mine") -> str:
    """The path of a card whose rows have solutions."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    columns = {"question": "question", "answer": "answer"}
    content = {"name": name, "title": "T", "source": {"kind": "file", "path": "rows.jsonl"}, "columns": columns}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content | {"prompt": "boxed"}))
    return str(path)


def test_each_solution_becomes_the_reply_to_its_question_in_llama_factory_s_form(tmp_path: Path) -> None:
    written = harness.export(card(tmp_path), "alpaca", solution_key="solution", out=tmp_path / "data")
    (line,) = (tmp_path / "data" / "mine.jsonl").read_text("utf-8").splitlines()
    row = json.loads(line)
    assert row["output"] == ROWS[0]["solution"]
    assert "What is 1 + 1?" in row["instruction"]
    assert "boxed" in row["instruction"], "as a run would ask it"
    info = json.loads((tmp_path / "data" / "dataset_info.json").read_text("utf-8"))["mine"]
    assert (info["file_name"], info["columns"]["response"]) == ("mine.jsonl", "output")
    assert written.files[0].n == 1, "a row without a solution is left out"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"to": "alpaca", "solution_key": "proof"},
            r"has no column 'proof' for any question \(no other row has it either\); "
            "available columns: question, solution, answer, note",
        ),
        ({"to": "alpaca", "solution_key": "note"}, "no question in mine has text in the column 'note'"),
        ({"to": "parquet", "solution_key": "solution"}, "parquet contains samples"),
        ({"to": "alpaca", "solution_key": "solution", "shortest": 1}, "shortest selects samples from a run"),
    ],
)
def test_what_makes_no_training_data_is_refused(tmp_path: Path, given: dict[str, object], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        harness.export(card(tmp_path), out=tmp_path / "data", **given)  # type: ignore[arg-type]


def test_solutions_stand_beside_the_prompt_that_is_asked_for(tmp_path: Path) -> None:
    harness.export(card(tmp_path), "alpaca", solution_key="solution", prompt="qwen_boxed", out=tmp_path / "data")
    row = json.loads((tmp_path / "data" / "mine.jsonl").read_text("utf-8"))
    assert (row["instruction"], "boxed" in row["system"]) == ("What is 1 + 1?", True)


def test_a_test_set_is_refused_unless_it_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card(tmp_path, "aime24")
    monkeypatch.setenv("HARNESS_DATASETS", str(tmp_path))
    with pytest.raises(UsageError, match="can no longer be tested"):
        harness.export("aime24", "alpaca", solution_key="solution", out=tmp_path / "data")
    harness.export("aime24", "alpaca", solution_key="solution", out=tmp_path / "data", i_know=True)
    assert (tmp_path / "data" / "aime24.jsonl").is_file()
