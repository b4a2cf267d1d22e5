"""No Python process that a command starts imports anything from the folder in which the command stands, and those that
read what a model wrote see no key. Each command is played in a folder with a decoy of each module that there is."""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from harness.cli.demo import _step
from harness.client.address import providers
from harness.grading.processes.pool import Pool
from harness.testing import FakeServer, serving
from server_launchers import isolated, spec
from server_launchers.embedded import weights
from server_launchers.errors import DownloadError
from tests.conftest import CHECKOUT
from tests.faults.able import able, sums
from tests.system import command

ABLE = str(CHECKOUT / "tests" / "commands" / "able_server.py")

SITES = {
    "harness/benchmarks/sources/columnar.py": 1,
    "harness/cli/demo.py": 1,
    "harness/cli/follower.py": 2,
    "harness/grading/processes/pool.py": 2,
    "harness/grading/second/second_opinion.py": 1,
    "server_launchers/embedded/weights.py": 1,
    "server_launchers/engines/llama_cpp.py": 1,
    "server_launchers/lifecycle/launch.py": 1,
}
"""Where children are started, by the calls of `isolated.command`. A new one is played below, too, and counted here."""

READ_WHAT_A_MODEL_WROTE = {
    "harness.grading.processes.worker",
    "harness.benchmarks.sources.columnar",
    "library_child.py",
}
"""Children that need no key, so none is in their environment."""

PLAYED = READ_WHAT_A_MODEL_WROTE | {"harness", "server_launchers.lifecycle.guard", "pip"}
"""Children that `play` starts. The embedded server is started by the test of the demo."""

SPEAK_OF_PYTHON = {
    "harness/__main__.py": "in a line to be typed",
    "harness/core/installation.py": "in a line to be typed",
    "server_launchers/embedded/llama_cpp_server.py": "in a line to be typed; it imports nothing of ours",
    "server_launchers/isolated.py": "the one place",
}
"""Files that may name the interpreter, and why."""

ENGINES = {
    "server_launchers/machine/environments.py": "asks an engine's environment for a version, from /",
    "server_launchers/engines/engine.py": "starts a router in an empty folder",
    "server_launchers/program.py": "the words that start an engine whose key must stay off the command line",
}
"""Files that may start another interpreter by `-m` or `-c`, and where."""

_VARIABLES = {address.key_variable for name in providers.names() if (address := providers.load(name).address)}
KEYS = {name: f"canary-{name}" for name in sorted(_VARIABLES | {"OPENAI_API_KEY", "HF_TOKEN", "WANDB_API_KEY"})}


judge = serving("VERDICT: CORRECT", "judge")


COLUMNS = ("--question-key", "problem", "--answer-key", "answer", "--response-key", "response")


