"""Makes a small Llama with random weights and a part of another model's vocabulary, for bench/probe_engines.py --sound.

    ENV/bin/python bench/random_model.py MODEL FOLDER     an interpreter with torch, transformers and gguf

MODEL: a folder with the tokenizer, the chat template and model.gguf, whose first tokens both copies get: a probe makes
some 800 requests, most of them for the probabilities of one token, which take as long as the vocabulary is large.
FOLDER/hf holds the safetensors for vLLM, FOLDER/model.gguf the same weights for llama.cpp. Only words of plain letters
can be written, and the next token has an entropy of some 2 nats, so that draws, cuts and log-probabilities show
something.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import gguf  # type: ignore[import-not-found]
import numpy as np
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

HIDDEN, LAYERS, HEADS, KV_HEADS, INNER, CONTEXT = 128, 4, 4, 2, 256, 4096

VOCABULARY = 4096
"""Number of tokens that are kept: the first ones, which the first merges of a byte-pair encoding make."""

SPREAD = 3.0
"""Standard deviation of the logits of words, in nats."""

SHARPNESS = 4.0
"""Factor by which the attention's queries are larger than random ones."""


def main(model: Path, out: Path) -> None:
    """Make both copies: for vLLM and for llama.cpp."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    words = [n for n, piece in enumerate(tokenizer.convert_ids_to_tokens(range(VOCABULARY)))
             if re.fullmatch("Ġ[a-z]{3,8}", piece)]  # fmt: skip
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HIDDEN // HEADS, initializer_range=0.3,
        max_position_embeddings=CONTEXT, tie_word_embeddings=False, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    llama = LlamaForCausalLM(config)
    with torch.no_grad():
        head = llama.lm_head.weight
        written = torch.zeros_like(head)
        written[words] = torch.randn(len(words), HIDDEN) * SPREAD / HIDDEN**0.5
        head.copy_(written)
        for layer in llama.model.layers:  # attention as sharp as a trained model's, or one word of 1,000 moves nothing
            layer.self_attn.q_proj.weight.mul_(SHARPNESS)
    llama = llama.to(torch.bfloat16)
    (out / "hf").mkdir(parents=True, exist_ok=True)
    llama.save_pretrained(out / "hf")
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(model / name, out / "hf" / name)
    read = json.loads((model / "tokenizer.json").read_text("utf-8"))
    vocabulary = {piece: n for piece, n in read["model"]["vocab"].items() if n < VOCABULARY}
    merges = [pair for pair in read["model"]["merges"] if "".join(pair) in vocabulary]
    read["model"] |= {"vocab": vocabulary, "merges": merges}
    (out / "hf" / "tokenizer.json").write_text(json.dumps(read), "utf-8")
    write_gguf(llama, model / "model.gguf", out / "model.gguf")


def write_gguf(llama: LlamaForCausalLM, vocabulary: Path, path: Path) -> None:
    """Write the weights in 32 bits, which hold bfloat16 exactly, under the vocabulary of another file."""
    writer = gguf.GGUFWriter(path, "llama")
    config = llama.config
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(config.vocab_size)
    fields = gguf.GGUFReader(vocabulary).fields
    pieces = set(fields["tokenizer.ggml.tokens"].contents()[:VOCABULARY])
    for name, field in fields.items():
        if name.startswith("tokenizer."):
            kind, inner = field.types[0], field.types[1] if len(field.types) > 1 else None
            values = field.contents()
            if name.endswith((".tokens", ".token_type", ".scores")):
                values = values[:VOCABULARY]
            elif name.endswith(".merges"):
                values = [pair for pair in values if pair.replace(" ", "") in pieces]
            writer.add_key_value(name, values, kind, sub_type=inner)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, LAYERS)
    for name, weight in llama.state_dict().items():
        matrix = weight.float().numpy()
        for part, heads in (("q_proj", HEADS), ("k_proj", KV_HEADS)):
            if part in name:  # llama.cpp keeps the two halves of a rotated pair side by side
                halves = matrix.reshape(heads, 2, -1, matrix.shape[1])
                matrix = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(matrix.shape)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
