"""What a newcomer gets wrong is one clear sentence and exit code 2, never a traceback."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import socket
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.asking import servers
from harness.cli import doctor
from harness.cli.main import cli
from harness.cli.serve_start import twin_sentence
from harness.core.files import disk_error
from server_launchers.embedded import llama_cpp_server
from server_launchers.keeping.supervisor import RunningServer
from server_launchers.spec import ServerSpec
from tests.faults.server import FaultServer, completion, models
from tests.reports.run_folders import write_run
from tests.system.command import harness, process


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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run ./alg.yaml:8 demo:2", "several benchmarks are separated by commas, as in ./alg.yaml:8,demo:2"),
        ("race demo aime24 --model m", "several benchmarks are separated by commas, as in demo,aime24"),
    ],
)
def test_an_argument_too_many_is_answered_with_what_the_command_takes(
    tmp_path: Path, words: str, expected: str
) -> None:
    done = harness(tmp_path, *words.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("harness: unexpected argument ")
    assert expected in done.err


def test_the_name_of_a_run_in_results_is_answered_with_its_path(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "base")
    write_run(tmp_path / "results" / "tuned")
    for words in ("compare tuned base", "score tuned", "report tuned"):
        done = harness(tmp_path, *words.split())
        assert (done.code, "there is no run at " in done.err) == (3, True)
        assert "/tuned. Did you mean results/tuned?" in done.err
    assert "Did you mean" not in harness(tmp_path, "score", "other").err


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = harness(tmp_path, "run", "--data", "nowhere.jsonl")
    assert done.code == 2
    assert "nowhere.jsonl" in done.err


def test_a_column_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n')
    done = harness(tmp_path, "run", "--data", "set.jsonl", "--question-key", "Problems", "--answer-key", "answer")
    assert done.code == 2
    assert "'Problems'" in done.err
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
        ("--follow",),
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
    done = harness(
        tmp_path,
        "run",
        "demo",
        "--base-url",
        embedded_server.base_urls[0],
        "--preset",
        "limo",
        "--dry-run",
        "--fit-context",
    )
    assert done.code == 0, done.err
    assert "temperature 0.7, top_p 0.95" in done.out


def test_a_misspelt_command_or_flag_is_answered_with_the_near_name(tmp_path: Path) -> None:
    done = harness(tmp_path, "socre", "x")
    assert (done.code, "score" in done.err) == (2, True)
    done = harness(tmp_path, "run", "demo", "--sample", "3")
    assert (done.code, "--samples" in done.err) == (2, True)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """It lists the model m and answers every question."""
    with FaultServer(lambda request: [models("m")] if request.method == "GET" else completion("4")) as running:
        yield running


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run demo:x", "demo:x: a number of samples goes after the colon, as in demo:4"),
        ("run demo:", "demo:: a number of samples goes after the colon"),
        ("run --data openai/gsm8k", "a data set of the hub is hf://datasets/openai/gsm8k"),
        ("run set.jsonl", "set.jsonl is a file: give it with --data"),
        ("run --data several", "it holds one.jsonl, two.jsonl. Name one of these files, or a split with --split"),
        ("run --data several --split three", "no file for the split 'three'; it holds one.jsonl, two.jsonl"),
        ("report set.jsonl", "set.jsonl is not scored yet: run `harness score set.jsonl` first."),
        ("show set.jsonl", "set.jsonl is not scored yet: run `harness score set.jsonl` first."),
        ("doctor set.jsonl", "set.jsonl is a file; a run is a folder."),
    ],
)
def test_a_place_that_is_another_thing_is_said_to_be_it(tmp_path: Path, words: str, sentence: str) -> None:
    row = '{"problem": "1+1?", "answer": "2"}\n'
    (tmp_path / "several").mkdir()
    for name in ("set", "several/one", "several/two"):
        (tmp_path / f"{name}.jsonl").write_text(row)
    done = harness(tmp_path, *words.split())
    assert done.code in (2, 3)
    assert sentence in done.err


def test_the_file_and_the_split_that_the_refusal_names_are_taken(tmp_path: Path, server: FaultServer) -> None:
    (tmp_path / "several").mkdir()
    for number, name in enumerate(("one", "two"), 1):
        (tmp_path / f"several/{name}.jsonl").write_text(f'{{"problem": "{number}+1?", "answer": "2"}}\n')
    for words in (("--data", "several", "--split", "one"), ("--data", "several/one.jsonl")):
        done = harness(tmp_path, "run", *words, "--base-url", server.base_url, "--dry-run")
        assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("package", "benchmark", "extra"),
    [
        ("reasoning_gym", "gym:basic_arithmetic", "reasoning-gym"),
    ],
)
def test_a_missing_package_is_named_with_a_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, benchmark: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    done = harness(tmp_path, "run", benchmark)
    assert (done.code, extra in done.err) == (2, True)
    line = done.err.partition(f"{extra}: ")[2]
    command, *words = shlex.split(line.partition(", or")[0])
    assert "install" in words
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"][extra]
    assert {re.split(r"[<>=]", word)[0] for word in words} >= {re.split(r"[<>=]", one)[0] for one in declared}
    assert not any("reasoning-harness" in word for word in words), "it is on no index"
    assert command in (sys.executable, "uv")


def test_the_embedded_server_asks_for_the_packages_of_its_extra() -> None:
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["llama-cpp"]
    server, openmp = declared
    assert shlex.split(llama_cpp_server.MISSING)[-2:] == [server, openmp.partition(">")[0]]


@pytest.mark.wide
def test_a_verifier_that_raises_is_told_with_its_line_and_no_clean_exit(tmp_path: Path, server: FaultServer) -> None:
    (tmp_path / "mine.py").write_text("def right(answer, question):\n    return {'no such answer': False}[answer]\n")
    card = {
        "name": "own", "title": "Own", "kind": "text", "prompt": "boxed",
        "source": {"kind": "file", "path": "set.jsonl"},
        "columns": {"question": "problem", "answer": "answer"},
        "rules": {"grader": "mine:right"},
    }  # fmt: skip
    (tmp_path / "own.yaml").write_text(json.dumps(card))
    (tmp_path / "set.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n')
    words = ("run", "own.yaml", "--base-url", server.base_url, "--out", "run", "--no-canary", "--samples", "1")
    extra = {"HARNESS_GRADERS": "mine", "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path.cwd()}"}
    assert process(tmp_path, *words, extra=extra).code == 0
    done = process(tmp_path, "score", "run", extra=extra)
    assert done.code not in (0, 2)
    assert "the verifier raised KeyError (mine.py:2) on 1 sample" in " ".join((done.out + done.err).split())


def test_a_full_disk_is_said_with_the_way_to_go_on() -> None:
    full = str(disk_error(Path("/somewhere/run"), OSError(errno.ENOSPC, "No space left on device")))
    assert full.endswith("Make room and give the same command again: what is stored stays")
    other = str(disk_error(Path("/somewhere/run"), OSError(errno.EACCES, "Permission denied")))
    assert "same command" not in other


def test_the_same_model_served_twice_is_said(tmp_path: Path, embedded_server: RunningServer) -> None:
    state = embedded_server.state
    assert state is not None
    wanted = ServerSpec(engine="llama_cpp", model=state.source)
    twin = servers.twin(wanted)
    assert twin is not None
    # Another test's server may serve the same file.
    assert twin.source == state.source
    said = twin_sentence(twin)
    assert f"--server {twin.name}` uses it, `harness serve stop {twin.name}` ends it" in said
    assert servers.twin(ServerSpec(engine="llama_cpp", model="/another.gguf")) is None


def test_what_doctor_advises_can_be_typed() -> None:
    words = doctor.FETCH.split()[1:]
    done = CliRunner().invoke(cli, [*words, "demo"])
    assert done.exit_code == 0, done.output
