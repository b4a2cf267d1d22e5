"""A job array of servers: what its script does when it is run as Slurm runs it, and how it is handed in."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from harness.extensions.schedulers import slurm
from server_launchers import isolated, replicas
from server_launchers.engines import table
from server_launchers.errors import LaunchError, SpecError
from server_launchers.keeping.registering import check, public_addresses, register
from server_launchers.spec import ServerSpec
from tests.patience import PATIENCE_SECONDS
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
    assert argv[1:7] == [*isolated.command("harness", "serve")[1:], "vllm", "Qwen/QwQ 32B"]
    assert argv[7:13] == ["--host", "10.0.0.7", "--tp", "8", "--env", "A=it's $HOME"]
    assert argv[13:] == [
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


def test_each_node_of_a_member_is_told_its_rank_and_one_master(tmp_path: Path) -> None:
    """The printed script as Slurm runs it on the first node, with programs in the place of srun and scontrol."""
    key = "a 'b' \"c\" $HOME"
    words = ["--tp", "4", "--nodes", "2", "--slurm", "3", "--slurm-folder", "o'places", "--env", f"A={key}", "--print"]
    done = harness(tmp_path, "serve", "vllm", "m", *words, "--", "--enforce-eager")
    assert done.code == 0, done.err
    checked = subprocess.run(["bash", "-n"], input=done.out, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "#SBATCH --nodes=2 --ntasks-per-node=1 --requeue" in done.out.splitlines()
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "scontrol").write_text('#!/bin/sh\n[ "$*" = "show hostnames n[7-8]" ] && printf "n7\\nn8\\n"\n')
    srun = (
        'while [ "${1#-}" != "$1" ]; do shift; done\nfor i in 0 1; do SLURM_NODEID=$i "$@" > "$PLACE/$i" & done\nwait\n'
    )
    (folder / "srun").write_text(f"#!/bin/bash\n{srun}")
    (folder / "python").write_text(
        f'#!/bin/bash\n[ "$2" = -c ] && exec {shlex.quote(sys.executable)} "$@"\nprintf "%s\\0" "$@"\n'
    )
    for program in folder.iterdir():
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PLACE": str(tmp_path)}
    environment |= {"SLURM_ARRAY_TASK_ID": "2", "SLURM_JOB_NODELIST": "n[7-8]"}
    script = done.out.replace(sys.executable, str(folder / "python"))
    ran = subprocess.run(["bash", "-s"], input=script, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    arguments = [(tmp_path / str(rank)).read_text().split("\0")[:-1] for rank in (0, 1)]
    for rank, node_argv in enumerate(arguments):
        assert node_argv[node_argv.index("--node-rank") + 1] == str(rank)
        assert node_argv[node_argv.index("--head-address") + 1] == "n7"
        assert node_argv[node_argv.index("--register") + 1] == f"{tmp_path}/o'places/2.url"
        assert node_argv[node_argv.index("--env") + 1] == f"A={key}"
        assert node_argv[-2:] == ["--", "--enforce-eager"]
        node_argv[node_argv.index("--node-rank") + 1] = ""
    assert arguments[0] == arguments[1], "one port, and all else the same"
    assert 0 < int(arguments[0][arguments[0].index("--head-port") + 1]) < 65536
    fixed = harness(tmp_path, "serve", "vllm", "m", *words[:6], "--head-port", "29501", "--print")
    assert "export head_port=29501\n" in fixed.out


@pytest.mark.parametrize("nodes", [{}, {"nodes": 2, "node_rank": 1, "head_address": "n", "tp": 2}])
def test_a_node_that_does_not_serve_registers_nothing(tmp_path: Path, nodes: dict[str, Any]) -> None:
    spec = ServerSpec(engine="vllm", model="m", host="0.0.0.0", **nodes)
    urls = replicas.deploy(spec, [8000], table.recorded_facts(spec)).base_urls
    with register(tmp_path / "place" / "0.url", public_addresses(spec, urls)):
        assert len(list(tmp_path.glob("place/*"))) == (0 if nodes else 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--slurm", "0"), "--slurm: expected 1 to 4000 servers"),
        (("--slurm", "2", "--sbatch", "partition"), "--sbatch: expected an option of sbatch"),
        (("--slurm", "2", "--sbatch", "--a\nrm -rf x"), "--sbatch: expected an option of sbatch"),
        (("--slurm", "2", "--detach"), "--slurm does not work with"),
        (("--print",), "--print goes with --slurm"),
        (("--register", "a.url"), "--host 127.0.0.1: other machines cannot reach this address"),
        (("--register", "a.url", "--detach"), "--register does not work with --detach"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, given: tuple[str, ...], message: str) -> None:
    done = harness(tmp_path, "serve", "external", "http://127.0.0.1:1", *given)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("where", [("--slurm", "2", "--print"), ("--on", "ray")])
@pytest.mark.parametrize("given", [("--env", "HF_TOKEN=x-canary"), ("--", "--api-key", "x-canary")])
def test_a_key_that_would_stand_in_a_script_or_on_other_nodes_is_refused(
    tmp_path: Path, where: tuple[str, ...], given: tuple[str, ...]
) -> None:
    done = harness(tmp_path, "serve", "vllm", "m", *where, *given)
    assert (done.code, "x-canary" in done.out + done.err) == (2, False)
    assert "set a variable that the engine reads, in the environment" in done.err
    assert given[0] != "--env" or "--env HF_TOKEN: its value would stand" in done.err


def test_what_the_nodes_are_told_cannot_be_given(tmp_path: Path) -> None:
    for given, message in (
        (["--node-rank", "1"], "--node-rank 1: --slurm sets it for each node: leave this option out"),
        (["--tp", "3"], "--nodes 2: 3 devices cannot be spread evenly"),
        (["--tp", "2", "--dp", "2"], "--dp 2: it would put several replicas into one server of several nodes"),
    ):
        done = harness(tmp_path, "serve", "vllm", "m", "--nodes", "2", *given, "--slurm", "1", "--print")
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert message in done.err


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
    assert public_addresses(everywhere, ["http://127.0.0.1:8000/v1"]) == ["http://node7:8000/v1"]
    named = ServerSpec(engine="vllm", model="m", host="0.0.0.0", node_address="10.0.0.7")
    assert public_addresses(named, ["http://127.0.0.1:8000/v1"]) == ["http://10.0.0.7:8000/v1"]
    own = ServerSpec(engine="vllm", model="m", host="10.0.0.9")
    assert public_addresses(own, ["http://10.0.0.9:8000/v1"]) == ["http://10.0.0.9:8000/v1"]
    check(everywhere)
    for host in ("127.0.0.1", "localhost", "::1"):
        with pytest.raises(SpecError, match="other machines cannot"):
            check(ServerSpec(engine="vllm", model="m", host=host))
    file = tmp_path / "place" / "0.url"
    with register(file, ["http://a/v1", "http://b/v1"]):
        assert file.read_text() == "http://a/v1\nhttp://b/v1\n"
        assert list(file.parent.iterdir()) == [file]
    assert not file.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_is_registered_while_it_runs(number: signal.Signals, tmp_path: Path) -> None:
    program = str(Path(__file__).parents[1] / "server_launchers" / "faulty_server.py")
    words = ["command", "--served-name", "faulty", "--health-path", "/health", "--stop-grace", "0.5"]
    words += ["--host", "0.0.0.0", "--register", "place/0.url", "--", sys.executable, program, "{port}"]
    server = start(tmp_path, ["serve", *words])
    file = tmp_path / "place" / "0.url"
    while not file.exists():
        assert server.poll() is None, server.communicate()
        time.sleep(0.02)
    assert file.read_text().startswith(f"http://{socket.gethostname()}:")
    server.send_signal(number)
    server.communicate(timeout=PATIENCE_SECONDS)
    assert not file.exists(), "nobody is sent to a server that has gone"


def test_a_signal_at_any_moment_leaves_no_address(tmp_path: Path) -> None:
    """Generated: an interrupt before every instruction from the first one until the server is held."""
    file = tmp_path / "0.url"

    def interrupted(moment: int) -> bool:
        """Whether the interrupt came before the body of `with` ran."""
        instructions = 0

        def trace(frame: FrameType, event: str, _argument: Any) -> Callable[..., Any] | None:
            nonlocal instructions
            if Path(frame.f_code.co_filename).name not in ("registering.py", "contextlib.py"):
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                instructions += 1
                if instructions == moment:
                    raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            with register(file, ["http://a/v1"]):
                sys.settrace(None)
                assert file.exists()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    moment = 1
    while interrupted(moment):
        assert not file.exists(), f"interrupted before instruction {moment}"
        moment += 1
    assert moment > 50, "the trace saw the instructions"
