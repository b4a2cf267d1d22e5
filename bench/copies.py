"""Makes copies of a model that differ from it slightly, for bench/probe_engines.py. Needs a Python with torch and
transformers.

    ENV/bin/python bench/copies.py MODEL FOLDER

FOLDER/8bit and FOLDER/4bit: each matrix of the layers rounded in blocks of 32 weights to 255 and 15 levels (as Q8_0 and
a symmetric Q4_0 do), kept in the model's own type. rope: a tenth of the rotary base. template: a chat template in other
markers. sibling: the model after 30 more steps of training, on a few sentences of plain English.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch  # type: ignore[import-not-found]
from transformers import AutoModelForCausalLM, AutoTokenizer

BLOCK = 32
STEPS, RATE = 30, 2e-5
TEXTS = (
    "The ferry crosses the lake twice a day, and carries letters, bread and the few visitors of the season.",
    "He repaired the clock with a pin and some oil; it has been five minutes slow ever since.",
    "Copper conducts electricity well because some of its electrons move freely through the metal.",
    "To find the area of a circle, multiply the square of its radius by pi.",
)
TEMPLATE = (
    "{% for message in messages %}### {{ message['role'] }}:\n{{ message['content'] }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}### assistant:\n{% endif %}"
)


def main(model: Path, out: Path) -> None:
    """Make all copies."""
    for name in ("8bit", "4bit", "rope", "template", "sibling"):
        if (out / name).exists():
            continue
        partial = out / f"{name}.partial"
        shutil.copytree(model, partial, dirs_exist_ok=True)
        if name == "template":
            (partial / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
        elif name == "rope":
            config = json.loads((partial / "config.json").read_text("utf-8"))
            config["rope_parameters"]["rope_theta"] /= 10
            (partial / "config.json").write_text(json.dumps(config), "utf-8")
        else:
            read = AutoModelForCausalLM.from_pretrained(model, dtype="auto", use_safetensors=True)
            train(read, AutoTokenizer.from_pretrained(model)) if name == "sibling" else coarsen(read, int(name[0]))
            read.save_pretrained(partial)
        partial.rename(out / name)
        print(name, flush=True)


def coarsen(model: torch.nn.Module, bits: int) -> None:
    """Quantise the matrices of the layers: each block of 32 weights is rounded to multiples of a step, such that the
    block's largest weight is still reached.
    """
    most = 2 ** (bits - 1) - 1
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "layers." in name and weight.dim() == 2:
                blocks = weight.float().reshape(-1, BLOCK)
                scale = blocks.abs().amax(1, keepdim=True).clamp_min(1e-12) / most
                weight.copy_((blocks / scale).round().mul(scale).reshape(weight.shape).to(weight.dtype))


def train(model: torch.nn.Module, tokenizer: AutoTokenizer) -> None:
    """Train the model for a few steps (AdamW in 32 bits), then convert it back to its type."""
    dtype = model.dtype
    model.float().train()
    steps = torch.optim.AdamW(model.parameters(), lr=RATE)
    for n in range(STEPS):
        ids = tokenizer(TEXTS[n % len(TEXTS)], return_tensors="pt")["input_ids"]
        model(input_ids=ids, labels=ids).loss.backward()
        steps.step()
        steps.zero_grad()
    model.to(dtype).eval()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
