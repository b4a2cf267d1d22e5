"""A newcomer's mistakes get one sentence that says what to do, never a traceback and never a key in it.

For: harness.cli.dry_run, harness.core.secret, harness.core.validation, harness.cli.main,
harness.client.address.endpoint, server_launchers.command_line.
"""

from __future__ import annotations

import json
import lzma
import random
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness as product
from harness.benchmarks import catalog
from harness.benchmarks.card import Card
from harness.cli.foreign.tables import COMMON, tables
from harness.cli.main import cli
from harness.client.address.endpoint import Endpoint, without_repeats
from harness.client.address.fields import DROPPABLE
from harness.client.facts import page
from harness.core.errors import ServerError
from harness.core.secret import (
    HIDDEN,
    Secret,
    command_words,
    looks_like_a_key,
    reveal_secrets,
    seal_secrets,
    without_secrets,
    without_typed_secrets,
)
from harness.foreign.outputs import FORMATS
from harness.gates.policy import Policy, Watched
from harness.options.commands import COMMANDS
from harness.options.judge import JUDGE_KEYS
from harness.options.run import RunOptions
from harness.preparing.run_questions import questions_of
from harness.preparing.server_start import checked_spec
from harness.presets import preset as presets
from harness.testing import FakeServer, Request, completion, http, models, serving
from server_launchers.command_line import is_secret, secrets_of
from server_launchers.embedded import llama_cpp_server
from server_launchers.engines import table as engines
from server_launchers.spec import OPTIONS as SERVER_OPTIONS
from server_launchers.spec import flag_of
from tests.budget import ALL, SEED, examples, share_of
from tests.reports.run_folders import write_run
from tests.system.command import Result, harness

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
        ("run demo:x", "demo:x: expected a number of samples after the colon, as in demo:4, but found 'x'"),
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
        ("sweep hot.yaml --dry-run", "unknown key 'temperature'. It belongs at `run.temperature` or "),
        ("sweep several.yaml --dry-run", "several.yaml:1: unknown key 'model'. Did you mean models?"),
        ("run demo --out taken", "taken is neither a run folder nor empty (it contains notes.txt). Choose a new"),
        ("report A --out right.csv/below", "Choose another folder for the report with --out"),
        ("merge A", "Missing option '-o' / '--out'. For example: `harness merge "),
        ("export A", "Missing option '--to'. For example: `harness export "),
        ("sweep rows.yaml --dry-run", "unknown key 'table.zzz'. Known keys: base, columns, k, layout, shown."),
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
def test_a_wrong_word_is_answered_with_help(laid_out: Path, server: FakeServer, words: str, sentence: str) -> None:
    done = harness(laid_out, *words.split(), extra={"OPENAI_BASE_URL": server.base_url})
    assert done.code in (2, 3)
    assert sentence in done.err
    assert " · run folder " not in done.err, "it is refused before the run is announced"


# -- hints are followed ------------------------------------------------------------------------------------------------


