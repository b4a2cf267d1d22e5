"""An engine's own command line is read as ours: known options by our names, the rest as it is.

For: server_launchers.pasted.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from server_launchers import pasted
from server_launchers.engines import table
from server_launchers.spec import OPTIONS, words_of
from tests.system.command import harness

VLLM = "vllm serve Qwen/QwQ-32B"
SGLANG = "python3 -m sglang.launch_server --model-path Qwen/QwQ-32B"


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        (VLLM, "vllm Qwen/QwQ-32B"),
        ("/opt/e/bin/vllm serve m", "vllm m --python /opt/e/bin/python"),
        ("python -m vllm.entrypoints.openai.api_server --model=m -tp 2", "vllm m --tp 2"),
        (f"{VLLM} --tensor-parallel-size 8 --max_model_len=32768", "vllm Qwen/QwQ-32B --tp 8 --max-model-len 32768"),
        (f"{VLLM} --dp 2 --enforce-eager", "vllm Qwen/QwQ-32B --dp 2 --dp-mode engine --eager"),
        (f"{VLLM} --no-enable-prefix-caching --seed 1", "vllm Qwen/QwQ-32B --no-prefix-caching --server-seed 1"),
        (f"{VLLM} --lora-modules a b --port 1 -x", "vllm Qwen/QwQ-32B --port 1 -- --lora-modules a b -x"),
        (f"{VLLM} --chat-template none.jinja", "vllm Qwen/QwQ-32B -- --chat-template none.jinja"),
        (SGLANG, "sglang Qwen/QwQ-32B"),
        ("sglang serve --model-path m", "sglang m"),
        (f"A=b {SGLANG} --tp 8 --disable-radix-cache", "sglang Qwen/QwQ-32B --env A=b --tp 8 --no-prefix-caching"),
        (f"/p/python {SGLANG[8:]} --context-length 9", "sglang Qwen/QwQ-32B --python /p/python --max-model-len 9"),
        (f"{SGLANG} --schedule-policy lpm", "sglang Qwen/QwQ-32B -- --schedule-policy lpm"),
    ],
)
def test_known_options_become_ours_and_the_rest_is_passed_on(line: str, ours: str) -> None:
    command = pasted.read(shlex.split(line))
    assert command is not None
    passed = ["--", *command.passed] if command.passed else []
    assert shlex.join([command.engine, command.model, *words_of(command.fields), *passed]) == ours


@pytest.mark.parametrize("line", ["", "./my_server --port 1", "vllm bench serve", "python3 server.py", "A=b"])
def test_any_other_program_is_none(line: str) -> None:
    assert pasted.read(shlex.split(line)) is None


def test_a_key_in_the_open_is_refused() -> None:
    for line in (f"{VLLM} --api-key sk-0123", f"{SGLANG} --api-key=sk-0123"):
        with pytest.raises(UsageError, match="or --server-key-env") as refused:
            pasted.read(shlex.split(line))
        assert "sk-0123" not in str(refused.value)


def test_each_name_stands_for_a_field_that_the_engine_takes() -> None:
    for engine in table.every().values():
        fields = {name.removeprefix("!") for name in engine.pasted} - {"model", "api_key"}
        assert fields <= OPTIONS.keys() & engine.takes
        names = [name for spelt in engine.pasted.values() for name in spelt.split()]
        assert len(set(names)) == len(names)


def test_the_command_says_what_it_read(tmp_path: Path) -> None:
    done = harness(tmp_path, "serve", "--port", "8005", "--dry-run", "--", *shlex.split(f"{VLLM} --port 3 --new 1"))
    assert "read as: harness serve vllm Qwen/QwQ-32B --port 3 -- --new 1" in done.err
    assert "--port 8005" in done.out
    assert done.out.rstrip().endswith("--new 1")
    for words in (["./mine"], ["vllm", "bench"], []):
        refused = harness(tmp_path, "serve", "--dry-run", "--", *words)
        assert (refused.code, "harness serve command -- PROGRAM" in refused.err) == (2, True)
