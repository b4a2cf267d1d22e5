"""SeerAttention's models (https://github.com/microsoft/SeerAttention) for `server.py`.

    python server.py SeerAttention/SeerAttention-Decode-Qwen3-4B-AttnGates --class seer_attention.py:Seer \
        --token-budget 2048 --max-batch 15

Needs the package `seer_attn` and a CUDA GPU. For full attention, serve the base model with any engine.
"""

from __future__ import annotations

from typing import Any

import seer_attn
import torch


class Seer:
    """The class that SeerAttention's `eval_hf.py` uses for a model name, with its settings for a token budget."""

    @classmethod
    def from_pretrained(cls, path: str, *, token_budget: int, dtype: str = "auto") -> Any:
        """Load the weights. dtype is ignored: always bfloat16, in which the gates were trained."""
        del dtype
        kind = "Qwen3" if "qwen3" in path.lower() else "Qwen2"
        model_class = getattr(seer_attn, f"SeerDecoding{kind}ForCausalLM")

        class OnePosition(model_class):  # type: ignore[misc,valid-type]
            """Gives all rows of a batch the same positions, because SeerAttention's rotary kernel requires this."""

            def prepare_inputs_for_generation(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
                return {**super().prepare_inputs_for_generation(*args, **kwargs), "position_ids": None}

        return OnePosition.from_pretrained(
            path,
            torch_dtype=torch.bfloat16,
            load_gate=True,
            use_cache=True,
            seerattn_sparsity_method="token_budget",
            seerattn_token_budget=token_budget,
            seerattn_gate_block_size=64,
            seerattn_implementation="seer_sparse",
            use_flash_rope=True,
            fused_norm=True,
        )