def write_theirs(folder: Path) -> None:
    """Another tool's outputs."""
    rows = [{"problem": f"{i} + 1?", "answer": str(i + 1), "response": rf"\boxed{{{i + 1}}}"} for i in range(3)]
    (folder / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_files(folder: Path) -> None:
    """The files that the commands read."""
    sums(folder, 3)
    write_theirs(folder)
    rows = [{"question": "1 + 1?", "answer": "2"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "sums.parquet")
    cell = {"data": "sums.jsonl", "samples": 1}
    sweep = {"models": ["test-model"], "run": {"id_key": "id", "canary": False}, "benchmarks": [cell]}
    (folder / "sweep.yaml").write_text(json.dumps(sweep | {"score": {"workers": 1}}))


def play(folder: Path, judge_url: str, base_url: str) -> None:
    """Every command that starts a process of ours, the embedded server left out."""

    def harness(*words: str) -> None:
        done = command.harness(folder, *words, extra=KEYS | {"HARNESS_GRADERS": "own_verifier"})
        assert done.code == 0, (words, done)

    program = (sys.executable, ABLE, "--port", "{port}")
    flags = [part for word in program for part in ("--serve-option", f"engine-flag={word}")]
    data = ("--data", "sums.jsonl", "--id-key", "id", "--no-canary", "--samples", "1")
    harness("run", *data, "--out", "r", "--serve", "command", "--model", "able", *flags)
    harness("score", "r", "--workers", "2", "--also", "math-verify", "--also", "sympy", "--json")
    judge = ("--judge", f"judge@{judge_url},scope=all")
    harness("score", "theirs.jsonl", *COLUMNS, *judge, "--workers", "1", "--json")
    harness("sweep", "sweep.yaml", "--base-url", base_url)
    harness("run", "--data", "sums.parquet", "--dry-run", "--model", "test-model", "--base-url", base_url)


def decoys(folder: Path, names: set[str], marks: Path) -> None:
    """A module of each name that makes a folder of that name when it is imported."""
    marks.mkdir()
    folder.mkdir()
    for name in names | {"harness", "server_launchers", "sitecustomize", "usercustomize"}:
        (folder / f"{name}.py").write_text(f"__import__('posix').mkdir({str(marks / name)!r})\n")


def program_of(argv: Any) -> str | None:
    """The module or file that an isolated child runs; None for another process."""
    after = [*argv][[*argv].index(isolated.__file__) + 1 :] if isolated.__file__ in argv else []
    return Path(after[0]).name if after else None


@pytest.mark.wide
def test_no_child_of_any_command_imports_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    libraries, folder, started = tmp_path / "libraries", tmp_path / "decoy", list[tuple[str, dict[str, str]]]()
    libraries.mkdir()
    (libraries / "own_verifier.py").write_text("def right(answer, question): return answer == '5'\n")
    decoys(folder, importable(), tmp_path / "marks")
    write_files(folder)
    start = subprocess.Popen.__init__

    def noting(self: Any, argv: Any, *more: Any, **given: Any) -> None:
        if program := program_of(argv):
            started.append((program, given.get("env") or {**os.environ}))
        start(self, argv, *more, **given)

    monkeypatch.setattr(subprocess.Popen, "__init__", noting)
    for name, value in (("PYTHONPATH", libraries), ("PIP_INDEX_URL", "http://127.0.0.1:9"), ("PIP_RETRIES", "0")):
        monkeypatch.setenv(name, str(value))
    with FakeServer(judge) as judging, FakeServer(able(0.9)) as server:
        play(folder, judging.base_url, server.base_url)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HARNESS_GRADERS", "own_verifier")
    with pytest.raises(DownloadError):
        weights._download(weights.KNOWN["smollm2-135m"], tmp_path)
    assert _step("grade", "5", "5", "--grader", "own_verifier:right") == 0, capfd.readouterr()
    assert [*(tmp_path / "marks").iterdir()] == []
    assert {program for program, _ in started} == PLAYED
    for program, environment in started:
        assert program not in READ_WHAT_A_MODEL_WROTE or not KEYS.keys() & environment, program


TELLTALES = ("executable", "orig_argv", "multiprocessing", "-m", "-c", "isolated.command")
"""A file that starts Python has one of these."""


def test_python_is_started_by_one_place() -> None:
    """Nothing else names the interpreter, or hands `-m` or `-c` to one, but what starts engines."""
    speak, starts, sites = set(), set(), {}
    for package in ("harness", "server_launchers"):
        for path in sorted((CHECKOUT / package).rglob("*.py")):
            name = path.relative_to(CHECKOUT).as_posix()
            source = path.read_text("utf-8")
            if not any(word in source for word in TELLTALES):
                continue  # at once: it takes long to parse all files
            nodes = [*ast.walk(ast.parse(source))]
            if any(isinstance(one, ast.Attribute) and one.attr in ("executable", "orig_argv") for one in nodes):
                speak.add(name)
            imports = [ast.dump(one) for one in nodes if isinstance(one, ast.Import | ast.ImportFrom)]
            if any("multiprocessing" in one for one in imports):
                starts.add(f"{name}: multiprocessing")
            words = [word for one in nodes if isinstance(one, ast.List | ast.Tuple) for word in one.elts]
            if any(isinstance(word, ast.Constant) and word.value in ("-m", "-c") for word in words):
                starts.add(name)
            calls = [one.func for one in nodes if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
            if n := sum(one.attr == "command" and ast.unparse(one) == "isolated.command" for one in calls):
                sites[name] = n
    assert speak == SPEAK_OF_PYTHON.keys()
    engines = {f"server_launchers/engines/{name}.py" for name in spec.ENGINES}  # it starts in an empty folder
    # In harness/cli/flags.py, -c is short for --concurrency.
    others = {"server_launchers/isolated.py", "harness/cli/flags.py"}
    assert starts - others - engines == ENGINES.keys()
    assert starts & engines
    assert sites == SITES


SEE_ALL = {
    "harness/cli/demo.py": "a command that the user could type",
    "server_launchers/lifecycle/launch.py": "the guard, which starts an engine with all variables",
}
"""Files that start a child without naming its variables, and why."""


def test_every_child_gets_named_variables() -> None:
    see_all = set()
    for path in [*(CHECKOUT / "harness").rglob("*.py"), *(CHECKOUT / "server_launchers").rglob("*.py")]:
        if "subprocess." not in (source := path.read_text("utf-8")):
            continue
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        starts = [
            node for node in calls if re.fullmatch(r"subprocess\.(run|Popen|\w*call|\w*output)", ast.unparse(node.func))
        ]
        if any(all(word.arg != "env" for word in node.keywords) for node in starts):
            see_all.add(path.relative_to(CHECKOUT).as_posix())
    assert see_all == SEE_ALL.keys()


def test_a_grading_worker_sees_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (KEYS | {"HARNESS_API_KEY": "canary-own"}).items():
        monkeypatch.setenv(name, value)
    with Pool(1, 60.0) as pool:
        worker = pool.start()
        while not (environment := Path(f"/proc/{worker.process.pid}/environ").read_bytes()):
            time.sleep(0.01)  # the kernel is still putting it there
    assert b"canary" not in environment
    names = {part.partition(b"=")[0].decode() for part in environment.split(b"\0") if part}
    own = {"PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "HARNESS_GRADERS", "MPLCONFIGDIR"}
    assert {"PYTHONHASHSEED", "PATH"} <= names <= {*isolated.SYSTEM} | own


TELL = "import json, sys, harness; print(json.dumps([sys.path, harness.__file__, sys.argv, sorted(sys.modules)]))"


@pytest.mark.parametrize("seeded", [False, True])
def test_what_a_child_may_import(seeded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absolute entries of PYTHONPATH first, no other; our packages from beside the file; nobody's customising."""
    here, given, elsewhere = tmp_path / "here", tmp_path / "given", tmp_path / "elsewhere"
    for folder in (here, here / "relative", given, elsewhere / "harness", elsewhere / "server_launchers"):
        folder.mkdir(parents=True)
    for folder in (here, here / "relative"):
        for name in ("sitecustomize", "usercustomize", "token", "json", "harness"):
            (folder / f"{name}.py").write_text(f"raise SystemExit('{name} of {folder.name}')\n")
    (given / "harness.py").write_text("raise SystemExit('harness of another')\n")
    (elsewhere / "harness" / "__init__.py").write_text("")
    (elsewhere / "harness" / "telling.py").write_text(TELL)
    (elsewhere / "server_launchers" / "isolated.py").write_text(Path(isolated.__file__).read_text())
    monkeypatch.setenv("PYTHONPATH", f":.:relative:{given}")
    monkeypatch.chdir(here)
    for program in ("harness.telling", str(elsewhere / "harness" / "telling.py")):
        argv = isolated.command(program, "a", "-m", seeded=seeded)
        argv[argv.index(isolated.__file__)] = str(elsewhere / "server_launchers" / "isolated.py")
        environment = isolated.environment() if seeded else None
        done = subprocess.run(argv, capture_output=True, text=True, env=environment, cwd=here, check=False)
        assert done.returncode == 0, done.stderr
        path, package, words, modules = json.loads(done.stdout)
        assert path[0] == str(given)
        assert [entry for entry in path if not Path(entry).is_absolute() or entry.startswith(str(here))] == []
        assert package == str(elsewhere / "harness" / "__init__.py")
        assert words[1:] == ["a", "-m"]
        assert "usercustomize" not in modules


def test_a_seeded_child_has_its_seed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Isolated Python would ignore it, and verdicts would hang on the order of sets."""
    program = tmp_path / "told.py"
    program.write_text("print(hash('a'))")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    argv = isolated.command(str(program), seeded=True)
    hashes = {subprocess.check_output(argv, env=isolated.environment(PYTHONHASHSEED="0")) for _ in range(3)}
    assert len(hashes) == 1


def test_commands_import_nothing_from_the_current_folder_as_documented(tmp_path: Path) -> None:
    """The installed command and a safe path import not even what Python looks for first; `python -m` imports there what
    it needs itself before any module of ours is."""
    (tmp_path / "nothing.py").write_text("import sys\nprint(*sys.modules)")
    before = {*subprocess.check_output([sys.executable, "-m", "nothing"], cwd=tmp_path, text=True).split()}
    script = str(Path(sys.executable).with_name("harness"))
    ways = ([script], [sys.executable, "-P", "-m", "harness"], [sys.executable, "-m", "harness"])
    for n, way in enumerate(ways):
        folder, marks = tmp_path / f"decoy{n}", tmp_path / f"marks{n}"
        decoys(folder, importable() - (before if n == 2 else set()), marks)
        if n == 2:
            (folder / "harness.py").unlink()
        write_theirs(folder)
        words = ["score", "theirs.jsonl", *COLUMNS] if n == 2 else ["--version"]
        done = subprocess.run([*way, *words], cwd=folder, capture_output=True, text=True, check=False)
        assert (done.returncode, [*marks.iterdir()]) == (0, []), done.stderr
    subprocess.run(ways[2], cwd=tmp_path / "decoy0", capture_output=True, check=False)
    assert [*(tmp_path / "marks0").iterdir()], "python -m harness looks there no more: say so in SECURITY.md"


@pytest.mark.server
def test_the_embedded_server_imports_nothing_from_the_current_folder(tmp_path: Path, smollm2: Path) -> None:
    decoys(tmp_path / "decoy", importable(), tmp_path / "marks")
    words = ("--max-tokens", "4", "--no-canary", "--serve", "llama_cpp", "--model", str(smollm2))
    done = subprocess.run(
        [Path(sys.executable).with_name("harness"), "run", "demo:1", "--limit", "1", *words],
        cwd=tmp_path / "decoy",
        env=command.environment(tmp_path, KEYS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, [*(tmp_path / "marks").iterdir()]) == (0, []), done.stderr


def importable() -> set[str]:
    """Names of all top-level modules of this environment."""
    return {*sys.stdlib_module_names} | {module.name for module in pkgutil.iter_modules()}
