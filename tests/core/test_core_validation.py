"""Pydantic's objections become one sentence that names the field and what was found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

import harness
from harness.core.validation import Problem, first_problem


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    top_p: float = Field(default=1.0, gt=0, le=1)
    stop: tuple[str, ...] = ()

    @field_validator("stop")
    @classmethod
    def _short(cls, stop: tuple[str, ...]) -> tuple[str, ...]:
        if len(stop) > 2:
            raise ValueError("at most 2 texts")
        return stop


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: Annotated[str, Field(min_length=1)]
    sampling: Inner = Inner()


def problem(value: Any) -> Problem:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(value)
    return first_problem(caught.value, {*Outer.model_fields, *Inner.model_fields})


def test_a_value_out_of_bounds_is_named_with_its_path_and_what_was_found() -> None:
    assert problem({"title": "x", "sampling": {"top_p": 1.5}}) == Problem(
        "sampling.top_p",
        "expected a number less than or equal to 1",
        "1.5",
        "sampling.top_p: expected a number less than or equal to 1, found 1.5",
    )


def test_a_misspelt_key_is_told_before_the_missing_one_that_it_caused() -> None:
    first = problem({"titel": "x"})
    assert first.sentence == "unknown key 'titel'. Did you mean title?"
    assert problem({}).sentence == "the key 'title' is missing"


def test_our_own_objections_lose_pydantics_prefix_and_python_words_become_yamls() -> None:
    own = problem({"title": "x", "sampling": {"stop": ["a", "b", "c"]}})
    assert own.sentence == "sampling.stop: at most 2 texts, found ['a', 'b', 'c']"
    assert "expected a list in brackets" in problem({"title": "x", "sampling": {"stop": {}}}).sentence
    assert problem({"title": "caf\udce9"}).sentence == r"title: expected a text in UTF-8, found 'caf\udce9'"


def test_what_was_written_reaches_the_terminal_harmless_and_bounded() -> None:
    sentence = problem({"title": "x", "\x1b[31m" + "k" * 5000: 1}).sentence
    assert "\x1b" not in sentence
    assert len(sentence) < 500
    assert len(problem({"title": ["y" * 100_000]}).sentence) < 500


def test_a_value_that_is_wrong_as_a_whole_has_no_field() -> None:
    first = problem([1])
    assert first.field == ""
    assert first.sentence.endswith("found [1]")


def test_no_error_that_repeats_a_refused_value_is_the_cause_of_ours() -> None:
    """Pydantic's error repeats the value, which may be a key, and a traceback prints the causes of an error."""
    sources = [path.read_text(encoding="utf-8") for path in Path(harness.__file__).parent.rglob("*.py")]
    raised = re.findall(r"^ *raise .*\bfirst_problem\(.*", "\n".join(sources), re.MULTILINE)
    assert raised
    assert not [line for line in raised if "from None" not in line]
