"""Start a sandbox with bubblewrap: an empty machine that contains only a Python interpreter.

    present    read-only: the interpreter, the folders of its libraries and of the system's, numpy if the caller has
               one for this interpreter; /dev/null, /dev/urandom, /proc, an empty /tmp
    absent     network, environment variables, installed packages, every other file and process, privileges
    user       "nobody" (65534) if the caller is root, so that nothing in the sandbox is root outside

The code that runs in it is passed on the command line (`sandbox_source`). The sandbox's first process keeps one
capability, CAP_SYS_ADMIN, inside its own user namespace, to create a new namespace for each program (`inside.cell`).
Programs have no capabilities.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from reasoning_programs.errors import UnavailableError
from reasoning_programs.inside.confinement import supported
from reasoning_programs.sandbox_source import ENVIRONMENT, OPTIONS, PACKAGES, python_text
from reasoning_programs.text import visible

PROGRAM = "bwrap"
"""Bubblewrap's command."""
PACKAGE = "bubblewrap"
"""The system package that installs bubblewrap."""
SYSTEM_PYTHON = "/usr/bin/python3"
"""The system's interpreter, used if the sandbox's user cannot read our own."""

_NOBODY = 65534
"""User and group of a sandbox that root starts."""
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64")
"""Folders of shared libraries and of the standard library."""
# With installed packages, a reply could pass on one machine and fail on another; some systems omit Python's own tests.
_HIDDEN = ("python3*/*-packages", "python3*/test", "python3*/idlelib", "python3*/ensurepip")
"""Subfolders of these that are hidden from the sandbox."""


def _own_python() -> str:
    """The path of the interpreter that runs this process."""
    # A venv's interpreter needs pyvenv.cfg and the venv's folders, which are not in the sandbox; the base interpreter
    # does not.
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def interpreter() -> str:
    """The Python for programs: this process's own or, failing that, the system's. Raises `UnavailableError` if the
    sandbox's user can read neither.
    """
    for path in (_own_python(), os.path.realpath(SYSTEM_PYTHON)):
        if _may_read(path):
            return path
    raise UnavailableError(
        "the sandbox user cannot read the Python installation: run as a regular user, or install python3 for all users"
    )


def _may_read(path: str) -> bool:
    """Whether the sandbox's user can read the file or folder."""
    if os.geteuid() != 0:
        return os.access(path, os.R_OK)
    # As root, `os.access` always returns True, but the sandbox runs as nobody: the permission bits for others apply.
    file = Path(path)
    try:
        return all(folder.stat().st_mode & 0o1 for folder in file.parents) and bool(file.stat().st_mode & 0o4)
    except OSError:
        return False


def require() -> str:
    """The path of bubblewrap. Raises `UnavailableError` if no sandbox can be created on this machine."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise UnavailableError(
            f"running programs requires a sandbox, but {PROGRAM} is not installed: `apt install {PACKAGE}` (or "
            "dnf, pacman)"
        )
    if not supported():
        machine = visible(os.uname().machine)
        raise UnavailableError(f"the sandbox supports Linux on x86_64 and aarch64, not {machine}")
    return path


def command(packages: tuple[str, ...] = ()) -> list[str]:
    """The command line of a sandbox that exchanges messages over its standard streams.

    packages: a tool's packages, which are visible in the sandbox if this Python has them. Raises `UnavailableError` if
    bubblewrap or a Python is missing.
    """
    words, python = [require(), *_EMPTY_MACHINE], interpreter()
    # The libraries of an interpreter in a separate folder, and the names under which its binary finds them.
    folders = list(dict.fromkeys((*_LIBRARIES, os.path.realpath(f"{Path(python).parent.parent}/lib"))))
    for folder in map(Path, folders):
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            words += ["--ro-bind", str(folder), str(folder)]
    hidden = {
        str(path)
        for folder in map(Path, folders)
        if not folder.is_symlink()
        for pattern in _HIDDEN
        for path in folder.glob(pattern)
        if path.is_dir()
    }
    words += [word for path in sorted(hidden) for word in ("--tmpfs", path)]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--ro-bind", python, python]
    # The system's Python of the same version can also use a tool's packages, because extension modules are compatible.
    is_same = python == _own_python() or (
        packages and Path(python).name == f"python{sys.version_info[0]}.{sys.version_info[1]}"
    )
    for path in _folders_of(packages or ("numpy",)) if is_same else ():
        words += ["--ro-bind", str(path), f"{PACKAGES}/{path.name}"]
    # The root becomes read-only last, because the mounts above create their folders in it.
    return [
        *words,
        "--remount-ro",
        "/",
        "--",
        python,
        *OPTIONS,
        "-c",
        python_text("name_spaces=True, alone=True", packages),
    ]


def _folders_of(packages: tuple[str, ...]) -> Iterator[Path]:
    """The folders of these installed packages, if the sandbox's user can read them."""
    for name in packages:
        spec = find_spec(name)
        if spec is not None and spec.origin and _may_read(spec.origin):
            own = Path(spec.origin).parent
            yield from (path for path in (own, own.with_name(f"{name}.libs")) if path.is_dir())


_EMPTY_MACHINE = [
    # --new-session: a program with the user's terminal could push input into it (TIOCSTI, CVE-2017-5226).
    "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--die-with-parent",
    "--new-session", "--clearenv", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--proc", "/proc",
    "--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom", "--dir", "/tmp",  # noqa: S108 - in the sandbox
    *(word for pair in ENVIRONMENT.items() for word in ("--setenv", *pair)), "--chdir", "/tmp",  # noqa: S108
]  # fmt: skip
"""Options of bubblewrap for a machine without network, files or privileges; `command` adds the files to be read."""


def start(channel: int, _memory: int, packages: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    """Start a sandbox that exchanges messages over `channel`, a descriptor of this process. Raises `UnavailableError`.

    packages: as for `command`. The program's memory is limited inside the sandbox; a container receives the limit when
    it starts.
    """
    nobody: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}
    try:
        return subprocess.Popen(
            # In its own session: Ctrl-C reaches only the caller, which stops its sandboxes in an orderly way.
            command(packages),
            stdin=channel,
            stdout=channel,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            start_new_session=True,
            **nobody,
        )
    except PermissionError as error:
        raise UnavailableError(
            "bubblewrap cannot be started as another user because this root user lacks the required capabilities: run "
            "as a regular user, or choose another sandbox (docker:IMAGE)"
        ) from error


def end(process: subprocess.Popen[bytes]) -> None:
    """Remove nothing, as `SandboxMaker.end` allows: bubblewrap leaves nothing behind.

    All processes of a sandbox are in bubblewrap's process namespace, so they died with `process`.
    """
