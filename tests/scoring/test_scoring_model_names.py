"""Published names of models: two spellings of one model meet, and no other model meets them.

For: harness.scoring.published.model_name.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.published.model_name import EFFORTS, PRECISIONS, THINKING_WORDS, NameParts, match


class Model(NamedTuple):
    """A made-up model, from which names are spelt."""

    owner: str
    family: str
    tuned: str
    size: str
    release: str
    precision: str
    thinking: str

    def spelt(self, chance: random.Random, owner: bool = True) -> str:
        """One of the ways in which sources write the name."""
        family = self.family.replace(".", chance.choice([".", "-"]))
        words = [word for word in (family, self.size, self.tuned, self.release, self.precision) if word]
        name = chance.choice(["-", " ", "_"]).join(words)
        if self.thinking:
            name += chance.choice([f" ({self.thinking})", f"-{self.thinking}", f" [{self.thinking}]"])
        name = chance.choice([str, str.upper, str.title, str.lower])(name)
        return f"{self.owner}/{name}" if owner and self.owner else name


MODELS = st.builds(
    Model,
    st.sampled_from(["qwen", "deepseek-ai", "org"]),
    st.sampled_from(["qwen3", "llama-3.1", "claude-3.7-sonnet", "glm-4.5", "phi-4-mini", "r1-distill-qwen"]),
    st.sampled_from(["", "instruct", "chat"]),
    st.sampled_from(["", "7b", "30b-a3b", "8x7b", "1.5b"]),
    st.sampled_from(["", "0528", "2507", "2025-01-31"]),
    st.sampled_from(["", "fp8", "awq", "int4"]),
    st.sampled_from(["", "thinking", "high", "low"]),
)


@given(MODELS, st.randoms(use_true_random=False))
def test_spellings_of_one_model_are_one_model(model: Model, chance: random.Random) -> None:
    first, second = (NameParts.read(model.spelt(chance)) for _ in range(2))
    relation = match(first, second)
    assert relation is not None
    assert relation.same
    assert not relation.differing


@given(MODELS, st.randoms(use_true_random=False))
def test_a_name_without_its_organisation_is_the_same_model_by_a_guess_that_is_told(
    model: Model, chance: random.Random
) -> None:
    relation = match(NameParts.read(model.spelt(chance)), NameParts.read(model.spelt(chance, owner=False)))
    assert relation is not None
    assert relation.same
    assert relation.guess == f"organisation: {model.owner} here, not stated there"


@given(MODELS, MODELS, st.randoms(use_true_random=False))
def test_models_that_differ_in_any_part_are_never_taken_for_one(
    ours: Model, theirs: Model, chance: random.Random
) -> None:
    relation = match(NameParts.read(ours.spelt(chance)), NameParts.read(theirs.spelt(chance)))
    one_model = ours == theirs
    assert (relation is not None and relation.same) == one_model
    if (ours.family, ours.tuned, ours.size) != (theirs.family, theirs.tuned, theirs.size):
        assert relation is None
    elif not one_model:
        assert relation is not None
        assert relation.guess


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("claude-3-7-sonnet-20250219-thinking-64k", "Claude 3.7 Sonnet 2025-02-19 (thinking 64K)", True),
        ("o3-mini-2025-01-31-high", "openai/o3-mini-2025-01-31 (high)", True),
        ("grok-4-fast-non-reasoning", "xai/grok-4-fast (no thinking)", True),
        ("qwen2.5-1.5b-instruct-q4_k_m", "Qwen/Qwen2.5-1.5B-Instruct-Q4_K_M", True),
        ("mistral-medium-3", "mistral-3 (medium)", None),
        ("Phi-4-mini-reasoning", "Phi-4-mini", False),
        ("Qwen3-32B-FP8", "Qwen3-32B", False),
        ("unsloth/Qwen3-32B", "Qwen/Qwen3-32B", False),
        ("DeepSeek-R1-0528", "DeepSeek-R1", False),
        ("gpt-5.1", "gpt-51", None),
        ("CohereForAI/Command-R+", "CohereForAI/Command-R", None),
        ("CohereForAI/c4ai-command-r-plus", "c4ai-command-r+", True),
        ("/data/models/Qwen3-32B", "Qwen/Qwen3-32B", True),
        ("Qwen3-8B", "Qwen3-80B", None),
        ("qwen2.5-math-7b", "qwen2.5-7b", None),
        ("", "", None),
        ("7B", "7B", None),
    ],
)
def test_names_of_today(first: str, second: str, same: bool | None) -> None:
    relation = match(NameParts.read(first), NameParts.read(second))
    assert (None if relation is None else relation.same) == same


def test_the_words_of_one_part_are_of_no_other() -> None:
    assert not PRECISIONS & THINKING_WORDS
    assert not (PRECISIONS | THINKING_WORDS) & EFFORTS


@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    name = NameParts.read(text)
    relation = match(name, name)
    assert (relation is not None and relation.same and not relation.differing) == bool(name.base)
