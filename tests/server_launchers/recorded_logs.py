"""Ends of logs of real engines (`logs`), each of a start that went wrong, and what we say of it.

The fast suite reads the recorded logs; `make test-servers` lets the engines of these versions write them anew. The name
of a log is the engine, its version, and how the start was wrong.
"""

from __future__ import annotations

from pathlib import Path

LOGS = Path(__file__).with_name("logs")
CAUSES = {
    "sglang-0.5.23-arch": "its log says: “Cannot find model module. 'NobodyForCausalLM' is not a registered model",
    "sglang-0.5.23-bad-parser": "its log says: “argument --reasoning-parser: invalid choice: 'nonsense'",
    "sglang-0.5.23-context": "context_length (50000) is greater than the derived context_length",
    "sglang-0.5.23-custom": "the model contains custom code",
    "sglang-0.5.23-cut": "Error while deserializing header: incomplete metadata, file not fully covered",
    "sglang-0.5.23-dtype": "its log says: “argument --dtype: invalid choice: 'nonsense'",
    "sglang-0.5.23-heads": "(dp_size * tp_size * pp_size = 3) should be smaller than or equal to number of numa node",
    "sglang-0.5.23-no-device": "its log says: “module 'torch._C' has no attribute '_cuda_setDevice'",
    "sglang-0.5.23-no-kv": "the weights leave too little memory for the cache",
    "sglang-0.5.23-no-module": "its log says: “No module named 'torchvision'",
    "sglang-0.5.23-not-found-offline": "We couldn't connect to 'https://huggingface.co' to load the files",
    "sglang-0.5.23-tp2-one-core": "(dp_size * tp_size * pp_size = 2) should be smaller than or equal to number of numa",
    "sglang-0.5.23-unknown-flag": "its log says: “unrecognized arguments: --nonsense",
    "torchaudio-2.11.0-no-library": "its log says: “libc10_cuda.so: cannot open shared object file",
    "vllm-0.32.0-arch": "Model architectures ['NobodyForCausalLM'] are not supported for now",
    "vllm-0.32.0-bad-parser": "Reasoning parser 'nonsense' not found. Available parsers: cohere_command3",
    "vllm-0.32.0-context": "User-specified max_model_len (50000) is greater than the derived max_model_len",
    "vllm-0.32.0-custom": "the model contains custom code",
    "vllm-0.32.0-cut": "Error while deserializing header: incomplete metadata, file not fully covered",
    "vllm-0.32.0-dtype": "its log says: “argument --dtype: invalid choice: 'nonsense'",
    "vllm-0.32.0-empty-folder": "its log says: “Invalid repository ID or local directory specified",
    "vllm-0.32.0-heads": "Total number of attention heads (4) must be divisible by tensor parallel size (3)",
    "vllm-0.32.0-kvcache": "is less than requested memory for kv (4000.0 GiB)",
    "vllm-0.32.0-missing-folder": "its log says: “Repo id must be in the form",
    "vllm-0.32.0-no-kv": "the weights leave too little memory for the cache",
    "vllm-0.32.0-not-found-offline": "Cannot find an appropriate cached snapshot folder for the specified revision",
    "vllm-0.32.0-quant": "it ended with exit status 1; its log says: “Cannot find the config file for awq",
    "vllm-0.32.0-taken-port": "its log says: “[Errno 98] Address already in use",
    "vllm-0.32.0-tp2-one-core": "Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers",
    "vllm-0.32.0-unknown-flag": "its log says: “unrecognized arguments: --nonsense",
}
"""Name of a log → a part of the sentence that we print about it."""
