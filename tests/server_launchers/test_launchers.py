"""Specs become the engines' own command lines, per version; nothing is started here.

For: server_launchers, server_launchers.engines, server_launchers.deployment.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from server_launchers import replicas
from server_launchers.engines import table, vllm_ascend
from server_launchers.errors import LaunchError
from server_launchers.keeping import supervisor
from server_launchers.machine import accelerators
from server_launchers.machine.inspection import Facts
from server_launchers.spec import OPTIONS, EngineName, ServerSpec, flag_of
from tests.system.command import harness


def engines_with(field: str) -> list[str]:
    """The engines that are Python packages and take this field."""
    return [name for name, engine in table.every().items() if engine.assumed_version and field in engine.takes]


def spec(engine: str, model: str = "org/model", **fields: Any) -> ServerSpec:
    return ServerSpec(**({"engine": engine, "model": model, "port": 8000} | fields))


def dry(engine: str, **fields: object) -> list[str]:
    """The commands on a machine of which nothing is known."""
    described = spec(engine, **fields)
    ports = range(8000, 8000 + replicas.ports_needed(described))
    return replicas.lines(described, ports, table.assumed_facts(described))


def test_a_replica_gets_its_own_port_and_its_own_slice_of_the_devices() -> None:
    lines = dry("vllm", tp=2, dp=2)
    assert [line.split()[0] for line in lines] == ["CUDA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=2,3"]
    assert ["--port 8000" in lines[0], "--port 8001" in lines[1]] == [True, True]


def test_given_devices_are_sliced_in_their_order() -> None:
    lines = dry("vllm_ascend", dp=2, devices=("6", "3"))
    assert [line.split()[0] for line in lines] == ["ASCEND_RT_VISIBLE_DEVICES=6", "ASCEND_RT_VISIBLE_DEVICES=3"]


def test_too_few_devices_are_refused_with_the_sum() -> None:
    facts = Facts("", device_ids=("0", "1", "2"))
    with pytest.raises(
        LaunchError, match=r"2 x 2 = 4 devices are needed \(replicas x devices of each\), there are 3 \(0, 1, 2\)"
    ):
        replicas.deploy(spec("vllm", tp=2, dp=2), [8000, 8001], facts)


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(LaunchError, match="no device 9 here"):
        accelerators.slices("cuda", 1, 1, ["9"], ["0", "1"])


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 40))
def test_slices_are_disjoint_and_complete_or_refused(replicas: int, each: int, there: int) -> None:
    ids = [str(index) for index in range(there)]
    try:
        shares = accelerators.slices("cuda", replicas, each, None, ids)
    except LaunchError:
        assert there < replicas * each
        return
    flat = [device for share in shares for device in share]
    assert [len(share) for share in shares] == [each] * replicas
    assert flat == ids[: replicas * each]


def test_engine_data_parallelism_is_one_process_with_all_devices() -> None:
    (line,) = dry("vllm", tp=2, dp=4, dp_mode="engine")
    assert "--data-parallel-size 4" in line
    assert "CUDA_VISIBLE_DEVICES" not in line
    with pytest.raises(LaunchError, match=r"vLLM 0\.7\.3 has no data parallelism"):
        dry("vllm", dp=4, dp_mode="engine", engine_version="0.7.3")


def test_a_router_listens_on_the_given_port_before_its_replicas() -> None:
    *replicas, router = dry("sglang_router", dp=2)
    assert "--port 8001" in replicas[0]
    assert "--port 8000 --worker-urls http://127.0.0.1:8001 http://127.0.0.1:8002" in router
    assert "vllm_router.launch_router" in dry("vllm", dp=2, dp_mode="router")[-1]


def test_several_nodes_get_one_line_each_and_only_the_first_serves() -> None:
    lines = dry("vllm", tp=8, pp=2, nodes=2, head_address="10.0.0.1", head_port=5000)
    assert ["--node-rank 0" in lines[0], "--node-rank 1" in lines[1]] == [True, True]
    assert ["--headless" in line for line in lines] == [False, True]
    assert all("--master-addr 10.0.0.1 --master-port 5000" in line for line in lines)
    lines = dry("sglang", tp=16, nodes=2, head_address="10.0.0.1")
    assert all("--nnodes 2" in line and "--dist-init-addr 10.0.0.1:29500" in line for line in lines)
    node = replicas.deploy(
        spec("sglang", tp=2, nodes=2, node_rank=1, head_address="h"),
        [8000],
        Facts(""),
    )
    assert node.base_urls == ()


@pytest.mark.parametrize("engine", engines_with("nodes"))
def test_replicas_on_several_nodes_are_refused_unless_the_engine_spreads_them(engine: str) -> None:
    shape = {"tp": 2, "dp": 2, "nodes": 2, "head_address": "10.0.0.1"}
    with pytest.raises(LaunchError, match=r"separate servers: start one on each node .*--dp-mode engine"):
        dry(engine, **shape)
    if table.by_name(engine).spreads:
        assert len(dry(engine, **shape, dp_mode="engine")) == 2


def test_data_parallel_nodes_start_at_their_own_rank() -> None:
    lines = dry("vllm", tp=2, dp=4, dp_mode="engine", nodes=2, head_address="10.0.0.1")
    assert "--data-parallel-start-rank" not in lines[0]
    assert "--data-parallel-start-rank 2" in lines[1]
    assert all("--data-parallel-size-local 2 --data-parallel-address 10.0.0.1" in line for line in lines)


def test_an_old_vllm_is_started_as_a_module_with_its_own_switches() -> None:
    (line,) = dry("vllm_ascend", engine_version="0.7.3", reasoning_parser="deepseek-r1", attention_backend="X")
    assert "python3 -m vllm.entrypoints.openai.api_server --model org/model" in line
    assert "--enable-reasoning --reasoning-parser deepseek_r1" in line
    assert line.startswith("VLLM_ATTENTION_BACKEND=X ")


@pytest.mark.parametrize(("engine", "name"), [("vllm", "deepseek_r1"), ("sglang", "deepseek-r1")])
def test_a_reasoning_parser_is_spelled_as_the_engine_does(engine: str, name: str) -> None:
    for given_name in ("deepseek_r1", "deepseek-r1"):
        assert f"--reasoning-parser {name}" in dry(engine, reasoning_parser=given_name)[0]


def test_eager_is_written_as_each_sglang_knows_it() -> None:
    assert "--cuda-graph-backend-decode disabled" in dry("sglang", eager=True)[0]
    assert "--disable-cuda-graph" in dry("sglang", eager=True, engine_version="0.5.6")[0]


def test_ascend_nodes_are_told_their_interface_and_address() -> None:
    line = dry("vllm_ascend", tp=8, pp=2, nodes=2, head_address="h", interface="eth0", node_address="10.0.0.1")[0]
    for pair in ("HCCL_IF_IP=10.0.0.1", "HCCL_SOCKET_IFNAME=eth0", "GLOO_SOCKET_IFNAME=eth0", "TP_SOCKET_IFNAME=eth0"):
        assert pair in line.split()
    assert "--device npu --attention-backend ascend" in dry("sglang", device="npu")[0]


@pytest.mark.parametrize("engine", engines_with("api_key_env"))
def test_no_command_line_of_an_engine_holds_a_key(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    for line in dry(engine, dp=2, api_key_env="MY_KEY"):
        assert "s3cret" not in line
        assert '="$MY_KEY"' in line


def test_an_option_of_another_interpreter_or_container_wraps_the_same_arguments(tmp_path: Path) -> None:
    plain = dry("vllm", tp=2)[0]
    assert dry("vllm", tp=2, python=tmp_path / "bin/python")[0] == f"{tmp_path}/bin/{plain}"
    assert dry("vllm", tp=2, uvx="vllm==0.33.0")[0] == f"uvx --from vllm==0.33.0 {plain}"
    contained = shlex.split(dry("vllm", tp=2, docker="vllm/vllm-openai:v0.33.0", devices=("2", "3"))[0])
    assert contained[-len(plain.split()) + 1 :] == plain.split()[1:]
    for words in (["--gpus", '"device=2,3"'], ["--ipc=host"], ["--entrypoint", "vllm"]):
        assert " ".join(words) in " ".join(contained)


def test_a_container_gets_names_of_secrets_and_the_local_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    monkeypatch.setenv("HF_TOKEN", "hf_s3cret")
    line = dry("vllm", model=str(tmp_path), docker="image", api_key_env="MY_KEY")[0]
    assert "s3cret" not in line
    assert "-e HF_TOKEN -e REASONING_HARNESS_SERVER -e VLLM_API_KEY" in line
    assert f"-v {tmp_path}:{tmp_path}:ro" in line


def test_a_local_folder_is_given_absolutely_and_keeps_its_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    assert f"serve {tmp_path}/weights --served-model-name weights" in dry("vllm", model="weights")[0]


def test_placeholders_in_a_programs_command_line_are_filled_in() -> None:
    lines = dry("command", model="m", dp=2, extra_flags=("./server", "--port={port}", "--model", "{model}"))
    assert lines == ["./server --port=8000 --model m", "./server --port=8001 --model m"]
    with pytest.raises(LaunchError, match=r"need `\{port\}` in the command line"):
        dry("command", dp=2, extra_flags=("./server",))


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"engine": "vlm", "model": "m"}, "engine", "expected 'llama_cpp', 'vllm', .*"),
        ({"engine": "vllm", "model": ""}, "model", "needs a model"),
        ({"engine": "command"}, "extra_flags", "needs the command line after"),
        ({"engine": "vllm", "model": "m", "tp": 0}, "tp", "tp=0: expected a number greater than or equal to 1"),
        ({"engine": "vllm", "model": "m", "tp": "8"}, "tp", "tp='8': expected a valid integer"),
        ({"engine": "vllm", "model": "m", "tp": True}, "tp", "expected a valid integer"),
        ({"engine": "vllm", "model": "m", "port": 65536}, "port", "expected a number less than or equal to 65535"),
        ({"engine": "vllm", "model": "m", "memory_fraction": float("nan")}, "memory_fraction", "a finite number"),
        ({"engine": "vllm", "model": "m", "dp_mode": "ray"}, "dp_mode", "expected 'client', 'engine' or 'router'"),
        ({"engine": "vllm", "model": "m", "host": None}, "host", "expected a valid string"),
        ({"engine": "vllm", "model": "m", "devices": 1}, "devices", "expected "),
        ({"engine": "vllm", "model": "m", "environment": {"A B": ""}}, "environment", "expected NAME=VALUE"),
        ({"engine": "vllm", "model": "m", "nodes": 2}, "head_address", "several nodes need the address of node 0"),
        ({"engine": "vllm", "model": "m", "python": "p", "docker": "d"}, "docker", "give one"),
        ({"engine": "vllm", "model": "m", "api_key_env": "sk-123"}, "api_key_env", "name of an environment variable"),
        ({"engine": "vllm", "model": "m", "name": "../x"}, "name", "server's name is"),
        ({"engine": "vllm", "model": "m", "nodes": 2, "node_rank": 2, "head_address": "h"}, "node_rank", "at most 1"),
    ],
)
def test_an_impossible_spec_is_refused_by_its_field(fields: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        table.check(ServerSpec(**fields))
    assert caught.value.field == field
    assert "sk-123" not in str(caught.value)


def test_a_value_of_the_environment_is_in_no_message() -> None:
    with pytest.raises(UsageError, match="environment: expected NAME=VALUE") as caught:
        spec("vllm", environment={"TOKEN": b"s3cret"})
    assert "s3cret" not in str(caught.value)


def test_texts_and_lists_become_the_spec_s_own_types() -> None:
    converted = spec("vllm", chat_template=__file__, devices=["0"], memory_fraction=1)
    assert converted == spec("vllm", chat_template=Path(__file__), devices=("0",), memory_fraction=1.0)


def test_every_engine_is_described_and_every_field_says_what_it_is() -> None:
    assert all(engine.summary for engine in table.every().values())
    assert all(option.help.endswith(".") for option in OPTIONS.values())
    assert len(set(map(flag_of, OPTIONS))) == len(OPTIONS)


def test_a_transformers_server_refuses_what_it_has_no_option_for() -> None:
    with pytest.raises(UsageError, match="tp: transformers does not support it"):
        dry("transformers", tp=2, context=100)


def test_the_ascend_plugin_must_be_the_one_for_the_installed_vllm() -> None:
    vllm_ascend.check_pair("0.23.0", "0.23.0.post1")
    vllm_ascend.check_pair("0.7.3", "0.7.3.post1")
    with pytest.raises(LaunchError, match=r"vllm-ascend 0\.18\.0 does not go with vLLM 0\.23\.0"):
        vllm_ascend.check_pair("0.23.0", "0.18.0")


@pytest.mark.parametrize("engine", engines_with("engine_version"))
def test_a_missing_engine_is_one_sentence_with_the_line_that_installs_it(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program = table.by_name(engine).program(spec(engine))
    assert program is not None
    with pytest.raises(LaunchError, match=rf"is not installed; .*pip install .*{program.package}"):
        supervisor.launch(spec(engine))


def test_a_missing_ascend_engine_prints_the_pairing_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        LaunchError, match=r"(?s)pip install vllm-ascend==0\.23\.0.*torch-npu.*0\.7\.3\.post1 +0\.7\.3 .* 8\.1\.RC1"
    ):
        supervisor.launch(spec("vllm_ascend"))


def asked(*words: str) -> tuple[int, str, str]:
    """Exit code, output and error of `harness serve`."""
    done = harness(Path.cwd(), "serve", *words)
    return done.code, done.out, done.err


def test_a_command_line_describes_a_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ServerSpec] = []
    monkeypatch.setattr(supervisor, "dry_run", lambda given: seen.append(given) or ["line"])
    own = "vllm org/m --tp 8 --no-prefix-caching --eager --env A=b=c --env D= --devices 0,1 --dry-run"
    words = [*own.split(), "--", "--x", "1"]
    assert asked(*words) == (0, "line\n", "")
    assert seen == [
        ServerSpec(
            engine="vllm",
            model="org/m",
            tp=8,
            prefix_caching=False,
            eager=True,
            environment={"A": "b=c", "D": ""},
            devices=("0", "1"),
            extra_flags=("--x", "1"),
        )
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("vlm m", "no engine or action 'vlm'; there are fetch, llama_cpp, vllm"),
        ("vlm m", "Did you mean vllm?"),
        ("vllm", "engine vllm needs a model"),
        ("vllm m --tp 0", "tp=0: expected a number greater than or equal to 1"),
        ("vllm m --memory-fraction 0", "memory_fraction=0.0: expected a number greater than 0"),
        ("vllm m --nodes 2", "head_address: several nodes need"),
        ("vllm m --server-key-env sk-1", "api_key_env: give the name of an environment variable"),
        ("vllm m --env A", "environment: expected NAME=VALUE"),
        ("vllm m stray", "unexpected argument stray"),
        ("command ./server", "engine command needs the command line after `--`"),
    ],
)
def test_a_wrong_command_line_is_refused_by_the_flag_that_was_typed(words: str, message: str) -> None:
    code, out, error = asked(*words.split(), "--dry-run")
    assert (code, out) == (2, "")
    assert message in error


def test_an_ascend_container_is_handed_its_devices_by_name() -> None:
    line = dry("vllm_ascend", tp=2, docker="quay.io/ascend/vllm-ascend:v0.23.0")[0]
    assert "--device /dev/davinci0 --device /dev/davinci1 --device /dev/davinci_manager" in line
    assert "--gpus" not in line


@pytest.mark.parametrize(
    ("engine", "neutral"),
    [(name, " ".join(engine.neutral_words)) for name, engine in table.every().items() if engine.neutral_words],
)
def test_an_engine_starts_without_the_models_own_sampling_unless_told(engine: str, neutral: str) -> None:
    assert neutral in dry(engine)[0]
    assert neutral not in dry(engine, sampling_defaults="model")[0]
    own = (neutral.split()[0], "/own")
    assert neutral not in dry(engine, extra_flags=own)[0]
    assert dry(engine, extra_flags=own)[0].endswith(" ".join(own))


def test_determinism_is_asked_for_in_each_engines_own_way_and_recorded() -> None:
    assert dry("vllm", deterministic=True)[0].startswith("VLLM_BATCH_INVARIANT=1 ")
    assert "--enable-deterministic-inference" in dry("sglang", deterministic=True)[0]
    assert "VLLM_BATCH_INVARIANT" not in dry("vllm")[0]
    with pytest.raises(LaunchError, match="need a GPU: leave out --deterministic on a CPU"):
        dry("vllm", deterministic=True, device="cpu")
    assert dry("vllm", device="cpu")
    assert dry("vllm", deterministic=True, engine_version="0.11.1")
    with pytest.raises(LaunchError, match=r"vLLM 0\.11\.0 has no batch-invariant kernels"):
        dry("vllm", deterministic=True, engine_version="0.11.0")
    with pytest.raises(LaunchError, match=r"SGLang 0\.4\.9 has no deterministic inference"):
        dry("sglang", deterministic=True, engine_version="0.4.9")
    for engine in ("llama_cpp", "transformers"):
        with pytest.raises(UsageError, match=f"{engine} does not support it"):
            dry(engine, deterministic=True)
    deterministic = spec("vllm", deterministic=True)
    assert replicas.deploy(deterministic, [8000], table.assumed_facts(deterministic)).versions["deterministic"] == "on"


def test_a_command_of_several_replicas_gets_the_devices_that_are_named() -> None:
    words = ("./server", "--port={port}")
    lines = dry("command", dp=2, tp=2, devices=("4", "5", "6", "7"), extra_flags=words)
    assert lines == [
        "CUDA_VISIBLE_DEVICES=4,5 ./server --port=8000",
        "CUDA_VISIBLE_DEVICES=6,7 ./server --port=8001",
    ]
    assert dry("command", dp=2, extra_flags=words)[0] == "./server --port=8000"


def test_the_slots_of_a_transformers_server_are_refused_not_dropped() -> None:
    with pytest.raises(UsageError, match="max_sequences: transformers does not"):
        dry("transformers", max_sequences=8)


@pytest.mark.parametrize("engine", ["vllm", "vllm_ascend"])
@pytest.mark.parametrize(
    ("version", "defaults", "words"),
    [
        ("0.7.3", "neutral", None),
        ("0.7.3.post1", "neutral", None),
        ("0.7.3", "model", "--generation-config auto"),
        ("0.8.0", "neutral", "--generation-config vllm"),
        ("0.33.0", "model", None),
    ],
)
def test_vllm_gets_its_own_sampling_values_by_the_word_of_its_version(
    engine: str, version: str, defaults: str, words: str | None
) -> None:
    (line,) = dry(engine, engine_version=version, sampling_defaults=defaults)
    assert ("--generation-config" in line) == (words is not None)
    assert words is None or words in line


@pytest.mark.parametrize(
    ("variable", "fields", "devices", "recorded"),
    [
        ("0,1", {"tp": 2}, [None], "2 x H100"),
        ("5,GPU-1f", {"dp": 2}, ["5", "GPU-1f"], "2 x H100"),
        (None, {"dp": 2, "devices": ("6", "7")}, ["6", "7"], "2 x H100"),
        (None, {"dp": 2}, ["0", "1"], "8 x H100"),
    ],
)
def test_the_devices_of_a_run_are_those_that_it_may_use(
    variable: str | None,
    fields: dict[str, Any],
    devices: list[str | None],
    recorded: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nfor i in 0 1 2 3 4 5 6 7; do echo $i, 550.1, H100; done\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    spec = ServerSpec(engine="vllm", model="m", docker="vllm/vllm-openai:v0.33.0", **fields)
    (tmp_path / "docker").touch(0o755)
    facts = table.inspect(spec)
    assert facts.versions["devices"] == recorded
    planned = replicas.deploy(spec.but(docker=None), range(8000, 8002)[: len(devices)], facts)
    given = [process.command.environment.get("CUDA_VISIBLE_DEVICES") for process in planned.processes]
    assert given == devices


@pytest.mark.parametrize(("engine", "variable"), [("vllm", "CUDA"), ("vllm_ascend", "ASCEND_RT")])
def test_a_dry_run_without_the_engine_takes_the_devices_that_are_allowed(
    engine: EngineName, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{variable}_VISIBLE_DEVICES", "5,6")
    lines = supervisor.dry_run(ServerSpec(engine=engine, model="m", dp=2))
    assert [line.split()[0] for line in lines] == [f"{variable}_VISIBLE_DEVICES={number}" for number in (5, 6)]
    with pytest.raises(LaunchError, match="there are 2"):
        supervisor.dry_run(ServerSpec(engine=engine, model="m", dp=3))


def test_ports_and_devices_that_cannot_be_are_one_sentence() -> None:
    spec = ServerSpec(engine="vllm", model="m", port=65535, dp=2)
    for begin in (supervisor.dry_run, supervisor.launch):
        with pytest.raises(LaunchError, match="--port 65535: 2 ports are needed, up to 65536"):
            begin(spec.but(engine="command", extra_flags=("true", "{port}")))
    with pytest.raises(UsageError, match="0, 1 is named more than once"):
        ServerSpec(engine="vllm", model="m", devices=("0", "0", "1", "1"))
