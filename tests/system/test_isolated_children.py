"""No Python process that a command starts imports anything from the folder in which the command stands, and those that
read what a model wrote see no key. Each command is played in a folder with a decoy of each module that there is."""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import shlex
import site
import subprocess
import sys
import threading
import time
import venv
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet
import pytest

from harness.client.address import providers
from harness.grading.processes.pool import Pool
from harness.testing import FakeServer, Request, Step, completion, models
from server_launchers import isolated, spec
from tests.conftest import CHECKOUT
from tests.faults.able import able, sums
from tests.patience import PATIENCE_SECONDS
from tests.system import command

_SPY = """
import os, sys
_pipe = os.open({pipe!r}, os.O_WRONLY)
_path = None
_told = set()
def _tell(kind, value):
    if kind == "module":
        if value in _told:
            return
        _told.add(value)
    try:
        os.write(_pipe, f"{{os.getpid()}}\\t{{kind}}\\t{{value!r}}\\n".encode())
    except OSError:
        pass
def _hook(event, arguments):
    global _path
    if event == "import":
        _tell("module", arguments[0].partition(".")[0])
        if _path != sys.path:
            _path = list(sys.path)
            _tell("path", _path)
_tell("argv", [word[:200] for word in sys.orig_argv[:12]])
_tell("names", sorted(os.environ))
for name in sys.modules:
    _tell("module", name.partition(".")[0])
sys.addaudithook(_hook)
"""
_MARK, _END = b"mark\n", b"end\n"
_SCRIPT = "import sys\nfrom harness.__main__ import main\nsys.exit(main())\n"


@dataclass
class Process:
    """What one process told. names: of its environment."""

    argv: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    path: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    @property
    def program(self) -> str | None:
        """The module or file that an isolated child runs; None for another process."""
        after = self.argv[self.argv.index(isolated.__file__) + 1 :] if isolated.__file__ in self.argv else []
        return Path(after[0]).name if after else None


@dataclass
class Spied:
    """python: the interpreter. script: what the console script `harness` is to it. pipe: into which it tells."""

    python: str
    script: str
    pipe: int
    _processes: dict[int, Process] = field(default_factory=lambda: defaultdict(Process))
    _heard: threading.Event = field(default_factory=threading.Event)

    def take(self) -> list[Process]:
        """The processes that told anything since the last call."""
        self._heard.clear()
        os.write(self.pipe, _MARK)
        assert self._heard.wait(60)
        processes, self._processes = list(self._processes.values()), defaultdict(Process)
        return processes

    def listen(self) -> None:
        """Note what comes through the pipe until it says that this is all."""
        with open(self.pipe, "rb", closefd=False) as lines:
            for line in lines:
                if line == _END:
                    return
                if line == _MARK:
                    self._heard.set()
                else:
                    self._hear(line)

    def _hear(self, line: bytes) -> None:
        pid, kind, text = line.decode().split("\t", 2)
        process, value = self._processes[int(pid)], ast.literal_eval(text)
        if kind == "module":
            process.modules.add(value)
        elif kind == "path":
            process.path.update(value)
        else:
            setattr(process, kind, value)


@contextmanager
def spied(folder: Path) -> Iterator[Spied]:
    """The interpreter, made in `folder`; what it tells is heard within the block."""
    venv.create(folder / "env", symlinks=True, with_pip=False)
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    (packages / "spying.py").write_text(_SPY.format(pipe=str(folder / "pipe")))
    ours = [entry for entry in site.getsitepackages() if Path(entry).is_dir()]
    (packages / "of_the_tests.pth").write_text("\n".join(["import spying", *ours, str(CHECKOUT)]))
    script = folder / "env" / "bin" / "harness"
    script.write_text(_SCRIPT)
    os.mkfifo(folder / "pipe")
    pipe = os.open(folder / "pipe", os.O_RDWR)
    here = Spied(str(folder / "env" / "bin" / "python"), str(script), pipe)
    listener = threading.Thread(target=here.listen)
    listener.start()
    try:
        yield here
    finally:
        os.write(pipe, _END)
        listener.join()
        os.close(pipe)


