"""What is refused before a start: a model that is no model.

For: server_launchers.engines.table.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from harness.core.errors import UsageError
from server_launchers.engines import table
from server_launchers.spec import ServerSpec


@pytest.mark.parametrize(
    ("model", "says"),
    [
        *((f"{site}Qwen/Qwen3-8B", "name of the hub") for site in ("hf://", "https://huggingface.co/", "hf.co/")),
        *((name, "name of the hub") for name in ("a/b@v1", "a/b:Q4_K_M", "a/b/c", "my model", "ollama://a", "a/b?x=1")),
        *((name, "") for name in ("a/b", "gpt2", "a-1/b_2.5", "./my model", "/x y", "~/m", "s3://bucket/m")),
    ],
)
def test_a_model_is_a_path_or_a_name_of_the_hub(model: str, says: str) -> None:
    for engine in ("vllm", "vllm_ascend", "sglang"):
        with pytest.raises(UsageError, match=says) if says else nullcontext():
            table.check(ServerSpec(engine=engine, model=model))
