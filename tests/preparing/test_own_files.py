"""A file of questions in any of the main languages is asked as it stands; a card's own verifier is refused before
anything is asked if it could not grade.

For: harness.preparing.run_questions, harness.benchmarks.column_names.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.options.run import RunOptions
from harness.preparing import launched_servers
from harness.preparing.launched_servers import content, fingerprints
from harness.preparing.run_questions import questions_of
from harness.progress.events import Collecting


def asked(folder: Path, row: dict[str, object], *more: dict[str, object], **options: object) -> list[tuple[str, str]]:
    """(id, user's message) of each question of a file with these rows."""
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in (row, *more)))
    (question_set,) = questions_of(RunOptions.of(data=str(path), **options)).sets
    return [(question.question_id, question.messages[-1].content) for question in question_set.questions]


def test_the_column_id_identifies_questions_and_must_be_distinct(tmp_path: Path) -> None:
    first, second = {"id": "a1", "problem": "1 + 1?", "answer": "2"}, {"id": 7, "problem": "1 + 2?", "answer": "3"}
    assert [name for name, _ in asked(tmp_path, first, second)] == ["a1", "7"]
    ((name, _),) = asked(tmp_path, {"problem": "1 + 1?", "answer": "2"})
    assert len(name) == 16, "without the column: a checksum"
    with pytest.raises(UsageError, match=r"the id 'a1' is already used at .*own\.jsonl:1; ids must be unique"):
        asked(tmp_path, first, second | {"id": "a1"})


@pytest.mark.parametrize(
    ("sign", "name"), [("\t", "class.csv"), (";", "class.csv"), (",", "class.csv"), ("\t", "class.tsv")]
)
def test_a_table_is_read_by_the_sign_between_its_cells(tmp_path: Path, sign: str, name: str) -> None:
    half = "1,5 + 1 = ?" if sign != "," else "1.5 + 1 = ?"
    rows = [["question", "answer"], ["1 + 1 = ?", "2"], [half, "2.5"], ["", ""]]
    (tmp_path / name).write_text("".join(sign.join(row) + "\n" for row in rows), "utf-8")
    questions = list(questions_of(RunOptions.of(data=str(tmp_path / name))).sets[0].questions)
    assert [question.references for question in questions] == [("2",), ("2.5",)]


@pytest.mark.parametrize(
    ("rows", "warning"),
    [
        (["面积？,4米,", "边长？,5米,", "面积？,5米,"], "class.csv:4 has the same question as"),
        (["面积？,4米,", "边长？,4米,", "面积？,4米,"], "1 of 3 rows is identical to an earlier row"),
        (["面积？,30,31"], ""),
    ],
)
def test_answers_that_contradict_are_warned_of(tmp_path: Path, rows: list[str], warning: str) -> None:
    """A question with two answers; several rows of one kind warn once."""
    (tmp_path / "class.csv").write_text("问题,答案,也对\n" + "".join(f"{row}\n" for row in rows), "utf-8")
    (tmp_path / "class.yaml").write_text(
        "title: class\nsource: {kind: file, path: class.csv}\nkind: auto\nprompt: boxed_zh\n"
        "columns: {question: 问题, answer: 答案, more_answers: 也对}\n",
        "utf-8",
    )
    (made,) = questions_of(RunOptions.of(benchmarks=(str(tmp_path / "class.yaml"),))).sets
    notes = made.notes
    assert len(notes) == bool(warning)
    assert warning in "".join(notes)


