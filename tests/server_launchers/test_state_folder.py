"""The state folder trusts nothing that others could have written; servers in the foreground; causes from logs.

For: server_launchers.lifecycle.servers, server_launchers.machine.programs, server_launchers.engines.table.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Collection
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from harness.core.errors import UsageError
from server_launchers import replicas
from server_launchers.embedded import openmp
from server_launchers.engines import table
from server_launchers.errors import LaunchError, log_cause
from server_launchers.lifecycle import launch, servers
from server_launchers.lifecycle.servers import MemberState, ServerState
from server_launchers.machine.processes import MARK
from server_launchers.spec import OPTIONS, ServerSpec
from tests.budget import thinned
from tests.patience import PATIENCE_SECONDS
from tests.server_launchers.recorded_logs import CAUSES, LOGS
from tests.system.command import harness, start

STRANGER = 12345
"""Number of a user that is nobody here."""

VICTIM = "VICTIM: not to be printed, not to be changed"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    return servers.servers_folder()


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim.txt"
    path.write_text(VICTIM)
    return path


def gone(name: str = "forged", **fields: Any) -> ServerState:
    """A server whose processes are all gone."""
    base: dict[str, Any] = {
        "name": name,
        "engine": "vllm",
        "model": "m",
        "source": "m",
        "base_urls": ["http://127.0.0.1:1"],
        "api_key_env": None,
        "created": datetime.now(UTC),
        "mark": "mark",
        "grace": 0.0,
        "guard_pid": 2**22,
        "guard_started": "0",
        "status": "ready",
        "members": [MemberState("engine", ["true"], None)],
    }
    return ServerState(**base | fields)


def record(server: ServerState) -> None:
    servers.write(servers.path_of(server.name), server)


def test_our_own_state_is_read_and_forgotten_when_it_is_stopped(folder: Path) -> None:
    record(gone())
    assert [server.name for server in servers.status()] == ["forged"]
    assert (folder / "forged.json").stat().st_mode & 0o077 == 0
    assert servers.stop("forged") == (["forged"], [])
    assert servers.status() == []


@pytest.mark.parametrize("name", ["forged", "../forged", "../../victim", "/etc/passwd", ""])
def test_a_forged_file_of_ours_runs_and_removes_nothing(name: str, tmp_path: Path, folder: Path, victim: Path) -> None:
    """As from an unpacked archive: its owner and mode are right, and a program or a path stands in a member's field."""
    command, outsider = ["/bin/sh", "-c", f"echo PWNED > {victim}"], tmp_path / "victim.json"
    outsider.write_text(VICTIM)
    forgeries: dict[str, Any] = {
        "cleanup": command,
        "argv": command,
        "log": str(victim),
        "container": f"harness-1; {' '.join(command)}",
        "role": "router",
        "devices": [str(victim)],
    }
    for field, value in forgeries.items():
        record = msgspec.to_builtins(gone()) | {"name": name}
        record["members"][0][field] = value
        (folder / "forged.json").write_text(json.dumps(record))
        shown = shown_by(tmp_path, "status", "status --json", "logs forged", "stop forged", "stop --all")
        assert (VICTIM in shown, victim.read_text(), outsider.read_text()) == (False, VICTIM, VICTIM), field


def shown_by(tmp_path: Path, *lines: str) -> str:
    """What `harness serve LINE` prints of each line."""
    variables = {"HARNESS_STATE": str(tmp_path / "state")}
    done = [harness(tmp_path, "serve", *line.split(), extra=variables) for line in lines]
    return "".join(one.out + one.err for one in done)


OWNERS = [pytest.param(STRANGER, marks=needs_root), None]
"""The user that a file is given to; None: ourselves."""


