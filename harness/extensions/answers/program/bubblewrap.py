"""Starting a sandbox with bubblewrap: an empty machine with only a Python interpreter in it.

    present    read-only: the interpreter, its standard library, the shared libraries that these load, numpy if the
               harness has one for this interpreter, our code `inside`; /dev/null, /dev/urandom, /proc, an empty /tmp
    absent     network, environment variables, every other file and process, privileges
    user       "nobody" (65534) if the harness runs as root, so that nothing in the sandbox is root outside

The sandbox's first process keeps one capability, CAP_SYS_ADMIN, inside its own user name space: it needs it to make a
fresh name space for each program (`inside.cell`). Programs have no capability.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.core import codec
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.extensions.answers.program.inside.confinement import supported

PROGRAM = "bwrap"
PACKAGE = "bubblewrap"

_NOBODY = 65534
_INSIDE = "harness/extensions/answers/program/inside"
_LIBRARY = "/sandbox"
"""The folder of the sandbox that has the package `inside`, under its full module name, and numpy."""

_PROBE_SECONDS = 60.0
# The probe loads every extension module once: only then does /proc/self/maps name all shared libraries that the sandbox
# must have.
_PROBE = """
import importlib, json, os, sys, sysconfig
folder = os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload")
for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
    if "test" not in name and "tkinter" not in name:
        try:
            importlib.import_module(name.partition(".")[0])
        except BaseException:
            pass
if len(sys.argv) > 1:
    sys.path.append(sys.argv[1])
    try:
        import numpy
    except BaseException:
        sys.argv = sys.argv[:1]
maps = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
print(json.dumps({"version": list(sys.version_info[:3]), "stdlib": sysconfig.get_path("stdlib"),
    "has_numpy": len(sys.argv) > 1, "files": sorted(path for path in maps if ".so" in path)}))
"""


class Interpreter(NamedTuple):
    """The Python that runs in the sandbox.

    files: shared libraries that it and its modules load. numpy_folder: the folder that holds its numpy; None without
    one.
    """

    path: str
    version: tuple[int, ...]
    standard_library: str
    files: tuple[str, ...]
    numpy_folder: str | None

    @property
    def name(self) -> str:
        """The interpreter's name in grades, since verdicts may differ between versions of Python."""
        return f"python{'.'.join(map(str, self.version))}"


@cache
def interpreter() -> Interpreter:
    """The Python for programs: the harness's own, else the system's. Raises `UsageError` if the sandbox's user can read
    neither."""
    # A venv's interpreter needs pyvenv.cfg and the venv's folders, which the sandbox lacks; the base interpreter does
    # not.
    candidates = [os.path.realpath(getattr(sys, "_base_executable", sys.executable)), "/usr/bin/python3"]
    numpy_folder = _numpy_folder()
    for path in candidates:
        real = os.path.realpath(path)
        arguments = [numpy_folder] if numpy_folder and _may_read(numpy_folder) else []
        if not _may_read(real):
            continue
        probed = _probe(real, arguments)
        if probed is not None and probed.version >= (3, 9):
            stdlib = os.path.realpath(probed.stdlib)
            # Files below these folders are bound with them.
            bound = (stdlib,) if numpy_folder is None else (stdlib, numpy_folder)
            files = tuple(file for file in probed.files if not file.startswith(bound))
            return Interpreter(real, probed.version, stdlib, files, numpy_folder if probed.has_numpy else None)
    raise UsageError(
        "no Python that the sandbox's user can read: run the harness as an ordinary user, or install python3 for all"
    )


class _Probed(msgspec.Struct):
    version: tuple[int, int, int]
    stdlib: str
    has_numpy: bool
    files: list[str]


def _probe(path: str, arguments: list[str]) -> _Probed | None:
    """Run `_PROBE` by the interpreter at `path` and return its facts; None if it does not work.

    arguments: the folder of numpy, or nothing.
    """
    try:
        done = subprocess.run(
            # -S: site would run the .pth files of whatever is installed beside this interpreter.
            [path, "-I", "-S", "-B", "-c", _PROBE, *arguments], env={}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=_PROBE_SECONDS, check=True, cwd="/", **_user(),
        )  # fmt: skip
        return codec.decode(done.stdout, _Probed)
    except (OSError, codec.DecodeError, subprocess.SubprocessError):
        return None


def _numpy_folder() -> str | None:
    found_spec = find_spec("numpy")
    return None if found_spec is None or not found_spec.origin else str(Path(found_spec.origin).parent.parent)


def _may_read(path: str) -> bool:
    """Whether the sandbox's user can read the file or folder."""
    if os.geteuid() != 0:
        return os.access(path, os.R_OK)
    # As root `os.access` always agrees, but the sandbox runs as nobody: the permission bits for others decide.
    real = Path(path)
    try:
        return all(folder.stat().st_mode & 0o1 for folder in real.parents) and bool(real.stat().st_mode & 0o4)
    except OSError:
        return False


