"""Outputs of other tools become questions and samples: recognized or named, repeats understood, damage refused.

For: harness.foreign, harness.foreign.layouts, harness.foreign.question_matching, harness.foreign.verdicts.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from click.testing import CliRunner

import harness
from harness.benchmarks import questions
from harness.benchmarks.card import from_file
from harness.benchmarks.column_names import ANSWER_COLUMNS, ID_COLUMNS, QUESTION_COLUMNS
from harness.benchmarks.sources.tables import Row
from harness.cli.main import cli
from harness.core.errors import UsageError
from harness.core.records import FROM_FILE, Question, Sample
from harness.foreign import formats, outputs, rows
from harness.foreign.verdicts import GivenVerdicts
from harness.runs import RunFolder, grades, read_samples
from harness.runs import questions as run_questions
from harness.runs.layout import imported_at
from harness.testing import FakeServer, Said
from tests.budget import examples
from tests.faults.able import able, sums

Write = Callable[..., Path]
Pairs = list[tuple[Question, Sample]]


def read(*words: Any, **keys: Any) -> list[tuple[Question, Sample]]:
    """All pairs of a file whose sample is not missing."""
    return [(question, sample) for question, sample in outputs.read(*words, **keys) if sample is not None]


def shape(pairs: Pairs) -> list[int]:
    """Samples per question, in the order of first appearance."""
    return list(Counter(question.question_id for question, _ in pairs).values())


def texts(pairs: Pairs) -> list[str | None]:
    return [sample.text for _, sample in pairs]


def check(pairs: Pairs) -> None:
    """Keys are distinct and indices count from 0."""
    keys = [sample.key for _, sample in pairs]
    assert len(set(keys)) == len(keys)
    for question, sample in pairs:
        assert (sample.benchmark, sample.question_id) == (question.benchmark, question.question_id)
    by_question: dict[str, list[int]] = {}
    for _, sample in pairs:
        by_question.setdefault(sample.question_id, []).append(sample.sample_index)
    assert all(indices == list(range(len(indices))) for indices in by_question.values())


def llmeval_row(question: str, answer: Any, gen: Any, **more: Any) -> dict[str, Any]:
    return {"prompt": question, "answer": answer, "gen": gen} | more


def test_llmeval_stores_one_text_or_a_list(write_rows: Write) -> None:
    for gen, n in (("one", 1), (["one"], 1), (["one", "two", "three"], 3)):
        pairs = read(write_rows([llmeval_row("p", 1, gen), llmeval_row("q", 2, gen)], "aime24.jsonl"))
        check(pairs)
        assert (shape(pairs), texts(pairs)[0]) == ([n, n], "one")
        assert (pairs[0][0].benchmark, pairs[0][0].references) == ("aime24", ("1",))


@pytest.mark.parametrize(
    ("ids", "names", "questions"),
    [
        ("1212", True, True),
        ("1212", True, False),  # rows of one id are samples of one question
        ("1234", False, True),  # ids of samples
        ("aaaa", False, True),  # one id for two questions
        ("aba-", False, True),  # a row without
    ],
)
def test_a_column_of_unique_ids_names_questions(write_rows: Write, ids: str, names: bool, questions: bool) -> None:
    rows = [
        {"id": None if id_ == "-" else f"q{id_}", "answer": n, "response": "x"}
        | ({"question": f"{n}?"} if questions else {})
        for id_, n in zip(ids, (1, 2, 1, 2), strict=True)
    ]
    found = [question.question_id for question, _ in read(write_rows(rows))]
    assert (found == [f"q{id_}" for id_ in ids]) is names
    assert names or not {f"q{id_}" for id_ in ids} & {*found}
    assert found[:2] == found[2:], "rows with equal questions are samples of one question"


def replies(questions: str, times: int = 1) -> list[dict[str, Any]]:
    """Rows of LLMEval: each question in turn, so often."""
    return [llmeval_row(question, 1, f"{question}{n}") for n in range(times) for question in questions]


CARD = (Question(benchmark="b", question_id="1", references=("5",), kind="math", row_digest="", prompt_digest=""),)
UNEVEN = [llmeval_row(q, 1, f"{q}{n}") for q, times in (("p", 3), ("q", 3), ("r", 6), ("s", 2)) for n in range(times)]
OWN = [{"task": f"p{n % 2}", "out": [f"a{n}", f"b{n}"], "truth": n % 2} for n in range(4)]
COLUMNS = {"response_key": "out", "answer_key": "truth"}


@pytest.mark.parametrize(
    ("rows", "keys", "samples"),
    [
        (replies("pqr", 4), {}, [4, 4, 4]),
        (sorted(replies("pqr", 4), key=lambda row: str(row["prompt"])), {}, [4, 4, 4]),
        (sorted(replies("pqr", 8), key=lambda row: str(row["prompt"]))[:-3], {}, [8, 8, 5]),
        # Equal rows are samples unless most questions have one.
        (replies("pqrstp"), {}, [1] * 6),
        (UNEVEN, {}, [3, 3, 6, 2]),
        # A benchmark says itself how often it lists a question, here r twice.
        (UNEVEN, {"questions": CARD}, [3, 3, 3, 3, 2]),
        # Equal questions with other references are distinct.
        ([llmeval_row("p", gold, "x") for gold in (15, 27) for _ in range(2)], {}, [2, 2]),
        ([{"question": f"p{n}", "generated_responses": ["a", "b"], "gold_answer": n} for n in range(2)], {}, [2, 2]),
        (OWN, COLUMNS | {"question_key": "task"}, [4, 4]),
        (OWN, COLUMNS, [2, 2, 2, 2]),
        (OWN, COLUMNS | {"id_key": "truth"}, [4, 4]),
    ],
)
def test_rows_become_questions_with_their_samples(
    write_rows: Write, rows: list[dict[str, Any]], keys: dict[str, Any], samples: list[int]
) -> None:
    pairs = read(write_rows(rows), **keys)
    check(pairs)
    assert shape(pairs) == samples


def test_a_tools_own_ids_decide_and_must_agree_on_the_reference(write_rows: Write) -> None:
    rows = [llmeval_row("same", 1, f"{n}", doc_id=n % 2) for n in range(6)]
    assert shape(read(write_rows(rows))) == [3, 3]
    with pytest.raises(UsageError, match="the question '0' has a different reference answer at"):
        read(write_rows([*rows, llmeval_row("same", 2, "x", doc_id=0)]))


TEN = {"gen": "x", "answer": 1}


@pytest.mark.parametrize(
    ("row", "keys", "message"),
    [
        (TEN, {"response_key": "gne"}, r"no column 'gne' for the response; .* Did you mean gen"),
        (
            {"gen": "x", "truth": 1},
            {"response_key": "gen"},
            r"no known column for the reference\. Its .* use `answer_key` to",
        ),
        ({"text": "x", "answer": 1}, {}, r"no known column for the response\. Its columns .*use `response_key` to"),
        (TEN | {"gen": 5}, {}, "the column 'gen' must be a string or a list of strings, found 5"),
        (TEN | {"gen": {"usage": 3}}, {}, "must be a string or a list of strings, found {'usage': 3}"),
        (TEN | {"gen": []}, {}, "the column 'gen' is an empty list"),
        (
            TEN | {"gen": ["x", "y"], "finish_reason": ["stop"]},
            {},
            "the column 'finish_reason' has 1 entry, but the column 'gen' has 2 responses; specify one reason per",
        ),
        (TEN | {"answer": None}, {}, "has no reference answer; expected it in answer"),
        (TEN, {"format": "limo"}, "is not a valid row for LIMO: 'generated_responses' is missing"),
        (TEN, {"format": "lim"}, r"tool='lim': unknown format; expected one of .* Did you mean limo"),
        (TEN, {"format": "limo", "answer_key": "answer"}, "omit the column names"),
        (TEN, {"format": "sglang"}, "contains no reference answers; .* benchmark"),
    ],
)
def test_what_does_not_fit_is_one_sentence(write_rows: Write, row: Any, keys: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(write_rows([row]), **keys)


def test_a_stored_null_is_missing_unless_the_tool_says_how_the_reply_ended(write_rows: Write) -> None:
    null = llmeval_row("p", 1, [None, "x"])
    assert texts(read(write_rows([null]))) == ["x"]
    assert texts(read(write_rows([null | {"finish_reason": ["length", "stop"]}]))) == [None, "x"]


def test_what_models_write_is_never_refused_for_its_text(tmp_path: Path) -> None:
    row = '{"prompt": "p", "answer": 1, "gen": "\\ud800' + "x" * 3_000_000 + '", "logprob": NaN}'
    path = tmp_path / "long.jsonl"
    path.write_text(row, "utf-8")
    ((_, sample),) = read(path)
    assert len(sample.text or "") == 3_000_001
    path.write_text('{"prompt": "p", "answer": NaN, "gen": "x"}', "utf-8")
    with pytest.raises(UsageError, match="the reference answer must be a number, found nan"):
        read(path)


def test_lm_eval_sample_logs_are_read_before_their_filters(write_rows: Write) -> None:
    rows = [
        {
            "doc_id": n,
            "doc": {"question": f"p{n}", "answer": "work #### 5"},
            "target": "work #### 5",
            "arguments": {},
            "resps": [["first", "second"]],
            "filtered_resps": ["5"],
            "filter": name,
            "exact_match": 1.0,
        }
        for name in ("strict-match", "flexible-extract")
        for n in range(2)
    ]
    pairs = read(write_rows(rows, "samples_gsm8k.jsonl"))
    check(pairs)
    assert shape(pairs) == [2, 2]
    assert texts(pairs)[:2] == ["first", "second"]
    assert pairs[0][0].references == ("5",)


def inspect_log(path: Path, samples: list[dict[str, Any]]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success"}))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return path


def inspect_sample(number: int, epoch: int, **output: Any) -> dict[str, Any]:
    content = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": f"answer {number}.{epoch}"}]
    choice = {"message": {"role": "assistant", "content": content}, "stop_reason": "max_tokens"}
    return {
        "id": number,
        "epoch": epoch,
        "input": [{"role": "user", "content": f"p{number}"}],
        "target": [str(number)],
        "metadata": {"level": 5, "cluster": "all", "deep": {"x": 1}},
        "output": {"model": "m", "choices": [choice], "usage": {"input_tokens": 3, "output_tokens": 9}} | output,
    }


def test_inspect_logs_give_epochs_as_samples(tmp_path: Path) -> None:
    pairs = read(inspect_log(tmp_path / "log.eval", [inspect_sample(n, e) for n in (1, 2) for e in (1, 2, 3)]))
    check(pairs)
    assert shape(pairs) == [3, 3]
    question, sample = pairs[0]
    assert (question.references, question.last_turn) == (("1",), "p1")
    assert question.metadata == {"level": 5, "cluster (column)": "all"}
    assert (sample.text, sample.reasoning, sample.truncated) == ("answer 1.1", "hm", True)
    assert sample.usage.completion_tokens == 9


def test_a_damaged_inspect_log_is_one_sentence(tmp_path: Path) -> None:
    whole = inspect_log(tmp_path / "log.eval", [inspect_sample(1, 1)]).read_bytes()
    (tmp_path / "cut.eval").write_bytes(whole[:-30])
    inspect_log(tmp_path / "empty.eval", [])
    inspect_log(tmp_path / "odd.eval", [{"id": 1, "epoch": 1}])
    for name, message in (
        ("cut", "is damaged or not an Inspect log"),
        ("empty", "contains no samples; the log may be incomplete"),
        ("absent", "cannot read .*No such file"),
        ("odd", "is not a valid row for Inspect: 'output' is missing"),
    ):
        with pytest.raises(UsageError, match=message):
            read(tmp_path / f"{name}.eval")


def asked(write_rows: Write) -> list[Question]:
    rows = [{"problem": f"What is {n} + {n}?", "answer": 2 * n, "id": f"sum-{n}"} for n in range(12)]
    return questions.build(from_file(str(write_rows(rows, "sums.jsonl")), id_key="id")).questions


def batch_row(custom_id: str, text: str = "4", **more: Any) -> dict[str, Any]:
    response = {"status_code": 200, "body": Said(text).whole()}
    return {"id": "b", "custom_id": custom_id, "response": response, "error": None} | more


def test_openai_batch_output_is_joined_to_the_questions_by_custom_id(write_rows: Write) -> None:
    rows = [batch_row("sum-1"), batch_row("sum-11"), batch_row("sum-2-0", "a"), batch_row("sum-2-1", "b")]
    failed = batch_row("sum-3", response=None, error={"code": "batch_expired"})
    pairs = read(write_rows([*rows, failed]), questions=asked(write_rows))
    check(pairs)
    assert [q.question_id for q, _ in pairs] == ["sum-1", "sum-11", "sum-2", "sum-2"]
    assert pairs[0][0].references == ("2",)
    assert pairs[0][1].usage.completion_tokens == 3
    with pytest.raises(UsageError, match=r"the custom_id 'sum-99' is not a question id\. Did you mean"):
        read(write_rows([batch_row("sum-99")]), questions=asked(write_rows))
    with pytest.raises(UsageError, match="contains no reference answers; specify its benchmark"):
        read(write_rows([batch_row("sum-1")]))


def test_sglangs_state_dump_is_matched_by_the_questions_text(write_rows: Write, tmp_path: Path) -> None:
    known = asked(write_rows)
    dump = tmp_path / "tmp_output_srt.txt"
    states = [
        f"<|im_start|>user\nWhat is {n} + {n}?\nPlease reason step by step, and put your final answer within "
        f"\boxed{{}}.<|im_end|>\n<|im_start|>assistant\nIt is \\boxed{{{2 * n}}}."
        for n in (1, 1, 11, 11)
    ]
    rule = "=" * 40
    dump.write_text("".join(f"{rule} {i} {rule}\n{s}\n{'=' * 80}\n\n" for i, s in enumerate(states)), "utf-8")
    bare = questions.build(from_file(str(tmp_path / "sums.jsonl"), id_key="id"), prompt="none").questions
    pairs = read(dump, questions=bare)
    check(pairs)
    assert [q.question_id for q, _ in pairs] == ["sum-1", "sum-1", "sum-11", "sum-11"]
    assert all((s.text or "").endswith(f"It is \\boxed{{{q.references[0]}}}.") for q, s in pairs)
    assert not any("reason step by step" in (s.text or "") for _, s in pairs)
    assert [q.question_id for q, _ in read(dump, questions=known)] == [q.question_id for q, _ in pairs]
    with pytest.raises(UsageError, match=":0: this state does not contain the text of any question"):
        read(dump, questions=known[5:10])


@pytest.mark.parametrize(
    ("file", "per_question"), [("qwen_math_cot.jsonl", 8), ("nemo_math.jsonl", 3), ("deepscaler_aime24.jsonl", None)]
)
def test_real_outputs_come_out_with_their_samples(shared_data: Path, file: str, per_question: int | None) -> None:
    path = shared_data / "outputs" / file
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    pairs = read(path, response_key="response", answer_key="gold", question_key="question")
    check(pairs)
    assert texts(pairs) == [row["response"] for row in rows]
    if per_question:
        assert Counter(shape(pairs)).most_common(1)[0][0] == per_question


def test_a_column_that_is_named_for_one_use_is_guessed_for_no_other() -> None:
    usual = {*formats.RESPONSE_COLUMNS, *formats.REASONING_COLUMNS, *formats.GOLD_COLUMNS, *ANSWER_COLUMNS}
    for column in sorted({*usual, *QUESTION_COLUMNS, *ID_COLUMNS, "finish_reason", "sample_index", "model"}):
        for use in ("response", "answer", "question", "id"):
            # The response, which each row needs, is named, too, so that only this one can be guessed.
            named = {"response_key": "r", f"{use}_key": column}
            first = Row("t.csv:2", {"r": "so 5", "a": "6", "q": "p", "i": "1", column: "7"})
            (row,) = rows.read([first], outputs.layout_of(first, outputs.Keys(**named), in_benchmark=True))
            (reply,) = row.responses
            uses = {
                "response": reply.text,
                "answer": row.answer,
                "question": row.question,
                "id": row.question_id,
                "reasoning": reply.reasoning,
                "finish": reply.finish_reason,
            }
            assert [name for name, value in uses.items() if value == "7"] == [use], column


def test_one_question_with_two_references_is_named_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "typed.jsonl"
    rows = [{"id": str(n), "problem": "p", "answer": answer, "gen": "1"} for n, answer in enumerate("1213")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (doubt,) = outputs.read(path).doubts
    assert doubt.startswith(f"{path}:2 repeats the question of {path}:1 with a different reference answer")
    assert outputs.read(path, id_key="id").doubts == ()
    path.write_text("".join(json.dumps({**row, "answer": "1"}) + "\n" for row in rows))
    assert outputs.read(path).doubts == ()


@pytest.mark.wide
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the highest memory of a process is read from /proc")
def test_a_large_file_is_scored_in_little_memory(tmp_path: Path) -> None:
    path, text = tmp_path / "large.jsonl", "we think and think. " * 15_000
    with path.open("w") as file:
        for n in range(400):
            file.write(json.dumps({"id": n % 50, "response": f"{text}\\boxed{{{n % 50}}}", "answer": n % 50}) + "\n")
    assert path.stat().st_size > 100_000_000
    words = [sys.executable, "-c", _MEASURED, str(path)]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, cwd=tmp_path)
    resident, accuracy = done.stdout.split()
    assert float(accuracy) == 1.0
    assert int(resident) < 150_000  # KiB; the file alone has 120,000


_MEASURED = """
import re, sys
import harness
(score,) = harness.score(sys.argv[1], response_key="response", answer_key="answer", id_key="id", workers=1)
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1], score.accuracy.value)
"""


def test_a_column_of_replies_is_no_reference() -> None:
    replies = Row("t.csv:2", {"response": "5"})
    (row,) = rows.read([replies], outputs.layout_of(replies, outputs.Keys(), in_benchmark=True))
    assert (row.responses[0].text, row.states_reference) == ("5", False)
    for cells, message in (
        ({"no": "1", "answer": "5"}, r"`response_key=answer` if answer contains the replies"),
        ({"no": "1", "name": "5"}, r"column for the response, or its verdict column with `verdict_key`$"),
    ):
        with pytest.raises(UsageError, match=message):
            outputs.layout_of(Row("t.csv:2", cells), outputs.Keys(), in_benchmark=True)
    with pytest.raises(UsageError, match="no known column for the reference"):  # else each reply is its own reference
        outputs.layout_of(Row("t.csv:2", {"question": "1", "response": "5"}), outputs.Keys())


@pytest.mark.parametrize(
    ("row", "format"),
    [
        ({"prompt": "p", "gen": "x", "answer": 1}, "llmeval"),
        ({"question": "p", "generated_responses": ["x"], "gold_answer": 1}, "limo"),
        ({"doc_id": 0, "doc": {}, "target": "1", "resps": [["x"]]}, "lm_eval"),
        ({"custom_id": "a", "response": {"body": {}}}, "openai_batch"),
        ({"custom_id": "a", "response": "a text", "answer": 1}, "columns"),
        ({"question": "p", "response": "x", "answer": 1}, "columns"),
    ],
)
def test_each_tool_is_recognized_by_its_columns(row: dict[str, Any], format: str) -> None:
    assert formats.recognize(Row("x", row)) == format


# -- layouts of NeMo-Skills, OpenCompass and EvalScope -----------------------------------------------------------------


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def nemo(folder: Path, *numbers: int) -> Path:
    folder.mkdir()
    for number in numbers:
        rows = [
            {
                "problem": f"{n}+1?",
                "expected_answer": str(n + 1),
                "generation": rf"rs{number}: \boxed{{{n + 1}}}",
                "num_generated_tokens": 7,
            }
            for n in range(2)
        ]
        (folder / f"output-rs{number}.jsonl").write_text(lines(*rows))
    return folder


LOST = "1 sample in the file is null or failed and counts as missing, not wrong"


def keys(read: outputs.Outputs) -> dict[tuple[str, int], str | None]:
    return {(question.messages[-1].content, sample.sample_index): sample.text for question, sample in read if sample}


def test_nemo_skills_files_are_the_samples_by_their_number(tmp_path: Path) -> None:
    folder = nemo(tmp_path / "aime24", 0, 2, 10)
    (folder / "metrics.json").write_text("{}")
    texts = keys(outputs.read(folder, format="nemo_skills"))
    assert set(texts) == {(f"{n}+1?", number) for n in range(2) for number in (0, 2, 10)}
    assert texts["1+1?", 10] == r"rs10: \boxed{2}"
    assert keys(outputs.read(folder / "output-rs2.jsonl")) == {key: text for key, text in texts.items() if key[1] == 2}
    score = harness.score(folder, tool="nemo_skills", workers=1)["aime24"]
    assert (score.n_correct, score.n_questions, score.mean_completion_tokens) == (6, 2, 7)


def test_opencompass_predictions(tmp_path: Path) -> None:
    prompt = [{"role": "SYSTEM", "prompt": "s"}, {"role": "HUMAN", "prompt": "1+1?"}]
    rows = {
        "0": {"origin_prompt": prompt, "prediction": r"\boxed{2}", "gold": "2"},
        "1": {"origin_prompt": "2+1?", "prediction": [r"\boxed{3}", r"\boxed{4}"], "gold": 3},
    }
    (tmp_path / "sums.json").write_text(json.dumps(rows))
    texts = keys(outputs.read(tmp_path / "sums.json", format="opencompass"))
    assert texts == {("1+1?", 0): r"\boxed{2}", ("2+1?", 0): r"\boxed{3}", ("2+1?", 1): r"\boxed{4}"}
    assert keys(outputs.read(tmp_path / "sums.json")) == texts  # recognized


@pytest.mark.parametrize("newer", [True, False])
def test_evalscope_reviews_count_once_and_a_null_is_missing(tmp_path: Path, newer: bool) -> None:
    def review(index: int, group: int, text: str | None) -> dict[str, Any]:
        score = {"value": {"acc": 1.0}, "extracted_prediction": "2", "prediction": text}
        inner = {"score": score, "sample_id": index, "group_id": group}
        asked = f"{group}+1?"
        prompt = {"messages": [{"role": "user", "content": asked}]} if newer else {"input": f"**User**: \n{asked}"}
        return {"index": index, "target": str(group + 1), "sample_score": inner} | prompt

    rows = [review(0, 1, "a"), review(1, 1, "b"), review(2, 2, "c"), review(0, 1, "a"), review(3, 2, None)]
    path = tmp_path / "reviews.jsonl"
    path.write_text(lines(*rows))
    read = outputs.read(path)
    assert keys(read) == {("1+1?", 0): "a", ("1+1?", 1): "b", ("2+1?", 0): "c"}
    assert read.notes == (LOST, "1 row in the file repeats an earlier row; only the first one is used")
    path.write_text(lines(review(3, 2, None)))
    with pytest.raises(UsageError, match="contains no finished sample"):
        outputs.read(path)


def test_an_unfinished_file_of_nemo_skills_is_read_and_told(tmp_path: Path) -> None:
    folder = nemo(tmp_path / "aime24", 0, 1, 2)
    rows = [json.loads(row) for row in (folder / "output-rs1.jsonl").read_text().splitlines()]
    unfinished = lines(*({**rows[n], "_async_position": n} for n in (1, 1)))
    (folder / "output-rs1.jsonl").unlink()
    for number in (1, 2):  # of number 2, the finished file counts
        (folder / f"output-rs{number}.jsonl-async").write_text(unfinished)
    read = outputs.read(folder)
    assert sorted(keys(read)) == [("0+1?", 0), ("0+1?", 2), ("1+1?", 0), ("1+1?", 1), ("1+1?", 2)]
    assert read.notes == ("NeMo-Skills has not finished output-rs1.jsonl-async: samples are missing",)


def test_a_part_of_opencompass_predictions_names_the_others(tmp_path: Path) -> None:
    for name in ("sums_0", "sums_1", "other_0"):
        row = {"origin_prompt": "1+1?", "prediction": "2", "gold": "2"}
        (tmp_path / f"{name}.json").write_text(json.dumps({"0": row}))
    assert outputs.read(tmp_path / "sums_1.json").notes == (
        "the data set has 2 parts (sums_0.json, sums_1.json), but only sums_1.json is read",
    )
    assert outputs.read(tmp_path / "other_0.json").notes == ()


LIMO = '{"question": "1+1?", "generated_responses": ["2"]'
NO_REFERENCE = "r.jsonl:1 has no reference answer; expected it in gold_answer or gold or answer or "


@pytest.mark.parametrize(
    ("name", "content", "format", "sentence"),
    [
        (
            *("output-rs0.jsonl", '{"problem": "x"}\n', None),
            "not a valid row for NeMo-Skills: 'generation' is missing; expected generation, expected_answer, problem",
        ),
        ("p.json", "[1]", "opencompass", "expected an object that maps each index to a prediction"),
        ("p.json", '{"0": {"prediction": "x"}}', "opencompass", "'gold' is missing; expected prediction, gold"),
        (
            *("r.jsonl", '{"index": 1, "target": "2", "sample_score": 5}\n', None),
            "no known column for the response. Its columns are index, target, sample_score",
        ),
        ("r.jsonl", LIMO + "}\n", None, NO_REFERENCE),
        ("r.jsonl", LIMO + ', "gold": null}\n', None, NO_REFERENCE),
        (
            *("tmp_output_x.txt", "=" * 40 + " 0 " + "=" * 40 + "\n1+1?\n", None),
            "is in the format sglang, which contains no reference answers; specify its benchmark",
        ),
        ("empty/x", "", "nemo_skills", "contains no NeMo-Skills output"),
        ("empty/x", "", "llmeval", "is a folder; expected an output file"),
    ],
)
def test_another_file_is_one_sentence(
    tmp_path: Path, name: str, content: str, format: outputs.Format | None, sentence: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / name).write_text(content)
    (tmp_path / "empty/x").unlink(missing_ok=True)
    with pytest.raises(UsageError, match=re.escape(sentence)) as refused:
        outputs.read(tmp_path / name.removesuffix("/x"), format=format)
    assert "\n" not in refused.value.sentence


SCORED = {"index": 0, "target": "2", "input": "1+1?"}
ROWS: dict[str, Callable[[Any], Any]] = {
    "evalscope": lambda reply: {**SCORED, "sample_score": {"score": {"prediction": reply}}},
    "opencompass": lambda reply: {"0": {"origin_prompt": "1+1?", "prediction": reply, "gold": "2"}},
    "nemo_skills": lambda reply: {"problem": "1+1?", "expected_answer": "2", "generation": reply},
    "llmeval": lambda reply: {"prompt": "1+1?", "gen": reply, "answer": "2"},
    "limo": lambda reply: {"question": "1+1?", "generated_responses": reply, "gold_answer": "2"},
    "lm_eval": lambda reply: {"doc_id": 0, "doc": {"question": "1+1?"}, "resps": reply, "target": "2"},
}


@pytest.mark.parametrize("format", ROWS)
def test_a_null_reply_is_missing_and_any_other_value_than_texts_is_refused(tmp_path: Path, format: Any) -> None:
    path = tmp_path / ("output-rs0.jsonl" if format == "nemo_skills" else "rows.jsonl")

    def read(reply: Any) -> outputs.Outputs:
        path.write_text(json.dumps(ROWS[format](reply)))
        return outputs.read(path, format=format)

    for reply in ("2", ["2"], ["2", None], [None, "2"]):
        assert list(keys(read(reply)).values()) == ["2"], reply
    assert read(["2", None]).notes == (LOST,)
    for reply in (None, [None]):
        with pytest.raises(UsageError, match="contains no finished sample"):
            read(reply)
    for reply in (5, {"usage": 3}, ["2", 5]):
        with pytest.raises(UsageError, match=r"\.jsonl.*must be a string or a list of strings, found"):
            read(reply)


# -- resuming unfinished files -----------------------------------------------------------------------------------------


def run(folder: Path, file: Path, n_each: int, url: str) -> Sequence[str]:
    """The warnings of a run that begins with the file."""
    options: Any = {"base_url": url, "canary": False}
    return harness.run(data=str(folder / "sums.jsonl"), out=file, samples=n_each, **options).warnings


def posts(server: FakeServer) -> int:
    return sum(request.method == "POST" for request in server.requests)


@pytest.mark.fuzz
def test_the_replies_of_the_file_are_kept_and_only_the_rest_is_asked(tmp_path: Path) -> None:
    sums(tmp_path, 3)
    for number in range(examples(40)):
        chance = random.Random(seed := random.getrandbits(32))
        n_each, file = chance.randint(1, 3), tmp_path / f"half-{number}.jsonl"
        rows = [
            {"prompt": f"What is {n} + 1?", "answer": str(n + 1), "gen": [chance.choice([f"so {n + 1}", "", None])]}
            for n in (*chance.choices(range(4), k=chance.randint(1, 6)), 0)
        ]
        rows[-1]["gen"] = ["so 1"]
        lines = [json.dumps(row) for row in rows]
        torn = lines[0][: chance.randrange(len(lines[0]))] if chance.random() < 0.5 else ""
        file.write_text("\n".join([*lines, torn]))
        with_text = Counter(row["prompt"] for row in rows if row["gen"][0])
        taken = sum(min(n_each, with_text[f"What is {n} + 1?"]) for n in range(3))
        with FakeServer(able(1.0)) as server:
            first, again = (run(tmp_path, file, n_each, server.base_url) for _ in range(2))
            assert posts(server) == 3 * n_each - taken, seed
        samples = [*read_samples(RunFolder(Path(f"{file}.run")).benchmark("sums"))]
        assert len({sample.key for sample in samples}) == len(samples) == 3 * n_each, seed
        assert sum(sample.endpoint == FROM_FILE + file.name for sample in samples) == taken, seed
        (said,) = [warning for warning in first if "were added to this run" in warning]
        assert "were added to this run" not in "".join(again), seed
        empty, other = sum(not row["gen"][0] for row in rows), with_text.total() - taken
        assert said.startswith(f"{taken} sample"), seed
        assert (f"{empty} empty" in said, f"{other} ignored" in said) == (empty > 0, other > 0), (seed, said)


def test_a_file_of_other_questions_is_no_beginning(tmp_path: Path) -> None:
    sums(tmp_path, 3)
    file = tmp_path / "other.jsonl"
    file.write_text(json.dumps({"prompt": "Who?", "answer": "1", "gen": ["1"]}) + "\n")
    with FakeServer(able(1.0)) as server:
        with pytest.raises(UsageError, match=r"other.jsonl contains no replies to this run's questions"):
            run(tmp_path, file, 1, server.base_url)
        assert posts(server) == 0
    assert not Path(f"{file}.run").exists()


# -- verdicts of other tools -------------------------------------------------------------------------------------------


Verdicts = Mapping[str, Sequence[float | None]]
"""Task → the share of each attempt that is right; None: no verdict."""

TASKS: Verdicts = {"a": [1, 0, 1], "b": [0, 0], "c": [1, None], "7": [1, 1, 0]}
ONCE: Verdicts = {"a": [1], "b": [0], "c": [None], "d": [1], "e": [0], "f": [None]}
OTHER: Verdicts = {name: [1 - (each[0] or 0)] for name, each in {**TASKS, **ONCE}.items()}


def rows_of(verdicts: Verdicts) -> list[dict[str, Any]]:
    return [
        {"task": name, "try": n, "ok": share, "error": "lost" if share is None else None, "completion_tokens": 5}
        for name, each in verdicts.items()
        for n, share in enumerate(each)
    ]


def jsonl(path: Path, lines: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def whole(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1))
    return path


def table(path: Path, verdicts: Verdicts) -> Path:
    words = {1: "resolved", 0: "Unresolved", None: ""}
    (file := io.StringIO()).write("task,try,ok\n")
    csv.writer(file).writerows([row["task"], row["try"], words[row["ok"]]] for row in rows_of(verdicts))
    path.write_text(file.getvalue())
    return path


def swe_bench(path: Path, verdicts: Verdicts) -> Path:
    names = {1: ["resolved_ids"], 0: ["unresolved_ids", "empty_patch_ids"], None: ["error_ids", "incomplete_ids"]}
    lists = dict[str, list[str]]()
    for number, (task, (share,)) in enumerate(verdicts.items()):
        lists.setdefault(names[share][number // 3 % len(names[share])], []).append(task)
    return whole(path, {**lists, "total_instances": len(verdicts), "schema_version": 2})


def tau2_bench(path: Path, verdicts: Verdicts) -> Path:
    each = [
        {
            "task_id": row["task"],
            "trial": row["try"],
            "duration": 2.5,
            "reward_info": {"reward": float(row["ok"] or 0)},
            "termination_reason": "user_stop" if row["ok"] is not None else "infrastructure_error",
        }
        for row in reversed(rows_of(verdicts))
    ]
    return whole(path, {"info": {}, "tasks": [{}], "simulations": each})


def harbor(path: Path, verdicts: Verdicts) -> Path:
    for row in rows_of(verdicts):
        (trial := path / f"{row['task']}__{row['try']}").mkdir(parents=True)
        judged = row["ok"] is not None
        result = {
            "task_name": row["task"],
            "agent_result": {"n_input_tokens": 9, "n_output_tokens": 5, "cost_usd": 0.1},
            "verifier_result": {"rewards": {"reward": float(row["ok"])}} if judged else None,
            "exception_info": {"exception_type": "AgentTimeoutError"} if row["ok"] != 1 else None,
        }
        whole(trial / "result.json", result)
    whole(path / "result.json", {"n_total_trials": len(rows_of(verdicts))})
    return path


def inspect(path: Path, verdicts: Verdicts) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for row in rows_of(verdicts):
            text = {"choices": [{"message": {"role": "assistant", "content": "hm"}}]}
            scores = {} if row["ok"] is None else {"choice": {"value": "C" if row["ok"] else "I"}, "f1": {"value": 0.5}}
            sample = {"id": row["task"], "epoch": row["try"] + 1, "input": "?", "target": "A", "output": text}
            name = f"samples/{row['task']}_epoch_{row['try'] + 1}.json"
            archive.writestr(name, json.dumps({**sample, "scores": scores, "error": row["error"]}))
    return path


def lm_eval(path: Path, verdicts: Verdicts) -> Path:
    tasks = {name: each[0] for name, each in verdicts.items()}
    kinds = (("strict", lambda _: 0.0), ("flexible", lambda share: share))
    return jsonl(
        path,
        [
            {"doc_id": name, "doc": {}, "target": "#", "resps": [["x"]], "filter": kind, "exact_match": of(share)}
            for kind, of in kinds
            for name, share in tasks.items()
        ],
    )


NAMED = {"id_key": "task", "sample_key": "try", "verdict_key": "ok"}
Form = tuple[str, Callable[[Path, Verdicts], Path], Mapping[str, str], Verdicts]
FORMS: list[Form] = [
    ("t.jsonl", lambda path, of: jsonl(path, rows_of(of)), NAMED, TASKS),
    ("t.csv", table, NAMED, TASKS),
    (
        "lists.jsonl",
        lambda path, of: jsonl(path, [{"id": k, "ok": v} for k, v in of.items()]),
        {"verdict_key": "ok"},
        TASKS,
    ),
    (
        "list.json",
        lambda path, of: whole(path, [{"id": k, "ok": v[0]} for k, v in of.items()]),
        {"verdict_key": "ok"},
        ONCE,
    ),
    ("ids.json", lambda path, of: whole(path, {k: v[0] and bool(v[0]) for k, v in of.items()}), {}, ONCE),
    ("report.json", swe_bench, {}, ONCE),
    ("results.json", tau2_bench, {}, TASKS),
    ("job", harbor, {}, TASKS),
    ("log.eval", inspect, {"verdict_key": "choice"}, TASKS),
    ("samples_x.jsonl", lm_eval, {"verdict_key": "exact_match,flexible"}, {"a": [1], "b": [0], "c": [0.25]}),
]


def accuracy(verdicts: Verdicts, *, wrong: bool = False) -> float:
    """The mean over tasks of the mean over attempts, by hand."""
    counted = [[s or 0 for s in each if wrong or s is not None] for each in verdicts.values()]
    return fmean(fmean(shares) for shares in counted if shares)


@pytest.mark.parametrize(("name", "write", "options", "verdicts"), FORMS, ids=[form[0] for form in FORMS])
def test_each_form_gives_its_own_numbers(
    tmp_path: Path, name: str, write: Callable[..., Path], options: Mapping[str, Any], verdicts: Verdicts
) -> None:
    file = write(tmp_path / name, verdicts)
    lost = sum(share is None for each in verdicts.values() for share in each)
    for errors in ("missing", "wrong", None):
        wrong = errors == "wrong" or (errors is None and write in (swe_bench, harbor))
        for fresh in (False, True):
            given = {"errors": errors, "fresh": fresh} if errors else {"fresh": fresh}
            (score,) = harness.score(file, workers=1, **options, **given)
            assert score.accuracy is not None
            assert score.accuracy.value == pytest.approx(accuracy(verdicts, wrong=wrong))
            assert (score.n_missing, score.graders, score.maj_at) == (0 if wrong else lost, ("given",), {})
    folder = imported_at(file).benchmark(score.benchmark)
    assert {grade.grader for grade in grades.read(folder)} == {"given"}
    assert {each.question_id for each in run_questions.read(folder)} == {*verdicts}
    (elsewhere := tmp_path / "other").mkdir()
    other = write(elsewhere / name, {task: OTHER[task] for task in verdicts})
    harness.score(other, workers=1, **options)
    (found,) = harness.compare([file, other])
    counted = {task: [s or 0 for s in each if s is not None or wrong] for task, each in verdicts.items()}
    apart = [fmean(OTHER[task]) - fmean(each) for task, each in counted.items() if each]
    assert found.decision.paired.difference.value == pytest.approx(fmean(apart))


def said(*words: str | Path) -> tuple[int, str]:
    """(exit code, what a command prints)."""
    done = CliRunner().invoke(cli, list(map(str, words)))
    refusal = str(done.exception) if done.exception and not isinstance(done.exception, SystemExit) else ""
    return int(bool(done.exit_code or refusal)), done.output + refusal


def test_what_needs_a_reply_says_that_there_is_none(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "t.jsonl", rows_of(TASKS))
    words = ["--id-key", "task", "--sample-key", "try", "--verdict-key", "ok"]
    code, table = said("score", file, *words)
    assert (code, "`--errors wrong` counts them as wrong" in " ".join(table.split())) == (0, True)
    for command, failed, told in (
        (["show", file, "a:0"], 0, "its source file contains only the verdict, not the reply"),
        (["show", file, "a:1"], 0, "the verdict, a score of 0, was given in the file; nothing was graded"),
        (["score", file, *words, "--also", "math-verify"], 1, "the file already contains verdicts"),
        (["score", file, *words, "--judge", "m@http://127.0.0.1:9,scope=all"], 1, "the file already contains verdicts"),
        (["score", file, *words, "--benchmark", "demo"], 1, "FILE contains verdicts"),
        (["export", file, "--to", "llmeval", "--out", tmp_path / "x"], 1, "not the reply"),
        (["export", file, "--to", "alpaca", "--out", tmp_path / "y"], 1, "without a reply"),
        (["audit", file, "--out", tmp_path / "z"], 1, "not the reply"),
        (["export", file, "--to", "csv", "--out", tmp_path / "c"], 0, "t.csv: 9"),
        (["plan", file, "--detect", "20"], 0, "samples per question in each of two runs"),
        (["report", file, "--out", tmp_path / "r.html"], 0, "the verdicts come from the file; nothing was graded here"),
        (["status", file], 0, "9/12 samples"),
        (["verify", file, "--model", "m"], 1, "no score for m on t"),
    ):
        code, text = said(*command)
        assert (code, told in " ".join(text.split())) == (failed, True), (command, text)


IDS = [f"t{n}" for n in range(6)]
RIGHT = {name: n < 2 for n, name in enumerate(IDS)}
"""Task → its verdict, two of six of which are right."""
STATED = [{"id": name, "ok": right} for name, right in RIGHT.items()]
SHAPES: dict[str, tuple[Any, Mapping[str, str], str]] = {
    "lists.json": ({"resolved": IDS[:2], "unresolved": IDS[2:5], "no_generation": IDS[5:]}, {}, ""),
    "superset.json": ({"generated": IDS[:5], "resolved": IDS[:2], "no_generation": IDS[5:]}, {}, ""),
    "passed.json": ({"passed": IDS[:2], "failed": IDS[2:]}, {}, ""),
    "tries.json": ({name: [right, right] for name, right in RIGHT.items()}, {}, ""),
    "numbers.json": ({name: int(right) for name, right in RIGHT.items()}, {}, ""),
    "first.jsonl": ([{"accuracy": 0.3}, *STATED], {"verdict_key": "ok"}, "jsonl:1 is skipped as a summary"),
    "other.jsonl": (
        [*STATED, {"accuracy": 0.57, "score": 33.3, "acc": 0.3333333333333333, "mean": True}],
        {"verdict_key": "ok"},
        "jsonl:7: accuracy is 0.57, but the mean of the file's verdicts is 0.3333",
    ),
    "last.jsonl": ([*STATED, {"total": 6}], {"verdict_key": "ok"}, "jsonl:7 is skipped as a summary"),
    "total.jsonl": ([*STATED, {"id": "TOTAL", "ok": 0.5}], {"verdict_key": "ok"}, "jsonl:7 is skipped as a summary"),
    # AgentBench
    "nested.jsonl": (
        [{"index": n, "output": {"result": {"success": right}}} for n, right in enumerate(RIGHT.values())],
        {"verdict_key": "output.result.success"},
        "",
    ),
    # Terminal-Bench
    "trials.json": (
        {
            "results": [
                {"id": f"u-{name}", "task_id": name, "is_resolved": right or None} for name, right in RIGHT.items()
            ],
            "resolved_ids": IDS[:2],
        },
        {"verdict_key": "is_resolved"},
        "count as wrong, as the suite counts them",
    ),
    # Aider
    "ragged.jsonl": (
        [{"testcase": name, "tests_outcomes": [False, True] if right else [False]} for name, right in RIGHT.items()],
        {"verdict_key": "tests_outcomes"},
        "one success is enough",
    ),
    # EvalPlus
    "eval.json": (
        {"eval": {name: [{"base_status": "pass" if right else "timeout"}] for name, right in RIGHT.items()}},
        {"verdict_key": "base_status"},
        "",
    ),
    "plus.json": (
        {"eval": {n: [{"base_status": "pass" if ok else "fail", "plus_status": "pass"}] for n, ok in RIGHT.items()}},
        {"verdict_key": "plus_status"},
        "",
    ),
    # A stated verdict counts, whatever the error says
    "failed.jsonl": (
        [{"task_id": name, "passed": ok, "error": "" if ok else "AssertionError"} for name, ok in RIGHT.items()],
        {"verdict_key": "passed"},
        "",
    ),
    "untried.jsonl": (
        [{"testcase": name, "tests_outcomes": [True] if right else []} for name, right in RIGHT.items()],
        {"verdict_key": "tests_outcomes"},
        "",
    ),
    # A list of questions beside a summary, alone, and by category
    "summary.json": ({"summary": {"total": 6, "ok": True}, "details": STATED}, {"verdict_key": "ok"}, ""),
    "alone.json": ({"results": STATED}, {"verdict_key": "ok"}, ""),
    "categories.json": ({"math": STATED[:3], "code": STATED[3:]}, {"verdict_key": "ok"}, ""),
    # SWE-bench, by instance
    "report.json": ({name: {"resolved": right} for name, right in RIGHT.items()}, {"verdict_key": "resolved"}, ""),
    # CRUXEval
    "scored.json": (
        {"raw_scored_generations": {name: [right, right] for name, right in RIGHT.items()}, "pass_at_1": 33.3},
        {"verdict_key": "raw_scored_generations"},
        "",
    ),
    # OpenHands
    "output.jsonl": (
        [
            {"instance_id": name, "test_result": {"report": {"resolved": right}} if n < 5 else {}}
            for n, (name, right) in enumerate(RIGHT.items())
        ],
        {"verdict_key": "test_result.report.resolved", "errors": "wrong"},
        "counts as wrong",
    ),
    # HELM
    "stats.json": (
        [
            {"instance_id": name, "stats": [{"name": {"name": each}, "mean": 1.0 * value} for each, value in
             (("f1", 1), ("em", right))]} for name, right in RIGHT.items()
        ],
        {"verdict_key": "stats.em"},
        "",
    ),
}  # fmt: skip
"""File → its content, the options, and a note on how it is counted."""


@pytest.mark.parametrize("name", SHAPES)
def test_each_shape_of_verdicts_gives_the_number_of_its_maker(tmp_path: Path, name: str) -> None:
    content, options, note = SHAPES[name]
    file = (jsonl if name.endswith(".jsonl") else whole)(tmp_path / name, content)
    (score,) = harness.score(file, workers=1, **options)
    assert score.accuracy is not None
    assert (score.accuracy.value, score.n_questions) == (pytest.approx(1 / 3), 6)
    text = said("score", file, *(word for key, value in options.items() for word in (f"--{key}", value)))[1]
    assert (note in text, text.count("but the mean")) == (True, note.count("but the mean"))


def nodes(value: Any) -> list[tuple[Any, Any]]:
    """(container, key or index) of each value inside a JSON value."""
    inner = [*value.items()] if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else []
    return [pair for key, each in inner for pair in ((value, key), *nodes(each))]


HOSTILE: list[Any] = [["x"], {"name": ["x"]}, {"name": {"name": {}}}, [[["x"]]], None, 1e300, True, "", "\0", [{}]]


@pytest.mark.parametrize("name", SHAPES)
def test_any_value_in_the_place_of_a_name_is_read_or_one_sentence(tmp_path: Path, name: str) -> None:
    content, options, _ = SHAPES[name]
    judged = GivenVerdicts(options.get("verdict_key"), options.get("errors"))  # type: ignore[arg-type]
    rng, n_read, refused = random.Random(f"kinds {name}"), 0, list[str]()
    places = [(number, value) for number in range(len(nodes(content))) for value in HOSTILE]
    for number, value in [*places[: 2 * len(HOSTILE)], *rng.sample(places, min(examples(240), len(places)))]:
        changed = json.loads(json.dumps(content))
        container, key = nodes(changed)[number]
        container[key] = value
        file = (jsonl if name.endswith(".jsonl") else whole)(tmp_path / name, changed)
        try:
            n_read += len([*outputs.read(file, judged=judged)])
        except UsageError as error:
            refused.append(error.sentence)
    assert n_read, "some of the values are harmless"
    assert refused, "and others are not"
    assert [sentence for sentence in refused if len(sentence.splitlines()) > 1] == []


def test_lists_of_samples_are_no_tries(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "t.jsonl", [{"id": "a", "passed": [False, True]}])
    (score,) = harness.score(file, workers=1, verdict_key="passed")
    assert (score.accuracy and score.accuracy.value, score.n_samples) == (0.5, 2)


SWE = {"resolved_ids": ["a"], "unresolved_ids": ["b"], "error_ids": [], "total_instances": 2}
SIMULATION = {"task_id": "a", "trial": 0, "reward_info": {"reward": 1.0}}
LINE, OK = {"id": "a", "ok": True}, {"verdict_key": "ok"}
DAMAGED: list[tuple[str, Any, Mapping[str, str], str]] = [
    ("t.json", json.dumps(SWE, indent=1)[:60], {}, r"t\.json.*not valid JSON"),
    ("t.json", '{"a": true, "a": false}', {}, "the key 'a' twice"),
    ("t.json", {"a": True, "b": "perhaps"}, {}, "t.json:b: 'verdict' must be a verdict, found 'perhaps'"),
    ("t.json", {"a": True, "b": {"c": 1}}, {"tool": "verdicts"}, "t.json:b: .* found {'c': 1}"),
    ("t.json", {}, {"tool": "verdicts"}, "must contain a JSON object with verdicts"),
    ("t.json", {"resolved": ["a"], "no_generation": ["b"]}, {}, "does not list the attempts that failed"),
    ("t.json", {"a": [{"ok": True}], "b": [{"no": True}]}, OK, "t.json:b has no 'ok', found {'no': True}"),
    ("t.json", {"a": [{"ok": True}], "b": []}, OK, r"t.json:b has no 'ok', found \[\]"),
    ("t.json", {"of": {"a": [{"task_id": "a", "ok": True}], "b": []}}, OK, r"t.json:b has no 'ok', found \[\]"),
    ("t.json", {"failed": [LINE], "all": [LINE]}, OK, "t.json:all: 'a' is also in 'failed'; remove one of the lists"),
    ("t.json", {"results": [{"name": "a", "ok": True}]}, OK, "t.json:0 has no task id; .* specify its column"),
    ("t.jsonl", [{"total_count": 9}, LINE], OK, "total_count is 9, but the file lists 1 attempt"),
    ("t.jsonl", [{"n": 1}, LINE, *({"n": 1},) * 3], OK, "t.jsonl:1 has no column 'ok'"),
    ("t.jsonl", [{"n": 1}], OK, "t.jsonl:1 has no column 'ok'"),
    ("t.json", {**SWE, "unresolved_ids": ["a"]}, {}, r"unresolved_ids\[0\]: 'a' also appears at .*resolved_ids\[0\]"),
    ("t.json", {**SWE, "error_ids": "b"}, {}, "error_ids must be a list of ids"),
    ("t.json", {**SWE, "resolved_ids": [None, "a"]}, {}, r"resolved_ids\[0\] has no task id"),
    ("t.json", {**SWE, "total_instances": 500}, {}, "total_instances is 500, but the lists contain 2 instances"),
    ("t.json", {"simulations": [SIMULATION, SIMULATION]}, {}, r"simulations\[1\]: sample 0 of 'a' has the same number"),
    ("t.json", {"simulations": []}, {}, "contains no finished sample"),
    ("t.json", {"simulations": [{"id": "a"}]}, {}, r"simulations\[0\] is not a tau2-bench simulation"),
    ("t.json", {"simulations": [{**SIMULATION, "trial": "x"}]}, {}, "'trial' must be a whole number ≥ 0"),
    ("t.json", {"simulations": [{**SIMULATION, "reward_info": {}}]}, {}, r"simulations\[0\]: .* found {}"),
    ("t.jsonl", [LINE, {**LINE, "ok": -0.5}], OK, "t.jsonl:2: 'ok' must be a verdict, found -0.5"),
    ("t.jsonl", [LINE, {**LINE, "ok": float("nan")}], OK, "t.jsonl:2: .* found nan"),
    ("t.jsonl", [LINE, {**LINE, "ok": 10**400}], OK, "t.jsonl:2: .* found 10000"),
    ("t.jsonl", [LINE, {"id": "b"}], OK, "t.jsonl:2 has no column 'ok'"),
    ("t.jsonl", [{"id": 1.5, "ok": True}], OK, "t.jsonl:1 has no task id; .* found 1.5"),
    ("t.jsonl", [{"ok": True}], OK, "t.jsonl:1 has no task id; .* specify its column with `id_key`"),
    ("t.jsonl", [{**LINE, "gen": ["x", "y"], "ok": [True]}], OK, "1 verdicts for 2 replies"),
    ("t.jsonl", [{**LINE, "n": 10**6}], {**OK, "sample_key": "n"}, "is 1,000,000 or higher"),
    ("t.jsonl", [{**LINE, "ok": None}], OK, "contains no finished sample"),
    ("t.jsonl", [LINE], {"verdict_key": "OKAY"}, "no column 'OKAY' for the verdict; available columns: id, ok"),
    ("t.jsonl", [LINE], {**OK, "sample_key": "n"}, "no column 'n' for the sample's number"),
    ("t.jsonl", [{"response": "5", "answer": "5"}], {"errors": "wrong"}, "errors.*files with verdicts"),
    ("t.jsonl", b'{"id": "\xff", "ok": true}\n', OK, "t.jsonl:1 is not UTF-8"),
    ("t.jsonl", b"", OK, "has no rows"),
    ("t.csv", b"id,ok\na,maybe\n", OK, "t.csv:2: 'ok' must be a verdict, found 'maybe'"),
    ("job/x/result.json", {"trial_name": "x"}, {}, "is not a Harbor trial"),
    ("job/x/result.json", {"task_name": "a", "verifier_result": {"rewards": {"r": 1}}}, {}, "has no 'reward' in"),
    ("samples_x.jsonl", [{"doc_id": 1, "doc": {}, "target": "#", "resps": [["x"]], "m": 1, "filter": f} for f in "ab"],
     {"verdict_key": "m,c"}, "no row has the filter 'c'; the first row has 'a'"),
    ("samples_x.jsonl", [{"doc_id": 1, "doc": {}, "target": "#", "resps": [["x"]], "m": 1, "filter": f} for f in "ab"],
     {"verdict_key": "m"}, "a different filter than earlier rows; use m,a or m,b"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "message"), DAMAGED)
def test_damage_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, name: str, content: Any, options: Mapping[str, Any], message: str
) -> None:
    (path := tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        jsonl(path, content)
    else:
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    file = tmp_path / name.partition("/")[0]
    with pytest.raises(UsageError, match=message) as refused:
        harness.score(file, workers=1, **options)
    assert len(str(refused.value)) < 1_000
    assert not imported_at(file).path.exists()
