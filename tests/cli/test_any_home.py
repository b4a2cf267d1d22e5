"""Every command in a home that is unknown, closed, missing, a file, or not to be written: no traceback, and what needs
no home works.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from harness.core import about
from harness.core.errors import UsageError
from tests.pins.stage import alone
from tests.system.command import harness

ADDRESS = "http://127.0.0.1:9"
COMMANDS = [
    "run demo --limit 1", f"run demo --base-url {ADDRESS} --model m --dry-run", "score none", "report none", "status",
    "serve vllm org/model --dry-run", "serve vllm org/model --docker x/y:1 --dry-run", "serve status", "serve stop x",
    "serve logs x", "serve --models", "benchmarks", "benchmarks show aime24", "doctor", "plan none --detect 5",
    "compare a b", "verify a", "sweep --list", "probe", "audit none",
    "grade 1 1", "export none --to trl", "merge a --out b", "show a", "view a", "gate none.yaml", "init ./",
]  # fmt: skip
WORK = {"benchmarks", "serve --models", "grade 1 1", "serve vllm org/model --dry-run", "sweep --list"}
"""Those that need nothing but their words."""


@pytest.fixture(params=["unknown", "missing", "a file", "closed", "read only"])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run in an empty folder with such a home and no folder of ours named."""
    with_modes = {"closed": 0o000, "read only": 0o500}
    if os.geteuid() == 0 and request.param in with_modes:
        pytest.skip("no folder is closed to root")
    for name in ("HARNESS_CACHE", "HARNESS_STATE", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    if request.param == "unknown":
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    elif request.param == "missing":
        monkeypatch.setenv("HOME", f"{os.devnull}/home")
    elif request.param == "a file":
        folder.write_text("")
    else:
        folder.mkdir(mode=with_modes[request.param])
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    return str(request.param)


def test_every_command_does_without_a_home(home: str, tmp_path: Path) -> None:
    for line in COMMANDS:
        done = harness(tmp_path, *line.split())
        assert "Traceback" not in done.err + done.out, line
        assert done.code == 0 or done.err.strip(), line
        assert line not in WORK or done.code == 0, (line, done.err)


def test_what_a_home_would_hold_stands_in_a_folder_of_the_users_alone(home: str, tmp_path: Path) -> None:
    own = tmp_path / "temporary" / f"reasoning-harness-{os.geteuid()}"
    assert about.cache_folder() == own / ".cache/reasoning-harness"
    assert about.hub_cache() == own / ".cache/huggingface/hub"
    assert own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o777)
    with pytest.raises(UsageError, match="HOME: "):
        about.state_folder()


@pytest.mark.skipif(os.geteuid() == 0, reason="no folder is closed to root")
def test_a_closed_folder_is_refused_by_the_variable_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with alone(tmp_path):
        del os.environ["HARNESS_CACHE"]
        for name in ("XDG_CACHE_HOME", "HARNESS_CACHE"):
            closed = {name: str(tmp_path / "closed/in")}
            assert f"harness: {name}: permission denied for" in harness(tmp_path, "serve", "--models", extra=closed).err
