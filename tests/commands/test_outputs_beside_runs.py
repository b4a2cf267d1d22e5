"""Other tools' outputs, once scored, in one report with runs, compared and verified like them; and what is refused."""

from __future__ import annotations

import importlib
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import harness
from harness.benchmarks import catalog, questions
from harness.benchmarks.prompts import BOXED
from harness.cli.main import cli
from harness.commands import imported_runs
from harness.core.records import Question
from harness.runs import Manifest, RunFolder, grades
from harness.runs import questions as stored_questions
from harness.runs.layout import imported_at
from harness.runs.lock import locked
from tests.budget import examples
from tests.runs import recorded


def command(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)))


def refused(*words: str | Path) -> str:
    """What a command says that does not work."""
    done = command(*words)
    assert done.exit_code != 0
    return done.exception.sentence if isinstance(done.exception, harness.HarnessError) else done.output


def sums(path: Path, right: int, first: int = 0) -> Path:
    """LLMEval's file: 12 questions, 8 replies to each, of which so many are right."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "prompt": f"What is {n} + 1?\n{BOXED}",
            "answer": str(n + 1),
            "gen": [rf"\boxed{{{n + 1 if at < right else 0}}}" for at in range(8)],
        }
        for n in range(first, first + 12)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def asked(question: Question) -> str:
    return question.messages[-1].content


def demo(limit: int = 10) -> Sequence[Question]:
    return questions.build(catalog.load("demo")).questions[:limit]


def run_of_demo(path: Path, *, identity: dict[str, Any] | None = None) -> RunFolder:
    """A run whose every reply is wrong."""
    chosen = demo()
    wrong = (
        recorded.sample(one.question_id, index, r"\boxed{-77}", benchmark="demo", endpoint="http://x")
        for one in chosen
        for index in range(2)
    )
    return recorded.write_run(path, chosen, wrong, planned=2, identity={"model": "m", **(identity or {})})


def file_of_demo(path: Path, *, right: bool = True, limit: int = 10) -> Path:
    """The same questions as another tool asked them, with an instruction behind each. limit: number of questions."""
    rows = [
        {
            "prompt": f"{asked(one)}\n{BOXED}",
            "answer": one.references[0],
            "gen": [rf"\boxed{{{one.references[0] if right else -77}}}"] * 2,
        }
        for one in demo(limit)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


Reply = tuple[str | None, str | None]
"""A reply in a file, and the error beside it."""

REPLIES: tuple[Reply, ...] = (
    (r"\boxed{2}", None),
    (r"\boxed{3}", None),
    ("", None),
    (None, None),
    (None, "timeout"),
    ("", "reset"),
)


def counted_anew(replies: Mapping[str, Sequence[Reply]]) -> dict[str, float]:
    """The numbers of a score by a second count: a reply is missing if it is null, or empty beside an error."""
    present = {
        name: [text for text, error in each if text or (text == "" and not error)] for name, each in replies.items()
    }
    shares = [sum("{2}" in text for text in texts) / len(texts) for texts in present.values() if texts]
    n_replies = sum(map(len, replies.values()))
    return {
        "accuracy": sum(shares) / len(shares),
        "questions": len(replies),
        "samples": (n := sum(map(len, present.values()))),
        "missing": n_replies - n,
    }


@pytest.mark.fuzz
def test_whatever_of_a_file_is_not_graded_is_counted_in_each_output(tmp_path: Path) -> None:
    for number in range(examples(24)):
        chance = random.Random(seed := random.getrandbits(32))
        n_each, path = chance.randint(1, 3), tmp_path / f"{number}.jsonl"
        replies = {f"q{n}": chance.choices(REPLIES, k=n_each) for n in range(chance.randint(1, 5))}
        replies["last"] = [(r"\boxed{2}", None)] * n_each
        rows = [(name, *reply) for name, each in replies.items() for reply in each]
        as_lists = chance.random() < 0.3 and not any(error for _, _, error in rows)
        if as_lists:
            lines = [{"id": name, "answer": "2", "gen": [text for text, _ in each]} for name, each in replies.items()]
        else:
            lines = [{"id": name, "answer": "2", "gen": text, "error": error} for name, text, error in rows]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        right = counted_anew(replies)
        printed = command("score", path, "--json", "--id-key", "id")
        (score,) = json.loads(printed.stdout)
        names = {"questions": "n_questions", "samples": "n_samples", "missing": "n_missing"}
        assert {name: score[field] for name, field in names.items()} == {name: right[name] for name in names}, seed
        assert score["accuracy"]["value"] == pytest.approx(right["accuracy"]), seed
        words = [f"{right['missing']} sample"] if right["missing"] else []
        command("report", path)
        report = (imported_at(path).path / "report.md").read_text()
        stored = imported_at(path).benchmark(str(number)).scores.read_text()
        assert [word for word in words for text in (printed.stdout, stored, report) if word not in text] == [], seed


def test_files_of_the_same_questions_are_compared_under_their_names(tmp_path: Path) -> None:
    base, tuned = sums(tmp_path / "base.jsonl", 2), sums(tmp_path / "tuned.jsonl", 7)
    for file in (base, tuned):
        harness.score(file, workers=1)
    (found,) = harness.compare([base, tuned])
    assert (found.decision.run, found.decision.baseline) == ("tuned.jsonl", "base.jsonl")
    assert found.decision.paired.difference.value == pytest.approx(5 / 8)
    assert (found.decision.verdict, found.decision.paired.n_questions) == ("better", 12)
    assert "60 samples from wrong to correct" in command("compare", base, tuned, "--samples").output
    of_files = harness.report([base, tuned])
    assert [(run.label, score.accuracy.value) for run, _, score in of_files.scores] == [
        ("base.jsonl", 0.25),
        ("tuned.jsonl", 0.875),
    ]
    assert "Paired differences from base.jsonl" in of_files.markdown()
    assert "tuned.jsonl" in command("report", base, tuned, "--out", tmp_path / "page").output
    other = sums(tmp_path / "other.jsonl", 2, first=100)
    harness.score(other, workers=1)
    with pytest.raises(
        harness.UsageError, match=r"base.jsonl contains base; other.jsonl contains other.*`harness score FILE`"
    ):
        harness.compare([base, other])


def test_a_file_of_a_benchmarks_questions_stands_beside_its_runs(tmp_path: Path) -> None:
    run, file = run_of_demo(tmp_path / "run"), file_of_demo(tmp_path / "theirs.jsonl")
    done = command("score", run.path, file, "--benchmark", "demo", "--workers", "1", "--json")
    assert done.exit_code == 0, done.output
    scores = json.loads(done.stdout)
    assert {one["run"]: one["accuracy"]["value"] for one in scores} == {"run": 0.0, "theirs.jsonl": 1.0}
    (found,) = harness.compare([run.path, file])
    assert (found.decision.paired.n_questions, found.decision.paired.difference.value) == (10, 1.0)
    assert found.settings == []
    assert any("made by another tool" in one for one in found.decision.warnings)
    assert not any("settings of the runs differ" in one for one in found.decision.warnings)


def test_a_file_without_references_is_graded_by_those_of_its_benchmark(tmp_path: Path) -> None:
    """As one writes replies by hand, right and wrong ones, to try a grader."""
    first, second, *_ = demo()
    rows = [
        {"question": first.messages[-1].content, "reply": rf"\boxed{{{first.references[0]}}}"},
        {"question": second.messages[-1].content, "reply": r"\boxed{-77}"},
        {"question": first.messages[-1].content, "reply": r"\boxed{-77}"},
    ]
    file = tmp_path / "tries.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = harness.score(file, benchmark="demo", response_key="reply", workers=1)["demo"]
    assert (scored.n_questions, scored.n_samples, scored.n_correct) == (len(demo(99)), 3, 1)
    kept = grades.read(imported_at(file).benchmark("demo"))
    assert [(one.question_id, one.verdict) for one in kept] == [
        (first.question_id, "correct"),
        (first.question_id, "wrong"),
        (second.question_id, "wrong"),
    ]
    with pytest.raises(harness.UsageError, match="has no known column for the reference"):
        harness.score(file, response_key="reply", workers=1)
    with pytest.raises(harness.UsageError, match="has no column 'truth' for the reference"):
        harness.score(file, benchmark="demo", response_key="reply", answer_key="truth", workers=1)


def test_the_questions_of_the_benchmark_that_have_no_row_are_missing(tmp_path: Path) -> None:
    """As in an interrupted run: their samples count as missing, and the complete accuracy has bounds."""
    whole, half = (file_of_demo(tmp_path / f"{limit}.jsonl", limit=limit) for limit in (40, 30))
    complete = harness.score(whole, benchmark="demo", workers=1)["demo"]
    assert (complete.partial, complete.n_missing, complete.n_questions) == (False, 0, 40)
    assert not any("row" in warning for warning in complete.sentences)
    score = harness.score(half, benchmark="demo", workers=1)["demo"]
    assert (score.partial, score.n_missing, score.n_questions, score.n_samples) == (True, 20, 40, 60)
    assert (score.accuracy.value, score.bounds.low, score.bounds.high) == (1.0, 0.75, 1.0)
    missing = "10 of 40 questions of demo have no row in 30.jsonl, and count as missing. If only the remaining"
    assert [warning for warning in score.sentences if warning.startswith(missing)]
    assert (
        "partial: 20 samples are missing; the accuracy of the complete run is between 75.0 and 100.0%"
        in score.sentences
    )
    (stored,) = json.loads(command("score", half, "--benchmark", "demo", "--json").stdout)
    assert (stored["n_missing"], stored["bounds"]["low"]) == (20, 0.75)
    report = harness.report(half).markdown()
    assert "10 of 40 questions of demo have no row in 30.jsonl" in report
    alone = harness.score(half, workers=1)["30"]
    assert (alone.partial, alone.n_questions) == (False, 30), "without a benchmark nothing else is known"


def test_samples_keep_the_numbers_that_the_file_states(tmp_path: Path) -> None:
    """In any order of the rows; a number that two samples of a question have is kept by the first."""
    first, second, third = (asked(one) for one in demo(3))
    rows = [(first, 1), (second, 5), (first, 0), (second, 3), (third, 0), (third, 0), (first, 2)]
    file = tmp_path / "theirs.jsonl"
    lines = [{"question": text, "sample_index": index, "response": "a", "answer": 1} for text, index in rows]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for words, name in ([], "theirs"), (["--benchmark", "demo"], "demo"):
        done = command("score", file, *words)
        assert done.exit_code == 0, done.output
        assert "1 sample could not keep the number given in the file (first at" in " ".join(done.output.split())
        kept = grades.read(imported_at(file).benchmark(name))
        assert [one.sample_index for one in kept] == [0, 1, 2, 3, 5, 0, 1]
    of_second = demo(2)[1].question_id
    assert "theirs.jsonl:2" in command("show", file, f"{of_second}:5").output
    assert "has no sample 4 of question" in refused("show", file, f"{of_second}:4")
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:5]))
    assert "could not keep" not in command("score", file).output


def test_a_file_is_verified_once_its_model_is_named(tmp_path: Path) -> None:
    file, place = file_of_demo(tmp_path / "theirs.jsonl", limit=99), tmp_path / "own.yaml"
    harness.score(file, benchmark="demo", workers=1)
    text = (
        "schema: 1\nsource: {title: t, url: https://x.org, by: authors}\nquestions: {demo: 40}\nscores:\n"
        "  - {model: org/m, benchmark: demo, metric: pass@1, percent: 100, samples: 2, settings: {temperature: 0.6}}\n"
    )
    place.write_text(text)
    with pytest.raises(harness.UsageError, match=r"model: the model that wrote theirs.jsonl is unknown: specify"):
        harness.verify(file, published=place)
    (found,) = harness.verify(file, model="org/m", published=place)
    assert found.standing == "compatible"
    assert found.comparisons[0].differing == {"temperature": ("unknown", 0.6)}
    place.write_text(text.replace("100", "20"))
    assert harness.score(file, benchmark="demo", written_by="org/m", workers=1)["demo"].accuracy.value == 1.0
    verified = command("verify", file, "--published", place)
    assert (verified.exit_code, "temperature: unknown here, 0.6 there" in verified.output) == (1, True)


def test_where_a_tool_kept_no_text_a_question_is_told_by_its_reference(tmp_path: Path) -> None:
    """As sgl-eval writes some sets. A reference that two questions share tells neither."""
    references = Counter(one.references for one in demo(40))
    unique = [one for one in demo(40) if references[one.references] == 1]
    shared = next(one for one in demo(40) if references[one.references] > 1)
    folder = tmp_path / "theirs"
    folder.mkdir()
    for rows, is_known in ((unique, True), ([*unique, shared], False), ([*unique, unique[0]], False)):
        lines = [
            {"id": f"demo-{n}", "problem": "", "expected_answer": one.references[0], "generation": "\\boxed{-77}"}
            for n, one in enumerate(rows)
        ]
        (folder / "output-rs0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        if is_known:
            score = harness.score(folder, benchmark="demo", workers=1)["demo"]
            assert (score.n_samples, score.n_correct) == (len(unique), 0)
            kept = grades.read(imported_at(folder).benchmark("demo"))
            assert {one.question_id for one in kept} == {one.question_id for one in unique}
        else:
            with pytest.raises(harness.UsageError, match="has no text, and its reference does not match exactly"):
                harness.score(folder, benchmark="demo", workers=1)


def class_list(tmp_path: Path, rows: str) -> tuple[Path, Path]:
    """A file of outputs with these rows, and a table of two questions with ids."""
    table, file = tmp_path / "table.csv", tmp_path / "list.csv"
    table.write_text("id,question,answer\n7,How long is it？,3\n8,How wide is it？,4\n", "utf-8")
    file.write_text(rows, "utf-8")
    return file, table


def test_a_file_of_ids_alone_is_matched_by_them_with_a_warning(tmp_path: Path) -> None:
    file, table = class_list(tmp_path, "name,no,response\nA,8,4\nB,7,3\nC,8,3\n")
    (score,) = harness.score(file, benchmark=str(table), id_key="no", workers=1)
    assert (score.n_correct, score.n_samples) == (2, 3)
    assert any("matched to questions only by ID" in warning for warning in score.sentences)
    kept = grades.read(imported_at(file).benchmark("table"))
    assert [(grade.question_id, grade.verdict) for grade in kept] == [
        ("8", "correct"),
        ("8", "wrong"),
        ("7", "correct"),
    ]
    # Wrong twins. The column is not named; a text decides; a text in some rows only; an id is missing or unknown.
    with pytest.raises(harness.UsageError, match=r"has no text, .* If the rows contain question ids .* with `id_key`"):
        harness.score(file, benchmark=str(table), workers=1)
    file, table = class_list(tmp_path, "no,question,response\n8,How long is it？,3\n")
    (score,) = harness.score(file, benchmark=str(table), id_key="no", workers=1)
    assert score.n_correct == 1
    assert not any("only by ID" in warning for warning in score.sentences)
    for rows, message in (
        ("no,question,response\n8,How long is it？,3\n7,,3\n", "has no text"),
        ("no,response\n8,4\n,3\n", "has no text"),
        (
            "no,question,response\n8,How wide is it？,4\n8,How long is it？,4\n",
            "list.csv:3: .* has a different text at",
        ),
        ("no,response\n8,4\n9,3\n", "has no question with the id '9'; it has ids such as '7'"),
        (
            "no,answer,response\n8,3,3\n",
            r"the id '8' has the reference '3', but '4' in .*table.csv: the id may refer to",
        ),
    ):
        file, table = class_list(tmp_path, rows)
        with pytest.raises(harness.UsageError, match=message):
            harness.score(file, benchmark=str(table), id_key="no", workers=1)


def test_unscored_or_changed_outputs_are_refused_with_the_command(tmp_path: Path) -> None:
    base, file = sums(tmp_path / "base.jsonl", 2), sums(tmp_path / "a file.jsonl", 2)
    for words in (("report", file), ("verify", file), ("compare", base, file)):
        assert "has not been scored: run `harness score " in refused(*words)
    for one in (base, file):
        harness.score(one, tool="llmeval", written_by="org/theirs", workers=1)
    os.utime(file)  # a copy has another time
    harness.compare([base, file])
    sums(file, 3)
    for words in (
        ("compare", base, file),
        ("merge", file, "--out", tmp_path / "joined"),
        ("doctor", file),
        ("status", file),
        ("view", file),
        ("compare", base, file, "--samples"),
    ):
        told = refused(*words)
        assert "was changed after it was scored" in told
        assert "a file.jsonl' --from llmeval --written-by org/theirs` again." in " ".join(told.split())
    harness.score(file, workers=1)
    (found,) = harness.compare([base, file])
    assert found.decision.paired.difference.value == pytest.approx(1 / 8)


@pytest.mark.parametrize("last", [(stored_questions, "write"), (Manifest, "save"), (imported_runs, "remove")])
@pytest.mark.parametrize("out", [None, "named"])
def test_an_interrupted_reading_is_repeated_in_any_folder(
    out: str | None, last: tuple[Any, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """last: what a killed process did not come to."""
    file = sums(tmp_path / "base.jsonl", 2)
    folder = imported_at(file) if out is None else RunFolder(tmp_path / out)
    score = partial(harness.score, file, workers=1, **({} if out is None else {"out": folder.path}))
    with monkeypatch.context() as patch:
        patch.setattr(*last, interrupted)
        with pytest.raises(KeyboardInterrupt):
            score()
    if not (is_whole := folder.manifest.is_file()):
        with pytest.raises(harness.HarnessError, match=r"interrupted\. Run the same command again"):
            harness.score(folder.path)
        with locked(folder), pytest.raises(harness.HarnessError, match="is in use by process"):
            score()
    assert is_whole == (last[1] == "remove")
    assert score()["base"].accuracy.value == harness.score(folder.path)["base"].accuracy.value == 0.25
    assert is_whole or not folder.unfinished.exists(), "beside a manifest it means nothing"


def test_samples_without_a_manifest_are_never_replaced(tmp_path: Path) -> None:
    """Only the mark tells the rest of a killed reading from a run whose manifest was lost."""
    file = sums(tmp_path / "base.jsonl", 2)
    harness.score(file, workers=1, out=tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()
    for out in (tmp_path / "run", tmp_path):
        with pytest.raises(harness.HarnessError, match=r"no manifest\.json|neither a run folder nor empty"):
            harness.score(file, workers=1, out=out)
    assert (tmp_path / "run" / "base" / "samples.jsonl").stat().st_size


def test_a_run_that_cannot_be_made_beside_the_file_is_made_elsewhere(tmp_path: Path) -> None:
    file = sums(tmp_path / "base.jsonl", 2)
    imported_at(file).path.write_text("in the way")
    assert "To write the run elsewhere, use --out results/base" in refused("score", file)
    done = command("score", file, "--out", tmp_path / "run", "--workers", "1", "--json")
    assert (done.exit_code, json.loads(done.stdout)[0]["accuracy"]["value"]) == (0, 0.25)
    assert f"base.jsonl was converted to the run folder {tmp_path / 'run'}\n" in done.stderr
    assert "was converted to" not in command("score", tmp_path / "run").output


def test_a_corrected_reference_counts_at_the_next_score(tmp_path: Path) -> None:
    card, file = tmp_path / "q.jsonl", tmp_path / "r.jsonl"
    file.write_text(json.dumps({"question": "What is 1+1?", "response": r"\boxed{2}"}) + "\n")
    for reference, accuracy in (("3", 0.0), ("2", 1.0)):
        card.write_text(json.dumps({"id": "a", "question": "What is 1+1?", "answer": reference}) + "\n")
        assert harness.score(file, benchmark=str(card), workers=1)["q"].accuracy.value == accuracy


def test_a_changed_file_is_reread_unless_verdicts_would_be_lost(tmp_path: Path) -> None:
    file = sums(tmp_path / "base.jsonl", 2)
    samples = imported_at(file).benchmark("base").samples
    harness.score(file, workers=1)
    former = samples.stat()
    assert harness.score(file, workers=1)["base"].accuracy.value == 0.25
    assert samples.stat() == former, "the same file, read by the same options, is not read again"
    assert harness.score(imported_at(file).path)["base"].accuracy.value == 0.25, "the folder is a run"
    assert harness.score(file, workers=1, written_by="org/m")["base"].accuracy.value == 0.25
    assert Manifest.load(imported_at(file)).model == "org/m"
    with locked(imported_at(file)), pytest.raises(harness.HarnessError, match="is in use by process"):
        harness.score(sums(file, 3), workers=1)
    assert imported_at(file).manifest.is_file()
    (imported_at(file).path / "judge" / "M").mkdir(parents=True)  # of a judge that was never reached
    assert harness.score(file, workers=1)["base"].accuracy.value == 0.375
    todo = tmp_path / "todo.jsonl"
    harness.audit(file, samples=2, out=todo)
    todo.write_text(todo.read_text().replace('"verdict":null', '"verdict":"correct"'))
    harness.audit(file, samples=2, verdicts=todo)
    with pytest.raises(
        harness.HarnessError, match=r"base\.jsonl\.scored contains verdicts from a person or judge for an earlier"
    ):
        harness.score(sums(file, 4), workers=1)


def test_two_concurrent_scorings_of_a_file_make_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = sums(tmp_path / "base.jsonl", 2)

    def overtaken(module: str, name: str, meanwhile: Callable[[], object]) -> None:
        """Let something happen before a function of the module is called for the first time."""
        call = getattr(importlib.import_module(module), name)

        def called(*args: Any, **keywords: Any) -> Any:
            monkeypatch.setattr(f"{module}.{name}", call)
            meanwhile()
            return call(*args, **keywords)

        monkeypatch.setattr(f"{module}.{name}", called)

    overtaken("harness.commands.imported_runs", "locked", lambda: harness.score(file, workers=1))
    assert harness.score(file, workers=1)["base"].accuracy.value == 0.25
    assert "96 samples, 0 repeated records" in command("doctor", file).output
    overtaken("harness.scoring.pipeline", "publish", lambda: harness.score(sums(file, 4), workers=1))
    sums(file, 3)
    with pytest.raises(harness.HarnessError, match="was replaced by other outputs"):
        harness.score(file, workers=1)
    assert "50.0" in command("report", file).output, "the score is of the later reading"


def test_of_several_sources_each_has_its_scores(tmp_path: Path) -> None:
    files = [sums(tmp_path / f"{name}.jsonl", 2) for name in "ab"]
    shown = command("score", *files, "--workers", "1")
    assert (shown.exit_code, "a.jsonl" in shown.output, "b.jsonl" in shown.output) == (0, True, True)
    assert "it works with only one file, but 2 sources" in refused("score", *files, "--out", tmp_path / "new")
    bad = tmp_path / "bad.csv"
    bad.write_text("question,response\n1 + 1?,2\n7 + 7?,14\n")
    (tmp_path / "a.csv").write_text("question,answer\n1 + 1?,2\n")
    assert "has the text '7 + 7?', which" in refused(
        "score", bad, "--out", tmp_path / "new", "--benchmark", tmp_path / "a.csv"
    )
    assert not (tmp_path / "new").exists()
    run = run_of_demo(tmp_path / "run")
    with pytest.raises(harness.UsageError, match=r"^also='mathverify': expected 'math-verify' or 'sympy'"):
        harness.score(files[0], also="mathverify")  # type: ignore[arg-type]
    with pytest.raises(harness.UsageError, match=r"^`also_python` requires `also=GRADER`$"):
        harness.score(files[0], also_python="python")
    alone = refused("score", run.path, "--benchmark", "demo")
    assert "is for output files" in alone


@pytest.mark.parametrize("references", [("2", "3"), ("2", "2")])
def test_two_references_of_one_question_are_warned_of(tmp_path: Path, references: tuple[str, str]) -> None:
    (tmp_path / "typed.csv").write_text("question,answer,response\n" + "".join(f"1 + 1?,{r},2\n" for r in references))
    done = command("score", tmp_path / "typed.csv")
    assert done.exit_code == 0
    warned = "typed.csv:3 repeats the question of" in " ".join(done.output.split())
    assert warned == (references == ("2", "3"))


def test_a_file_becomes_a_run_that_takes_verdicts_by_hand(tmp_path: Path) -> None:
    Path("rooms.csv").write_text("id,question,answer\n1,Is it?,yes\n2,Area?,30\n3,Not in the file,7\n")
    Path("class.csv").write_text("name,no,response\nAnn,1,\\boxed{that is so}\nBo,1,no\nAnn,2,30\n")
    options = ("--benchmark", "./rooms.csv", "--id-key", "no")
    printed = command("score", "class.csv", *options).output
    assert "to decide: harness audit class.csv --undecided" in printed
    assert "1 of 3 questions of rooms has no row in class.csv" in " ".join(printed.split())
    assert command("score", "class.csv", *options, "--out", "results/class").exit_code == 0
    beside, run = (next(Path(name).rglob("scores.json")).read_bytes() for name in ("class.csv.scored", "results"))
    assert beside == run
    for path in ("class.csv", "results/class"):
        harness.audit(path, undecided=True, out="todo.jsonl")
        todo = Path("todo.jsonl").read_text()
        assert "that is so" in todo
        Path("todo.jsonl").write_text(todo.replace('"verdict":null', '"verdict":"correct"'))
        harness.audit(path, verdicts="todo.jsonl")
        by_hand = command("score", path, *(options if path == "class.csv" else ())).output
        assert "1 sample judged by hand, 1 of them differently from the grader" in " ".join(by_hand.split())
        assert "class.csv:2" in command("show", path, "--correct").output
        Path("todo.jsonl").unlink()
    Path("class.csv").write_text("name,no,response\nAnn,1,no\n")
    assert "already contains a run" in refused("score", "class.csv", *options, "--out", "results/class")


PRIME = "下面哪个数是质数？请选择一个最合适的答案。"
OPTIONS = {"A": "4", "B": "6", "C": "7", "D": "9"}
SQUARE = "Find the side. The square is below."


@pytest.mark.parametrize(
    ("question", "asks", "is_known"),
    [
        (PRIME, PRIME, True),
        (PRIME, f"{PRIME}\n\n" + "\n".join(f"{letter}) {option}" for letter, option in OPTIONS.items()), True),
        (PRIME, f"{PRIME}不", False),
        (f"{SQUARE}\n[asy] draw((0,0)--(1,1)); [/asy]", SQUARE, True),
        (f"{SQUARE}\n[asy] draw((0,0)--(1,1)); [/asy]", f"{SQUARE}\n[asy] draw(unitcircle); [/asy]", True),
        (f"{SQUARE}\n[asy] draw((0,0)--(1,1)); [/asy]", "Find the side. The circle is below.", False),
        (f"{SQUARE}\n[asy] draw((0,0)--(1,1)); [/asy]", f"{SQUARE} [asy] Is it round?", False),
    ],
)
def test_a_question_is_recognized_without_choices_prompt_or_drawing(question: str, asks: str, is_known: bool) -> None:
    is_choice = question == PRIME
    row = {"id": "1", "question": question, **OPTIONS, "answer": "C" if is_choice else "7"}
    Path("rows.jsonl").write_text(json.dumps(row) + "\n")
    Path("replies.jsonl").write_text(json.dumps({"question": asks, "response": rf"\boxed{{{row['answer']}}}"}) + "\n")
    for prompt in ("boxed_letter_zh", "boxed_letter", "none") if is_choice else ("boxed",):
        Path("card.yaml").write_text(
            "name: own\ntitle: t\nsource: {kind: file, path: rows.jsonl}\n"
            f"columns: {{question: question, answer: answer, id: id}}\nprompt: {prompt}\n"
            + ("kind: choice\nchoices: {options: [A, B, C, D]}\n" if is_choice else "kind: integer\n")
        )
        if is_known:
            (score,) = harness.score("replies.jsonl", benchmark="./card.yaml", workers=1)
            assert score.accuracy.value == 1.0
        else:
            with pytest.raises(harness.UsageError, match=r"has the text '.*', which is not in .*; omit `benchmark`"):
                harness.score("replies.jsonl", benchmark="./card.yaml", workers=1)
