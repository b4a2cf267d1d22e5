"""An engine's own command line is read as ours: known options by our names, the rest as it is.

For: server_launchers.pasted.
"""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from server_launchers import pasted, replicas
from server_launchers.engines import table
from server_launchers.errors import LaunchError
from server_launchers.spec import OPTIONS, ServerSpec, words_of
from tests.system.command import harness

VLLM = "vllm serve Qwen/QwQ-32B"
SGLANG = "python3 -m sglang.launch_server --model-path Qwen/QwQ-32B"
ROUTER = "python3 -m sglang_router.launch_server --model-path m"


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
        (f"{VLLM} --served-model-name a b", "vllm Qwen/QwQ-32B -- --served-model-name a b"),
        (SGLANG, "sglang Qwen/QwQ-32B"),
        (f"{ROUTER} --dp-size 4 --port 3", "sglang m --dp-mode router --dp 4 --port 3"),
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
        with pytest.raises(UsageError, match="with api_key_env") as refused:
            pasted.read(shlex.split(line))
        assert "sk-0123" not in str(refused.value)


def test_an_option_of_the_router_is_refused() -> None:
    with pytest.raises(UsageError, match="--router-policy: a router is started here"):
        pasted.read(shlex.split(f"{ROUTER} --router-policy cache_aware"))


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
    named = harness(tmp_path, "serve", "vllm_ascend", "--dry-run", "--", *shlex.split(f"{VLLM} -tp 2"))
    assert "read as: harness serve vllm_ascend Qwen/QwQ-32B --tp 2\n" in named.err
    for engine, words in (("", ["./mine"]), ("", ["vllm", "bench"]), ("", []), ("sglang", shlex.split(VLLM))):
        refused = harness(tmp_path, "serve", *engine.split(), "--dry-run", "--", *words)
        assert (refused.code, "harness serve command -- PROGRAM" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        *((f"{site}Qwen/Qwen3-8B", "as Qwen/Qwen3-8B$") for site in ("hf://", "https://huggingface.co/", "hf.co/")),
        ("https://huggingface.co/a/b/tree/v1/", "as a/b, and the revision .*--revision v1$"),
        ("a/b@main", "as a/b$"),
        ("a/b@v1", "as a/b, and the revision .*--revision v1$"),
        ("a/b:Q4_K_M", "llama_cpp FILE.gguf"),
        *((name, "expected a name of the hub") for name in ("a/b/c", "my model", "ollama://a", "a/", "a/b?x=1")),
        *((name, "") for name in ("a/b", "gpt2", "a-1/b_2.5", "./my model", "/x y", "~/m", "s3://bucket/m")),
    ],
)
def test_a_model_is_a_path_or_a_name_of_the_hub(model: str, says: str) -> None:
    for engine in ("vllm", "vllm_ascend", "sglang"):
        with pytest.raises(UsageError, match=says) if says else nullcontext():
            table.check(ServerSpec(engine=engine, model=model))


def test_flags_that_a_version_is_known_to_lack_are_named() -> None:
    for version, flags, named in (
        ("0.20.0", "--enable_reasoning --swap-space=4 --new 1", "--enable_reasoning, --swap-space:"),
        ("0.8.5", "--enable-reasoning --disable-log-requests", ""),
        ("0.11.0", "--moe-backend x", "--moe-backend:"),
    ):
        described = ServerSpec(engine="vllm", model="m", engine_version=version, extra_flags=tuple(flags.split()))
        with pytest.raises(LaunchError, match=f"vllm {version} has no {named}") if named else nullcontext():
            replicas.dry_run(described)


def test_what_is_known_of_flags_agrees_with_the_engines_lists(shared_data: Path) -> None:
    for path in (shared_data / "flags").glob("*-flags.txt"):
        name: Any
        name, version, _ = path.stem.split("-")
        listed = [line for line in path.read_text().splitlines() if line.startswith("--")]
        table.check_flags(ServerSpec(engine=name, model="m", extra_flags=tuple(listed)), version)
