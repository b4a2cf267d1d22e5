"""Create a virtual environment and install into it, on a machine that has only Python, make and a package index.

    python3 tools/bootstrap.py .venv -e '.[llama-cpp]'

With this checkout, the packages of its folder `packages` are installed in place, too.

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
ADVICE = "see its message above (is a package index reachable? PIP_INDEX_URL and pip.conf are respected)."
MEMBERS = tuple(f"./{path.parent.relative_to(ROOT)}" for path in sorted(ROOT.glob("packages/*/pyproject.toml")))


def main(folder: Path, packages: list[str]) -> None:
    """Make `folder` an environment, and install `packages` (arguments of `pip install`) into it."""
    if sys.version_info < OLDEST:
        version = sys.version.split()[0]
        sys.exit(f"Python {version} is too old: 3.11 or newer is needed; run `make PYTHON=/path/to/python3.11 …`.")
    python = folder / "bin" / "python"
    if not has_pip(python):
        venv.create(folder, clear=folder.exists(), symlinks=True, with_pip=False)
        give_pip(python)
    install = [python, "-m", "pip", "install", "--quiet"]
    own = any(package.startswith(".") for package in packages)
    if own:
        import tomllib  # not in older versions, which end above

        # pip would install them anew for each package of this checkout.
        backends = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
        packages = ["--no-build-isolation", *packages]
        if subprocess.run([*install, *backends, "editables"], check=False).returncode:
            sys.exit(f"pip could not install {' '.join(backends)}: {ADVICE}")
    # Python compiles each module that it imports; pip would compile all of them.
    settings = {"PIP_COMPILE": "0", **os.environ}
    words = [*install, *packages]
    if subprocess.run(words, cwd=ROOT, check=False, env=settings).returncode:
        sys.exit(f"pip could not install {' '.join(packages)}: {ADVICE}")
    if own:  # copied above, as a dependency: from now on each edit counts
        members = [word for member in MEMBERS for word in ("-e", member)]
        subprocess.run([*install, "--no-build-isolation", "--no-deps", *members], cwd=ROOT, check=True, env=settings)


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
    main(Path(sys.argv[1]), sys.argv[2:])