PLANTS: list[Callable[[Path, Path], object]] = [Path.symlink_to, Path.hardlink_to, lambda path, _: os.mkfifo(path)]
"""What lies in place of a file, beside the file of a victim."""
FILES = (".lock", "mine.log", "mine.guard.log", ".mine.json.new", "mine.json", "forged.json", "forged.log")


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("plant", thinned(PLANTS))
def test_nothing_is_opened_or_emptied_through_what_is_planted(
    plant: Callable[[Path, Path], object], owner: int | None, tmp_path: Path, folder: Path, victim: Path
) -> None:
    for name in FILES:
        record(gone())
        (folder / name).unlink(missing_ok=True)
        plant(folder / name, victim)
        if owner is not None:
            os.chown(folder / name, owner, owner, follow_symlinks=False)
        with pytest.raises(LaunchError) as refused:
            launch.launch(ServerSpec(engine="command", name="mine", extra_flags=["false"]))
        assert ("lock" in str(refused.value)) == (name == ".lock"), "only the lock is in the way of a start"
        assert VICTIM not in shown_by(tmp_path, "status", "logs forged", "stop forged")
        assert victim.read_text() == VICTIM
        os.chown(victim, os.geteuid(), os.getegid())
        (folder / name).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("mode", "owner", "doubt"),
    [
        *((mode, None, None) for mode in (0o700, 0o750, 0o755, 0o711)),
        *((mode, None, "is writable by others") for mode in (0o777, 0o757, 0o775)),
        pytest.param(0o700, STRANGER, "belongs to another user", marks=needs_root),
    ],
)
def test_a_folder_that_others_can_change_is_refused(
    mode: int, owner: int | None, doubt: str | None, tmp_path: Path, folder: Path
) -> None:
    record(gone())
    folder.chmod(mode)
    if owner is not None:
        os.chown(folder, owner, owner)
    if doubt is None:
        assert [server.name for server in servers.status()] == ["forged"]
        return
    begin = functools.partial(launch.launch, ServerSpec(engine="command", extra_flags=["true"]))
    for call in (servers.status, functools.partial(servers.stop, all=True), begin):
        with pytest.raises(LaunchError, match=doubt):
            call()
    assert "set HARNESS_STATE to another folder" in shown_by(tmp_path, "status")


def test_the_folder_may_lie_behind_a_link_and_be_none_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to("elsewhere")
    (tmp_path / "circle").symlink_to("circle")
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    assert servers.status() == []
    folder = servers.servers_folder()
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(LaunchError, match="is not safe: it is a link"):
        servers.status()
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "circle" / "state"))
    with pytest.raises(LaunchError, match="cannot store server state"):
        servers.status()


def test_missing_folders_are_created_with_mode_700(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "a" / "b"))
    mask = os.umask(0)
    try:
        folder = servers.servers_folder()
    finally:
        os.umask(mask)
    assert {stat.S_IMODE(step.stat().st_mode) for step in (folder, folder.parent, folder.parent.parent)} == {0o700}


STATE_OF_0_1_0 = """{
 "name": "old", "engine": "vllm", "model": "m", "source": "org/m", "base_urls": ["http://127.0.0.1:1"],
 "api_key_env": null, "created": "2026-11-20T20:13:17.599422Z", "mark": "a", "grace": 2.0, "guard_pid": 1,
 "guard_started": "gone", "status": "ready", "survivors": [], "versions": {"vllm": "0.32.0"}, "members": [
  {"role": "engine", "argv": ["vllm"], "port": 1, "log": "/x/old.log", "devices": null, "pid": null, "started": null,
   "exit_code": null, "restarts": 0, "family": [[2, "gone"]], "cleanup": null}]
}"""


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"garbage", b"[]", b"{}", b"[" * 100_000, b'{"name": 3}', b"\xff\xfe", b'{"name": "\xff"}'),
        STATE_OF_0_1_0[:-3].encode(),
        *(msgspec.json.encode(gone("hidden", guard_pid=n)) for n in (-1, 2**63)),
    ],
)
def test_a_damaged_file_hides_no_other_server(folder: Path, content: bytes) -> None:
    (folder / "old.json").write_text(STATE_OF_0_1_0)
    (folder / "hidden.json").write_bytes(content)
    (listed,) = [server for server in servers.status() if server.name != "hidden"]
    assert (listed.status, listed.log, listed.members[0].family) == ("exited", folder / "old.log", [(2, "gone")])


