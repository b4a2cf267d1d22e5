"""docs/servers.md shows what a dry run prints, word for word."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import cli
from server_launchers import isolated

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "servers.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^\$ harness serve (.+)\n((?:(?!\$|```).+\n)+)", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("line", "output"), SHOWN)
def test_the_command_prints_what_is_shown(
    line: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A machine with eight devices of either kind and no engine installed.
    for variable in ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"):
        monkeypatch.setenv(variable, "0,1,2,3,4,5,6,7")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(cli, ["serve", *with_option(shlex.split(line), "--dry-run")])
    assert done.exit_code == 0, done.output
    shown = done.stdout.replace(sys.executable, "python").replace(str(Path(isolated.__file__).parent), "…")
    # A checkout in a path with a blank stands in quotes.
    assert shown.replace("'", "").splitlines() == output.replace("'", "").splitlines()


def with_option(words: list[str], option: str) -> list[str]:
    """`option` among the harness's own, which end at a lone `--`."""
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], option, *words[end:]]
