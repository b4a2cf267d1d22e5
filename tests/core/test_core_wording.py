"""Sentences that name options: in Python's words as text, in another door's on demand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UNSET, Sentence, UsageError, option, spell_options
from harness.core.inert import visible

VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=3)


def test_an_error_shows_the_option_as_a_keyword_and_keeps_its_field() -> None:
    error = UsageError(f"expected 1 to 9; or give {option('fit_context', True)}", field="samples", value="0 x")
    assert str(error) == "samples='0 x': expected 1 to 9; or give fit_context=True"
    assert (error.field, error.value) == ("samples", "0 x")
    assert UsageError("no such card").field is None


@given(st.sampled_from(["samples", "server.port"]), VALUES, st.text())
def test_what_a_door_is_asked_to_spell_is_what_was_named(name: str, value: object, around: str) -> None:
    seen = []

    def spell(name: str, value: object) -> str:
        seen.append((name, value))
        return "!"

    sentence = Sentence(f"{visible(around)}{option(name, value)}{visible(around)}")
    assert spell_options(sentence.marked, spell) == f"{visible(around)}!{visible(around)}"
    assert seen == [(name, value)]


@given(st.text())
def test_foreign_text_made_visible_names_no_option(text: str) -> None:
    sentence = Sentence(visible(text))
    assert sentence == sentence.marked == visible(text)
    assert Sentence(visible(option("samples", text))) == visible(option("samples", text))


@pytest.mark.parametrize(("value", "shown"), [(UNSET, "stop"), (None, "stop=None"), (["a"], "stop=['a']")])
def test_python_sees_a_keyword_argument(value: object, shown: str) -> None:
    assert Sentence(option("stop", value)) == shown


def test_a_sentence_of_a_sentence_keeps_its_marks() -> None:
    once = Sentence(option("samples"))
    assert Sentence(once).marked == once.marked
    assert json.dumps(once) == '"samples"'
