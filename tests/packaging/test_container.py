"""The container: it works without a writable root, and its page's commands do what the page says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from server_launchers.lifecycle.launch import RunningServer
from tests.conftest import CHECKOUT
from tests.docs.pages import blocks

IMAGE = "reasoning-harness-test"


@pytest.fixture(scope="module")
def engine() -> str:
    """A container engine that works and has the image that ours is built on; else the reason to skip."""
    (base,) = re.findall(r"^ARG PYTHON=(.+)$", (CHECKOUT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    image = f"docker.io/library/python:{base}-slim"
    for name in ("docker", "podman"):
        if shutil.which(name) and ended([name, "info"]).returncode == 0:
            if (
                ended([name, "image", "inspect", image]).returncode
                and (pull := ended([name, "pull", image])).returncode
            ):
                pytest.skip(f"{name} has no {image} and cannot fetch it: {pull.stderr.strip()[-200:]}")
            return name
    pytest.skip("no container engine works here (docker, podman)")


def ended(words: list[str], folder: Path = CHECKOUT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def commands(program: str) -> list[list[str]]:
    """The page's commands, as this engine takes them."""
    (first, second, third) = blocks(CHECKOUT / "docs" / "gpu-nodes.md", "text")[-3:]
    lines = []
    for line in (first.text + second.text + third.text).replace("\\\n", " ").splitlines():
        line = line.replace("$(id -u):$(id -g)", f"{os.getuid()}:{os.getgid()}")
        if program == "podman" and os.getuid():
            line = re.sub(r"--user \S+", "--userns keep-id", line)
        words = shlex.split(line)[1:]
        lines.append([program, *(IMAGE if word == "reasoning-harness" else word for word in words)])
    return lines


@pytest.fixture(scope="module")
def image(engine: str) -> Iterator[str]:
    """The engine, after the page's first command."""
    done = ended(commands(engine)[0])
    assert done.returncode == 0, done.stderr[-2000:]
    yield engine
    ended([engine, "image", "rm", IMAGE])


@pytest.mark.timeout(900)
def test_the_container_works_without_a_writable_root_or_a_privileged_user(image: str) -> None:
    words = [image, "run", "--rm", "--read-only", "--tmpfs", "/tmp", "--network", "none"]
    done = ended([*words, IMAGE, "grade", "1/2", r"so \boxed{0.5}"])
    assert done.returncode == 0, done.stderr
    assert "correct" in done.stdout
    assert ended([*words, "--entrypoint", "id", IMAGE, "-u"]).stdout.strip() == "10001"
    refused = ended([*words, "--entrypoint", "touch", IMAGE, "/opt/harness/new"])
    assert "Read-only file system" in refused.stderr


@pytest.mark.timeout(900)
def test_the_pages_commands_write_as_the_user(image: str, tmp_path: Path, embedded_server: RunningServer) -> None:
    _, run, report = (
        [
            word.replace("$PWD", str(tmp_path)).replace("http://127.0.0.1:8000", embedded_server.base_urls[0])
            for word in one
        ]
        for one in commands(image)[:3]
    )
    at = run.index(IMAGE) + 1
    done = ended([*run, "--out", report[-1], "--max-tokens", "16"], tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    assert ended([*run[:at], "score", report[-1]], tmp_path).returncode == 0
    assert ended(report, tmp_path).returncode == 0
    assert (folder / "report.html").stat().st_uid == os.getuid()
