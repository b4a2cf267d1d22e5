"""What goes into other tools' own files comes back with its keys, texts and verdicts, and errors go along.

`make test-interop` opens them with the tools themselves.

For: harness.extensions.exporters.hub, harness.extensions.exporters.inspect.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

import harness
from harness.core.errors import UsageError
from harness.foreign import outputs
from harness.runs import Journal, RunFolder, grades, read_samples
from harness.runs import questions as question_file
from harness.runs.line_file import write_lines
from harness.scoring.score import Score
from harness.tools.table import tool_of
from tests.cli.test_again import parsed
from tests.exports.graded_runs import complete, question, sample, varied, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    many = [sample(2, index, rf"number {index}: \boxed{{{3 + index % 2}}}") for index in range(2, 12)]
    return write_run(tmp_path_factory.mktemp("runs") / "run", [*varied(), *many], of_each=12)


def there(run: RunFolder) -> dict[tuple[str, int], Any]:
    return {tuple(sample.key): sample for sample in read_samples(run.benchmark("own"))}


def test_inspects_log_comes_back_with_its_keys_and_texts(run: RunFolder, tmp_path: Path) -> None:
    path = harness.export(run, "inspect", out=tmp_path).files[0].path
    back = {(row_question.question_id, sample.sample_index): sample for row_question, sample in outputs.read(path)}
    stored = there(run)
    assert set(back) == set(stored)
    for key, original in stored.items():
        assert back[key].reasoning == original.reasoning
        assert back[key].finish_reason == original.finish_reason
        if original.text is not None and "\ud800" not in original.text:
            assert back[key].text == original.text


def test_every_eval_evers_format_names_its_replacement(run: RunFolder) -> None:
    for name in ("every_eval_ever", "every-eval-ever"):
        with pytest.raises(UsageError, match="export `lm-eval`, and convert it"):
            harness.export(run, name)


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
def test_the_hub_gets_a_whole_benchmark_and_a_sentence_says_why_it_gets_no_other(
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
    run = write_run(tmp_path / "a", samples, questions=questions, of_each=1, settings=settings, identity=asked)
    if reason is not None:
        with pytest.raises(
            UsageError, match=f"there are no results to export in the hub format, only samples {reason}"
        ):
            harness.export(run, "hub", out=out)
        assert not out.exists()
        return
    written = harness.export(write_run(run.path, {"own": varied()}), "hub", out=out)
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


def test_inspects_log_has_the_verdicts_and_both_errors(run: RunFolder, tmp_path: Path) -> None:
    path = harness.export(run, "inspect", out=tmp_path).files[0].path
    score = Score.load(run.benchmark("own"))
    assert score is not None
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        values = [
            json.loads(archive.read(n))["scores"]["harness"]["value"] for n in archive.namelist() if "_epoch_" in n
        ]
    right = sum(grade.verdict == "correct" for grade in grades.read(run.benchmark("own")))
    assert values.count("C") == right
    (scored,) = header["results"]["scores"]
    assert scored["metrics"]["accuracy"]["value"] == score.accuracy.value
    assert scored["metrics"]["stderr"]["value"] == score.question_error
    assert scored["metadata"]["sampling_interval"] == list(score.accuracy.sampling or ())


def test_results_are_what_the_score_counts_and_nothing_is_chosen(run: RunFolder, tmp_path: Path) -> None:
    for option in ({"take": "correct"}, {"shortest": 1}, {"reasoning": False}, {"distinct": True}):
        with pytest.raises(UsageError, match="always contains all scored samples"):
            harness.export(run, "inspect", out=tmp_path, **option)  # type: ignore[arg-type]


def test_a_hostile_id_leaves_the_archive_alone(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [sample(0, 0, r"\boxed{1}")], questions=1, of_each=1)
    files = run.benchmark("own")
    evil = "../../../etc/x\u202e"
    files.samples.unlink()
    files.questions.unlink()
    question_file.write(files, [msgspec.structs.replace(question(0), question_id=evil)])
    with Journal.open(files) as journal:
        journal.append(msgspec.structs.replace(sample(0, 0, r"\boxed{1}"), question_id=evil))
    write_lines(files.grades, [msgspec.structs.replace(grades.read(files)[0], question_id=evil)])
    path = harness.export(run, "inspect", out=tmp_path / "out").files[0].path
    with zipfile.ZipFile(path) as archive:
        (name,) = (n for n in archive.namelist() if n.startswith("samples/"))
    assert ".." not in name
    ((row_question, _),) = outputs.read(path)
    assert row_question.question_id == evil
