"""Presets: facts about models, with their sources.

For: harness.presets.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.presets import preset as presets
from harness.presets.preset import RunProfile
from harness.presets.sampling import Sampling
from server_launchers.engines import sglang

FAMILIES: dict[str | None, str] = {
    "qwq-32b": "Qwen/QwQ-32B /models/QwQ-32B",
    "qwen3": "qwen/qwen3-32b Qwen/Qwen3-30B-A3B",
    "qwen3-thinking": "Qwen/Qwen3-30B-A3B-Thinking-2507 Qwen/Qwen3-Next-80B-A3B-Thinking-FP8",
    "qwen3.5": "Qwen/Qwen3.5-397B-A17B",
    "qwen3.6": "Qwen/Qwen3.6-27B",
    "deepseek-r1": "deepseek-ai/DeepSeek-R1",
    "deepseek-r1-0528": "deepseek-ai/DeepSeek-R1-0528",
    "deepseek-r1-distill": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "deepseek-v3.1": "deepseek-ai/DeepSeek-V3.1-Terminus",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "deepseek-v4": "deepseek-ai/DeepSeek-V4-Flash",
    "gpt-oss": "openai/gpt-oss-120b",
    "glm-4.5": "zai-org/GLM-4.5-Air",
    "glm": "zai-org/GLM-5-FP8",
    "kimi-k2-thinking": "moonshotai/Kimi-K2-Thinking",
    "kimi-k2.5": "moonshotai/Kimi-K2.5",
    "kimi-k3": "moonshotai/Kimi-K3",
    "minimax-m2": "MiniMaxAI/MiniMax-M2.5",
    "minimax-m3": "MiniMaxAI/MiniMax-M3",
    "nemotron-3": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "magistral": "mistralai/Magistral-Small-2509",
    "ministral-3-reasoning": "mistralai/Ministral-3-8B-Reasoning-2512",
    "phi-4-reasoning": "microsoft/Phi-4-reasoning-plus",
    "olmo-3-think": "allenai/Olmo-3-32B-Think",
    "gemma-4": "google/gemma-4-31B-it",
    "skywork-or1": "Skywork/Skywork-OR1-32B",
    "openthinker3": "open-thoughts/OpenThinker3-7B",
    "limo": "GAIR/LIMO",
    None: "Qwen/Qwen3-4B-Instruct-2507 Qwen/Qwen2.5-7B zai-org/GLM-4.5V moonshotai/Kimi-K2-Instruct",
}
"""Preset → models that find it, by hub name or folder."""


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_is_well_formed_and_finds_its_own_models(name: str) -> None:
    preset = presets.load(name)
    for pattern in preset.models:
        found = presets.for_model(pattern.replace("*", "x"))
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_contradicts_itself_in_nothing_but_what_a_run_has_to_say(name: str) -> None:
    """Its own sampling fits its own card, and leaves room for a prompt in its own context."""
    preset = presets.load(name)
    assert preset.sampling is not None
    warnings = preset.contradictions(asked(preset.sampling.plain, system_prompt=own_prompt(preset)))
    assert [one for one in warnings if "max_tokens" in one or "the model card recommends " in one] == []


def own_prompt(preset: presets.Preset) -> str | None:
    return "the model's" if preset.rule("system_prompt") else None


@pytest.mark.parametrize(
    ("model", "name"), [(model, name) for name, some in FAMILIES.items() for model in some.split()]
)
def test_a_model_finds_its_preset_by_hub_name_or_folder(model: str, name: str | None) -> None:
    found = presets.for_model(model)
    assert (found.name if found else None) == name


def asked(sampling: Sampling | None = None, **more: Any) -> RunProfile:
    return RunProfile(**{"sampling": sampling or Sampling(), "thinking": "on", **more})


def said(name: str, given: RunProfile) -> list[str]:
    return [str(one) for one in presets.load(name).contradictions(given)]


SOUND = {
    "qwq-32b": asked(Sampling(temperature=0.6, top_p=0.95, top_k=20, max_tokens=32768)),
    "deepseek-r1": asked(Sampling(temperature=0.5, top_p=0.95)),
    "qwen3": asked(Sampling(temperature=0.6, top_p=0.95, top_k=20, max_tokens=32768)),
    "gpt-oss": asked(Sampling(temperature=1.0), thinking="high"),
    "deepseek-v3.2": asked(Sampling(temperature=1.0, top_p=0.95)),
    "magistral": asked(Sampling(temperature=0.7, top_p=0.95), system_prompt="the model's own"),
    "limo": asked(Sampling(temperature=0.9, max_tokens=30720)),
}
"""Runs that no card speaks against. LIMO's has no sampling of its own."""