ABLE = str(CHECKOUT / "tests" / "verbs" / "able_server.py")

SITES = {
    "harness/benchmarks/sources/parquet.py": 1,
    "harness/cli/demo.py": 1,
    "harness/cli/following.py": 1,
    "harness/grading/processes/pool.py": 2,
    "harness/grading/second/second_opinion.py": 1,
    "harness/verbs/sweep/scorer.py": 1,
    "server_launchers/embedded/weights.py": 1,
    "server_launchers/engines/llama_cpp.py": 1,
    "server_launchers/keeping/launch.py": 1,
}
"""Where children are started, by the calls of `isolated.command`. A new one is played below, too, and counted here."""

READ_WHAT_A_MODEL_WROTE = {
    "harness.grading.processes.worker", "harness.benchmarks.sources.parquet", "math_verify_child.py", "sympy_child.py",
}  # fmt: skip
"""Children that need no key, so none is in their environment."""

PLAYED = READ_WHAT_A_MODEL_WROTE | {"harness", "harness.verbs.sweep.scorer", "server_launchers.keeping.guard", "pip"}
"""Children that `play` starts. The embedded server is started by the test of the demo."""

SPEAK_OF_PYTHON = {
    "harness/__main__.py": "in a line to be typed",
    "harness/core/about.py": "in a line to be typed",
    "harness/extensions/answers/program/bubblewrap.py": "names the interpreter that a sandbox runs",
    "server_launchers/embedded/llama_cpp_server.py": "in a line to be typed; it imports nothing of ours",
    "server_launchers/isolated.py": "the one place",
}
"""Files that may name the interpreter, and why."""

ENGINES = {
    "harness/extensions/answers/program/bubblewrap.py": "starts Python by -S, from / or in a sandbox",
    "harness/extensions/answers/program/containers.py": "starts the Python of an image, in a container",
    "server_launchers/machine/environments.py": "asks an engine's environment for a version, from /",
    "server_launchers/engines/routers.py": "starts a router in an empty folder",
    "server_launchers/program.py": "the words that start an engine whose key must stay off the command line",
}
"""Files that may start another interpreter by `-m` or `-c`, and where."""

_VARIABLES = {address.key_variable for name in providers.names() if (address := providers.load(name).address)}
KEYS = {name: f"canary-{name}" for name in sorted(_VARIABLES | {"OPENAI_API_KEY", "HF_TOKEN", "WANDB_API_KEY"})}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spied]:
    with spied(tmp_path_factory.mktemp("spied")) as interpreter:
        yield interpreter


def judge(request: Request) -> Iterator[Step]:
    yield from [models("judge")] if request.method == "GET" else completion("VERDICT: CORRECT", tokens=3)


COLUMNS = ("--question-key", "problem", "--answer-key", "answer", "--response-key", "response")


