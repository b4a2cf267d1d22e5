"""What a newcomer types wrongly is answered with the sentence that helps; its right twin is not refused."""

from __future__ import annotations

import json
import lzma
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.__main__ import _not_installed
from harness.testing import FakeServer, completion, models
from tests.system.command import harness

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
    for name in ("q.jsonl", "q.csv", "q.xlsx"):
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
    (folder / "url.yaml").write_text(SWEEP.replace("engine: vllm", "base_url: http://127.0.0.1:9/v1"))
    (folder / "hot.yaml").write_text(SWEEP + "temperature: 0.5\n")
    (folder / "workers.yaml").write_text(SWEEP + "run: {workers: 2}\n")
    (folder / "several.yaml").write_text("model: m\nbenchmark: demo\ntemperature: 0.5\nbenchmarks: [demo]\n")
    (folder / "rows.yaml").write_text(SWEEP + "table: {zzz: 1}\n")
    return folder


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("score A/demo/samples.jsonl", "samples.jsonl is a file of a run: give the folder of the run, /"),
        ("score A/manifest.json", "manifest.json is a file of a run: give the folder of the run, /"),
        ("report A/demo/samples.jsonl", "samples.jsonl is a file of a run: give the folder of the run, /"),
        ("sweep A/manifest.json", "A/manifest.json is a file of the run /"),
        ("sweep url.yaml --dry-run", "unknown key 'servers.0.base_url'. 'base_url' belongs under 'run'."),
        ("sweep hot.yaml --dry-run", "unknown key 'temperature'. 'temperature' belongs under 'run'."),
        ("sweep workers.yaml --dry-run", "unknown key 'run.workers'. 'workers' belongs under 'score'."),
        (
            "run right.csv --serve llama_cpp -- --cache-reuse 0",
            "-- --cache-reuse 0: a flag of the engine is given by --serve-option engine-flag=--cache-reuse "
            "--serve-option engine-flag=0",
        ),
        (
            "sweep several.yaml --dry-run",
            "several.yaml:1: unknown key 'model' (also wrong: benchmark, temperature). Did you mean models?",
        ),
        ("merge A", "Missing option '-o' / '--out'. For example: `harness merge "),
        ("export A", "Missing option '--to'. For example: `harness export "),
        ("sweep rows.yaml --dry-run", "unknown key 'table.zzz'. The keys there are layout, shown, columns, base, k."),
        ("compare A A", "A is named twice: name another run to compare it with"),
        ("show A --level hard", "no question of this run has 'level' in its metadata; they have topic"),
        ("show L --level odd", "no question has level=odd; there are easy, hard"),
        ("run demo:4:4", "demo:4:4 has two numbers of samples; give one, as in demo:4"),
        ("run demo --data q.jsonl", "without the name demo it is read as questions of your own"),
        ("run --data q.jsonl.xz", "files in .xz are not read; unpack it: `xz -dk "),
        ("run --data q.xlsx", "files in .xlsx are not read; save the sheet as CSV in UTF-8"),
        ("run --data q.csv", "q.csv holds JSON and is named as a table; rename it to end in .jsonl"),
        ("run demo --preset r2", "Did you mean r1?"),
        ("run demo --out /proc/x", "cannot make the folder /proc/x: No such file or directory. Name one that you may "),
        ("score A --quiet", "Progress and warnings go to standard error: 2> /dev/null hides them."),
        ("verify A --published q.jsonl", "q.jsonl is another file"),
        ("serve smollm2-135m", "name the engine before it, as in `harness serve llama_cpp smollm2-135m`"),
        ("serve Qwen/QwQ-32B", "name the engine before it, as in `harness serve vllm Qwen/QwQ-32B`"),
    ],
)
def test_a_wrong_word_is_answered_with_what_to_do(
    laid_out: Path, server: FakeServer, words: str, sentence: str
) -> None:
    done = harness(laid_out, *words.split(), extra={"OPENAI_BASE_URL": server.base_url})
    assert done.code in (2, 3)
    assert sentence in done.err


def test_a_folder_that_cannot_be_made_is_refused_before_the_run_is_announced(
    laid_out: Path, server: FakeServer
) -> None:
    extra = {"OPENAI_BASE_URL": server.base_url}
    refused = harness(laid_out, "run", "demo", "--out", "/proc/x", extra=extra)
    assert (refused.code, refused.out, "run folder" in refused.err) == (3, "", False), refused.err
    (laid_out / "other").mkdir()
    (laid_out / "other" / "notes.txt").write_text("of another purpose")
    foreign = harness(laid_out, "run", "demo", "--out", "other", extra=extra)
    assert foreign.code == 3
    assert "demo" not in foreign.err
    made = harness(laid_out, "run", "demo", "--out", "new", extra=extra)
    assert "run folder" in made.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run demo --temperature 6 --dry-run", "temperature 6 is above 2"),
    ],
)
def test_what_is_allowed_and_odd_is_told(laid_out: Path, server: FakeServer, words: str, sentence: str) -> None:
    done = harness(laid_out, *words.split(), extra={"OPENAI_BASE_URL": server.base_url})
    assert done.code == 0
    assert sentence in " ".join((done.out + done.err).split())


def test_a_report_without_any_score_says_so_and_is_no_success(laid_out: Path, server: FakeServer) -> None:
    extra = {"OPENAI_BASE_URL": server.base_url}
    done = harness(laid_out, "report", "U", extra=extra)
    assert done.code == 1
    assert "it is not scored yet; `harness score` does that" in " ".join(done.out.split())
    assert "none of the runs is scored" in done.err
    beside = harness(laid_out, "report", "A", "U", "--out", "both", extra=extra)
    assert (beside.code, "none of the runs" in beside.err) == (0, False)


def test_a_report_that_cannot_be_written_names_the_flag_for_another_folder(laid_out: Path, server: FakeServer) -> None:
    (laid_out / "taken").write_text("x")
    done = harness(laid_out, "report", "A", "--out", "taken/below", extra={"OPENAI_BASE_URL": server.base_url})
    assert done.code == 3
    assert "Name another folder for the report by `out`" in done.err


@pytest.mark.parametrize(
    "words",
    [
        "score A",
        "score A/demo/samples.jsonl --response-key text --answer-key question_id --out made",
        "show L --level easy",
        "run demo:4 --dry-run",
        "run --data q.jsonl --dry-run",
        "run --data right.csv --dry-run",
        "run demo --preset r1 --dry-run",
        "run demo --temperature 2 --dry-run",
    ],
)
def test_the_right_twin_is_taken(laid_out: Path, server: FakeServer, words: str) -> None:
    done = harness(laid_out, *words.split(), extra={"OPENAI_BASE_URL": server.base_url})
    assert done.code == 0, done.err
    assert "is above 2" not in done.err


def test_a_python_of_the_system_gets_a_virtual_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    sentence = _not_installed(ModuleNotFoundError("no click", name="click"))
    assert "click: /usr/bin/python3 -m venv venv && venv/bin/python -m pip install " in sentence
    assert sentence.endswith("; then venv/bin/python -m harness\n")


def test_a_checkout_that_is_not_installed_says_how_to_install_it(tmp_path: Path) -> None:
    for package in ("harness", "server_launchers"):
        (tmp_path / package).symlink_to(ROOT / package)
    # -S: without the packages of this environment.
    done = subprocess.run(
        [sys.executable, "-S", "-m", "harness"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "it is not installed for" in done.stderr
    assert f"{sys.executable} -m pip install {ROOT}; then {sys.executable} -m harness" in done.stderr
    assert "Traceback" not in done.stderr
