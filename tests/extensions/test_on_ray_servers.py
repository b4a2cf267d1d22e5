"""What a server of a cluster does on its node, without a cluster: registered, begun again, ended with its caller."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from harness.core.about import __version__
from harness.core.errors import UsageError
from harness.extensions.clusters.ray.serving import Replica, resources_of
from harness.verbs.elsewhere import FILE, HOST, Replicas
from server_launchers.spec import ServerSpec
from tests.system.command import argv, environment, harness

PROGRAM = str(Path(__file__).parents[1] / "on_ray" / "small_server.py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    (tmp_path / "pids").mkdir()
    return tmp_path


@pytest.fixture
def replica(folder: Path) -> Iterator[Callable[..., Replica]]:
    begun = []

    def begin(*habits: str, version: str = __version__) -> Replica:
        replicas = Replicas(
            name="small", words=tuple(words(folder, HOST, FILE, *habits)), count=1, nodes=1, resources={"CPU": 1},
            host="0.0.0.0", folder=folder / "endpoints",
        )  # fmt: skip
        begun.append(Replica("small-1", replicas, str(replicas.folder), str(folder), version))
        return begun[-1]

    yield begin
    for replica in begun:
        replica.stop()


def words(folder: Path, host: str, file: str, *habits: str) -> list[str]:
    own = ["--host", host, "--register", file, "--until-eof"]
    program = [sys.executable, PROGRAM, "{port}", str(folder / "pids"), *habits]
    return ["command", "--served-name", "small", *own, "--", *program]


def detail_of(replica: Replica, state: str) -> str:
    """Wait until the replica has this state; the address or the cause that comes with it."""
    while (now := replica.state())[0] != state:
        assert now[0] in ("starting", "lost", "ready"), now
        time.sleep(0.02)
    return now[1]


def alive(folder: Path) -> list[int]:
    return [int(file.name) for file in (folder / "pids").iterdir() if psutil.pid_exists(int(file.name))]


def test_a_server_that_ends_by_itself_is_begun_again_and_stop_leaves_nothing(
    folder: Path, replica: Callable[..., Replica]
) -> None:
    served = replica()
    url = detail_of(served, "ready")
    (file,) = (folder / "endpoints").glob("small-1@*.url")
    assert file.read_text().split() == [url]
    with pytest.raises(httpx.HTTPError):
        httpx.post(f"http://127.0.0.1:{urlsplit(url).port}/die")
    while [file] == (again := list((folder / "endpoints").glob("*.url"))) or not again:
        time.sleep(0.02)
    detail_of(served, "ready")
    served.stop()
    assert len(list((folder / "pids").iterdir())) == 2
    assert alive(folder) == []
    assert list((folder / "endpoints").glob("*.url")) == []


def test_a_start_that_fails_says_its_cause_and_its_log(folder: Path, replica: Callable[..., Replica]) -> None:
    cause = detail_of(replica("dies"), "failed")
    assert "flash_attn" in cause
    assert cause.endswith(f"its log is {folder}/endpoints/small-1.log")
    assert len(list((folder / "pids").iterdir())) == 1


def test_a_node_with_another_version_starts_nothing(folder: Path, replica: Callable[..., Replica]) -> None:
    assert "caller 0.0.0" in detail_of(replica(version="0.0.0"), "failed")
    assert alive(folder) == []


@pytest.mark.parametrize("when", ["ready", "starting"])
def test_the_command_ends_with_standard_input(folder: Path, when: str) -> None:
    file = folder / "a.url"
    line = argv("serve", *words(folder, "0.0.0.0", str(file)))
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(folder))
    assert process.stdin is not None
    assert process.stderr is not None
    while not (file.exists() if when == "ready" else list((folder / "pids").iterdir())):
        assert process.poll() is None
        time.sleep(0.01)
    process.stdin.close()
    process.stdin = None
    process.communicate()
    assert process.returncode == (130 if when == "ready" else 128 + signal.SIGTERM)
    assert not file.exists()
    while alive(folder):  # where it was not ready yet, its guard ends it
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("fields", "gpus", "resources"),
    [
        ({"engine": "vllm", "model": "m", "tp": 4, "pp": 2}, None, {"CPU": 1, "GPU": 8}),
        ({"engine": "sglang", "model": "m", "dp": 2}, None, {"CPU": 1, "GPU": 2}),
        ({"engine": "vllm", "model": "m", "tp": 4}, 0.5, {"CPU": 1, "GPU": 0.5}),
        ({"engine": "vllm_ascend", "model": "m", "tp": 2}, None, {"CPU": 1, "NPU": 2}),
        ({"engine": "vllm", "model": "m", "device": "cpu"}, None, {"CPU": 1}),
        ({"engine": "llama_cpp", "model": "m.gguf"}, None, {"CPU": 1}),
        ({"engine": "command", "extra_flags": ("x",)}, None, {"CPU": 1}),
        ({"engine": "command", "extra_flags": ("x",)}, 2, {"CPU": 1, "GPU": 2}),
        (
            {"engine": "vllm", "model": "m", "tp": 8, "pp": 2, "nodes": 2, "head_address": "n"},
            None,
            {"CPU": 1, "GPU": 8},
        ),
        ({"engine": "sglang", "model": "m", "tp": 4, "nodes": 2, "head_address": "n"}, 2, {"CPU": 1, "GPU": 1}),
    ],
)
def test_what_ray_holds_follows_from_the_parallel_sizes(
    fields: dict[str, object], gpus: float, resources: object
) -> None:
    assert resources_of(ServerSpec(**fields), gpus) == resources  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"engine": "external", "model": "http://n:1"},
        {"engine": "vllm", "model": "m", "devices": "0,1"},
    ],
)
def test_what_runs_elsewhere_or_names_its_devices_is_refused(fields: dict[str, object]) -> None:
    if "devices" in fields:
        fields = fields | {"devices": ("0", "1")}
    with pytest.raises(UsageError):
        resources_of(ServerSpec(**fields), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--on", "spark"), "--on spark: expected ray"),
        (("--on", "ray", "--dry-run"), "--on does not work with --dry-run or --register"),
        (("--on", "ray", "--slurm", "2"), "--slurm does not work with"),
        (("--on", "ray", "--host", "127.0.0.1"), "other machines cannot reach this address"),
        (("--on", "ray", "--devices", "0"), "give --gpus-per-replica instead"),
        (("--replicas", "2"), "--replicas needs --on ray"),
        (("--gpus-per-replica", "2"), "--gpus-per-replica needs --on ray"),
        (
            ("--on", "ray", "--nodes", "2", "--tp", "2", "--node-rank", "1"),
            "--node-rank 1: --on sets it for each node",
        ),
        (("--on", "ray", "--nodes", "2", "--head-address", "a"), "--head-address a: --on sets it for each node"),
        (("--on", "ray", "--nodes", "2", "--tp", "3"), "--nodes 2: 3 devices cannot be spread evenly"),
        (
            ("--on", "ray", "--nodes", "2", "--tp", "2", "--dp", "2"),
            "--dp 2: it would put several replicas into one server of several nodes",
        ),
        (
            ("--on", "ray", "--nodes", "2", "--tp", "2", "--restarts", "1"),
            "--restarts 1: a single part of a model cannot be restarted alone",
        ),
        (
            ("--on", "ray", "--nodes", "2", "--tp", "2", "--gpus-per-replica", "3"),
            "--gpus-per-replica 3: cannot be spread evenly over --nodes 2",
        ),
        (("--until-eof", "--detach"), "--until-eof does not work with --detach"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, given: tuple[str, ...], message: str) -> None:
    done = harness(tmp_path, "serve", "vllm", "m", *given)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_without_ray_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    for line in (["vllm", "m"], ["stop"]):
        done = harness(tmp_path, "serve", *line, "--on", "ray")
        assert done.code == 2
        assert "--on ray needs the package ray" in done.err
