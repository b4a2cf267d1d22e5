"""Files are opened by two functions: `open_untrusted` for those of a run, `open_named` for those that a user names.

For: harness.core.files.
"""

from __future__ import annotations

import ast
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.files import open_named, open_untrusted, read_at, read_named, real
from tests.conftest import CHECKOUT
from tests.patience import PATIENCE_SECONDS

OPENERS = frozenset(
    {"open", "fdopen", "FileIO", "read_text", "read_bytes", "ZipFile", "ParquetFile", "memmap", "fromfile", "loadtxt",
     "open_code", "popen", "copyfile", "copytree", "copy2", "resolve"}
)  # fmt: skip
"""Names by which Python, numpy and pyarrow open a file, or read one whole; and `Path.resolve`, which raises for a link
to itself where `files.real` does not.
"""

OTHERS: dict[str, set[str]] = {
    "harness/__main__.py": {"Path(__file__).resolve"},
    "harness/core/files.py": {
        "os.open",
        "io.FileIO",
        "os.fdopen",
        "Path(__file__).resolve",
    },  # the two functions; temporary files and folders
    "harness/runs/line_file.py": {"os.open"},  # for writing, links refused
    "harness/runs/journal.py": {"open"},  # a descriptor that is open already
    "harness/benchmarks/sources/tables.py": {"library.open"},  # gzip or zstd, of an open file
    "harness/benchmarks/sources/hub.py": {"zipfile.ZipFile", "opened.open"},  # a download; its members
    "harness/foreign/layouts.py": {"zipfile.ZipFile", "archive.open"},  # of an open file
    "harness/extensions/exporters/inspect.py": {"zipfile.ZipFile"},  # to an open file
    "harness/cli/main.py": {"os.fdopen"},  # standard streams
    # the package's metadata and code
    "harness/core/installation.py": {
        "path.read_bytes",
        "Path(__file__).resolve",
    },
    "harness/runs/commit.py": {"metadata.distribution(DISTRIBUTION).read_text"},
    # the kernel's
    "harness/core/cores.py": {
        "Path('/proc/self/cgroup').read_text",
        "(folder / 'cpu.max').read_text",
        "file.read_text",
    },
    "harness/cli/gate.py": {"policies.EXAMPLE.read_text"},  # the example, of the package
    "harness/judges/labels.py": {"(forms_folder() / 'hostile.jsonl').read_bytes"},  # likewise: hostile answers
    "harness/grading/verifier.py": {"source.read_bytes"},  # the module of a trusted verifier
}
"""Modules that open something else, and by which calls. Nothing of it is a file of a run."""

NO_FILES = {"Journal.open", "RunFolder.open", "self._control.open", "shutil.copyfileobj"}
"""Functions of such a name: each opens by the two functions, or no file."""


def opened(source: str) -> Iterator[str]:
    """The calls of a module that open a file or read one whole, as they are written; null devices left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function, given = ast.unparse(node.func), ast.unparse(ast.Tuple([*node.args], ast.Load()))
            name = function.rpartition(".")[2]
            opens = name in OPENERS or function.startswith("shutil.copy")
            if opens and function not in NO_FILES and "os.devnull" not in given and "os.dup(" not in given:
                yield function


def test_nothing_of_the_harness_opens_a_file_in_another_way() -> None:
    texts = {str(path.relative_to(CHECKOUT)): path.read_text("utf-8") for path in (CHECKOUT / "harness").rglob("*.py")}
    found = {name: set(opened(text)) for name, text in texts.items() if any(one in text for one in OPENERS)}
    more = {name: calls - OTHERS.get(name, set()) for name, calls in found.items()}
    assert {name: calls for name, calls in more.items() if calls} == {}
    assert {name: gone for name, calls in OTHERS.items() if (gone := calls - found.get(name, set()))} == {}


def strange(folder: Path) -> dict[str, Path]:
    """What may stand in the place of a file."""
    (folder / "there").write_bytes(b"secret")
    places = {kind: folder / kind for kind in ("link", "dangling", "pipe", "socket", "folder", "nothing")}
    places["link"].symlink_to(folder / "there")
    places["dangling"].symlink_to(folder / "nowhere")
    os.mkfifo(places["pipe"])
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places["socket"]))
    places["folder"].mkdir()
    return places | {"device": Path("/dev/zero")}


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path_factory: pytest.TempPathFactory) -> None:
    places = strange(tmp_path_factory.mktemp("f"))  # a short name, for the socket
    for kind, of_a_run, named in (
        ("link", "symbolic link.*cp -rL", ""),
        ("dangling", "symbolic link", "No such file"),
        *((kind, f"but a {kind}", f"but a {kind}") for kind in ("pipe", "socket", "folder", "device")),
        ("nothing", "No such file", "No such file"),
    ):
        with pytest.raises(OSError, match=of_a_run):
            open_untrusted(places[kind])
        if named:
            with pytest.raises(OSError, match=named):
                open_named(places[kind])
    assert read_named(places["link"], 3) == b"secr", (
        "one byte more than asked, so that who asks sees that there is more"
    )


def test_short_reads_are_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "file", os.pread
    path.write_bytes(bytes(range(100)))
    monkeypatch.setattr(os, "pread", lambda descriptor, n, at: real(descriptor, min(n, 7), at))
    with open_untrusted(path) as file:
        for at, numbers in ((20, range(20, 70)), (90, range(90, 100)), (200, range(0))):
            assert read_at(file.fileno(), 50, at) == bytes(numbers)


def test_the_real_path_of_a_link_to_itself_is_the_links(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").symlink_to(".")
    assert real(tmp_path / "folder" / "loop") == tmp_path.resolve() / "loop"
