"""What a newcomer gets wrong is one sentence that says what to do, and never a traceback; its right twin is taken.

For: harness.cli.dry_run.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness as product
from harness.client.address.endpoint import Endpoint
from harness.client.facts import page
from harness.core.errors import ServerError
from harness.options.run import RunOptions
from harness.preparing.run_questions import questions_of
from harness.preparing.server_start import checked_spec
from harness.presets import preset as presets
from harness.testing import FakeServer, completion, models
from server_launchers.embedded import llama_cpp_server
from server_launchers.engines import table as engines
from tests.reports.run_folders import write_run
from tests.system.command import harness, process

ROOT = Path(__file__).resolve().parents[2]
ROW = '{"problem": "1+1?", "answer": "2"}\n'
SWEEP = "models: [m]\nbenchmarks: [demo]\nservers: [{name: s, engine: vllm}]\n"


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    """It lists the model m and answers every question."""
    with FakeServer(lambda request: [models("m")] if request.method == "GET" else completion("4")) as running:
        yield running


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory, server: FakeServer) -> Path:
    """A folder with a scored run A, an unscored run U and the files that the commands below name."""
    folder = tmp_path_factory.mktemp("answers")
    run = ("run", "demo:1", "--limit", "1", "--no-canary", "--base-url", server.base_url, "--out")
    assert harness(folder, *run, "A").code == 0
    assert harness(folder, "score", "A").code == 0
    shutil.copytree(folder / "A", folder / "U")
    for name in ("scores.json", "grades.jsonl"):
        (folder / "U" / "demo" / name).unlink()
    for name in ("q.jsonl", "q.csv"):
        (folder / name).write_text(ROW)
    (folder / "q.jsonl.xz").write_bytes(lzma.compress(ROW.encode()))
    (folder / "right.csv").write_text("problem,answer\n1+1?,2\n")
    levels = [json.loads(ROW) | {"level": level, "problem": f"{level}+1?"} for level in ("easy", "hard")]
    (folder / "levels.jsonl").write_text("".join(map(json.dumps, levels)).replace("}{", "}\n{"))
    (folder / "levels.yaml").write_text(
        "title: L\nsource: {kind: file, path: levels.jsonl}\nkind: number\n"
        "columns: {question: problem, answer: answer, metadata: [level]}\n"
    )
    assert harness(folder, "run", "./levels.yaml", "--samples", "1", *run[4:], "L").code == 0
    (folder / "hot.yaml").write_text(SWEEP + "temperature: 0.5\n")
    (folder / "several.yaml").write_text("model: m\nbenchmark: demo\ntemperature: 0.5\nbenchmarks: [demo]\n")
    (folder / "several").mkdir()
    (folder / "taken").mkdir()
    (folder / "taken" / "notes.txt").write_text("of another purpose")
    (folder / "broken.jsonl").write_text(f'{ROW}{{"problem": "1+2?", "ans\n')
    for name in ("set", "several/one", "several/two"):
        (folder / f"{name}.jsonl").write_text(ROW)
    (folder / "rows.yaml").write_text(SWEEP + "table: {zzz: 1}\n")
    return folder


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run dmeo", "Did you mean demo"),
        ("run ./alg.yaml:8 demo:2", "separate multiple benchmarks with commas, as in ./alg.yaml:8,demo:2"),
        ("run --data nowhere.jsonl", "nowhere.jsonl"),
        ("run --data set.jsonl --question-key Problems --answer-key answer", "'Problems'"),
        ("run --data broken.jsonl", "broken.jsonl:2"),
        ("score several", "manifest.json"),
        ("socre x", "Did you mean score"),
        ("run demo --ca-file nowhere.pem", "SSL_CERT_FILE=FILE"),
        ("run demo --out=", "the path is empty"),
        ("run demo --base-url=", "--base-url is empty"),
        ("run demo --base-url http://a:1,weight=2", "to use several, repeat the option"),
        ("grade 5 5 --relative-tolerance nan", "--relative-tolerance nan: expected a finite number"),
        ("score set.jsonl --follow", "--follow is for run folders"),
        ("sweep sweep.yaml --follow 90", "--follow. A sweep runs the checkpoints that exist; run"),
        ("score set.jsonl --deadline 1e9", "--deadline 1000000000.0: expected a number less than 3600"),
        ("run demo:x", "'demo:x'"),
        ("run set.jsonl", "set.jsonl is a data file: pass it as --data"),
        (
            "run --data several",
            "it contains one.jsonl, two.jsonl. Specify one of these files, or choose a split with --split",
        ),
        ("run --data several --split three", "no files for the split 'three'; it contains one.jsonl, two.jsonl"),
        ("report set.jsonl", "set.jsonl has not been scored: run `harness score set.jsonl` first."),
        ("show set.jsonl", "set.jsonl has not been scored: run `harness score set.jsonl` first."),
        ("doctor set.jsonl", "set.jsonl has not been scored: run `harness score set.jsonl` first"),
        ("score A/demo/samples.jsonl", "samples.jsonl is a file inside a run folder; use the folder /"),
        ("score A/manifest.json", "manifest.json is a file inside a run folder; use the folder /"),
        ("report A/demo/samples.jsonl", "samples.jsonl is a file inside a run folder; use the folder /"),
        ("sweep A/manifest.json", "A/manifest.json belongs to the run /"),
        ("sweep hot.yaml --dry-run", "unknown key 'temperature'. Known keys: name, extends, out, suite, run,"),
        ("sweep several.yaml --dry-run", "several.yaml:1: unknown key 'model'. Did you mean models?"),
        ("run demo --out taken", "taken is neither a run folder nor empty (it contains notes.txt). Choose a new"),
        ("report A --out right.csv/below", "Choose another folder for the report with --out"),
        ("merge A", "Missing option '-o' / '--out'. For example: `harness merge "),
        ("export A", "Missing option '--to'. For example: `harness export "),
        ("sweep rows.yaml --dry-run", "unknown key 'table.zzz'. Known keys: layout, shown, columns, base, k."),
        ("compare A A", "A is listed twice: specify a different run to compare it with"),
        ("show A --filter level=hard", "no question of this run has 'level' in its metadata; they have topic"),
        ("show L --filter level=odd", "no question has level=odd; its values are easy, hard"),
        ("run --data q.jsonl.xz", ".xz is not supported: extract the archive, or save the sheet as CSV"),
        (
            "run demo --out /proc/x",
            "cannot create the folder /proc/x: No such file or directory. Choose a writable folder ",
        ),
        (f"run demo --out {'x' * 256}", "xxx: File name too long. Specify a path that you can read."),
        (f"report {'x' * 256}", "/manifest.json: File name too long"),
        ("verify A --published q.jsonl", "q.jsonl is a different kind of file"),
        ("serve Qwen/QwQ-32B", "unknown engine or action 'Qwen/QwQ-32B'; expected one of "),
    ],
)
def test_a_wrong_word_is_answered_with_what_to_do(
    laid_out: Path, server: FakeServer, words: str, sentence: str
) -> None:
    done = harness(laid_out, *words.split(), extra={"OPENAI_BASE_URL": server.base_url})
    assert done.code in (2, 3)
    assert sentence in done.err
    assert " · run folder " not in done.err, "it is refused before the run is announced"


def test_a_report_without_any_score_says_so_and_is_no_success(laid_out: Path, server: FakeServer) -> None:
    extra = {"OPENAI_BASE_URL": server.base_url}
    done = harness(laid_out, "report", "U", extra=extra)
    assert done.code == 1
    assert "not scored yet; run `harness score`" in " ".join(done.out.split())
    assert "no run has been scored" in done.err
    beside = harness(laid_out, "report", "A", "U", "--out", "both", extra=extra)
    assert (beside.code, "no run has been scored" in beside.err) == (0, False)


@pytest.mark.parametrize(
    "words",
    [
        "score A",
        "score A/demo/samples.jsonl --response-key text --answer-key question_id --out made",
        "show L --filter level=easy",
        "run demo:4 --dry-run",
        "run --data q.jsonl --dry-run",
        "run --data right.csv --dry-run",
        "run --data several --split one --dry-run",
        "run --data several/one.jsonl --dry-run",
        "run demo --preset r1 --dry-run",
    ],
)
def test_the_right_twin_is_taken(laid_out: Path, server: FakeServer, words: str) -> None:
    done = harness(laid_out, *words.split(), extra={"OPENAI_BASE_URL": server.base_url})
    assert done.code == 0, done.err


def test_a_setting_that_is_more_likely_mistyped_than_meant_is_named(laid_out: Path, server: FakeServer) -> None:
    words = "run demo --temperature 60 --dry-run"
    done = harness(laid_out, *words.split(), extra={"OPENAI_BASE_URL": server.base_url})
    assert (done.code, "temperature is 60; the usual range is 0 to 2" in done.err) == (0, True), done.err


def test_a_checkout_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    for package in ("harness", "server_launchers"):
        (tmp_path / package).symlink_to(ROOT / package)
    # -S: without the packages of this environment.
    done = subprocess.run(
        [sys.executable, "-S", "-m", "harness"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "harness is not installed for" in done.stderr
    python = shlex.quote(sys.executable)
    make = f"{python} -m venv venv && venv/bin/python -m pip install {shlex.quote(str(ROOT))}; then venv/bin/python"
    assert f"{make} -m harness\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_name_of_a_run_in_results_is_answered_with_its_path(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "base")
    write_run(tmp_path / "results" / "tuned")
    for words in ("compare tuned base", "score tuned", "report tuned"):
        done = harness(tmp_path, *words.split())
        assert (done.code, "there is no run at " in done.err) == (3, True)
        assert "/tuned. Did you mean results/tuned?" in done.err
    assert "Did you mean" not in harness(tmp_path, "score", "other").err


def test_a_missing_package_is_named_with_a_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    done = harness(tmp_path, "run", "gym:basic_arithmetic")
    assert (done.code, "reasoning-gym: " in done.err) == (2, True)
    command, *words = shlex.split(done.err.partition("reasoning-gym: ")[2].partition(", or")[0])
    assert "install" in words
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["reasoning-gym"]
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
        "name": "own",
        "title": "Own",
        "kind": "text",
        "prompt": "boxed",
        "source": {"kind": "file", "path": "set.jsonl"},
        "columns": {"question": "problem", "answer": "answer"},
        "rules": {"grader": "mine:right"},
    }
    (tmp_path / "own.yaml").write_text(json.dumps(card))
    (tmp_path / "set.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n')
    words = ("run", "own.yaml", "--base-url", server.base_url, "--out", "run", "--no-canary", "--samples", "1")
    extra = {"HARNESS_GRADERS": "mine", "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path.cwd()}"}
    assert process(tmp_path, *words, extra=extra).code == 0
    done = process(tmp_path, "score", "run", extra=extra)
    assert done.code not in (0, 2)
    assert "the verifier raised KeyError (mine.py:2) on 1 sample" in " ".join((done.out + done.err).split())


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_https_at_a_port_of_plain_http(answer: bytes, tmp_path: Path) -> None:
    """A server that reads a handshake as a request line answers in plain text, or hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener.accept()[0] as connection:
            connection.recv(4096)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    with listener, pytest.raises(ServerError, match=r"does not support https .* base_url=http://127"):
        product.run("demo", base_url=url, model="m", out=tmp_path / "run")


