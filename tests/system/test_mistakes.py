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

import msgspec
import pytest
from click.testing import CliRunner

from harness.asking import servers
from harness.cli import doctor
from harness.cli.main import cli
from harness.cli.serve_start import twin_sentence
from harness.core.files import disk_error
from harness.testing import FakeServer, completion, models
from server_launchers import keeping
from server_launchers.embedded import llama_cpp_server
from server_launchers.keeping.launch import RunningServer
from server_launchers.spec import ServerSpec
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


def test_an_unknown_model_is_answered_with_those_that_the_server_has(
    tmp_path: Path, embedded_server: RunningServer
) -> None:
    done = harness(tmp_path, "run", "demo", "--model", "smolm2-135m", "--base-url", embedded_server.base_urls[0])
    assert done.code == 2
    assert embedded_server.model in done.err


def test_the_name_of_a_run_in_results_is_answered_with_its_path(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "base")
    write_run(tmp_path / "results" / "tuned")
    for words in ("compare tuned base", "score tuned", "report tuned"):
        done = harness(tmp_path, *words.split())
        assert (done.code, "there is no run at " in done.err) == (3, True)
        assert "/tuned. Did you mean results/tuned?" in done.err
    assert "Did you mean" not in harness(tmp_path, "score", "other").err


def test_an_unwritable_run_folder_is_refused_before_any_sample(tmp_path: Path, embedded_server: RunningServer) -> None:
    (tmp_path / "file").write_text("in the way")
    url = embedded_server.base_urls[0]
    done = harness(tmp_path, "run", "demo:1", "--limit", "1", "--base-url", url, "--out", "file/run")
    assert done.code == 3
    assert "file/run" in done.err


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


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """It lists the model m and answers every question."""
    with FakeServer(lambda request: [models("m")] if request.method == "GET" else completion("4")) as running:
        yield running


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run demo", "no server is known: give --base-url"),
        ("run dmeo", "Did you mean demo"),
        ("run ./alg.yaml:8 demo:2", "several benchmarks are separated by commas, as in ./alg.yaml:8,demo:2"),
        ("race demo aime24 --model m", "unexpected argument aime24: `harness race` takes [BENCHMARK]"),
        ("run --data nowhere.jsonl", "nowhere.jsonl"),
        ("run --data set.jsonl --question-key Problems --answer-key answer", "'Problems'"),
        ("run --data broken.jsonl", "broken.jsonl:2"),
        ("score several", "manifest.json"),
        ("socre x", "Did you mean score"),
        ("run demo --sample 3", "--samples"),
        ("run demo --temperature -1", "temperature=-1.0: expected"),
        ("run demo --top-p 2", "top_p=2"),
        ("run demo --samples 0", "samples=0: expected"),
        ("run demo --timeout nan", "timeout=nan: expected"),
        ("run demo --ca-file nowhere.pem", "SSL_CERT_FILE=FILE"),
        ("run demo --out=", "the path is empty"),
        ("run demo --base-url=", "base_url is empty"),
        ("grade 5 5 --relative-tolerance nan", "relative_tolerance=nan: expected a finite number"),
        ("score set.jsonl --follow", "`follow` is for run folders"),
        ("score set.jsonl --deadline 1e9", "deadline=1000000000.0: expected a number less than 3600"),
        ("run demo:x", "demo:x: a number of samples goes after the colon, as in demo:4"),
        ("run demo:", "demo:: a number of samples goes after the colon"),
        ("run --data openai/gsm8k", "a data set of the hub is hf://datasets/openai/gsm8k"),
        ("run set.jsonl", "set.jsonl is a file: give it with --data"),
        ("run --data several", "it holds one.jsonl, two.jsonl. Name one of these files, or a split with `split`"),
        ("run --data several --split three", "no file for the split 'three'; it holds one.jsonl, two.jsonl"),
        ("report set.jsonl", "set.jsonl is not scored yet: run `harness score set.jsonl` first."),
        ("show set.jsonl", "set.jsonl is not scored yet: run `harness score set.jsonl` first."),
        ("doctor set.jsonl", "set.jsonl is not scored yet: run `harness score set.jsonl` first"),
    ],
)
def test_a_place_that_is_another_thing_is_said_to_be_it(tmp_path: Path, words: str, sentence: str) -> None:
    row = '{"problem": "1+1?", "answer": "2"}\n'
    (tmp_path / "several").mkdir()
    (tmp_path / "broken.jsonl").write_text(f'{row}{{"problem": "1+2?", "ans\n')
    for name in ("set", "several/one", "several/two"):
        (tmp_path / f"{name}.jsonl").write_text(row)
    done = harness(tmp_path, *words.split())
    assert done.code in (2, 3)
    assert sentence in done.err


def test_the_file_and_the_split_that_the_refusal_names_are_taken(tmp_path: Path, server: FakeServer) -> None:
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
def test_a_verifier_that_raises_is_told_with_its_line_and_no_clean_exit(tmp_path: Path, server: FakeServer) -> None:
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


def test_the_same_model_served_twice_is_said(embedded_server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    state = embedded_server.state
    assert state is not None
    wanted = ServerSpec(engine="llama_cpp", model=state.source)
    twin = servers.twin(wanted)
    assert twin is not None
    # Another test's server may serve the same file.
    assert twin.source == state.source
    said = twin_sentence(twin)
    assert f"--base-url {twin.name}` uses it, `harness serve stop {twin.name}` ends it" in said
    assert servers.twin(ServerSpec(engine="llama_cpp", model="/another.gguf")) is None
    nameless = msgspec.structs.replace(state, engine="command", source="")
    monkeypatch.setattr(keeping.servers, "status", lambda: [nameless])
    assert servers.twin(ServerSpec(engine="command", model="", extra_flags=("./server",))) is None


def test_what_doctor_advises_can_be_typed() -> None:
    words = doctor.FETCH.split()[1:]
    done = CliRunner().invoke(cli, [*words, "demo"])
    assert done.exit_code == 0, done.output
