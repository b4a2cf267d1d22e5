"""Dry runs tell all: settings, prompt and the server's command; which cells of a sweep would end without a score.
A demo that Ctrl-C ended says how to go on.

For: harness.cli.demo, harness.cli.dry_run, harness.cli.sweep, harness.sweeps.whole.
"""

from __future__ import annotations

import json
import re
import types
from pathlib import Path

import pytest

from harness.cli import demo
from harness.sweeps import cells
from tests.system.command import harness

SERVE = ("--serve", "vllm", "--model", "org/m", "--dry-run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sums.jsonl").write_text(json.dumps({"id": "1", "problem": "What is 1 + 1?", "answer": "2"}) + "\n")
    return tmp_path


def test_a_run_that_starts_its_server_shows_its_command_settings_and_prompt(folder: Path) -> None:
    words = ("run", "--data", "sums.jsonl", "--samples", "4", "--serve-option", "max-model-len=40960", *SERVE)
    done = harness(folder, *words)
    assert done.code == 0, done.err
    for words in ("vllm serve org/m", "temperature 0.6", "4 per question", "boxed", "What is 1 + 1?"):
        assert words in done.out, words
    assert not (folder / "results").exists()


STEPS = "She sells 16 - 7 = <<16-7=9>>9 eggs.\nShe makes 9 * 2 = $<<9*2=18>>18."


@pytest.mark.parametrize(
    ("answer", "warned"),
    [(STEPS, True), (f"{STEPS}\n#### 18", False), ("18", False), (r"\frac{36}{2}", False), ("×", False)],
)
def test_the_first_reference_is_shown_and_one_that_no_rule_reads_is_named(
    answer: str, warned: bool, folder: Path
) -> None:
    """Before the first request, by the check of `harness doctor --benchmark`; a judge may decide such answers."""
    rows = [{"problem": "What does she make?", "answer": answer}, {"problem": "What is 1 + 1?", "answer": "2"}]
    (folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("run", "--data", "own.jsonl", "--serve-option", "max-model-len=40960", *SERVE)
    done = harness(folder, *words)
    assert done.code == 0, done.err
    assert f"Its reference answer: {answer[:20]}" in done.out
    assert ("no rule can parse the reference answer for 1 of 2 questions, such as “She sells" in done.err) == warned
    assert "no rule reads" not in harness(folder, *words, "--judge", "m@http://127.0.0.1:9").err
    tested = harness(folder, "doctor", "--benchmark", "own.jsonl").out
    assert ("no rule can parse the reference “She sells" in tested) == warned


def test_a_judge_s_settings_are_shown_and_the_judge_is_not_asked(folder: Path) -> None:
    (folder / "rubric.txt").write_text("It names the cause.")
    words = ["run", "--data", "sums.jsonl", "--serve-option", "max-model-len=40960", *SERVE]
    assert "judge:" not in harness(folder, *words).out
    judge = "judge-god@http://me:secret@127.0.0.1:9,prompt=rubric.txt,api_key_env=JUDGE_KEY"
    done = harness(folder, *words, "--judge", judge)
    assert done.code == 0, done.err
    rows = {"": "judge-god", ": address": r"http://\S*127.0.0.1:9", ": samples": "undecided"}
    rows |= {
        ": requests": "at most 1 ",
        ": prompt": "rubric-[0-9a-f]{8}",
        ": key from": "JUDGE_KEY",
        ": sampling": "temperature 0.0",
    }
    for name, value in rows.items():
        assert re.search(rf"^ *judge{name} +{value}", done.out, re.MULTILINE), (name, done.out)
    assert "secret" not in done.out


def test_several_cards_are_one_run(folder: Path) -> None:
    card = "title: T\nsource: {kind: file, path: sums.jsonl}\ncolumns: {question: problem, answer: answer}\n"
    for name in ("first", "second"):
        (folder / f"{name}.yaml").write_text(card)
    done = harness(folder, "run", "./first.yaml,./second.yaml", "--samples", "1", *SERVE)
    assert done.code == 0, done.err
    for name in ("first", "second"):
        assert re.search(rf"^ *{name}: data +sums.jsonl, 1 of 1 question", done.out, re.MULTILINE), name
    missing = harness(folder, "run", "./first.yaml,./third.yaml", *SERVE)
    assert missing.code == 2
    assert "third.yaml" in missing.err


def test_a_run_without_room_for_its_replies_is_refused_before_its_server_starts(folder: Path) -> None:
    words = ("run", "--data", "sums.jsonl", "--serve-option", "max-model-len=32768", *SERVE)
    done = harness(folder, *words, "--max-tokens", "32768")
    assert done.code != 0
    assert "--fit-context" in done.err
    by_default = harness(folder, *words)
    assert by_default.code == 0, by_default.err


@pytest.mark.parametrize(
    ("max_tokens", "samples", "reason"),
    [
        (4096, 4, "the server's context length is 4096"),
        (4095, 4, "the server's context length is 4096"),
        (1000, 2, "pass@4 requires 4 samples per question, but the cell has 2"),
        (1000, 4, ""),
        (None, 4, ""),  # the default, which is above the context, is lowered to it
    ],
)
def test_a_sweep_s_dry_run_finds_what_would_lose_its_cells(
    folder: Path, max_tokens: int | None, samples: int, reason: str
) -> None:
    cell = {"data": "sums.jsonl", "samples": samples} | ({"max_tokens": max_tokens} if max_tokens else {})
    server = {"engine": "vllm", "max_model_len": 4096}
    content = {"models": ["org/m"], "servers": [server], "benchmarks": [cell], "score": {"k": [4]}}
    (folder / "own.yaml").write_text(json.dumps(content))
    done = harness(folder, "sweep", "own.yaml", "--dry-run")
    assert (done.code, "m+vllm+sums would end without producing a new score: " in done.err) == (
        bool(reason),
        bool(reason),
    )
    assert reason in done.err, done.err


def test_k_of_a_suite_s_tables_is_an_option(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    given = {"model": "m", "base_url": "http://127.0.0.1:9"}
    planned = cells.plan_of("efficient-reasoning", given, {})
    assert (planned.table.k_of("aime24"), planned.table.k_of("gsm8k")) == (10, 8)
    assert cells.plan_of("efficient-reasoning", given, {}, 4).table.k_of("aime24") == 4


def test_a_ctrl_c_while_the_server_starts_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_RESUMED_BY", "")
    monkeypatch.setattr("harness.preparing.server_start.spec_of", lambda *_, **__: None)
    monkeypatch.setattr("harness.preparing.server_start.launched", interrupted)
    assert demo.play() == demo.STOPPED
    assert re.search(r"To go on: (?:\S+/|'.+/)?harness'? doctor --demo$", capsys.readouterr().err, re.MULTILINE)


def test_a_run_folder_that_cannot_be_made_is_refused_before_a_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[object] = []
    monkeypatch.setattr("harness.preparing.server_start.spec_of", lambda *_, **__: types.SimpleNamespace(context=None))
    monkeypatch.setattr("harness.preparing.server_start.launched", lambda *given: starts.append(given))
    done = harness(tmp_path, "run", "demo", "--serve", "vllm", "--model", "org/m", "--out", "/proc/nowhere/run")
    assert (done.code, starts) == (3, [])
