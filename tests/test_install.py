"""Each way to install a checkout that names no other words: pip finds the packages that the harness depends on.

The index is closed, and the environment holds what `pyproject.toml` names but nothing of ours. `make test-packaging`
installs into truly empty environments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tools import release

PARTS = ("reasoning_answers", "reasoning_programs")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout, below a folder whose name has a blank."""
    copy = tmp_path_factory.mktemp("a folder") / "checkout"
    names = (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "harness",
        "server_launchers",
        "datasets",
        "packages",
    )
    for name in names:
        if (CHECKOUT / name).is_dir():
            shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "tests"))
        else:
            copy.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, copy)
    shutil.copytree(CHECKOUT / "results/published", copy / "results/published")
    return copy


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of a new environment, which sees the installed packages but those of this repository."""
    others = tmp_path / "others"
    others.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "reasoning" not in path.name and path.suffix != ".pth":
            (others / path.name).symlink_to(path)
    venv.create(tmp_path / "env", symlinks=True, with_pip=False)
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(f"{others}\n")
    return tmp_path / "env/bin/python"


@pytest.mark.slow
@pytest.mark.parametrize(("words", "in_place"), [(["{path}"], False), (["-e", "{path}"], True), (["git+{uri}"], False)])
def test_plain_pip_installs_the_checkout(
    words: list[str], in_place: bool, checkout: Path, python: Path, tmp_path: Path
) -> None:
    if words[0].startswith("git"):
        if shutil.which("git") is None:
            pytest.skip("no git")
        author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        for step in (("init", "-q"), ("add", "-A"), (*author, "commit", "-q", "-m", "all")):
            subprocess.run(["git", *step], cwd=checkout, check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-build-isolation"]
    named = [word.format(path=checkout, uri=checkout.as_uri()) for word in words]
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_COMPILE": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run([*pip, *named], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    code = f"import harness, {', '.join(PARTS)}; print(*(m.__file__ for m in (harness, {', '.join(PARTS)})), sep='\\n')"
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    files = subprocess.check_output([python, "-c", code], cwd=tmp_path, env=clean, text=True).splitlines()
    own, *parts = (Path(file).is_relative_to(tmp_path / "env") for file in files)
    assert (own, parts) == (not in_place, [True, True]), files
    command = [python.with_name("harness"), "grade", "1/2", r"so \boxed{0.5}"]
    assert "correct" in subprocess.check_output(command, cwd=tmp_path, env=clean, text=True)


def test_a_release_asks_for_its_packages_by_version() -> None:
    text = (CHECKOUT / "pyproject.toml").read_text("utf-8")
    before, after = (tomllib.loads(each)["project"]["dependencies"] for each in (text, release.by_version(text)))
    assert [each for each in before if "@" in each] == [
        f"{part.replace('_', '-')} @ {{root:uri}}/packages/{part.removeprefix('reasoning_')}" for part in PARTS
    ]
    assert not [each for each in after if "@" in each]
    assert set(after) - set(before) == {f"{part.replace('_', '-')}>={release.version()}" for part in PARTS}
