"""Computes next-token distributions and greedy replies of a model on this machine, as a child process: JSON in, JSON
out. Imports nothing of the harness.

In: {"path", "texts", "prompts", "tokens", "top"}; out: {"likely": [{token: log-probability}], "rounded": the same in 16
bits, "beginnings": [text]}, or {"failure"}. Weights are read from safetensors only, and no code of the model runs.
`likely` and `beginnings` are computed in 32 bits and `rounded` in 16, so the difference between `likely` and `rounded`
shows what rounding does. A model that is too large for 32 bits, or quantised, is computed as it is, and `rounded` stays
empty.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

WORD_START = "\u2581"
"""The character by which SentencePiece writes the space before a word."""


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    try:
        output = _computed(request)
    except ImportError as error:
        needed = f"comparing weights needs torch and transformers ({error.name} is not installed)"
        output = {"failure": needed}
    except Exception as error:  # noqa: BLE001  whatever is wrong with the model is told
        output = {"failure": f"transformers cannot load the model: {type(error).__name__}: {error}"[:300]}
    json.dump(output, sys.stdout)


def _computed(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to the request: distributions, rounded distributions and beginnings."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(request["path"], trust_remote_code=False)
    model = AutoModelForCausalLM.from_pretrained(
        request["path"], trust_remote_code=False, use_safetensors=True, dtype="auto", device_map="auto"
    ).eval()
    likely = _likely(model, tokenizer, request)
    rounded: list[dict[str, float]] = []
    if _has_room(model):
        # A model of 16 bits is computed once more in 32, a model of 32 bits once more in 16.
        own, as_loaded = model.dtype, likely
        is_narrow = own.itemsize < 4
        try:
            _cast(model, lambda weight: weight.float() if is_narrow else weight.bfloat16())
            converted = _likely(model, tokenizer, request)
            likely, rounded = (converted, as_loaded) if is_narrow else (as_loaded, converted)
        except RuntimeError:  # Too little memory, or a model that fixes its own number types.
            pass
        # The replies come from the model in 32 bits; if the conversion failed, from the model as it was loaded.
        if not (is_narrow and rounded):
            _cast(model, lambda weight: weight.to(own))
    beginnings = []
    for prompt in request["prompts"]:
        inputs = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], add_generation_prompt=True, return_tensors="pt", return_dict=True
        ).to(model.device)
        # The model's generation_config.json may set a penalty, which changes greedy text as well.
        generated = model.generate(**inputs, do_sample=False, temperature=None, top_p=None, top_k=None,
                              repetition_penalty=1.0, max_new_tokens=request["tokens"])  # fmt: skip
        beginnings.append(tokenizer.decode(generated[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))
    return {"likely": likely, "rounded": rounded, "beginnings": beginnings}


def _has_room(model: Any) -> bool:
    """Whether the model is loaded completely and not quantised, and memory has room for its weights in 32 bits."""
    import psutil  # The library that places models on devices needs this package.

    devices = {parameter.device.type for parameter in model.parameters()}
    if getattr(model.config, "quantization_config", None) or "meta" in devices:
        return False
    here = sum(parameter.numel() for parameter in model.parameters() if parameter.device.type == "cpu")
    return bool(4 * here < psutil.virtual_memory().available)


def _cast(model: Any, changed: Callable[[Any], Any]) -> None:
    """Convert the weights alone: position tables stay in 32 bits, as they do in a model that is loaded in 16 bits."""
    for weight in model.parameters():
        weight.data = changed(weight.data)


def _likely(model: Any, tokenizer: Any, request: dict[str, Any]) -> list[dict[str, float]]:
    """The likeliest next tokens after each text: token → log-probability."""

    def name(token: int) -> str:
        """The token's text, with the leading space that SentencePiece drops when it decodes a token alone."""
        piece = tokenizer.convert_ids_to_tokens(token)
        text: str = tokenizer.decode([token])
        return f" {text}" if piece.startswith(WORD_START) and not text.startswith(" ") else text

    likely: list[dict[str, float]] = []
    ids: list[int] = []
    logits: Any = None
    # Longest texts first: a text that is a beginning of another one is computed together with it.
    for text in reversed(request["texts"]):
        inputs = tokenizer(text, return_tensors="pt").to(model.device)
        own = inputs["input_ids"][0].tolist()
        if ids[: len(own)] != own:
            ids, logits = own, model(**inputs, use_cache=False).logits[0].detach().float()
        best = logits[len(own) - 1].log_softmax(-1).topk(request["top"])
        logprobs, tokens = best.values.tolist(), best.indices.tolist()
        likely.append({name(token): logprob for logprob, token in zip(logprobs, tokens, strict=True)})
    return likely[::-1]


if __name__ == "__main__":
    main()
