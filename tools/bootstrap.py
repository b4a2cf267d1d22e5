"""Create a virtual environment and install into it, on a machine that has only Python, make and a package index.

    python3 tools/bootstrap.py .venv -e '.[llama-cpp]' [--extra-if-possible NAME]

With this checkout, the packages of its folder `packages` are installed, which it depends on and which no index has. The
extra NAME of this checkout is installed last; if that fails (for example, without a compiler), a note says so.

Standard library only. pip comes from ensurepip; if a distribution omits ensurepip, from this interpreter's pip; if
there is none, as a wheel from the index in PIP_INDEX_URL. pip installs everything else, so all pip settings are
respected.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path
from urllib.parse import urljoin

OLDEST = (3, 11)
PIP_WHEEL = "pip-25.3-py3-none-any.whl"
ROOT = Path(__file__).resolve().parent.parent
MEMBERS = tuple(f"./{path.parent.relative_to(ROOT)}" for path in sorted(ROOT.glob("packages/*/pyproject.toml")))


def main(folder: Path, packages: list[str], extra: str | None = None) -> None:
    """Make `folder` an environment, and install `packages` (arguments of `pip install`) and, if possible, our `extra`
    into it.
    """
    if sys.version_info < OLDEST:
        version = sys.version.split()[0]
        sys.exit(f"Python {version} is too old: 3.11 or newer is needed; run `make PYTHON=/path/to/python3.11 …`.")
    python = folder / "bin" / "python"
    if not has_pip(python):
        venv.create(folder, clear=folder.exists(), symlinks=True, with_pip=False)
        give_pip(python)
    if any(package.startswith(".") for package in packages):
        packages = [*(word for member in MEMBERS for word in ("-e", member)), *packages]
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(
            f"pip could not install {' '.join(packages)}: see its message above"
            " (is a package index reachable? PIP_INDEX_URL and pip.conf are respected)."
        )
    if extra is not None:
        argv = [python, "-m", "pip", "install", "--quiet", "-e", f".[{extra}]"]
        done = subprocess.run(argv, cwd=ROOT, check=False, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            sys.stderr.write(f"the extra {extra} could not be installed, so its tests are skipped ({reason})\n")


def has_pip(python: Path) -> bool:
    """Return whether the environment exists, works, and has pip."""
    if not python.exists():
        return False
    return subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode == 0


def give_pip(python: Path) -> None:
    """Install pip into an environment: from ensurepip, from this interpreter's pip, or from the index."""
    if importlib.util.find_spec("ensurepip") is not None:
        done = subprocess.run([python, "-m", "ensurepip", "--default-pip"], capture_output=True, check=False)
        if done.returncode == 0 and has_pip(python):
            return
    if importlib.util.find_spec("pip") is not None:
        argv = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "pip"]
        if subprocess.run(argv, check=False).returncode == 0:
            return
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    with tempfile.TemporaryDirectory() as scratch:
        wheel = Path(scratch) / PIP_WHEEL
        try:
            with urllib.request.urlopen(f"{index}/pip/", timeout=60) as page:  # noqa: S310 (the user's own index)
                links = re.findall(r'href="([^"#]+)', page.read().decode("utf-8", "replace"))
                link = next(urljoin(page.url, link) for link in links if link.endswith(f"/{PIP_WHEEL}"))
            with urllib.request.urlopen(link, timeout=60) as file:  # noqa: S310
                wheel.write_bytes(file.read())
        except (OSError, ValueError, StopIteration) as error:
            sys.exit(
                "this Python has neither ensurepip nor pip: install your system's python3-venv package, or set "
                f"PIP_INDEX_URL to a package index that has {PIP_WHEEL} ({type(error).__name__}: {error})"
            )
        # A pip wheel can run directly from its archive.
        subprocess.run([str(python), f"{wheel}/pip", "install", "--quiet", "--no-index", str(wheel)], check=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    words = sys.argv[2:]
    optional = words.pop(words.index("--extra-if-possible") + 1) if "--extra-if-possible" in words else None
    main(Path(sys.argv[1]), [word for word in words if word != "--extra-if-possible"], optional)
