"""A model for real engines, with SmolLM2's tokenizer from its GGUF file; run by the interpreter of an engine.

    ENV/bin/python make_models.py SmolLM2.gguf CHAT_TEMPLATE THOUGHT ANSWER FOLDER

FOLDER/scripted is a Llama of 25 MB in which the next token depends on the last one alone: attention and MLP add
nothing, and the head's row of a token is the embedding of the one before it. It thinks THOUGHT, closes the block and
says ANSWER, at any temperature; told to go on after its end it begins anew, so that a stream lasts as long as a test
needs. Needs torch, transformers, accelerate and gguf.
"""

from __future__ import annotations

import json
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import torch  # type: ignore[import-not-found]
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found]

OPEN, CLOSE, END = "<think>", "</think>", "<|im_end|>"
SPARE = {"<repo_name>": OPEN, "<file_sep>": CLOSE}
"""Tokens of the vocabulary that text never needs → what they are called in the scripted model."""
HIDDEN = 128
PEAK = 0.5
"""The head's scale: the scripted token's logit is 64, that of any other about 25 at most."""
CONTEXT = 32768


def write_script(weights: Path, template: Path, thought: str, said: str, out: Path) -> None:
    """Write the model that says one thing into the folder `out`."""
    AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(out)
    shutil.copy(template, out / "chat_template.jinja")
    rename_spare_tokens(out / "tokenizer.json")
    tokenizer = AutoTokenizer.from_pretrained(out)
    newline, gap = (tokenizer.encode(text, add_special_tokens=False) for text in ("\n", "\n\n"))
    answer = tokenizer.encode(said, add_special_tokens=False)
    thinking = tokenizer.encode(thought + CLOSE, add_special_tokens=False)
    end = tokenizer.convert_tokens_to_ids(END)
    script = [newline[-1], *thinking, *answer, end, newline[-1]]
    assert len(set(script)) == len(script) - 1, "a token that comes twice has no single successor"

    size = len(tokenizer)
    successor = {token: (token + 1) % size for token in range(size)}
    successor |= {gap[-1]: answer[0]}
    successor |= dict(pairwise(script))

    torch.manual_seed(0)
    sizes = {"vocab_size": size, "hidden_size": HIDDEN, "intermediate_size": 2 * HIDDEN, "head_dim": HIDDEN // 4}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False}
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": end, "pad_token_id": tokenizer.pad_token_id}
    model = LlamaForCausalLM(LlamaConfig(**sizes, **heads, **ids, max_position_embeddings=CONTEXT))
    # Entries of ±1 have a root mean square of 1: the last norm leaves them as they are, and bfloat16 is exact.
    embeddings = torch.randint(0, 2, (size, HIDDEN)).float() * 2 - 1
    head = torch.zeros(size, HIDDEN)
    head.index_add_(0, torch.tensor([successor[token] for token in range(size)]), embeddings * PEAK)
    with torch.no_grad():
        model.model.embed_tokens.weight.copy_(embeddings)
        model.lm_head.weight.copy_(head)
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    model.to(torch.bfloat16).save_pretrained(out)


def rename_spare_tokens(file: Path) -> None:
    """Make the think tags tokens of their own, seen in the text: a reasoning parser looks for their numbers."""
    tokens = json.loads(file.read_text("utf-8"))
    for entry in tokens["added_tokens"]:
        if entry["content"] in SPARE:
            entry |= {"content": SPARE[entry["content"]], "special": False}
    vocabulary = tokens["model"]["vocab"]
    for old, new in SPARE.items():
        vocabulary[new] = vocabulary.pop(old)
    file.write_text(json.dumps(tokens, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    write_script(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4], Path(sys.argv[5]) / "scripted")
