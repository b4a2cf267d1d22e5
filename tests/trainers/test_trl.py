"""Rewards inside a real GRPOTrainer: it calls them with its own columns, and a hostile answer ends no step."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]

TRAINING = r"""
import json, sys
import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer
from harness import rewards

rewards.configure(workers=1, deadline_s=1.0)
characters = " 0123456789+=?abcdefghijklmnopqrstuvwxyz\\{}"
words = {"<pad>": 0, "<eos>": 1, "<unk>": 2} | {c: n for n, c in enumerate(characters, 3)}
made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
made.pre_tokenizer, made.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
)
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
    max_position_embeddings=128, pad_token_id=0, eos_token_id=1, bos_token_id=1,
))
given = []

def answered(completions, **columns):
    # The first completion of each batch is one that nobody may evaluate, the second is right.
    told = [r"\boxed{9^{9^{9^{9}}}}", rf"\boxed{{{columns['solution'][1]}}}", *completions[2:]]
    given.append(rewards.accuracy_reward(told, **columns))
    return given[-1]

data = Dataset.from_list([{"prompt": f"{n}+1=?", "solution": str(n + 1)} for n in range(8)])
settings = GRPOConfig(
    output_dir=sys.argv[1], per_device_train_batch_size=4, num_generations=4, max_completion_length=16, max_steps=4,
    logging_steps=1, report_to=[], use_cpu=True, save_strategy="no",
)
functions = [rewards.accuracy_reward, answered, rewards.format_reward]
trainer = GRPOTrainer(
    model=model, processing_class=tokenizer, reward_funcs=functions, args=settings, train_dataset=data
)
trainer.train()
print(json.dumps({"steps": trainer.state.global_step, "given": given, "log": trainer.state.log_history}))
"""


def test_a_model_is_trained_some_steps_beside_hostile_answers(trl: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [trl, "-c", TRAINING, str(tmp_path / "out")],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["steps"] == 4
    assert len(report["given"]) == 4
    assert all(batch[:2] == [0.0, 1.0] for batch in report["given"])
    steps = [row for row in report["log"] if "rewards/answered/mean" in row]
    assert len(steps) == 4
    assert all(row["rewards/answered/mean"] >= 0.25 for row in steps)
    assert all(row["rewards/accuracy_reward/mean"] is not None for row in steps)


PARSING = r"""
import json, sys
from trl import GRPOConfig, ModelConfig, TrlParser
from trl.scripts.grpo import GRPOScriptArguments
from trl.scripts.utils import DatasetMixtureConfig

parser = TrlParser((GRPOScriptArguments, GRPOConfig, ModelConfig, DatasetMixtureConfig))
script, grpo, model, data = parser.parse_args_and_config(["--config", *sys.argv[1:]])
print(json.dumps({
    "reward_funcs": script.reward_funcs, "generations": grpo.num_generations, "model": model.model_name_or_path,
    "columns": data.datasets[0].columns,
}))
"""


def test_the_settings_of_a_training_are_what_trl_reads(trl: Path) -> None:
    """By `trl grpo`'s own parser; this machine has no GPU, so numbers of 16 bits are switched off behind the file."""
    settings = (CHECKOUT / "datasets" / "templates" / "training") / "grpo.yaml"
    parsed = subprocess.run(
        [trl, "-c", PARSING, str(settings), "--use_cpu", "true", "--bf16", "false", "--use_vllm", "false"],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert parsed.returncode == 0, parsed.stderr[-2000:]
    printed = json.loads(parsed.stdout.splitlines()[-1])
    template = yaml.safe_load(settings.read_text("utf-8"))
    assert printed == {
        "reward_funcs": template["reward_funcs"],
        "generations": template["num_generations"],
        "model": template["model_name_or_path"],
        "columns": template["datasets"][0]["columns"],
    }