@pytest.mark.parametrize("name", SOUND)
def test_a_run_as_the_card_asks_is_not_warned_of(name: str) -> None:
    assert said(name, SOUND[name]) == []


NO_ROOM = "max_tokens 32768 leaves no room for a prompt in a context of 32768 tokens"


@pytest.mark.parametrize(
    ("name", "change", "begins"),
    [
        ("qwq-32b", {"sampling": Sampling(temperature=0)}, "temperature 0: the model card warns of endless"),
        ("deepseek-r1", {"system_prompt": "You are …"}, "a system prompt: the model card says to put all instructions"),
        ("magistral", {"system_prompt": None}, "no system prompt: the model card recommends the system prompt used"),
        ("gpt-oss", {"templated": False}, "no chat template: the model card says that the model works only with the"),
        ("gpt-oss", {"thinking": None}, "no effort is set: the default effort is medium"),
        (
            "deepseek-v3.2",
            {"thinking": None},
            "no thinking: the model thinks only if its chat template enables thinking",
        ),
        (
            "qwen3",
            {"sampling": Sampling(temperature=0.7, top_p=0.95)},
            "the model card recommends temperature 0.6 (not 0.7), top_k 20 (not sent); preset=qwen3 applies its "
            "sampling settings",
        ),
        (
            "qwen3",
            {"sampling": Sampling(temperature=0.6, top_p=0.95, top_k=20, max_tokens=4096)},
            "max_tokens 4096: the model card recommends 32,768",
        ),
        ("limo", {"sampling": Sampling(max_tokens=32768)}, NO_ROOM),
        ("qwen3", {"context": 32768}, NO_ROOM),
    ],
)
def test_each_rule_of_a_card_is_warned_of_once(name: str, change: dict[str, Any], begins: str) -> None:
    (sentence,) = said(name, dataclasses.replace(SOUND[name], **change))
    assert sentence.startswith(begins)


def test_an_unknown_preset_names_the_near_one() -> None:
    with pytest.raises(UsageError, match=r"preset='qwq-32': unknown preset; .* Did you mean qwq-32b\?"):
        presets.load("qwq-32")
    with pytest.raises(UsageError, match=r"unknown preset; expected one of deepseek-r1"):
        presets.load("../spec")


@pytest.mark.parametrize(
    ("name", "engine", "parser"),
    [
        ("gpt-oss", "vllm", "openai_gptoss"),
        ("gpt-oss", "sglang", "gpt-oss"),
        ("kimi-k2-thinking", "sglang", "kimi_k2"),
        ("deepseek-r1", "sglang", "deepseek_r1"),
        ("olmo-3-think", "sglang", None),
    ],
)
def test_a_parser_has_the_engines_own_name(name: str, engine: str, parser: str | None) -> None:
    found = presets.load(name).reasoning_parser
    assert found is not None
    assert found.of(engine) == parser


def test_every_underscored_parser_of_sglang_keeps_its_name_in_either_spelling() -> None:
    for name in sglang.UNDERSCORED:
        assert sglang._parser(name) == sglang._parser(name.replace("_", "-")) == name
    assert sglang._parser("deepseek_r1") == sglang._parser("deepseek-r1") == "deepseek-r1"


def test_a_preset_without_models_fits_no_model_and_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (presets._FOLDER / "r1.yaml").read_text("utf-8").splitlines()
    without = [line for line in lines if not line.startswith("models:")]
    assert len(without) == len(lines) - 1
    (tmp_path / "mine.yaml").write_text("\n".join(without), "utf-8")
    monkeypatch.setattr(presets, "_FOLDER", tmp_path)
    assert presets.for_model("org/m") is None
    assert presets.load("mine").models == ()