def test_https_at_a_checked_spec_plain_http_that_waits_for_more() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        plain = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        secure = plain.replace("http", "https")
        with pytest.raises(ServerError, match=f"if the server uses http, set base_url={plain}"):
            page.get(Endpoint(secure), f"{secure}/models", timeout=1.0)


@pytest.mark.parametrize(
    ("preset", "model"), [("limo", "GAIR/LIMO"), ("openthinker3", "open-thoughts/OpenThinker3-7B")]
)
def test_a_preset_that_fills_its_models_context_leaves_room_for_the_prompt(preset: str, model: str) -> None:
    options = RunOptions.of(benchmarks="demo", preset=preset, model=model, serve="vllm")
    assert checked_spec(questions_of(options)).context == 32768
    refused = options.but(max_tokens=32768)
    with pytest.raises(ServerError, match="32768"):
        checked_spec(questions_of(refused))


@pytest.mark.parametrize("engine", [name for name, each in engines.every().items() if each.assumed_version])
@pytest.mark.parametrize("preset", [name for name in presets.names() if presets.load(name).models])
def test_no_preset_refuses_itself_with_a_server(preset: str, engine: str) -> None:
    model = presets.load(preset).models[0].replace("*", "x")
    spec = checked_spec(questions_of(RunOptions.of(benchmarks="demo", preset=preset, model=model, serve=engine)))
    known = presets.load(preset).reasoning_parser
    known_engine = engines.by_name(spec.engine)
    takes = "reasoning_parser" in known_engine.takes
    assert spec.reasoning_parser == (known.of(known_engine.parsers) if known and takes else None)
