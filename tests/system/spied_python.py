"""An interpreter that tells what each of its processes is, may import and imports: `Spied`.

It is a virtual environment over that of the tests. A line of one of its `.pth` files, which isolated Python obeys, too,
sets an audit hook that writes into a pipe: a child that may write no file, or is killed, tells as well.
"""

from __future__ import annotations

import ast
import os
import site
import threading
import venv
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from server_launchers import isolated
from tests.conftest import CHECKOUT

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