def _user() -> dict[str, Any]:
    """Arguments of `subprocess` that start a process as "nobody" if this process is root."""
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}


def require() -> str:
    """The path of bubblewrap. Raises `UsageError` if no sandbox can be made on this machine."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise UsageError(
            f"grading programs needs a sandbox, and {PROGRAM} is not installed: `apt install {PACKAGE}` (or dnf, "
            "pacman); nothing was executed"
        )
    if not supported():
        machine = visible(os.uname().machine)
        raise UsageError(f"the sandbox is written for Linux on x86_64 and aarch64, not for {machine}")
    return path


def command(channel: int) -> list[str]:
    """The command line of a sandbox that exchanges messages over the descriptor `channel`.

    Raises `UsageError` if bubblewrap or a Python is missing.
    """
    words = [require(), *_EMPTY_MACHINE]
    python = interpreter()
    for file in (python.path, *python.files):
        words += ["--ro-bind", file, file]
    words += ["--ro-bind", python.standard_library, python.standard_library]
    # An empty folder hides installed packages: with them a reply would pass on one machine and fail on another.
    for packages in ("site-packages", "dist-packages", "test", "idlelib", "ensurepip"):
        if (Path(python.standard_library) / packages).is_dir():
            words += ["--tmpfs", f"{python.standard_library}/{packages}"]
    words += _links(python.files)
    words += ["--ro-bind", str(Path(__file__).parent / "inside"), f"{_LIBRARY}/{_INSIDE}"]
    if python.numpy_folder is not None:
        for name in ("numpy", "numpy.libs"):
            if (Path(python.numpy_folder) / name).is_dir():
                words += ["--ro-bind", f"{python.numpy_folder}/{name}", f"{_LIBRARY}/{name}"]
    python_code = (
        f"import sys; sys.path[:] = [*filter(None, sys.path), {_LIBRARY!r}]; "
        "from harness.extensions.answers.program.inside import cell, frames; "
        f"cell.serve(frames.Channel({channel}, {channel}), name_spaces=True, alone=True)"
    )
    # The root becomes read-only last, because the mounts above create their folders in it. Python gets no -I, which
    # would ignore the hash seed; the code above takes the current folder out of the import path instead.
    return [*words, "--remount-ro", "/", "--", python.path, "-s", "-S", "-B", "-c", python_code]


_EMPTY_MACHINE = [
    # --new-session: a program with the user's terminal could push input into it (TIOCSTI, CVE-2017-5226).
    "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--die-with-parent",
    "--new-session", "--clearenv", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--proc", "/proc",
    "--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom", "--dir", "/tmp",  # noqa: S108 - in the sandbox
    # A fixed hash seed gives sets one order, and one thread gives one timing: verdicts can be repeated.
    "--setenv", "PYTHONHASHSEED", "0", "--setenv", "OMP_NUM_THREADS", "1", "--setenv", "OPENBLAS_NUM_THREADS", "1",
    "--chdir", "/tmp",  # noqa: S108
]  # fmt: skip
"""Options of bubblewrap for a machine without network, files or privileges; `command` adds the files to be read."""


def _links(files: tuple[str, ...]) -> list[str]:
    """Options of bubblewrap that make the symbolic links by which a binary finds the loader and the libraries.

    files: libraries in the sandbox; a link to one of them is made.
    """
    words = []
    for name in ("lib", "lib64", "bin"):
        root = Path("/", name)
        if root.is_symlink():
            words += ["--symlink", str(root.readlink()), str(root)]
    # The loader is in /lib64 by the name that every binary carries, and that name is often a link.
    for folder in sorted({str(Path(file).parent) for file in files} | {os.path.realpath("/lib64")}):
        links = sorted(link for link in Path(folder).glob("*.so*") if link.is_symlink())
        for link in links:
            target = os.path.realpath(link)
            if target in files:
                words += ["--symlink", target, str(link)]
    return words


def start(channel: int, _memory: int) -> subprocess.Popen[bytes]:
    """Start a sandbox that exchanges messages over `channel`, a descriptor of this process. Raises `UsageError`."""
    words = command(channel)
    return subprocess.Popen(
        # A session of its own: Ctrl-C reaches the harness alone, which ends its sandboxes in order.
        words, pass_fds=(channel,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={}, cwd="/", start_new_session=True, **_user(),
    )  # fmt: skip


def end(process: subprocess.Popen[bytes]) -> None:
    """Remove nothing, as `SandboxMaker.end` allows: bubblewrap leaves nothing behind.

    All processes of a sandbox are in bubblewrap's process name space, so they died with `process`.
    """