def test_two_columns_with_usual_names_are_told(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text("question,gold,answer\n1 + 1 = ?,2,3\n2 + 2 = ?,4,4\n2 + 2 = ?,4,4\n", "utf-8")
    watcher = Collecting()
    questions_of(RunOptions.of(data=str(tmp_path / "class.csv")), watcher)
    repeated, doubtful = watcher.warnings
    assert repeated.startswith("class: 1 of 3 rows is identical to an earlier row")
    assert "the column answer, although gold may contain it too; to use another column, set `answer_key`" in doubtful
    watcher = Collecting()
    questions_of(RunOptions.of(data=str(tmp_path / "class.csv"), answer_key="gold"), watcher)
    assert len(watcher.warnings) == 1


CARD = """
title: Own
source: {kind: file, path: set.jsonl}
columns: {question: problem, answer: answer}
kind: text
rules: {grader: "own_words:%s"}
"""


MODULE = "def right(answer, question): return answer == question.references[0]\ndef alone(answer): return True\n"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_words.py").write_text(MODULE)
    (tmp_path / "set.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n')
    monkeypatch.setenv("HARNESS_GRADERS", "own_words")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


@pytest.mark.slow  # Each import has a process of its own.
@pytest.mark.parametrize(
    ("trusted", "function", "sentence"),
    [
        ("", "right", "to trust it, set HARNESS_GRADERS=own_words"),
        ("mine:own_words", "right", "to trust it, set HARNESS_GRADERS=own_words"),
        ("own_word", "right", "to trust it, set HARNESS_GRADERS=own_words"),
        ("own_words", "nothing", "has no attribute 'nothing'. Fix its module"),
        ("own_words", "alone", "cannot be called with (answer, question): too many positional"),
        ("own_words", "lacking", "No module named 'nosuchlib' (own_words.py:1). Fix its module"),
        ("own_words", "relative", "add its folder to PYTHONPATH as an absolute path. Fix"),
        ("own_words", "right", ""),
    ],
)
def test_a_verifier_that_cannot_grade_is_refused_before_a_run(
    own: Path, monkeypatch: pytest.MonkeyPatch, trusted: str, function: str, sentence: str
) -> None:
    """lacking: a library that the module needs is no matter of its folder. relative: its folder is."""
    monkeypatch.setenv("HARNESS_GRADERS", trusted)
    if function == "lacking":
        (own / "own_words.py").write_text(f"import nosuchlib\n{MODULE}")
    if function == "relative":
        monkeypatch.setenv("PYTHONPATH", ".")
        monkeypatch.chdir(own)
    (own / "own.yaml").write_text(CARD % function)
    options = RunOptions.of(benchmarks=(str(own / "own.yaml"),))
    if not sentence:
        assert questions_of(options).sets[0].questions[0].rules.grader == "own_words:right"
        return
    with pytest.raises(UsageError) as refused:
        questions_of(options)
    assert sentence in str(refused.value)


# -- files of the model ------------------------------------------------------------------------------------------------


def folder(place: Path, **files: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for name, text in {"config.json": "{}", "a.safetensors": "weights", **files}.items():
        (place / name.replace("__", ".")).write_text(text)
    return place


def test_a_changed_file_changes_its_own_checksum_and_no_other(tmp_path: Path) -> None:
    one = fingerprints(str(folder(tmp_path / "a", generation_config__json="{}")))
    of_second = fingerprints(str(folder(tmp_path / "b", generation_config__json='{"top_k": 20}')))
    assert one.keys() == of_second.keys() == {"config.json", "generation_config.json", "weights", "weights_sample"}
    assert {name for name in one if one[name] != of_second[name]} == {"generation_config.json"}


def test_weights_of_one_size_are_told_apart_by_their_contents_only(tmp_path: Path) -> None:
    one, second = str(folder(tmp_path / "a")), str(folder(tmp_path / "b", a__safetensors="WEIGHTS"))
    checksums = [fingerprints(place) for place in (one, second)]
    assert checksums[0]["weights"] == checksums[1]["weights"]
    assert checksums[0]["weights_sample"] != checksums[1]["weights_sample"]


def test_a_weight_sample_is_the_same_anywhere_and_detects_any_change(tmp_path: Path) -> None:
    content_bytes = bytes(range(256)) * 4096
    places = [folder(tmp_path / name) / "a.safetensors" for name in ("a", "moved", "trained", "longer")]
    trained = bytes(b ^ 1 for b in content_bytes)
    for place, made in zip(places, (content_bytes, content_bytes, trained, content_bytes + b"x"), strict=True):
        place.write_bytes(made)
    places[1] = places[1].rename(places[1].with_name("renamed.safetensors"))
    checksums = [fingerprints(str(place.parent))["weights_sample"] for place in places]
    assert checksums[0] == checksums[1]
    assert len(set(checksums)) == 3


def test_a_name_of_the_hub_is_its_snapshot_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert fingerprints("org/model") == {}
    cached = tmp_path / "models--org--model"
    folder(cached / "snapshots/abc")
    (cached / "refs").mkdir()
    (cached / "refs/main").write_text("abc")
    assert fingerprints("org/model") == fingerprints(str(cached / "snapshots/abc")) != {}


def test_options_that_change_the_distribution_are_read_from_the_command(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("{{ a }}")
    argv = ["vllm", "serve", "m", "--quantization", "fp8", "--kv_cache_dtype=fp8", "--chat-template"]
    argv += [str(tmp_path / "t.jinja"), "--port", "8000"]
    given = {name: launched_servers.flag_value(argv, name) for name in launched_servers.model_flags()}
    assert {name: value for name, value in given.items() if value is not None} == {
        "quantization": "fp8",
        "kv-cache-dtype": "fp8",
        "chat-template": content(str(tmp_path / "t.jinja")),
    }
