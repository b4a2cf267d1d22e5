"""Presets: facts about models, with their sources."""

from __future__ import annotations

import pytest

from harness.presets import preset as models
from server_launchers.errors import LaunchError


@pytest.mark.parametrize("name", models.names())
def test_every_preset_is_well_formed_and_finds_its_own_models(name: str) -> None:
    preset = models.load(name)
    for pattern in preset.models:
        found = models.for_model(pattern.replace("*", "x"))
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/QwQ-32B", "qwq-32b"),
        ("/models/QwQ-32B", "qwq-32b"),
        ("qwen/qwen3-32b", "qwen3"),
        ("Qwen/Qwen3-30B-A3B", "qwen3"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-r1"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-r1-distill"),
        ("Skywork/Skywork-OR1-32B", "skywork-or1"),
        ("open-thoughts/OpenThinker3-7B", "openthinker3"),
        ("GAIR/LIMO", "limo"),
        ("Qwen/Qwen3-4B-Instruct-2507", None),
        ("Qwen/Qwen2.5-7B", None),
    ],
)
def test_a_model_finds_its_preset_by_hub_name_or_folder(model: str, name: str | None) -> None:
    found = models.for_model(model)
    assert (found.name if found else None) == name


def test_settings_that_contradict_the_card_are_named() -> None:
    assert models.load("qwq-32b").contradictions(temperature=0.6, max_tokens=32768) == []
    (greedy,) = models.load("qwq-32b").contradictions(temperature=0)
    assert greedy.startswith("temperature 0: the model card warns of endless repetitions")
    (system,) = models.load("deepseek-r1-distill").contradictions(system_prompt="You are …", temperature=0.6)
    assert system.startswith("a system prompt: ")
    (room,) = models.load("limo").contradictions(max_tokens=32768)
    assert room == "max_tokens 32768 leaves no room for a prompt in a context of 32768 tokens"
    assert models.load("qwen3").contradictions(max_tokens=32768, context=32768) != []


def test_an_unknown_preset_names_the_near_one() -> None:
    with pytest.raises(LaunchError, match=r"no preset qwq-32; did you mean qwq-32b\?"):
        models.load("qwq-32")
    with pytest.raises(LaunchError, match=r"no preset \.\./spec; there are deepseek-r1"):
        models.load("../spec")