def slips(word: str) -> list[str]:
    """Near misses of a word: a character less, one twice, two swapped, a wrong one, its beginning, another number …"""
    i = min(max(1, len(word) // 2), len(word) - 1)
    made = [word[:i] + word[i + 1 :], word[:i] + word[i] + word[i:], word[:i] + "q" + word[i + 1 :], word[: i + 2]]
    made += [word[: i - 1] + word[i] + word[i - 1] + word[i + 1 :], f"{word}s", re.sub(r"\d+$", r"\g<0>9", word)]
    made += [word.replace("_", "-"), word.replace("-", ""), word.upper(), f"x{word}"]
    return [*dict.fromkeys(one for one in made if one not in ("", word))]


KEYS = [flag_of(name)[2:] for name in SERVER_OPTIONS]
NAMES: dict[str, Iterable[str]] = {
    "{}": COMMANDS,
    "run {} --dry-run": [*catalog.names(), *(alias for card in catalog.cards() for alias in card.aliases)],
    "run demo --preset {} --dry-run": presets.names(),
    "run demo --provider {} --dry-run": ("openai", "deepseek", "anthropic", "openrouter"),
    "run demo --drop {} --dry-run": DROPPABLE,
    "run demo --prompt {} --dry-run": ("boxed", "letter"),
    "run demo --serve {} --model org/m --dry-run": engines.engines_by_name(),
    "run demo --serve vllm --model org/m --serve-option {}=1 --dry-run": KEYS,
    "run demo --judge m,{}=1 --dry-run": JUDGE_KEYS,
    "run --data q.jsonl --question-key {} --answer-key answer --dry-run": ["problem"],
    "run --data levels.jsonl --filter {}=easy --dry-run": ["level"],
    "serve {}": [*engines.engines_by_name(), "status", "stop", "logs", "fetch"],
    "probe http://127.0.0.1:9 --checks {}": ["protocol", "sampling", "calls", "seeds", "streaming"],
    "benchmarks {}": ["show", "fetch"],
    "benchmarks show {}": catalog.names(),
    "sweep {} --dry-run": [path.stem for path in catalog.suites()],
    "score set.jsonl --from {}": FORMATS,
    "export A --to {}": ["sharegpt", "trl", "csv", "lm_eval", "inspect"],
    "show A --question {}": ["demo-01"],
    "show A --benchmark {}": ["demo"],
    "compare A {}": ["L"],
    "plan {} --detect 5": ["aime24", "math500"],
}
"""A command line → words of which a near miss stands at its mark."""
KEYED = {
    "sweep made.yaml --dry-run": (SWEEP + "{}: [m]\n", ("models", "benchmarks", "sampling", "prompts", "columns")),
    "sweep ./made.yaml --dry-run": (SWEEP + "run: {{}: 1}\n", ("max_tokens", "temperature", "concurrency")),
    "gate made.yaml --dry-run": ("name: g\nbenchmarks: {demo: {floor: 50, {}: 5}}\n", [*Watched.model_fields]),
    "gate ./made.yaml --dry-run": (
        "name: g\nbenchmarks: {demo: {floor: 50, loss: 5}}\n{}: 1\n",
        [*Policy.model_fields],
    ),
    "run ./made.yaml --dry-run": (
        "title: L\nsource: {kind: file, path: q.jsonl}\n{}: number\n",
        [*Card.model_fields],
    ),
}
"""A command line → the file that it reads, with a mark, and keys of which a near miss stands there."""


def mistakes() -> list[tuple[str, str, str]]:
    """Command lines with a mark, near misses for the mark, and the file that each command reads."""
    found = [(line, slip, "") for line, words in NAMES.items() for word in words for slip in slips(word)]
    found += [(line, slip, text) for line, (text, keys) in KEYED.items() for key in keys for slip in slips(key)]
    for name, command in commands(cli, click.Context(cli, info_name="harness")):
        flags = [flag for one in command.params for flag in one.opts if flag.startswith("--")]
        found += [(f"{name} {{}}", slip, "") for flag in flags for slip in slips(flag)[:4]]
    tables_of = [
        (name, tables()[name] if name in tables() else tables()[COMMON]) for name in ("run", "score", "serve vllm")
    ]
    return found + [(f"{name} {{}}", f"--{word}", "") for name, table in tables_of for word in table.answers]


def hints(said: str, word: str) -> list[str]:
    """What the message says to write in the place of the wrong word."""
    near = [name for names in re.findall(r"Did you mean ([^?\n]+)\?", said) for name in names.split(", ")]
    near += re.findall(r"Use (--[a-z-]+) instead", said)
    return near + [f"{flag} {word}" for flag in re.findall(r"pass it as (--[a-z-]+)", said)]


def complaint(said: str, word: str) -> str:
    """The last line of a message, without the wrong word and the hint."""
    last = (said.strip().splitlines() or [""])[-1]
    return re.split("Did you mean|Use --|: pass it", last.replace(word, "…").replace(word.lstrip("-"), "…"))[0]


def refused_hints(folder: Path, url: str, tried: Iterable[tuple[str, str, str]]) -> tuple[int, list[tuple[str, ...]]]:
    """The number of hints that were followed, and those that the same check refuses."""
    n, refused = 0, []

    def asked(line: str, word: str, text: str) -> Result:
        if text:
            (folder / "made.yaml").write_text(text.replace("{}", word))
        return harness(folder, *line.replace("{}", word).split(), extra={"OPENAI_BASE_URL": url})

    for line, word, text in tried:
        first = asked(line, word, text)
        for hint in {*hints(first.err, word)} - {"--demo"}:  # which plays the whole path, for two minutes
            then, n = asked(line, hint, text), n + 1
            if then.code and complaint(then.err, hint) == complaint(first.err, word):
                refused.append((line, word, hint, then.err))
    return n, refused


@pytest.mark.timeout(900)
def test_no_hint_is_refused_by_the_check_that_gives_it(laid_out: Path) -> None:
    drawn = random.Random(SEED).sample(mistakes(), examples(160))
    n, refused = refused_hints(laid_out, "http://127.0.0.1:9/v1", drawn)
    assert refused == []
    assert n > len(drawn) / 8


def test_named_hints_hold(laid_out: Path) -> None:
    """Each was once refused, or led astray."""
    named = [
        ("run demo {}", "--restart", "", []),
        ("run {} --dry-run", "aime2026x", "", ["aime26", "aime25"]),
        ("run demo {}", "--max-token", "", ["--max-tokens"]),
        ("run {}", "--tasks", "", []),
    ]
    for line, word, _, told in named:
        done = harness(laid_out, *line.replace("{}", word).split())
        assert (done.code, hints(done.err, word)) == (2, told), done.err
    assert refused_hints(laid_out, "http://127.0.0.1:9/v1", [row[:3] for row in named]) == (3, [])
    for named in ("q.jsonl", "{data: q.jsonl}"):
        text = f"models: [m]\nbenchmarks: [{named}]\nrun: {{base_url: 'http://127.0.0.1:9'}}\n"
        (laid_out / "made.yaml").write_text(text)
        assert "1 cell" in harness(laid_out, "sweep", "made.yaml", "--dry-run").out


SAID = "Set `max_tokens` to 5, use `temperature=1` or seed=3; see `base_url`, 'top_p' and \"stop\"."


@pytest.mark.parametrize("status", [400, 401, 422])
@pytest.mark.parametrize("lists", [False, True])
def test_words_of_a_server_are_never_spelled_as_options(tmp_path: Path, status: int, lists: bool) -> None:
    def answer(request: Request) -> list[bytes]:
        is_list = lists and request.path.endswith("/models")
        return [models("m") if is_list else http(status, {"error": {"message": SAID}})]

    with FakeServer(answer) as server:
        words = f"--base-url {server.base_url} --samples 1 --limit 1 --attempts 1".split()
        done = harness(tmp_path, "run", "demo", "--model", "m", *words)
    assert done.code
    assert done.err.count(SAID[:-1]) == done.err.count("; see") > 0


def test_a_report_without_any_score_says_so_and_is_no_success(laid_out: Path, server: FakeServer) -> None:
    extra = {"OPENAI_BASE_URL": server.base_url}
    done = harness(laid_out, "report", "U", extra=extra)
    assert done.code == 4
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


def test_a_missing_package_is_named_with_an_install_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run")
    monkeypatch.setitem(sys.modules, "trackio", None)
    done = harness(tmp_path, "score", str(run), "--track", "trackio")
    assert (done.code, "package trackio is missing" in done.err) == (2, True), done.err
    command, *words = shlex.split(done.err.partition("Install it: ")[2].partition(", or")[0])
    assert "install" in words
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["trackio"]
    assert {re.split(r"[<>=]", word)[0] for word in words} >= {re.split(r"[<>=]", one)[0] for one in declared}
    assert not any("reasoning-harness" in word for word in words), "it is on no index"
    assert command in (sys.executable, "uv")


def test_the_embedded_server_asks_for_the_packages_of_its_extra() -> None:
    declared = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["llama-cpp"]
    server, openmp = declared
    assert shlex.split(llama_cpp_server.MISSING)[-2:] == [server, openmp.partition(">")[0]]


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
    with listener, pytest.raises(ServerError, match=r"does not support https .* `base_url=http://127"):
        product.run("demo", base_url=url, model="m", out=tmp_path / "run")


def test_https_at_a_checked_spec_plain_http_that_waits_for_more() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        plain = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        secure = plain.replace("http", "https")
        with pytest.raises(ServerError, match=f"if the server uses http, set `base_url={plain}`"):
            page.get(Endpoint(secure), f"{secure}/models", timeout=1.0)


@pytest.mark.parametrize(
    ("preset", "model"), [("limo", "GAIR/LIMO"), ("openthinker3", "open-thoughts/OpenThinker3-7B")]
)
def test_a_preset_that_fills_its_models_context_leaves_room_for_the_prompt(preset: str, model: str) -> None:
    options = RunOptions.of(benchmarks="demo", preset=preset, model=model, serve="vllm")
    assert checked_spec(questions_of(options)).context == 32768
    refused = options.replace(max_tokens=32768)
    with pytest.raises(ServerError, match="32768"):
        checked_spec(questions_of(refused))


@pytest.mark.parametrize("engine", [name for name, each in engines.engines_by_name().items() if each.assumed_version])
@pytest.mark.parametrize("preset", [name for name in presets.names() if presets.load(name).models])
def test_no_preset_refuses_itself_with_a_server(preset: str, engine: str) -> None:
    model = presets.load(preset).models[0].replace("*", "x")
    spec = checked_spec(questions_of(RunOptions.of(benchmarks="demo", preset=preset, model=model, serve=engine)))
    known = presets.load(preset).reasoning_parser
    known_engine = engines.by_name(spec.engine)
    takes = "reasoning_parser" in known_engine.takes
    assert spec.reasoning_parser == (known.name_in(known_engine.parsers) if known and takes else None)


# -- keys typed in the wrong place -------------------------------------------------------------------------------------


KEY = "sk-canary5up3rs3cr3t0123456789"
ODD = "canary-5f0c9d2e71ab4c38-Zq81"
"""A key of no known service: it is known by its characters."""
WORD = "bluebird"
"""A password that looks like any word: it is known by its place only."""
HELD = (KEY, ODD, WORD)

FORMS = [
    KEY,
    f'{{"api_key": "{WORD}"}}',
    f'{{"provider": [{{"access_token": "{WORD}"}}]}}',
    f'{{"byok": "{ODD}"}}',
    f'{{"api_key": "{WORD}"',
    f"https://me:{WORD}@127.0.0.1:9/v1",
    f"http://127.0.0.1:9/v1?key={WORD}",
    f"b 'header=X-Api-Key: {WORD}' seed=7",
    f"b header=X-Team:{WORD}",
    f"""b 'extra_body={{"api_key": "{WORD}"}}'""",
    f"""b 'extra_body={{"byok": "{ODD}"}}'""",
    f"b api_key={WORD}",
    f"--api-key={WORD}",
    f"Authorization: Bearer {KEY}",
    f"python,sandbox=docker:x/{KEY}",
    f"unix:/{KEY}",
]
"""Values that hold a key, of an option that takes any text."""

HARMLESS = [
    "results/run-20241022T101500-abc12def3",
    "Qwen/QwQ-32B",
    "http://127.0.0.1:8000/v1",
    "8,16,…,256",
    "1e-3",
    "none",
    '{"top_k": 20, "stop": ["a"]}',
    "aime24:64,math500",
    "{question} a: b=c",
    "unix:/a@b/c.sock",
    "subject=maths",
    "b model=Qwen/QwQ-32B temperature=0.6 max_tokens=32768",
    "5d2b0a1f6f6a4fbb8f8f0d2a8a9f7c3e1b2d4c6a",
    "results/hf-model-instruct-v2/sk-learn-benchmarks",
]

HIDES_ALL = {"--header", "--env"}
"""The options whose values are hidden whatever they are: headers and variables."""
TAKES_KEYS = {*HIDES_ALL, "--extra-body", "--base-url", "--serve-option"}
"""The options with which a key may be typed, so that a command with it succeeds."""

RUN = "demo:1 --limit 1 --model m --max-tokens 64 --no-canary -q --base-url {url}"
BASE = {
    "run": f"{RUN} --out new",
    "sweep": "s.yaml --dry-run",
    "gate": "s.yaml",
    "probe": "{url} --checks listing",
    "benchmarks show": "demo",
    "benchmarks fetch": "demo",
    "status": "a",
    "merge": "a b --out joined",
    "score": "a --workers 1",
    "grade": "2 2",
    "audit": "a --out sheet.jsonl",
    "report": "a --out page",
    "show": "a",
    "view": "nowhere",
    "export": "a --to sharegpt --out exported",
    "compare": "a b",
    "plan": "a --detect 5",
    "verify": "a",
    "serve logs": "none",
    "serve stop": "none",
}
"""Command → words with which it does its work in the folder of the test; a server's is shown by a dry run."""


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """(words, command) of every command and of those below a group."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, click.Context(below, parent=context, info_name=name))
    else:
        yield context.command_path.partition(" ")[2], command


FLAGS = {
    name: [
        max(parameter.opts, key=len) if isinstance(parameter, click.Option) else ""
        for parameter in command.params
        if not (isinstance(parameter, click.Option) and parameter.is_flag)
    ]
    for name, command in commands(cli, click.Context(cli, info_name="harness"))
}
"""Command → its options that take a value; "" for an argument."""

UNKNOWN = ["--api-key", "--apikey"]


answer = serving(r"\boxed{2}", "m", max_model_len=40_000)


def shown_in(done: Result) -> list[str]:
    return [key for key in HELD if key in done.out + done.err]


def files_with_a_key(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if any(key.encode() in path.read_bytes() for key in HELD)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of each command its own: a path that one writes must not be read, or served, by another."""
    for number, name in enumerate("ab"):
        write_run(tmp_path / name, benchmarks=[("demo", 2, 2)], seed=number)
    (tmp_path / "s.yaml").write_text("models: [m]\nbenchmarks: [demo]\nrun: {base_url: 'http://127.0.0.1:9'}\n")
    return tmp_path


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", FLAGS)
def test_no_option_of_any_command_shows_or_stores_a_key(folder: Path, command: str) -> None:
    cases = [(flag, form) for flag in [*FLAGS[command], *UNKNOWN] for form in FORMS]
    with FakeServer(answer) as server:
        base = shlex.split(BASE.get(command, "m --dry-run").format(url=server.base_url))
        for flag, form in random.sample(cases, min(len(cases), 60 if ALL else 10)):
            words = [*command.split(), *base, f"{flag}={form}"] if flag else [*command.split(), form]
            done = harness(folder, *words)
            assert "Traceback" not in done.err, words
            if done.code in (2, 3) or flag in TAKES_KEYS:
                assert shown_in(done) == [], words
            stored = files_with_a_key(folder)
            assert stored == [] or flag not in TAKES_KEYS, words
            for path in stored:
                path.unlink()


OWN_SWEEP = "models: [m]\nbenchmarks: [{data: q.jsonl}]\n"
FILES = {
    "a list of variables": OWN_SWEEP + f"servers: [{{engine: vllm, env: [X_TOKEN={ODD}]}}]",
    "a list of a list": OWN_SWEEP + f"servers: [{{engine: vllm, env: {{X: [{ODD}]}}}}]",
    "a body that is a text": OWN_SWEEP + f"run: {{extra_body: [{ODD}]}}",
    "a key in place of a number": OWN_SWEEP + f"run: {{max_tokens: {KEY}}}",
    "a key of no option": OWN_SWEEP + f"run: {{api_key: {WORD}}}",
    "no YAML": OWN_SWEEP + f"run: {{api_key: {WORD}",
}
READERS = {"sweep": [], "gate": [], "run": ["--base-url", "m"]}


@pytest.mark.parametrize("file", FILES)
def test_a_mistake_in_a_file_is_answered_without_the_key_in_it(file: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(FILES[file])
    (tmp_path / "q.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n')
    for reader, more in READERS.items():
        done = harness(tmp_path, *reader.split(), "s.yaml", *more)
        assert (done.code in (2, 3), shown_in(done)) == (True, []), (reader, done)


@pytest.mark.parametrize("flag", sorted({flag for flags in FLAGS.values() for flag in flags if flag}))
def test_the_printed_command_hides_the_keys_of_any_option_and_nothing_else(flag: str) -> None:
    for form in FORMS:
        for line in (["run", flag, form, "aime24"], ["run", f"{flag}={form}", "aime24"]):
            words = command_words(line)
            shown = shlex.join(words)
            assert (len(words), [key for key in HELD if key in shown]) == (len(line), []), line
            assert HIDDEN in shown or "@" in form
    for value in HARMLESS if flag not in HIDES_ALL else ():
        for line in (["run", flag, value, "aime24"], ["run", f"{flag}={value}", "aime24"]):
            assert command_words(line) == line


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        *(
            (f"run {line} --port 8000", f"run {line} --port 8000".replace(WORD, HIDDEN))
            for line in (
                f"--serve-option engine-flag=--api-key --serve-option engine-flag={WORD}",
                f"--serve-option=engine-flag=--api-key --serve-option=engine-flag={WORD}",
                f"--serve-option engine-flag=--api-key={WORD}",
                f"--serve-option env=X_KEY={WORD}",
                f"--serve-option=env=X_KEY={WORD}",
            )
        ),
        (f"serve vllm m --port 8000 -- --api-key {WORD}", f"serve vllm m --port 8000 -- --api-key {HIDDEN}"),
        (f"serve vllm m --port 8000 -- --api-key -{WORD}", f"serve vllm m --port 8000 -- --api-key {HIDDEN}"),
        (f"--judge m@http://h/v1?key={WORD},scope=wrong", f"--judge m@http://h/v1?key={HIDDEN},scope=wrong"),
        (
            f"--judge m@http://u:{WORD}@h?key={WORD},jury=n@http://i:1,jury=o@http://u:{WORD}@i?key={WORD}2",
            f"--judge m@http://h?key={HIDDEN},jury=n@http://i:1,jury=o@http://i?key={HIDDEN}",
        ),
        (f"run --header 'X-Team: {WORD}' --header '' x", f"run --header 'X-Team: {HIDDEN}' --header '' x"),
        (f"run --env=HF_TOKEN={WORD}", f"run --env=HF_TOKEN={HIDDEN}"),
        ("score x --limits first_token=1min", "score x --limits first_token=1min"),
        (f"score x --limits token={WORD}", f"score x --limits token={HIDDEN}"),
        (f"report https://me:{WORD}@h/v1", "report https://h/v1"),
    ],
)
def test_the_place_of_a_key_is_hidden_and_nothing_beside_it(typed: str, shown: str) -> None:
    assert command_words(shlex.split(typed)) == shlex.split(shown)


def test_a_key_in_an_address_is_in_no_error_and_no_warning(folder: Path) -> None:
    """Several addresses: one that does not answer is warned of."""
    with FakeServer(answer) as server:
        base = ["run", *shlex.split(BASE["run"].format(url=server.base_url))]
        for form in (f"b header=X-Team:{WORD}", f"--api-key={WORD}"):
            done = harness(folder, *base, f"--base-url={form}")
            assert (shown_in(done), HIDDEN in done.err) == ([], True), done


ADDRESSES = [
    f"{scheme}{user}{{host}}{rest}"
    for scheme in ("http://", "", "HTTP://", "//", "http:")
    for user, rest in (
        (f"me:{WORD}@", "/v1"),
        (f"{WORD}@", "/v1"),
        (f":{WORD}@", ""),
        (f"me:{WORD}@x@", "/v1"),
        (f"me:p/{WORD}@", ""),
        ("", f"/v1?api_key={WORD}"),
        ("", f"?a=1&code={WORD}"),
        ("", f"/v1?{WORD}"),
        ("", f"/v1#{WORD}"),
    )
]
"""Forms of an address with a key in it."""
ASKED = "run --data q.jsonl --model m --max-tokens 64 --no-canary --attempts 1 --out new --base-url"
DOORS = {
    "base-url": (f"{ASKED} {{form}}", "score new --workers 1", "report new"),
    "judge": (f"{ASKED} {{url}}", "score new --workers 1 --judge m@{form}", "report new"),
    "sweep": ("sweep s.yaml --dry-run", "sweep s.yaml", "report results/s"),
    "gate": ("gate s.yaml --dry-run",),
    "HF_ENDPOINT": ("benchmarks fetch aime24",),
    "HTTP_PROXY": (f"{ASKED} http://model.invalid/v1",),
    "HTTPS_PROXY": ("benchmarks fetch aime24", f"{ASKED} https://model.invalid/v1"),
}
"""Where an address is given → commands that use it, or what a run with it has stored."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("door", DOORS)
def test_a_key_in_any_form_of_an_address_is_shown_and_stored_nowhere(tmp_path: Path, door: str) -> None:
    with FakeServer(answer) as server:
        for number, address in enumerate(share_of(ADDRESSES)):
            form = address.format(host=server.base_url.removeprefix("http://").removesuffix("/v1"))
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / "q.jsonl").write_text(
                '{"question": "1+1?", "answer": "2"}\n{"question": "?", "answer": "a word"}\n'
            )
            content = {
                "models": ["m"],
                "benchmarks": [{"data": "q.jsonl"}],
                "run": {"base_url": form, "max_tokens": 64},
            }
            (folder / "s.yaml").write_text(json.dumps(content))
            variables = {door: form, door.lower(): form} if door.isupper() else {}
            for line in DOORS[door]:
                words = shlex.split(line.format(form=shlex.quote(form), url=server.base_url))
                done = harness(folder, *words, extra={"HARNESS_CACHE": str(folder / "cache"), **variables})
                assert ("Traceback" in done.err, shown_in(done)) == (False, []), (form, words, done)
            (folder / "s.yaml").unlink()
            assert files_with_a_key(folder) == [], form


def test_an_addresss_password_is_hidden_where_a_path_has_lost_its_slash() -> None:
    error = without_typed_secrets(f"no run at /x/https:/me:{WORD}@h/v1", ["report", f"https://me:{WORD}@h/v1"])
    assert error == f"no run at /x/https:/me:{HIDDEN}@h/v1"


IN_BODY = "canary-5f0c9d2e71ab4c38-Zq81"


def leaks(text: str) -> bool:
    """Whether 16 characters of the key in a row stand in a text."""
    return any(IN_BODY[at : at + 16] in text for at in range(len(IN_BODY) - 15))


@pytest.mark.parametrize("words", ["EMPTY", "none", "x", "anything", "12345678", "password", "Bearer token"])
def test_a_placeholder_in_a_keys_place_takes_no_word_from_an_answer(words: str) -> None:
    text = f"The password is anything but 12345678, EMPTY or none; a Bearer token, x = {words}."
    assert without_repeats(text, [Secret(words)]) == text


@pytest.mark.parametrize("length", range(8, 40))
def test_a_key_of_any_length_is_hidden_and_nothing_beside_it(length: int) -> None:
    key = ("k3y-" + "a1B2c3D4e5F6g7H8" * 3)[:length]
    for before, after in (("", ""), ("so ", "."), ("x", "y"), ("Bearer ", "\n")):
        assert without_repeats(before + key + after, [Secret(key)]) == before + HIDDEN + after
        assert without_repeats(before + key + after, [Secret(f"Bearer {key}")]) == before + HIDDEN + after
    part = key[: min(15, length // 2)]
    assert without_repeats(part, [Secret(key)]) == part


PLAIN: list[Any] = [
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "claude-3-5-sonnet-20241022",
    "Qwen2.5-Math-7B-Instruct-AWQ",
    "json_schema_strict_v2",
    "high",
    "https://example.com/v1/models/list",
    "root ::= [A-Za-z0-9 .,+=]{20,120} think",
    "{% for message in messages %}{{ message['content'] | trim }}{% endfor %}",
    {"order": ["deepinfra/fp8-turbo"]},
    {"type": "json_object"},
    {"enable_thinking": False, "thinking_budget": 4096},
    3,
    None,
    "0123",
]


def test_names_of_models_grammars_and_words_of_a_body_stay_to_be_read() -> None:
    for value in PLAIN:
        assert seal_secrets({"field": value}) == {"field": value}, value


KEYS = [
    IN_BODY,
    "sk-proj-abcdefghijklmnopqrst",
    "550e8400-e29b-41d4-a716-446655440000",
    "9f86d081884c7d659a2feaa0c55ad015",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "AKIA5T7XQ2M9LPZ4WJ6C0D",
    "see wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY2z9 there",
    "xK9v2Lq8Rt5Yw3Zp",
]


def test_keys_of_a_body_are_sealed_under_any_name_and_come_out_by_name() -> None:
    for key in KEYS:
        assert looks_like_a_key(key) or key.startswith("sk-"), key
        for body in ({"byok": key}, {"a": {"b": [key]}}, {"a": [{"b": key}]}):
            assert key not in str(seal_secrets(body)) + repr(seal_secrets(seal_secrets(body)))
            assert reveal_secrets(seal_secrets(body)) == body
    for body in ({"api_key": "short"}, {"passwords": ["a", "b"]}, {"credentials": {"user": "u", "value": "v"}}):
        assert "short" not in str(seal_secrets(body))
        assert str(seal_secrets(body)).count(HIDDEN) in (1, 2)
        assert reveal_secrets(seal_secrets(body)) == body


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        (["--env", f"X_TOKEN={IN_BODY}"], 'X_TOKEN="$X_TOKEN"'),
        (["--env", f"ODD={IN_BODY}0123456789"], 'ODD="$ODD"'),
        (["--env", "PLAIN=a b"], "PLAIN='a b'"),
        (["--", "--api-key", IN_BODY], "--api-key HIDDEN"),
        (["--", f"--api-key={IN_BODY}"], "--api-key=HIDDEN"),
        (["--", "--config", json.dumps({"hf_token": IN_BODY})], '"hf_token": "HIDDEN"'),
    ],
)
def test_a_dry_run_of_a_server_shows_no_key(words: list[str], stays: str, tmp_path: Path) -> None:
    done = harness(tmp_path, "serve", "command", "m", "--dry-run", *(words if "--" in words else [*words, "--", "x"]))
    if "--" in words:
        done = harness(tmp_path, "serve", "command", "m", "--dry-run", "--", "x", *words[1:])
    assert (done.code, leaks(done.out + done.err)) == (0, False), done.out
    assert stays in done.out
    assert shlex.split(done.out)


def test_a_key_shaped_value_of_a_variable_is_hidden_and_a_path_is_not() -> None:
    assert is_secret("X", IN_BODY)
    assert not is_secret("X", "/opt/model-0123456789-abcdef")
    assert secrets_of({"A_KEY": "abc", "B_KEY": "abcd"}) == ["abcd"]


TYPED = "canary5up3rs3cr3t"


@given(st.lists(st.text()))
def test_any_command_line_keeps_its_number_of_words(words: list[str]) -> None:
    assert len(command_words(words)) == len(words)


VALUES: list[tuple[Any, Any]] = [
    ({"api_key": TYPED, "top_k": 1}, {"api_key": HIDDEN, "top_k": 1}),
    ({"a": [{"token": TYPED}]}, {"a": [{"token": HIDDEN}]}),
    ({"max_tokens": 5, "token": 7}, {"max_tokens": 5, "token": 7}),
    ({"tokens": "all", "stop": ("x",)}, {"tokens": "all", "stop": ("x",)}),
    ({"user": f"sk-{TYPED}0123456789"}, {"user": HIDDEN}),
    ({"judge_extra_body": {"byok": TYPED}}, {"judge_extra_body": {"byok": HIDDEN}}),
    (f"http://u:{TYPED}@h/v1", "http://h/v1"),
]


@pytest.mark.parametrize(("given_value", "shown"), VALUES)
def test_a_value_is_shown_without_the_secrets_in_it(given_value: Any, shown: Any) -> None:
    assert without_secrets(given_value) == shown
