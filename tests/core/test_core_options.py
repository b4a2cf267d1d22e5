"""A declaration of an option: what it lets in, what it says of the rest, by its keyword, and what it is to others;
pydantic's objections become one sentence that names the field and what was found.

For: harness.core.validation.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

import harness
from harness.core.errors import UsageError
from harness.core.option_kinds import COMMAS, SEED
from harness.core.options import Option, Options, model_of, options_of
from harness.core.validation import Problem, first_problem
from harness.options.score import OutputsOptions
from harness.presets.grading import GradingOptions


class Place(Options):
    """Options that two verbs share."""

    out: Annotated[Path | None, Option()] = None
    """Folder."""
    key: Annotated[str | None, Option(secret=True)] = None
    """Key."""


class Showing(Place):
    """Options of one verb."""

    step: Annotated[int, Option(least=1, most=9)] = 2
    """Rounds."""
    margin: Annotated[float | None, Option(least=0)] = None
    """Points."""
    names: Annotated[tuple[str, ...], Option(chars=1, items=2)] = ()
    """Names."""
    ids: Annotated[tuple[str, ...] | None, Option(kind=COMMAS)] = None
    """Ids."""
    how: Annotated[Literal["a", "b"], Option()] = "a"
    """How."""
    seed: Annotated[int | None, Option(kind=SEED)] = 0
    """Seed."""
    file: Annotated[Path | None, Option()] = None
    """File."""

    def _check(self) -> None:
        """Raise where step and margin do not go together."""
        super()._check()
        if self.step == 9 and self.margin == 9:
            raise UsageError("not with 9", field="step", value=9)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"out": "a/b"}, "out", Path("a/b")),
        ({"step": 9}, "step", 9),
        ({"margin": 1}, "margin", 1.0),
        ({"names": "one"}, "names", ("one",)),
        ({"names": ["one", "two"]}, "names", ("one", "two")),
        ({"ids": "a, b,"}, "ids", ("a", "b")),
        ({"how": "b"}, "how", "b"),
        ({"seed": None}, "seed", None),
    ],
)
def test_a_value_that_fits_is_brought_to_its_type(given: dict[str, Any], name: str, value: object) -> None:
    showing = Showing(**given)
    assert getattr(showing, name) == value
    assert showing.explicit == {name: value}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"out": ""}, "out='': the path is empty"),
        ({"step": 0}, "step=0: expected a number greater than or equal to 1"),
        ({"step": 10}, "step=10: expected a number less than or equal to 9"),
        ({"step": True}, "step=True: expected a valid integer"),
        ({"step": "4"}, "step='4': expected a valid integer"),
        ({"margin": float("nan")}, "margin=nan: expected a finite number"),
        ({"margin": 1e13}, "margin=10000000000000.0: expected a number less than or equal to 1000000000000"),
        ({"names": ""}, "names='': expected at least 1 character"),
        ({"names": ["a", "b", "c"]}, "expected at most 2, found 3"),
        ({"how": "c"}, "how='c': expected 'a' or 'b'"),
        ({"stp": 3}, "unknown key 'stp'. Did you mean step?"),
        ({"step": 9, "margin": 9}, "step=9: not with 9"),
    ],
)
def test_a_value_that_does_not_fit_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        Showing(**given)
    assert sentence in str(refused.value)


def test_options_are_a_frozen_value() -> None:
    showing = Showing(step=3, key="sk-secret")
    assert showing == Showing(step=3, key="sk-secret") != Showing(step=4, key="sk-secret")
    assert "sk-secret" not in repr(showing)
    assert showing.replace(step=4).explicit == {"key": "sk-secret", "step": 4}
    assert Showing(step=2, out="x").plain == {"out": "x"}
    with pytest.raises(AttributeError, match="frozen"):
        showing.step = 4  # type: ignore[misc]


_VALUES = (
    None, "", "a", "ä", "\ud800", 0, 1, -1, 10**13, 0.0, 0.5, -0.5, 1e13, math.nan, math.inf, True, 257, 3600.0, (),
)  # fmt: skip


@pytest.mark.parametrize("declared", [GradingOptions, OutputsOptions, Showing])
def test_what_is_let_in_without_pydantic_is_let_in_by_pydantic_as_it_is(declared: type[Options]) -> None:
    for name in options_of(declared):
        for value in _VALUES:
            try:
                checked = getattr(model_of(declared).model_validate({name: value}), name)
            except ValidationError:
                with pytest.raises(UsageError):
                    declared(**{name: value})
                continue
            try:
                taken = getattr(declared(**{name: value}), name)
            except UsageError:
                continue  # by the check of several options together
            assert taken == checked
            assert type(taken) is type(checked)


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
        ("sampling", "top_p"),
        "sampling.top_p",
        "expected a number less than or equal to 1",
        "sampling.top_p: expected a number less than or equal to 1, found 1.5",
    )


def test_a_misspelled_key_is_told_before_the_missing_one_that_it_caused() -> None:
    first = problem({"titel": "x"})
    assert first.sentence == "unknown key 'titel'. Did you mean title?"
    assert problem({}).sentence == "the key 'title' is missing"


def test_our_errors_lose_pydantics_prefix_and_use_the_words_of_yaml() -> None:
    own = problem({"title": "x", "sampling": {"stop": ["a", "b", "c"]}})
    assert own.sentence == "sampling.stop: at most 2 texts, found ['a', 'b', 'c']"
    assert "expected a list in brackets" in problem({"title": "x", "sampling": {"stop": {}}}).sentence
    assert problem({"title": "caf\udce9"}).sentence == r"title: expected a text in UTF-8, found 'caf\udce9'"


def test_what_was_written_reaches_the_terminal_harmless_and_bounded() -> None:
    sentence = problem({"title": "x", "\x1b[31m" + "k" * 5000: 1}).sentence
    assert "\x1b" not in sentence
    assert len(sentence) < 500
    assert len(problem({"title": ["y" * 100_000]}).sentence) < 500


def test_no_error_that_repeats_a_refused_value_is_the_cause_of_ours() -> None:
    """Pydantic's error repeats the value, which may be a key, and a traceback prints the causes of an error."""
    sources = [path.read_text(encoding="utf-8") for path in Path(harness.__file__).parent.rglob("*.py")]
    raised = re.findall(r"^ *raise .*\bfirst_problem\(.*", "\n".join(sources), re.MULTILINE)
    assert raised
    assert not [line for line in raised if "from None" not in line]


def test_a_value_that_is_wrong_as_a_whole_has_no_field() -> None:
    first = problem([1])
    assert first.field == ""
    assert first.sentence.endswith("found [1]")


def test_none_leaves_an_option_as_it_is_but_for_a_seed() -> None:
    assert dict(Showing.of(step=None, how=None, seed=None)) == dict(Showing(seed=None))
    assert Showing.of(seed=None).seed is None
    with pytest.raises(UsageError, match="step"):
        Showing(step=None)