def write_theirs(folder: Path) -> None:
    """Another tool's outputs."""
    rows = [{"problem": f"{i} + 1?", "answer": str(i + 1), "response": rf"\boxed{{{i + 1}}}"} for i in range(3)]
    (folder / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@dataclass
class Player:
    """Plays commands in `folder`, and keeps what they print."""

    spied: Spied
    folder: Path
    judge_url: str
    base_urls: tuple[str, str]

    def __post_init__(self) -> None:
        self.printed: dict[str, str] = {}
        self.libraries = self.folder.parent / "libraries"
        self.environment = command.environment(self.folder, KEYS) | {
            "PYTHONPATH": f"{self.libraries}", "HARNESS_GRADERS": "own_verifier",
            "PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0",
        }  # fmt: skip

    def write(self) -> None:
        """The files that the commands read."""
        sums(self.folder, 3)
        write_theirs(self.folder)
        rows = [{"question": "1 + 1?", "answer": "2"}]
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), self.folder / "sums.parquet")
        sweep = {
            "models": ["able"], "run": {"id_key": "id", "canary": False}, "score": {"workers": 1},
            "servers": [{"name": "s", "command": [sys.executable, ABLE, "--port", "{port}"]}],
            "benchmarks": [{"data": "sums.jsonl", "samples": 1}],
        }  # fmt: skip
        (self.folder / "sweep.yaml").write_text(json.dumps(sweep))
        self.libraries.mkdir(exist_ok=True)
        (self.libraries / "own_verifier.py").write_text("def right(answer, question): return answer == '5'\n")

    def __call__(self, *words: str, codes: tuple[int, ...] = (0,)) -> None:
        """Run `harness WORDS`."""
        self.run([self.spied.script, *words], codes)

    def run(self, argv: list[str], codes: tuple[int, ...] = (0,)) -> None:
        """Run the interpreter with `argv`."""
        done = subprocess.run(
            [self.spied.python, *argv], cwd=self.folder, env=self.environment, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert done.returncode in codes, (argv, done.stdout, done.stderr)
        self.printed[shlex.join(argv)] = done.stdout

    def play(self) -> None:
        """Every command that starts a process of ours, the embedded server left out."""
        self.write()
        program = (sys.executable, ABLE, "--port", "{port}")
        server = ("--served-name", "able", "--", *program)
        flags = [part for word in program for part in ("--serve-option", f"engine-flag={word}")]
        data = ("--data", "sums.jsonl", "--id-key", "id", "--no-canary", "--samples", "1")
        self("run", *data, "--out", "r", "--serve", "command", "--model", "able", *flags)
        self("score", "r", "--workers", "2", "--also", "math-verify", "--also", "sympy", "--json")
        judge = ("--judge", f"judge@{self.judge_url},scope=all")
        self("score", "theirs.jsonl", *COLUMNS, *judge, "--workers", "1", "--json")
        one, other = (f"{name} base_url={url}" for name, url in zip(("one", "two"), self.base_urls, strict=True))
        self(
            "race",
            *data[:-2],
            "--samples",
            "2",
            "--out",
            "race",
            "--candidate",
            one,
            "--candidate",
            other,
            codes=(0, 1),
        )
        self("sweep", "sweep.yaml")
        self("run", "--data", "sums.parquet", "--dry-run", "--model", "test-model", "--base-url", self.base_urls[0])
        self("serve", "command", "--name", "kept", "--detach", *server)
        self("serve", "stop", "kept")
        self.run(["-I", "-c", DOWNLOAD])
        self.run(["-I", "-c", STEP])


STEP = """
import sys
from harness.cli.demo import _step
sys.exit(_step("grade", "5", "5", "--grader", "own_verifier:right"))
"""

DOWNLOAD = """
import pathlib
from server_launchers.embedded import weights
from server_launchers.errors import DownloadError
try:
    weights._download(weights.KNOWN["smollm2-135m"], pathlib.Path("."))
except DownloadError:
    pass
else:
    raise SystemExit("downloaded from nowhere")
"""


def decoys(folder: Path, names: set[str], marks: Path) -> None:
    """A module of each name that makes a folder of that name when it is imported."""
    marks.mkdir()
    folder.mkdir()
    for name in names | {"harness", "server_launchers", "sitecustomize", "usercustomize"}:
        (folder / f"{name}.py").write_text(f"__import__('posix').mkdir({str(marks / name)!r})\n")


def is_child(process: Process) -> bool:
    """It was started by `isolated.command`."""
    return process.program is not None


@pytest.mark.wide
def test_no_child_of_any_command_imports_from_the_current_folder(python: Spied, tmp_path: Path) -> None:
    with (
        FakeServer(judge) as judging,
        FakeServer(able(0.4)) as weak, FakeServer(able(0.9, shift=1)) as strong,
    ):  # fmt: skip
        urls = (judging.base_url, (weak.base_url, strong.base_url))
        decoys(tmp_path / "decoy", importable(), tmp_path / "marks")
        player = Player(python, tmp_path / "decoy", *urls)
        player.play()
        processes = python.take()
    names = {name for process in processes for name in process.modules}
    assert names >= {"token", "msgspec", "enum", "sympy", "click", "__future__"}
    assert sorted(path.name for path in (tmp_path / "marks").iterdir()) == []
    children = [process for process in processes if is_child(process)]
    assert {process.program for process in children} == PLAYED
    for process in children:
        assert [entry for entry in process.path if not Path(entry).is_absolute()] == [], process.argv
        assert str(player.folder) not in process.path, process.argv
        if process.program in READ_WHAT_A_MODEL_WROTE:
            assert set(KEYS) & {*process.names} == set(), process.argv


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
            if any(
                isinstance(one, ast.Import | ast.ImportFrom) and "multiprocessing" in ast.dump(one) for one in nodes
            ):
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
    assert starts - {"server_launchers/isolated.py", "harness/cli/flags.py"} - engines == ENGINES.keys()
    assert starts & engines
    assert sites == SITES


def test_a_grading_worker_sees_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (KEYS | {"HARNESS_API_KEY": "canary-own"}).items():
        monkeypatch.setenv(name, value)
    with Pool(1, 60.0) as pool:
        worker = pool.start()
        while not (environment := Path(f"/proc/{worker.process.pid}/environ").read_bytes()):
            time.sleep(0.01)  # the kernel is still putting it there
    assert b"canary" not in environment
    names = {part.partition(b"=")[0].decode() for part in environment.split(b"\0") if part}
    own = {"PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "HARNESS_GRADERS"}
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


@pytest.mark.parametrize("words", [("harness", "score", "theirs.jsonl", *COLUMNS)])
def test_a_module_that_is_run_imports_nothing_from_the_current_folder(words: tuple[str, ...], tmp_path: Path) -> None:
    """But what `python -m` itself imports there before any module of ours is."""
    (tmp_path / "nothing.py").write_text("import sys\nprint(*sys.modules)")
    before = subprocess.check_output([sys.executable, "-m", "nothing"], cwd=tmp_path, text=True)
    decoys(tmp_path / "decoy", importable() - {*before.split()}, tmp_path / "marks")
    (tmp_path / "decoy" / f"{words[0]}.py").unlink()
    write_theirs(tmp_path / "decoy")
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=tmp_path / "decoy", capture_output=True, text=True, check=False
    )
    assert (done.returncode, [*(tmp_path / "marks").iterdir()]) == (0, []), done.stderr


def test_the_installed_command_and_a_safe_path_import_not_even_what_python_looks_for_first(tmp_path: Path) -> None:
    """The two ways that SECURITY.md gives for a stranger's folder, and that the third one is as it says."""
    decoys(tmp_path / "decoy", importable(), tmp_path / "marks")
    marks, script = tmp_path / "marks", str(Path(sys.executable).with_name("harness"))
    for words in ([script], [sys.executable, "-P", "-m", "harness"]):
        done = subprocess.run(
            [*words, "--version"], cwd=tmp_path / "decoy", capture_output=True, text=True, check=False
        )
        assert (done.returncode, [*marks.iterdir()]) == (0, []), done.stderr
    subprocess.run([sys.executable, "-m", "harness"], cwd=tmp_path / "decoy", capture_output=True, check=False)
    assert [*marks.iterdir()], "python -m harness looks into the current folder no more: say so in SECURITY.md"


@pytest.mark.server
def test_the_embedded_server_imports_nothing_from_the_current_folder(
    python: Spied, tmp_path: Path, smollm2: Path
) -> None:
    python.take()
    decoys(tmp_path / "decoy", importable(), tmp_path / "marks")
    words = ("--max-tokens", "4", "--no-canary", "--no-fingerprint", "--serve", "llama_cpp", "--model", str(smollm2))
    done = subprocess.run(
        [python.python, python.script, "run", "demo:1", "--limit", "1", *words], cwd=tmp_path / "decoy",
        env=command.environment(tmp_path, KEYS), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, [*(tmp_path / "marks").iterdir()]) == (0, []), done.stderr
    assert "llama_cpp_server.py" in {process.program for process in python.take()}


def importable() -> set[str]:
    """Names of all top-level modules of this environment."""
    return {*sys.stdlib_module_names} | {module.name for module in pkgutil.iter_modules()}
