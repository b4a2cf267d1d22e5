"""What is refused before a start: a model that is no model, and flags that a version of the engine lacks.

For: server_launchers.engines.table.
"""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from server_launchers import replicas
from server_launchers.engines import table
from server_launchers.errors import LaunchError
from server_launchers.spec import ServerSpec


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
