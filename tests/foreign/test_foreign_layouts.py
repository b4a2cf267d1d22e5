"""Layouts of NeMo-Skills, OpenCompass and EvalScope: keys, texts and references come in as they were written.

For: harness.foreign.layouts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.core.errors import UsageError
from harness.foreign import outputs


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
