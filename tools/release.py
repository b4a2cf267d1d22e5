"""Builds the wheels and source distributions of the harness and of its packages, and tests them as a user would
install them: `make release`. Builds in a copy of the checkout in which the harness asks for its packages by version.

Does not build if a changelog has no section for the version, or if CITATION.cff has a different version. Publishes
nothing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DIST = CHECKOUT / "dist"
MEMBERS = tuple(path.parent for path in sorted(CHECKOUT.glob("packages/*/pyproject.toml")))


def version() -> str:
    """The package version, read without importing the package."""
    match = re.search(
        r'^__version__ = "([^"]+)"', (CHECKOUT / "harness/core/installation.py").read_text("utf-8"), re.MULTILINE
    )
    assert match, "harness/core/installation.py states no version"
    return match[1]


def problems(stated: str) -> list[str]:
    """A sentence for each thing that is missing for a release of this version."""
    problems = []
    if not re.search(rf"^## {re.escape(stated)}\b", (CHECKOUT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        problems.append(f"CHANGELOG.md has no section `## {stated}`")
    if f"\nversion: {stated}\n" not in (CHECKOUT / "CITATION.cff").read_text("utf-8"):
        problems.append(f"CITATION.cff does not name version {stated}")
    for member in MEMBERS:
        (module,) = member.glob("reasoning_*/__init__.py")
        if f'__version__ = "{stated}"' not in module.read_text("utf-8"):
            problems.append(f"{module.relative_to(CHECKOUT)} does not name version {stated}")
        if f"## {stated}" not in (member / "CHANGELOG.md").read_text("utf-8"):
            problems.append(f"{member.name}/CHANGELOG.md has no section `## {stated}`")
    return problems


def call(*argv: str | Path, cwd: Path = CHECKOUT) -> str:
    """Run a program and return its output; if the program fails, exit with its message."""
    done = subprocess.run([str(word) for word in argv], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def by_version(project: str) -> str:
    """`pyproject.toml` of a release: the packages of this checkout are dependencies by version, not by path."""
    return re.sub(r'"(reasoning-\w+) @ \{root:uri\}/packages/\w+"', rf'"\1>={version()}"', project)


def copy_checkout(folder: Path) -> None:
    """Copy the files that git tracks or does not ignore, with the `pyproject.toml` of a release."""
    listed = call("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for path in filter(None, listed):
        if (CHECKOUT / path).is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / path, folder / path)
    project = folder / "pyproject.toml"
    project.write_text(by_version(project.read_text("utf-8")), "utf-8")


ALONE = (
    ("benchmarks",),
    ("compare", "--json-schema"),
    ("doctor",),
    ("grade", "1/2", r"so it is \boxed{0.5}"),
    ("plan", "aime24", "--detect", "2"),
    ("score", "outputs.jsonl", "--response-key", "gen", "--answer-key", "answer"),
    ("sweep", "llmeval", "--dry-run", "--base-url", "http://127.0.0.1:9/v1"),
)
"""Commands that work without a server or a run, to try after the installation."""


def smoke(python: Path, folder: Path) -> int:
    """Test an installed wheel: run the help of each command, and the commands in `ALONE`. Returns the number of
    commands.
    """
    listed = call(python, "-c", "from harness.options.commands import COMMANDS; print(*COMMANDS)", cwd=folder).split()
    for name in listed:
        call(python, "-m", "harness", name, "--help", cwd=folder)
    (folder / "outputs.jsonl").write_text('{"gen": "\\\\boxed{2}", "answer": "2"}\n')
    for words in ALONE:
        call(python, "-m", "harness", *words, cwd=folder)
    for package in ("harness", "server_launchers", "reasoning_answers", "reasoning_programs"):
        code = f"import {package}, pathlib; assert (pathlib.Path({package}.__file__).parent / 'py.typed').is_file()"
        call(python, "-c", code, cwd=folder)
    return len(listed)


def main(argv: list[str]) -> int:
    """Build and test; with `--draft`, build even if something is missing."""
    stated = version()
    wrong = problems(stated)
    if wrong and "--draft" not in argv:
        sys.exit("\n".join([*wrong, "not ready; `make release DRAFT=1` builds and tries it all the same"]))
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        copy_checkout(Path(name))
        for member in (*MEMBERS, CHECKOUT):
            call(sys.executable, "-m", "build", "--outdir", DIST, Path(name) / member.relative_to(CHECKOUT))
    built = sorted(DIST.iterdir())
    call(sys.executable, "-m", "twine", "check", "--strict", *built)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / "bin" / "python"
        wheels = [path for path in built if path.suffix == ".whl"]
        assert len(wheels) == 1 + len(MEMBERS), wheels
        call(python, "-m", "pip", "install", "--quiet", *wheels, cwd=folder)
        n = smoke(python, folder)
        assert stated in call(python, "-m", "harness", "--version", cwd=folder)
    sys.stdout.write("".join(f"{path.relative_to(CHECKOUT)}: {path.stat().st_size / 1e6:.1f} MB\n" for path in built))
    sys.stdout.write(
        f"version {stated}: metadata are right, the wheels install, {n} helps and {len(ALONE)} calls work\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
