"""A job array of servers: what its script does when it is run as Slurm runs it, and how it is handed in."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from server_launchers import slurm
from server_launchers.errors import LaunchError, SpecError
from server_launchers.keeping.registering import advertised, check, registered
from server_launchers.spec import ServerSpec
from tests.system.command import harness, start


def test_the_script_of_a_command_is_valid_and_says_all_that_was_asked(tmp_path: Path) -> None:
    words = ["--host", "10.0.0.7", "--tp", "8", "--sbatch", "--partition=gpu x", "--env", "A=it's $HOME"]
    done = harness(
        tmp_path, "serve", "vllm", "Qwen/QwQ 32B", *words, "--slurm", "4", "--slurm-folder", "o'places",
        "--print", "--", "--enforce-eager", "--foo=a b",
    )  # fmt: skip
    assert done.code == 0, done.err
    checked = subprocess.run(["bash", "-n"], input=done.out, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    lines = done.out.splitlines()
    assert "#SBATCH --array=0-3" in lines
    assert "#SBATCH --partition=gpu x" in lines
    (started,) = (line for line in lines if line.endswith("&"))
    argv = shlex.split(started.removesuffix(" &"))
    assert argv[1:6] == ["-m", "harness", "serve", "vllm", "Qwen/QwQ 32B"]
    assert argv[6:12] == ["--host", "10.0.0.7", "--tp", "8", "--env", "A=it's $HOME"]
    assert argv[12:] == [
        "--register", f"{tmp_path}/o'places/$SLURM_ARRAY_TASK_ID.url", "--", "--enforce-eager", "--foo=a b",
    ]  # fmt: skip


def test_a_member_registers_and_signs_off_when_slurm_ends_it(tmp_path: Path) -> None:
    """The script, run by bash as Slurm would, with a program in the place of the server."""
    program = tmp_path / "server.py"
    program.write_text(
        "import signal, sys, time, pathlib\n"
        "file = pathlib.Path(sys.argv[sys.argv.index('--register') + 1])\n"
        "signal.signal(signal.SIGTERM, lambda *_: (file.unlink(), sys.exit(0)))\n"
        "file.write_text('http://n:1/v1')\n"
        "while True: time.sleep(0.05)\n"
    )
    text = slurm.script([sys.executable, str(program)], 3, tmp_path / "place")
    job = subprocess.Popen(["bash", "-s"], stdin=subprocess.PIPE, env={**os.environ, "SLURM_ARRAY_TASK_ID": "2"})
    assert job.stdin is not None
    job.stdin.write(text.encode())
    job.stdin.close()
    file = tmp_path / "place" / "2.url"
    while not (file.exists() and file.read_text()):
        assert job.poll() is None
        time.sleep(0.01)
    job.send_signal(signal.SIGTERM)
    assert job.wait(60) == 143
    assert not file.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--slurm", "0"), "--slurm: expected 1 to 4000 servers"),
        (("--slurm", "2", "--sbatch", "partition"), "--sbatch: expected an option of sbatch"),
        (("--slurm", "2", "--sbatch", "--a\nrm -rf x"), "--sbatch: expected an option of sbatch"),
        (("--slurm", "2", "--detach"), "--slurm goes without"),
        (("--print",), "--print goes with --slurm"),
        (("--register", "a.url"), "--host 127.0.0.1: no other machine reaches it there"),
        (("--register", "a.url", "--detach"), "--register goes without --detach"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, given: tuple[str, ...], said: str) -> None:
    done = harness(tmp_path, "serve", "external", "http://127.0.0.1:1", *given)
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize("where", [("--slurm", "2", "--print"), ("--on", "ray")])
@pytest.mark.parametrize("given", [("--env", "HF_TOKEN=x-canary"), ("--", "--api-key", "x-canary")])
def test_a_key_that_would_stand_in_a_script_or_on_other_nodes_is_refused(
    tmp_path: Path, where: tuple[str, ...], given: tuple[str, ...]
) -> None:
    done = harness(tmp_path, "serve", "vllm", "m", *where, *given)
    assert (done.code, "x-canary" in done.out + done.err) == (2, False)
    assert "set a variable that the engine reads, in the environment" in done.err
    assert given[0] != "--env" or "--env HF_TOKEN: its value would stand" in done.err


def test_a_job_is_handed_to_sbatch(tmp_path: Path) -> None:
    """A program of that name on the path takes the script; without one, and where it refuses, that is said."""
    program = tmp_path / "bin" / "sbatch"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncat > "{tmp_path}/seen"\necho "4711;cluster"\n')
    program.chmod(0o755)
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = harness(tmp_path, "serve", "vllm", "m", "--slurm", "2", extra=path)
    assert done.code == 0, done.err
    assert "job 4711: 2 servers" in done.err
    assert "--host 0.0.0.0" in (tmp_path / "seen").read_text()
    program.write_text('#!/bin/sh\necho "no such partition" >&2\nexit 1\n')
    refused = harness(tmp_path, "serve", "vllm", "m", "--slurm", "2", extra=path)
    assert refused.code == 2
    assert "sbatch refused the job: no such partition" in refused.err


def test_where_there_is_no_sbatch_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LaunchError, match="no sbatch on this machine"):
        slurm.submit("x", tmp_path / "f")
    with pytest.raises(SpecError, match="line break"):
        slurm.script(["x"], 1, tmp_path / "a\nb")


def test_a_server_registers_as_others_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "node7")
    everywhere = ServerSpec(engine="vllm", model="m", host="0.0.0.0")
    assert advertised(everywhere, ["http://127.0.0.1:8000/v1"]) == ["http://node7:8000/v1"]
    named = ServerSpec(engine="vllm", model="m", host="0.0.0.0", node_address="10.0.0.7")
    assert advertised(named, ["http://127.0.0.1:8000/v1"]) == ["http://10.0.0.7:8000/v1"]
    own = ServerSpec(engine="vllm", model="m", host="10.0.0.9")
    assert advertised(own, ["http://10.0.0.9:8000/v1"]) == ["http://10.0.0.9:8000/v1"]
    check(everywhere)
    for host in ("127.0.0.1", "localhost", "::1"):
        with pytest.raises(SpecError, match="no other machine"):
            check(ServerSpec(engine="vllm", model="m", host=host))
    file = tmp_path / "place" / "0.url"
    with registered(file, ["http://a/v1", "http://b/v1"]):
        assert file.read_text() == "http://a/v1\nhttp://b/v1\n"
        assert list(file.parent.iterdir()) == [file]
    assert not file.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_is_registered_while_it_runs(number: signal.Signals, tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("faulty_server.py"))
    words = ["command", "--served-name", "faulty", "--health-path", "/health", "--stop-grace", "0.5"]
    words += ["--host", "0.0.0.0", "--register", "place/0.url", "--", sys.executable, program, "{port}"]
    server = start(tmp_path, ["serve", *words])
    file = tmp_path / "place" / "0.url"
    while not file.exists():
        assert server.poll() is None, server.communicate()
        time.sleep(0.02)
    assert file.read_text().startswith(f"http://{socket.gethostname()}:")
    server.send_signal(number)
    server.communicate(timeout=60)
    assert not file.exists(), "nobody is sent to a server that has gone"
