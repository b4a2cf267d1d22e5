"""The only place that starts Python processes: what they may import, which variables they see, and their deadlines.

    python -I …/server_launchers/isolated.py PROGRAM WORDS …

PROGRAM is a module, or a file that ends in `.py`. The function `command` writes that line. The process that it starts
runs this file, which then runs PROGRAM.

Guarantees, for every child that `command` starts: the folder in which it starts, the folder of its file and relative or
empty entries of PYTHONPATH are never searched for modules, including `sitecustomize` and `usercustomize`. Neither the
child nor its own children leave a core file. `harness` and `server_launchers` are imported from this file's location,
regardless of other packages with those names. Absolute entries of PYTHONPATH come first, as for any Python. A child
whose variables come from the function `environment` sees only the variables listed there.

Not covered: an engine is a third-party program. It gets our whole environment, including PYTHONPATH, and starts in an
empty folder that the launcher created. Code that the user's own site-packages run when Python starts is trusted.

Standard library only, in syntax that Python 3.8 supports, because the interpreter of another environment may run this
file.
"""

from __future__ import annotations

import contextlib
import os
import resource
import site
import sys
import time
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

PYTHON = sys.executable
"""The Python interpreter that runs this process."""

_FILE = Path(__file__).absolute()
_ROOT = str(_FILE.parent.parent)
"""The folder that contains our packages."""
_PACKAGES = ("harness", "server_launchers", "reasoning_answers")
"""Packages that are imported from this file's location."""
_PLACES = (_ROOT, str(_FILE.parent.parent / "packages" / "answers"))
"""The folders that may contain them: all are in the first, except in a checkout."""

SYSTEM = (
    "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONUSERBASE",
    # These variables let coverage measure the child processes of a measured test.
    "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG",
)  # fmt: skip
"""Environment variables that every child may see. None of them contains a key."""

CONTAINERS = (
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "SSH_AUTH_SOCK",
)
"""Variables with which the commands of container engines find their server."""

HARNESS = (
    "HARNESS_CACHE",
    "HARNESS_STATE",
    "HARNESS_DATASETS",
    "HARNESS_GRADERS",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    *CONTAINERS,
)
"""Variables for our own commands that contact no server."""


def command(program: str, *words: str, python: str = PYTHON, seeded: bool = False) -> list[str]:
    """The argv that runs `program` (a module, or the path of a file) with `words`, isolated.

    python: the interpreter. seeded: the child obeys PYTHONHASHSEED and Python's other variables, which is safe only if
    its variables come from `environment`.
    """
    # -I means -P, -s and -E. -E ignores all of Python's variables, so a seeded child gets only -P and -s; -P needs
    # Python 3.11.
    flags = ("-P", "-s") if seeded else ("-I",)
    return [python, *flags, str(_FILE), program, *words]


def leave_no_core() -> None:
    """Disable core dumps of this process and its children, because a dump would contain the keys.

    If Linux's core_pattern pipes dumps to a program, the kernel ignores a limit of 0 bytes but obeys a limit of 1 byte.
    If the hard limit is 0, we cannot set 1; systemd-coredump and apport, the usual programs for this, obey 0
    themselves.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    soft = 1 if sys.platform == "linux" and hard != 0 else 0
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def environment(*further: str, **own: str) -> dict[str, str]:
    """The variables of a child that must not see keys: those in `SYSTEM` and `further` that are set, and `own`."""
    passed = {name: os.environ[name] for name in (*SYSTEM, *further) if name in os.environ}
    if "PYTHONPATH" in passed:
        # A relative entry would point into whatever folder the child starts in.
        passed["PYTHONPATH"] = os.pathsep.join(_absolute(passed["PYTHONPATH"]))
    return {**passed, **own}


def _absolute(path: str) -> list[str]:
    """The absolute entries of a search path such as PYTHONPATH."""
    return [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]


class _Packages:
    """An import finder for our own packages, which are next to this file."""

    @staticmethod
    def find_spec(name: str, path: object = None, _target: object = None) -> ModuleSpec | None:
        """The spec of one of our packages, as `sys.meta_path` needs it; None for any other module."""
        return PathFinder.find_spec(name, [*_PLACES]) if path is None and name in _PACKAGES else None


def _run(program: str, words: list[str]) -> None:
    """Run `program` in this process, as if Python had started it."""
    import runpy

    leave_no_core()
    entries = _absolute(os.environ.get("PYTHONPATH", ""))
    sys.path[:0] = [entry for entry in entries if entry not in sys.path]
    # Isolation drops the packages of `pip install --user`. They are added last here, and their usercustomize does not
    # run.
    if sys.prefix == sys.base_prefix and not os.environ.get("PYTHONNOUSERSITE"):
        sys.path.append(site.getusersitepackages())
    # Our finder comes first: the other environment may have an installed `harness` of another version.
    sys.meta_path.insert(0, _Packages)
    sys.argv = [program, *words]
    if program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


# ---- the deadline of a process


class Deadline:
    """The deadline for a process's answer. Waiting for a processor does not count, so that a busy machine does not
    change any verdict.

    pid: the process, not yet waited for. ends_at: the deadline in seconds of the monotonic clock, before the waiting
    since `start` or the last `postpone` is added.
    """

    def __init__(self, pid: int) -> None:
        self.ends_at = 0.0
        self._pid = pid
        self._waited = 0.0  # seconds of waiting that `ends_at` includes

    def start(self, seconds: float) -> None:
        """Set the deadline of the next answer to `seconds` from now, and ignore earlier waiting for a processor."""
        self.ends_at = time.monotonic() + seconds
        self._waited = seconds_without_processor(self._pid)

    def postpone(self, stood_still: float = 0.0) -> None:
        """Postpone the deadline by the time since the last call in which the process waited for a processor, or in
        which the machine stood still for `stood_still` seconds, whichever is longer: one may include the other.
        """
        waited = seconds_without_processor(self._pid)
        self.ends_at += max(waited - self._waited, stood_still)
        self._waited = waited

    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        if time.monotonic() < self.ends_at:
            return False
        self.postpone()
        return time.monotonic() >= self.ends_at


def seconds_without_processor(task: int) -> float:
    """Seconds for which a process or thread was ready to run but had no processor; 0 if the system does not report
    them. task: its id.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        # The second number: nanoseconds on a run queue, ready but without a processor.
        return int(Path(f"/proc/{task}/schedstat").read_bytes().split()[1]) / 1e9
    return 0.0


if __name__ == "__main__":
    _run(sys.argv[1], sys.argv[2:])
