"""Plain causes from engines' logs: provoked for real where no accelerator is needed, else as engines word them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from server_launchers.embedded import openmp
from server_launchers.keeping import engine_log, servers

# One line each as vLLM, SGLang, torch, transformers and huggingface_hub word it.
WORDED = {
    "devices ran out of memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has …",
        "RuntimeError: NPU out of memory. Tried to allocate 40.00 MiB (NPU 0; 60.97 GiB total)",
    ),
    "too little memory for the cache": (
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when …",
    ),
    "other programs hold the devices' memory": (
        "ValueError: Free memory on device cuda:0 (3.1/79.1 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 71.2 GiB). Decrease GPU memory utilization",
    ),
    "the machine has fewer devices than requested": (
        "World size (8) is larger than the number of available GPUs (4) in this node.",
        "RuntimeError: CUDA error: invalid device ordinal",
    ),
    "driver is too old": ("RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please …",),
    "the engine sees no device": (
        "RuntimeError: Found no NVIDIA driver on your system.",
        "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'",
        "RuntimeError: Failed to infer device type, please set the environment variable",
    ),
    "the model is gated": ("huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for …",),
    "the model was not found": (
        "OSError: org/nothing is not a local folder and is not a valid model identifier listed on …",
    ),
    "does not know the option --cb-block": ("No such option: --cb-block",),
}


# Ends of logs of real engines, each of a start that went wrong in this way.
LOGS = Path(__file__).with_name("logs")
RECORDED = {
    "sglang-0.5.23-bad-parser": "refuses an option: argument --reasoning-parser: invalid choice: 'nonsense'",
    "sglang-0.5.23-context": "the context of 50000 tokens is more than the model's 8192: lower `context`",
    "sglang-0.5.23-custom": "the model brings its own code",
    "sglang-0.5.23-heads": "3 workers are more than the processor's memory nodes",
    "sglang-0.5.23-no-module": "the engine's environment lacks the Python module torchvision",
    "sglang-0.5.23-no-kv": "the weights leave too little memory for the cache",
    "sglang-0.5.23-not-found-offline": "the model is not in the cache and the hub cannot be reached",
    "sglang-0.5.23-unknown-flag": "the engine does not know the option --nonsense",
    "torchaudio-2.11.0-no-library": "the shared library libc10_cuda.so is missing",
    "vllm-0.32.0-arch": "does not know the model's architecture NobodyForCausalLM",
    "vllm-0.32.0-bad-parser": "the engine has no reasoning parser nonsense; it has cohere_command3",
    "vllm-0.32.0-context": "the context of 50000 tokens is more than the model's 8192: lower `context`",
    "vllm-0.32.0-custom": "the model brings its own code",
    "vllm-0.32.0-cut": "not fully covered): wait until it is written, or fetch it again",
    "vllm-0.32.0-dtype": "refuses an option: argument --dtype: invalid choice: 'nonsense'",
    "vllm-0.32.0-empty-folder": "its log says: Invalid repository ID or local directory specified",
    "vllm-0.32.0-heads": "the model's 4 attention heads cannot be spread over `tp` 3",
    "vllm-0.32.0-kvcache": "16.34 GiB of memory left for the cache, but 4000.0 are needed",
    "vllm-0.32.0-missing-folder": "its log says: Repo id must be in the form",
    "vllm-0.32.0-no-kv": "the weights leave too little memory for the cache",
    "vllm-0.32.0-not-found-offline": "the model is not in the cache and the hub cannot be reached",
    "vllm-0.32.0-quant": "it ended with exit status 1; its log says: Cannot find the config file for awq",
    "vllm-0.32.0-taken-port": "a port is in use",
    "vllm-0.32.0-tp2-one-core": "2 workers are more than the processor's memory nodes",
    "vllm-0.32.0-unknown-flag": "the engine does not know the option --nonsense",
}


def cause_of(tmp_path: Path, text: str, code: int | None = 1) -> str:
    log = tmp_path / "engine.log"
    log.write_text(text)
    return engine_log.cause(servers.log_tail(log), code)


@pytest.mark.parametrize(("line", "cause"), [(line, cause) for cause in WORDED for line in WORDED[cause]])
def test_an_engines_words_give_the_cause_and_what_to_do(line: str, cause: str, tmp_path: Path) -> None:
    text = (
        f"INFO starting, trust_remote_code=False\n{line}\nRuntimeError: Engine core initialization failed. See above.\n"
    )
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
        (FEW_FILES, -9, "killed by signal 9 (SIGKILL)"),
        ("", -6, "aborted (signal 6)"),
        ("OSError: [Errno 98] Address already in use", 1, "a port is in use"),
    ):
        assert cause in cause_of(tmp_path, text, code)
    assert servers.log_tail(tmp_path / "none.log") == []


def output_of(*argv: str) -> tuple[str, int]:
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd="/")
    return done.stdout, done.returncode


PYTHON_FAILURES = [
    ("import flash_attn_that_is_not_there", "lacks the Python module flash_attn_that_is_not_there"),
    ("import ctypes; ctypes.CDLL('libnothere.so.1')", "shared library libnothere.so.1 is missing"),
    ("f = open('/dev/full', 'w'); f.write('x'); f.flush()", "the disk is full"),
    ("import os; os.kill(os.getpid(), 9)", "killed by signal 9 (SIGKILL)"),
    ("import os; os.kill(os.getpid(), 11)", "crashed (signal 11)"),
    ("import sys; sys.exit(5)", "ended with exit status 5"),
    ("import socket; socket.getaddrinfo('no-such-host.invalid', 80)", "the hub cannot be reached"),
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
    assert f"the model {model} cannot be loaded" in cause_of(tmp_path, text, status)


def test_llama_cpp_refuses_what_it_cannot_serve_in_one_sentence(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF" + b"\xff" * 100)
    text, status = llama_cpp(str(model))
    assert (status, f"the model {model} cannot be loaded" in cause_of(tmp_path, text, status)) == (1, True)
    model.write_bytes(b"PK")
    assert llama_cpp(str(model)) == (f"error: {model} is no GGUF file (its first bytes are not GGUF)\n", 2)
    missing = str(tmp_path / "no.gguf")
    assert llama_cpp(missing) == (f"error: no model file at {missing}; give the path of a GGUF file\n", 2)
    model.write_bytes(b"GGUF")
    text, status = llama_cpp(str(model), "--api-key-env", "NOT_SET_ANYWHERE")
    assert (text, status) == ("error: the environment variable NOT_SET_ANYWHERE for --api-key-env is not set\n", 2)
