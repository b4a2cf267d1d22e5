"""Facts about this installation: version, cache folder, and the command that adds an extra."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
import sys
import tempfile
from pathlib import Path

__version__ = "0.1.0"
DISTRIBUTION = "reasoning-harness"

PACKAGE = Path(__file__).resolve().parent.parent
_PARTS = ("reasoning_answers", "reasoning_programs")
"""Packages of the same repository."""


def build() -> str:
    """The version with the first 12 digits of a SHA-256 of all code of this package, of the grader and, if it is
    installed, of the sandbox for programs. Different builds, including a modified working tree, have different values.
    """
    import hashlib
    from importlib import util

    code = hashlib.sha256()
    specs = map(util.find_spec, _PARTS)
    parts = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin is not None]
    for folder in (PACKAGE, *parts):
        for path in sorted(folder.rglob("*.py")):
            code.update(path.relative_to(folder.parent).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{code.hexdigest()[:12]}"


def install_line(extra: str) -> str:
    """The command that installs the packages of an extra, for a message that a package is missing.

    It installs into the running Python's environment, and names the packages rather than the extra, because an index
    may have the packages but not this harness.
    """
    from importlib import metadata, util

    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        lines = []
    requirements = [line.partition(";") for line in lines]
    names = [name.strip() for name, _, marker in requirements if re.search(rf"""extra == ['"]{extra}['"]""", marker)]
    packages = " ".join(shlex.quote(name) for name in names) or shlex.quote(f"{DISTRIBUTION}[{extra}]")
    if util.find_spec("pip") is None:
        return f"uv pip install -p {shlex.quote(sys.executable)} {packages}"
    return f"{shlex.quote(sys.executable)} -m pip install {packages}"


def cache_folder() -> Path:
    """The folder for downloaded data: `$HARNESS_CACHE`, or `reasoning-harness` in `$XDG_CACHE_HOME` or `~/.cache`.

    The folder may not exist yet. Raises `UsageError` like `_folder`.
    """
    return _folder("HARNESS_CACHE", "XDG_CACHE_HOME", ".cache/reasoning-harness")


def state_folder() -> Path:
    """The folder for the state of running servers: `$HARNESS_STATE`, or `reasoning-harness` in `$XDG_STATE_HOME` or
    `~/.local/state`.

    The folder may not exist yet. Raises `UsageError` like `_folder`.
    """
    return _folder("HARNESS_STATE", "XDG_STATE_HOME", ".local/state/reasoning-harness")


def hub_folder() -> Path:
    """The folder of Hugging Face's files: `$HF_HOME`, or `huggingface` in `$XDG_CACHE_HOME` or `~/.cache`.

    The folder may not exist yet. Raises `UsageError` like `_folder`.
    """
    return _folder("HF_HOME", "XDG_CACHE_HOME", ".cache/huggingface")


def hub_cache() -> Path:
    """The folder of the hub's cache: `$HF_HUB_CACHE`, or `hub` in `hub_folder`. Raises `UsageError`."""
    return _folder("HF_HUB_CACHE", "", "") if os.environ.get("HF_HUB_CACHE") else hub_folder() / "hub"


def give_home() -> None:
    """Give this process and its children a home if the user's is unknown or inaccessible: libraries rely on one."""
    with contextlib.suppress(RuntimeError):
        if _is_usable(Path.home()):
            return
    from harness.core.errors import UsageError

    with contextlib.suppress(UsageError):
        os.environ["HOME"] = str(_stand_in())


def _folder(own: str, xdg: str, below_home: str) -> Path:
    """The folder in the variable `own`, or else one in that of `xdg`, or else one in the home. If the home is unknown,
    inaccessible or not writable, the same in a folder for temporary files.

    Raises `UsageError` if a variable names a folder that this user cannot access.
    """
    from harness.core.errors import UsageError

    if own_folder := os.environ.get(own):
        variable, folder = own, Path(os.path.expanduser(own_folder)).absolute()  # noqa: PTH111 - raises nothing
    else:
        # The XDG specification says that a relative path in the variable is to be ignored.
        variable, folder = xdg, Path(os.environ.get(xdg, ""), Path(below_home).name)
    if folder.is_absolute():
        if not _is_open(folder):
            raise UsageError(f"{variable}: permission denied for {folder}; set it to another folder or unset it")
        return folder
    with contextlib.suppress(RuntimeError):
        folder = Path.home() / below_home
        if _is_usable(folder):
            return folder
    return _stand_in() / below_home


def _is_usable(folder: Path) -> bool:
    """Whether this user can read the folder or could create it."""
    return _is_open(folder) and (
        folder.is_dir() or (_existing(folder).is_dir() and os.access(_existing(folder), os.W_OK))
    )


def _is_open(folder: Path) -> bool:
    """Whether this user can read the folder, or the folder in which it would be created."""
    try:
        return not _existing(folder).is_dir() or os.access(_existing(folder), os.R_OK | os.X_OK)
    except PermissionError:
        return False


def _existing(folder: Path) -> Path:
    """The folder, or its nearest existing parent. Raises `PermissionError`."""
    return next(above for above in (folder, *folder.parents) if above.exists())


def _stand_in() -> Path:
    """The folder that replaces a home, among the temporary files; it is created if it is missing.

    Raises `UsageError` if other users have access to it, because libraries are loaded from it.
    """
    from harness.core.errors import UsageError

    folder = Path(tempfile.gettempdir()) / f"reasoning-harness-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        trusted = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    except OSError:
        trusted = False
    if not trusted:
        raise UsageError(f"HOME: there is no usable home folder, and other users can access {folder}; set HOME")
    return folder
