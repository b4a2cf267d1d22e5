"""Plain causes from engines' logs: provoked for real where no accelerator is needed, else as engines word them. What is
refused before a start: a model that is no model, and flags that a version of the engine lacks.

For: server_launchers.engines.table.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from server_launchers import replicas
from server_launchers.embedded import openmp
from server_launchers.engines import table
from server_launchers.errors import LaunchError, log_cause
from server_launchers.lifecycle import servers
from server_launchers.spec import ServerSpec

# One line each as vLLM, SGLang, torch, transformers and huggingface_hub word it.
WORDED = {
    "devices ran out of memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has …",
        "RuntimeError: NPU out of memory. Tried to allocate 40.00 MiB (NPU 0; 60.97 GiB total)",
    ),
    "too little memory for the cache": (
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when …",
    ),
    "its log says: Free memory on device cuda:0": (
        "ValueError: Free memory on device cuda:0 (3.1/79.1 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 71.2 GiB). Decrease GPU memory utilization",
    ),
    "its log says: CUDA error: invalid device ordinal": ("RuntimeError: CUDA error: invalid device ordinal",),
    "its log says: No such option: --cb-block": ("Error: No such option: --cb-block",),
}


# Ends of logs of real engines, each of a start that went wrong in this way.
LOGS = Path(__file__).with_name("logs")
RECORDED = {
    "sglang-0.5.23-bad-parser": "its log says: argument --reasoning-parser: invalid choice: 'nonsense'",
    "sglang-0.5.23-context": "context_length (50000) is greater than the derived context_length (8192)",
    "sglang-0.5.23-custom": "the model contains custom code",
    "sglang-0.5.23-heads": "(dp_size * tp_size * pp_size = 3) should be smaller than or equal to number of numa node",
    "sglang-0.5.23-no-module": "its log says: No module named 'torchvision'",
    "sglang-0.5.23-no-kv": "the weights leave too little memory for the cache",
    "sglang-0.5.23-not-found-offline": "We couldn't connect to 'https://huggingface.co' to load the files",
    "sglang-0.5.23-unknown-flag": "its log says: unrecognized arguments: --nonsense",
    "torchaudio-2.11.0-no-library": "its log says: Could not load this library: ",
    "vllm-0.32.0-arch": "Model architectures ['NobodyForCausalLM'] are not supported for now",
    "vllm-0.32.0-bad-parser": "Reasoning parser 'nonsense' not found. Available parsers: cohere_command3",
    "vllm-0.32.0-context": "User-specified max_model_len (50000) is greater than the derived max_model_len",
    "vllm-0.32.0-custom": "the model contains custom code",
    "vllm-0.32.0-cut": "Error while deserializing header: incomplete metadata, file not fully covered",
    "vllm-0.32.0-dtype": "its log says: argument --dtype: invalid choice: 'nonsense'",
    "vllm-0.32.0-empty-folder": "its log says: Invalid repository ID or local directory specified",
    "vllm-0.32.0-heads": "Total number of attention heads (4) must be divisible by tensor parallel size (3)",
    "vllm-0.32.0-kvcache": "is less than requested memory for kv (4000.0 GiB)",
    "vllm-0.32.0-missing-folder": "its log says: Repo id must be in the form",
    "vllm-0.32.0-no-kv": "the weights leave too little memory for the cache",
    "vllm-0.32.0-not-found-offline": "Cannot find an appropriate cached snapshot folder for the specified revision",
    "vllm-0.32.0-quant": "it ended with exit status 1; its log says: Cannot find the config file for awq",
    "vllm-0.32.0-taken-port": "its log says: [Errno 98] Address already in use",
    "vllm-0.32.0-tp2-one-core": "Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers",
    "vllm-0.32.0-unknown-flag": "its log says: unrecognized arguments: --nonsense",
}


def cause_of(tmp_path: Path, text: str, code: int | None = 1) -> str:
    log = tmp_path / "engine.log"
    log.write_text(text)
    return log_cause(servers.log_tail(log), code)


@pytest.mark.parametrize(("line", "cause"), [(line, cause) for cause in WORDED for line in WORDED[cause]])
def test_an_engines_words_give_the_cause_and_what_to_do(line: str, cause: str, tmp_path: Path) -> None:
    last = "RuntimeError: Engine core initialization failed. See root cause above."
    text = f"INFO starting, trust_remote_code=False\n{line}\n{last}\n"
    assert cause in cause_of(tmp_path, text)


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.iterdir()))
def test_a_recorded_log_of_a_real_engine_gives_its_cause(name: str, tmp_path: Path) -> None:
    assert RECORDED[name] in cause_of(tmp_path, (LOGS / f"{name}.log").read_text())


FEW_FILES = (
    "WARNING [system_utils.py:255] Found ulimit of 20000 and failed to automatically increase. This can cause fd limit "
    "errors like `OSError: [Errno 24] Too many open files`. Consider increasing with ulimit -n\n"
)


def test_a_signal_is_told_where_the_log_has_no_cause(tmp_path: Path) -> None:
    for text, code, cause in (
        (FEW_FILES, -9, "it ended with signal 9 (Killed), which the kernel sends"),
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
def test_flags_behind_the_dashes_are_the_engines_own_and_not_what_a_start_is_planned_by(
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
