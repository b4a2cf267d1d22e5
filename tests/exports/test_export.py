"""What `harness export` writes: which samples, in which form, and what it refuses.

For: harness.exports, harness.extensions.exporters, harness.commands.export, harness.extensions.exporters.lm_eval,
harness.extensions.exporters.hub, harness.extensions.exporters.inspect.
"""

from __future__ import annotations

import csv
import json
import random
import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub import parse_eval_result_entries

import harness
from harness.cli.flags import command_of
from harness.core.errors import StoreError, UsageError
from harness.core.records import Key, Sample
from harness.exports import export, formats
from harness.foreign import outputs
from harness.runs import BenchmarkFolder, Journal, Manifest, RunFolder, grades, overrides, read_samples
from harness.runs import questions as question_file
from harness.runs.line_file import write_lines
from harness.scoring.score import Score
from harness.tools.table import tool_of
from tests.budget import examples, rounds
from tests.cli.test_again import parsed
from tests.exports.graded_runs import complete, question, sample, varied, write_run
from tests.faults.snapshots import every_state, put, state_of
from tests.system.command import harness as command


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


def test_a_full_disk_under_parquet_is_one_sentence(run: RunFolder, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))  # the signal of this limit is ignored by Python
    try:
        with pytest.raises(StoreError, match="File too large"):
            harness.export(run, "parquet", out=tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [*(tmp_path / "out").glob("*.parquet")]


def test_parquet_hands_on_a_failed_reading(run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(folder: BenchmarkFolder) -> Iterator[Sample]:
        yield next(iter(read_samples(folder)))
        raise StoreError("the disk is gone")

    monkeypatch.setattr("harness.exports.selection.read_samples", failing)
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


def test_each_sample_is_exported_or_omitted_with_a_reason(tmp_path: Path) -> None:
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


def test_a_frame_has_the_table_columns_and_a_row_per_grade_and_score(run: RunFolder) -> None:
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


# -- lm-eval's format --------------------------------------------------------------------------------------------------


def results(run: RunFolder | list[RunFolder], out: Path) -> dict[str, Any]:
    return json.loads(harness.export(run, "lm_eval", out=out).files[0].path.read_bytes())  # type: ignore[no-any-return]


def gsm8k(folder: Path, n: int = 30, **more: Any) -> RunFolder:
    return write_run(folder, {"gsm8k": complete("gsm8k", n)}, questions=n, of_each=1, **more)


def test_the_form_is_lm_evals_and_names_its_writer(tmp_path: Path) -> None:
    runs = [gsm8k(tmp_path / "a"), write_run(tmp_path / "b", varied())]
    done = command(tmp_path, "export", "a", "b", "--to", "lm_eval", "--out", "out", "--json")
    assert done.code == 0, done.err
    moment = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}"
    names = sorted(re.sub(moment, "TIME", path.name) for path in (tmp_path / "out" / "org__model-7b").iterdir())
    assert names == ["results_TIME.json", "samples_gsm8k_TIME.jsonl", "samples_own_TIME.jsonl"]
    record = results(runs, tmp_path / "out")
    assert re.fullmatch(r"0\.4\.\d+\+reasoning-harness", record["lm_eval_version"])
    assert [*record["n-samples"].values()] == [{"original": n, "effective": m} for n, m in ((1319, 30), (3, 3))]
    assert json.loads(done.out)["left_out"] == {"own": {"missing from the run": 2}}
    for run, task in zip(runs, record["results"], strict=True):
        score, values = Score.load(run.benchmark(task)), record["results"][task]
        assert score is not None
        assert score.accuracy is not None
        metric = record["configs"][task]["metric_list"][0]["metric"]
        assert record["configs"][task]["output_type"] == "generate_until"  # which Zeno's reader needs
        assert values[f"{metric},none"] == values["acc"] == score.accuracy.value
        assert values[f"{metric}_stderr,none"] == values["acc_stderr"] == score.question_error
        # What lm-eval's own table would print as a metric is a number or a text.
        assert all(isinstance(value, int | float | str) for value in values.values())
        own = record["reasoning_harness"][task]
        assert own["question_interval"] == list(score.accuracy.question or ())
        assert (own["n_missing"], own["warnings"] or "") == (score.n_missing, "; ".join(score.sentences))


@pytest.mark.parametrize("prompt", ["inferencex", "boxed"])
def test_a_run_with_inferencex_prompt_has_its_name(tmp_path: Path, prompt: str) -> None:
    name = "gpqa_diamond"
    run = write_run(tmp_path / "run", {name: complete(name, 9)}, questions=9, of_each=1, identity={"prompt": prompt})
    record = results(run, tmp_path / "out")
    theirs = {"inferencex": "gpqa_diamond_cot_n_shot", "boxed": name}[prompt]
    assert [*record["results"], record["configs"][theirs]["task"]] == [theirs, theirs]


def test_its_samples_come_back_with_their_verdicts(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", varied())
    path = harness.export(run, "lm_eval", out=tmp_path / "out").files[1].path
    verdicts = [grade.verdict for grade in grades.read(run.benchmark("own"))]
    (score,) = harness.score(path, workers=1)
    assert (score.n_correct, score.n_samples + score.n_missing) == (verdicts.count("correct"), len(verdicts))
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert sum(row["exact_match"] * len(row["resps"][0]) for row in rows) == verdicts.count("correct")


def test_questions_that_may_not_be_shown_have_results_and_no_samples(tmp_path: Path) -> None:
    run = gsm8k(tmp_path / "run", settings={"publish_questions": False})
    written = harness.export([run, write_run(tmp_path / "b", varied())], "lm_eval", out=tmp_path / "out")
    assert [re.sub("_20.*", "", file.path.name) for file in written.files] == ["results", "samples_own"]
    assert written.left_out["gsm8k"] == {"of questions whose authors ask that they not be published": 30}
    assert "What is 7 + 1" not in written.files[0].path.read_text("utf-8")


def test_a_file_is_refused_that_would_mix_or_guess(tmp_path: Path) -> None:
    run = gsm8k(tmp_path / "run")
    other = write_run(tmp_path / "other", varied(), identity={"model": "org/model-8b"})
    with pytest.raises(UsageError, match=r"only one model, not org/model-7b, org/model-8b"):
        harness.export([run, other], "lm_eval", out=tmp_path / "out")
    for to in ("lm_eval", "parquet"):
        with pytest.raises(UsageError, match=r"gsm8k is in both .*again: export one run at a time"):
            harness.export([run, gsm8k(tmp_path / f"{to}-again")], to, out=tmp_path / "out")
    with pytest.raises(UsageError, match="has not been graded"):
        harness.export([run, write_run(tmp_path / "new", varied(), scored=False)], "lm_eval", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    files = harness.export([run, other], "csv", out=tmp_path / "out").files  # a table names the model of no file
    assert {file.path.stem for file in files} >= {"gsm8k", "own"}


@pytest.mark.parametrize("model", ["..", "/", "../../x", "a\nb", "-x", ""])
def test_a_models_name_leads_out_of_no_folder(tmp_path: Path, model: str) -> None:
    run = write_run(tmp_path / "run", varied(), identity={"model": model})
    files = harness.export(run, "lm_eval", out=tmp_path / "out").files
    assert all(len(file.path.resolve().relative_to(tmp_path / "out").parts) == 2 for file in files)


# -- exports read back from other tools --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    many = [sample(2, index, rf"number {index}: \boxed{{{3 + index % 2}}}") for index in range(2, 12)]
    return write_run(tmp_path_factory.mktemp("runs") / "run", [*varied(), *many], of_each=12)


def there(long_run: RunFolder) -> dict[tuple[str, int], Any]:
    return {tuple(sample.key): sample for sample in read_samples(long_run.benchmark("own"))}


def test_inspects_log_comes_back_with_its_keys_and_texts(long_run: RunFolder, tmp_path: Path) -> None:
    path = harness.export(long_run, "inspect", out=tmp_path).files[0].path
    back = {(row_question.question_id, sample.sample_index): sample for row_question, sample in outputs.read(path)}
    stored = there(long_run)
    assert set(back) == set(stored)
    for key, original in stored.items():
        assert back[key].reasoning == original.reasoning
        assert back[key].finish_reason == original.finish_reason
        if original.text is not None and "\ud800" not in original.text:
            assert back[key].text == original.text


def test_every_eval_evers_format_names_its_replacement(long_run: RunFolder) -> None:
    for name in ("every_eval_ever", "every-eval-ever"):
        with pytest.raises(UsageError, match="export `lm-eval`, and convert it"):
            harness.export(long_run, name)


UNKNOWN, CHANGED = "of benchmarks without a known leaderboard on the Hub", "of an incomplete or changed benchmark"


@pytest.mark.parametrize(
    ("benchmark", "questions", "settings", "reason"),
    [
        ("aime26", 30, {}, None),
        ("own", 30, {}, UNKNOWN),
        ("aime26", 30, {"card": "/mine/aime26.yaml"}, UNKNOWN),
        ("aime26", 30, {"data": "/mine/rows.jsonl"}, CHANGED),
        ("aime26", 29, {}, CHANGED),
    ],
)
def test_the_hub_gets_whole_benchmarks_and_a_sentence_explains_the_others(
    benchmark: str, questions: int, settings: dict[str, str], reason: str | None, tmp_path: Path
) -> None:
    asked = {
        "seed": 3,
        "prompt": "boxed",
        "sampling": {"temperature": 0.6, "stop": ["<a b>", "c"]},
        "chat_template_kwargs": {"enable_thinking": True},
        "api_headers": {"x-private": "mine"},
        "tool": {"name": "python", "steps": 7, "seconds": 9, "python": "3.12"},
    }
    samples, out = {benchmark: complete(benchmark, questions)}, tmp_path / "out"
    long_run = write_run(tmp_path / "a", samples, questions=questions, of_each=1, settings=settings, identity=asked)
    if reason is not None:
        with pytest.raises(
            UsageError, match=f"there are no results to export in the hub format, only samples {reason}"
        ):
            harness.export(long_run, "hub", out=out)
        assert not out.exists()
        return
    written = harness.export(write_run(long_run.path, {"own": varied()}), "hub", out=out)
    (sentence,) = written.sentences
    assert sentence.startswith(f"own: 10 samples left out: 10 {UNKNOWN}")
    (entry_file,) = (file.path for file in written.files)
    assert entry_file == out / ".eval_results" / "aime26_reasoning_harness.yaml"
    (entry,) = parse_eval_result_entries(yaml.safe_load(entry_file.read_text("utf-8")))
    assert (entry.dataset_id, entry.task_id, entry.date) == ("MathArena/aime_2026", "MathArena/aime_2026", "2026-01-01")
    assert entry.value == pytest.approx(100 * 20 / 30)
    settled, _, command = str(entry.notes).partition("; repeat: ")
    assert re.search(r"30 questions × 1; 95% interval \d.* \(other questions\); graded by ", settled)
    again = parsed(command)
    assert (again.benchmarks, again.model, again.seed, again.prompt) == (("aime26:1",), "org/model-7b", 3, "boxed")
    assert (again.temperature, again.stop) == (0.6, ("<a b>", "c"))
    tool = tool_of(again.tool)
    assert tool is not None
    assert (tool.limits["steps"], tool.limits["seconds"]) == (7, 9)
    assert again.extra_body == {"chat_template_kwargs": {"enable_thinking": True}}
    text = entry_file.read_text("utf-8")
    assert not [private for private in ("x-private", "10.0.0.1", "What is", r"\boxed") if private in text]
    with pytest.raises(UsageError, match="has not been graded"):
        harness.export(write_run(tmp_path / "b", samples, questions=30, of_each=1, scored=False), "hub")


def test_results_are_what_the_score_counts_and_nothing_is_chosen(long_run: RunFolder, tmp_path: Path) -> None:
    for option in ({"take": "correct"}, {"shortest": 1}, {"reasoning": False}, {"distinct": True}):
        with pytest.raises(UsageError, match="always contains all scored samples"):
            harness.export(long_run, "inspect", out=tmp_path, **option)  # type: ignore[arg-type]


def test_a_hostile_id_leaves_the_archive_alone(tmp_path: Path) -> None:
    long_run = write_run(tmp_path / "run", [sample(0, 0, r"\boxed{1}")], questions=1, of_each=1)
    files = long_run.benchmark("own")
    evil = "../../../etc/x\u202e"
    files.samples.unlink()
    files.questions.unlink()
    question_file.write(files, [msgspec.structs.replace(question(0), question_id=evil)])
    with Journal.open(files) as journal:
        journal.append(msgspec.structs.replace(sample(0, 0, r"\boxed{1}"), question_id=evil))
    write_lines(files.grades, [msgspec.structs.replace(grades.read(files)[0], question_id=evil)])
    path = harness.export(long_run, "inspect", out=tmp_path / "out").files[0].path
    with zipfile.ZipFile(path) as archive:
        (name,) = (n for n in archive.namelist() if n.startswith("samples/"))
    assert ".." not in name
    ((row_question, _),) = outputs.read(path)
    assert row_question.question_id == evil
