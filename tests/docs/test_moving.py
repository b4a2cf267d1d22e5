"""docs/moving.md: what stands there for users of other tools is accepted, and reads what their tools stored."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, Typed, blocks, commands
from tests.docs.trying import ROW, Bench

PAGE = DOCS / "moving.md"
TEXT = PAGE.read_text("utf-8")


def lines(*rows: dict[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def lay_out(folder: Path) -> None:
    """The files of which the page speaks, as each tool writes them, and the cards' one question."""
    asked, right = ROW["problem"], r"\boxed{2}"
    nemo, doc = folder / "out" / "eval-results" / "aime24", {"question": asked}
    nemo.mkdir(parents=True)
    review = {"score": {"value": {"acc": 1.0}, "prediction": right}, "sample_id": 0, "group_id": 0}
    files: dict[str, dict[str, object]] = {
        "my_questions": {**ROW},
        "aime24_bz64": {"prompt": asked, "answer": 2, "gen": [f"so {right}"]},
        "limo_aime": {"question": asked, "generated_responses": [right], "gold_answer": "2"},
        "samples_gsm8k": {"doc_id": 0, "doc": doc, "target": "#### 2", "resps": [["#### 2"]]},
        "flat": {"problem": asked, "answer": "2", "response": right},
        "seer_aime24": {**ROW, "answer": "2", "completion": right},
        **{
            f"out/eval-results/aime24/output-rs{number}": {
                "problem": asked,
                "expected_answer": "2",
                "generation": f"{number}: {right}",
            }
            for number in range(2)
        },
        "reviews_aime24": {"index": 0, "input": asked, "target": "2", "sample_score": review},
    }
    for name, row in files.items():
        (folder / f"{name}.jsonl").write_text(lines(row))
    predicted = {"origin_prompt": [{"role": "HUMAN", "prompt": asked}], "prediction": right, "gold": "2"}
    (folder / "opencompass_aime24.json").write_text(json.dumps({"0": predicted}))
    head = "=" * 40 + " 0 " + "=" * 40
    (folder / "tmp_output_sglang.txt").write_text(f"{head}\n{asked}\nso {right}\n{'=' * 80}\n")
    choices = [{"message": {"role": "assistant", "content": right}, "stop_reason": "stop"}]
    sample = {"id": 1, "epoch": 1, "input": asked, "target": "2"}
    sample["output"] = {"choices": choices, "usage": {"output_tokens": 5}}
    with zipfile.ZipFile(folder / "aime.eval", "w") as archive:
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
    for block in blocks(PAGE, "yaml"):
        (folder / block.text.splitlines()[0].removeprefix("# ")).write_text(block.text)


def context_of(typed: Typed) -> int | None:
    """The context that the page's last `harness serve` before this line gives its server; None: it states none."""
    limit = None
    for line in commands(PAGE):
        if line == typed:
            break
        if line.words[0] == "serve":
            words = list(line.words)
            limit = int(words[words.index("--max-model-len") + 1]) if "--max-model-len" in words else None
    return limit


@pytest.mark.parametrize("typed", commands(PAGE), ids=str)
def test_each_line_of_the_page_is_accepted(bench: Bench, typed: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out(bench.folder)
    bench.context = context_of(typed) if "--base-url" in typed.words and typed.words[0] == "run" else None
    code = bench.try_(typed)
    output = capsys.readouterr()
    assert code in (0, -1), output.err
    if code == 0 and typed.words[0] == "score":
        assert "100.0" in output.out, output


@pytest.mark.parametrize(
    "words",
    [("run", "aime24:64", "--num-trys", "3"), ("sweep", "nosuch", "--model", "m"), ("score", "flat.jsonl")],
    ids=str,
)
def test_a_line_that_is_wrong_would_be_seen(bench: Bench, words: tuple[str, ...]) -> None:
    (bench.folder / "flat.jsonl").write_text(lines({"response": "2"}))
    assert bench.try_(Typed("here", words)) == 2


def test_a_line_that_has_no_room_in_its_own_server_s_context_would_be_seen(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    line = next(typed for typed in commands(PAGE) if "llmeval" in typed.words and context_of(typed) == 32768)
    bench.context = 32768
    assert bench.try_(Typed(line.where, (*line.words, "--max-tokens", "32768"))) != 0
    assert "--fit-context" in capsys.readouterr().err
    assert bench.try_(line) == 0
    assert "lowered to fit the context" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("jq") is None, reason="no jq")
def test_the_files_of_other_tools_are_put_together_as_the_page_says(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    loops = [line for block in blocks(PAGE, "sh") for line in block.text.splitlines() if re.match("for ", line)]
    assert len(loops) == 1
    for number in range(2):
        run = bench.folder / f"result_seer_sparse/model/aime24_bs15_token_budget_B2048_start0/run_{number}"
        run.mkdir(parents=True)
        (run / "completions.jsonl").write_text(lines({"completion": r"\boxed{2}"}, {"completion": r"\boxed{9}"}))
    rows = bench.folder / "data/aime24/test.jsonl"
    rows.parent.mkdir(parents=True)
    rows.write_text(lines({"problem": "p", "answer": "2"}, {"problem": "q", "answer": "3"}))
    for line in loops:
        subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=bench.folder, check=True)
    words = "score seer_aime24.jsonl --response-key completion --answer-key answer --question-key problem"
    assert bench.call(words.split()) == 0
    output = capsys.readouterr().out
    assert ["50.0" in output, "2 × 2" in output] == [True, True]


WORDS = {
    "--samples": "num-tries n_samples n_sampling epochs repeats",
    "--concurrency": "parallel max_workers max-connections num_concurrent eval-batch-size",
    "--data": "data-path input_file",
    "--max-tokens": "max_new_tokens max_gen_toks tokens_to_generate",
    "--serve-option tp=VALUE": "tp-size tensor-parallel-size server_gpus",
    "--out": "output_file output_path output_dir log-dir",
}
"""Our option → names that it has in the tools of the page."""


def test_each_word_of_other_tools_is_answered_with_ours(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    for ours, theirs in WORDS.items():
        for word in theirs.split():
            assert bench.call(["run", "demo", f"--{word}", "3"]) == 2
            name = ours.removeprefix("--").replace("-", "_")
            assert re.search(f"[Uu]se {ours}|`{name}` here", capsys.readouterr().err), word