@pytest.mark.parametrize(
    ("name", "mark", "removed"),
    [
        ("harness-8000", "mark:0", True),
        ("harness-8000", "other:0", False),
        ("postgres", "mark:0", False),
        ("harness-1 postgres", "mark:0", False),
        ("--all", "mark:0", False),
    ],
)
def test_a_container_is_removed_only_if_it_has_the_servers_mark(
    name: str, mark: str, removed: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docker is a program here that knows one container, and notes what it is told."""
    told = tmp_path / "told"
    told.touch()
    knows = f"""[ "$1" = inspect ] && echo '["PATH=/bin", "{MARK}={mark}"]'"""
    (tmp_path / "docker").write_text(f'#!/bin/sh\necho "$@" >> {told}\n{knows}\nexit 0\n')
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    record(gone(members=[MemberState("engine", ["docker", "run"], None, container=name)]))
    assert servers.stop("forged") == (["forged"], [])
    assert [line for line in told.read_text().splitlines() if line.startswith("rm")] == ["rm -f harness-8000"] * removed


@pytest.mark.parametrize("words", ["Cannot connect to the Docker daemon", "Error: No such container: harness-1"])
def test_a_container_that_may_still_run_is_told(
    words: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").write_text(f'#!/bin/sh\necho "{words}" >&2\nexit 1\n')
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    record(gone(members=[MemberState("engine", ["docker", "run"], None, container="harness-1")]))
    left = f"the container harness-1 may still be running: docker ended with exit status 1: “{words}”"
    assert servers.stop("forged")[1][:1] == ([] if "No such" in words else [left])


# -- `harness serve` in the foreground ---------------------------------------------------------------------------------


PROGRAM = str(Path(__file__).with_name("faulty_server.py"))


def started(folder: Path, *habits: str) -> subprocess.Popen[str]:
    words = ["serve", "command", "--served-name", "faulty", "--health-path", "/health", "--stop-grace", "0.5"]
    return start(folder, [*words, "--", sys.executable, PROGRAM, "{port}", *habits])


def until_said(server: subprocess.Popen[str], words: str) -> str:
    """What stands behind the words in the first line that has them."""
    assert server.stderr is not None
    line = next((line for line in server.stderr if words in line), None)
    assert line is not None, f"it ended without a word of {words!r}"
    return line.partition(words)[2]


def address(server: subprocess.Popen[str]) -> str:
    """The URL in the line that says where the server answers."""
    return until_said(server, " answers at ").split()[0]


def end(server: subprocess.Popen[str]) -> tuple[str, int]:
    """What else it says, and its exit status."""
    assert server.stderr is not None
    return server.stderr.read(), server.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_server_and_the_command(number: signal.Signals, tmp_path: Path) -> None:
    with started(tmp_path) as server:
        url = address(server)
        assert httpx.get(f"{url}/health", timeout=None).status_code == 200
        assert until_said(server, "Ctrl-C stops it.") == "\n"
        server.send_signal(number)
        assert server.wait(PATIENCE_SECONDS) == 128 + number
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health", timeout=None)
    assert list(tmp_path.rglob("*.json")) == []


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_stop_in_another_terminal_ends_the_command(goes_on: bool, tmp_path: Path) -> None:
    """goes_on: another server takes the name at once."""
    with started(tmp_path) as server:
        address(server)
        assert harness(tmp_path, "serve", "stop", "faulty").out == "stopped faulty\n"
        if goes_on:
            with started(tmp_path) as second:
                address(second)
                assert server.wait(PATIENCE_SECONDS) == 0
                harness(tmp_path, "serve", "stop")
        text, status = end(server)
        assert ("harness: the server faulty was stopped." in text, status) == (True, 0)


def test_a_server_that_ends_by_itself_is_told_with_its_log(tmp_path: Path) -> None:
    with started(tmp_path) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{address(server)}/die", timeout=None)
        text, status = end(server)
    assert "harness: the server faulty exited unexpectedly: it ended with exit status 7; its log is " in text
    assert status == 2


def test_a_start_that_fails_is_one_cause_and_status_2(tmp_path: Path) -> None:
    with started(tmp_path, "dies") as server:
        text, status = end(server)
    assert "command did not start: it ended with exit status 1; its log says: “No module named 'flash_attn'" in text
    assert ("Traceback" in text.partition("last lines of")[0], status) == (False, 2)


# -- causes from logs of engines ---------------------------------------------------------------------------------------


# One line each as vLLM, SGLang, torch, transformers and huggingface_hub word it.
WORDED = {
    "devices ran out of memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has …",
        "RuntimeError: NPU out of memory. Tried to allocate 40.00 MiB (NPU 0; 60.97 GiB total)",
    ),
    "too little memory for the cache": (
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when …",
    ),
    "its log says: “Free memory on device cuda:0": (
        "ValueError: Free memory on device cuda:0 (3.1/79.1 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 71.2 GiB). Decrease GPU memory utilization",
    ),
    "its log says: “CUDA error: invalid device ordinal": ("RuntimeError: CUDA error: invalid device ordinal",),
    "its log says: “No such option: --cb-block": ("Error: No such option: --cb-block",),
}


def cause_of(tmp_path: Path, text: str, code: int | None = 1, takes: Collection[str] = OPTIONS) -> str:
    log = tmp_path / "engine.log"
    log.write_text(text)
    return log_cause(servers.log_tail(log), code, takes)


@pytest.mark.parametrize(("line", "cause"), [(line, cause) for cause in WORDED for line in WORDED[cause]])
def test_an_engines_words_give_the_cause_and_what_to_do(line: str, cause: str, tmp_path: Path) -> None:
    last = "RuntimeError: Engine core initialization failed. See root cause above."
    text = f"INFO starting, trust_remote_code=False\n{line}\n{last}\n"
    assert cause in cause_of(tmp_path, text)


def test_the_first_error_of_a_log_is_named_beside_its_last(tmp_path: Path) -> None:
    first, last = "RuntimeError: NCCL error: unhandled cuda error", "RuntimeError: cancelled by a peer of its group"
    both = "its log says: “NCCL error: unhandled cuda error” and last: “cancelled by a peer of its group”"
    assert cause_of(tmp_path, f"{first}\n{last}\nRuntimeError: another\n{last}\n").endswith(both)
    # Wrong twins: one error twice, and one that only points to others.
    for text in (f"{first}\n{first}\n", f"ValueError: 1 validation error for Config\n{first}\n"):
        assert cause_of(tmp_path, text).endswith("its log says: “NCCL error: unhandled cuda error”")


def test_an_engine_is_advised_only_options_that_it_takes(tmp_path: Path) -> None:
    for name, engine in table.engines_by_name().items():
        cause = cause_of(tmp_path, "torch.OutOfMemoryError: CUDA out of memory", takes=engine.takes)
        advised = re.findall("`(.+?)`", cause)
        assert {*advised} <= engine.takes, name
        assert ("max_sequences" in advised) == (name in ("vllm", "vllm_ascend", "sglang")), name


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.iterdir()))
def test_a_recorded_log_of_a_real_engine_gives_its_cause(name: str, tmp_path: Path) -> None:
    assert CAUSES[name] in cause_of(tmp_path, (LOGS / f"{name}.log").read_text())


def test_each_wrong_start_of_a_real_engine_is_recorded() -> None:
    assert {path.stem for path in LOGS.iterdir()} == set(CAUSES)


FEW_FILES = (
    "WARNING [system_utils.py:255] Found ulimit of 20000 and failed to automatically increase. This can cause fd limit "
    "errors like `OSError: [Errno 24] Too many open files`. Consider increasing with ulimit -n\n"
)


def test_a_signal_is_told_where_the_log_has_no_cause(tmp_path: Path) -> None:
    for text, code, cause in (
        (FEW_FILES, -9, "it ended with signal 9 (Killed)"),
        ("", -6, "signal 6 (Aborted)"),
        ("OSError: [Errno 98] Address already in use", 1, "Address already in use"),
    ):
        assert cause in cause_of(tmp_path, text, code)
    assert servers.log_tail(tmp_path / "none.log") == []


def output_of(*argv: str) -> tuple[str, int]:
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd="/")
    return done.stdout, done.returncode


PYTHON_FAILURES = [
    ("import flash_attn_that_is_not_there", "No module named 'flash_attn_that_is_not_there'"),
    ("import ctypes; ctypes.CDLL('libnothere.so.1')", "libnothere.so.1: cannot open shared object file"),
    ("f = open('/dev/full', 'w'); f.write('x'); f.flush()", "No space left on device"),
    ("import os; os.kill(os.getpid(), 9)", "signal 9 (Killed)"),
    ("import os; os.kill(os.getpid(), 11)", "signal 11 (Segmentation fault)"),
    ("import sys; sys.exit(5)", "ended with exit status 5"),
    ("import socket; socket.getaddrinfo('no-such-host.invalid', 80)", "[Errno -"),
]


@pytest.mark.parametrize(("code", "cause"), PYTHON_FAILURES)
def test_a_python_engines_real_failure_is_told_in_plain_words(code: str, cause: str, tmp_path: Path) -> None:
    text, status = output_of(sys.executable, "-c", code)
    assert cause in cause_of(tmp_path, text, status)


def llama_cpp(*arguments: str) -> tuple[str, int]:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed (extra llama-cpp)")
    # The loader reads its path once, when a process starts.
    with pytest.MonkeyPatch.context() as patch:
        for name, value in openmp.environment().items():
            patch.setenv(name, value)
        return output_of(sys.executable, "-m", "server_launchers.embedded.llama_cpp_server", *arguments)


LATE_LOG = """
import os, threading, types

class CommonParams(types.SimpleNamespace):
    def __init__(self):
        super().__init__(model=types.SimpleNamespace(), cpuparams=types.SimpleNamespace(),
                         cpuparams_batch=types.SimpleNamespace())

class Server:
    def __init__(self, params):
        line = f"E srv load_model: failed to load model, '{params.model.path}'\\n".encode()
        threading.Timer(0.1, os.write, (2, line)).start()
        raise RuntimeError("Failed to init server")
"""
"""An xllamacpp whose log thread writes the cause of a failed start only after the start has failed."""


def test_the_last_lines_of_llama_cpps_log_thread_are_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xllamacpp.py").write_text(LATE_LOG)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF")
    text, status = output_of(sys.executable, "-m", "server_launchers.embedded.llama_cpp_server", str(model))
    assert status == 1
    assert f"failed to load model, '{model}'" in text
    assert f"could not start with {model}: Failed to init server" in cause_of(tmp_path, text, status)


def test_llama_cpp_refuses_what_it_cannot_serve_in_one_sentence(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF" + b"\xff" * 100)
    text, status = llama_cpp(str(model))
    assert (status, f"could not start with {model}: " in cause_of(tmp_path, text, status)) == (1, True)
    model.write_bytes(b"PK")
    assert llama_cpp(str(model))[1] == 1
    text, status = llama_cpp(str(model), "--api-key-env", "NOT_SET_ANYWHERE")
    assert (status, "NOT_SET_ANYWHERE" in text) == (1, True), "no server without its key"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        *((f"{site}Qwen/Qwen3-8B", "Hub name") for site in ("hf://", "https://huggingface.co/", "hf.co/")),
        *((name, "Hub name") for name in ("a/b@v1", "a/b:Q4_K_M", "a/b/c", "my model", "ollama://a", "a/b?x=1")),
        *((name, "") for name in ("a/b", "gpt2", "a-1/b_2.5", "./my model", "/x y", "~/m", "s3://bucket/m")),
    ],
)
def test_a_model_is_a_path_or_a_name_of_the_hub(model: str, says: str) -> None:
    for engine in ("vllm", "vllm_ascend", "sglang"):
        with pytest.raises(UsageError, match=says) if says else nullcontext():
            table.engine_of(ServerSpec(engine=engine, model=model))


def test_flags_that_a_version_is_known_to_lack_are_named() -> None:
    for version, flags, named in (
        ("0.20.0", "--enable_reasoning --swap-space=4 --new 1", "--enable_reasoning, --swap-space:"),
        ("0.8.5", "--enable-reasoning --disable-log-requests", ""),
        ("0.11.0", "--moe-backend x", "--moe-backend:"),
    ):
        described = ServerSpec(engine="vllm", model="m", engine_version=version, extra_flags=tuple(flags.split()))
        with pytest.raises(LaunchError, match=f"vllm {version} does not support {named}") if named else nullcontext():
            replicas.dry_run(described)


OWN = {"--port": "port", "--port=1": "port", "--served_model_name": "served_name", "-tp": "tp"}


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        *(
            (f"{flag} 1", f"{flag.split('=')[0]} cannot follow ` -- `: the harness sets this flag: use `{field}`")
            for flag, field in OWN.items()
        ),
        ("--uds /s", "must be reachable over HTTP on their port"),
        ("--no-such-flag", "does not support --no-such-flag: omit"),
        ("--max-loras 3 --no-lora --lora-hub.x=1 -O3 --seen -1", ""),
    ],
)
def test_flags_after_the_dashes_go_to_the_engine_and_plan_nothing(
    flags: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installed package is asked, without an import: its flags and the fields of which it makes flags."""
    fields = "class Lora:\n    max_loras: int = 1\n    lora: bool\n    lora_hub: dict\n"
    for name, text in (("__init__", "raise SystemExit"), ("args", f'add("--seen")\n{fields}')):
        (tmp_path / "vllm").mkdir(exist_ok=True)
        (tmp_path / f"vllm/{name}.py").write_text(text)
    facts = tmp_path / "vllm-0.33.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.0\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/an-python").symlink_to(sys.executable)  # the checkout's path may have a blank
    (tmp_path / "bin/vllm").write_text(f"#!{tmp_path}/bin/an-python\n")
    (tmp_path / "bin/vllm").chmod(0o755)
    (tmp_path / "config.json").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    python = tmp_path / "bin/python"
    described = ServerSpec(engine="vllm", model=str(tmp_path), python=python, extra_flags=tuple(flags.split()))
    with pytest.raises((UsageError, LaunchError), match=re.escape(says)) if says else nullcontext():
        replicas.dry_run(described)


def test_what_is_known_of_flags_agrees_with_the_engines_lists(shared_data: Path) -> None:
    for path in (shared_data / "flags").glob("*-flags.txt"):
        name: Any
        name, version, _ = path.stem.split("-")
        listed = [line for line in path.read_text().splitlines() if line.startswith("--")]
        table.by_name(name).check_flags(ServerSpec(engine=name, model="m", extra_flags=tuple(listed)), version)
