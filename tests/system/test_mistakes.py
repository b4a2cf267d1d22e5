"""What a newcomer gets wrong is one clear sentence and exit code 2, never a traceback."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from server_launchers.keeping.supervisor import RunningServer
from tests.system.command import harness


@pytest.fixture
def closed_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_that_is_not_up_is_named_with_host_and_port(tmp_path: Path, closed_port: int) -> None:
    done = harness(tmp_path, "run", "demo", "--model", "m", "--base-url", f"http://127.0.0.1:{closed_port}")
    assert done.code == 2
    assert f"127.0.0.1:{closed_port}" in done.err


def test_without_any_server_the_ways_to_name_one_are_given(tmp_path: Path) -> None:
    done = harness(tmp_path, "run", "demo")
    assert done.code == 2
    assert "--base-url" in done.err
    assert "harness serve" in done.err


def test_an_unknown_model_is_answered_with_those_that_the_server_has(
    tmp_path: Path, embedded_server: RunningServer
) -> None:
    done = harness(tmp_path, "run", "demo", "--model", "smolm2-135m", "--base-url", embedded_server.base_urls[0])
    assert done.code == 2
    assert embedded_server.model in done.err


@pytest.mark.parametrize("name", ["dmeo", "demp", "Demo2"])
def test_an_unknown_benchmark_is_answered_with_near_names(tmp_path: Path, name: str) -> None:
    done = harness(tmp_path, "run", name)
    assert done.code == 2
    assert "Did you mean" in done.err
    assert "demo" in done.err


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = harness(tmp_path, "run", "--data", "nowhere.jsonl")
    assert done.code == 2
    assert "nowhere.jsonl" in done.err


def test_a_column_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n')
    done = harness(tmp_path, "run", "--data", "set.jsonl", "--question-key", "Problem", "--answer-key", "answer")
    assert done.code == 2
    assert "'Problem'" in done.err
    assert "problem" in done.err
    assert "answer" in done.err


def test_a_broken_line_is_named_by_file_and_number(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n{"problem": "1+2?", "ans\n')
    done = harness(tmp_path, "run", "--data", "set.jsonl")
    assert done.code == 2
    assert "set.jsonl" in done.err
    assert "2" in done.err


def test_a_folder_that_is_no_run_is_refused_with_the_code_of_the_store(tmp_path: Path) -> None:
    done = harness(tmp_path, "score", str(tmp_path))
    assert done.code == 3
    assert "manifest.json" in done.err


def test_an_unwritable_run_folder_is_refused_before_any_sample(tmp_path: Path, embedded_server: RunningServer) -> None:
    (tmp_path / "file").write_text("in the way")
    url = embedded_server.base_urls[0]
    done = harness(tmp_path, "run", "demo:1", "--limit", "1", "--base-url", url, "--out", "file/run")
    assert done.code == 3
    assert "file/run" in done.err


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--temperature", "-1"),
        ("--top-p", "2"),
        ("--stop", ""),
        ("--samples", "0"),
        ("--concurrency", "0"),
        ("--max-tokens", "0"),
        ("--idle-timeout", "-1"),
        ("--idle-timeout", "nan"),
        ("--first-token-timeout", "0"),
        ("--ca-file", "nowhere.pem"),
        ("--out", ""),
    ],
)
def test_a_setting_out_of_range_is_named_by_its_flag(tmp_path: Path, flag: str, value: str) -> None:
    done = harness(tmp_path, "run", "demo", flag, value, "--base-url", "http://127.0.0.1:9")
    assert done.code == 2
    assert flag in done.err


def test_an_empty_address_is_said_to_be_empty(tmp_path: Path) -> None:
    done = harness(tmp_path, "run", "demo", "--base-url", "")
    assert (done.code, "--base-url is empty" in done.err) == (2, True)


def test_what_a_file_of_outputs_cannot_have_is_refused_before_it_is_scored(tmp_path: Path) -> None:
    (tmp_path / "outputs.jsonl").write_text('{"gen": "so 5", "answer": 5}\n')
    for flags in (
        ("--also", "math-verify"),
        ("--judge", "m"),
        ("--also-python", sys.executable),
        ("--deadline", "1e9"),
    ):
        done = harness(tmp_path, "score", "outputs.jsonl", "--out", "grades.jsonl", *flags)
        assert (done.code, done.out) == (2, "")
        assert flags[0] in done.err
    assert not (tmp_path / "grades.jsonl").exists()


@pytest.mark.parametrize(
    "words", [(" ", "5"), ("5", "5", "--relative-tolerance", "nan"), ("5", "5", "--absolute-tolerance", "-1")]
)
def test_a_grade_without_a_reference_or_with_an_impossible_tolerance_is_refused(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = harness(tmp_path, "grade", *words)
    assert (done.code, done.out) == (2, "")


def test_a_preset_that_names_a_model_and_a_sampling_sets_both(tmp_path: Path, embedded_server: RunningServer) -> None:
    done = harness(tmp_path, "run", "demo", "--base-url", embedded_server.base_urls[0], "--preset", "limo", "--dry-run")
    assert done.code == 0, done.err
    assert "temperature 0.7, top_p 0.95" in done.out


def test_a_misspelt_command_or_flag_is_answered_with_the_near_name(tmp_path: Path) -> None:
    done = harness(tmp_path, "socre", "x")
    assert (done.code, "score" in done.err) == (2, True)
    done = harness(tmp_path, "run", "demo", "--sample", "3")
    assert (done.code, "--samples" in done.err) == (2, True)


def test_the_key_of_the_environment_is_not_in_what_is_printed_or_stored(
    tmp_path: Path, embedded_server: RunningServer
) -> None:
    key = "sk-canary-5up3rs3cr3t"
    url = embedded_server.base_urls[0]
    done = harness(
        tmp_path, "run", "demo:1", "--limit", "2", "--base-url", url, "--out", "run", extra={"OPENAI_API_KEY": key}
    )
    assert done.code == 0, done.err
    written = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert written
    assert not any(key.encode() in data for data in [*written, done.out.encode(), done.err.encode()])
    assert json.loads((tmp_path / "run" / "manifest.json").read_bytes())["model"] == embedded_server.model
